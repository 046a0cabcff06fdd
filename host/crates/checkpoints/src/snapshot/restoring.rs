//! Restores the run of a snapshot into this data directory.
//!
//! A snapshot comes from elsewhere, so this writes rows of its own run and nothing else, content by its digest alone,
//! and files below the run's trees. The configuration, the plugins and the commits have to be here already, as the run
//! began with them.

use super::{DAMAGED, EXPORT_AGAIN, ROWS_AT_ONCE, SAID_BYTES_MAX, Snapshot, TableName, disowned, record_of, rows};
use crate::files::{self, SnapshotFile};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use longhaul_config::powers::{self, Power, PowerKind};
use longhaul_config::{Config, FILE};
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_core::text::printable;
use longhaul_core::{Digest, RunId};
use longhaul_egress::SecretRedactor;
use longhaul_home::Home;
use longhaul_models::set::ModelOptions;
use longhaul_plugins as plugins;
use longhaul_plugins::manifest::PluginManifest;
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::commit_loss;
use longhaul_records::pins::{PYTHON_CHECKS, PinnedPlugin, PinnedPlugins};
use longhaul_records::record::{self, RunRecord};
use longhaul_worktree::UserRepository;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

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
        check_branch(&*host.store, &record)?;
    }
    // Forks of the run that it replaces share its journals.
    record::hand_over(&*host.store, run).await?;
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
    // After the rows of the snapshot, which may name the place that it comes from.
    record::forget_tree_place(&mut batch, run);
    // A person puts the run where the snapshot has it.
    commit_loss::forget_run(&mut batch, run);
    let batch = longhaul_run::places::put_here(batch, host, &record, &config)?;
    // The trees first: a run without its trees would begin them anew from the branch.
    write_trees(&host.home, snapshot)?;
    host.store.commit(batch).await?;
    Ok(())
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

/// Two runs would move one branch. The runs of a project follow each other on its own; a fork has a branch alone.
fn check_branch(store: &dyn Store, record: &RunRecord) -> fault::Result<()> {
    let is_other = |head: &record::RunHead| head.branch == record.branch && head.run != record.run;
    let is_of_project = record.branch == format!("longhaul/{}", record.project);
    match record::heads(store)?.into_iter().find(is_other).filter(|_| !is_of_project) {
        None => Ok(()),
        Some(other) => bail!(Fault::conflict(format!(
            "the branch `{}` is that of run {} here, and the checkpoint's run has it, too; it is not imported",
            record.branch, other.run
        ))),
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

/// A batch that removes all rows of a run, which handed its journals over with [`record::hand_over`].
pub fn removal(store: &dyn Store, run: &RunId) -> fault::Result<Batch> {
    let mut batch = record::begin_removal(store, run)?;
    batch.ops.extend(rows_of_run(store, run)?.ops);
    Ok(batch)
}

/// A batch that removes the rows of a run under all its keys, whoever shares them.
pub fn rows_of_run(store: &dyn Store, run: &RunId) -> fault::Result<Batch> {
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
    let all = record::records(&*host.store)?.into_iter().flat_map(|record| record.pins.into_values());
    let all = all.flat_map(|mut pin| std::mem::take(&mut pin.earlier).into_iter().chain([pin]));
    let known: BTreeMap<Digest, PinnedPlugin> = all.map(|pin| (pin.digest, pin)).collect();
    let mut pins = PinnedPlugins::new();
    for (table, pin) in &record.pins {
        let wanted = if table == PYTHON_CHECKS { Some("python") } else { config.part(table).map(|it| &*it.plugin) };
        let name = &pin.plugin;
        if wanted != Some(name) {
            let (wanted, name) = (wanted.unwrap_or("nothing"), printable(name, SAID_BYTES_MAX));
            bail!(
                "the run has plugin `{name}` for [{table}], and longhaul.toml here has `{wanted}`; bring the file that it \
                 began with, or if that one may play the part, write under [{table}]: plugin = \"{name}\""
            );
        }
        let mut here = |pin: &PinnedPlugin, name: &str| pin_here(host, &known, table, pin, name, directory, batch);
        let mut found = here(pin, name)?;
        // A version that is not the newest one any more is found by its digest.
        let of_digest = |earlier: &PinnedPlugin| here(earlier, &format!("{name}@sha256:{}", earlier.digest));
        found.earlier = pin.earlier.iter().map(of_digest).collect::<fault::Result<_>>()?;
        found.proved.clone_from(&pin.proved);
        pins.insert(table.clone(), found);
    }
    Ok(pins)
}

/// One pin with the grant requests of the same bytes as they are here. `name` leads to the installed ones.
fn pin_here(
    host: &PluginHost,
    known: &BTreeMap<Digest, PinnedPlugin>,
    table: &str,
    pin: &PinnedPlugin,
    name: &str,
    directory: &Path,
    batch: &mut Batch,
) -> fault::Result<PinnedPlugin> {
    let (earlier, proved) = (Vec::new(), BTreeMap::new());
    if let Some(known) = known.get(&pin.digest).filter(|known| known.plugin == pin.plugin)
        && host.store.blob(&pin.digest)?.is_some()
    {
        return Ok(PinnedPlugin { earlier, proved, ..known.clone() });
    }
    let (plugin, digest) = (&pin.plugin, pin.digest.short());
    let missing = || format!("[{table}] is plugin `{plugin}` with digest {digest}, which is not here; install it");
    let found = plugins::read(name, Some(directory), &host.home, &host.engine).with_context(missing)?;
    if Digest::of(&found.bytes) != pin.digest {
        bail!("{}", missing());
    }
    let PluginManifest { asks, world, .. } = found.manifest.unwrap_or_default();
    batch.blob(found.bytes);
    Ok(PinnedPlugin { asks, world, earlier, proved, ..pin.clone() })
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
