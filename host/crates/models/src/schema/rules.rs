//! Each provider's rules for schemas of replies, from its documentation, with their sources.

use super::words::{required, types, with};
use serde_json::Value;
use std::fmt;

/// A set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI's *Structured Outputs*, `strict: true`: <https://platform.openai.com/docs/guides/structured-outputs>,
    /// section *Supported schemas*. Azure and most gateways have the same.
    OpenAi,
    /// Anthropic's *Structured outputs*, `output_config.format`:
    /// <https://platform.claude.com/docs/en/build-with-claude/structured-outputs>, *JSON Schema limitations*.
    Anthropic,
    /// Gemini's, which its endpoint in OpenAI's protocol has too:
    /// <https://ai.google.dev/gemini-api/docs/structured-output>, section *JSON Schema support*.
    Gemini,
    /// vLLM with xgrammar: `has_xgrammar_unsupported_json_features` in `vllm/v1/structured_output/backend_xgrammar.py`.
    /// Other servers of open models take about the same.
    Vllm,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Vllm];

    pub(super) fn rules(self) -> &'static Rules {
        match self {
            Self::OpenAi => &OPENAI,
            Self::Anthropic => &ANTHROPIC,
            Self::Gemini => &GEMINI,
            Self::Vllm => &VLLM,
        }
    }
}

/// One objection of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// A path of fields, for example `properties/steps/items`; empty for the whole schema.
    pub at: String,
    /// The kind of the rule.
    pub rule: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.at.is_empty() { "the schema" } else { &self.at };
        write!(f, "{at}: {}", self.rule)
    }
}

/// The rules of a provider.
pub(super) struct Rules {
    /// Allowed keywords; all if empty.
    pub(super) keywords: &'static [&'static str],
    /// Forbidden keywords.
    pub(super) refused: &'static [&'static str],
    /// Values of `format`.
    pub(super) formats: &'static [&'static str],
    /// Every field is in `required`.
    pub(super) is_all_required: bool,
    /// Every object has `additionalProperties: false`.
    pub(super) is_closed: bool,
    /// An object names its fields.
    pub(super) is_named: bool,
    /// The root is an object.
    pub(super) is_root_object: bool,
    /// The largest `minItems`.
    pub(super) items_min_max: u64,
    /// Nesting of objects and lists.
    depth_max: usize,
    /// Fields in all.
    properties_max: usize,
    /// Fields that are not required, in all.
    optional_max: usize,
    /// Union types and `anyOf`s, in all.
    unions_max: usize,
    /// Values in all `enum`s.
    enum_values_max: usize,
    /// Characters of the texts of one `enum` with more than 250 values.
    enum_chars_max: usize,
    /// Characters of all names and values.
    chars_max: usize,
}

const NO_LIMIT: usize = usize::MAX;

/// *Supported properties* lists the words, *Objects have limitations on nesting depth and size* and *Limitations on
/// enum size* the numbers, *All fields must be required* and *additionalProperties: false must always be set* the rest.
/// A word that is not listed is refused: `In context=(...), 'maxLength' is not permitted`.
const OPENAI: Rules = Rules {
    keywords: &[
        "type",
        "title",
        "description",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "anyOf",
        "pattern",
        "format",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minItems",
        "maxItems",
    ],
    refused: &[],
    formats: &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"],
    is_all_required: true,
    is_closed: true,
    is_named: true,
    is_root_object: true,
    items_min_max: u64::MAX,
    depth_max: 10,
    properties_max: 5_000,
    optional_max: 0,
    unions_max: NO_LIMIT,
    enum_values_max: 1_000,
    enum_chars_max: 15_000,
    chars_max: 120_000,
};

/// *Supported features* lists the words, *Not supported* what is refused, *Schema complexity limits* the numbers: 24
/// optional parameters and 16 with a union type. Of `minItems` it takes 0 and 1. Its patterns are a subset of what
/// regular expressions can say, so none is sent.
const ANTHROPIC: Rules = Rules {
    keywords: &[
        "type",
        "title",
        "description",
        "default",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minItems",
        "enum",
        "const",
        "anyOf",
        "format",
    ],
    refused: &[],
    formats: &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"],
    is_all_required: false,
    is_closed: true,
    is_named: true,
    is_root_object: false,
    items_min_max: 1,
    depth_max: NO_LIMIT,
    properties_max: NO_LIMIT,
    optional_max: 24,
    unions_max: 16,
    enum_values_max: NO_LIMIT,
    enum_chars_max: NO_LIMIT,
    chars_max: NO_LIMIT,
};

/// The words are those of the tables below *JSON Schema support*. Objects without fields are refused by the older
/// models: `properties: should be non-empty for OBJECT type`.
const GEMINI: Rules = Rules {
    keywords: &[
        "type",
        "title",
        "description",
        "properties",
        "required",
        "additionalProperties",
        "enum",
        "format",
        "minimum",
        "maximum",
        "items",
        "minItems",
        "maxItems",
        "anyOf",
    ],
    refused: &[],
    formats: &["date-time", "date", "time"],
    is_all_required: false,
    is_closed: false,
    is_named: true,
    is_root_object: false,
    items_min_max: u64::MAX,
    depth_max: NO_LIMIT,
    properties_max: NO_LIMIT,
    optional_max: NO_LIMIT,
    unions_max: NO_LIMIT,
    enum_values_max: NO_LIMIT,
    enum_chars_max: NO_LIMIT,
    chars_max: NO_LIMIT,
};

/// The words that xgrammar cannot hold a reply to. With another backend vLLM takes some of them.
const VLLM: Rules = Rules {
    keywords: &[],
    refused: &[
        "multipleOf",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "patternProperties",
        "propertyNames",
        "not",
        "if",
        "then",
        "else",
        "dependentRequired",
        "dependentSchemas",
        "oneOf",
        "allOf",
    ],
    formats: &[
        "email",
        "date",
        "time",
        "date-time",
        "duration",
        "ipv4",
        "ipv6",
        "hostname",
        "uuid",
        "uri",
        "uri-reference",
        "uri-template",
        "json-pointer",
        "relative-json-pointer",
    ],
    is_all_required: false,
    is_closed: false,
    is_named: false,
    is_root_object: false,
    items_min_max: u64::MAX,
    depth_max: NO_LIMIT,
    properties_max: NO_LIMIT,
    optional_max: NO_LIMIT,
    unions_max: NO_LIMIT,
    enum_values_max: NO_LIMIT,
    enum_chars_max: NO_LIMIT,
    chars_max: NO_LIMIT,
};

impl Rules {
    pub(super) fn takes(&self, keyword: &str) -> bool {
        !self.refused.contains(&keyword) && (self.keywords.is_empty() || self.keywords.contains(&keyword))
    }
}

/// A provider's objections to a schema for replies. None: it may be sent with `strict: true`.
#[must_use]
pub fn check(schema: &Value, dialect: Dialect) -> Vec<Violation> {
    let mut audit = Audit { rules: dialect.rules(), found: Vec::new(), sums: Sums::default() };
    if audit.rules.is_root_object && types(schema) != ["object"] {
        audit.found("", "its type is `object`");
    }
    audit.schema(schema, "", 0);
    audit.totals();
    audit.found
}

#[derive(Default)]
struct Sums {
    properties: usize,
    optional: usize,
    unions: usize,
    enum_values: usize,
    chars: usize,
}

struct Audit {
    rules: &'static Rules,
    found: Vec<Violation>,
    sums: Sums,
}

impl Audit {
    fn found(&mut self, at: &str, rule: &str) {
        self.found.push(Violation { at: at.to_owned(), rule: rule.to_owned() });
    }

    fn schema(&mut self, schema: &Value, at: &str, depth: usize) {
        let Some(fields) = schema.as_object() else { return self.found(at, "a schema is an object") };
        for keyword in fields.keys().filter(|keyword| !self.rules.takes(keyword)) {
            self.found(at, &format!("`{keyword}` is not permitted"));
        }
        let is_union = fields.contains_key("anyOf");
        if is_union && ["properties", "items", "required"].iter().any(|keyword| fields.contains_key(*keyword)) {
            self.found(at, "`anyOf` stands alone, or one of both is not held");
        }
        let wants_type = !self.rules.keywords.is_empty() || fields.contains_key("enum");
        if wants_type && !is_union && types(schema).is_empty() {
            self.found(at, "it has a `type` or `anyOf`");
        }
        self.sums.unions += usize::from(is_union || types(schema).len() > 1);
        for (position, one) in with(schema, "anyOf").enumerate() {
            self.schema(one, &below(at, &format!("anyOf/{position}")), depth);
        }
        let depth = depth + usize::from(types(schema).iter().any(|one| matches!(*one, "object" | "array")));
        if depth == self.rules.depth_max.saturating_add(1) {
            self.found(at, &format!("it is at most {} levels deep", self.rules.depth_max));
        }
        if types(schema).contains(&"object") {
            self.object(schema, at, depth);
        }
        if types(schema).contains(&"array") {
            self.list(schema, at, depth);
        }
        self.values(schema, at);
    }

    fn object(&mut self, schema: &Value, at: &str, depth: usize) {
        let properties = schema["properties"].as_object();
        if self.rules.is_named && properties.is_none_or(serde_json::Map::is_empty) {
            self.found(at, "an object names its fields");
        }
        if self.rules.is_closed && schema["additionalProperties"] != false {
            self.found(at, "`additionalProperties` is required to be supplied and to be false");
        }
        let required = required(schema);
        for (name, property) in properties.into_iter().flatten() {
            self.sums.properties += 1;
            self.sums.chars += name.chars().count();
            if !required.contains(&name.as_str()) {
                self.sums.optional += 1;
                if self.rules.is_all_required {
                    self.found(
                        at,
                        &format!("`required` is an array including every key in properties; missing `{name}`"),
                    );
                }
            }
            self.schema(property, &below(at, &format!("properties/{name}")), depth);
        }
        let known = |name: &&str| properties.is_some_and(|properties| properties.contains_key(*name));
        if let Some(unknown) = required.iter().find(|name| self.rules.is_named && !known(name)) {
            self.found(at, &format!("`required` names `{unknown}`, which is no field"));
        }
    }

    fn list(&mut self, schema: &Value, at: &str, depth: usize) {
        match schema.get("items") {
            Some(items) => self.schema(items, &below(at, "items"), depth),
            None if self.rules.is_named => self.found(at, "a list says what its `items` are"),
            None => {}
        }
        if schema["minItems"].as_u64().is_some_and(|least| least > self.rules.items_min_max) {
            self.found(at, &format!("`minItems` is at most {}", self.rules.items_min_max));
        }
    }

    fn values(&mut self, schema: &Value, at: &str) {
        let chars = |value: &Value| value.as_str().map_or(0, |text| text.chars().count());
        let values: Vec<&Value> = with(schema, "enum").collect();
        let enum_chars: usize = values.iter().map(|value| chars(value)).sum();
        if values.len() > 250 && enum_chars > self.rules.enum_chars_max {
            self.found(at, &format!("its enum has at most {} characters", self.rules.enum_chars_max));
        }
        if values.iter().any(|value| value.is_object() || value.is_array()) {
            self.found(at, "the values of an enum are texts, numbers, booleans or null");
        }
        self.sums.enum_values += values.len();
        self.sums.chars += enum_chars + chars(&schema["const"]);
        if let Some(format) = schema["format"].as_str().filter(|format| !self.rules.formats.contains(format)) {
            self.found(at, &format!("the format `{format}` is not supported"));
        }
        if let Some(pattern) = schema["pattern"].as_str().filter(|pattern| !is_plain(pattern)) {
            self.found(at, &format!("the pattern `{pattern}` looks around or back"));
        }
    }

    fn totals(&mut self) {
        let (sums, rules) = (&self.sums, self.rules);
        let all = [
            ("fields", sums.properties, rules.properties_max),
            (
                "fields that are not required",
                sums.optional,
                if rules.is_all_required { NO_LIMIT } else { rules.optional_max },
            ),
            ("unions", sums.unions, rules.unions_max),
            ("values of enums", sums.enum_values, rules.enum_values_max),
            ("characters of names and values", sums.chars, rules.chars_max),
        ];
        for (what, count, max) in all {
            if count > max {
                self.found("", &format!("it has {count} {what}, of at most {max}"));
            }
        }
    }
}

/// A pattern that every engine behind these providers can enforce.
pub(super) fn is_plain(pattern: &str) -> bool {
    let escapes = pattern.split('\\').skip(1).filter_map(|rest| rest.chars().next());
    !pattern.contains("(?") && escapes.into_iter().all(|c| !matches!(c, 'b' | 'B' | '1'..='9' | 'k' | 'p' | 'P'))
}

fn below(at: &str, rest: &str) -> String {
    if at.is_empty() { rest.to_owned() } else { format!("{at}/{rest}") }
}
