//! MCP servers that mean harm: what they reach, how much they take, and their end.

use super::{error, faked, tools_named, unapproved};
use crate::common::gated::answers;
use crate::common::lab::Lab;
use crate::common::{self, in_toml};
use serde_json::json;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

/// Servers ran as the user: they read secrets and journals, and could answer their own approvals over the socket.
#[test]
fn a_server_in_the_sandbox_reaches_nothing_of_the_host_and_a_bare_one_everything() {
    let found = |more: &str| {
        // Where things are is known once there is a laboratory, so the calls are written behind it.
        let lab = faked(&tools_named(&["attack"]), more, &[]);
        lab.set_own_secret("own", "tok-1234567890-abcdef");
        let (home, project) = (lab.home(), lab.project());
        std::fs::write(lab.path(".netrc"), "password").expect("ours");
        std::fs::write(project.join(".env"), "KEY=1").expect("ours");
        std::fs::write(project.join(".git/info/exclude"), ".env\n").expect("ours");
        let port: u16 = lab.fake.address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        let read = ["state.redb", "secrets", "secrets/own", "socket-token"].map(|name| home.join(name));
        let read: Vec<_> = read.into_iter().chain([lab.path(".netrc"), project.join(".env")]).collect();
        let write = [project.join("GOAL.md"), project.join(".git/config"), home.join("secrets/own")];
        let arguments = json!({ "read": read, "write": write, "socket": home.join("socket"), "port": port });
        let config = std::fs::read_to_string(project.join("longhaul.toml")).expect("ours");
        let call = format!("{{ tool = \"mcp-fake\", function = \"attack\", arguments = {} }}", in_toml(&arguments));
        std::fs::write(project.join("longhaul.toml"), config.replace("calls = []", &format!("calls = [{call}]")))
            .expect("ours");
        lab.git(&["commit", "-qam", "calls"]);
        lab.run(&["run"]).expect(0);
        let found = answers(&lab)[0].as_array().expect("a list").len();
        let report = lab.run(&["report"]).expect(0).stdout;
        assert_eq!(report.contains("runs outside of the sandbox"), !more.is_empty(), "{report}");
        (found, read.len() + write.len() + 2)
    };
    assert_eq!(found("").0, 0);
    let (bare, all) = found("sandbox = \"none\"\n");
    assert_eq!(bare, all, "a server that runs bare shows that the attacks are attacks");
}

#[test]
fn a_server_in_the_sandbox_reaches_the_hosts_of_its_table_and_no_others() {
    let lab = Lab::empty();
    let own = format!("http://{}", lab.fake.address);
    let more = format!("hosts = [\"GET {own}\"]\n");
    let urls = json!({ "urls": [format!("{own}/v1/models"), "http://127.0.0.1:9/"] });
    let lab = faked(&tools_named(&["fetch"]), &more, &[("mcp-fake", "fetch", urls)]);
    let ran = lab.run(&["run"]).expect(0);
    let answer = answers(&lab)[0].clone();
    assert_eq!(answer[0], json!("{}"), "{answer}\n{}", ran.said());
    assert!(
        answer[1].as_str().is_some_and(|said| said.starts_with("403 ") && said.contains("[mcp.fake] hosts")),
        "{answer}"
    );
}

#[test]
fn a_server_is_bounded_started_again_and_ends_with_all_that_it_started() {
    let said = tools_named(&["echo", "die", "hang", "flood", "child"]);
    let calls = [
        ("mcp-fake", "flood", json!({})),
        ("mcp-fake", "die", json!({})),
        ("mcp-fake", "echo", json!({ "alive": true })),
        ("mcp-fake", "child", json!({})),
        ("mcp-fake", "hang", json!({})),
        ("mcp-fake", "echo", json!({ "alive": "again" })),
    ];
    // As functions that only read, so that no person has to say what they did.
    let more = "call_ms_max = 1000\nconnect_ms_max = 3000\nread_only = [\"die\", \"hang\", \"flood\"]\n";
    let lab = faked(&said, more, &calls);
    lab.run(&["run"]).expect(0);
    let answers = answers(&lab);
    assert!(
        error(&answers[0]).contains("output_bytes_max") || error(&answers[0]).contains("1000 ms"),
        "{}",
        answers[0]
    );
    assert!(error(&answers[1]).contains("broke off"), "{}", answers[1]);
    assert_eq!(answers[2], json!({ "alive": true }));
    assert!(error(&answers[4]).contains("1000 ms"), "{}", answers[4]);
    assert_eq!(answers[5], json!({ "alive": "again" }), "a server that is stuck is started again");
    let started = std::fs::read_to_string(lab.path("fake/started")).expect("it keeps a log");
    assert!(started.lines().count() >= 3, "{started}");
    assert!(answers[3].is_number(), "{}", answers[3]);
    gone(&lab);
}

/// A person agreed to `write = ["out"]`, and a repository may make a link of `out` later.
#[test]
fn a_grant_of_the_project_is_no_way_to_what_a_link_in_it_leads_to() {
    let lab = unapproved(&tools_named(&["attack"]), "", &[]);
    let (project, kept) = (lab.project(), lab.path("kept"));
    for directory in [&kept, &project.join("real")] {
        std::fs::create_dir(directory).expect("ours");
    }
    std::fs::write(kept.join("key"), "key").expect("ours");
    symlink("../kept", project.join("out")).expect("ours");
    symlink("real", project.join("within")).expect("ours");
    let file = project.join("longhaul.toml");
    let config = std::fs::read_to_string(&file).expect("ours");
    let with = |grant: &str| config.replacen("write = [", grant, 1);
    let full = kept.display().to_string();
    for (field, path, leads_out) in [
        ("write", "out", true),
        ("read", "out", true),
        ("directory", "out", true),
        ("write", "within", false),
        ("read", "real", false),
        ("read", "../kept", false),
        ("write", full.as_str(), false),
    ] {
        let grant = match field {
            "write" => format!("write = [{path:?}, "),
            "read" => format!("read = [{path:?}]\nwrite = ["),
            _ => format!("{field} = {path:?}\nwrite = ["),
        };
        std::fs::write(&file, with(&grant)).expect("ours");
        let ran = lab.run(&["mcp", "accept", "fake", "--yes"]).expect(i32::from(leads_out));
        let real = kept.canonicalize().expect("there");
        let line =
            format!("[mcp.fake] {field}: `{path}` leads out of the project by a link, to `{}`; ", real.display());
        assert_eq!(ran.stderr.contains(&line), leads_out, "{}", ran.said());
    }

    // Nor is what the command and its variables name.
    let read = [project.join("out/key"), project.join("real")];
    let arguments = json!({ "read": read, "write": [], "socket": "/nowhere", "port": 1 });
    let call =
        format!("calls = [{{ tool = \"mcp-fake\", function = \"attack\", arguments = {} }}]", in_toml(&arguments));
    let modules = format!("{0}/out:{0}/real", project.display());
    let config = with(&format!("env = {{ PYTHONPATH = {modules:?} }}\nwrite = [")).replace("calls = []", &call);
    std::fs::write(&file, config).expect("ours");
    std::fs::write(project.join(".git/info/exclude"), "out\nwithin\n").expect("ours");
    lab.git(&["commit", "-qam", "calls"]);
    lab.run(&["run"]).expect(0);
    assert_eq!(answers(&lab)[0], json!([project.join("real")]));
}

/// Without one the port of its proxy was the machine's, and so open to every process.
#[test]
fn the_hosts_of_a_server_need_a_network_of_its_own_whatever_level_is_accepted() {
    let lab = unapproved(&tools_named(&["fetch"]), "hosts = [\"https://a.com\"]\n", &[]);
    let file = lab.project().join("longhaul.toml");
    let config = std::fs::read_to_string(&file).expect("ours");
    let less = config.replace("[run.limits]", "[run]\nsandbox_min = \"none\"\n[run.limits]");
    assert_ne!(less, config);
    std::fs::write(&file, less).expect("ours");
    let accept = ["mcp", "accept", "fake", "--yes"];
    let ran = lab.run_through(&common::without_namespaces(), &accept).expect(1);
    let parts = ["its `hosts` need a network namespace", "allow user namespaces", "remove `hosts` of [mcp.fake]"];
    assert!(ran.stderr.lines().any(|line| parts.iter().all(|part| line.contains(part))), "{}", ran.said());
    lab.run(&accept).expect(0);
}

/// Each file was bounded, and any number of them was not.
#[test]
fn a_server_that_fills_the_disk_is_ended_and_not_started_again() {
    let calls = [("mcp-fake", "fill", json!({ "pieces": 20 })), ("mcp-fake", "echo", json!({}))];
    let more = "disk_bytes_max = 67_108_864\n";
    let lab = faked(&tools_named(&["fill", "echo"]), &format!("{more}read_only = [\"fill\"]\n"), &calls);
    lab.run(&["run"]).expect(0);
    for answer in answers(&lab) {
        assert!(error(&answer).contains("disk_bytes_max"), "{answer}");
    }

    // Where it acted, a person says what happened.
    let lab = faked(&tools_named(&["fill", "echo"]), more, &calls);
    let ran = lab.run(&["run"]).expect(5);
    let question = lab.newest().expect("a run")["question"].as_str().expect("a question").to_owned();
    assert!(question.contains("raise disk_bytes_max of [mcp.fake]"), "{question}: {}", ran.said());
}

#[test]
fn a_server_and_what_it_started_end_with_a_host_that_is_killed() {
    for more in ["", "sandbox = \"none\"\n"] {
        let calls = [("mcp-fake", "child", json!({})), ("mcp-fake", "hang", json!({}))];
        let lab = faked(&tools_named(&["child", "hang"]), more, &calls);
        let mut host = lab.start(&["run"]);
        host.wait_for_file(&lab.path("fake/child"));
        host.kill();
        host.wait();
        // It gets no signal, and cannot notice the end of its input.
        gone(&lab);
    }
}

/// Waits until the fake servers and all processes that they started are gone; each holds a lock.
#[track_caller]
fn gone(lab: &Lab) {
    let alive = std::fs::File::open(lab.path("fake/alive")).expect("it was started");
    let since = Instant::now();
    while alive.try_lock().is_err() {
        assert!(since.elapsed() < Duration::from_secs(20), "something goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
}
