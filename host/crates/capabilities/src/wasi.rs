//! WASI: deterministic for pure worlds, granted for acting worlds.
//!
//! A pure guest has a clock that follows its journal, randomness from its seed, output that goes to
//! its log, and no arguments, variables, directories or sockets. A tool or a memory backend has the
//! real clock and fresh randomness, and the directories that it was granted, through cap-std.

mod link;

pub use link::add_to_linker;

use crate::log::LogBook;
use crate::pipe::PRINT_BYTES_MAX;
use crate::setup::InvocationSetup;
use crate::time::GuestClock;
use bytes::Bytes;
use longhaul_core::grant::Access;
use rand::SeedableRng;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};
use wasmtime_wasi::{FsPerms, HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxBuilder};

/// Bytes of one read of randomness.
const RANDOM_BYTES_MAX: u64 = 1 << 20;

pub(crate) fn context(
    setup: &InvocationSetup,
    clock: &Arc<GuestClock>,
    log: &LogBook,
) -> Result<WasiCtx, std::io::Error> {
    let mut wasi = WasiCtxBuilder::new();
    match &setup.console {
        Some(console) => console.connect(&mut wasi),
        None => {
            wasi.stdout(Printed { level: "stdout", log: log.clone() });
            wasi.stderr(Printed { level: "stderr", log: log.clone() });
        }
    }
    wasi.max_random_size(RANDOM_BYTES_MAX);
    wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
    if setup.journal.is_some() {
        deterministic(&mut wasi, setup.seed, clock);
    }
    for grant in &setup.grants.directories {
        let perms = match grant.access {
            Access::Read => FsPerms::ReadOnly,
            Access::Write => FsPerms::ReadWrite,
        };
        let opened = wasi.preopened_dir(&grant.host, &grant.guest, perms);
        opened.map_err(|error| std::io::Error::other(format!("directory `{}`: {error}", grant.host.display())))?;
    }
    Ok(wasi.build())
}

fn deterministic(wasi: &mut WasiCtxBuilder, seed: [u8; 32], clock: &Arc<GuestClock>) {
    // Two streams from one seed: reading one must not move the other.
    let mut other = seed;
    other[0] ^= 0xff;
    wasi.secure_random(rand::rngs::StdRng::from_seed(seed));
    wasi.insecure_random(rand::rngs::StdRng::from_seed(other));
    let mut word = [0; 16];
    word.copy_from_slice(&seed[16..]);
    wasi.insecure_random_seed(u128::from_le_bytes(word));
    wasi.wall_clock(Virtual(Arc::clone(clock)));
    wasi.monotonic_clock(Virtual(Arc::clone(clock)));
}

/// A clock of WASI that follows the journal.
struct Virtual(Arc<GuestClock>);

impl HostWallClock for Virtual {
    fn resolution(&self) -> Duration {
        Duration::from_micros(1)
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.0.read_us())
    }
}

impl HostMonotonicClock for Virtual {
    fn resolution(&self) -> u64 {
        1_000
    }

    // The same counter as the wall clock: far above the moments that were baked in when an
    // interpreter was initialised.
    fn now(&self) -> u64 {
        self.0.read_us().saturating_mul(1_000)
    }
}

/// Standard output or error of a guest: lines of its log, which bounds them.
#[derive(Clone)]
struct Printed {
    level: &'static str,
    log: LogBook,
}

impl IsTerminal for Printed {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Printed {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(Lines { out: self.clone(), part: Vec::new() })
    }

    // Not the adapter of wasmtime-wasi: it writes in a task of its own, so how much may be written
    // next would depend on the scheduler, which a pure guest must not see.
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(Lines { out: self.clone(), part: Vec::new() })
    }
}

/// Cuts what is printed into lines.
struct Lines {
    out: Printed,
    part: Vec<u8>,
}

impl Lines {
    fn take(&mut self, bytes: &[u8]) {
        let longest = self.out.log.entry_bytes_max + 1;
        for &byte in bytes {
            if byte == b'\n' {
                self.flush_line();
            } else if self.part.len() < longest {
                self.part.push(byte);
            }
        }
    }

    fn flush_line(&mut self) {
        if !self.part.is_empty() {
            self.out.log.write(self.out.level, &String::from_utf8_lossy(&self.part));
            self.part.clear();
        }
    }
}

impl OutputStream for Lines {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PRINT_BYTES_MAX)
    }
}

#[async_trait::async_trait]
impl Pollable for Lines {
    async fn ready(&mut self) {}
}

impl AsyncWrite for Lines {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.flush_line();
    }
}
