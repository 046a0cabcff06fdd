//! Warnings about tools whose programs less than the full sandbox held: one for each tool and level in a run, also where
//! another process goes on with the run.

use longhaul_core::RunId;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::store::Store;
use longhaul_records::record::events_after;
use longhaul_toolbox::plugin_set::PluginSet;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Events that are read at once.
const PAGE: usize = 1_000;

/// What this process has told.
#[derive(Default)]
pub(super) struct ReportedLevels(Mutex<BTreeSet<String>>);

impl ReportedLevels {
    /// Warnings that the run has not told yet, of the host's own tools and of servers.
    pub(super) fn untold(&self, plugin_set: &PluginSet, store: &dyn Store, run: &RunId) -> Vec<Event> {
        let held = plugin_set.own_tools().filter_map(|(tool, own)| Some(words(tool, &own.held_by()?)));
        // A run has thousands of events, so they are looked through once for each warning.
        let new = held.filter(|text| self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone()));
        new.filter(|text| !was_told(store, run, text)).map(|text| Event::Warning { text }).collect()
    }
}

fn words(tool: &str, level: &str) -> String {
    format!(
        "the tool `{tool}` ran programs in the sandbox level `{level}` and not in `full`, which longhaul.toml accepts"
    )
}

/// Whether an earlier process did. Where the store does not answer it is told again.
fn was_told(store: &dyn Store, run: &RunId, text: &str) -> bool {
    let tells = |event: &RunEvent| matches!(&event.event, Event::Warning { text: told } if told == text);
    let mut after = 0;
    while let Ok(page) = events_after(store, run, after, PAGE)
        && let Some(last) = page.last()
    {
        if page.iter().any(tells) {
            return true;
        }
        after = last.number;
    }
    false
}
