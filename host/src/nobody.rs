//! Services that are not there: what a guest that may not ask for them is linked with.

use longhaul_capabilities::{Models, Services, Watch};
use longhaul_core::approval::{Approvals, Decision, Intent, Undecided};
use longhaul_core::graph::{Answered, Ask, GraphError, Graphs};
use longhaul_core::memory::{Embedded, Trust};
use longhaul_core::model::Model;
use longhaul_core::store::{Batch, Key, Row, Store, StoreError, Table};
use longhaul_core::tool::{
    BrokenOff, CheckError, CheckInfo, Checks, Delegate, DelegateError, Delegated, ToolCall, ToolError, ToolInfo,
    ToolOutput, Tools, Verification,
};
use longhaul_core::work::{CheckReport, Task};
use longhaul_core::{Clock, Digest, InvocationId, Outage};
use std::sync::Arc;

/// Nobody answers.
pub struct Nobody;

/// Nobody for every service but the clock, and the network itself where a grant allows it.
pub fn services(clock: Arc<dyn Clock>) -> Services {
    let nobody = Arc::new(Nobody);
    let memory = Arc::new(Embedded::new(nobody.clone(), Arc::clone(&clock)));
    Services {
        models: nobody.clone(),
        tools: nobody.clone(),
        checks: nobody.clone(),
        delegate: nobody.clone(),
        graphs: nobody.clone(),
        approvals: nobody.clone(),
        supervisor: Arc::new(longhaul_core::supervisor::Unsupervised),
        store: nobody.clone(),
        memory,
        clock,
        watch: nobody,
        exchange: None,
    }
}

/// Where there is nobody to ask, nothing passes.
#[async_trait::async_trait]
impl Approvals for Nobody {
    fn is_free(&self, _intent: &Intent) -> bool {
        false
    }

    async fn decide(&self, intent: &Intent) -> Result<(Decision, Batch), Undecided> {
        let reason = format!("there is nobody who could approve of `{}.{}`", intent.call.tool, intent.call.function);
        Err(Undecided::Unavailable(Outage { reason, retry_after_ms: None }))
    }

    fn withdraw(&self, _intent: &Intent) -> Batch {
        Batch::new()
    }
}

impl Models for Nobody {
    fn model(&self, _name: &str) -> Option<Arc<dyn Model>> {
        None
    }
}

impl Watch for Nobody {
    fn heard(&self, _invocation: &InvocationId, _text: &str) {}
}

#[async_trait::async_trait]
impl Tools for Nobody {
    async fn list(&self) -> Result<Vec<ToolInfo>, ToolError> {
        Ok(Vec::new())
    }

    async fn prepare(&self, call: &ToolCall) -> Result<String, ToolError> {
        Err(ToolError::UnknownFunction(call.tool.clone()))
    }

    async fn verify(&self, call: &ToolCall, _prepared: &str) -> Result<Verification, ToolError> {
        Err(ToolError::UnknownFunction(call.tool.clone()))
    }

    async fn call(&self, call: &ToolCall, _key: &str, _attempt: u32) -> Result<ToolOutput, ToolError> {
        Err(ToolError::UnknownFunction(call.tool.clone()))
    }
}

#[async_trait::async_trait]
impl Checks for Nobody {
    fn list(&self) -> Vec<CheckInfo> {
        Vec::new()
    }

    async fn run(&self, name: &str) -> Result<CheckReport, CheckError> {
        Err(CheckError::UnknownCheck(name.to_owned()))
    }
}

#[async_trait::async_trait]
impl Delegate for Nobody {
    async fn run(&self, _: InvocationId, agent: &str, _: Task, _: Trust) -> Result<Delegated, BrokenOff> {
        Ok(Delegated::refused(DelegateError::UnknownAgent(agent.to_owned())))
    }
}

#[async_trait::async_trait]
impl Graphs for Nobody {
    async fn ask(&self, _owner: &InvocationId, _name: &str, _ask: Ask) -> Answered {
        GraphError::Failed("nobody keeps graphs here".to_owned()).into()
    }
}

#[async_trait::async_trait]
impl Store for Nobody {
    fn get(&self, _: Table, _: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        Err(no_store())
    }

    fn scan(&self, _: Table, _: &Key, _: Option<&[u8]>, _: usize) -> Result<Vec<Row>, StoreError> {
        Err(no_store())
    }

    fn blob(&self, _: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Err(no_store())
    }

    async fn commit(&self, _: Batch) -> Result<(), StoreError> {
        Err(no_store())
    }
}

fn no_store() -> StoreError {
    StoreError::Failed { path: "no data directory".to_owned(), detail: "nothing is kept here".to_owned() }
}
