//! Runs that several machines share: snapshots with a lifetime, and leases for the right to continue one.
//!
//! | key | holds |
//! |---|---|
//! | PREFIX`:ckp:`KEY | a snapshot |
//! | PREFIX`:ckps` | the keys of all snapshots, a sorted set |
//! | PREFIX`:lease:`KEY | the holder of the lease, for as long as it lasts |
//! | PREFIX`:fence:`KEY | the number of the last lease, and the owner of the run; never removed, or an old number would become valid |
//!
//! A lease has a fencing number that grows with each new lease. Every write has this number, and one with an old number
//! is refused: so a process that wakes up from a long sleep changes nothing any more. The owner of the run gets the
//! next lease. Another machine has to request a takeover, and owns the run once it has confirmed that; a takeover
//! without confirmation does not change the owner. Keys may be of any length and have any characters.

use crate::link::Link;
use crate::{RedisConfig, RedisError};
use longhaul_core::shared::{Lease, RunShare, SharedError};
use redis::cmd;
use std::path::Path;

/// The most keys in one list.
const KEYS_MAX: usize = 1_000;

/// The holder keeps the lease; otherwise it goes to the owner of the run, or to a machine that takes over, with the
/// next number. A takeover makes the owner only with [`CLAIM`].
const ACQUIRE: &str = "
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return {0, redis.call('PTTL', KEYS[1]), held} end
local last = redis.call('HGET', KEYS[2], 'holder')
if last and last ~= ARGV[1] and ARGV[3] == '0' then return {2, 0, last} end
if not held then redis.call('HINCRBY', KEYS[2], 'number', 1) end
if not last then redis.call('HSET', KEYS[2], 'holder', ARGV[1]) end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1, tonumber(redis.call('HGET', KEYS[2], 'number')), ARGV[1]}";

/// The holder of the newest lease becomes the owner of the run.
const CLAIM: &str = "
if redis.call('HGET', KEYS[1], 'number') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'holder', ARGV[1])
return 1";

const RELEASE: &str = "
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0";

const PUT: &str = "
if tonumber(redis.call('HGET', KEYS[2], 'number') or '0') ~= tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
redis.call('ZADD', KEYS[3], 0, ARGV[4])
return 1";

/// Snapshots and leases on a server.
pub struct SharedRuns {
    link: Link,
    prefix: String,
    ttl_ms: u64,
}

impl SharedRuns {
    /// The snapshots and leases of a server. Nothing is sent yet.
    ///
    /// # Errors
    /// [`RedisError::Config`].
    pub fn new(
        config: &RedisConfig,
        variable: &dyn Fn(&str) -> Option<String>,
        base: &Path,
    ) -> Result<Self, RedisError> {
        Ok(Self { link: config.link(variable, base)?, prefix: config.prefix.clone(), ttl_ms: config.ttl_ms() })
    }

    fn key(&self, kind: &str, key: &str) -> String {
        format!("{}:{kind}:{key}", self.prefix)
    }

    fn index(&self) -> String {
        format!("{}:ckps", self.prefix)
    }
}

#[async_trait::async_trait]
impl RunShare for SharedRuns {
    async fn acquire(&self, key: &str, holder: &str, for_ms: u64, takes_over: bool) -> Result<Lease, SharedError> {
        let mut command = cmd("EVAL");
        command.arg(ACQUIRE).arg(2).arg(self.key("lease", key)).arg(self.key("fence", key));
        command.arg(holder).arg(for_ms).arg(u8::from(takes_over));
        let (answer, number, holder): (u8, i64, String) = self.link.ask(&command).await?;
        let (key, number) = (key.to_owned(), u64::try_from(number).unwrap_or(0));
        match answer {
            1 => Ok(Lease { key, holder, fence: number }),
            0 => Err(SharedError::Held { key, holder, left_ms: number }),
            _ => Err(SharedError::Moved { key, holder }),
        }
    }

    async fn claim(&self, lease: &Lease) -> Result<(), SharedError> {
        let mut command = cmd("EVAL");
        command.arg(CLAIM).arg(1).arg(self.key("fence", &lease.key)).arg(&lease.holder).arg(lease.fence);
        let claimed: bool = self.link.ask(&command).await?;
        if claimed { Ok(()) } else { Err(SharedError::Fenced { key: lease.key.clone(), fence: lease.fence }) }
    }

    async fn release(&self, lease: &Lease) -> Result<(), SharedError> {
        let mut command = cmd("EVAL");
        command.arg(RELEASE).arg(1).arg(self.key("lease", &lease.key)).arg(&lease.holder);
        let _: i64 = self.link.ask(&command).await?;
        Ok(())
    }

    async fn put(&self, lease: &Lease, snapshot: &[u8]) -> Result<(), SharedError> {
        let mut command = cmd("EVAL");
        command.arg(PUT).arg(3).arg(self.key("ckp", &lease.key)).arg(self.key("fence", &lease.key)).arg(self.index());
        command.arg(snapshot).arg(lease.fence).arg(self.ttl_ms).arg(&lease.key);
        let written: bool = self.link.ask(&command).await?;
        if written { Ok(()) } else { Err(SharedError::Fenced { key: lease.key.clone(), fence: lease.fence }) }
    }

    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, SharedError> {
        Ok(self.link.ask(cmd("GET").arg(self.key("ckp", key))).await?)
    }

    async fn list(&self) -> Result<Vec<String>, SharedError> {
        let mut command = cmd("ZRANGEBYLEX");
        command.arg(self.index()).arg("-").arg("+").arg("LIMIT").arg(0).arg(KEYS_MAX);
        let keys: Vec<String> = self.link.ask(&command).await?;
        let mut living = Vec::new();
        for key in keys {
            let there: bool = self.link.ask(cmd("EXISTS").arg(self.key("ckp", &key))).await?;
            if there {
                living.push(key);
            } else {
                let _: i64 = self.link.ask(cmd("ZREM").arg(self.index()).arg(&key)).await?;
            }
        }
        Ok(living)
    }

    async fn delete(&self, key: &str) -> Result<(), SharedError> {
        let _: i64 = self.link.ask(cmd("DEL").arg(self.key("ckp", key))).await?;
        let _: i64 = self.link.ask(cmd("ZREM").arg(self.index()).arg(key)).await?;
        Ok(())
    }
}
