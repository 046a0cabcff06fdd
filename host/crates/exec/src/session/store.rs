//! The sessions of a data directory: `sessions/NAME/` has the values, a note about them, and a lock.
//!
//! Bounded in number, in bytes and in age: a session that was not used for a month is removed when sessions are listed
//! or begun. Only one step of a session runs at a time; others are refused rather than kept waiting. The note also has
//! whose steps the session had, of which a step is refused that would load values of others with grants of its own.

use super::access::SessionAccess;
use crate::error::ExecError;
use crate::job::SESSION_BYTES_MAX;
use crate::places::ExecutorPaths;
use crate::report::{SessionReport, UnkeptVariable};
use crate::step_answer::{KeptGroup, StepAnswer, is_shown, merged};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Sessions of a data directory.
const SESSIONS_MAX: usize = 100;

/// Time without a step after which a session is removed: 30 days.
const IDLE_MS_MAX: u64 = 30 * 24 * 3_600 * 1_000;

/// Bytes of a name.
const NAME_BYTES_MAX: usize = 60;

/// Bytes of a note: its variables, by name. A list reads the notes of all sessions.
const NOTE_BYTES_MAX: u64 = 1 << 20;

/// Bytes of the names and digests around the values, so that a note, and the file of the values, can be read again.
const AROUND_BYTES_MAX: u64 = NOTE_BYTES_MAX / 2;

const DIRECTORY: &str = "sessions";
const NOTE: &str = "session.json";
const VALUES: &str = "values.json";
const LOCK: &str = "lock";

/// A session, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionSummary {
    /// Its name.
    pub name: String,
    /// Its interpreter: `wasm`, `native`, or `native` with a virtual environment.
    pub runtime: String,
    /// The number of its steps.
    pub steps: u64,
    /// Bytes of its values, as they are kept.
    pub bytes: u64,
    /// The names of its variables.
    pub variables: Vec<String>,
    /// The time of its beginning, in milliseconds since 1970.
    pub created_ms: u64,
    /// The time at which its last step ended, in milliseconds since 1970.
    pub used_ms: u64,
}

/// The note of a session. One of an earlier version has no access of any.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SessionNote {
    #[serde(flatten)]
    summary: SessionSummary,
    #[serde(default)]
    access: SessionAccess,
}

/// The sessions of a data directory.
#[derive(Clone, Debug)]
pub struct ExecSessions {
    directory: PathBuf,
}

impl ExecSessions {
    /// Those of a data directory. Nothing is made before the first session begins.
    #[must_use]
    pub fn new(data_directory: &Path) -> Self {
        Self { directory: data_directory.join(DIRECTORY) }
    }

    pub(super) fn of(paths: &ExecutorPaths) -> Result<Self, ExecError> {
        paths.data_directory.as_deref().map(Self::new).ok_or(ExecError::NoSessions)
    }

    /// All sessions, by name.
    ///
    /// # Errors
    /// [`ExecError::Host`] when they cannot be read.
    pub fn list(&self, now_ms: u64) -> Result<Vec<SessionSummary>, ExecError> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| fault("list the sessions", &self.directory, &error))?,
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        // One that ends just now has no note any more.
        let mut all: Vec<_> = names.filter_map(|name| self.summary(&name).ok().flatten()).collect();
        all.retain(|session| !self.is_expired(session, now_ms));
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// Ends a session, and removes its values. Returns false when there is none.
    ///
    /// # Errors
    /// [`ExecError::SessionName`], [`ExecError::SessionBusy`], or [`ExecError::Host`].
    pub fn end(&self, name: &str) -> Result<bool, ExecError> {
        self.end_if(name, |_| true)
    }

    /// Ends a session if what its note says is a reason, which nobody changes meanwhile.
    fn end_if(&self, name: &str, is_meant: impl Fn(Option<SessionSummary>) -> bool) -> Result<bool, ExecError> {
        check_name(name)?;
        let place = self.directory.join(name);
        if !place.is_dir() {
            return Ok(false);
        }
        let _lock = lock(name, &place)?;
        if !is_meant(self.summary(name).ok().flatten()) {
            return Ok(false);
        }
        remove(&place).map_err(|error| fault("remove the session", &place, &error))?;
        Ok(true)
    }

    /// Opens a session for a step of this interpreter, or begins it.
    pub(super) fn open(
        &self,
        name: &str,
        runtime: &str,
        access: SessionAccess,
        now_ms: u64,
    ) -> Result<OpenSession, ExecError> {
        check_name(name)?;
        SessionAccess::default().admit(access, name)?;
        let place = self.directory.join(name);
        if !place.is_dir() {
            if self.list(now_ms)?.len() >= SESSIONS_MAX {
                return Err(ExecError::SessionsFull { most: SESSIONS_MAX });
            }
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&place);
            made.map_err(|error| fault("begin the session", &place, &error))?;
        }
        let lock = lock(name, &place)?;
        let found = self.note(name).map_err(|error| fault("read the session", &place, &error))?;
        let Some(SessionNote { summary, access: before }) = found else {
            let summary = SessionSummary {
                name: name.to_owned(),
                runtime: runtime.to_owned(),
                steps: 0,
                bytes: 0,
                variables: Vec::new(),
                created_ms: now_ms,
                used_ms: now_ms,
            };
            // Counted and listed from now on, however its first step ends.
            let note = SessionNote { summary, access };
            write(&place, NOTE, &note).map_err(|error| fault("begin the session", &place, &error))?;
            return Ok(OpenSession { place, note, groups: Vec::new(), _lock: lock });
        };
        if summary.runtime != runtime {
            return Err(ExecError::SessionRuntime { name: name.to_owned(), began: summary.runtime });
        }
        before.admit(access, name)?;
        let note = SessionNote { summary, access: before.and(access) };
        if note.access != before {
            // The note is written before the step runs: a crash must leave no values of the step without it.
            write(&place, NOTE, &note).map_err(|error| fault("go on with the session", &place, &error))?;
        }
        let groups = read(&place.join(VALUES), SESSION_BYTES_MAX + NOTE_BYTES_MAX)
            .map_err(|error| fault("read the values of the session", &place, &error))?;
        Ok(OpenSession { place, note, groups: groups.unwrap_or_default(), _lock: lock })
    }

    fn summary(&self, name: &str) -> io::Result<Option<SessionSummary>> {
        Ok(self.note(name)?.map(|note| note.summary))
    }

    fn note(&self, name: &str) -> io::Result<Option<SessionNote>> {
        let note = read::<SessionNote>(&self.directory.join(name).join(NOTE), NOTE_BYTES_MAX)?;
        let named = |note: SessionNote| {
            let summary = SessionSummary { name: name.to_owned(), ..note.summary };
            SessionNote { summary, ..note }
        };
        Ok(note.map(named))
    }

    /// Removes a session that was not used for too long. One at work stays, and so does one that was used since its
    /// note was read.
    fn is_expired(&self, session: &SessionSummary, now_ms: u64) -> bool {
        let is_idle = |session: &SessionSummary| now_ms.saturating_sub(session.used_ms) > IDLE_MS_MAX;
        let is_still_idle = |now: Option<SessionSummary>| now.is_some_and(|now| is_idle(&now));
        is_idle(session) && self.end_if(&session.name, is_still_idle).is_ok_and(|is_gone| is_gone)
    }
}

/// Removes the files of a session, its lock last. Whoever finds none from then on may begin a session in the directory,
/// which stays then.
fn remove(place: &Path) -> io::Result<()> {
    let is_gone = |result: io::Result<()>| match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    };
    for name in [VALUES, NOTE] {
        is_gone(fs::remove_file(place.join(half_of(name))))?;
        is_gone(fs::remove_file(place.join(name)))?;
    }
    is_gone(fs::remove_file(place.join(LOCK)))?;
    match fs::remove_dir(place) {
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => is_gone(removed),
    }
}

/// The name of a file that is not written to its end yet.
fn half_of(name: &str) -> String {
    format!("{name}.new")
}

/// A session that no other step may use meanwhile.
#[derive(Debug)]
pub(super) struct OpenSession {
    place: PathBuf,
    note: SessionNote,
    groups: Vec<KeptGroup>,
    _lock: File,
}

impl OpenSession {
    pub(super) fn steps(&self) -> u64 {
        self.note.summary.steps
    }

    pub(super) fn groups(&self) -> &[KeptGroup] {
        &self.groups
    }

    /// Takes what a step changed, and keeps it. Returns what cannot be kept.
    pub(super) fn take(&mut self, answer: StepAnswer, now_ms: u64) -> Result<Vec<UnkeptVariable>, ExecError> {
        let (groups, unkept) = merged(self.groups.clone(), answer);
        let bytes: u64 = groups.iter().map(|group| group.blob.len() as u64).sum();
        if bytes > SESSION_BYTES_MAX {
            return Err(ExecError::SessionTooLarge { name: self.note.summary.name.clone(), bytes });
        }
        if groups.iter().map(bytes_around).sum::<u64>() > AROUND_BYTES_MAX {
            let variables = groups.iter().map(|group| group.names.len()).sum();
            return Err(ExecError::SessionCrowded { name: self.note.summary.name.clone(), variables });
        }
        let names = groups.iter().flat_map(|group| &group.names).filter(|name| is_shown(name));
        let mut variables: Vec<String> = names.cloned().collect();
        variables.sort();
        let before = self.note.summary.clone();
        self.note.summary = SessionSummary { steps: before.steps + 1, bytes, variables, used_ms: now_ms, ..before };
        self.groups = groups;
        let kept = write(&self.place, VALUES, &self.groups).and_then(|()| write(&self.place, NOTE, &self.note));
        kept.map_err(|error| fault("keep the session", &self.place, &error))?;
        let unkept = unkept.into_iter().filter(|(names, _)| names.iter().all(|name| is_shown(name)));
        Ok(unkept.map(|(names, reason)| UnkeptVariable { names, reason }).collect())
    }

    pub(super) fn report(&self, unkept: Vec<UnkeptVariable>) -> SessionReport {
        let SessionSummary { name, steps, bytes, variables, .. } = self.note.summary.clone();
        SessionReport { name, steps, bytes, variables, unkept }
    }
}

/// Bytes of a group beside its value, with the marks of JSON.
fn bytes_around(group: &KeptGroup) -> u64 {
    let names: usize = group.names.iter().map(|name| name.len() + 3).sum();
    (names + group.value.as_ref().map_or(0, String::len) + 64) as u64
}

/// A name is the name of a directory, too.
fn check_name(name: &str) -> Result<(), ExecError> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let is_name = (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(is_part);
    if is_name { Ok(()) } else { Err(ExecError::SessionName { name: longhaul_core::text::truncate(name, 80) }) }
}

/// The lock of a session, held until it is dropped.
fn lock(name: &str, place: &Path) -> Result<File, ExecError> {
    let path = place.join(LOCK);
    let busy = || ExecError::SessionBusy { name: name.to_owned() };
    let file = match File::options().create(true).truncate(false).write(true).mode(0o600).open(&path) {
        // It ends just now.
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(busy()),
        opened => opened.map_err(|error| fault("lock the session", place, &error))?,
    };
    match file.try_lock() {
        Ok(()) if is_at(&file, &path) => Ok(file),
        // The file is that of a session that ended in between; another one of the name may have begun.
        Ok(()) | Err(fs::TryLockError::WouldBlock) => Err(busy()),
        Err(fs::TryLockError::Error(error)) => Err(fault("lock the session", place, &error)),
    }
}

/// True when an open file is the one that the path names.
fn is_at(file: &File, path: &Path) -> bool {
    let named = fs::metadata(path).map(|found| (found.dev(), found.ino()));
    file.metadata().and_then(|ours| Ok((ours.dev(), ours.ino()) == named?)).unwrap_or(false)
}

/// Reads a file of a session; none when there is none.
fn read<T: for<'de> Deserialize<'de>>(path: &Path, bytes_max: u64) -> io::Result<Option<T>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it has more than {bytes_max} bytes")));
    }
    Ok(Some(serde_json::from_slice(&bytes)?))
}

/// Writes a file of a session as a whole: a reader, or a crash, sees the old one or the new one.
fn write<T: Serialize + ?Sized>(place: &Path, name: &str, content: &T) -> io::Result<()> {
    let half = place.join(half_of(name));
    let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&half)?;
    io::Write::write_all(&mut file, &serde_json::to_vec(content)?)?;
    file.sync_all()?;
    fs::rename(&half, place.join(name))
}

fn fault(doing: &str, place: &Path, error: &io::Error) -> ExecError {
    ExecError::Host(format!("cannot {doing} in `{}`: {error}", place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(name: &str, blob: &str) -> StepAnswer {
        let answer = json!({ "exit_code": 0, "groups": [{ "names": [name], "value": "1", "blob": blob }] });
        StepAnswer::read(&answer.to_string()).expect("an answer")
    }

    fn open(sessions: &ExecSessions, name: &str, now_ms: u64) -> Result<OpenSession, ExecError> {
        sessions.open(name, "wasm", SessionAccess::default(), now_ms)
    }

    #[test]
    fn a_session_is_kept_listed_and_ended() {
        let place = tempfile::tempdir().expect("a directory");
        let sessions = ExecSessions::new(place.path());
        assert_eq!(sessions.list(5).expect("none"), []);
        let mut first = open(&sessions, "one", 5).expect("begun");
        first.take(answer("x", "AA"), 6).expect("kept");
        assert!(matches!(open(&sessions, "one", 7), Err(ExecError::SessionBusy { .. })));
        assert!(matches!(sessions.end("one"), Err(ExecError::SessionBusy { .. })));
        drop(first);
        let mut again = open(&sessions, "one", 7).expect("it is there");
        assert_eq!((again.steps(), again.groups().len()), (1, 1));
        again.take(answer("y", "BBBB"), 8).expect("kept");
        drop(again);
        let [listed] = &sessions.list(9).expect("a list")[..] else { panic!("one") };
        assert_eq!((listed.steps, listed.bytes, listed.created_ms, listed.used_ms), (2, 6, 5, 8));
        assert_eq!(listed.variables, ["x", "y"]);
        let other =
            sessions.open("one", "native", SessionAccess::default(), 9).expect_err("another interpreter").to_string();
        assert!(other.contains("`one`") && other.contains("wasm"), "{other}");
        assert!(sessions.end("one").expect("ended") && !sessions.end("one").expect("gone"));
        assert_eq!(sessions.list(9).expect("none"), []);
    }

    #[test]
    fn sessions_are_bounded_in_number_bytes_and_age() {
        let place = tempfile::tempdir().expect("a directory");
        let sessions = ExecSessions::new(place.path());
        for number in 0..SESSIONS_MAX {
            let mut one = open(&sessions, &format!("s{number}"), number as u64).expect("begun");
            one.take(answer("x", "AA"), number as u64).expect("kept");
        }
        assert!(matches!(open(&sessions, "more", 200), Err(ExecError::SessionsFull { .. })));
        assert!(open(&sessions, "s0", 200).is_ok(), "one that is there goes on");
        let now = IDLE_MS_MAX + 10;
        assert_eq!(sessions.list(now).expect("a list").len(), SESSIONS_MAX - 10);
        let mut more = open(&sessions, "more", now).expect("there is room");
        let huge = "A".repeat(usize::try_from(SESSION_BYTES_MAX).expect("64 bits") + 4);
        assert!(matches!(more.take(answer("x", &huge), now), Err(ExecError::SessionTooLarge { .. })));
        assert_eq!(more.steps(), 0, "it is as it was");
    }

    #[test]
    fn names_are_bounded_over_all_steps_so_that_a_session_can_be_read_again() {
        let place = tempfile::tempdir().expect("a directory");
        let sessions = ExecSessions::new(place.path());
        let mut one = open(&sessions, "one", 1).expect("begun");
        let many = |first: char| {
            let names: Vec<String> = (0..1_000).map(|number| format!("{first}{number:0>300}")).collect();
            let answer = json!({ "exit_code": 0, "groups": [{ "names": names, "value": "1", "blob": "AA" }] });
            StepAnswer::read(&answer.to_string()).expect("an answer")
        };
        one.take(many('a'), 2).expect("kept");
        let refused = one.take(many('b'), 3).expect_err("too many").to_string();
        assert!(refused.contains("2000 variables"), "{refused}");
        drop(one);
        assert_eq!(open(&sessions, "one", 4).expect("it is there").groups()[0].names.len(), 1_000);
    }

    #[test]
    fn steps_with_grants_and_steps_of_others_never_share_a_session() {
        let place = tempfile::tempdir().expect("a directory");
        let sessions = ExecSessions::new(place.path());
        let step = |name: &str, is_granted: bool, is_shared: bool| {
            sessions.open(name, "wasm", SessionAccess { is_granted, is_shared }, 1).map(|mut session| {
                session.take(answer("x", "AA"), 1).expect("kept");
            })
        };
        step("of-admin", false, false).expect("begun");
        step("of-admin", true, false).expect("its own");
        let refused = step("of-admin", false, true).expect_err("its values may be from directories").to_string();
        assert!(refused.contains("only who may grant them goes on with it"), "{refused}");
        step("of-admin", false, false).expect("its own");
        step("of-admin", true, false).expect("its own");

        step("of-others", false, true).expect("begun");
        step("of-others", false, false).expect("without grants");
        let refused = step("of-others", true, false).expect_err("their code would have the grants").to_string();
        assert!(refused.contains("somebody without the scope `admin` ran steps"), "{refused}");
        step("of-others", false, true).expect("theirs");
        assert!(matches!(step("new", true, true), Err(ExecError::SessionGranted { .. })));
        assert_eq!(sessions.list(1).expect("a list").len(), 2, "a refused step begins none");
    }

    #[test]
    fn a_note_of_an_earlier_version_is_read() {
        let note = json!({
            "name": "one", "runtime": "wasm", "steps": 1, "bytes": 2, "variables": ["x"], "created_ms": 1, "used_ms": 2
        });
        let read: SessionNote = serde_json::from_value(note).expect("a note");
        assert_eq!((read.summary.steps, read.access), (1, SessionAccess::default()));
    }

    #[test]
    fn a_session_that_was_used_since_its_note_was_read_is_not_expired() {
        let place = tempfile::tempdir().expect("a directory");
        let sessions = ExecSessions::new(place.path());
        let mut one = open(&sessions, "one", 1).expect("begun");
        one.take(answer("x", "AA"), 1).expect("kept");
        drop(one);
        let stale = sessions.summary("one").expect("read").expect("a note");
        let now = IDLE_MS_MAX + 10;
        open(&sessions, "one", now).expect("it is there").take(answer("y", "AA"), now).expect("kept");
        assert!(!sessions.is_expired(&stale, now), "another process used it just now");
        assert_eq!(sessions.list(now).expect("a list").len(), 1);
        assert!(sessions.is_expired(&stale, now + IDLE_MS_MAX + 1));
        assert_eq!(sessions.list(now).expect("none"), []);
    }

    #[test]
    fn the_end_of_a_session_takes_nothing_of_one_that_begins_in_its_place() {
        let place = tempfile::tempdir().expect("a directory");
        let sessions = ExecSessions::new(place.path());
        open(&sessions, "one", 1).expect("begun").take(answer("x", "AA"), 1).expect("kept");
        let of_another = place.path().join("sessions/one/of-another");
        fs::write(&of_another, "").expect("written");
        assert!(sessions.end("one").expect("ended"));
        assert!(of_another.is_file());
        assert_eq!(sessions.list(1).expect("none"), []);
        let again = open(&sessions, "one", 2).expect("begun in the same place");
        assert_eq!((again.steps(), again.groups().len()), (0, 0));
    }

    #[test]
    fn a_lock_of_a_session_that_ended_locks_none() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join(LOCK);
        let ended = File::create(&path).expect("made");
        assert!(is_at(&ended, &path));
        fs::remove_file(&path).expect("removed");
        assert!(!is_at(&ended, &path), "there is none");
        let begun = File::create(&path).expect("made");
        assert!(!is_at(&ended, &path) && is_at(&begun, &path));
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        let sessions = ExecSessions::new(Path::new("/nowhere"));
        for name in ["", ".", "..", "a/b", "-a", "a b", "\u{e4}", &"x".repeat(NAME_BYTES_MAX + 1)] {
            assert!(matches!(sessions.end(name), Err(ExecError::SessionName { .. })), "{name}");
        }
    }
}
