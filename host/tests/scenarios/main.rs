//! Whole-path scenarios: each folder of `tests/scenarios` is a test, and adding one adds no Rust. So is each page of
//! the book, see `book.rs`.
//!
//! `tests/scenarios/README.md` says what a folder holds. `LONGHAUL_SCENARIOS=WORDS` takes the folders and pages with
//! the words in their names; `UPDATE_EXPECT=1` writes the expected texts anew. Nothing here asserts what a scenario is
//! about: its expected text does.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../crates/postgres/tests/support/server.rs"]
mod postgres_server;

mod book;
mod lay_out;
mod normal;
mod pick;
mod processes;
mod told;

use common::lab::{Lab, Ran};
use common::repository;
use expect_test::expect_file;
use libtest_mimic::{Arguments, Trial};
use processes::Processes;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

fn main() -> ExitCode {
    // The steps start this program under the names of two more commands.
    let program = std::env::args().next().map(PathBuf::from).unwrap_or_default();
    match program.file_name().and_then(|name| name.to_str()) {
        Some("pick") => return pick::main(),
        Some("told") => return told::main(),
        _ => {}
    }
    let arguments = Arguments::from_args();
    let words = std::env::var("LONGHAUL_SCENARIOS").unwrap_or_default();
    let trial = |(name, folder): (String, PathBuf)| {
        Trial::test(name, move || {
            check(&folder);
            Ok(())
        })
    };
    let mut trials: Vec<Trial> = folders().into_iter().map(trial).chain(book::trials()).collect();
    trials.retain(|trial| trial.name().contains(&words));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The scenarios with their names.
fn folders() -> Vec<(String, PathBuf)> {
    let place = repository().join("tests/scenarios");
    let entries = fs::read_dir(&place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    let paths = entries.map(|entry| entry.expect("readable").path()).filter(|path| path.is_dir());
    let name = |path: &Path| path.file_name().expect("it has one").to_string_lossy().into_owned();
    let mut folders: Vec<_> = paths.map(|path| (name(&path), path)).collect();
    folders.sort();
    folders
}

/// Runs the steps of a scenario and compares what they print.
fn check(folder: &Path) {
    let lab = lay_out::lab(folder);
    let mut processes = Processes::default();
    let (mut text, mut last) = (String::new(), None);
    for line in steps(folder) {
        let started = lab.start_command(shell(&lab, &line));
        processes.add(started.pid());
        let ran = started.wait();
        text.push_str(&shown(&line, &ran));
        last = ran.code();
    }
    drop(processes);
    let text = normal::normal(text.trim_end(), &lab);
    let (file, other) = names_of_text(last);
    take_away(&folder.join(other), file);
    expect_file![folder.join(file)].assert_eq(&text);
}

/// The file with the expected output of a scenario, and the file that must not exist: a scenario whose last step is
/// refused should fail, and has another file.
fn names_of_text(last: Option<i32>) -> (&'static str, &'static str) {
    if matches!(last, Some(1 | 2)) { ("error.txt", "expected.txt") } else { ("expected.txt", "error.txt") }
}

fn take_away(wrong: &Path, right: &str) {
    if wrong.exists() {
        assert!(
            std::env::var_os("UPDATE_EXPECT").is_some(),
            "`{}` is there, and the last step ended so that it is `{right}`",
            wrong.display()
        );
        fs::remove_file(wrong).expect("ours");
    }
}

/// The commands of a scenario, a line each.
fn steps(folder: &Path) -> Vec<String> {
    let path = folder.join("steps.sh");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// A shell that is about to carry a step out in the project.
fn shell(lab: &Lab, line: &str) -> Command {
    let commands = repository().join("tests/scenarios/commands.sh");
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!(". '{}'\n{line}", commands.display()));
    shell.current_dir(lab.project()).stdin(Stdio::null()).process_group(0);
    for (name, value) in lab.command(&[]).get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(lay_out::programs(lab)).chain(std::env::split_paths(&path));
    shell.env("PATH", std::env::join_paths(path).expect("no colon in it"));
    // The user's own settings do not count; `LC_ALL` makes texts and orders of other programs the same everywhere.
    shell.env_remove("XDG_CONFIG_HOME");
    shell.env("LONGHAUL_HOME", lab.home()).env("LC_ALL", "C").env("SERVER", &lab.fake.address);
    shell
}

/// A step with what it printed: errors behind a `!`, an exit code where it is not 0.
fn shown(line: &str, ran: &Ran) -> String {
    let mut text = format!("$ {line}\n{}", ran.stdout);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    // The first scenario compiles a plugin, and the others wait for it.
    let is_log = |line: &str| line.trim_start().starts_with("INFO ") || line.starts_with("waiting for another process");
    for error in ran.stderr.lines().filter(|line| !is_log(line)) {
        text.push_str(format!("! {error}").trim_end());
        text.push('\n');
    }
    match ran.code() {
        Some(0) => {}
        Some(code) => text.push_str(&format!("[exit {code}]\n")),
        None => text.push_str("[killed]\n"),
    }
    text.push('\n');
    text
}
