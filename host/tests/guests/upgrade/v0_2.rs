//! The edition of the made-up contract 0.2, as a host would bring one: its bindings, what it links, and its
//! words in those of the host.
//!
//! Unchanged interfaces use the bindings of 0.1. Changed ones are converted, and the host's own implementations do the
//! work.

use async_trait::async_trait;
use exports::tool;
use imports::tool_types;
use longhaul_bindings::imports::log as log_0_1;
use longhaul_bindings::types;
use longhaul_capabilities::Ctx;
use longhaul_core::Outage;
use longhaul_core::journal::EffectClass;
use longhaul_core::tool::{FunctionInfo, ToolCall, ToolError, ToolInfo, ToolOutput, Verification};
use longhaul_engine::Role;
use longhaul_engine::edition::{CallContext, Edition, ExportAnswer, Exports, GuestInstance, ToolExports};
use wasmtime::component::{HasSelf, InstancePre, Linker};

mod generated {
    #![allow(missing_docs, unreachable_pub, reason = "generated; the WIT file is the documentation")]
    #![allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]

    wasmtime::component::bindgen!({
        path: "tests/guests/upgrade/v0.2",
        world: "tool-plugin",
        imports: { default: async | trappable },
        exports: { default: async },
        with: { "longhaul:plugin/types@0.2.0": longhaul_bindings::types },
    });
}

use generated::exports::longhaul::plugin as exports;
use generated::longhaul::plugin as imports;

/// The made-up contract 0.2.
pub struct V0_2;

impl Edition for V0_2 {
    fn version(&self) -> &str {
        "0.2.0"
    }

    fn link(&self, _: Role, linker: &mut Linker<Ctx>) -> wasmtime::Result<()> {
        imports::log::add_to_linker::<_, HasSelf<Ctx>>(linker, |ctx| ctx)?;
        imports::meter::add_to_linker::<_, HasSelf<Ctx>>(linker, |ctx| ctx)
    }

    fn exports(&self, role: Role, pre: &InstancePre<Ctx>) -> wasmtime::Result<Exports> {
        match role {
            Role::Tool => Ok(Exports::Tool(Box::new(tool::GuestIndices::new(pre)?))),
            other => Err(wasmtime::Error::msg(format!("0.2 has no {}", other.name()))),
        }
    }
}

// The exports of a tool.

#[async_trait]
impl ToolExports for tool::GuestIndices {
    async fn describe(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        _: &serde_json::Value,
    ) -> ExportAnswer<ToolInfo, ToolError> {
        Ok(Ok(info(self.load(&mut *store, instance)?.call_describe(store).await?)))
    }

    async fn prepare(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        ToolCall { function, arguments, .. }: &ToolCall,
        _: &CallContext,
    ) -> ExportAnswer<String, ToolError> {
        let answer = self.load(&mut *store, instance)?.call_prepare(store, function, arguments).await?;
        Ok(answer.map_err(error))
    }

    async fn verify(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        ToolCall { function, arguments, .. }: &ToolCall,
        prepared: &str,
        _: &CallContext,
    ) -> ExportAnswer<Verification, ToolError> {
        let answer =
            self.load(&mut *store, instance)?.call_verify(store, function, arguments, &prepared.to_owned()).await?;
        Ok(answer.map(verification).map_err(error))
    }

    async fn call(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        ToolCall { function, arguments, .. }: &ToolCall,
        about: &CallContext,
    ) -> ExportAnswer<ToolOutput, ToolError> {
        let context = tool::CallContext {
            idempotency_key: about.idempotency_key.clone(),
            remaining_ms: about.remaining_ms,
            attempt: about.attempt,
            settings: about.settings.to_string(),
            // The host has no word for it yet.
            caller: "somebody".to_owned(),
        };
        let answer = self.load(&mut *store, instance)?.call_call(store, function, arguments, &context).await?;
        Ok(answer.map(output).map_err(error))
    }
}

fn info(info: tool_types::ToolInfo) -> ToolInfo {
    let function = |one: tool_types::Function| FunctionInfo {
        name: one.name,
        description: format!("{} At most {} ms.", one.description, one.takes_ms_max),
        parameters: one.parameters,
        effect: match one.effect {
            tool_types::Effect::ReadOnly => EffectClass::ReadOnly,
            tool_types::Effect::Idempotent => EffectClass::Idempotent,
            tool_types::Effect::Verifiable => EffectClass::Verifiable,
            tool_types::Effect::Acts => EffectClass::Acts,
        },
        claim: None,
    };
    ToolInfo {
        id: info.id,
        description: format!("{} Version {}.", info.description, info.version),
        functions: info.functions.into_iter().map(function).collect(),
    }
}

fn output(result: tool_types::ToolResult) -> ToolOutput {
    ToolOutput { output: result.output, truncated: result.truncated }
}

fn verification(told: tool::Verification) -> Verification {
    match told {
        tool::Verification::Happened(result) => Verification::Happened(output(result)),
        tool::Verification::DidNotHappen => Verification::DidNotHappen,
        tool::Verification::Unknown(text) => Verification::Unknown(text),
    }
}

fn error(error: tool_types::ToolError) -> ToolError {
    use tool_types::ToolError as Bound;
    match error {
        Bound::UnknownFunction(name) => ToolError::UnknownFunction(name),
        Bound::InvalidArguments(text) => ToolError::InvalidArguments(text),
        Bound::Denied(denial) => ToolError::Denied(denial.into()),
        Bound::Limit(hit) => ToolError::Limit(hit.into()),
        Bound::Unavailable(outage) => ToolError::Unavailable(outage.into()),
        Bound::TimedOut(ms) => ToolError::TimedOut(ms),
        Bound::Failed(text) => ToolError::Failed(text),
        Bound::Busy(ms) => ToolError::Unavailable(Outage { reason: "it is busy".to_owned(), retry_after_ms: Some(ms) }),
    }
}

// The imports that it may have.

impl imports::log::Host for Ctx {
    async fn write(&mut self, line: imports::log::Line) -> wasmtime::Result<()> {
        use imports::log::Level;
        let level = match line.level {
            Level::Trace => log_0_1::Level::Trace,
            Level::Debug => log_0_1::Level::Debug,
            Level::Info => log_0_1::Level::Info,
            Level::Warn => log_0_1::Level::Warn,
            Level::Error => log_0_1::Level::Error,
        };
        log_0_1::Host::write(self, level, format!("{}: {}", line.topic, line.text)).await
    }
}

impl imports::meter::Host for Ctx {
    async fn count(&mut self, name: String, by: u32) -> wasmtime::Result<Result<(), types::LimitHit>> {
        log_0_1::Host::write(self, log_0_1::Level::Debug, format!("counted {by} {name}")).await?;
        Ok(Ok(()))
    }
}
