//! Carrying work out: a planner, an agent or an evaluator is called, checks are pinned, the tree is
//! committed or restored. What comes of it is handed back; nothing is stored here but journals.

mod repository;
mod troupe;

pub use repository::Native;

use super::bus::Bus;
use super::checks::PinnedChecks;
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
use longhaul_core::work::{CheckSpec, Outcome, Plan, RoleError, Rubric, Subject, Verdict};
use longhaul_core::{InvocationId, LimitHit, Outage, RunId};
use longhaul_engine::{CallError, Called, Cancel};
use longhaul_harness::{Failure, Job, Report, State, Work};
use longhaul_journal::{Opened, Recorder};
use repository::Repository;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
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
    /// What people hear of the sub-agents that it asked.
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
    cast: Arc<Cast>,
    config: Arc<Config>,
    troupe: Arc<Troupe>,
    record: RunRecord,
    repository: Repository,
}

impl Stage {
    /// The stage of a run.
    pub async fn new(world: Arc<World>, record: RunRecord, bus: Bus) -> anyhow::Result<Self> {
        let config = record.config_now()?;
        let tree = world.home.tree(&record.run);
        let repository = Repository::open(&world, &record).await?;
        let cast = Cast::load(Arc::clone(&world), &config, &record.pins, &record.directory, &tree).await?;
        let cast = Arc::new(cast);
        let models = Arc::new(ModelSet::build(&config, &record.directory, &record.models)?);
        let troupe = Arc::new(Troupe { world: Arc::clone(&world), cast: Arc::clone(&cast), models, bus });
        Ok(Self { world, cast, config: Arc::new(config), troupe, record, repository })
    }

    /// What people hear before work starts.
    pub fn announcement(&self, work: &Work) -> Option<Event> {
        let (table, export, round) = match &work.job {
            Job::Plan { .. } => ("planner".to_owned(), "planner.plan", 1),
            Job::Generate { agent, round, .. } => (format!("agents.{agent}"), "agent.run", *round),
            Job::Judge { round, .. } => ("evaluator".to_owned(), "evaluator.judge", *round),
            Job::Pin { .. } | Job::Commit { .. } | Job::Discard { .. } => return None,
        };
        Some(Event::InvocationStarted {
            invocation: InvocationId::of_action(&self.record.run, &work.key()),
            plugin: self.cast.part(&table).map_or(table, |part| part.plugin.name().to_owned()),
            export: export.to_owned(),
            feature: work.feature().map(str::to_owned),
            round,
        })
    }

    /// Carries one piece of work out.
    pub async fn perform(&self, work: &Work, state: &State, cancel: &Cancel) -> Ended {
        self.world.crash.reach("work.start");
        let done = match &work.job {
            Job::Plan { goal } => self.plan(work, goal.clone(), cancel).await,
            Job::Pin { checks, .. } => self.pin(work, checks, cancel).await,
            Job::Generate { feature, agent, task, .. } => {
                self.generate(work, state, feature, agent, task.clone(), cancel).await
            }
            Job::Judge { feature, generated, .. } => self.judge(work, state, feature, generated, cancel).await,
            Job::Commit { message, .. } => self.repository.commit(self, work, message).await,
            Job::Discard { feature } => self.repository.discard(feature).await,
        };
        self.world.crash.reach("work.end");
        done.unwrap_or_else(|error| Ended::failed(format!("{error:#}")))
    }

    async fn plan(&self, work: &Work, mut goal: longhaul_core::work::Goal, cancel: &Cancel) -> anyhow::Result<Ended> {
        let part = self.part("planner")?;
        goal.settings = part.settings.clone();
        let input = goal.clone();
        let checks = Arc::new(Nobody);
        self.invoke(work, part, "planner.plan", &input, checks, cancel, Report::Planned, async |setup| {
            part.plugin.plan(setup, cancel, goal).await
        })
        .await
    }

    async fn generate(
        &self,
        work: &Work,
        state: &State,
        feature: &str,
        agent: &str,
        mut task: longhaul_core::work::Task,
        cancel: &Cancel,
    ) -> anyhow::Result<Ended> {
        let part = self.part(&format!("agents.{agent}"))?;
        task.settings = part.settings.clone();
        let input = task.clone();
        let checks = Arc::new(self.checks(work, state, feature, cancel));
        self.invoke(work, part, "agent.run", &input, checks, cancel, Report::Generated, async |setup| {
            part.plugin.run(setup, cancel, task).await
        })
        .await
    }

    async fn judge(
        &self,
        work: &Work,
        state: &State,
        feature: &str,
        generated: &str,
        cancel: &Cancel,
    ) -> anyhow::Result<Ended> {
        let Job::Judge { instruction, criteria, .. } = &work.job else { anyhow::bail!("not a judgement") };
        let part = self.part("evaluator")?;
        let judged = self.repository.subject().await?;
        let subject = Subject {
            instruction: instruction.clone(),
            output: self.output_of(generated)?,
            evidence: self.repository.evidence(EVIDENCE_BYTES_MAX).await?,
        };
        let rubric = Rubric { criteria: criteria.clone(), settings: part.settings.clone() };
        let input = (subject.clone(), rubric.clone());
        let checks = Arc::new(self.checks(work, state, feature, cancel));
        let mut ended = self
            .invoke(work, part, "evaluator.judge", &input, checks, cancel, Report::Judged, async |setup| {
                part.plugin.judge(setup, cancel, subject, rubric).await
            })
            .await?;
        // What is committed later must be what was judged now.
        ended.batch = put_judged(ended.batch, &self.record.run, feature, judged);
        Ok(ended)
    }

    /// Runs each check once on the base tree: one that passes already proves nothing later.
    async fn pin(&self, work: &Work, specs: &[CheckSpec], cancel: &Cancel) -> anyhow::Result<Ended> {
        let checks = PinnedChecks { specs: specs.to_vec(), vacuous: Vec::new(), ..self.no_checks(work, cancel) };
        let mut vacuous = Vec::new();
        for spec in specs {
            match checks.run(&spec.name).await {
                Ok(report) if report.passed => vacuous.push(spec.name.clone()),
                Ok(_) => {}
                Err(_) if cancel.is_cancelled() => return Ok(Ended::of(End::Cancelled)),
                // Nothing is wrong with the feature: somebody has to make room, and then it goes on.
                Err(CheckError::Unavailable(outage)) => return Ok(Ended::of(End::Outage(outage))),
                Err(error) => return Ok(Ended::failed(format!("check `{}` cannot run: {error}", spec.name))),
            }
        }
        Ok(Ended::of(End::Report(Report::Pinned { vacuous })))
    }

    fn checks(&self, work: &Work, state: &State, feature: &str, cancel: &Cancel) -> PinnedChecks {
        let found = state.feature(feature);
        PinnedChecks {
            specs: found.map(|feature| feature.spec.checks.clone()).unwrap_or_default(),
            vacuous: found.map(|feature| feature.vacuous.clone()).unwrap_or_default(),
            ..self.no_checks(work, cancel)
        }
    }

    fn no_checks(&self, work: &Work, cancel: &Cancel) -> PinnedChecks {
        PinnedChecks {
            cast: Arc::clone(&self.cast),
            config: Arc::clone(&self.config),
            native: self.native(),
            caller: self.invocation(work),
            cancel: cancel.clone(),
            specs: Vec::new(),
            vacuous: Vec::new(),
        }
    }

    fn native(&self) -> Arc<Native> {
        self.repository.native()
    }

    fn part(&self, table: &str) -> anyhow::Result<&Part> {
        self.cast.part(table).ok_or_else(|| anyhow::anyhow!("there is no [{table}] in longhaul.toml"))
    }

    fn invocation(&self, work: &Work) -> InvocationId {
        InvocationId::of_action(&self.record.run, &work.key())
    }

    /// The output of an agent, from its journal: the harness keeps only its summary.
    fn output_of(&self, key: &str) -> anyhow::Result<String> {
        let invocation = InvocationId::of_action(&self.record.run, key);
        let finished = longhaul_journal::finished(&*self.world.store, &invocation)?;
        let kept: Option<Kept<Outcome>> =
            finished.map(|finished| serde_json::from_str(&finished.result)).transpose()?;
        match kept {
            Some(Kept::Returned(outcome)) => Ok(outcome.output),
            _ => anyhow::bail!("the journal of {invocation} has no output"),
        }
    }

    /// One invocation of a pure plugin: begun, or continued from its journal.
    #[expect(clippy::too_many_arguments, reason = "each is a different thing, and there are three callers")]
    async fn invoke<T: Serialize + DeserializeOwned + Words>(
        &self,
        work: &Work,
        part: &Part,
        export: &str,
        input: &impl Serialize,
        checks: Arc<dyn Checks>,
        cancel: &Cancel,
        report: impl FnOnce(T) -> Report,
        call: impl AsyncFnOnce(Setup) -> Called<Result<T, RoleError>>,
    ) -> anyhow::Result<Ended> {
        let invocation = self.invocation(work);
        let recorder = match self.troupe.open(&invocation, part, export, input).await {
            Ok(Opened::Running(recorder)) => recorder,
            Ok(Opened::Finished { finished, .. }) => {
                let kept: Kept<T> = serde_json::from_str(&finished.result)?;
                return Ok(Ended::of(End::Report(reported(kept, report))));
            }
            Err(error) => return Ok(Ended::of(stuck(error))),
        };
        self.world.crash.reach("invocation.start");
        let team = Arc::new(Team::new(&self.troupe, Arc::clone(&checks), cancel));
        let setup = self.troupe.setup(part, &recorder, checks, team.clone(), cancel);
        let called = call(setup).await;
        self.world.crash.reach("invocation.end");
        Ok(self.ended(recorder, called, report, team.take_events()))
    }

    fn ended<T: Serialize + Words>(
        &self,
        recorder: Recorder,
        called: Called<Result<T, RoleError>>,
        report: impl FnOnce(T) -> Report,
        sub_agents: Vec<Event>,
    ) -> Ended {
        let log = called.log.clone();
        let used = called.used.plus(called.delegated);
        let (finished, concluded) = match finish(&recorder, called, self.world.clock.now_ms()) {
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
