//! The published form of each resource: what `--json` prints, HTTP and MCP answer, and the page and outside clients
//! read.
//!
//! A type of this module is made `From` the type that the service answers, so that what is stored can change without
//! what is published. Bodies of requests are turned into what the service takes, or refused with the field at fault.
//! This module asks no service, reads no file, and leaves the status of a response to the surface.
//!
//! The comments of the types are published, as the descriptions of the OpenAPI document. The feature `schema` gives
//! each type that HTTP answers its schema.
//!
//! | file | holds |
//! |---|---|
//! | `wire/agents.rs` | agents, and the artifacts that they pass to their next run |
//! | `wire/approvals.rs` | approvals, and the rules that answers made |
//! | `wire/changes.rs` | the changes of a run: diffs and merges |
//! | `wire/checkpoints.rs` | checkpoints, saved snapshots and imported runs |
//! | `wire/commits.rs` | the changes of one commit |
//! | `wire/comparison.rs` | runs beside each other |
//! | `wire/doctor.rs` | the fitness of the machine for runs |
//! | `wire/events.rs` | pages of events |
//! | `wire/exports.rs` | files that an import reads again |
//! | `wire/features.rs` | features and plans |
//! | `wire/forks.rs` | forks of runs |
//! | `wire/graphs.rs` | graphs of steps of code |
//! | `wire/journal.rs` | invocations, journal entries and replays |
//! | `wire/knowledge.rs` | decisions, memory, proposals and trajectories |
//! | `wire/maintenance.rs` | backups and restores |
//! | `wire/models.rs` | configured, tested and fetched models |
//! | `wire/onboarding.rs` | the installed skill, and the demo of `onboard` |
//! | `wire/packages.rs` | locked packages of Python |
//! | `wire/plugins.rs` | plugins: lists, builds and installations; inspections, checks and calls of one |
//! | `wire/points.rs` | runs at points of their past |
//! | `wire/projects.rs` | identities and checks of projects, and outcomes of prompts |
//! | `wire/prompts.rs` | guesses about prompts |
//! | `wire/resources.rs` | resource use of the machine |
//! | `wire/runs.rs` | projects, runs, commits and costs |
//! | `wire/schedules.rs` | schedules, tasks and the scheduler |
//! | `wire/secrets.rs` | secrets by their names |
//! | `wire/security.rs` | the audit log, and the trust in files and signers |
//! | `wire/training.rs` | trajectories in the formats of training tools |
//! | `wire/usage.rs` | usage of runs, and the caps on it |
//! | `wire/workers.rs` | the servers that work on runs of one store |

pub mod agents;
pub mod approvals;
pub mod changes;
pub mod checkpoints;
pub mod commits;
pub mod comparison;
pub mod doctor;
pub mod events;
pub mod exports;
pub mod features;
pub mod forks;
pub mod graphs;
pub mod journal;
pub mod knowledge;
pub mod maintenance;
pub mod models;
pub mod onboarding;
pub mod packages;
pub mod plugins;
pub mod points;
pub mod projects;
pub mod prompts;
pub mod resources;
pub mod runs;
pub mod schedules;
pub mod secrets;
pub mod security;
pub mod training;
pub mod usage;
pub mod workers;

use serde::Serialize;

/// A page of a list.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Items of the whole list.
    pub total: usize,
    /// Items of a page.
    pub limit: usize,
    /// Items before this page.
    pub offset: usize,
}

/// The part of a list that a page holds.
#[derive(Clone, Copy, Debug)]
pub struct PageWindow {
    /// Items of a page.
    pub limit: usize,
    /// Items before this page.
    pub offset: usize,
}

impl<T> Page<T> {
    /// The page of a list; only what is on it is made into views.
    pub fn of<F>(all: Vec<F>, window: impl Into<PageWindow>, view: impl Fn(F) -> T) -> Self {
        let (total, PageWindow { limit, offset }) = (all.len(), window.into());
        let items = all.into_iter().skip(offset).take(limit).map(view).collect();
        Self { items, total, limit, offset }
    }

    /// A list on one page.
    pub fn whole<F>(all: Vec<F>, view: impl Fn(F) -> T) -> Self {
        let window = PageWindow { limit: all.len(), offset: 0 };
        Self::of(all, window, view)
    }
}

/// Makes an enum for the wire, with the cases of an enum inside and the conversions between the two.
macro_rules! words {
    ($(#[$attribute:meta])* $name:ident of $from:path as $inner:ident { $($(#[$about:meta])* $word:ident),* $(,)? }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$about])* $word),* }

        use $from as $inner;

        impl From<$inner> for $name {
            fn from(inner: $inner) -> Self {
                match inner { $($inner::$word => Self::$word),* }
            }
        }

        impl From<$name> for $inner {
            fn from(outer: $name) -> Self {
                match outer { $($name::$word => Self::$word),* }
            }
        }
    };
}
pub(super) use words;
