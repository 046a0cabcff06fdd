//! `[checkpoints]`: the interval of the checkpoints of a run, and the server for the snapshots of resting runs.

use longhaul_core::fault::{self, Fault, bail};
use longhaul_redis::RedisConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[checkpoints]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointConfig {
    /// Steps of an agent between two checkpoints, from the first step on; an agent's own `checkpoint_every` has
    /// precedence. Default 0: only those before approvals.
    pub every: u32,
    /// The server on which resting runs are left for other machines, for its `ttl_s`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisConfig>,
    /// The time for which the lease of a run is valid without renewal, in milliseconds. Default 60,000; at least 1,000.
    #[schemars(range(min = 1_000))]
    pub lease_ms: u64,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self { every: 0, redis: None, lease_ms: 60_000 }
    }
}

impl CheckpointConfig {
    /// Refuses invalid values.
    pub fn check(&self) -> fault::Result<()> {
        if self.lease_ms < 1_000 {
            bail!("[checkpoints] lease_ms is {}; take 1000 or more", self.lease_ms);
        }
        self.redis.as_ref().map_or(Ok(()), |redis| {
            redis.check().map_err(|wrong| Fault::invalid(format!("[checkpoints.redis] {wrong}")))
        })
    }
}
