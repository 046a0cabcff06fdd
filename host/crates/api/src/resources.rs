//! Requests and responses about the use of resources. This module measures nothing.

use longhaul_config::resources::ResourceSettings;
use longhaul_core::process_registry::{Child, ChildKind, GuestRecord};
use longhaul_core::{InvocationId, RunId};
use longhaul_resources::{PartialLimits, ProcessUsage, SystemUsage, TreeEnd, mb, sum};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Read the present use of resources.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadResources {}

/// List samples of the use of resources.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListSamples {
    /// Only samples after this time are listed, in milliseconds since 1970-01-01 UTC.
    #[serde(default)]
    pub after_ms: u64,
    /// The most samples to list: the newest ones.
    pub limit: usize,
}

/// End a child process of the owner of the data directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndChild {
    /// The process id, as it is listed.
    pub pid: u32,
}

/// A child process that was ended with all that it started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChildEnd {
    /// The number of processes that ended on request.
    pub asked: usize,
    /// The number of processes that were killed.
    pub killed: usize,
}

/// Read the sums over all runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadMetrics {}

/// The sums over all runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MetricsText {
    /// The metrics in the text format of Prometheus.
    pub text: String,
}

/// The present use of resources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourcesView {
    /// The time of the reading, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The use of the machine.
    pub system: SystemUsage,
    /// The process id of the owner of the data directory.
    pub pid: u32,
    /// The use of the owner, without its children.
    pub host: ProcessUsage,
    /// The child processes of the owner.
    pub children: Vec<ChildView>,
    /// The instances of components in the owner. Their memory is part of `host`.
    pub guests: Vec<GuestView>,
    /// The runs that a process works on, or that wait for capacity.
    pub runs: Vec<RunUse>,
    /// The tasks of agents that run, or wait and are due; at most 100.
    pub tasks: Vec<TaskUse>,
    /// The child processes that were ended at a limit or by a person, the newest last.
    pub ended: Vec<EndedView>,
    /// The state of control groups for child processes, or the reason for which there are none.
    pub cgroups: String,
    /// The configured limits and reserves.
    pub settings: ResourceSettings,
}

/// A child process of the owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildView {
    /// The process id.
    pub pid: u32,
    /// The purpose of the process.
    pub kind: ChildKind,
    /// The name for people: the check, the program, the server or the component.
    pub name: String,
    /// The run whose tree it works on. None: it works on no run's tree.
    pub run: Option<RunId>,
    /// The use of resources, with that of all processes that it started.
    pub usage: ProcessUsage,
    /// The limits of the process.
    pub limits: PartialLimits,
    /// True when the kernel enforces the limits, too.
    pub has_group: bool,
    /// The limit for which it is being ended. None: it is not being ended.
    pub ending: Option<String>,
}

/// A component instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = ComponentInstance))]
pub struct GuestView {
    /// The invocation that it serves.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub invocation: InvocationId,
    /// The name of the project.
    pub project: String,
    /// The table of the plugin in `longhaul.toml`.
    pub plugin: String,
    /// Its present memory, in MB.
    pub memory_mb: f64,
    /// Its peak memory, in MB.
    pub memory_peak_mb: f64,
    /// Its most memory, in MB.
    pub memory_max_mb: f64,
    /// The used fuel, up to its last call of the host.
    pub fuel: u64,
    /// The limit of its fuel.
    pub fuel_max: u64,
    /// The processor time, in milliseconds.
    pub cpu_ms: u64,
}

/// Resource use of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = ActiveRun))]
pub struct RunUse {
    /// Name of the run.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run: RunId,
    /// The name of its project.
    pub project: String,
    /// The reason why it waits for room.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub waiting_for: Option<String>,
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
#[cfg_attr(feature = "schema", schema(as = ActiveTask))]
pub struct TaskUse {
    /// Its id.
    pub task: String,
    /// Its agent.
    pub agent: String,
    /// True when it runs. False: it waits.
    pub runs: bool,
    /// The reason why it waits, if it is known.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub waiting_for: Option<String>,
}

/// A child process that was ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndedView {
    /// The time of its end, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The process id.
    pub pid: u32,
    /// The purpose of the process.
    pub kind: ChildKind,
    /// The name for people.
    pub name: String,
    /// The run whose tree it worked on. None: it worked on no run's tree.
    pub run: Option<RunId>,
    /// The reason, in one line.
    pub reason: String,
    /// The number of processes that ended on request.
    pub asked: usize,
    /// The number of processes that were killed.
    pub killed: usize,
}

impl ChildView {
    /// A child process with its use and its limits.
    #[must_use]
    pub fn new(child: &Child, usage: ProcessUsage, limits: PartialLimits, has_group: bool) -> Self {
        let ending = child.hit().map(ToString::to_string);
        let (name, run) = (child.name.clone(), run_of(child.place.as_deref()));
        Self { pid: child.pid, kind: child.kind, name, run, usage, limits, has_group, ending }
    }
}

impl GuestView {
    /// An instance with its present use.
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

    /// The id of the run that the invocation belongs to.
    pub fn run(&self) -> &str {
        self.invocation.as_str().split(['/', '#']).next().unwrap_or_default()
    }
}

impl EndedView {
    /// An ended child process, with the reason and the outcome.
    #[must_use]
    pub fn new(at_ms: u64, child: &Child, reason: &str, TreeEnd { asked, killed }: TreeEnd) -> Self {
        let (name, run, reason) = (child.name.clone(), run_of(child.place.as_deref()), reason.to_owned());
        Self { at_ms, pid: child.pid, kind: child.kind, name, run, reason, asked, killed }
    }
}

impl RunUse {
    /// The use of a run, summed over the child processes and instances that belong to it.
    pub fn of(run: RunId, project: String, waiting_for: Option<String>, all: &ResourcesView) -> Self {
        let guests: Vec<_> = all.guests.iter().filter(|guest| guest.run() == run.as_str()).collect();
        let children: Vec<_> = all.children.iter().filter(|child| child.run.as_ref() == Some(&run)).collect();
        Self {
            project,
            waiting_for,
            guests: guests.len(),
            guests_memory_mb: sum(guests.iter().map(|guest| guest.memory_mb)),
            children: children.len(),
            children_memory_mb: sum(children.iter().map(|child| child.usage.memory_mb)),
            run,
        }
    }
}

/// The run whose tree a directory is: `trees/RUN` or `trees/RUN.NUMBER`. None: it is no run's tree.
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
