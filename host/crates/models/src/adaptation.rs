//! Adaptations of requests to a model after its provider refused one or named a limit: parameters that are left out or
//! renamed, the form of a schema, the window.
//!
//! An adaptation holds for an endpoint and a model, in all runs of this process, and the next process learns it again.
//! A request keeps its digest, so journals and recordings do not see it. Fields that change the meaning of a request
//! (its model, messages and tools) are never left out.

use crate::problem::Problem;
use crate::schema::Dialect;
use longhaul_core::text::truncate;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Repeated requests for one reply after refusals that named what to leave out.
pub(crate) const TRIES_MAX: u32 = 8;

/// Bytes of a provider's text that a note repeats.
const SAID_BYTES_MAX: usize = 200;

/// Fields that define a request.
const NEEDED: [&str; 6] = ["model", "messages", "stream", "tools", "system", "input"];

/// The adaptations of all models.
#[derive(Clone, Debug, Default)]
pub struct Adaptations(Arc<Mutex<HashMap<Key, Adaptation>>>);

/// An endpoint's address, and its own name of a model.
pub(crate) type Key = (String, String);

/// The form of a schema for replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SchemaForm {
    /// As JSON Schema, held to these rules.
    Strict(StrictBy),
    /// As `json_object`, with the schema in the prompt.
    JsonObject,
    /// In the prompt alone.
    Words,
}

/// The rules that a schema has to keep: those of the endpoint, or the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StrictBy {
    /// As far as its address tells.
    Endpoint,
    /// OpenAI's, which most gateways pass on.
    OpenAi,
}

/// The adaptation of one model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Adaptation {
    left_out: BTreeSet<String>,
    renamed: BTreeMap<String, String>,
    schema: SchemaForm,
    output_tokens_max: Option<u32>,
    /// The window that a refusal named.
    window_told: Option<u32>,
    /// The window that the endpoint lists, once it was queried.
    window_listed: Option<Option<u32>>,
}

impl Default for Adaptation {
    fn default() -> Self {
        Self {
            left_out: BTreeSet::new(),
            renamed: BTreeMap::new(),
            schema: SchemaForm::Strict(StrictBy::Endpoint),
            output_tokens_max: None,
            window_told: None,
            window_listed: None,
        }
    }
}

impl Adaptations {
    /// The present adaptation of a model.
    pub(crate) fn of(&self, key: &Key) -> Adaptation {
        self.all().get(key).cloned().unwrap_or_default()
    }

    /// Learns from the refusal of `body`, which was sent by `sent`. Returns a note for people, once for a model; none
    /// if it was known already. [`Self::of`] differs from `sent` when the request is worth repeating.
    pub(crate) fn learn(&self, key: &Key, sent: &Adaptation, problem: &Problem, body: &Value) -> Option<String> {
        let mut all = self.all();
        let known = all.entry(key.clone()).or_default();
        // Another request was refused for the same reason meanwhile.
        if known != sent {
            return None;
        }
        let change = known.adapt(problem, body)?;
        Some(format!("{change} (\"{}\")", truncate(problem.message.trim(), SAID_BYTES_MAX)))
    }

    /// A refusal named the window.
    pub(crate) fn window_told(&self, key: &Key, tokens: u64) {
        let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
        if tokens > 0 {
            let mut all = self.all();
            let told = &mut all.entry(key.clone()).or_default().window_told;
            *told = Some(told.map_or(tokens, |known| known.min(tokens)));
        }
    }

    /// The endpoint lists the window, or does not.
    pub(crate) fn window_listed(&self, key: &Key, tokens: Option<u32>) {
        self.all().entry(key.clone()).or_default().window_listed = Some(tokens);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Key, Adaptation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Adaptation {
    /// The name under which a field is sent; none when it is left out.
    pub(crate) fn name<'a>(&'a self, field: &'a str) -> Option<&'a str> {
        let name = self.renamed.get(field).map_or(field, String::as_str);
        (!self.left_out.contains(name)).then_some(name)
    }

    /// The form of a schema for replies.
    pub(crate) fn schema(&self) -> SchemaForm {
        self.schema
    }

    /// The wanted tokens of a reply, or the provider's maximum.
    pub(crate) fn output_tokens(&self, wanted: u32) -> u32 {
        self.output_tokens_max.map_or(wanted, |max| wanted.min(max))
    }

    /// The window: the operator's setting, else the `known` one of the model.
    pub(crate) fn window(&self, set: Option<u32>, known: Option<u32>, default: u32) -> u32 {
        let window = set.or(known).or(self.window_listed.flatten());
        match (window, self.window_told) {
            (Some(window), Some(told)) => window.min(told),
            (window, told) => told.or(window).unwrap_or(default),
        }
    }

    /// True when the endpoint has yet to be queried for the window.
    pub(crate) fn wants_window(&self) -> bool {
        self.window_told.is_none() && self.window_listed.is_none()
    }

    /// One change that may help, with its note.
    fn adapt(&mut self, problem: &Problem, body: &Value) -> Option<String> {
        let field = refused_field(problem, body)?;
        let said = problem.message.to_lowercase();
        if let Some(other) = other_name(&field, &said) {
            self.renamed.insert(field.clone(), other.to_owned());
            return Some(format!("it takes `{other}` instead of `{field}`"));
        }
        if is_output_tokens(&field)
            && let Some(max) = output_tokens_told(&said)
            && self.output_tokens_max.is_none_or(|known| known > max)
        {
            self.output_tokens_max = Some(max);
            return Some(format!("it writes at most {max} tokens a reply; asked for no more from now on"));
        }
        if matches!(field.as_str(), "response_format" | "output_config") && self.schema < SchemaForm::Words {
            let is_schema = body["response_format"]["type"] == "json_schema";
            self.schema = match self.schema {
                SchemaForm::Strict(StrictBy::Endpoint) if is_schema => SchemaForm::Strict(StrictBy::OpenAi),
                SchemaForm::Strict(StrictBy::OpenAi) if is_schema => SchemaForm::JsonObject,
                SchemaForm::Strict(_) | SchemaForm::JsonObject | SchemaForm::Words => SchemaForm::Words,
            };
            return Some(format!(
                "it does not take the schema of the reply; it is sent {} from now on",
                self.schema.words()
            ));
        }
        self.left_out.insert(field.clone());
        Some(format!("it does not take `{field}`, which is left out from now on"))
    }
}

impl SchemaForm {
    fn words(self) -> &'static str {
        match self {
            Self::Strict(StrictBy::Endpoint) => "as it is",
            Self::Strict(StrictBy::OpenAi) => "by OpenAI's rules",
            Self::JsonObject => "in the prompt, beside `json_object`,",
            Self::Words => "in the prompt",
        }
    }

    /// The rules for a schema at an endpoint with those of `dialect`; none when it is sent in the prompt.
    pub(crate) fn dialect(self, dialect: Dialect) -> Option<Dialect> {
        match self {
            Self::Strict(StrictBy::Endpoint) => Some(dialect),
            Self::Strict(StrictBy::OpenAi) => Some(Dialect::OpenAi),
            Self::JsonObject | Self::Words => None,
        }
    }
}

/// The refused field of the request.
fn refused_field(problem: &Problem, body: &Value) -> Option<String> {
    let fields = body.as_object()?;
    let may_go = |name: &&str| fields.contains_key(*name) && !NEEDED.contains(name);
    // `response_format.json_schema` and `tools[0].function` concern their first part.
    let named = problem.param.as_deref().and_then(|param| param.split(['.', '[']).next());
    let said = problem.message.to_lowercase();
    if named.is_some_and(|name| NEEDED.contains(&name)) {
        return None;
    }
    if let Some(name) = named.filter(may_go) {
        return Some(name.to_owned());
    }
    if said.contains("response_format") || said.contains("json_schema") || said.contains("output_config.format") {
        return ["response_format", "output_config"].iter().find(|name| may_go(name)).map(|name| (*name).to_owned());
    }
    if !REFUSING.iter().any(|words| said.contains(words)) {
        return None;
    }
    // The longest name first: a message about `max_tokens_to_sample` is not one about `max_tokens`.
    let mut names: Vec<&str> = fields.keys().map(String::as_str).filter(|name| may_go(name)).collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    names.into_iter().find(|name| is_named(&said, name)).map(str::to_owned)
}

/// The wording of refusals of a parameter, by providers and their validation libraries.
const REFUSING: [&str; 20] = [
    "unsupported",
    "not supported",
    "does not support",
    "doesn't support",
    "not permitted",
    "not allowed",
    "not accepted",
    "unrecognized",
    "unknown name",
    "unknown field",
    "unknown parameter",
    "unexpected",
    "extra_forbidden",
    "extra inputs",
    "extra fields",
    "deprecated",
    "invalid parameter",
    "cannot both be specified",
    "is too large",
    "maximum allowed",
];

/// True when a text contains a name, and not within a longer one.
fn is_named(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(is_part)
            && !text[at + name.len()..].chars().next().is_some_and(is_part)
    })
}

fn is_output_tokens(field: &str) -> bool {
    matches!(field, "max_tokens" | "max_completion_tokens")
}

/// The name that a provider wants instead.
fn other_name(field: &str, said: &str) -> Option<&'static str> {
    let other = match field {
        "max_tokens" => "max_completion_tokens",
        "max_completion_tokens" => "max_tokens",
        _ => return None,
    };
    (is_named(said, other) && said.contains("instead")).then_some(other)
}

/// The number of `at most 4096 completion tokens`, and of `8000 > 4096, which is the maximum allowed`.
fn output_tokens_told(said: &str) -> Option<u32> {
    let number = |text: &str| text.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    let after = |words: &str| said.split_once(words).and_then(|(_, rest)| number(rest));
    let told = after("at most ").or_else(|| after(" > ")).or_else(|| after("less than or equal to "));
    told.filter(|tokens| *tokens > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::problem;
    use serde_json::json;

    fn body() -> Value {
        json!({
            "model": "m", "messages": [], "stream": true, "stream_options": {}, "max_tokens": 8000, "temperature": 0.5,
            "seed": 1, "tools": [], "response_format": { "type": "json_schema" }, "reasoning_effort": "low",
        })
    }

    /// The adaptation after a refusal of [`body`].
    #[track_caller]
    fn check(refusal: &Value, expected: Option<&str>) -> Adaptation {
        let (all, key) = (Adaptations::default(), ("e".to_owned(), "m".to_owned()));
        let sent = all.of(&key);
        let said = all.learn(&key, &sent, &problem(&refusal.to_string()), &body());
        assert_eq!(said.as_deref().map(|said| said.split(" (\"").next().unwrap()), expected, "{refusal}");
        assert_eq!(all.of(&key) != sent, expected.is_some());
        all.of(&key)
    }

    fn openai(message: &str, param: Option<&str>, code: &str) -> Value {
        json!({ "error": { "message": message, "type": "invalid_request_error", "param": param, "code": code } })
    }

    #[test]
    fn the_parameter_that_a_refusal_names_is_left_out_or_renamed() {
        let gone = |field: &str| format!("it does not take `{field}`, which is left out from now on");
        let text = "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.";
        let adapted = check(&openai(text, Some("temperature"), "unsupported_value"), Some(&gone("temperature")));
        assert_eq!((adapted.name("temperature"), adapted.name("seed")), (None, Some("seed")));
        let text = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        let adapted = check(
            &openai(text, Some("max_tokens"), "unsupported_parameter"),
            Some("it takes `max_completion_tokens` instead of `max_tokens`"),
        );
        assert_eq!(adapted.name("max_tokens"), Some("max_completion_tokens"));
        for (refusal, field) in [
            (openai("Unrecognized request argument supplied: reasoning_effort", None, ""), "reasoning_effort"),
            (json!({ "error": { "message": "property 'seed' is unsupported" } }), "seed"),
            // Mistral, and others that validate with pydantic.
            (
                json!({ "detail": [{ "type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted" }] }),
                "seed",
            ),
            // Gemini.
            (
                json!([{ "error": { "code": 400, "message": "Invalid JSON payload received. Unknown name \"seed\": Cannot find field." } }]),
                "seed",
            ),
            // Anthropic.
            (
                json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "`temperature` is deprecated for this model." } }),
                "temperature",
            ),
        ] {
            check(&refusal, Some(&gone(field)));
        }
    }

    #[test]
    fn a_schema_that_is_refused_is_sent_in_the_next_simpler_form() {
        let (all, key) = (Adaptations::default(), ("e".to_owned(), "m".to_owned()));
        let text = "Invalid schema for response_format 'reply': In context=(), 'maxLength' is not permitted.";
        let refusal = problem(&openai(text, Some("response_format"), "").to_string());
        let forms: Vec<_> = (0..4)
            .map(|_| {
                let sent = all.of(&key);
                let said = all.learn(&key, &sent, &refusal, &body());
                (all.of(&key).schema(), said.is_some())
            })
            .collect();
        let expected = [SchemaForm::Strict(StrictBy::OpenAi), SchemaForm::JsonObject, SchemaForm::Words];
        assert_eq!(forms[..3], expected.map(|form| (form, true)));
        assert_eq!(all.of(&key).name("response_format"), None, "{forms:?}");
    }

    #[test]
    fn a_cap_on_replies_that_is_named_is_kept_to() {
        let text = "max_tokens is too large: 8000. This model supports at most 4096 completion tokens.";
        let adapted = check(
            &openai(text, Some("max_tokens"), "invalid_value"),
            Some("it writes at most 4096 tokens a reply; asked for no more from now on"),
        );
        assert_eq!((adapted.output_tokens(8_000), adapted.output_tokens(10)), (4_096, 10));
        let text = "max_tokens: 8000 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku";
        let adapted = check(
            &json!({ "error": { "message": text } }),
            Some("it writes at most 4096 tokens a reply; asked for no more from now on"),
        );
        assert_eq!(adapted.output_tokens(8_000), 4_096);
    }

    #[test]
    fn what_makes_the_request_is_never_left_out() {
        check(&openai("Invalid value for messages: not supported", Some("messages[0].content"), ""), None);
        check(&openai("Invalid schema for function 'x'", Some("tools[0].function.parameters"), ""), None);
        check(&openai("the model `m` does not exist", None, "model_not_found"), None);
        check(&openai("You have no seed money", None, ""), None);
    }

    #[test]
    fn a_refusal_of_what_was_learned_meanwhile_says_nothing() {
        let (all, key) = (Adaptations::default(), ("e".to_owned(), "m".to_owned()));
        let sent = all.of(&key);
        let refusal = problem(&openai("unsupported", Some("seed"), "").to_string());
        assert!(all.learn(&key, &sent, &refusal, &body()).is_some());
        assert!(all.learn(&key, &sent, &refusal, &body()).is_none());
        assert_ne!(all.of(&key), sent);
        assert_eq!(all.of(&("other".to_owned(), "m".to_owned())), Adaptation::default());
    }

    #[test]
    fn the_window_is_the_operators_or_what_is_known_and_never_more_than_a_refusal_named() {
        let (all, key) = (Adaptations::default(), ("e".to_owned(), "m".to_owned()));
        assert_eq!(all.of(&key).window(None, None, 128_000), 128_000);
        all.window_listed(&key, Some(32_768));
        assert_eq!(all.of(&key).window(None, None, 128_000), 32_768);
        assert_eq!(all.of(&key).window(Some(9_000), Some(400_000), 128_000), 9_000);
        all.window_told(&key, 8_192);
        assert_eq!(all.of(&key).window(Some(9_000), None, 128_000), 8_192);
        assert_eq!(all.of(&key).window(Some(4_000), None, 128_000), 4_000);
    }
}
