//! A driver of one run for tests: it follows the test, and logs the requested actions.

mod inputs;
mod log;
mod run_setup;

use expect_test::Expect;
use longhaul_core::event::WorkUsage;
use longhaul_core::model::Usage;
use longhaul_core::work::{
    CheckBody, CheckSpec, Criterion, FeatureSpec, Issue, Judgement, Mark, OnFailure, Outcome, Plan, PlanStep, Task,
    Verdict,
};
use longhaul_core::{Denial, LimitHit, Outage, RunId};
use longhaul_harness::{
    Action, HarnessLimits, HarnessSetup, Ignored, Input, OrderRefusal, Reaction, RunState, Work, WorkFailure, WorkKind,
    WorkReport, step,
};
use serde_json::json;

pub(crate) use inputs::{added, answered, dropped, edited, resume};
pub(crate) use run_setup::{run_of, run_with};

pub(crate) struct Bench {
    pub(crate) state: RunState,
    pub(crate) now_ms: u64,
    /// One line for each action, since the last look.
    log: Vec<String>,
    pub(crate) last: Vec<Action>,
    /// True when the test reports the trials of proposed checks itself; otherwise each fails there, as it should.
    pub(crate) tries_checks: bool,
}

impl Bench {
    /// A run that waits for its plan.
    pub(crate) fn begun(limits: HarnessLimits) -> Self {
        Self::begun_with(begin(limits))
    }

    pub(crate) fn begun_with(begin: Input) -> Self {
        let mut bench = Self { state: RunState::new(), now_ms: 1_000, log: vec![], last: vec![], tries_checks: false };
        bench.tell(begin);
        bench
    }

    /// A run with these features.
    #[track_caller]
    pub(crate) fn planned(limits: HarnessLimits, features: Vec<FeatureSpec>) -> Self {
        let mut bench = Self::begun(limits);
        bench.report(WorkReport::Planned(plan(features)));
        bench.look();
        bench
    }

    /// Sends an input that must be accepted.
    #[track_caller]
    pub(crate) fn tell(&mut self, input: Input) {
        match self.try_tell(input) {
            Ok(Reaction::Acted(actions)) => {
                self.log.extend(actions.iter().filter(|action| !log::is_of_course(action)).map(log::show));
                self.last = actions;
                self.prepare_what_has_no_checks();
            }
            other => panic!("not taken: {other:?}"),
        }
    }

    /// A tree without checks is prepared at once, and proposed ones are tried, so that a test contains only what it is
    /// about.
    fn prepare_what_has_no_checks(&mut self) {
        let tried = |action: &Action| match action {
            Action::Work(work @ Work { job: WorkKind::TryChecks { .. }, .. }) => Some(work.key()),
            _ => None,
        };
        if let Some(key) = self.last.iter().find_map(tried).filter(|_| !self.tries_checks) {
            return self.tell(Input::Done { key, used: WorkUsage::default(), report: WorkReport::Tried(vec![]) });
        }
        let prepare = |action: &Action| match action {
            Action::Work(work @ Work { job: WorkKind::Prepare { checks, .. }, .. }) if checks.is_empty() => {
                Some(work.key())
            }
            _ => None,
        };
        for key in self.last.clone().iter().filter_map(prepare) {
            self.tell(Input::Done { key, used: WorkUsage::default(), report: prepared(&[]) });
        }
    }

    /// Sends an input that must be refused with this text, and change nothing.
    #[track_caller]
    pub(crate) fn refuses(&mut self, input: Input, expected: Expect) {
        let before = self.state.clone();
        match self.try_tell(input) {
            Err(refusal) => expected.assert_eq(&refusal.to_string()),
            Ok(reaction) => panic!("not refused: {reaction:?}"),
        }
        assert_eq!(self.state, before, "a refusal changes nothing");
    }

    /// Sends an input that must be ignored for this reason, and change nothing.
    #[track_caller]
    pub(crate) fn ignores(&mut self, input: Input, expected: Ignored) {
        let before = self.state.clone();
        assert_eq!(self.try_tell(input), Ok(Reaction::Ignored(expected)));
        assert_eq!(self.state, before, "an ignored input changes nothing");
    }

    pub(crate) fn try_tell(&mut self, input: Input) -> Result<Reaction, OrderRefusal> {
        step(&mut self.state, self.now_ms, input)
    }

    /// Reports on the outstanding work, on that of the oldest lane if there are several.
    #[track_caller]
    pub(crate) fn report(&mut self, report: WorkReport) {
        let key = self.key();
        self.report_on(&key, report);
    }

    #[track_caller]
    pub(crate) fn report_on(&mut self, key: &str, report: WorkReport) {
        self.tell(Input::Done { key: key.into(), used: used(1), report });
    }

    #[track_caller]
    pub(crate) fn fail(&mut self, failure: WorkFailure) {
        self.report(WorkReport::Failed(failure));
    }

    #[track_caller]
    pub(crate) fn generated(&mut self) {
        self.report(WorkReport::Generated(outcome("did it")));
    }

    /// The evaluator gives every criterion this mark.
    #[track_caller]
    pub(crate) fn judged(&mut self, mark: Mark) {
        let work = self.work();
        self.report(WorkReport::Judged(verdict(&work, mark)));
    }

    #[track_caller]
    pub(crate) fn committed(&mut self) {
        let commit = Some(format!("c-{}", self.key()));
        self.report(WorkReport::Committed { commit, files: vec!["a.txt".into()], protected: vec![] });
    }

    /// One round that passes, with its commit.
    #[track_caller]
    pub(crate) fn pass(&mut self) {
        self.generated();
        self.judged(Mark::Pass);
        self.committed();
    }

    /// Rounds until the feature fails, and the clean-up.
    #[track_caller]
    pub(crate) fn exhaust(&mut self) {
        while !self.key().ends_with("/discard") {
            self.generated();
            self.judged(Mark::Fail);
        }
        self.report(WorkReport::Discarded);
    }

    #[track_caller]
    pub(crate) fn work(&self) -> Work {
        self.state.lanes.first().expect("work is outstanding").work.clone()
    }

    /// The work of a feature.
    #[track_caller]
    pub(crate) fn work_on(&self, feature: &str) -> Work {
        let lane = self.state.lanes.iter().find(|lane| lane.work.feature() == Some(feature));
        lane.expect("somebody works on it").work.clone()
    }

    #[track_caller]
    pub(crate) fn key(&self) -> String {
        self.work().key()
    }

    /// The task of the agent whose round is outstanding.
    #[track_caller]
    pub(crate) fn task(&self) -> Task {
        let WorkKind::Generate { task, .. } = self.work().job else { panic!("no round: {}", self.key()) };
        task
    }

    /// The requested actions since the last look.
    pub(crate) fn look(&mut self) -> String {
        std::mem::take(&mut self.log).join("\n")
    }

    /// Compares the requested actions since the last look; a round that passes and its commit are one line.
    #[track_caller]
    pub(crate) fn check_log(&mut self, expected: Expect) {
        expected.assert_eq(&log::shortened(&self.look()));
    }
}

pub(crate) fn begin(limits: HarnessLimits) -> Input {
    Input::Begin {
        run: RunId::from_text("r-1"),
        goal: "build it".into(),
        context: json!({"project": "p"}),
        setup: setup(),
        limits,
    }
}

pub(crate) fn setup() -> HarnessSetup {
    let agents = vec!["code".into(), "testing".into()];
    HarnessSetup { agents, checks: vec!["cargo-test".into()], ..HarnessSetup::default() }
}

pub(crate) fn prepared(vacuous: &[&str]) -> WorkReport {
    let vacuous = vacuous.iter().map(|name| (*name).into()).collect();
    WorkReport::Prepared { base: "c-0".into(), vacuous, orientation: json!({}) }
}

pub(crate) fn plan(steps: Vec<FeatureSpec>) -> Plan {
    let step = |spec| PlanStep { spec, on_failure: OnFailure::default() };
    Plan { steps: steps.into_iter().map(step).collect(), notes: "as asked".into() }
}

/// A feature of one criterion, without checks.
pub(crate) fn feature(id: &str, depends_on: &[&str]) -> FeatureSpec {
    FeatureSpec {
        id: id.into(),
        title: format!("Add {id}"),
        instruction: format!("write {id}"),
        category: "functional".into(),
        priority: 5,
        agent: None,
        criteria: vec![Criterion { id: "works".into(), text: "it works".into(), check: None }],
        checks: vec![],
        depends_on: depends_on.iter().map(|id| (*id).into()).collect(),
    }
}

pub(crate) fn python_check(name: &str) -> CheckSpec {
    CheckSpec { name: name.into(), body: CheckBody::Python("assert True".into()) }
}

pub(crate) fn outcome(summary: &str) -> Outcome {
    Outcome { output: "{}".into(), summary: summary.into(), confidence: Some(1.0), unknowns: vec![] }
}

/// A verdict with this mark for every criterion of the work.
pub(crate) fn verdict(work: &Work, mark: Mark) -> Verdict {
    let (WorkKind::Judge { criteria, feature, .. } | WorkKind::Agree { criteria, feature, .. }) = &work.job else {
        panic!("nothing to judge: {work:?}")
    };
    let judgement = |criterion: &Criterion| Judgement { criterion: criterion.id.clone(), mark, why: "seen".into() };
    // Named after the feature, so that features do not fail with equal texts.
    let issue = Issue { criterion: Some(criteria[0].id.clone()), text: format!("mend {feature}") };
    let issues = if mark == Mark::Pass { vec![] } else { vec![issue] };
    Verdict { judgements: criteria.iter().map(judgement).collect(), issues }
}

/// The usage of an invocation: `tokens` read, two microdollars each.
pub(crate) fn used(tokens: u32) -> WorkUsage {
    let usage = Usage { input_tokens: tokens, cost_microdollars: f64::from(tokens) * 2.0, ..Usage::default() };
    WorkUsage { fuel: 10, model_calls: 1, usage, ..WorkUsage::default() }
}

pub(crate) fn outage(retry_after_ms: Option<u32>) -> WorkFailure {
    WorkFailure::Unavailable(Outage { reason: "the model is down".into(), retry_after_ms })
}

pub(crate) fn denied() -> WorkFailure {
    WorkFailure::Denied(Denial { reason: "no network".into(), fix: "add hosts".into() })
}

pub(crate) fn limit() -> WorkFailure {
    WorkFailure::Limit(LimitHit::new("fuel_max", 11, 10))
}
