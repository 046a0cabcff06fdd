//! A run as one JSON value: its rows, the content that they name, and the files of its trees.
//!
//! The fields for human readers stand in front, as text; the data for `restore` is in `rows`, `content` and `files`.
//! The bytes of plugins are left out: the restoring machine has the same plugins installed, which is checked by their
//! digests. The commits of the branch are left out too: they travel with the project's git repository. Rows of another
//! run are refused. Approvals are not restored: rules, unused answers, and permissions for calls that were not made are
//! left out, and the person here is asked again.

mod restoring;
mod taking;

use super::files::{self, SnapshotFile};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use longhaul_api::checkpoints::{CheckpointDescription, CheckpointDocument, SnapshotOrigin};
use longhaul_config::powers::{self, Power};
use longhaul_core::fault::{self, Context as _, Fault, FaultCode, bail};
use longhaul_core::store::{Key, Row, Table};
use longhaul_core::text::printable;
use longhaul_core::{Digest, InvocationId, RunId};
use longhaul_home::Home;
use longhaul_records::approvals;
use longhaul_records::record::{self, RunRecord};
use longhaul_security::signing::{self, Signed, SigningKey};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

pub use restoring::{removal, restore, rows_of_run};
pub use taking::{digests, take};

/// The version of the format. It grows when an older reader could misread a newer snapshot.
const VERSION: u32 = 1;

/// Rows of one table that one read returns.
const ROWS_AT_ONCE: usize = 1_000;

/// Bytes of rows and content, all together: written as JSON with the files, it stays below the reader's limit.
const BYTES_MAX: usize = 256 << 20;

/// Hexadecimal digits of a digest.
const DIGITS: usize = 64;

/// The remedy for a checkpoint that differs from its export.
const EXPORT_AGAIN: &str = "copy it again, or have the run exported again with `longhaul checkpoint export`";

/// The error for an unreadable checkpoint.
const DAMAGED: &str =
    "the checkpoint is damaged; copy it again, or have the run exported again with `longhaul checkpoint export`";

/// Longest foreign text in a message, in bytes.
const SAID_BYTES_MAX: usize = 200;

/// A run in its current state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// The version of the format.
    pub longhaul_checkpoint: u32,
    /// The key that it was requested by.
    pub key: String,
    /// The origin.
    #[serde(flatten)]
    pub origin: SnapshotOrigin,
    /// The run.
    pub run: RunId,
    /// Its project.
    pub project: String,
    /// Its status, in a word.
    pub status: String,
    /// The branch.
    pub branch: String,
    /// The commit that it started from, and those of its features: the repository must have them.
    pub commits: Vec<String>,
    /// Plugins by their digests: they must be installed.
    pub plugins: BTreeMap<String, Digest>,
    /// The time at which it was taken, in milliseconds since 1970-01-01 UTC.
    pub taken_ms: u64,
    /// Paths of its trees that are left out because they are no files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    rows: Vec<StoredRow>,
    content: Vec<String>,
    files: Vec<SnapshotFile>,
    /// The signature of the data directory that it was taken from, over all fields before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signed: Option<Signed>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredRow {
    table: TableName,
    /// Base64.
    key: String,
    /// Base64.
    value: String,
}

/// The tables that have rows of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TableName {
    Runs,
    States,
    Events,
    Journal,
    Memory,
    GraphHeads,
    GraphSteps,
    GraphVersions,
}

impl TableName {
    const ALL: [Self; 8] = [
        Self::Runs,
        Self::States,
        Self::Events,
        Self::Journal,
        Self::Memory,
        Self::GraphHeads,
        Self::GraphSteps,
        Self::GraphVersions,
    ];

    fn table(self) -> Table {
        match self {
            Self::Runs => Table::Runs,
            Self::States => Table::States,
            Self::Events => Table::Events,
            Self::Journal => Table::Journal,
            Self::Memory => Table::Memory,
            Self::GraphHeads | Self::GraphSteps | Self::GraphVersions => Table::Graphs,
        }
    }

    /// The prefix of the keys of a run's rows.
    fn prefix(self, run: &RunId) -> Key {
        match self {
            Self::Runs | Self::States | Self::Events => Key::of(run.as_str()),
            // An invocation's name begins with its run's and a slash.
            Self::Journal => Key::from_bytes(format!("{run}/").into_bytes()),
            Self::Memory => Key::of("working").and(run.as_str()),
            Self::GraphHeads => of_agents(&longhaul_graph::record::heads(), run),
            Self::GraphSteps => of_agents(&Key::of("step"), run),
            Self::GraphVersions => of_agents(&Key::of("version"), run),
        }
    }
}

/// The prefix of the keys of the graphs of a run's agents: their names start with the invocation's.
fn of_agents(kind: &Key, run: &RunId) -> Key {
    Key::from_bytes([kind.as_bytes(), format!("{run}/").as_bytes()].concat())
}

impl Snapshot {
    /// Reads a snapshot.
    pub fn read(bytes: &[u8]) -> fault::Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            longhaul_checkpoint: u32,
        }
        let version: Version = serde_json::from_slice(bytes).or_invalid(|| "this is no checkpoint of longhaul")?;
        if version.longhaul_checkpoint > VERSION {
            bail!(
                "the checkpoint has version {}, and this longhaul reads {VERSION}; use the longhaul that wrote it",
                version.longhaul_checkpoint
            );
        }
        let snapshot: Self = serde_json::from_slice(bytes).or_invalid(|| DAMAGED)?;
        // A signature covers the parsed fields, and unparsed ones must not seem to be signed.
        if let Some(Signed { signer, .. }) = &snapshot.signed
            && snapshot.write()? != bytes.trim_ascii_end()
        {
            bail!(
                "the checkpoint is not what its signer signed ({}): it is damaged, was changed, or is of a newer \
                 longhaul; {EXPORT_AGAIN}",
                printable(signer, SAID_BYTES_MAX)
            );
        }
        Ok(snapshot)
    }

    /// Checks that all of it can be read and belongs to its run alone, as far as that does not depend on this machine.
    pub fn check(&self) -> fault::Result<()> {
        record_of(self)?;
        disowned(rows(self)?, self)?;
        self.files.iter().try_for_each(|file| files::plain(&file.path).map(drop))
    }

    /// The snapshot as JSON.
    pub fn write(&self) -> fault::Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Adds a signature by a key.
    pub fn sign(mut self, key: &SigningKey) -> fault::Result<Self> {
        self.signed = None;
        self.signed = Some(key.sign(&self.write()?, &format!("longhaul checkpoint of {}", self.run)));
        Ok(self)
    }

    /// Takes the signature out, with the signed bytes.
    pub fn take_signature(&mut self) -> fault::Result<(Option<Signed>, Vec<u8>)> {
        let signed = self.signed.take();
        Ok((signed, self.write()?))
    }

    /// The snapshot as a document, which surfaces pass on without reading it.
    pub fn document(&self) -> fault::Result<CheckpointDocument> {
        Ok(CheckpointDocument { snapshot: serde_json::to_value(self)? })
    }

    /// The facts about the snapshot in a document. `signers` is the data directory whose keys identify the signer;
    /// none: the signature is not looked at, since a snapshot of this data directory has none yet.
    pub fn describe(document: CheckpointDocument, signers: Option<&Home>) -> fault::Result<CheckpointDescription> {
        let mut snapshot: Self = serde_json::from_value(document.snapshot)?;
        let signer = match signers {
            Some(home) => {
                let (signed, bytes) = snapshot.take_signature()?;
                Some(signing::signer_of(home, signed.as_ref(), &bytes).context("the checkpoint")?)
            }
            None => None,
        };
        let powers = snapshot.powers()?.iter().map(ToString::to_string).collect();
        let Self { key, origin, run, project, status, branch, left_out, .. } = snapshot;
        Ok(CheckpointDescription { key, origin, run, project, status, branch, left_out, signer, powers })
    }

    /// The powers in the configuration that the run began with. An import uses none of them: the local file's powers
    /// apply.
    pub fn powers(&self) -> fault::Result<BTreeSet<Power>> {
        Ok(powers::of(&record_of(self)?.config()?))
    }
}

/// Rows with their tables.
type TableRows = Vec<(Table, Key, Vec<u8>)>;

/// The rows, each one of this run.
fn rows(snapshot: &Snapshot) -> fault::Result<TableRows> {
    let mut rows = Vec::new();
    for row in &snapshot.rows {
        let key = BASE64.decode(&row.key).or_invalid(|| DAMAGED)?;
        if !key.starts_with(row.table.prefix(&snapshot.run).as_bytes()) {
            bail!(
                "the checkpoint of run {} has a row of something else ({:?} `{}`); it is not imported; {EXPORT_AGAIN}",
                snapshot.run,
                row.table,
                key.escape_ascii().to_string().chars().take(SAID_BYTES_MAX).collect::<String>()
            );
        }
        let value = BASE64.decode(&row.value).or_invalid(|| DAMAGED)?;
        rows.push((row.table.table(), Key::from_bytes(key), value));
    }
    Ok(rows)
}

/// The rows without the approvals that people gave elsewhere, and outside of the archive.
fn disowned(rows: TableRows, snapshot: &Snapshot) -> fault::Result<TableRows> {
    let run = &snapshot.run;
    let blobs = snapshot.content.iter().map(|text| BASE64.decode(text).or_invalid(|| DAMAGED));
    let blobs = blobs.map(|bytes| bytes.map(|bytes| (Digest::of(&bytes), bytes)));
    let blobs: BTreeMap<Digest, Vec<u8>> = blobs.collect::<fault::Result<_>>()?;
    let (journal, mut kept): (TableRows, TableRows) =
        rows.into_iter().partition(|(table, ..)| *table == Table::Journal);
    let mut journals: BTreeMap<InvocationId, Vec<Row>> = BTreeMap::new();
    for (_, key, value) in journal {
        let name = invocation_of(&key).or_invalid(|| DAMAGED)?;
        journals.entry(name).or_default().push((key.as_bytes().to_vec(), value));
    }
    let mut undecided: Vec<(InvocationId, u32)> = Vec::new();
    for (invocation, mut rows) in journals {
        rows.sort();
        let disowned = longhaul_journal::disowned(&invocation, rows, &|digest| blobs.get(digest).cloned());
        // A fault here is one of the checkpoint, and not of a journal of this data directory.
        let (rows, taken) = disowned.map_err(|error| Fault::from(error).or_code(FaultCode::Invalid))?;
        kept.extend(rows.into_iter().map(|(key, value)| (Table::Journal, Key::from_bytes(key), value)));
        undecided.extend(taken.into_iter().map(|entry| (invocation.clone(), entry)));
    }
    let mut owned = Vec::with_capacity(kept.len());
    for (table, key, value) in kept {
        if table == Table::States && !approvals::is_ours(run, &key, &value, &undecided)? {
            continue;
        }
        // An imported run is wanted here, and lists would leave it out.
        if table == Table::States && key == record::archived_key(run) {
            continue;
        }
        // The trees are those of the snapshot, whatever a store had of others, and its forks stayed there.
        let is_of_there = record::is_carried(run, key.as_bytes()) || record::is_of_forks(run, key.as_bytes());
        if table == Table::States && is_of_there {
            continue;
        }
        owned.push((table, key, value));
    }
    Ok(owned)
}

/// The invocation of a journal row: the first part of its key.
fn invocation_of(key: &Key) -> Option<InvocationId> {
    let bytes = key.as_bytes();
    let end = bytes.windows(2).position(|pair| pair == [0, 0])?;
    std::str::from_utf8(&bytes[..end]).ok().map(InvocationId::from_text)
}

/// True when it has the form of a run id. It becomes a part of paths and of keys, so it may hold nothing else.
fn is_run_name(run: &RunId) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    run.as_str()
        .strip_prefix("r-")
        .is_some_and(|rest| !rest.is_empty() && rest.len() <= DIGITS && rest.bytes().all(is_plain))
}

/// True for the branch of a run of the project, and for one that a fork gets by itself.
fn is_own_branch(record: &RunRecord) -> bool {
    let rest = record.branch.strip_prefix(&format!("longhaul/{}", record.project));
    let number = |rest: &str| rest.strip_prefix("-fork-").and_then(|number| number.parse::<u32>().ok());
    rest.is_some_and(|rest| rest.is_empty() || number(rest).is_some())
}

/// The record of the run.
fn record_of(snapshot: &Snapshot) -> fault::Result<RunRecord> {
    if !is_run_name(&snapshot.run) {
        bail!(
            "`{}` is no name of a run, such as r-3f9c02d1a4be; the checkpoint is not imported; {EXPORT_AGAIN}",
            printable(snapshot.run.as_str(), SAID_BYTES_MAX)
        );
    }
    let row = snapshot.rows.iter().find(|row| row.table == TableName::Runs);
    let row = row.or_invalid(|| format!("the checkpoint has no record of run {}; {EXPORT_AGAIN}", snapshot.run))?;
    let record: RunRecord =
        serde_json::from_slice(&BASE64.decode(&row.value).or_invalid(|| DAMAGED)?).or_invalid(|| DAMAGED)?;
    // An ask has no branch; another value would move a branch that is not its own.
    let has_own_branch = if record.ask.is_some() { record.branch.is_empty() } else { is_own_branch(&record) };
    if record.run != snapshot.run || record.project != snapshot.project || !has_own_branch {
        let said = [record.run.as_str(), &record.project, &record.branch].map(|said| printable(said, SAID_BYTES_MAX));
        bail!(
            "the checkpoint says that it is of run {}, and its record says something else (run {}, project `{}`, branch \
             `{}`); {EXPORT_AGAIN}",
            snapshot.run,
            said[0],
            said[1],
            said[2]
        );
    }
    Ok(record)
}
