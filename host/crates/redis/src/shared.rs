//! Runs that several machines know of: snapshots with a lifetime, and leases that say who may go on with one.
//!
//! | key | holds |
//! |---|---|
//! | PREFIX`:ckp:`KEY | a snapshot |
//! | PREFIX`:ckps` | the keys of all snapshots, a sorted set |
//! | PREFIX`:lease:`KEY | who works on it, for as long as the lease lasts |
//! | PREFIX`:fence:`KEY | number of the last lease, and who has the run; never removed, or an old number became valid |
//!
//! A lease has a fencing number that grows with each new lease. Whoever writes says its number, and a number that is
//! not the newest writes nothing: so a process that comes back from a long sleep changes nothing any more. Who has the
//! run gets the next lease. Another one has to say that it takes over, and has the run once it says that it did: one
//! that takes over and comes to nothing has it no more than before. Keys may be of any length and have any characters.

use crate::link::Link;
use crate::{RedisConfig, RedisError};
use redis::cmd;
use std::path::Path;

/// Keys that are listed at once.
const KEYS_MAX: usize = 1_000;

/// Who holds it keeps it; else it is given to who has the run, or takes over, with the next number. Who takes over has
/// the run only with [`CLAIM`].
const ACQUIRE: &str = "
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return {0, redis.call('PTTL', KEYS[1]), held} end
local last = redis.call('HGET', KEYS[2], 'holder')
if last and last ~= ARGV[1] and ARGV[3] == '0' then return {2, 0, last} end
if not held then redis.call('HINCRBY', KEYS[2], 'number', 1) end
if not last then redis.call('HSET', KEYS[2], 'holder', ARGV[1]) end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1, tonumber(redis.call('HGET', KEYS[2], 'number')), ARGV[1]}";

/// Whose lease is the newest has the run.
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

/// The right to go on with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The run.
    pub key: String,
    /// Who has it.
    pub holder: String,
    /// Grows with each new lease.
    pub fence: u64,
}

/// Snapshots and leases on a server.
pub struct SharedRuns {
    link: Link,
    prefix: String,
    ttl_ms: u64,
}

impl SharedRuns {
    /// Those of a server. Nothing is sent yet.
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

    /// Takes the right to go on with a run for so long, or renews it. Who takes over has the run once it says so with
    /// [`Self::claim`].
    ///
    /// # Errors
    /// [`RedisError::Held`] when somebody else has it, and [`RedisError::Moved`] when somebody else has the run and
    /// this holder does not take over.
    pub async fn acquire(&self, key: &str, holder: &str, for_ms: u64, takes_over: bool) -> Result<Lease, RedisError> {
        let mut command = cmd("EVAL");
        command.arg(ACQUIRE).arg(2).arg(self.key("lease", key)).arg(self.key("fence", key));
        command.arg(holder).arg(for_ms).arg(u8::from(takes_over));
        let (answer, number, holder): (u8, i64, String) = self.link.ask(&command).await?;
        let (key, number) = (key.to_owned(), u64::try_from(number).unwrap_or(0));
        match answer {
            1 => Ok(Lease { key, holder, fence: number }),
            0 => Err(RedisError::Held { key, holder, left_ms: number }),
            _ => Err(RedisError::Moved { key, holder }),
        }
    }

    /// Says that the run is here from now on: nobody else goes on with it who does not take over.
    ///
    /// # Errors
    /// [`RedisError::Fenced`] when somebody else has taken the run over since.
    pub async fn claim(&self, lease: &Lease) -> Result<(), RedisError> {
        let mut command = cmd("EVAL");
        command.arg(CLAIM).arg(1).arg(self.key("fence", &lease.key)).arg(&lease.holder).arg(lease.fence);
        let claimed: bool = self.link.ask(&command).await?;
        if claimed { Ok(()) } else { Err(RedisError::Fenced { key: lease.key.clone(), fence: lease.fence }) }
    }

    /// Gives the right back, if it is still this holder's.
    ///
    /// # Errors
    /// [`RedisError::Unavailable`].
    pub async fn release(&self, lease: &Lease) -> Result<(), RedisError> {
        let mut command = cmd("EVAL");
        command.arg(RELEASE).arg(1).arg(self.key("lease", &lease.key)).arg(&lease.holder);
        let _: i64 = self.link.ask(&command).await?;
        Ok(())
    }

    /// Keeps a snapshot, in place of the one before.
    ///
    /// # Errors
    /// [`RedisError::Fenced`] when somebody else has taken the run over since.
    pub async fn put(&self, lease: &Lease, snapshot: &[u8]) -> Result<(), RedisError> {
        let mut command = cmd("EVAL");
        command.arg(PUT).arg(3).arg(self.key("ckp", &lease.key)).arg(self.key("fence", &lease.key)).arg(self.index());
        command.arg(snapshot).arg(lease.fence).arg(self.ttl_ms).arg(&lease.key);
        let written: bool = self.link.ask(&command).await?;
        if written { Ok(()) } else { Err(RedisError::Fenced { key: lease.key.clone(), fence: lease.fence }) }
    }

    /// The snapshot of a run, if it is not over.
    ///
    /// # Errors
    /// [`RedisError::Unavailable`].
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, RedisError> {
        self.link.ask(cmd("GET").arg(self.key("ckp", key))).await
    }

    /// Runs that have a snapshot, at most 1,000, in the order of their keys.
    ///
    /// # Errors
    /// [`RedisError::Unavailable`].
    pub async fn list(&self) -> Result<Vec<String>, RedisError> {
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

    /// Removes a snapshot, when its run is over.
    ///
    /// # Errors
    /// [`RedisError::Unavailable`].
    pub async fn delete(&self, key: &str) -> Result<(), RedisError> {
        let _: i64 = self.link.ask(cmd("DEL").arg(self.key("ckp", key))).await?;
        let _: i64 = self.link.ask(cmd("ZREM").arg(self.index()).arg(key)).await?;
        Ok(())
    }
}
