//! Keys. No text shows a key, and it is redacted in everything that an endpoint returns.
//!
//! Limitation: a key that an endpoint has encoded or reversed is not recognised. Such an endpoint has the key already.

use crate::ModelsError;
use std::fmt;
use std::path::Path;

/// The replacement of a key.
const SHOWN: &str = "[secret]";

/// Shorter keys count as the placeholders that local servers want (`none`, `lm-studio`): redacting such a word in a
/// model's reply would damage it. Errors are redacted anyway.
const REPLY_SCRUB_BYTES_MIN: usize = 16;

/// Length from which a part of a key at the end of a truncated text is redacted.
const TAIL_BYTES_MIN: usize = 4;

/// The key of an endpoint. `Debug` and `Display` show `[secret]`.
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes `text`, without white space at its ends.
    ///
    /// # Errors
    /// [`ModelsError::KeyUnusable`] when no HTTP header can carry it.
    pub fn new(model: &str, text: &str) -> Result<Self, ModelsError> {
        let text = text.trim();
        let usable = (1..=4096).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if usable { Ok(Self(text.to_owned())) } else { Err(ModelsError::KeyUnusable { model: model.to_owned() }) }
    }

    /// Reads a file that only its owner may read: mode 0600 or 0400.
    ///
    /// # Errors
    /// [`ModelsError::KeyFile`], [`ModelsError::KeyFileMode`], [`ModelsError::KeyUnusable`].
    pub fn from_file(model: &str, path: &Path) -> Result<Self, ModelsError> {
        use std::io::Read as _;
        use std::os::unix::fs::PermissionsExt as _;
        let failed = |cause: String| ModelsError::KeyFile { path: path.to_owned(), cause };
        let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
        // The opened file is checked, not the path, which may name another file by now.
        let facts = file.metadata().map_err(|error| failed(error.to_string()))?;
        if !facts.is_file() {
            return Err(failed("it is not a file".to_owned()));
        }
        let mode = facts.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(ModelsError::KeyFileMode { path: path.to_owned(), mode });
        }
        let mut text = String::new();
        file.take(8192).read_to_string(&mut text).map_err(|error| failed(error.kind().to_string()))?;
        Self::new(model, &text)
    }

    /// The key of a model's settings, of which at most one is set.
    pub(crate) fn find(
        model: &str,
        env: Option<&str>,
        file: Option<&Path>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ModelsError> {
        match (env, file) {
            (None, None) => Ok(None),
            (None, Some(path)) => Self::from_file(model, path).map(Some),
            (Some(env), None) => match variable(env) {
                Some(value) => Self::new(model, &value).map(Some),
                None => Err(ModelsError::KeyMissing { model: model.to_owned(), variable: env.to_owned() }),
            },
            (Some(_), Some(path)) => Err(ModelsError::Setting {
                model: model.to_owned(),
                field: "api_key_file",
                value: path.display().to_string(),
                remedy: "`api_key_env` is set too; keep one of them".to_owned(),
            }),
        }
    }

    /// The key itself: for the header of a request, and for redaction.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` without the key, and without its beginning at the end of the text, which may be truncated.
    pub(crate) fn scrub(&self, text: &str) -> String {
        let mut clean = text.replace(&self.0, SHOWN);
        let part = tail_of(&clean, &self.0);
        if part >= TAIL_BYTES_MIN {
            clean.truncate(clean.len() - part);
            clean.push_str(SHOWN);
        }
        clean
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SHOWN)
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SHOWN)
    }
}

/// The remedy for a refused key.
pub(crate) fn fix(model: &str, env: Option<&str>, file: Option<&Path>) -> String {
    match (env, file) {
        (Some(variable), _) => format!("put a valid key into the environment variable `{variable}`"),
        (None, Some(path)) => format!("put a valid key into the file `{}`", path.display()),
        (None, None) => format!("add to longhaul.toml: [models.{model}] api_key_env = \"NAME_OF_A_VARIABLE\""),
    }
}

/// The number of bytes at the end of `text` that are a proper beginning of `key`.
fn tail_of(text: &str, key: &str) -> usize {
    let longest = text.len().min(key.len().saturating_sub(1));
    (1..=longest).rev().find(|&part| text.as_bytes().ends_with(&key.as_bytes()[..part])).unwrap_or(0)
}

/// Redacts a key in a streamed reply, of which a piece may end inside the key.
pub(crate) struct KeyRedactor {
    key: Option<String>,
    held: String,
}

impl KeyRedactor {
    pub(crate) fn new(secret: Option<&ApiKey>) -> Self {
        let key = secret.map(|secret| secret.0.clone()).filter(|key| key.len() >= REPLY_SCRUB_BYTES_MIN);
        Self { key, held: String::new() }
    }

    /// The certain part of the text so far; the rest is held back.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let Some(key) = &self.key else {
            return piece.to_owned();
        };
        self.held.push_str(piece);
        let mut clean = self.held.replace(key.as_str(), SHOWN);
        self.held = clean.split_off(clean.len() - tail_of(&clean, key));
        clean
    }

    /// The held-back part: the text ended, so it was no key.
    pub(crate) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// A whole text at once.
    pub(crate) fn whole(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| text.replace(key.as_str(), SHOWN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-test-abcdefghijklmnop";

    fn secret() -> ApiKey {
        ApiKey::new("m", KEY).unwrap()
    }

    #[test]
    fn a_key_is_shown_by_nothing() {
        assert_eq!(format!("{:?} {}", secret(), secret()), "[secret] [secret]");
    }

    #[test]
    fn a_key_cut_at_the_end_of_an_error_is_taken_out_too() {
        assert_eq!(secret().scrub(&format!("bad key {KEY}, really")), "bad key [secret], really");
        assert_eq!(secret().scrub(&format!("bad key {}", &KEY[..20])), "bad key [secret]");
        assert_eq!(secret().scrub("a task"), "a task");
    }

    #[test]
    fn a_key_split_over_pieces_never_passes_the_sieve() {
        for at in 0..=KEY.len() {
            let mut stream_redactor = KeyRedactor::new(Some(&secret()));
            let heard = stream_redactor.push(&format!("é s{}", &KEY[..at]))
                + &stream_redactor.push(&format!("{} sk", &KEY[at..]))
                + &stream_redactor.finish();
            assert_eq!(heard, "é s[secret] sk", "cut at {at}");
        }
    }

    #[test]
    fn a_placeholder_key_does_not_damage_replies() {
        let mut stream_redactor = KeyRedactor::new(Some(&ApiKey::new("m", "none").unwrap()));
        assert_eq!(stream_redactor.push("none of it"), "none of it");
    }

    #[test]
    fn a_key_file_that_others_can_read_is_refused_with_the_command_that_helps() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, format!("{KEY}\n")).unwrap();
        for mode in [0o644, 0o640, 0o604, 0o610] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let text = ApiKey::from_file("m", &path).unwrap_err().to_string();
            assert!(text.contains(&format!("chmod 600 {}", path.display())), "{text}");
            assert!(!text.contains(KEY));
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(ApiKey::from_file("m", &path).unwrap().expose(), KEY);
    }

    #[test]
    fn a_key_that_no_header_can_carry_is_refused_unseen() {
        for text in ["", "  \n", "two words", "é", "a\r\nX-Evil: 1", &"k".repeat(4097)] {
            let error = ApiKey::new("m", text).unwrap_err();
            assert!(matches!(error, ModelsError::KeyUnusable { .. }), "{error}");
            assert!(!error.to_string().contains("words"));
        }
    }
}
