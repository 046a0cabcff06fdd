//! The functions of a tool: one list that answers both `describe` and `call`, so that the two cannot disagree.
//!
//! Arguments are checked against the schema of the function, and then read into its type. This module keeps no state
//! between calls and has no effect of its own.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::json;
use crate::schema::Schema;
use crate::tool::{CallContext, Verification};
use crate::tools::{EffectClass, Function, ToolError, ToolInfo, ToolResult};

/// The functions of a tool. A plugin makes the list anew for each call of an export, which takes a few microseconds.
pub struct Functions {
    id: String,
    description: String,
    entries: Vec<Entry>,
}

struct Entry {
    name: &'static str,
    description: &'static str,
    schema: Schema,
    effect: EffectClass,
    call: Call,
    doubt: Option<Doubt>,
}

type Call = Box<dyn Fn(Value, &CallContext) -> Result<ToolResult, ToolError>>;

/// The way in which a verifiable function finds out whether its effect happened.
struct Doubt {
    prepare: Prepare,
    verify: Verify,
}

type Prepare = Box<dyn Fn(Value, &CallContext) -> Result<String, ToolError>>;
type Verify = Box<dyn Fn(Value, &str, &CallContext) -> Result<Verification, ToolError>>;

impl Functions {
    /// Returns a tool without functions. `id` is its name for people; the operator may grant it by another one.
    #[must_use]
    pub fn new(id: &str, description: &str) -> Self {
        Self { id: id.to_owned(), description: description.to_owned(), entries: Vec::new() }
    }

    /// Adds a function that changes nothing. The host repeats a call that was cut off.
    ///
    /// `run` gets the arguments as its own type. Its result becomes the output, as JSON; a result whose field
    /// `truncated` is true is marked as cut.
    #[must_use]
    pub fn read_only<A: DeserializeOwned, R: Serialize>(
        self,
        name: &'static str,
        description: &'static str,
        parameters: Schema,
        run: impl Fn(A, &CallContext) -> Result<R, ToolError> + 'static,
    ) -> Self {
        self.with(name, description, parameters, EffectClass::ReadOnly, run)
    }

    /// Adds a function that has its effect once for each `idempotency_key`. The host repeats a call that was cut off.
    #[must_use]
    pub fn idempotent<A: DeserializeOwned, R: Serialize>(
        self,
        name: &'static str,
        description: &'static str,
        parameters: Schema,
        run: impl Fn(A, &CallContext) -> Result<R, ToolError> + 'static,
    ) -> Self {
        self.with(name, description, parameters, EffectClass::Idempotent, run)
    }

    /// Adds a function that changes something outside. The host asks a person about a call that was cut off.
    #[must_use]
    pub fn acts<A: DeserializeOwned, R: Serialize>(
        self,
        name: &'static str,
        description: &'static str,
        parameters: Schema,
        run: impl Fn(A, &CallContext) -> Result<R, ToolError> + 'static,
    ) -> Self {
        self.with(name, description, parameters, EffectClass::Acts, run)
    }

    /// Makes the last function verifiable. Before a call, `prepare` returns the facts by which `verify` can recognise
    /// its effect.
    #[must_use]
    pub fn verified<A: DeserializeOwned, P: Serialize + DeserializeOwned>(
        mut self,
        prepare: impl Fn(A, &CallContext) -> Result<P, ToolError> + 'static,
        verify: impl Fn(A, P, &CallContext) -> Result<Verification, ToolError> + 'static,
    ) -> Self {
        if let Some(entry) = self.entries.last_mut() {
            entry.effect = EffectClass::Verifiable;
            entry.doubt = Some(Doubt {
                prepare: Box::new(move |arguments, context| {
                    Ok(serde_json::to_string(&prepare(typed(arguments)?, context)?)?)
                }),
                verify: Box::new(move |arguments, prepared, context| {
                    verify(typed(arguments)?, json::read("prepared", prepared)?, context)
                }),
            });
        }
        self
    }

    /// The result of [`Tool::describe`](crate::tool::Tool::describe).
    #[must_use]
    pub fn describe(&self) -> ToolInfo {
        let function = |entry: &Entry| Function {
            name: entry.name.to_owned(),
            description: entry.description.to_owned(),
            parameters: entry.schema.to_string(),
            effect: entry.effect,
        };
        ToolInfo {
            id: self.id.clone(),
            description: self.description.clone(),
            functions: self.entries.iter().map(function).collect(),
        }
    }

    /// The result of [`Tool::call`](crate::tool::Tool::call).
    ///
    /// # Errors
    /// `unknown-function`; `invalid-arguments` with the field; the errors of the function.
    pub fn call(&self, function: &str, arguments: &str, context: &CallContext) -> Result<ToolResult, ToolError> {
        let (entry, arguments) = self.find(function, arguments)?;
        (entry.call)(arguments, context)
    }

    /// The result of [`Tool::prepare`](crate::tool::Tool::prepare). It is `{}` for a function that is not verifiable.
    ///
    /// # Errors
    /// The errors of [`Functions::call`].
    pub fn prepare(&self, function: &str, arguments: &str, context: &CallContext) -> Result<String, ToolError> {
        let (entry, arguments) = self.find(function, arguments)?;
        entry.doubt.as_ref().map_or(Ok("{}".to_owned()), |doubt| (doubt.prepare)(arguments, context))
    }

    /// The result of [`Tool::verify`](crate::tool::Tool::verify). It is `unknown` for a function that is not
    /// verifiable, about which the host never asks.
    ///
    /// # Errors
    /// The errors of [`Functions::call`].
    pub fn verify(
        &self,
        function: &str,
        arguments: &str,
        prepared: &str,
        context: &CallContext,
    ) -> Result<Verification, ToolError> {
        let (entry, arguments) = self.find(function, arguments)?;
        let cannot = || Ok(Verification::Unknown(format!("`{function}` keeps no note of whether it happened")));
        entry.doubt.as_ref().map_or_else(cannot, |doubt| (doubt.verify)(arguments, prepared, context))
    }

    fn with<A: DeserializeOwned, R: Serialize>(
        mut self,
        name: &'static str,
        description: &'static str,
        schema: Schema,
        effect: EffectClass,
        run: impl Fn(A, &CallContext) -> Result<R, ToolError> + 'static,
    ) -> Self {
        let call: Call = Box::new(move |arguments, context| answer(&run(typed(arguments)?, context)?));
        self.entries.push(Entry { name, description, schema, effect, call, doubt: None });
        self
    }

    /// The function of this name, and its arguments when they satisfy its schema.
    fn find(&self, function: &str, arguments: &str) -> Result<(&Entry, Value), ToolError> {
        let entry = self.entries.iter().find(|entry| entry.name == function).ok_or_else(|| self.unknown(function))?;
        let mut arguments = json::read("the arguments", arguments)?;
        let checked = entry.schema.check(&mut arguments);
        checked.map_err(|wrong| ToolError::InvalidArguments(format!("the arguments of `{function}`: {wrong}")))?;
        Ok((entry, arguments))
    }

    fn unknown(&self, function: &str) -> ToolError {
        let known: Vec<String> = self.entries.iter().map(|entry| format!("`{}`", entry.name)).collect();
        let function = json::cut(function, 100);
        ToolError::UnknownFunction(format!("`{function}`; the tool `{}` has {}", self.id, known.join(", ")))
    }
}

fn typed<A: DeserializeOwned>(arguments: Value) -> Result<A, ToolError> {
    let wrong = |error: serde_json::Error| ToolError::InvalidArguments(json::cut(&error.to_string(), 500));
    serde_json::from_value(arguments).map_err(wrong)
}

fn answer(answer: &impl Serialize) -> Result<ToolResult, ToolError> {
    let written = serde_json::to_value(answer);
    let output =
        written.map_err(|error| ToolError::Failed(format!("the answer cannot be written as JSON: {error}")))?;
    Ok(ToolResult { truncated: output["truncated"] == true, output: output.to_string() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema;

    #[derive(serde::Deserialize)]
    struct Half {
        of: u32,
    }

    fn functions() -> Functions {
        let parameters = || schema::object().required("of", schema::whole().between(0, 100));
        Functions::new("halves", "Halves numbers.")
            .read_only("half", "Halves.", parameters(), |half: Half, _: &CallContext| {
                Ok(json!({ "half": half.of / 2, "truncated": half.of % 2 == 1 }))
            })
            .acts("halve", "Halves for good.", parameters(), |_: Half, _: &CallContext| Ok(json!({})))
            .verified(
                |half: Half, _: &CallContext| Ok(half.of),
                |half: Half, was: u32, _: &CallContext| match half.of == was {
                    true => Ok(Verification::DidNotHappen),
                    false => Ok(Verification::Unknown("changed".to_owned())),
                },
            )
    }

    fn context() -> CallContext {
        CallContext { idempotency_key: "k".to_owned(), remaining_ms: 1_000, attempt: 1, settings: "{}".to_owned() }
    }

    #[track_caller]
    fn check(function: &str, arguments: &str, expected: Result<(&str, bool), ToolError>) {
        let answer = functions().call(function, arguments, &context());
        let expected = expected.map(|(output, truncated)| ToolResult { output: output.to_owned(), truncated });
        assert_eq!(answer, expected);
    }

    fn invalid(text: &str) -> Result<(&str, bool), ToolError> {
        Err(ToolError::InvalidArguments(text.to_owned()))
    }

    #[test]
    fn a_call_is_what_describe_promises_or_an_error_that_names_the_field() {
        check("half", r#"{"of": 8.0}"#, Ok((r#"{"half":4,"truncated":false}"#, false)));
        check("half", r#"{"of": 9}"#, Ok((r#"{"half":4,"truncated":true}"#, true)));
        check("half", r#"{"of": "9"}"#, invalid("the arguments of `half`: `of` must be a whole number, not a text"));
        check("half", "", invalid("the arguments of `half`: `of` is missing"));
        check("half", "{", invalid("the arguments: EOF while parsing an object at line 1 column 1"));
        let unknown = "`quarter`; the tool `halves` has `half`, `halve`".to_owned();
        check("quarter", "{}", Err(ToolError::UnknownFunction(unknown)));
    }

    #[test]
    fn nested_arguments_are_refused_and_do_not_end_the_instance() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let error = functions().call("half", &deep, &context()).expect_err("refused");
        assert!(matches!(error, ToolError::InvalidArguments(text) if text.contains("recursion limit")));
    }

    #[test]
    fn only_a_verifiable_function_can_tell_whether_it_happened() {
        let effects: Vec<EffectClass> =
            functions().describe().functions.iter().map(|function| function.effect).collect();
        assert_eq!(effects, [EffectClass::ReadOnly, EffectClass::Verifiable]);
        let functions = functions();
        assert_eq!(functions.prepare("half", r#"{"of": 1}"#, &context()), Ok("{}".to_owned()));
        assert_eq!(functions.prepare("halve", r#"{"of": 1}"#, &context()), Ok("1".to_owned()));
        let verified = functions.verify("halve", r#"{"of": 1}"#, "1", &context());
        assert_eq!(verified, Ok(Verification::DidNotHappen));
        assert!(matches!(functions.verify("half", r#"{"of": 1}"#, "{}", &context()), Ok(Verification::Unknown(_))));
    }
}
