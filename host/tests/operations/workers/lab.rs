//! Servers of one database that all work on runs, each a process with a data directory of its own, and a client that
//! asks whichever of them answers.
//!
//! Nothing here asserts what a run does; the tests do that.

use crate::common::lab::{self, Lab, Ran};
use crate::common::web::{self, Said, Web};
use crate::list;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The label of all servers but the first one.
pub const FAR: &str = "far";

/// Longest time for something to be seen before its test fails.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The lease of the servers of a test in which some of them stop: the shortest.
pub const LEASE: Duration = Duration::from_millis(2_000);

/// The lease where none does, which compilers beside the test do not use up.
pub const LEASE_UNDISTURBED: Duration = Duration::from_secs(10);

/// The servers of a cluster.
pub const SERVERS: usize = 3;

/// The runs that each server works on at once.
pub const RUNS_MAX: usize = 2;

/// The exit code of a server that lost its lease.
const LEASE_LOST: i32 = 6;

/// The pause between two looks.
pub const LOOK: Duration = Duration::from_millis(50);

/// Longest time for an answer. A request that was forwarded to a server which sleeps has none.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Ports of servers: below those that a system gives to outgoing connections, one of which could have the port of a
/// server that was killed.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// The servers, and the projects that they work on.
pub struct Cluster {
    /// The laboratory. Its data directory is that of the first server.
    pub lab: Lab,
    token: String,
    lease: Duration,
    servers: Vec<Server>,
    asked: AtomicUsize,
}

struct Server {
    home: PathBuf,
    address: String,
    database: String,
    /// None: it was not started, or has ended.
    process: Option<Web>,
    sleeps: bool,
}

impl Cluster {
    /// Servers that are all started; `database` has the address at which each reaches the database. The first one
    /// leads.
    pub fn start(database: impl Fn(usize) -> String) -> Self {
        Self::prepared(LEASE, database).started()
    }

    /// The same servers for a test in which none of them stops.
    pub fn undisturbed(database: impl Fn(usize) -> String) -> Self {
        Self::prepared(LEASE_UNDISTURBED, database).started()
    }

    fn started(mut self) -> Self {
        for at in 0..SERVERS {
            self.begin(at);
            self.wait_until_joined();
        }
        self
    }

    /// The servers before their start.
    pub fn prepared(lease: Duration, database: impl Fn(usize) -> String) -> Self {
        let lab = Lab::empty();
        let server = |(at, address): (usize, String)| Server {
            home: if at == 0 { lab.home() } else { lab.path(&format!("home-{at}")) },
            address,
            database: database(at),
            process: None,
            sleeps: false,
        };
        let servers: Vec<Server> = free_addresses().into_iter().enumerate().map(server).collect();
        let mut cluster = Self { lab, token: String::new(), lease, servers, asked: AtomicUsize::new(0) };
        for at in 0..SERVERS {
            let labels: &[&str] = if at == 0 { &[] } else { &[FAR] };
            cluster.settle(at, labels);
        }
        cluster.token = web::token(&cluster.lab, "all", &["--scope", "admin"]);
        cluster
    }

    /// Writes the settings of a server that does not run, with its labels.
    pub fn settle(&self, at: usize, labels: &[&str]) {
        let Server { home, address, database, .. } = &self.servers[at];
        fs::create_dir_all(home).expect("ours");
        fs::set_permissions(home, fs::Permissions::from_mode(0o700)).expect("ours");
        let settings = format!(
            "[server]\nlisten = \"{address}\"\nurl = \"http://{address}\"\n[store]\nurl = \"{database}\"\n\
             lease_ms = {}\n[worker]\nlabels = {}\n",
            self.lease.as_millis(),
            json!(labels)
        );
        fs::write(home.join("server.toml"), settings).expect("ours");
        fs::write(home.join("resources.toml"), format!("runs_max = {RUNS_MAX}\n")).expect("ours");
    }

    /// Starts a server, and waits until it answers.
    pub fn begin(&mut self, at: usize) {
        let Server { home, address, .. } = &self.servers[at];
        let process = self.lab.start_command(self.lab.command_at(home, &["serve"]));
        let mut web = Web { address: address.clone(), server: process, token: self.token.clone() };
        let since = Instant::now();
        while TcpStream::connect(&web.address).is_err() {
            let is_well = web.server.is_running() && since.elapsed() < PATIENCE;
            assert!(is_well, "server {at} does not answer:\n{}", web.server.printed());
            std::thread::sleep(LOOK);
        }
        self.servers[at].process = Some(web);
    }

    /// Starts the servers again that have lost their lease, as a service manager does.
    pub fn revive(&mut self) {
        for at in 0..SERVERS {
            if !self.servers[at].process.as_mut().is_some_and(|web| web.server.is_running()) {
                if self.servers[at].process.is_some() {
                    self.expect_lost(at);
                }
                self.begin(at);
            }
        }
    }

    /// SIGKILL.
    pub fn kill(&mut self, at: usize) {
        let mut process = self.process(at).server;
        process.kill();
        let ended = process.wait();
        assert!(ended.was_killed() || ended.code() == Some(LEASE_LOST), "server {at}: {}", ended.said());
        self.lab.fake.settle();
    }

    /// SIGTERM, and its end.
    pub fn terminate(&mut self, at: usize) -> Ran {
        let process = self.process(at).server;
        lab::terminate(process.pid());
        process.wait()
    }

    /// SIGSTOP.
    pub fn pause(&mut self, at: usize) {
        lab::stop(self.web(at).server.pid());
        self.servers[at].sleeps = true;
    }

    /// SIGCONT.
    pub fn resume(&mut self, at: usize) {
        lab::resume(self.web(at).server.pid());
        self.servers[at].sleeps = false;
    }

    /// Waits for the end of a server that lost its lease.
    #[track_caller]
    pub fn expect_lost(&mut self, at: usize) {
        self.process(at).server.wait().expect(LEASE_LOST);
    }

    /// A server that runs.
    #[track_caller]
    pub fn web(&self, at: usize) -> &Web {
        self.servers[at].process.as_ref().unwrap_or_else(|| panic!("server {at} does not run"))
    }

    #[track_caller]
    fn process(&mut self, at: usize) -> Web {
        self.servers[at].process.take().unwrap_or_else(|| panic!("server {at} does not run"))
    }

    /// Waits until the servers that run are all alive for each other, and one of them leads.
    #[track_caller]
    pub fn wait_until_joined(&self) {
        let running = self.servers.iter().filter(|server| server.process.is_some()).count();
        let since = Instant::now();
        loop {
            let workers = self.workers();
            let alive = workers.iter().filter(|worker| worker["is_alive"] == true);
            if alive.filter_map(|worker| self.server_of(worker)).count() == running && self.leader().is_some() {
                return;
            }
            assert!(since.elapsed() < PATIENCE, "not all joined: {workers:#?}\n{}", self.printed());
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until no server has a run.
    #[track_caller]
    pub fn wait_until_idle(&self) {
        let has_none = |worker: &Value| list(worker, "runs").is_empty();
        self.until("/api/v1/workers", |told| list(told, "items").iter().all(has_none));
    }

    /// The servers as one of them tells.
    #[track_caller]
    pub fn workers(&self) -> Vec<Value> {
        list(&self.get("/api/v1/workers"), "items").to_vec()
    }

    /// The server that leads, if it runs.
    pub fn leader(&self) -> Option<usize> {
        let workers = self.workers();
        workers.iter().find(|worker| worker["is_leader"] == true).and_then(|worker| self.server_of(worker))
    }

    /// The server that has a run, if it runs.
    pub fn holder(&self, run: &str) -> Option<usize> {
        let workers = self.workers();
        let has = |worker: &&Value| list(worker, "runs").iter().any(|known| known == run);
        workers.iter().find(has).and_then(|worker| self.server_of(worker))
    }

    /// Waits until a server has a run.
    #[track_caller]
    pub fn wait_for_holder(&self, run: &str) -> usize {
        let since = Instant::now();
        loop {
            if let Some(at) = self.holder(run) {
                return at;
            }
            assert!(since.elapsed() < PATIENCE, "no server has {run}: {:#?}\n{}", self.workers(), self.printed());
            std::thread::sleep(LOOK);
        }
    }

    /// The server of a worker as it is told.
    pub fn server_of(&self, worker: &Value) -> Option<usize> {
        let process = worker["process"].as_u64()?;
        let is_it = |server: &Server| server.process.as_ref().is_some_and(|web| u64::from(web.server.pid()) == process);
        self.servers.iter().position(is_it)
    }

    /// Asks one server after the other until one answers. A server that takes over or was killed does not.
    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        let since = Instant::now();
        loop {
            if let Some(said) = self.ask("GET", path, &Value::Null)
                && said.status < 500
            {
                return said.expect(200).json();
            }
            assert!(since.elapsed() < PATIENCE, "nobody answers {path}\n{}", self.printed());
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until what is asked for is so.
    #[track_caller]
    pub fn until(&self, path: &str, is: impl Fn(&Value) -> bool) -> Value {
        let since = Instant::now();
        loop {
            let value = self.get(path);
            if is(&value) {
                return value;
            }
            assert!(since.elapsed() < PATIENCE, "{path}: {value:#}\n{}", self.printed());
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until a run has a status.
    #[track_caller]
    pub fn until_status(&self, run: &str, status: &str) -> Value {
        self.until(&format!("/api/v1/runs/{run}"), |value| value["status"] == status)
    }

    /// Sends something once, to the next server in turn. None: no answer came.
    pub fn ask(&self, method: &str, path: &str, body: &Value) -> Option<Said> {
        let first = self.asked.fetch_add(1, Ordering::Relaxed);
        let mut in_turn = (0..SERVERS).map(|next| first.wrapping_add(next) % SERVERS);
        let at = in_turn.find(|at| self.servers[*at].process.is_some() && !self.servers[*at].sleeps)?;
        self.ask_at(at, method, path, body)
    }

    /// Sends something once, to one server. None: no answer came.
    pub fn ask_at(&self, at: usize, method: &str, path: &str, body: &Value) -> Option<Said> {
        let (address, token) = (&self.servers[at].address, &self.token);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(address).ok()?;
        // The first run that uses a plugin waits until it is compiled, and would begin anew each time.
        let begins = method == "POST" && path == "/api/v1/runs";
        stream.set_read_timeout(Some(if begins { PATIENCE } else { ANSWER_TIME })).expect("ours");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        Some(web::said(&answer)).filter(|said| said.status > 0)
    }

    /// Gives an order at one server, which must take it.
    #[track_caller]
    pub fn order_at(&self, at: usize, path: &str, body: &Value) -> Value {
        let said = self.ask_at(at, "POST", path, body);
        said.unwrap_or_else(|| panic!("server {at} does not answer {path}\n{}", self.printed())).expect(200).json()
    }

    /// Begins a run of a project, once, whoever is killed meanwhile.
    #[track_caller]
    pub fn run(&self, project: &str) -> String {
        let since = Instant::now();
        loop {
            // A request without an answer may have begun it.
            let known = self.get(&format!("/api/v1/runs?project={project}"));
            if let Some(run) = list(&known, "items").first() {
                return run["run"].as_str().expect("a name").to_owned();
            }
            let said = self.ask("POST", "/api/v1/runs", &json!({ "directory": self.lab.path(project) }));
            let is_known = said.as_ref().is_none_or(|said| matches!(said.status, 201 | 409 | 500..));
            assert!(is_known && since.elapsed() < PATIENCE, "{project}: {said:?}\n{}", self.printed());
            std::thread::sleep(LOOK);
        }
    }

    /// The output of all servers that run, for a test that fails.
    pub fn printed(&self) -> String {
        let one = |(at, server): (usize, &Server)| {
            let printed = server.process.as_ref().map(|web| web.server.printed()).unwrap_or_default();
            let lines: Vec<&str> = printed.lines().collect();
            format!("server {at}:\n{}\n", lines[lines.len().saturating_sub(40)..].join("\n"))
        };
        self.servers.iter().enumerate().map(one).collect()
    }
}

/// Addresses that nobody uses. Tests that run at once begin to look at different ones.
fn free_addresses() -> Vec<String> {
    // Tests run beside each other, in processes whose numbers follow each other.
    let first = (std::process::id() % 700) * 16;
    let ports = PORTS.cycle().skip(usize::try_from(first).expect("it is below the number of ports"));
    let free = ports.filter_map(|port| TcpListener::bind(("127.0.0.1", port)).ok());
    // All are held until each has one.
    let held: Vec<TcpListener> = free.take(SERVERS).collect();
    held.iter().map(|listener| listener.local_addr().expect("bound").to_string()).collect()
}
