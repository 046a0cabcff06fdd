//! Warnings about tools whose programs ran with less than the full sandbox: one for each tool and level in a run, even
//! when another process continues the run.

use longhaul_core::RunId;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::store::Store;
use longhaul_records::record::events_after;
use longhaul_toolbox::tool_set::ToolSet;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Events that one read returns.
const PAGE: usize = 1_000;

/// The warnings that this process has issued.
#[derive(Default)]
pub(super) struct ReportedLevels(Mutex<BTreeSet<String>>);

impl ReportedLevels {
    /// Warnings that the run has not issued yet, about the host's own tools and about servers.
    pub(super) fn untold(&self, tools: &ToolSet, store: &dyn Store, run: &RunId) -> Vec<Event> {
        let held = tools.own_tools().filter_map(|(tool, own)| Some(words(tool, &own.held_by()?)));
        // A run has thousands of events, so they are searched only once for each warning.
        let new = held.filter(|text| self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone()));
        new.filter(|text| !was_told(store, run, text)).map(|text| Event::Warning { text }).collect()
    }
}

fn words(tool: &str, level: &str) -> String {
    format!(
        "the tool `{tool}` ran programs in the sandbox level `{level}` and not in `full`, which longhaul.toml accepts"
    )
}

/// True when an earlier process issued this warning. When the store does not answer, it is issued again.
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
