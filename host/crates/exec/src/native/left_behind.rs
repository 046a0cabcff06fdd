//! The file that a native job leaves behind: its outputs, and its report of its end.
//!
//! It is read after all processes of the job have ended. The job may have put anything in the place of the file: a
//! link, a pipe, lines without end. No link is followed, nothing but a regular file is read, and that up to a bound.

use crate::outputs::{ANSWER_VALUES_MAX, OUTPUTS_BYTES_MAX, Outputs};
use longhaul_core::json::values_in;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use serde::Deserialize;
use serde_json::Value;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The directory of a job's files, in the directory that host and sandbox share.
pub(super) const FILES: &str = "job";

/// The name of the file, beside the runner.
pub(super) const FILE: &str = "outputs";

/// The name of the file with the answer of a step, and bytes that are read of it: values up to the bound of the
/// interpreter's own, with what is around them.
pub(super) const ANSWER: &str = "answer";
const ANSWER_BYTES_MAX: u64 = 96 << 20;

/// Bytes that are read of the file: outputs up to their bound, and the lines around them.
const FILE_BYTES_MAX: u64 = OUTPUTS_BYTES_MAX as u64 + (1 << 20);

/// The outputs that a job left, and the memory that it used.
#[derive(Debug, Default)]
pub(crate) struct LeftBehind {
    pub(crate) outputs: Outputs,
    /// True when the source ended by lack of memory.
    pub(crate) lacked_memory: bool,
    /// The peak memory of the interpreter, as it says; 0 when it was stopped.
    pub(crate) memory_bytes_peak: u64,
}

/// A line of the file.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Output(Value),
    End(End),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct End {
    memory: bool,
    memory_bytes_peak: u64,
    outputs_dropped: u64,
}

/// Reads what the job in this scratch directory left.
pub(super) fn read(scratch: &Path) -> LeftBehind {
    // A job that removed the file has no outputs.
    of_lines(&bytes_of(scratch, FILE, FILE_BYTES_MAX).unwrap_or_default())
}

/// Reads the answer that the step in this scratch directory left; none when it left none.
pub(super) fn read_answer(scratch: &Path) -> Option<String> {
    let bytes = bytes_of(scratch, ANSWER, ANSWER_BYTES_MAX).ok()?;
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

fn bytes_of(scratch: &Path, name: &str, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(scratch, name)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open(scratch: &Path, name: &str) -> std::io::Result<File> {
    let directory = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Its parent is out of the job's reach, so the first one is what it was.
    let mut at = openat(CWD, scratch, directory, Mode::empty())?;
    for below in ["tmp", FILES] {
        at = openat(&at, below, directory, Mode::empty())?;
    }
    let file =
        openat(&at, name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(std::io::Error::other("no regular file"));
    }
    Ok(file.into())
}

fn of_lines(bytes: &[u8]) -> LeftBehind {
    let (mut left, mut values_left) = (LeftBehind::default(), ANSWER_VALUES_MAX);
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let Some(rest) = values_left.checked_sub(values_in(line)) else {
            left.outputs.dropped = left.outputs.dropped.saturating_add(1);
            continue;
        };
        values_left = rest;
        match serde_json::from_slice(line) {
            Ok(Line::Output(value)) => left.outputs.push(value),
            Ok(Line::End(end)) => {
                left.lacked_memory |= end.memory;
                left.memory_bytes_peak = left.memory_bytes_peak.max(end.memory_bytes_peak);
                left.outputs.dropped = left.outputs.dropped.saturating_add(end.outputs_dropped);
            }
            Err(_) => left.outputs.dropped = left.outputs.dropped.saturating_add(1),
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn lines_are_outputs_and_an_end_and_others_are_counted() {
        let text = "{\"output\": {\"kind\": \"json\", \"value\": 1}}\nnonsense\n{\"end\": {\"memory\": true}}\n\
                    {\"end\": {\"memory_bytes_peak\": 7, \"outputs_dropped\": 2}}\n{\"output\":";
        let left = of_lines(text.as_bytes());
        assert_eq!((left.outputs.kept.len(), left.outputs.dropped), (1, 4));
        assert_eq!((left.lacked_memory, left.memory_bytes_peak), (true, 7));
    }

    #[test]
    fn lines_with_more_values_than_the_host_holds_are_dropped_and_those_behind_them_are_read() {
        let of =
            |zeros: usize| format!("{{\"output\": {{\"kind\": \"json\", \"value\": [{}0]}}}}\n", "0,".repeat(zeros));
        let left = of_lines([of(ANSWER_VALUES_MAX), of(1)].concat().as_bytes());
        assert_eq!((left.outputs.kept.len(), left.outputs.dropped), (1, 1));
        let half = of(ANSWER_VALUES_MAX / 2);
        let left = of_lines([half.clone(), half, of(1)].concat().as_bytes());
        assert_eq!((left.outputs.kept.len(), left.outputs.dropped), (2, 1), "they are counted together");
    }

    #[test]
    fn nothing_is_read_but_a_regular_file_in_its_place() {
        let place = tempfile::tempdir().expect("a directory");
        let scratch = |name: &str| {
            let scratch = place.path().join(name);
            std::fs::create_dir_all(scratch.join("tmp/job")).expect("made");
            scratch
        };
        let line = "{\"output\": {\"kind\": \"json\", \"value\": 1}}\n";
        let secret = place.path().join("secret");
        std::fs::create_dir_all(secret.join("job")).expect("made");
        std::fs::write(secret.join("job/outputs"), line).expect("written");
        let found = |scratch: &Path| read(scratch).outputs.kept.len();

        let plain = scratch("plain");
        assert_eq!(found(&plain), 0, "there is none");
        std::fs::write(plain.join("tmp/job/outputs"), line).expect("written");
        assert_eq!(found(&plain), 1);
        let of_file = scratch("of-file");
        symlink(secret.join("job/outputs"), of_file.join("tmp/job/outputs")).expect("linked");
        assert_eq!(found(&of_file), 0);
        let of_directory = scratch("of-directory");
        std::fs::remove_dir_all(of_directory.join("tmp")).expect("removed");
        symlink(&secret, of_directory.join("tmp")).expect("linked");
        assert_eq!(found(&of_directory), 0);
        // Opened without waiting for a writer, and then refused.
        let of_pipe = scratch("of-pipe");
        rustix::fs::mkfifoat(CWD, of_pipe.join("tmp/job/outputs"), Mode::RUSR).expect("a pipe");
        assert_eq!(found(&of_pipe), 0);
    }
}
