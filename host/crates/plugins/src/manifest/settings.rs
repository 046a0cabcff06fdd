//! `[settings]` of `plugin.toml`: the settings that an operator may set for a plugin, so that a slip is found before it
//! runs.
//!
//! Pure. A plugin that declares nothing gets the operator's settings unchanged. Refuses to check the content of lists
//! and tables, which the plugin checks itself.

use longhaul_config::secrets::named;
use longhaul_config::toml_text::or_one_of;
use longhaul_core::text::printable;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Longest text of a plugin's manifest or of a setting that an error repeats, in bytes.
const SHOWN_BYTES_MAX: usize = 80;

/// The declared settings, by name.
pub type DeclaredSettings = BTreeMap<String, Setting>;

/// One setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Setting {
    /// Its type. Default: the type of `default`, or any.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<SettingKind>,
    /// The value when nothing is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The allowed texts. Default: every text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<String>,
    /// Its description, in one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingKind {
    /// A text, or `{ secret = "NAME" }`.
    String,
    /// A number without a fraction.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list.
    List,
    /// A table.
    Table,
}

impl SettingKind {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::Bool(_) => Some(Self::Boolean),
            Value::Number(number) if number.is_f64() => Some(Self::Number),
            Value::Number(_) => Some(Self::Integer),
            Value::String(_) => Some(Self::String),
            Value::Array(_) => Some(Self::List),
            Value::Object(_) => Some(Self::Table),
        }
    }

    fn takes(self, value: &Value) -> bool {
        match (self, value) {
            (Self::String, Value::Object(fields)) => named(fields).is_some(),
            (Self::Number, Value::Number(_)) => true,
            _ => Self::of(value) == Some(self),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::String => "a text",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::List => "a list",
            Self::Table => "a table",
        }
    }
}

/// The faults of the settings of `plugin`, by the name of the setting.
pub fn faults(plugin: &str, declared: &DeclaredSettings, settings: &Map<String, Value>) -> Vec<(String, String)> {
    let wrong = |(name, value): (&String, &Value)| {
        let text = match declared.get(name) {
            Some(setting) => setting.refuse(value)?,
            None => unknown(plugin, declared, name),
        };
        Some((name.clone(), text))
    };
    settings.iter().filter_map(wrong).collect()
}

fn unknown(plugin: &str, declared: &DeclaredSettings, name: &str) -> String {
    let name = printable(name, SHOWN_BYTES_MAX);
    let known: Vec<String> = declared.keys().map(|name| printable(name, SHOWN_BYTES_MAX)).collect();
    format!("plugin `{plugin}` has no setting `{name}`{}", or_one_of(&name, &known))
}

impl Setting {
    /// The reason why a value is refused.
    fn refuse(&self, value: &Value) -> Option<String> {
        let shown = || printable(&value.to_string(), SHOWN_BYTES_MAX);
        let kind = self.kind.or_else(|| self.default.as_ref().and_then(SettingKind::of));
        if let Some(kind) = kind.filter(|kind| !kind.takes(value)) {
            return Some(format!("is {}; write {}", shown(), kind.words()));
        }
        let text = value.as_str().filter(|text| !self.one_of.is_empty() && !self.one_of.iter().any(|one| one == text));
        text.map(|text| {
            let known: Vec<String> = self.one_of.iter().map(|one| printable(one, SHOWN_BYTES_MAX)).collect();
            format!("is {}{}", shown(), or_one_of(text, &known))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(settings: Value, expected: &str) {
        let declared: DeclaredSettings = toml::from_str(
            "style = { default = \"actions\", one_of = [\"actions\", \"file\"] }\nsteps_max = { default = 10 }\n\
             temperature = { default = 0.0 }\nprompt = { type = \"string\" }\ntools = { default = [] }\nany = {}\n",
        )
        .unwrap();
        let settings = settings.as_object().cloned().unwrap();
        let said = faults("react", &declared, &settings);
        let said: Vec<String> = said.into_iter().map(|(name, text)| format!("{name}: {text}")).collect();
        assert_eq!(said.join("\n"), expected);
    }

    #[test]
    fn a_setting_that_a_plugin_does_not_have_is_refused_with_what_was_meant() {
        check(json!({}), "");
        check(
            json!({ "style": "file", "steps_max": 3, "temperature": 1, "prompt": { "secret": "p" }, "any": null }),
            "",
        );
        check(
            json!({ "step_max": 3 }),
            "step_max: plugin `react` has no setting `step_max`; did you mean `steps_max`?",
        );
        check(
            json!({ "zzz": 3 }),
            "zzz: plugin `react` has no setting `zzz`; there are `any`, `prompt`, `steps_max`, `style`, `temperature`, `tools`",
        );
        check(json!({ "steps_max": "3" }), "steps_max: is \"3\"; write a whole number");
        check(json!({ "steps_max": 3.5 }), "steps_max: is 3.5; write a whole number");
        check(json!({ "prompt": ["a"] }), "prompt: is [\"a\"]; write a text");
        check(json!({ "style": "action" }), "style: is \"action\"; did you mean `actions`?");
    }
}
