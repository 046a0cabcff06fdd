//! Graphs as a script has them: nothing is analysed and nothing runs.

use crate::scripted::Scripted;
use longhaul_core::InvocationId;
use longhaul_core::graph::{GraphAnswer, GraphChanges, GraphError, GraphOperation, Graphs, StagedAnswer};
use longhaul_core::store::Batch;
use serde::de::DeserializeOwned;
use serde_json::Value;

#[async_trait::async_trait]
impl Graphs for Scripted {
    async fn ask(&self, _owner: &InvocationId, name: &str, ask: GraphOperation) -> StagedAnswer {
        StagedAnswer { answer: self.graph(name, &ask), closing: Batch::new() }
    }
}

impl Scripted {
    fn graph(&self, name: &str, ask: &GraphOperation) -> Result<GraphAnswer, GraphError> {
        let function = function(ask);
        let asked = serde_json::to_string(&(name, ask)).unwrap_or_default();
        let scripted = self.next("graphs", &self.script().graphs, &asked, |answer| answer.function == function);
        let Some(scripted) = scripted else { return unscripted(ask) };
        match &scripted.error {
            Some(error) => Err(error.clone()),
            None => answer(ask, scripted.answer.clone()),
        }
    }
}

/// The name of the function in the contract.
fn function(ask: &GraphOperation) -> &'static str {
    match ask {
        GraphOperation::Add { .. } => "add-step",
        GraphOperation::Change { .. } => "change-step",
        GraphOperation::Remove { .. } => "remove-step",
        GraphOperation::Run { .. } => "run",
        GraphOperation::Replay { .. } => "replay",
        GraphOperation::Stale => "stale",
        GraphOperation::Show => "show",
        GraphOperation::Diagnose { .. } => "diagnose",
        GraphOperation::Patch { .. } => "patch",
        GraphOperation::Export { .. } => "export-graph",
    }
}

fn unscripted(ask: &GraphOperation) -> Result<GraphAnswer, GraphError> {
    match ask {
        GraphOperation::Add { step, .. } | GraphOperation::Change { step, .. } => {
            Ok(GraphAnswer::Changed(GraphChanges { stale: vec![step.clone()], failure: None }))
        }
        GraphOperation::Remove { .. } => Ok(GraphAnswer::Changed(GraphChanges::default())),
        other => {
            let function = function(other);
            let fix = format!("add to the script: [[graphs]] function = \"{function}\"");
            Err(GraphError::Failed(format!("the script has no answer left for graph.{function}; {fix}")))
        }
    }
}

fn answer(ask: &GraphOperation, given: Value) -> Result<GraphAnswer, GraphError> {
    match ask {
        GraphOperation::Add { .. } | GraphOperation::Change { .. } | GraphOperation::Remove { .. } => {
            read(given).map(GraphAnswer::Changed)
        }
        GraphOperation::Run { .. } | GraphOperation::Replay { .. } => read(given).map(GraphAnswer::Replayed),
        GraphOperation::Stale => read(given).map(GraphAnswer::Stale),
        GraphOperation::Show => read(given).map(GraphAnswer::Steps),
        GraphOperation::Diagnose { .. } => read(given).map(GraphAnswer::Diagnosed),
        GraphOperation::Patch { .. } => read(given).map(GraphAnswer::Patched),
        GraphOperation::Export { .. } => read(given).map(GraphAnswer::Text),
    }
}

fn read<T: DeserializeOwned>(given: Value) -> Result<T, GraphError> {
    serde_json::from_value(given)
        .map_err(|error| GraphError::Failed(format!("the script's answer is none of a graph: {error}")))
}
