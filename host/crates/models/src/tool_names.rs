//! Encodes functions of tools as names that providers allow: `tool__function`, at most 64 characters of `A-Z a-z 0-9 _
//! -`.
//!
//! A name that cannot be encoded without loss gets a digest at its end, so that no two functions share one. Decoding
//! uses the table of offered functions; the model's answer is not trusted, so an unknown name is split literally and
//! left for the caller to refuse.

use longhaul_core::Digest;
use longhaul_core::model::OfferedTool;
use std::collections::HashMap;

/// The limit of providers.
const NAME_CHARS_MAX: usize = 64;

/// Longest name from a model that is passed on, in bytes.
const FOREIGN_BYTES_MAX: usize = 256;

/// A provider's name for `function` of `tool`.
pub(crate) fn encode(tool: &str, function: &str) -> String {
    let plain = format!("{}__{}", clean(tool), clean(function));
    let reversible = plain == format!("{tool}__{function}")
        && plain.len() <= NAME_CHARS_MAX
        && !tool.contains("__")
        && !tool.ends_with('_')
        && !function.starts_with('_');
    if reversible {
        return plain;
    }
    let digest = Digest::of_parts(&[tool.as_bytes(), function.as_bytes()]).short();
    format!("{}_{digest}", &plain[..plain.len().min(NAME_CHARS_MAX - digest.len() - 1)])
}

/// The names of the offered functions, for decoding a model's answer.
pub(crate) struct Names(HashMap<String, (String, String)>);

impl Names {
    pub(crate) fn of(tools: &[OfferedTool]) -> Self {
        let entry = |offered: &OfferedTool| {
            (encode(&offered.tool, &offered.function), (offered.tool.clone(), offered.function.clone()))
        };
        Self(tools.iter().map(entry).collect())
    }

    /// The tool and the function that a model means by `name`.
    pub(crate) fn decode(&self, name: &str) -> (String, String) {
        let name = name.trim();
        // Some models add the namespace of their training in front.
        let bare = name.strip_prefix("functions.").unwrap_or(name);
        if let Some(found) = self.0.get(bare) {
            return found.clone();
        }
        let foreign = &bare[..bare.floor_char_boundary(FOREIGN_BYTES_MAX)];
        let (tool, function) = foreign.split_once("__").unwrap_or((foreign, ""));
        (tool.to_owned(), function.to_owned())
    }
}

/// ASCII, so that it can be cut anywhere.
fn clean(name: &str) -> String {
    let allowed = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' }
    };
    name.chars().map(allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(tool: &str, function: &str) -> OfferedTool {
        OfferedTool {
            tool: tool.into(),
            function: function.into(),
            description: String::new(),
            parameters: serde_json::json!({}),
        }
    }

    #[test]
    fn every_function_has_a_name_of_its_own_that_leads_back_to_it() {
        let long = "x".repeat(200);
        let pairs = [
            ("files", "read"),
            ("a", "b__c"),
            ("a__b", "c"),
            ("a_", "b"),
            ("a", "_b"),
            ("a.b", "c"),
            ("a/b", "c"),
            ("日本", "語"),
            (long.as_str(), "f"),
            (long.as_str(), "g"),
            ("", ""),
        ];
        let tools: Vec<_> = pairs.iter().map(|(tool, function)| offered(tool, function)).collect();
        let names = Names::of(&tools);
        assert_eq!(names.0.len(), pairs.len());
        for (tool, function) in pairs {
            let name = encode(tool, function);
            assert!(name.len() <= NAME_CHARS_MAX && !name.is_empty(), "{name}");
            assert_eq!(names.decode(&name), (tool.to_owned(), function.to_owned()));
        }
        assert_eq!(encode("files", "read"), "files__read");
    }

    #[test]
    fn a_name_that_was_not_offered_is_passed_on_for_the_caller_to_refuse() {
        let names = Names::of(&[offered("files", "read")]);
        let decode = |name: &str| names.decode(name);
        assert_eq!(decode("functions.files__read"), ("files".into(), "read".into()));
        assert_eq!(decode("shell__run"), ("shell".into(), "run".into()));
        assert_eq!(decode("shell"), ("shell".into(), String::new()));
        assert_eq!(decode(&"é".repeat(1000)).0.len(), FOREIGN_BYTES_MAX);
    }
}
