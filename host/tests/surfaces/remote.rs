//! `longhaul --server`: a command line elsewhere and a real server. What it prints, its errors and its exit codes are
//! those of the server's own machine, and it leaves nothing where it runs.

use crate::common::lab::{Lab, Ran, Started};
use crate::common::web::{Web, token};
use crate::common::{DOER_CONFIG, refused};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

const GOAL: &str = "# Two\n
## Feature: the first\n- id: one\n- check: wrote_one\n\nDo it.\n
## Feature: the second\n- id: two\n- check: has_two\n\nDo it, too.\n";

/// A model that leaves time to look.
const SLOW: Duration = Duration::from_millis(800);

/// A model for which no test waits.
const TOO_SLOW: Duration = Duration::from_secs(60);

/// A server, and a place without a project and without a data directory.
struct Elsewhere {
    lab: Lab,
    web: Web,
}

impl Elsewhere {
    fn new() -> Self {
        let lab = Lab::new(DOER_CONFIG, GOAL);
        fs::create_dir(lab.path("elsewhere")).expect("ours");
        let web = Web::start(&lab);
        Self { lab, web }
    }

    fn url(&self) -> String {
        format!("http://{}", self.web.address)
    }

    /// Starts a command there, with a token.
    fn start_as(&self, token: &str, args: &[&str]) -> Started {
        let place = self.lab.path("elsewhere");
        let mut command = self.lab.command_at(&self.lab.path("no-home"), args);
        command.current_dir(&place).env("HOME", &place).env("LONGHAUL_TOKEN", token);
        self.lab.start_command(command)
    }

    fn start(&self, args: &[&str]) -> Started {
        self.start_as(&self.web.token, &[&["--server", &self.url()], args].concat())
    }

    /// Runs a command there.
    fn run(&self, args: &[&str]) -> Ran {
        self.start(args).wait()
    }

    /// Runs a command there that names the project on the server.
    fn run_in_project(&self, args: &[&str]) -> Ran {
        let project = self.lab.project().display().to_string();
        self.run(&[&["--project", &project], args].concat())
    }

    /// The names of what is in the place.
    fn left(&self) -> Vec<String> {
        let found = fs::read_dir(self.lab.path("elsewhere")).expect("ours");
        let mut names: Vec<String> =
            found.map(|entry| entry.expect("ours").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The newest run, as the server tells it.
    fn newest(&self) -> Value {
        self.web.until("/api/v1/runs", |all| all["total"].as_u64() > Some(0))["items"][0].clone()
    }
}

fn name_of(run: &Value) -> String {
    run["run"].as_str().expect("a name").to_owned()
}

/// The lines of standard error that are no log.
fn errors(ran: &Ran) -> Vec<&str> {
    ran.stderr.lines().filter(|line| !line.trim_start().starts_with("INFO ")).collect()
}

#[test]
fn a_laptop_works_with_a_server_as_a_terminal_beside_it_does_and_keeps_nothing() {
    let there = Elsewhere::new();
    fs::write(there.lab.path("elsewhere/hello.py"), "print('hello')\n").expect("ours");
    let ran = there.run_in_project(&["run"]).expect(0);
    assert!(ran.stdout.contains("the work is on branch longhaul/"), "{}", ran.said());
    let run = name_of(&there.newest());
    there.web.until(&format!("/api/v1/runs/{run}"), |run| run["active"] == false);

    there.run(&["agent", "add", "one", "--python", "hello.py"]).expect(0);
    let done = there.run(&["agent", "execute", "one"]).expect(0);
    assert!(done.said().contains("hello"), "{}", done.said());
    there.run(&["schedule", "add", "yearly", "--agent", "one", "--cron", "0 0 1 1 *"]).expect(0);
    there.run(&["schedule", "pause", "yearly"]).expect(0);

    // Each command, with what it needs elsewhere to know the project.
    let of_run = |command: &'static str| vec![command, run.as_str()];
    let mut compared = vec![
        vec!["projects"],
        vec!["runs"],
        vec!["agent", "list"],
        vec!["agent", "show", "one"],
        vec!["schedule", "list"],
        vec!["schedule", "show", "yearly"],
        vec!["log", "--run", run.as_str()],
        vec!["approvals"],
        vec!["token", "list"],
    ];
    compared.extend(["status", "features", "journal", "attach", "report", "decisions"].map(of_run));
    for command in compared {
        let args = [&["--json"], command.as_slice()].concat();
        let (far, near) = (there.run(&args).expect(0), there.lab.run(&args).expect(0));
        assert_eq!(far.stdout, near.stdout, "{command:?}");
    }
    let (far, near) = (there.run_in_project(&["status"]).expect(0), there.lab.run(&["status"]).expect(0));
    assert_eq!(far.stdout, near.stdout);
    assert_eq!(there.left(), ["hello.py"], "nothing is made here");
    assert!(!there.lab.path("no-home").exists(), "no data directory is made");
}

#[test]
fn a_run_is_followed_paused_and_resumed_from_elsewhere() {
    let there = Elsewhere::new();
    there.lab.fake.model_takes(SLOW);
    let project = there.lab.project().display().to_string();
    let mut follower = there.start(&["--project", &project, "run"]);
    follower.wait_for("work on one");
    let run = name_of(&there.newest());
    there.run(&["pause", &run]).expect(0);
    let paused = follower.wait().expect(4);
    assert!(paused.stdout.contains(&format!("longhaul resume {run}")), "{}", paused.said());
    let of_run = format!("/api/v1/runs/{run}");
    there.web.until(&of_run, |run| run["status"] == "paused" && run["active"] == false);

    let follower = there.start(&["resume", &run]);
    there.web.until(&of_run, |run| run["active"] == true);
    let attached = there.start(&["attach", &run, "--events"]);
    there.lab.fake.model_takes(Duration::ZERO);
    follower.wait().expect(0);
    let attached = attached.wait().expect(0);
    let lines: Vec<Value> =
        attached.stdout.lines().map(|line| serde_json::from_str(line).expect("an event a line")).collect();
    let numbers: Vec<u64> = lines.iter().filter_map(|line| line["number"].as_u64()).collect();
    assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "each event once, and in order: {numbers:?}");
    assert!(lines.iter().any(|line| line["type"] == "done"), "{}", attached.said());
}

#[test]
fn a_follower_outlives_a_server_that_is_killed_and_started_again() {
    let there = Elsewhere::new();
    there.lab.fake.model_takes(TOO_SLOW);
    let project = there.lab.project().display().to_string();
    let mut follower = there.start(&["--project", &project, "run"]);
    follower.wait_for("work on one");
    while there.lab.fake.requests().get("model") < Some(&1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    there.lab.fake.model_takes(Duration::ZERO);
    let Elsewhere { lab, web } = there;
    let address = web.address.clone();
    drop(web);
    let mut again = lab.start(&["serve", "--listen", &address]);
    again.wait_for("serving at http://");
    let ran = follower.wait().expect(0);
    assert!(ran.stdout.contains("the work is on branch"), "{}", ran.said());
}

#[test]
fn an_error_of_a_server_is_the_one_of_its_own_machine() {
    let there = Elsewhere::new();
    for args in [
        &["status", "r-000000000000"][..],
        &["pause", "r-000000000000"],
        &["agent", "show", "nobody"],
        &["schedule", "run-now", "nothing"],
        &["graph", "show", "nothing"],
        &["schedule", "add", "a", "--agent", "nobody", "--cron", "* * * * *"],
    ] {
        let (far, near) = (there.run(args), there.lab.run(args));
        assert_eq!((far.code(), errors(&far)), (near.code(), errors(&near)), "{args:?}");
        assert_eq!(far.stdout, near.stdout, "{args:?}");
    }
}

#[test]
fn a_wrong_address_token_or_scope_says_what_to_do() {
    let there = Elsewhere::new();
    there.run_in_project(&["run"]).expect(0);
    let run = name_of(&there.newest());
    let reads = token(&there.lab, "reads", &["--scope", "read"]);
    let runs = token(&there.lab, "runs", &["--scope", "run"]);
    let project = there.lab.project().canonicalize().expect("it is there").display().to_string();
    let url = there.url();
    let as_token = |token: &str, args: &[&str]| {
        let ran = there.start_as(token, &[&["--server", &url], args].concat()).wait();
        assert!(!ran.said().contains(token), "the token is in no text: {}", ran.said());
        ran
    };

    refused(&as_token("lh_0_0", &["runs"]), &["asks for a token that it knows: set LONGHAUL_TOKEN"]);
    refused(&as_token("two words", &["runs"]), &["LONGHAUL_TOKEN holds no token", "longhaul token add NAME"]);
    as_token(&reads, &["runs"]).expect(0);
    as_token(&reads, &["status", &run]).expect(0);
    refused(&as_token(&reads, &["pause", &run]), &["the token `reads` lacks the scope `run`"]);
    refused(&as_token(&reads, &["token", "list"]), &["lacks the scope `admin`"]);

    // Without `admin` a project is one that the server knows.
    as_token(&runs, &["--project", &project, "check"]).expect(0);
    let other = there.lab.path("elsewhere").display().to_string();
    for args in [&["--project", &other, "run"][..], &["--project", &other, "status"]] {
        refused(&as_token(&runs, args), &["is no directory of a project that this server knows", "`admin`"]);
    }
    refused(&as_token(&runs, &["--project", &project, "run", "--recorded", "/none"]), &["lacks the scope `admin`"]);

    // A file holds a token as well as the variable does.
    let file = there.lab.path("token");
    fs::write(&file, format!("{reads}\n")).expect("ours");
    as_token("lh_0_0", &["--token-file", &file.display().to_string(), "runs"]).expect(0);

    let at = |address: &str| there.start_as(&reads, &["--server", address, "runs"]).wait();
    refused(&at("http://127.0.0.1:1"), &["cannot reach the server at http://127.0.0.1:1", "Connection refused"]);
    refused(&at("http://longhaul.example"), &["would send the token readable across the network", "https://"]);
    refused(&at("longhaul.example"), &["is no address of a server"]);
    refused(&at(&format!("{url}/elsewhere")), &["takes no commands", "the address lacks the path of a proxy"]);
}

#[test]
fn a_command_of_this_machine_is_refused_and_so_is_a_project_that_nobody_named() {
    let there = Elsewhere::new();
    fs::write(there.lab.path("elsewhere/job.py"), "print(1)\n").expect("ours");
    for args in [
        &["serve"][..],
        &["exec", "job.py"],
        &["doctor"],
        &["init"],
        &["new", "shop"],
        &["secrets", "list"],
        &["plugin", "list"],
        &["models", "list"],
        &["schema", "server.toml"],
        &["mcp"],
        &["diff"],
        &["trust"],
        &["token", "add", "more", "--scope", "read"],
        &["schedule", "work", "--for", "1s"],
    ] {
        let name = args[0];
        refused(&there.run(args), &[&format!("`longhaul {name}"), "works on this machine, not on a server"]);
    }
    refused(&there.run(&["status"]), &["name the run, or the directory of the project", "--project DIR"]);
    refused(&there.run(&["run"]), &["name the run, or the directory of the project"]);
    refused(&there.run(&["--project", "shop", "run"]), &["`shop` is no whole path"]);
    refused(&there.run(&["--trust", "runs"]), &["--trust agrees on the machine of the project"]);
    assert_eq!(there.left(), ["job.py"]);
    assert!(!there.lab.path("no-home").exists(), "no data directory is made");
}

/// A path or a graph is looked at in whatever form it is written: the list of the fields of a type is one, too.
#[test]
fn no_form_of_a_request_names_what_its_token_may_not() {
    let mut there = Elsewhere::new();
    there.web.token = token(&there.lab, "runs", &["--scope", "run"]);
    let other = there.lab.path("elsewhere").display().to_string();
    let directory = json!({ "guest": "/w", "host": other, "access": "read" });
    let environment = json!({ "directories": [directory] });
    let steps = json!([["s", "1"]]);
    let run = json!({
        "directory": there.lab.project(), "models": ["/read", "/written"], "plan": null, "plan_only": false,
        "sessions": null, "again": false,
    });
    let graph = json!({ "name": "x", "language": "python", "surroundings": environment, "steps": steps, "token": "" });
    for (name, request) in [
        ("trust_status", json!({ "directory": other })),
        ("trust_status", json!([other])),
        ("begin_run", run),
        ("create_graph", graph),
        ("create_graph", json!(["x", "python", environment, steps, ""])),
    ] {
        let answered = there.web.post(&format!("/api/v1/operations/{name}"), &request);
        assert_eq!(answered.status, 403, "{name} {request}: {}", answered.body);
    }
    let listed = there.web.get("/api/v1/graphs").expect(200).json();
    assert_eq!(listed["items"], json!([]), "nothing was made");
}

#[test]
fn an_operation_that_is_withheld_or_unknown_is_refused_whatever_the_token() {
    let there = Elsewhere::new();
    let call = |name: &str, request: &Value| there.web.post(&format!("/api/v1/operations/{name}"), request);
    let new_token = json!({ "name": "more", "scopes": ["admin"], "lasts_ms": null });
    let withheld = call("add_token", &new_token).expect(403).json();
    assert!(withheld["detail"].as_str().is_some_and(|why| why.contains("`longhaul token add` there")), "{withheld}");
    let withheld =
        call("trust_project", &json!({ "directory": there.lab.project(), "digest": null })).expect(403).json();
    assert!(withheld["detail"].as_str().is_some_and(|why| why.contains("`longhaul trust` there")), "{withheld}");
    let unknown = call("none", &json!({})).expect(404).json();
    assert!(unknown["detail"].as_str().is_some_and(|why| why.contains("of different versions")), "{unknown}");
    let other = call("run_status", &json!({})).expect(422).json();
    assert!(other["detail"].as_str().is_some_and(|why| why.contains("the call is not understood")), "{other}");
    call("runs", &json!({})).expect(200);

    let listed = there.web.get("/api/v1/operations?limit=1000").expect(200).json();
    let scope = |name: &str| {
        let items = listed["items"].as_array().expect("a list");
        items.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}"))["scope"].clone()
    };
    assert_eq!([scope("runs"), scope("pause_run"), scope("write_backup")], ["read", "run", "admin"]);
    assert_eq!(scope("add_token"), Value::Null);
    // A large request is for whoever may import a checkpoint.
    let large = json!({ "run": { "named": "x".repeat(2 << 20) } });
    call("run_status", &large).expect(413);
}
