//! The editions that a host supports, and the choice of one for a component's version.
//!
//! There is one edition for each line of compatible versions. Nothing here links or calls a component; the
//! edition does.

use super::Edition;
use super::v0_1::V0_1;
use semver::Version;
use std::sync::Arc;

/// The supported editions. Default: `0.1` alone. Clones share them.
#[derive(Clone)]
pub struct Editions(Arc<[Arc<dyn Edition>]>);

impl Default for Editions {
    fn default() -> Self {
        let v0_1: Arc<dyn Edition> = Arc::new(V0_1);
        Self(Arc::from([v0_1]))
    }
}

impl Editions {
    /// Adds an edition. It replaces one with a compatible version.
    #[must_use]
    pub fn and(self, edition: impl Edition + 'static) -> Self {
        let edition: Arc<dyn Edition> = Arc::new(edition);
        let others = self.0.iter().filter(|other| line(other.version()) != line(edition.version()));
        Self(others.chain([&edition]).cloned().collect())
    }

    /// Their versions.
    pub fn versions(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|edition| edition.version())
    }

    /// The edition for components of this version.
    pub(crate) fn serving(&self, version: &str) -> Option<&dyn Edition> {
        self.0.iter().find(|edition| line(edition.version()) == line(version)).map(|edition| &**edition)
    }
}

/// The part of a version that all compatible versions share.
///
/// wasmtime uses the same when it matches names, so that a version found here can also be linked and called.
fn line(version: &str) -> &str {
    let numbers = match Version::parse(version) {
        Ok(Version { major: 1.., pre, .. }) if pre.is_empty() => 1,
        Ok(Version { major: 0, minor: 1.., pre, .. }) if pre.is_empty() => 2,
        // A pre-release, and `0.0`, is compatible with itself alone.
        _ => return version,
    };
    version.match_indices('.').nth(numbers - 1).map_or(version, |(end, _)| &version[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edition::Exports;
    use crate::role::Role;
    use longhaul_capabilities::Ctx;
    use wasmtime::component::{InstancePre, Linker};

    #[test]
    fn versions_are_of_one_line_when_semver_calls_them_compatible() {
        for (version, expected) in [
            ("0.1.0", "0.1"),
            ("0.1.7", "0.1"),
            ("0.1.7+build.1", "0.1"),
            ("0.10.0", "0.10"),
            ("1.0.0", "1"),
            ("1.9.3", "1"),
            ("12.0.0", "12"),
            ("0.0.1", "0.0.1"),
            ("0.2.0-draft", "0.2.0-draft"),
            ("1.0.0-rc.1", "1.0.0-rc.1"),
            ("0.1", "0.1"),
            ("0.01.0", "0.01.0"),
            ("next", "next"),
            ("", ""),
        ] {
            assert_eq!(line(version), expected, "{version}");
        }
    }

    /// An edition with nothing but its version.
    struct Empty(&'static str);

    impl Edition for Empty {
        fn version(&self) -> &str {
            self.0
        }

        fn link(&self, _: Role, _: &mut Linker<Ctx>) -> wasmtime::Result<()> {
            Ok(())
        }

        fn exports(&self, _: Role, _: &InstancePre<Ctx>) -> wasmtime::Result<Exports> {
            Err(wasmtime::Error::msg("it has none"))
        }
    }

    #[test]
    fn a_host_speaks_what_was_added_and_one_edition_of_each_line() {
        let editions = Editions::default().and(Empty("0.2.0")).and(Empty("0.2.4")).and(Empty("1.0.0-rc.1"));
        assert_eq!(editions.versions().collect::<Vec<_>>(), ["0.1.0", "0.2.4", "1.0.0-rc.1"]);
        for (version, expected) in [
            ("0.1.9", Some("0.1.0")),
            ("0.2.0", Some("0.2.4")),
            ("0.3.0", None),
            ("1.0.0", None),
            ("1.0.0-rc.1", Some("1.0.0-rc.1")),
            ("", None),
        ] {
            assert_eq!(editions.serving(version).map(Edition::version), expected, "{version}");
        }
    }
}
