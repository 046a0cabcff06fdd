//! `plugin.toml`, which a plugin brings: its identity and its requested grants.
//!
//! A component that was built here carries it. For one that does not, a `.toml` of the same name beside the file
//! counts. All of it is the plugin's own claim: [`longhaul_config`] decides about its grants.

pub mod settings;

use longhaul_build::toml_error;
use longhaul_config::asks::RequestedGrants;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::section::MANIFEST_BYTES_MAX;
use longhaul_engine::{LoadError, Sections};
use longhaul_home::text_file;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// `plugin.toml`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PluginManifest {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The world that it was built for.
    pub world: Option<String>,
    /// Its description, in one line.
    pub description: String,
    /// The grants that it requests.
    pub asks: RequestedGrants,
    /// The settings that it declares; none: it declares none, and gets the operator's settings unchecked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<settings::DeclaredSettings>,
}

/// The text of a manifest, and its place.
pub struct ManifestFile {
    /// The component that carries it, or the file that it is.
    pub place: PathBuf,
    /// The text.
    pub text: String,
}

impl ManifestFile {
    /// Parses the manifest; an error is one line with its place.
    pub fn read<T: DeserializeOwned>(&self) -> fault::Result<T> {
        Ok(toml::from_str(&self.text).map_err(|error| toml_error(&self.place, &self.text, &error))?)
    }
}

impl PluginManifest {
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
pub fn find(component: &Path, bytes: &[u8]) -> fault::Result<Option<ManifestFile>> {
    let name = component.file_stem().unwrap_or_default().to_string_lossy();
    match longhaul_engine::sections(&name, bytes) {
        Ok(Sections { manifest: Some(text), .. }) => {
            return Ok(Some(ManifestFile { place: component.to_owned(), text }));
        }
        Err(error @ LoadError::Manifest { .. }) => return Err(error.into()),
        // A file that is no component is refused where it is loaded, with a fuller error.
        Ok(_) | Err(_) => {}
    }
    let path = component.with_extension("toml");
    match text_file::read(&path, MANIFEST_BYTES_MAX as u64) {
        Ok(text) => Ok(Some(ManifestFile { place: path, text })),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).or_invalid(|| format!("cannot read `{}`", path.display())),
    }
}
