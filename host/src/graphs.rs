//! The graphs of a data directory: kept in its store, run in the sandbox, diagnosed and patched on a copy.
//!
//! A graph is opened once and then kept in memory; what lies in the store decides, by the number of its last writing.
//! Each change is one transaction, and each step that ends is one, so that a kill loses the step that was under way and
//! nothing else. One graph is changed by one caller at a time, and looked at by any. An agent's graph belongs to its
//! invocation: others look at it and do not change it. Nothing here knows what depends on what, or what is stale; that
//! is the affair of `longhaul-graph`.

mod advice;
mod mend;
mod opened;
mod run;
mod views;

use crate::home::Home;
use longhaul_api::graphs::{GraphAsk, Language, ModelChoice, TRIES_MAX};
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::graph::{
    Answer, Answered, Ask, Changes, GraphError, Graphs, PatchView, StepLimits, Summary, Surroundings, Version,
    check_name,
};
use longhaul_core::project_models::ProjectModels;
use longhaul_core::store::{Batch, Op, Store, StoreError, Table};
use longhaul_core::text::count;
use longhaul_core::{Clock, InvocationId, LimitHit};
use longhaul_graph::record::{self, Head, VersionRow};
use opened::Opened;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sources that one patch may be told to try.
const TRIES_MOST: u32 = 100;

/// Steps of an agent's graph, and time of each, in milliseconds.
const AGENT_STEPS_MAX: usize = 1_000;
const AGENT_STEP_MS_MAX: u64 = 60_000;

/// Graphs that stay in memory between two questions.
const OPEN_MAX: usize = 16;

/// Rows that are read at once.
const PAGE_ROWS: usize = 1_000;

/// What stands between the invocation and the name that its agent gave to a graph.
const OF_AGENT: char = '#';

/// What is answered.
pub enum Reply {
    /// What an agent is answered as well.
    One(Box<Answer>),
    /// Graphs in short, by name.
    Graphs(Vec<Summary>),
    /// Changes, the newest first.
    Versions(Vec<Version>),
}

/// A graph's place: held by whoever changes it.
type Slot = Arc<tokio::sync::Mutex<Option<Opened>>>;

/// Keeps the graphs.
pub struct Desk {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    runner: run::Lazy,
    models: Arc<dyn ProjectModels>,
    slots: Mutex<HashMap<String, Slot>>,
}

impl Desk {
    /// The desk of a data directory. Nothing is read yet, and no interpreter is loaded.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, home: &Home, models: Arc<dyn ProjectModels>) -> Self {
        let runner = run::Lazy::new(Arc::clone(&store), home.clone());
        Self { runner, store, clock, models, slots: Mutex::default() }
    }

    /// Answers; a request whose token is known was carried out.
    pub async fn answer(&self, wanted: GraphAsk, token: &str) -> fault::Result<Reply> {
        match wanted {
            GraphAsk::New { name, language, surroundings } => {
                self.make(&name, language, surroundings, token).await.map(Reply::Graphs)
            }
            GraphAsk::List => self.list().map(Reply::Graphs),
            GraphAsk::Remove { name } => self.remove(&name).await.map(Reply::Graphs),
            GraphAsk::History { name } => self.history(&name).map(Reply::Versions),
            other => Ok(Reply::One(Box::new(self.one(other, token).await?))),
        }
    }

    async fn one(&self, wanted: GraphAsk, token: &str) -> fault::Result<Answer> {
        let (name, ask) = match wanted {
            GraphAsk::One { name, ask } => (name, Task::Ask(ask)),
            GraphAsk::AddMany { name, steps } => (name, Task::AddMany(steps)),
            GraphAsk::Run { name, keep_going, again } => (name, Task::Run { keep_going, again }),
            GraphAsk::Draw { name, width } => (name, Task::Draw { width }),
            GraphAsk::Diagnose { name, step, model } => (name, Task::Diagnose { step, model }),
            GraphAsk::Patch { name, step, model, tries_max } => {
                if !(1..=TRIES_MOST).contains(&tries_max) {
                    bail!("--tries is {tries_max}, and may be 1 to {TRIES_MOST}");
                }
                (name, Task::Patch { step, model, tries_max })
            }
            GraphAsk::New { .. } | GraphAsk::List | GraphAsk::Remove { .. } | GraphAsk::History { .. } => {
                bail!("this is no question to one graph")
            }
        };
        if task_only_looks(&ask) {
            return Ok(self.look(&name, &ask)?);
        }
        if name.contains(OF_AGENT) {
            bail!("`{name}` is an agent's, which nobody else changes; export it, and make a graph of your own");
        }
        let slot = self.slot(&name);
        let mut place = slot.lock().await;
        let mut opened = self.take(&mut place, &name)?;
        if let Some(done) = opened.head.done(token) {
            let answer = known(&opened, done.patch.clone());
            *place = Some(opened);
            return Ok(answer);
        }
        let mut work = Work { desk: self, opened: &mut opened, token, batch: Batch::new() };
        let done = work.carry_out(ask).await;
        let batch = std::mem::take(&mut work.batch);
        // What is refused changed nothing; what is in memory may still be ahead of the store, and goes.
        let answer = done?;
        self.store.commit(batch).await?;
        *place = Some(opened);
        Ok(answer)
    }

    /// What changes nothing is answered from the store while somebody else changes the graph.
    fn look(&self, name: &str, task: &Task) -> Result<Answer, GraphError> {
        let slot = self.slot(name);
        match slot.try_lock() {
            Ok(mut place) => {
                let opened = self.take(&mut place, name)?;
                let answer = views::look(&opened, task);
                *place = Some(opened);
                answer
            }
            Err(_) => views::look(&Opened::load(&*self.store, name)?, task),
        }
    }

    async fn make(
        &self,
        name: &str,
        language: Language,
        surroundings: Surroundings,
        token: &str,
    ) -> fault::Result<Vec<Summary>> {
        check_name("graph", name).map_err(Fault::msg)?;
        if name.contains(OF_AGENT) {
            bail!("the name `{name}` has a `{OF_AGENT}`, which only names of agents' graphs have; leave it out");
        }
        let slot = self.slot(name);
        let _place = slot.lock().await;
        if let Some(head) = self.head(name)? {
            if head.done(token).is_some() {
                return Ok(vec![head.summary()]);
            }
            bail!("there is a graph `{name}` already; choose another name, or remove it first");
        }
        let mut head = self.fresh_head(name, language.name(), surroundings)?;
        head.note(token, None);
        let what = format!("made, in {}", head.language);
        let batch = version(Batch::new(), &head, what)?.insert(Table::Graphs, record::head_key(name), bytes(&head)?);
        self.store.commit(batch).await?;
        Ok(vec![head.summary()])
    }

    fn fresh_head(&self, name: &str, language: &str, surroundings: Surroundings) -> Result<Head, GraphError> {
        // The seed only has to differ between graphs.
        let seed = longhaul_core::Digest::of(format!("{name} {}", self.clock.now_ms()).as_bytes());
        Ok(Head::new(name, language, seed, surroundings, self.clock.now_ms()))
    }

    fn list(&self) -> fault::Result<Vec<Summary>> {
        let (mut graphs, mut after) = (Vec::new(), None::<Vec<u8>>);
        loop {
            let rows = self.store.scan(Table::Graphs, &record::heads(), after.as_deref(), PAGE_ROWS)?;
            let Some((last, _)) = rows.last() else { return Ok(graphs) };
            after = Some(last.clone());
            for (_, value) in &rows {
                graphs.push(Head::read(value).map_err(Fault::msg)?.summary());
            }
        }
    }

    async fn remove(&self, name: &str) -> fault::Result<Vec<Summary>> {
        let slot = self.slot(name);
        let mut place = slot.lock().await;
        let head = self.head(name)?.ok_or_else(|| no_graph(name))?;
        let mut batch = Batch::new();
        for prefix in [record::steps(name), record::versions(name)] {
            let mut after = None::<Vec<u8>>;
            loop {
                let rows = self.store.scan(Table::Graphs, &prefix, after.as_deref(), PAGE_ROWS)?;
                let Some((last, _)) = rows.last() else { break };
                after = Some(last.clone());
                let delete = |(key, _)| Op::Delete(Table::Graphs, longhaul_core::store::Key::from_bytes(key));
                batch.ops.extend(rows.into_iter().map(delete));
            }
        }
        batch.push(Op::Delete(Table::Graphs, record::head_key(name)));
        self.store.commit(batch).await?;
        *place = None;
        Ok(vec![head.summary()])
    }

    fn history(&self, name: &str) -> fault::Result<Vec<Version>> {
        self.head(name)?.ok_or_else(|| no_graph(name))?;
        let most = usize::try_from(record::VERSIONS_MAX).unwrap_or(usize::MAX);
        let rows = self.store.last(Table::Graphs, &record::versions(name), most)?;
        let version = |(key, value): (Vec<u8>, Vec<u8>)| {
            let row: VersionRow = serde_json::from_slice(&value)?;
            Ok::<_, Fault>(row.version(longhaul_core::store::Key::last_number(&key).unwrap_or_default()))
        };
        rows.into_iter().map(version).collect()
    }

    fn head(&self, name: &str) -> Result<Option<Head>, GraphError> {
        let found = self.store.get(Table::Graphs, &record::head_key(name)).map_err(broken)?;
        found.map(|bytes| Head::read(&bytes)).transpose().map_err(GraphError::Failed)
    }

    /// The graph in memory, if that is what lies in the store, else from there. It is taken out: whoever is cut off
    /// with it leaves nothing half done behind.
    fn take(&self, place: &mut Option<Opened>, name: &str) -> Result<Opened, GraphError> {
        let head = self.head(name)?.ok_or_else(|| no_graph(name))?;
        match place.take() {
            Some(opened) if opened.head.revision == head.revision && opened.head.created_ms == head.created_ms => {
                Ok(opened)
            }
            _ => Opened::load(&*self.store, name),
        }
    }

    fn slot(&self, name: &str) -> Slot {
        let mut slots = self.slots();
        if slots.len() >= OPEN_MAX && !slots.contains_key(name) {
            // Whoever holds one is not disturbed.
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(slots.entry(name.to_owned()).or_default())
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<String, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl Graphs for Desk {
    async fn ask(&self, owner: &InvocationId, name: &str, ask: Ask) -> Answered {
        match self.ask_of_agent(owner, name, ask).await {
            Ok(answered) => answered,
            Err(error) => error.into(),
        }
    }
}

impl Desk {
    async fn ask_of_agent(&self, owner: &InvocationId, name: &str, ask: Ask) -> Result<Answered, GraphError> {
        check_name("graph", name).map_err(GraphError::Invalid)?;
        let full = format!("{owner}{OF_AGENT}{name}");
        let slot = self.slot(&full);
        let mut place = slot.lock().await;
        let is_new = self.head(&full)?.is_none();
        let mut opened = match (is_new, &ask) {
            (false, _) => self.take(&mut place, &full)?,
            (true, Ask::Add { .. }) => {
                let mut head = self.fresh_head(&full, "python", of_agent())?;
                head.owner = Some(owner.to_string());
                Opened::new(head)?
            }
            (true, _) => return Err(no_graph(name)),
        };
        if matches!(ask, Ask::Add { .. }) && opened.len() >= AGENT_STEPS_MAX {
            let hit = LimitHit::new("graph_steps_max", opened.len() as u64 + 1, AGENT_STEPS_MAX as u64);
            *place = Some(opened);
            return Err(GraphError::Limit(hit));
        }
        let task = Task::of_agent(ask);
        if task_only_looks(&task) {
            let answer = views::look(&opened, &task);
            *place = Some(opened);
            return answer.map(|answer| Answered { answer: Ok(answer), closing: Batch::new() });
        }
        let mut work = Work { desk: self, opened: &mut opened, token: "", batch: Batch::new() };
        let answer = work.carry_out(task).await?;
        let closing = std::mem::take(&mut work.batch);
        // Ahead of the store until the caller commits; if it never does, the next question finds another revision.
        *place = Some(opened);
        Ok(Answered { answer: Ok(answer), closing })
    }
}

/// What the steps of agents see: nothing.
fn of_agent() -> Surroundings {
    let limits = StepLimits { timeout_ms: AGENT_STEP_MS_MAX, ..StepLimits::default() };
    Surroundings { limits, ..Surroundings::default() }
}

/// What is done with one graph.
enum Task {
    Ask(Ask),
    AddMany(Vec<(String, String)>),
    Run { keep_going: bool, again: Option<String> },
    Draw { width: u32 },
    Diagnose { step: Option<String>, model: Option<ModelChoice> },
    Patch { step: Option<String>, model: Option<ModelChoice>, tries_max: u32 },
}

impl Task {
    /// An agent has a model of its own to ask, and its budget.
    fn of_agent(ask: Ask) -> Self {
        match ask {
            Ask::Run { keep_going } => Self::Run { keep_going, again: None },
            Ask::Diagnose { step } => Self::Diagnose { step, model: None },
            Ask::Patch { step } => Self::Patch { step, model: None, tries_max: TRIES_MAX },
            other => Self::Ask(other),
        }
    }
}

fn task_only_looks(task: &Task) -> bool {
    matches!(task, Task::Draw { .. } | Task::Ask(Ask::Stale | Ask::Show | Ask::Export { .. }))
}

/// One change of a graph that is under way.
struct Work<'a> {
    desk: &'a Desk,
    opened: &'a mut Opened,
    token: &'a str,
    /// What the caller commits.
    batch: Batch,
}

impl Work<'_> {
    async fn carry_out(&mut self, task: Task) -> Result<Answer, GraphError> {
        match task {
            Task::Ask(Ask::Add { step, source }) => self.add(vec![(step, source)]),
            Task::AddMany(steps) => self.add(steps),
            Task::Ask(Ask::Change { step, source }) => self.change(&step, source),
            Task::Ask(Ask::Remove { step }) => self.remove(&step),
            Task::Ask(Ask::Run { keep_going }) => self.run(None, None, keep_going).await.map(Answer::Replayed),
            Task::Run { keep_going, again } => self.run(None, again, keep_going).await.map(Answer::Replayed),
            Task::Ask(Ask::Replay { step, keep_going }) => {
                self.run(Some(step), None, keep_going).await.map(Answer::Replayed)
            }
            Task::Ask(Ask::Diagnose { step }) => self.diagnose(step, None).await.map(Answer::Diagnosed),
            Task::Diagnose { step, model } => self.diagnose(step, model).await.map(Answer::Diagnosed),
            Task::Ask(Ask::Patch { step }) => self.patch(step, None, TRIES_MAX).await.map(Answer::Patched),
            Task::Patch { step, model, tries_max } => self.patch(step, model, tries_max).await.map(Answer::Patched),
            task @ (Task::Draw { .. } | Task::Ask(Ask::Stale | Ask::Show | Ask::Export { .. })) => {
                views::look(self.opened, &task)
            }
        }
    }

    fn add(&mut self, steps: Vec<(String, String)>) -> Result<Answer, GraphError> {
        steps.iter().try_for_each(|(step, source)| acceptable(step, source))?;
        let (added, failure) = self.opened.add(steps, &mut self.batch)?;
        let what = match &added[..] {
            [one] => format!("added `{one}`"),
            all => format!("added {}", count(all.len(), "step")),
        };
        self.changed(what, None)?;
        let stale = added.iter().map(ToString::to_string).collect();
        Ok(Answer::Changed(Changes { stale, failure }))
    }

    fn change(&mut self, step: &str, source: String) -> Result<Answer, GraphError> {
        acceptable(step, &source)?;
        let (stale, failure, before) = self.opened.change(step, source, &mut self.batch)?;
        self.changed(format!("changed `{step}`"), Some(before))?;
        Ok(Answer::Changed(Changes { stale, failure }))
    }

    fn remove(&mut self, step: &str) -> Result<Answer, GraphError> {
        let (stale, before) = self.opened.remove(step, &mut self.batch)?;
        self.changed(format!("removed `{step}`"), Some(before))?;
        Ok(Answer::Changed(Changes { stale, failure: None }))
    }

    /// A version more.
    fn changed(&mut self, what: String, before: Option<opened::Before>) -> Result<(), GraphError> {
        self.noted(what, before, None)
    }

    fn noted(
        &mut self,
        what: String,
        before: Option<opened::Before>,
        patch: Option<PatchView>,
    ) -> Result<(), GraphError> {
        self.opened.head.note(self.token, patch);
        self.opened.head.version += 1;
        let now_ms = self.desk.clock.now_ms();
        let (step, before) = before.map_or((None, None), |before| (Some(before.step), Some(before.source)));
        let row = VersionRow { at_ms: now_ms, what, step, before };
        let head = &self.opened.head;
        let key = record::version_key(&head.name, head.version);
        self.batch.push(Op::Put(Table::Graphs, key, bytes(&row)?));
        if let Some(old) = head.version.checked_sub(record::VERSIONS_MAX) {
            self.batch.push(Op::Delete(Table::Graphs, record::version_key(&head.name, old)));
        }
        self.opened.write_head(now_ms, &mut self.batch)
    }
}

fn acceptable(step: &str, source: &str) -> Result<(), GraphError> {
    check_name("step", step).map_err(GraphError::Invalid)?;
    let (bytes, max) = (source.len(), longhaul_core::graph::SOURCE_BYTES_MAX);
    if bytes > max {
        return Err(GraphError::Invalid(format!(
            "the source of `{step}` has {bytes} bytes, and at most {max} are kept; read data from a file with --dir"
        )));
    }
    Ok(())
}

/// What a request is answered that was carried out before.
fn known(opened: &Opened, patch: Option<PatchView>) -> Answer {
    match patch {
        Some(patch) => Answer::Patched(patch),
        None => Answer::Changed(Changes { stale: opened.stale(), failure: None }),
    }
}

fn version(batch: Batch, head: &Head, what: String) -> Result<Batch, GraphError> {
    let row = VersionRow { at_ms: head.changed_ms, what, step: None, before: None };
    Ok(batch.put(Table::Graphs, record::version_key(&head.name, head.version), bytes(&row)?))
}

fn bytes(record: &impl Serialize) -> Result<Vec<u8>, GraphError> {
    serde_json::to_vec(record).map_err(|error| GraphError::Failed(format!("a graph cannot be written: {error}")))
}

fn no_graph(name: &str) -> GraphError {
    let name = longhaul_core::text::printable(name, 100);
    GraphError::Invalid(format!("there is no graph `{name}`; `longhaul graph list` has those that there are"))
}

fn broken(error: StoreError) -> GraphError {
    GraphError::Failed(error.to_string())
}
