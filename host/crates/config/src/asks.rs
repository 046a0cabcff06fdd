//! The grants that a plugin requests in its `plugin.toml`. All of them are the plugin's own claim; [`crate::grants`]
//! decides.

use longhaul_core::grant::Access;
use longhaul_core::text::printable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest name of a directory or a host in a line, in bytes.
const LINE_BYTES_MAX: usize = 200;

/// `[asks]`: the grants that a plugin requests. Without a manifest it requests nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Asks")]
pub struct RequestedGrants {
    /// True when it calls models.
    pub models: bool,
    /// True when it calls tools.
    pub tools: bool,
    /// True when it delegates to agents.
    pub agents: bool,
    /// Directories, as the guest names them.
    pub directories: Vec<RequestedDirectory>,
    /// Hosts, as patterns; `"*"` requests any hosts that the operator grants.
    pub hosts: Vec<String>,
}

/// A directory that a plugin requests.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AskedDirectory")]
pub struct RequestedDirectory {
    /// The path in the guest.
    pub guest: String,
    /// The requested access.
    pub access: Access,
}

impl RequestedGrants {
    /// One printable line for each request; empty when it requests nothing.
    pub fn lines(&self) -> Vec<String> {
        let worlds = [
            (self.models, "to ask the models that you name"),
            (self.tools, "to call the tools that you name"),
            (self.agents, "to hand work to the agents that you name"),
        ];
        let mut lines: Vec<String> =
            worlds.into_iter().filter(|(asked, _)| *asked).map(|(_, line)| line.to_owned()).collect();
        lines.extend(self.directories.iter().map(|asked| {
            let how = if asked.access == Access::Write { "read and change" } else { "read" };
            format!("to {how} a directory that it sees as {}", printable(&asked.guest, LINE_BYTES_MAX))
        }));
        lines.extend(self.hosts.iter().map(|host| match host.as_str() {
            "*" => "to reach the hosts that you name".to_owned(),
            host => format!("to reach {}", printable(host, LINE_BYTES_MAX)),
        }));
        lines
    }
}
