//! The only `bindgen!`: the types and host traits of the contract, one set for all worlds.
//!
//! Nothing is decided here. A hidden world imports and exports every interface, so that a task of the
//! `agent` interface and one of `delegate` are one Rust type; which of them a plugin gets is the
//! linker's affair, world by world, in the engine.

mod convert;
mod graph;

mod generated {
    #![allow(missing_docs, unreachable_pub, reason = "generated; the WIT files are the documentation")]
    #![allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]

    wasmtime::component::bindgen!({
        path: "wit/v0.1",
        inline: "
            package longhaul:host;

            world host {
                import longhaul:plugin/conversation@0.1.0;
                import longhaul:plugin/tools@0.1.0;
                import longhaul:plugin/checks@0.1.0;
                import longhaul:plugin/delegate@0.1.0;
                import longhaul:plugin/recall@0.1.0;
                import longhaul:plugin/decisions@0.1.0;
                import longhaul:plugin/progress@0.1.0;
                import longhaul:plugin/artifact@0.1.0;
                import longhaul:plugin/graph@0.1.0;
                import longhaul:plugin/keyvalue@0.1.0;
                import longhaul:plugin/clock@0.1.0;
                import longhaul:plugin/timer@0.1.0;
                import longhaul:plugin/log@0.1.0;
                export longhaul:plugin/planner@0.1.0;
                export longhaul:plugin/agent@0.1.0;
                export longhaul:plugin/evaluator@0.1.0;
                export longhaul:plugin/tool@0.1.0;
                export longhaul:plugin/memory@0.1.0;
            }
        ",
        world: "longhaul:host/host",
        imports: { default: async | trappable },
        exports: { default: async },
        additional_derives: [serde::Serialize, serde::Deserialize],
    });
}

pub use generated::exports::longhaul::plugin as exports;
pub use generated::longhaul::plugin as imports;
pub use imports::{message_types, tool_types, types};

/// The interfaces of the contract, as they are named in a component.
pub const PACKAGE: &str = "longhaul:plugin";

/// The version of the contract that these bindings are of.
pub const VERSION: &str = "0.1.0";
