//! The consequences of a report on work.
//!
//! Each kind of failure has one consequence: an outage, or a day that its project used up, waits and retries; a
//! question or a refusal blocks the feature; a repository that cannot be written and a provider that refuses requests
//! permanently wait for a person; a full journal continues in a fresh invocation; and all else uses up a round. Only
//! [`Verdict::passes`] leads to a commit.

use super::{Ignored, Turn, plus};
use crate::action::{EndStatus, Work, WorkKind};
use crate::day;
use crate::evidence;
use crate::input::{Strategy, WorkFailure, WorkReport};
use crate::plan::{self, Accepted};
use crate::state::{BY_THE_RUN_BEFORE, BlockedBy, Cap, Consent, Feature, Lane, Phase, Session, WaitFor};
use crate::texts;
use longhaul_core::event::{Event, ProposedCriterion, WorkUsage};
use longhaul_core::text::count;
use longhaul_core::work::FeatureStatus::{Failing, NotStarted, Passing};
use longhaul_core::work::{Criterion, Issue, Judgement, Mark, Outcome, Plan, Verdict};
use longhaul_core::{LimitHit, Outage};
use std::collections::BTreeMap;

/// The limit of an invocation that is no failure: its agent continues in a fresh one.
const JOURNAL_FULL: &str = "journal_entries_max";

/// The commands that answer a question of the planner, and that one about a goal in a file.
const ANSWER: &str = "longhaul answer RUN --text ANSWER";
const ANSWER_OR_MEND: &str =
    "longhaul answer RUN --text ANSWER; or mend the goal's file, then: longhaul resume RUN --reread-goal";

/// The limit that ends a round which only fills journals.
const HANDOFFS: &str = "handoffs_max";

/// The subject of a note for the planner that gives the refusal of its plan.
pub(super) const PLAN_BEFORE: &str = "the plan before";

impl Turn<'_> {
    pub(super) fn done(&mut self, key: &str, used: WorkUsage, report: WorkReport) -> Option<Ignored> {
        if self.state.cancelled.remove(key) {
            // Cancelled work still counts its usage.
            self.state.used = plus(self.state.used, used);
            return None;
        }
        // Work that a service, a cap or the repository holds back was not started.
        let is_started = |lane: &Lane| lane.wait.as_ref().is_none_or(|wait| wait.wait == WaitFor::Work);
        let found = self.state.lanes.iter().position(|lane| lane.work.key() == key && is_started(lane));
        let Some(position) = found.filter(|_| self.state.phase == Phase::Running) else {
            return Some(Ignored::NotAwaited);
        };
        if !fits(&self.state.lanes[position].work.job, &report) {
            return Some(Ignored::WrongReport);
        }
        let Lane { session, work, .. } = self.state.lanes.remove(position);
        self.count(&work, used);
        match report {
            WorkReport::Failed(WorkFailure::Unavailable(outage)) => self.unavailable(session, work.again(), &outage),
            WorkReport::Failed(WorkFailure::Suspended(outage)) => self.unavailable(session, work, &outage),
            WorkReport::Failed(WorkFailure::Budget(hit)) => self.over_budget(session, work, &hit),
            WorkReport::Failed(failure @ WorkFailure::Rejected(_)) => self.rejected(session, work, &failure),
            WorkReport::Failed(failure) => {
                self.state.counts.outages = 0;
                self.failed(session, work, &failure);
            }
            report => {
                self.state.counts.outages = 0;
                self.succeeded(session, work, report);
            }
        }
        None
    }

    fn count(&mut self, work: &Work, used: WorkUsage) {
        self.state.used = plus(self.state.used, used);
        if let Some(feature) = work.feature().and_then(|id| self.state.feature_mut(id)) {
            feature.used = plus(feature.used, used);
        }
    }

    fn succeeded(&mut self, session: Option<Session>, work: Work, report: WorkReport) {
        let Some(session) = session else { return self.planner_succeeded(work, report) };
        match report {
            WorkReport::Proposed { output } => self.proposed(session, &output),
            WorkReport::Prepared { base, vacuous, orientation } => self.prepared(session, base, &vacuous, orientation),
            WorkReport::Generated(outcome) if self.state.is_ask() => self.task_answered(&session, &work, &outcome),
            WorkReport::Unchanged(outcome) if self.state.is_ask() => self.task_answered(&session, &work, &outcome),
            WorkReport::Generated(outcome) => self.generated(session, &work, &outcome, true),
            WorkReport::Unchanged(outcome) => self.generated(session, &work, &outcome, false),
            WorkReport::Judged(verdict) if matches!(work.job, WorkKind::Agree { .. }) => self.agreed(session, &verdict),
            WorkReport::Judged(verdict) => self.judged(session, &work, &verdict),
            WorkReport::Unfit { files } => {
                let refused = u32::from(matches!(work.job, WorkKind::Commit { .. }));
                self.unfit(Session { refusals: session.refusals.saturating_add(refused), ..session }, &files);
            }
            WorkReport::Moved => self.start_merge(session),
            WorkReport::Merged { base } => self.start_judge(Session { base: Some(base), ..session }),
            WorkReport::Conflicted { files } => self.conflicted(session, &files),
            WorkReport::Committed { commit, files, protected } => self.committed(&session, commit, files, protected),
            WorkReport::Discarded => self.discarded(&session),
            WorkReport::Chosen(_)
            | WorkReport::Planned(_)
            | WorkReport::Tried(_)
            | WorkReport::Synthesized(_)
            | WorkReport::Failed(_) => {}
        }
    }

    fn planner_succeeded(&mut self, work: Work, report: WorkReport) {
        match report {
            WorkReport::Chosen(words) => self.chosen(&work, &words),
            WorkReport::Planned(plan) if matches!(work.job, WorkKind::Replan { .. }) => self.replanned(work, plan),
            WorkReport::Planned(plan) => self.planned(work, plan),
            WorkReport::Tried(trials) => self.tried(work, &trials),
            WorkReport::Synthesized(synthesis) => self.synthesized(synthesis),
            _ => {}
        }
    }

    fn failed(&mut self, session: Option<Session>, work: Work, failure: &WorkFailure) {
        let text = self.line(&failure.text());
        match (session, &work.job) {
            (None, WorkKind::Choose { choice, .. }) => self.not_chosen(*choice, &text),
            (None, WorkKind::Synthesize { .. }) => self.not_synthesized(&text),
            (None, WorkKind::TryChecks { .. }) => self.not_tried(work, &text),
            (None, _) => self.plan_failed(work, failure, text),
            (Some(session), WorkKind::Propose { .. }) => self.not_proposed(session, &text),
            (Some(session), WorkKind::Agree { .. }) => self.not_agreed(session, &text),
            (Some(session), WorkKind::Prepare { .. }) => self.prepare_failed(session, failure, &text),
            (Some(session), WorkKind::Generate { .. }) => self.generate_failed(session, failure, &text),
            (Some(session), WorkKind::Judge { .. }) => self.judge_failed(session, &text),
            (Some(session), _) => self.repository_failed(session, work, &text),
        }
    }

    // The plan.

    fn planned(&mut self, work: Work, plan: Plan) {
        let notes = longhaul_core::text::truncate(&plan.notes, self.state.limits.text_bytes_max);
        match plan::accept(plan, &self.state.setup, &self.state.limits) {
            Ok(accepted) => self.try_or_take(work, accepted, notes),
            Err(error) => self.plan_refused(work, error.to_string()),
        }
    }

    pub(super) fn take_plan(&mut self, accepted: Accepted, notes: String, proposed: Vec<ProposedCriterion>) {
        let features = accepted.steps.iter().map(|step| (step.spec.id.clone(), step.spec.title.clone())).collect();
        self.plan_taken();
        self.state.features = accepted.steps.into_iter().map(|step| self.feature_of(step)).collect();
        self.emit(Event::Planned { features, notes, proposed });
        accepted.warnings.into_iter().for_each(|warning| self.warn(warning));
        self.advance();
    }

    /// A plan's handling of failures counts in a pipeline; a session has rules of its own.
    pub(super) fn feature_of(&self, step: longhaul_core::work::PlanStep) -> Feature {
        let mut feature = Feature::new(step.spec);
        if self.state.setup.strategy != Strategy::Session {
            feature.on_failure = step.on_failure;
        }
        feature
    }

    fn plan_failed(&mut self, work: Work, failure: &WorkFailure, text: String) {
        let WorkFailure::Blocked(question) = failure else { return self.plan_refused(work, text) };
        let question = self.line(question);
        let answer_with = if self.state.is_ask() { ANSWER } else { ANSWER_OR_MEND };
        self.ask(None, work.again(), WaitFor::Plan, &question, answer_with);
    }

    /// Asks the planner again while attempts are left, and gives it the reason.
    pub(super) fn plan_refused(&mut self, work: Work, why: String) {
        self.state.counts.plan_attempts = self.state.counts.plan_attempts.saturating_add(1);
        self.note_for_planner(PLAN_BEFORE.to_owned(), self.line(&why));
        if self.state.counts.plan_attempts < self.state.limits.plan_attempts_max {
            self.warn(format!("plan {} was refused: {why}", self.state.counts.plan_attempts));
            return self.start_plan(Some(work.again()));
        }
        if self.state.is_ask() && !self.state.is_planning() {
            return self.go_on_without_plan(&why);
        }
        // Held back, for a resume.
        self.state.lanes.push(Lane { session: None, work: work.again(), wait: None });
        let status = if self.state.is_planning() { EndStatus::Failed } else { EndStatus::Incomplete };
        self.end(status, format!("no plan: {why}"));
    }

    // The rounds.

    fn prepared(&mut self, session: Session, base: String, vacuous: &[String], orientation: serde_json::Value) {
        let Some(feature) = self.state.feature_mut(&session.feature) else { return };
        let own = feature.spec.checks.iter().map(|check| &check.name);
        let vacuous: Vec<_> = own.filter(|name| vacuous.contains(name)).cloned().collect();
        feature.vacuous.clone_from(&vacuous);
        let is_offered = feature.offered.is_some();
        if self.passed_before(&session.feature) {
            self.set_status(&session.feature, Passing, BY_THE_RUN_BEFORE);
            return self.end_session(&session);
        }
        for check in vacuous {
            self.emit(Event::VacuousCheck { feature: session.feature.clone(), check });
        }
        let session = Session { base: Some(base), orientation, ..session };
        if self.nobody_could_tell(&session.feature) {
            return self.ask_before_work(&session);
        }
        if is_offered { self.start_agree(session) } else { self.start_generate(session) }
    }

    /// Nothing was built yet, so there is nothing to discard.
    fn prepare_failed(&mut self, session: Session, failure: &WorkFailure, text: &str) {
        let why = format!("its checks could not be pinned: {text}");
        match failure {
            WorkFailure::Denied(_) => self.block(&session.feature, BlockedBy::Denial, &why),
            _ => self.note_failing(&session.feature, &why),
        }
        self.end_session(&session);
    }

    fn generated(&mut self, mut session: Session, work: &Work, outcome: &Outcome, is_changed: bool) {
        let summary = self.line(&outcome.summary);
        let Some(feature) = self.state.feature_mut(&session.feature) else { return };
        feature.summary.clone_from(&summary);
        feature.generated = Some(work.key());
        feature.confidence = outcome.confidence.filter(|confidence| (0.0..=1.0).contains(confidence));
        let is_vacuous = evidence::is_vacuous(&feature.spec.criteria, &feature.vacuous, true);
        session.earlier.push(summary);
        session.is_changed = is_changed;
        if is_vacuous && !is_changed { self.ask_whether_done(session) } else { self.start_judge(session) }
    }

    fn generate_failed(&mut self, mut session: Session, failure: &WorkFailure, text: &str) {
        match failure {
            WorkFailure::Blocked(question) => {
                let question = self.line(question);
                self.block(&session.feature, BlockedBy::Question, &question);
                self.start_discard(session);
            }
            WorkFailure::Denied(_) => {
                self.block(&session.feature, BlockedBy::Denial, text);
                self.start_discard(session);
            }
            WorkFailure::Impossible(_) => self.feature_failed(session, text),
            _ if self.state.is_ask() && !is_journal_full(failure) => self.feature_failed(session, text),
            WorkFailure::Limit(_) if is_journal_full(failure) => self.go_on_afresh(session),
            WorkFailure::Limit(_)
            | WorkFailure::Unavailable(_)
            | WorkFailure::Suspended(_)
            | WorkFailure::Budget(_)
            | WorkFailure::Rejected(_)
            | WorkFailure::Failed(_) => {
                session.earlier.push(format!("it ended without a result: {text}"));
                self.round_failed(session, vec![Issue::general(format!("the round ended early: {text}"))]);
            }
        }
    }

    /// Continues a round with a full journal in a fresh invocation, as often as allowed. A round that only fills
    /// journals would not succeed in another one either, so the feature fails.
    fn go_on_afresh(&mut self, mut session: Session) {
        let handoffs_max = self.state.limits.handoffs_max;
        if session.handoffs < handoffs_max {
            session.handoffs += 1;
            let text = format!("`{}` goes on in a fresh invocation ({})", session.feature, session.handoffs);
            self.emit(Event::Limit { name: JOURNAL_FULL.to_owned(), text });
            return self.start_generate(session);
        }
        let why = format!(
            "its agent filled a journal ({JOURNAL_FULL}) {} times in a row and came to no result; {HANDOFFS} is {handoffs_max}",
            handoffs_max.saturating_add(1)
        );
        let text = format!("`{}`: {why}", session.feature);
        self.emit(Event::Limit { name: HANDOFFS.to_owned(), text });
        self.feature_failed(session, &why);
    }

    fn judged(&mut self, session: Session, work: &Work, verdict: &Verdict) {
        let limits = &self.state.limits;
        let (issues_max, bytes_max) = (limits.issues_max, limits.text_bytes_max);
        let (Some((_, feature)), WorkKind::Judge { criteria, .. }) = (self.find(&session.feature), &work.job) else {
            return;
        };
        let is_consented = feature.consent == Some(Consent::Given) && session.is_changed;
        let shows = is_consented || !evidence::is_vacuous(criteria, &feature.vacuous, session.is_changed);
        let evidence = evidence::of_feature(feature, criteria, session.is_changed, &self.state.setup);
        let all_pass = verdict.passes(criteria);
        let judgements = texts::judgements(criteria, verdict, bytes_max);
        let issues = texts::issues(&judgements, verdict, issues_max, bytes_max);
        let (feature, round, passed) = (session.feature.clone(), session.round, all_pass && shows);
        self.emit(Event::Judged { feature, round, passed, judgements, evidence });
        match (all_pass, shows) {
            (true, true) => self.start_commit(session),
            (true, false) => self.ask_whether_done(session),
            (false, _) => self.round_failed(session, issues),
        }
    }

    fn judge_failed(&mut self, session: Session, text: &str) {
        self.not_judged(session, vec![Issue::general(format!("the evaluator gave no verdict: {text}"))]);
    }

    /// The agent gets each file, as many as of an evaluator's issues.
    fn unfit(&mut self, session: Session, files: &[String]) {
        let limits = &self.state.limits;
        let (issues_max, bytes_max) = (limits.issues_max, limits.text_bytes_max);
        let issue = |file: &String| Issue::general(texts::line(&format!("cannot be committed: {file}"), bytes_max));
        let issues: Vec<Issue> = files.iter().take(issues_max).map(issue).collect();
        let first = issues.first().map_or_else(String::new, |issue| issue.text.clone());
        let more = if files.len() > 1 { format!(" (and {} more)", files.len() - 1) } else { String::new() };
        self.warn(format!("`{}` round {}: {first}{more}", session.feature, session.round));
        self.not_judged(session, issues);
    }

    /// Like a verdict with only unknown marks: the round is used, and nothing passes.
    fn not_judged(&mut self, session: Session, issues: Vec<Issue>) {
        let why = issues.first().map_or_else(String::new, |issue| issue.text.clone());
        let Some((_, feature)) = self.find(&session.feature) else { return };
        let unknown = |criterion: &Criterion| Judgement {
            criterion: criterion.id.clone(),
            mark: Mark::Unknown,
            why: why.clone(),
        };
        let judgements = feature.spec.criteria.iter().map(unknown).collect();
        let (feature, round) = (session.feature.clone(), session.round);
        self.emit(Event::Judged { feature, round, passed: false, judgements, evidence: BTreeMap::new() });
        self.round_failed(session, issues);
    }

    /// Starts the next round with the issues, or fails the feature after the last.
    fn round_failed(&mut self, mut session: Session, issues: Vec<Issue>) {
        let first = issues.first().map_or("the evaluator named no issue", |issue| issue.text.as_str());
        let (first, round) = (self.line(first), session.round);
        if let Some(feature) = self.state.feature_mut(&session.feature) {
            let did = session.earlier.last().map_or("", String::as_str);
            feature.remember(format!("session {} round {round}: {did}; not passed: {first}", feature.sessions));
            feature.issues.clone_from(&issues);
        }
        if round < self.state.limits.iterations_max {
            session.round += 1;
            session.handoffs = 0;
            session.feedback = issues;
            return self.start_generate(session);
        }
        let rounds = count(round as usize, "round");
        self.feature_failed(session, &format!("not passed after {rounds} (iterations_max): {first}"));
    }

    fn feature_failed(&mut self, session: Session, why: &str) {
        self.note_failing(&session.feature, why);
        self.start_discard(session);
    }

    fn note_failing(&mut self, id: &str, why: &str) {
        self.set_status(id, Failing, why);
        let counts = &mut self.state.counts;
        counts.failures_equal = if counts.failure_last == why { counts.failures_equal.saturating_add(1) } else { 1 };
        why.clone_into(&mut counts.failure_last);
    }

    // The repository.

    /// Sent back to be built on the branch's present tip. It passed, so no attempt is counted.
    fn conflicted(&mut self, session: Session, files: &[String]) {
        let why = format!("passed, but the branch changed the same lines of {}", texts::named_files(files));
        let why = self.line(&why);
        if let Some(feature) = self.state.feature_mut(&session.feature) {
            feature.remember(format!("session {}: {why}", feature.sessions));
        }
        self.set_status(&session.feature, NotStarted, &why);
        self.start_discard(session);
    }

    fn committed(&mut self, session: &Session, commit: Option<String>, files: Vec<String>, protected: Vec<String>) {
        self.state.counts.repository_failures = 0;
        self.state.counts.failures_equal = 0;
        self.state.counts.failure_last.clear();
        let why = if commit.is_some() { "all checks passed" } else { "all checks passed; nothing had changed" };
        let id = session.feature.as_str();
        if let Some(feature) = self.state.feature_mut(id) {
            feature.commit.clone_from(&commit);
            feature.files.clone_from(&files);
            feature.issues.clear();
        }
        if let Some(commit) = commit {
            self.emit(Event::Committed { feature: id.to_owned(), commit, files, protected });
        }
        self.set_status(id, Passing, why);
        self.end_session(session);
    }

    fn discarded(&mut self, session: &Session) {
        self.state.counts.repository_failures = 0;
        self.end_session(session);
    }

    fn repository_failed(&mut self, session: Session, work: Work, text: &str) {
        let (verb, id) = (work.job.verb(), session.feature.clone());
        let counts = &mut self.state.counts;
        counts.repository_failures = counts.repository_failures.saturating_add(1);
        let count = counts.repository_failures;
        if count >= self.state.limits.repository_attempts_max {
            let text = format!("to {verb} feature `{id}` failed {count} times: {text}; mend the repository and resume");
            return self.hold_at_cap(Some(session), work.again(), Cap::RepositoryAttemptsMax, text);
        }
        let question = format!("could not {verb} feature `{id}`: {text}; mend the repository, then resume");
        self.ask(Some(session), work.again(), WaitFor::Repository, &question, "longhaul resume RUN");
    }

    // Budget.

    /// Like a cap that is found before the work starts: it continues after a resume with a higher one. A cap of the
    /// project's day frees itself.
    fn over_budget(&mut self, session: Option<Session>, work: Work, hit: &LimitHit) {
        if day::CAPS.contains(&hit.name.as_str()) {
            return self.over_day(session, work, hit);
        }
        let cap = Cap::of_ledger(&hit.name).unwrap_or(Cap::CostMicrodollarsMax);
        let name = cap.as_str();
        let table = if self.state.is_ask() { "[ask.limits]" } else { "[run.limits]" };
        let text = format!(
            "the next call would take the run to {} of {} ({name}); raise {name} under {table} and resume",
            hit.used, hit.max
        );
        self.hold_at_cap(session, work, cap, text);
    }

    /// Waits for the next day, as for a service that is away, and uses up none of its retries. A refusal of several
    /// lanes for one day is told once.
    fn over_day(&mut self, session: Option<Session>, work: Work, hit: &LimitHit) {
        let until_ms = day::wait_until_ms(self.at_ms);
        let LimitHit { name, used, max } = hit;
        let run = self.state.run.as_ref().map_or("RUN", |run| run.as_str());
        let text = format!(
            "the project used up its day: the next call would take it to {used} of {max} ({name}); it goes on at 00:00 \
             UTC, or after you raise {name} under [project] of longhaul.toml, with: longhaul resume {run}"
        );
        let is_told = self.state.waits().any(|(_, wait)| wait.park.until_ms == Some(until_ms));
        if !is_told {
            self.emit(Event::Limit { name: name.clone(), text: text.clone() });
        }
        self.hold(session, work, WaitFor::Outage, text, Some(until_ms));
    }

    // Providers.

    /// Uses no round and is not retried automatically: the provider would refuse again. A refusal of several lanes for
    /// one reason is asked once.
    fn rejected(&mut self, session: Option<Session>, work: Work, failure: &WorkFailure) {
        let question = self.line(&format!("could not {}: {}", work.job.verb(), failure.text()));
        let is_same = |lane: &Lane| {
            lane.wait.as_ref().is_some_and(|wait| wait.wait == WaitFor::Provider && wait.park.reason == question)
        };
        if self.state.lanes.iter().any(is_same) {
            return self.hold(session, work, WaitFor::Provider, question, None);
        }
        self.ask(session, work, WaitFor::Provider, &question, "longhaul resume RUN");
    }

    // Outages.

    /// Uses no round: waits, longer each time, and retries the same work: under a new key when the invocation has ended
    /// in the outage, under its own when it was only interrupted and can continue.
    fn unavailable(&mut self, session: Option<Session>, work: Work, outage: &Outage) {
        let reason = self.line(&outage.reason);
        let verb = work.job.verb();
        self.state.counts.outages = self.state.counts.outages.saturating_add(1);
        let (count, retries_max) = (self.state.counts.outages, self.state.limits.unavailable_retries_max);
        if count > retries_max {
            let text = format!("{count} outages in a row: {reason}; resume when it is there again");
            return self.hold_at_cap(session, work, Cap::UnavailableRetriesMax, text);
        }
        let wait_ms = self.outage_wait_ms(count, outage.retry_after_ms);
        let text = format!(
            "could not {verb}: {reason}; trying again in {} s ({count} of {retries_max}), or at once with: longhaul resume {}",
            wait_ms.div_ceil(1_000),
            self.state.run.as_ref().map_or("RUN", |run| run.as_str()),
        );
        self.warn(text.clone());
        let until_ms = self.at_ms.saturating_add(wait_ms);
        self.hold(session, work, WaitFor::Outage, text, Some(until_ms));
    }

    /// The wait that the service asked for or the doubled wait, whichever is longer. The service is not trusted: a cap
    /// bounds its request.
    fn outage_wait_ms(&self, count: u32, asked_ms: Option<u32>) -> u64 {
        let limits = &self.state.limits;
        let factor = 1_u64.checked_shl(count.saturating_sub(1)).unwrap_or(u64::MAX);
        let doubled = limits.unavailable_wait_ms_min.saturating_mul(factor);
        doubled.max(asked_ms.map_or(0, u64::from)).min(limits.unavailable_wait_ms_max)
    }
}

fn is_journal_full(failure: &WorkFailure) -> bool {
    matches!(failure, WorkFailure::Limit(hit) if hit.name == JOURNAL_FULL)
}

/// True when work of this kind can end in this report.
fn fits(job: &WorkKind, report: &WorkReport) -> bool {
    matches!(
        (job, report),
        (_, WorkReport::Failed(_))
            | (WorkKind::Choose { .. }, WorkReport::Chosen(_))
            | (WorkKind::Plan { .. } | WorkKind::Replan { .. }, WorkReport::Planned(_))
            | (WorkKind::Synthesize { .. }, WorkReport::Synthesized(_))
            | (WorkKind::Propose { .. }, WorkReport::Proposed { .. })
            | (WorkKind::Prepare { .. }, WorkReport::Prepared { .. })
            | (WorkKind::TryChecks { .. }, WorkReport::Tried(_))
            | (WorkKind::Generate { .. }, WorkReport::Generated(_) | WorkReport::Unchanged(_))
            | (WorkKind::Judge { .. } | WorkKind::Agree { .. }, WorkReport::Judged(_))
            | (WorkKind::Judge { .. } | WorkKind::Commit { .. }, WorkReport::Unfit { .. })
            | (WorkKind::Merge { .. }, WorkReport::Merged { .. } | WorkReport::Conflicted { .. })
            | (WorkKind::Commit { .. }, WorkReport::Committed { .. } | WorkReport::Moved)
            | (WorkKind::Discard { .. }, WorkReport::Discarded)
    )
}
