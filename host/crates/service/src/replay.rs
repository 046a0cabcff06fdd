//! Running finished invocations again from their journals: nothing is executed, everything is compared.

use longhaul_api::runs::ReplayResult;
use longhaul_capabilities::null::NullServices;
use longhaul_capabilities::{InvocationScope, InvocationSetup, Services, Watch};
use longhaul_core::approval::AllFree;
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::grant::Grants;
use longhaul_core::journal::{Began, Finished};
use longhaul_core::memory::Embedded;
use longhaul_core::work::{Goal, Outcome, Plan, RoleError, Rubric, StepResult, Subject, Synthesis, Verdict};
use longhaul_core::{InvocationId, Limits};
use longhaul_engine::{CallError, Called, Cancel, Plugin};
use longhaul_journal::Recorder;
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::invocation::{CHOICE, JournaledResult};
use longhaul_records::record::RunRecord;
use serde::Serialize;
use serde::de::DeserializeOwned;
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
    let mut replayed = run_again(host, record, invocation, &finished, with, watch).await?;
    if with.is_none() && replayed.same && replayed.fuel.0 != replayed.fuel.1 {
        replayed.same = false;
        replayed.difference =
            Some(format!("the fuel differs: {} was recorded, {} was used", replayed.fuel.0, replayed.fuel.1));
    }
    Ok(replayed)
}

/// The difference of the calls and the result of a finished invocation from its journal. The fuel is not compared.
pub async fn difference_of(
    host: &Arc<PluginHost>,
    record: &RunRecord,
    invocation: InvocationId,
    finished: &Finished,
    watch: Arc<dyn Watch>,
) -> fault::Result<Option<String>> {
    Ok(run_again(host, record, invocation, finished, None, watch).await?.difference)
}

/// Hears what was said in an invocation that has not ended, up to where its journal ends.
pub async fn so_far(
    host: &Arc<PluginHost>,
    record: &RunRecord,
    invocation: InvocationId,
    watch: Arc<dyn Watch>,
) -> fault::Result<()> {
    let no_end = Finished { result: String::new(), fuel_used: 0, interrupted: false, at_ms: 0 };
    run_again(host, record, invocation, &no_end, None, watch).await.map(drop)
}

async fn run_again(
    host: &Arc<PluginHost>,
    record: &RunRecord,
    invocation: InvocationId,
    finished: &Finished,
    with: Option<&Path>,
    watch: Arc<dyn Watch>,
) -> fault::Result<ReplayResult> {
    let store = &*host.store;
    let began =
        longhaul_journal::began(store, &invocation)?.or_unknown(|| format!("there is no invocation `{invocation}`"))?;
    if began.export == CHOICE {
        bail!("`{invocation}` is what longhaul itself asked a model; there is no plugin to run again");
    }
    let plugin = match with {
        Some(path) => host.loaded.get(&host.engine, &began.plugin, &host.engine.read(&began.plugin, path)?).await?,
        None => {
            let lost = || format!("the store lost the bytes of plugin `{}`", began.plugin);
            let loading = host.loaded.get_pinned(&host.engine, &began.plugin, began.component, || {
                store.blob(&began.component)?.or_internal(lost)
            });
            loading.await?
        }
    };
    let input = store.blob(&began.input)?.or_internal(|| "the store lost the input of the invocation")?;
    let config = record.config()?;
    let limits = config.part(&began.table).map_or_else(Limits::default, |part| config.limits_of(part));
    // Other bytes use other fuel; what they ask and answer must still be the same.
    let fingerprint = if with.is_some() { "" } else { host.engine.fingerprint() };
    let recorder = Recorder::replay(Arc::clone(&host.store), invocation.clone(), fingerprint, &limits)?
        .or_internal(|| "the journal is gone")?;
    let mut setup = setup(host, record, &recorder, limits, finished);
    setup.services.watch = watch;
    compare(&plugin, setup, &recorder, &began, finished, &input).await
}

/// A replay sends no request: models, tools and checks are answered from the journal or not at all.
fn setup(
    host: &Arc<PluginHost>,
    record: &RunRecord,
    recorder: &Recorder,
    limits: Limits,
    finished: &Finished,
) -> InvocationSetup {
    let null = Arc::new(NullServices);
    let table = recorder.began().table.as_str();
    // An invocation that time ended is ended by its fuel here: at the same instruction.
    let fuel_max = if finished.interrupted { finished.fuel_used } else { limits.fuel_max };
    let config = record.config().ok();
    let given = config.as_ref().and_then(|config| config.part(table));
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
) -> fault::Result<ReplayResult> {
    let cancel = Cancel::default();
    match began.export.as_str() {
        "planner.plan" => {
            let called = plugin.plan(setup, &cancel, serde_json::from_slice(input)?).await;
            compared::<Plan>(recorder, finished, called)
        }
        "planner.replan" => {
            let (goal, plan, results): (Goal, Plan, Vec<StepResult>) = serde_json::from_slice(input)?;
            let called = plugin.replan(setup, &cancel, goal, plan, results).await;
            compared::<Plan>(recorder, finished, called)
        }
        "planner.synthesize" => {
            let (goal, results): (Goal, Vec<StepResult>) = serde_json::from_slice(input)?;
            let called = plugin.synthesize(setup, &cancel, goal, results).await;
            compared::<Synthesis>(recorder, finished, called)
        }
        "agent.run" => {
            let called = plugin.run(setup, &cancel, serde_json::from_slice(input)?).await;
            compared::<Outcome>(recorder, finished, called)
        }
        "evaluator.judge" => {
            let (subject, rubric): (Subject, Rubric) = serde_json::from_slice(input)?;
            let called = plugin.judge(setup, &cancel, subject, rubric).await;
            compared::<Verdict>(recorder, finished, called)
        }
        other => bail!("`{other}` is an effect of longhaul itself and has nothing to replay"),
    }
}

fn compared<T: Serialize + DeserializeOwned>(
    recorder: &Recorder,
    finished: &Finished,
    called: Called<Result<T, RoleError>>,
) -> fault::Result<ReplayResult> {
    let fuel = called.used.fuel;
    let difference = difference(recorder, finished, called);
    Ok(ReplayResult {
        invocation: recorder.invocation().clone(),
        calls: recorder.asked(),
        fuel: (finished.fuel_used, fuel),
        same: difference.is_none(),
        difference,
    })
}

fn difference<T: Serialize + DeserializeOwned>(
    recorder: &Recorder,
    finished: &Finished,
    called: Called<Result<T, RoleError>>,
) -> Option<String> {
    let kept = match called.result {
        Ok(Ok(value)) => JournaledResult::Returned(value),
        Ok(Err(error)) => JournaledResult::Refused(error),
        Err(CallError::Limit { .. }) if finished.interrupted => return None,
        Err(CallError::Limit { hit, .. }) => JournaledResult::Limited(hit),
        Err(error @ (CallError::Trapped { .. } | CallError::Contract { .. })) => {
            JournaledResult::Trapped(error.to_string())
        }
        Err(error) => return Some(error.to_string()),
    };
    if let Err(error) = recorder.check_end() {
        return Some(error.to_string());
    }
    let result = serde_json::to_string(&kept).unwrap_or_default();
    if result != finished.result {
        return Some("the result differs from the recorded one".into());
    }
    None
}
