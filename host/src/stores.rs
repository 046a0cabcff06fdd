//! Opens the store of a data directory: its own files, or the PostgreSQL database that `[store]` of `server.toml`
//! names.
//!
//! The files and the memory of which database has the state decide together with the settings. Where they differ the
//! directory is refused with what to do: no store is opened empty beside state that is elsewhere. The copies from one
//! kind of store to the other are made by `migration.rs`.

use crate::cluster_store::OwnedStore;
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

/// The pause before a server tries again to own a database, or to join those that work for its owner.
const ENTER_PAUSE: Duration = Duration::from_millis(500);

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
    Database(Box<PostgresConfig>),
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
    Ok(Location::Database(Box::new(config)))
}

/// The opened store of a data directory.
pub(crate) enum Opened {
    /// Its own files.
    Files(Arc<dyn Store>),
    /// A database, which this process owns.
    Database(OwnedStore),
}

/// A server's first step into a database that others may work with.
pub(crate) enum Entered {
    /// Nobody else had it.
    Owns(OwnedStore),
    /// Another process owns it, and this one has a seat.
    Joined(PostgresStore),
}

/// Called with a clause about each new reason of a wait, and the address of the server that works where it is known.
pub(crate) type OnWait<'a> = dyn FnMut(&str, Option<&ServerUrl>) + Send + 'a;

/// Opens the store of a data directory whose lock this process has. Waits for no other machine.
pub(crate) fn open(home: &Home, crash: &CrashPoints, on_lost: &OnLost) -> fault::Result<Opened> {
    match location(home)? {
        Location::Files => Ok(Opened::Files(Arc::new(files_once_free(home, crash)?))),
        Location::Database(config) => {
            let opened = database(home, &config, crash.hook(), on_lost)?;
            Ok(Opened::Database(accepted(home, &config, opened, None)?))
        }
    }
}

/// As [`open`] for a server, but waits while another process works with the database: `on_wait` is called with a clause
/// about the reason, once for each new one, and with the address of the server that works where it is known.
pub(crate) fn stand_by(
    home: &Home,
    crash: &CrashPoints,
    on_lost: &OnLost,
    is_ending: &dyn Fn() -> bool,
    on_wait: &mut OnWait<'_>,
) -> fault::Result<Opened> {
    let Location::Database(config) = location(home)? else { return open(home, crash, on_lost) };
    let mut wait = Wait::of(&config, on_wait);
    let opened =
        PostgresStore::wait_and_open(&config, &variable, server_options(home, crash, on_lost)?, &mut |waiting| {
            wait.tell(waiting);
            if is_ending() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    let watched = wait.watched;
    Ok(Opened::Database(accepted(home, &config, opened?, watched)?))
}

/// Opens the database of a data directory as its owner, or joins those that work for the owner. Waits while neither can
/// be done, as where the tables are those of an earlier version. An error after the first wait is waited for, too, but
/// for tables of a newer version.
pub(crate) fn enter(
    home: &Home,
    config: &PostgresConfig,
    crash: &CrashPoints,
    on_lost: &OnLost,
    on_wait: &mut OnWait<'_>,
) -> fault::Result<Entered> {
    let name = home.make_place()?.id;
    let mut wait = Wait::of(config, on_wait);
    loop {
        let opened = PostgresStore::wait_and_open(
            config,
            &variable,
            server_options(home, crash, on_lost)?,
            &mut |waiting: &Waiting| {
                wait.tell(waiting);
                ControlFlow::Break(())
            },
        );
        match opened {
            Ok(opened) => return Ok(Entered::Owns(accepted(home, config, opened, wait.watched)?)),
            // In the middle of a failover a server refuses for a moment, which whoever stands by outlives.
            Err(error) if wait.told.is_none() => return Err(error.into()),
            Err(_) => {}
        }
        let never = &mut |_: &Waiting| ControlFlow::Break(());
        match PostgresStore::join(config, &variable, server_options(home, crash, on_lost)?, &name, never) {
            Ok(seat) => {
                refuse_mark(&seat, config)?;
                return Ok(Entered::Joined(seat));
            }
            Err(error @ StoreError::Format { .. }) => return Err(error.into()),
            Err(error) => tracing::debug!(%error, "this server has no seat yet"),
        }
        std::thread::sleep(ENTER_PAUSE);
    }
}

/// The wait of a server for a database.
struct Wait<'a, 'b> {
    config: &'a PostgresConfig,
    on_wait: &'a mut OnWait<'b>,
    told: Option<String>,
    holder_url: Option<ServerUrl>,
    /// The number of commits when the database was last seen in the hands of another process.
    watched: Option<u64>,
}

impl<'a, 'b> Wait<'a, 'b> {
    fn of(config: &'a PostgresConfig, on_wait: &'a mut OnWait<'b>) -> Self {
        Self { config, on_wait, told: None, holder_url: None, watched: None }
    }

    fn tell(&mut self, waiting: &Waiting) {
        // While the database does not answer, the server that worked may still do.
        if let Waiting::Holder { commits, .. } = waiting {
            self.holder_url = url_of(waiting);
            self.watched = Some(*commits);
        }
        let reason = reason(self.config, waiting);
        if self.told.as_ref() != Some(&reason) {
            (self.on_wait)(&reason, self.holder_url.as_ref());
            self.told = Some(reason);
        }
    }
}

/// Opens the files in a directory, which are made if they do not exist.
pub(crate) fn files(directory: &Path) -> Result<RedbStore, StoreError> {
    RedbStore::open(directory, StoreOptions::default())
}

/// Opens a database at once, or says who holds it. Only a dead process of this very data directory is waited for: it
/// can hold nothing but the rest of its lease.
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
) -> fault::Result<OwnedStore> {
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
    let store = Arc::new(store);
    let seats = Arc::clone(&store);
    Ok(OwnedStore { store: Arc::new(ExportableStore::new(store, open_files, keeper)), seats })
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

/// The options of a server, which has an address for others.
fn server_options(home: &Home, crash: &CrashPoints, on_lost: &OnLost) -> fault::Result<PostgresOptions> {
    let mut options = options(home, crash.hook(), on_lost);
    options.holder.url = ServerSettings::read(home.path())?.server_url().map(|url| url.to_string());
    Ok(options)
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
