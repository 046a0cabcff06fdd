//! Moves of runs to other bytes of a plugin, after a rehearsal on them.
//!
//! If the rehearsal reaches its end, unfinished invocations go on with the new bytes. Otherwise they end on those
//! that they began with, and what begins later, the next round, hand-off or feature, has the new ones; a person agrees
//! to that first. The old bytes stay in the store as long as a pin or a journal names them. Refused is a run that
//! somebody works on, which holds its plugins, and one that has ended.

use super::Service;
use super::rehearse::{RehearsalTerms, ReplacementPlugin, UnfinishedPast, is_live};
use longhaul_api::rehearsals::{MoveRun, MovedRun, RehearsalVerdict, RunRehearsal};
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::store::{Batch, Table};
use longhaul_core::{InvocationId, RunId};
use longhaul_plugins::installed::base_name;
use longhaul_plugins::plugin_set;
use longhaul_records::pins::{PinnedPlugin, ProvedPast};
use longhaul_records::record::{self, RunRecord, StoredRun};
use longhaul_run as run;
use std::collections::BTreeMap;

/// Moves of one plugin of a run: each keeps the pin before it.
const MOVES_MAX: usize = 64;

impl Service {
    /// Moves a run.
    pub(super) async fn move_run(&self, request: &MoveRun) -> fault::Result<MovedRun> {
        let replacement = self.installed_replacement(&request.plugin).await?;
        let (_alone, which) = self.alone(&request.run).await?;
        let stored = self.find(&which)?;
        let record = &stored.record;
        self.refuse_unmovable(&stored)?;
        replacement.expect_of(record)?;
        let pins = pins_to_move(record, &replacement)?;
        let terms = RehearsalTerms { replacement: Some(&replacement), settings: false, until: None };
        let mut rehearsed = self.rehearse(&stored, &terms).await;
        let pasts = match rehearsed.verdict() {
            RehearsalVerdict::ReachesEnd => std::mem::take(&mut rehearsed.unfinished),
            RehearsalVerdict::Differs | RehearsalVerdict::CannotTell => Vec::new(),
        };
        let rehearsal = rehearsed.view(record);
        if rehearsal.verdict != RehearsalVerdict::ReachesEnd && !request.at_boundary {
            bail!(Fault::conflict(unproved(&rehearsal, &replacement, &request.plugin)));
        }
        let pasts: Vec<UnfinishedPast> = pasts.into_iter().filter(|past| pins.contains_key(&past.table)).collect();
        let unmoved = self.unmoved(&record.run, &replacement, &pasts)?;
        let moved = moved(record, &pins, &replacement, &pasts)?;
        let proved: BTreeMap<String, u32> =
            pasts.iter().map(|past| (past.invocation.to_string(), past.entries)).collect();
        let from = pins.values().next().map_or(replacement.digest, |pin| pin.digest);
        let (plugin, to) = (replacement.name.clone(), replacement.digest);
        let event = Event::PluginMoved { plugin, from, to, proved: proved.clone(), unmoved: unmoved.clone() };
        self.store_move(&stored, &moved, &replacement, event).await?;
        let (run, plugin, tables) = (record.run.clone(), replacement.view(), pins.into_keys().collect());
        Ok(MovedRun { run, plugin, tables, rehearsal, proved, unmoved })
    }

    fn refuse_unmovable(&self, stored: &StoredRun) -> fault::Result<()> {
        let run = &stored.record.run;
        if !is_live(stored.state.status()) {
            bail!(Fault::conflict(format!(
                "run {run} has ended, so it is not moved: a resume goes on with the bytes that it pinned, and a new \
                 run takes the present ones"
            )));
        }
        if self.handle(run).is_some() {
            bail!(Fault::conflict(format!(
                "run {run} is worked on, so it is not moved; pause it first: `longhaul pause {run}`, and afterwards \
                 `longhaul resume {run}`"
            )));
        }
        Ok(())
    }

    /// The unfinished invocations of the plugin that end on the bytes that they began with.
    fn unmoved(
        &self,
        run: &RunId,
        replacement: &ReplacementPlugin,
        proved: &[UnfinishedPast],
    ) -> fault::Result<Vec<String>> {
        let store = &*self.host.store;
        let is_proved = |invocation: &InvocationId| proved.iter().any(|past| past.invocation == *invocation);
        let mut unmoved = Vec::new();
        for invocation in self.invocations(run, None)?.into_iter().filter(|invocation| !is_proved(invocation)) {
            let began = longhaul_journal::began(store, &invocation)?;
            if began.is_some_and(|began| base_name(&began.plugin) == replacement.name)
                && longhaul_journal::finished(store, &invocation)?.is_none()
            {
                unmoved.push(invocation.to_string());
            }
        }
        Ok(unmoved)
    }

    /// Stores the record with the new pins, the bytes and the event in one transaction.
    async fn store_move(
        &self,
        stored: &StoredRun,
        moved: &RunRecord,
        replacement: &ReplacementPlugin,
        event: Event,
    ) -> fault::Result<()> {
        let (store, run) = (&*self.host.store, &moved.run);
        let before = store.get(Table::Runs, &RunRecord::key(run))?.or_internal(|| format!("run {run} is gone"))?;
        let mut batch = Batch::new();
        batch.blob(replacement.found.bytes.clone());
        let mut batch = moved.replace_pins(batch, &before)?;
        let number = record::last_event(store, run)? + 1;
        let event = RunEvent { run: run.clone(), number, at_ms: self.host.clock.now_ms(), event };
        run::put_step(store, &mut batch, moved, &stored.state, &[event])?;
        store.commit(batch).await?;
        self.tell(run);
        Ok(())
    }
}

/// The pins that a move changes, by their tables.
fn pins_to_move<'a>(
    record: &'a RunRecord,
    replacement: &ReplacementPlugin,
) -> fault::Result<BTreeMap<String, &'a PinnedPlugin>> {
    let (run, name) = (&record.run, &replacement.name);
    let others = replacement.pins(record).into_iter().filter(|(_, pin)| pin.digest != replacement.digest);
    let pins: BTreeMap<String, &PinnedPlugin> = others.map(|(table, pin)| (table.clone(), pin)).collect();
    if pins.is_empty() {
        let short = replacement.digest.short();
        bail!(Fault::conflict(format!("run {run} has these bytes of `{name}` already (sha256:{short})")));
    }
    if pins.values().any(|pin| pin.earlier.len() >= MOVES_MAX) {
        bail!(Fault::conflict(format!(
            "run {run} was moved to other bytes of `{name}` {MOVES_MAX} times, which is the most"
        )));
    }
    Ok(pins)
}

/// The record after the move.
fn moved(
    record: &RunRecord,
    pins: &BTreeMap<String, &PinnedPlugin>,
    replacement: &ReplacementPlugin,
    pasts: &[UnfinishedPast],
) -> fault::Result<RunRecord> {
    let config = record.config()?;
    let mut moved = record.clone();
    for (table, &pin) in pins {
        let next = plugin_set::repin(&config, table, pin, replacement.role, &replacement.found)?;
        let of_table = pasts.iter().filter(|past| past.table == *table);
        let proved = of_table.map(|past| {
            let goes_on = replacement.digest;
            (past.invocation.clone(), ProvedPast { began: past.began, goes_on, entries: past.entries })
        });
        moved.pins.insert(table.clone(), pin.clone().moved_to(next, proved.collect()));
    }
    Ok(moved)
}

/// The refusal of a move whose rehearsal did not reach its end, with what a move would mean.
fn unproved(rehearsal: &RunRehearsal, replacement: &ReplacementPlugin, named: &str) -> String {
    let (run, name) = (&rehearsal.run, &replacement.name);
    let why = match (&rehearsal.difference, &rehearsal.reason) {
        (Some(found), _) => format!("differs at entry {} of {}", found.entry, found.invocation),
        (None, Some(reason)) => format!("cannot be told: {reason}"),
        (None, None) => "did not reach its end".to_owned(),
    };
    let meaning = if replacement.role.is_pure() {
        "what has begun would end on the bytes that it began with, and the next round, hand-off or feature would begin \
         on the new ones"
    } else {
        "its next call would have the new bytes"
    };
    format!(
        "run {run} on the new bytes of `{name}` {why}; moved all the same, {meaning}; agree with `longhaul move {run} \
         --plugin {named} --yes`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_api::rehearsals::RequestDifference;
    use longhaul_core::Digest;
    use longhaul_engine::Role;
    use longhaul_plugins::FoundPlugin;

    fn replacement(role: Role) -> ReplacementPlugin {
        let found = FoundPlugin { bytes: b"new".to_vec(), manifest: None };
        ReplacementPlugin { name: "coder".into(), digest: Digest::of(b"new"), role, found }
    }

    fn rehearsal(difference: Option<RequestDifference>, reason: Option<&str>) -> RunRehearsal {
        RunRehearsal {
            run: RunId::from_text("r-1"),
            verdict: RehearsalVerdict::Differs,
            invocations: 1,
            entries: 4,
            difference,
            reason: reason.map(str::to_owned),
        }
    }

    #[test]
    fn a_refused_move_says_what_it_would_mean_and_how_to_agree() {
        let (invocation, recorded, asked) = ("r-1/f-a/1/generate".to_owned(), String::new(), String::new());
        let difference = RequestDifference { invocation, entry: 5, recorded, asked, lines: Vec::new() };
        let agent = unproved(&rehearsal(Some(difference), None), &replacement(Role::Agent), "coder@2.0.0");
        assert_eq!(
            agent,
            "run r-1 on the new bytes of `coder` differs at entry 5 of r-1/f-a/1/generate; moved all the same, what \
             has begun would end on the bytes that it began with, and the next round, hand-off or feature would begin \
             on the new ones; agree with `longhaul move r-1 --plugin coder@2.0.0 --yes`"
        );
        let tool = unproved(&rehearsal(None, Some("it has no journal")), &replacement(Role::Tool), "coder");
        assert!(tool.contains("cannot be told: it has no journal; moved all the same, its next call"), "{tool}");
    }
}
