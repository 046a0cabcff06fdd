//! Code in steps: an agent adds and changes them, and what a change touches runs again.
//!
//! A graph is its invocation's own. Its steps run in a sandbox that sees nothing, so no grant is asked and every call
//! may be repeated: a change of a graph and the entry that answers it are one transaction, and steps that ran are
//! kept as they end. Nothing here knows a language; see [`longhaul_core::graph::Graphs`].

use crate::ctx::Ctx;
use crate::stop::Stop;
use longhaul_bindings::imports::graph::{
    self, GraphChanges, GraphDiagnosis, GraphError, GraphFormat, GraphPatch, GraphReplay, GraphStep,
};
use longhaul_core::LimitHit;
use longhaul_core::graph::{Answer, Answered, Ask, GraphError as Refusal, SOURCE_BYTES_MAX, check_name};
use longhaul_core::journal::EffectClass;
use longhaul_core::text::truncate;

type Reply<T> = wasmtime::Result<Result<T, GraphError>>;

impl graph::Host for Ctx {
    async fn add_step(&mut self, graph: String, step: String, source: String) -> Reply<GraphChanges> {
        self.change("graph.add-step", graph, Ask::Add { step, source }).await
    }

    async fn change_step(&mut self, graph: String, step: String, source: String) -> Reply<GraphChanges> {
        self.change("graph.change-step", graph, Ask::Change { step, source }).await
    }

    async fn remove_step(&mut self, graph: String, step: String) -> Reply<GraphChanges> {
        self.change("graph.remove-step", graph, Ask::Remove { step }).await
    }

    async fn run(&mut self, graph: String, keep_going: bool) -> Reply<GraphReplay> {
        let answer = self.ask_graph("graph.run", graph, Ask::Run { keep_going }).await?;
        Ok(answer.and_then(replayed))
    }

    async fn replay(&mut self, graph: String, step: String) -> Reply<GraphReplay> {
        let answer = self.ask_graph("graph.replay", graph, Ask::Replay { step, keep_going: false }).await?;
        Ok(answer.and_then(replayed))
    }

    async fn stale(&mut self, graph: String) -> Reply<Vec<String>> {
        let answer = self.ask_graph("graph.stale", graph, Ask::Stale).await?;
        Ok(answer.and_then(|answer| if let Answer::Stale(steps) = answer { Ok(steps) } else { odd() }))
    }

    async fn show(&mut self, graph: String) -> Reply<Vec<GraphStep>> {
        let answer = self.ask_graph("graph.show", graph, Ask::Show).await?;
        Ok(answer.and_then(|answer| match answer {
            Answer::Steps(steps) => Ok(steps.into_iter().map(GraphStep::from).collect()),
            _ => odd(),
        }))
    }

    async fn diagnose(&mut self, graph: String, step: Option<String>) -> Reply<GraphDiagnosis> {
        let answer = self.ask_graph("graph.diagnose", graph, Ask::Diagnose { step }).await?;
        Ok(answer.and_then(|answer| if let Answer::Diagnosed(found) = answer { Ok(found.into()) } else { odd() }))
    }

    async fn patch(&mut self, graph: String, step: Option<String>) -> Reply<GraphPatch> {
        let answer = self.ask_graph("graph.patch", graph, Ask::Patch { step }).await?;
        Ok(answer.and_then(|answer| if let Answer::Patched(kept) = answer { Ok(kept.into()) } else { odd() }))
    }

    async fn export_graph(&mut self, graph: String, format: GraphFormat) -> Reply<String> {
        let answer = self.ask_graph("graph.export-graph", graph, Ask::Export { format: format.into() }).await?;
        Ok(answer.and_then(|answer| if let Answer::Text(text) = answer { Ok(text) } else { odd() }))
    }
}

impl Ctx {
    async fn change(&mut self, call: &'static str, graph: String, ask: Ask) -> Reply<GraphChanges> {
        let answer = self.ask_graph(call, graph, ask).await?;
        Ok(answer.and_then(|answer| if let Answer::Changed(changes) = answer { Ok(changes.into()) } else { odd() }))
    }

    /// The answer of the journal, or of the graph, which the journal then keeps, a refusal too.
    async fn ask_graph(
        &mut self,
        call: &'static str,
        graph: String,
        ask: Ask,
    ) -> Result<Result<Answer, GraphError>, Stop> {
        if let Err(refusal) = acceptable(&graph, &ask) {
            return Ok(Err(refusal.into()));
        }
        let summary = truncate(&format!("{graph} {}", subject(&ask)), 160);
        let known = self.ask_repeatable(call, summary, &(&graph, &ask), EffectClass::Idempotent).await?;
        let answer: Result<Answer, Refusal> = match known {
            Ok(answer) => answer,
            Err(ticket) => {
                let Answered { answer, closing } = self.services.graphs.ask(&self.invocation, &graph, ask).await;
                self.answer_with(ticket, answer, closing).await?
            }
        };
        Ok(answer.map_err(GraphError::from))
    }
}

/// Names and sources are the guest's: bounded before anything keeps them.
fn acceptable(graph: &str, ask: &Ask) -> Result<(), Refusal> {
    check_name("graph", graph).map_err(Refusal::Invalid)?;
    let (Ask::Add { step, source } | Ask::Change { step, source }) = ask else { return Ok(()) };
    check_name("step", step).map_err(Refusal::Invalid)?;
    if source.len() > SOURCE_BYTES_MAX {
        let hit = LimitHit::new("source_bytes_max", source.len() as u64, SOURCE_BYTES_MAX as u64);
        return Err(Refusal::Limit(hit));
    }
    Ok(())
}

/// What a line of the journal names beside the graph.
fn subject(ask: &Ask) -> &str {
    match ask {
        Ask::Add { step, .. } | Ask::Change { step, .. } | Ask::Remove { step } | Ask::Replay { step, .. } => step,
        Ask::Diagnose { step } | Ask::Patch { step } => step.as_deref().unwrap_or_default(),
        Ask::Run { .. } | Ask::Stale | Ask::Show | Ask::Export { .. } => "",
    }
}

fn replayed(answer: Answer) -> Result<GraphReplay, GraphError> {
    if let Answer::Replayed(replayed) = answer { Ok(replayed.into()) } else { odd() }
}

fn odd<T>() -> Result<T, GraphError> {
    Err(GraphError::Failed("the graph answered something else than it was asked".to_owned()))
}
