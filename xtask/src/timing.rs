//! Stages of a long command: the time of each, the processor time of its processes, and the work of cargo in it.
//!
//! A stage whose processor time is far below its time on all cores waits: for a disk, the network or other processes.
//!
//! Cargo has no stable way to count that leaves its messages as they are. So this counts the directories of cargo's
//! fingerprints with a time of compilation in the stage. They are an internal of cargo: where they are absent, only the
//! seconds are printed, and no decision depends on them.

use anyhow::Result;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The directory of cargo's fingerprints, in the directory of a profile.
const FINGERPRINTS: &str = ".fingerprint";

/// The file of a fingerprint that cargo writes when it starts to compile.
const STARTED: &str = "invoked.timestamp";

/// The depth below `target` of the directories of profiles: `debug`, `sdk/debug`, `guests/TARGET/release`.
const DEPTH_MAX: usize = 3;

/// Stages with their times and with the work of cargo.
pub(crate) struct Stages {
    target: PathBuf,
    done: Vec<Stage>,
}

struct Stage {
    name: &'static str,
    time: Duration,
    /// Of the processes that it waited for, in seconds; none where the system does not tell.
    processor_s: Option<u64>,
    compiled: Compiled,
}

/// Work of cargo.
#[derive(Debug, Default, PartialEq, Eq)]
struct Compiled {
    /// Packages with at least one step. Two versions of a package are one.
    packages: BTreeSet<String>,
    /// Compilations of libraries, programs and tests, and builds and runs of build scripts.
    steps: usize,
}

impl Stages {
    /// None yet, for the repository at `root`.
    pub(crate) fn new(root: &Path) -> Self {
        Self { target: root.join("target"), done: Vec::new() }
    }

    /// Carries out a stage. After one that fails, the stages until then are printed.
    pub(crate) fn run<T>(&mut self, name: &'static str, stage: impl FnOnce() -> Result<T>) -> Result<T> {
        let (start, since, before) = (Instant::now(), SystemTime::now(), processor_s());
        let done = stage();
        let time = start.elapsed();
        let processor_s = processor_s().zip(before).map(|(after, before)| after.saturating_sub(before));
        let mut compiled = Compiled::default();
        count(&self.target, since, DEPTH_MAX, &mut compiled);
        self.done.push(Stage { name, time, processor_s, compiled });
        if done.is_err() {
            self.print();
        }
        done
    }

    /// Prints to standard error: the last words on standard output are the tests' own.
    pub(crate) fn print(&self) {
        let times: Vec<String> =
            self.done.iter().map(|stage| format!("{} {} s", stage.name, stage.time.as_secs())).collect();
        eprintln!("stages: {}", times.join(", "));
        let processor = self.done.iter().filter_map(|stage| Some((stage.name, stage.processor_s.filter(|s| *s > 0)?)));
        let processor: Vec<String> = processor.map(|(name, seconds)| format!("{name} {seconds} s")).collect();
        if !processor.is_empty() {
            let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            eprintln!("processor time, on {cores} cores: {}", processor.join(", "));
        }
        let built = self.done.iter().filter(|stage| stage.compiled.steps > 0);
        let built: Vec<String> = built
            .map(|Stage { name, compiled: Compiled { packages, steps }, .. }| {
                format!("{name} {} packages in {steps} steps", packages.len())
            })
            .collect();
        if !built.is_empty() {
            eprintln!("compiled by cargo: {}", built.join(", "));
        }
    }
}

/// The processor time of all processes that this one has waited for, and of those that they waited for, in seconds.
fn processor_s() -> Option<u64> {
    processor_s_of_children(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// The same in a line of `/proc/PID/stat`, which counts hundredths of a second for programs.
fn processor_s_of_children(stat: &str) -> Option<u64> {
    // The name, in brackets, may contain anything.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(13).map(|field| field.parse::<u64>().ok());
    Some((fields.next()?? + fields.next()??) / 100)
}

/// Adds what cargo has compiled below `directory` since then.
fn count(directory: &Path, since: SystemTime, depth: usize, compiled: &mut Compiled) {
    for fingerprint in directories(&directory.join(FINGERPRINTS)) {
        let started = std::fs::metadata(fingerprint.join(STARTED)).and_then(|found| found.modified());
        if started.is_ok_and(|started| started >= since) {
            let name = fingerprint.file_name().unwrap_or_default().to_string_lossy();
            // The name of the package, then a digest.
            compiled.packages.insert(name.rsplit_once('-').map_or(&*name, |(package, _)| package).to_owned());
            compiled.steps += 1;
        }
    }
    if depth > 0 {
        for below in directories(directory).filter(|below| !below.ends_with(FINGERPRINTS)) {
            count(&below, since, depth - 1, compiled);
        }
    }
}

fn directories(of: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(of).into_iter().flatten().flatten();
    // A link would lead out of the builds.
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::{Compiled, DEPTH_MAX, count, processor_s, processor_s_of_children};
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    #[test]
    fn the_processor_time_is_that_of_the_children_in_the_mode_of_a_user_and_of_the_kernel() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 5 6 0 0 11 22 12345 678 20 0 1 0 99";
        assert_eq!(processor_s_of_children(stat), Some(130));
        assert_eq!(processor_s_of_children("7 (a) S 1"), None);
        assert!(!cfg!(target_os = "linux") || processor_s().is_some());
    }

    #[test]
    fn the_work_of_cargo_in_a_stage_is_counted_by_package_and_step() {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tmp/timing");
        for name in ["debug/.fingerprint/serde-0a", "debug/.fingerprint/serde-0b", "sdk/debug/.fingerprint/a-b-0c"] {
            std::fs::create_dir_all(target.join(name)).unwrap();
            std::fs::write(target.join(name).join("invoked.timestamp"), "").unwrap();
        }
        let counted = |since| {
            let mut compiled = Compiled::default();
            count(&target, since, DEPTH_MAX, &mut compiled);
            compiled
        };
        let packages = ["a-b", "serde"].map(str::to_owned).into();
        assert_eq!(counted(SystemTime::UNIX_EPOCH), Compiled { packages, steps: 3 });
        assert_eq!(counted(SystemTime::now() + Duration::from_secs(3_600)), Compiled::default());
        std::fs::remove_dir_all(&target).unwrap();
    }
}
