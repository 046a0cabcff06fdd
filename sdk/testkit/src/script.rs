//! The content of a script: the answers of models, tools, checks and sub-agents.
//!
//! An answer with `when` is given to every request that contains that text; one without is given once,
//! in the order of the script. `times` says otherwise; 0 is any number of times. The first answer that
//! fits and is not used up is taken.

use crate::call::OutcomeInput;
use crate::clock::HandClock;
use crate::error::KitError;
use longhaul_core::grant::HostPattern;
use longhaul_core::graph::GraphError;
use longhaul_core::journal::EffectClass;
use longhaul_core::model::{ModelError, StopReason, Usage};
use longhaul_core::tool::{CheckError, DelegateError, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The answers of a plugin's surroundings. Written as TOML or JSON, or made by its methods.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Time of the clock, in milliseconds since 1970-01-01 UTC. Default: the start of 2026.
    pub clock_ms: u64,
    /// Seed of a pure plugin's randomness. Default 1.
    pub seed: u32,
    /// The names under which the model can be asked; the first is the default. Default `default`.
    pub model_names: Vec<String>,
    /// The window of the model, in tokens. Default 1 000 000: no test is to run into it by chance.
    pub context_tokens_max: u32,
    pub(crate) models: Vec<ModelAnswer>,
    pub(crate) tools: Vec<ScriptedTool>,
    pub(crate) checks: Vec<ScriptedCheck>,
    pub(crate) agents: Vec<AgentAnswer>,
    pub(crate) http: Vec<HttpAnswer>,
    pub(crate) graphs: Vec<GraphAnswer>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            clock_ms: HandClock::START_MS,
            seed: 1,
            model_names: vec!["default".to_owned()],
            context_tokens_max: 1_000_000,
            models: Vec::new(),
            tools: Vec::new(),
            checks: Vec::new(),
            agents: Vec::new(),
            http: Vec::new(),
            graphs: Vec::new(),
        }
    }
}

impl Script {
    /// A script without answers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The model's next answer: a text, or JSON.
    #[must_use]
    pub fn model(mut self, answer: impl Into<Value>) -> Self {
        self.models.push(ModelAnswer::of(answer.into()));
        self
    }

    /// The model's answer to each request that contains `when`.
    #[must_use]
    pub fn model_when(mut self, when: &str, answer: impl Into<Value>) -> Self {
        self.models.push(ModelAnswer { when: Some(when.to_owned()), ..ModelAnswer::of(answer.into()) });
        self
    }

    /// An error of the model in place of its next answer.
    #[must_use]
    pub fn model_error(mut self, error: ModelError) -> Self {
        self.models.push(ModelAnswer { error: Some(error), ..ModelAnswer::default() });
        self
    }

    /// A model that never answers: what a cancel and a limit on time are tried with.
    #[must_use]
    pub fn silent_model(mut self) -> Self {
        self.models.push(ModelAnswer { silent: true, times: Some(0), ..ModelAnswer::default() });
        self
    }

    /// A function of a tool that answers every call with `output`.
    #[must_use]
    pub fn tool(self, tool: &str, function: &str, output: Value) -> Self {
        let answer = ToolAnswer { output, times: Some(0), ..ToolAnswer::default() };
        self.tool_answers(tool, function, vec![answer])
    }

    /// A function of a tool that refuses every call.
    #[must_use]
    pub fn tool_error(self, tool: &str, function: &str, error: ToolError) -> Self {
        let answer = ToolAnswer { error: Some(error), times: Some(0), ..ToolAnswer::default() };
        self.tool_answers(tool, function, vec![answer])
    }

    /// A pinned check that passes or fails.
    #[must_use]
    pub fn check(mut self, name: &str, passed: bool) -> Self {
        self.checks.push(ScriptedCheck { name: name.to_owned(), passed, ..ScriptedCheck::default() });
        self
    }

    /// A sub-agent that hands back `output` for every task.
    #[must_use]
    pub fn agent(mut self, agent: &str, output: Value) -> Self {
        let outcome = serde_json::from_value(json!({ "output": output })).unwrap_or_default();
        self.agents.push(AgentAnswer { agent: agent.to_owned(), when: None, times: Some(0), outcome, error: None });
        self
    }

    /// The answer to every call of `function` of the interface `graph`, such as `run`. Without one, a step that is
    /// added or changed is stale, and one that is removed is gone.
    #[must_use]
    pub fn graph(mut self, function: &str, answer: Value) -> Self {
        let function = function.to_owned();
        self.graphs.push(GraphAnswer { function, answer, times: Some(0), ..GraphAnswer::default() });
        self
    }

    /// The answer to every HTTP request whose address starts with `url`: a text, or JSON. A plugin that acts may reach
    /// the hosts of such addresses, and no other one is reached in earnest.
    #[must_use]
    pub fn http(mut self, url: &str, status: u16, answer: impl Into<Value>) -> Self {
        let (text, json) = match answer.into() {
            Value::String(text) => (Some(text), None),
            json => (None, Some(json)),
        };
        self.http.push(HttpAnswer { url: url.to_owned(), status, text, json, times: Some(0), ..HttpAnswer::default() });
        self
    }

    /// The hosts of the addresses that are answered.
    pub(crate) fn http_hosts(&self) -> impl Iterator<Item = HostPattern> {
        self.http.iter().filter_map(|answer| {
            let (scheme, rest) = answer.url.split_once("://")?;
            let authority = rest.split(['/', '?', '#']).next()?;
            HostPattern::try_from(format!("{scheme}://{authority}")).ok()
        })
    }

    /// Reads a script from a `.json` file, or from any other as TOML.
    ///
    /// # Errors
    /// [`KitError::File`].
    pub fn read(path: &Path) -> Result<Self, KitError> {
        let failed = |reason: String| KitError::File { path: path.to_owned(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        if path.extension().is_some_and(|extension| extension == "json") {
            serde_json::from_str(&text).map_err(|error| failed(error.to_string()))
        } else {
            toml::from_str(&text).map_err(|error| failed(error.to_string()))
        }
    }

    fn tool_answers(mut self, tool: &str, function: &str, answers: Vec<ToolAnswer>) -> Self {
        let function = ScriptedFunction { name: function.to_owned(), answers, ..ScriptedFunction::default() };
        match self.tools.iter_mut().find(|known| known.id == tool) {
            Some(known) => known.functions.push(function),
            None => self.tools.push(ScriptedTool {
                id: tool.to_owned(),
                description: String::new(),
                functions: vec![function],
            }),
        }
        self
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelAnswer {
    pub when: Option<String>,
    pub times: Option<u32>,
    /// The reply as it is.
    pub text: Option<String>,
    /// The reply as a JSON value, in place of a text.
    pub json: Option<Value>,
    pub calls: Vec<ScriptedCall>,
    pub reason: Option<StopReason>,
    pub usage: Option<ScriptedUsage>,
    pub error: Option<ModelError>,
    /// True when the answer never comes.
    pub silent: bool,
}

impl ModelAnswer {
    fn of(answer: Value) -> Self {
        match answer {
            Value::String(text) => Self { text: Some(text), ..Self::default() },
            other => Self { json: Some(other), ..Self::default() },
        }
    }
}

/// A tool that the model asks for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptedCall {
    pub tool: String,
    pub function: String,
    #[serde(default)]
    pub arguments: Value,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ScriptedUsage {
    input_tokens: u32,
    cached_tokens: u32,
    cache_written_tokens: u32,
    output_tokens: u32,
    reasoning_tokens: u32,
    cost_microdollars: f64,
    /// True when the price is unknown, as it is of a model that the operator gives no price.
    cost_unknown: bool,
}

impl From<ScriptedUsage> for Usage {
    fn from(usage: ScriptedUsage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            cached_tokens: usage.cached_tokens,
            cache_written_tokens: usage.cache_written_tokens,
            output_tokens: usage.output_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            cost_microdollars: usage.cost_microdollars,
            cost_unknown: usage.cost_unknown,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptedTool {
    pub id: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub functions: Vec<ScriptedFunction>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ScriptedFunction {
    pub name: String,
    pub description: String,
    pub parameters: Value,
    pub effect: EffectClass,
    pub answers: Vec<ToolAnswer>,
}

impl Default for ScriptedFunction {
    fn default() -> Self {
        Self {
            name: String::new(),
            description: String::new(),
            parameters: json!({ "type": "object" }),
            effect: EffectClass::ReadOnly,
            answers: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolAnswer {
    pub when: Option<String>,
    pub times: Option<u32>,
    pub output: Value,
    pub truncated: bool,
    pub error: Option<ToolError>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ScriptedCheck {
    pub name: String,
    pub description: String,
    pub vacuous: bool,
    pub passed: bool,
    pub exit_code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub error: Option<CheckError>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentAnswer {
    pub agent: String,
    #[serde(default)]
    pub when: Option<String>,
    #[serde(default)]
    pub times: Option<u32>,
    #[serde(default)]
    pub outcome: OutcomeInput,
    #[serde(default)]
    pub error: Option<DelegateError>,
}

/// An answer of a graph.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GraphAnswer {
    /// Name of the function in the contract, such as `add-step`.
    pub function: String,
    /// Part of what is asked, as JSON.
    pub when: Option<String>,
    pub times: Option<u32>,
    /// The answer as the contract has it, with `_` in names; a field that is left out is empty.
    pub answer: Value,
    pub error: Option<GraphError>,
}

/// An answer over HTTP.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HttpAnswer {
    /// Beginning of the address.
    pub url: String,
    /// The method; none: any.
    pub method: Option<String>,
    /// Part of the body.
    pub when: Option<String>,
    pub times: Option<u32>,
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub text: Option<String>,
    pub json: Option<Value>,
}

impl Default for HttpAnswer {
    fn default() -> Self {
        Self {
            url: String::new(),
            method: None,
            when: None,
            times: None,
            status: 200,
            headers: BTreeMap::new(),
            text: None,
            json: None,
        }
    }
}

/// An answer that is given to some requests, some times.
pub(crate) trait Answer {
    /// The text that a request must contain, and the number of times that this answer is given.
    fn terms(&self) -> (Option<&str>, Option<u32>);

    /// True when a request gets it that was given `given` times before.
    fn fits(&self, request: &str, given: u32) -> bool {
        let (when, times) = self.terms();
        let times = times.unwrap_or(u32::from(when.is_none()));
        (times == 0 || given < times) && when.is_none_or(|when| request.contains(when))
    }
}

impl Answer for ModelAnswer {
    fn terms(&self) -> (Option<&str>, Option<u32>) {
        (self.when.as_deref(), self.times)
    }
}

impl Answer for ToolAnswer {
    fn terms(&self) -> (Option<&str>, Option<u32>) {
        (self.when.as_deref(), self.times)
    }
}

impl HttpAnswer {
    pub(crate) fn is_for(&self, method: &str, url: &str) -> bool {
        url.starts_with(&self.url) && self.method.as_deref().is_none_or(|wanted| wanted == method)
    }
}

impl Answer for HttpAnswer {
    fn terms(&self) -> (Option<&str>, Option<u32>) {
        (self.when.as_deref(), self.times)
    }
}

impl Answer for GraphAnswer {
    fn terms(&self) -> (Option<&str>, Option<u32>) {
        (self.when.as_deref(), self.times)
    }
}

impl Answer for AgentAnswer {
    fn terms(&self) -> (Option<&str>, Option<u32>) {
        (self.when.as_deref(), self.times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_given_once_or_whenever_it_is_asked_for() {
        let plain = ModelAnswer::of(json!("a"));
        let when = ModelAnswer { when: Some("sum".into()), ..ModelAnswer::of(json!("b")) };
        let twice = ModelAnswer { times: Some(2), ..plain.clone() };
        let given = |answer: &ModelAnswer, request| (0..4).take_while(|times| answer.fits(request, *times)).count();
        assert_eq!(
            [given(&plain, "a sum"), given(&when, "a sum"), given(&when, "no"), given(&twice, "")],
            [1, 4, 0, 2]
        );
    }

    #[test]
    fn a_misspelt_field_of_a_script_is_said() {
        let error = toml::from_str::<Script>("[[models]]\ntxt = \"a\"").unwrap_err();
        assert!(error.to_string().contains("unknown field `txt`"), "{error}");
    }
}
