//! The table of a model with `provider = "local"` and its defaults. Nothing is checked here: whether the file exists is
//! checked where the model is made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A table `[models.NAME]` with `provider = "local"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LocalConfig {
    /// The GGUF file, or the name of a model that was pulled. Default `smollm2`.
    pub file: PathBuf,
    /// The window, in tokens. Default 8 192. It is an error when the file or the memory has less, so
    /// that a conversation is cut the same way on every machine.
    pub context_tokens_max: u32,
    /// Memory of the child, in bytes. Default 1 GiB. The child keeps to it itself.
    pub memory_bytes_max: u64,
    /// Threads of the child. Default 2. Its threads spin while they wait: give no more than there are
    /// cores to spare.
    pub threads: usize,
    /// Lowers the child's priority, 0 to 19. Default 10.
    pub nice: u8,
    /// Time without a request after which the child ends, in milliseconds. Default 300 000.
    pub idle_ms_max: u64,
    /// Longest time to load the file, in milliseconds. Default 60 000.
    pub load_ms_max: u64,
    /// Longest time for one reply, in milliseconds. Default 600 000. The time in the queue is not in it.
    pub reply_ms_max: u64,
}

impl Default for LocalConfig {
    fn default() -> Self {
        Self {
            file: PathBuf::from("smollm2"),
            context_tokens_max: 8_192,
            memory_bytes_max: 1 << 30,
            threads: 2,
            nice: 10,
            idle_ms_max: 300_000,
            load_ms_max: 60_000,
            reply_ms_max: 600_000,
        }
    }
}
