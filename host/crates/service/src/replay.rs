//! Running invocations again from their journals: nothing is executed, everything is compared.
//!
//! The recorder answers from the journal alone and writes nothing, and models, tools and checks are null: what the
//! journal does not hold ends the replay.

use longhaul_api::runs::ReplayResult;
use longhaul_capabilities::null::NullServices;
use longhaul_capabilities::{InvocationScope, InvocationSetup, Services, Watch};
use longhaul_config::Config;
use longhaul_core::approval::AllFree;
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::grant::Grants;
use longhaul_core::journal::{Began, Finished, JournalError};
use longhaul_core::memory::Embedded;
use longhaul_core::work::{Goal, Outcome, Plan, RoleError, Rubric, StepResult, Subject, Synthesis, Verdict};
use longhaul_core::{InvocationId, Limits};
use longhaul_engine::{CallError, Called, Cancel, Plugin};
use longhaul_journal::Recorder;
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::invocation::{CHOICE, JournaledResult};
use longhaul_records::record::RunRecord;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// Replays invocations of a run.
pub async fn replay(
    host: &Arc<PluginHost>,
    record: &RunRecord,
    wanted: Vec<InvocationId>,
    with: Option<&Path>,
) -> fault::Result<Vec<ReplayResult>> {
    let mut replayed = Vec::new();
    let all = wanted.len() != 1;
    for invocation in wanted {
        if all && longhaul_journal::finished(&*host.store, &invocation)?.is_none() {
            // Broken off: its journal is not all that it will do.
            continue;
        }
        if all && is_choice(host, &invocation)? {
            continue;
        }
        if let Some(path) = with
            && all
            && !plays(host, &invocation, path).await?
        {
            continue;
        }
        replayed.push(one(host, record, invocation, with, Arc::new(NullServices)).await?);
    }
    if let (Some(path), true) = (with, replayed.is_empty()) {
        bail!("no invocation of run {} is of the role of `{}`", record.run, path.display());
    }
    Ok(replayed)
}

/// True when no plugin made it, so that there is none to run again.
fn is_choice(host: &PluginHost, invocation: &InvocationId) -> fault::Result<bool> {
    Ok(longhaul_journal::began(&*host.store, invocation)?.is_some_and(|began| began.export == CHOICE))
}

/// True when a component has the role of an invocation; one of another has nothing to say to it.
async fn plays(host: &Arc<PluginHost>, invocation: &InvocationId, path: &Path) -> fault::Result<bool> {
    let Some(began) = longhaul_journal::began(&*host.store, invocation)? else { return Ok(false) };
    let bytes = host.engine.read(&began.plugin, path)?;
    let plugin = host.loaded.get(&host.engine, &began.plugin, &bytes).await?;
    Ok(began.export.split('.').next() == Some(plugin.role().name()))
}

/// Replays one, with somebody who hears what is said in it.
pub async fn one(
    host: &Arc<PluginHost>,
    record: &RunRecord,
    invocation: InvocationId,
    with: Option<&Path>,
    watch: Arc<dyn Watch>,
) -> fault::Result<ReplayResult> {
    let store = &*host.store;
    if longhaul_journal::began(store, &invocation)?.is_none() {
        bail!(Fault::unknown(format!("there is no invocation `{invocation}`")));
    }
    let Some(finished) = longhaul_journal::finished(store, &invocation)? else {
        bail!(Fault::conflict(format!(
            "`{invocation}` has not finished, so there is nothing to compare with; resume the run first"
        )));
    };
    run_again(host, record, invocation, &finished, with, watch).await
}

/// The difference of the calls and the result of a finished invocation from its journal. The fuel is not compared.
pub async fn difference_of(
    host: &Arc<PluginHost>,
    record: &RunRecord,
    invocation: &InvocationId,
    began: &Began,
    finished: &Finished,
    watch: Arc<dyn Watch>,
) -> fault::Result<Option<String>> {
    let replayed = over_journal(host, record, invocation, began, finished, &ReplayBasis::default(), watch).await?;
    Ok(replayed.difference.map(|difference| difference.to_string()))
}

/// Hears what was said in an invocation that has not ended, up to where its journal ends.
pub async fn so_far(
    host: &Arc<PluginHost>,
    record: &RunRecord,
    invocation: InvocationId,
    watch: Arc<dyn Watch>,
) -> fault::Result<()> {
    run_again(host, record, invocation, &no_end(), None, watch).await.map(drop)
}

/// The end with which an invocation is compared that has none.
pub(super) fn no_end() -> Finished {
    Finished { result: String::new(), fuel_used: 0, interrupted: false, at_ms: 0 }
}

async fn run_again(
    host: &Arc<PluginHost>,
    record: &RunRecord,
    invocation: InvocationId,
    finished: &Finished,
    with: Option<&Path>,
    watch: Arc<dyn Watch>,
) -> fault::Result<ReplayResult> {
    let began = longhaul_journal::began(&*host.store, &invocation)?
        .or_unknown(|| format!("there is no invocation `{invocation}`"))?;
    if began.export == CHOICE {
        bail!("`{invocation}` is what longhaul itself asked a model; there is no plugin to run again");
    }
    let plugin = match with {
        Some(path) => {
            let bytes = host.engine.read(&began.plugin, path)?;
            Some(host.loaded.get(&host.engine, &began.plugin, &bytes).await?)
        }
        None => None,
    };
    let basis = ReplayBasis { plugin, ..ReplayBasis::default() };
    let Replayed { calls, fuel, fuel_counts, difference } =
        over_journal(host, record, &invocation, &began, finished, &basis, watch).await?;
    let mut difference = difference.map(|difference| difference.to_string());
    if difference.is_none() && fuel_counts && fuel != finished.fuel_used {
        difference = Some(format!("the fuel differs: {} was recorded, {fuel} was used", finished.fuel_used));
    }
    let same = difference.is_none();
    Ok(ReplayResult { invocation, calls, fuel: (finished.fuel_used, fuel), same, difference })
}

/// The conditions of a replay that are not those of the run.
#[derive(Clone, Default)]
pub(super) struct ReplayBasis {
    /// The plugin that takes the place of the pinned one.
    pub(super) plugin: Option<Arc<Plugin>>,
    /// The configuration with the grants and limits. None: the one that the run began with.
    pub(super) config: Option<Arc<Config>>,
    /// True when the settings of the plugin are those of that configuration, too.
    pub(super) settings: bool,
}

/// The end of a replay.
pub(super) struct Replayed {
    /// The number of calls that the journal answered.
    pub(super) calls: u32,
    fuel: u64,
    /// True when the same fuel was to be used: by the same bytes under the same conditions.
    fuel_counts: bool,
    pub(super) difference: Option<ReplayDifference>,
}

/// The first difference of a replay from its journal.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplayDifference {
    /// It asked something else, or reached the end of the journal.
    #[error(transparent)]
    Journal(JournalError),
    /// It ended otherwise, with this result as JSON.
    #[error("the result differs from the recorded one")]
    Result(String),
    /// It broke off, which tells nothing.
    #[error("{0}")]
    BrokenOff(String),
}

/// True for an export of a plugin; others are what longhaul does itself.
pub(super) fn is_of_a_plugin(export: &str) -> bool {
    settings_place(export).is_some()
}

/// Runs an invocation over its journal.
pub(super) async fn over_journal(
    host: &Arc<PluginHost>,
    record: &RunRecord,
    invocation: &InvocationId,
    began: &Began,
    finished: &Finished,
    basis: &ReplayBasis,
    watch: Arc<dyn Watch>,
) -> fault::Result<Replayed> {
    let store = &*host.store;
    // An invocation that was moved goes on with other bytes than those that it began with.
    let digest = record.pins.get(&began.table).map_or(began.component, |pin| pin.runs_on(invocation, began.component));
    let plugin = match &basis.plugin {
        Some(plugin) => Arc::clone(plugin),
        None => {
            let lost = || format!("the store lost the bytes of plugin `{}`", began.plugin);
            let bytes = || store.blob(&digest)?.or_internal(lost);
            host.loaded.get_pinned(&host.engine, &began.plugin, digest, bytes).await?
        }
    };
    let mut input = store.blob(&began.input)?.or_internal(|| "the store lost the input of the invocation")?;
    let config = match &basis.config {
        Some(config) => Arc::clone(config),
        None => Arc::new(record.config()?),
    };
    let part = config.part(&began.table);
    if let Some(part) = part.filter(|_| basis.settings) {
        input = with_settings(&input, &began.export, Value::Object(part.settings.clone()))?;
    }
    let limits = part.map_or_else(Limits::default, |part| config.limits_of(part));
    // Other bytes use other fuel; what they ask and answer must still be the same.
    let fuel_counts = basis.plugin.is_none() && basis.config.is_none() && digest == began.component;
    let fingerprint = if fuel_counts { host.engine.fingerprint() } else { "" };
    let recorder = Recorder::replay(Arc::clone(&host.store), invocation.clone(), fingerprint, &limits)?
        .or_internal(|| "the journal is gone")?;
    let mut setup = setup(host, record, &recorder, &config, limits, finished);
    setup.services.watch = watch;
    let (fuel, difference) = compare(&plugin, setup, &recorder, began, finished, &input).await?;
    Ok(Replayed { calls: recorder.asked(), fuel, fuel_counts, difference })
}

/// The place of the plugin's settings in the input of an export, as a JSON pointer.
fn settings_place(export: &str) -> Option<&'static str> {
    match export {
        "planner.plan" | "agent.run" => Some("/settings"),
        "planner.replan" | "planner.synthesize" => Some("/0/settings"),
        "evaluator.judge" => Some("/1/settings"),
        _ => None,
    }
}

fn with_settings(input: &[u8], export: &str, settings: Value) -> fault::Result<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(input)?;
    if let Some(place) = settings_place(export).and_then(|place| value.pointer_mut(place)) {
        *place = settings;
    }
    Ok(serde_json::to_vec(&value)?)
}

/// A replay sends no request: models, tools and checks are answered from the journal or not at all.
fn setup(
    host: &Arc<PluginHost>,
    record: &RunRecord,
    recorder: &Recorder,
    config: &Config,
    limits: Limits,
    finished: &Finished,
) -> InvocationSetup {
    let null = Arc::new(NullServices);
    let table = recorder.began().table.as_str();
    // An invocation that time ended is ended by its fuel here: at the same instruction.
    let fuel_max = if finished.interrupted { finished.fuel_used } else { limits.fuel_max };
    let given = config.part(table);
    let grants = Grants {
        table: table.to_owned(),
        tools: given.map(|part| part.tools.clone()).unwrap_or_default(),
        agents: given.map(|part| part.agents.clone()).unwrap_or_default(),
        models: given.map(|part| part.models.clone()).unwrap_or_default(),
        ..Grants::default()
    };
    InvocationSetup {
        invocation: recorder.invocation().clone(),
        scope: InvocationScope { project: record.scope().to_owned(), plugin: table.to_owned() },
        grants,
        limits: Limits { fuel_max, ..limits },
        services: Services {
            models: null.clone(),
            tools: null.clone(),
            checks: null.clone(),
            delegate: null.clone(),
            graphs: null.clone(),
            approvals: Arc::new(AllFree),
            supervisor: Arc::new(longhaul_core::supervisor::Unsupervised),
            store: Arc::clone(&host.store),
            memory: Arc::new(Embedded::new(Arc::clone(&host.store), Arc::clone(&host.clock))),
            clock: Arc::clone(&host.clock),
            watch: null,
            exchange: None,
        },
        journal: Some(Arc::new(recorder.clone())),
        seed: recorder.began().seed,
        context: recorder.began().context.clone(),
        console: None,
        placeholders: Arc::default(),
        told: None,
    }
}

async fn compare(
    plugin: &Plugin,
    setup: InvocationSetup,
    recorder: &Recorder,
    began: &Began,
    finished: &Finished,
    input: &[u8],
) -> fault::Result<(u64, Option<ReplayDifference>)> {
    let cancel = Cancel::default();
    match began.export.as_str() {
        "planner.plan" => {
            let called = plugin.plan(setup, &cancel, serde_json::from_slice(input)?).await;
            Ok(compared::<Plan>(recorder, finished, called))
        }
        "planner.replan" => {
            let (goal, plan, results): (Goal, Plan, Vec<StepResult>) = serde_json::from_slice(input)?;
            let called = plugin.replan(setup, &cancel, goal, plan, results).await;
            Ok(compared::<Plan>(recorder, finished, called))
        }
        "planner.synthesize" => {
            let (goal, results): (Goal, Vec<StepResult>) = serde_json::from_slice(input)?;
            let called = plugin.synthesize(setup, &cancel, goal, results).await;
            Ok(compared::<Synthesis>(recorder, finished, called))
        }
        "agent.run" => {
            let called = plugin.run(setup, &cancel, serde_json::from_slice(input)?).await;
            Ok(compared::<Outcome>(recorder, finished, called))
        }
        "evaluator.judge" => {
            let (subject, rubric): (Subject, Rubric) = serde_json::from_slice(input)?;
            let called = plugin.judge(setup, &cancel, subject, rubric).await;
            Ok(compared::<Verdict>(recorder, finished, called))
        }
        other => bail!("`{other}` is an effect of longhaul itself and has nothing to replay"),
    }
}

fn compared<T: Serialize>(
    recorder: &Recorder,
    finished: &Finished,
    called: Called<Result<T, RoleError>>,
) -> (u64, Option<ReplayDifference>) {
    let fuel = called.used.fuel;
    (fuel, difference(recorder, finished, called))
}

fn difference<T: Serialize>(
    recorder: &Recorder,
    finished: &Finished,
    called: Called<Result<T, RoleError>>,
) -> Option<ReplayDifference> {
    let kept = match called.result {
        Ok(Ok(value)) => JournaledResult::Returned(value),
        Ok(Err(error)) => JournaledResult::Refused(error),
        Err(CallError::Limit { .. }) if finished.interrupted => return None,
        Err(CallError::Limit { hit, .. }) => JournaledResult::Limited(hit),
        Err(error @ (CallError::Trapped { .. } | CallError::Contract { .. })) => {
            JournaledResult::Trapped(error.to_string())
        }
        Err(CallError::Journal(error)) => return Some(ReplayDifference::Journal(error)),
        Err(error) => return Some(ReplayDifference::BrokenOff(error.to_string())),
    };
    if let Err(error) = recorder.check_end() {
        return Some(ReplayDifference::Journal(error));
    }
    let result = serde_json::to_string(&kept).unwrap_or_default();
    (result != finished.result).then_some(ReplayDifference::Result(result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_are_replaced_where_each_export_has_them() {
        let at = |export: &str, input: Value| {
            let input = serde_json::to_vec(&input).expect("JSON");
            let changed = with_settings(&input, export, json!({ "new": 1 })).expect("JSON");
            serde_json::from_slice::<Value>(&changed).expect("JSON")
        };
        let (old, new) = (json!({ "id": "a", "settings": {} }), json!({ "id": "a", "settings": { "new": 1 } }));
        for export in ["agent.run", "planner.plan"] {
            assert_eq!(at(export, old.clone()), new, "{export}");
        }
        for export in ["planner.replan", "planner.synthesize"] {
            assert_eq!(at(export, json!([old, []])), json!([new, []]), "{export}");
        }
        assert_eq!(at("evaluator.judge", json!([{}, old])), json!([{}, new]));
        assert!(is_of_a_plugin("agent.run") && !is_of_a_plugin(CHOICE) && !is_of_a_plugin("commit"));
    }
}
