//! Plugins that runs of any project find, installed and shipped, with the capabilities that they ask for.

use super::super::input::{PageParams, Query};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, Out, Page};
use super::super::state::SharedState;
use super::projects::PageQuery;
use axum::extract::State;
use longhaul_core::fault;
use longhaul_home::Home;
use longhaul_plugins::installed::{InstalledPlugins, PluginVersion};
use longhaul_plugins::{InspectedPlugin, components_of};
use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::SystemTime;
use utoipa::ToSchema;

/// One version that is installed.
#[derive(Clone, Serialize, ToSchema)]
pub struct InstalledVersion {
    /// As its manifest says.
    version: String,
    /// The digest of its bytes.
    digest: String,
    /// How many.
    bytes: u64,
}

/// A plugin.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = Plugin)]
pub struct PluginView {
    /// Its name.
    name: String,
    /// Where the component is that a run takes.
    path: String,
    /// What it is; null where it cannot be read.
    #[schema(required = true)]
    role: Option<String>,
    /// As its manifest says.
    version: String,
    /// In one line.
    description: String,
    /// The digest of its bytes; null where it cannot be read.
    #[schema(required = true)]
    digest: Option<String>,
    /// What it asks for, one line each.
    asks: Vec<String>,
    /// Why it cannot be read.
    #[schema(required = true)]
    error: Option<String>,
    /// The versions that are installed.
    installed: Vec<InstalledVersion>,
}

/// List the plugins that are installed or shipped
#[utoipa::path(get, path = "/api/v1/plugins", tag = "plugins", params(PageQuery), responses((status = 200, description = "A page of plugins", body = Page<PluginView>)))]
pub async fn list(State(state): State<SharedState>, Query(query): Query<PageQuery>) -> ApiResult<Page<PluginView>> {
    let window = PageParams::of(query.limit, query.offset)?;
    let home = state.home.clone();
    let found = tokio::task::spawn_blocking(move || all(&home)).await.map_err(|_| Problem::internal())??;
    Ok(Out(Page::of(found, window, |plugin| plugin)))
}

fn all(home: &Home) -> fault::Result<Vec<PluginView>> {
    let installed = InstalledPlugins::of(home);
    let mut found = components_of(home);
    for name in installed.names()? {
        if let Some(newest) = installed.versions(&name)?.last() {
            found.entry(name.clone()).or_insert_with(|| installed.component(&name, newest.digest));
        }
    }
    let version =
        |PluginVersion { version, digest, bytes, .. }| InstalledVersion { version, digest: digest.to_string(), bytes };
    let mut plugins = Vec::with_capacity(found.len());
    for (name, path) in found {
        let versions = installed.versions(&name)?.into_iter().map(version).collect();
        plugins.push(PluginView { installed: versions, ..known(name, &path) });
    }
    Ok(plugins)
}

/// Plugins by their files, as long as time and length of a file stay: reading a component takes long.
static KNOWN: LazyLock<Mutex<HashMap<PathBuf, Looked>>> = LazyLock::new(Mutex::default);

type Looked = (SystemTime, u64, PluginView);

fn known(name: String, path: &Path) -> PluginView {
    let stamp = path.metadata().ok().and_then(|found| Some((found.modified().ok()?, found.len())));
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let (Some(stamp), Some((at, bytes, plugin))) = (stamp, known.get(path))
        && stamp == (*at, *bytes)
    {
        return plugin.clone();
    }
    let plugin = look(name, path);
    if let Some((at, bytes)) = stamp {
        known.insert(path.to_owned(), (at, bytes, plugin.clone()));
    }
    plugin
}

fn look(name: String, path: &Path) -> PluginView {
    let (role, version, description, digest, asks, error) = match InspectedPlugin::read(path) {
        Ok(InspectedPlugin { inspection, manifest, .. }) => {
            let role = inspection.role.name().to_owned();
            let asks = manifest.asks.lines();
            (Some(role), manifest.version, manifest.description, Some(inspection.digest.to_string()), asks, None)
        }
        Err(error) => (None, String::new(), String::new(), None, Vec::new(), Some(format!("{error:#}"))),
    };
    let path = path.display().to_string();
    PluginView { name, path, role, version, description, digest, asks, error, installed: Vec::new() }
}
