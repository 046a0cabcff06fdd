//! Changes of protected files: a person is asked before such a commit is made.
//!
//! The decision is an entry of the commit's journal in front of the commit itself. It is an approval like that of a
//! call, bound to exactly these files with this content. Rules do not apply: each such change is approved on its own.

use longhaul_approval::{Approval, ApprovalKind, ApprovalStatus, ApprovalSubject, question};
use longhaul_core::Digest;
use longhaul_core::approval::{CallDecision, ENTRY};
use longhaul_core::fault;
use longhaul_core::journal::{
    CallVerdict, EffectClass, EffectQuestion, EntryHandle, Journal as _, JournalError, NewCall,
};
use longhaul_core::store::Batch;
use longhaul_journal::Recorder;
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::approvals;
use longhaul_worktree::ProtectedChange;
use serde_json::json;

/// The name of a commit's journal entry.
pub(super) const COMMIT: &str = "git.commit";

/// A commit that changes protected files.
pub(super) struct ProtectedCommit<'a> {
    pub(super) feature: &'a str,
    pub(super) files: &'a [ProtectedChange],
    /// The difference of those files, for a person.
    pub(super) patch: String,
    /// The digest of everything that would be committed.
    pub(super) tree: Digest,
}

impl ProtectedCommit<'_> {
    /// The arguments of the approval: another tree, or another change, needs another approval.
    fn arguments(&self) -> String {
        let file = |one: &ProtectedChange| {
            let kind = serde_json::to_value(one.kind).unwrap_or_default();
            format!("{} {}: it {}", kind.as_str().unwrap_or("changed"), one.path, one.why)
        };
        let files: Vec<String> = self.files.iter().map(file).collect();
        json!({ "feature": self.feature, "files": files, "tree": self.tree.to_string(), "patch": self.patch })
            .to_string()
    }

    fn summary(&self) -> String {
        let paths: Vec<&str> = self.files.iter().map(|one| one.path.as_str()).collect();
        longhaul_core::text::truncate(&format!("protected: {}", paths.join(", ")), 160)
    }

    /// The text for the feature's agent after a person refused.
    fn refused(&self, decision: &CallDecision) -> Vec<String> {
        let why = match decision {
            CallDecision::Allowed(_) => return Vec::new(),
            CallDecision::Corrected(text) => format!("a person says: {text}"),
            CallDecision::Rejected(Some(reason)) => format!("a person refused the change: {reason}"),
            _ => "a person refused the change".to_owned(),
        };
        let of = |one: &ProtectedChange| {
            format!("`{}` is protected, since it {}; {why}; leave it as it was", one.path, one.why)
        };
        self.files.iter().map(of).collect()
    }
}

/// True when the journal of a commit already passed the question: the commit itself stands next in it.
pub(super) fn is_past(recorder: &Recorder) -> bool {
    recorder.upcoming().is_some_and(|(name, _)| name == COMMIT)
}

/// Empty after an approval; after a refusal, the text for the agent.
///
/// # Errors
/// [`JournalError::Parked`] until a person has answered.
pub(super) async fn refusals(
    host: &PluginHost,
    recorder: &Recorder,
    change: &ProtectedCommit<'_>,
) -> fault::Result<Result<Vec<String>, JournalError>> {
    let arguments = change.arguments();
    // The recorded decision holds, whatever the tree is now: the commit compares it with what was judged.
    let digest = recorder.upcoming().map_or_else(|| Digest::of(arguments.as_bytes()), |(_, digest)| digest);
    let call = NewCall {
        name: ENTRY,
        summary: change.summary(),
        arguments: digest,
        class: EffectClass::ReadOnly,
        fuel_used: 0,
    };
    let handle = match recorder.ask(call).await {
        Ok(CallVerdict::Answered(text)) => return Ok(Ok(change.refused(&serde_json::from_str(&text)?))),
        Ok(
            CallVerdict::Go(handle)
            | CallVerdict::Verify(handle, _)
            | CallVerdict::Happened(handle, _)
            | CallVerdict::Skipped(handle),
        ) => handle,
        Err(error) => return Ok(Err(error)),
    };
    let (approval, decided) = asked(host, recorder, &handle, arguments).await?;
    let Some((decision, used)) = decided else { return Ok(Err(JournalError::Parked(waits_for(approval)))) };
    let also = approvals::swap(Batch::new(), &approval, &used)?;
    if let Err(error) = recorder.answer_with(handle, serde_json::to_string(&decision)?, also).await {
        return Ok(Err(error));
    }
    Ok(Ok(change.refused(&decision)))
}

/// The approval of this change, requested now if it was not before, and the person's answer.
async fn asked(
    host: &PluginHost,
    recorder: &Recorder,
    handle: &EntryHandle,
    arguments: String,
) -> fault::Result<(Approval, Option<(CallDecision, Approval)>)> {
    let subject = ApprovalSubject {
        invocation: recorder.invocation().clone(),
        entry: handle.entry,
        tool: "git".to_owned(),
        function: "commit".to_owned(),
        component: "longhaul".to_owned(),
        arguments,
    };
    let run = subject.invocation.run();
    if let Some(known) = approvals::get(&*host.store, &run, &subject.id())? {
        let decided = known.used(&subject, host.clock.now_ms())?;
        return Ok((known, decided));
    }
    let approval = Approval {
        id: subject.id(),
        subject,
        asks: ApprovalKind::Change,
        agent: "longhaul".to_owned(),
        plugin: "longhaul".to_owned(),
        effect: EffectClass::Verifiable,
        runs_commands: false,
        heard: Vec::new(),
        repeats: false,
        at_ms: host.clock.now_ms(),
        standing: ApprovalStatus::Open,
    };
    // The question is durable before its run waits for it.
    host.store.commit(approvals::insert(Batch::new(), &approval)?).await?;
    host.crash.reach("approval.asked");
    Ok((approval, None))
}

fn waits_for(approval: Approval) -> EffectQuestion {
    let (text, ApprovalSubject { invocation, entry, .. }) = (question(&approval), approval.subject);
    EffectQuestion { invocation, entry, text, approval: Some(approval.id), attempt: 0 }
}
