//! Takes a snapshot of a run out of the store and its trees.
//!
//! The content is found by the digests in the rows and in other content. A run that is too large for one value is
//! refused, and nothing is left out in silence but files that are none.

use super::{BYTES_MAX, DIGITS, ROWS_AT_ONCE, Snapshot, StoredRow, TableName, VERSION};
use crate::files;
use crate::positions::{CheckpointKey as Named, ENTRIES_MAX, newest_of};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use longhaul_api::checkpoints::SnapshotOrigin;
use longhaul_core::fault::{self, bail};
use longhaul_core::store::{Row, Store};
use longhaul_core::{Digest, RunId};
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::approvals;
use longhaul_records::invocation::STEP;
use longhaul_records::record::{self, StoredRun};
use std::collections::{BTreeMap, BTreeSet};

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
    // Bytes of plugins are brought by whoever imports it, those from before a move, too.
    let earlier = record.pins.values().flat_map(|pin| pin.earlier.iter().map(|earlier| earlier.digest));
    let content = content_of(store, run, plugins.values().copied().chain(earlier).collect(), bytes)?;
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
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        let page: Vec<Row> = page.into_iter().filter(|(key, _)| !is_of_machines(name, run, key)).collect();
        bytes += page.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        if bytes > BYTES_MAX {
            bail!("run {run} has more than {BYTES_MAX} bytes of {name:?}; it cannot be exported as one value");
        }
        rows.extend(page);
    }
    match name {
        // The run that a fork shares entries with stays here.
        TableName::Journal => Ok(longhaul_journal::whole(store, rows)?),
        _ => Ok(rows),
    }
}

/// True for a row that carries trees between machines that share a store, since a snapshot has the files themselves,
/// and for one about the forks of the run, which stay here.
fn is_of_machines(name: TableName, run: &RunId, key: &[u8]) -> bool {
    name == TableName::States && (record::is_carried(run, key) || record::is_of_forks(run, key))
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
