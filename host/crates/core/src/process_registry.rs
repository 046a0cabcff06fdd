//! The registry of this process's active component instances and children.
//!
//! The starter of something registers it, and dropping the entry removes it. Displays and the monitor read the list.
//! Refuses to keep ended entries, to measure anything, and to end anything: a child's limits are noted here, and so is
//! the one that ended it, so that its starter can report it.

use crate::denial::LimitHit;
use crate::ids::InvocationId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

static GUESTS: Registry<GuestRecord> = Registry::new();
static CHILDREN: Registry<Child> = Registry::new();

/// An instance of a component, and its use of resources.
#[derive(Debug)]
pub struct GuestRecord {
    /// The invocation that it serves.
    pub invocation: InvocationId,
    /// The name of the project.
    pub project: String,
    /// The plugin's table in `longhaul.toml`.
    pub plugin: String,
    /// The limit of its memories together, in bytes.
    pub memory_bytes_max: u64,
    /// The limit of its fuel.
    pub fuel_max: u64,
    gauge: Gauge,
}

/// The values that change while the instance runs.
#[derive(Debug, Default)]
struct Gauge {
    memory_bytes: AtomicU64,
    memory_bytes_peak: AtomicU64,
    fuel: AtomicU64,
    cpu_us: AtomicU64,
}

impl GuestRecord {
    /// An instance without resources yet.
    #[must_use]
    pub fn new(
        invocation: InvocationId,
        project: String,
        plugin: String,
        memory_bytes_max: u64,
        fuel_max: u64,
    ) -> Self {
        Self { invocation, project, plugin, memory_bytes_max, fuel_max, gauge: Gauge::default() }
    }

    /// Sets the size of its memories, in bytes.
    pub fn holds(&self, memory_bytes: u64) {
        self.gauge.memory_bytes.store(memory_bytes, Ordering::Relaxed);
        self.gauge.memory_bytes_peak.fetch_max(memory_bytes, Ordering::Relaxed);
    }

    /// Sets its fuel since its start.
    pub fn burnt(&self, fuel: u64) {
        self.gauge.fuel.store(fuel, Ordering::Relaxed);
    }

    /// Sets its time on a thread since its start, in microseconds.
    pub fn ran(&self, cpu_us: u64) {
        self.gauge.cpu_us.store(cpu_us, Ordering::Relaxed);
    }

    /// The present size of its memories, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.gauge.memory_bytes.load(Ordering::Relaxed)
    }

    /// The highest size of its memories, in bytes.
    #[must_use]
    pub fn memory_bytes_peak(&self) -> u64 {
        self.gauge.memory_bytes_peak.load(Ordering::Relaxed)
    }

    /// The used fuel, up to its last call of the host.
    #[must_use]
    pub fn fuel(&self) -> u64 {
        self.gauge.fuel.load(Ordering::Relaxed)
    }

    /// The processor time, in microseconds, up to its last yield.
    #[must_use]
    pub fn cpu_us(&self) -> u64 {
        self.gauge.cpu_us.load(Ordering::Relaxed)
    }
}

/// The purpose of a child process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChildKind {
    /// It compiles a component.
    Compiler,
    /// It is a check, or a program that an agent asked for.
    Program,
    /// It is a program that lives on between calls, such as a browser.
    Kept,
    /// It is an MCP server behind its keeper.
    McpServer,
    /// It runs a model on this machine.
    Model,
}

impl std::fmt::Display for ChildKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Compiler => "compiler",
            Self::Program => "program",
            Self::Kept => "kept program",
            Self::McpServer => "MCP server",
            Self::Model => "model",
        })
    }
}

/// A child process with all its descendants.
#[derive(Debug)]
pub struct Child {
    /// The process id.
    pub pid: u32,
    /// The purpose of the process.
    pub kind: ChildKind,
    /// The name for people: the check, the program, the server or the component.
    pub name: String,
    /// The tree that it works on. None: no tree.
    pub place: Option<PathBuf>,
    /// The limit of the memory of all its processes together, in bytes. None: its starter set none.
    pub memory_bytes_max: Option<u64>,
    /// The limit of the number of its processes. None: its starter set none.
    pub processes_max: Option<u64>,
    hit: OnceLock<LimitHit>,
}

impl Child {
    /// A child that was just started.
    #[must_use]
    pub fn new(pid: u32, kind: ChildKind, name: impl Into<String>) -> Self {
        let (place, memory_bytes_max, processes_max, hit) = Default::default();
        Self { pid, kind, name: name.into(), place, memory_bytes_max, processes_max, hit }
    }

    /// Notes the limit that ends it; the first one counts.
    pub fn end_for(&self, hit: LimitHit) {
        // An earlier call has set the reason.
        let _ = self.hit.set(hit);
    }

    /// The limit that ended it, if one did.
    #[must_use]
    pub fn hit(&self) -> Option<&LimitHit> {
        self.hit.get()
    }
}

/// An entry in the list, until dropped.
#[derive(Debug)]
pub struct RegistryEntry<T: Registered> {
    number: u64,
    of: Arc<T>,
}

impl<T: Registered> RegistryEntry<T> {
    /// The registered value, for a holder that outlives the entry.
    #[must_use]
    pub fn shared(&self) -> Arc<T> {
        Arc::clone(&self.of)
    }
}

impl<T: Registered> std::ops::Deref for RegistryEntry<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.of
    }
}

impl<T: Registered> Drop for RegistryEntry<T> {
    fn drop(&mut self) {
        T::registry().lock().remove(&self.number);
    }
}

/// A type that can be registered.
pub trait Registered: Sized + Send + Sync + 'static {
    #[doc(hidden)]
    fn registry() -> &'static Registry<Self>;

    /// Registers the value until the returned entry is dropped.
    fn enter(self) -> RegistryEntry<Self> {
        Self::enter_shared(Arc::new(self))
    }

    /// Registers a shared value.
    fn enter_shared(one: Arc<Self>) -> RegistryEntry<Self> {
        Self::registry().enter(one)
    }

    /// All registered values, in the order of registration.
    #[must_use]
    fn all() -> Vec<Arc<Self>> {
        Self::registry().lock().values().cloned().collect()
    }
}

impl Registered for GuestRecord {
    fn registry() -> &'static Registry<Self> {
        &GUESTS
    }
}

impl Registered for Child {
    fn registry() -> &'static Registry<Self> {
        &CHILDREN
    }
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Registry<T> {
    last: AtomicU64,
    listed: Mutex<BTreeMap<u64, Arc<T>>>,
}

impl<T: Registered> Registry<T> {
    const fn new() -> Self {
        Self { last: AtomicU64::new(0), listed: Mutex::new(BTreeMap::new()) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<T>>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, of: Arc<T>) -> RegistryEntry<T> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(number, Arc::clone(&of));
        RegistryEntry { number, of }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_entered_is_listed_until_it_ends() {
        let named = || Child::all().into_iter().filter(|child| child.name == "census-test").count();
        let entry = Child::new(1, ChildKind::Program, "census-test").enter();
        assert_eq!(named(), 1);
        entry.end_for(LimitHit::new("memory_mb_max", 2, 1));
        entry.end_for(LimitHit::new("processes_max", 9, 5));
        assert_eq!(entry.hit().map(|hit| hit.name.as_str()), Some("memory_mb_max"), "the first reason counts");
        drop(entry);
        assert_eq!(named(), 0);
    }

    #[test]
    fn a_peak_stays_when_memory_is_given_back() {
        let guest = GuestRecord::new(InvocationId::from_text("i"), "p".into(), "tools.t".into(), 100, 1).enter();
        guest.holds(90);
        guest.holds(10);
        assert_eq!((guest.memory_bytes(), guest.memory_bytes_peak()), (10, 90));
    }
}
