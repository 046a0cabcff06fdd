//! Secrets that tools authenticate with: where their values are kept, and who may send them where.
//!
//! Each value is a file, mode 0600, in a 0700 folder of the data directory. It is not encrypted: whoever can read files
//! of this user could read the key as well. A tool gets a placeholder in its settings (`{ "secret": "NAME" }`), and
//! `longhaul_egress` puts the value in its place on the wire. Agents, journals and logs get neither.

pub mod known;

use crate::home::Home;
use anyhow::{Context, bail};
use http::HeaderName;
use longhaul_core::grant::HostPattern;
use longhaul_core::tool::{FunctionInfo, ToolError, ToolInfo, ToolOutput};
use longhaul_core::{Denial, Outage};
use longhaul_egress::{Key, Keyring, Redactor, Secret};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Bytes that are read of a file or an input that should hold a secret.
const READ_BYTES_MAX: u64 = 8_192;

/// A secret that a tool may send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretConfig {
    /// The name that it was set under.
    pub name: String,
    /// Where it may go.
    pub hosts: Vec<HostPattern>,
    /// The header that may carry it. Default `authorization`.
    #[serde(default = "default_header")]
    pub header: String,
}

fn default_header() -> String {
    "authorization".into()
}

/// Refuses what could not be sent, or would cross the network readable.
pub fn check(table: &str, secrets: &[SecretConfig]) -> anyhow::Result<()> {
    if !secrets.is_empty() && !table.starts_with("tools.") {
        bail!("[{table}] has secrets; only tools reach hosts, so write them under [tools.NAME]");
    }
    for secret in secrets {
        let name = &secret.name;
        check_name(name).with_context(|| format!("[{table}] secrets"))?;
        header(secret).with_context(|| format!("[{table}] secrets"))?;
        if secret.hosts.is_empty() {
            bail!("[{table}] secrets: `{name}` may go nowhere; add: hosts = [\"https://api.example.com\"]");
        }
        let readable = secret.hosts.iter().find(|host| !host.is_secure() && !host.is_this_machine());
        if let Some(host) = readable {
            bail!("[{table}] secrets: `{name}` would cross the network readable to `{}`; use https", host.origin());
        }
    }
    Ok(())
}

fn header(secret: &SecretConfig) -> anyhow::Result<HeaderName> {
    let header = &secret.header;
    header.to_ascii_lowercase().parse().with_context(|| format!("`{header}` is no name of a header"))
}

/// Refuses a name that could lead elsewhere.
pub fn check_name(name: &str) -> anyhow::Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        bail!("a secret's name is 1 to 64 letters, digits, `-` and `_`");
    }
    Ok(())
}

/// The values.
pub struct Vault(PathBuf);

impl Vault {
    /// Those of a data directory.
    pub fn of(home: &Home) -> Self {
        Self(home.path().join("secrets"))
    }

    /// Where the values lie, of which there may be none yet.
    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// Keeps a value, in place of an earlier one.
    pub fn set(&self, name: &str, secret: &Secret) -> anyhow::Result<()> {
        check_name(name)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.0)?;
        file.write_all(secret.expose().as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(self.0.join(name)).with_context(|| format!("cannot keep the secret `{name}`"))?;
        File::open(&self.0)?.sync_all()?;
        Ok(())
    }

    /// The names.
    pub fn list(&self) -> anyhow::Result<Vec<String>> {
        let entries = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let names = names.collect::<std::io::Result<Vec<String>>>()?;
        // A name with a dot is a file that a kill left behind.
        let mut names: Vec<String> = names.into_iter().filter(|name| check_name(name).is_ok()).collect();
        names.sort();
        Ok(names)
    }

    /// Forgets a value.
    pub fn remove(&self, name: &str) -> anyhow::Result<()> {
        check_name(name)?;
        match std::fs::remove_file(self.0.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => bail!("there is no secret `{name}`"),
            done => Ok(done?),
        }
    }

    /// A value.
    pub fn get(&self, name: &str) -> anyhow::Result<Secret> {
        check_name(name)?;
        let path = self.0.join(name);
        // A link could lead to a file that others write.
        let opened =
            OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()).open(&path);
        let file = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                bail!("there is no secret `{name}`; set it with: longhaul secrets set {name}")
            }
            opened => opened.with_context(|| format!("cannot read the secret `{name}`"))?,
        };
        if file.metadata()?.mode() & 0o077 != 0 {
            bail!("others can read the secret `{name}`; run: chmod 600 {}", path.display());
        }
        let mut text = String::new();
        file.take(READ_BYTES_MAX).read_to_string(&mut text).with_context(|| format!("the secret `{name}`"))?;
        Ok(Secret::new(&text)?)
    }

    /// A value with where it may go.
    pub fn key(&self, granted: &SecretConfig) -> anyhow::Result<Key> {
        let secret = self.get(&granted.name)?;
        Ok(Key { name: granted.name.clone(), secret, hosts: granted.hosts.clone(), header: header(granted)? })
    }
}

/// Settings with placeholders where they name a secret. A name that was not granted stays as it is written.
pub fn settled(settings: &Value, keyring: &Keyring) -> Value {
    match settings {
        Value::Object(fields) => {
            if let Some(placeholder) = named(fields).and_then(|name| keyring.placeholder(name)) {
                return placeholder.into();
            }
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), settled(value, keyring))).collect())
        }
        Value::Array(values) => values.iter().map(|value| settled(value, keyring)).collect(),
        other => other.clone(),
    }
}

/// The secret that `{ "secret": "NAME" }` names.
pub fn named(fields: &serde_json::Map<String, Value>) -> Option<&str> {
    fields.get("secret").filter(|_| fields.len() == 1)?.as_str()
}

/// What a tool answered, without the values.
pub fn scrubbed(answer: Result<ToolOutput, ToolError>, redactor: &Redactor) -> Result<ToolOutput, ToolError> {
    let clean = |text: String| redactor.scrub(&text);
    match answer {
        Ok(output) => Ok(ToolOutput { output: clean(output.output), ..output }),
        Err(error) => Err(match error {
            ToolError::UnknownFunction(text) => ToolError::UnknownFunction(clean(text)),
            ToolError::InvalidArguments(text) => ToolError::InvalidArguments(clean(text)),
            ToolError::Failed(text) => ToolError::Failed(clean(text)),
            ToolError::OutcomeUnknown(text) => ToolError::OutcomeUnknown(clean(text)),
            ToolError::Denied(denial) => {
                ToolError::Denied(Denial { reason: clean(denial.reason), fix: clean(denial.fix) })
            }
            ToolError::Unavailable(outage) => ToolError::Unavailable(Outage { reason: clean(outage.reason), ..outage }),
            other @ (ToolError::Limit(_) | ToolError::TimedOut(_)) => other,
        }),
    }
}

/// What a tool says of itself, without the values.
pub fn scrubbed_info(info: ToolInfo, redactor: &Redactor) -> ToolInfo {
    let functions = info.functions.into_iter();
    let functions = functions.map(|one| FunctionInfo { description: redactor.scrub(&one.description), ..one });
    ToolInfo { description: redactor.scrub(&info.description), functions: functions.collect(), ..info }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn vault() -> (tempfile::TempDir, Vault) {
        let directory = tempfile::tempdir().unwrap();
        let vault = Vault(directory.path().join("secrets"));
        (directory, vault)
    }

    #[test]
    fn a_secret_is_kept_for_its_owner_alone() {
        let (_directory, vault) = vault();
        assert!(vault.list().unwrap().is_empty());
        vault.set("github", &Secret::new("first-value").unwrap()).unwrap();
        vault.set("github", &Secret::new("second-value").unwrap()).unwrap();
        let mode = |path: &std::path::Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!((mode(&vault.0), mode(&vault.0.join("github"))), (0o700, 0o600));
        assert_eq!(
            (vault.list().unwrap(), vault.get("github").unwrap().expose()),
            (vec!["github".to_owned()], "second-value")
        );
        vault.remove("github").unwrap();
        let error = vault.get("github").unwrap_err().to_string();
        assert!(error.contains("longhaul secrets set github"), "{error}");
    }

    #[test]
    fn a_file_that_others_can_read_or_that_leads_elsewhere_is_refused() {
        let (directory, vault) = vault();
        vault.set("a", &Secret::new("some-value").unwrap()).unwrap();
        std::fs::set_permissions(vault.0.join("a"), std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(vault.get("a").unwrap_err().to_string().contains("chmod 600"));
        std::fs::write(directory.path().join("other"), "other-value").unwrap();
        symlink(directory.path().join("other"), vault.0.join("link")).unwrap();
        assert!(vault.get("link").is_err());
        for name in ["../other", "", "a/b", ".", ".."] {
            assert!(vault.get(name).unwrap_err().to_string().contains("1 to 64 letters"), "{name}");
        }
    }

    #[test]
    fn a_secret_is_granted_to_a_tool_and_not_in_the_clear() {
        let read = |text: &str| toml::from_str::<SecretConfig>(text).unwrap();
        let said = |table: &str, text: &str| check(table, &[read(text)]).err().map(|error| format!("{error:#}"));
        let fine = "name = \"g\"\nhosts = [\"https://a.com\", \"http://127.0.0.1:80\"]";
        assert_eq!(said("tools.x", fine), None);
        assert!(said("agents.x", fine).unwrap().contains("only tools reach hosts"));
        assert!(said("tools.x", "name = \"g\"\nhosts = [\"http://a.com\"]").unwrap().contains("readable"));
        assert!(said("tools.x", "name = \"g\"\nhosts = []").unwrap().contains("may go nowhere"));
        assert!(said("tools.x", "name = \"../g\"\nhosts = [\"https://a.com\"]").unwrap().contains("1 to 64"));
        assert!(
            said("tools.x", "name = \"g\"\nhosts = [\"https://a.com\"]\nheader = \"a b\"").unwrap().contains("no name")
        );
    }

    #[test]
    fn settings_name_a_secret_and_get_a_placeholder() {
        let key = Key {
            name: "g".into(),
            secret: Secret::new("the-value").unwrap(),
            hosts: Vec::new(),
            header: HeaderName::from_static("authorization"),
        };
        let keyring = Keyring::new("tools.x", vec![key], || [7; 32]);
        let settings =
            serde_json::json!({ "a": [{ "secret": "g" }], "b": { "secret": "other" }, "c": { "secret": "g", "d": 1 } });
        let settled = settled(&settings, &keyring);
        assert_eq!(settled["a"][0].as_str(), keyring.placeholder("g"));
        assert_eq!((&settled["b"], &settled["c"]), (&settings["b"], &settings["c"]));
        assert!(!settled.to_string().contains("the-value"));
    }
}
