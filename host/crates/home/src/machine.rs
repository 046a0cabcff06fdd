//! This machine and this process: the time, the environment, the cache of the user, the program itself.
//!
//! Between calls it keeps only which child processes `main` serves. An empty variable counts as unset.

use longhaul_core::Clock;
use longhaul_core::fault::{self, Context as _, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
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
    cache_of(&variable).with_context(|| no_cache(&|name| std::env::var_os(name).filter(|value| !value.is_empty())))
}

/// The reason why the environment names no cache, and the remedy for all that needs a home directory.
fn no_cache(variable: &dyn Fn(&str) -> Option<OsString>) -> String {
    const REMEDY: &str = "name a cache with LONGHAUL_CACHE and a data directory with LONGHAUL_HOME";
    let is_no_text = |name: &str| variable(name).is_some_and(|value| value.to_str().is_none());
    match ["LONGHAUL_CACHE", "XDG_CACHE_HOME", "HOME"].into_iter().find(|name| is_no_text(name)) {
        Some(name) => format!("the path in `{name}` is not UTF-8; {REMEDY}"),
        None => format!("there is no home directory; set HOME, or {REMEDY}"),
    }
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
    Ok(replacement(&path).unwrap_or(path))
}

/// True when the program of a process was replaced since the process started, as an update does: it goes on with the
/// older one. False where the system does not tell.
pub(crate) fn is_replaced(pid: u32) -> bool {
    std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| replacement(&program).is_some())
}

/// The file that took the place of a program while it runs. None: the program is still in its place, or nothing is.
fn replacement(program: &Path) -> Option<PathBuf> {
    // Linux appends this to the path of a program whose file was replaced or removed.
    let path = PathBuf::from(program.to_str()?.strip_suffix(" (deleted)")?);
    path.is_file().then_some(path)
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

    /// A home whose name is not UTF-8 used to be told as none.
    #[test]
    fn a_cache_that_is_missing_is_told_with_both_variables_and_the_one_that_is_no_text() {
        use std::os::unix::ffi::OsStringExt as _;
        let remedy = "name a cache with LONGHAUL_CACHE and a data directory with LONGHAUL_HOME";
        assert_eq!(no_cache(&|_| None), format!("there is no home directory; set HOME, or {remedy}"));
        let home = |name: &str| (name == "HOME").then(|| OsString::from_vec(b"/home/\xff".to_vec()));
        assert_eq!(no_cache(&home), format!("the path in `HOME` is not UTF-8; {remedy}"));
    }

    #[test]
    fn a_program_is_replaced_when_another_file_is_in_its_place() {
        let place = tempfile::tempdir().expect("a directory");
        let program = place.path().join("longhaul");
        let of_linux = PathBuf::from(format!("{} (deleted)", program.display()));
        assert_eq!(replacement(&of_linux), None, "it was removed, and nothing is in its place");
        std::fs::write(&program, "").expect("ours");
        assert_eq!(replacement(&of_linux), Some(program.clone()));
        assert_eq!(replacement(&program), None);
        assert!(!is_replaced(std::process::id()));
    }
}
