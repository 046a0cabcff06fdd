//! Checks of this machine for `longhaul doctor`: each finds one state and, if that is not enough, a remedy. The checks
//! change nothing. To try the sandboxes they start only an empty program and the compiler.

use crate::context::Context;
use longhaul_api::operations::{MaintenanceOperations as _, ProjectOperations as _};
use longhaul_api::projects::ListProjects;
use longhaul_api::upkeep::CheckStore;
use longhaul_api::wire::doctor::{CheckResult, CheckState};
use longhaul_config::resources::ResourceSettings;
use longhaul_core::Clock as _;
use longhaul_core::fault::FaultCode;
use longhaul_home::{Home, MachineClock, is_ours_alone};
use longhaul_resources::cgroup::CgroupParent;
use longhaul_resources::{Sampler, gpu};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Free bytes of a disk below which trouble is near, and below which it is there.
const DISK_BYTES_FEW: u64 = 2 << 30;
const DISK_BYTES_TOO_FEW: u64 = 128 << 20;

/// The earliest time that a clock can plausibly show: 2025-01-01, in milliseconds since 1970-01-01 UTC.
const CLOCK_MS_MIN: u64 = 1_735_689_600_000;

/// The most that a file may be ahead of the clock, in milliseconds: file systems round.
const CLOCK_MS_OFF: u64 = 10_000;

pub(super) fn fine(what: &str, said: impl Into<String>) -> CheckResult {
    CheckResult { what: what.to_owned(), state: CheckState::Fine, said: said.into() }
}

pub(super) fn less(what: &str, said: impl Into<String>) -> CheckResult {
    CheckResult { what: what.to_owned(), state: CheckState::Less, said: said.into() }
}

pub(super) fn broken(what: &str, said: impl Into<String>) -> CheckResult {
    CheckResult { what: what.to_owned(), state: CheckState::Broken, said: said.into() }
}

pub(super) fn memory() -> CheckResult {
    match Sampler::default().machine() {
        Ok(machine) if machine.memory_available_mb < 512.0 => {
            less("memory", format!("only {:.0} MB can be had; runs wait for room", machine.memory_available_mb))
        }
        Ok(machine) => {
            let (available, total) = (machine.memory_available_mb, machine.memory_total_mb);
            fine("memory", format!("{available:.0} of {total:.0} MB can be had, {} processors", machine.cpu_count))
        }
        Err(error) => less("memory", format!("{error}; nothing waits for room")),
    }
}

pub(super) fn graphics() -> CheckResult {
    let cards = gpu::read();
    let words: Vec<_> =
        cards.iter().map(|card| format!("{} with {:.0} MB free", card.name, card.memory_free_mb())).collect();
    fine("graphics cards", if words.is_empty() { "none that tells of its memory".to_owned() } else { words.join(", ") })
}

pub(super) fn disk(what: &'static str, path: &Path) -> CheckResult {
    // A directory that does not exist yet will be on the disk of its nearest existing ancestor.
    let there = path.ancestors().find(|path| path.exists()).unwrap_or(path);
    match rustix::fs::statvfs(there) {
        Ok(disk) => disk_words(what, there, disk.f_bavail.saturating_mul(disk.f_frsize)),
        Err(error) => broken(what, format!("`{}` cannot be looked at: {error}", there.display())),
    }
}

/// As [`disk`], for the cache, whose files are also run.
pub(super) fn cache_disk(path: &Path) -> CheckResult {
    const WHAT: &str = "disk of cache";
    let there = path.ancestors().find(|path| path.exists()).unwrap_or(path);
    if longhaul_engine::is_noexec(there) {
        let there = there.display();
        return broken(
            WHAT,
            format!(
                "`{there}` is mounted noexec, so no compiled code runs from it; name another with LONGHAUL_CACHE or XDG_CACHE_HOME"
            ),
        );
    }
    disk(WHAT, path)
}

fn disk_words(what: &'static str, path: &Path, free: u64) -> CheckResult {
    let said = format!("{} MB free at {}", free >> 20, path.display());
    match free {
        0..DISK_BYTES_TOO_FEW => broken(what, format!("{said}; free some, or nothing more can be stored")),
        DISK_BYTES_TOO_FEW..DISK_BYTES_FEW => less(what, format!("{said}; `longhaul gc --dry-run` says what can go")),
        _ => fine(what, said),
    }
}

pub(super) fn permissions(home: &Home) -> CheckResult {
    const WHAT: &str = "permissions";
    let path = home.path();
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => fine(WHAT, "there is no data directory yet"),
        Err(error) => broken(WHAT, format!("`{}` cannot be looked at: {error}", path.display())),
        Ok(found) if found.uid() != rustix::process::geteuid().as_raw() => {
            broken(WHAT, format!("`{}` belongs to another user; choose another with --home", path.display()))
        }
        Ok(found) if !is_ours_alone(&found) => {
            broken(WHAT, format!("others can reach `{0}`; run: chmod 700 {0}", path.display()))
        }
        Ok(_) => fine(WHAT, "the data directory is yours alone"),
    }
}

pub(super) fn secrets(home: &Home) -> CheckResult {
    const WHAT: &str = "secrets";
    let directory = home.path().join("secrets");
    // The secrets of each project are in a folder of their own.
    let (mut folders, mut kept) = (vec![directory], 0);
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            if found.mode() & 0o077 != 0 {
                let (mode, path) = (if found.is_dir() { 700 } else { 600 }, entry.path());
                return broken(WHAT, format!("others can read `{0}`; run: chmod {mode} {0}", path.display()));
            }
            if found.is_dir() { folders.push(entry.path()) } else { kept += 1 }
        }
    }
    fine(WHAT, format!("{kept} kept, readable by you alone"))
}

pub(super) fn settings(home: &Home) -> CheckResult {
    const WHAT: &str = "child limits";
    match ResourceSettings::read(home.path()) {
        Ok(settings) => {
            fine(WHAT, format!("resources.toml is in order; {:.0} MB are kept free", settings.reserve.memory_mb))
        }
        Err(error) => {
            let said = format!("{error:#}");
            broken(WHAT, said.split_whitespace().collect::<Vec<_>>().join(" "))
        }
    }
}

pub(super) fn clock(home: &Home) -> CheckResult {
    const WHAT: &str = "clock";
    let now_ms = MachineClock.now_ms();
    if now_ms < CLOCK_MS_MIN {
        return broken(WHAT, "it is set before 2025; set it, or schedules and certificates fail");
    }
    let stored = fs::metadata(home.path().join("state.redb")).and_then(|found| found.modified()).ok();
    let stored_ms = stored.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let stored_ms = stored_ms.and_then(|since| u64::try_from(since.as_millis()).ok()).unwrap_or(0);
    if stored_ms > now_ms.saturating_add(CLOCK_MS_OFF) {
        return less(WHAT, format!("the store was written {} s from now: it went back", (stored_ms - now_ms) / 1_000));
    }
    if Path::new("/run/systemd/timesync").is_dir() && !Path::new("/run/systemd/timesync/synchronized").exists() {
        return less(WHAT, "systemd-timesyncd runs and has not set it yet");
    }
    fine(WHAT, "as new as the store")
}

pub(super) fn groups() -> CheckResult {
    const WHAT: &str = "control groups";
    match CgroupParent::look() {
        Ok(group) => fine(WHAT, format!("the kernel can hold each child to its limits, below {}", group.display())),
        Err(why) => less(WHAT, format!("{why}; children are looked at twice a second instead")),
    }
}

pub(super) async fn store(context: &Context, reads_store: bool, has_database: bool) -> CheckResult {
    const WHAT: &str = "store";
    if !has_database && !context.home.path().join("state.redb").exists() {
        return fine(WHAT, "there is none yet");
    }
    let looked = if reads_store {
        let read = context.check_store(CheckStore {}).await;
        read.map(|read| format!("{} rows with {} bytes, all as they were written", read.rows, read.bytes))
    } else {
        let answered = context.projects(ListProjects {}).await;
        answered.map(|_| "it answers; read all of it with: longhaul doctor --store".to_owned())
    };
    match looked {
        Ok(said) => fine(WHAT, said),
        // Another machine works with the database, as it should.
        Err(error) if has_database && error.code() == Some(FaultCode::Conflict) => fine(WHAT, format!("{error:#}")),
        Err(error) => broken(WHAT, format!("{error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_nearly_full_is_told_with_what_to_do() {
        let state = |free| disk_words("disk", Path::new("/data"), free).state;
        assert_eq!(state(DISK_BYTES_TOO_FEW - 1), CheckState::Broken);
        assert_eq!(state(DISK_BYTES_TOO_FEW), CheckState::Less);
        assert_eq!(state(DISK_BYTES_FEW - 1), CheckState::Less);
        assert_eq!(state(DISK_BYTES_FEW), CheckState::Fine);
    }
}
