//! Lists, answers and revokes approvals and the rules of runs.

use super::run_table::RunTable;
use super::{RunRef, Service, ServiceOperations};
use longhaul_api::approvals::{AnswerApproval, ApprovalList, ApprovalOutcome, ListApprovals, RevokeRule, ShowApproval};
use longhaul_api::operations::ApprovalOperations;
use longhaul_api::runs::AffectedRun;
use longhaul_approval::{Approval, ApprovalKind, ApprovalStatus};
use longhaul_core::RunId;
use longhaul_core::approval::CallDecision;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::store::Batch;
use longhaul_core::text::printable;
use longhaul_harness::{Input, Lane, OrderRefusal, RunStatus};
use longhaul_records::approvals;
use longhaul_records::record::StoredRun;
use longhaul_security::audit::AuditEvent;
use std::sync::Arc;

/// Longest text of a rule in the audit log, in bytes.
const RULE_BYTES_MAX: usize = 400;

#[async_trait::async_trait]
impl ApprovalOperations for ServiceOperations<'_> {
    async fn approvals(&self, ListApprovals { run, open }: ListApprovals) -> fault::Result<ApprovalList> {
        let service = self.0;
        let store = &*service.host.store;
        let runs = match run {
            Some(which) => vec![service.find(&which)?.record.run],
            None if open => service.of_runs(RunTable::asking)?,
            None => service.of_runs(RunTable::asked)?,
        };
        let (mut found, mut rules) = (Vec::new(), Vec::new());
        for run in runs {
            if open {
                found.extend(service.awaited(&run)?);
                continue;
            }
            let mut of_run = approvals::list(store, &run)?;
            if of_run.iter().any(|one| one.standing == ApprovalStatus::Open) {
                let awaited = service.awaited(&run)?;
                of_run.retain(|one| one.standing != ApprovalStatus::Open || awaited.contains(one));
            }
            found.extend(of_run);
            rules.extend(approvals::rules(store, &run)?.into_iter().map(|rule| (run.clone(), rule)));
        }
        Ok(ApprovalList { approvals: found, rules })
    }

    async fn approval(&self, ShowApproval { id }: ShowApproval) -> fault::Result<Approval> {
        approvals::find(&*self.0.host.store, &id)
    }

    async fn answer_approval(&self, AnswerApproval { id, text }: AnswerApproval) -> fault::Result<ApprovalOutcome> {
        self.0.answer_approval(&id, &text).await
    }

    async fn revoke_rule(&self, RevokeRule { run, rule: id }: RevokeRule) -> fault::Result<AffectedRun> {
        let service = self.0;
        let run = service.find(&run)?.record.run;
        let revoked = approvals::revoke(&*service.host.store, &run, &id, service.host.clock.now_ms()).await?;
        service.host.audit.note(AuditEvent::RuleRevoked { run: run.clone(), rule: revoked.id }).await?;
        Ok(AffectedRun { run })
    }
}

impl Service {
    /// Answers the approval of an id, which is looked for in all runs.
    async fn answer_approval(self: &Arc<Self>, id: &str, text: &str) -> fault::Result<ApprovalOutcome> {
        self.answer_known(approvals::find(&*self.host.store, id)?, text).await
    }

    /// Keeps the answer, then tells the run. A kill in between leaves a run that waits though its answer is there; see
    /// [`Service::told_of_answers`].
    pub(super) async fn answer_known(self: &Arc<Self>, before: Approval, text: &str) -> fault::Result<ApprovalOutcome> {
        let run = before.subject.invocation.run();
        if self.is_over(&run)? {
            bail!(Fault::conflict(format!(
                "run {run} is over, so no call waits for an answer; `longhaul status {run}` shows how it ended"
            )));
        }
        let at_ms = self.host.clock.now_ms();
        let (now, rule) = before.answered(text, at_ms)?;
        let mut batch = approvals::swap(Batch::new(), &before, &now)?;
        let mut answered = vec![now.clone()];
        if let Some(rule) = &rule {
            batch = approvals::put_rule(batch, &run, rule)?;
            for other in self.awaited(&run)?.iter().filter(|other| other.id != now.id) {
                let Some(passed) = other.passed_by(rule, at_ms) else { continue };
                batch = approvals::swap(batch, other, &passed)?;
                answered.push(passed);
            }
        }
        self.host.store.commit(batch).await.context("another answer arrived at the same time")?;
        self.host.crash.reach("approval.answered");
        for one in &answered {
            self.note_answer(one).await?;
        }
        if let Some(rule) = &rule {
            let text = printable(&rule.text(), RULE_BYTES_MAX);
            self.host.audit.note(AuditEvent::RuleMade { run: run.clone(), rule: rule.id.clone(), text }).await?;
        }
        for one in &answered {
            if self.is_last(one)? {
                self.tell_answered(one).await?;
            }
        }
        let active = self.handle(&run).is_some();
        Ok(ApprovalOutcome { approval: now, rule, active })
    }

    /// The one open question of a run, or of a feature of it, that words can answer.
    pub(super) fn open_question(&self, which: &RunRef, feature: Option<&str>) -> fault::Result<Option<Approval>> {
        let run = self.find(which)?.record.run;
        let mut open = self.awaited(&run)?;
        open.retain(|one| {
            one.asks == ApprovalKind::Question && (feature.is_none() || one.subject.invocation.feature() == feature)
        });
        Ok(if open.len() == 1 { open.pop() } else { None })
    }

    /// Refuses an answer to a run whose work waits for an approval: a `y` that is meant for one question must not
    /// answer another.
    pub(super) fn refuse_approvals(&self, run: &RunId, feature: Option<&str>) -> fault::Result<()> {
        let open = self.awaited(run)?;
        let about = |one: &&Approval| feature.is_none() || one.subject.invocation.feature() == feature;
        if let Some(one) = open.iter().find(about) {
            bail!(Fault::conflict(format!(
                "run {run} waits for an approval; answer it with `longhaul approvals answer {} ANSWER`",
                one.id
            )));
        }
        Ok(())
    }

    /// The open approvals of a run that work waits for: what was begun anew since asks anew.
    pub(super) fn awaited(&self, run: &RunId) -> fault::Result<Vec<Approval>> {
        let mut open = approvals::open(&*self.host.store, run)?;
        if open.is_empty() {
            return Ok(open);
        }
        let state = self.find(&RunRef::Named(run.to_string()))?.state;
        let is_over = self.is_over(run)?;
        open.retain(|one| {
            let asks = |lane: &Lane| lane.work.key() == one.subject.invocation.action();
            !is_over && state.lanes.iter().any(asks)
        });
        Ok(open)
    }

    async fn note_answer(&self, answered: &Approval) -> fault::Result<()> {
        let ApprovalStatus::Answered { decision, .. } = &answered.standing else { return Ok(()) };
        let call = &answered.subject;
        self.host
            .audit
            .note(AuditEvent::ApprovalAnswered {
                run: call.invocation.run(),
                approval: answered.id.clone(),
                call: format!("{}.{}", call.tool, call.function),
                decision: word(decision).to_owned(),
            })
            .await
    }

    fn is_over(&self, run: &RunId) -> fault::Result<bool> {
        use RunStatus::{Abandoned, Completed, Failed};
        Ok(matches!(self.find(&RunRef::Named(run.to_string()))?.state.status(), Completed | Failed | Abandoned))
    }

    /// True when the work that asked can go on: nothing else is open for it, or a correction ended its batch.
    fn is_last(&self, answered: &Approval) -> fault::Result<bool> {
        if matches!(answered.standing, ApprovalStatus::Answered { decision: CallDecision::Corrected(_), .. }) {
            return Ok(true);
        }
        let invocation = &answered.subject.invocation;
        let open = self.awaited(&invocation.run())?;
        Ok(!open.iter().any(|one| one.subject.invocation == *invocation))
    }

    /// An inactive run, after it received the stored answers that a kill kept from it.
    pub(super) async fn told_of_answers(&self, stored: StoredRun) -> fault::Result<StoredRun> {
        let run = stored.record.run.clone();
        let answered = approvals::list(&*self.host.store, &run)?;
        let answered = answered.into_iter().filter(|one| matches!(one.standing, ApprovalStatus::Answered { .. }));
        let mut stored = stored;
        for one in answered {
            if !self.is_last(&one)? {
                continue;
            }
            let told = longhaul_run::apply(&self.host, stored, approved(&one)).await;
            told.or_else(|error| if error.is::<OrderRefusal>() { Ok(()) } else { Err(error) })?;
            stored = self.find(&RunRef::Named(run.to_string()))?;
        }
        Ok(stored)
    }

    async fn tell_answered(self: &Arc<Self>, approval: &Approval) -> fault::Result<()> {
        let run = approval.subject.invocation.run();
        match self.order(&RunRef::Named(run.to_string()), approved(approval)).await {
            // It does not wait yet, or not any more; it looks for the answer before it does.
            Err(error) if error.downcast_ref::<OrderRefusal>().is_some() => Ok(()),
            told => told.map(drop),
        }
    }
}

/// The decision in one word, without the words of a person.
fn word(decision: &CallDecision) -> &'static str {
    match decision {
        CallDecision::Allowed(_) => "allowed",
        CallDecision::Denied(_) => "denied",
        CallDecision::Rejected(_) => "rejected",
        CallDecision::Corrected(_) => "corrected",
        CallDecision::Stopped => "stopped",
        CallDecision::Replied(_) => "replied",
    }
}

fn approved(approval: &Approval) -> Input {
    Input::Approved { key: approval.subject.invocation.action().to_owned() }
}
