//! Secrets that tools authenticate with: the storage of their values, and the tools and hosts that they are bound to.
//!
//! Each value is a file, mode 0600, in a 0700 folder of the data directory, below the id of its project: a repository
//! chooses its project's name, so the name finds nothing. A value is bound to tools and hosts when it is set, so that a
//! later change of a file cannot send it elsewhere. It is not encrypted: a process that can read files of this user
//! could read the key as well. A tool gets a placeholder in its settings (`{ "secret": "NAME" }`), and
//! `longhaul_egress` puts the value in its place on the wire. Agents, journals and logs get neither.

mod known;

pub use known::KnownSecrets;

use longhaul_config::secrets::{SecretConfig, check_name, header, named};
use longhaul_core::fault::{self, Context, bail};
use longhaul_core::grant::HostPattern;
use longhaul_core::ids::is_drawn;
use longhaul_core::tool::{FunctionInfo, ToolError, ToolInfo, ToolOutput};
use longhaul_core::{Denial, Outage};
use longhaul_egress::{HeaderSecret, Secret, SecretPlaceholders, SecretRedactor};
use longhaul_home::Home;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Bytes that are read of a file or an input with a secret.
const READ_BYTES_MAX: u64 = 8_192;

/// The folder with one folder for each project; no secret can have that name.
const PROJECTS: &str = "projects.d";

/// The binding of a value: no other consumer gets it, whatever a file grants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretBinding {
    /// Tables of tools and servers, such as `tools.poster`; none: every table of the project.
    pub tables: Vec<String>,
    /// The hosts that it may be sent to. None: those in longhaul.toml, if no table is named either; otherwise none at
    /// all, since it is given to the program of a server.
    pub hosts: Vec<HostPattern>,
}

impl SecretBinding {
    /// True when it is bound to nothing.
    fn is_free(&self) -> bool {
        self.tables.is_empty() && self.hosts.is_empty()
    }
}

impl std::fmt::Display for SecretBinding {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let listed = |names: Vec<String>, all: &str| if names.is_empty() { all.to_owned() } else { names.join(", ") };
        let tables = listed(self.tables.iter().map(|table| format!("[{table}]")).collect(), "every tool");
        let nowhere = if self.is_free() { "every host that it is granted" } else { "its program, and to no host" };
        let hosts = listed(self.hosts.iter().map(HostPattern::origin).collect(), nowhere);
        write!(formatter, "{tables}, to {hosts}")
    }
}

/// The consumer of a value.
#[derive(Clone, Copy, Debug)]
pub struct SecretConsumer<'a> {
    /// The project's id.
    pub project: &'a str,
    /// The table of the tool or server.
    pub table: &'a str,
    /// The hosts that it would be sent to; none for a program that reaches no host.
    pub hosts: &'a [HostPattern],
}

/// A secret in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedSecret {
    /// Its name.
    pub name: String,
    /// True when every project may be granted it.
    pub any_project: bool,
    /// Its binding.
    pub bound: SecretBinding,
}

/// A stored value. Files of earlier versions hold the value alone.
#[derive(Serialize, Deserialize)]
struct StoredSecret {
    longhaul_secret: u32,
    value: String,
    #[serde(flatten)]
    bound: SecretBinding,
    /// True when every project may be granted it.
    #[serde(default)]
    any_project: bool,
}

/// The content of a secret's file.
enum SecretFile {
    /// A value with its binding.
    Bound(Box<StoredSecret>),
    /// A value from before secrets belonged to projects.
    Unbound(String),
}

/// The stored values.
pub struct SecretStore(PathBuf);

impl SecretStore {
    /// The secrets of a data directory.
    pub fn of(home: &Home) -> Self {
        Self(home.path().join("secrets"))
    }

    /// The directory of the values; it may not exist yet.
    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// Stores a value for the project with this id, or for every one, in place of an earlier one.
    pub fn set(&self, name: &str, secret: &Secret, project: Option<&str>, bound: SecretBinding) -> fault::Result<()> {
        let path = self.path(name, project)?;
        let folder = path.parent().unwrap_or(&self.0).to_owned();
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let value = secret.expose().to_owned();
        let kept = StoredSecret { longhaul_secret: 1, value, bound, any_project: project.is_none() };
        // Created in the common folder, whose modification time then shows the change.
        let mut file = tempfile::NamedTempFile::new_in(&self.0)?;
        file.write_all(&serde_json::to_vec(&kept)?)?;
        file.as_file().sync_all()?;
        file.persist(path).with_context(|| format!("cannot keep the secret `{name}`"))?;
        File::open(&folder)?.sync_all()?;
        Ok(())
    }

    /// The secrets that a project can be granted: its own, and those of every project.
    pub fn list(&self, project: Option<&str>) -> fault::Result<Vec<ListedSecret>> {
        let mut found = Vec::new();
        for folder in [project, None].into_iter().take(if project.is_some() { 2 } else { 1 }) {
            for name in names(&self.folder(folder)?)? {
                let listed = match self.read(&self.path(&name, folder)?, &name)? {
                    Some(SecretFile::Bound(kept)) => {
                        ListedSecret { name, any_project: kept.any_project, bound: kept.bound }
                    }
                    Some(SecretFile::Unbound(_)) => {
                        ListedSecret { name, any_project: false, bound: SecretBinding::default() }
                    }
                    None => continue,
                };
                found.push(listed);
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found.dedup_by(|later, earlier| later.name == earlier.name);
        Ok(found)
    }

    /// Deletes a value: the project's own, or else that of every project.
    pub fn remove(&self, name: &str, project: Option<&str>) -> fault::Result<()> {
        for folder in [project, None].into_iter().take(if project.is_some() { 2 } else { 1 }) {
            match std::fs::remove_file(self.path(name, folder)?) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                done => {
                    done?;
                    // Gives the common folder a new modification time, which shows the change.
                    drop(tempfile::NamedTempFile::new_in(&self.0)?);
                    return Ok(());
                }
            }
        }
        bail!("there is no secret `{name}`")
    }

    /// The value for this consumer, unless it is bound to another one.
    pub fn get(&self, name: &str, wanting: &SecretConsumer<'_>) -> fault::Result<Secret> {
        let own = self.read(&self.path(name, Some(wanting.project))?, name)?;
        let found = match own {
            Some(own) => Some(own),
            None => self.read(&self.path(name, None)?, name)?,
        };
        match found {
            None => bail!("there is no secret `{name}` for this project; set it with: longhaul secrets set {name}"),
            Some(SecretFile::Bound(kept)) => {
                refuse_others(name, &kept.bound, wanting)?;
                Ok(Secret::new(&kept.value)?)
            }
            // A project whose id is its name is as old as the secret, and had access to it.
            Some(SecretFile::Unbound(value)) if !is_drawn(wanting.project) => Ok(Secret::new(&value)?),
            Some(SecretFile::Unbound(_)) => bail!(
                "the secret `{name}` is of a time before secrets belonged to projects, and this project is younger; \
                 set it for this one with: longhaul secrets set {name}"
            ),
        }
    }

    /// A value that belongs to the data directory and no project, for programs that the operator starts.
    pub fn get_own(&self, name: &str) -> fault::Result<Secret> {
        match self.read(&self.path(name, None)?, name)? {
            Some(SecretFile::Bound(kept)) => Ok(Secret::new(&kept.value)?),
            Some(SecretFile::Unbound(value)) => Ok(Secret::new(&value)?),
            None => bail!("there is no secret `{name}`; set it with: longhaul secrets set {name} --any-project"),
        }
    }

    /// A value with the hosts that it may be sent to.
    pub fn key(&self, granted: &SecretConfig, project: &str, table: &str) -> fault::Result<HeaderSecret> {
        let secret = self.get(&granted.name, &SecretConsumer { project, table, hosts: &granted.hosts })?;
        Ok(HeaderSecret { name: granted.name.clone(), secret, hosts: granted.hosts.clone(), header: header(granted)? })
    }

    /// Every value of the data directory, for redaction. Unreadable ones are left out.
    pub fn all(&self) -> Vec<Secret> {
        let projects =
            std::fs::read_dir(self.0.join(PROJECTS)).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut found = Vec::new();
        for folder in projects.chain([self.0.clone()]) {
            for name in names(&folder).unwrap_or_default() {
                let value = match self.read(&folder.join(&name), &name) {
                    Ok(Some(SecretFile::Bound(kept))) => kept.value,
                    Ok(Some(SecretFile::Unbound(value))) => value,
                    Ok(None) | Err(_) => continue,
                };
                found.extend(Secret::new(&value));
            }
        }
        found
    }

    fn folder(&self, project: Option<&str>) -> fault::Result<PathBuf> {
        let Some(project) = project else { return Ok(self.0.clone()) };
        check_name(project).context("the id of the project")?;
        // A folder of its own, so that the name of a secret never equals that of a project.
        Ok(self.0.join(PROJECTS).join(project))
    }

    fn path(&self, name: &str, project: Option<&str>) -> fault::Result<PathBuf> {
        check_name(name)?;
        Ok(self.folder(project)?.join(name))
    }

    fn read(&self, path: &Path, name: &str) -> fault::Result<Option<SecretFile>> {
        // A link could lead to a file that others write.
        let opened =
            OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()).open(path);
        let file = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.with_context(|| format!("cannot read the secret `{name}`"))?,
        };
        if file.metadata()?.mode() & 0o077 != 0 {
            bail!("others can read the secret `{name}`; run: chmod 600 {}", path.display());
        }
        let mut text = String::new();
        file.take(READ_BYTES_MAX).read_to_string(&mut text).with_context(|| format!("the secret `{name}`"))?;
        Ok(Some(match serde_json::from_str::<StoredSecret>(&text) {
            Ok(kept) => SecretFile::Bound(Box::new(kept)),
            Err(_) => SecretFile::Unbound(text),
        }))
    }
}

fn names(folder: &Path) -> fault::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let names = names.collect::<std::io::Result<Vec<String>>>()?;
    // A name with a dot is the folder of projects, or a file that a kill left behind.
    Ok(names.into_iter().filter(|name| check_name(name).is_ok()).collect())
}

/// Refuses to give a value to another tool, or to send it to another host, than it was bound to.
fn refuse_others(name: &str, bound: &SecretBinding, wanting: &SecretConsumer<'_>) -> fault::Result<()> {
    let table = wanting.table;
    if !bound.tables.is_empty() && !bound.tables.iter().any(|known| known == table) {
        bail!(
            "the secret `{name}` is bound to {bound}, and [{table}] wants it; if it may have it, run: \
             longhaul secrets set {name} --tool {}",
            table.split_once('.').map_or(table, |(_, tool)| tool)
        );
    }
    let covers = |host: &HostPattern| bound.is_free() || bound.hosts.iter().any(|known| covers(known, host));
    if let Some(host) = wanting.hosts.iter().find(|host| !covers(host)) {
        bail!(
            "the secret `{name}` is bound to {bound}, and [{table}] would send it to {0}; if it may go there, run: \
             longhaul secrets set {name} --host {0}",
            host.origin()
        );
    }
    Ok(())
}

/// True when a known pattern covers everything that a granted pattern matches.
fn covers(known: &HostPattern, granted: &HostPattern) -> bool {
    let origin = granted.origin();
    let is_covered =
        || origin.split_once("://").is_some_and(|(scheme, rest)| !rest.contains('*') && known.covers(scheme, rest));
    known.origin() == origin || is_covered()
}

/// Settings with placeholders in place of secrets' names. A name that was not granted stays unchanged.
pub fn settled(settings: &Value, placeholders: &SecretPlaceholders) -> Value {
    in_place(settings, &|name| placeholders.placeholder(name))
}

/// Settings with empty texts where they name a secret, for a question that needs none. A name that was not granted
/// stays as it is written.
pub fn concealed(settings: &Value, granted: &[SecretConfig]) -> Value {
    in_place(settings, &|name| granted.iter().any(|secret| secret.name == name).then_some(""))
}

/// Settings in which `text` stands in the place of a secret, by its name.
fn in_place<'a>(settings: &Value, text: &dyn Fn(&str) -> Option<&'a str>) -> Value {
    match settings {
        Value::Object(fields) => {
            if let Some(text) = named(fields).and_then(text) {
                return text.into();
            }
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), in_place(value, text))).collect())
        }
        Value::Array(values) => values.iter().map(|value| in_place(value, text)).collect(),
        other => other.clone(),
    }
}

/// A tool's answer, without the values.
pub fn scrubbed(answer: Result<ToolOutput, ToolError>, redactor: &SecretRedactor) -> Result<ToolOutput, ToolError> {
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

/// A tool's description, without the values.
pub fn scrubbed_info(info: ToolInfo, redactor: &SecretRedactor) -> ToolInfo {
    let functions = info.functions.into_iter();
    let functions = functions.map(|one| FunctionInfo { description: redactor.scrub(&one.description), ..one });
    ToolInfo { description: redactor.scrub(&info.description), functions: functions.collect(), ..info }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn secret_store() -> (tempfile::TempDir, SecretStore) {
        let directory = tempfile::tempdir().unwrap();
        let secret_store = SecretStore(directory.path().join("secrets"));
        (directory, secret_store)
    }

    fn wanting<'a>(project: &'a str, table: &'a str, hosts: &'a [HostPattern]) -> SecretConsumer<'a> {
        SecretConsumer { project, table, hosts }
    }

    fn hosts(texts: &[&str]) -> Vec<HostPattern> {
        texts.iter().map(|text| HostPattern::try_from((*text).to_owned()).unwrap()).collect()
    }

    const ONE: &str = "p-00000000000000000001";
    const OTHER: &str = "p-00000000000000000002";

    #[test]
    fn a_secret_is_kept_for_its_owner_alone() {
        let (_directory, secret_store) = secret_store();
        assert!(secret_store.list(None).unwrap().is_empty());
        let set = |value: &str| {
            secret_store.set("github", &Secret::new(value).unwrap(), Some(ONE), SecretBinding::default()).unwrap()
        };
        set("first-value");
        set("second-value");
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        let path = secret_store.path("github", Some(ONE)).unwrap();
        assert_eq!((mode(&secret_store.0), mode(&path)), (0o700, 0o600));
        let get = |project: &str| secret_store.get("github", &wanting(project, "tools.x", &[]));
        assert_eq!(get(ONE).unwrap().expose(), "second-value");
        assert_eq!(secret_store.list(Some(ONE)).unwrap()[0].name, "github");
        // Another project gets nothing of it, whatever its name.
        assert!(get(OTHER).is_err() && secret_store.list(Some(OTHER)).unwrap().is_empty());
        assert!(secret_store.get_own("github").is_err());
        secret_store.remove("github", Some(ONE)).unwrap();
        let error = get(ONE).unwrap_err().to_string();
        assert!(error.contains("longhaul secrets set github"), "{error}");
    }

    #[test]
    fn a_secret_goes_to_the_tools_and_hosts_that_it_was_bound_to() {
        let (_directory, secret_store) = secret_store();
        let bound = SecretBinding {
            tables: vec!["tools.gh".into()],
            hosts: hosts(&["https://*.github.com", "https://a.example"]),
        };
        secret_store.set("github", &Secret::new("some-value").unwrap(), Some(ONE), bound).unwrap();
        let said = |table: &str, to: &[&str]| {
            secret_store.get("github", &wanting(ONE, table, &hosts(to))).err().map(|error| error.to_string())
        };
        assert_eq!(said("tools.gh", &["https://api.github.com", "GET https://a.example"]), None);
        assert_eq!(said("tools.gh", &["https://*.github.com"]), None);
        assert_eq!(said("tools.gh", &[]), None);
        assert!(said("tools.other", &["https://a.example"]).unwrap().contains("--tool other"));
        for elsewhere in ["https://evil.example", "http://a.example", "https://a.example:8443", "https://*.example"] {
            assert!(
                said("tools.gh", &["https://a.example", elsewhere]).unwrap().contains("--host http"),
                "{elsewhere}"
            );
        }
    }

    /// The value was given to a server that is started, and the table became a server that requests are sent to.
    #[test]
    fn a_secret_of_a_program_is_sent_to_no_host() {
        let (_directory, secret_store) = secret_store();
        let bound = SecretBinding { tables: vec!["mcp.m".into()], hosts: Vec::new() };
        assert_eq!(bound.to_string(), "[mcp.m], to its program, and to no host");
        secret_store.set("key", &Secret::new("some-value").unwrap(), Some(ONE), bound).unwrap();
        assert!(secret_store.get("key", &wanting(ONE, "mcp.m", &[])).is_ok());
        let elsewhere = hosts(&["https://evil.example"]);
        let refused = secret_store.get("key", &wanting(ONE, "mcp.m", &elsewhere)).unwrap_err().to_string();
        assert!(refused.contains("would send it to https://evil.example") && refused.contains("--host"), "{refused}");
    }

    #[test]
    fn a_value_of_before_is_for_the_projects_of_before() {
        let (_directory, secret_store) = secret_store();
        secret_store.set("x", &Secret::new("other-value").unwrap(), None, SecretBinding::default()).unwrap();
        std::fs::write(secret_store.0.join("github"), "raw-value").unwrap();
        std::fs::set_permissions(secret_store.0.join("github"), std::fs::Permissions::from_mode(0o600)).unwrap();
        let get = |project: &str| secret_store.get("github", &wanting(project, "tools.x", &[]));
        assert_eq!(get("kept").unwrap().expose(), "raw-value");
        assert!(get(ONE).unwrap_err().to_string().contains("this project is younger"));
        assert_eq!(secret_store.get("x", &wanting(ONE, "tools.x", &[])).unwrap().expose(), "other-value");
    }

    #[test]
    fn a_file_that_others_can_read_or_that_leads_elsewhere_is_refused() {
        let (directory, secret_store) = secret_store();
        secret_store.set("a", &Secret::new("some-value").unwrap(), None, SecretBinding::default()).unwrap();
        std::fs::set_permissions(secret_store.0.join("a"), std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(secret_store.get_own("a").unwrap_err().to_string().contains("chmod 600"));
        std::fs::write(directory.path().join("other"), "other-value").unwrap();
        symlink(directory.path().join("other"), secret_store.0.join("link")).unwrap();
        assert!(secret_store.get_own("link").is_err());
        for name in ["../other", "", "a/b", ".", ".."] {
            assert!(secret_store.get_own(name).unwrap_err().to_string().contains("1 to 64 letters"), "{name}");
            assert!(secret_store.get("a", &wanting(name, "tools.x", &[])).is_err(), "{name}");
        }
    }

    #[test]
    fn settings_name_a_secret_and_get_a_placeholder() {
        let key = HeaderSecret {
            name: "g".into(),
            secret: Secret::new("the-value").unwrap(),
            hosts: Vec::new(),
            header: HeaderName::from_static("authorization"),
        };
        let placeholders = SecretPlaceholders::new("tools.x", vec![key], || [7; 32]);
        let settings =
            serde_json::json!({ "a": [{ "secret": "g" }], "b": { "secret": "other" }, "c": { "secret": "g", "d": 1 } });
        let settled = settled(&settings, &placeholders);
        assert_eq!(settled["a"][0].as_str(), placeholders.placeholder("g"));
        assert_eq!((&settled["b"], &settled["c"]), (&settings["b"], &settings["c"]));
        assert!(!settled.to_string().contains("the-value"));

        let granted = SecretConfig { name: "g".into(), hosts: Vec::new(), header: "authorization".into() };
        let expected = serde_json::json!({ "a": [""], "b": { "secret": "other" }, "c": { "secret": "g", "d": 1 } });
        assert_eq!(concealed(&settings, &[granted]), expected);
    }
}
