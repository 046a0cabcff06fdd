//! Go's compiled standard library, from which checks start: made once for each Go, and copied into the build cache of
//! each check.
//!
//! A check has a build cache of its own, which begins empty, so that Go would compile its library in each of a check's
//! sandboxes. The library is made in a sandbox in which nothing of a project is, and kept in the host's cache, which no
//! program sees. What a check does with its copy ends with the check. Go itself decides what of the copy counts: an
//! entry is named by the digest of all that it was made of. A check never fails for want of the library: it compiles
//! what it needs, and the log says why.

mod entries;
mod flavour;

use entries::{keep, make_private, provide};
use flavour::Flavour;
use longhaul_sandbox::{Program, ProgramReport, SandboxHost, ScratchDirectory, remove_all, run_in};
use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use tokio::sync::{Mutex, oneshot};

/// The folder of libraries in the host's cache.
const FOLDER: &str = "go-library";

/// Libraries that could not be made, which a process tries once. Held while one is made, so that other checks of the
/// process wait for it.
static FAILED: Mutex<BTreeSet<PathBuf>> = Mutex::const_new(BTreeSet::new());

/// Puts the library into the build cache of `check`, whose scratch directory is `scratch`. Nothing runs there yet.
/// `has_module` says that its work is a module of Go, so that words which do not name `go` may start it.
pub(super) async fn provide_go_library(host: &SandboxHost, check: &Program, scratch: &Path, has_module: bool) {
    let Some(flavour) = Flavour::of(check, has_module) else { return };
    let Some(kept) = Library::of(host, flavour).made().await else { return };
    let (scratch, (tell, told)) = (scratch.to_owned(), oneshot::channel());
    tokio::task::spawn_blocking(move || provide_and_tell(&kept, &scratch, tell));
    if let Err(error) = told.await.unwrap_or_else(|_| Err(io::Error::other("the copy was broken off"))) {
        tracing::warn!(check = check.name, %error, "this check compiles Go's standard library: it cannot be copied");
    }
}

/// Copies the library. Where nobody waits for it any more, the check was called off and has removed its directory, to
/// which the copy was added meanwhile: it is removed again.
fn provide_and_tell(kept: &Path, scratch: &Path, tell: oneshot::Sender<io::Result<()>>) {
    if tell.send(provide(kept, scratch)).is_err()
        && let Err(error) = remove_all(scratch)
    {
        tracing::warn!(path = %scratch.display(), %error, "cannot remove the copy of a check");
    }
}

/// One library of a host.
struct Library<'a> {
    host: &'a SandboxHost,
    flavour: Flavour,
    folder: PathBuf,
    /// Its directory, once it is complete.
    kept: PathBuf,
}

impl<'a> Library<'a> {
    fn of(host: &'a SandboxHost, flavour: Flavour) -> Self {
        let folder = host.cache.clone().unwrap_or_default().join(FOLDER);
        let kept = folder.join(&flavour.name);
        Self { host, flavour, folder, kept }
    }

    /// The complete library, made now if there is none. None: there is none, and the log has the reason.
    async fn made(&self) -> Option<PathBuf> {
        if self.host.cache.is_some() && self.kept.is_dir() && make_private(&self.folder).is_ok() {
            return Some(self.kept.clone());
        }
        let mut failed = FAILED.lock().await;
        if failed.contains(&self.kept) {
            return None;
        }
        if let Err(why) = self.make().await {
            tracing::warn!(why, "checks of Go compile its standard library each time: it cannot be kept");
            failed.insert(self.kept.clone());
            return None;
        }
        Some(self.kept.clone())
    }

    /// Makes the library, unless another process has made it meanwhile.
    async fn make(&self) -> Result<(), String> {
        if self.host.cache.is_none() {
            return Err("this machine has no cache".to_owned());
        }
        make_private(&self.folder).map_err(|error| error.to_string())?;
        let lock = locked(&self.folder.join(format!("{}.lock", self.flavour.name))).await?;
        if self.kept.is_dir() {
            return Ok(());
        }
        tracing::info!("compiling Go's standard library for checks; this happens once for each Go");
        let room = ScratchDirectory::new(self.host).map_err(|error| error.to_string())?;
        let done = run_in(self.host, room.path(), &self.flavour.maker).await.map_err(|error| error.to_string())?;
        failure_of(&done).map_or(Ok(()), Err)?;
        let (folder, name) = (self.folder.clone(), self.flavour.name.clone());
        // With the directory and the lock, since this goes on when nobody waits any more.
        let kept = tokio::task::spawn_blocking(move || {
            let kept = keep(room.path(), &folder, &name);
            drop((room, lock));
            kept
        });
        kept.await.unwrap_or_else(|error| Err(error.into())).map_err(|error| error.to_string())
    }
}

/// The reason why a library was not made: the limit that was reached, or the last line of its errors.
fn failure_of(done: &ProgramReport) -> Option<String> {
    if let Some(hit) = &done.hit {
        return Some(hit.to_string());
    }
    let last = done.stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing more is known");
    (done.exit_code != 0).then(|| format!("its build ended with {}: {last}", done.exit_code))
}

/// Holds the lock file `path` until it is dropped: of several processes one makes a library, and the others wait.
async fn locked(path: &Path) -> Result<File, String> {
    let failed = |error: io::Error| format!("cannot lock `{}`: {error}", path.display());
    let file = File::create(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    let (send, receive) = oneshot::channel();
    // A thread by itself, since the end of a runtime waits for those of its pool.
    let waiting = std::thread::Builder::new().spawn(move || {
        // Nobody waits any more if this fails, and the lock is released.
        let _ = send.send(file.lock().map(|()| file));
    });
    waiting.map_err(failed)?;
    let held = receive.await.map_err(|_| failed(io::Error::other("nothing waits for it")))?;
    held.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_sandbox::Level;
    use std::fs;

    /// Leaves a mark of each start in the directory that it is given, and one entry in a build cache.
    const MAKES: &str = "mktemp \"$1/XXXXXX\" && mkdir -p ~/.cache/go-build/ab && echo x > ~/.cache/go-build/ab/ab-d";

    /// A host with a cache, and a directory for marks.
    struct Place {
        dir: tempfile::TempDir,
        host: SandboxHost,
    }

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("a directory");
            let top = dir.path().canonicalize().expect("its name");
            ["scratch", "marks", "cache"].iter().for_each(|name| fs::create_dir(top.join(name)).expect("made"));
            let test = std::env::current_exe().expect("this program");
            let target = test.parent().and_then(Path::parent).expect("the directory of cargo");
            let host = SandboxHost {
                program: target.join("examples/sandbox_child"),
                prefix_args: Vec::new(),
                scratch: top.join("scratch"),
                cache: Some(top.join("cache")),
                hidden: Vec::new(),
                checkout: None,
                level_min: Level::None,
                redact: None,
            };
            Self { dir, host }
        }

        fn marks(&self) -> PathBuf {
            self.dir.path().canonicalize().expect("its name").join("marks")
        }

        fn library(&self, script: &str) -> Library<'_> {
            let marks = self.marks();
            let argv = ["sh", "-c", script, "sh", marks.to_str().expect("text")].map(str::to_owned).to_vec();
            let maker = Program { write: vec![marks], level_min: Level::None, ..Program::new("a library", argv) };
            Library::of(&self.host, Flavour { name: "a".to_owned(), maker })
        }

        fn starts(&self) -> usize {
            self.marks().read_dir().expect("there").count()
        }
    }

    #[tokio::test]
    async fn two_checks_at_once_make_one_library_and_later_ones_find_it() {
        let place = Place::new();
        let library = place.library(MAKES);
        let (one, other) = tokio::join!(library.made(), library.made());
        let kept = one.expect("it is made");
        assert_eq!(Some(&kept), other.as_ref());
        assert_eq!(fs::read_to_string(kept.join("ab/ab-d")).expect("an entry"), "x\n");
        assert_eq!(place.library("exit 1").made().await, Some(kept));
        assert_eq!(place.starts(), 1);
    }

    #[tokio::test]
    async fn a_copy_for_a_check_that_was_called_off_leaves_nothing() {
        let place = Place::new();
        let kept = place.library(MAKES).made().await.expect("it is made");
        let scratch = place.host.scratch.join("check");
        for is_waited_for in [true, false] {
            fs::create_dir(&scratch).expect("made");
            let (tell, told) = oneshot::channel();
            let told = is_waited_for.then_some(told);
            provide_and_tell(&kept, &scratch, tell);
            assert_eq!(scratch.exists(), is_waited_for);
            if let Some(told) = told {
                told.await.expect("it is told").expect("it is copied");
                assert!(scratch.join("home/.cache/go-build/ab/ab-d").is_file());
                remove_all(&scratch).expect("removed");
            }
        }
    }

    #[tokio::test]
    async fn a_library_that_another_process_makes_is_waited_for() {
        let place = Place::new();
        let library = place.library(MAKES);
        make_private(&library.folder).expect("made");
        let other = File::create(library.folder.join("a.lock")).expect("made");
        other.lock().expect("it is free");
        let finish = async {
            fs::create_dir(&library.kept).expect("made");
            drop(other);
        };
        let (made, ()) = tokio::join!(library.made(), finish);
        assert_eq!((made.as_ref(), place.starts()), (Some(&library.kept), 0));
    }

    #[tokio::test]
    async fn a_library_that_cannot_be_made_is_tried_once_and_leaves_nothing() {
        let place = Place::new();
        let fails = format!("{MAKES}; echo broken >&2; exit 3");
        for _ in 0..2 {
            assert_eq!(place.library(&fails).made().await, None);
        }
        assert_eq!(place.starts(), 1);
        let library = place.library(&fails);
        assert!(!library.kept.exists());
        let why = library.make().await.expect_err("it fails");
        assert_eq!(why, "its build ended with 3: broken");
        let without = SandboxHost { cache: None, ..place.host.clone() };
        let flavour = place.library(MAKES).flavour;
        assert_eq!(Library::of(&without, flavour).made().await, None);
    }
}
