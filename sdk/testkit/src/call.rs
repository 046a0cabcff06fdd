//! Calls of a plugin: a case for each export, and its form as JSON.
//!
//! The JSON has the records of the contract with `snake_case` names. Unknown fields are errors, missing
//! ones have defaults. Where the contract has JSON in a text, the value itself is written.

use crate::error::KitError;
use longhaul_core::memory::MemoryEntry;
use longhaul_core::tool::ToolCall;
use longhaul_core::work::{
    CheckSpec, Criterion, FeatureSpec, Goal, Issue, OnFailure, Outcome, Plan, PlanStep, Rubric, StepResult, Subject,
    Task,
};
use longhaul_engine::Role;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A call of an export.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Asks a tool for its description.
    Describe,
    /// Asks a tool for the facts by which `verify` can recognise the effect of a call.
    Prepare {
        /// The function and its arguments.
        call: ToolCall,
        /// The idempotency key of the call: the same for every attempt of it.
        idempotency_key: String,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// Asks a tool whether a call had its effect.
    Verify {
        /// The function and its arguments.
        call: ToolCall,
        /// The result of `prepare`, as JSON text.
        prepared: String,
        /// The idempotency key of the call: the same for every attempt of it.
        idempotency_key: String,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// Calls a function of a tool.
    Tool {
        /// The function and its arguments.
        call: ToolCall,
        /// The idempotency key of the call: the same for every attempt of it.
        idempotency_key: String,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// Asks a planner for a plan.
    Plan(Goal),
    /// Asks a planner for another plan.
    Replan(Goal, Plan, Vec<StepResult>),
    /// Asks a planner for the answer to a goal.
    Synthesize(Goal, Vec<StepResult>),
    /// Gives an agent a task.
    Run(Task),
    /// Asks an evaluator for a verdict.
    Judge(Subject, Rubric),
    /// Asks a memory backend to keep an entry of a namespace.
    Put(String, MemoryEntry),
    /// Gets the entry of a namespace and a key.
    Get(String, String),
    /// Searches a namespace for a query, for at most this number of entries.
    Search(String, String, u32),
    /// Deletes the entry of a namespace and a key.
    Delete(String, String),
    /// Lists the keys of a namespace.
    List {
        /// The namespace of the keys.
        namespace: String,
        /// The beginning of the listed keys.
        prefix: String,
        /// The cursor of the page before. None: the first page.
        cursor: Option<String>,
        /// The most keys of the page.
        limit: u32,
    },
}

/// Every export, with the role that has it.
pub const EXPORTS: [(&str, Role); 14] = [
    ("describe", Role::Tool),
    ("call", Role::Tool),
    ("prepare", Role::Tool),
    ("verify", Role::Tool),
    ("plan", Role::Planner),
    ("replan", Role::Planner),
    ("synthesize", Role::Planner),
    ("run", Role::Agent),
    ("judge", Role::Evaluator),
    ("put", Role::Memory),
    ("get", Role::Memory),
    ("search", Role::Memory),
    ("delete", Role::Memory),
    ("list", Role::Memory),
];

/// The exports of a role.
#[must_use]
pub fn exports_of(role: Role) -> Vec<&'static str> {
    EXPORTS.into_iter().filter(|(_, of)| *of == role).map(|(export, _)| export).collect()
}

impl Call {
    /// A call of a tool's function, with a key of its own.
    #[must_use]
    pub fn tool(function: &str, arguments: &Value) -> Self {
        Self::tool_text(function, &arguments.to_string())
    }

    /// The same with arguments as they are, which need not be JSON.
    #[must_use]
    pub fn tool_text(function: &str, arguments: &str) -> Self {
        let call = ToolCall { tool: String::new(), function: function.to_owned(), arguments: arguments.to_owned() };
        Self::Tool { call, idempotency_key: KEY.to_owned(), attempt: 1 }
    }

    /// The preparation of a call, with the key of [`Call::tool`].
    #[must_use]
    pub fn prepare(call: ToolCall) -> Self {
        Self::Prepare { call, idempotency_key: KEY.to_owned(), attempt: 1 }
    }

    /// The question whether a call had its effect, with the key of [`Call::tool`]; `prepared` is the result of
    /// `prepare`.
    #[must_use]
    pub fn verify(call: ToolCall, prepared: String) -> Self {
        Self::Verify { call, prepared, idempotency_key: KEY.to_owned(), attempt: 1 }
    }

    /// A task of an instruction alone.
    #[must_use]
    pub fn run(instruction: &str) -> Self {
        Self::Run(TaskInput { instruction: instruction.to_owned(), ..TaskInput::default() }.into())
    }

    /// A goal of a text alone.
    #[must_use]
    pub fn plan(text: &str) -> Self {
        Self::Plan(GoalInput { text: text.to_owned(), ..GoalInput::default() }.into())
    }

    /// Reads the input of an export, for example `{"function": "count", "arguments": {"text": "a b"}}` for `call`.
    ///
    /// # Errors
    /// [`KitError::Input`]: no such export, a misspelt field, or a value of another type.
    pub fn from_json(export: &str, input: Value) -> Result<Self, KitError> {
        let wrong = |reason: String| KitError::Input { export: export.to_owned(), reason };
        let input = if input.is_null() { json!({}) } else { input };
        Self::read(export, input).map_err(|error| wrong(error.to_string()))?.ok_or_else(|| {
            let known: Vec<_> = EXPORTS.iter().map(|(name, _)| *name).collect();
            wrong(format!("there is no such export; there are {}", known.join(", ")))
        })
    }

    fn read(export: &str, input: Value) -> Result<Option<Self>, serde_json::Error> {
        Ok(Some(match export {
            "describe" => {
                of::<NothingInput>(input)?;
                Self::Describe
            }
            "call" => of::<ToolInput>(input)?.call(),
            "prepare" => {
                let input = of::<ToolInput>(input)?;
                let (idempotency_key, attempt) = (input.idempotency_key.clone(), input.attempt);
                Self::Prepare { call: input.tool_call(), idempotency_key, attempt }
            }
            "verify" => {
                let input = of::<ToolInput>(input)?;
                let (idempotency_key, attempt) = (input.idempotency_key.clone(), input.attempt);
                let prepared = input.prepared.to_string();
                Self::Verify { call: input.tool_call(), prepared, idempotency_key, attempt }
            }
            "plan" => Self::Plan(of::<GoalInput>(input)?.into()),
            "replan" => {
                let input = of::<ReplanInput>(input)?;
                Self::Replan(input.goal.into(), input.plan.into(), results(input.results))
            }
            "synthesize" => {
                let input = of::<SynthesizeInput>(input)?;
                Self::Synthesize(input.goal.into(), results(input.results))
            }
            "run" => Self::Run(of::<TaskInput>(input)?.into()),
            "judge" => {
                let input = of::<JudgeInput>(input)?;
                Self::Judge(input.subject.into(), input.rubric.into())
            }
            "put" => {
                let input = of::<PutInput>(input)?;
                Self::Put(input.namespace, input.entry.into())
            }
            "get" => {
                let input = of::<KeyInput>(input)?;
                Self::Get(input.namespace, input.key)
            }
            "delete" => {
                let input = of::<KeyInput>(input)?;
                Self::Delete(input.namespace, input.key)
            }
            "search" => {
                let input = of::<SearchInput>(input)?;
                Self::Search(input.namespace, input.query, input.limit)
            }
            "list" => {
                let ListInput { namespace, prefix, cursor, limit } = of(input)?;
                Self::List { namespace, prefix, cursor, limit }
            }
            _ => return Ok(None),
        }))
    }

    /// The name of the export.
    #[must_use]
    pub fn export(&self) -> &'static str {
        match self {
            Self::Describe => "describe",
            Self::Prepare { .. } => "prepare",
            Self::Verify { .. } => "verify",
            Self::Tool { .. } => "call",
            Self::Plan(_) => "plan",
            Self::Replan(..) => "replan",
            Self::Synthesize(..) => "synthesize",
            Self::Run(_) => "run",
            Self::Judge(..) => "judge",
            Self::Put(..) => "put",
            Self::Get(..) => "get",
            Self::Search(..) => "search",
            Self::Delete(..) => "delete",
            Self::List { .. } => "list",
        }
    }

    /// The same call, with these settings where it has none of its own.
    #[must_use]
    pub(crate) fn with_settings(mut self, settings: &Value) -> Self {
        let own = match &mut self {
            Self::Plan(goal) | Self::Replan(goal, ..) | Self::Synthesize(goal, _) => &mut goal.settings,
            Self::Run(task) => &mut task.settings,
            Self::Judge(_, rubric) => &mut rubric.settings,
            _ => return self,
        };
        if own.as_object().is_none_or(serde_json::Map::is_empty) {
            own.clone_from(settings);
        }
        self
    }
}

/// Idempotency key of a tool's call that names none.
const KEY: &str = "testkit-1";

/// Most entries of a list or a search that names no limit.
const LIMIT: u32 = 100;

fn of<T: DeserializeOwned>(input: Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(input)
}

fn object() -> Value {
    json!({})
}

fn one() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NothingInput {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolInput {
    function: String,
    #[serde(default = "object")]
    arguments: Value,
    /// The arguments as they are, which need not be JSON.
    arguments_text: Option<String>,
    #[serde(default = "key")]
    idempotency_key: String,
    #[serde(default = "one")]
    attempt: u32,
    #[serde(default = "object")]
    prepared: Value,
}

fn key() -> String {
    KEY.to_owned()
}

impl ToolInput {
    fn tool_call(self) -> ToolCall {
        let arguments = self.arguments_text.unwrap_or_else(|| self.arguments.to_string());
        ToolCall { tool: String::new(), function: self.function, arguments }
    }

    fn call(self) -> Call {
        let (idempotency_key, attempt) = (self.idempotency_key.clone(), self.attempt);
        Call::Tool { call: self.tool_call(), idempotency_key, attempt }
    }
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct GoalInput {
    text: String,
    context: Value,
    settings: Value,
    criteria: Vec<CriterionInput>,
}

impl Default for GoalInput {
    fn default() -> Self {
        Self { text: String::new(), context: object(), settings: object(), criteria: Vec::new() }
    }
}

impl From<GoalInput> for Goal {
    fn from(input: GoalInput) -> Self {
        let GoalInput { text, context, settings, criteria } = input;
        Self { text, context, settings, criteria: each(criteria) }
    }
}

fn each<A, B: From<A>>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(B::from).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CriterionInput {
    id: String,
    #[serde(default)]
    text: String,
    check: Option<String>,
}

impl From<CriterionInput> for Criterion {
    fn from(CriterionInput { id, text, check }: CriterionInput) -> Self {
        Self { id, text, check }
    }
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TaskInput {
    id: String,
    instruction: String,
    context: Value,
    settings: Value,
    criteria: Vec<CriterionInput>,
    feedback: Vec<Issue>,
    round: u32,
}

impl Default for TaskInput {
    fn default() -> Self {
        Self {
            id: "task".to_owned(),
            instruction: String::new(),
            context: object(),
            settings: object(),
            criteria: Vec::new(),
            feedback: Vec::new(),
            round: 1,
        }
    }
}

impl From<TaskInput> for Task {
    fn from(input: TaskInput) -> Self {
        let TaskInput { id, instruction, context, settings, criteria, feedback, round } = input;
        Self { id, instruction, context, settings, criteria: each(criteria), feedback, attempt: round }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgeInput {
    #[serde(default)]
    subject: SubjectInput,
    #[serde(default)]
    rubric: RubricInput,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SubjectInput {
    instruction: String,
    output: Value,
    /// The output as it is, whose JSON has a layout of its own.
    output_text: Option<String>,
    evidence: Vec<EvidenceInput>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EvidenceInput {
    name: String,
    content: String,
}

impl From<SubjectInput> for Subject {
    fn from(input: SubjectInput) -> Self {
        let evidence = input.evidence.into_iter().map(|one| (one.name, one.content)).collect();
        let output = input.output_text.unwrap_or_else(|| input.output.to_string());
        Self { instruction: input.instruction, output, evidence }
    }
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RubricInput {
    criteria: Vec<CriterionInput>,
    settings: Value,
}

impl Default for RubricInput {
    fn default() -> Self {
        Self { criteria: Vec::new(), settings: object() }
    }
}

impl From<RubricInput> for Rubric {
    fn from(input: RubricInput) -> Self {
        Self { criteria: each(input.criteria), settings: input.settings }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplanInput {
    #[serde(default)]
    goal: GoalInput,
    #[serde(default)]
    plan: PlanInput,
    #[serde(default)]
    results: Vec<ResultInput>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SynthesizeInput {
    #[serde(default)]
    goal: GoalInput,
    #[serde(default)]
    results: Vec<ResultInput>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PlanInput {
    steps: Vec<StepInput>,
    notes: String,
}

impl From<PlanInput> for Plan {
    fn from(input: PlanInput) -> Self {
        Self { steps: each(input.steps), notes: input.notes }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepInput {
    id: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    instruction: String,
    #[serde(default = "functional")]
    category: String,
    #[serde(default = "middle")]
    priority: u8,
    agent: Option<String>,
    #[serde(default)]
    criteria: Vec<CriterionInput>,
    #[serde(default)]
    checks: Vec<CheckSpec>,
    #[serde(default)]
    depends_on: Vec<String>,
    #[serde(default = "once")]
    on_failure: OnFailure,
}

fn functional() -> String {
    "functional".to_owned()
}

fn middle() -> u8 {
    5
}

fn once() -> OnFailure {
    OnFailure::Retry(1)
}

impl From<StepInput> for PlanStep {
    fn from(input: StepInput) -> Self {
        let spec = FeatureSpec {
            id: input.id,
            title: input.title,
            instruction: input.instruction,
            category: input.category,
            priority: input.priority,
            agent: input.agent,
            criteria: each(input.criteria),
            checks: input.checks,
            depends_on: input.depends_on,
        };
        Self { spec, on_failure: input.on_failure }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultInput {
    step: String,
    passed: bool,
    outcome: Option<OutcomeInput>,
    #[serde(default)]
    issues: Vec<Issue>,
}

fn results(inputs: Vec<ResultInput>) -> Vec<StepResult> {
    let result = |ResultInput { step, passed, outcome, issues }| {
        let outcome = outcome.map(Outcome::from);
        StepResult { step, passed, outcome, issues }
    };
    inputs.into_iter().map(result).collect()
}

/// The outcome of an agent; a script of a sub-agent has it too.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OutcomeInput {
    output: Value,
    /// The output as it is, whose JSON has a layout of its own.
    output_text: Option<String>,
    summary: String,
    confidence: Option<f64>,
    unknowns: Vec<String>,
}

impl From<OutcomeInput> for Outcome {
    fn from(input: OutcomeInput) -> Self {
        let OutcomeInput { output, output_text, summary, confidence, unknowns } = input;
        let output = output_text.unwrap_or_else(|| output.to_string());
        Self { output, summary, confidence, unknowns }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PutInput {
    #[serde(default)]
    namespace: String,
    entry: EntryInput,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryInput {
    key: String,
    #[serde(default)]
    value: Value,
    /// The value as it is, which need not be JSON.
    value_text: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    expires_at_ms: Option<f64>,
}

impl From<EntryInput> for MemoryEntry {
    fn from(input: EntryInput) -> Self {
        let value = input.value_text.unwrap_or_else(|| input.value.to_string());
        Self { key: input.key, value, tags: input.tags, expires_at_ms: input.expires_at_ms }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyInput {
    #[serde(default)]
    namespace: String,
    key: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchInput {
    #[serde(default)]
    namespace: String,
    query: String,
    #[serde(default = "limit")]
    limit: u32,
}

fn limit() -> u32 {
    LIMIT
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListInput {
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    prefix: String,
    cursor: Option<String>,
    #[serde(default = "limit")]
    limit: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(export: &str, input: Value, expected: &str) {
        let error = Call::from_json(export, input).expect_err(export);
        assert!(error.to_string().contains(expected), "{error}");
    }

    #[test]
    fn a_missing_field_has_a_default_and_a_misspelt_one_is_said() {
        let Ok(Call::Run(task)) = Call::from_json("run", json!({"instruction": "go"})) else { panic!("a task") };
        assert_eq!((task.id.as_str(), task.attempt, task.settings), ("task", 1, json!({})));
        check("run", json!({"instrution": "go"}), "unknown field `instrution`");
        check("call", json!({}), "missing field `function`");
        check("walk", json!({}), "there is no such export; there are describe, call");
    }

    #[test]
    fn arguments_may_be_written_as_they_are() {
        let read = Call::from_json("call", json!({"function": "f", "arguments_text": "{"})).unwrap();
        assert_eq!(read, Call::tool_text("f", "{"));
    }
}
