//! Names of agents and schedules, which people choose.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The name of a schedule or of an agent: 1 to 64 of letters, digits, `-`, `_` and `.`, which is also a valid file
/// name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// The text cannot be a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` cannot be a name: 1 to 64 letters, digits, `-`, `_` and `.`, and no `.` in front")]
pub struct NotAName {
    /// The text, cut to 80 characters.
    pub name: String,
}

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Name {
    type Error = NotAName;

    fn try_from(name: String) -> Result<Self, NotAName> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if (1..=64).contains(&name.len()) && !name.starts_with('.') && name.chars().all(fits) {
            return Ok(Self(name));
        }
        Err(NotAName { name: name.chars().take(80).collect() })
    }
}

impl FromStr for Name {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        Self::try_from(text.to_owned())
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
