//! Carrying work out: a planner, an agent or an evaluator is called, checks are pinned, the tree is
//! committed or restored. What comes of it is handed back; nothing is stored here but journals.

mod orientation;
mod repository;
mod rushed;
mod troupe;

pub use repository::Native;

use super::bus::Bus;
use super::checks::PinnedChecks;
use super::proposals;
use super::record::{RunRecord, put_judged};
use crate::cast::{Cast, Part};
use crate::config::Config;
use crate::nobody::Nobody;
use crate::wiring::{ModelSet, World};
use longhaul_capabilities::{LogLine, Setup};
use longhaul_core::event::{Event, Used};
use longhaul_core::journal::{Finished, JournalError, Question};
use longhaul_core::store::Batch;
use longhaul_core::text::truncate;
use longhaul_core::tool::{CheckError, Checks};
use longhaul_core::work::{
    CheckSpec, Criterion, Goal, Outcome, Plan, RoleError, Rubric, StepResult, Subject, Synthesis, Task, Verdict,
};
use longhaul_core::{InvocationId, LimitHit, Outage, RunId};
use longhaul_engine::{CallError, Called, Cancel};
use longhaul_harness::{Failure, Job, Report, State, StepReport, Work};
use longhaul_journal::{Opened, Recorder};
use orientation::{Found, orientation};
use repository::Repository;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use troupe::{Team, Troupe};

/// Bytes of evidence that an evaluator sees, all files together.
const EVIDENCE_BYTES_MAX: usize = 200_000;

/// The end of an invocation, to be stored with the step that it leads to.
pub struct Closing {
    /// Its journal.
    pub recorder: Recorder,
    /// How it ended.
    pub finished: Finished,
}

/// How work ended.
pub enum End {
    /// The harness hears of it.
    Report(Report),
    /// A person is asked about an effect.
    Parked(Question),
    /// A person has to look, for example at a divergence.
    Stuck(String),
    /// A service is not there; the same work goes on later.
    Outage(Outage),
    /// It was called off.
    Cancelled,
}

/// Work that ended.
pub struct Ended {
    /// What it used.
    pub used: Used,
    /// How it ended.
    pub end: End,
    /// The end of its invocation, if that has ended.
    pub closing: Option<Closing>,
    /// What is stored with it.
    pub batch: Batch,
    announced: bool,
    /// The limit that ended the invocation, with plugin, export, used and max in words.
    limit: Option<(String, String)>,
    outcome: String,
    log: Vec<LogLine>,
    /// What people hear of the sub-agents that it asked, and of its conversations.
    sub_agents: Vec<Event>,
}

impl Ended {
    fn of(end: End) -> Self {
        Self {
            used: Used::default(),
            end,
            closing: None,
            batch: Batch::new(),
            announced: false,
            limit: None,
            outcome: String::new(),
            log: Vec::new(),
            sub_agents: Vec::new(),
        }
    }

    /// Work that a defect or the machine ended.
    pub fn failed(text: String) -> Self {
        Self::of(End::Report(Report::Failed(Failure::Failed(text))))
    }

    /// What people hear of it.
    pub fn events(&self, run: &RunId, key: &str) -> Vec<Event> {
        let mut events = self.sub_agents.clone();
        for line in self.log.iter().filter(|line| matches!(line.level.as_str(), "warn" | "error" | "stderr")).take(20) {
            events.push(Event::Warning { text: truncate(&format!("{key}: {}", line.text), 500) });
        }
        if let Some((name, text)) = &self.limit {
            events.push(Event::Limit { name: name.clone(), text: text.clone() });
        }
        if self.announced {
            events.push(Event::InvocationEnded {
                invocation: InvocationId::of_action(run, key),
                outcome: truncate(&self.outcome, 300),
                ok: matches!(self.end, End::Report(ref report) if !matches!(report, Report::Failed(_))),
                used: self.used,
            });
        }
        events
    }
}

/// What a finished invocation left in its journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept<T> {
    /// What the export returned.
    Returned(T),
    /// The error that it returned.
    Refused(RoleError),
    /// The limit that ended it.
    Limited(LimitHit),
    /// The trap that ended it.
    Trapped(String),
}

/// Where the work of one run is done.
pub struct Stage {
    world: Arc<World>,
    config: Arc<Config>,
    models: Arc<ModelSet>,
    record: RunRecord,
    bus: Bus,
    /// By number. The first is there from the start, the others when a session first needs them.
    desks: tokio::sync::Mutex<BTreeMap<u32, Arc<Desk>>>,
}

impl Stage {
    /// The stage of a run.
    pub async fn new(world: Arc<World>, record: RunRecord, bus: Bus) -> anyhow::Result<Self> {
        let config = Arc::new(record.config_now()?);
        let models = Arc::new(ModelSet::build(&config, &record.directory, &record.models)?);
        let stage = Self { world, config, models, record, bus, desks: tokio::sync::Mutex::default() };
        stage.desk(0).await?;
        Ok(stage)
    }

    /// The desk of that number, made when it is not there.
    async fn desk(&self, number: u32) -> anyhow::Result<Arc<Desk>> {
        let mut desks = self.desks.lock().await;
        if let Some(desk) = desks.get(&number) {
            return Ok(Arc::clone(desk));
        }
        let desk = Arc::new(Desk::open(self, number).await?);
        desks.insert(number, Arc::clone(&desk));
        Ok(desk)
    }

    /// The desk of a feature's session, and the commit that its work started from.
    async fn desk_of(&self, state: &State, work: &Work) -> anyhow::Result<(Arc<Desk>, Option<String>)> {
        let session = work.feature().and_then(|feature| state.session(feature));
        let desk = self.desk(session.map_or(0, |session| session.slot)).await?;
        Ok((desk, session.and_then(|session| session.base.clone())))
    }

    /// What people hear before work starts.
    pub fn announcement(&self, work: &Work) -> Option<Event> {
        let (table, export, round) = match &work.job {
            Job::Plan { .. } => ("planner".to_owned(), "planner.plan", 1),
            Job::Replan { .. } => ("planner".to_owned(), "planner.replan", 1),
            Job::Synthesize { .. } => ("planner".to_owned(), "planner.synthesize", 1),
            Job::Propose { agent, .. } => (format!("agents.{agent}"), "agent.run", 0),
            Job::Generate { agent, round, .. } => (format!("agents.{agent}"), "agent.run", *round),
            Job::Judge { round, .. } => ("evaluator".to_owned(), "evaluator.judge", *round),
            Job::Prepare { .. } | Job::Merge { .. } | Job::Commit { .. } | Job::Discard { .. } => return None,
        };
        Some(Event::InvocationStarted {
            invocation: InvocationId::of_action(&self.record.run, &work.key()),
            plugin: self.record.pins.get(&table).map_or(table, |pin| pin.plugin.clone()),
            export: export.to_owned(),
            feature: work.feature().map(str::to_owned),
            round,
        })
    }

    /// Carries one piece of work out.
    pub async fn perform(&self, work: &Work, state: &State, cancel: &Cancel) -> Ended {
        self.world.crash.reach("work.start");
        let done = self.carry_out(work, state, cancel).await;
        self.world.crash.reach("work.end");
        done.unwrap_or_else(|error| Ended::failed(format!("{error:#}")))
    }

    async fn carry_out(&self, work: &Work, state: &State, cancel: &Cancel) -> anyhow::Result<Ended> {
        let (desk, base) = self.desk_of(state, work).await?;
        // A session that an earlier version began, or one that was not prepared, is compared with the tip.
        let base = match base {
            Some(base) => base,
            None => desk.repository.tip().await?,
        };
        let place = Place { stage: self, desk: &desk, base: &base, work, state, cancel };
        match &work.job {
            Job::Plan { goal } => place.plan(goal.clone()).await,
            Job::Replan { goal, plan, results } => place.replan(goal.clone(), plan.clone(), results).await,
            Job::Synthesize { goal, results } => place.synthesize(goal.clone(), results).await,
            Job::Propose { agent, task, .. } => place.propose(agent, task.clone()).await,
            Job::Prepare { checks, .. } => place.prepare(checks).await,
            Job::Generate { agent, task, .. } => place.generate(agent, task.clone()).await,
            Job::Judge { feature, generated, instruction, criteria, .. } => {
                place.judge(feature, generated, instruction, criteria).await
            }
            Job::Merge { .. } => desk.repository.merge(&base).await,
            Job::Commit { message, .. } => desk.repository.commit(self, work, message, &base).await,
            Job::Discard { feature } => desk.repository.discard(feature, &base).await,
        }
    }

    fn invocation(&self, work: &Work) -> InvocationId {
        InvocationId::of_action(&self.record.run, &work.key())
    }

    /// The outcome of an agent, from its journal: the harness keeps only its summary.
    fn outcome_of(&self, key: &str) -> anyhow::Result<Outcome> {
        let invocation = InvocationId::of_action(&self.record.run, key);
        let finished = longhaul_journal::finished(&*self.world.store, &invocation)?;
        let kept: Option<Kept<Outcome>> =
            finished.map(|finished| serde_json::from_str(&finished.result)).transpose()?;
        match kept {
            Some(Kept::Returned(outcome)) => Ok(outcome),
            _ => anyhow::bail!("the journal of {invocation} has no output"),
        }
    }
}

/// One tree, and the parts of the run as they see it.
struct Desk {
    repository: Repository,
    cast: Arc<Cast>,
    troupe: Arc<Troupe>,
}

impl Desk {
    async fn open(stage: &Stage, number: u32) -> anyhow::Result<Self> {
        let Stage { world, config, models, record, bus, .. } = stage;
        let tree = world.home.tree_of(&record.run, number);
        let repository = Repository::open(world, record, tree.clone()).await?;
        let cast = Cast::load(Arc::clone(world), config, &record.pins, &record.directory, &tree).await?;
        let cast = Arc::new(cast);
        let (models, bus) = (Arc::clone(models), bus.clone());
        let troupe = Arc::new(Troupe { world: Arc::clone(world), cast: Arc::clone(&cast), models, bus });
        Ok(Self { repository, cast, troupe })
    }
}

/// One piece of work, and where it is done.
struct Place<'a> {
    stage: &'a Stage,
    desk: &'a Desk,
    /// The commit that what is in the tree is compared with.
    base: &'a str,
    work: &'a Work,
    state: &'a State,
    cancel: &'a Cancel,
}

impl Place<'_> {
    async fn plan(&self, mut goal: Goal) -> anyhow::Result<Ended> {
        let part = self.part("planner")?;
        goal.settings = part.settings.clone();
        let input = goal.clone();
        self.invoke(part, "planner.plan", &input, Arc::new(Nobody), Report::Planned, async |setup| {
            part.plugin.plan(setup, self.cancel, goal).await
        })
        .await
    }

    async fn replan(&self, mut goal: Goal, plan: Plan, results: &[StepReport]) -> anyhow::Result<Ended> {
        let part = self.part("planner")?;
        goal.settings = part.settings.clone();
        let results: Vec<_> = results.iter().map(|result| self.result_of(result)).collect();
        let input = (goal.clone(), plan.clone(), results.clone());
        self.invoke(part, "planner.replan", &input, Arc::new(Nobody), Report::Planned, async |setup| {
            part.plugin.replan(setup, self.cancel, goal, plan, results).await
        })
        .await
    }

    async fn synthesize(&self, mut goal: Goal, results: &[StepReport]) -> anyhow::Result<Ended> {
        let part = self.part("planner")?;
        goal.settings = part.settings.clone();
        let results: Vec<_> = results.iter().map(|result| self.result_of(result)).collect();
        let input = (goal.clone(), results.clone());
        self.invoke(part, "planner.synthesize", &input, Arc::new(Nobody), Report::Synthesized, async |setup| {
            part.plugin.synthesize(setup, self.cancel, goal, results).await
        })
        .await
    }

    /// With the output, which the harness does not keep. A step that never came to one has none.
    fn result_of(&self, report: &StepReport) -> StepResult {
        let outcome = report.generated.as_ref().and_then(|key| self.stage.outcome_of(key).ok());
        StepResult { step: report.step.clone(), passed: report.passed, outcome, issues: report.issues.clone() }
    }

    async fn propose(&self, agent: &str, task: Task) -> anyhow::Result<Ended> {
        let report = |outcome: Outcome| Report::Proposed { output: outcome.output };
        self.ask_agent(agent, task, Vec::new(), Vec::new(), report).await
    }

    async fn generate(&self, agent: &str, task: Task) -> anyhow::Result<Ended> {
        let (specs, vacuous) = self.pinned();
        self.ask_agent(agent, task, specs, vacuous, Report::Generated).await
    }

    async fn ask_agent(
        &self,
        agent: &str,
        mut task: Task,
        specs: Vec<CheckSpec>,
        vacuous: Vec<String>,
        report: impl FnOnce(Outcome) -> Report,
    ) -> anyhow::Result<Ended> {
        let part = self.part(&format!("agents.{agent}"))?;
        task.settings = part.settings.clone();
        let input = task.clone();
        let checks = Arc::new(self.checks(specs, vacuous));
        self.invoke(part, "agent.run", &input, checks, report, async |setup| {
            part.plugin.run(setup, self.cancel, task).await
        })
        .await
    }

    async fn judge(
        &self,
        feature: &str,
        generated: &str,
        instruction: &str,
        criteria: &[Criterion],
    ) -> anyhow::Result<Ended> {
        let part = self.part("evaluator")?;
        let repository = &self.desk.repository;
        let judged = repository.subject(self.base).await?;
        let outcome = self.stage.outcome_of(generated)?;
        let subject = Subject {
            instruction: instruction.to_owned(),
            output: outcome.output.clone(),
            evidence: repository.evidence(self.base, EVIDENCE_BYTES_MAX).await?,
        };
        let rubric = Rubric { criteria: criteria.to_vec(), settings: part.settings.clone() };
        let input = (subject.clone(), rubric.clone());
        let (specs, vacuous) = self.pinned();
        let checks = Arc::new(self.checks(specs, vacuous));
        let mut ended = self
            .invoke(part, "evaluator.judge", &input, checks, Report::Judged, async |setup| {
                part.plugin.judge(setup, self.cancel, subject, rubric).await
            })
            .await?;
        let agent = InvocationId::of_action(&self.stage.record.run, generated);
        ended.sub_agents.extend(rushed::sign(agent, &outcome, &ended.end, criteria));
        // What is committed later must be what was judged now.
        ended.batch = put_judged(ended.batch, &self.stage.record.run, feature, judged);
        Ok(ended)
    }

    /// Brings the tree to the branch's tip and runs each check once there: one that passes already proves
    /// nothing later.
    async fn prepare(&self, specs: &[CheckSpec]) -> anyhow::Result<Ended> {
        let (base, overwritten) = self.desk.repository.prepare().await?;
        let checks = self.checks(specs.to_vec(), Vec::new());
        let mut vacuous = Vec::new();
        for spec in specs {
            match checks.run(&spec.name).await {
                Ok(report) if report.passed => vacuous.push(spec.name.clone()),
                Ok(_) => {}
                Err(_) if self.cancel.is_cancelled() => return Ok(Ended::of(End::Cancelled)),
                // Nothing is wrong with the feature: somebody has to make room, and then it goes on.
                Err(CheckError::Unavailable(outage)) => return Ok(Ended::of(End::Outage(outage))),
                Err(error) => return Ok(Ended::failed(format!("check `{}` cannot run: {error}", spec.name))),
            }
        }
        let commits = self.desk.repository.log(orientation::COMMITS_MAX).await?;
        let wanted = self.work.feature().and_then(|id| self.state.feature(id));
        let wanted = wanted.map(|feature| format!("{} {}", feature.spec.title, feature.spec.instruction));
        let found = Found { wanted: &wanted.unwrap_or_default(), commits: &commits, overwritten: &overwritten };
        let orientation = orientation(&self.stage.world, &self.stage.record, &found)?;
        Ok(Ended::of(End::Report(Report::Prepared { base, vacuous, orientation })))
    }

    /// What the feature at hand is judged by.
    fn pinned(&self) -> (Vec<CheckSpec>, Vec<String>) {
        let found = self.work.feature().and_then(|feature| self.state.feature(feature));
        found.map(|feature| (feature.spec.checks.clone(), feature.vacuous.clone())).unwrap_or_default()
    }

    fn checks(&self, specs: Vec<CheckSpec>, vacuous: Vec<String>) -> PinnedChecks {
        // Before a session is prepared its tree is at the tip.
        let base = (!matches!(self.work.job, Job::Prepare { .. })).then_some(self.base);
        PinnedChecks {
            cast: Arc::clone(&self.desk.cast),
            config: Arc::clone(&self.stage.config),
            native: self.desk.repository.native(base),
            caller: self.stage.invocation(self.work),
            cancel: self.cancel.clone(),
            specs,
            vacuous,
        }
    }

    fn part(&self, table: &str) -> anyhow::Result<&Part> {
        self.desk.cast.part(table).ok_or_else(|| anyhow::anyhow!("there is no [{table}] in longhaul.toml"))
    }

    /// One invocation of a pure plugin: begun, or continued from its journal.
    async fn invoke<T: Serialize + DeserializeOwned + Words>(
        &self,
        part: &Part,
        export: &str,
        input: &impl Serialize,
        checks: Arc<dyn Checks>,
        report: impl FnOnce(T) -> Report,
        call: impl AsyncFnOnce(Setup) -> Called<Result<T, RoleError>>,
    ) -> anyhow::Result<Ended> {
        let (troupe, world) = (&self.desk.troupe, &self.stage.world);
        let invocation = self.stage.invocation(self.work);
        let recorder = match troupe.open(&invocation, part, export, input).await {
            Ok(Opened::Running(recorder)) => recorder,
            Ok(Opened::Finished { finished, .. }) => {
                let kept: Kept<T> = serde_json::from_str(&finished.result)?;
                return Ok(Ended::of(End::Report(reported(kept, report))));
            }
            Err(error) => return Ok(Ended::of(stuck(error))),
        };
        world.crash.reach("invocation.start");
        let team = Arc::new(Team::new(troupe, Arc::clone(&checks), self.cancel));
        let setup = troupe.setup(part, &recorder, checks, team.clone(), self.cancel);
        let called = call(setup).await;
        world.crash.reach("invocation.end");
        let heard = [team.take_events(), called.events.clone()].concat();
        let ended = ended(recorder, called, report, heard, world.clock.now_ms());
        let (proposed, batch) = proposals::tell(&*world.store, &invocation, ended.batch)?;
        Ok(Ended { sub_agents: [ended.sub_agents, proposed].concat(), batch, ..ended })
    }
}

fn ended<T: Serialize + Words>(
    recorder: Recorder,
    called: Called<Result<T, RoleError>>,
    report: impl FnOnce(T) -> Report,
    sub_agents: Vec<Event>,
    at_ms: u64,
) -> Ended {
    let log = called.log.clone();
    let used = called.used.plus(called.delegated);
    let (finished, concluded) = match finish(&recorder, called, at_ms) {
        Ok(finish) => finish,
        Err(error) => return Ended { log, ..Ended::of(unfinished(error)) },
    };
    let Concluded { kept, limit } = concluded;
    let outcome = words(&kept);
    Ended {
        used,
        end: End::Report(reported(kept, report)),
        closing: Some(Closing { recorder, finished }),
        batch: Batch::new(),
        announced: true,
        limit,
        outcome,
        log,
        sub_agents,
    }
}

/// How an invocation came to its end.
struct Concluded<T> {
    kept: Kept<T>,
    /// The limit that ended it, with plugin, export, used and max in words.
    limit: Option<(String, String)>,
}

/// What the journal keeps as the end of a call, or why it broke off without one.
fn finish<T: Serialize>(
    recorder: &Recorder,
    called: Called<Result<T, RoleError>>,
    at_ms: u64,
) -> Result<(Finished, Concluded<T>), CallError> {
    let Called { result, used, .. } = called;
    let interrupted = matches!(&result, Err(CallError::Limit { hit, .. }) if matches!(hit.name.as_str(), "cpu_ms_max" | "wall_ms_max"));
    // Returning while the journal still holds calls is a divergence like any other.
    if let (Ok(_), Err(error)) = (&result, recorder.check_end()) {
        return Err(CallError::Journal(error));
    }
    let limit = match &result {
        Err(error @ CallError::Limit { hit, .. }) => Some((hit.name.clone(), error.to_string())),
        _ => None,
    };
    let kept = match result {
        Ok(Ok(value)) => Kept::Returned(value),
        Ok(Err(error)) => Kept::Refused(error),
        Err(CallError::Limit { hit, .. }) => Kept::Limited(hit),
        Err(error @ CallError::Trapped { .. }) => Kept::Trapped(error.to_string()),
        Err(error) => return Err(error),
    };
    let result = serde_json::to_string(&kept).unwrap_or_default();
    let finished = Finished { result, fuel_used: used.fuel, interrupted, at_ms };
    Ok((finished, Concluded { kept, limit }))
}

/// How an invocation that has not ended broke off.
fn unfinished(error: CallError) -> End {
    match error {
        CallError::Parked(question) => End::Parked(question),
        CallError::Unavailable(outage) => End::Outage(outage),
        CallError::Cancelled => End::Cancelled,
        CallError::Journal(error) => stuck(error),
        other => End::Outage(Outage { reason: other.to_string(), retry_after_ms: None }),
    }
}

fn stuck(error: JournalError) -> End {
    match error {
        JournalError::Parked(question) => End::Parked(question),
        JournalError::Store(error) => End::Outage(Outage { reason: error.to_string(), retry_after_ms: None }),
        other => End::Stuck(other.to_string()),
    }
}

fn reported<T>(kept: Kept<T>, report: impl FnOnce(T) -> Report) -> Report {
    Report::Failed(match kept {
        Kept::Returned(value) => return report(value),
        Kept::Refused(RoleError::Impossible(text)) => Failure::Impossible(text),
        Kept::Refused(RoleError::Blocked(question)) => Failure::Blocked(question),
        Kept::Refused(RoleError::Denied(denial)) => Failure::Denied(denial),
        Kept::Refused(RoleError::Limit(hit)) | Kept::Limited(hit) => Failure::Limit(hit),
        Kept::Refused(RoleError::Unavailable(outage)) => Failure::Unavailable(outage),
        Kept::Refused(RoleError::Failed(text)) | Kept::Trapped(text) => Failure::Failed(text),
    })
}

/// What people read of a result, in one line.
pub trait Words {
    /// The line.
    fn words(&self) -> String;
}

impl Words for Plan {
    fn words(&self) -> String {
        format!("{} features", self.steps.len())
    }
}

impl Words for Synthesis {
    fn words(&self) -> String {
        self.answer.clone()
    }
}

impl Words for Outcome {
    fn words(&self) -> String {
        self.summary.clone()
    }
}

impl Words for Verdict {
    fn words(&self) -> String {
        let passed = self.judgements.iter().filter(|one| one.mark == longhaul_core::work::Mark::Pass).count();
        format!("{passed} of {} criteria pass", self.judgements.len())
    }
}

fn words<T: Words>(kept: &Kept<T>) -> String {
    match kept {
        Kept::Returned(value) => value.words(),
        Kept::Refused(error) => error.to_string(),
        Kept::Limited(hit) => hit.to_string(),
        Kept::Trapped(text) => text.clone(),
    }
}
