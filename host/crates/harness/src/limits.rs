//! Every cap of a run's loops and texts. Each field carries its unit in its name and has a default.
//!
//! [`longhaul_core::Limits`] bound one invocation; these bound how many invocations the harness requests, and how much
//! text of a planner, an agent or an evaluator the state keeps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Retries of one step that a plan may request at most.
pub(crate) const RETRIES_MAX: u32 = 5;

/// The caps of one run. Reaching a cap ends the loop that it bounds, and is reported under the field's name.
///
/// Written in `longhaul.toml` under `[run.limits]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HarnessLimits {
    /// Rounds of generate and evaluate for one attempt at a feature. Default 3. After the last one the feature is
    /// failing and its best effort is kept. An outage uses no round.
    pub iterations_max: u32,
    /// Features of one run, the dropped ones included. Default 200. A larger plan is refused, and so
    /// is a feature that an operator adds.
    pub features_max: u32,
    /// Attempts at one feature that end in failing. Default 1: a failing feature is not retried until a person resumes
    /// with `--retry-failing`, which allows as many more.
    pub feature_attempts_max: u32,
    /// Attempts at features, of the whole run, since it began or was resumed after it had ended.
    /// Default 100. The run ends incomplete.
    pub sessions_max: u32,
    /// Parallel sessions, each in a tree of its own. Default 1. Features run in parallel when neither waits for the
    /// other; they are committed in the order in which they pass.
    pub parallel_max: u32,
    /// Plans after the first, of a pipeline whose steps fail. Default 2. The last is carried out like the others; when
    /// steps still fail, a person is asked.
    pub replans_max: u32,
    /// Confidence of a step's agent, in percent, below which a pipeline asks the planner again although the step
    /// passes. Default 60; 0: never. It uses up `replans_max` like a failing step, and not more: afterwards the step
    /// stands.
    pub confidence_percent_min: u8,
    /// Fresh invocations in which one round may continue, each time its journal is full (`journal_entries_max`).
    /// Default 10. They use no round. A round that has filled the journal of the last one, too, ends its feature as
    /// failing, whatever rounds are left.
    pub handoffs_max: u32,
    /// Requests for a plan while plans are refused or fail. Default 1: the first refusal ends the run. With more, the
    /// planner gets the fault. An outage uses none.
    pub plan_attempts_max: u32,
    /// Outages in a row after which the run stops trying and ends incomplete. Default 20, which is
    /// about half a day with the waits below. Any work that ends well starts the count again.
    pub unavailable_retries_max: u32,
    /// Wait after the first outage in a row, in milliseconds. Default 5 000. It doubles each time.
    pub unavailable_wait_ms_min: u64,
    /// Longest wait after an outage, in milliseconds, also when the service asked for a longer one.
    /// Default 3 600 000 (an hour).
    pub unavailable_wait_ms_max: u64,
    /// The most failures of a commit or a clean-up of the tree. Default 3. After each the run waits for a person; after
    /// the last it ends incomplete.
    pub repository_attempts_max: u32,
    /// Features in a row that fail with the same text. Default 5. A common cause is then likely, so the run ends
    /// incomplete. A feature that passes starts the count again.
    pub failures_equal_max: u32,
    /// Edits of the feature list by operators. Default 1 000. More are refused.
    pub edits_max: u32,
    /// Tokens of the run, input and output, all invocations together. Default none. Checked before work that asks
    /// models, and before each request to one, which needs budget for its highest expected usage; so one whose reply
    /// uses more may go over. An interrupted request counts with the most that it could have used. See also
    /// `tokens_max` of the invocation.
    pub tokens_max: Option<u64>,
    /// Money of the run, in millionths of a US dollar. Default none. Checked as `tokens_max` is; calls without a known
    /// price count as free.
    pub cost_microdollars_max: Option<u64>,
    /// Steps of the run: replies of models, all invocations together. Default none. Checked before each request, those
    /// in flight counted. Refused requests, and the attempts before a reply, do not count. See also `model_calls_max`
    /// of the invocation.
    pub model_calls_max: Option<u64>,
    /// Tool calls, all invocations together, refused ones included. Default none. Checked before each batch of calls,
    /// which is made as a whole or not at all.
    pub tool_calls_max: Option<u64>,
    /// Fuel of all invocations and their tools together, in wasmtime's unit. Default none. Checked before each effect;
    /// in between, `fuel_max` of the invocation holds, so the run may go over by as much. Programs that tools start and
    /// models that run here use none.
    pub fuel_max: Option<u64>,
    /// Memory of the running planners, agents and evaluators together, in bytes. Default none. Checked before each
    /// effect. Not counted are their tools, whose memory is bounded for each call, and the host.
    pub memory_bytes_max: Option<u64>,
    /// Bytes that are sent: requests to models, each attempt of them, and requests of tools that are components.
    /// Default none. Checked before each effect and, exactly, before a tool sends. Traffic of MCP servers, the browser
    /// and programs does not count.
    pub egress_bytes_max: Option<u64>,
    /// Bytes of answers in the journals of the run. Default none. Checked before each effect, so the last answer may go
    /// over.
    pub stored_bytes_max: Option<u64>,
    /// Time that the run may work, in milliseconds. Default none, and 180 000 for an ask. Time without work does not
    /// count: while all of it waits for a person or a service, it is paused, or no process has it. The run ends
    /// incomplete and a resume with a higher cap continues it.
    pub wall_ms_max: Option<u64>,
    /// Bytes of the answer of a task, or of an ask. Default 16 384. The rest is cut.
    pub answer_bytes_max: usize,
    /// Bytes of a plan, all texts together. Default 1 MiB: the state is stored with each event. A
    /// larger plan is refused.
    pub plan_bytes_max: usize,
    /// Bytes of the id of a feature, a criterion or a check. Default 64. Longer ones are refused.
    pub id_bytes_max: usize,
    /// Bytes of a title. Default 200. The rest is cut.
    pub title_bytes_max: usize,
    /// Bytes of an instruction. Default 16 384. A longer one is refused, since a cut could reverse its meaning.
    pub instruction_bytes_max: usize,
    /// Criteria of one feature. Default 50. More are refused.
    pub criteria_max: usize,
    /// Bytes of the text of one criterion. Default 2 048. A longer one is refused.
    pub criterion_bytes_max: usize,
    /// Checks of one feature. Default 20. More are refused.
    pub checks_max: usize,
    /// Bytes of one check. Default 65 536. A longer one is refused.
    pub check_bytes_max: usize,
    /// Issues that one round passes to the next. Default 20. The rest is left out.
    pub issues_max: usize,
    /// Bytes of one issue, reason, question, answer, summary or error. Default 2 048. The rest is cut.
    pub text_bytes_max: usize,
    /// Answers of operators that a feature, or the plan, keeps. Default 20, the latest ones.
    pub answers_max: usize,
}

impl Default for HarnessLimits {
    fn default() -> Self {
        Self {
            iterations_max: 3,
            features_max: 200,
            feature_attempts_max: 1,
            sessions_max: 100,
            parallel_max: 1,
            replans_max: 2,
            confidence_percent_min: 60,
            handoffs_max: 10,
            plan_attempts_max: 1,
            unavailable_retries_max: 20,
            unavailable_wait_ms_min: 5_000,
            unavailable_wait_ms_max: 3_600_000,
            repository_attempts_max: 3,
            failures_equal_max: 5,
            edits_max: 1_000,
            tokens_max: None,
            cost_microdollars_max: None,
            model_calls_max: None,
            tool_calls_max: None,
            fuel_max: None,
            memory_bytes_max: None,
            egress_bytes_max: None,
            stored_bytes_max: None,
            wall_ms_max: None,
            answer_bytes_max: 16_384,
            plan_bytes_max: 1 << 20,
            id_bytes_max: 64,
            title_bytes_max: 200,
            instruction_bytes_max: 16_384,
            criteria_max: 50,
            criterion_bytes_max: 2_048,
            checks_max: 20,
            check_bytes_max: 65_536,
            issues_max: 20,
            text_bytes_max: 2_048,
            answers_max: 20,
        }
    }
}

impl HarnessLimits {
    /// The defaults of an ask: 2 US dollars, 180 seconds, 8 parallel tasks, 2 replans, and one more attempt for the
    /// planner whose plan was refused. Nothing is judged, so a task has one round.
    #[must_use]
    pub fn of_ask() -> Self {
        Self {
            iterations_max: 1,
            sessions_max: 1_000,
            parallel_max: 8,
            plan_attempts_max: 2,
            failures_equal_max: 1_000,
            cost_microdollars_max: Some(2_000_000),
            wall_ms_max: Some(180_000),
            ..Self::default()
        }
    }

    /// The first limit that would stop every run before it starts, if there is one.
    #[must_use]
    pub fn unusable(&self) -> Option<&'static str> {
        let counts = [
            ("iterations_max", self.iterations_max),
            ("features_max", self.features_max),
            ("feature_attempts_max", self.feature_attempts_max),
            ("sessions_max", self.sessions_max),
            ("parallel_max", self.parallel_max),
            ("plan_attempts_max", self.plan_attempts_max),
            ("repository_attempts_max", self.repository_attempts_max),
            ("failures_equal_max", self.failures_equal_max),
        ];
        counts.into_iter().find(|(_, count)| *count == 0).map(|(name, _)| name)
    }
}
