//! This machine and this process: the time, the environment, the cache of the user, the program itself.
//!
//! Between calls it keeps only which child processes `main` serves. An empty variable counts as unset.

use longhaul_core::Clock;
use longhaul_core::fault::{self, Context as _, bail};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The time of the machine.
pub struct MachineClock;

impl Clock for MachineClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// The directory for data that can be made again: compiled plugins, models. `LONGHAUL_CACHE`, else `longhaul` below
/// `XDG_CACHE_HOME` or `~/.cache`.
///
/// # Errors
/// The environment names none of them.
pub fn cache() -> fault::Result<PathBuf> {
    cache_of(&variable).context("there is no home directory; name a cache with LONGHAUL_CACHE")
}

/// The child processes that the `main` of this program serves when the program is started as one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServedChildren {
    /// None: started as a child, the program would begin its own work once more.
    None,
    /// The compiler.
    Compiler,
    /// Every child of a run.
    All,
}

/// The largest [`ServedChildren`] that this process was told.
static SERVED: AtomicU8 = AtomicU8::new(ServedChildren::None as u8);

/// Says what `main` serves. What was said before is not taken back.
pub fn serve_children(children: ServedChildren) {
    SERVED.fetch_max(children as u8, Ordering::Relaxed);
}

/// The program that is every child of a run: the compiler, a local model, a sandboxed program, the keeper of a server.
/// It is this program, or the one that `LONGHAUL_PROGRAM` names.
///
/// # Errors
/// This program does not serve children and none is named, or the system does not report its path.
pub fn own_program() -> fault::Result<PathBuf> {
    program_for(ServedChildren::All, "longhaul::run_child_if_asked()")
}

/// As [`own_program`], for the compiler alone.
///
/// # Errors
/// As [`own_program`].
pub fn own_compiler() -> fault::Result<PathBuf> {
    program_for(ServedChildren::Compiler, "longhaul_exec::compile_if_asked()")
}

fn program_for(needed: ServedChildren, call: &str) -> fault::Result<PathBuf> {
    if let Some(program) = variable("LONGHAUL_PROGRAM") {
        return Ok(program.into());
    }
    if SERVED.load(Ordering::Relaxed) < needed as u8 {
        bail!(
            "this program cannot run the child processes of longhaul; begin its `main` with `{call}`, or name an installed `longhaul` with LONGHAUL_PROGRAM"
        );
    }
    let path = std::env::current_exe().context("this program does not know where it is")?;
    // Linux appends this when the file was replaced while the program runs, as an update does: the new file is used.
    let replaced = path.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(replaced.filter(|path| path.is_file()).unwrap_or(path))
}

/// Reads a variable of the environment.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn cache_of(variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let directory = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    directory("LONGHAUL_CACHE")
        .or_else(|| Some(directory("XDG_CACHE_HOME")?.join("longhaul")))
        .or_else(|| Some(directory("HOME")?.join(".cache/longhaul")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_found_as_users_set_it() {
        let check = |set: &[(&str, &str)]| {
            let set = set.to_vec();
            cache_of(&move |name| set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(check(&[("LONGHAUL_CACHE", "/a"), ("HOME", "/h")]), Some("/a".into()));
        assert_eq!(check(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]), Some("/x/longhaul".into()));
        assert_eq!(check(&[("LONGHAUL_CACHE", ""), ("HOME", "/h")]), Some("/h/.cache/longhaul".into()));
        assert_eq!(check(&[]), None);
    }
}
