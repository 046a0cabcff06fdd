//! A schema in a provider's form, and its replies in the plugin's form.

use super::rules::{Dialect, Rules, check, is_plain};
use super::words::{required, types, with};
use serde_json::{Map, Value, json};

/// The field around a reply that is not an object itself.
const REPLY: &str = "reply";

/// Nesting of schemas; a deeper one, such as a recursive one, becomes JSON in a text.
const DEPTH_MAX: usize = 8;

/// Schemas in all, after references were resolved; a schema with more is sent without strict mode.
const SCHEMAS_MAX: usize = 5_000;

/// A schema that a provider accepts with `strict: true`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lowered {
    /// The schema to send.
    pub(crate) schema: Value,
    /// The conversion of a reply back.
    raise: Raise,
}

/// The conversion of a value back to the intended schema.
#[derive(Clone, Debug, PartialEq)]
enum Raise {
    /// No change.
    Same,
    /// JSON in a text.
    Text,
    /// The field [`REPLY`] of the value.
    Wrapped(Box<Raise>),
    /// Fields, and whether a null stands for a missing field.
    Object(Vec<(String, Raise, bool)>),
    /// The same for each item.
    Items(Box<Raise>),
    /// The conversion of the first schema that the value matches.
    Any(Vec<(Value, Raise)>),
}

impl Lowered {
    /// None: it cannot be expressed in the provider's form.
    pub(crate) fn of(schema: &Value, dialect: Dialect) -> Option<Self> {
        let mut lowering = Lowering { root: schema, rules: dialect.rules(), schemas: 0 };
        let (mut lowered, mut raise) = lowering.schema(schema, DEPTH_MAX);
        // A reply that is one text with JSON in it is better requested in the prompt.
        if raise == Raise::Text {
            return None;
        }
        if lowering.rules.is_root_object && types(&lowered) != ["object"] {
            lowered = json!({
                "type": "object", "properties": { REPLY: lowered }, "required": [REPLY], "additionalProperties": false,
            });
            raise = Raise::Wrapped(Box::new(raise));
        }
        let is_taken = lowering.schemas <= SCHEMAS_MAX && check(&lowered, dialect).is_empty();
        is_taken.then_some(Self { schema: lowered, raise })
    }

    /// Converts a reply to the sent schema into one for the intended schema. Invalid JSON stays unchanged.
    pub(crate) fn raise(&self, reply: String) -> String {
        if self.raise == Raise::Same {
            return reply;
        }
        match serde_json::from_str::<Value>(&reply) {
            Ok(value) => self.raise.apply(value).to_string(),
            Err(_) => reply,
        }
    }
}

impl Raise {
    fn apply(&self, mut value: Value) -> Value {
        match (self, &mut value) {
            (Self::Text, Value::String(text)) => serde_json::from_str(text).unwrap_or(value),
            (Self::Wrapped(inner), Value::Object(fields)) => match fields.remove(REPLY) {
                Some(reply) => inner.apply(reply),
                None => value,
            },
            (Self::Object(raises), Value::Object(fields)) => {
                for (name, raise, is_dropped) in raises {
                    match fields.get_mut(name) {
                        Some(Value::Null) if *is_dropped => drop(fields.shift_remove(name)),
                        Some(field) => *field = raise.apply(field.take()),
                        None => {}
                    }
                }
                value
            }
            (Self::Items(raise), Value::Array(items)) => items.drain(..).map(|item| raise.apply(item)).collect(),
            (Self::Any(raises), _) => match raises.iter().find(|(schema, _)| looks_like(&value, schema)) {
                Some((_, raise)) => raise.apply(value),
                None => value,
            },
            _ => value,
        }
    }
}

/// A check that is enough to tell the schemas of a union apart.
fn looks_like(value: &Value, schema: &Value) -> bool {
    let name = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let types = types(schema);
    let is_type = types.is_empty() || types.contains(&name) || name == "number" && types.contains(&"integer");
    let is_value = schema.get("enum").is_none_or(|values| values.as_array().is_some_and(|all| all.contains(value)))
        && schema.get("const").is_none_or(|only| only == value);
    let field = |name: &str| value.get(name).is_some_and(|field| looks_like(field, &schema["properties"][name]));
    is_type && is_value && (!value.is_object() || required(schema).iter().all(|name| field(name)))
}

struct Lowering<'a> {
    root: &'a Value,
    rules: &'static Rules,
    schemas: usize,
}

impl Lowering<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> (Value, Raise) {
        self.schemas += 1;
        if depth == 0 || self.schemas > SCHEMAS_MAX {
            return text_of(schema);
        }
        let schema = match self.joined(schema, depth) {
            Some(schema) => schema,
            None => return text_of(schema),
        };
        if schema.get("anyOf").is_some() {
            return self.union(&schema, depth);
        }
        let types = types(&schema);
        let is_json = |name: &&str| matches!(*name, "object" | "array");
        match types.iter().filter(|name| **name != "null").collect::<Vec<_>>()[..] {
            [] if types.is_empty() => text_of(&schema),
            [&"object"] => self.object(&schema, depth),
            [&"array"] => self.list(&schema, depth),
            [_, _, ..] if types.iter().any(is_json) => text_of(&schema),
            _ => (self.kept(&schema), Raise::Same),
        }
    }

    /// Resolves references and joins; adds a type if it can be derived. None: it cannot be expressed.
    fn joined(&self, schema: &Value, depth: usize) -> Option<Value> {
        let mut fields = schema.as_object()?.clone();
        for _ in 0..depth {
            let Some(name) = fields.remove("$ref") else { break };
            let path = name.as_str()?.strip_prefix('#')?.to_owned();
            let mut named = self.root.pointer(&path)?.as_object()?.clone();
            named.extend(fields);
            fields = named;
        }
        if fields.contains_key("$ref") {
            return None;
        }
        for part in fields.remove("allOf").iter().flat_map(|all| all.as_array().into_iter().flatten()) {
            join(&mut fields, self.joined(part, depth.checked_sub(1)?)?);
        }
        if let Some(one_of) = fields.remove("oneOf") {
            // Two unions in one cannot be combined.
            let is_first = fields.insert("anyOf".to_owned(), one_of).is_none();
            is_first.then_some(())?;
        }
        self.distribute(&mut fields);
        if !fields.contains_key("type") && !fields.contains_key("anyOf") {
            let told = told_type(&fields);
            fields.extend(told.map(|told| ("type".to_owned(), told)));
        }
        Some(Value::Object(fields))
    }

    /// A union beside fields: the fields go into each of its schemas. A union that only lists required fields is left
    /// out: the reader of the reply checks it.
    fn distribute(&self, fields: &mut Map<String, Value>) {
        let Some(union) = fields.get("anyOf").and_then(Value::as_array).cloned() else { return };
        let only_requires = |one: &Value| one.as_object().is_some_and(|one| one.keys().all(|key| key == "required"));
        if union.iter().all(only_requires) {
            fields.remove("anyOf");
        } else if fields.contains_key("properties") {
            fields.remove("anyOf");
            let description = fields.remove("description");
            let beside = std::mem::take(fields);
            let whole = union.into_iter().map(|one| {
                let mut all = beside.clone();
                join(&mut all, one);
                Value::Object(all)
            });
            fields.insert("anyOf".to_owned(), whole.collect());
            fields.extend(description.map(|text| ("description".to_owned(), text)));
        }
    }

    fn union(&mut self, schema: &Value, depth: usize) -> (Value, Raise) {
        let all: Vec<_> = with(schema, "anyOf").map(|one| self.schema(one, depth - 1)).collect();
        let is_text = |one: &(Value, Raise)| one.1 == Raise::Text;
        // Beside a text that contains JSON, a plain text cannot be told apart.
        if all.is_empty()
            || all.iter().any(is_text) && all.iter().any(|one| types(&one.0).contains(&"string") && !is_text(one))
        {
            return text_of(schema);
        }
        let mut kept = Map::new();
        kept.insert("anyOf".to_owned(), all.iter().map(|one| one.0.clone()).collect());
        for keyword in ["title", "description"] {
            kept.extend(schema.get(keyword).map(|value| (keyword.to_owned(), value.clone())));
        }
        let is_same = all.iter().all(|one| one.1 == Raise::Same);
        (Value::Object(kept), if is_same { Raise::Same } else { Raise::Any(all) })
    }

    fn object(&mut self, schema: &Value, depth: usize) -> (Value, Raise) {
        let properties = schema["properties"].as_object().filter(|properties| !properties.is_empty());
        let Some(properties) = properties else {
            // An object of any fields; also when there may be none at all, since an empty one cannot be named.
            return if self.rules.is_named { text_of(schema) } else { (self.kept(schema), Raise::Same) };
        };
        let must = required(schema);
        let (mut lowered, mut raises) = (Map::new(), Vec::new());
        for (name, property) in properties {
            let (mut one, raise) = self.schema(property, depth - 1);
            let is_optional = !must.contains(&name.as_str()) && self.rules.is_all_required;
            let is_dropped = is_optional && !takes_null(&one);
            if is_dropped {
                one = nullable(one);
            }
            lowered.insert(name.clone(), one);
            raises.push((name.clone(), raise, is_dropped));
        }
        let Value::Object(mut kept) = self.kept(schema) else { return text_of(schema) };
        let names = lowered.keys().filter(|name| self.rules.is_all_required || must.contains(&name.as_str()));
        match names.cloned().collect::<Value>() {
            Value::Array(names) if names.is_empty() => drop(kept.shift_remove("required")),
            names => drop(kept.insert("required".to_owned(), names)),
        }
        kept.insert("properties".to_owned(), Value::Object(lowered));
        if self.rules.is_closed {
            kept.insert("additionalProperties".to_owned(), json!(false));
        }
        raises.retain(|(_, raise, is_dropped)| *is_dropped || *raise != Raise::Same);
        (Value::Object(kept), if raises.is_empty() { Raise::Same } else { Raise::Object(raises) })
    }

    fn list(&mut self, schema: &Value, depth: usize) -> (Value, Raise) {
        if schema.get("prefixItems").is_some() || schema["items"].is_array() {
            return text_of(schema);
        }
        let any = json!({});
        let (items, raise) = match schema.get("items") {
            None if !self.rules.is_named => return (self.kept(schema), Raise::Same),
            items => self.schema(items.unwrap_or(&any), depth - 1),
        };
        let Value::Object(mut kept) = self.kept(schema) else { return text_of(schema) };
        kept.insert("items".to_owned(), items);
        (Value::Object(kept), if raise == Raise::Same { raise } else { Raise::Items(Box::new(raise)) })
    }

    /// The keywords of a schema that the provider accepts. Other bounds go into its description.
    fn kept(&self, schema: &Value) -> Value {
        let (mut kept, mut told) = (Map::new(), Vec::new());
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            if self.takes(keyword, value) {
                kept.insert(keyword.clone(), value.clone());
            } else if BOUNDS.contains(&keyword.as_str()) {
                told.push(format!("{keyword}: {value}"));
            }
        }
        if !told.is_empty() {
            let said = kept.get("description").and_then(Value::as_str).unwrap_or_default();
            let said = format!("{said} ({})", told.join(", "));
            kept.insert("description".to_owned(), json!(said.trim()));
        }
        Value::Object(kept)
    }

    fn takes(&self, keyword: &str, value: &Value) -> bool {
        let fits = match keyword {
            "format" => value.as_str().is_some_and(|format| self.rules.formats.contains(&format)),
            "pattern" => value.as_str().is_some_and(is_plain),
            "minItems" => value.as_u64().is_some_and(|least| least <= self.rules.items_min_max),
            "enum" => value.as_array().is_some_and(|all| all.iter().all(|one| !one.is_object() && !one.is_array())),
            "$schema" | "$id" | "$defs" | "definitions" => false,
            _ => true,
        };
        fits && self.rules.takes(keyword)
    }
}

/// Bounds that go into the description if they are not accepted.
const BOUNDS: [&str; 16] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minProperties",
    "maxProperties",
    "const",
];

/// The type of a schema that names none, if it can be derived.
fn told_type(fields: &Map<String, Value>) -> Option<Value> {
    let of = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if fields.contains_key("properties") || fields.get("additionalProperties").is_some_and(Value::is_object) {
        return Some(json!("object"));
    }
    if fields.contains_key("items") {
        return Some(json!("array"));
    }
    if let Some(only) = fields.get("const") {
        return Some(json!(of(only)));
    }
    let mut types: Vec<&str> = fields.get("enum")?.as_array()?.iter().map(of).collect();
    types.sort_unstable();
    types.dedup();
    match types[..] {
        [] => None,
        [one] => Some(json!(one)),
        _ => Some(json!(types)),
    }
}

/// Combines two schemas: fields of both, required by either; of other keywords the later one's.
fn join(fields: &mut Map<String, Value>, more: Value) {
    let Value::Object(more) = more else { return };
    for (keyword, value) in more {
        match (keyword.as_str(), fields.get_mut(&keyword), value) {
            ("properties", Some(Value::Object(own)), Value::Object(more)) => own.extend(more),
            ("required", Some(Value::Array(own)), Value::Array(more)) => {
                let new: Vec<_> = more.into_iter().filter(|name| !own.contains(name)).collect();
                own.extend(new);
            }
            (_, _, value) => drop(fields.insert(keyword, value)),
        }
    }
}

/// A value of any shape as JSON in a text, which every provider can enforce.
fn text_of(schema: &Value) -> (Value, Raise) {
    let types = types(schema);
    let what = match types[..] {
        ["object"] => "a JSON object, written as text",
        ["array"] => "a JSON array, written as text",
        _ => "any JSON value, written as text",
    };
    let said = schema["description"].as_str().map_or_else(|| what.to_owned(), |said| format!("{said} ({what})"));
    let text = json!({ "type": "string", "description": said });
    (if types.contains(&"null") { nullable(text) } else { text }, Raise::Text)
}

fn takes_null(schema: &Value) -> bool {
    types(schema).contains(&"null") || with(schema, "anyOf").any(takes_null)
}

fn nullable(mut schema: Value) -> Value {
    if let Some(all) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        all.push(json!({ "type": "null" }));
        return schema;
    }
    if schema.get("const").is_some() {
        return json!({ "anyOf": [schema, { "type": "null" }] });
    }
    if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        values.push(Value::Null);
    }
    let mut all: Vec<Value> = types(&schema).into_iter().map(Value::from).collect();
    all.push(json!("null"));
    schema["type"] = Value::Array(all);
    schema
}
