//! The arguments of a call, in a form that every reader reads the same way.
//!
//! A repeated name is refused, since one parser uses the first and another the last; so is JSON that is no object.

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Arguments by their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments(pub Map<String, Value>);

/// The reason why arguments cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the arguments cannot be approved of: {0}; send one JSON object with each name once")]
pub struct NotArguments(String);

impl Arguments {
    /// Reads arguments. An empty text is an empty object, as for [`longhaul_core::tool::ToolCall::read`].
    ///
    /// # Errors
    /// [`NotArguments`] with the reason.
    pub fn read(json: &str) -> Result<Self, NotArguments> {
        if json.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut reader = serde_json::Deserializer::from_str(json);
        let value = Once.deserialize(&mut reader).map_err(|error| NotArguments(error.to_string()))?;
        reader.end().map_err(|error| NotArguments(error.to_string()))?;
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(NotArguments("they are no object".to_owned())),
        }
    }

    /// The argument of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }
}

/// Any JSON without repeated names.
struct Once;

impl<'de> DeserializeSeed<'de> for Once {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Once {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let value = fields.next_value_seed(Self)?;
            if object.contains_key(&name) {
                return Err(de::Error::custom(format!("`{}` stands twice", crate::visible(&name))));
            }
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_two_readers_could_read_differently_are_refused() {
        for (json, expected) in [
            (r#"{"path":"a","path":"b"}"#, "`path` stands twice"),
            (r#"{"path":"a","p\u0061th":"b"}"#, "`path` stands twice"),
            (r#"{"a":[{"b":1,"b":2}]}"#, "`b` stands twice"),
            (r#"{"a":1} {"b":2}"#, "trailing characters"),
            (r#"["ls"]"#, "they are no object"),
            ("ls", "expected"),
        ] {
            let error = Arguments::read(json).expect_err(json).to_string();
            assert!(error.contains(expected), "{json}: {error}");
        }
        assert_eq!(Arguments::read(" ").expect("none"), Arguments::default());
        let read = Arguments::read(r#"{"a":{"b":[1,-2,1.5,"x",null,true]}}"#).expect("fine");
        assert_eq!(read.get("a"), Some(&serde_json::json!({ "b": [1, -2, 1.5, "x", null, true] })));
    }
}
