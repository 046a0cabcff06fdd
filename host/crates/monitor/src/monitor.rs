//! Watches one process's children and its machine.

use longhaul_api::resources::{ChildView, EndedView, GuestView, ResourcesView};
use longhaul_config::resources::{ResourceSettings, WatchedSettings};
use longhaul_core::capacity::{AdmissionVerdict, Capacity, Need};
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::process_registry::{Child, GuestRecord, Registered as _};
use longhaul_core::{Clock, LimitHit};
use longhaul_resources::admission::runs_max;
use longhaul_resources::cgroup::{CgroupParent, ChildCgroup};
use longhaul_resources::{
    GRACE, GpuUsage, History, PartialLimits, Process, ProcessTable, ProcessUsage, PromisedResources, ResourceError,
    Sample, Sampler, Stat, SystemUsage, TreeEnd, Watchdog, end_tree, gpu, mb,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// Interval of sampling. A pass over 200 processes takes about 2 ms.
const LOOK: Duration = Duration::from_millis(500);

/// Interval of queries to graphics cards, which may wake them.
const LOOK_AT_CARDS: Duration = Duration::from_secs(10);

/// The shortest interval for a share of processors, for a query right after the start.
const FIRST_INTERVAL: Duration = Duration::from_millis(250);

/// Ended children that are remembered.
const ENDED_MAX: usize = 100;

/// Watches one process's children and its machine.
pub struct Monitor {
    clock: Arc<dyn Clock>,
    settings: WatchedSettings,
    known: Mutex<KnownChild>,
    cards: Mutex<Vec<GpuUsage>>,
    watching: OnceLock<()>,
    memory_total_mb: OnceLock<f64>,
}

#[derive(Default)]
struct KnownChild {
    sampler: Sampler,
    watchdog: Watchdog,
    history: History,
    admission: PromisedResources,
    groups: Option<Result<CgroupParent, String>>,
    /// Control groups of children, by process number and start time.
    group_of: BTreeMap<Process, ChildCgroup>,
    ending: BTreeSet<Process>,
    ended: VecDeque<EndedView>,
    looked: bool,
}

/// A live child, and its usage.
struct ObservedChild {
    child: Arc<Child>,
    root: Process,
    usage: ProcessUsage,
    rule: PartialLimits,
}

impl Monitor {
    /// A monitor that has not sampled yet. Its settings are read from `resources.toml` in this directory.
    pub fn new(home: PathBuf, clock: Arc<dyn Clock>) -> Arc<Self> {
        let (known, cards, watching, memory_total_mb) = Default::default();
        Arc::new(Self { clock, settings: WatchedSettings::of(home), known, cards, watching, memory_total_mb })
    }

    /// Samples from now on, as long as a reference to it exists. Needs a runtime; only the first call does anything.
    pub fn watch(self: &Arc<Self>) {
        if self.watching.set(()).is_err() {
            return;
        }
        let (own, cards) = (Arc::downgrade(self), Arc::downgrade(self));
        tokio::spawn(every(LOOK, own, |monitor| monitor.look()));
        if gpu::is_there() {
            tokio::spawn(every(LOOK_AT_CARDS, cards, |monitor| {
                let read = gpu::read();
                *monitor.cards.lock().unwrap_or_else(PoisonError::into_inner) = read;
            }));
        }
    }

    /// The current usage. Right after the start it takes a moment, so that shares of processors cover an interval.
    pub async fn now(self: &Arc<Self>) -> fault::Result<ResourcesView> {
        if !self.lock().looked {
            let own = Arc::clone(self);
            tokio::task::spawn_blocking(move || own.shown()).await??;
            tokio::time::sleep(FIRST_INTERVAL).await;
        }
        let own = Arc::clone(self);
        tokio::task::spawn_blocking(move || own.shown()).await?
    }

    /// Samples after a time, oldest first.
    pub fn history(&self, after_ms: u64, limit: usize) -> Vec<Sample> {
        self.lock().history.since(after_ms, limit)
    }

    /// Ends a child of this process by its number: asked first, and killed when it does not end.
    pub async fn end(self: &Arc<Self>, pid: u32) -> fault::Result<TreeEnd> {
        let own = Arc::clone(self);
        tokio::task::spawn_blocking(move || own.end_child(pid)).await?
    }

    fn end_child(&self, pid: u32) -> fault::Result<TreeEnd> {
        let table = ProcessTable::read()?;
        let found = Child::all().into_iter().find(|child| child.pid == pid);
        let Some((child, root)) = found.and_then(|child| root_of(&table, &child).map(|root| (child, root))) else {
            if table.named(pid).is_none() {
                return Err(ResourceError::Absent { pid }.into());
            }
            bail!("process {pid} was not started by this longhaul; `longhaul ps` lists those that were");
        };
        let ended = end_tree(root, GRACE, &is_ours)?;
        self.note(&child, "ended by a person", Ok(ended));
        Ok(ended)
    }

    /// Samples all children, and stores a sample when one is due.
    fn look(self: &Arc<Self>) {
        let now_ms = self.clock.now_ms();
        let mut known = self.lock();
        if Child::all().is_empty() && !known.history.is_due(now_ms) {
            known.group_of.clear();
            return;
        }
        if let Err(error) = self.look_at(&mut known, now_ms) {
            tracing::debug!(%error, "what children use is not known");
        }
    }

    fn look_at(self: &Arc<Self>, known: &mut KnownChild, now_ms: u64) -> Result<(), ResourceError> {
        let settings = self.settings.now();
        let table = ProcessTable::read()?;
        let seen = known.children(&table, &settings);
        for ObservedChild { child, root, usage, rule } in &seen {
            known.hold(&table, child, *root, rule);
            let hit = known.watchdog.look(*root, usage, rule, now_ms, settings.busy_s_max.saturating_mul(1_000));
            // If no thread can start, the next pass tries again.
            if let Some(hit) = hit.filter(|_| !known.ending.contains(root))
                && self.end_over(child, *root, hit)
            {
                known.ending.insert(*root);
            }
        }
        let roots: Vec<Process> = seen.iter().map(|seen| seen.root).collect();
        known.forget_all_but(&roots);
        if known.history.is_due(now_ms) {
            let machine = self.machine(known)?;
            let usages: Vec<ProcessUsage> = seen.iter().map(|seen| seen.usage).collect();
            let guests = GuestRecord::all();
            let held: u64 = guests.iter().map(|guest| guest.memory_bytes()).sum();
            let sample = Sample::new(now_ms, &machine, known.host(&table), &usages);
            known.history.push(Sample { guests: guests.len() as u64, guests_memory_mb: mb(held), ..sample });
        }
        known.looked = true;
        Ok(())
    }

    /// Ends a child over a limit, on a thread of its own, since it may use its whole grace period. False: no thread
    /// could start.
    fn end_over(self: &Arc<Self>, child: &Arc<Child>, root: Process, hit: LimitHit) -> bool {
        tracing::warn!(pid = root.pid, kind = ?child.kind, name = child.name, %hit, "a child is over its limit and is ended");
        child.end_for(hit.clone());
        let (own, child) = (Arc::clone(self), Arc::clone(child));
        let end = move || {
            let ended = end_tree(root, GRACE, &is_ours);
            own.note(&child, &hit.to_string(), ended);
        };
        let begun = std::thread::Builder::new().name("longhaul-end".into()).spawn(end);
        if let Err(error) = &begun {
            tracing::warn!(%error, "no thread to end a child with");
        }
        begun.is_ok()
    }

    fn note(&self, child: &Child, reason: &str, ended: Result<TreeEnd, ResourceError>) {
        let ended = match ended {
            Ok(ended) => ended,
            // The child ended first.
            Err(ResourceError::Absent { .. }) => TreeEnd::default(),
            Err(error) => {
                tracing::warn!(pid = child.pid, %error, "a child could not be ended");
                TreeEnd::default()
            }
        };
        let mut known = self.lock();
        if known.ended.len() == ENDED_MAX {
            known.ended.pop_front();
        }
        known.ended.push_back(EndedView::new(self.clock.now_ms(), child, reason, ended));
    }

    fn shown(&self) -> fault::Result<ResourcesView> {
        let settings = self.settings.now();
        let mut known = self.lock();
        let table = ProcessTable::read().context("what processes use")?;
        let children = known.children(&table, &settings);
        let system = self.machine(&mut known)?;
        let cgroups = match &known.groups {
            Some(Ok(_)) => "each child has a group of its own".to_owned(),
            Some(Err(why)) => format!("none: {why}"),
            None => "not looked for yet: there was no child".to_owned(),
        };
        let shown = |seen: &ObservedChild| {
            let has_group = known.group_of.contains_key(&seen.root);
            ChildView::new(&seen.child, seen.usage, seen.rule, has_group)
        };
        let children = children.iter().map(shown).collect();
        Ok(ResourcesView {
            at_ms: self.clock.now_ms(),
            system,
            pid: std::process::id(),
            host: known.host(&table),
            children,
            guests: GuestRecord::all().iter().map(|guest| GuestView::of(guest)).collect(),
            runs: Vec::new(),
            tasks: Vec::new(),
            ended: known.ended.iter().cloned().collect(),
            cgroups,
            settings: (*settings).clone(),
        })
    }

    fn machine(&self, known: &mut KnownChild) -> Result<SystemUsage, ResourceError> {
        let gpus = self.cards.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(SystemUsage { gpus, ..known.sampler.machine()? })
    }

    fn lock(&self) -> MutexGuard<'_, KnownChild> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Capacity for Monitor {
    fn admit(&self, who: &str, begins: bool, need: Need) -> AdmissionVerdict {
        let settings = self.settings.now();
        let mut known = self.lock();
        match self.machine(&mut known) {
            Ok(machine) => known.admission.admit(who, begins, need, &settings.reserve, &machine, self.clock.now_ms()),
            // Without readings of the machine there is no capacity to plan with.
            Err(error) => {
                tracing::debug!(%error, "admitted unseen");
                AdmissionVerdict::Admit
            }
        }
    }

    fn runs_max(&self) -> u32 {
        let settings = self.settings.now();
        settings.runs_max.unwrap_or_else(|| {
            let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            // The memory of a machine does not change, so it is read once.
            let total = self.memory_total_mb.get_or_init(|| {
                let machine = self.machine(&mut self.lock());
                machine.map_or(f64::MAX, |machine| machine.memory_total_mb)
            });
            runs_max(cores, *total, &settings.reserve)
        })
    }
}

impl KnownChild {
    /// The live children, each with its usage and limits.
    fn children(&mut self, table: &ProcessTable, settings: &ResourceSettings) -> Vec<ObservedChild> {
        let seen = Child::all().into_iter().filter_map(|child| {
            let root = root_of(table, &child)?;
            let usage = self.sampler.tree(table, root)?;
            let rule = settings.rule(&child);
            Some(ObservedChild { child, root, usage, rule })
        });
        seen.collect()
    }

    fn host(&mut self, table: &ProcessTable) -> ProcessUsage {
        let own = table.named(std::process::id()).map(|stat| stat.process);
        own.and_then(|own| self.sampler.alone(table, own)).unwrap_or_default()
    }

    /// Puts a new child into a control group, if those are available.
    fn hold(&mut self, table: &ProcessTable, child: &Child, root: Process, rule: &PartialLimits) {
        let groups = self.groups.get_or_insert_with(|| {
            let taken = CgroupParent::take();
            if let Err(why) = &taken {
                tracing::debug!(why, "no control groups for children");
            }
            taken
        });
        let Ok(groups) = groups else { return };
        if self.group_of.contains_key(&root) {
            return;
        }
        match groups.make(&format!("child-{}-{}", root.pid, root.start_ticks), rule) {
            Ok(group) => {
                // Its own children, too; a process that ends meanwhile needs no group.
                for stat in table.tree(root) {
                    let _ = group.add(stat.process.pid);
                }
                self.group_of.insert(root, group);
            }
            Err(error) => tracing::warn!(pid = child.pid, %error, "a child has no control group"),
        }
    }

    fn forget_all_but(&mut self, roots: &[Process]) {
        let own = std::process::id();
        self.sampler.keep(|process| process.pid == own || roots.contains(&process));
        self.watchdog.keep(roots);
        self.ending.retain(|root| roots.contains(root));
        self.group_of.retain(|root, _| roots.contains(root));
    }
}

/// The process of a child, if it is alive and a child of this process.
fn root_of(table: &ProcessTable, child: &Child) -> Option<Process> {
    let stat = table.named(child.pid)?;
    // A reused process number may belong to any process, but hardly to a child of this one.
    (stat.parent == std::process::id()).then_some(stat.process)
}

/// True when a process is this very program, which supervises others and ends with them.
fn is_ours(stat: &Stat) -> bool {
    let exe = |whose: &str| std::fs::read_link(format!("/proc/{whose}/exe")).ok();
    exe(&stat.process.pid.to_string()).is_some_and(|found| Some(found) == exe("self"))
}

/// Repeats an action, on a thread for blocking work, as long as the monitor is held.
async fn every(interval: Duration, monitor: Weak<Monitor>, act: fn(&Arc<Monitor>)) {
    let mut turns = tokio::time::interval(interval);
    turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        turns.tick().await;
        let Some(monitor) = monitor.upgrade() else { return };
        // A pass that has not begun is cancelled as the program ends.
        if tokio::task::spawn_blocking(move || act(&monitor)).await.is_err_and(|error| error.is_panic()) {
            tracing::warn!("a measurement of resources broke off");
        }
    }
}
