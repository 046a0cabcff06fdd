//! What is asked of the machine's resources, and what is shown of their use. Measures nothing.

use longhaul_config::resources::ResourceSettings;
use longhaul_core::process_registry::{Child, ChildKind, GuestRecord};
use longhaul_core::{InvocationId, RunId};
use longhaul_resources::{PartialLimits, ProcessUsage, SystemUsage, TreeEnd, mb, sum};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Read what is used now.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadResources {}

/// List samples of what was used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListSamples {
    /// Only those after this time, in milliseconds since 1970-01-01 UTC.
    #[serde(default)]
    pub after_ms: u64,
    /// At most so many: the newest.
    pub limit: usize,
}

/// End a child of the owner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndChild {
    /// Its number, as it is listed.
    pub pid: u32,
}

/// A child that was ended with all that it started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChildEnd {
    /// Processes that went when they were asked.
    pub asked: usize,
    /// Processes that had to be killed.
    pub killed: usize,
}

/// Sum all runs up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadMetrics {}

/// All runs summed up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MetricsText {
    /// In the text format of Prometheus.
    pub text: String,
}

/// What is used now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourcesView {
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The machine.
    pub system: SystemUsage,
    /// The number of the process that owns the data directory.
    pub pid: u32,
    /// That process, without its children.
    pub host: ProcessUsage,
    /// Its children.
    pub children: Vec<ChildView>,
    /// Instances of components in it. Their memory is part of the host's.
    pub guests: Vec<GuestView>,
    /// Runs that are worked on, or wait for room.
    pub runs: Vec<RunUse>,
    /// Tasks of agents that run, or wait and are due; at most a hundred.
    pub tasks: Vec<TaskUse>,
    /// Children that were ended at a limit or by a person, the newest last.
    pub ended: Vec<EndedView>,
    /// Whether children have control groups, or why not.
    pub cgroups: String,
    /// What is kept free, and what children may use.
    pub settings: ResourceSettings,
}

/// A child of the owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildView {
    /// Its number.
    pub pid: u32,
    /// What it is for.
    pub kind: ChildKind,
    /// What people know it by.
    pub name: String,
    /// The run on whose tree it works, where it is one's.
    pub run: Option<RunId>,
    /// What it uses with all that it started.
    pub usage: ProcessUsage,
    /// What it may.
    pub limits: PartialLimits,
    /// Whether the kernel holds it to that, too.
    pub has_group: bool,
    /// The limit that it is being ended for.
    pub ending: Option<String>,
}

/// A component instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Instance))]
pub struct GuestView {
    /// The invocation that it serves.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub invocation: InvocationId,
    /// The project.
    pub project: String,
    /// The plugin's table in `longhaul.toml`.
    pub plugin: String,
    /// Its present memory, in MB.
    pub memory_mb: f64,
    /// Its peak memory, in MB.
    pub memory_peak_mb: f64,
    /// Its most memory, in MB.
    pub memory_max_mb: f64,
    /// Fuel used, up to the last time it called the host.
    pub fuel: u64,
    /// The fuel that it may use.
    pub fuel_max: u64,
    /// Time on a thread, in milliseconds.
    pub cpu_ms: u64,
}

/// Resource use of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = RunAtWork))]
pub struct RunUse {
    /// Name of the run.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run: RunId,
    /// Its project.
    pub project: String,
    /// The reason why it waits for room.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub waits: Option<String>,
    /// Number of its component instances.
    pub guests: usize,
    /// Memory of its instances, in MB.
    pub guests_memory_mb: f64,
    /// Number of its known child processes.
    pub children: usize,
    /// Memory of these processes, in MB.
    pub children_memory_mb: f64,
}

/// A task of an agent that runs, or waits for room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = TaskAtWork))]
pub struct TaskUse {
    /// Its id.
    pub task: String,
    /// Its agent.
    pub agent: String,
    /// Whether it runs; otherwise it waits.
    pub runs: bool,
    /// The reason why it waits, if it is known.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub waits: Option<String>,
}

/// A child that was ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndedView {
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Its number.
    pub pid: u32,
    /// What it was for.
    pub kind: ChildKind,
    /// What people knew it by.
    pub name: String,
    /// The run on whose tree it worked.
    pub run: Option<RunId>,
    /// Why.
    pub reason: String,
    /// Processes that went when they were asked.
    pub asked: usize,
    /// Processes that had to be killed.
    pub killed: usize,
}

impl ChildView {
    /// A child with what it uses and may use.
    #[must_use]
    pub fn new(child: &Child, usage: ProcessUsage, limits: PartialLimits, has_group: bool) -> Self {
        let ending = child.hit().map(ToString::to_string);
        let (name, run) = (child.name.clone(), run_of(child.place.as_deref()));
        Self { pid: child.pid, kind: child.kind, name, run, usage, limits, has_group, ending }
    }
}

impl GuestView {
    /// An instance as it is now.
    #[must_use]
    pub fn of(guest: &GuestRecord) -> Self {
        Self {
            invocation: guest.invocation.clone(),
            project: guest.project.clone(),
            plugin: guest.plugin.clone(),
            memory_mb: mb(guest.memory_bytes()),
            memory_peak_mb: mb(guest.memory_bytes_peak()),
            memory_max_mb: mb(guest.memory_bytes_max),
            fuel: guest.fuel(),
            fuel_max: guest.fuel_max,
            cpu_ms: guest.cpu_us() / 1_000,
        }
    }

    /// The run that it is part of, if its invocation is one's.
    pub fn run(&self) -> &str {
        self.invocation.as_str().split(['/', '#']).next().unwrap_or_default()
    }
}

impl EndedView {
    /// A child that was ended for a reason, and what that took.
    #[must_use]
    pub fn new(at_ms: u64, child: &Child, reason: &str, TreeEnd { asked, killed }: TreeEnd) -> Self {
        let (name, run, reason) = (child.name.clone(), run_of(child.place.as_deref()), reason.to_owned());
        Self { at_ms, pid: child.pid, kind: child.kind, name, run, reason, asked, killed }
    }
}

impl RunUse {
    /// What a run uses of all this.
    pub fn of(run: RunId, project: String, waits: Option<String>, all: &ResourcesView) -> Self {
        let guests: Vec<_> = all.guests.iter().filter(|guest| guest.run() == run.as_str()).collect();
        let children: Vec<_> = all.children.iter().filter(|child| child.run.as_ref() == Some(&run)).collect();
        Self {
            project,
            waits,
            guests: guests.len(),
            guests_memory_mb: sum(guests.iter().map(|guest| guest.memory_mb)),
            children: children.len(),
            children_memory_mb: sum(children.iter().map(|child| child.usage.memory_mb)),
            run,
        }
    }
}

/// The run whose tree a directory is: `trees/RUN`, or `trees/RUN.NUMBER`.
fn run_of(place: Option<&Path>) -> Option<RunId> {
    let place = place?;
    if place.parent()?.file_name()? != "trees" {
        return None;
    }
    let name = place.file_name()?.to_str()?;
    Some(RunId::from_text(name.split('.').next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_on_the_tree_of_a_run_is_that_runs() {
        let run = |path: &str| run_of(Some(Path::new(path))).map(|run| run.to_string());
        assert_eq!(run("/home/me/trees/r-0123456789ab.2").as_deref(), Some("r-0123456789ab"));
        assert_eq!(run("/home/me/trees/r-0123456789ab").as_deref(), Some("r-0123456789ab"));
        assert_eq!(run("/home/me/project"), None);
        assert_eq!(run_of(None), None);
    }
}
