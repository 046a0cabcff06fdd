//! Rehearsals: what runs have done so far is replayed on other bytes of a plugin, on other settings or on this version
//! of the program, and compared.
//!
//! Nothing is executed and nothing is written, so a run may be at work meanwhile. A verdict says no more than what the
//! journals hold: a part without a journal of its own, such as a tool, cannot be told.

use super::replay::{self, ReplayBasis, ReplayDifference, Replayed};
use super::requests::{self, RequestRecorder};
use super::{RunRef, Service};
use longhaul_api::rehearsals::{
    RehearsalReport, RehearsalVerdict, RehearseRuns, RehearsedPlugin, RequestDifference, RunRehearsal,
};
use longhaul_capabilities::Watch;
use longhaul_config::Config;
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::journal::{Began, JournalError};
use longhaul_core::text::printable;
use longhaul_core::{Digest, InvocationId};
use longhaul_engine::{Engine, Role};
use longhaul_harness::RunStatus;
use longhaul_plugins::installed::{PluginRef, base_name};
use longhaul_plugins::manifest::PluginManifest;
use longhaul_plugins::{FoundPlugin, plugin_set};
use longhaul_records::invocation::JournaledResult;
use longhaul_records::pins::PinnedPlugin;
use longhaul_records::record::{RunRecord, StoredRun};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Live runs that one request rehearses, the newest of them.
const LIVE_RUNS_MAX: usize = 100;

/// Bytes of a request in one line.
const REQUEST_BYTES_MAX: usize = 400;

/// Stands for the request of a component that has returned.
const ENDS: &str = "(it ends here)";

/// Bytes that take the place of those that runs pinned.
pub(super) struct ReplacementPlugin {
    /// The name of the plugin in the runs.
    pub(super) name: String,
    pub(super) digest: Digest,
    pub(super) role: Role,
    pub(super) found: FoundPlugin,
}

impl ReplacementPlugin {
    /// The tables of a run whose plugin it is, with their pins.
    pub(super) fn pins<'a>(&self, record: &'a RunRecord) -> Vec<(&'a String, &'a PinnedPlugin)> {
        record.pins.iter().filter(|(_, pin)| base_name(&pin.plugin) == self.name).collect()
    }

    /// Refuses a run that has no such plugin, or has it in another role.
    pub(super) fn expect_of(&self, record: &RunRecord) -> fault::Result<()> {
        let (run, name, pins) = (&record.run, &self.name, self.pins(record));
        if pins.is_empty() {
            let mut used: Vec<&str> = record.pins.values().map(|pin| base_name(&pin.plugin)).collect();
            used.sort_unstable();
            used.dedup();
            bail!(Fault::invalid(format!("run {run} has no plugin `{name}`; it has {}", used.join(", "))));
        }
        match pins.into_iter().find(|(table, _)| plugin_set::role_of(table) != self.role) {
            None => Ok(()),
            Some((table, _)) => bail!(Fault::invalid(format!(
                "`{name}` is a component of the role {}, and run {run} has it as its {} in [{table}]; name one of that \
                 role",
                self.role.name(),
                plugin_set::role_of(table).name()
            ))),
        }
    }

    /// The published form.
    pub(super) fn view(&self) -> RehearsedPlugin {
        let version = self.found.manifest.as_ref().map(|manifest| manifest.version.clone()).unwrap_or_default();
        RehearsedPlugin { name: self.name.clone(), version, digest: self.digest }
    }
}

/// The conditions of a rehearsal.
pub(super) struct RehearsalTerms<'a> {
    pub(super) replacement: Option<&'a ReplacementPlugin>,
    /// True for the settings of plugins that `longhaul.toml` has now.
    pub(super) settings: bool,
    /// The moment after which no further invocation is replayed.
    pub(super) until: Option<Instant>,
}

/// The rehearsal of one run.
#[derive(Default)]
pub(super) struct RehearsedRun {
    invocations: u32,
    pub(super) entries: u64,
    /// The invocations that have not ended and whose pasts are alike.
    pub(super) unfinished: Vec<UnfinishedPast>,
    difference: Option<RequestDifference>,
    /// The first reason why something cannot be told.
    unknown: Option<String>,
}

/// The past of an invocation that has not ended.
pub(super) struct UnfinishedPast {
    pub(super) invocation: InvocationId,
    pub(super) table: String,
    /// The digest of the bytes that it began with.
    pub(super) began: Digest,
    pub(super) entries: u32,
}

/// The outcome of one invocation in a rehearsal.
enum Past {
    /// It asked what its journal holds. True: it has not ended.
    Same {
        entries: u32,
        goes_on: bool,
    },
    Differs {
        entries: u32,
        difference: Box<RequestDifference>,
    },
    Unknown(String),
}

impl RehearsedRun {
    /// The verdict.
    pub(super) fn verdict(&self) -> RehearsalVerdict {
        match (&self.difference, &self.unknown) {
            (Some(_), _) => RehearsalVerdict::Differs,
            (None, Some(_)) => RehearsalVerdict::CannotTell,
            (None, None) => RehearsalVerdict::ReachesEnd,
        }
    }

    /// The published form.
    pub(super) fn view(self, record: &RunRecord) -> RunRehearsal {
        let verdict = self.verdict();
        let Self { invocations, entries, difference, unknown, .. } = self;
        RunRehearsal { run: record.run.clone(), verdict, invocations, entries, difference, reason: unknown }
    }

    fn cannot_tell(&mut self, why: String) {
        self.unknown.get_or_insert(why);
    }

    /// Takes the outcome of one invocation; false when nothing after it can be compared.
    fn take(&mut self, invocation: InvocationId, began: &Began, past: Past) -> bool {
        match past {
            Past::Same { entries, goes_on } => {
                self.invocations += 1;
                self.entries += u64::from(entries);
                if goes_on {
                    let (table, began) = (began.table.clone(), began.component);
                    self.unfinished.push(UnfinishedPast { invocation, table, began, entries });
                }
                true
            }
            Past::Differs { entries, difference } => {
                self.entries += u64::from(entries);
                self.difference = Some(*difference);
                false
            }
            Past::Unknown(why) => {
                self.cannot_tell(format!("`{invocation}`: {why}"));
                true
            }
        }
    }
}

impl Service {
    /// Rehearses runs.
    pub(super) async fn rehearse_runs(&self, request: &RehearseRuns) -> fault::Result<RehearsalReport> {
        let started = Instant::now();
        let replacement = self.replacement(request.plugin.as_deref(), request.with.as_deref()).await?;
        let (runs, runs_left_out) = self.runs_to_rehearse(request, replacement.as_ref()).await?;
        // The caller chose the time: one that no clock reaches is none.
        let until = request.time_ms_max.and_then(|ms| started.checked_add(Duration::from_millis(ms)));
        let terms = RehearsalTerms { replacement: replacement.as_ref(), settings: request.settings, until };
        let mut rehearsed = Vec::with_capacity(runs.len());
        for stored in &runs {
            rehearsed.push(self.rehearse(stored, &terms).await.view(&stored.record));
        }
        Ok(RehearsalReport {
            plugin: replacement.as_ref().map(ReplacementPlugin::view),
            entries: rehearsed.iter().map(|run| run.entries).sum(),
            runs: rehearsed,
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            runs_left_out,
        })
    }

    /// Finds and compiles the bytes that take the place of pinned ones; none where none are named.
    async fn replacement(&self, plugin: Option<&str>, with: Option<&Path>) -> fault::Result<Option<ReplacementPlugin>> {
        match (plugin, with) {
            (None, None) => Ok(None),
            (Some(plugin), None) => self.installed_replacement(plugin).await.map(Some),
            (name, Some(path)) => {
                let (name, found) = of_file(&self.host.engine, name, path)?;
                self.compiled(name, found).await.map(Some)
            }
        }
    }

    /// The replacement by an installed plugin, `NAME`, `NAME@VERSION` or `NAME@sha256:DIGITS`.
    pub(super) async fn installed_replacement(&self, plugin: &str) -> fault::Result<ReplacementPlugin> {
        let wanted: PluginRef = plugin.parse()?;
        let found = longhaul_plugins::read(plugin, None, &self.host.home, &self.host.engine)?;
        self.compiled(wanted.name, found).await
    }

    async fn compiled(&self, name: String, found: FoundPlugin) -> fault::Result<ReplacementPlugin> {
        let role = self.host.loaded.get(&self.host.engine, &name, &found.bytes).await?.role();
        Ok(ReplacementPlugin { name, digest: Digest::of(&found.bytes), role, found })
    }

    /// The runs of a request, and the number of live ones beyond the most that are rehearsed at once.
    async fn runs_to_rehearse(
        &self,
        request: &RehearseRuns,
        replacement: Option<&ReplacementPlugin>,
    ) -> fault::Result<(Vec<StoredRun>, usize)> {
        let RehearseRuns { runs, directory, live, .. } = request;
        if *live {
            if !runs.is_empty() {
                bail!(Fault::invalid("name runs to rehearse, or all live ones, and not both"));
            }
            return self.live_runs(replacement).await;
        }
        let mut named: Vec<RunRef> = runs.iter().cloned().map(RunRef::Named).collect();
        if named.is_empty() {
            let none = || Fault::invalid("name the runs to rehearse, or ask for all live ones");
            named.push(RunRef::NewestIn(directory.clone().ok_or_else(none)?));
        }
        let found: Vec<StoredRun> = named.iter().map(|run| self.find(run)).collect::<fault::Result<_>>()?;
        if let Some(replacement) = replacement {
            found.iter().try_for_each(|stored| replacement.expect_of(&stored.record))?;
        }
        Ok((found, 0))
    }

    async fn live_runs(&self, replacement: Option<&ReplacementPlugin>) -> fault::Result<(Vec<StoredRun>, usize)> {
        let all = self.all_runs()?;
        self.keep_repaired_sums().await;
        let (mut live, mut left_out) = (Vec::new(), 0);
        for summary in all.into_iter().rev().filter(|run| is_live(run.status)) {
            if live.len() >= LIVE_RUNS_MAX {
                left_out += 1;
                continue;
            }
            let stored = self.find(&RunRef::Named(summary.run.to_string()))?;
            if replacement.is_none_or(|replacement| !replacement.pins(&stored.record).is_empty()) {
                live.push(stored);
            }
        }
        Ok((live, left_out))
    }

    /// Rehearses one run. What cannot be replayed cannot be told.
    pub(super) async fn rehearse(&self, stored: &StoredRun, terms: &RehearsalTerms<'_>) -> RehearsedRun {
        let mut rehearsed = RehearsedRun::default();
        if let Err(error) = self.rehearse_into(&mut rehearsed, stored, terms).await {
            rehearsed.cannot_tell(format!("{error:#}"));
        }
        rehearsed
    }

    async fn rehearse_into(
        &self,
        rehearsed: &mut RehearsedRun,
        stored: &StoredRun,
        terms: &RehearsalTerms<'_>,
    ) -> fault::Result<()> {
        let StoredRun { record, state } = stored;
        if let Some(replacement) = terms.replacement {
            replacement.expect_of(record)?;
            if !replacement.role.is_pure() {
                rehearsed.cannot_tell(no_journal(replacement));
                return Ok(());
            }
        }
        let config = Arc::new(match (terms.settings, is_live(state.status())) {
            (true, _) => Config::read(&record.directory)?,
            (false, true) => record.config_now()?,
            (false, false) => record.config()?,
        });
        for invocation in self.invocations(&record.run, None)? {
            let Some(began) = longhaul_journal::began(&*self.host.store, &invocation)? else { continue };
            let is_meant = terms.replacement.is_none_or(|replacement| base_name(&began.plugin) == replacement.name);
            if !is_meant || !replay::is_of_a_plugin(&began.export) {
                continue;
            }
            if terms.until.is_some_and(|until| Instant::now() >= until) {
                rehearsed.cannot_tell("the time for the rehearsal was used up before all of it was replayed".into());
                return Ok(());
            }
            let past = self.past(record, &config, &invocation, &began, terms).await;
            let past = past.unwrap_or_else(|error| Past::Unknown(format!("{error:#}")));
            if !rehearsed.take(invocation, &began, past) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Replays one invocation, up to its end or that of its journal.
    async fn past(
        &self,
        record: &RunRecord,
        config: &Arc<Config>,
        invocation: &InvocationId,
        began: &Began,
        terms: &RehearsalTerms<'_>,
    ) -> fault::Result<Past> {
        let host = &self.host;
        let plugin = match terms.replacement {
            // Under the name that the run has for it, which stands in the texts of results.
            Some(ReplacementPlugin { digest, found, .. }) => {
                let bytes = || Ok(found.bytes.clone());
                Some(host.loaded.get_pinned(&host.engine, &began.plugin, *digest, bytes).await?)
            }
            None => None,
        };
        let finished = longhaul_journal::finished(&*host.store, invocation)?;
        let goes_on = finished.is_none();
        let finished = finished.unwrap_or_else(replay::no_end);
        let basis = ReplayBasis { plugin, config: Some(Arc::clone(config)), settings: terms.settings };
        let heard = Arc::new(RequestRecorder::of_last());
        let watch = Arc::clone(&heard) as Arc<dyn Watch>;
        let Replayed { calls: entries, difference, .. } =
            replay::over_journal(host, record, invocation, began, &finished, &basis, watch).await?;
        let may_go_on = goes_on || finished.interrupted;
        Ok(match difference {
            None | Some(ReplayDifference::Journal(JournalError::Unanswered { .. })) => Past::Same { entries, goes_on },
            Some(ReplayDifference::Result(result)) if goes_on && !breaks(&result) => Past::Same { entries, goes_on },
            Some(ReplayDifference::Result(_)) if finished.interrupted => Past::Same { entries, goes_on },
            Some(ReplayDifference::Result(result)) => {
                let difference = Box::new(other_result(invocation, entries, &finished.result, &result));
                Past::Differs { entries, difference }
            }
            Some(ReplayDifference::Journal(JournalError::Diverged { entry, recorded, asked })) => {
                let known = self.arguments_of(invocation, entry)?;
                if known.is_none() && may_go_on {
                    // It came further than the journal.
                    return Ok(Past::Same { entries, goes_on });
                }
                let old = self.recorded_lines(record, invocation, began, entry, known).await;
                let new = if heard.asked() >= entry { heard.lines() } else { vec![ENDS.to_owned()] };
                let difference = RequestDifference {
                    invocation: invocation.to_string(),
                    entry,
                    lines: compared(old.as_deref(), &new, &recorded),
                    recorded: printable(&recorded, REQUEST_BYTES_MAX),
                    asked: printable(&asked, REQUEST_BYTES_MAX),
                };
                Past::Differs { entries, difference: Box::new(difference) }
            }
            Some(ReplayDifference::Journal(error)) => Past::Unknown(error.to_string()),
            Some(ReplayDifference::BrokenOff(why)) => Past::Unknown(why),
        })
    }

    /// The digest of the arguments of a recorded request; none: the journal has no such entry.
    fn arguments_of(&self, invocation: &InvocationId, entry: u32) -> fault::Result<Option<Digest>> {
        let found = longhaul_journal::entries(&*self.host.store, invocation, entry.saturating_sub(1), 1)?;
        Ok(found.into_iter().find(|(number, _)| *number == entry).map(|(_, entry)| entry.asked.arguments))
    }

    /// The recorded request as the bytes that made it make it again; none where they cannot, or make another one.
    async fn recorded_lines(
        &self,
        record: &RunRecord,
        invocation: &InvocationId,
        began: &Began,
        entry: u32,
        known: Option<Digest>,
    ) -> Option<Vec<String>> {
        let Some(known) = known else { return Some(vec![ENDS.to_owned()]) };
        let heard = Arc::new(RequestRecorder::of_entry(entry));
        let watch = Arc::clone(&heard) as Arc<dyn Watch>;
        let (end, basis) = (replay::no_end(), ReplayBasis::default());
        let replayed = replay::over_journal(&self.host, record, invocation, began, &end, &basis, watch).await;
        if let Err(error) = replayed {
            tracing::debug!(%invocation, "the recorded request is not made again: {error:#}");
        }
        (heard.digest() == Some(known)).then(|| heard.lines())
    }
}

/// Reads a component from a file. Without a name it has the one in its manifest, or of the file.
fn of_file(engine: &Engine, name: Option<&str>, path: &Path) -> fault::Result<(String, FoundPlugin)> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let bytes = engine.read(&stem, path)?;
    let manifest = PluginManifest::of(path, &bytes)?;
    let own = manifest.as_ref().map(|manifest| manifest.name.as_str()).filter(|own| !own.is_empty());
    let name = name.or(own).unwrap_or(&stem).to_owned();
    Ok((name, FoundPlugin { bytes, manifest }))
}

/// True for a run that has not ended.
pub(super) fn is_live(status: RunStatus) -> bool {
    use RunStatus::{Abandoned, Completed, Failed, Incomplete, New, Parked, Paused, Planning, Working};
    match status {
        New | Planning | Working | Parked | Paused => true,
        Completed | Incomplete | Failed | Abandoned => false,
    }
}

fn no_journal(replacement: &ReplacementPlugin) -> String {
    format!(
        "`{}` has the role {}, whose calls are entries in the journals of others: their answers are kept, and of their \
         arguments the digest alone, so none can be made again; the past of the run does not depend on it",
        replacement.name,
        replacement.role.name()
    )
}

/// True for a result, as JSON, by which a component broke right after its past.
fn breaks(result: &str) -> bool {
    let result = serde_json::from_str::<JournaledResult<Value>>(result);
    matches!(result, Ok(JournaledResult::Limited(_) | JournaledResult::Trapped(_)))
}

fn other_result(invocation: &InvocationId, entries: u32, recorded: &str, result: &str) -> RequestDifference {
    let (recorded_as, old) = match recorded {
        "" => ("no end yet", Vec::new()),
        _ => ("its result", requests::lines_of(recorded)),
    };
    RequestDifference {
        invocation: invocation.to_string(),
        entry: entries.saturating_add(1),
        recorded: recorded_as.to_owned(),
        asked: "to end with another result".to_owned(),
        lines: requests::difference(&old, &requests::lines_of(result)),
    }
}

/// Both requests as a diff; `recorded` is the line that is known of the old one in any case.
fn compared(old: Option<&[String]>, new: &[String], recorded: &str) -> Vec<String> {
    let Some(old) = old else {
        let known = printable(recorded, REQUEST_BYTES_MAX);
        let mut lines = requests::difference(&[known], new);
        lines.push("  (of the recorded request only this line and its digest are kept)".to_owned());
        return lines;
    };
    let lines = requests::difference(old, new);
    if lines.is_empty() {
        return vec!["  (both texts are the same; the model, its options or the tools that are offered differ)".into()];
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::RunId;

    fn began() -> Began {
        Began {
            plugin: "coder".into(),
            table: "agents.code".into(),
            component: Digest::of(b"a"),
            export: "agent.run".into(),
            input: Digest::of(b"{}"),
            seed: [0; 32],
            fingerprint: String::new(),
            context: None,
            told: None,
            at_ms: 0,
        }
    }

    fn id(text: &str) -> InvocationId {
        InvocationId::from_text(text)
    }

    fn difference() -> RequestDifference {
        other_result(&id("r-1/f-b/1/generate"), 4, "{\"returned\":1}", "{\"returned\":2}")
    }

    #[test]
    fn a_difference_counts_more_than_what_cannot_be_told_and_that_more_than_an_end() {
        let mut run = RehearsedRun::default();
        assert!(run.take(id("r-1/f-a/1/generate"), &began(), Past::Same { entries: 7, goes_on: false }));
        assert_eq!(run.verdict(), RehearsalVerdict::ReachesEnd);
        assert!(run.take(id("r-1/f-a/2/generate"), &began(), Past::Unknown("gone".into())));
        assert!(run.take(id("r-1/f-a/3/generate"), &began(), Past::Unknown("gone, too".into())));
        assert_eq!(run.verdict(), RehearsalVerdict::CannotTell);
        assert!(run.take(id("r-1/f-b/1/generate"), &began(), Past::Same { entries: 2, goes_on: true }));
        let past = Past::Differs { entries: 4, difference: Box::new(difference()) };
        assert!(!run.take(id("r-1/f-b/2/generate"), &began(), past), "nothing after it is compared");
        let unfinished: Vec<_> = run.unfinished.iter().map(|past| (past.invocation.as_str(), past.entries)).collect();
        assert_eq!(unfinished, [("r-1/f-b/1/generate", 2)]);
        assert_eq!((run.verdict(), run.invocations, run.entries), (RehearsalVerdict::Differs, 2, 13));
        assert_eq!(run.unknown.as_deref(), Some("`r-1/f-a/2/generate`: gone"));
    }

    #[test]
    fn another_result_is_a_difference_after_the_last_entry() {
        let RequestDifference { entry, lines, .. } = difference();
        assert_eq!((entry, lines), (5, vec!["- returned: 1".to_owned(), "+ returned: 2".to_owned()]));
        assert!(breaks("{\"trapped\":\"unreachable\"}") && !breaks("{\"returned\":1}") && !breaks("nonsense"));
    }

    #[test]
    fn a_request_that_cannot_be_made_again_is_shown_by_what_is_kept_of_it() {
        let lines = compared(None, &["tools.call".to_owned()], "`tools.call` files.write (arguments 0123)");
        assert_eq!(lines[0], "- `tools.call` files.write (arguments 0123)");
        assert!(lines[1] == "+ tools.call" && lines[2].contains("only this line and its digest"), "{lines:?}");
        let same = ["conversation.complete".to_owned()];
        assert!(compared(Some(&same), &same, "").iter().all(|line| line.contains("both texts are the same")));
    }

    #[test]
    fn a_run_without_the_plugin_or_with_it_in_another_role_is_refused_in_one_line() {
        let pin = |plugin: &str| PinnedPlugin {
            plugin: plugin.into(),
            digest: Digest::of(plugin.as_bytes()),
            asks: longhaul_config::asks::RequestedGrants::default(),
            world: None,
            packages: String::new(),
            earlier: Vec::new(),
            proved: std::collections::BTreeMap::new(),
        };
        let record = RunRecord {
            run: RunId::from_text("r-1"),
            project: "p".into(),
            id: String::new(),
            directory: "/p".into(),
            branch: String::new(),
            base: String::new(),
            config: String::new(),
            goal: String::new(),
            pins: [("agents.code".to_owned(), pin("coder@1.0.0")), ("tools.files".to_owned(), pin("files"))].into(),
            models: longhaul_models::set::ModelOptions::default(),
            model: None,
            plan: None,
            ask: None,
            passed_before: std::collections::BTreeMap::new(),
            created_ms: 0,
        };
        let refused = |name: &str, role: Role| {
            let found = FoundPlugin { bytes: Vec::new(), manifest: None };
            let replacement = ReplacementPlugin { name: name.into(), digest: Digest::of(b"b"), role, found };
            replacement.expect_of(&record).err().map(|error| error.to_string())
        };
        assert_eq!(refused("coder", Role::Agent), None);
        assert_eq!(refused("files", Role::Tool), None);
        assert_eq!(
            refused("other", Role::Agent).as_deref(),
            Some("run r-1 has no plugin `other`; it has coder, files")
        );
        let role = refused("coder", Role::Tool).expect("another role");
        assert!(role.contains("of the role tool") && role.contains("its agent in [agents.code]"), "{role}");
    }
}
