//! Every cap of one invocation. Each field carries its unit in its name and has a default.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limits of one invocation. Reaching one ends the call in a typed error that names the field.
///
/// Written in `longhaul.toml` under `[limits]` for all plugins, or `[agents.NAME.limits]` for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Fuel of the guest, in wasmtime's unit. Default 100 000 000 000, which is about a minute of computing. The same
    /// program uses the same fuel every time.
    pub fuel_max: u64,
    /// The sum over all linear memories of the instance, in bytes. Default 256 MiB. A guest sees `memory.grow` fail and
    /// may handle it.
    pub memory_bytes_max: u64,
    /// The sum over all tables, in elements. Default 100 000.
    pub table_elements_max: u64,
    /// Core instances of the component. Default 64, of which an interpreter uses about 40.
    pub instances_max: u32,
    /// Processor time, in milliseconds. Default 60 000. Waiting is not counted. Checked each million fuel, so a call
    /// ends up to 0.3 ms late.
    pub cpu_ms_max: u64,
    /// Wall time, in milliseconds, sleeps and models included. Default 1 800 000 (half an hour).
    pub wall_ms_max: u64,
    /// Calls of imports. Default 100 000. Entries into the host without a call do not count: a yield, the growth of a
    /// memory. The call over the cap has no effect.
    pub host_calls_max: u64,
    /// Bytes that one call of an import may move in either direction. Default 8 MiB.
    pub host_bytes_max: u64,
    /// Bytes that the host keeps for the guest between calls: conversations, logs. Default 64 MiB.
    pub host_bytes_held_max: u64,
    /// Handles that the guest may hold at once. Default 1 000. Of its own resources it may hold twice as many, in all
    /// its instances together.
    pub handles_max: u32,
    /// Lines of its log that are kept; the rest is counted and dropped. Default 1 000.
    pub log_entries_max: u32,
    /// Bytes of one line of its log; the rest is cut. Default 4 096.
    pub log_entry_bytes_max: u32,
    /// Bytes of the result. Default 4 MiB.
    pub output_bytes_max: u64,
    /// Entries of the journal. Default 1 000. Only for worlds that are journaled.
    pub journal_entries_max: u32,
    /// Bytes of the journal, content included. Default 64 MiB.
    pub journal_bytes_max: u64,
    /// Bytes of keys and values that the key-value space of a plugin may hold after a `set`. Default
    /// 256 MiB. Counted when an invocation first sets something, so invocations that set at the same
    /// time may each add up to it. Only for tools and memory backends.
    pub keyvalue_bytes_max: u64,
    /// Bytes that it may write into the directories that it was granted. Default 1 GiB. Each byte that is written
    /// counts, also over another one, and so does the growth of a file whose size is set; a new file, directory or link
    /// counts as 4 096. Space that is given back is not credited. A write over it fails in the guest with
    /// `insufficient-space`, as on a full disk. Programs that checks and tools start have a limit of the same name.
    pub disk_bytes_max: u64,
    /// Decisions that the agents and planners of a run store, all invocations together. Default 1 000. A further one is
    /// refused as data. Decisions from versions without this cap are not counted.
    pub decisions_max: u32,
    /// Bytes of those decisions. Default 8 MiB. Counted and refused as `decisions_max`.
    pub decisions_bytes_max: u64,
    /// Entries in the log of progress by the agents of a run, all invocations together. Default 2 000. A further one is
    /// refused as data. `builtin:project` always uses the default.
    pub progress_entries_max: u32,
    /// Bytes of those entries. Default 8 MiB. Counted and refused as `progress_entries_max`.
    pub progress_bytes_max: u64,
    /// Notes that the agents of a run store with `recall.remember`, all invocations together. Default 10 000. A further
    /// one is refused as data; one that replaces an earlier one does not count. The host's own memory of a run does not
    /// count.
    pub memories_max: u32,
    /// Bytes of keys and notes, with the earlier values that each keeps. Default 64 MiB. Counted and refused as
    /// `memories_max`.
    pub memories_bytes_max: u64,
    /// Replies of models. Default 200.
    pub model_calls_max: u32,
    /// Tokens, input and output, of it and its sub-agents. Default 2 000 000.
    pub tokens_max: u64,
    /// Sub-agents that it may delegate to, in all. Default 32.
    pub delegations_max: u32,
    /// The depth of delegation, counted from the harness's request: at 3, the default, there may be three delegations
    /// in a chain below an agent of the run.
    pub delegation_depth_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel_max: 100_000_000_000,
            memory_bytes_max: 256 << 20,
            table_elements_max: 100_000,
            instances_max: 64,
            cpu_ms_max: 60_000,
            wall_ms_max: 1_800_000,
            host_calls_max: 100_000,
            host_bytes_max: 8 << 20,
            host_bytes_held_max: 64 << 20,
            handles_max: 1_000,
            log_entries_max: 1_000,
            log_entry_bytes_max: 4_096,
            output_bytes_max: 4 << 20,
            journal_entries_max: 1_000,
            journal_bytes_max: 64 << 20,
            keyvalue_bytes_max: 256 << 20,
            disk_bytes_max: 1 << 30,
            decisions_max: 1_000,
            decisions_bytes_max: 8 << 20,
            progress_entries_max: 2_000,
            progress_bytes_max: 8 << 20,
            memories_max: 10_000,
            memories_bytes_max: 64 << 20,
            model_calls_max: 200,
            tokens_max: 2_000_000,
            delegations_max: 32,
            delegation_depth_max: 3,
        }
    }
}
