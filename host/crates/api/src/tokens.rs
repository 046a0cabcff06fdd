//! The tokens that let somebody in over HTTP, as they are asked for and shown, and what each allows. Knows no token.

use longhaul_core::text::truncate;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a token allows. `Run` and `Approve` allow reading as well, and `Admin` allows everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenScope {
    /// Look at everything.
    Read,
    /// Start, steer, pause, resume and stop runs, and change features.
    Run,
    /// Answer what agents must not do without being asked about.
    Approve,
    /// Everything, directories and hosts of this machine included.
    Admin,
}

impl TokenScope {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }

    /// Whether who has it may do what asks for `other`.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self == other || self == Self::Admin || other == Self::Read
    }
}

/// What is known of a token, which is not enough to use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessToken {
    /// What a person calls it.
    pub name: String,
    /// What it allows.
    pub scopes: Vec<TokenScope>,
    /// When it was made, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// Until when it lets in; none: until it is removed.
    pub expires_ms: Option<u64>,
}

impl AccessToken {
    /// Whether it may do what asks for a scope.
    #[must_use]
    pub fn allows(&self, scope: TokenScope) -> bool {
        self.scopes.iter().any(|own| own.covers(scope))
    }
}

/// Make a token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AddToken {
    /// Its name. No other token may have it.
    pub name: String,
    /// What it allows; not empty.
    pub scopes: Vec<TokenScope>,
    /// How long it lets in, in milliseconds; none: until it is removed.
    pub lasts_ms: Option<u64>,
}

/// List the tokens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListTokens {}

/// Remove a token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemoveToken {
    /// Its name.
    pub name: String,
}

/// A token that was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewToken {
    /// The token without its value.
    pub token: AccessToken,
    /// The value, which is shown this once.
    pub shown: IssuedToken,
}

/// Tokens without their values.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TokenList {
    /// By name.
    pub tokens: Vec<AccessToken>,
}

/// A token as it is shown once.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IssuedToken(String);

impl IssuedToken {
    /// One that is made, or that a client sent.
    #[must_use]
    pub fn of(sent: &str) -> Self {
        Self(sent.to_owned())
    }

    /// All of it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for IssuedToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[token]")
    }
}

/// How long a token lasts, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenTtl(pub u64);

/// How long a token lasts, as a person writes it: `90m`, `12h`, `30d`, `8w`. In milliseconds.
impl FromStr for TokenTtl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{}` is no time; write for example 12h, 30d or 8w", truncate(text, 40));
        let unit = text.chars().next_back().ok_or_else(wrong)?;
        let seconds: u64 = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 7 * 86_400,
            _ => return Err(wrong()),
        };
        let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
        let ms = number.checked_mul(seconds * 1_000).filter(|ms| *ms > 0).ok_or_else(wrong)?;
        Ok(Self(ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_covers_itself_and_reading_and_only_admin_covers_all() {
        use TokenScope::{Admin, Approve, Read, Run};
        for (own, covered) in [
            (Read, vec![Read]),
            (Run, vec![Read, Run]),
            (Approve, vec![Read, Approve]),
            (Admin, vec![Read, Run, Approve, Admin]),
        ] {
            let all = [Read, Run, Approve, Admin];
            assert_eq!(all.into_iter().filter(|other| own.covers(*other)).collect::<Vec<_>>(), covered, "{own:?}");
        }
    }

    #[test]
    fn a_time_is_read_as_people_write_it_and_nothing_else_is() {
        assert_eq!("30d".parse(), Ok(TokenTtl(30 * 86_400_000)));
        assert_eq!("90m".parse(), Ok(TokenTtl(5_400_000)));
        for wrong in ["", "d", "0d", "-1d", "1", "1y", "99999999999999999w", "1é"] {
            assert!(wrong.parse::<TokenTtl>().is_err(), "{wrong}");
        }
    }
}
