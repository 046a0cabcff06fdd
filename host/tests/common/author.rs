//! An author with nothing but the program, in an empty folder.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

/// An empty folder, and the program in it.
pub struct Author {
    /// The folder; it goes with this value.
    pub place: TempDir,
}

impl Author {
    /// A folder of its own.
    pub fn new() -> Self {
        Self { place: tempfile::Builder::new().prefix("author-").tempdir().expect("a folder") }
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// The program with a data directory in the folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command.args(arguments).current_dir(self.place.path()).env("LONGHAUL_HOME", self.path("home"));
        // Authors write their own files.
        command.env("LONGHAUL_TRUST", "all");
        command
    }

    /// The standard output of a successful command.
    #[track_caller]
    pub fn runs(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("it starts");
        assert!(output.status.success(), "{arguments:?}\n{}", said(&output));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Its one line, when it refused; all that it said where a compiler speaks.
    #[track_caller]
    pub fn refuses(&self, arguments: &[&str]) -> String {
        self.refuses_with(&mut self.command(arguments))
    }

    /// The same of a command that was changed.
    #[track_caller]
    pub fn refuses_with(&self, command: &mut Command) -> String {
        let output = command.output().expect("it starts");
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(output.stdout.is_empty(), "{}", said(&output));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Writes a file, with the folders above it.
    pub fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().expect("a folder")).expect("it can be made");
        fs::write(self.path(name), text).expect("it can be written");
    }

    /// The text of a file.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("it is there")
    }
}

/// All that it said.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Checks that the program said one line, with this in it.
#[track_caller]
pub fn one_line(text: &str, expected: &str) {
    // Other tests use the same cache at the same time, and the log is no answer.
    let is_said =
        |line: &&str| !line.starts_with("waiting for another process") && !line.trim_start().starts_with("INFO ");
    let lines: Vec<&str> = text.lines().filter(is_said).collect();
    let text = lines.join("\n");
    assert!(text.starts_with("longhaul: ") && text.contains(expected), "wanted `{expected}`:\n{text}");
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
}

/// Above it is what is done, and what a compiler says itself.
pub fn last_line(text: &str) -> String {
    text.trim_end().lines().last().unwrap_or_default().to_owned()
}
