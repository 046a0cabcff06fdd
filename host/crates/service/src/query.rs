//! Looking at runs: which is meant, and how it stands. Changes nothing.

use super::{OpenQuestion, RunRef, RunSummary, Service, Status};
use longhaul_api::paths::expect_whole;
use longhaul_config::{Config, FILE, PluginConfig};
use longhaul_core::RunId;
use longhaul_core::event::WorkUsage;
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::store::Store;
use longhaul_core::text::printable;
use longhaul_core::work::{FeatureSpec, FeatureStatus};
use longhaul_harness::state::{Phase, Wait, WaitFor};
use longhaul_harness::{Dispatch, Feature, RunState, route};
use longhaul_records::ledger::LedgerView;
use longhaul_records::record::{self, RunHead, RunRecord, StoredRun};
use longhaul_records::{commit_loss, ledger, project};
use std::path::Path;

impl Service {
    pub(super) fn summary(&self, stored: &StoredRun) -> fault::Result<RunSummary> {
        let StoredRun { record, state } = stored;
        let kept = state.features.len() - state.count(FeatureStatus::Dropped);
        let (active, ledger) = self.ledger_now(stored)?;
        Ok(RunSummary {
            run: record.run.clone(),
            project: record.project.clone(),
            directory: record.directory.clone(),
            status: state.status(),
            project_status: project::status_of(state),
            passing: (state.count(FeatureStatus::Passing), kept),
            created_ms: record.created_ms,
            last_ms: record::last_event_ms(&*self.host.store, &record.run)?.unwrap_or(record.created_ms),
            is_ask: record.ask.is_some(),
            active,
            wakes_at_ms: state.wakes_at_ms(),
            queue_place: self.queue.places().get(&record.run).copied(),
            queued_ms: record::queued_ms(&*self.host.store, &record.run)?,
            archived_ms: record::archived_ms(&*self.host.store, &record.run)?,
            title: title_of(&record.goal),
            agents: agents_of(record, state),
            spent: ledger.total,
            wall_ms: ledger.wall_ms,
            budget_microdollars: state.limits.cost_microdollars_max,
            forked_from: record::forked(&*self.host.store, &record.run)?.map(|origin| origin.parent),
        })
    }

    /// True when the run is active, and its ledger. The list of active runs is held until the rows are read, so that
    /// no run begins or ends in between.
    fn ledger_now(&self, stored: &StoredRun) -> fault::Result<(bool, LedgerView)> {
        let StoredRun { record, state } = stored;
        let active = self.lock();
        let is_active = active.contains_key(&record.run) || self.remote().has(&record.run);
        let store = &*self.host.store;
        Ok((is_active, ledger::view(store, &record.run, &state.limits, state.counts.replans, is_active)?))
    }

    pub(super) fn status(&self, stored: &StoredRun) -> fault::Result<Status> {
        let StoredRun { record, state } = stored;
        let questions = record::questions(&*self.host.store, &record.run, state)?;
        let questions: Vec<_> = questions.into_iter().map(OpenQuestion::from).collect();
        let config = record.config_now()?;
        let waits = self.handle(&record.run).and_then(|handle| handle.waits());
        let room = |why| format!("waits for room, and goes on by itself when there is some: {why}");
        let is_over = matches!(state.phase, Phase::Ended { .. });
        let doubt = commit_loss::of_run(&*self.host.store, &record.run)?.filter(|_| !is_over);
        let reason = match (waits, doubt, self.of_other_servers(stored)?) {
            (Some(why), ..) => room(why),
            (None, Some(loss), _) => loss.of_run(&record.run),
            (None, None, Some(of_servers)) => of_servers,
            (None, None, None) => why(&record.run, state),
        };
        let (_, ledger) = self.ledger_now(stored)?;
        Ok(Status {
            summary: self.summary(stored)?,
            branch: record.branch.clone(),
            fork: self.origin(&record.run)?,
            asked: record.ask.as_ref().map(|_| record.goal.clone()),
            synthesis: state.answer.clone(),
            reason,
            question: questions.first().map(|question| question.text.clone()),
            questions,
            answer_with: self.commands(stored)?,
            features: state.features.iter().map(|feature| with_ledger(feature, &ledger)).collect(),
            resource_usage: WorkUsage { possibly_paid_twice: ledger.possibly_paid_twice(|_| true).calls, ..state.used },
            ledger,
            cost_microdollars_max: state.limits.cost_microdollars_max,
            tokens_max: state.limits.tokens_max.unwrap_or_else(|| tokens_of_all(state, &config)),
        })
    }

    /// The sentence about a run because of other servers: who works on it, whom it waits for, or who has its trees.
    fn of_other_servers(&self, stored: &StoredRun) -> fault::Result<Option<String>> {
        if let Some(told) = self.of_workers(stored)? {
            return Ok(Some(told));
        }
        Ok(longhaul_run::places::left_behind(&self.host, stored)?.map(|elsewhere| elsewhere.to_string()))
    }

    /// The run that is meant.
    pub fn find(&self, which: &RunRef) -> fault::Result<StoredRun> {
        let store = &*self.host.store;
        match which {
            RunRef::Named(key) if key.contains(':') => {
                let key = longhaul_checkpoints::CheckpointKey::parse(key);
                let stored = self.find(&RunRef::Named(key.run))?;
                if let Some(part) = key.part {
                    longhaul_checkpoints::newest_of(store, &stored.record.run, &part)?;
                }
                Ok(stored)
            }
            // The beginning of every name means no run more than another.
            RunRef::Named(name) if "r-".starts_with(name.as_str()) => {
                bail!(Fault::unknown(format!("`{name}` names no run; `longhaul runs` lists them")))
            }
            RunRef::Named(name) => {
                if let Some(stored) = record::load(store, &RunId::from_text(name.clone()))? {
                    return Ok(stored);
                }
                let mut found =
                    record::heads(store)?.into_iter().filter(|head| head.run.as_str().starts_with(name.as_str()));
                match (found.next(), found.next()) {
                    (Some(head), None) => {
                        record::load(store, &head.run)?.or_unknown(|| format!("run {} is gone", head.run))
                    }
                    (Some(_), Some(_)) => {
                        bail!(Fault::conflict(format!("several runs start with `{name}`; `longhaul runs` lists them")))
                    }
                    (None, _) => bail!(Fault::unknown(format!("there is no run `{name}`; `longhaul runs` lists them"))),
                }
            }
            RunRef::NewestIn(directory) => {
                expect_whole(directory)?;
                let directory = directory.canonicalize().unwrap_or_else(|_| directory.clone());
                match record::newest_in(store, &directory)? {
                    Some(found) => Ok(found),
                    None => bail!(Fault::unknown(no_run_of(store, &directory)?)),
                }
            }
        }
    }
}

/// A feature with the number of calls that it possibly paid twice by the ledger: its own knows those alone whose
/// attempts came to an end.
fn with_ledger(feature: &Feature, ledger: &LedgerView) -> Feature {
    let mut feature = feature.clone();
    let id = feature.spec.id.as_str();
    feature.used.possibly_paid_twice = ledger.possibly_paid_twice(|invocation| invocation.feature() == Some(id)).calls;
    feature
}

/// Most bytes of a title, before the note that it was cut.
const TITLE_BYTES_MAX: usize = 200;

/// A question or a goal in one line: its first line that says more than that it is a goal.
fn title_of(goal: &str) -> String {
    let lines = goal.lines().map(|line| line.trim_start_matches('#').trim());
    let mut telling = lines.filter(|line| !line.is_empty() && !line.eq_ignore_ascii_case("goal"));
    let line = telling.next().unwrap_or_default();
    printable(line.strip_prefix("Feature:").unwrap_or(line).trim(), TITLE_BYTES_MAX)
}

/// The agents of the features of a run, by name; before there are features, those of its project.
fn agents_of(record: &RunRecord, state: &RunState) -> Vec<String> {
    let of_feature = |feature: &Feature| {
        let FeatureSpec { agent, category, .. } = &feature.spec;
        route::agent_of(agent.as_deref(), category, &state.setup).to_owned()
    };
    let mut agents: Vec<String> = state.features.iter().map(of_feature).filter(|agent| !agent.is_empty()).collect();
    if let Some(Dispatch::Agent(agent)) = &record.ask {
        agents.push(agent.clone());
    }
    if agents.is_empty() {
        agents.extend(record.pins.keys().filter_map(|table| table.strip_prefix("agents.")).map(str::to_owned));
    }
    agents.sort_unstable();
    agents.dedup();
    agents
}

/// The error for a directory that names no run. It lists runs of other projects, of which none is chosen.
fn no_run_of(store: &dyn Store, directory: &Path) -> fault::Result<String> {
    let shown = directory.display();
    let records = if directory.join(FILE).exists() { Vec::new() } else { record::heads(store)? };
    let mut newest: Vec<RunHead> = Vec::new();
    for record in records.into_iter().rev() {
        if newest.iter().all(|known| known.directory != record.directory) {
            newest.push(record);
        }
    }
    if newest.is_empty() {
        return Ok(format!("no run of `{shown}`; start one with `longhaul run`, or name one of `longhaul runs`"));
    }
    let named = newest.iter().take(RUNS_NAMED_MAX);
    let named: Vec<_> = named.map(|one| format!("{} of `{}`", one.run, one.directory.display())).collect();
    let more = if newest.len() > RUNS_NAMED_MAX { ", or another one of `longhaul runs`" } else { "" };
    Ok(format!("no run of `{shown}`, which is no project; name the run that you mean: {}{more}", named.join(", ")))
}

/// Runs that are named where none was, the newest of a project each.
const RUNS_NAMED_MAX: usize = 5;

fn why(run: &RunId, state: &RunState) -> String {
    match &state.phase {
        Phase::Ended { summary, .. } => summary.clone(),
        Phase::New | Phase::Running => {
            let reasons: Vec<String> = state.waits().map(|(_, wait)| wait_words(run, wait)).collect();
            reasons.join("; ")
        }
    }
}

/// The time of day, which is enough for a wait.
fn utc(at_ms: u64) -> String {
    let moment = i64::try_from(at_ms).ok().and_then(|at_ms| jiff::Timestamp::from_millisecond(at_ms).ok());
    moment.map_or_else(|| format!("{at_ms} ms"), |moment| moment.strftime("%H:%M:%S").to_string())
}

/// The reason of a wait, and what ends it.
fn wait_words(run: &RunId, wait: &Wait) -> String {
    let reason = &wait.park.reason;
    match (wait.wait, wait.park.until_ms) {
        (WaitFor::Outage, Some(until_ms)) => format!("{reason} (until {} UTC)", utc(until_ms)),
        (WaitFor::Plan, _) => format!(
            "{reason}; answer with `longhaul answer {run} --text ANSWER`, or mend the goal's file, then `longhaul resume {run} --reread-goal`"
        ),
        (WaitFor::Repository | WaitFor::Provider, _) => format!("{reason}: `longhaul resume {run}`"),
        // An effect and an approval are told with their questions, and a cap names itself.
        (WaitFor::Outage | WaitFor::Work | WaitFor::Cap(_), _) => reason.clone(),
    }
}

/// The most tokens for the rounds of all plugins that may ask a model, for a run without a cap of its own.
fn tokens_of_all(state: &RunState, config: &Config) -> u64 {
    let tokens = |part: &PluginConfig| if part.models.is_empty() { 0 } else { config.limits_of(part).tokens_max };
    let rounds = state.features.len() as u64 * u64::from(state.limits.iterations_max);
    let agent = config.agents.values().map(tokens).max().unwrap_or(0);
    let round = agent.saturating_add(tokens(&config.evaluator));
    tokens(&config.planner).saturating_add(rounds.saturating_mul(round))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_of_a_goal_that_tells_something() {
        for (goal, title) in [
            ("Which port is free?\nSay why.", "Which port is free?"),
            ("# Goal\n\n## Feature: the first\n- id: one\n", "the first"),
            ("# A parser of dates\n\nIt reads them.\n", "A parser of dates"),
            ("\n\tgoal\n  It must be fast.  \n", "It must be fast."),
            ("one\u{1b}[31mtwo", "one\\u001b[31mtwo"),
            ("", ""),
        ] {
            assert_eq!(title_of(goal), title, "{goal:?}");
        }
        let long = title_of(&"a".repeat(TITLE_BYTES_MAX + 1));
        assert!(long.starts_with(&"a".repeat(TITLE_BYTES_MAX)) && long.len() < TITLE_BYTES_MAX + 40, "{long}");
    }
}
