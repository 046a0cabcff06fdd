//! Approvals that people are asked for before a tool is called, and the rules that their answers make.

use crate::approvals::{ApprovalList, ApprovalOutcome};
use longhaul_approval as inner;
use longhaul_core::RunId;
use longhaul_core::journal::EffectClass;
use serde::Serialize;

/// The kind of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schema(as = ApprovalKind))]
pub enum ApprovalKindView {
    /// A person decides whether a call may be made.
    Call,
    /// An agent asks a question in words.
    Question,
    /// A person decides whether a change of protected files may be committed.
    Change,
}

/// The status of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schema(as = ApprovalStatus))]
pub enum ApprovalStatusView {
    /// It has no answer.
    Open,
    /// It has an answer, which its run has not used yet.
    Answered,
    /// Its run has used the answer.
    Used,
    /// The call was withdrawn.
    Withdrawn,
}

/// The class of an effect: what the host knows of it after an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schema(as = EffectClass))]
pub enum Effect {
    /// It changes nothing.
    ReadOnly,
    /// The same key has the effect once.
    Idempotent,
    /// The tool can tell whether it happened.
    Verifiable,
    /// It changes something outside, and nothing can tell whether it happened.
    Acts,
}

impl From<EffectClass> for Effect {
    fn from(inner: EffectClass) -> Self {
        match inner {
            EffectClass::ReadOnly => Self::ReadOnly,
            EffectClass::Idempotent => Self::Idempotent,
            EffectClass::Verifiable => Self::Verifiable,
            EffectClass::Acts => Self::Acts,
        }
    }
}

/// An approval.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Approval))]
pub struct ApprovalView {
    /// Its id.
    pub id: String,
    /// Its run.
    pub run: String,
    /// The invocation that would make the call.
    pub invocation: String,
    /// Number of the entry in its journal.
    pub entry: u32,
    /// The kind of the approval.
    pub kind: ApprovalKindView,
    /// The tool.
    pub tool: String,
    /// Its function.
    pub function: String,
    /// The arguments of the call: JSON as text, as the agent wrote it.
    pub arguments: String,
    /// The digest of the tool's component, or another identity of the tool.
    pub component: String,
    /// The agent's table of `longhaul.toml`.
    pub agent: String,
    /// The agent's plugin.
    pub plugin: String,
    /// The class of the effect.
    pub effect: Effect,
    /// True when the tool runs commands.
    pub runs_commands: bool,
    /// The sources of untrusted words that the agent had read, if they are the reason to ask.
    pub untrusted_sources: Vec<String>,
    /// True when the answer `a` is possible: it allows similar calls for the rest of the run.
    pub can_create_rule: bool,
    /// Time of the question, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Its status.
    pub status: ApprovalStatusView,
    /// Its status in words, with the answer.
    pub status_text: String,
    /// Time when it was answered, or when the run used the answer, in milliseconds since 1970-01-01 UTC.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub decided_ms: Option<u64>,
}

impl From<inner::Approval> for ApprovalView {
    fn from(approval: inner::Approval) -> Self {
        let status_text = approval.words();
        let can_create_rule = approval.takes_rule();
        let (status, decided_ms) = match approval.standing {
            inner::ApprovalStatus::Open => (ApprovalStatusView::Open, None),
            inner::ApprovalStatus::Answered { at_ms, .. } => (ApprovalStatusView::Answered, Some(at_ms)),
            inner::ApprovalStatus::Used { at_ms, .. } => (ApprovalStatusView::Used, Some(at_ms)),
            inner::ApprovalStatus::Withdrawn => (ApprovalStatusView::Withdrawn, None),
        };
        let inner::ApprovalSubject { invocation, entry, tool, function, component, arguments } = approval.subject;
        Self {
            id: approval.id,
            run: invocation.run().to_string(),
            invocation: invocation.as_str().to_owned(),
            entry,
            kind: match approval.asks {
                inner::ApprovalKind::Call => ApprovalKindView::Call,
                inner::ApprovalKind::Question => ApprovalKindView::Question,
                inner::ApprovalKind::Change => ApprovalKindView::Change,
            },
            tool,
            function,
            arguments,
            can_create_rule,
            component,
            agent: approval.agent,
            plugin: approval.plugin,
            effect: approval.effect.into(),
            runs_commands: approval.runs_commands,
            untrusted_sources: approval.heard,
            at_ms: approval.at_ms,
            status,
            status_text,
            decided_ms,
        }
    }
}

/// A rule that allows calls for the rest of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = RunRule))]
pub struct RunRuleView {
    /// Its id.
    pub id: String,
    /// Its run.
    pub run: String,
    /// The tool.
    pub tool: String,
    /// Its function.
    pub function: String,
    /// The digest of the tool's component, or another identity of the tool.
    pub component: String,
    /// The program of the commands that it allows; null: it allows the function with any arguments.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub program: Option<String>,
    /// Time when it was made, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Time when it was revoked, in milliseconds since 1970-01-01 UTC.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub revoked_ms: Option<u64>,
}

impl From<(RunId, inner::RunRule)> for RunRuleView {
    fn from((run, rule): (RunId, inner::RunRule)) -> Self {
        let inner::RunRule { id, tool, function, component, program, at_ms, revoked_ms, .. } = rule;
        Self { id, run: run.to_string(), tool, function, component, program, at_ms, revoked_ms }
    }
}

/// An approval with its answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = ApprovalOutcome))]
pub struct Approved {
    /// The approval.
    pub approval: ApprovalView,
    /// The rule that the answer made.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub rule: Option<RunRuleView>,
    /// True when its run is worked on at this moment.
    pub active: bool,
}

impl From<ApprovalOutcome> for Approved {
    fn from(inner: ApprovalOutcome) -> Self {
        let ApprovalOutcome { approval, rule, active } = inner;
        let run = approval.subject.invocation.run();
        let rule = rule.map(|rule| RunRuleView::from((run, rule)));
        Self { approval: approval.into(), rule, active }
    }
}

/// Approvals and rules, the oldest of each run first.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ApprovalListing {
    /// The approvals.
    pub approvals: Vec<ApprovalView>,
    /// The rules.
    pub rules: Vec<RunRuleView>,
}

impl From<ApprovalList> for ApprovalListing {
    fn from(inner: ApprovalList) -> Self {
        let ApprovalList { approvals, rules } = inner;
        Self {
            approvals: approvals.into_iter().map(Into::into).collect(),
            rules: rules.into_iter().map(Into::into).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::InvocationId;

    fn approval(asks: inner::ApprovalKind, command: &str) -> ApprovalView {
        let subject = inner::ApprovalSubject {
            invocation: InvocationId::from_text("r-1/f-one/1/generate"),
            entry: 1,
            tool: "shell".to_owned(),
            function: "run".to_owned(),
            component: "0f1e".to_owned(),
            arguments: serde_json::json!({ "command": command }).to_string(),
        };
        inner::Approval {
            id: subject.id(),
            subject,
            asks,
            agent: "agents.code".to_owned(),
            plugin: "react".to_owned(),
            effect: EffectClass::Acts,
            runs_commands: true,
            heard: Vec::new(),
            repeats: false,
            at_ms: 1,
            standing: inner::ApprovalStatus::Open,
        }
        .into()
    }

    /// The page used to offer it always, and the server refused it then.
    #[test]
    fn a_rule_is_offered_where_one_can_be_made() {
        assert!(approval(inner::ApprovalKind::Call, "git status").can_create_rule);
        assert!(!approval(inner::ApprovalKind::Call, "git status && rm -rf /").can_create_rule);
        assert!(!approval(inner::ApprovalKind::Call, "env sh").can_create_rule);
        assert!(!approval(inner::ApprovalKind::Question, "git status").can_create_rule);
    }
}
