//! Agents and their artifacts on a terminal. The output of their code is printed to the letter only by `execute`.

use super::super::context::Context;
use super::super::exit::Exit;
use super::super::order::print_json;
use super::super::terminal;
use longhaul_agents::{AgentCode, Artifact, rfc3339};
use longhaul_api::agents::{AgentExecution, AgentList, AgentSummary, AgentView, ArtifactList, HandedArtifact};
use longhaul_api::wire::Page;
use longhaul_api::wire::agents::{AgentDetails, ArtifactVersions, Executed, PassedArtifact};
use longhaul_core::fault;
use longhaul_core::text::printable;
use longhaul_report::messages::counted;

/// Longest text on one line, in bytes.
const LINE_BYTES_MAX: usize = 160;

pub fn agent(context: &Context, view: &AgentView, done: &str) -> fault::Result<Exit> {
    if context.json {
        print_json(&AgentDetails::from(view.clone()))?;
    } else {
        outln!("agent {}: {done} (version {})", view.record.agent.name, view.record.version);
    }
    Ok(Exit::Done)
}

pub fn agents(context: &Context, list: &AgentList) -> fault::Result<Exit> {
    let AgentList { agents, total_count, .. } = list;
    if context.json {
        print_json(&Page::<AgentSummary>::from(list.clone()))?;
        return Ok(Exit::Done);
    }
    for one in agents {
        let active = if one.active { "on" } else { "off" };
        let name = one.name.as_str();
        outln!("{name:<24} {:<10} {active:<3}  {}", one.kind, printable(&one.description, LINE_BYTES_MAX));
    }
    match (agents.len(), *total_count) {
        (0, 0) => outln!("there is no agent; add one with `longhaul agent add NAME --python FILE`"),
        (shown, total) if shown < total => outln!("{shown} of {total}; more with --offset"),
        _ => {}
    }
    Ok(Exit::Done)
}

pub fn agent_whole(context: &Context, view: &AgentView) -> fault::Result<Exit> {
    if context.json {
        print_json(&AgentDetails::from(view.clone()))?;
        return Ok(Exit::Done);
    }
    let AgentView { record, run_count, artifact_version, artifact_error, schedules } = view;
    let agent = &record.agent;
    outln!("agent     {} (version {}), {}", agent.name, record.version, if agent.active { "on" } else { "off" });
    outln!("made      {}, changed {}", rfc3339(record.created_ms), rfc3339(record.updated_ms));
    if !agent.description.is_empty() {
        outln!("for       {}", printable(&agent.description, 4_000));
    }
    outln!("code      {}", code(&agent.code));
    if !agent.code.is_run() {
        let limits = &agent.limits;
        outln!(
            "limits    {} ms, {} bytes of memory, {} bytes of output",
            limits.timeout_ms,
            limits.memory_bytes_max,
            limits.output_bytes_max
        );
    }
    for directory in &agent.grants.directories {
        outln!(
            "sees      {} as {} ({})",
            printable(&directory.host.display().to_string(), LINE_BYTES_MAX),
            directory.guest,
            directory.access.word()
        );
    }
    for host in &agent.grants.hosts {
        outln!("may ask   {}", String::from(host.clone()));
    }
    if !agent.config.is_null() {
        outln!("config    {}", printable(&agent.config.to_string(), 1_000));
    }
    if let Some(by) = &agent.summary_by {
        outln!("summed up by the model {} of {}", by.model, by.directory.display());
    }
    match artifact_error {
        Some(error) => outln!("artifact  {}", printable(error, 1_000)),
        None => outln!("artifact  version {artifact_version}, after {}", counted(*run_count, "run")),
    }
    let schedules: Vec<&str> = schedules.iter().map(longhaul_core::Name::as_str).collect();
    outln!("schedules {}", if schedules.is_empty() { "none".to_owned() } else { schedules.join(", ") });
    Ok(Exit::Done)
}

fn code(code: &AgentCode) -> String {
    match code {
        AgentCode::Python { source } | AgentCode::JavaScript { source } => {
            format!("{}, {} bytes", code.kind(), source.len())
        }
        AgentCode::Wasm { digest } => format!("wasm, {}", digest.short()),
        AgentCode::Ask { directory, goal, agent } => {
            let by = agent.as_ref().map(|agent| format!(" of {agent}")).unwrap_or_default();
            format!("ask{by} in {}: {}", directory.display(), printable(goal, LINE_BYTES_MAX))
        }
        AgentCode::Run { directory } => format!("run of {}", directory.display()),
    }
}

pub fn executed(context: &Context, executed: &AgentExecution) -> fault::Result<Exit> {
    let AgentExecution { result, .. } = executed;
    if context.json {
        print_json(&Executed::from(executed.clone()))?;
    } else {
        terminal::pass_output(&result.stdout);
        terminal::pass_error(&result.stderr);
        for note in &result.notes {
            errln!("longhaul: {note}");
        }
        if let Some(error) = &result.error_message {
            errln!("longhaul: {error}");
        }
    }
    Ok(if result.success { Exit::Done } else { Exit::Error })
}

pub fn artifact(context: &Context, handed: &HandedArtifact) -> fault::Result<Exit> {
    if context.json {
        print_json(&PassedArtifact::from(handed.clone()))?;
        return Ok(Exit::Done);
    }
    match handed {
        HandedArtifact { artifact: Some(artifact), conflict_count, .. } => {
            line(artifact);
            if *conflict_count > 0 {
                let runs = counted(*conflict_count, "run");
                outln!("{runs} ended since, begun with an earlier version: what they left was not kept");
            }
            outtext!(serde_json::to_string_pretty(&artifact.state)?);
        }
        HandedArtifact { artifact: None, version, .. } => {
            outln!("no artifact: the next run is a first one (version {version})");
        }
    }
    Ok(Exit::Done)
}

pub fn artifacts(context: &Context, list: &ArtifactList) -> fault::Result<Exit> {
    if context.json {
        print_json(&ArtifactVersions::from(list.clone()))?;
    } else {
        list.artifacts.iter().for_each(line);
    }
    Ok(Exit::Done)
}

fn line(artifact: &Artifact) {
    let Artifact { version, created_at, run_count, made_by, summary, .. } = artifact;
    outln!(
        "version {version}, {created_at}, after {}, by {made_by}: {}",
        counted(*run_count, "run"),
        printable(summary, LINE_BYTES_MAX)
    );
}
