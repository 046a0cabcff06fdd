//! `plugin.toml`, which a plugin brings: who it is, and what it asks for.
//!
//! A component that was built here carries it. For one that does not, a `.toml` of the same name beside the file
//! counts. All of it is the plugin's own claim: what it may do is decided in [`crate::config`].

pub mod settings;

use crate::text_file;
use longhaul_build::toml_error;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::grant::Access;
use longhaul_core::section::MANIFEST_BYTES_MAX;
use longhaul_core::text::printable;
use longhaul_engine::{LoadError, Sections};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Longest name of a directory or a host that is shown, in bytes.
const LINE_BYTES_MAX: usize = 200;

/// `plugin.toml`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The world that it was built for.
    pub world: Option<String>,
    /// In one line.
    pub description: String,
    /// What it asks for.
    pub asks: Asks,
    /// What may be set for it; none: it does not say, and is handed what is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<settings::Declared>,
}

/// `[asks]`: what a plugin asks for. Without a manifest it asks for nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Asks {
    /// Whether it talks with models.
    pub models: bool,
    /// Whether it calls tools.
    pub tools: bool,
    /// Whether it delegates.
    pub agents: bool,
    /// Directories, as the guest names them.
    pub directories: Vec<AskedDirectory>,
    /// Hosts, as patterns; `"*"` asks for whichever the operator gives.
    pub hosts: Vec<String>,
}

/// A directory that a plugin asks for.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskedDirectory {
    /// Where it wants to see it.
    pub guest: String,
    /// How it would use it.
    pub access: Access,
}

/// The text of a manifest, and where it stands.
pub struct Found {
    /// The component that carries it, or the file that it is.
    pub place: PathBuf,
    /// The text.
    pub text: String,
}

impl Found {
    /// Reads what it says; an error is one line with its place.
    pub fn read<T: DeserializeOwned>(&self) -> fault::Result<T> {
        Ok(toml::from_str(&self.text).map_err(|error| toml_error(&self.place, &self.text, &error))?)
    }
}

impl Manifest {
    /// Reads the manifest of a component, if it has one.
    pub fn of(component: &Path, bytes: &[u8]) -> fault::Result<Option<Self>> {
        find(component, bytes)?.map(|found| found.read()).transpose()
    }

    /// Reads the text of a manifest.
    pub fn parse(text: &str) -> fault::Result<Self> {
        Ok(toml::from_str(text)?)
    }
}

/// The manifest that a component carries, else the one beside it, if there is one.
pub fn find(component: &Path, bytes: &[u8]) -> fault::Result<Option<Found>> {
    let name = component.file_stem().unwrap_or_default().to_string_lossy();
    match longhaul_engine::sections(&name, bytes) {
        Ok(Sections { manifest: Some(text), .. }) => {
            return Ok(Some(Found { place: component.to_owned(), text }));
        }
        Err(error @ LoadError::Manifest { .. }) => return Err(error.into()),
        // What is no component is refused where it is loaded, with more to say.
        Ok(_) | Err(_) => {}
    }
    let path = component.with_extension("toml");
    match text_file::read(&path, MANIFEST_BYTES_MAX as u64) {
        Ok(text) => Ok(Some(Found { place: path, text })),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", path.display())),
    }
}

impl Asks {
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
