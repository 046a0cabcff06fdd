//! The file format. This module is its documentation, also for other readers of `state.redb`.
//!
//! A data directory (mode 0700) holds
//!
//! - `state.redb` (0600): a [redb](https://docs.rs/redb) 4 database with the tables below;
//! - `state.lock` (0600): empty; the process that holds its lock owns the store;
//! - `state.log.0` and `state.log.1` (0600), while the store is in use: the last batches, see `log.rs`; they are
//!   removed when the store is closed in order;
//! - `state.redb.new`: a database that is being made; it is renamed when it is whole, and one that is
//!   found was left by a kill and is deleted.
//!
//! Every table but `meta` has keys and values of bytes. A key is made of parts as
//! [`Key`](longhaul_core::store::Key) does: text is followed by the bytes 0 0, with a 0 byte within it
//! written as 0 255; a number is 8 bytes, big-endian. So keys sort as their parts do and the keys of one
//! owner are one range. A value is one JSON record, in UTF-8, unless the table says otherwise; readers
//! ignore fields that they do not know, and new fields have a default.
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | text | `format`: the number of the format in JSON; `written_by`: the version that made the file |
//! | | | `log`, in format 2: the token of the last log whose batches are all in the tables; 16 bytes |
//! | `runs` | run | the record of its start: project, branch, configuration, goal, pins; written once |
//! | `states` | run | the number of the row below that has the present state, changed by the run's only writer |
//! | | run, `past`, number of the last event of a step | the versioned state of the harness after it: short fields, digests of blobs for the rest; see `record/parts.rs` of `longhaul-records` |
//! | | run, `called`, key | the time at which a call of `builtin:project` added to the progress; text |
//! | | run, `kept`, kind | the number of `decisions`, entries of `progress` and notes of `memory` that its agents keep, and their bytes |
//! | | run, `annotation`, invocation | a person's annotation of an agent's trajectory |
//! | | run, `proposal`, id | an agent's proposal, and the decision on it |
//! | | run, `proposal-told`, id | the mark of a proposal that an event reported; text |
//! | | run, `approval`, id | a question to a person about a call of a tool, with the answer |
//! | | run, `approval-rule`, id | a person's rule for the rest of the run |
//! | | run, `repeats` | digests of calls that act and that runs which it was forked from made after the points |
//! | | run, `question` | the effect in question, while the run waits with it |
//! | | run, `judged`, feature | the digest of the tree that was judged last; text |
//! | | run, `best-effort`, feature | the digest of a blob with the changes that a failing feature, or a revert, left; text |
//! | | run, `revert` | a revert in progress; deleted in the transaction that ends it |
//! | | run, `until` | the requested stop condition; none: it goes to its end |
//! | | run, `place` | the data directory that has its trees, where several share the state |
//! | | run, `tree`, number of the tree | the files of a tree that differ from a commit, where several share the state: the digest of their manifest |
//! | | run, `git` | the commits of the run in the same case: digests of packs, and its refs |
//! | | run, `tree-past`, number of the tree, time | the same of a tree from that time on, with `[run] tree_history`; null if it could not be kept |
//! | | run, `forked` | the run that it was forked from, the point, and the usage before it |
//! | | run, `fork`, other run | null: the other run is a fork of it |
//! | | run, `lent`, other run | null: a journal of the other run may begin with entries that this run holds; without the other run the number of changes of these rows |
//! | | run, `loss` | the failover or restore of the database that may have lost its newest commits; it goes on when a person resumes it |
//! | | run, `queued` | the time from which it waits for its turn; text; deleted when it gets it |
//! | | `migration` | the other end of a migration that is unfinished, or that moved the state away; a store with it is refused |
//! | | `loss` | the same for tasks of schedules; deleted when those that may have begun have ended |
//! | | `timeline` | the timeline of the server that has the store; a number |
//! | | `history` | the id of the history of the store, which a loss of commits ends, and those of the earlier ones |
//! | | `sums`, run | what the run did and used, summed up from its events, with the number of the last one |
//! | | `project-day`, project, number of the day, run, invocation | what an invocation of a project used on a day of UTC; deleted two days later |
//! | | the same, `call` | its model call in flight, with the most that it may use |
//! | | `worker`, data directory | what a server that works on runs tells of itself: machine, labels, number of runs |
//! | | `claim`, data directory, run | the claim of that server on a run, with the epoch of its seat; deleted when it ends |
//! | | `call`, data directory, number | an operation that the leader asks that server to carry out; deleted with the reply |
//! | | `reply`, data directory, number | the reply; the leader deletes it |
//! | | `letters`, run, number of the event | a notification, and its channels; deleted an hour after |
//! | | `letters`, task, number of its attempts | the same of a task of a schedule that has failed |
//! | | `projects`, directory | a created project, with its name and time |
//! | | `checkouts`, directory | the project of a checkout: its id, its name, and a commit that it had |
//! | | `trust`, directory | the powers of a `longhaul.toml` that a person agreed to |
//! | | `audit`, number from 1 without gaps | a record of the audit log, with the digest of the record before |
//! | | `tokens`, id | a token of the HTTP API: name, scopes, expiry, and the digest of its secret |
//! | | `remember`, run | a run that ended and is to be remembered, with its model's reply; deleted once it is |
//! | | `checkpoints`, `about`, name | a saved snapshot: its time, its expiry, and its length |
//! | | `checkpoints`, `snapshot`, name | the snapshot itself |
//! | `events` | run, number from 1 without gaps | `RunEvent` |
//! | `journal` | invocation, entry, kind, attempt | see `record.rs` of `longhaul-journal` |
//! | `keyvalue` | project, plugin's table, key | the plugin's bytes, not JSON |
//! | `memory` | `working`, run, key | a run's note for itself: an entry that holds a note, see `core/src/memory` |
//! | | `episodic`, project, key | a fact of a project, in the same way |
//! | | `@`, namespace, key | an entry of any other namespace: `episodes/PROJECT` holds the outcomes of runs |
//! | | `vectors`, namespace, key | the meaning of an entry: 32 bytes that identify the model and the text, then 32-bit numbers; not JSON |
//! | `decisions` | project, id | one decision, its reason, and its outcome |
//! | | `@newest`, project, 2^64-1 - time in ms, id | the id; text |
//! | | `@feature`, project, run, feature, 2^64-1 - time in ms, id | the id; text |
//! | `progress` | project, time in ms, id | finished work |
//! | `artifacts` | project, plugin's table | the last artifact |
//! | `graphs` | `head`, graph | the settings and the position of a graph; see `record.rs` of `longhaul-graph` |
//! | | `step`, graph, position | a step: its source, or the digest of it, and the results of its last runs |
//! | | `version`, graph, number | the effect of a change; the last ones |
//! | `agents` | `agent`, agent | an agent: its code, or the digest of it, its limits and grants |
//! | | `artifact`, agent | the artifact of its runs, with its version; empty after it was cleared |
//! | | `version`, agent, number | an earlier or the present one; the last ones |
//! | `schedules` | `settings` | the number of tasks that run at once |
//! | | `schedule`, schedule | a schedule, and its next fire |
//! | | `open`, task | a task that has not ended, with its attempts |
//! | | `direct`, task | the same, of a task that no schedule made |
//! | | `ended`, task | a task that has ended; the last ones |
//! | | `result`, task, number of the attempt | the result of an attempt, its output in part |
//! | | `index`, agent or nothing, status, 2^64-1 - time in ms, task | an ended task, the newest first; text |
//! | | `counts`, agent or nothing | the number of ended tasks |
//! | | `tally`, schedule | the outcomes of its fires, counted |
//! | | `skipped`, schedule, number | fires that became no task, and their reasons; the last ones |
//! | `blobs` | SHA-256, 32 bytes | see `blob.rs`; not JSON |
//!
//! The format number changes when a reader of the old number could misread the new file. A file with
//! a higher number is refused, not guessed at. A file that was closed in order has format 1. In format 2 there are logs
//! beside it, whose batches may not be in the tables yet: a store in use has it, and one that was killed.

use longhaul_core::store::Table;
use redb::TableDefinition;

/// The newest version of the file format that this crate reads: a file with logs beside it.
pub const FORMAT: u64 = 2;

/// The version of a file without logs beside it.
pub(crate) const FORMAT_CLOSED: u64 = 1;

/// The database's name in the data directory.
pub const STATE_FILE: &str = "state.redb";

/// The name under which a new database is made.
pub(crate) const NEW_FILE: &str = "state.redb.new";

/// The lock's name in the data directory.
pub(crate) const LOCK_FILE: &str = "state.lock";

/// The names of the two logs in the data directory, which are used by turns.
pub(crate) const LOG_FILES: [&str; 2] = ["state.log.0", "state.log.1"];

/// Facts about the file.
pub(crate) const META: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("meta");

/// The key of the format's number in [`META`].
pub(crate) const META_FORMAT: &str = "format";

/// The key of the token of the last log whose batches are all in the tables in [`META`].
pub(crate) const META_LOG: &str = "log";

/// The key of the version that made the file in [`META`].
pub(crate) const META_WRITTEN_BY: &str = "written_by";

/// Content by digest.
pub(crate) const BLOBS: Bytes = TableDefinition::new("blobs");

/// A table from bytes to bytes.
pub(crate) type Bytes = TableDefinition<'static, &'static [u8], &'static [u8]>;

/// One of the tables that batches change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Place {
    Table(Table),
    Blobs,
}

impl Place {
    pub(crate) fn definition(self) -> Bytes {
        match self {
            Self::Table(table) => definition(table),
            Self::Blobs => BLOBS,
        }
    }

    /// Its number in a log.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Blobs => 0,
            Self::Table(Table::Runs) => 1,
            Self::Table(Table::States) => 2,
            Self::Table(Table::Events) => 3,
            Self::Table(Table::Journal) => 4,
            Self::Table(Table::KeyValue) => 5,
            Self::Table(Table::Memory) => 6,
            Self::Table(Table::Decisions) => 7,
            Self::Table(Table::Progress) => 8,
            Self::Table(Table::Artifacts) => 9,
            Self::Table(Table::Graphs) => 10,
            Self::Table(Table::Agents) => 11,
            Self::Table(Table::Schedules) => 12,
        }
    }

    /// The table with a number in a log.
    pub(crate) fn of_code(code: u8) -> Option<Self> {
        Table::ALL.into_iter().map(Self::Table).chain([Self::Blobs]).find(|place| place.code() == code)
    }
}

/// The table in the file.
pub(crate) fn definition(table: Table) -> Bytes {
    TableDefinition::new(match table {
        Table::Runs => "runs",
        Table::States => "states",
        Table::Events => "events",
        Table::Journal => "journal",
        Table::KeyValue => "keyvalue",
        Table::Memory => "memory",
        Table::Decisions => "decisions",
        Table::Progress => "progress",
        Table::Artifacts => "artifacts",
        Table::Graphs => "graphs",
        Table::Agents => "agents",
        Table::Schedules => "schedules",
    })
}
