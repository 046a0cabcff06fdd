//! Thousands of random runs, each once undisturbed and once with a driver that is killed again and again: both must end
//! the same, and nothing may be requested twice, committed without a judgement or run for ever.
//!
//! `LONGHAUL_SCHEDULES` sets their number (default 1 000). A failure names its seed; `LONGHAUL_SEED` runs that one
//! alone and shows its events.

use crate::bench::{
    begin, denied, feature, limit, outage, outcome, plan, prepared, python_check, setup, used, verdict,
};
use longhaul_core::LimitHit;
use longhaul_core::event::Event;
use longhaul_core::work::{Criterion, FeatureSpec, FeatureStatus, Mark, OnFailure, Outcome, Plan, PlanStep, Synthesis};
use longhaul_harness::state::{Consent, Phase, Wait, WaitFor, is_complete};
use longhaul_harness::{
    Action, Choice, Dispatch, EndStatus, Feature, HarnessLimits, HarnessSetup, Input, PersonRequest, Reaction,
    RunState, Strategy, Trial, TrialOutcome, Work, WorkFailure, WorkKind, WorkReport, pending, step,
};
use std::collections::{BTreeMap, BTreeSet};

/// Inputs that one run may take. The caps below allow a few hundred, orders included.
const INPUTS_MAX: usize = 3_000;

/// Sessions side by side, at most.
const PARALLEL_MAX: u32 = 3;

#[test]
fn random_runs_end_within_their_caps_and_the_same_with_and_without_crashes() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("LONGHAUL_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("LONGHAUL_SCHEDULES").unwrap_or(1_000),
    };
    let mut ends = BTreeMap::new();
    let single = seeds.start() == seeds.end();
    for seed in seeds {
        let calm = std::panic::catch_unwind(|| simulate(seed)).unwrap_or_else(|_| panic!("seed {seed} failed"));
        *ends.entry(calm).or_insert(0) += 1;
    }
    // A simulation without progress would hold every invariant.
    for status in ["completed", "incomplete", "failed", "abandoned"] {
        assert!(single || ends.contains_key(status), "no run ended as {status}: {ends:?}");
    }
}

/// Both runs of a seed; the status that they end in.
fn simulate(seed: u64) -> &'static str {
    let calm = Driver::new(seed, false).run();
    let crashed = Driver::new(seed, true).run();
    assert_eq!(calm.state, crashed.state, "seed {seed}: a crash changed the state");
    assert_eq!(calm.events, crashed.events, "seed {seed}: a crash changed the events");
    assert_eq!(calm.completed, crashed.completed, "seed {seed}: a crash changed what was done");
    match calm.state.phase {
        Phase::Ended { status, .. } => status.as_str(),
        other => panic!("seed {seed}: not ended: {other:?}"),
    }
}

/// A linear congruential generator, with Knuth's constants; the low bits are weak and dropped.
struct Dice(u64);

impl Dice {
    /// For one question of one run: the answer is the same however the run got there.
    fn of(seed: u64, question: &str) -> Self {
        // FNV-1a, then a few throws to spread it.
        let hash = question
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        let mut dice = Self(hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for _ in 0..4 {
            dice.below(2);
        }
        dice
    }

    fn below(&mut self, sides: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(sides)).expect("below a u32")
    }

    fn one_in(&mut self, sides: u32) -> bool {
        self.below(sides) == 0
    }
}

/// The host of one run. Durable parts survive a kill; `queue` does not.
struct Driver {
    seed: u64,
    kills: Option<Dice>,
    /// True when a pause stops active work; otherwise the work runs to its end.
    stops_at_pause: bool,
    // Durable, the state as JSON.
    state: RunState,
    completed: BTreeMap<String, String>,
    asked_a_person: BTreeSet<String>,
    events: Vec<Event>,
    inputs: Vec<(u64, Input)>,
    orders: Vec<(usize, Input)>,
    // Lost in a kill.
    queue: Vec<Work>,
    // The test's own knowledge.
    now_ms: u64,
    taken: usize,
    issued: BTreeMap<String, Work>,
    accepted: BTreeSet<String>,
    called_off: BTreeSet<String>,
    passed: BTreeSet<String>,
}

impl Driver {
    fn new(seed: u64, killed: bool) -> Self {
        let state = RunState::new();
        Self {
            seed,
            kills: killed.then(|| Dice::of(seed, "kills")),
            stops_at_pause: Dice::of(seed, "pause").one_in(2),
            state,
            completed: BTreeMap::new(),
            asked_a_person: BTreeSet::new(),
            events: Vec::new(),
            inputs: Vec::new(),
            orders: orders(seed),
            queue: Vec::new(),
            now_ms: 1_000,
            taken: 0,
            issued: BTreeMap::new(),
            accepted: BTreeSet::new(),
            called_off: BTreeSet::new(),
            passed: BTreeSet::new(),
        }
    }

    fn run(mut self) -> Self {
        self.tell(begun(self.seed));
        while let Some(input) = self.next_input() {
            self.tell(input);
            assert!(self.inputs.len() < INPUTS_MAX, "no end in sight");
        }
        self.check_end();
        self.check_fold();
        self
    }

    /// The next input: an order that is due, the work in the queue, or the end of a wait.
    fn next_input(&mut self) -> Option<Input> {
        let ended = matches!(self.state.phase, Phase::Ended { .. });
        if self.orders.first().is_some_and(|(at, _)| *at <= self.taken || ended) {
            return Some(self.orders.remove(0).1);
        }
        if self.state.paused && (self.stops_at_pause || self.queue.is_empty()) {
            self.queue.clear();
            return Some(Input::Resume { retry_failing: false, limits: None });
        }
        if let Some(work) = self.first_to_end() {
            return Some(self.carry_out(&work));
        }
        self.end_of_wait()
    }

    /// The seed, not the queue, decides which parallel work ends first: a kill shuffles the queue.
    fn first_to_end(&mut self) -> Option<Work> {
        let seed = self.seed;
        let when = |work: &Work| Dice::of(seed, &format!("end of {}", work.key())).below(1_000);
        let (first, _) = self.queue.iter().enumerate().min_by_key(|(_, work)| (when(work), work.key()))?;
        Some(self.queue.remove(first))
    }

    fn end_of_wait(&mut self) -> Option<Input> {
        if matches!(self.state.phase, Phase::Ended { .. }) {
            return None;
        }
        let asks = |(_, wait): &(Option<&str>, &Wait)| matches!(wait.wait, WaitFor::Work | WaitFor::Plan);
        if let Some((feature, _)) = self.state.waits().find(asks) {
            let feature = feature.map(str::to_owned);
            return Some(Input::Answered { feature, answer: "yes".into() });
        }
        match self.state.wakes_at_ms() {
            Some(at_ms) => {
                self.now_ms = self.now_ms.max(at_ms);
                Some(Input::Woke)
            }
            None if self.state.waits().next().is_some() => Some(Input::Resume { retry_failing: false, limits: None }),
            None => panic!("nothing is going on: {:?}", self.state),
        }
    }

    /// Does the work, or finds that it was done before the kill.
    fn carry_out(&mut self, work: &Work) -> Input {
        let key = work.key();
        let mut dice = Dice::of(self.seed, &key);
        if matches!(work.job, WorkKind::Generate { .. }) && dice.one_in(10) && self.asked_a_person.insert(key.clone()) {
            return Input::Parked {
                key,
                question: "did it happen?".into(),
                wanted: PersonRequest::Effect("longhaul answer RUN --question q-1 --skip".into()),
            };
        }
        let has_no_room = Dice::of(self.seed, &format!("budget {key}")).one_in(15);
        if matches!(work.job, WorkKind::Generate { .. })
            && has_no_room
            && self.asked_a_person.insert(format!("{key} budget"))
        {
            let report = WorkReport::Failed(WorkFailure::Budget(LimitHit::new("cost_microdollars_max", 9, 8)));
            return Input::Done { key, used: used(1), report };
        }
        let tokens = dice.below(5);
        let report = report_on(work, &mut dice);
        let text = serde_json::to_string(&report).expect("JSON");
        let before = self.completed.insert(key.clone(), text.clone());
        assert!(before.is_none_or(|before| before == text), "the test's own outcomes depend on the key alone");
        Input::Done { key, used: used(tokens), report }
    }

    /// One step with every possible failure around it.
    fn tell(&mut self, input: Input) {
        if self.is_killed() {
            // Before the transaction: the step is lost, the effects of the work are not.
            let mut lost = self.state.clone();
            let _ = step(&mut lost, self.now_ms, input.clone());
            self.restart();
        }
        self.take(input.clone());
        if self.is_killed() {
            self.restart();
        }
        if self.kills.is_some() && matches!(input, Input::Done { .. }) {
            let again = step(&mut self.state, self.now_ms, input);
            assert!(matches!(again, Ok(Reaction::Ignored(_))), "a doubled report was taken: {again:?}");
        }
        self.hand_in_called_off();
    }

    fn is_killed(&mut self) -> bool {
        // A kill stops work too, so the two runs could not be compared there.
        let comparable = self.stops_at_pause || !self.state.paused;
        comparable && self.kills.as_mut().is_some_and(|dice| dice.one_in(4))
    }

    /// A new process: the stored state, and its pending work.
    fn restart(&mut self) {
        let loaded = RunState::from_json(&self.state.to_json()).expect("it loads");
        assert_eq!(loaded, self.state, "the state survives its JSON");
        self.state = loaded;
        self.queue.clear();
        for action in pending(&self.state) {
            if let Action::Work(work) = action {
                self.issue(work);
            }
        }
    }

    fn take(&mut self, input: Input) {
        if let Input::Done { key, .. } | Input::Parked { key, .. } = &input {
            // After a kill it was queued again, and this is its result.
            self.queue.retain(|work| work.key() != *key);
        }
        let before = self.state.clone();
        let reaction = step(&mut self.state, self.now_ms, input.clone());
        let Ok(Reaction::Acted(actions)) = reaction else {
            assert_eq!(before, self.state, "{reaction:?} changed the state");
            return;
        };
        self.taken += 1;
        self.now_ms += 1;
        self.inputs.push((self.now_ms - 1, input.clone()));
        self.note(&input, &before);
        actions.into_iter().for_each(|action| self.act(action));
        if matches!(self.state.phase, Phase::Ended { .. }) {
            // Work that a cap held back while it was active is stopped, and continues after a resume.
            self.queue.clear();
        }
        self.check_state();
    }

    /// Notes the consequences of an accepted input for later ones.
    fn note(&mut self, input: &Input, before: &RunState) {
        let Input::Done { key, report, .. } = input else { return };
        if let WorkReport::Failed(WorkFailure::Budget(_)) = report {
            // It continues under its key after a resume.
            return;
        }
        assert!(self.accepted.insert(key.clone()), "the report on {key} was taken twice");
        if self.called_off.contains(key) {
            return;
        }
        let awaited = before.lanes.iter().find(|lane| lane.work.key() == *key);
        let work = &awaited.expect("it was awaited").work;
        let id = work.feature().unwrap_or_default();
        match report {
            WorkReport::Judged(verdict) => {
                let feature = before.feature(id).expect("it is there");
                let is_changed =
                    awaited.and_then(|lane| lane.session.as_ref()).is_some_and(|session| session.is_changed);
                if verdict.passes(&feature.spec.criteria) && rests_on_something(feature, &work.job, is_changed) {
                    self.passed.insert(session_of(&work.name));
                }
            }
            WorkReport::Committed { .. } => {
                assert_eq!(self.state.feature(id).expect("it is there").status, FeatureStatus::Passing);
            }
            _ => {}
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Work(work) => self.issue(work),
            Action::Cancel { key } => {
                self.queue.retain(|work| work.key() != key);
                assert!(self.called_off.insert(key), "called off twice");
            }
            Action::Emit(event) => self.events.push(event),
            Action::Park(_) | Action::Finish { .. } => {}
        }
    }

    fn issue(&mut self, work: Work) {
        let key = work.key();
        assert!(!self.accepted.contains(&key), "{key} was asked for again after its report");
        assert!(!self.called_off.contains(&key), "{key} was asked for again after it was called off");
        // After a pause the same work is requested again; it continues and is not started twice.
        self.queue.retain(|queued| queued.key() != key);
        let beside = self.queue.iter().filter(|queued| queued.feature() == work.feature()).count();
        assert_eq!(beside, 0, "{key} is asked for beside {:?}", self.queue);
        if let WorkKind::Commit { .. } = work.job {
            assert!(self.passed.contains(&session_of(&work.name)), "{key} without a verdict that passes");
        }
        if self.state.setup.strategy == Strategy::Ask {
            let asks = matches!(
                work.job,
                WorkKind::Choose { .. }
                    | WorkKind::Plan { .. }
                    | WorkKind::Replan { .. }
                    | WorkKind::Synthesize { .. }
                    | WorkKind::Generate { .. }
            );
            assert!(asks, "an ask has no tree: {key}");
        }
        if let WorkKind::Generate { round, .. } | WorkKind::Judge { round, .. } = work.job {
            assert!(round <= self.state.limits.iterations_max, "{key} is beyond the last round");
        }
        let first = self.issued.entry(key).or_insert_with(|| work.clone());
        assert_eq!(*first, work, "the same key asks for the same, to the letter");
        self.queue.push(work);
    }

    /// Cancelled work still reports its usage.
    fn hand_in_called_off(&mut self) {
        let open: Vec<_> = self.called_off.difference(&self.accepted).cloned().collect();
        for key in open {
            let report = WorkReport::Failed(WorkFailure::Failed("cancelled".into()));
            self.take(Input::Done { key, used: used(1), report });
        }
    }

    fn check_state(&self) {
        let RunState { features, lanes, limits, counts, phase, paused, .. } = &self.state;
        let ended = matches!(phase, Phase::New | Phase::Ended { .. });
        // After a revert a resume chooses the next work.
        assert!(ended || *paused || !lanes.is_empty(), "it runs, and nothing is outstanding");
        // An order may lower the limit while more are active.
        assert!(lanes.len() <= PARALLEL_MAX as usize, "{} lanes", lanes.len());
        let planner = lanes.iter().filter(|lane| lane.session.is_none()).count();
        assert!(planner == 0 || lanes.len() == 1, "the planner is asked beside sessions");
        let slots: BTreeSet<_> = lanes.iter().filter_map(|lane| Some(lane.session.as_ref()?.slot)).collect();
        let sessions = lanes.iter().filter(|lane| lane.session.is_some()).count();
        assert_eq!(slots.len(), sessions, "two sessions share a tree: {lanes:?}");
        for lane in lanes {
            let of = lane.session.as_ref().map(|session| session.feature.as_str());
            assert_eq!(of, lane.work.feature(), "a lane works on the feature of its session");
        }
        assert!(counts.sessions <= limits.sessions_max);
        assert!(counts.edits <= limits.edits_max);
        for feature in features {
            assert_eq!(feature.status == FeatureStatus::Blocked, feature.blocked_by.is_some(), "{feature:?}");
        }
    }

    fn check_end(&self) {
        let Phase::Ended { status, summary } = &self.state.phase else { panic!("not ended") };
        if std::env::var_os("LONGHAUL_SEED").is_some() {
            eprintln!("{:#?}\n{summary}", self.events);
        }
        // Nothing may be left to do, including the clean-up after a dropped feature.
        let is_ask = self.state.setup.strategy == Strategy::Ask;
        let all =
            if is_ask { self.state.answer.is_some() && self.is_answered() } else { is_complete(&self.state.features) };
        let done = all && self.state.lanes.is_empty();
        assert_eq!(*status == EndStatus::Completed, done && *status != EndStatus::Abandoned);
        assert_eq!(*status == EndStatus::Failed, self.state.features.is_empty() && *status != EndStatus::Abandoned);
        assert!(!summary.is_empty());
        let told = self.events.iter().rev().find_map(|event| match event {
            Event::RunEnded { status, .. } => Some(status.as_str()),
            _ => None,
        });
        assert_eq!(told, Some(status.as_str()));
    }

    /// Each task of an ask is answered, dropped, or skipped by the plan.
    fn is_answered(&self) -> bool {
        let fine = |feature: &Feature| match feature.status {
            FeatureStatus::Passing => !feature.answer.is_empty(),
            FeatureStatus::Dropped => true,
            FeatureStatus::Failing => feature.on_failure == OnFailure::Skip,
            _ => false,
        };
        self.state.features.iter().all(fine)
    }

    fn check_fold(&self) {
        let mut folded = RunState::new();
        for (at_ms, input) in &self.inputs {
            let _ = step(&mut folded, *at_ms, input.clone());
        }
        assert_eq!(folded, self.state, "folding the inputs gives the stored state");
    }
}

/// No pass rests on vacuous checks alone, unless a person agreed to that.
fn rests_on_something(feature: &Feature, job: &WorkKind, is_changed: bool) -> bool {
    let WorkKind::Judge { criteria, .. } = job else { return false };
    let shows = |check: &String| is_changed && !feature.vacuous.contains(check);
    let is_evidence = |criterion: &Criterion| criterion.check.as_ref().is_none_or(shows);
    criteria.iter().any(is_evidence) || (is_changed && feature.consent == Some(Consent::Given))
}

/// The part of a key that stands for one session of one feature.
fn session_of(name: &str) -> String {
    let parts: Vec<_> = name.split('/').collect();
    let epoch = parts.get(1).is_some_and(|part| part.starts_with('e'));
    parts[..if epoch { 2 } else { 1 }].join("/")
}

fn begun(seed: u64) -> Input {
    let mut dice = Dice::of(seed, "setup");
    let strategy = if dice.one_in(2) { Strategy::Pipeline } else { Strategy::Session };
    let contract_by = dice.one_in(3).then(|| "testing".into());
    let strategy = if Dice::of(seed, "ask").one_in(3) { Strategy::Ask } else { strategy };
    let who = [Dispatch::Auto, Dispatch::Route, Dispatch::Agent("testing".into()), Dispatch::Plan, Dispatch::Plan];
    let dispatch = who[Dice::of(seed, "dispatch").below(5) as usize].clone();
    let checks_only = Dice::of(seed, "evaluator").one_in(4).then(|| "check-evaluator".to_owned());
    match begin(limits(seed)) {
        Input::Begin { run, goal, context, limits, .. } => Input::Begin {
            run,
            goal,
            context,
            setup: HarnessSetup { strategy, contract_by, dispatch, checks_only, ..setup() },
            limits,
        },
        other => other,
    }
}

fn limits(seed: u64) -> HarnessLimits {
    let mut dice = Dice::of(seed, "limits");
    HarnessLimits {
        iterations_max: 1 + dice.below(3),
        feature_attempts_max: 1 + dice.below(2),
        features_max: 6,
        sessions_max: 2 + dice.below(12),
        plan_attempts_max: 1 + dice.below(2),
        unavailable_retries_max: dice.below(4),
        repository_attempts_max: 1 + dice.below(3),
        failures_equal_max: 2 + dice.below(4),
        edits_max: 4,
        parallel_max: 1 + dice.below(PARALLEL_MAX),
        replans_max: dice.below(3),
        handoffs_max: dice.below(3),
        tokens_max: dice.one_in(3).then(|| u64::from(dice.below(60))),
        cost_microdollars_max: dice.one_in(4).then(|| u64::from(dice.below(120))),
        wall_ms_max: dice.one_in(3).then_some(1_000),
        ..HarnessLimits::default()
    }
}

/// Up to eight orders, each with the number of inputs after which it comes.
fn orders(seed: u64) -> Vec<(usize, Input)> {
    let mut dice = Dice::of(seed, "orders");
    let count = dice.below(9);
    let mut at: Vec<_> = (0..count).map(|_| 1 + dice.below(40) as usize).collect();
    at.sort_unstable();
    at.into_iter().map(|at| (at, order(&mut dice))).collect()
}

fn order(dice: &mut Dice) -> Input {
    let id = name(dice.below(7));
    let deps: Vec<_> = (0..dice.below(3)).map(|_| name(dice.below(7))).collect();
    let deps: Vec<_> = deps.iter().map(String::as_str).collect();
    let priority = u8::try_from(dice.below(12)).expect("small");
    match dice.below(31) {
        0..=2 => Input::PauseRequested,
        3..=5 => Input::Resume { retry_failing: dice.one_in(2), limits: None },
        6..=8 => Input::FeatureAdded { spec: FeatureSpec { priority, ..feature(&id, &deps) } },
        9..=12 => Input::FeatureEdited { spec: FeatureSpec { priority, ..feature(&id, &deps[..deps.len() / 2]) } },
        13..=15 => Input::FeatureDropped { feature: id },
        24 | 25 => Input::Steered { feature: dice.one_in(2).then_some(id), text: "the other way".into() },
        26 | 27 => Input::TaskCancelled { feature: id },
        28 => Input::WallUsedUp { spent_ms: u64::from(dice.below(2_000)) },
        29 | 30 => {
            let spec = FeatureSpec { instruction: "otherwise".into(), ..feature(&id, &deps[..deps.len() / 2]) };
            let steps = vec![PlanStep { spec, on_failure: OnFailure::default() }];
            Input::GoalReread { goal: "another goal".into(), steps, dropped: vec![name(dice.below(7))] }
        }
        23 => Input::Approved { key: format!("f-{id}/1/generate") },
        16 => Input::Answered { feature: Some(id), answer: "no".into() },
        17 => Input::Answered { feature: Some(id), answer: "done".into() },
        18 => Input::Woke,
        20 | 21 => Input::Reverted { features: vec![id], left: vec![], to: "0123456789".into(), kept_as: None },
        22 => Input::Regressed { features: vec![(id, "a check fails".into())] },
        _ if dice.one_in(3) => Input::Abandon { reason: "enough".into() },
        _ => Input::Resume {
            retry_failing: true,
            limits: Some(HarnessLimits { edits_max: 4, ..HarnessLimits::default() }),
        },
    }
}

fn name(number: u32) -> String {
    format!("f{number}")
}

fn report_on(work: &Work, dice: &mut Dice) -> WorkReport {
    if dice.one_in(12) {
        return WorkReport::Failed(outage(dice.one_in(2).then_some(60_000)));
    }
    match &work.job {
        WorkKind::Choose { choice: Choice::Path, .. } => {
            choice(dice, &["complex", "It is complex.", "simple", "what?"])
        }
        WorkKind::Choose { choice: Choice::Agent, .. } => {
            choice(dice, &["testing", "`code`", "both code and testing", ""])
        }
        WorkKind::Plan { goal } | WorkKind::Replan { goal, .. } => planned(goal.context["judged_by"] == "checks", dice),
        WorkKind::TryChecks { .. } if dice.one_in(8) => WorkReport::Failed(WorkFailure::Failed("no room".into())),
        WorkKind::TryChecks { proposed, .. } => {
            WorkReport::Tried(proposed.iter().map(|one| trial(one, dice)).collect())
        }
        WorkKind::Synthesize { .. } if dice.one_in(3) => WorkReport::Failed(limit()),
        WorkKind::Synthesize { .. } => WorkReport::Synthesized(synthesis()),
        WorkKind::Propose { .. } => WorkReport::Proposed { output: proposal(dice).to_owned() },
        WorkKind::Prepare { .. } if dice.one_in(16) => {
            WorkReport::Failed(if dice.one_in(2) { denied() } else { WorkFailure::Failed("it is broken".into()) })
        }
        WorkKind::Prepare { checks, .. } => {
            let first: Vec<_> = checks.iter().take(1).map(|check| check.name.as_str()).collect();
            prepared(if dice.one_in(2) { &first } else { &[] })
        }
        WorkKind::Merge { .. } if dice.one_in(12) => WorkReport::Failed(WorkFailure::Failed("no room".into())),
        WorkKind::Merge { .. } if dice.one_in(3) => WorkReport::Conflicted { files: vec!["a.txt".into()] },
        WorkKind::Merge { .. } => WorkReport::Merged { base: format!("c-{}", work.key()) },
        WorkKind::Generate { feature, .. } => generated(feature, dice),
        WorkKind::Agree { .. } if dice.one_in(6) => WorkReport::Failed(limit()),
        WorkKind::Agree { .. } => {
            let marks = [Mark::Pass, Mark::Fail, Mark::Unknown];
            WorkReport::Judged(verdict(work, marks[usize::try_from(dice.below(3)).expect("small")]))
        }
        WorkKind::Judge { .. } => match dice.below(10) {
            0 => WorkReport::Failed(limit()),
            1 => WorkReport::Failed(denied()),
            2..=4 => WorkReport::Judged(verdict(work, Mark::Fail)),
            5 => WorkReport::Judged(verdict(work, Mark::Unknown)),
            6 => WorkReport::Unfit { files: vec!["`git~1` has a name that git refuses".into(); 2] },
            _ => WorkReport::Judged(verdict(work, Mark::Pass)),
        },
        WorkKind::Commit { .. } if dice.one_in(8) => {
            WorkReport::Failed(WorkFailure::Failed("index.lock exists".into()))
        }
        WorkKind::Commit { .. } if dice.one_in(8) => {
            WorkReport::Committed { commit: None, files: vec![], protected: vec![] }
        }
        // Others commit, and each commit is one: it ends at some time.
        WorkKind::Commit { .. } if dice.one_in(4) => WorkReport::Moved,
        WorkKind::Commit { .. } => WorkReport::Committed {
            commit: Some(format!("c-{}", work.key())),
            files: vec!["a".into()],
            protected: vec![],
        },
        WorkKind::Discard { .. } if dice.one_in(12) => {
            WorkReport::Failed(WorkFailure::Failed("permission denied".into()))
        }
        WorkKind::Discard { .. } => WorkReport::Discarded,
    }
}

fn choice(dice: &mut Dice, words: &[&str; 4]) -> WorkReport {
    match dice.below(5) {
        4 => WorkReport::Failed(limit()),
        one => WorkReport::Chosen(words[one as usize].into()),
    }
}

fn generated(feature: &str, dice: &mut Dice) -> WorkReport {
    match dice.below(14) {
        0 => WorkReport::Failed(WorkFailure::Impossible("no such thing".into())),
        1 => WorkReport::Failed(WorkFailure::Blocked(format!("what is {feature}?"))),
        2 => WorkReport::Failed(denied()),
        3 => WorkReport::Failed(limit()),
        4 => WorkReport::Failed(WorkFailure::Failed("trap".into())),
        5 => WorkReport::Failed(WorkFailure::Limit(LimitHit::new("journal_entries_max", 1_001, 1_000))),
        6 => WorkReport::Generated(Outcome { confidence: Some(0.2), ..outcome("not sure") }),
        7 | 8 => WorkReport::Unchanged(outcome("it is all there")),
        _ => WorkReport::Generated(outcome("all tests pass")),
    }
}

fn proposal(dice: &mut Dice) -> &'static str {
    match dice.below(4) {
        0 => "no idea",
        1 => r#"{"criteria": [{"id": "works", "text": "anything goes"}]}"#,
        2 => r#"{"checks": [{"name": "more", "python": "assert True"}]}"#,
        _ => "{}",
    }
}

fn synthesis() -> Synthesis {
    Synthesis { answer: "{}".into(), confidence: Some(0.9), conflicts: vec![], unknowns: vec![] }
}

fn trial((feature, check): &(String, String), dice: &mut Dice) -> Trial {
    let outcome = match dice.below(4) {
        0 => TrialOutcome::CannotLoad("SyntaxError".into()),
        1 => TrialOutcome::Passes,
        _ => TrialOutcome::Fails,
    };
    Trial { feature: feature.clone(), check: check.clone(), outcome }
}

fn planned(checks_only: bool, dice: &mut Dice) -> WorkReport {
    match dice.below(12) {
        0 => WorkReport::Failed(WorkFailure::Blocked("what is meant?".into())),
        1 => WorkReport::Failed(WorkFailure::Failed("no JSON".into())),
        2 => WorkReport::Planned(plan(vec![])),
        3 => WorkReport::Planned(plan(vec![feature("f0", &["f1"]), feature("f1", &["f0"])])),
        _ => WorkReport::Planned(random_plan(checks_only, dice)),
    }
}

fn random_plan(checks_only: bool, dice: &mut Dice) -> Plan {
    let count = 1 + dice.below(5);
    let one = |number: u32, dice: &mut Dice| {
        let before = (0..number).filter(|_| dice.one_in(3)).map(name).collect();
        let checks = if checks_only || dice.one_in(3) { vec![python_check("t")] } else { vec![] };
        let priority = u8::try_from(dice.below(12)).expect("small");
        let by_check = Criterion { id: "t".into(), text: "it holds".into(), check: Some("t".into()) };
        let mut spec = FeatureSpec { priority, depends_on: before, checks, ..feature(&name(number), &[]) };
        // Decided by checks alone, as under an evaluator that has no other evidence.
        if !spec.checks.is_empty() && (checks_only || dice.one_in(2)) {
            spec.criteria = vec![by_check];
        }
        spec
    };
    let mut plan = plan((0..count).map(|number| one(number, dice)).collect());
    for step in &mut plan.steps {
        step.on_failure =
            [OnFailure::Retry(1), OnFailure::Skip, OnFailure::Replan, OnFailure::Abort][dice.below(4) as usize];
    }
    plan
}
