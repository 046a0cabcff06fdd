//! A real PostgreSQL on a free loopback port, for the tests of one program.
//!
//! It has one user, `longhaul`, who may do everything and needs no password; the user `guarded` needs one, once a test
//! has made it. Each server starts from a copy of a cluster that `initdb` made once, in the cache of build tools.

#![allow(dead_code, reason = "each test uses its part")]

#[path = "programs.rs"]
pub mod programs;
#[path = "sql.rs"]
pub mod sql;

use longhaul_build::BuildError;
use programs::Programs;
use rustix::process::{Pid, Signal};
use sql::{Rows, Session};
use std::ffi::OsString;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The timeout for a start, an end or an answer of the server, after which its test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time between two looks at a file that the server writes.
const LOOK: Duration = Duration::from_millis(10);

/// The user and the database of tests that need no others.
const USER: &str = "longhaul";
const DATABASE: &str = "postgres";

/// Settings of all servers: small, without a compiler, and with nothing that outlives its directory.
const SETTINGS: [&str; 6] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "dynamic_shared_memory_type=mmap",
    "shared_buffers=32MB",
    "jit=off",
    // The start after a kill makes one call in the place of a thousand.
    "recovery_init_sync_method=syncfs",
];

/// Settings for tests that do not end the server: a power failure would lose what it holds.
const QUICK: [&str; 2] = ["fsync=off", "full_page_writes=off"];

/// A server. It ends with its value, also when a test panics.
pub struct PostgresServer {
    pub port: u16,
    programs: Programs,
    settings: Vec<String>,
    child: Option<Child>,
    /// Removed with it.
    directory: TempDir,
}

impl PostgresServer {
    /// The server that the tests of this program share. It ends with the last of them; nobody ends it before.
    pub fn shared() -> Arc<Self> {
        static RUNNING: Mutex<Weak<PostgresServer>> = Mutex::new(Weak::new());
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::start(&QUICK));
            *running = Arc::downgrade(&server);
            server
        })
    }

    /// A server of one test, with more settings, for example `max_connections=8`. Its commits reach the disk.
    pub fn start(settings: &[&str]) -> Self {
        let mut server = Self::new(settings);
        copy(&cluster(), &server.data());
        server.begin();
        server
    }

    /// A server that also speaks TLS, as `localhost`, and its certificate.
    pub fn start_tls() -> (Self, PathBuf) {
        let mut server = Self::new(&["ssl=on", "ssl_cert_file=certificate.pem", "ssl_key_file=key.pem"]);
        let data = server.data();
        copy(&cluster(), &data);
        let (key, certificate) = (data.join("key.pem"), data.join("certificate.pem"));
        programs::run(
            Command::new("openssl")
                .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
                .args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
                .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
                .arg(&key)
                .arg("-out")
                .arg(&certificate),
        );
        [&key, &certificate].into_iter().for_each(|file| programs::give(file));
        server.begin();
        (server, certificate)
    }

    /// A standby of this server, which follows it.
    pub fn standby(&self) -> Self {
        let mut standby = Self::new(&[]);
        let mut copying = standby.programs.command("pg_basebackup", standby.directory.path());
        copying.args(["-h", "127.0.0.1", "-U", USER, "-R", "-X", "stream", "-c", "fast", "--no-sync", "-p"]);
        programs::run(copying.arg(self.port.to_string()).arg("-D").arg(standby.data()));
        standby.begin();
        standby
    }

    fn new(settings: &[&str]) -> Self {
        let directory = programs::place();
        let programs = Programs::found().within_reach_of(directory.path());
        let settings = SETTINGS.iter().chain(settings).map(|setting| (*setting).to_owned()).collect();
        Self { port: free_port(), programs, settings, child: None, directory }
    }

    /// The address of its database.
    pub fn url(&self) -> String {
        self.url_of(USER, DATABASE)
    }

    /// The address of a database for a user.
    pub fn url_of(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// The address of a new and empty database.
    pub fn database(&self) -> String {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", MADE.fetch_add(1, Ordering::SeqCst));
        self.ask(&format!("create database {name} strategy file_copy"));
        self.url_of(USER, &name)
    }

    /// A connection to its database.
    pub fn session(&self) -> Session {
        Session::open(self.port, USER, DATABASE).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The directory of its programs, `createdb` and `psql` among them.
    pub fn bin(&self) -> &Path {
        self.programs.bin()
    }

    /// The variables by which its programs reach it from a shell, as a user who may do everything.
    pub fn variables(&self, user: &str) -> Vec<(&'static str, OsString)> {
        let mut variables = vec![
            ("PGHOST", OsString::from("127.0.0.1")),
            ("PGPORT", self.port.to_string().into()),
            ("PGUSER", user.into()),
            ("PGDATABASE", DATABASE.into()),
        ];
        variables.extend(self.programs.libraries().map(|libraries| (programs::LIBRARIES, libraries)));
        variables
    }

    /// Gives its user `longhaul` the name `name`, so that a user of that name can be made.
    pub fn rename_user(&self, name: &str) {
        // Nobody renames the user of the connection.
        self.ask("create role renaming superuser login");
        let mut other = Session::open(self.port, "renaming", DATABASE).unwrap_or_else(|error| panic!("{error}"));
        other.ask(&format!("alter role {USER} rename to {name}")).unwrap_or_else(|error| panic!("{error}"));
    }

    /// The rows of an answer to SQL, as text.
    #[track_caller]
    pub fn ask(&self, sql: &str) -> Rows {
        self.session().ask(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The one value of an answer to SQL, as text.
    #[track_caller]
    pub fn value(&self, sql: &str) -> String {
        self.ask(sql).concat().pop().unwrap_or_else(|| panic!("{sql}: no row"))
    }

    /// Ends all of its processes with SIGKILL.
    pub fn kill(&mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        // It starts no more processes while it is stopped.
        signal(&child, Signal::STOP);
        let children = children_of(child.id());
        child.kill().expect("ours");
        child.wait().expect("ours");
        for process in &children {
            // One may have ended by itself.
            let _ = rustix::process::kill_process(*process, Signal::KILL);
        }
        // The next server refuses to start while one of them has its memory.
        wait("the processes of the server end", || children.iter().all(|process| state_of(*process).is_none()));
    }

    /// Ends it in order: connections are closed, and everything is on the disk.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        signal(&child, Signal::INT);
        wait("the server ends", || child.try_wait().expect("ours").is_some());
    }

    /// Starts it on the data that it had, at the same port.
    pub fn begin(&mut self) {
        let log = File::options().create(true).append(true).open(self.log()).expect("a file");
        let mut command = self.programs.command("postgres", self.directory.path());
        command.arg("-D").arg(self.data()).args(["-p", &self.port.to_string()]);
        for setting in &self.settings {
            command.args(["-c", setting.as_str()]);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("postgres starts");
        let number = child.id().to_string();
        let child = self.child.insert(child);
        let (data, log) = (self.directory.path().join("data"), self.directory.path().join("log"));
        wait("the server is ready", || {
            let ended = child.try_wait().expect("ours");
            assert!(ended.is_none(), "postgres: {ended:?}: {}", fs::read_to_string(&log).unwrap_or_default());
            is_ready(&data, &number)
        });
    }

    /// Makes a standby the server that takes writes.
    pub fn promote(&self) {
        assert_eq!(self.value("select pg_promote(true, 60)"), "t");
    }

    /// Stops the process that sends to the standby, so that it gets nothing more.
    pub fn stop_streaming(&self) {
        let sender: i32 = self.value("select pid from pg_stat_replication").parse().expect("a number");
        rustix::process::kill_process(Pid::from_raw(sender).expect("not 0"), Signal::STOP).expect("ours");
    }

    /// Waits until the standby has applied everything that this server has written.
    pub fn wait_for_standby(&self) {
        let has_all = "select count(*) from pg_stat_replication where replay_lsn >= pg_current_wal_lsn()";
        wait("the standby has it all", || self.value(has_all) == "1");
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }
}

/// It does not panic, since a test may be doing that already.
impl Drop for PostgresServer {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        let _ = rustix::process::kill_process(Pid::from_child(&child), Signal::QUIT);
        let asked = Instant::now();
        while matches!(child.try_wait(), Ok(None)) && asked.elapsed() < PATIENCE {
            std::thread::sleep(LOOK);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Polls what no event tells, for at most a minute.
#[track_caller]
pub fn wait(for_what: &str, mut is_so: impl FnMut() -> bool) {
    let asked = Instant::now();
    while !is_so() {
        assert!(asked.elapsed() < PATIENCE, "waited in vain: {for_what}");
        std::thread::sleep(LOOK);
    }
}

/// The cluster that servers start from, made once.
fn cluster() -> PathBuf {
    let programs = Programs::found();
    // The name determines the content: change it with the arguments.
    let name = format!("postgres-{}-cluster-1-of-{}", programs.version(), programs::server_user());
    let folder = programs::cache().folder(&name, |folder| {
        let place = programs::place();
        let mut initdb = programs.within_reach_of(place.path()).command("initdb", place.path());
        initdb.args([
            "-U",
            USER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-locale",
            "--no-sync",
            "--wal-segsize=1",
            "-D",
            "data",
        ]);
        programs::run(&mut initdb);
        let access = place.path().join("data/pg_hba.conf");
        let lines = fs::read_to_string(&access).expect("initdb writes it");
        // The first line that fits decides.
        fs::write(&access, format!("host all guarded 127.0.0.1/32 scram-sha-256\n{lines}")).expect("room");
        copy(&place.path().join("data"), &folder.join("data"));
        Ok::<_, BuildError>(())
    });
    folder.unwrap_or_else(|error| panic!("{error}")).join("data")
}

fn copy(from: &Path, to: &Path) {
    programs::run(Command::new("cp").args(["-a", "--reflink=auto"]).arg(from).arg(to));
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port()
}

/// The first line of the file is the process, which may be an earlier one; the eighth is its state.
fn is_ready(data: &Path, process: &str) -> bool {
    let lines = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    let line = |number| lines.lines().nth(number).map(str::trim);
    line(0) == Some(process) && line(7) == Some("ready")
}

fn signal(child: &Child, signal: Signal) {
    rustix::process::kill_process(Pid::from_child(child), signal).expect("ours");
}

fn children_of(parent: u32) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").expect("Linux").filter_map(Result::ok);
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let parent = parent.to_string();
    numbers.filter_map(Pid::from_raw).filter(|process| state_of(*process).is_some_and(|(_, of)| of == parent)).collect()
}

/// The state and the parent of a process that has not ended.
fn state_of(process: Pid) -> Option<(String, String)> {
    let text = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // The name, in brackets, may contain anything.
    let mut fields = text.rsplit_once(") ")?.1.split(' ').map(str::to_owned);
    let (state, parent) = (fields.next()?, fields.next()?);
    (state != "Z").then_some((state, parent))
}
