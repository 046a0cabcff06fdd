//! 200 tasks of an ask side by side, with a model that waits 200 ms: what a waiting task costs in memory, and how long
//! `longhaul status` of another process takes meanwhile, beside the same while one task waits.
//!
//! `cargo xtask plugins && cargo bench -p longhaul --bench ask` (about a minute after the build). Each row prints a
//! figure of an idle run, the same of a busy one, and the ratio. Goals: below 1 MiB a task; the p99 is told and has no
//! goal, since half of it is the start of a process on a machine that is busy.

#[path = "../tests/common/built_plugins.rs"]
mod built_plugins;

use serde_json::{Value, json};
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Tasks side by side.
const TASKS: usize = 200;

/// Replies of the model that each task waits for.
const STEPS: usize = 40;

/// Time that the model takes for a reply.
const MODEL_TAKES: Duration = Duration::from_millis(200);

/// Times that the status is asked for.
const ASKED: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    built_plugins::expect(&["react"]);
    let model = serve_model()?;
    let idle = measured(&model, 1)?;
    let busy = measured(&model, TASKS)?;
    let each = busy.resident_bytes.saturating_sub(idle.resident_bytes) / (TASKS as u64 - 1);
    println!("resident, 1 task waiting      {:>10} KiB", idle.resident_bytes / 1024);
    println!("resident, {TASKS} tasks waiting   {:>10} KiB, {} KiB a task", busy.resident_bytes / 1024, each / 1024);
    println!("status, median, 1 task        {:>10.1} ms", ms(idle.median));
    println!("status, median, {TASKS} tasks     {:>10.1} ms", ms(busy.median));
    println!("status, p99, 1 task           {:>10.1} ms", ms(idle.p99));
    println!("status, p99, {TASKS} tasks        {:>10.1} ms", ms(busy.p99));
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

struct Measured {
    resident_bytes: u64,
    median: Duration,
    p99: Duration,
}

/// An ask of so many tasks, which ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measured(model: &str, tasks: usize) -> Result<Measured, Box<dyn Error>> {
    let place = tempfile::tempdir()?;
    let config = format!(
        "[project]\nname = \"bench\"\n[models.m]\nprovider = \"openai\"\nid = \"m\"\nbase_url = \"http://{model}/v1\"\n\
         [agents.one]\nplugin = \"react\"\nmodels = [\"m\"]\nsettings = {{ steps_max = 200 }}\n\
         [ask.limits]\nparallel_max = {TASKS}\nwall_ms_max = 10000000\n"
    );
    std::fs::write(place.path().join("longhaul.toml"), config)?;
    let task = |number: usize| json!({ "id": format!("t{number}"), "instruction": format!("do {number}") });
    let plan = json!({ "tasks": (0..tasks).map(task).collect::<Vec<_>>() });
    std::fs::write(place.path().join("tasks.json"), plan.to_string())?;
    let mut ask = command(place.path());
    ask.args(["ask", "bench", "--tasks", "tasks.json"]).stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running(ask.spawn()?);
    while working(place.path())? < tasks {
        std::thread::sleep(Duration::from_millis(50));
    }
    let (mut times, mut resident_bytes) = (Vec::with_capacity(ASKED), 0);
    for _ in 0..ASKED {
        let since = Instant::now();
        working(place.path())?;
        times.push(since.elapsed());
        resident_bytes = resident_bytes.max(resident(running.0.id())?);
    }
    times.sort();
    Ok(Measured { resident_bytes, median: times[ASKED / 2], p99: times[ASKED * 99 / 100] })
}

fn command(place: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.arg("--home").arg(place.join("home")).current_dir(place).stdin(Stdio::null());
    command.env("LONGHAUL_PLUGINS", root().join("target/plugins"));
    command
}

/// Tasks that are worked on, as another process is told.
fn working(place: &Path) -> Result<usize, Box<dyn Error>> {
    let output = command(place).args(["--json", "status"]).output()?;
    let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let tasks = status["features"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(tasks.iter().filter(|task| task["status"] == "in_progress").count())
}

fn resident(pid: u32) -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS; is this Linux?")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse::<u64>()? * 1024)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

/// A model on a free port.
fn serve_model() -> Result<String, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(&stream));
        }
    });
    Ok(address)
}

/// An action that there is not, until it was asked often enough.
fn answer(stream: &TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 {
            return Ok(());
        }
        if header.trim().is_empty() {
            break;
        }
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    std::thread::sleep(MODEL_TAKES);
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let steps = messages.iter().filter(|message| message["role"] == "assistant").count();
    let action = if steps < STEPS { "wait" } else { "finish" };
    let content = json!({ "thought": "", "action": action, "answer": "done" }).to_string();
    let reply = json!({
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": content }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
    })
    .to_string();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    write!(&mut &*stream, "{head}Content-Length: {}\r\n\r\n{reply}", reply.len())
}
