//! Graphs as a script has them: nothing is analysed and nothing runs.

use crate::scripted::Scripted;
use longhaul_core::InvocationId;
use longhaul_core::graph::{Answer, Answered, Ask, Changes, GraphError, Graphs};
use longhaul_core::store::Batch;
use serde::de::DeserializeOwned;
use serde_json::Value;

#[async_trait::async_trait]
impl Graphs for Scripted {
    async fn ask(&self, _owner: &InvocationId, name: &str, ask: Ask) -> Answered {
        Answered { answer: self.graph(name, &ask), closing: Batch::new() }
    }
}

impl Scripted {
    fn graph(&self, name: &str, ask: &Ask) -> Result<Answer, GraphError> {
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
fn function(ask: &Ask) -> &'static str {
    match ask {
        Ask::Add { .. } => "add-step",
        Ask::Change { .. } => "change-step",
        Ask::Remove { .. } => "remove-step",
        Ask::Run { .. } => "run",
        Ask::Replay { .. } => "replay",
        Ask::Stale => "stale",
        Ask::Show => "show",
        Ask::Diagnose { .. } => "diagnose",
        Ask::Patch { .. } => "patch",
        Ask::Export { .. } => "export-graph",
    }
}

fn unscripted(ask: &Ask) -> Result<Answer, GraphError> {
    match ask {
        Ask::Add { step, .. } | Ask::Change { step, .. } => {
            Ok(Answer::Changed(Changes { stale: vec![step.clone()], failure: None }))
        }
        Ask::Remove { .. } => Ok(Answer::Changed(Changes::default())),
        other => {
            let function = function(other);
            let fix = format!("add to the script: [[graphs]] function = \"{function}\"");
            Err(GraphError::Failed(format!("the script has no answer left for graph.{function}; {fix}")))
        }
    }
}

fn answer(ask: &Ask, given: Value) -> Result<Answer, GraphError> {
    match ask {
        Ask::Add { .. } | Ask::Change { .. } | Ask::Remove { .. } => read(given).map(Answer::Changed),
        Ask::Run { .. } | Ask::Replay { .. } => read(given).map(Answer::Replayed),
        Ask::Stale => read(given).map(Answer::Stale),
        Ask::Show => read(given).map(Answer::Steps),
        Ask::Diagnose { .. } => read(given).map(Answer::Diagnosed),
        Ask::Patch { .. } => read(given).map(Answer::Patched),
        Ask::Export { .. } => read(given).map(Answer::Text),
    }
}

fn read<T: DeserializeOwned>(given: Value) -> Result<T, GraphError> {
    serde_json::from_value(given)
        .map_err(|error| GraphError::Failed(format!("the script's answer is none of a graph: {error}")))
}
