//! Loading: bytes become a plugin that is compiled, linked and ready to be instantiated.

use crate::cache::{Cache, CrashHook};
use crate::callee::Callee;
use crate::config::{EngineOptions, compile_config, fingerprint, host_config};
use crate::deferred_drop::{DeferredDrop, Leftovers};
use crate::edition::{Edition, Editions, Exports, is_later};
use crate::error::LoadError;
use crate::file_cache::{self, FileNote, FileStamp, KnownFiles};
use crate::inspect::{Inspection, inspect_for};
use crate::jail::Jail;
use crate::linkers::Linkers;
use crate::role::Role;
use longhaul_bindings::PACKAGE;
use longhaul_capabilities::Ctx;
use longhaul_core::{Digest, LimitHit};
use longhaul_sandbox::CompileLimits;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wasmtime::Store;
use wasmtime::component::{Component, InstancePre};

/// Loads plugins. Clones share the compiler and its cache.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
    editions: Editions,
    /// Those of `editions`.
    linkers: Arc<Linkers>,
}

struct Inner {
    engine: wasmtime::Engine,
    fingerprint: String,
    cache: Cache,
    jail: Jail,
    known_files: KnownFiles,
    leftovers: Leftovers<Store<Ctx>>,
}

impl Engine {
    /// An engine whose compiled code is kept in `cache`, a private directory.
    ///
    /// # Errors
    /// [`LoadError::Cache`] when the directory is not ours alone, [`LoadError::Host`] when wasmtime does not start.
    pub fn new(cache: PathBuf, jail: Jail, options: &EngineOptions) -> Result<Self, LoadError> {
        let refused = |reason| LoadError::Host { name: "engine".into(), reason };
        let engine = wasmtime_engine(options)
            .map_err(|error| refused(format!("wasmtime does not start on this machine: {error:#}")))?;
        let fingerprint = fingerprint(&engine);
        let cache = Cache::open(cache, fingerprint.clone())?;
        let leftovers = leftovers(options).map_err(|error| refused(format!("no thread can be started: {error}")))?;
        let inner = Inner { engine, fingerprint, cache, jail, known_files: KnownFiles::default(), leftovers };
        Ok(Self { inner: Arc::new(inner), editions: Editions::default(), linkers: Arc::default() })
    }

    /// Replaces the default versions of the contract.
    #[must_use]
    pub fn with_editions(self, editions: Editions) -> Self {
        Self { editions, linkers: Arc::default(), ..self }
    }

    /// Calls `hook` before a compiler starts, and before and after its output gets its name.
    #[must_use]
    pub fn with_crash_hook(self, hook: Option<CrashHook>) -> Self {
        if let Some(hook) = hook {
            self.inner.cache.set_crash_hook(hook);
        }
        self
    }

    /// Equal fuel and equal results are promised within this fingerprint.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.inner.fingerprint
    }

    /// The directory of compiled code.
    #[must_use]
    pub fn cache_directory(&self) -> &Path {
        self.inner.cache.directory()
    }

    /// Reads a plugin's file within the cap on bytes.
    ///
    /// # Errors
    /// [`LoadError::Unreadable`] or [`LoadError::Limit`].
    pub fn read(&self, name: &str, path: &Path) -> Result<Vec<u8>, LoadError> {
        let unreadable = |source| LoadError::Unreadable { name: name.to_owned(), path: path.to_owned(), source };
        let max = self.inner.jail.limits.bytes_max;
        let capped = |size: u64| {
            let hit = LimitHit::new("bytes_max", size, max);
            if size > max { Err(LoadError::Limit { name: name.to_owned(), hit }) } else { Ok(()) }
        };
        // A pipe would hang, and a device has no end.
        let found = std::fs::metadata(path).map_err(unreadable)?;
        if !found.is_file() {
            return Err(unreadable(std::io::Error::other("it is no file")));
        }
        capped(found.len())?;
        // The file may grow in the meantime, so its measured size bounds nothing.
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(unreadable)?;
        file.take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
        capped(bytes.len() as u64)?;
        Ok(bytes)
    }

    /// Makes a plugin of a component's bytes: compiled at most once for each engine and digest.
    ///
    /// # Errors
    /// Every [`LoadError`].
    pub async fn load(&self, name: &str, bytes: &[u8]) -> Result<Plugin, LoadError> {
        self.load_inspected(name, bytes, None).await
    }

    /// The same for a caller that has made the digest of these very bytes, which takes as long as the rest of a small
    /// plugin's start. With the digest of other bytes, the code of these would be kept under theirs.
    ///
    /// # Errors
    /// Every [`LoadError`].
    pub async fn load_digested(&self, name: &str, digest: Digest, bytes: &[u8]) -> Result<Plugin, LoadError> {
        debug_assert_eq!(digest, Digest::of(bytes), "plugin `{name}`");
        self.load_inspected(name, bytes, Some(digest)).await
    }

    async fn load_inspected(&self, name: &str, bytes: &[u8], digest: Option<Digest>) -> Result<Plugin, LoadError> {
        let (inspection, edition) = inspect_for(&self.editions, name, bytes, digest, &self.inner.jail.limits)?;
        let component = self.component(name, &inspection.digest, bytes).await?;
        self.plugin(name, inspection, edition, &component)
    }

    /// Makes a plugin of a component's file. A file that was loaded before, by this process or another one of
    /// this cache, is not read again as long as it did not change; nor is what this process has read about it.
    ///
    /// # Errors
    /// Every [`LoadError`].
    pub async fn load_file(&self, name: &str, path: &Path) -> Result<Plugin, LoadError> {
        let Inner { cache, jail, known_files, .. } = &*self.inner;
        let note = FileNote::about(path, cache.directory(), &jail.limits);
        let (stamp, looked_at) = (FileStamp::of(path), file_cache::now());
        if let Some(inspection) = stamp.as_ref().and_then(|stamp| known_files.inspection(&note, stamp))
            && let Some(plugin) = self.known(name, inspection)
        {
            return Ok(plugin);
        }
        let plugin = self.load(name, &self.read(name, path)?).await?;
        // The file may have changed while it was read, even within one tick of the clock.
        let stays = |before: &FileStamp| before.has_rested(looked_at) && FileStamp::of(path).as_ref() == Some(before);
        if let Some(stamp) = stamp.filter(stays) {
            note.write(stamp, &plugin.inspection);
        }
        Ok(plugin)
    }

    /// The plugin of a known file; none when its compiled code is missing, or no longer fits.
    fn known(&self, name: &str, inspection: Inspection) -> Option<Plugin> {
        let edition = self.editions.serving(&inspection.contract)?;
        let component = self.compiled(&self.inner.cache.known(&inspection.digest)?).ok()?;
        self.plugin(name, inspection, edition, &component).ok()
    }

    fn plugin(
        &self,
        name: &str,
        inspection: Inspection,
        edition: &dyn Edition,
        component: &Component,
    ) -> Result<Plugin, LoadError> {
        let wrong = |reason| LoadError::WrongWorld { name: name.to_owned(), reason };
        let pre = self
            .link(inspection.role, edition, component)
            .map_err(|error| wrong(unlinked(&inspection, edition, &error)))?;
        let exports = edition.exports(inspection.role, &pre).map_err(|error| wrong(format!("{error:#}")))?;
        let callee = self.callee(name, pre);
        Ok(Plugin { inspection, callee, exports })
    }

    pub(crate) fn callee(&self, name: &str, pre: InstancePre<Ctx>) -> Callee {
        let Inner { engine, leftovers, .. } = &*self.inner;
        Callee { name: name.to_owned(), engine: engine.clone(), pre, leftovers: leftovers.clone() }
    }

    /// The limits of compilation.
    pub(crate) fn compile_limits(&self) -> &CompileLimits {
        &self.inner.jail.limits
    }

    pub(crate) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.inner.engine
    }

    pub(crate) fn linkers(&self) -> &Linkers {
        &self.linkers
    }

    pub(crate) async fn component(&self, name: &str, digest: &Digest, bytes: &[u8]) -> Result<Component, LoadError> {
        let Inner { cache, jail, .. } = &*self.inner;
        let path = cache.compiled(name, digest, bytes, jail).await?;
        if let Ok(component) = self.compiled(&path) {
            return Ok(component);
        }
        // A file that wasmtime refuses is truncated or has other settings: compile once more.
        cache.forget(digest);
        let path = cache.compiled(name, digest, bytes, jail).await?;
        // The compiler would have reported any fault of the plugin.
        let unusable =
            |error: wasmtime::Error| format!("the code that was compiled just now cannot be used: {error:#}");
        self.compiled(&path).map_err(|error| LoadError::Host { name: name.to_owned(), reason: unusable(error) })
    }

    /// Maps compiled code.
    fn compiled(&self, path: &Path) -> wasmtime::Result<Component> {
        // SAFETY: the file was written by our own compiling child into a directory that belongs to us and that no other
        // user can write, and it has the seal of that directory; see `cache` and `seal`. Every caller has had the seal
        // checked for the file as it is now: its bytes are those that were sealed, or its stamp is that of a check of
        // them, which the seal or this process remembers.
        unsafe { Component::deserialize_file(&self.inner.engine, path) }
    }

    fn link(&self, role: Role, edition: &dyn Edition, component: &Component) -> wasmtime::Result<InstancePre<Ctx>> {
        self.linkers.of_role(&self.inner.engine, role, edition)?.instantiate_pre(component)
    }
}

/// The reason why a component of a supported edition does not link.
fn unlinked(inspection: &Inspection, edition: &dyn Edition, error: &wasmtime::Error) -> String {
    let (contract, spoken) = (&inspection.contract, edition.version());
    if is_later(contract, spoken) {
        return format!(
            "it was built for {PACKAGE} {contract} and needs what {spoken}, which this host speaks, does not have; update longhaul, or build it for {spoken}: {error:#}"
        );
    }
    // The same version of the contract: a forbidden import, or a draft of before the contract was frozen.
    let role = inspection.role.name();
    format!(
        "it imports what {PACKAGE} {spoken} does not give to the role `{role}`; build it again with `longhaul plugin build`, and begin a new run in place of one that began with it: {error:#}"
    )
}

/// The part of the program that drops what calls leave, with its thread if it has one.
fn leftovers(options: &EngineOptions) -> std::io::Result<Leftovers<Store<Ctx>>> {
    Ok(match options {
        EngineOptions { ends_after_call: true, .. } => Leftovers::System,
        EngineOptions { clears_aside: true, .. } => Leftovers::OfQueue(DeferredDrop::start()?),
        _ => Leftovers::Caller,
    })
}

/// The pool if the machine gives the address space for it, otherwise one by one.
fn wasmtime_engine(options: &EngineOptions) -> wasmtime::Result<wasmtime::Engine> {
    match wasmtime::Engine::new(&host_config(options)) {
        Ok(engine) => Ok(engine),
        Err(error) => {
            tracing::info!("instances are allocated one by one: {error:#}");
            wasmtime::Engine::new(&compile_config())
        }
    }
}

/// A plugin that can be called.
pub struct Plugin {
    pub(crate) inspection: Inspection,
    pub(crate) callee: Callee,
    pub(crate) exports: Exports,
}

impl Plugin {
    /// Its name, as the operator gave it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.callee.name
    }

    /// Its inspection.
    #[must_use]
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// Its bytes' digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.inspection.digest
    }

    /// Its role.
    #[must_use]
    pub fn role(&self) -> Role {
        self.inspection.role
    }

    /// This plugin, if it has the role.
    ///
    /// # Errors
    /// [`LoadError::WrongRole`].
    pub fn expect(&self, wanted: Role) -> Result<&Self, LoadError> {
        if self.role() == wanted {
            return Ok(self);
        }
        Err(LoadError::WrongRole { name: self.callee.name.clone(), found: self.role().name(), wanted: wanted.name() })
    }
}
