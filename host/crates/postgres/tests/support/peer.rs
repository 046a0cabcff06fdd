//! Another process with a store: this test program itself, in the role that `LONGHAUL_TEST_ROLE` names.

#![allow(dead_code, reason = "each test uses its part")]

use rustix::process::{Pid, Signal};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The variable with the role of a child.
pub const ROLE: &str = "LONGHAUL_TEST_ROLE";

/// The timeout for a line, after which its test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process. It is killed at the latest with its value.
pub struct Peer {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Peer {
    /// Starts this program with a role, where the test `child` takes it up.
    pub fn start(role: &str, settings: &[(&str, String)]) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "child", "--nocapture"]).env(ROLE, role);
        command.envs(settings.iter().map(|(name, value)| (*name, value)));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("this program starts");
        let stdout = child.stdout.take().expect("piped");
        let (told, lines) = channel();
        // It ends with the output of the child.
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|it| told.send(it))
        });
        Self { child, lines, seen: Vec::new() }
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next line that begins so, and returns the rest of it.
    #[track_caller]
    pub fn line(&mut self, start: &str) -> String {
        loop {
            let line = match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => line,
                Err(why) => {
                    panic!("no line `{start}`: {why}; {:?}", self.seen.iter().rev().take(5).collect::<Vec<_>>())
                }
            };
            let rest = line.strip_prefix(start).map(str::to_owned);
            self.seen.push(line);
            if let Some(rest) = rest {
                return rest;
            }
        }
    }

    /// The rest of each line so far that begins so.
    pub fn seen(&self, start: &str) -> Vec<String> {
        self.seen.iter().filter_map(|line| line.strip_prefix(start)).map(str::to_owned).collect()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).expect("ours");
    }

    /// Waits for its end, and for all of its lines.
    #[track_caller]
    pub fn end(&mut self) {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the process does not end"),
            }
        }
        self.child.wait().expect("ours");
    }
}

/// A process that is stopped ends by this, too.
impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
