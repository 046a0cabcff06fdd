//! What becomes of a report on work.
//!
//! Each kind of failure has one consequence: an outage waits and tries again, a question or a refusal
//! blocks the feature, a repository that cannot be written waits for a person, and all else uses up a
//! round. Only [`Verdict::passes`] leads to a commit.

use super::{CapReached, Ignored, Turn, plus};
use crate::action::{EndStatus, Job, Work};
use crate::input::{Failure, Report};
use crate::plan::{self, Accepted};
use crate::state::{BlockedBy, Feature, Phase, WaitFor};
use crate::texts;
use longhaul_core::Outage;
use longhaul_core::event::{Event, Used};
use longhaul_core::work::FeatureStatus::{Failing, Passing};
use longhaul_core::work::{Criterion, Issue, Judgement, Mark, Outcome, Plan, Verdict};

impl Turn<'_> {
    pub(super) fn done(&mut self, key: &str, used: Used, report: Report) -> Option<Ignored> {
        if self.state.cancelled.remove(key) {
            // It was called off, but what it used was used.
            self.state.used = plus(self.state.used, used);
            return None;
        }
        let open = matches!(self.state.phase, Phase::Running | Phase::Waiting { .. });
        let Some(work) = self.state.outstanding.take_if(|work| open && work.key() == key) else {
            return Some(Ignored::NotAwaited);
        };
        if !fits(&work.job, &report) {
            self.state.outstanding = Some(work);
            return Some(Ignored::WrongReport);
        }
        self.state.phase = Phase::Running;
        self.count(&work, used);
        match report {
            Report::Failed(Failure::Unavailable(outage)) => self.unavailable(work.again(), &outage),
            Report::Failed(Failure::Suspended(outage)) => self.unavailable(work, &outage),
            Report::Failed(failure) => self.failed(work, &failure),
            report => {
                self.state.counts.outages = 0;
                self.succeeded(&work, report);
            }
        }
        None
    }

    fn count(&mut self, work: &Work, used: Used) {
        self.state.used = plus(self.state.used, used);
        if let Some(feature) = work.feature().and_then(|id| self.state.feature_mut(id)) {
            feature.used = plus(feature.used, used);
        }
    }

    fn succeeded(&mut self, work: &Work, report: Report) {
        let id = work.feature().unwrap_or_default().to_owned();
        match report {
            Report::Planned(plan) => self.planned(work, plan),
            Report::Pinned { vacuous } => self.pinned(&id, &vacuous),
            Report::Generated(outcome) => self.generated(work, &id, &outcome),
            Report::Judged(verdict) => self.judged(&id, &verdict),
            Report::Committed { commit, files } => self.committed(&id, commit, files),
            Report::Discarded => self.discarded(),
            Report::Failed(_) => {}
        }
    }

    fn failed(&mut self, work: Work, failure: &Failure) {
        self.state.counts.outages = 0;
        let text = self.line(&failure.text());
        match work.job.clone() {
            Job::Plan { .. } => self.plan_failed(work, failure, text),
            Job::Pin { feature, .. } => self.pin_failed(&feature, failure, &text),
            Job::Generate { feature, .. } => self.generate_failed(&feature, failure, &text),
            Job::Judge { feature, .. } => self.judge_failed(&feature, &text),
            Job::Commit { feature, .. } | Job::Discard { feature } => self.repository_failed(work, &feature, &text),
        }
    }

    // The plan.

    fn planned(&mut self, work: &Work, plan: Plan) {
        let notes = longhaul_core::text::truncate(&plan.notes, self.state.limits.text_bytes_max);
        match plan::accept(plan, &self.state.setup, &self.state.limits) {
            Ok(accepted) => self.take_plan(accepted, notes),
            Err(error) => self.plan_refused(work.clone(), error.to_string()),
        }
    }

    fn take_plan(&mut self, accepted: Accepted, notes: String) {
        let features = accepted.features.iter().map(|spec| (spec.id.clone(), spec.title.clone())).collect();
        self.state.features = accepted.features.into_iter().map(Feature::new).collect();
        self.emit(Event::Planned { features, notes });
        accepted.warnings.into_iter().for_each(|warning| self.warn(warning));
        self.advance();
    }

    fn plan_failed(&mut self, work: Work, failure: &Failure, text: String) {
        let Failure::Blocked(question) = failure else { return self.plan_refused(work, text) };
        let question = self.line(question);
        self.state.outstanding = Some(work.again());
        self.ask(WaitFor::Plan, &question, "longhaul answer RUN --text ANSWER");
    }

    /// Asks the planner again while attempts are left, and tells it why.
    fn plan_refused(&mut self, work: Work, why: String) {
        self.state.counts.plan_attempts = self.state.counts.plan_attempts.saturating_add(1);
        self.note_for_planner("the plan before".to_owned(), self.line(&why));
        if self.state.counts.plan_attempts < self.state.limits.plan_attempts_max {
            self.warn(format!("plan {} was refused: {why}", self.state.counts.plan_attempts));
            return self.start_plan(Some(work.again()));
        }
        // Held back, for a resume.
        self.state.outstanding = Some(work.again());
        self.end(EndStatus::Failed, format!("no plan: {why}"));
    }

    // The rounds.

    fn pinned(&mut self, id: &str, vacuous: &[String]) {
        let Some(feature) = self.state.feature_mut(id) else { return };
        let own = feature.spec.checks.iter().map(|check| &check.name);
        let vacuous: Vec<_> = own.filter(|name| vacuous.contains(name)).cloned().collect();
        feature.vacuous.clone_from(&vacuous);
        for check in vacuous {
            self.emit(Event::VacuousCheck { feature: id.to_owned(), check });
        }
        self.start_generate(id);
    }

    /// Nothing was built yet, so there is nothing to discard.
    fn pin_failed(&mut self, id: &str, failure: &Failure, text: &str) {
        let why = format!("its checks could not be pinned: {text}");
        match failure {
            Failure::Denied(_) => self.block(id, BlockedBy::Denial, &why),
            _ => self.note_failing(id, &why),
        }
        self.advance();
    }

    fn generated(&mut self, work: &Work, id: &str, outcome: &Outcome) {
        let summary = self.line(&outcome.summary);
        let Some(feature) = self.state.feature_mut(id) else { return };
        feature.summary.clone_from(&summary);
        let (instruction, criteria) = (feature.spec.instruction.clone(), feature.spec.criteria.clone());
        let Some((position, round)) = self.note_round(id, summary) else { return };
        let job = Job::Judge { feature: id.to_owned(), round, generated: work.key(), instruction, criteria };
        self.start_feature_work(position, &format!("{round}/judge"), job);
    }

    fn note_round(&mut self, id: &str, summary: String) -> Option<(usize, u32)> {
        let session = self.state.session.as_mut()?;
        session.earlier.push(summary);
        let round = session.round;
        Some((self.find(id)?.0, round))
    }

    fn generate_failed(&mut self, id: &str, failure: &Failure, text: &str) {
        match failure {
            Failure::Blocked(question) => {
                let question = self.line(question);
                self.block(id, BlockedBy::Question, &question);
                self.start_discard(id);
            }
            Failure::Denied(_) => {
                self.block(id, BlockedBy::Denial, text);
                self.start_discard(id);
            }
            Failure::Impossible(_) => self.feature_failed(id, text),
            Failure::Limit(_) | Failure::Unavailable(_) | Failure::Suspended(_) | Failure::Failed(_) => {
                if let Some(session) = &mut self.state.session {
                    session.earlier.push(format!("it ended without a result: {text}"));
                }
                self.round_failed(id, vec![Issue::general(format!("the round ended early: {text}"))]);
            }
        }
    }

    fn judged(&mut self, id: &str, verdict: &Verdict) {
        let limits = &self.state.limits;
        let (issues_max, bytes_max) = (limits.issues_max, limits.text_bytes_max);
        let Some((position, feature)) = self.find(id) else { return };
        let criteria = &feature.spec.criteria;
        let passed = verdict.passes(criteria);
        let judgements = texts::judgements(criteria, verdict, bytes_max);
        let issues = texts::issues(&judgements, verdict, issues_max, bytes_max);
        let message = texts::commit_message(feature);
        let round = self.state.session.as_ref().map_or(0, |session| session.round);
        self.emit(Event::Judged { feature: id.to_owned(), round, passed, judgements });
        if passed {
            self.start_feature_work(position, "commit", Job::Commit { feature: id.to_owned(), message });
        } else {
            self.round_failed(id, issues);
        }
    }

    /// As a verdict of nothing but unknown marks: the round is used, and nobody passes.
    fn judge_failed(&mut self, id: &str, text: &str) {
        let issue = Issue::general(format!("the evaluator gave no verdict: {text}"));
        let Some((_, feature)) = self.find(id) else { return };
        let unknown = |criterion: &Criterion| Judgement {
            criterion: criterion.id.clone(),
            mark: Mark::Unknown,
            why: issue.text.clone(),
        };
        let judgements = feature.spec.criteria.iter().map(unknown).collect();
        let round = self.state.session.as_ref().map_or(0, |session| session.round);
        self.emit(Event::Judged { feature: id.to_owned(), round, passed: false, judgements });
        self.round_failed(id, vec![issue]);
    }

    /// Starts the next round with what is to mend, or fails the feature after the last.
    fn round_failed(&mut self, id: &str, issues: Vec<Issue>) {
        let iterations_max = self.state.limits.iterations_max;
        let Some(session) = &mut self.state.session else { return };
        let round = session.round;
        if round < iterations_max {
            session.round += 1;
            session.feedback = issues;
            return self.start_generate(id);
        }
        let first = issues.first().map_or("the evaluator named no issue", |issue| issue.text.as_str());
        let rounds = if round == 1 { "1 round".to_owned() } else { format!("{round} rounds") };
        let why = format!("not passed after {rounds} (iterations_max): {}", self.line(first));
        self.feature_failed(id, &why);
    }

    fn feature_failed(&mut self, id: &str, why: &str) {
        self.note_failing(id, why);
        self.start_discard(id);
    }

    fn note_failing(&mut self, id: &str, why: &str) {
        self.set_status(id, Failing, why);
        let counts = &mut self.state.counts;
        counts.failures_equal = if counts.failure_last == why { counts.failures_equal.saturating_add(1) } else { 1 };
        why.clone_into(&mut counts.failure_last);
    }

    // The repository.

    fn committed(&mut self, id: &str, commit: Option<String>, files: Vec<String>) {
        self.state.counts.repository_failures = 0;
        self.state.counts.failures_equal = 0;
        self.state.counts.failure_last.clear();
        let why = if commit.is_some() { "judged to pass" } else { "judged to pass; nothing had changed" };
        if let Some(feature) = self.state.feature_mut(id) {
            feature.commit.clone_from(&commit);
            feature.files.clone_from(&files);
        }
        if let Some(commit) = commit {
            self.emit(Event::Committed { feature: id.to_owned(), commit, files });
        }
        self.set_status(id, Passing, why);
        self.advance();
    }

    fn discarded(&mut self) {
        self.state.counts.repository_failures = 0;
        self.advance();
    }

    fn repository_failed(&mut self, work: Work, id: &str, text: &str) {
        let verb = work.job.verb();
        self.state.outstanding = Some(work.again());
        let counts = &mut self.state.counts;
        counts.repository_failures = counts.repository_failures.saturating_add(1);
        let count = counts.repository_failures;
        if count >= self.state.limits.repository_attempts_max {
            let text = format!("to {verb} feature `{id}` failed {count} times: {text}; mend the repository and resume");
            return self.end_at_cap(CapReached { name: "repository_attempts_max", text });
        }
        let question = format!("could not {verb} feature `{id}`: {text}; mend the repository, then resume");
        self.ask(WaitFor::Repository, &question, "longhaul resume RUN");
    }

    // Outages.

    /// Uses no round: waits, longer each time, and tries the same: under a new key when the invocation has
    /// ended in the outage, under its own when it only broke off and can go on.
    fn unavailable(&mut self, work: Work, outage: &Outage) {
        let reason = self.line(&outage.reason);
        let verb = work.job.verb();
        self.state.outstanding = Some(work);
        self.state.counts.outages = self.state.counts.outages.saturating_add(1);
        let (count, retries_max) = (self.state.counts.outages, self.state.limits.unavailable_retries_max);
        if count > retries_max {
            let text = format!("{count} outages in a row: {reason}; resume when it is there again");
            return self.end_at_cap(CapReached { name: "unavailable_retries_max", text });
        }
        let wait_ms = self.outage_wait_ms(count, outage.retry_after_ms);
        let text = format!(
            "could not {verb}: {reason}; trying again in {} s ({count} of {retries_max})",
            wait_ms.div_ceil(1_000)
        );
        self.warn(text.clone());
        let until_ms = self.at_ms.saturating_add(wait_ms);
        self.wait(WaitFor::Outage, text, Some(until_ms));
    }

    /// What the service asked for or the doubled wait, whichever is longer. The service is not ours: a
    /// cap bounds what it may ask for.
    fn outage_wait_ms(&self, count: u32, asked_ms: Option<u32>) -> u64 {
        let limits = &self.state.limits;
        let factor = 1_u64.checked_shl(count.saturating_sub(1)).unwrap_or(u64::MAX);
        let doubled = limits.unavailable_wait_ms_min.saturating_mul(factor);
        doubled.max(asked_ms.map_or(0, u64::from)).min(limits.unavailable_wait_ms_max)
    }
}

/// Whether work of this kind can end so.
fn fits(job: &Job, report: &Report) -> bool {
    matches!(
        (job, report),
        (_, Report::Failed(_))
            | (Job::Plan { .. }, Report::Planned(_))
            | (Job::Pin { .. }, Report::Pinned { .. })
            | (Job::Generate { .. }, Report::Generated(_))
            | (Job::Judge { .. }, Report::Judged(_))
            | (Job::Commit { .. }, Report::Committed { .. })
            | (Job::Discard { .. }, Report::Discarded)
    )
}
