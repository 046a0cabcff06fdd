//! Requests and responses about the tokens of the HTTP API, and the scopes of a token. This module holds no token.

use longhaul_core::text::truncate;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A permission of a token. `run` and `approve` include `read`, and `admin` includes all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenScope {
    /// Read everything.
    Read,
    /// Start, steer, pause, resume and stop runs, and change features.
    Run,
    /// Answer approvals and other questions.
    Approve,
    /// Everything, directories and hosts of this machine included.
    Admin,
}

impl TokenScope {
    /// The name in JSON and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }

    /// True when the scope includes `other`.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self == other || self == Self::Admin || other == Self::Read
    }
}

/// The facts about a token, without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessToken {
    /// The name of the token.
    pub name: String,
    /// The scopes of the token.
    pub scopes: Vec<TokenScope>,
    /// The time of its creation, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// The time of its expiry, in milliseconds since 1970-01-01 UTC. None: it does not expire.
    pub expires_ms: Option<u64>,
}

impl AccessToken {
    /// True when one of its scopes includes `scope`.
    #[must_use]
    pub fn allows(&self, scope: TokenScope) -> bool {
        self.scopes.iter().any(|own| own.covers(scope))
    }
}

/// Create a token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AddToken {
    /// The name of the token, which must not be in use.
    pub name: String,
    /// The scopes of the token; at least one.
    pub scopes: Vec<TokenScope>,
    /// The time until it expires, in milliseconds. None: it does not expire.
    pub lasts_ms: Option<u64>,
}

/// List the tokens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListTokens {}

/// Revoke a token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemoveToken {
    /// The name of the token.
    pub name: String,
}

/// A created token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewToken {
    /// The token without its value.
    pub token: AccessToken,
    /// The value, which no later response has.
    pub shown: IssuedToken,
}

/// All tokens, without their values.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TokenList {
    /// The tokens, sorted by name.
    pub tokens: Vec<AccessToken>,
}

/// The value of a token. Its `Debug` form hides it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IssuedToken(String);

impl IssuedToken {
    /// The value that was made, or that a client sent.
    #[must_use]
    pub fn of(sent: &str) -> Self {
        Self(sent.to_owned())
    }

    /// The whole value.
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

/// The time until a token expires, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenTtl(pub u64);

/// Reads the lifetime of a token as a person writes it: `90m`, `12h`, `30d`, `8w`.
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
