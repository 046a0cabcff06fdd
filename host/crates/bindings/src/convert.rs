//! Between the words of the contract and the words of the host. Nothing is decided here.

use crate::exports::{agent, evaluator, memory, planner, tool};
use crate::imports::{checks, conversation, decisions, delegate};
use crate::{message_types, tool_types, types};
use longhaul_core::decision::DecisionOutcome;
use longhaul_core::journal::EffectClass;
use longhaul_core::memory::{KeyPage, MemoryEntry, MemoryError, MemoryHit};
use longhaul_core::model::{
    Message, MessagePart, MessageRole, ModelError, ModelReply, RequestedCall, StopReason, Usage,
};
use longhaul_core::text::printable;
use longhaul_core::tool::{
    CheckError, CheckInfo, DelegateError, FunctionInfo, ToolCall, ToolError, ToolInfo, ToolOutput, Verification,
};
use longhaul_core::work::{
    CheckBody, CheckReport, CheckSpec, Criterion, FeatureSpec, Goal, Issue, Judgement, Mark, OnFailure, Outcome, Plan,
    PlanStep, RoleError, Rubric, StepResult, Subject, Synthesis, Task, Verdict,
};
use longhaul_core::{Denial, LimitHit, Outage};

/// Records whose fields have the same names on both sides.
macro_rules! same_fields {
    ($($core:ident = $bound:path { $($field:ident),* $(,)? })*) => {$(
        impl From<$core> for $bound {
            fn from(value: $core) -> Self {
                Self { $($field: value.$field),* }
            }
        }
        impl From<$bound> for $core {
            fn from(value: $bound) -> Self {
                Self { $($field: value.$field),* }
            }
        }
    )*};
}

impl From<CheckReport> for checks::CheckReport {
    fn from(value: CheckReport) -> Self {
        let CheckReport { name, passed, exit_code, stdout, stderr, truncated, sandbox, duration_ms } = value;
        // The host's reports have -1 where a limit ended the check.
        let exit_code = (exit_code != -1).then_some(exit_code);
        Self { name, passed, exit_code, stdout, stderr, truncated, duration_ms, sandbox_level: sandbox }
    }
}

/// Enums without content, case by case.
macro_rules! same_cases {
    ($($core:ident = $bound:path { $($case:ident),* $(,)? })*) => {$(
        impl From<$core> for $bound {
            fn from(value: $core) -> Self {
                match value { $($core::$case => Self::$case),* }
            }
        }
        impl From<$bound> for $core {
            fn from(value: $bound) -> Self {
                type Bound = $bound;
                match value { $(Bound::$case => Self::$case),* }
            }
        }
    )*};
}

same_fields! {
    Denial = types::Denial { reason, fix }
    LimitHit = types::LimitHit { name, used, max }
    Outage = types::Outage { reason, retry_after_ms }
    Criterion = types::Criterion { id, text, check }
    Issue = types::Issue { criterion, text }
    Outcome = types::Outcome { output, summary, confidence, unknowns }
    RequestedCall = message_types::ToolCallRequest { id, tool, function, arguments }
    ToolCall = tool_types::ToolCall { tool, function, arguments }
    ToolOutput = tool_types::ToolResult { output, truncated }
    CheckInfo = checks::CheckInfo { name, description, vacuous }
    Synthesis = planner::Synthesis { answer, confidence, conflicts, unknowns }
    MemoryEntry = memory::Entry { key, value, tags, expires_at_ms }
}

same_cases! {
    EffectClass = tool_types::EffectClass { ReadOnly, Idempotent, Verifiable, Acts }
    MessageRole = message_types::Role { User, Assistant, Tool }
    StopReason = conversation::StopReason { End, Length, Tools, Filtered, Other }
    Mark = evaluator::Mark { Pass, Fail, Unknown }
    DecisionOutcome = decisions::DecisionOutcome { Open, Success, Partial, Failure, Reverted }
}

/// A JSON object for later versions of the contract, in which this host has nothing to say.
const NOTHING_MORE: &str = "{}";

fn each<A, B: From<A>>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(B::from).collect()
}

/// JSON that a guest wrote where an object is due; anything else becomes an empty object.
fn object(text: &str) -> serde_json::Value {
    match serde_json::from_str(text) {
        Ok(value @ serde_json::Value::Object(_)) => value,
        _ => serde_json::json!({}),
    }
}

impl From<Usage> for types::Usage {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            cached_tokens: usage.cached_tokens,
            cache_written_tokens: usage.cache_written_tokens,
            output_tokens: usage.output_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            cost_microdollars: usage.cost(),
        }
    }
}

impl From<message_types::Message> for Message {
    fn from(message: message_types::Message) -> Self {
        Self { speaker: message.role.into(), parts: each(message.parts) }
    }
}

impl From<message_types::Part> for MessagePart {
    fn from(part: message_types::Part) -> Self {
        use message_types::Part as Bound;
        match part {
            Bound::Text(text) => Self::Text(text),
            Bound::Image(image) => Self::Image { media_type: image.media_type, data: image.data },
            Bound::ToolCall(call) => Self::Requested(call.into()),
            Bound::ToolResult(result) => Self::Answered { id: result.id, output: result.output, failed: result.failed },
        }
    }
}

impl From<ModelReply> for conversation::Reply {
    fn from(reply: ModelReply) -> Self {
        Self {
            text: reply.text,
            calls: each(reply.calls),
            reason: reply.reason.into(),
            usage: reply.usage.into(),
            extra: NOTHING_MORE.to_owned(),
        }
    }
}

impl From<ModelError> for conversation::ModelError {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Denied(denial) | ModelError::Rejected(denial) => Self::Denied(denial.into()),
            ModelError::Limit(hit) => Self::Limit(hit.into()),
            ModelError::Unavailable(outage) => Self::Unavailable(outage.into()),
            ModelError::ContextFull(hit) => Self::ContextFull(hit.into()),
            ModelError::Refused(text) => Self::Refused(text),
            ModelError::Invalid(text) => Self::Invalid(text),
            ModelError::Failed(text) => Self::Failed(text),
        }
    }
}

impl From<FunctionInfo> for tool_types::Function {
    fn from(function: FunctionInfo) -> Self {
        let FunctionInfo { name, description, parameters, effect, claim: _ } = function;
        Self { name, description, parameters, effect: effect.into() }
    }
}

impl From<tool_types::Function> for FunctionInfo {
    fn from(function: tool_types::Function) -> Self {
        let tool_types::Function { name, description, parameters, effect } = function;
        Self { name, description, parameters, effect: effect.into(), claim: None }
    }
}

impl From<ToolInfo> for tool_types::ToolInfo {
    fn from(info: ToolInfo) -> Self {
        Self { id: info.id, description: info.description, functions: each(info.functions) }
    }
}

impl From<tool_types::ToolInfo> for ToolInfo {
    fn from(info: tool_types::ToolInfo) -> Self {
        Self { id: info.id, description: info.description, functions: each(info.functions) }
    }
}

impl From<ToolError> for tool_types::ToolError {
    fn from(error: ToolError) -> Self {
        match error {
            ToolError::UnknownFunction(name) => Self::UnknownFunction(name),
            ToolError::InvalidArguments(text) => Self::InvalidArguments(text),
            ToolError::Denied(denial) => Self::Denied(denial.into()),
            ToolError::Limit(hit) => Self::Limit(hit.into()),
            ToolError::Unavailable(outage) => Self::Unavailable(outage.into()),
            ToolError::TimedOut(ms) => Self::TimedOut(ms),
            ToolError::OutcomeUnknown(text) => Self::OutcomeUnknown(text),
            ToolError::Failed(text) => Self::Failed(text),
        }
    }
}

impl From<tool_types::ToolError> for ToolError {
    fn from(error: tool_types::ToolError) -> Self {
        use tool_types::ToolError as Bound;
        match error {
            Bound::UnknownFunction(name) => Self::UnknownFunction(name),
            Bound::InvalidArguments(text) => Self::InvalidArguments(text),
            Bound::Denied(denial) => Self::Denied(denial.into()),
            Bound::Limit(hit) => Self::Limit(hit.into()),
            Bound::Unavailable(outage) => Self::Unavailable(outage.into()),
            Bound::TimedOut(ms) => Self::TimedOut(ms),
            Bound::OutcomeUnknown(text) => Self::OutcomeUnknown(text),
            Bound::Failed(text) => Self::Failed(text),
        }
    }
}

impl From<tool::Verification> for Verification {
    fn from(verification: tool::Verification) -> Self {
        match verification {
            tool::Verification::Happened(result) => Self::Happened(result.into()),
            tool::Verification::DidNotHappen => Self::DidNotHappen,
            tool::Verification::Unknown(text) => Self::Unknown(text),
        }
    }
}

impl From<CheckError> for checks::CheckError {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::UnknownCheck(name) => Self::UnknownCheck(name),
            CheckError::Denied(denial) => Self::Denied(denial.into()),
            CheckError::Limit(hit) => Self::Limit(hit.into()),
            CheckError::Unavailable(outage) => Self::Unavailable(outage.into()),
            CheckError::Failed(text) => Self::Failed(text),
        }
    }
}

impl From<DelegateError> for delegate::DelegateError {
    fn from(error: DelegateError) -> Self {
        match error {
            DelegateError::UnknownAgent(name) => Self::UnknownAgent(name),
            DelegateError::Denied(denial) => Self::Denied(denial.into()),
            DelegateError::Limit(hit) => Self::Limit(hit.into()),
            DelegateError::Unavailable(outage) => Self::Unavailable(outage.into()),
            DelegateError::Blocked(text) => Self::Blocked(text),
            DelegateError::Failed(text) => Self::Failed(text),
        }
    }
}

impl From<Task> for types::Task {
    fn from(task: Task) -> Self {
        Self {
            id: task.id,
            instruction: task.instruction,
            context: task.context.to_string(),
            settings: task.settings.to_string(),
            criteria: each(task.criteria),
            feedback: each(task.feedback),
            round: task.attempt,
        }
    }
}

impl From<types::Task> for Task {
    fn from(task: types::Task) -> Self {
        Self {
            id: task.id,
            instruction: task.instruction,
            context: object(&task.context),
            settings: object(&task.settings),
            criteria: each(task.criteria),
            feedback: each(task.feedback),
            attempt: task.round,
        }
    }
}

impl From<Goal> for planner::Goal {
    fn from(goal: Goal) -> Self {
        Self {
            text: goal.text,
            context: goal.context.to_string(),
            settings: goal.settings.to_string(),
            criteria: each(goal.criteria),
        }
    }
}

/// The one language of checks that the host runs.
const PYTHON: &str = "python";

/// Bytes of a language that is not known which its error quotes.
const LANGUAGE_BYTES_MAX: usize = 40;

impl TryFrom<planner::CheckSpec> for CheckSpec {
    type Error = RoleError;

    fn try_from(planner::CheckSpec { name, body }: planner::CheckSpec) -> Result<Self, RoleError> {
        let body = match body {
            planner::CheckBody::Source(source) if source.language == PYTHON => CheckBody::Python(source.text),
            planner::CheckBody::Source(source) => {
                let language = printable(&source.language, LANGUAGE_BYTES_MAX);
                let text = format!("the check `{name}` is in the language `{language}`; this host runs `{PYTHON}`");
                return Err(RoleError::Failed(text));
            }
            planner::CheckBody::Native(name) => CheckBody::Native(name),
        };
        Ok(Self { name, body })
    }
}

impl From<CheckSpec> for planner::CheckSpec {
    fn from(check: CheckSpec) -> Self {
        let body = match check.body {
            CheckBody::Python(text) => {
                planner::CheckBody::Source(planner::CheckSource { language: PYTHON.to_owned(), text })
            }
            CheckBody::Native(name) => planner::CheckBody::Native(name),
        };
        Self { name: check.name, body }
    }
}

impl From<planner::OnFailure> for OnFailure {
    fn from(wanted: planner::OnFailure) -> Self {
        match wanted {
            planner::OnFailure::Retry(times) => Self::Retry(times),
            planner::OnFailure::Skip => Self::Skip,
            planner::OnFailure::Replan => Self::Replan,
            planner::OnFailure::Abort => Self::Abort,
        }
    }
}

impl From<OnFailure> for planner::OnFailure {
    fn from(wanted: OnFailure) -> Self {
        match wanted {
            OnFailure::Retry(times) => Self::Retry(times),
            OnFailure::Skip => Self::Skip,
            OnFailure::Replan => Self::Replan,
            OnFailure::Abort => Self::Abort,
        }
    }
}

impl TryFrom<planner::PlanStep> for PlanStep {
    type Error = RoleError;

    fn try_from(step: planner::PlanStep) -> Result<Self, RoleError> {
        let spec = FeatureSpec {
            id: step.id,
            title: step.title,
            instruction: step.instruction,
            category: step.category,
            // Guest-controlled; the harness takes 1 to 10.
            priority: u8::try_from(step.priority).unwrap_or(u8::MAX),
            agent: step.agent,
            criteria: each(step.criteria),
            checks: step.checks.into_iter().map(CheckSpec::try_from).collect::<Result<_, _>>()?,
            depends_on: step.depends_on,
        };
        Ok(Self { spec, on_failure: step.on_failure.into() })
    }
}

impl From<PlanStep> for planner::PlanStep {
    fn from(PlanStep { spec, on_failure }: PlanStep) -> Self {
        Self {
            id: spec.id,
            title: spec.title,
            instruction: spec.instruction,
            category: spec.category,
            priority: spec.priority.into(),
            agent: spec.agent,
            criteria: each(spec.criteria),
            checks: each(spec.checks),
            depends_on: spec.depends_on,
            on_failure: on_failure.into(),
        }
    }
}

impl TryFrom<planner::WorkPlan> for Plan {
    type Error = RoleError;

    fn try_from(plan: planner::WorkPlan) -> Result<Self, RoleError> {
        let steps = plan.steps.into_iter().map(PlanStep::try_from).collect::<Result<_, _>>()?;
        Ok(Self { steps, notes: plan.notes })
    }
}

impl From<Plan> for planner::WorkPlan {
    fn from(plan: Plan) -> Self {
        Self { steps: each(plan.steps), notes: plan.notes }
    }
}

impl From<StepResult> for planner::PlanStepResult {
    fn from(result: StepResult) -> Self {
        let StepResult { step, passed, outcome, issues } = result;
        Self { step, passed, outcome: outcome.map(types::Outcome::from), issues: each(issues) }
    }
}

impl From<memory::Page> for KeyPage {
    fn from(page: memory::Page) -> Self {
        Self { keys: page.keys, next: page.cursor }
    }
}

impl From<memory::Hit> for MemoryHit {
    fn from(hit: memory::Hit) -> Self {
        Self { entry: hit.entry.into(), score: hit.score }
    }
}

impl From<memory::MemoryError> for MemoryError {
    fn from(error: memory::MemoryError) -> Self {
        match error {
            memory::MemoryError::Denied(denial) => Self::Denied(denial.into()),
            memory::MemoryError::Limit(hit) => Self::Limit(hit.into()),
            memory::MemoryError::Unavailable(outage) => Self::Unavailable(outage.into()),
            memory::MemoryError::Invalid(text) => Self::Invalid(text),
            memory::MemoryError::Failed(text) => Self::Failed(text),
        }
    }
}

impl From<Subject> for evaluator::Subject {
    fn from(subject: Subject) -> Self {
        let evidence = |(name, content)| evaluator::Evidence { name, content };
        Self {
            instruction: subject.instruction,
            output: subject.output,
            evidence: subject.evidence.into_iter().map(evidence).collect(),
            context: NOTHING_MORE.to_owned(),
        }
    }
}

impl From<Rubric> for evaluator::Rubric {
    fn from(rubric: Rubric) -> Self {
        Self { criteria: each(rubric.criteria), settings: rubric.settings.to_string() }
    }
}

impl From<evaluator::Verdict> for Verdict {
    fn from(verdict: evaluator::Verdict) -> Self {
        let judgement =
            |one: evaluator::Judgement| Judgement { criterion: one.criterion, mark: one.mark.into(), why: one.reason };
        Self { judgements: verdict.judgements.into_iter().map(judgement).collect(), issues: each(verdict.issues) }
    }
}

impl From<agent::AgentError> for RoleError {
    fn from(error: agent::AgentError) -> Self {
        match error {
            agent::AgentError::Impossible(text) => Self::Impossible(text),
            agent::AgentError::Blocked(question) => Self::Blocked(question),
            agent::AgentError::Denied(denial) => Self::Denied(denial.into()),
            agent::AgentError::Limit(hit) => Self::Limit(hit.into()),
            agent::AgentError::Unavailable(outage) => Self::Unavailable(outage.into()),
            agent::AgentError::Failed(text) => Self::Failed(text),
        }
    }
}

impl From<planner::PlanError> for RoleError {
    fn from(error: planner::PlanError) -> Self {
        match error {
            planner::PlanError::Unclear(question) => Self::Blocked(question),
            planner::PlanError::Denied(denial) => Self::Denied(denial.into()),
            planner::PlanError::Limit(hit) => Self::Limit(hit.into()),
            planner::PlanError::Unavailable(outage) => Self::Unavailable(outage.into()),
            planner::PlanError::Failed(text) => Self::Failed(text),
        }
    }
}

impl From<evaluator::JudgeError> for RoleError {
    fn from(error: evaluator::JudgeError) -> Self {
        match error {
            evaluator::JudgeError::Denied(denial) => Self::Denied(denial.into()),
            evaluator::JudgeError::Limit(hit) => Self::Limit(hit.into()),
            evaluator::JudgeError::Unavailable(outage) => Self::Unavailable(outage.into()),
            evaluator::JudgeError::Failed(text) => Self::Failed(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_in_a_language_that_does_not_run_here_is_refused() {
        let check = |language: &str| planner::CheckSpec {
            name: "c".into(),
            body: planner::CheckBody::Source(planner::CheckSource { language: language.into(), text: "1".into() }),
        };
        let python = CheckSpec { name: "c".into(), body: CheckBody::Python("1".into()) };
        assert_eq!(CheckSpec::try_from(check("python")), Ok(python));
        let text = "the check `c` is in the language `ru\\u001bby`; this host runs `python`";
        assert_eq!(CheckSpec::try_from(check("ru\u{1b}by")), Err(RoleError::Failed(text.into())));
    }

    #[test]
    fn an_unknown_price_is_none_and_not_0() {
        let known = Usage { cost_microdollars: 2.0, reasoning_tokens: 3, cache_written_tokens: 4, ..Usage::default() };
        let bound = types::Usage::from(known);
        let counts = (bound.reasoning_tokens, bound.cache_written_tokens, bound.cost_microdollars);
        assert_eq!(counts, (3, 4, Some(2.0)));
        let unknown = Usage { cost_unknown: true, ..known };
        assert_eq!(types::Usage::from(unknown).cost_microdollars, None);
    }
}
