//! A server under load: mixed reads and open streams while agents work. `LONGHAUL_LOAD=60` asks for so many seconds of
//! 500 requests a second, 50 streams and 20 agents; without it there are a few seconds of less.
//!
//! The generator of requests is a process of its own. Its processor time is reported beside its measurements, so that
//! its slowness is not mistaken for the server's.

use crate::common::ASKED_CONFIG;
use crate::common::lab::Lab;
use crate::common::web::{Web, said};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The environment variable that makes this process a generator, with its settings.
const ORDER: &str = "LONGHAUL_LOAD_ORDER";

/// The amount of requests.
struct Load {
    seconds: u64,
    per_second: u64,
    streams: usize,
    agents: usize,
}

impl Load {
    fn wanted() -> Self {
        let seconds = std::env::var("LONGHAUL_LOAD").ok().and_then(|seconds| seconds.parse().ok());
        match seconds {
            Some(seconds) => Self { seconds, per_second: 500, streams: 50, agents: 20 },
            None => Self { seconds: 4, per_second: 50, streams: 5, agents: 4 },
        }
    }
}

#[test]
fn a_server_answers_everybody_while_agents_work() {
    let load = Load::wanted();
    let lab = Lab::empty();
    std::fs::create_dir_all(lab.project()).expect("ours");
    std::fs::write(lab.project().join("longhaul.toml"), ASKED_CONFIG.replace("{server}", &lab.fake.address))
        .expect("ours");
    std::fs::create_dir_all(lab.home()).expect("ours");
    std::fs::set_permissions(lab.home(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("ours");
    let rates = "[server]\nrequests_per_second = 100000\nrequests_burst = 100000\n";
    std::fs::write(lab.home().join("server.toml"), rates).expect("ours");
    // All agents work, however small the machine is.
    std::fs::write(lab.home().join("resources.toml"), format!("runs_max = {}\n", load.agents)).expect("ours");
    lab.fake.model_takes(Duration::from_millis(200));
    let web = Web::start(&lab);
    let ends = AtomicBool::new(false);
    let (asked, answered) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for agent in 0..load.agents {
            let (web, lab, ends, asked, answered) = (&web, &lab, &ends, &asked, &answered);
            scope.spawn(move || {
                // Each agent asks again once it has an answer.
                while !ends.load(Ordering::Relaxed) {
                    let number = asked.fetch_add(1, Ordering::Relaxed);
                    ask(web, lab, &format!("{agent}-{number}"));
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        web.until("/api/v1/runs?active=true&limit=1", |runs| runs["total"].as_u64() >= Some(load.agents as u64 / 2));
        let told = generate(&web, &load);
        ends.store(true, Ordering::Relaxed);
        report(&load, &told, answered.load(Ordering::Relaxed));
    });
    assert_eq!(web.get("/api/v1/runs?status=failed,incomplete").json()["total"], 0, "each agent came to its end");
}

/// Asks an agent something that takes it some twenty steps, and waits for the answer.
fn ask(web: &Web, lab: &Lab, name: &str) {
    let goal = format!("do {name}; {}put", "look; ".repeat(20));
    let body = json!({ "directory": lab.project(), "goal": goal, "dispatch": { "agent": "one" } });
    let made = web.post("/api/v1/asks", &body).expect(201).json();
    let run = made["run"].as_str().expect("a name").to_owned();
    web.stream(&format!("/api/v1/runs/{run}/events/stream?follow=false"), &[]).until(|frame| frame.event == "gone");
}

/// The measurements of the generator.
fn generate(web: &Web, load: &Load) -> Value {
    let run = web.get("/api/v1/runs?limit=1").json()["items"][0]["run"].as_str().expect("a run").to_owned();
    let order = json!({
        "address": web.address, "token": web.token, "run": run, "server": web.server.pid(),
        "seconds": load.seconds, "per_second": load.per_second, "streams": load.streams,
    });
    let output = Command::new(std::env::current_exe().expect("known"))
        .args(["--exact", "http::load::generator", "--ignored", "--nocapture"])
        .env(ORDER, order.to_string())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = said.lines().find_map(|line| line.split_once("TOLD ").map(|(_, told)| told.to_owned()));
    let told = told.unwrap_or_else(|| panic!("{said}\n{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(&told).expect("JSON")
}

fn report(load: &Load, told: &Value, answered: u64) {
    println!(
        "{} s of {}/s, {} streams, {} agents ({answered} asks answered): {told:#}",
        load.seconds, load.per_second, load.streams, load.agents
    );
    assert_eq!(told["errors"], json!([]), "no request fails: {told:#}");
    assert_eq!(told["streams_lost"], 0, "{told:#}");
    assert!(told["frames"].as_u64().is_some_and(|frames| frames > 0), "streams carry what happens: {told:#}");
    let wanted = load.seconds * load.per_second;
    assert!(told["requests"].as_u64().is_some_and(|sent| sent >= wanted * 9 / 10), "all were sent: {told:#}");
}

/// Asks as it is ordered to; only as a process of its own.
#[test]
#[ignore = "it is started by the test of the load"]
fn generator() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let order: Value = serde_json::from_str(&order).expect("an order");
    let text = |name: &str| order[name].as_str().expect("text").to_owned();
    let number = |name: &str| order[name].as_u64().expect("a number");
    let (address, token, run) = (text("address"), text("token"), text("run"));
    let (seconds, per_second, streams, server) =
        (number("seconds"), number("per_second"), number("streams"), number("server"));
    let paths = [
        "/api/v1/runs?limit=20".to_owned(),
        format!("/api/v1/runs/{run}"),
        format!("/api/v1/runs/{run}/events?limit=50"),
        "/api/v1/approvals?open=true&limit=20".to_owned(),
        "/health".to_owned(),
        format!("/api/v1/runs/{run}/journal"),
        "/api/v1/projects".to_owned(),
        "/api/v1/whoami".to_owned(),
        "/api/v1/runs?active=true".to_owned(),
        "/api/v1/schedules".to_owned(),
    ];
    let workers = (per_second / 20).max(1);
    let (took, errors) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let (frames, lost, ends) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let mut memory = Vec::new();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..streams {
            scope.spawn(|| {
                if !read_stream(&address, &token, &frames, &ends) {
                    lost.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for worker in 0..workers {
            let (address, token, paths, took, errors) = (&address, &token, &paths, &took, &errors);
            scope.spawn(move || {
                let mut own = Vec::new();
                let mut connection = Connection::open(address);
                let count = seconds * per_second / workers;
                for at in 0..count {
                    // Each at its time, whether or not the one before was slow: lateness is the server's.
                    let due = start + Duration::from_secs_f64((at * workers + worker) as f64 / per_second as f64);
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    let path = &paths[usize::try_from(at * workers + worker).expect("small") % paths.len()];
                    match connection.ask(address, token, path) {
                        Ok(200) => own.push(due.elapsed().as_secs_f64() * 1_000.0),
                        Ok(status) => errors.lock().expect("ours").push(format!("{path}: {status}")),
                        Err(error) => {
                            errors.lock().expect("ours").push(format!("{path}: {error}"));
                            connection = Connection::open(address);
                        }
                    }
                }
                took.lock().expect("ours").extend(own);
            });
        }
        while start.elapsed() < Duration::from_secs(seconds) {
            std::thread::sleep(Duration::from_secs(1));
            memory.push(resident(server));
        }
        ends.store(true, Ordering::Relaxed);
    });
    let mut took = took.into_inner().expect("ours");
    took.sort_by(f64::total_cmp);
    let of_thousand = |part: usize| took.get(took.len().saturating_sub(1) * part / 1_000).copied().unwrap_or(0.0);
    let errors = errors.into_inner().expect("ours");
    let told = json!({
        "requests": took.len() + errors.len(), "errors": errors.iter().take(20).collect::<Vec<_>>(),
        "p50_ms": of_thousand(500), "p90_ms": of_thousand(900), "p99_ms": of_thousand(990), "most_ms": of_thousand(1_000),
        "frames": frames.into_inner(), "streams_lost": lost.into_inner(),
        "server_resident_kib": memory, "server_cpu_seconds": cpu_seconds(server), "generator_cpu_seconds": cpu_seconds(u64::from(std::process::id())),
    });
    println!("TOLD {told}");
}

/// A connection that stays.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_nodelay(true).expect("ours");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("ours");
        Self(BufReader::new(stream))
    }

    fn ask(&mut self, address: &str, token: &str, path: &str) -> std::io::Result<u16> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
        self.0.get_mut().write_all(request.as_bytes())?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        let answer = said(head.as_bytes());
        let length = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok(answer.status)
    }
}

/// Reads all runs' events until the end; false when the stream broke off before.
fn read_stream(address: &str, token: &str, frames: &AtomicU64, ends: &AtomicBool) -> bool {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_millis(500))).expect("ours");
    let mut writer = stream.try_clone().expect("ours");
    let head =
        format!("GET /api/v1/events/stream HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
    writer.write_all(head.as_bytes()).expect("taken");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while !ends.load(Ordering::Relaxed) {
        match reader.read_line(&mut line) {
            Ok(0) => return false,
            Ok(_) if line.starts_with("event: ") => drop(frames.fetch_add(1, Ordering::Relaxed)),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                continue;
            }
            Err(_) => return false,
        }
        line.clear();
    }
    true
}

/// Memory of a process, in KiB.
fn resident(pid: u64) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

/// Processor time of a process.
fn cpu_seconds(pid: u64) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
