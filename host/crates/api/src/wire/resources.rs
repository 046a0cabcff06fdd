//! Resource use of the machine.

use crate::resources::{ChildView, EndedView, GuestView, ResourcesView as Inner, RunUse, TaskUse};
use longhaul_resources::{GpuUsage, PartialLimits, ProcessUsage as InnerUsage, Sample as InnerSample, SystemUsage};
use serde::Serialize;
use serde_json::Value;

/// What a process, or a tree of them, uses.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TreeUsage {
    /// Memory that is in the machine, in MB.
    pub memory_mb: f64,
    /// Of one processor, in percent.
    pub cpu_percent: f64,
    /// Threads.
    pub num_threads: u64,
    /// Processes below the first one.
    pub num_children: u64,
}

impl From<InnerUsage> for TreeUsage {
    fn from(inner: InnerUsage) -> Self {
        let InnerUsage { memory_mb, cpu_percent, num_threads, num_children, .. } = inner;
        Self { memory_mb, cpu_percent, num_threads, num_children }
    }
}

/// What is used of a graphics card.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Card {
    /// What it is.
    pub name: String,
    /// Its memory, in MB.
    pub memory_total_mb: f64,
    /// What of it is used.
    pub memory_used_mb: f64,
}

/// What is used of the whole machine.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Machine {
    /// Its memory, in MB.
    pub memory_total_mb: f64,
    /// What can still be had.
    pub memory_available_mb: f64,
    /// What is used, in percent.
    pub memory_percent: f64,
    /// Its processors.
    pub cpu_count: u64,
    /// How busy they are, in percent.
    pub cpu_percent: f64,
    /// Its graphics cards, where they can be read.
    pub gpus: Vec<Card>,
}

impl From<SystemUsage> for Machine {
    fn from(inner: SystemUsage) -> Self {
        let card = |GpuUsage { name, memory_total_mb, memory_used_mb, .. }: GpuUsage| Card {
            name,
            memory_total_mb,
            memory_used_mb,
        };
        Self {
            memory_total_mb: inner.memory_total_mb,
            memory_available_mb: inner.memory_available_mb,
            memory_percent: inner.memory_percent,
            cpu_count: inner.cpu_count,
            cpu_percent: inner.cpu_percent,
            gpus: inner.gpus.into_iter().map(card).collect(),
        }
    }
}

/// What a tree of processes is held to; null: no limit.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TreeLimits {
    /// Memory, in MB.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub max_memory_mb: Option<f64>,
    /// Of one processor, in percent.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub max_cpu_percent: Option<f64>,
    /// Processes.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub max_processes: Option<u64>,
}

impl From<PartialLimits> for TreeLimits {
    fn from(inner: PartialLimits) -> Self {
        let PartialLimits { max_memory_mb, max_cpu_percent, max_processes, .. } = inner;
        Self { max_memory_mb, max_cpu_percent, max_processes }
    }
}

/// A child process with all that it started.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChildProcess {
    /// Its number.
    pub pid: u32,
    /// What it is, for example `compiler`.
    pub kind: String,
    /// For people.
    pub name: String,
    /// For which run.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub run: Option<String>,
    /// What it uses.
    pub usage: TreeUsage,
    /// What it is held to.
    pub limits: TreeLimits,
    /// Whether it has a control group.
    pub has_group: bool,
    /// Why it is being ended.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub ending: Option<String>,
}

impl From<ChildView> for ChildProcess {
    fn from(inner: ChildView) -> Self {
        Self {
            pid: inner.pid,
            kind: word(inner.kind),
            name: inner.name,
            run: inner.run.map(|run| run.to_string()),
            usage: inner.usage.into(),
            limits: inner.limits.into(),
            has_group: inner.has_group,
            ending: inner.ending,
        }
    }
}

fn word(kind: impl Serialize) -> String {
    serde_json::to_value(kind).ok().as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A child process that was ended since it was over a limit, or because somebody asked for it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EndedChild {
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Its number.
    pub pid: u32,
    /// What it was.
    pub kind: String,
    /// For people.
    pub name: String,
    /// For which run.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub run: Option<String>,
    /// Why.
    pub reason: String,
}

impl From<EndedView> for EndedChild {
    fn from(inner: EndedView) -> Self {
        Self {
            at_ms: inner.at_ms,
            pid: inner.pid,
            kind: word(inner.kind),
            name: inner.name,
            run: inner.run.map(|run| run.to_string()),
            reason: inner.reason,
        }
    }
}

/// What was used at one time.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Sample))]
pub struct SampleView {
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Memory of the machine that is used, in percent.
    pub memory_percent: f64,
    /// Memory of the machine that can still be had, in MB.
    pub memory_available_mb: f64,
    /// How busy its processors were, in percent.
    pub cpu_percent: f64,
    /// Memory of all its graphics cards that is used, in MB.
    pub gpu_memory_used_mb: f64,
    /// What the server itself used, without its children.
    pub host: TreeUsage,
    /// What all its children used together.
    pub children: TreeUsage,
    /// Instances of components.
    pub guests: u64,
    /// What their memories came to, in MB.
    pub guests_memory_mb: f64,
}

impl From<InnerSample> for SampleView {
    fn from(inner: InnerSample) -> Self {
        Self {
            at_ms: inner.at_ms,
            memory_percent: inner.memory_percent,
            memory_available_mb: inner.memory_available_mb,
            cpu_percent: inner.cpu_percent,
            gpu_memory_used_mb: inner.gpu_memory_used_mb,
            host: inner.host.into(),
            children: inner.children.into(),
            guests: inner.guests,
            guests_memory_mb: inner.guests_memory_mb,
        }
    }
}

/// What is used of the machine, and was.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Resources {
    /// When this was measured, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The whole machine.
    pub system: Machine,
    /// The server itself, without its children.
    pub host: TreeUsage,
    /// All its children together.
    pub children_usage: TreeUsage,
    /// Each of them.
    pub children: Vec<ChildProcess>,
    /// Instances of components that are at work.
    pub instances: Vec<GuestView>,
    /// Runs that are worked on.
    pub runs: Vec<RunUse>,
    /// Tasks that run, or wait for room.
    pub tasks: Vec<TaskUse>,
    /// Children that were ended.
    pub ended: Vec<EndedChild>,
    /// Whether children have control groups, in words.
    pub cgroups: String,
    /// Oldest first, about each five seconds.
    pub history: Vec<SampleView>,
}

impl Resources {
    /// The use now and the samples before.
    pub fn of(now: Inner, history: Vec<InnerSample>) -> Self {
        let children: Vec<ChildProcess> = now.children.into_iter().map(Into::into).collect();
        let children_usage = children.iter().fold(TreeUsage::default(), |sum, one| TreeUsage {
            memory_mb: sum.memory_mb + one.usage.memory_mb,
            cpu_percent: sum.cpu_percent + one.usage.cpu_percent,
            num_threads: sum.num_threads + one.usage.num_threads,
            num_children: sum.num_children + one.usage.num_children + 1,
        });
        Self {
            at_ms: now.at_ms,
            system: now.system.into(),
            host: now.host.into(),
            children_usage,
            children,
            instances: now.guests,
            runs: now.runs,
            tasks: now.tasks,
            ended: now.ended.into_iter().map(Into::into).collect(),
            cgroups: now.cgroups,
            history: history.into_iter().map(Into::into).collect(),
        }
    }
}
