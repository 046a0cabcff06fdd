//! Opens the store of a data directory: its own files, or the PostgreSQL database that `[store]` of `server.toml` names.
//!
//! The files and the memory of which database has the state decide together with the settings. Where they differ the
//! directory is refused with what to do: no store is opened empty beside state that is elsewhere. The copies from one kind
//! of store to the other are made by `migration.rs`.

use crate::database_memory::{DATABASE_FILE, DatabaseMemory, MemoryKeeper};
use crate::exportable_store::ExportableStore;
use longhaul_config::ServerUrl;
use longhaul_config::server::{self, ServerSettings};
use longhaul_core::crash::CrashHook;
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::store::{Store, StoreError};
use longhaul_home::crash::CrashPoints;
use longhaul_home::{Home, host_name, random_id, variable};
use longhaul_maintenance::transfer::MigrationMark;
use longhaul_postgres::{Holder, LeaseLost, PostgresConfig, PostgresOptions, PostgresStore, Waiting};
use longhaul_records::commit_loss::{self, Noted, OpenedStore, SeenCommit};
use longhaul_store::{RedbStore, STATE_FILE, StoreOptions};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Longest wait for the files once the data directory is ours: its earlier owner may still be ending.
const FILES_WAIT: Duration = Duration::from_secs(10);

/// The name of files whose state was moved away.
pub(crate) const MOVED_FILE: &str = "state.redb.moved";

/// Called once when another process took over the database, with a sentence about it. What this process still does with
/// the store is refused.
pub type OnLost = Arc<dyn Fn(&str) + Send + Sync>;

/// The place of the state of a data directory.
pub(crate) enum Location {
    /// Its own files.
    Files,
    /// A database.
    Database(PostgresConfig),
}

/// The place of the state, by the settings. Refuses settings that the files and the memory of the directory contradict.
pub(crate) fn location(home: &Home) -> fault::Result<Location> {
    let (path, remembered) = (home.path().display(), DatabaseMemory::read(home)?);
    let has_files = home.path().join(STATE_FILE).exists();
    if remembered.is_none() && !has_files && home.path().join(MOVED_FILE).exists() {
        bail!(Fault::conflict(format!(
            "a move of the state of `{path}` was cut off, or nothing says any more where it went: it is still in \
             {MOVED_FILE} there; to use it, rename it: mv {path}/{MOVED_FILE} {path}/{STATE_FILE}; where it is of no use, \
             give it another name"
        )));
    }
    let Some(config) = server::store(home.path())? else {
        return match remembered {
            None => Ok(Location::Files),
            // The last step of a move back into files, which marks the database before.
            Some(DatabaseMemory { address, schema, .. }) if has_files => bail!(Fault::conflict(format!(
                "`{path}` has state in {STATE_FILE}, and remembers the database {address}, schema `{schema}`; if a move \
                 into files was cut off, remove `{path}/{DATABASE_FILE}`; else write [store] again, and move {STATE_FILE} away"
            ))),
            Some(DatabaseMemory { address, schema, .. }) => bail!(Fault::conflict(format!(
                "the state of `{path}` is in the database {address}, schema `{schema}`, and server.toml has no [store]; \
                 write it again, and to use files move the state first: longhaul store migrate --to redb"
            ))),
        };
    };
    if has_files {
        bail!(Fault::conflict(format!(
            "the state of `{path}` is in {STATE_FILE} there, and [store] of server.toml names {}; move it with `longhaul \
             store migrate --to postgres`, or remove [store]",
            config.address()
        )));
    }
    if let Some(memory) = &remembered
        && !memory.is_of(&config)
    {
        let DatabaseMemory { address, schema, .. } = memory;
        bail!(Fault::conflict(format!(
            "[store] of server.toml names {}, schema `{}`, and the state of `{path}` is in {address}, schema `{schema}`; \
             correct [store], or if the database moved, remove `{path}/{DATABASE_FILE}`",
            config.address(),
            config.schema
        )));
    }
    Ok(Location::Database(config))
}

/// Opens the store of a data directory whose lock this process has. Waits for no other machine.
pub(crate) fn open(home: &Home, crash: &CrashPoints, on_lost: &OnLost) -> fault::Result<Arc<dyn Store>> {
    match location(home)? {
        Location::Files => Ok(Arc::new(files_once_free(home, crash)?)),
        Location::Database(config) => accepted(home, &config, database(home, &config, crash.hook(), on_lost)?, None),
    }
}

/// As [`open`] for a server, but waits while another process works with the database: `on_wait` is called with a clause
/// about the reason, once for each new one, and with the address of the server that works where it is known.
pub(crate) fn stand_by(
    home: &Home,
    crash: &CrashPoints,
    on_lost: &OnLost,
    on_wait: &mut dyn FnMut(&str, Option<&ServerUrl>),
) -> fault::Result<Arc<dyn Store>> {
    let Location::Database(config) = location(home)? else { return open(home, crash, on_lost) };
    let mut options = options(home, crash.hook(), on_lost);
    options.holder.url = ServerSettings::read(home.path())?.server_url().map(|url| url.to_string());
    let (mut told, mut holder_url, mut watched) = (None, None, None);
    let opened = PostgresStore::wait_and_open(&config, &variable, options, &mut |waiting: &Waiting| {
        // While the database does not answer, the server that worked may still do.
        if let Waiting::Holder { commits, .. } = waiting {
            holder_url = url_of(waiting);
            watched = Some(*commits);
        }
        let reason = reason(&config, waiting);
        if told.as_ref() != Some(&reason) {
            on_wait(&reason, holder_url.as_ref());
            told = Some(reason);
        }
        ControlFlow::Continue(())
    });
    accepted(home, &config, opened?, watched)
}

/// Opens the files in a directory, which are made if they do not exist.
pub(crate) fn files(directory: &Path) -> Result<RedbStore, StoreError> {
    RedbStore::open(directory, StoreOptions::default())
}

/// Opens a database at once, or says who holds it. Only a dead process of this very data directory is waited for: it can
/// hold nothing but the rest of its lease.
pub(crate) fn database(
    home: &Home,
    config: &PostgresConfig,
    crash: Option<CrashHook>,
    on_lost: &OnLost,
) -> fault::Result<PostgresStore> {
    let (since, patience) = (Instant::now(), Duration::from_millis(config.lease_ms.saturating_mul(2)));
    let own = format!(" on {} with {}", host_name(), home.path().display());
    let mut held = None;
    let opened =
        PostgresStore::wait_and_open(config, &variable, options(home, crash, on_lost), &mut |waiting: &Waiting| {
            match waiting {
                Waiting::Holder { holder, .. } if holder.ends_with(&own) && since.elapsed() < patience => {
                    ControlFlow::Continue(())
                }
                Waiting::Holder { .. } => {
                    held = Some(reason(config, waiting));
                    ControlFlow::Break(())
                }
                Waiting::Server { .. } => ControlFlow::Break(()),
            }
        });
    match (opened, held) {
        (Ok(store), _) => Ok(store),
        (Err(_), Some(held)) => {
            Err(Fault::conflict(format!("{held}; ask that one, on its machine or over HTTP, or end it and try again")))
        }
        (Err(error), None) => Err(error.into()),
    }
}

/// Refuses a database that is an end of a migration, or that lost the state of the directory, and remembers one that is
/// taken into use. `watched`: the number of commits when this process last saw it in the hands of another one.
fn accepted(
    home: &Home,
    config: &PostgresConfig,
    store: PostgresStore,
    watched: Option<u64>,
) -> fault::Result<Arc<dyn Store>> {
    refuse_mark(&store, config)?;
    let known = DatabaseMemory::read(home)?;
    // The first use of a store commits its history below.
    if store.is_untouched() && known.is_some() {
        let path = home.path().display();
        bail!(Fault::conflict(format!(
            "{} has no state in schema `{}`, and `{path}` remembers its own there; restore it, or to begin with none remove \
             `{path}/{DATABASE_FILE}`",
            config.address(),
            config.schema
        )));
    }
    let remembered = known.as_ref().and_then(|known| known.seen.clone());
    let history = note_loss(&store, remembered, watched)?;
    home.make_place()?;
    let commits = store.commits();
    let seen = SeenCommit { history: history.clone(), commits: commits.get() };
    let memory = DatabaseMemory { seen: Some(seen), ..DatabaseMemory::of(config) };
    memory.write(home, known.as_ref())?;
    let keeper = MemoryKeeper::start(home, memory, history, commits)?;
    let open_files = |directory: &Path| Ok(Box::new(files(directory)?) as Box<dyn Store>);
    Ok(Arc::new(ExportableStore::new(Arc::new(store), open_files, keeper)))
}

/// Notes a failover or a restore of the database since it was used before: its runs wait for a person then. Returns the
/// id of its history.
fn note_loss(store: &PostgresStore, remembered: Option<SeenCommit>, watched: Option<u64>) -> fault::Result<String> {
    let opened = OpenedStore {
        timeline: store.timeline(),
        claimed_before: store.promotion().map(|promotion| promotion.from),
        commits: store.commits().get(),
        remembered,
        watched,
        fresh_id: random_id()?,
    };
    let Noted { history, loss } = Handle::current().block_on(commit_loss::note(store, &opened))?;
    if let Some((loss, runs)) = loss {
        tracing::warn!(runs, "{loss}; runs that have not ended wait for `longhaul resume`");
    }
    Ok(history)
}

/// Refuses a database that is an end of a migration.
pub(crate) fn refuse_mark(store: &dyn Store, config: &PostgresConfig) -> fault::Result<()> {
    let (address, schema) = (config.address(), &config.schema);
    match MigrationMark::of(store)? {
        None => Ok(()),
        Some(MigrationMark::Unfinished { from }) => bail!(Fault::conflict(format!(
            "a copy of the state into {address} is unfinished, and the state is still in {from}, or beside it with `.moved` \
             behind its name; remove the copy with `DROP SCHEMA {schema} CASCADE`, and migrate again"
        ))),
        Some(MigrationMark::Moved { to }) => bail!(Fault::conflict(format!(
            "the state of {address} was moved to {to}; use it there, or go back to what it was with: longhaul store reopen"
        ))),
    }
}

fn files_once_free(home: &Home, crash: &CrashPoints) -> Result<RedbStore, StoreError> {
    let asked = Instant::now();
    loop {
        let options = StoreOptions { crash_hook: crash.hook(), ..StoreOptions::default() };
        match RedbStore::open(home.path(), options) {
            Err(StoreError::Held { .. }) if asked.elapsed() < FILES_WAIT => {
                std::thread::sleep(Duration::from_millis(20));
            }
            opened => return opened,
        }
    }
}

fn options(home: &Home, crash_hook: Option<CrashHook>, on_lost: &OnLost) -> PostgresOptions {
    let (host, directory) = (host_name(), home.path().to_owned());
    let holder = Holder { host, pid: std::process::id(), directory, url: None };
    let on_lost = Arc::clone(on_lost);
    let on_lost = Arc::new(move |lost: &LeaseLost| on_lost(&lost.to_string()));
    PostgresOptions { holder, crash_hook, on_lost }
}

/// The reason of a wait as a clause, without the time that is left: that changes.
fn reason(config: &PostgresConfig, waiting: &Waiting) -> String {
    match waiting {
        Waiting::Holder { holder, .. } => {
            let at = url_of(waiting).map(|url| format!(", at {url}")).unwrap_or_default();
            format!("the database {} is held by {holder}{at}", config.address())
        }
        Waiting::Server { detail } => detail.clone(),
    }
}

/// The address of the process that is waited for. A text in the database that is none counts as none.
fn url_of(waiting: &Waiting) -> Option<ServerUrl> {
    match waiting {
        Waiting::Holder { url, .. } => url.as_deref().and_then(ServerUrl::parse),
        Waiting::Server { .. } => None,
    }
}
