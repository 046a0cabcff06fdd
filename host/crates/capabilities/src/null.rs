//! Null implementations of the services that a guest's world does not import.
//!
//! Each method returns at once that it has nothing, or refuses. None waits, stores anything or reaches the network.

use crate::setup::Services;
use longhaul_core::approval::{Approvals, CallDecision, Intent, Undecided};
use longhaul_core::graph::{GraphError, GraphOperation, Graphs, StagedAnswer};
use longhaul_core::memory::{Embedded, Trust};
use longhaul_core::model::{Model, Models};
use longhaul_core::store::{Batch, Key, Row, Store, StoreError, Table};
use longhaul_core::tool::{
    CheckError, CheckInfo, Checks, Delegate, DelegateError, Delegated, Interrupted, ToolCall, ToolError, ToolInfo,
    ToolOutput, Tools, Verification,
};
use longhaul_core::watch::Watch;
use longhaul_core::work::{CheckReport, Task};
use longhaul_core::{Clock, Digest, InvocationId, Outage};
use std::sync::Arc;

/// Null implementations of every service of a guest.
pub struct NullServices;

/// Null services and the clock. A guest can still reach the network itself if a grant allows it.
pub fn services(clock: Arc<dyn Clock>) -> Services {
    let null = Arc::new(NullServices);
    let memory = Arc::new(Embedded::new(null.clone(), Arc::clone(&clock)));
    Services {
        models: null.clone(),
        tools: null.clone(),
        checks: null.clone(),
        delegate: null.clone(),
        graphs: null.clone(),
        approvals: null.clone(),
        supervisor: Arc::new(longhaul_core::supervisor::Unsupervised),
        store: null.clone(),
        memory,
        clock,
        watch: null,
        exchange: None,
    }
}

/// No call passes without approval, and no person could give one.
#[async_trait::async_trait]
impl Approvals for NullServices {
    fn is_free(&self, _intent: &Intent) -> bool {
        false
    }

    async fn decide(&self, intent: &Intent) -> Result<(CallDecision, Batch), Undecided> {
        let reason = format!("there is nobody who could approve of `{}.{}`", intent.call.tool, intent.call.function);
        Err(Undecided::Unavailable(Outage { reason, retry_after_ms: None }))
    }

    fn withdraw(&self, _intent: &Intent) -> Batch {
        Batch::new()
    }
}

impl Models for NullServices {
    fn model(&self, _name: &str) -> Option<Arc<dyn Model>> {
        None
    }
}

impl Watch for NullServices {
    fn heard(&self, _invocation: &InvocationId, _text: &str) {}
}

#[async_trait::async_trait]
impl Tools for NullServices {
    async fn list(&self) -> Result<Vec<ToolInfo>, ToolError> {
        Ok(Vec::new())
    }

    async fn prepare(&self, call: &ToolCall, _key: &str, _attempt: u32) -> Result<String, ToolError> {
        Err(ToolError::UnknownFunction(call.tool.clone()))
    }

    async fn verify(
        &self,
        call: &ToolCall,
        _prepared: &str,
        _key: &str,
        _attempt: u32,
    ) -> Result<Verification, ToolError> {
        Err(ToolError::UnknownFunction(call.tool.clone()))
    }

    async fn call(&self, call: &ToolCall, _key: &str, _attempt: u32) -> Result<ToolOutput, ToolError> {
        Err(ToolError::UnknownFunction(call.tool.clone()))
    }
}

#[async_trait::async_trait]
impl Checks for NullServices {
    fn list(&self) -> Vec<CheckInfo> {
        Vec::new()
    }

    async fn run(&self, name: &str) -> Result<CheckReport, CheckError> {
        Err(CheckError::UnknownCheck(name.to_owned()))
    }
}

#[async_trait::async_trait]
impl Delegate for NullServices {
    async fn run(&self, _: InvocationId, agent: &str, _: Task, _: Trust) -> Result<Delegated, Interrupted> {
        Ok(Delegated::refused(DelegateError::UnknownAgent(agent.to_owned())))
    }
}

#[async_trait::async_trait]
impl Graphs for NullServices {
    async fn ask(&self, _owner: &InvocationId, _name: &str, _ask: GraphOperation) -> StagedAnswer {
        GraphError::Failed("nobody keeps graphs here".to_owned()).into()
    }
}

#[async_trait::async_trait]
impl Store for NullServices {
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
