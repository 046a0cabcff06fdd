//! Levels of confinement, with their names in settings, reports and journals.

use crate::backend::{Backend, Runsc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The confinement of a program, besides limits, a cleared environment and a session of its own.
///
/// Ordered from the weakest to the strongest. Reports of older versions say `namespaces` also when the machine's files
/// were visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Nothing more.
    None,
    /// Landlock and seccomp: files by a list and no network. Processes of the user are visible. Needs a Landlock that
    /// restricts signals and abstract sockets, which is version 6 of its interface (Linux 6.12).
    Landlock,
    /// Namespaces and seccomp: no network, processes and a file system of its own. For a kernel without Landlock.
    Namespaces,
    /// Namespaces, Landlock and seccomp.
    #[default]
    Full,
    /// Namespaces, and in them a kernel of its own, which is gVisor's `runsc`. Tried only if it is the lowest accepted
    /// level.
    Runsc,
}

impl Level {
    /// The levels to try if this one is the lowest accepted, from the strongest on. Those with a backend are slow to
    /// start, and are tried only on request.
    pub(crate) fn tried(self) -> impl Iterator<Item = Self> {
        const OF_THE_KERNEL: [Level; 4] = [Level::Full, Level::Namespaces, Level::Landlock, Level::None];
        let of_a_backend = self.backend().map(|_| self);
        of_a_backend.into_iter().chain(OF_THE_KERNEL.into_iter().filter(move |level| *level >= self))
    }

    /// The backend of the level, if it has one.
    pub(crate) fn backend(self) -> Option<&'static dyn Backend> {
        match self {
            Self::Runsc => Some(&Runsc),
            Self::Full | Self::Namespaces | Self::Landlock | Self::None => None,
        }
    }

    /// Processes that are counted with those of a program: the inner one, and those of a backend.
    pub(crate) fn keepers(self) -> u64 {
        1 + self.backend().map_or(0, Backend::processes)
    }

    /// True when the program has namespaces of its own.
    #[must_use]
    pub fn has_namespaces(self) -> bool {
        matches!(self, Self::Runsc | Self::Full | Self::Namespaces)
    }

    /// True when Landlock confines it.
    #[must_use]
    pub fn has_landlock(self) -> bool {
        matches!(self, Self::Full | Self::Landlock)
    }

    /// The remedy for a system without this level.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Runsc => {
                "install gVisor's `runsc` in a directory of PATH, and allow user namespaces: sysctl \
                 kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000, \
                 kernel.apparmor_restrict_unprivileged_userns=0"
            }
            Self::Full => {
                "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000, \
                 kernel.apparmor_restrict_unprivileged_userns=0) and Landlock (kernel 5.13 or newer, booted with \
                 lsm=landlock,...)"
            }
            Self::Namespaces => {
                "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000, \
                 kernel.apparmor_restrict_unprivileged_userns=0"
            }
            Self::Landlock => {
                "allow Landlock and seccomp: without namespaces that takes kernel 6.12 or newer, booted with \
                 lsm=landlock,..."
            }
            Self::None => "start longhaul where it may start programs",
        }
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Runsc => "runsc",
            Self::Full => "full",
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
            Self::None => "none",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Level;

    #[test]
    fn words_of_settings_and_older_journals_are_read() {
        let words =
            [("runsc", Level::Runsc), ("full", Level::Full), ("namespaces", Level::Namespaces), ("none", Level::None)];
        for (word, level) in words {
            assert_eq!(serde_json::from_value::<Level>(word.into()).expect("an older word"), level);
            assert_eq!(level.to_string(), word);
        }
    }

    #[test]
    fn levels_are_tried_from_the_strongest_on_and_a_backend_only_by_its_name() {
        let mut tried: Vec<Level> = Level::None.tried().collect();
        assert_eq!(tried, [Level::Full, Level::Namespaces, Level::Landlock, Level::None]);
        tried.sort_by(|one, other| other.cmp(one));
        assert!(Level::None.tried().eq(tried), "as they are ordered");
        assert!(Level::Full.tried().eq([Level::Full]));
        assert!(Level::Runsc > Level::Full && Level::Runsc.tried().eq([Level::Runsc]));
    }
}
