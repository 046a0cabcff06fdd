//! JSON Schemas for the parameters of functions and the replies of models, and a check against them.
//!
//! A schema is built by the functions of this module alone, so [`Schema::check`] knows every keyword in it, and `call`
//! accepts exactly what `describe` shows. It does not validate schemas of other authors.

use std::fmt;
use std::ops::Deref;

use serde_json::{Map, Value, json};

/// A JSON Schema of the 2020-12 draft. It dereferences to its [`Value`].
#[derive(Clone, Debug, PartialEq)]
pub struct Schema(Value);

/// An object with the fields that are added to the schema, and no others.
#[must_use]
pub fn object() -> Schema {
    Schema(json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false }))
}

/// An object with any fields, which are not checked.
#[must_use]
pub fn any_object() -> Schema {
    Schema(json!({ "type": "object" }))
}

/// Any JSON value.
#[must_use]
pub fn any() -> Schema {
    Schema(json!({}))
}

/// A text.
#[must_use]
pub fn text() -> Schema {
    of_type("string")
}

/// A number.
#[must_use]
pub fn number() -> Schema {
    of_type("number")
}

/// A whole number. `2.0` is one, and [`Schema::check`] turns it into `2`.
#[must_use]
pub fn whole() -> Schema {
    of_type("integer")
}

/// True or false.
#[must_use]
pub fn boolean() -> Schema {
    of_type("boolean")
}

/// A list whose items all satisfy `items`.
#[must_use]
pub fn list(items: Schema) -> Schema {
    Schema(json!({ "type": "array", "items": items.0 }))
}

/// One of these texts.
#[must_use]
pub fn one_of<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Schema {
    let texts: Vec<Value> = texts.into_iter().map(|text| text.as_ref().into()).collect();
    Schema(json!({ "type": "string", "enum": texts }))
}

fn of_type(name: &str) -> Schema {
    Schema(json!({ "type": name }))
}

impl Schema {
    /// Adds a description of the value, for a model.
    #[must_use]
    pub fn about(self, text: &str) -> Self {
        self.with("description", text)
    }

    /// Adds a required field to an [`object`].
    #[must_use]
    pub fn required(mut self, name: &str, schema: Schema) -> Self {
        if let Some(required) = self.0["required"].as_array_mut() {
            required.push(name.into());
        }
        self.optional(name, schema)
    }

    /// Adds an optional field to an [`object`]. Models send null for fields that they leave out, so [`Schema::check`]
    /// removes a null.
    #[must_use]
    pub fn optional(mut self, name: &str, schema: Schema) -> Self {
        if let Some(properties) = self.0["properties"].as_object_mut() {
            properties.insert(name.to_owned(), schema.0);
        }
        self
    }

    /// Limits the characters of a [`text`], both ends included.
    #[must_use]
    pub fn chars(self, min: u32, max: u32) -> Self {
        self.with("minLength", min).with("maxLength", max)
    }

    /// Limits a [`number`] or a [`whole`] number, both ends included.
    #[must_use]
    pub fn between<N: Into<Value>>(self, min: N, max: N) -> Self {
        self.with("minimum", min).with("maximum", max)
    }

    /// Limits the items of a [`list`], both ends included.
    #[must_use]
    pub fn items(self, min: u32, max: u32) -> Self {
        self.with("minItems", min).with("maxItems", max)
    }

    /// Checks `value`, and brings it into the form that serde reads: no null for a missing optional field, and no `2.0`
    /// for `2`.
    ///
    /// # Errors
    /// The first fault with its place, such as "`notes[2].name` is missing".
    pub fn check(&self, value: &mut Value) -> Result<(), String> {
        check(&self.0, value, &Place::Top)
    }

    fn with(mut self, word: &str, value: impl Into<Value>) -> Self {
        self.0[word] = value.into();
        self
    }
}

impl Deref for Schema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The place of a value, for errors; its text is only made when there is an error.
enum Place<'a> {
    Top,
    Field(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => f.write_str("the value"),
            Self::Field(Self::Top, name) => f.write_str(&crate::json::cut(name, 100)),
            Self::Field(parent, name) => write!(f, "{parent}.{}", crate::json::cut(name, 100)),
            Self::Item(Self::Top, number) => write!(f, "[{number}]"),
            Self::Item(parent, number) => write!(f, "{parent}[{number}]"),
        }
    }
}

/// A schema that was built here is never deeper than its author wrote it, so this recursion is bounded.
fn check(schema: &Value, value: &mut Value, place: &Place<'_>) -> Result<(), String> {
    match schema["type"].as_str() {
        Some("object") => check_object(schema, value, place),
        Some("array") => check_list(schema, value, place),
        Some("string") => check_text(schema, value, place),
        Some("boolean") if !value.is_boolean() => Err(wrong_type(value, place, "true or false")),
        Some("number") => check_number(schema, value, place, "a number"),
        Some("integer") => {
            make_whole(value);
            if value.is_number() && !(value.is_i64() || value.is_u64()) {
                return Err(format!("`{place}` must be a whole number"));
            }
            check_number(schema, value, place, "a whole number")
        }
        _ => Ok(()),
    }
}

fn check_object(schema: &Value, value: &mut Value, place: &Place<'_>) -> Result<(), String> {
    let Value::Object(fields) = value else {
        return Err(wrong_type(value, place, "an object"));
    };
    let Some(properties) = schema["properties"].as_object() else {
        return Ok(());
    };
    let required = |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name));
    fields.retain(|name, field| !field.is_null() || required(name) || !properties.contains_key(name));
    for (name, field) in fields.iter_mut() {
        let place = Place::Field(place, name);
        let schema = properties.get(name).ok_or_else(|| unknown_field(properties, &place))?;
        check(schema, field, &place)?;
    }
    let missing = properties.keys().find(|name| required(name) && !fields.contains_key(*name));
    missing.map_or(Ok(()), |name| Err(format!("`{}` is missing", Place::Field(place, name))))
}

fn unknown_field(properties: &Map<String, Value>, place: &Place<'_>) -> String {
    let known: Vec<String> = properties.keys().map(|name| format!("`{name}`")).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    format!("`{place}` is not known here; known: {known}")
}

fn check_list(schema: &Value, value: &mut Value, place: &Place<'_>) -> Result<(), String> {
    let Value::Array(items) = value else {
        return Err(wrong_type(value, place, "a list"));
    };
    let count = items.len() as u64;
    bounds(schema, "minItems", "maxItems", count).map_err(|bound| format!("`{place}` must have {bound} items"))?;
    for (number, item) in items.iter_mut().enumerate() {
        check(&schema["items"], item, &Place::Item(place, number))?;
    }
    Ok(())
}

fn check_text(schema: &Value, value: &Value, place: &Place<'_>) -> Result<(), String> {
    let Value::String(text) = value else {
        return Err(wrong_type(value, place, "a text"));
    };
    if let Some(texts) = schema["enum"].as_array()
        && !texts.contains(value)
    {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        return Err(format!("`{place}` must be one of {}", texts.join(", ")));
    }
    let count = text.chars().count() as u64;
    bounds(schema, "minLength", "maxLength", count).map_err(|bound| format!("`{place}` must have {bound} characters"))
}

fn check_number(schema: &Value, value: &Value, place: &Place<'_>, what: &str) -> Result<(), String> {
    let Some(number) = value.as_f64() else {
        return Err(wrong_type(value, place, what));
    };
    match (schema["minimum"].as_f64(), schema["maximum"].as_f64()) {
        (Some(min), _) if number < min => Err(format!("`{place}` must be at least {}", schema["minimum"])),
        (_, Some(max)) if number > max => Err(format!("`{place}` must be at most {}", schema["maximum"])),
        _ => Ok(()),
    }
}

/// Says "MIN to MAX" when `count` is outside.
fn bounds(schema: &Value, min: &str, max: &str, count: u64) -> Result<(), String> {
    match (schema[min].as_u64(), schema[max].as_u64()) {
        (Some(min), Some(max)) if !(min..=max).contains(&count) => Err(format!("{min} to {max}")),
        _ => Ok(()),
    }
}

/// JSON has one kind of number, and some writers say `2.0`.
fn make_whole(value: &mut Value) {
    // Up to 2^53 every whole `f64` is exact.
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    if !value.is_f64() {
        return;
    }
    if let Some(number) = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= WHOLE_MAX) {
        #[allow(clippy::cast_possible_truncation, reason = "whole and below 2^53, as was just checked")]
        let whole = number as i64;
        *value = whole.into();
    }
}

fn wrong_type(value: &Value, place: &Place<'_>, wanted: &str) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    match place {
        Place::Top => format!("{wanted} is expected, not {found}"),
        _ => format!("`{place}` must be {wanted}, not {found}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note() -> Schema {
        object()
            .required("name", text().chars(1, 3).about("what it is called"))
            .optional("limit", whole().between(1, 10))
            .optional("kind", one_of(["a", "b"]))
            .optional("tags", list(text()).items(0, 2))
    }

    #[track_caller]
    fn check(value: Value, expected: Result<Value, &str>) {
        let mut found = value;
        let result = note().check(&mut found).map(|()| found);
        assert_eq!(result, expected.map_err(str::to_owned));
    }

    #[test]
    fn an_object_says_what_it_takes() {
        let schema = object().required("name", text().chars(1, 3).about("what it is called"));
        let expected = json!({
            "type": "object",
            "properties": { "name": {
                "type": "string", "minLength": 1, "maxLength": 3, "description": "what it is called"
            } },
            "required": ["name"],
            "additionalProperties": false
        });
        assert_eq!(*schema, expected);
    }

    #[test]
    fn what_fits_is_taken_and_brought_into_form() {
        check(json!({ "name": "äöü" }), Ok(json!({ "name": "äöü" })));
        check(json!({ "name": "a", "limit": 10.0, "kind": null }), Ok(json!({ "name": "a", "limit": 10 })));
        check(json!({ "name": "a", "tags": ["x", "y"] }), Ok(json!({ "name": "a", "tags": ["x", "y"] })));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        check(json!([]), Err("an object is expected, not a list"));
        check(json!({}), Err("`name` is missing"));
        check(json!({ "name": null }), Err("`name` must be a text, not null"));
        check(json!({ "name": "" }), Err("`name` must have 1 to 3 characters"));
        check(json!({ "name": "abcd" }), Err("`name` must have 1 to 3 characters"));
        check(json!({ "name": "a", "limit": 0 }), Err("`limit` must be at least 1"));
        check(json!({ "name": "a", "limit": 11 }), Err("`limit` must be at most 10"));
        check(json!({ "name": "a", "limit": 1.5 }), Err("`limit` must be a whole number"));
        check(json!({ "name": "a", "limit": "1" }), Err("`limit` must be a whole number, not a text"));
        check(json!({ "name": "a", "kind": "c" }), Err("`kind` must be one of \"a\", \"b\""));
        check(json!({ "name": "a", "tags": ["x", 1] }), Err("`tags[1]` must be a text, not a number"));
        check(json!({ "name": "a", "tags": ["x", "y", "z"] }), Err("`tags` must have 0 to 2 items"));
        let unknown = "`nmae` is not known here; known: `name`, `limit`, `kind`, `tags`";
        check(json!({ "name": "a", "nmae": 1 }), Err(unknown));
    }
}
