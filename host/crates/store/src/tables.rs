//! The file format. This module is its document: whoever reads `state.redb` without us reads this.
//!
//! A data directory (mode 0700) holds
//!
//! - `state.redb` (0600): a [redb](https://docs.rs/redb) 4 database with the tables below;
//! - `state.lock` (0600): empty; the process that holds its lock owns the store;
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
//! | `meta` | text | `format`: the number [`FORMAT`] in JSON; `written_by`: the version that made the file |
//! | `runs` | run | what it was started with: project, branch, configuration, goal, pins; written once |
//! | `states` | run | the versioned state of the harness, changed by the run's only writer: short fields, digests of the rest |
//! | | run, `field`, name | a long field of the state |
//! | | run, `page`, number from 0 | digests of 16 features of the state |
//! | | run, `feature`, number from 0 | a feature of the state, its `spec` the digest of a blob |
//! | | run, `called`, key | when a call of `builtin:project` added to the progress; text |
//! | | run, `kept`, kind | how many `decisions`, entries of `progress` and notes of `memory` its agents keep, and their bytes |
//! | | run, `annotation`, invocation | what a person said of an agent's trajectory |
//! | | run, `proposal`, id | what an agent proposed, and what became of it |
//! | | run, `approval`, id | a question to a person about a call of a tool, with the answer |
//! | | run, `approval-rule`, id | what a person allowed by rule for the rest of the run |
//! | | run, `question` | the effect that is asked about, while the run waits with it |
//! | | run, `judged`, feature | the digest of what was judged last; text |
//! | | run, `best-effort`, feature | the digest of a blob with what a failing feature, or a revert, left; text |
//! | | run, `revert` | a revert that is carried out; gone in the transaction that ends it |
//! | | run, `until` | where it pauses by itself, as it was asked to; none: it goes to its end |
//! | | `letters`, run, number of the event | what somebody is told, and on which way it left; goes an hour after |
//! | | `letters`, task, number of its attempts | the same of a task of a schedule that has failed |
//! | | `projects`, directory | a project that was made, with its name and when |
//! | | `checkouts`, directory | which project a checkout is: its id, its name, and a commit that it had |
//! | | `trust`, directory | the powers of a `longhaul.toml` that a person agreed to |
//! | | `audit`, number from 1 without gaps | who was let do what, with the digest of the record before |
//! | | `tokens`, id | a token of the HTTP API: name, scopes, until when, and the digest of its secret |
//! | | `remember`, run | a run that ended and is to be remembered, with what its model answered; gone once it is |
//! | | `checkpoints`, `about`, name | a snapshot that was saved: when, until when, and its length |
//! | | `checkpoints`, `snapshot`, name | the snapshot itself |
//! | `events` | run, number from 1 without gaps | `RunEvent` |
//! | `journal` | invocation, entry, kind, attempt | see `record.rs` of `longhaul-journal` |
//! | `keyvalue` | project, plugin's table, key | bytes of the plugin's, not JSON |
//! | `memory` | `working`, run, key | what a run noted for itself: an entry that holds a note, see `core/src/memory` |
//! | | `episodic`, project, key | a fact of a project, in the same way |
//! | | `@`, namespace, key | an entry of any other namespace: `episodes/PROJECT` is what runs came to |
//! | | `vectors`, namespace, key | what an entry means: 32 bytes that say by which model and of which text, then 32-bit numbers; not JSON |
//! | `decisions` | project, id | one decision, its reason, and what came of it |
//! | | `@newest`, project, 2^64-1 - time in ms, id | the id; text |
//! | | `@feature`, project, run, feature, 2^64-1 - time in ms, id | the id; text |
//! | `progress` | project, time in ms, id | what was done |
//! | `artifacts` | project, plugin's table | the last hand-off |
//! | `graphs` | `head`, graph | what a graph is made of and where it stands; see `record.rs` of `longhaul-graph` |
//! | | `step`, graph, position | a step: its source, or the digest of it, and what its last runs gave |
//! | | `version`, graph, number | what a change did; the last ones |
//! | `agents` | `agent`, agent | what an agent is: its code, or the digest of it, its limits and grants |
//! | | `artifact`, agent | what its runs hand on, with its version; none of it after it was cleared |
//! | | `version`, agent, number | an earlier or the present one; the last ones |
//! | `schedules` | `settings` | how many tasks run at once |
//! | | `schedule`, schedule | a schedule, and its next fire |
//! | | `open`, task | a task that has not ended, with its attempts |
//! | | `direct`, task | the same, of a task that no schedule made |
//! | | `ended`, task | a task that has ended; the last ones |
//! | | `result`, task, number of the attempt | what an attempt gave, its output in part |
//! | | `index`, agent or nothing, status, 2^64-1 - time in ms, task | an ended task, the newest first; text |
//! | | `counts`, agent or nothing | how many ended tasks there are |
//! | | `tally`, schedule | what became of its fires, counted |
//! | | `skipped`, schedule, number | fires that became no task, and why; the last ones |
//! | `blobs` | SHA-256, 32 bytes | see `blob.rs`; not JSON |
//!
//! The format number changes when a reader of the old number could misread the new file. A file with
//! a higher number is refused, not guessed at.

use longhaul_core::store::Table;
use redb::TableDefinition;

/// The version of the file format that this crate reads and writes.
pub const FORMAT: u64 = 1;

/// The database's name in the data directory.
pub const STATE_FILE: &str = "state.redb";

/// The name under which a new database is made.
pub(crate) const NEW_FILE: &str = "state.redb.new";

/// The lock's name in the data directory.
pub(crate) const LOCK_FILE: &str = "state.lock";

/// Facts about the file.
pub(crate) const META: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("meta");

/// The key of the format's number in [`META`].
pub(crate) const META_FORMAT: &str = "format";

/// The key of the version that made the file in [`META`].
pub(crate) const META_WRITTEN_BY: &str = "written_by";

/// Content by digest.
pub(crate) const BLOBS: Bytes = TableDefinition::new("blobs");

/// A table from bytes to bytes.
pub(crate) type Bytes = TableDefinition<'static, &'static [u8], &'static [u8]>;

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
