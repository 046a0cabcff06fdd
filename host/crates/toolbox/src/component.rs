//! Tools that are components: their grants and settings, and the trait through which their exports are called.
//!
//! A component is called in an instance, whose engine links capabilities, and a guest reaches its tools through those.
//! So this crate makes no instance: [`ComponentCalls`] is implemented where plugins are loaded.

use longhaul_config::secrets::SecretConfig;
use longhaul_core::InvocationId;
use longhaul_core::grant::Grants;
use longhaul_core::supervisor::Supervisor;
use longhaul_core::tool::{ToolAttempt, ToolCall, ToolError, ToolInfo, ToolOutput, Verification};
use longhaul_egress::SecretPlaceholders;
use serde_json::Value;
use std::sync::Arc;

/// A tool that is a component, as `longhaul.toml` grants it.
pub struct ComponentTool {
    /// The table in `longhaul.toml`.
    pub table: String,
    /// Its grants.
    pub grants: Grants,
    /// The operator's settings for it, an object.
    pub settings: Value,
    /// Secrets that it may send.
    pub secrets: Vec<SecretConfig>,
    /// True when the operator vouches for its effects.
    pub confirm_effects: bool,
}

/// The guest that one call of a tool needs.
pub struct ToolGuest {
    /// The table of the tool.
    pub table: String,
    /// The invocation that calls the tool.
    pub caller: InvocationId,
    /// Its grants for this call.
    pub grants: Grants,
    /// Secrets that it may send, and their placeholders.
    pub placeholders: Arc<SecretPlaceholders>,
    /// The supervisor, which counts what it sends.
    pub supervisor: Arc<dyn Supervisor>,
}

/// The answer of a component, and its cost.
pub struct ComponentAnswer<T> {
    /// The answer, or the reason why there is none.
    pub answer: Result<T, ToolError>,
    /// The fuel that its guest used.
    pub fuel: u64,
}

/// Calls the exports of tools for one invocation, each call in a fresh instance.
#[async_trait::async_trait]
pub trait ComponentCalls: Send + Sync {
    /// The description of a tool by itself.
    ///
    /// # Errors
    /// Every [`ToolError`].
    async fn describe(&self, guest: ToolGuest, settings: &Value) -> Result<ToolInfo, ToolError>;

    /// The note that `verify` will need.
    ///
    /// # Errors
    /// When no such tool is loaded.
    async fn prepare(
        &self,
        guest: ToolGuest,
        call: &ToolCall,
        attempt: ToolAttempt<'_>,
    ) -> Result<ComponentAnswer<String>, ToolError>;

    /// Finds out if an interrupted call has happened.
    ///
    /// # Errors
    /// When no such tool is loaded.
    async fn verify(
        &self,
        guest: ToolGuest,
        call: &ToolCall,
        prepared: &str,
        attempt: ToolAttempt<'_>,
    ) -> Result<ComponentAnswer<Verification>, ToolError>;

    /// Executes a call.
    ///
    /// # Errors
    /// When no such tool is loaded.
    async fn call(
        &self,
        guest: ToolGuest,
        call: &ToolCall,
        attempt: ToolAttempt<'_>,
    ) -> Result<ComponentAnswer<ToolOutput>, ToolError>;
}
