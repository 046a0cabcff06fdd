//! Warm-up calls of tools before their real call.
//!
//! Most of the time of an interpreter's first call goes into the copying of pages that it writes. A waiting instance
//! has the time for it. The arguments come from the host alone, so that the instance has seen no other work when its
//! call comes; the caller has to judge what the interpreter keeps.

use crate::callee::WarmInstance;
use crate::edition::{CallContext, Exports, GuestInstance};
use crate::error::CallError;
use crate::instance::wrong_role;
use crate::plugin::Plugin;
use longhaul_core::tool::ToolCall;

impl Plugin {
    /// Calls a waiting instance of a tool, and keeps it waiting. Its answer is dropped, even a refusal.
    ///
    /// The tool recognises the warm-up by `attempt`, which is 0, and at least 1 in a real call, so that it can clean up
    /// for its next call.
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
