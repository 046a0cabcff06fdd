//! DBOS's library for Python, which makes the same steps on the same server, as a process of its own.
//!
//! The packages are fetched by pip into the cache of build tools, once; nothing is installed. Binary ones are for the
//! Python that fetched them.

use super::{CALLERS, Figures, RECORD_BYTES, SLICE};
use crate::server::PostgresServer;
use crate::server::programs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// DBOS, and all that it imports, each in its version.
const PACKAGES: [(&str, &str); 11] = [
    ("dbos", "3.4.0"),
    ("click", "8.5.1"),
    ("croniter", "7.0.0"),
    ("greenlet", "3.5.6"),
    ("psycopg", "3.3.9"),
    ("psycopg-binary", "3.3.9"),
    ("python-dateutil", "4.0.0"),
    ("pyyaml", "6.0.4"),
    ("sqlalchemy", "2.1.9"),
    ("typing-extensions", "4.16.0"),
    ("tzdata", "2026.6"),
];

/// The process.
pub struct Dbos {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Dbos {
    /// Starts it with a database of its own. The error says why it cannot be measured here.
    pub fn start(server: &PostgresServer) -> Result<Self, String> {
        let cache = programs::cache();
        let fetch = |(name, version)| longhaul_build::python_package(&cache, name, version);
        let folders: Vec<PathBuf> =
            PACKAGES.into_iter().map(fetch).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/appends/dbos.py");
        // SQLAlchemy knows the address under this name alone.
        let url = server.database().replacen("postgres://", "postgresql://", 1);
        let mut python = Command::new("python3");
        python.arg(script).arg(url).arg(RECORD_BYTES.to_string()).arg(CALLERS[CALLERS.len() - 1].to_string());
        python.env_remove("VIRTUAL_ENV").env_remove("PYTHONHOME").env("PYTHONDONTWRITEBYTECODE", "1");
        python.env("PYTHONPATH", std::env::join_paths(folders).expect("no colon in it"));
        let mut child =
            python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
        let (orders, answers) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut process = Self { child, orders, answers: BufReader::new(answers).lines() };
        match process.answers.next() {
            Some(Ok(line)) if line == "ready" => Ok(process),
            other => Err(format!(
                "it did not start: {other:?}; remove its packages from the cache after an update of Python"
            )),
        }
    }

    /// Has so many workflows make steps for the time of a slice.
    pub fn slice(&mut self, callers: usize) -> Figures {
        writeln!(self.orders, "{callers} {}", SLICE.as_millis()).expect("it reads");
        let line = self.answers.next().expect("it answers").expect("text");
        let numbers: Vec<u32> = line.split(' ').map(|number| number.parse().expect("a number")).collect();
        let [steps, p50_us] = numbers[..] else { panic!("not two numbers: {line}") };
        let p50 = Duration::from_micros(p50_us.into());
        Figures { rate: f64::from(steps) / SLICE.as_secs_f64(), p50 }
    }
}

impl Drop for Dbos {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
