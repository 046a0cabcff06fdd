//! Approvals that people are asked for before a tool is called, and the rules that their answers make.

use crate::approvals::{ApprovalList, ApprovalOutcome};
use longhaul_approval as inner;
use longhaul_core::RunId;
use longhaul_core::journal::EffectClass;
use serde::Serialize;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schema(as = Asks))]
pub enum ApprovalKindView {
    /// Whether a call may be made.
    Call,
    /// A question of an agent, in words.
    Question,
    /// Whether a change of protected files may be committed.
    Change,
}

/// Where an approval is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schema(as = Standing))]
pub enum ApprovalStatusView {
    /// Nobody has answered.
    Open,
    /// It has an answer, which its run has not taken yet.
    Answered,
    /// Its run has taken the answer.
    Used,
    /// The call was taken back.
    Withdrawn,
}

/// What is known of an effect that is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Touches nothing.
    ReadOnly,
    /// The same key has the effect once.
    Idempotent,
    /// Can be asked whether it happened.
    Verifiable,
    /// Acts on the world.
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

/// Something that a person is asked.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Approval))]
pub struct ApprovalView {
    /// Its id.
    pub id: String,
    /// Its run.
    pub run: String,
    /// Who would make the call.
    pub invocation: String,
    /// The entry of its journal.
    pub entry: u32,
    /// What is asked.
    pub asks: ApprovalKindView,
    /// The tool.
    pub tool: String,
    /// Its function.
    pub function: String,
    /// What it would be called with: JSON as text, as the agent wrote it.
    pub arguments: String,
    /// The digest of the tool's component, or what it is else.
    pub component: String,
    /// The agent's table of `longhaul.toml`.
    pub agent: String,
    /// The agent's plugin.
    pub plugin: String,
    /// What is known of the effect.
    pub effect: Effect,
    /// Whether the tool runs commands.
    pub runs_commands: bool,
    /// The sources of untrusted words that the agent had heard, where that is why it is asked.
    pub heard: Vec<String>,
    /// Whether `a`, which allows what is like it for the rest of the run, is an answer to it.
    pub by_rule: bool,
    /// When it was asked, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Where it is.
    pub standing: ApprovalStatusView,
    /// The same in words, with the answer.
    pub words: String,
    /// When it was answered, or its answer taken.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub decided_ms: Option<u64>,
}

impl From<inner::Approval> for ApprovalView {
    fn from(approval: inner::Approval) -> Self {
        let words = approval.words();
        let by_rule = approval.takes_rule();
        let (standing, decided_ms) = match approval.standing {
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
            asks: match approval.asks {
                inner::ApprovalKind::Call => ApprovalKindView::Call,
                inner::ApprovalKind::Question => ApprovalKindView::Question,
                inner::ApprovalKind::Change => ApprovalKindView::Change,
            },
            tool,
            function,
            arguments,
            by_rule,
            component,
            agent: approval.agent,
            plugin: approval.plugin,
            effect: approval.effect.into(),
            runs_commands: approval.runs_commands,
            heard: approval.heard,
            at_ms: approval.at_ms,
            standing,
            words,
            decided_ms,
        }
    }
}

/// What a person allowed for the rest of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Rule))]
pub struct RunRuleView {
    /// Its id.
    pub id: String,
    /// Its run.
    pub run: String,
    /// The tool.
    pub tool: String,
    /// Its function.
    pub function: String,
    /// The digest of the tool's component, or what it is else.
    pub component: String,
    /// The program of the commands that it allows; null: the function, whatever its arguments.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub program: Option<String>,
    /// Since when, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Since when it holds no more.
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
pub struct Approved {
    /// The approval.
    pub approval: ApprovalView,
    /// What the answer allows from now on.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub rule: Option<RunRuleView>,
    /// Whether its run is worked on in this moment.
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
    /// The answered approvals included.
    pub approvals: Vec<ApprovalView>,
    /// The revoked rules included.
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
            at_ms: 1,
            standing: inner::ApprovalStatus::Open,
        }
        .into()
    }

    /// The page used to offer it always, and the server refused it then.
    #[test]
    fn by_rule_is_offered_where_a_rule_can_be_made() {
        assert!(approval(inner::ApprovalKind::Call, "git status").by_rule);
        assert!(!approval(inner::ApprovalKind::Call, "git status && rm -rf /").by_rule);
        assert!(!approval(inner::ApprovalKind::Call, "env sh").by_rule);
        assert!(!approval(inner::ApprovalKind::Question, "git status").by_rule);
    }
}
