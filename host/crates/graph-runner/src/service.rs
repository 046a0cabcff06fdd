//! The service of a data directory's graphs. One caller at a time changes a graph; any number of callers read it.

use crate::agents::{OF_AGENT, of_agent};
use crate::errors::{broken, no_graph};
use crate::files::FileDigests;
use crate::opened::{OpenGraph, bytes};
use crate::output_log::OutputLogs;
use crate::runner::LazyExecutor;
use crate::task::{GraphTask, task_only_looks};
use crate::views;
use crate::work::{GraphChange, Services, check_source};
use longhaul_api::graph_output::{GraphOutputPage, ReadGraphOutput};
use longhaul_api::graphs::{
    AddSteps, CreateGraph, DiagnoseStep, GraphPage, OperateGraph, PatchStep, RunGraph, ShowGraph,
};
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::graph::{
    GraphAnswer, GraphChanges, GraphError, GraphFormat, GraphOperation, GraphSummary, GraphVersion, Graphs, PatchView,
    StagedAnswer, StepEnvironment, StepView, check_name,
};
use longhaul_core::project_models::ProjectModels;
use longhaul_core::store::{Batch, Op, Store, Table};
use longhaul_core::{Clock, InvocationId, LimitHit};
use longhaul_graph::record::{self, GraphHead, VersionRow};
use longhaul_home::Home;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Highest number of sources that a patch request may ask to try.
const TRIES_MOST: u32 = 100;

/// Steps of an agent's graph.
const AGENT_STEPS_MAX: usize = 1_000;

/// Graphs that stay in memory between requests.
const OPEN_MAX: usize = 16;

/// Rows that one read returns.
const PAGE_ROWS: usize = 1_000;

/// The slot of a graph: its lock is held by the caller who changes it.
type Slot = Arc<tokio::sync::Mutex<Option<OpenGraph>>>;

/// The service of a data directory's graphs.
pub struct GraphService {
    services: Services,
    slots: Mutex<HashMap<String, Slot>>,
}

impl GraphService {
    /// The service of a data directory. It reads nothing yet, and loads no interpreter.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, home: &Home, models: Arc<dyn ProjectModels>) -> Self {
        let files = Arc::new(FileDigests::default());
        let runner = LazyExecutor::new(Arc::clone(&store), home.clone(), Arc::clone(&clock), Arc::clone(&files));
        let outputs = OutputLogs::new(Arc::clone(&clock));
        Self { services: Services { store, clock, runner, files, models, outputs }, slots: Mutex::default() }
    }

    /// Handles a request that an agent can make, too. A change is made once for one token.
    ///
    /// # Errors
    /// When the request is faulty, and when the store fails.
    pub async fn operate(&self, request: OperateGraph) -> fault::Result<GraphAnswer> {
        let OperateGraph { name, operation, token } = request;
        self.perform(name, GraphTask::Ask(operation), &token).await
    }

    /// Adds steps, all or none.
    ///
    /// # Errors
    /// As [`Self::operate`].
    pub async fn add_steps(&self, AddSteps { name, steps, token }: AddSteps) -> fault::Result<GraphAnswer> {
        self.perform(name, GraphTask::AddMany(steps), &token).await
    }

    /// Runs the stale steps.
    ///
    /// # Errors
    /// As [`Self::operate`]. A step that fails is an answer.
    pub async fn run(&self, request: RunGraph) -> fault::Result<GraphAnswer> {
        let RunGraph { name, keep_going, again, token } = request;
        self.perform(name, GraphTask::Run { keep_going, again }, &token).await
    }

    /// Says why a step failed.
    ///
    /// # Errors
    /// As [`Self::operate`], and when no step failed.
    pub async fn diagnose(&self, request: DiagnoseStep) -> fault::Result<GraphAnswer> {
        let DiagnoseStep { name, step, model, token } = request;
        self.perform(name, GraphTask::Diagnose { step, model }, &token).await
    }

    /// Finds a source with which a failure is gone.
    ///
    /// # Errors
    /// As [`Self::diagnose`], and when no source is found.
    pub async fn patch(&self, request: PatchStep) -> fault::Result<GraphAnswer> {
        let PatchStep { name, step, model, tries_max, token } = request;
        if !(1..=TRIES_MOST).contains(&tries_max) {
            bail!("--tries is {tries_max}, and may be 1 to {TRIES_MOST}");
        }
        self.perform(name, GraphTask::Patch { step, model, tries_max }, &token).await
    }

    /// The steps, in the order of the graph.
    ///
    /// # Errors
    /// When there is no such graph, and when the store fails.
    pub fn steps(&self, name: &str) -> fault::Result<Vec<StepView>> {
        Ok(self.look(name, views::steps)?)
    }

    /// A graph with a page of its steps.
    ///
    /// # Errors
    /// As [`Self::steps`].
    pub fn page(&self, request: &ShowGraph) -> fault::Result<GraphPage> {
        Ok(self.look(&request.name, |opened| views::page(opened, request.offset, request.limit))?)
    }

    /// The graph as a text.
    ///
    /// # Errors
    /// As [`Self::steps`].
    pub fn export(&self, name: &str, format: GraphFormat) -> fault::Result<String> {
        Ok(self.look(name, |opened| views::export(opened, format))?)
    }

    /// The steps as lines for a terminal, of at most so many columns.
    ///
    /// # Errors
    /// As [`Self::steps`].
    pub fn draw(&self, name: &str, width: u32) -> fault::Result<String> {
        Ok(self.look(name, |opened| views::drawing(opened, width))?)
    }

    /// The next output of the steps that run, without waiting for the run.
    ///
    /// # Errors
    /// As [`Self::steps`].
    pub async fn output(&self, request: &ReadGraphOutput) -> fault::Result<GraphOutputPage> {
        self.head(&request.name)?.ok_or_else(|| no_graph(&request.name))?;
        Ok(self.services.outputs.read(request).await)
    }

    async fn perform(&self, name: String, task: GraphTask, token: &str) -> fault::Result<GraphAnswer> {
        if task_only_looks(&task) {
            return Ok(self.look(&name, |opened| views::look(opened, &task))??);
        }
        if name.contains(OF_AGENT) {
            bail!("`{name}` belongs to an agent and is read-only; export it, and make a graph of your own");
        }
        let slot = self.slot(&name);
        let mut place = slot.lock().await;
        let mut opened = self.take(&mut place, &name)?;
        if let Some(done) = opened.head.done(token) {
            let answer = known(&opened, done.patch.clone());
            *place = Some(opened);
            return Ok(answer);
        }
        let mut work = GraphChange { services: &self.services, opened: &mut opened, token, batch: Batch::new() };
        let done = work.carry_out(task).await;
        let batch = std::mem::take(&mut work.batch);
        // A refused request changed nothing; the graph in memory may still be ahead of the store, and is dropped.
        let answer = done?;
        self.services.store.commit(batch).await?;
        *place = Some(opened);
        Ok(answer)
    }

    /// Answers a read-only request from the store while another caller changes the graph.
    fn look<T>(&self, name: &str, view: impl FnOnce(&OpenGraph) -> T) -> Result<T, GraphError> {
        let slot = self.slot(name);
        match slot.try_lock() {
            Ok(mut place) => {
                let mut opened = self.take(&mut place, name)?;
                self.services.look_at_files(&mut opened)?;
                let seen = view(&opened);
                *place = Some(opened);
                Ok(seen)
            }
            Err(_) => {
                let mut opened = OpenGraph::load(&*self.services.store, name)?;
                self.services.look_at_files(&mut opened)?;
                Ok(view(&opened))
            }
        }
    }

    /// Makes a graph with its first steps, once for one token.
    ///
    /// # Errors
    /// When its name cannot be one or is taken, when a step cannot be added, and when the store fails. A field at fault
    /// is named.
    pub async fn create(&self, request: CreateGraph) -> fault::Result<GraphSummary> {
        let CreateGraph { name, language, surroundings, steps, token } = request;
        check_graph_name(&name)?;
        check_first_steps(&steps)?;
        let slot = self.slot(&name);
        let _place = slot.lock().await;
        if let Some(head) = self.head(&name)? {
            if head.done(&token).is_some() {
                return Ok(head.summary());
            }
            let taken = format!("there is a graph `{name}` already; choose another name, or remove it first");
            return Err(Fault::conflict(taken).at("name"));
        }
        let mut head = self.fresh_head(&name, language.name(), surroundings)?;
        let batch = version(Batch::new(), &head, format!("made, in {}", head.language))?;
        let (batch, made) = if steps.is_empty() {
            head.note(&token, None);
            (batch.insert(Table::Graphs, record::head_key(&name), bytes(&head)?), head.summary())
        } else {
            let mut opened = OpenGraph::new(head)?;
            let mut work = GraphChange { services: &self.services, opened: &mut opened, token: &token, batch };
            work.carry_out(GraphTask::AddMany(steps)).await?;
            let batch = std::mem::take(&mut work.batch);
            (batch, opened.head.summary())
        };
        self.services.store.commit(batch).await?;
        Ok(made)
    }

    fn fresh_head(&self, name: &str, language: &str, surroundings: StepEnvironment) -> Result<GraphHead, GraphError> {
        // The seed only has to differ between graphs.
        let seed = longhaul_core::Digest::of(format!("{name} {}", self.services.clock.now_ms()).as_bytes());
        Ok(GraphHead::new(name, language, seed, surroundings, self.services.clock.now_ms()))
    }

    /// All graphs by name.
    ///
    /// # Errors
    /// When the store fails.
    pub fn list(&self) -> fault::Result<Vec<GraphSummary>> {
        let (mut graphs, mut after) = (Vec::new(), None::<Vec<u8>>);
        loop {
            let rows = self.services.store.scan(Table::Graphs, &record::heads(), after.as_deref(), PAGE_ROWS)?;
            let Some((last, _)) = rows.last() else { return Ok(graphs) };
            after = Some(last.clone());
            for (_, value) in &rows {
                graphs.push(GraphHead::read(value).map_err(Fault::internal)?.summary());
            }
        }
    }

    /// Removes a graph, and answers what it was.
    ///
    /// # Errors
    /// As [`Self::steps`].
    pub async fn remove(&self, name: &str) -> fault::Result<GraphSummary> {
        let slot = self.slot(name);
        let mut place = slot.lock().await;
        let head = self.head(name)?.ok_or_else(|| no_graph(name))?;
        let mut batch = Batch::new();
        for prefix in [record::steps(name), record::versions(name)] {
            let mut after = None::<Vec<u8>>;
            loop {
                let rows = self.services.store.scan(Table::Graphs, &prefix, after.as_deref(), PAGE_ROWS)?;
                let Some((last, _)) = rows.last() else { break };
                after = Some(last.clone());
                let delete = |(key, _)| Op::Delete(Table::Graphs, longhaul_core::store::Key::from_bytes(key));
                batch.ops.extend(rows.into_iter().map(delete));
            }
        }
        batch.push(Op::Delete(Table::Graphs, record::head_key(name)));
        self.services.store.commit(batch).await?;
        self.services.outputs.forget(name);
        *place = None;
        Ok(head.summary())
    }

    /// The changes of a graph, the newest first.
    ///
    /// # Errors
    /// As [`Self::steps`].
    pub fn history(&self, name: &str) -> fault::Result<Vec<GraphVersion>> {
        self.head(name)?.ok_or_else(|| no_graph(name))?;
        let most = usize::try_from(record::VERSIONS_MAX).unwrap_or(usize::MAX);
        let rows = self.services.store.last(Table::Graphs, &record::versions(name), most)?;
        let version = |(key, value): (Vec<u8>, Vec<u8>)| {
            let row: VersionRow = serde_json::from_slice(&value)?;
            Ok::<_, Fault>(row.version(longhaul_core::store::Key::last_number(&key).unwrap_or_default()))
        };
        rows.into_iter().map(version).collect()
    }

    fn head(&self, name: &str) -> Result<Option<GraphHead>, GraphError> {
        let found = self.services.store.get(Table::Graphs, &record::head_key(name)).map_err(broken)?;
        found.map(|bytes| GraphHead::read(&bytes)).transpose().map_err(GraphError::Failed)
    }

    /// Takes the graph out of memory if it matches the store, else reads it. It is taken out, so that an interrupted
    /// caller leaves no half-changed graph behind.
    fn take(&self, place: &mut Option<OpenGraph>, name: &str) -> Result<OpenGraph, GraphError> {
        let head = self.head(name)?.ok_or_else(|| no_graph(name))?;
        match place.take() {
            Some(opened) if opened.head.revision == head.revision && opened.head.created_ms == head.created_ms => {
                Ok(opened)
            }
            _ => OpenGraph::load(&*self.services.store, name),
        }
    }

    fn slot(&self, name: &str) -> Slot {
        let mut slots = self.slots();
        if slots.len() >= OPEN_MAX && !slots.contains_key(name) {
            // Slots in use stay.
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(slots.entry(name.to_owned()).or_default())
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<String, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl Graphs for GraphService {
    async fn ask(&self, owner: &InvocationId, name: &str, ask: GraphOperation) -> StagedAnswer {
        match self.ask_of_agent(owner, name, ask).await {
            Ok(answered) => answered,
            Err(error) => error.into(),
        }
    }
}

impl GraphService {
    async fn ask_of_agent(
        &self,
        owner: &InvocationId,
        name: &str,
        ask: GraphOperation,
    ) -> Result<StagedAnswer, GraphError> {
        check_name("graph", name).map_err(GraphError::Invalid)?;
        let full = format!("{owner}{OF_AGENT}{name}");
        let slot = self.slot(&full);
        let mut place = slot.lock().await;
        let is_new = self.head(&full)?.is_none();
        let mut opened = match (is_new, &ask) {
            (false, _) => self.take(&mut place, &full)?,
            (true, GraphOperation::Add { .. }) => {
                let mut head = self.fresh_head(&full, "python", of_agent())?;
                head.owner = Some(owner.to_string());
                OpenGraph::new(head)?
            }
            (true, _) => return Err(no_graph(name)),
        };
        if matches!(ask, GraphOperation::Add { .. }) && opened.len() >= AGENT_STEPS_MAX {
            let hit = LimitHit::new("graph_steps_max", opened.len() as u64 + 1, AGENT_STEPS_MAX as u64);
            *place = Some(opened);
            return Err(GraphError::Limit(hit));
        }
        let task = GraphTask::of_agent(ask);
        if task_only_looks(&task) {
            let answer = views::look(&opened, &task);
            *place = Some(opened);
            return answer.map(|answer| StagedAnswer { answer: Ok(answer), closing: Batch::new() });
        }
        let mut work = GraphChange { services: &self.services, opened: &mut opened, token: "", batch: Batch::new() };
        let answer = work.carry_out(task).await?;
        let closing = std::mem::take(&mut work.batch);
        // The graph is ahead of the store until the caller commits; if it never does, the next request finds another
        // revision.
        *place = Some(opened);
        Ok(StagedAnswer { answer: Ok(answer), closing })
    }
}

fn check_graph_name(name: &str) -> fault::Result<()> {
    check_name("graph", name).map_err(|error| Fault::invalid(error).at("name"))?;
    if name.contains(OF_AGENT) {
        let error =
            format!("the name `{name}` has a `{OF_AGENT}`, which only names of agents' graphs have; leave it out");
        return Err(Fault::invalid(error).at("name"));
    }
    Ok(())
}

/// Refuses the first steps of a graph if one of them cannot be added.
fn check_first_steps(steps: &[(String, String)]) -> fault::Result<()> {
    let mut names = BTreeSet::new();
    for (at, (step, source)) in steps.iter().enumerate() {
        let invalid = |field: &str, error: String| Fault::invalid(error).at(format!("steps[{at}].{field}"));
        check_name("step", step).map_err(|error| invalid("step", error))?;
        check_source(step, source).map_err(|error| invalid("source", error))?;
        if !names.insert(step) {
            return Err(invalid("step", format!("several steps are named `{step}`; give each a name of its own")));
        }
    }
    Ok(())
}

/// The response to a request that was carried out before.
fn known(opened: &OpenGraph, patch: Option<PatchView>) -> GraphAnswer {
    match patch {
        Some(patch) => GraphAnswer::Patched(patch),
        None => GraphAnswer::Changed(GraphChanges { stale: opened.stale(), failure: None }),
    }
}

fn version(batch: Batch, head: &GraphHead, what: String) -> Result<Batch, GraphError> {
    let row = VersionRow { at_ms: head.changed_ms, what, step: None, before: None };
    Ok(batch.put(Table::Graphs, record::version_key(&head.name, head.version), bytes(&row)?))
}
