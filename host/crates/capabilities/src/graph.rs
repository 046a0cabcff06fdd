//! Graphs of code steps: an agent adds and changes steps, and the steps that a change affects run again.
//!
//! A graph belongs to its invocation. Its steps run in a sandbox without access, so no grant is needed and every call
//! may be repeated: a change of a graph and the entry that answers it are one transaction, and each step is stored as
//! it ends. This module knows no language; see [`longhaul_core::graph::Graphs`].

use crate::ctx::Ctx;
use crate::stop::Stop;
use longhaul_bindings::imports::graph::{
    self, GraphChanges, GraphDiagnosis, GraphError, GraphFormat, GraphPatch, GraphReplay, GraphStep,
};
use longhaul_core::LimitHit;
use longhaul_core::graph::{
    GraphAnswer, GraphError as Refusal, GraphOperation, SOURCE_BYTES_MAX, StagedAnswer, check_name,
};
use longhaul_core::journal::EffectClass;
use longhaul_core::text::truncate;

type Reply<T> = wasmtime::Result<Result<T, GraphError>>;

impl graph::Host for Ctx {
    async fn add_step(&mut self, graph: String, step: String, source: String) -> Reply<GraphChanges> {
        self.change("graph.add-step", graph, GraphOperation::Add { step, source }).await
    }

    async fn change_step(&mut self, graph: String, step: String, source: String) -> Reply<GraphChanges> {
        self.change("graph.change-step", graph, GraphOperation::Change { step, source }).await
    }

    async fn remove_step(&mut self, graph: String, step: String) -> Reply<GraphChanges> {
        self.change("graph.remove-step", graph, GraphOperation::Remove { step }).await
    }

    async fn run(&mut self, graph: String, keep_going: bool) -> Reply<GraphReplay> {
        let answer = self.ask_graph("graph.run", graph, GraphOperation::Run { keep_going }).await?;
        Ok(answer.and_then(replayed))
    }

    async fn replay(&mut self, graph: String, step: String) -> Reply<GraphReplay> {
        let answer = self.ask_graph("graph.replay", graph, GraphOperation::Replay { step, keep_going: false }).await?;
        Ok(answer.and_then(replayed))
    }

    async fn stale(&mut self, graph: String) -> Reply<Vec<String>> {
        let answer = self.ask_graph("graph.stale", graph, GraphOperation::Stale).await?;
        Ok(answer.and_then(|answer| if let GraphAnswer::Stale(steps) = answer { Ok(steps) } else { odd() }))
    }

    async fn show(&mut self, graph: String) -> Reply<Vec<GraphStep>> {
        let answer = self.ask_graph("graph.show", graph, GraphOperation::Show).await?;
        Ok(answer.and_then(|answer| match answer {
            GraphAnswer::Steps(steps) => Ok(steps.into_iter().map(GraphStep::from).collect()),
            _ => odd(),
        }))
    }

    async fn diagnose(&mut self, graph: String, step: Option<String>) -> Reply<GraphDiagnosis> {
        let answer = self.ask_graph("graph.diagnose", graph, GraphOperation::Diagnose { step }).await?;
        Ok(answer.and_then(|answer| if let GraphAnswer::Diagnosed(found) = answer { Ok(found.into()) } else { odd() }))
    }

    async fn patch(&mut self, graph: String, step: Option<String>) -> Reply<GraphPatch> {
        let answer = self.ask_graph("graph.patch", graph, GraphOperation::Patch { step }).await?;
        Ok(answer.and_then(|answer| if let GraphAnswer::Patched(kept) = answer { Ok(kept.into()) } else { odd() }))
    }

    async fn export_graph(&mut self, graph: String, format: GraphFormat) -> Reply<String> {
        let answer =
            self.ask_graph("graph.export-graph", graph, GraphOperation::Export { format: format.into() }).await?;
        Ok(answer.and_then(|answer| if let GraphAnswer::Text(text) = answer { Ok(text) } else { odd() }))
    }
}

impl Ctx {
    async fn change(&mut self, call: &'static str, graph: String, ask: GraphOperation) -> Reply<GraphChanges> {
        let answer = self.ask_graph(call, graph, ask).await?;
        Ok(answer
            .and_then(|answer| if let GraphAnswer::Changed(changes) = answer { Ok(changes.into()) } else { odd() }))
    }

    /// The answer from the journal, or from the graph; the journal then records that, even a refusal.
    async fn ask_graph(
        &mut self,
        call: &'static str,
        graph: String,
        ask: GraphOperation,
    ) -> Result<Result<GraphAnswer, GraphError>, Stop> {
        if let Err(refusal) = acceptable(&graph, &ask) {
            return Ok(Err(refusal.into()));
        }
        let summary = truncate(&format!("{graph} {}", subject(&ask)), 160);
        let known = self.ask_repeatable(call, summary, &(&graph, &ask), EffectClass::Idempotent).await?;
        let answer: Result<GraphAnswer, Refusal> = match known {
            Ok(answer) => answer,
            Err(handle) => {
                let StagedAnswer { answer, closing } = self.services.graphs.ask(&self.invocation, &graph, ask).await;
                self.answer_with(handle, answer, closing).await?
            }
        };
        Ok(answer.map_err(GraphError::from))
    }
}

/// Names and sources are untrusted: bounded before anything stores them.
fn acceptable(graph: &str, ask: &GraphOperation) -> Result<(), Refusal> {
    check_name("graph", graph).map_err(Refusal::Invalid)?;
    let (GraphOperation::Add { step, source } | GraphOperation::Change { step, source }) = ask else { return Ok(()) };
    check_name("step", step).map_err(Refusal::Invalid)?;
    if source.len() > SOURCE_BYTES_MAX {
        let hit = LimitHit::new("source_bytes_max", source.len() as u64, SOURCE_BYTES_MAX as u64);
        return Err(Refusal::Limit(hit));
    }
    Ok(())
}

/// The subject in a line of the journal, beside the graph.
fn subject(ask: &GraphOperation) -> &str {
    match ask {
        GraphOperation::Add { step, .. }
        | GraphOperation::Change { step, .. }
        | GraphOperation::Remove { step }
        | GraphOperation::Replay { step, .. } => step,
        GraphOperation::Diagnose { step } | GraphOperation::Patch { step } => step.as_deref().unwrap_or_default(),
        GraphOperation::Run { .. } | GraphOperation::Stale | GraphOperation::Show | GraphOperation::Export { .. } => "",
    }
}

fn replayed(answer: GraphAnswer) -> Result<GraphReplay, GraphError> {
    if let GraphAnswer::Replayed(replayed) = answer { Ok(replayed.into()) } else { odd() }
}

fn odd<T>() -> Result<T, GraphError> {
    Err(GraphError::Failed("the graph answered something else than it was asked".to_owned()))
}
