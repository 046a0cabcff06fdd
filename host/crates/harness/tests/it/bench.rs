//! A driver of one run for tests: it does what it is told, and writes down what was asked of it.

use longhaul_core::event::{Event, Used};
use longhaul_core::model::Usage;
use longhaul_core::work::{
    CheckBody, CheckSpec, Criterion, FeatureSpec, Issue, Judgement, Mark, OnFailure, Outcome, Plan, PlanStep, Verdict,
};
use longhaul_core::{Denial, LimitHit, Outage, RunId};
use longhaul_harness::{Action, Failure, HarnessLimits, Input, Reaction, Refusal, Report, Setup, State, Work, step};
use serde_json::json;

pub(crate) struct Bench {
    pub(crate) state: State,
    pub(crate) now_ms: u64,
    /// One line an action, since the last look.
    log: Vec<String>,
    pub(crate) last: Vec<Action>,
}

impl Bench {
    /// A run that waits for its plan.
    pub(crate) fn begun(limits: HarnessLimits) -> Self {
        let mut bench = Self { state: State::new(), now_ms: 1_000, log: vec![], last: vec![] };
        bench.tell(begin(limits));
        bench
    }

    /// A run with these features.
    #[track_caller]
    pub(crate) fn planned(limits: HarnessLimits, features: Vec<FeatureSpec>) -> Self {
        let mut bench = Self::begun(limits);
        bench.report(Report::Planned(plan(features)));
        bench.look();
        bench
    }

    /// Hands in an input that must be taken.
    #[track_caller]
    pub(crate) fn tell(&mut self, input: Input) {
        match self.try_tell(input) {
            Ok(Reaction::Acted(actions)) => {
                self.log.extend(actions.iter().map(show));
                self.last = actions;
            }
            other => panic!("not taken: {other:?}"),
        }
    }

    pub(crate) fn try_tell(&mut self, input: Input) -> Result<Reaction, Refusal> {
        step(&mut self.state, self.now_ms, input)
    }

    /// Reports on the outstanding work.
    #[track_caller]
    pub(crate) fn report(&mut self, report: Report) {
        let key = self.key();
        self.tell(Input::Done { key, used: used(1), report });
    }

    #[track_caller]
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.report(Report::Failed(failure));
    }

    #[track_caller]
    pub(crate) fn generated(&mut self) {
        self.report(Report::Generated(outcome("did it")));
    }

    /// The evaluator marks every criterion so.
    #[track_caller]
    pub(crate) fn judged(&mut self, mark: Mark) {
        let work = self.work();
        self.report(Report::Judged(verdict(&work, mark)));
    }

    #[track_caller]
    pub(crate) fn committed(&mut self) {
        let commit = Some(format!("c-{}", self.key()));
        self.report(Report::Committed { commit, files: vec!["a.txt".into()] });
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
        self.report(Report::Discarded);
    }

    #[track_caller]
    pub(crate) fn work(&self) -> Work {
        self.state.outstanding.clone().expect("work is outstanding")
    }

    #[track_caller]
    pub(crate) fn key(&self) -> String {
        self.work().key()
    }

    /// What was asked since the last look.
    pub(crate) fn look(&mut self) -> String {
        std::mem::take(&mut self.log).join("\n")
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

pub(crate) fn setup() -> Setup {
    Setup { agents: vec!["code".into(), "testing".into()], checks: vec!["cargo-test".into()] }
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

/// A verdict with this mark for every criterion that is asked for.
pub(crate) fn verdict(work: &Work, mark: Mark) -> Verdict {
    let longhaul_harness::Job::Judge { criteria, feature, .. } = &work.job else {
        panic!("nothing to judge: {work:?}")
    };
    let judgement = |criterion: &Criterion| Judgement { criterion: criterion.id.clone(), mark, why: "seen".into() };
    // Named by the feature, so that features do not fail alike.
    let issue = Issue { criterion: Some(criteria[0].id.clone()), text: format!("mend {feature}") };
    let issues = if mark == Mark::Pass { vec![] } else { vec![issue] };
    Verdict { judgements: criteria.iter().map(judgement).collect(), issues }
}

/// What an invocation used: `tokens` read, two microdollars each.
pub(crate) fn used(tokens: u32) -> Used {
    let usage = Usage { input_tokens: tokens, cost_microdollars: f64::from(tokens) * 2.0, ..Usage::default() };
    Used { fuel: 10, model_calls: 1, usage, ..Used::default() }
}

pub(crate) fn outage(retry_after_ms: Option<u32>) -> Failure {
    Failure::Unavailable(Outage { reason: "the model is down".into(), retry_after_ms })
}

pub(crate) fn denied() -> Failure {
    Failure::Denied(Denial { reason: "no network".into(), fix: "add hosts".into() })
}

pub(crate) fn limit() -> Failure {
    Failure::Limit(LimitHit::new("fuel_max", 11, 10))
}

/// One line an action.
pub(crate) fn show(action: &Action) -> String {
    match action {
        Action::Work(work) => format!("do {}", work.key()),
        Action::Cancel { key } => format!("cancel {key}"),
        Action::Park(park) => match park.until_ms {
            Some(until) => format!("park until {until}"),
            None => "park".into(),
        },
        Action::Finish { status, summary } => format!("finish {}: {summary}", status.as_str()),
        Action::Emit(event) => format!("- {}", show_event(event)),
    }
}

fn show_event(event: &Event) -> String {
    match event {
        Event::Planned { features, .. } => format!("planned {}", features.len()),
        Event::Feature { feature, status, why } => {
            let status = serde_json::to_value(status).expect("a word");
            format!("{feature} {}: {why}", status.as_str().unwrap_or_default())
        }
        Event::Judged { feature, round, passed, .. } => format!("judged {feature} round {round}: {passed}"),
        Event::Committed { feature, commit, files } => format!("committed {feature} {commit} {}", files.join(",")),
        Event::Parked { question, answer_with } => format!("asks: {question} [{answer_with}]"),
        Event::Paused => "paused".into(),
        Event::RunResumed => "resumed".into(),
        Event::Limit { name, text } => format!("limit {name}: {text}"),
        Event::VacuousCheck { feature, check } => format!("vacuous {feature} {check}"),
        Event::Warning { text } => format!("warning: {text}"),
        Event::RunEnded { status, .. } => format!("ended {status}"),
        other => format!("{other:?}"),
    }
}
