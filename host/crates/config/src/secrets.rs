//! Secrets in the tables of tools: name, header, and hosts.
//!
//! Refuses to know a value: the table names the secret, and the store of secrets has its value.

use http::HeaderName;
use longhaul_core::fault::{self, Context, bail};
use longhaul_core::grant::HostPattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A secret that a tool may send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretConfig {
    /// The name that it was set under.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_-]+$"))]
    pub name: String,
    /// The hosts that it may be sent to.
    pub hosts: Vec<HostPattern>,
    /// The header that may carry it. Default `authorization`.
    #[serde(default = "default_header")]
    pub header: String,
}

fn default_header() -> String {
    "authorization".into()
}

/// Refuses secrets that could not be sent, or would cross the network in plain text.
pub fn check(table: &str, secrets: &[SecretConfig]) -> fault::Result<()> {
    if !secrets.is_empty() && !table.starts_with("tools.") {
        bail!("[{table}] has secrets; only tools reach hosts, so write them under [tools.NAME]");
    }
    for secret in secrets {
        let name = &secret.name;
        check_name(name).with_context(|| format!("[{table}] secrets"))?;
        header(secret).with_context(|| format!("[{table}] secrets"))?;
        if secret.hosts.is_empty() {
            bail!(
                "[{table}] secrets: `{name}` has no host that it may go to; add: hosts = [\"https://api.example.com\"]"
            );
        }
        let readable = secret.hosts.iter().find(|host| !host.is_secure() && !host.is_this_machine());
        if let Some(host) = readable {
            bail!("[{table}] secrets: `{name}` would cross the network readable to `{}`; use https", host.origin());
        }
    }
    Ok(())
}

/// The name of the header that carries a secret.
pub fn header(secret: &SecretConfig) -> fault::Result<HeaderName> {
    let header = &secret.header;
    header.to_ascii_lowercase().parse().or_invalid(|| format!("`{header}` is no name of a header"))
}

/// Refuses a name that could lead elsewhere.
pub fn check_name(name: &str) -> fault::Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        bail!("a secret's name is 1 to 64 letters, digits, `-` and `_`");
    }
    Ok(())
}

/// The secret that `{ "secret": "NAME" }` names.
pub fn named(fields: &serde_json::Map<String, Value>) -> Option<&str> {
    fields.get("secret").filter(|_| fields.len() == 1)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_granted_to_a_tool_and_not_in_the_clear() {
        let read = |text: &str| toml::from_str::<SecretConfig>(text).unwrap();
        let said = |table: &str, text: &str| check(table, &[read(text)]).err().map(|error| format!("{error:#}"));
        let fine = "name = \"g\"\nhosts = [\"https://a.com\", \"http://127.0.0.1:80\"]";
        assert_eq!(said("tools.x", fine), None);
        assert!(said("agents.x", fine).unwrap().contains("only tools reach hosts"));
        assert!(said("tools.x", "name = \"g\"\nhosts = [\"http://a.com\"]").unwrap().contains("readable"));
        assert!(said("tools.x", "name = \"g\"\nhosts = []").unwrap().contains("has no host"));
        assert!(said("tools.x", "name = \"../g\"\nhosts = [\"https://a.com\"]").unwrap().contains("1 to 64"));
        assert!(
            said("tools.x", "name = \"g\"\nhosts = [\"https://a.com\"]\nheader = \"a b\"").unwrap().contains("no name")
        );
    }
}
