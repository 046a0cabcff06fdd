//! Levels of confinement, by the words that settings, reports and journals have for them.

use serde::{Deserialize, Serialize};

/// What confines a program, besides limits, a cleared environment and a session of its own.
///
/// Ordered from the weakest to the strongest. Reports of older versions say `namespaces` also where the files of the
/// machine were in sight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Nothing more.
    None,
    /// Landlock and seccomp: files by a list and no network. Processes of the user are in sight.
    Landlock,
    /// Namespaces and seccomp: no network, processes and a file system of its own. For a kernel without Landlock.
    Namespaces,
    /// Namespaces, Landlock and seccomp.
    #[default]
    Full,
}

impl Level {
    /// All, from the strongest on.
    pub const ALL: [Self; 4] = [Self::Full, Self::Namespaces, Self::Landlock, Self::None];

    /// Whether the program has namespaces of its own.
    #[must_use]
    pub fn has_namespaces(self) -> bool {
        matches!(self, Self::Full | Self::Namespaces)
    }

    /// Whether Landlock holds it.
    #[must_use]
    pub fn has_landlock(self) -> bool {
        matches!(self, Self::Full | Self::Landlock)
    }

    /// What would let this system give this level.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Full => {
                "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000, \
                 kernel.apparmor_restrict_unprivileged_userns=0) and Landlock (kernel 5.13 or newer, booted with \
                 lsm=landlock,...)"
            }
            Self::Namespaces => {
                "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000, \
                 kernel.apparmor_restrict_unprivileged_userns=0"
            }
            Self::Landlock => "allow Landlock and seccomp: kernel 5.13 or newer, booted with lsm=landlock,...",
            Self::None => "start longhaul where it may start programs",
        }
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
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
    fn words_of_older_journals_are_read() {
        for (word, level) in [("full", Level::Full), ("namespaces", Level::Namespaces), ("none", Level::None)] {
            assert_eq!(serde_json::from_value::<Level>(word.into()).expect("an older word"), level);
            assert_eq!(level.to_string(), word);
        }
        assert!(
            Level::None < Level::Landlock && Level::Landlock < Level::Namespaces && Level::Namespaces < Level::Full
        );
    }
}
