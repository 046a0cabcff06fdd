//! A program that goes on between calls, held as a check is (see `sandbox.rs`), in a room of its own.
//!
//! It sees neither the tree nor the project. It ends when it is dropped, at a limit, and with the host, however that
//! ends. Refuses to run where less than the operator accepts holds it, and to say what the program is for: who talks to
//! it puts sockets into its room.

use crate::at::remove_all;
use crate::held::{Held, program, scratch};
use crate::native::run::{Group, Run, disk_used_up};
use crate::native::{CheckHost, NativeError, Output};
use crate::sandbox::Sandbox;
use longhaul_core::census::{Child as Listing, Entry};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::process::{Child, ChildStdin};
use tokio::task::JoinHandle;

/// Where a program lives: a home and a place for temporary files, both removed with it.
pub struct Room(Option<tempfile::TempDir>);

impl Room {
    /// A new room.
    ///
    /// # Errors
    /// When there is no place for it.
    pub fn new(host: &CheckHost) -> Result<Self, NativeError> {
        Ok(Self(Some(scratch(host)?)))
    }

    /// The directory that the program sees as `../tmp` from where it starts.
    #[must_use]
    pub fn shared(&self) -> PathBuf {
        self.path().join("tmp")
    }

    fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new(""), tempfile::TempDir::path)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let Some(room) = self.0.take() else { return };
        let clear = move || {
            let path = room.keep();
            if let Err(error) = remove_all(&path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove what a program left");
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(clear)),
            Err(_) => clear(),
        }
    }
}

/// A program that runs. Dropping it kills all that it started.
pub struct Kept {
    child: Child,
    /// Shown to others as long as it lives.
    entry: Option<Entry<Listing>>,
    // In this order: the room goes when nobody is left in it.
    _group: Group,
    _watch: Watch,
    /// The child ends when this does.
    _lifeline: Option<ChildStdin>,
    stderr: Output,
    sandbox: Sandbox,
    hit: Arc<Mutex<Option<&'static str>>>,
    room: Room,
}

struct Watch(JoinHandle<()>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Kept {
    /// What holds it.
    #[must_use]
    pub fn sandbox(&self) -> Sandbox {
        self.sandbox
    }

    /// Its room.
    #[must_use]
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// Waits until it has ended, and says how: the limit that ended it, and what it complained last.
    pub async fn ended(&mut self) -> (Option<&'static str>, String) {
        // An error says that it is no child any more, so it has ended.
        let _ = self.child.wait().await;
        let ended_for = self.entry.as_ref().and_then(|entry| entry.hit()).map(|hit| name_of(&hit.name));
        let hit = self.hit.lock().unwrap_or_else(PoisonError::into_inner).or(ended_for);
        (hit, self.stderr.take().await.text().0)
    }
}

/// Starts a program in a room. Of `held` the directory counts for nothing: it starts in its room.
///
/// # Errors
/// When it did not start.
pub async fn start_kept(host: &CheckHost, room: Room, held: &Held) -> Result<Kept, NativeError> {
    let name = held.argv.first().cloned().unwrap_or_default();
    let program = program(held);
    let run = Run {
        host,
        name: &name,
        program: &program,
        scratch: room.path(),
        tree: None,
        hidden: &held.hidden,
        shown: &held.shown,
        sandbox_min: held.sandbox_min,
    };
    let (started, sandbox) = run.started_in_the_best_sandbox().await?;
    let hit = Arc::default();
    let watch = tokio::spawn(watch(room.path().to_owned(), held.clone(), started.group.pid(), Arc::clone(&hit)));
    Ok(Kept {
        child: started.child,
        entry: started.entry,
        _group: started.group,
        _watch: Watch(watch),
        _lifeline: started.lifeline,
        stderr: started.stderr,
        sandbox,
        hit,
        room,
    })
}

/// Limits that somebody else ends it for.
fn name_of(limit: &str) -> &'static str {
    match limit {
        "max_memory_mb" => "max_memory_mb",
        "max_processes" => "max_processes",
        _ => "max_cpu_percent",
    }
}

/// Ends the program at a limit that the kernel does not know.
async fn watch(room: PathBuf, held: Held, group: Option<rustix::process::Pid>, hit: Arc<Mutex<Option<&'static str>>>) {
    let limits = &held.limits;
    let name = tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(limits.wall_ms_max)) => "wall_ms_max",
        _ = disk_used_up(&room, limits.disk_bytes_max) => "disk_bytes_max",
    };
    *hit.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}
