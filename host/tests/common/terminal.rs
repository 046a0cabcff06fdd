//! The program at a pseudo-terminal, with a scripted person who reads and types.

use super::lab::Lab;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest time for something to be shown before its test fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process and its terminal.
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
}

impl Terminal {
    /// Starts the program at a terminal of its own.
    pub fn start(lab: &Lab, args: &[&str], environment: &[(&str, &str)]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).expect("ours");
        unlockpt(&master).expect("ours");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
        let slave = || Stdio::from(OpenOptions::new().read(true).write(true).open(path).expect("ours"));
        let mut command = lab.command(args);
        command.envs(environment.iter().copied()).stdin(slave()).stdout(slave()).stderr(slave());
        let child = command.spawn().expect("the program starts");
        // Dropping the command closes our ends, so that the reader sees the end of the process.
        drop(command);
        let keyboard = File::from(master);
        let screen = Arc::new(Mutex::new(String::new()));
        watch(keyboard.try_clone().expect("ours"), Arc::clone(&screen));
        Self { child, keyboard, screen }
    }

    /// All that it showed, without what only moves the cursor.
    pub fn screen(&self) -> String {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it shows this, `count` times in all.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str, count: usize) {
        let since = Instant::now();
        while self.screen().matches(text).count() < count {
            let ended = self.child.try_wait().expect("ours").is_some();
            assert!(!ended && since.elapsed() < PATIENCE, "no `{text}` in:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Types a line.
    pub fn types(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).expect("a keyboard");
    }

    /// Ctrl-D at the beginning of a line.
    pub fn ends_input(&mut self) {
        self.keyboard.write_all(b"\x04").expect("a keyboard");
    }

    /// SIGINT, as Ctrl-C sends it.
    pub fn interrupt(&mut self) {
        super::lab::interrupt(self.child.id());
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        super::lab::kill(self.child.id());
    }

    /// Waits for its end; what it ended with, and all that it showed.
    #[track_caller]
    pub fn wait(mut self) -> (ExitStatus, String) {
        let since = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("ours") {
                break status;
            }
            assert!(since.elapsed() < PATIENCE, "it did not end:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(10));
        };
        // The last output may not have arrived yet.
        std::thread::sleep(Duration::from_millis(100));
        (status, self.screen())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn watch(mut terminal: File, screen: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        let mut buffer = [0; 4_096];
        let mut bytes = Vec::new();
        while let Ok(count) = terminal.read(&mut buffer)
            && count > 0
        {
            bytes.extend_from_slice(&buffer[..count]);
            *screen.lock().unwrap_or_else(PoisonError::into_inner) = plain(&String::from_utf8_lossy(&bytes));
        }
    });
}

/// The text without escape sequences and carriage returns.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\x1b' => {
                chars.next_if_eq(&'[');
                while chars.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
            }
            '\r' => {}
            char => plain.push(char),
        }
    }
    plain
}
