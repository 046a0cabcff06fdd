//! What a plugin asks for in its `plugin.toml`. All of it is the plugin's own claim; what it may do is
//! [`crate::grants`].

use longhaul_core::grant::Access;
use longhaul_core::text::printable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest name of a directory or a host that is shown, in bytes.
const LINE_BYTES_MAX: usize = 200;

/// `[asks]`: what a plugin asks for. Without a manifest it asks for nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Asks")]
pub struct RequestedGrants {
    /// Whether it talks with models.
    pub models: bool,
    /// Whether it calls tools.
    pub tools: bool,
    /// Whether it delegates.
    pub agents: bool,
    /// Directories, as the guest names them.
    pub directories: Vec<RequestedDirectory>,
    /// Hosts, as patterns; `"*"` asks for whichever the operator gives.
    pub hosts: Vec<String>,
}

/// A directory that a plugin asks for.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AskedDirectory")]
pub struct RequestedDirectory {
    /// Where it wants to see it.
    pub guest: String,
    /// How it would use it.
    pub access: Access,
}

impl RequestedGrants {
    /// One line for each thing that is asked for, fit to be shown; none when it asks for nothing.
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
