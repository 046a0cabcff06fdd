//! Structs and enums of Rust sources, with what serde makes of them.
//!
//! Read line by line, as rustfmt writes them. Knows the attributes of serde that configuration uses: names, defaults,
//! and fields and variants that are left out, of a file or of its schema.

use crate::docs::page::{cell, choices, joined};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The check of `[checks]` is read by a table with a default for each key.
const ALL_DEFAULT: &str = "NativeCheck";

/// Types by their names.
pub(crate) struct Types(BTreeMap<String, Item>);

/// A key of a table, for its page.
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) shown: String,
    pub(crate) is_required: bool,
    pub(crate) about: String,
}

struct Item {
    is_enum: bool,
    attributes: String,
    members: Vec<Member>,
}

/// A field of a struct, or a variant of an enum, whose type stays empty.
struct Member {
    name: String,
    kind: String,
    docs: String,
    attributes: String,
}

impl Types {
    /// Reads the public and private types of files below `folder`. Of equal names the first one stays.
    pub(crate) fn read(folder: &Path, files: &[&str]) -> Result<Self> {
        let mut items = BTreeMap::new();
        for file in files {
            let text = fs::read_to_string(folder.join(file)).with_context(|| format!("read `{file}`"))?;
            read(&text, &mut items);
        }
        Ok(Self(items))
    }

    /// The keys of a table.
    pub(crate) fn keys(&self, table: &str) -> Result<Vec<Key>> {
        let item = self.0.get(table).with_context(|| format!("no source has the type `{table}`"))?;
        let all_default = item.attributes.contains("serde(default") || table == ALL_DEFAULT;
        let rule = value(&item.attributes, "rename_all");
        let fields = item.members.iter().filter(|field| !field.attributes.contains("flatten"));
        let keys = fields.map(|field| -> Result<Key> {
            let Member { kind, docs, attributes, .. } = field;
            // The newer name of two is the alias: the older one is in files that were written before.
            let name = value(attributes, "alias").or_else(|| value(attributes, "rename"));
            let name = name.map_or_else(|| cased(&field.name, rule), str::to_owned);
            let has_default = all_default || attributes.contains("default") || kind.starts_with("Option<");
            let shown = self.shown(kind).with_context(|| format!("describe `{table}.{}`", field.name))?;
            Ok(Key { name, shown, is_required: !has_default, about: about(docs) })
        });
        keys.collect()
    }

    /// A type in words.
    fn shown(&self, kind: &str) -> Result<String> {
        if let Some(inner) = inner(kind, "Option").or_else(|| inner(kind, "Box")) {
            return self.shown(inner);
        }
        if let Some(inner) = inner(kind, "Vec") {
            return Ok(format!("list of {}", several(&self.shown(inner)?)));
        }
        if let Some((_, inner)) = inner(kind, "BTreeMap").and_then(|inner| inner.split_once(", ")) {
            return Ok(format!("table of {}", several(&self.shown(inner)?)));
        }
        let known = match kind {
            "String" | "PathBuf" | "SocketAddr" => "text",
            "HostPattern" => "host pattern",
            "PackageRequirement" => "package",
            "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => "integer",
            "f32" | "f64" => "number",
            "bool" => "true or false",
            "toml::Table" | "serde_json::Value" => "table",
            // A variable of an MCP server.
            "Value" => "text or table",
            _ if kind.starts_with("serde_json::Map") => "table",
            _ => "",
        };
        if !known.is_empty() {
            return Ok(known.to_owned());
        }
        let item = self.0.get(kind).with_context(|| format!("no source has the type `{kind}`"))?;
        if !item.is_enum {
            return Ok("table".to_owned());
        }
        let rule = value(&item.attributes, "rename_all");
        let names = item.members.iter().map(|variant| {
            let name = value(&variant.attributes, "rename").map(str::to_owned);
            name.unwrap_or_else(|| cased(&variant.name, rule))
        });
        Ok(choices(names.collect::<Vec<_>>().iter().map(String::as_str)))
    }
}

/// Adds the types of a source.
fn read(text: &str, items: &mut BTreeMap<String, Item>) {
    let (mut docs, mut attributes) = (Vec::new(), String::new());
    let mut open: Option<(String, Item)> = None;
    for line in text.lines() {
        let code = line.trim();
        if let Some(said) = code.strip_prefix("///") {
            docs.push(said);
            continue;
        }
        if code.starts_with("#[") {
            attributes += code;
            continue;
        }
        let said = joined(&docs.join("\n"));
        docs.clear();
        let attributes = std::mem::take(&mut attributes);
        if let Some((is_enum, name)) = opens(line) {
            open = Some((name.to_owned(), Item { is_enum, attributes, members: Vec::new() }));
        } else if line == "}" {
            if let Some((name, item)) = open.take() {
                items.entry(name).or_insert(item);
            }
        } else if let Some((_, item)) = &mut open
            && line.starts_with("    ")
            && !line.starts_with("     ")
            && let Some((name, kind)) = member(code, item.is_enum)
            && !attributes.contains("(skip)")
        {
            item.members.push(Member { name: name.to_owned(), kind: kind.to_owned(), docs: said, attributes });
        }
    }
}

/// The name of the type that a line opens, with true for an enum and false for a struct.
fn opens(line: &str) -> Option<(bool, &str)> {
    let head = line.strip_suffix(" {")?;
    let head = head.strip_prefix("pub ").unwrap_or(head);
    match head.split_once(' ')? {
        ("struct", name) if !name.contains(' ') => Some((false, name)),
        ("enum", name) if !name.contains(' ') => Some((true, name)),
        _ => None,
    }
}

/// The name and type of a field, or the name of a variant.
fn member(code: &str, is_enum: bool) -> Option<(&str, &str)> {
    if is_enum {
        let name = code.split([' ', '(', '{', ',']).next()?;
        let is_name = name.starts_with(char::is_alphabetic) && name.chars().all(char::is_alphanumeric);
        return is_name.then_some((name, ""));
    }
    let field = code.strip_suffix(',')?;
    field.strip_prefix("pub ").unwrap_or(field).split_once(": ")
}

/// The `T` of `WRAPPER<T>`.
fn inner<'a>(kind: &'a str, wrapper: &str) -> Option<&'a str> {
    kind.strip_prefix(wrapper)?.strip_prefix('<')?.strip_suffix('>')
}

/// The text that an attribute gives a name, as in `rename = "text"`.
fn value<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = attributes.split_once(&format!("{name} = \""))?;
    rest.split('"').next()
}

/// A name by serde's rule.
fn cased(name: &str, rule: Option<&str>) -> String {
    let between = match rule {
        Some("kebab-case") => '-',
        Some("snake_case") => '_',
        Some("lowercase") => return name.to_lowercase(),
        _ => return name.to_owned(),
    };
    let mut cased = String::new();
    for (at, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && at > 0 {
            cased.push(between);
        }
        cased.extend(letter.to_lowercase());
    }
    cased.replace('_', &between.to_string())
}

/// A type in the plural.
fn several(shown: &str) -> String {
    match shown {
        "text" | "table" | "integer" | "number" | "host pattern" | "package" => format!("{shown}s"),
        _ => shown.to_owned(),
    }
}

/// Documentation as a cell: a reference to another item becomes its name, and one at the end of a sentence is left out.
fn about(docs: &str) -> String {
    let mut text = docs.to_owned();
    while let Some(from) = text.find("; see [`") {
        let Some(length) = text[from..].find("`]") else { break };
        text.replace_range(from..from + length + 2, "");
    }
    cell(&text.replace("[`", "`").replace("`]", "`"))
}

#[test]
fn a_type_is_read_as_serde_reads_it() {
    let text = "/// A table.\n#[serde(deny_unknown_fields)]\npub struct Config {\n    /// The name; see [`crate::names`].\n    \
                pub name: String,\n    #[serde(skip)]\n    pub id: String,\n    /// How often.\n    pub every: \
                Option<u32>,\n    #[serde(rename = \"old\", alias = \"new\", default)]\n    pub mode: ModeName,\n}\n\n\
                #[serde(rename_all = \"kebab-case\")]\nenum ModeName {\n    /// All.\n    #[default]\n    EveryOne,\n    \
                None,\n    #[schemars(skip)]\n    Other,\n}\n";
    let mut items = BTreeMap::new();
    read(text, &mut items);
    let keys = Types(items).keys("Config").expect("a table");
    let keys = keys.iter().map(|key| (key.name.as_str(), key.shown.as_str(), key.is_required, key.about.as_str()));
    assert_eq!(
        keys.collect::<Vec<_>>(),
        [
            ("name", "text", true, "The name."),
            ("every", "integer", false, "How often."),
            ("new", "`\"every-one\"`, `\"none\"`", false, ""),
        ]
    );
}
