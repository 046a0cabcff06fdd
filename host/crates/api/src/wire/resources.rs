//! Resource use of the machine.

use crate::resources::{ChildView, EndedView, GuestView, ResourcesView as Inner, RunUse, TaskUse};
use longhaul_resources::{GpuUsage, PartialLimits, ProcessUsage as InnerUsage, Sample as InnerSample, SystemUsage};
use serde::Serialize;
use serde_json::Value;

/// Resource use of a process, or of a tree of processes.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TreeUsage {
    /// Resident memory, in MB.
    pub memory_mb: f64,
    /// Processor time, in percent of one processor.
    pub cpu_percent: f64,
    /// Number of threads.
    pub num_threads: u64,
    /// Number of processes below the first one.
    pub num_children: u64,
}

impl From<InnerUsage> for TreeUsage {
    fn from(inner: InnerUsage) -> Self {
        let InnerUsage { memory_mb, cpu_percent, num_threads, num_children, .. } = inner;
        Self { memory_mb, cpu_percent, num_threads, num_children }
    }
}

/// Memory of a graphics card.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = GraphicsCard))]
pub struct Card {
    /// Its model.
    pub name: String,
    /// Its memory, in MB.
    pub memory_total_mb: f64,
    /// The used part, in MB.
    pub memory_used_mb: f64,
}

/// Resource use of the whole machine.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Machine {
    /// Its memory, in MB.
    pub memory_total_mb: f64,
    /// Its available memory, in MB.
    pub memory_available_mb: f64,
    /// Its used memory, in percent.
    pub memory_percent: f64,
    /// Number of its processors.
    pub cpu_count: u64,
    /// Use of all processors, in percent.
    pub cpu_percent: f64,
    /// Its graphics cards, if they can be read.
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

/// Limits of a tree of processes; null: no limit.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TreeLimits {
    /// Most memory, in MB.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub max_memory_mb: Option<f64>,
    /// Most processor time, in percent of one processor.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub max_cpu_percent: Option<f64>,
    /// Most processes.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub max_processes: Option<u64>,
}

impl From<PartialLimits> for TreeLimits {
    fn from(inner: PartialLimits) -> Self {
        let PartialLimits { max_memory_mb, max_cpu_percent, max_processes, .. } = inner;
        Self { max_memory_mb, max_cpu_percent, max_processes }
    }
}

/// A child process with its descendants.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChildProcess {
    /// Its process id.
    pub pid: u32,
    /// Its kind, for example `compiler`.
    pub kind: String,
    /// Its name for people.
    pub name: String,
    /// The run that it works for.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub run: Option<String>,
    /// Its resource use.
    pub usage: TreeUsage,
    /// Its limits.
    pub limits: TreeLimits,
    /// True when it has a control group.
    pub has_group: bool,
    /// The reason why it is being ended.
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

/// A child process that was ended at a limit, or by a person.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EndedChild {
    /// Time of the end, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Its process id.
    pub pid: u32,
    /// Its kind.
    pub kind: String,
    /// Its name for people.
    pub name: String,
    /// The run that it worked for.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub run: Option<String>,
    /// The reason.
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

/// Resource use at one time.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Sample))]
pub struct SampleView {
    /// Time of the sample, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Used memory of the machine, in percent.
    pub memory_percent: f64,
    /// Available memory of the machine, in MB.
    pub memory_available_mb: f64,
    /// Use of its processors, in percent.
    pub cpu_percent: f64,
    /// Used memory of all its graphics cards, in MB.
    pub gpu_memory_used_mb: f64,
    /// The server without its children.
    pub host: TreeUsage,
    /// All its children together.
    pub children: TreeUsage,
    /// Number of component instances.
    pub guests: u64,
    /// Memory of all instances, in MB.
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

/// Resource use of the machine, now and before.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Resources {
    /// Time of the measurement, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The whole machine.
    pub system: Machine,
    /// The server itself, without its children.
    pub host: TreeUsage,
    /// All its children together.
    pub children_usage: TreeUsage,
    /// Its children.
    pub children: Vec<ChildProcess>,
    /// Instances of components that are at work.
    pub instances: Vec<GuestView>,
    /// Runs that are worked on, or wait for room.
    pub runs: Vec<RunUse>,
    /// Tasks that run, or wait for room.
    pub tasks: Vec<TaskUse>,
    /// Children that were ended, the newest last.
    pub ended: Vec<EndedChild>,
    /// The state of the control groups of children, in words.
    pub cgroups: String,
    /// Samples, one each five seconds, the oldest first.
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
