//! Moves all state of a data directory between its files and the database that `[store]` of `server.toml` names.
//!
//! The source is read alone until the copy was compared with it, and then set aside: files get another name, and a
//! database gets a mark. Only after that the target can be used: a database loses the mark of an unfinished copy, and
//! files come out of a folder of their own. So a kill leaves one usable store, or none and what to do. Nothing is
//! written over.

use crate::database_memory::{DATABASE_FILE, DatabaseMemory};
use crate::stores::{self, MOVED_FILE, OnLost};
use longhaul_api::upkeep::{MigrationReport, StoreKind};
use longhaul_config::{Config, server};
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::store::{Batch, ReadTotals, Seats as _, Store};
use longhaul_home::crash::CrashPoints;
use longhaul_home::{Home, Owned};
use longhaul_maintenance::transfer::{self, MigrationMark};
use longhaul_postgres::{PostgresConfig, PostgresStore};
use longhaul_records::record::{self, RunRecord, TreePlace};
use longhaul_store::STATE_FILE;
use std::fs;
use std::path::Path;
use tokio::runtime::Handle;

/// The folder of files that are being made of a database.
const UNFINISHED: &str = "state.unfinished";

/// Moves all state into the other kind of store. Called on a thread of the runtime for blocking work.
///
/// # Errors
/// Somebody works with either store, the target has anything in it, or a store fails. Then the source is as it was.
pub(crate) fn migrate(home: &Home, to: StoreKind, on_lost: &OnLost) -> fault::Result<MigrationReport> {
    let migration = Migration::begin(home, on_lost)?;
    match to {
        StoreKind::Postgres => migration.into_database(),
        StoreKind::Redb => migration.into_files(),
    }
}

/// Removes the mark of a database whose state was moved away; returns its address.
///
/// # Errors
/// The data directory has files with state, somebody works with the database, or its state was not moved.
pub(crate) fn reopen(home: &Home, on_lost: &OnLost) -> fault::Result<String> {
    let migration = Migration::begin(home, on_lost)?;
    let (path, config) = (home.path().display(), &migration.config);
    if home.path().join(STATE_FILE).exists() {
        bail!(Fault::conflict(format!(
            "the state of `{path}` is in {STATE_FILE} there; rename that file first: mv {path}/{STATE_FILE} \
             {path}/{STATE_FILE}.unused"
        )));
    }
    let store = migration.database()?;
    match MigrationMark::of(&store)? {
        Some(MigrationMark::Moved { .. }) => {}
        Some(MigrationMark::Unfinished { .. }) => return stores::refuse_mark(&store, config).map(|()| String::new()),
        None => bail!(Fault::conflict(format!("the state of {} was not moved away; it is in use", config.address()))),
    }
    Handle::current().block_on(MigrationMark::clear(&store))?;
    remember(home, config)?;
    Ok(config.address())
}

/// A move of the state of a data directory, whose lock is held meanwhile.
struct Migration<'a> {
    home: &'a Home,
    on_lost: &'a OnLost,
    config: PostgresConfig,
    /// This data directory, to which the trees of its runs belong.
    place: TreePlace,
    crash: CrashPoints,
    _owned: Owned,
}

impl<'a> Migration<'a> {
    fn begin(home: &'a Home, on_lost: &'a OnLost) -> fault::Result<Self> {
        let Some(owned) = home.try_own()? else {
            home.refuse_second_server()?;
            let holder = home.lock_holder().map(|holder| format!(" ({holder})")).unwrap_or_default();
            bail!(Fault::conflict(format!(
                "another longhaul works with `{}`{holder}; end it, and migrate then",
                home.path().display()
            )));
        };
        let config = server::store(home.path())?.or_invalid(|| {
            format!(
                "server.toml in `{}` names no database; add to it: [store] url = \"postgres://USER@HOST/DATABASE\"",
                home.path().display()
            )
        })?;
        let made = home.make_place()?;
        let place = TreePlace { id: made.id, host: made.host, directory: home.path().to_owned() };
        Ok(Self { home, on_lost, config, place, crash: CrashPoints::from_environment(), _owned: owned })
    }

    fn into_database(self) -> fault::Result<MigrationReport> {
        let (home, config) = (self.home.path(), &self.config);
        let (files, moved) = (home.join(STATE_FILE), home.join(MOVED_FILE));
        if !files.exists() {
            bail!(Fault::conflict(format!("there is no state in `{}` to be moved", home.display())));
        }
        refuse_existing(&moved)?;
        let source = stores::files(home)?;
        let target = self.database()?;
        stores::refuse_mark(&target, config)?;
        if !transfer::is_empty(&target)? {
            bail!(Fault::conflict(format!(
                "{} has state in schema `{}` already, which is not written over; name another schema in [store]",
                config.address(),
                config.schema
            )));
        }
        let from = files.display().to_string();
        let (copied, runs_elsewhere) = Handle::current().block_on(async {
            MigrationMark::Unfinished { from: format!("`{from}` on {}", self.place.host) }.put(&target).await?;
            self.crash.reach("migrate.before-copy");
            let copied = transfer::copy(&source, &target).await?;
            self.crash.reach("migrate.after-copy");
            forget_workers(&target).await?;
            Ok::<_, Fault>((copied, self.place_runs(&target).await?))
        })?;
        // Closed in order, the file is whole without its logs.
        drop(source);
        rename(&files, &moved)?;
        self.crash.reach("migrate.after-set-aside");
        remember(self.home, config)?;
        Handle::current().block_on(MigrationMark::clear(&target))?;
        let home = home.display();
        let undo = format!(
            "remove [store] from server.toml, then: mv {home}/{MOVED_FILE} {home}/{STATE_FILE} && rm {home}/{DATABASE_FILE}"
        );
        Ok(MigrationReport { from, to: config.address(), copied, runs_elsewhere, next: None, undo })
    }

    fn into_files(self) -> fault::Result<MigrationReport> {
        let (home, config) = (self.home.path(), &self.config);
        let (files, folder) = (home.join(STATE_FILE), home.join(UNFINISHED));
        refuse_existing(&files)?;
        if folder.exists() {
            bail!(Fault::conflict(format!(
                "`{0}` is left of a copy that is unfinished; remove it, and migrate again: rm -r {0}",
                folder.display()
            )));
        }
        let source = self.database()?;
        stores::refuse_mark(&source, config)?;
        refuse_workers(&source)?;
        let (copied, runs_elsewhere) = self.copy_into(&folder, &source)?;
        self.crash.reach("migrate.after-copy");
        // The mark comes before the files: no other machine may go on with the database beside them.
        let to = format!("`{}` on {}", files.display(), self.place.host);
        Handle::current().block_on(MigrationMark::Moved { to }.put(&source))?;
        self.crash.reach("migrate.after-mark");
        rename(&folder.join(STATE_FILE), &files)?;
        self.crash.reach("migrate.after-set-in-place");
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove `{}`", folder.display()))?;
        match fs::remove_file(home.join(DATABASE_FILE)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let home = home.display();
        Ok(MigrationReport {
            from: config.address(),
            to: files.display().to_string(),
            copied,
            runs_elsewhere,
            next: Some(format!("remove [store] from {home}/{}", server::FILE)),
            undo: format!("mv {home}/{STATE_FILE} {home}/{STATE_FILE}.unused && longhaul store reopen"),
        })
    }

    /// Copies a database into new files, which are closed then.
    fn copy_into(&self, folder: &Path, source: &PostgresStore) -> fault::Result<(ReadTotals, usize)> {
        let target = stores::files(folder)?;
        Handle::current().block_on(async {
            self.crash.reach("migrate.before-copy");
            let copied = transfer::copy(source, &target).await?;
            forget_workers(&target).await?;
            self.forget_carried(&target).await?;
            Ok::<_, Fault>((copied, self.place_runs(&target).await?))
        })
    }

    /// Notes of every run without a place that its trees are here; returns how many have theirs elsewhere.
    async fn place_runs(&self, store: &dyn Store) -> fault::Result<usize> {
        let mut elsewhere = 0;
        for RunRecord { run, ask, config, .. } in record::records(store)? {
            let has_tree = ask.is_none() || Config::parse_pinned(&config).map_or(true, |config| config.changes_trees());
            match record::tree_place(store, &run)? {
                Some(place) => elsewhere += usize::from(place.id != self.place.id),
                None if has_tree => store.commit(record::put_tree_place(Batch::new(), &run, &self.place)?).await?,
                None => {}
            }
        }
        Ok(elsewhere)
    }

    /// Removes from files the rows of trees and commits that are here: nothing keeps them current there. Those of a run
    /// whose trees are elsewhere stay, since it can be made again here from them.
    async fn forget_carried(&self, target: &dyn Store) -> fault::Result<()> {
        for head in record::heads(target)? {
            if record::tree_place(target, &head.run)?.is_some_and(|place| place.id != self.place.id) {
                continue;
            }
            let mut batch = Batch::new();
            record::forget_carried(target, &mut batch, &head.run)?;
            if !batch.is_empty() {
                target.commit(batch).await?;
            }
        }
        Ok(())
    }

    fn database(&self) -> fault::Result<PostgresStore> {
        stores::database(self.home, &self.config, self.crash.hook(), self.on_lost)
    }
}

/// Has the data directory remember that its state is in this database.
fn remember(home: &Home, config: &PostgresConfig) -> fault::Result<()> {
    if DatabaseMemory::read(home)?.is_some_and(|known| known.is_of(config)) {
        return Ok(());
    }
    DatabaseMemory::of(config).write(home, None)
}

fn refuse_existing(file: &Path) -> fault::Result<()> {
    if file.exists() {
        bail!(Fault::conflict(format!("`{}` is there already, and is not written over; rename it", file.display())));
    }
    Ok(())
}

/// Renames a file durably.
fn rename(from: &Path, to: &Path) -> fault::Result<()> {
    let failed = || format!("cannot rename `{}` to `{}`", from.display(), to.display());
    fs::rename(from, to).with_context(failed)?;
    let folders = [from, to].into_iter().filter_map(|path| path.parent());
    for folder in folders {
        fs::File::open(folder).and_then(|folder| folder.sync_all()).with_context(failed)?;
    }
    Ok(())
}

/// Refuses a database that servers still work with, whose commits no copy would have. Others lose their seats, so that
/// they commit nothing any more.
fn refuse_workers(source: &PostgresStore) -> fault::Result<()> {
    for seat in source.seats()? {
        if seat.left_ms > 0 {
            bail!(Fault::conflict(format!(
                "{} still works with the database; end `longhaul serve` on every machine first, and try again",
                seat.holder
            )));
        }
        Handle::current().block_on(source.evict(&seat))?;
    }
    Ok(())
}

/// Removes from a copy what servers told each other.
async fn forget_workers(target: &dyn Store) -> fault::Result<()> {
    let mut batch = Batch::new();
    longhaul_workers::forget_all(&mut batch, target)?;
    if !batch.is_empty() {
        target.commit(batch).await?;
    }
    Ok(())
}
