//! A run as one JSON value: its rows, the content that they name, the files of its trees; and its restoration.
//!
//! The fields for human readers stand in front, as text; the data for `restore` is in `rows`, `content` and `files`.
//! The bytes of plugins are left out: the restoring machine has the same plugins installed, which is checked by their
//! digests. The commits of the branch are left out too: they travel with the project's git repository. A snapshot comes
//! from elsewhere, so `restore` writes rows of its own run and nothing else, content by its digest alone, and files
//! below the run's trees. Approvals are not restored: rules, unused answers, and permissions for calls that were not
//! made are left out, and the person here is asked again.

use super::files::{self, SnapshotFile};
use super::positions::{CheckpointKey as Named, ENTRIES_MAX, newest_of};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use longhaul_api::checkpoints::{CheckpointDescription, CheckpointDocument, SnapshotOrigin};
use longhaul_config::powers::{self, Power, PowerKind};
use longhaul_config::{Config, FILE};
use longhaul_core::fault::{self, Context, Fault, FaultCode, bail};
use longhaul_core::store::{Batch, Key, Op, Row, Store, Table};
use longhaul_core::text::printable;
use longhaul_core::{Digest, InvocationId, RunId};
use longhaul_egress::SecretRedactor;
use longhaul_home::Home;
use longhaul_models::set::ModelOptions;
use longhaul_plugins as plugins;
use longhaul_plugins::manifest::PluginManifest;
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::approvals;
use longhaul_records::invocation::STEP;
use longhaul_records::pins::{PYTHON_CHECKS, PinnedPlugin, PinnedPlugins};
use longhaul_records::record::{self, RunRecord, StoredRun};
use longhaul_security::signing::{self, Signed, SigningKey};
use longhaul_worktree::UserRepository;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

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
    /// When it was taken, in milliseconds since 1970-01-01 UTC.
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

/// A snapshot of a run, or of an agent's work in it.
pub fn take(host: &PluginHost, stored: &StoredRun, named: &Named) -> fault::Result<Snapshot> {
    let StoredRun { record, state } = stored;
    let (store, run) = (&*host.store, &record.run);
    let origin = match &named.part {
        None => SnapshotOrigin::Plan {
            features: state.features.len(),
            passing: state.features.iter().filter(|one| one.commit.is_some()).count(),
        },
        Some(part) => of_agent(store, run, part)?,
    };
    let (mut rows, mut bytes) = (Vec::new(), 0_usize);
    for name in TableName::ALL {
        for (key, value) in rows_of(store, name, run)? {
            bytes = bytes.saturating_add(key.len()).saturating_add(value.len());
            rows.push(StoredRow { table: name, key: BASE64.encode(key), value: BASE64.encode(value) });
        }
    }
    if bytes > BYTES_MAX {
        bail!("run {run} has more than {BYTES_MAX} bytes of rows; it cannot be exported as one value");
    }
    let plugins: BTreeMap<String, Digest> =
        record.pins.iter().map(|(table, pin)| (table.clone(), pin.digest)).collect();
    let content = content_of(store, run, plugins.values().copied().collect(), bytes)?;
    let (mut files, mut left_out) = (Vec::new(), Vec::new());
    // A run that never began work has none.
    let beside = if host.home.tree(run).is_dir() { host.home.trees_beside(run)? } else { Vec::new() };
    for tree in [0].into_iter().chain(beside) {
        let root = host.home.tree_of(run, tree);
        if root.is_dir() {
            files.extend(files::read(tree, &root, &mut left_out)?);
        }
    }
    // An ask starts from no commit.
    let base = record.ask.is_none().then(|| record.base.clone());
    let commits = base.into_iter().chain(state.features.iter().filter_map(|one| one.commit.clone()));
    Ok(Snapshot {
        longhaul_checkpoint: VERSION,
        key: match &named.part {
            Some(part) => format!("{run}:{part}"),
            None => run.to_string(),
        },
        origin,
        run: run.clone(),
        project: record.project.clone(),
        status: format!("{:?}", state.status()).to_lowercase(),
        branch: record.branch.clone(),
        commits: commits.collect(),
        plugins,
        taken_ms: host.clock.now_ms(),
        left_out,
        rows,
        content: content.into_iter().map(|bytes| BASE64.encode(bytes)).collect(),
        files,
        signed: None,
    })
}

fn of_agent(store: &dyn Store, run: &RunId, part: &str) -> fault::Result<SnapshotOrigin> {
    let invocation = newest_of(store, run, part)?;
    let entries = longhaul_journal::entries(store, &invocation, 0, ENTRIES_MAX)?;
    let is_step =
        |entry: &&(u32, longhaul_core::journal::JournalEntry)| entry.1.asked.name == STEP && entry.1.answered.is_some();
    let step = u32::try_from(entries.iter().filter(is_step).count()).unwrap_or(u32::MAX);
    let pending = approvals::open(store, run)?.into_iter().filter(|one| one.subject.invocation == invocation);
    let pending = pending.map(|one| one.id).collect();
    Ok(SnapshotOrigin::Agent { agent_id: part.to_owned(), invocation, step, pending })
}

fn rows_of(store: &dyn Store, name: TableName, run: &RunId) -> fault::Result<Vec<Row>> {
    let prefix = name.prefix(run);
    let (mut rows, mut after, mut bytes) = (Vec::new(), None::<Vec<u8>>, 0);
    loop {
        let page = store.scan(name.table(), &prefix, after.as_deref(), ROWS_AT_ONCE)?;
        let Some((last, _)) = page.last() else { return Ok(rows) };
        after = Some(last.clone());
        bytes += page.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        if bytes > BYTES_MAX {
            bail!("run {run} has more than {BYTES_MAX} bytes of {name:?}; it cannot be exported as one value");
        }
        rows.extend(page);
    }
}

/// The content that the given rows (of this total size) name by digest, and the content that this content names,
/// without that in `known`.
fn content_of(
    store: &dyn Store,
    run: &RunId,
    known: BTreeSet<Digest>,
    rows_bytes: usize,
) -> fault::Result<Vec<Vec<u8>>> {
    let mut texts = Vec::new();
    for name in TableName::ALL {
        texts.extend(rows_of(store, name, run)?.into_iter().map(|(_, value)| value));
    }
    let (mut seen, mut content, mut bytes) = (known, Vec::new(), rows_bytes);
    while let Some(text) = texts.pop() {
        for digest in digests(&text) {
            if !seen.insert(digest) {
                continue;
            }
            // Some texts look like a digest and are none of content here.
            let Some(found) = store.blob(&digest)? else { continue };
            bytes += found.len();
            if bytes > BYTES_MAX {
                bail!(
                    "run {run} has more than {BYTES_MAX} bytes of rows and content; it cannot be exported as one value"
                );
            }
            texts.push(found.clone());
            content.push(found);
        }
    }
    Ok(content)
}

/// Every digest in a text.
pub fn digests(text: &[u8]) -> Vec<Digest> {
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    let words = text.split(|byte| !is_digit(byte)).filter(|word| word.len() == DIGITS);
    words.filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok()).collect()
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

/// Restores a snapshot's run into this data directory, for the project in `directory`, which has this id here.
pub async fn restore(
    host: &PluginHost,
    snapshot: &Snapshot,
    directory: &Path,
    id: &str,
    replace: bool,
) -> fault::Result<()> {
    let run = &snapshot.run;
    let record = record_of(snapshot)?;
    let directory =
        directory.canonicalize().or_invalid(|| format!("there is no directory `{}`", directory.display()))?;
    let text = std::fs::read_to_string(directory.join(FILE)).unwrap_or_default();
    if !replace && record::record(&*host.store, run)?.is_some() {
        bail!(Fault::conflict(format!("run {run} is here already; to put the checkpoint in its place, add --replace")));
    }
    let config = Config::read(&directory)?;
    if config.project.name != snapshot.project {
        bail!(
            "`{}` is project `{}`, and the run is of `{}`; name a checkout of that one with --project DIRECTORY",
            directory.display(),
            config.project.name,
            printable(&snapshot.project, SAID_BYTES_MAX)
        );
    }
    check_alike(&record, &config, &host.secrets.redactor())?;
    // An ask needs no repository.
    if record.ask.is_none() {
        check_commits(snapshot, &directory)?;
    }
    let mut batch = removal(&*host.store, run)?;
    for bytes in &snapshot.content {
        batch.blob(BASE64.decode(bytes).or_invalid(|| DAMAGED)?);
    }
    let pins = pins_here(host, &record, &config, &directory, &mut batch)?;
    let moved = serde_json::to_vec(&moved(&record, id, pins, &directory, &text))?;
    for (table, key, value) in disowned(rows(snapshot)?, snapshot)? {
        let value = if table == Table::Runs { moved.clone() } else { value };
        batch.push(Op::Put(table, key, value));
    }
    // The trees first: a run without its trees would begin them anew from the branch.
    write_trees(&host.home, snapshot)?;
    host.store.commit(batch).await?;
    Ok(())
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

/// The rows without the approvals that people gave elsewhere.
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

/// Whether it has the form of a run id. It becomes a part of paths and of keys, so it may hold nothing else.
fn is_run_name(run: &RunId) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    run.as_str()
        .strip_prefix("r-")
        .is_some_and(|rest| !rest.is_empty() && rest.len() <= DIGITS && rest.bytes().all(is_plain))
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
    let branch = if record.ask.is_some() { String::new() } else { format!("longhaul/{}", record.project) };
    if record.run != snapshot.run || record.project != snapshot.project || record.branch != branch {
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

/// The configuration in a checkpoint is never used here: the local file is. So it must be of the same project; the two
/// parts that a run pins of it (`[checks]`, and the settings of plugins) must be the same, and so must its grants, or
/// the run would continue with other powers than it began with. Only addresses that the host itself sends to, such as
/// those of models, may differ on another machine.
fn check_alike(record: &RunRecord, config: &Config, redactor: &SecretRedactor) -> fault::Result<()> {
    let pinned = record.config()?;
    if pinned.project.name != record.project {
        bail!(
            "the checkpoint is of project `{}`, and the longhaul.toml in it is of `{}`; nobody exported it so, and it is \
             not imported; {EXPORT_AGAIN}",
            record.project,
            printable(&pinned.project.name, SAID_BYTES_MAX)
        );
    }
    let (here, there) = (pinned_lines(config)?, pinned_lines(&pinned)?);
    if let Some(difference) = powers::differing_lines(&here, &there) {
        bail!(
            "the run began with other [checks] or settings of plugins than longhaul.toml has here ({}); \
             bring the file that it began with",
            redactor.scrub(&difference)
        );
    }
    // Restrictions of the local file apply here whatever the run began with.
    let is_granted = |power: &Power| !matches!(power.kind, PowerKind::Endpoint | PowerKind::Guard);
    let granted = |config: &Config| -> BTreeSet<Power> { powers::of(config).into_iter().filter(is_granted).collect() };
    if let Some(difference) = powers::difference(&granted(config), &granted(&pinned)) {
        bail!(
            "the run began with other powers than longhaul.toml gives here ({difference}); bring the file that it began \
             with, after a look at it with `longhaul checkpoint show`"
        );
    }
    Ok(())
}

/// The pinned values of a configuration, one a line.
fn pinned_lines(config: &Config) -> fault::Result<BTreeSet<String>> {
    let mut lines = BTreeSet::new();
    for (name, check) in &config.checks {
        lines.extend(lines_of(&format!("checks.{name}"), &serde_json::to_value(check)?));
    }
    for (table, part) in config.parts() {
        lines.extend(lines_of(&format!("{table}.settings"), &serde_json::Value::Object(part.settings.clone())));
    }
    Ok(lines)
}

fn lines_of(table: &str, values: &serde_json::Value) -> Vec<String> {
    let values = values.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    values.map(|(key, value)| format!("[{table}] {key} = {value}")).collect()
}

/// The record with the local project, file and plugins, and without the model options of the other machine.
fn moved(record: &RunRecord, id: &str, pins: PinnedPlugins, directory: &Path, config: &str) -> RunRecord {
    RunRecord {
        directory: directory.to_owned(),
        id: id.to_owned(),
        config: config.to_owned(),
        pins,
        models: ModelOptions::default(),
        ..record.clone()
    }
}

fn check_commits(snapshot: &Snapshot, directory: &Path) -> fault::Result<()> {
    let project = UserRepository::open(directory)?;
    for commit in &snapshot.commits {
        if !project.has_commit(commit) {
            let (branch, directory) = (&snapshot.branch, directory.display());
            bail!("commit {commit} is not in the repository `{directory}`; fetch `{branch}` into it first");
        }
    }
    Ok(())
}

/// A batch that removes all rows of a run.
pub fn removal(store: &dyn Store, run: &RunId) -> fault::Result<Batch> {
    let mut batch = Batch::new();
    for name in TableName::ALL {
        let (prefix, mut after) = (name.prefix(run), None::<Vec<u8>>);
        loop {
            let page = store.scan(name.table(), &prefix, after.as_deref(), ROWS_AT_ONCE)?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            page.into_iter().for_each(|(key, _)| batch.push(Op::Delete(name.table(), Key::from_bytes(key))));
        }
    }
    let powers = powers::key_of_run(run);
    if store.get(Table::States, &powers)?.is_some() {
        batch.push(Op::Delete(Table::States, powers));
    }
    Ok(batch)
}

/// The run's plugins as installed here, with their local grant requests.
///
/// Content in the store proves nothing: an earlier checkpoint may have brought it. A plugin that a local run pinned was
/// installed here.
fn pins_here(
    host: &PluginHost,
    record: &RunRecord,
    config: &Config,
    directory: &Path,
    batch: &mut Batch,
) -> fault::Result<PinnedPlugins> {
    let known: BTreeMap<Digest, PinnedPlugin> = record::records(&*host.store)?
        .into_iter()
        .flat_map(|record| record.pins.into_values().map(|pin| (pin.digest, pin)))
        .collect();
    let mut pins = PinnedPlugins::new();
    for (table, pin) in &record.pins {
        let wanted = if table == PYTHON_CHECKS { Some("python") } else { config.part(table).map(|it| &*it.plugin) };
        let (name, digest) = (&pin.plugin, pin.digest.short());
        if wanted != Some(name) {
            let (wanted, name) = (wanted.unwrap_or("nothing"), printable(name, SAID_BYTES_MAX));
            bail!(
                "the run has plugin `{name}` for [{table}], and longhaul.toml here has `{wanted}`; bring the file that it \
                 began with, or if that one may play the part, write under [{table}]: plugin = \"{name}\""
            );
        }
        if let Some(known) = known.get(&pin.digest).filter(|known| known.plugin == *name)
            && host.store.blob(&pin.digest)?.is_some()
        {
            pins.insert(table.clone(), known.clone());
            continue;
        }
        let missing = || format!("[{table}] is plugin `{name}` with digest {digest}, which is not here; install it");
        let found = plugins::read(name, Some(directory), &host.home, &host.engine).with_context(missing)?;
        if Digest::of(&found.bytes) != pin.digest {
            bail!("{}", missing());
        }
        let PluginManifest { asks, world, .. } = found.manifest.unwrap_or_default();
        batch.blob(found.bytes);
        pins.insert(table.clone(), PinnedPlugin { asks, world, ..pin.clone() });
    }
    Ok(pins)
}

fn write_trees(home: &Home, snapshot: &Snapshot) -> fault::Result<()> {
    if let Some(trees) = home.tree(&snapshot.run).parent() {
        std::fs::create_dir_all(trees)?;
    }
    home.forget_trees_beside(&snapshot.run)?;
    let numbers: BTreeSet<u32> = snapshot.files.iter().map(|file| file.tree).chain([0]).collect();
    for number in numbers {
        let root = home.tree_of(&snapshot.run, number);
        let files: Vec<&SnapshotFile> = snapshot.files.iter().filter(|file| file.tree == number).collect();
        if !files.is_empty() {
            files::write(&root, &files)?;
        } else if root.exists() {
            std::fs::remove_dir_all(&root)?;
        }
    }
    Ok(())
}
