//! Entries of Go's build cache on their way into the host's cache, and from there to a check.
//!
//! Files are copied by their content: a second name of a file, or a link to it, would let a check write into what the
//! next one reads. A library appears complete or not at all. Copies nothing that does not bear the name of an entry.

use crate::names::join;
use crate::root::{EntryKind, Root};
use longhaul_sandbox::remove_all;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;
use std::time::Duration;

/// The build cache below a scratch directory: where Go has it by default.
const BUILD_CACHE: &str = "home/.cache/go-build";

/// Libraries that stay, at some 100 MB each: several versions of Go, and several flavours of each.
const KEPT_MAX: usize = 6;

/// The extension of a library that is being copied.
const UNFINISHED: &str = "new";

/// The age from which an unfinished library is one that a killed host left. To copy one takes seconds.
const ABANDONED: Duration = Duration::from_secs(3_600);

/// Bytes of an entry. A package has some megabytes, a cached program a hundred.
const ENTRY_BYTES_MAX: u64 = 1 << 30;

/// Makes the folder of libraries. Refuses one that another user can write, since what a check compiles with is code.
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let found = fs::symlink_metadata(folder)?;
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    if found.is_dir() && is_ours && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    let why = "is no private directory of this user; remove it, or name another cache with LONGHAUL_CACHE";
    Err(io::Error::other(format!("`{}` {why}", folder.display())))
}

/// Keeps the build cache in `scratch` as the library `name` in `folder`, whose lock the caller holds.
pub(super) fn keep(scratch: &Path, folder: &Path, name: &str) -> io::Result<()> {
    let unfinished = folder.join(format!("{name}.{UNFINISHED}"));
    // Of a host that was killed.
    remove_all(&unfinished)?;
    let from = Root::open(&scratch.join(BUILD_CACHE))?;
    fs::create_dir(&unfinished)?;
    let kept = copied_whole(&from, &unfinished).and_then(|()| fs::rename(&unfinished, folder.join(name)));
    if kept.is_err() {
        // The error is reported; a disk that is full needs the room.
        let _ = remove_all(&unfinished);
    }
    kept?;
    if let Err(error) = remove_old(folder) {
        tracing::debug!(path = %folder.display(), %error, "old libraries of Go are not removed");
    }
    Ok(())
}

/// Copies the library `kept` into the build cache in `scratch`.
pub(super) fn provide(kept: &Path, scratch: &Path) -> io::Result<()> {
    let (from, to) = (Root::open(kept)?, Root::open(scratch)?);
    let copied = copy(&from, &to, BUILD_CACHE.as_bytes());
    if copied.is_err() {
        // The error is reported; a disk that is full needs the room.
        let _ = to.remove(BUILD_CACHE.as_bytes());
    }
    copied
}

/// On the disk before it has its name: a name without its bytes, after a power cut, would stay.
fn copied_whole(from: &Root, to: &Path) -> io::Result<()> {
    let to = Root::open(to)?;
    copy(from, &to, b"")?;
    to.sync()
}

fn copy(from: &Root, to: &Root, below: &[u8]) -> io::Result<()> {
    for (shard, found) in from.list(b"")? {
        if found.sort != EntryKind::Dir || !is_shard(&shard) {
            continue;
        }
        for (name, found) in from.list(&shard)? {
            if !matches!(found.sort, EntryKind::File { .. }) || !is_entry(&name) {
                continue;
            }
            let path = join(&shard, &name);
            let bytes = from.read(&path, ENTRY_BYTES_MAX)?;
            let bytes = bytes.ok_or_else(|| io::Error::other("an entry of Go's build cache is too large"))?;
            to.write(&join(below, &path), &bytes, false)?;
        }
    }
    Ok(())
}

/// Directories of entries have the first byte of the digests of theirs.
fn is_shard(name: &[u8]) -> bool {
    name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit)
}

/// An action or its output. Other files have the times of the cache, which it sets again.
fn is_entry(name: &[u8]) -> bool {
    name.ends_with(b"-a") || name.ends_with(b"-d")
}

/// Removes all but the youngest libraries, and unfinished ones that nobody finishes.
fn remove_old(folder: &Path) -> io::Result<()> {
    let mut kept = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, found) = (entry.path(), entry.metadata()?);
        let changed = found.modified()?;
        let is_unfinished = path.extension().is_some_and(|extension| extension == UNFINISHED);
        if is_unfinished && changed.elapsed().is_ok_and(|age| age > ABANDONED) {
            remove_all(&path)?;
        } else if path.extension().is_none() && found.is_dir() {
            kept.push((changed, path));
        }
    }
    kept.sort();
    kept.iter().rev().skip(KEPT_MAX).try_for_each(|(_, path)| discard(path))
}

/// Takes its name from a library before it is removed: what a kill leaves of it must not be taken for all of it.
fn discard(library: &Path) -> io::Result<()> {
    let aside = library.with_extension(UNFINISHED);
    fs::rename(library, &aside)?;
    remove_all(&aside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::PathBuf;
    use std::time::SystemTime;

    /// Scratch directories of a maker and of a check, the first with a build cache, and a folder of libraries.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().expect("a directory"));
            for (path, text) in [("ab/ab1-a", "action"), ("ab/ab2-d", "output"), ("trim.txt", "0"), ("ab/x", "x")] {
                let path = place.cache("maker").join(path);
                fs::create_dir_all(path.parent().expect("a parent")).expect("made");
                fs::write(path, text).expect("written");
            }
            let secret = place.at("secret");
            fs::write(&secret, "SECRET").expect("written");
            symlink(&secret, place.cache("maker").join("ab/ab3-d")).expect("made");
            symlink(place.0.path(), place.cache("maker").join("cd")).expect("made");
            fs::create_dir(place.at("check")).expect("made");
            make_private(&place.at("folder")).expect("made");
            place
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn cache(&self, scratch: &str) -> PathBuf {
            self.at(scratch).join(BUILD_CACHE)
        }

        fn keep(&self, name: &str) {
            keep(&self.at("maker"), &self.at("folder"), name).expect("it is kept");
        }

        /// The names in the folder of libraries, sorted.
        fn names(&self) -> Vec<String> {
            let entries =
                fs::read_dir(self.at("folder")).expect("there").map(|entry| entry.expect("listed").file_name());
            let mut names: Vec<String> = entries.map(|name| name.into_string().expect("text")).collect();
            names.sort();
            names
        }
    }

    /// The files below a directory, with their texts.
    fn files(dir: &Path) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for shard in fs::read_dir(dir).expect("there").map(|entry| entry.expect("listed").path()) {
            for path in fs::read_dir(&shard).expect("a directory").map(|entry| entry.expect("listed").path()) {
                let name = path.strip_prefix(dir).expect("below").display().to_string();
                found.push((name, fs::read_to_string(path).expect("a file")));
            }
        }
        found.sort();
        found
    }

    #[test]
    fn a_check_gets_the_entries_alone_and_changes_none_of_the_library() {
        let place = Place::new();
        place.keep("a");
        let library = place.at("folder/a");
        let expected = [("ab/ab1-a", "action"), ("ab/ab2-d", "output")];
        let expected = expected.map(|(path, text)| (path.to_owned(), text.to_owned()));
        assert_eq!(files(&library), expected);
        provide(&library, &place.at("check")).expect("it is copied");
        let own = place.cache("check");
        assert_eq!(files(&own), expected);
        for (path, _) in &expected {
            fs::write(own.join(path), "poison").expect("a check may write its own");
        }
        assert_eq!(files(&library), expected);
    }

    #[test]
    fn what_a_killed_host_left_is_replaced_and_what_cannot_be_kept_leaves_nothing() {
        let place = Place::new();
        fs::create_dir_all(place.at("folder/a.new/ab")).expect("made");
        fs::write(place.at("folder/a.new/ab/half-d"), "half").expect("written");
        place.keep("a");
        assert_eq!(place.names(), ["a"]);
        assert!(!place.at("folder/a/ab/half-d").exists());
        keep(&place.at("check"), &place.at("folder"), "b").expect_err("it has no build cache");
        assert_eq!(place.names(), ["a"]);
        provide(&place.at("folder/b"), &place.at("check")).expect_err("there is no such library");
        assert!(!place.cache("check").exists());
    }

    #[test]
    fn the_youngest_libraries_stay() {
        let place = Place::new();
        let age = |name: &str, hours: u64| {
            let at = SystemTime::now().checked_sub(Duration::from_secs(hours * 3_600)).expect("a time");
            fs::File::open(place.at("folder").join(name)).expect("there").set_modified(at).expect("set");
        };
        for number in 0..KEPT_MAX {
            let name = format!("a{number}");
            place.keep(&name);
            age(&name, 10 - u64::try_from(number).expect("small"));
        }
        for name in ["old.new", "young.new"] {
            fs::create_dir(place.at("folder").join(name)).expect("made");
        }
        age("old.new", 2);
        place.keep("b");
        assert_eq!(place.names(), ["a1", "a2", "a3", "a4", "a5", "b", "young.new"]);
    }

    #[test]
    fn a_folder_that_others_can_reach_is_refused() {
        let place = Place::new();
        let folder = place.at("folder");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o770)).expect("ours");
        let refused = make_private(&folder).expect_err("others can write it").to_string();
        assert!(
            refused.ends_with(
                "is no private directory of this user; remove it, or name another cache with LONGHAUL_CACHE"
            ),
            "{refused}"
        );
    }
}
