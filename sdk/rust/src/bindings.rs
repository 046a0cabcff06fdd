//! The bindings of the contract: one set of imports, and one world for each role that uses its types.
//!
//! The worlds here only group interfaces for the generator. A finished component is checked against
//! the worlds of the contract, and its unused imports are gone by then.

#![allow(
    missing_docs,
    unused_imports,
    clippy::all,
    clippy::pedantic,
    reason = "generated; the WIT files are the documentation"
)]

mod imports {
    wit_bindgen::generate!({
        path: "../../wit/v0.1",
        inline: "
            package longhaul:sdk-rust;
            world imports {
                import longhaul:plugin/types@0.1.0;
                import longhaul:plugin/message-types@0.1.0;
                import longhaul:plugin/tool-types@0.1.0;
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
                import wasi:filesystem/types@0.2.12;
                import wasi:filesystem/preopens@0.2.12;
            }
        ",
        world: "longhaul:sdk-rust/imports",
        generate_all,
        generate_unused_types: true,
        additional_derives: [PartialEq],
        additional_derives_ignore: ["stream-error"],
    });
}

pub use imports::longhaul::plugin::{
    artifact, checks, clock, conversation, decisions, delegate, graph, keyvalue, log, message_types, progress, recall,
    timer, tool_types, tools, types,
};
pub use imports::wasi::filesystem;

#[cfg(feature = "http")]
mod http_imports {
    wit_bindgen::generate!({
        path: "../../wit/v0.1",
        inline: "
            package longhaul:sdk-rust;
            world http-imports { import wasi:http/outgoing-handler@0.2.12; }
        ",
        world: "longhaul:sdk-rust/http-imports",
        generate_all,
        with: {
            "wasi:io/error@0.2.12": super::imports::wasi::io::error,
            "wasi:io/poll@0.2.12": super::imports::wasi::io::poll,
            "wasi:io/streams@0.2.12": super::imports::wasi::io::streams,
        },
    });
}
#[cfg(feature = "http")]
pub use http_imports::wasi::http;
#[cfg(feature = "http")]
pub use imports::wasi::io::streams;

/// The role of an agent: it does tasks.
pub mod agent {
    mod generated {
        wit_bindgen::generate!({
            path: "../../wit/v0.1",
            inline: "
                package longhaul:sdk-rust;
                world agent-role { export longhaul:plugin/agent@0.1.0; }
            ",
            world: "longhaul:sdk-rust/agent-role",
            pub_export_macro: true,
            export_macro_name: "export_agent",
            default_bindings_module: "longhaul_sdk::agent",
            generate_all,
            generate_unused_types: true,
            additional_derives: [PartialEq],
            with: {
                "longhaul:plugin/types@0.1.0": crate::bindings::types,
            },
        });
    }

    pub use exports::longhaul::plugin::agent::{Guest as Agent, *};
    pub use generated::export_agent;
    pub use generated::exports;
}

/// The role of a planner: it makes plans of goals and answers of results, and never does the work.
pub mod planner {
    mod generated {
        wit_bindgen::generate!({
            path: "../../wit/v0.1",
            inline: "
                package longhaul:sdk-rust;
                world planner-role { export longhaul:plugin/planner@0.1.0; }
            ",
            world: "longhaul:sdk-rust/planner-role",
            pub_export_macro: true,
            export_macro_name: "export_planner",
            default_bindings_module: "longhaul_sdk::planner",
            generate_all,
            generate_unused_types: true,
            additional_derives: [PartialEq],
            with: {
                "longhaul:plugin/types@0.1.0": crate::bindings::types,
            },
        });
    }

    pub use exports::longhaul::plugin::planner::{Guest as Planner, *};
    pub use generated::export_planner;
    pub use generated::exports;
}

/// The role of an evaluator: it judges work by a rubric.
pub mod evaluator {
    mod generated {
        wit_bindgen::generate!({
            path: "../../wit/v0.1",
            inline: "
                package longhaul:sdk-rust;
                world evaluator-role { export longhaul:plugin/evaluator@0.1.0; }
            ",
            world: "longhaul:sdk-rust/evaluator-role",
            pub_export_macro: true,
            export_macro_name: "export_evaluator",
            default_bindings_module: "longhaul_sdk::evaluator",
            generate_all,
            generate_unused_types: true,
            additional_derives: [PartialEq],
            with: {
                "longhaul:plugin/types@0.1.0": crate::bindings::types,
            },
        });
    }

    pub use exports::longhaul::plugin::evaluator::{Guest as Evaluator, *};
    pub use generated::export_evaluator;
    pub use generated::exports;
}

/// The role of a tool: it offers functions to agents, with the directories and hosts that the operator granted.
pub mod tool {
    mod generated {
        wit_bindgen::generate!({
            path: "../../wit/v0.1",
            inline: "
                package longhaul:sdk-rust;
                world tool-role { export longhaul:plugin/tool@0.1.0; }
            ",
            world: "longhaul:sdk-rust/tool-role",
            pub_export_macro: true,
            export_macro_name: "export_tool",
            default_bindings_module: "longhaul_sdk::tool",
            generate_all,
            generate_unused_types: true,
            additional_derives: [PartialEq],
            with: {
                "longhaul:plugin/types@0.1.0": crate::bindings::types,
                "longhaul:plugin/tool-types@0.1.0": crate::bindings::tool_types,
            },
        });
    }

    pub use exports::longhaul::plugin::tool::{Guest as Tool, *};
    pub use generated::export_tool;
    pub use generated::exports;
}

/// The role of a memory backend: it keeps and finds entries for the host.
pub mod memory {
    mod generated {
        wit_bindgen::generate!({
            path: "../../wit/v0.1",
            inline: "
                package longhaul:sdk-rust;
                world memory-role { export longhaul:plugin/memory@0.1.0; }
            ",
            world: "longhaul:sdk-rust/memory-role",
            pub_export_macro: true,
            export_macro_name: "export_memory",
            default_bindings_module: "longhaul_sdk::memory",
            generate_all,
            generate_unused_types: true,
            additional_derives: [PartialEq],
            with: {
                "longhaul:plugin/types@0.1.0": crate::bindings::types,
            },
        });
    }

    pub use exports::longhaul::plugin::memory::{Guest as Memory, *};
    pub use generated::export_memory;
    pub use generated::exports;
}
