//! The value of a secret, which no text of the host shows.
//!
//! `Debug` prints [`SHOWN`] in its place, and there is no `Display`. A value that is too short to be found reliably in
//! responses, or that no header can carry, is refused.

use std::fmt;

/// The replacement of a value in texts.
pub const SHOWN: &str = "[secret]";

/// A shorter value would match unrelated texts.
const BYTES_MIN: usize = 8;

/// Longer than any token; a header has to hold it.
const BYTES_MAX: usize = 4_096;

/// A value that nothing shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// The value cannot be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret is {BYTES_MIN} to {BYTES_MAX} visible ASCII characters without spaces; this one is not")]
pub struct NotASecret;

impl Secret {
    /// Takes a value; a line feed at its end is not part of it.
    ///
    /// # Errors
    /// [`NotASecret`], which does not repeat it.
    pub fn new(text: &str) -> Result<Self, NotASecret> {
        let text = text.trim_end_matches(['\r', '\n']);
        let fits = (BYTES_MIN..=BYTES_MAX).contains(&text.len());
        if !fits || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(NotASecret);
        }
        Ok(Self(text.to_owned()))
    }

    /// The value, for the wire and for the file that keeps it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SHOWN)
    }
}
