//! Tools that are called once for nothing before their call comes.
//!
//! Most of what the first call of an interpreter takes is the copying of pages that it writes. An instance
//! that waits has the time for it. What it is asked for comes from the host alone, so that it has seen
//! nobody's work when its call comes; what the interpreter keeps of it is the caller's to judge.

use crate::callee::WarmInstance;
use crate::edition::{CallContext, Exports, GuestInstance};
use crate::error::CallError;
use crate::instance::wrong_role;
use crate::plugin::Plugin;
use longhaul_core::tool::ToolCall;

impl Plugin {
    /// Calls an instance of a tool that waits, and keeps it waiting. Its answer is dropped, also a refusal.
    ///
    /// The tool is told by `attempt`, which is 0 and in a call that counts at least 1, so that it can put right at
    /// once what its next call finds.
    ///
    /// # Errors
    /// As a call that ends before it returns; the instance is gone then.
    pub async fn rehearse_tool(
        &self,
        warm_instance: WarmInstance,
        call: &ToolCall,
        settings: &serde_json::Value,
    ) -> Result<WarmInstance, CallError> {
        let about = CallContext {
            idempotency_key: "rehearsal".into(),
            remaining_ms: u32::MAX,
            attempt: 0,
            settings: settings.clone(),
        };
        self.callee
            .rehearse(warm_instance, async |store, instance| {
                let Exports::Tool(tool) = &self.exports else { return Err(wrong_role()) };
                tool.call(GuestInstance { store, instance }, call, &about).await
            })
            .await
    }
}
