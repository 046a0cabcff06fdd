//! Starting a run: everything that can be refused is refused before there is one.

use super::Service;
use super::cluster::NoServer;
use super::keyed_lock::of_directory;
use super::workers::Chosen;
use longhaul_api::runs::{AffectedRun, ResumeRun, RunRef};
use longhaul_config::tools::mcp::is_wanted;
use longhaul_config::{Config, PlanAcceptance};
use longhaul_core::RunId;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::store::Batch;
use longhaul_core::work::Plan;
use longhaul_harness::{HarnessSetup, Input, RunState, RunStatus, Strategy, step};
use longhaul_memory as memory;
use longhaul_models::set::ModelOptions;
use longhaul_plugins::plugin_set;
use longhaul_preflight::{self as check, CheckScope};
use longhaul_records::bus::EventBus;
use longhaul_records::record::{self, RunRecord, StoredRun};
use longhaul_records::stop_condition::StopCondition;
use longhaul_records::{decisions, project};
use longhaul_run as run;
use longhaul_worktree::{Branch, StartPoint, UserRepository};
use std::path::Path;
use std::sync::Arc;

impl Service {
    /// Starts a run; `named` is its name where whoever starts it must find it again.
    pub(super) async fn start(
        self: &Arc<Self>,
        directory: &Path,
        models: ModelOptions,
        plan: Option<Plan>,
        until: StopCondition,
        again: bool,
        named: Option<RunId>,
    ) -> fault::Result<AffectedRun> {
        // A model may be asked for it, so it is done before anybody has to wait for this.
        self.remember_due().await;
        let directory =
            directory.canonicalize().or_invalid(|| format!("there is no directory `{}`", directory.display()))?;
        let _alone = self.locks.take([of_directory(&directory)]).await;
        let text = longhaul_config::of_config(&directory).ok();
        let mut config = Config::read(&directory)?;
        self.expect_trust(&directory, &config)?;
        let claimed = self.claimed(&directory, &config).await?;
        self.keep_guards(&directory, &claimed.id, &config).await?;
        config.project.id.clone_from(&claimed.id);
        // A plan that the operator passes needs no consent.
        let until = match config.plan.accept {
            PlanAcceptance::Ask if plan.is_none() => StopCondition::Plan,
            PlanAcceptance::Ask | PlanAcceptance::Auto => until,
        };
        let branch = format!("longhaul/{}", config.project.name);
        let before = record::newest_on_branch(&*self.host.store, &directory, &branch)?;
        refuse_second(before.as_ref(), again)?;
        self.refuse_missing_commits(before.as_ref()).await?;
        let scope = if plan.is_some() { CheckScope::Planned } else { CheckScope::Run };
        self.refuse_faults(&directory, &config, text.as_deref(), &models, &scope).await?;
        let goal = check::machine::goal(&directory, &config)?;
        self.sweep_trees()?;
        let start = start_point(&directory, &branch).await?;
        let created_ms = self.host.clock.now_ms();
        let mut batch = Batch::new();
        let record = RunRecord {
            run: named.unwrap_or_else(|| RunId::derive(&config.project.name, created_ms, &self.host.fresh_seed())),
            project: config.project.name.clone(),
            id: claimed.id,
            directory: directory.clone(),
            branch,
            base: start.base,
            config: text.unwrap_or_default(),
            goal,
            pins: plugin_set::pin(&self.host, &config, &directory, &mut batch)?,
            models,
            model: None,
            plan,
            ask: None,
            passed_before: before.as_ref().map(|before| before.state.passed()).unwrap_or_default(),
            created_ms,
        };
        let _begins = self.locks.begin(&record.run);
        // The plugins' bytes first: what cannot be loaded, linked or begun is refused before there is a run.
        self.host.store.commit(batch).await?;
        let bus = EventBus::default();
        let executor = self.executor(record.clone(), bus.clone()).await?;
        let begin = begin(self, &record, &config).await?;
        let state = RunState::new();
        step(&mut state.clone(), created_ms, begin.clone())?;
        let is_here = self.is_begun_here(&record)?;
        let mut batch = record.insert(Batch::new())?;
        if is_here {
            batch = run::places::put_here(batch, &self.host, &record, &config)?;
        }
        batch = run::carried::put_commits(batch, &self.host, &record).await?;
        let notes = claimed.told.into_iter().chain(start.notes).chain(bare_servers(&config)).collect();
        let events = first_events(&record, before.as_ref(), &state, notes);
        run::put_step(&*self.host.store, &mut batch, &record, &state, &events)?;
        if until != StopCondition::End {
            batch = record::put_until(batch, &record.run, until)?;
        }
        self.host.store.commit(batch).await?;
        self.note_began(&record, &config).await?;
        if !is_here {
            drop(executor);
            return self.begin_elsewhere(&record).await;
        }
        let run = record.run.clone();
        self.activate(StoredRun { record, state }, executor, bus, Some(begin), until).await?;
        Ok(AffectedRun { run })
    }

    /// True where a run that is about to be stored begins here. Refuses one that no server could ever work on.
    pub(super) fn is_begun_here(&self, record: &RunRecord) -> fault::Result<bool> {
        match self.chosen(record)? {
            Chosen::Here => Ok(true),
            Chosen::Nobody(why) if self.cluster.is_none() => bail!(why),
            Chosen::Nobody(_) | Chosen::Worker(_) => Ok(false),
        }
    }

    /// Has another server begin a run that is stored. Where none can, the run waits for one.
    pub(super) async fn begin_elsewhere(self: &Arc<Self>, record: &RunRecord) -> fault::Result<AffectedRun> {
        // They were made to see that the run can begin.
        run::places::remove_trees(&self.host, &record.run).await?;
        let run = record.run.clone();
        let request = ResumeRun { run: RunRef::Named(run.to_string()), retry_failing: false, sessions: None };
        match self.go_on_somewhere(record, &request, || self.resume_here(&request)).await {
            Err(error) if error.is::<NoServer>() => Ok(AffectedRun { run }),
            begun => begun,
        }
    }

    /// Refuses to begin after a run of another machine whose commits are not in the repository here: its features would
    /// count as passing without their commits.
    async fn refuse_missing_commits(&self, before: Option<&StoredRun>) -> fault::Result<()> {
        let Some(before) = before else { return Ok(()) };
        let RunRecord { run, branch, .. } = &before.record;
        let Some(place) = run::places::elsewhere(&self.host, run)? else { return Ok(()) };
        if run::places::has_commits(before.clone()).await? {
            return Ok(());
        }
        bail!(Fault::conflict(format!(
            "commits of run {run} are in the repository on {} and not in this one; fetch `{branch}` from there first",
            place.host
        )))
    }

    /// The executor of the work of a run.
    pub(super) async fn executor(&self, record: RunRecord, bus: EventBus) -> fault::Result<run::WorkExecutor> {
        let (host, graphs) = (Arc::clone(&self.host), self.graphs.clone());
        run::WorkExecutor::new(host, graphs, &*self.memories, &self.environment, record, bus).await
    }

    /// Removes trees of runs that were killed before they were accepted.
    pub(super) fn sweep_trees(&self) -> fault::Result<()> {
        let Some(trees) = self.host.home.tree(&RunId::from_text("any")).parent().map(Path::to_owned) else {
            return Ok(());
        };
        // Trees are listed first: a run whose tree is seen is being made, or is stored by then.
        let found: Vec<_> = trees.read_dir().into_iter().flatten().flatten().collect();
        let mut known: Vec<RunId> = self.locks.begun().into_iter().collect();
        known.extend(record::heads(&*self.host.store)?.into_iter().map(|head| head.run));
        for entry in found {
            let path = entry.path();
            // An entry beside a tree under its name, for example while it is replaced, is that run's affair.
            let name = entry.file_name().to_string_lossy().into_owned();
            if !known.iter().any(|run| name.contains(run.as_str())) {
                // An entry that cannot be removed disturbs no run.
                let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            }
        }
        Ok(())
    }
}

/// One run of a project at a time: two would move one branch. And what a person gave up stays so until they say
/// otherwise.
fn refuse_second(before: Option<&StoredRun>, again: bool) -> fault::Result<()> {
    use RunStatus::{Abandoned, Completed, Failed, Incomplete, New, Parked, Paused, Planning, Working};
    let Some(StoredRun { record: RunRecord { run, project, .. }, state }) = before else { return Ok(()) };
    match state.status() {
        Completed | Incomplete | Failed => Ok(()),
        Abandoned if again => Ok(()),
        Abandoned => {
            bail!(Fault::conflict(format!(
                "project `{project}` was abandoned with run {run}; start it anew with `longhaul run --again`"
            )))
        }
        Paused => bail!(Fault::conflict(format!(
            "project `{project}` is paused; go on with `longhaul resume {run}`, or give it up with `longhaul abandon {run}`"
        ))),
        New | Planning | Working | Parked => bail!(Fault::conflict(format!(
            "run {run} of this project is not finished; go on with `longhaul resume {run}`, or give it up with `longhaul abandon {run}`"
        ))),
    }
}

/// Servers that agents may call and that no sandbox holds.
fn bare_servers(config: &Config) -> impl Iterator<Item = String> {
    let bare = config.mcp.iter().filter(|(name, server)| server.is_bare() && is_wanted(config, name));
    bare.map(|(name, _)| format!("[mcp.{name}] runs outside of the sandbox, as its sandbox = \"none\" says"))
}

/// The first events of a run: the change of its project, and notes for a person about the state in which it begins.
fn first_events(record: &RunRecord, before: Option<&StoredRun>, state: &RunState, notes: Vec<String>) -> Vec<RunEvent> {
    let mut events = match before {
        Some(before) => project::changes(&record.project, &before.state, state),
        None => vec![Event::ProjectCreated {
            project: record.project.clone(),
            directory: record.directory.display().to_string(),
        }],
    };
    events.push(Event::RunStarted { project: record.project.clone(), branch: record.branch.clone() });
    events.extend(notes.into_iter().map(|text| Event::Warning { text }));
    let numbered = (1..).zip(events);
    numbered
        .map(|(number, event)| RunEvent { run: record.run.clone(), number, at_ms: record.created_ms, event })
        .collect()
}

async fn start_point(directory: &Path, branch: &str) -> fault::Result<StartPoint> {
    let (directory, branch) = (directory.to_owned(), branch.to_owned());
    tokio::task::spawn_blocking(move || {
        let project = UserRepository::open(&directory)?;
        project.check_clean()?;
        Ok::<_, Fault>(project.start(&Branch::new(&branch)?)?)
    })
    .await?
}

/// The first input of a run.
pub(super) async fn begin(service: &Service, record: &RunRecord, config: &Config) -> fault::Result<Input> {
    Ok(Input::Begin {
        run: record.run.clone(),
        goal: record.goal.clone(),
        context: context(service, record, config).await?,
        setup: HarnessSetup {
            agents: config.agents.keys().cloned().collect(),
            categories: config.categories(),
            checks: config.checks.keys().cloned().collect(),
            exit_checks: config.exit_checks(),
            weak_checks: config.weak_checks(),
            strategy: if record.ask.is_some() { Strategy::Ask } else { config.run.strategy },
            contract_by: config.run.contract_by.clone().filter(|_| record.ask.is_none()),
            plan: record.plan.clone().map(Box::new),
            described: config.described(),
            confidence_ignored: config.confidence_ignored(),
            default_agent: config.ask.agent.clone(),
            dispatch: record.ask.clone().unwrap_or_default(),
            passed_before: record.passed_before.clone(),
            checks_only: config.checks_only(record.pins.get("evaluator").map(|pin| &pin.asks)),
        },
        limits: record.limits_in(config),
    })
}

/// The context of a planner: the project's name and checks, and the decisions and memories that bear on the goal.
async fn context(service: &Service, record: &RunRecord, config: &Config) -> fault::Result<serde_json::Value> {
    let Service { host, memories, .. } = service;
    let mut context = serde_json::json!({
        "project": record.project,
        "native_checks": config.checks.keys().collect::<Vec<_>>(),
    });
    if let Some(decisions) = decisions::for_planner(&*host.store, &*host.clock, record.scope(), &record.goal)? {
        context["decisions"] = decisions;
    }
    let memory = memory::open(host, &**memories, config, &record.pins, &record.directory).await?;
    if let Some(remembered) = memory::recollect(&*memory, &config.memory, record.scope(), &record.goal).await {
        context["memory"] = remembered;
    }
    Ok(context)
}
