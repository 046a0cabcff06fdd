//! The packages of Python that tools of a project import, as the lock beside `longhaul.toml` has them.
//!
//! A run pins the lock and not the requirements, so that a resume imports the same bytes. Nothing is resolved here:
//! that asks the index, and changes a file of the project, which a person does.

use longhaul_config::asks::RequestedGrants;
use longhaul_config::{Config, PluginConfig};
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::grant::DirectoryGrant;
use longhaul_core::packages::{LOCK_BYTES_MAX, PACKAGES_GUEST, PackageLock, PackageRequirement, sorted};
use longhaul_home::text_file;
use longhaul_packages::PackageCache;
use std::path::{Path, PathBuf};

/// The command that makes the lock.
const REMEDY: &str = "write it with: longhaul packages lock";

/// The lock of a project.
#[must_use]
pub fn lock_file(project: &Path) -> PathBuf {
    project.join("packages.lock")
}

/// The requirements of all parts of a configuration, each once.
#[must_use]
pub fn wanted(config: &Config) -> Vec<PackageRequirement> {
    let all: Vec<PackageRequirement> = config.parts().flat_map(|(_, part)| part.packages.clone()).collect();
    sorted(&all)
}

/// The lock of the project; none if its configuration wants no packages.
///
/// # Errors
/// When the lock is missing, a link, malformed, or of other packages.
pub fn locked(config: &Config, project: &Path) -> fault::Result<Option<PackageLock>> {
    let wants = wanted(config);
    if wants.is_empty() {
        return Ok(None);
    }
    let path = lock_file(project);
    if !path.exists() {
        bail!("longhaul.toml wants packages, and there is no `{}`; {REMEDY}", path.display());
    }
    if path.is_symlink() {
        bail!("`{}` is a link, which a lock is not; {REMEDY}", path.display());
    }
    let text = text_file::read(&path, LOCK_BYTES_MAX as u64).or_invalid(|| format!("read `{}`", path.display()))?;
    let lock: PackageLock = text.parse().or_invalid(|| format!("`{}`", path.display()))?;
    if !lock.is_for(&wants) {
        bail!("`{}` is of other packages than longhaul.toml wants; {REMEDY}", path.display());
    }
    Ok(Some(lock))
}

/// The lock's text for the pin of a part; empty if the part wants no packages.
pub fn checked(
    table: &str,
    part: &PluginConfig,
    asks: &RequestedGrants,
    lock: Option<&PackageLock>,
) -> fault::Result<String> {
    if part.packages.is_empty() {
        return Ok(String::new());
    }
    if !asks.directories.iter().any(|asked| asked.guest == PACKAGES_GUEST) {
        let plugin = &part.plugin;
        bail!(
            "[{table}] gives packages, which plugin `{plugin}` does not ask for; remove the line, or use plugin = \"python\""
        );
    }
    Ok(lock.map(ToString::to_string).unwrap_or_default())
}

/// The directory with the packages of a pinned lock; none for an empty text.
///
/// # Errors
/// When a wheel is missing in the cache and cannot be fetched, or is not what the lock says.
pub(crate) async fn granted(pinned: &str) -> fault::Result<Option<DirectoryGrant>> {
    if pinned.is_empty() {
        return Ok(None);
    }
    let lock: PackageLock = pinned.parse().or_internal(|| "the pinned lock of packages")?;
    // pip may have to fetch, which takes a while.
    let filled = tokio::task::spawn_blocking(move || PackageCache::open(say)?.grant(&lock)).await;
    let grant = filled.map_err(|error| Fault::msg(format!("laying packages out: {error}")))?;
    Ok(Some(grant.or_invalid(|| "its packages")?))
}

fn say(line: &str) {
    tracing::info!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(packages: &str) -> Config {
        let text = format!(
            "[project]\nname = \"a\"\n[agents.code]\nplugin = \"react\"\n[tools.python]\nplugin = \"python\"\npackages = \
             {packages}\n"
        );
        Config::parse(&text).expect("it is read")
    }

    #[test]
    fn a_lock_must_be_there_and_of_what_the_configuration_wants() {
        let project = tempfile::tempdir().unwrap();
        let wants = config("[\"b\", \"a == 1\"]");
        let said = |config: &Config| format!("{:#}", locked(config, project.path()).expect_err("no lock"));
        assert_eq!(locked(&config("[]"), project.path()).unwrap(), None);
        assert!(said(&wants).ends_with("write it with: longhaul packages lock"));
        let digest = "0".repeat(64);
        let lock = format!("# wants: a==1\n# wants: b\na==1 --hash=sha256:{digest}\nb==2 --hash=sha256:{digest}\n");
        std::fs::write(lock_file(project.path()), lock).unwrap();
        assert_eq!(locked(&wants, project.path()).unwrap().unwrap().packages.len(), 2);
        assert!(said(&config("[\"b\"]")).contains("is of other packages than longhaul.toml wants"));
        std::fs::write(lock_file(project.path()), "a==1\n").unwrap();
        assert!(said(&wants).contains("line 1 of the lock is `a==1`"));
        // A repository may bring one along, whose target an error would show.
        std::fs::remove_file(lock_file(project.path())).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", lock_file(project.path())).unwrap();
        assert!(said(&wants).contains("is a link, which a lock is not"));
    }

    #[test]
    fn only_a_plugin_that_asks_for_packages_is_given_some() {
        let config = config("[\"a\"]");
        let part = config.part("tools.python").unwrap();
        let lock = "# wants: a\n".parse::<PackageLock>().unwrap();
        let mut asks = RequestedGrants::default();
        let error = format!("{:#}", checked("tools.python", part, &asks, Some(&lock)).expect_err("it does not ask"));
        assert!(error.contains("which plugin `python` does not ask for"), "{error}");
        asks.directories =
            toml::from_str::<RequestedGrants>("directories = [{ guest = \"/packages\", access = \"read\" }]")
                .unwrap()
                .directories;
        assert_eq!(checked("tools.python", part, &asks, Some(&lock)).unwrap(), lock.to_string());
        let bare = PluginConfig::default();
        assert_eq!(checked("tools.x", &bare, &asks, None).unwrap(), "");
    }
}
