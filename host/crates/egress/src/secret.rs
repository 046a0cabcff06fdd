//! Secrets in requests: a caller holds a placeholder, and the value replaces it behind the gates.
//!
//! A placeholder is random for each invocation and worthless elsewhere. It becomes the value in one header, in requests
//! to one of its granted hosts; anywhere else the request is refused. Responses are searched for the value, literally
//! and in the forms that servers commonly return ([`crate::StreamRedactor`]). A server that got a secret and returns it
//! in a cipher of its own cannot be caught.

use crate::error::EgressError;
use crate::secret_value::{SHOWN, Secret};
use crate::stream_redactor::{Patterns, StreamRedactor};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use longhaul_core::Denial;
use longhaul_core::grant::HostPattern;
use longhaul_core::redact::{Redact, RedactStream};
use reqwest::Url;
use std::fmt;
use std::sync::Arc;

/// The prefix of a placeholder.
const PREFIX: &str = "longhaul-secret-";

/// A secret that one caller may send: its hosts, and its header.
#[derive(Clone, Debug)]
pub struct HeaderSecret {
    /// Its name.
    pub name: String,
    /// Its value.
    pub secret: Secret,
    /// The hosts that it may be sent to.
    pub hosts: Vec<HostPattern>,
    /// The header that may carry it.
    pub header: HeaderName,
}

/// Redacts values in texts and streams, in every form of [`StreamRedactor`].
#[derive(Clone, Default)]
pub struct SecretRedactor {
    patterns: Option<Arc<Patterns>>,
}

impl SecretRedactor {
    /// The redactor for these values.
    #[must_use]
    pub fn of(secrets: &[Secret]) -> Self {
        Self { patterns: Patterns::of(secrets.iter()).map(Arc::new) }
    }

    /// A text without any of the values.
    #[must_use]
    pub fn scrub(&self, text: &str) -> String {
        let Some(mut stream_redactor) = self.stream_redactor() else { return text.to_owned() };
        let mut clean = stream_redactor.push(text.as_bytes());
        clean.extend(stream_redactor.finish());
        // A form of a value is ASCII, so a cut begins and ends between characters.
        String::from_utf8_lossy(&clean).into_owned()
    }

    /// The redactor of a stream; none when there is nothing to redact.
    #[must_use]
    pub fn stream_redactor(&self) -> Option<StreamRedactor> {
        self.patterns.as_ref().map(|patterns| StreamRedactor::new(Arc::clone(patterns)))
    }
}

impl fmt::Debug for SecretRedactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redact for SecretRedactor {
    fn stream(&self) -> Option<Box<dyn RedactStream>> {
        Some(Box::new(self.stream_redactor()?))
    }
}

/// The secrets of one invocation, with their placeholders.
#[derive(Default)]
pub struct SecretPlaceholders {
    table: String,
    keys: Vec<(String, HeaderSecret)>,
    redactor: SecretRedactor,
}

impl SecretPlaceholders {
    /// Makes placeholders for `keys`. `random` returns unguessable bytes; `table` is for refusals.
    pub fn new(table: &str, keys: Vec<HeaderSecret>, mut random: impl FnMut() -> [u8; 32]) -> Self {
        let patterns = Patterns::of(keys.iter().map(|key| &key.secret)).map(Arc::new);
        let keys = keys.into_iter().map(|key| (placeholder(random()), key)).collect();
        Self { table: table.to_owned(), keys, redactor: SecretRedactor { patterns } }
    }

    /// The placeholder of a secret in this invocation.
    #[must_use]
    pub fn placeholder(&self, name: &str) -> Option<&str> {
        self.keys.iter().find(|(_, key)| key.name == name).map(|(placeholder, _)| placeholder.as_str())
    }

    /// The redactor of the values.
    #[must_use]
    pub fn redactor(&self) -> &SecretRedactor {
        &self.redactor
    }

    /// A text without any of the values.
    #[must_use]
    pub fn scrub(&self, text: &str) -> String {
        self.redactor.scrub(text)
    }

    /// The redactor of a request's responses; none when there is nothing to redact.
    #[must_use]
    pub fn stream_redactor(&self) -> Option<StreamRedactor> {
        self.redactor.stream_redactor()
    }

    /// Puts the values into a request that has passed its gates.
    pub(crate) fn fill(&self, url: &Url, headers: &mut HeaderMap) -> Result<(), EgressError> {
        if url.as_str().contains(PREFIX) {
            let text = "a secret does not belong into an address, where it is logged; send it in its header";
            return Err(EgressError::refused(text));
        }
        for (name, value) in headers.iter_mut() {
            if is_held(value) {
                *value = self.filled(url, name, value)?;
            }
        }
        Ok(())
    }

    fn filled(&self, url: &Url, name: &HeaderName, value: &HeaderValue) -> Result<HeaderValue, EgressError> {
        let mut text = String::from_utf8_lossy(value.as_bytes()).into_owned();
        for (placeholder, key) in self.keys.iter().filter(|(placeholder, _)| contains(value, placeholder)) {
            self.check(key, url, name)?;
            text = text.replace(placeholder, key.secret.expose());
        }
        if text.contains(PREFIX) {
            let text = "this placeholder is of another invocation; take the one from the settings of this call";
            return Err(EgressError::refused(text));
        }
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| EgressError::refused("a header with a secret and what no header can carry"))?;
        value.set_sensitive(true);
        Ok(value)
    }

    fn check(&self, key: &HeaderSecret, url: &Url, name: &HeaderName) -> Result<(), EgressError> {
        let (secret, table) = (&key.name, &self.table);
        let said = |reason: String, fix: String| Err(EgressError::Denied(Denial { reason, fix }));
        if *name != key.header {
            let reason = format!("the secret `{secret}` may not go into the header `{name}`");
            let fix =
                format!("write in longhaul.toml: [{table}] secrets = [{{ name = \"{secret}\", header = \"{name}\" }}]");
            return said(reason, fix);
        }
        let origin = url.origin().ascii_serialization();
        let authority = origin.split_once("://").map(|(_, authority)| authority).unwrap_or_default();
        if !key.hosts.iter().any(|host| host.covers(url.scheme(), authority)) {
            let reason = format!("the secret `{secret}` may not go to `{origin}`");
            let fix = format!(
                "write in longhaul.toml: [{table}] secrets = [{{ name = \"{secret}\", hosts = [\"{origin}\"] }}]"
            );
            return said(reason, fix);
        }
        Ok(())
    }

    /// Redacts the values in the head of a response.
    pub fn clean_head(&self, headers: &mut HeaderMap) {
        let Some(patterns) = &self.redactor.patterns else { return };
        let named: Vec<HeaderName> =
            headers.keys().filter(|name| patterns.is_in_name(name.as_str())).cloned().collect();
        for name in named {
            headers.remove(name);
        }
        for value in headers.values_mut() {
            let mut stream_redactor = StreamRedactor::new(Arc::clone(patterns));
            let mut clean = stream_redactor.push(value.as_bytes());
            clean.extend(stream_redactor.finish());
            if clean != value.as_bytes() {
                *value = HeaderValue::from_bytes(&clean).unwrap_or(HeaderValue::from_static(SHOWN));
            }
        }
    }
}

/// True when a header contains a placeholder, and so may not go to another host.
pub(crate) fn is_held(value: &HeaderValue) -> bool {
    contains(value, PREFIX)
}

fn contains(value: &HeaderValue, text: &str) -> bool {
    value.as_bytes().windows(text.len()).any(|window| window == text.as_bytes())
}

fn placeholder(random: [u8; 32]) -> String {
    let mut text = PREFIX.to_owned();
    for byte in random {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
