//! Plugins that runs of any project find, installed and shipped, with the capabilities that they ask for.

use super::super::input::{PageParams, Query};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, Out, Page};
use super::super::state::SharedState;
use super::projects::PageQuery;
use axum::extract::State;
use longhaul_api::wire::plugins::PluginView;
use longhaul_plugins::listing::{inspect, listed};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::SystemTime;

/// List the plugins that are installed or shipped
#[utoipa::path(get, path = "/api/v1/plugins", tag = "plugins", params(PageQuery), responses((status = 200, description = "A page of plugins", body = Page<PluginView>)))]
pub async fn list(State(state): State<SharedState>, Query(query): Query<PageQuery>) -> ApiResult<Page<PluginView>> {
    let window = PageParams::of(query.limit, query.offset)?;
    let home = state.home.clone();
    let found = tokio::task::spawn_blocking(move || listed(&home, known)).await.map_err(|_| Problem::internal())??;
    Ok(Out(Page::of(found, window, |plugin| plugin)))
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
    let plugin = inspect(name, path);
    if let Some((at, bytes)) = stamp {
        known.insert(path.to_owned(), (at, bytes, plugin.clone()));
    }
    plugin
}
