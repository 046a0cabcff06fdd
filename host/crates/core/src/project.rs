//! The statuses of a project, and the changes between them.
//!
//! A project is a directory with a `longhaul.toml`, and its runs. Its status is not stored: it is that of its newest
//! run, so that the two cannot disagree. This module adds the table of allowed changes; any other change passes through
//! active.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The status of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProjectStatus {
    /// It has no plan yet: it has no run, or a planner is at work.
    Initializing,
    /// Some features do not pass yet. A process works on them, or `longhaul resume` continues.
    Active,
    /// A person paused the work.
    Paused,
    /// Every feature passes or was dropped.
    Completed,
    /// A person abandoned it. Only a new run changes that.
    Abandoned,
}

impl ProjectStatus {
    /// All statuses.
    pub const ALL: [Self; 5] = [Self::Initializing, Self::Active, Self::Paused, Self::Completed, Self::Abandoned];

    /// The name for people and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initializing => "initializing",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Abandoned => "abandoned",
        }
    }

    /// True when `next` may follow directly.
    ///
    /// A new run makes any project that is not paused initializing. An abandoned project has no other successor, and
    /// only an active one can be completed. A status does not follow itself.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        use ProjectStatus::{Abandoned, Active, Completed, Initializing, Paused};
        match (self, next) {
            (Initializing | Active, Paused | Abandoned)
            | (Initializing | Paused | Completed, Active)
            | (Active | Paused | Completed | Abandoned, Initializing)
            | (Active, Completed)
            | (Paused, Abandoned) => true,
            (Initializing, Initializing | Completed)
            | (Active, Active)
            | (Paused, Paused | Completed)
            | (Completed, Paused | Completed | Abandoned)
            | (Abandoned, Active | Paused | Completed | Abandoned) => false,
        }
    }

    /// Each status up to `next`, which is the last of them; none when nothing changes.
    #[must_use]
    pub fn way_to(self, next: Self) -> Vec<Self> {
        if self == next {
            Vec::new()
        } else if self.may_become(next) {
            vec![next]
        } else {
            vec![Self::Active, next]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ProjectStatus::{self, Abandoned, Active, Completed, Initializing, Paused};

    #[test]
    fn every_pair_is_allowed_or_not_as_the_table_says() {
        // Rows are the former status, columns the next one.
        let table = [
            (Initializing, [false, true, true, false, true]),
            (Active, [true, false, true, true, true]),
            (Paused, [true, true, false, false, true]),
            (Completed, [true, true, false, false, false]),
            (Abandoned, [true, false, false, false, false]),
        ];
        for (from, row) in table {
            let found = ProjectStatus::ALL.map(|to| from.may_become(to));
            assert_eq!(found, row, "from {}", from.as_str());
        }
    }

    #[test]
    fn a_change_takes_allowed_steps_alone_and_only_what_was_given_up_has_no_way_back() {
        for from in ProjectStatus::ALL {
            for to in ProjectStatus::ALL {
                let way = from.way_to(to);
                let steps = [&[from][..], &way].concat();
                let is_allowed = steps.windows(2).all(|pair| pair[0].may_become(pair[1]));
                assert_eq!(is_allowed, from == to || from != Abandoned || to == Initializing, "{from:?} {to:?}");
                assert!(way.len() <= 2 && (from == to) == way.is_empty());
            }
        }
        assert_eq!(Completed.way_to(Paused), [Active, Paused]);
        assert_eq!(Paused.way_to(Completed), [Active, Completed]);
    }

    #[test]
    fn its_word_is_the_one_in_json() {
        for status in ProjectStatus::ALL {
            assert_eq!(serde_json::to_value(status).expect("a word"), status.as_str());
        }
    }
}
