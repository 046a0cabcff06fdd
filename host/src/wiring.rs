//! The only place that names every concrete type: the machine's clock, the engine, models; and by `stores`, the store.

use crate::cluster_store::{ClusterStore, OwnedStore};
use crate::own_service::OwnService;
use crate::project_models::ConfiguredModels;
use crate::stores::{self, Entered, Location, OnLost, Opened};
use longhaul_api::upkeep::RestoreOptions;
use longhaul_checkpoints::RunShareFactory;
use longhaul_client::Client;
use longhaul_client::wire::{self, ForeignOwner};
use longhaul_config::checkpoints::CheckpointConfig;
use longhaul_config::memory::MemoryConfig;
use longhaul_config::powers;
use longhaul_config::server::ServerSettings;
use longhaul_config::{Config, ServerUrl};
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::memory::{Embedder, FullText, Hybrid, MemoryBackend, Ranking};
use longhaul_core::project_models::ProjectModels;
use longhaul_core::shared::RunShare;
use longhaul_core::store::{Batch, Key, Op, Seats, Store, Table};
use longhaul_core::{Clock, Digest};
use longhaul_engine::{CompileLimits, Engine, EngineOptions, Jail};
use longhaul_graph_runner::GraphService;
use longhaul_home::crash::{self, CrashPoints};
use longhaul_home::{Home, Owned};
use longhaul_maintenance::backup::PreparedStore;
use longhaul_memory::{MemoryFactory, Rememberer};
use longhaul_models::set::ProgramEnvironment;
use longhaul_monitor::{AdmissionController, Monitor};
use longhaul_notify::Notifier;
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::index::ChangeTrackingStore;
use longhaul_records::record::{self, RunRecord};
use longhaul_redis::{RedisMemory, SharedRuns};
use longhaul_security::audit::{AuditEvent, AuditLog};
use longhaul_security::signing::Signer;
use longhaul_server::socket;
use longhaul_service::{Cluster, Service, ServiceParts};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longest wait for an owner that does not answer: it may just be starting, or ending.
const OWNER_WAIT: Duration = Duration::from_secs(20);

/// The client of the service of a data directory: becomes the owner, or finds the present owner. Where another process
/// takes over the database with the state, this one is told in the log, and everything that needs the store fails.
///
/// # Errors
/// When the directory can neither be opened nor its owner be reached.
pub async fn open(home: &Home, project: Option<&Path>) -> fault::Result<Client> {
    let on_lost: OnLost = Arc::new(|lost: &str| tracing::error!("{lost}"));
    open_or_lose(home, project, on_lost).await
}

/// Opens like [`open`], and calls `on_lost` when another process takes over the database.
///
/// # Errors
/// Those of [`open`].
pub async fn open_or_lose(home: &Home, project: Option<&Path>, on_lost: OnLost) -> fault::Result<Client> {
    let asked = tokio::time::Instant::now();
    loop {
        if let Some(owned) = home.try_own()? {
            return own(owned, project, on_lost).await;
        }
        match wire::connect(home).await {
            Ok(_) => return Ok(Client::Far(home.clone())),
            Err(error) if error.is::<ForeignOwner>() => return Err(error),
            Err(_) => home.refuse_standby()?,
        }
        if asked.elapsed() > OWNER_WAIT {
            bail!("another longhaul holds `{}` and does not answer; end it and try again", home.path().display());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Becomes the owner, as a server, once a command that is about to end has. Stands by while a process of another
/// machine works with the database: `on_wait` is called with a clause about each new reason, and with the address of
/// the server that works where it is known. Where it works on runs for that one, `on_work` is called with its service.
///
/// # Errors
/// When the directory cannot be opened, or another process keeps it. A server does, and is not waited for.
pub async fn own_soon(
    home: &Home,
    on_lost: OnLost,
    mut on_wait: impl FnMut(&str, Option<&ServerUrl>) + Send + 'static,
    on_work: impl FnOnce(&Arc<Service>) + Send,
) -> fault::Result<Client> {
    let asked = tokio::time::Instant::now();
    loop {
        if let Some(owned) = home.try_own()? {
            owned.say_server();
            let owned = Arc::new(owned);
            let standing = Arc::clone(&owned);
            let on_wait = move |waits_for: &str, holder: Option<&ServerUrl>| {
                standing.say_standby(waits_for);
                on_wait(waits_for, holder);
            };
            return own_as_server(owned, on_lost, on_wait, on_work).await;
        }
        home.refuse_second_server()?;
        if asked.elapsed() > OWNER_WAIT {
            let holder = home.lock_holder().map(|holder| format!(" ({holder})")).unwrap_or_default();
            bail!(
                "another longhaul owns `{}`{holder}, perhaps one that follows a run; end it and try again",
                home.path().display()
            );
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Becomes the owner as a server. With `[worker]` it works for the owner until then.
async fn own_as_server(
    owned: Arc<Owned>,
    on_lost: OnLost,
    mut on_wait: impl FnMut(&str, Option<&ServerUrl>) + Send + 'static,
    on_work: impl FnOnce(&Arc<Service>) + Send,
) -> fault::Result<Client> {
    let (home, crash) = (owned.home().clone(), CrashPoints::from_environment());
    let settings = ServerSettings::read(home.path())?.worker().cloned();
    let compile = CompileLimits::default();
    let config = match stores::location(&home)? {
        Location::Database(config) if settings.is_some() => config,
        Location::Database(_) | Location::Files => {
            return own_with(owned, compile, move |owned, crash| {
                let opened = stores::stand_by(owned.home(), crash, &on_lost, &|| false, &mut on_wait)?;
                owned.say_server();
                Ok(opened)
            })
            .await;
        }
    };
    let (entering, lost) = (crash.clone(), Arc::clone(&on_lost));
    let at = home.clone();
    let (entered, mut on_wait) = tokio::task::spawn_blocking(move || {
        let entered = stores::enter(&at, &config, &entering, &lost, &mut on_wait);
        entered.map(|entered| (entered, on_wait))
    })
    .await??;
    let seat = match entered {
        Entered::Owns(opened) => {
            owned.say_server();
            return serve_own(owned, Opened::Database(opened), crash, compile).await;
        }
        Entered::Joined(seat) => seat,
    };
    let epoch = seat.epoch();
    let store = Arc::new(ClusterStore::new(seat));
    let cluster = cluster(&home, Arc::clone(&store) as Arc<dyn Seats>, Some(epoch))?;
    let parts =
        service_parts(Arc::clone(&owned), Arc::clone(&store) as Arc<dyn Store>, crash.clone(), compile, Some(cluster))?;
    let (seed, service) = (parts.host.fresh_seed(), Arc::new(Service::new(parts)));
    on_work(&service);
    let mut working = tokio::spawn(Arc::clone(&service).work());
    let (at, ending) = (home.clone(), Arc::clone(&service));
    let leading = tokio::task::spawn_blocking(move || {
        let is_ending = || ending.is_closing();
        let Opened::Database(opened) = stores::stand_by(&at, &crash, &on_lost, &is_ending, &mut on_wait)? else {
            bail!("[store] was removed from server.toml while this server stood by; start it again");
        };
        store.own(opened);
        Ok::<_, Fault>(())
    });
    tokio::select! {
        led = leading => led??,
        // It ends by a defect alone, and a worker that replies to nobody must not keep its seat.
        ended = &mut working => {
            ended?;
            bail!("the work for the server that leads ended; start this one again");
        }
    }
    owned.say_server();
    service.lead().await?;
    working.await?;
    let server = socket::serve(&home, Arc::clone(&service), seed)?;
    Ok(Client::Own { service: Arc::new(OwnService(service)), server, home })
}

/// The servers that share a database, this one among them. `epoch` is the number of its claim on its seat, if it has
/// one.
fn cluster(home: &Home, seats: Arc<dyn Seats>, epoch: Option<u64>) -> fault::Result<Arc<Cluster>> {
    let (place, settings) = (home.make_place()?, ServerSettings::read(home.path())?);
    Ok(Arc::new(Cluster {
        seats,
        name: place.id,
        host: place.host,
        url: settings.server_url().map(|url| url.to_string()),
        settings: Mutex::new(settings.worker().cloned()),
        epoch,
    }))
}

async fn own(owned: Owned, project: Option<&Path>, on_lost: OnLost) -> fault::Result<Client> {
    // The caps on compiling are the project's, where there is one that can be read.
    let compile = project
        .and_then(|project| Config::read(project).ok())
        .map_or_else(CompileLimits::default, |config| config.compile);
    own_with(Arc::new(owned), compile, move |owned, crash| stores::open(owned.home(), crash, &on_lost)).await
}

/// Opens the store by `open`, on a thread that may block, and serves it.
async fn own_with(
    owned: Arc<Owned>,
    compile: CompileLimits,
    open: impl FnOnce(&Owned, &CrashPoints) -> fault::Result<Opened> + Send + 'static,
) -> fault::Result<Client> {
    let crash = CrashPoints::from_environment();
    let opening = crash.clone();
    let (owned, opened) = tokio::task::spawn_blocking(move || {
        opening.reach("store.before-open");
        let opened = open(&owned, &opening)?;
        opening.reach("store.after-open");
        Ok::<_, Fault>((owned, opened))
    })
    .await??;
    serve_own(owned, opened, crash, compile).await
}

/// Serves an opened store, which this process owns.
async fn serve_own(
    owned: Arc<Owned>,
    opened: Opened,
    crash: CrashPoints,
    compile: CompileLimits,
) -> fault::Result<Client> {
    let home = owned.home().clone();
    let (store, cluster) = match opened {
        Opened::Files(store) => (store, None),
        Opened::Database(OwnedStore { store, seats }) => (store, Some(cluster(&home, seats, None)?)),
    };
    let parts = service_parts(owned, store, crash, compile, cluster)?;
    let seed = parts.host.fresh_seed();
    let service = Arc::new(Service::new(parts));
    service.lead().await?;
    let server = socket::serve(&home, Arc::clone(&service), seed)?;
    Ok(Client::Own { service: Arc::new(OwnService(service)), server, home })
}

/// Starts the engine over an open store, the parts of a service of a data directory.
fn service_parts(
    owned: Arc<Owned>,
    store: Arc<dyn Store>,
    crash: CrashPoints,
    compile: CompileLimits,
    cluster: Option<Arc<Cluster>>,
) -> fault::Result<ServiceParts> {
    let home = owned.home().clone();
    if let Some(receiver) = crash::receiver()? {
        if cluster.is_some() {
            bail!(
                "{} is set, which is for crash tests, and those have their state in files; unset it",
                crash::CRASH_RECEIVER
            );
        }
        tracing::warn!("requests reach {receiver} and no host, since {} is set", crash::CRASH_RECEIVER);
        longhaul_egress::stand_in::send_all_to(receiver);
    }
    // We hold the lock, so every check that left something here is over.
    longhaul_worktree::clear_scratch(&home.scratch());
    // Runs can be looked at without a program; the work on them is refused where it would begin.
    let program = own_program().unwrap_or_default();
    let jail = Jail { program, arguments: vec!["compile-child".into()], limits: compile };
    let engine = Engine::new(cache()?.join("compiled"), jail, &EngineOptions::default())?.with_crash_hook(crash.hook());
    let (store, changed_runs) = ChangeTrackingStore::new(store);
    let (store, clock): (Arc<dyn Store>, Arc<dyn Clock>) = (Arc::new(store), Arc::new(MachineClock));
    let resources = Monitor::new(home.path().to_owned(), Arc::clone(&clock));
    let notifier = Arc::new(Notifier::new(&home, Arc::clone(&store), Arc::clone(&clock), crash.clone()));
    let environment = model_environment()?;
    let of_projects: Arc<dyn ProjectModels> =
        Arc::new(ConfiguredModels { store: Arc::clone(&store), environment: environment.clone() });
    let agents = longhaul_scheduler::SchedulerService::new(
        Arc::clone(&store),
        Arc::clone(&clock),
        &home,
        crash.clone(),
        Arc::clone(&notifier),
        Arc::clone(&of_projects),
    );
    agents.admit_by(Arc::new(AdmissionController(resources.clone())));
    let graphs = Arc::new(GraphService::new(Arc::clone(&store), Arc::clone(&clock), &home, of_projects));
    let host = Arc::new(PluginHost::new(owned, store, clock, engine, crash));
    let memories: Arc<dyn MemoryFactory> = Arc::new(Backends);
    let rememberer = Rememberer::new(Arc::clone(&host), Arc::clone(&memories), environment.clone());
    Ok(ServiceParts {
        resources,
        graphs,
        agents: Arc::new(agents),
        changed_runs,
        environment,
        notifier,
        memories,
        shares: Arc::new(Backends),
        rememberer: Arc::new(rememberer),
        host,
        cluster,
    })
}

/// Reads the store of a restored data directory from end to end, looks for the record with a digest in its audit log,
/// and removes what acts by itself and is not kept.
pub fn prepare_store(
    directory: &Path,
    keeps: RestoreOptions,
    signer: &Signer,
    expect: Option<Digest>,
) -> fault::Result<PreparedStore> {
    let store: Arc<dyn Store> = Arc::new(stores::files(directory)?);
    let audit = AuditLog::new(Arc::clone(&store), Arc::new(MachineClock));
    let mut prepared = PreparedStore {
        read: store.read_all()?,
        powers: powers_in(&*store)?,
        dropped: Vec::new(),
        audit: Some(audit.verify(expect)?),
    };
    let mut batch = Batch::new();
    // Trees of a backup are here, and a run without one continues from its commits.
    for head in record::heads(&*store)? {
        record::forget_tree_place(&mut batch, &head.run);
        record::forget_carried(&*store, &mut batch, &head.run)?;
    }
    longhaul_workers::forget_all(&mut batch, &*store)?;
    let mut drop = |prefix: &str, what: &str| -> fault::Result<()> {
        let rows = store.scan(Table::States, &Key::of(prefix), None, usize::MAX)?;
        if !rows.is_empty() {
            prepared.dropped.push(format!("{} {what}", rows.len()));
        }
        rows.into_iter().for_each(|(key, _)| batch.push(Op::Delete(Table::States, Key::from_bytes(key))));
        Ok(())
    };
    if !keeps.tokens {
        drop("tokens", "API tokens; --with-tokens keeps them")?;
    }
    if !keeps.commands {
        drop("trust", "trusted files of projects; --with-commands keeps the trust")?;
        drop("letters", "notifications that were not sent yet; --with-commands keeps them")?;
    }
    tokio::runtime::Handle::current().block_on(async {
        store.commit(batch).await?;
        audit.note(AuditEvent::Restored { signer: signer.to_string() }).await
    })?;
    Ok(prepared)
}

/// The powers that the projects of a store request, by the newest run of each.
fn powers_in(store: &dyn Store) -> fault::Result<Vec<String>> {
    let newest: BTreeMap<PathBuf, RunRecord> =
        record::records(store)?.into_iter().map(|record| (record.directory.clone(), record)).collect();
    let mut found = Vec::new();
    for (directory, record) in newest {
        // A configuration that cannot be read any more requests nothing.
        let Ok(config) = record.config() else { continue };
        let place = longhaul_core::text::printable(&directory.to_string_lossy(), 200);
        found.extend(powers::of(&config).iter().filter(|power| !power.is_plain).map(|it| format!("{place}: {it}")));
    }
    Ok(found)
}

pub(crate) use longhaul_home::MachineClock;
pub use longhaul_home::{cache, own_program, variable};

/// Sentence models of this program, and servers that several machines share.
struct Backends;

impl MemoryFactory for Backends {
    fn ranking(&self, model: Option<&str>, store: &Arc<dyn Store>) -> fault::Result<Arc<dyn Ranking>> {
        let Some(name) = model else { return Ok(Arc::new(FullText)) };
        Ok(Arc::new(Hybrid::new(embedder(name)?, Arc::clone(store))))
    }

    fn on_server(
        &self,
        config: &MemoryConfig,
        directory: &Path,
        clock: Arc<dyn Clock>,
        ranking: Arc<dyn Ranking>,
    ) -> fault::Result<Option<Arc<dyn MemoryBackend>>> {
        let Some(server) = &config.redis else { return Ok(None) };
        Ok(Some(Arc::new(RedisMemory::new(server, &variable, directory, clock)?.ranked_by(ranking))))
    }

    fn check_embeddings(&self, model: Option<&str>) -> fault::Result<()> {
        model.map_or(Ok(()), |name| embedder(name).map(drop))
    }
}

impl RunShareFactory for Backends {
    fn open(&self, config: &CheckpointConfig, directory: &Path) -> fault::Result<Option<Box<dyn RunShare>>> {
        let Some(server) = &config.redis else { return Ok(None) };
        Ok(Some(Box::new(SharedRuns::new(server, &variable, directory)?)))
    }
}

/// A sentence model, one for the whole process. It is loaded when something is searched for.
#[cfg(feature = "embeddings")]
fn embedder(name: &str) -> fault::Result<Arc<dyn Embedder>> {
    use longhaul_embeddings::{ModelFiles, Pinned, Sentences};
    use longhaul_models::pull::{Pulled, files_of};
    static KNOWN: std::sync::Mutex<Option<(ModelFiles, Arc<Sentences>)>> = std::sync::Mutex::new(None);
    let pinned = |Pulled { path, digest, bytes_max }| Pinned { path, digest, bytes_max };
    let found: Vec<Pinned> = files_of(name, &cache()?).into_iter().map(pinned).collect();
    let Ok([weights, vocabulary]) = <[Pinned; 2]>::try_from(found) else {
        bail!("[memory] embeddings names `{name}`, which is no sentence model; write \"minilm\"");
    };
    let files = ModelFiles { weights, vocabulary };
    if !files.weights.path.is_file() || !files.vocabulary.path.is_file() {
        bail!("[memory] embeddings names `{name}`, which is not here; fetch it with: longhaul models pull {name}");
    }
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match &*known {
        Some((of, model)) if *of == files => Ok(Arc::clone(model) as Arc<dyn Embedder>),
        _ => {
            let model = Arc::new(Sentences::new(files.clone()));
            *known = Some((files, Arc::clone(&model)));
            Ok(model)
        }
    }
}

/// Better said before a run than by its first search.
#[cfg(not(feature = "embeddings"))]
fn embedder(name: &str) -> fault::Result<Arc<dyn Embedder>> {
    bail!(
        "[memory] embeddings names `{name}`, and this longhaul was built without sentence models; build it with: cargo build --release --features embeddings"
    );
}

/// The environment that this program gives to its models.
pub fn model_environment() -> fault::Result<ProgramEnvironment> {
    Ok(ProgramEnvironment {
        variable,
        cache: cache()?,
        child_command: own_program().map_or_else(|_| Vec::new(), |program| vec![program.into(), "model-child".into()]),
        has_local: cfg!(feature = "local-model"),
        asked_log: crash::model_log(),
    })
}
