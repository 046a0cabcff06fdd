//! `Service`: everything that a surface can ask for, as one list of requests with one list of answers.
//!
//! The command line and the socket are thin views of it and give the same answers. It takes no decision
//! about a run, which is the harness's affair, and prints nothing.

mod proposals;
mod replay;

use crate::cast;
use crate::config::{Config, PluginConfig};
use crate::run::proposals::Proposal;
use crate::run::{self, Actor, Bus, Handle, Heard, RunRecord, StoredRun, decisions};
use crate::wiring::{ModelOptions, ModelSet, World};
use anyhow::{Context, bail};
use longhaul_core::decision::{Decision, Hit, Outcome, relevant};
use longhaul_core::event::{Event, RunEvent, Used};
use longhaul_core::journal::{Entry, Finished, Resolution};
use longhaul_core::store::Batch;
use longhaul_core::work::{FeatureSpec, FeatureStatus};
use longhaul_core::{InvocationId, RunId};
use longhaul_harness::decisions::clamp_score;
use longhaul_harness::state::Phase;
use longhaul_harness::{Feature, Input, RunStatus, Setup, State, step};
use longhaul_worktree::{Branch, Project};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast;

pub use replay::Replayed;

/// Something that is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    /// Start a run of the project in a directory.
    Run {
        /// The project.
        directory: PathBuf,
        /// What is done to its models.
        models: ModelOptions,
        /// Pause when the plan is there.
        plan_only: bool,
    },
    /// Go on with a run.
    Resume {
        /// Which.
        run: Which,
        /// Try failing features again.
        retry_failing: bool,
    },
    /// Start no new work and stop the work under way; it goes on from its journal later.
    Pause {
        /// Which.
        run: Which,
    },
    /// Give a run up.
    Abandon {
        /// Which.
        run: Which,
        /// Why.
        reason: String,
    },
    /// Answer a question.
    Answer {
        /// Which.
        run: Which,
        /// The feature that is blocked; none when the run waits.
        feature: Option<String>,
        /// What is known of the effect that is asked about, if one is.
        resolution: Option<Resolution>,
        /// In words.
        text: String,
    },
    /// Every run.
    Runs,
    /// One run.
    Status {
        /// Which.
        run: Which,
    },
    /// The invocations of a run, or the entries of one.
    Journal {
        /// Which.
        run: Which,
        /// The invocation, with or without the run's name.
        invocation: Option<String>,
        /// Entries after this one.
        after: u32,
    },
    /// Run finished invocations again from their journals and compare.
    Replay {
        /// Which.
        run: Which,
        /// Only this one.
        invocation: Option<String>,
        /// With this component in place of the pinned one.
        with: Option<PathBuf>,
    },
    /// Events of a run.
    Events {
        /// Which.
        run: Which,
        /// After this number.
        after: u64,
    },
    /// Add a feature.
    AddFeature {
        /// Which.
        run: Which,
        /// The feature.
        spec: FeatureSpec,
    },
    /// Replace what a feature asks for.
    EditFeature {
        /// Which.
        run: Which,
        /// The feature.
        spec: FeatureSpec,
    },
    /// Decisions of the project of a run.
    Decisions {
        /// Which.
        run: Which,
        /// Those that bear on this question, the best first; none: all, the newest first.
        question: Option<String>,
        /// At most so many.
        limit: usize,
    },
    /// One decision.
    Decision {
        /// The run whose project it is.
        run: Which,
        /// Its id, or the beginning of it.
        id: String,
    },
    /// Say what came of a decision.
    JudgeDecision {
        /// The run whose project it is.
        run: Which,
        /// Its id, or the beginning of it.
        id: String,
        /// What came of it.
        outcome: Option<Outcome>,
        /// How good it was, from -1 to 1; what is beyond is cut.
        score: Option<f64>,
        /// What is to be learnt.
        lesson: Option<String>,
    },
    /// Take a feature off the list.
    DropFeature {
        /// Which.
        run: Which,
        /// Its id.
        feature: String,
    },
    /// What agents of a run proposed.
    Proposals {
        /// Which.
        run: Which,
    },
    /// Do what an agent proposed.
    AcceptProposal {
        /// Which.
        run: Which,
        /// Its id.
        proposal: String,
    },
    /// Do not do what an agent proposed.
    RejectProposal {
        /// Which.
        run: Which,
        /// Its id.
        proposal: String,
        /// Why.
        why: String,
    },
    /// Who carried out each invocation of a run, by the tables of `longhaul.toml`.
    Parts {
        /// Which.
        run: Which,
    },
}

/// A run, by its name, by the beginning of it, or as the newest one of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// The name or its beginning.
    Named(String),
    /// The newest run of the project in this directory.
    NewestIn(PathBuf),
}

/// What is answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// It is done; the run is this one.
    Run {
        /// Its name.
        run: RunId,
    },
    /// Runs in short.
    Runs {
        /// Oldest first.
        runs: Vec<Summary>,
    },
    /// A run.
    Status(Box<Status>),
    /// The invocations of a run.
    Invocations {
        /// In the order in which they started; a delegation follows the one that asked for it.
        invocations: Vec<InvocationId>,
    },
    /// The entries of an invocation.
    Entries {
        /// Which.
        invocation: InvocationId,
        /// With their numbers.
        entries: Vec<(u32, Entry)>,
        /// How it ended, if it has.
        finished: Option<Finished>,
    },
    /// What replays gave.
    Replayed {
        /// One for each invocation.
        invocations: Vec<Replayed>,
    },
    /// Decisions.
    Decisions {
        /// Each with why it is among them.
        hits: Vec<Hit>,
    },
    /// Events.
    Events {
        /// In order.
        events: Vec<RunEvent>,
    },
    /// Proposals.
    Proposals {
        /// Oldest first, the decided ones included.
        proposals: Vec<Proposal>,
    },
    /// Who carried out what.
    Parts {
        /// In the order in which they started; a delegation follows the one that asked for it.
        parts: Vec<Carried>,
    },
}

/// Who carried out an invocation, and when.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Carried {
    /// Which.
    pub invocation: InvocationId,
    /// The table of `longhaul.toml`, for example `agents.code`.
    pub table: String,
    /// The plugin.
    pub plugin: String,
    /// When it first began, in milliseconds since 1970-01-01 UTC.
    pub from_ms: u64,
    /// When it ended; none while it has not.
    pub until_ms: Option<u64>,
}

/// A run in short.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Its name.
    pub run: RunId,
    /// Its project.
    pub project: String,
    /// Where that is.
    pub directory: PathBuf,
    /// Where the run is.
    pub status: RunStatus,
    /// Features that pass, of all that were not dropped.
    pub passing: (usize, usize),
    /// When it was asked for.
    pub created_ms: u64,
    /// Whether it is being worked on in this moment.
    pub active: bool,
    /// When it tries again by itself, in milliseconds since 1970-01-01 UTC, if it waits for a service.
    pub wakes_at_ms: Option<u64>,
}

/// A run at length.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// In short.
    #[serde(flatten)]
    pub summary: Summary,
    /// The branch that it commits to.
    pub branch: String,
    /// Why it waits or how it ended, in one line.
    pub why: String,
    /// The question that it waits with, if one is about an effect.
    pub question: Option<String>,
    /// Its features.
    pub features: Vec<Feature>,
    /// What it used.
    pub used: Used,
    /// The cap on money, in millionths of a US dollar, if one is set.
    pub cost_microdollars_max: Option<u64>,
    /// The cap on tokens: the run's own, or what its invocations may use together.
    pub tokens_max: u64,
}

/// Answers requests for one data directory.
pub struct Service {
    world: Arc<World>,
    active: Mutex<HashMap<RunId, Active>>,
    /// Held while a run is looked for and taken up, so that no run gets two actors.
    taking_up: tokio::sync::Mutex<()>,
}

struct Active {
    handle: Handle,
    task: tokio::task::JoinHandle<()>,
}

impl Service {
    /// A service over an open world. No run is active yet.
    pub fn new(world: World) -> Self {
        Self { world: Arc::new(world), active: Mutex::default(), taking_up: tokio::sync::Mutex::default() }
    }

    /// Answers one request.
    pub async fn answer(self: &Arc<Self>, request: Request) -> anyhow::Result<Answer> {
        match request {
            Request::Run { directory, models, plan_only } => self.start(&directory, models, plan_only).await,
            Request::Resume { run, retry_failing } => self.resume(&self.find(&run)?, retry_failing).await,
            Request::Pause { run } => self.order(&run, Input::PauseRequested).await,
            Request::Abandon { run, reason } => self.order(&run, Input::Abandon { reason }).await,
            Request::Answer { run, feature, resolution, text } => self.answered(&run, feature, resolution, text).await,
            Request::Runs => self.runs(),
            Request::Status { run } => Ok(Answer::Status(Box::new(self.status(&self.find(&run)?)?))),
            Request::Journal { run, invocation, after } => self.journal(&self.find(&run)?, invocation, after),
            Request::Replay { run, invocation, with } => {
                let stored = self.find(&run)?;
                let wanted = self.invocations(&stored.record.run, invocation)?;
                let invocations = replay::replay(&self.world, &stored.record, wanted, with.as_deref()).await?;
                Ok(Answer::Replayed { invocations })
            }
            Request::Events { run, after } => {
                let stored = self.find(&run)?;
                Ok(Answer::Events { events: run::events_after(&*self.world.store, &stored.record.run, after, 1_000)? })
            }
            Request::Decisions { run, question, limit } => self.decisions(&self.find(&run)?, question, limit),
            Request::Decision { run, id } => Ok(one_hit(self.decision(&self.find(&run)?, &id)?)),
            Request::JudgeDecision { run, id, outcome, score, lesson } => {
                self.judge_decision(&self.find(&run)?, &id, outcome, score, lesson).await
            }
            Request::AddFeature { run, spec } => self.order(&run, Input::FeatureAdded { spec }).await,
            Request::EditFeature { run, spec } => self.order(&run, Input::FeatureEdited { spec }).await,
            Request::DropFeature { run, feature } => self.order(&run, Input::FeatureDropped { feature }).await,
            Request::Proposals { run } => self.proposals(&self.find(&run)?),
            Request::AcceptProposal { run, proposal } => self.accept_proposal(&run, &proposal).await,
            Request::RejectProposal { run, proposal, why } => self.reject_proposal(&run, &proposal, &why).await,
            Request::Parts { run } => self.parts(&self.find(&run)?),
        }
    }

    /// Hears a run live from now on; none if it is not active here.
    pub fn watch(&self, run: &RunId) -> Option<broadcast::Receiver<Heard>> {
        self.lock().get(run).map(|active| active.handle.bus().watch())
    }

    /// Events of a run after a number.
    pub fn events(&self, run: &RunId, after: u64) -> anyhow::Result<Vec<RunEvent>> {
        run::events_after(&*self.world.store, run, after, 1_000)
    }

    /// Stops every run without a trace, so that another process goes on with them.
    pub async fn stop(&self) {
        let active: Vec<Active> = self.lock().drain().map(|(_, active)| active).collect();
        for Active { handle, task } in active {
            handle.stop().await;
            let _ = task.await;
        }
    }

    async fn start(
        self: &Arc<Self>,
        directory: &Path,
        models: ModelOptions,
        plan_only: bool,
    ) -> anyhow::Result<Answer> {
        let _alone = self.taking_up.lock().await;
        let directory =
            directory.canonicalize().with_context(|| format!("there is no directory `{}`", directory.display()))?;
        let text = std::fs::read_to_string(directory.join(crate::config::FILE)).ok();
        let config = Config::read(&directory)?;
        let goal = read_goal(&directory, &config)?;
        self.refuse_second(&directory)?;
        self.sweep_trees()?;
        ModelSet::build(&config, &directory, &models)?;
        let branch = format!("longhaul/{}", config.project.name);
        let base = start_point(&directory, &branch).await?;
        let created_ms = self.world.clock.now_ms();
        let mut batch = Batch::new();
        let record = RunRecord {
            run: RunId::derive(&config.project.name, created_ms, &self.world.fresh_seed()),
            project: config.project.name.clone(),
            directory: directory.clone(),
            branch,
            base,
            config: text.unwrap_or_default(),
            goal,
            pins: cast::pin(&self.world, &config, &directory, &mut batch)?,
            models,
            created_ms,
        };
        // The plugins' bytes first: what cannot be loaded, linked or begun is refused before there is a run.
        self.world.store.commit(batch).await?;
        let bus = Bus::default();
        let stage = run::Stage::new(Arc::clone(&self.world), record.clone(), bus.clone()).await?;
        let begin = begin(&self.world, &record, &config)?;
        let state = State::new();
        step(&mut state.clone(), created_ms, begin.clone())?;
        let started = Event::RunStarted { project: record.project.clone(), branch: record.branch.clone() };
        let mut batch = record.insert(Batch::new())?;
        let event = RunEvent { run: record.run.clone(), number: 1, at_ms: created_ms, event: started };
        run::put_step(&*self.world.store, &mut batch, &record, &state, &[event])?;
        self.world.store.commit(batch).await?;
        let run = record.run.clone();
        self.activate(StoredRun { record, state }, stage, bus, Some(begin), plan_only)?;
        Ok(Answer::Run { run })
    }

    /// Removes trees of runs that were killed before they were accepted.
    fn sweep_trees(&self) -> anyhow::Result<()> {
        let known: Vec<RunId> = run::records(&*self.world.store)?.into_iter().map(|record| record.run).collect();
        let Some(trees) = self.world.home.tree(&RunId::from_text("any")).parent().map(Path::to_owned) else {
            return Ok(());
        };
        for entry in trees.read_dir().into_iter().flatten().flatten() {
            let path = entry.path();
            // What is beside a tree under its name, for example while it is replaced, is that run's affair.
            let name = entry.file_name().to_string_lossy().into_owned();
            if !known.iter().any(|run| name.starts_with(run.as_str())) {
                // What cannot be removed is in nobody's way.
                let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            }
        }
        Ok(())
    }

    /// One run of a project at a time: two would move one branch.
    fn refuse_second(&self, directory: &Path) -> anyhow::Result<()> {
        let open = |status| {
            !matches!(status, RunStatus::Completed | RunStatus::Incomplete | RunStatus::Failed | RunStatus::Abandoned)
        };
        let store = &*self.world.store;
        let own = run::records(store)?.into_iter().filter(|record| record.directory == directory);
        let own =
            own.filter_map(|record| run::load(store, &record.run).transpose()).collect::<anyhow::Result<Vec<_>>>()?;
        if let Some(stored) = own.into_iter().find(|stored| open(stored.state.status())) {
            let run = stored.record.run;
            bail!(
                "run {run} of this project is not finished; go on with `longhaul resume {run}`, or give it up with `longhaul abandon {run}`"
            );
        }
        Ok(())
    }

    async fn resume(self: &Arc<Self>, stored: &StoredRun, retry_failing: bool) -> anyhow::Result<Answer> {
        let _alone = self.taking_up.lock().await;
        // Read again: while the lock was awaited, another may have taken it up, and it may have moved.
        let stored = &self.find(&Which::Named(stored.record.run.to_string()))?;
        let run = stored.record.run.clone();
        let limits = stored.record.config_now()?.run.limits;
        let resume = Input::Resume { retry_failing, limits: Some(limits) };
        if let Some(handle) = self.handle(&run) {
            handle.input(resume).await?;
            return Ok(Answer::Run { run });
        }
        // What broke off goes on as it was; what was paused, or ended, needs to be told to go on.
        let first = match stored.state.status() {
            // Accepted, and broken off before its first step.
            RunStatus::New => Some(begin(&self.world, &stored.record, &stored.record.config()?)?),
            RunStatus::Planning | RunStatus::Working if !retry_failing => None,
            _ => Some(resume),
        };
        let bus = Bus::default();
        let stage = run::Stage::new(Arc::clone(&self.world), stored.record.clone(), bus.clone()).await?;
        self.activate(stored.clone(), stage, bus, first, false)?;
        Ok(Answer::Run { run })
    }

    fn activate(
        self: &Arc<Self>,
        stored: StoredRun,
        stage: run::Stage,
        bus: Bus,
        first: Option<Input>,
        plan_only: bool,
    ) -> anyhow::Result<()> {
        let run = stored.record.run.clone();
        let (actor, handle) = Actor::new(Arc::clone(&self.world), stage, stored, bus, plan_only)?;
        let (service, own) = (Arc::clone(self), run.clone());
        let (go, going) = tokio::sync::oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            // Not before it can be found, or an actor that ends at once would be entered after its end.
            let _ = going.await;
            actor.live(first).await;
            service.lock().remove(&own);
        });
        self.lock().insert(run, Active { handle, task });
        let _ = go.send(());
        Ok(())
    }

    /// Hands an order to the run: to its actor, or, when it is not active, to an actor for just that.
    async fn order(self: &Arc<Self>, which: &Which, input: Input) -> anyhow::Result<Answer> {
        let _alone = self.taking_up.lock().await;
        let stored = self.find(which)?;
        refuse_idle(&stored, &input)?;
        let run = stored.record.run.clone();
        if let Some(handle) = self.handle(&run) {
            handle.input(input).await?;
            return Ok(Answer::Run { run });
        }
        run::apply(&self.world, stored, input).await?;
        Ok(Answer::Run { run })
    }

    async fn answered(
        self: &Arc<Self>,
        which: &Which,
        feature: Option<String>,
        resolution: Option<Resolution>,
        text: String,
    ) -> anyhow::Result<Answer> {
        let stored = self.find(which)?;
        let run = &stored.record.run;
        if let Some(resolution) = resolution {
            let question = run::question(&*self.world.store, run, &stored.state, feature.as_deref())?
                .with_context(|| format!("run {run} asks about no effect; answer in words"))?;
            longhaul_journal::resolve(&*self.world.store, &question.invocation, question.entry, resolution).await?;
        }
        self.order(which, Input::Answered { feature, answer: text }).await
    }

    fn decisions(&self, stored: &StoredRun, question: Option<String>, limit: usize) -> anyhow::Result<Answer> {
        let all = decisions::all(&*self.world.store, &stored.record.project)?;
        let hits = match question {
            Some(question) => relevant(all, &question, self.world.clock.now_ms(), limit),
            None => {
                let hit = |decision| Hit { decision, relevance: 0.0, why: String::new() };
                all.into_iter().take(limit).map(hit).collect()
            }
        };
        Ok(Answer::Decisions { hits })
    }

    /// The decision of that id, or the one whose id begins so.
    fn decision(&self, stored: &StoredRun, id: &str) -> anyhow::Result<Decision> {
        let all = decisions::all(&*self.world.store, &stored.record.project)?;
        if let Some(exact) = all.iter().find(|decision| decision.id == id) {
            return Ok(exact.clone());
        }
        let mut fitting = all.into_iter().filter(|decision| decision.id.starts_with(id));
        match (fitting.next(), fitting.next()) {
            (Some(decision), None) => Ok(decision),
            (Some(_), Some(_)) => bail!("several decisions begin with `{id}`; write more of it"),
            (None, _) => bail!("there is no decision `{id}`; `longhaul decisions` lists them"),
        }
    }

    async fn judge_decision(
        &self,
        stored: &StoredRun,
        id: &str,
        outcome: Option<Outcome>,
        score: Option<f64>,
        lesson: Option<String>,
    ) -> anyhow::Result<Answer> {
        let mut decision = self.decision(stored, id)?;
        decision.outcome = outcome.unwrap_or(decision.outcome);
        decision.score = score.map(clamp_score).or(decision.score);
        decision.lesson = lesson.or(decision.lesson);
        let store = &*self.world.store;
        let batch = longhaul_core::decision::put(store, Batch::new(), &stored.record.project, &decision)?;
        store.commit(batch).await?;
        Ok(one_hit(decision))
    }

    fn runs(&self) -> anyhow::Result<Answer> {
        let runs = run::list(&*self.world.store)?.iter().map(|stored| self.summary(stored)).collect();
        Ok(Answer::Runs { runs })
    }

    fn summary(&self, stored: &StoredRun) -> Summary {
        let StoredRun { record, state } = stored;
        let kept = state.features.len() - state.count(FeatureStatus::Dropped);
        Summary {
            run: record.run.clone(),
            project: record.project.clone(),
            directory: record.directory.clone(),
            status: state.status(),
            passing: (state.count(FeatureStatus::Passing), kept),
            created_ms: record.created_ms,
            active: self.lock().contains_key(&record.run),
            wakes_at_ms: state.wakes_at_ms(),
        }
    }

    fn status(&self, stored: &StoredRun) -> anyhow::Result<Status> {
        let StoredRun { record, state } = stored;
        let question = run::question(&*self.world.store, &record.run, state, None)?;
        let config = record.config_now()?;
        Ok(Status {
            summary: self.summary(stored),
            branch: record.branch.clone(),
            why: why(state),
            question: question.map(|question| question.text),
            features: state.features.clone(),
            used: state.used,
            cost_microdollars_max: state.limits.cost_microdollars_max,
            tokens_max: state.limits.tokens_max.unwrap_or_else(|| tokens_of_all(state, &config)),
        })
    }

    fn journal(&self, stored: &StoredRun, invocation: Option<String>, after: u32) -> anyhow::Result<Answer> {
        let run = &stored.record.run;
        let Some(named) = invocation else {
            return Ok(Answer::Invocations { invocations: self.invocations(run, None)? });
        };
        let invocation = full_name(run, &named);
        let store = &*self.world.store;
        if longhaul_journal::began(store, &invocation)?.is_none() {
            bail!("there is no invocation `{invocation}`; `longhaul journal {run}` lists them");
        }
        let entries = longhaul_journal::entries(store, &invocation, after, 1_000)?;
        let finished = longhaul_journal::finished(store, &invocation)?;
        Ok(Answer::Entries { invocation, entries, finished })
    }

    /// The invocations of a run, in the order in which they first started.
    fn invocations(&self, run: &RunId, only: Option<String>) -> anyhow::Result<Vec<InvocationId>> {
        if let Some(only) = only {
            return Ok(vec![full_name(run, &only)]);
        }
        let mut found = Vec::new();
        let mut after = 0;
        loop {
            let page = run::events_after(&*self.world.store, run, after, 1_000)?;
            let Some(last) = page.last() else { return Ok(found) };
            after = last.number;
            for event in page {
                if let Event::InvocationStarted { invocation, .. } = event.event
                    && !found.contains(&invocation)
                {
                    self.with_children(invocation, &mut found)?;
                }
            }
        }
    }

    fn parts(&self, stored: &StoredRun) -> anyhow::Result<Answer> {
        let mut parts = Vec::new();
        for invocation in self.invocations(&stored.record.run, None)? {
            let store = &*self.world.store;
            let Some(began) = longhaul_journal::began(store, &invocation)? else { continue };
            let until_ms = longhaul_journal::finished(store, &invocation)?.map(|finished| finished.at_ms);
            parts.push(Carried {
                invocation,
                table: began.table,
                plugin: began.plugin,
                from_ms: began.at_ms,
                until_ms,
            });
        }
        Ok(Answer::Parts { parts })
    }

    /// An invocation, then those that it started, each before its own.
    fn with_children(&self, invocation: InvocationId, found: &mut Vec<InvocationId>) -> anyhow::Result<()> {
        let children = longhaul_journal::children(&*self.world.store, &invocation)?;
        found.push(invocation);
        // As deep as `delegation_depth_max` let it go.
        children.into_iter().try_for_each(|child| self.with_children(child, found))
    }

    /// The run that is meant.
    pub fn find(&self, which: &Which) -> anyhow::Result<StoredRun> {
        let store = &*self.world.store;
        match which {
            Which::Named(name) => {
                if let Some(stored) = run::load(store, &RunId::from_text(name.clone()))? {
                    return Ok(stored);
                }
                let mut found =
                    run::records(store)?.into_iter().filter(|record| record.run.as_str().starts_with(name.as_str()));
                match (found.next(), found.next()) {
                    (Some(record), None) => {
                        run::load(store, &record.run)?.with_context(|| format!("run {} is gone", record.run))
                    }
                    (Some(_), Some(_)) => bail!("several runs start with `{name}`; `longhaul runs` lists them"),
                    (None, _) => bail!("there is no run `{name}`; `longhaul runs` lists them"),
                }
            }
            Which::NewestIn(directory) => {
                let directory = directory.canonicalize().unwrap_or_else(|_| directory.clone());
                run::newest_in(store, &directory)?.with_context(|| {
                    format!(
                        "no run of `{}`; start one with `longhaul run`, or name one of `longhaul runs`",
                        directory.display()
                    )
                })
            }
        }
    }

    fn handle(&self, run: &RunId) -> Option<Handle> {
        self.lock().get(run).map(|active| active.handle.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Active>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody should be told that a run was paused, or given up, that was over before.
fn refuse_idle(stored: &StoredRun, input: &Input) -> anyhow::Result<()> {
    use RunStatus::{Abandoned, Completed, Failed, Incomplete};
    let status = stored.state.status();
    let (verb, is_over) = match input {
        Input::PauseRequested => ("pause", matches!(status, Completed | Incomplete | Failed | Abandoned)),
        Input::Abandon { .. } => ("abandon", matches!(status, Completed | Failed | Abandoned)),
        _ => return Ok(()),
    };
    let run = &stored.record.run;
    if is_over {
        bail!("run {run} is over, so there is nothing to {verb}; `longhaul status {run}` shows how it ended");
    }
    Ok(())
}

fn full_name(run: &RunId, named: &str) -> InvocationId {
    let prefix = format!("{run}/");
    if named.starts_with(&prefix) { InvocationId::from_text(named) } else { InvocationId::of_action(run, named) }
}

fn read_goal(directory: &Path, config: &Config) -> anyhow::Result<String> {
    let path = directory.join(&config.project.goal);
    let size = std::fs::metadata(&path)
        .with_context(|| format!("cannot read the goal `{}`; write what is to be built", path.display()))?
        .len();
    if size > GOAL_BYTES_MAX {
        bail!("the goal `{}` has {size} bytes, more than {GOAL_BYTES_MAX}; split the project", path.display());
    }
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("the goal `{}` is not text in UTF-8", path.display()))?;
    if text.trim().is_empty() {
        bail!("the goal `{}` is empty; write what is to be built", path.display());
    }
    Ok(text)
}

/// Bytes of a goal.
const GOAL_BYTES_MAX: u64 = 1 << 20;

async fn start_point(directory: &Path, branch: &str) -> anyhow::Result<String> {
    let (directory, branch) = (directory.to_owned(), branch.to_owned());
    tokio::task::spawn_blocking(move || {
        let project = Project::open(&directory)?;
        project.check_clean()?;
        anyhow::Ok(project.start(&Branch::new(&branch)?)?.base)
    })
    .await?
}

/// The first input of a run.
fn begin(world: &World, record: &RunRecord, config: &Config) -> anyhow::Result<Input> {
    Ok(Input::Begin {
        run: record.run.clone(),
        goal: record.goal.clone(),
        context: context(world, record, config)?,
        setup: Setup {
            agents: config.agents.keys().cloned().collect(),
            checks: config.checks.keys().cloned().collect(),
            strategy: config.run.strategy,
            contract_by: config.run.contract_by.clone(),
        },
        limits: config.run.limits.clone(),
    })
}

/// What a planner may know of the project: what it is called, its checks, and decisions that bear on the goal.
fn context(world: &World, record: &RunRecord, config: &Config) -> anyhow::Result<serde_json::Value> {
    let mut context = serde_json::json!({
        "project": record.project,
        "native_checks": config.checks.keys().collect::<Vec<_>>(),
    });
    if let Some(decisions) = decisions::for_planner(&*world.store, &*world.clock, &record.project, &record.goal)? {
        context["decisions"] = decisions;
    }
    Ok(context)
}

fn one_hit(decision: Decision) -> Answer {
    Answer::Decisions { hits: vec![Hit { decision, relevance: 0.0, why: String::new() }] }
}

fn why(state: &State) -> String {
    match &state.phase {
        Phase::Ended { summary, .. } => summary.clone(),
        Phase::New | Phase::Running => {
            let reasons: Vec<_> = state.waits().map(|(_, wait)| wait.park.reason.as_str()).collect();
            reasons.join("; ")
        }
    }
}

/// Without a cap of the run's own: what the rounds of plugins that may ask a model may use at most.
fn tokens_of_all(state: &State, config: &Config) -> u64 {
    let tokens = |part: &PluginConfig| if part.models.is_empty() { 0 } else { config.limits_of(part).tokens_max };
    let rounds = state.features.len() as u64 * u64::from(state.limits.iterations_max);
    let agent = config.agents.values().map(tokens).max().unwrap_or(0);
    let round = agent.saturating_add(tokens(&config.evaluator));
    tokens(&config.planner).saturating_add(rounds.saturating_mul(round))
}
