//! This machine and this process: the time, the environment, the cache of the user, the program itself.
//!
//! It keeps nothing between calls. An empty variable counts as unset.

use longhaul_core::Clock;
use longhaul_core::fault::{self, Context as _};
use std::path::PathBuf;
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

/// The path of this program, which is also the child that compiles, the one that serves a model, and the one that runs
/// native checks. A program that only embeds the library names an installed one.
///
/// # Errors
/// The system does not report the path of this program.
pub fn own_program() -> fault::Result<PathBuf> {
    if let Some(program) = variable("LONGHAUL_PROGRAM") {
        return Ok(program.into());
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
