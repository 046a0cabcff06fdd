//! The types that the pages of configuration files describe, and the places of their sections.
//!
//! A new table of a file needs a section here, and its source among [`SOURCES`].

/// A file and its page.
pub(crate) struct File {
    /// The page, below `reference`.
    pub(crate) page: &'static str,
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Headings, types, and sentences before the keys.
    pub(crate) sections: &'static [(&'static str, &'static str, &'static str)],
}

pub(crate) const FILES: [File; 3] = [
    File {
        page: "longhaul-toml.md",
        name: "longhaul.toml",
        about: "The operator's file, at the top of a project, of at most 1 MiB. An unknown key is an error that suggests the right\nspelling.",
        sections: &[
            (
                "longhaul.toml",
                "Config",
                "The tables of the file. Reading it needs `[project]` with a name; a run also needs `[agents.code]`.",
            ),
            ("[project]", "ProjectConfig", ""),
            ("[run]", "RunConfig", ""),
            (
                "[run.limits]",
                "HarnessLimits",
                "The caps of a run. `[ask.limits]` has the same keys, with some other defaults for an ask.",
            ),
            ("needs", "Need", "The table `needs` of `[run]`."),
            ("[plan]", "PlanConfig", ""),
            ("[ask]", "AskConfig", ""),
            (
                "[limits]",
                "Limits",
                "The limits of one invocation. A table `limits` below a table that names a plugin changes the keys that it has.",
            ),
            (
                "[context]",
                "ContextRules",
                "The rules that trim conversations. A table `context` below an agent's table changes the keys that it has.",
            ),
            ("[compile]", "CompileLimits", "The limits of compiling one plugin."),
            (
                "[planner], [evaluator], [agents.NAME], [tools.NAME], [memory.plugin]",
                "PluginConfig",
                "A table that names the plugin of a part, and the operator's grants to it.",
            ),
            ("directories", "DirectoryConfig", "An entry of `directories`."),
            ("secrets", "SecretConfig", "An entry of `secrets`."),
            (
                "[tools.NAME.approval], [mcp.NAME.approval]",
                "ApprovalPolicy",
                "The strictest of all matching rules decides.",
            ),
            ("rules", "PolicyRule", "An entry of `rules` of an approval policy."),
            (
                "[mcp.NAME]",
                "McpConfig",
                "One MCP server. It has a `command` or a `url`. A variable in `env` is a text, `{ secret = \"NAME\" }` or `{ from = \"VARIABLE\" }`.",
            ),
            (
                "[models.NAME]",
                "ModelConfig",
                "The keys of every model, besides `provider` and the keys of that provider.",
            ),
            ("provider = \"openai\"", "OpenAiConfig", ""),
            ("provider = \"anthropic\"", "AnthropicConfig", ""),
            ("retry", "RetryConfig", "The table `retry` of an `openai` or `anthropic` model."),
            ("provider = \"local\"", "LocalConfig", "Needs a program that was built with the feature `local-model`."),
            ("provider = \"recorded\"", "RecordedConfig", ""),
            ("provider = \"route\"", "RouteConfig", ""),
            (
                "[checks]",
                "NativeCheck",
                "An entry of `[checks]`: `NAME = { argv = [...] }`, or `NAME = [...]` for the words alone.",
            ),
            ("[telemetry]", "TelemetryConfig", ""),
            ("[memory]", "MemoryConfig", ""),
            ("[memory.redis], [checkpoints.redis]", "RedisConfig", ""),
            ("[checkpoints]", "CheckpointConfig", ""),
            ("[protect]", "ProtectConfig", ""),
            ("[notify]", "NotifyConfig", ""),
            ("[notify.email]", "EmailConfig", ""),
        ],
    },
    File {
        page: "server-toml.md",
        name: "server.toml",
        about: "The settings of `longhaul serve`, in the data directory, of at most 64 KiB. All of it may be left out. SIGHUP reads it\nagain.",
        sections: &[
            ("[server]", "ServerSettings", ""),
            (
                "[scheduler]",
                "SchedulerSettings",
                "The limits of the tasks of schedules, also for `longhaul schedule work`.",
            ),
            ("[notify]", "NotifyConfig", "Notifications about tasks of schedules that failed for good."),
            ("[notify.email]", "EmailConfig", ""),
            ("[store]", "PostgresConfig", "See [State in PostgreSQL](../operate/postgres.md)."),
            (
                "[store.content]",
                "ContentConfig",
                "See [Content outside of the database](../operate/postgres.md#content-outside-of-the-database).",
            ),
            (
                "[worker]",
                "WorkerSettings",
                "With this table, which may be empty and needs `[store]`, a server works on runs while it stands by: see\n[Several machines at work](../operate/workers.md).",
            ),
        ],
    },
    File {
        page: "resources-toml.md",
        name: "resources.toml",
        about: "The limits of child processes, in the data directory, of at most 1 MiB. A changed file is read again while the host\nruns.",
        sections: &[
            ("resources.toml", "ResourceSettings", ""),
            ("[reserve]", "Reserve", ""),
            (
                "[compiler], [program], [kept], [mcp-server], [model]",
                "PartialLimits",
                "The limits of a tree of processes. A value exceeds a limit when it is strictly greater.",
            ),
        ],
    },
];

/// The sources of the types, below `host/crates`.
pub(crate) const SOURCES: [&str; 35] = [
    "config/src/tables.rs",
    "config/src/part.rs",
    "config/src/secrets.rs",
    "config/src/memory.rs",
    "config/src/checkpoints.rs",
    "config/src/notify.rs",
    "config/src/protect.rs",
    "config/src/server.rs",
    "config/src/worker.rs",
    "config/src/resources.rs",
    "core/src/limits.rs",
    "core/src/context.rs",
    "core/src/capacity.rs",
    "core/src/grant.rs",
    "harness/src/limits.rs",
    "harness/src/input.rs",
    "sandbox/src/compile_limits.rs",
    "sandbox/src/level.rs",
    "approval/src/policy.rs",
    "mcp/src/config.rs",
    "models/src/config.rs",
    "models/src/openai/config.rs",
    "models/src/anthropic/config.rs",
    "models/src/local/config.rs",
    "models/src/route.rs",
    "models/src/retry.rs",
    "models/src/prefill.rs",
    "worktree/src/native/check.rs",
    "judge/src/kind.rs",
    "telemetry/src/config.rs",
    "postgres/src/config.rs",
    "objects/src/config.rs",
    "redis/src/config.rs",
    "resources/src/admission.rs",
    "resources/src/limits.rs",
];
