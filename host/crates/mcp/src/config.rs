//! `[mcp.NAME]` of `longhaul.toml`.

use crate::error::McpError;
use longhaul_approval::ApprovalPolicy;
use longhaul_core::Digest;
use longhaul_core::grant::HostPattern;
use longhaul_core::journal::EffectClass;
use longhaul_sandbox::Level;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The maximum of `output_bytes_max`: 1 GiB. An answer is held in memory.
const OUTPUT_BYTES_MAX: u64 = 1 << 30;

/// The word for the tree of a run, in place of a directory.
const TREE: &str = "tree";

/// Bytes that a message may have beyond its answer.
const ENVELOPE_BYTES: u64 = 256 << 10;

/// One server. It has a `command` or a `url`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpConfig {
    /// The program and its arguments; no shell reads them.
    pub command: Vec<String>,
    /// The working directory of the command: `tree`, for the tree of the run, or a path, relative to the project.
    /// Default `tree`, so that it does not change the user's checkout; parallel features each have a tree and a server
    /// of their own. Only for a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// The environment variables of the command, besides `PATH`.
    pub env: BTreeMap<String, Value>,
    /// Files and directories that the command can read at their own paths; relative to the project. Its tool chain, its
    /// tree or directory, and the absolute paths in `command` with the files beside them are readable anyway. A path in
    /// the project that a link leads out of there is refused, as in `write` and `directory`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
    /// Directories that the command can change, at their own paths; relative to the project.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
    /// Hosts that the command can reach, through a proxy of the host that `HTTP_PROXY` names. Default none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostPattern>,
    /// The lowest sandbox level of the command. Default `[run] sandbox_min`. With `none` it runs without a sandbox,
    /// with all your rights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Level>,
    /// The address of a server that speaks streamable HTTP.
    pub url: Option<String>,
    /// The name of a secret that is sent to `url` as `authorization: Bearer ...`.
    pub bearer: Option<String>,
    /// The digest of the tools that it may list, as `longhaul mcp accept` shows it. Default: the digest that a person
    /// accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<String>,
    /// Functions that the operator declares to have no effect. All others count as `acts`.
    pub read_only: Vec<String>,
    /// True when its resources can be listed and read, with `list_resources` and `read_resource`. Default false.
    pub resources: bool,
    /// True when its prompts can be listed and read, with `list_prompts` and `get_prompt`. Default false.
    pub prompts: bool,
    /// Calls that need a person's approval. Default: calls within the agents' grants need none.
    pub approval: ApprovalPolicy,
    /// Time for the server's initialization, in milliseconds. Default 30 000.
    pub connect_ms_max: Option<u64>,
    /// Time for one call, in milliseconds. Default 60 000. The outcome of a call after that is unknown.
    pub call_ms_max: Option<u64>,
    /// Bytes of one answer. Default 1 MiB, at most 1 GiB. A longer one is an error with this name.
    #[schemars(range(max = OUTPUT_BYTES_MAX))]
    pub output_bytes_max: Option<u64>,
    /// Bytes that the disk may lose while the command runs in the sandbox, to any process. Default 10 GiB. Checked each
    /// half second. At this limit the server is ended and not started again for this run, and its calls are an error
    /// with this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes_max: Option<u64>,
}

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "McpVariable")]
pub enum Value {
    /// A literal value.
    Plain(String),
    /// The value of a secret, which the server needs itself.
    Secret {
        /// Its name.
        secret: String,
    },
    /// The value of a variable of Longhaul's environment.
    From {
        /// The variable.
        from: String,
    },
}

impl McpConfig {
    /// Refuses an invalid table.
    ///
    /// # Errors
    /// The fault, with its remedy.
    pub fn check(&self, name: &str) -> Result<(), McpError> {
        let wrong = |what: &str| Err(McpError::Config { server: name.to_owned(), what: what.to_owned() });
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || name.len() > 32 || !name.chars().all(plain) {
            return wrong("a name is 1 to 32 letters, digits and `-`");
        }
        if let Err(error) = self.approval.check(false) {
            return wrong(&format!("approval: {error}"));
        }
        if self.tools.as_ref().is_some_and(|tools| tools.parse::<Digest>().is_err()) {
            return wrong("tools is no digest; take the one that `longhaul mcp accept` shows");
        }
        if self.output_bytes() > OUTPUT_BYTES_MAX {
            return wrong(&format!("output_bytes_max is at most {OUTPUT_BYTES_MAX}, 1 GiB; lower it"));
        }
        match (self.command.is_empty(), &self.url) {
            (true, None) => return wrong("add command = [\"PROGRAM\"] or url = \"https://...\""),
            (false, Some(_)) => return wrong("it has a command and a url; remove one"),
            (true, Some(_)) if !self.env.is_empty() => return wrong("env is for a command; use bearer for a url"),
            (true, Some(_)) if self.directory.is_some() => return wrong("directory is for a command; remove the line"),
            (true, Some(_)) if self.has_grants() || self.disk_bytes_max.is_some() || self.sandbox.is_some() => {
                return wrong("read, write, hosts, disk_bytes_max and sandbox are for a command; remove the lines");
            }
            (false, None) if self.is_bare() && (self.has_grants() || self.disk_bytes_max.is_some()) => {
                return wrong(
                    "read, write, hosts and disk_bytes_max hold a command in the sandbox alone; remove them, or \
                     sandbox = \"none\"",
                );
            }
            (true, Some(url)) => {
                let origin = self.origin(name)?;
                if url.contains('@') || url.contains('#') {
                    return wrong("a url has no user and no `#`; use bearer");
                }
                if self.bearer.is_some() && !origin.is_secure() && !origin.is_this_machine() {
                    return wrong("the bearer would cross the network readable; use https");
                }
            }
            (false, None) if self.bearer.is_some() => return wrong("bearer is for a url; use env for a command"),
            (false, None) => {}
        }
        Ok(())
    }

    /// The working directory of the command, given the tree of a run and the project's directory.
    #[must_use]
    pub fn directory_in(&self, tree: &Path, base: &Path) -> PathBuf {
        self.elsewhere().map_or_else(|| tree.to_owned(), |named| base.join(named))
    }

    /// The working directory as named, if it is not the tree.
    pub(crate) fn elsewhere(&self) -> Option<&Path> {
        self.directory.as_deref().filter(|named| *named != Path::new(TREE))
    }

    /// True when its command runs outside of the sandbox.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.sandbox == Some(Level::None)
    }

    fn has_grants(&self) -> bool {
        !(self.read.is_empty() && self.write.is_empty() && self.hosts.is_empty())
    }

    /// The effect class of one of its tools, by the operator's settings: the server's own claims do not count.
    pub(crate) fn effect_of(&self, function: &str) -> EffectClass {
        let is_read_only = self.read_only.iter().any(|name| name == function);
        if is_read_only { EffectClass::ReadOnly } else { EffectClass::Acts }
    }

    /// The host of the address, and nothing else.
    pub(crate) fn origin(&self, name: &str) -> Result<HostPattern, McpError> {
        let url = self.url.as_deref().unwrap_or_default();
        let after = url.find("://").map_or(0, |at| at + 3);
        let end = url[after..].find(['/', '?']).map_or(url.len(), |at| after + at);
        HostPattern::try_from(url[..end].to_owned())
            .map_err(|error| McpError::Config { server: name.to_owned(), what: error.to_string() })
    }

    /// Secrets that it needs, by name.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let in_env = self.env.values().filter_map(|value| match value {
            Value::Secret { secret } => Some(secret.as_str()),
            Value::Plain(_) | Value::From { .. } => None,
        });
        in_env.chain(self.bearer.as_deref())
    }

    pub(crate) fn connect_ms(&self) -> u64 {
        self.connect_ms_max.unwrap_or(30_000)
    }

    pub(crate) fn call_ms(&self) -> u64 {
        self.call_ms_max.unwrap_or(60_000)
    }

    pub(crate) fn output_bytes(&self) -> u64 {
        self.output_bytes_max.unwrap_or(1 << 20)
    }

    pub(crate) fn disk_bytes(&self) -> u64 {
        self.disk_bytes_max.unwrap_or(10 << 30)
    }

    /// Bytes of one message of the server.
    pub(crate) fn message_bytes(&self) -> u64 {
        self.output_bytes().saturating_add(ENVELOPE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, expected: &str) {
        let config: McpConfig = toml::from_str(text).unwrap();
        let said = config.check(name).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{text}: {said}");
    }

    #[test]
    fn a_bound_of_a_message_is_a_number_also_where_nothing_was_checked() {
        let config = McpConfig { output_bytes_max: Some(u64::MAX), ..McpConfig::default() };
        assert_eq!(config.message_bytes(), u64::MAX);
    }

    #[test]
    fn a_command_runs_in_the_tree_of_its_run_unless_its_table_says_where() {
        for (text, expected) in [
            ("", "/tree"),
            ("directory = \"tree\"", "/tree"),
            ("directory = \".\"", "/project/."),
            ("directory = \"tools/server\"", "/project/tools/server"),
            ("directory = \"/srv\"", "/srv"),
        ] {
            let config: McpConfig = toml::from_str(text).unwrap();
            let found = config.directory_in(Path::new("/tree"), Path::new("/project"));
            assert_eq!(found, Path::new(expected), "{text}");
        }
    }

    #[test]
    fn a_server_is_a_command_or_an_address() {
        check(
            "time",
            "command = [\"mcp-server-time\"]\nenv = { A = \"b\", C = { secret = \"c\" }, D = { from = \"D\" } }",
            "",
        );
        check("web", "url = \"https://a.com/mcp\"\nbearer = \"t\"", "");
        check("web", "url = \"http://127.0.0.1:80/mcp\"\nbearer = \"t\"", "");
        check("web", "url = \"http://a.com/mcp\"\nbearer = \"t\"", "readable");
        check("web", "url = \"https://me:x@a.com/mcp\"", "host pattern");
        check("web", "url = \"ftp://a.com\"", "host pattern");
        check("web", "", "add command");
        check("web", "command = [\"a\"]\nurl = \"https://a.com\"", "remove one");
        check("web", "url = \"https://a.com\"\ndirectory = \"tree\"", "directory is for a command");
        check("web", "command = [\"a\"]\noutput_bytes_max = 1_073_741_824", "");
        check("web", "command = [\"a\"]\noutput_bytes_max = 1_073_741_825", "output_bytes_max is at most");
        check("web", "command = [\"a\"]\ndisk_bytes_max = 1", "");
        check("web", "url = \"https://a.com\"\ndisk_bytes_max = 1", "disk_bytes_max and sandbox are for a command");
        check(
            "web",
            "command = [\"a\"]\nsandbox = \"none\"\ndisk_bytes_max = 1",
            "hold a command in the sandbox alone",
        );
        check("a.b", "command = [\"a\"]", "1 to 32 letters");
    }
}
