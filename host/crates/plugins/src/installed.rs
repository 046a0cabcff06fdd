//! Installed plugins, by name, version and digest, below `plugins` of the data directory.
//!
//! | path | content |
//! |---|---|
//! | `NAME.wasm` | a link to the version that runs use |
//! | `versions/NAME/versions.json` | the installed versions, the newest last, and their sources |
//! | `versions/NAME/DIGEST.wasm` | one component |
//! | `versions/.lock` | the lock of changes: one process at a time |
//!
//! A component is complete and on disk before it is listed, and listed before it is linked: a kill in between leaves
//! the previous state, and perhaps an unlisted file. Nothing here is run, and an installation grants nothing. A file
//! `NAME.wasm` that is no link belongs to the user, and is never overwritten.

use longhaul_api::wire::plugins::{PluginSourceView, PluginVersionView};
use longhaul_build::cache::{create_dir, lock};
use longhaul_core::Digest;
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_home::Home;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Versions of one plugin that are kept. One more deletes the oldest.
const VERSIONS_MAX: usize = 16;

/// Fewest digits that identify a digest.
const DIGITS_MIN: usize = 8;

/// One version of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginVersion {
    /// The version in its manifest.
    pub version: String,
    /// The digest of its bytes.
    pub digest: Digest,
    /// The number of its bytes.
    pub bytes: u64,
    /// Its source.
    pub source: PluginSource,
}

/// The source of an installed plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PluginSource {
    /// A file of this machine.
    File(PathBuf),
    /// An address.
    Url(String),
    /// Built by this program from its own sources, which have this digest.
    Made(Digest),
}

impl From<PluginVersion> for PluginVersionView {
    fn from(inner: PluginVersion) -> Self {
        let PluginVersion { version, digest, bytes, source } = inner;
        let source = match source {
            PluginSource::File(path) => PluginSourceView::File(path.display().to_string()),
            PluginSource::Url(address) => PluginSourceView::Url(address),
            PluginSource::Made(of) => PluginSourceView::Made(of.to_string()),
        };
        Self { version, digest: digest.to_string(), bytes, source }
    }
}

/// A reference to a plugin: `NAME`, `NAME@VERSION` or `NAME@sha256:DIGITS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginRef {
    /// The plugin.
    pub name: String,
    which: VersionSelector,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum VersionSelector {
    Current,
    Version(String),
    /// The beginning of a digest.
    Digest(String),
}

impl FromStr for PluginRef {
    type Err = Fault;

    fn from_str(text: &str) -> fault::Result<Self> {
        let (name, which) = match text.split_once('@') {
            None => (text, VersionSelector::Current),
            Some((name, which)) => match which.strip_prefix("sha256:") {
                None => (name, VersionSelector::Version(which.to_owned())),
                Some(digits) if digits.len() >= DIGITS_MIN => {
                    (name, VersionSelector::Digest(digits.to_ascii_lowercase()))
                }
                Some(_) => bail!("`{text}`: write at least {DIGITS_MIN} digits of the digest"),
            },
        };
        longhaul_build::check_form(name)?;
        Ok(Self { name: name.to_owned(), which })
    }
}

impl PluginRef {
    fn fits(&self, version: &PluginVersion, current: Option<Digest>) -> bool {
        match &self.which {
            VersionSelector::Current => Some(version.digest) == current,
            VersionSelector::Version(wanted) => version.version == *wanted,
            VersionSelector::Digest(digits) => version.digest.to_string().starts_with(digits.as_str()),
        }
    }
}

/// The folder of installed plugins.
#[derive(Clone, Debug)]
pub struct InstalledPlugins {
    folder: PathBuf,
}

/// The lock for changes, held until it is dropped.
pub struct InstallLock<'a> {
    installed: &'a InstalledPlugins,
    _lock: File,
}

/// The content of `versions.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionsFile {
    versions: Vec<PluginVersion>,
}

impl InstalledPlugins {
    /// The plugins of a data directory.
    pub fn of(home: &Home) -> Self {
        Self { folder: home.plugins() }
    }

    /// The names of installed plugins, sorted.
    pub fn names(&self) -> fault::Result<Vec<String>> {
        let folder = self.folder.join("versions");
        let entries = match folder.read_dir() {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(|| format!("cannot list `{}`", folder.display())),
        };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| longhaul_build::check_form(name).is_ok()).collect();
        names.sort();
        Ok(names)
    }

    /// The versions of a plugin, in the order of their installation.
    pub fn versions(&self, name: &str) -> fault::Result<Vec<PluginVersion>> {
        let path = self.record_path(name);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", path.display())),
        };
        let record: VersionsFile = serde_json::from_str(&text).or_internal(|| {
            let folder = self.folder_of(name);
            format!("`{}` is damaged; remove `{}` and install {name} again", path.display(), folder.display())
        })?;
        Ok(record.versions)
    }

    /// The version that runs use, if `NAME.wasm` is a link that this program made.
    pub fn current(&self, name: &str) -> Option<Digest> {
        digest_in(&fs::read_link(self.link(name)).ok()?)
    }

    /// The component that a reference names, and its version.
    pub fn find(&self, wanted: &PluginRef) -> fault::Result<(PathBuf, PluginVersion)> {
        let name = &wanted.name;
        let (versions, current) = (self.versions(name)?, self.current(name));
        // Two builds of one version differ by their digests; without a digest the reference names the last one.
        match versions.iter().rev().find(|version| wanted.fits(version, current)) {
            Some(version) => Ok((self.component(name, version.digest), version.clone())),
            None if versions.is_empty() => bail!("no plugin `{name}` is installed"),
            None => bail!("there is no such version of `{name}`; installed are {}", list(&versions)),
        }
    }

    /// The versions that a removal would delete, and those that would remain.
    pub fn parted(&self, wanted: &PluginRef) -> fault::Result<(Vec<PluginVersion>, Vec<PluginVersion>)> {
        let current = self.current(&wanted.name);
        let goes = |version: &PluginVersion| wanted.which == VersionSelector::Current || wanted.fits(version, current);
        Ok(self.versions(&wanted.name)?.into_iter().partition(goes))
    }

    /// Waits until no other process changes anything, and takes the lock.
    pub fn change(&self, say: longhaul_build::ProgressLine) -> fault::Result<InstallLock<'_>> {
        Ok(InstallLock { installed: self, _lock: lock(&self.folder.join("versions/.lock"), say)? })
    }

    /// A file of that name that this program did not install.
    pub fn foreign(&self, name: &str) -> Option<PathBuf> {
        let link = self.link(name);
        (fs::symlink_metadata(&link).is_ok() && self.current(name).is_none()).then_some(link)
    }

    /// The path of a component with that digest.
    pub fn component(&self, name: &str, digest: Digest) -> PathBuf {
        self.folder_of(name).join(format!("{digest}.wasm"))
    }

    /// The path where a run finds it by its name.
    pub fn link(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.wasm"))
    }

    fn folder_of(&self, name: &str) -> PathBuf {
        self.folder.join("versions").join(name)
    }

    fn record_path(&self, name: &str) -> PathBuf {
        self.folder_of(name).join("versions.json")
    }
}

impl InstallLock<'_> {
    /// Installs a version, and makes runs use it.
    pub fn install(&self, name: &str, bytes: &[u8], version: PluginVersion) -> fault::Result<()> {
        let InstallLock { installed, .. } = self;
        if let Some(foreign) = installed.foreign(name) {
            bail!("`{}` was not installed by this command; move it away first", foreign.display());
        }
        create_dir(&installed.folder_of(name))?;
        let digest = version.digest;
        let path = installed.component(name, digest);
        write_durably(&path, bytes).with_context(|| format!("cannot write `{}`", path.display()))?;
        let mut versions = installed.versions(name)?;
        versions.retain(|old| old.digest != digest);
        versions.push(version);
        let dropped = versions.len().saturating_sub(VERSIONS_MAX);
        let dropped: Vec<PluginVersion> = versions.drain(..dropped).collect();
        self.record(name, versions)?;
        self.point(name, digest)?;
        dropped.iter().try_for_each(|old| remove_file(&installed.component(name, old.digest)))
    }

    /// Removes the referenced versions, all of them where none is named. Returns the removed ones; if the version that
    /// runs use is among them, they use the newest remaining one.
    pub fn remove(&self, wanted: &PluginRef) -> fault::Result<Vec<PluginVersion>> {
        let (installed, name) = (self.installed, &wanted.name);
        let current = installed.current(name);
        let (gone, left) = installed.parted(wanted)?;
        if gone.is_empty() {
            // The error lists the versions that exist.
            installed.find(wanted)?;
        }
        match left.last() {
            None if current.is_some() => remove_file(&installed.link(name))?,
            Some(newest) if !left.iter().any(|version| Some(version.digest) == current) => {
                self.point(name, newest.digest)?;
            }
            _ => {}
        }
        self.record(name, left)?;
        gone.iter().try_for_each(|old| remove_file(&installed.component(name, old.digest)))?;
        // Removes the folder only if it is empty.
        let _ = fs::remove_dir(installed.folder_of(name));
        Ok(gone)
    }

    fn record(&self, name: &str, versions: Vec<PluginVersion>) -> fault::Result<()> {
        let path = self.installed.record_path(name);
        if versions.is_empty() {
            return remove_file(&path);
        }
        let text = serde_json::to_string_pretty(&VersionsFile { versions })?;
        write_durably(&path, text.as_bytes()).with_context(|| format!("cannot write `{}`", path.display()))
    }

    /// Makes runs use the version of that digest.
    fn point(&self, name: &str, digest: Digest) -> fault::Result<()> {
        let link = self.installed.link(name);
        let fresh = link.with_extension("link");
        remove_file(&fresh)?;
        let target = Path::new("versions").join(name).join(format!("{digest}.wasm"));
        std::os::unix::fs::symlink(target, &fresh)
            .and_then(|()| fs::rename(&fresh, &link))
            .with_context(|| format!("cannot write `{}`", link.display()))
    }
}

/// The name of a plugin as a configuration names it: without a version and, for a path, without directory and
/// extension.
#[must_use]
pub fn base_name(plugin: &str) -> &str {
    if plugin.starts_with(['.', '/']) {
        return Path::new(plugin).file_stem().and_then(|stem| stem.to_str()).unwrap_or(plugin);
    }
    plugin.split_once('@').map_or(plugin, |(name, _)| name)
}

/// The digest in the name of an installed component's file, also through its link. None: it is no such file.
pub fn digest_of(component: &Path) -> Option<Digest> {
    match fs::read_link(component) {
        Ok(target) => digest_in(&target),
        Err(_) => digest_in(component),
    }
}

fn digest_in(path: &Path) -> Option<Digest> {
    path.file_stem()?.to_str()?.parse().ok()
}

fn list(versions: &[PluginVersion]) -> String {
    let each = |version: &PluginVersion| format!("{} (sha256:{})", version.version, version.digest.short());
    versions.iter().map(each).collect::<Vec<_>>().join(", ")
}

fn write_durably(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".part-").tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(folder)?.sync_all()
}

fn remove_file(path: &Path) -> fault::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove `{}`", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(_: &str) {}

    fn place() -> (tempfile::TempDir, InstalledPlugins) {
        let place = tempfile::tempdir().unwrap();
        let installed = InstalledPlugins { folder: place.path().join("plugins") };
        (place, installed)
    }

    fn install(installed: &InstalledPlugins, version: &str, bytes: &str) -> fault::Result<Digest> {
        let digest = Digest::of(bytes.as_bytes());
        let version = PluginVersion {
            version: version.into(),
            digest,
            bytes: bytes.len() as u64,
            source: PluginSource::File("/a.wasm".into()),
        };
        installed.change(quiet)?.install("a", bytes.as_bytes(), version)?;
        Ok(digest)
    }

    fn read(installed: &InstalledPlugins, wanted: &str) -> String {
        match installed.find(&wanted.parse().unwrap()) {
            Ok((path, _)) => fs::read_to_string(path).unwrap(),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn a_plugin_has_one_name_however_it_is_referred_to() {
        for plugin in ["coder", "coder@1.2.0", "coder@sha256:0123456789ab", "./plugins/coder.wasm", "/srv/coder.wasm"] {
            assert_eq!(base_name(plugin), "coder", "{plugin}");
        }
    }

    #[test]
    fn the_newest_is_taken_and_each_is_found_by_version_and_digest() {
        let (_place, installed) = place();
        assert_eq!(read(&installed, "a"), "no plugin `a` is installed");
        let first = install(&installed, "0.1.0", "one").unwrap();
        install(&installed, "0.2.0", "two").unwrap();
        assert_eq!(fs::read_to_string(installed.link("a")).unwrap(), "two");
        assert_eq!((read(&installed, "a"), read(&installed, "a@0.1.0")), ("two".into(), "one".into()));
        assert_eq!(read(&installed, &format!("a@sha256:{}", first.short())), "one");
        assert!(read(&installed, "a@9").starts_with("there is no such version of `a`; installed are 0.1.0 (sha256:"));
        // A second installation makes it current again, and lists it once.
        install(&installed, "0.1.0", "one").unwrap();
        assert_eq!((read(&installed, "a"), installed.versions("a").unwrap().len()), ("one".into(), 2));
    }

    #[test]
    fn what_is_removed_is_gone_and_the_newest_that_is_left_is_taken() {
        let (_place, installed) = place();
        for (version, bytes) in [("1", "one"), ("2", "two"), ("3", "three")] {
            install(&installed, version, bytes).unwrap();
        }
        let remove =
            |wanted: &str| installed.change(quiet).unwrap().remove(&wanted.parse().unwrap()).map(|gone| gone.len());
        assert_eq!(remove("a@3").unwrap(), 1);
        assert_eq!(read(&installed, "a"), "two");
        assert_eq!(remove("a").unwrap(), 2);
        assert_eq!(remove("a").unwrap_err().to_string(), "no plugin `a` is installed");
        assert!(!installed.link("a").exists() && !installed.folder_of("a").exists());
        assert!(installed.names().unwrap().is_empty());
    }

    #[test]
    fn somebody_elses_file_is_left_alone() {
        let (_place, installed) = place();
        fs::create_dir_all(&installed.folder).unwrap();
        fs::write(installed.link("a"), "mine").unwrap();
        let error = install(&installed, "1", "one").unwrap_err().to_string();
        assert!(error.ends_with("was not installed by this command; move it away first"), "{error}");
        assert_eq!(fs::read_to_string(installed.link("a")).unwrap(), "mine");
    }

    #[test]
    fn the_oldest_goes_when_there_are_many() {
        let (_place, installed) = place();
        for number in 0..VERSIONS_MAX + 2 {
            install(&installed, &number.to_string(), &format!("bytes {number}")).unwrap();
        }
        let versions = installed.versions("a").unwrap();
        assert_eq!((versions.len(), versions[0].version.as_str()), (VERSIONS_MAX, "2"));
        let files = fs::read_dir(installed.folder_of("a")).unwrap().count();
        assert_eq!(files, VERSIONS_MAX + 1, "the components and their list");
    }

    #[test]
    fn a_damaged_list_says_what_to_do() {
        let (_place, installed) = place();
        install(&installed, "1", "one").unwrap();
        fs::write(installed.record_path("a"), "{").unwrap();
        assert!(read(&installed, "a").contains("is damaged; remove `"));
    }

    #[test]
    fn names_that_are_paths_are_refused() {
        for wanted in ["../a", "a/b", "", "a@sha256:12", "A"] {
            assert!(wanted.parse::<PluginRef>().is_err(), "{wanted}");
        }
    }
}
