//! The answers of `shell` for permitted programs.

use crate::lab::Lab;
use longhaul_sandbox::{Level, Program};
use serde_json::{Value, json};

async fn run(lab: &Lab, arguments: Value, settings: Value) -> Value {
    let told = lab.call("shell", "run", &arguments, &settings).await;
    serde_json::from_str(&told).unwrap_or_else(|_| panic!("{told}"))
}

fn sh(script: &str) -> Value {
    json!({ "argv": ["sh", "-c", script] })
}

#[tokio::test]
async fn a_program_works_in_the_tree_and_its_code_and_output_come_back() {
    let lab = Lab::new();
    let told = run(&lab, sh("pwd; cat a.txt; echo made > new.txt; echo oops >&2; exit 3"), json!({})).await;
    assert_eq!(
        (&told["exit_code"], &told["success"], &told["stderr"]),
        (&json!(3), &json!(false), &json!("oops\n")),
        "{told}"
    );
    assert_eq!(told["stdout"], "/tmp/work\none\n");
    assert_eq!(std::fs::read_to_string(lab.tree().join("new.txt")).unwrap(), "made\n");
    lab.write("deep/er/x", "x");
    let told = run(&lab, json!({ "command": "ls", "cwd": "deep/er" }), json!({})).await;
    assert_eq!((&told["stdout"], &told["error"]), (&json!("x\n"), &Value::Null), "{told}");
}

#[tokio::test]
async fn the_environment_is_what_is_listed_and_nothing_else() {
    let lab = Lab::new();
    let settings = json!({ "env": { "A": "1" }, "env_inherit": ["CARGO_PKG_NAME", "NOT_SET_ANYWHERE"] });
    let told = run(&lab, json!({ "argv": ["env"] }), settings).await;
    let mut names: Vec<&str> =
        told["stdout"].as_str().unwrap().lines().map(|line| line.split('=').next().unwrap()).collect();
    names.sort_unstable();
    // A program may start git, which starts nothing then that a repository names.
    let of_git = names.extract_if(.., |name| name.starts_with("GIT_")).collect::<Vec<_>>();
    assert!(of_git.contains(&"GIT_CONFIG_COUNT") && of_git.contains(&"GIT_ALLOW_PROTOCOL"), "{told}");
    // Variables by which Go finds its modules, where the machine has Go.
    names.retain(|name| !name.starts_with("GO"));
    assert_eq!(names, ["A", "CARGO_PKG_NAME", "HOME", "LANG", "PATH", "TMPDIR"], "{told}");
}

#[tokio::test]
async fn a_program_is_asked_to_end_before_it_is_killed() {
    let lab = Lab::new();
    let limits = json!({ "limits": { "wall_ms_max": 300, "grace_ms": 20_000 } });
    let told = run(&lab, sh("trap 'echo saved; exit 0' TERM; echo began; while :; do sleep 0.05; done"), limits).await;
    assert_eq!((&told["stdout"], &told["success"]), (&json!("began\nsaved\n"), &json!(false)), "{told}");
    assert!(told["error"].as_str().unwrap().starts_with("Timeout: given up after 300 ms"), "{told}");
}

#[tokio::test]
async fn an_output_keeps_its_beginning_and_its_end() {
    let lab = Lab::new();
    let limits = json!({ "limits": { "output_bytes_max": 20 } });
    let told = run(&lab, sh("echo begins; for i in 1 2 3 4 5 6 7 8 9; do echo middle; done; echo ends"), limits).await;
    let text = told["stdout"].as_str().unwrap();
    assert!(text.starts_with("begins") && text.ends_with("ends\n") && text.contains("bytes left out"), "{text}");
}

#[tokio::test]
async fn a_directory_of_somebody_is_read_where_the_operator_says_so() {
    let lab = Lab::new();
    let cat = json!({ "argv": ["cat", lab.hidden().join("key")] });
    assert_eq!(run(&lab, cat.clone(), json!({})).await["success"], false);
    let told = run(&lab, cat, json!({ "read": [lab.hidden()] })).await;
    assert_eq!(told["success"], true, "{told}");
    let told =
        run(&lab, sh(&format!("echo x > {}/x", lab.hidden().display())), json!({ "read": [lab.hidden()] })).await;
    assert!(told["stderr"].as_str().unwrap().contains("Read-only"), "{told}");
}

/// The operator agreed to a directory of the project, of which the repository may make a link later.
#[tokio::test]
async fn a_directory_of_the_project_that_a_link_leads_elsewhere_is_not_read() {
    let lab = Lab::new();
    let docs = lab.repo().join("docs");
    let cat = json!({ "argv": ["cat", docs.join("key")] });
    std::os::unix::fs::symlink(lab.hidden(), &docs).unwrap();
    let told = lab.call("shell", "run", &cat, &json!({ "read": [docs] })).await;
    let hidden = lab.hidden().canonicalize().unwrap();
    let line = format!("[tools.shell.settings] read: `{}` leads out of the project by a link, to", docs.display());
    assert!(told.contains(&line) && told.contains(hidden.to_str().unwrap()), "{told}");
    std::fs::remove_file(&docs).unwrap();
    std::fs::create_dir(&docs).unwrap();
    std::fs::write(docs.join("key"), "own").unwrap();
    assert_eq!(run(&lab, cat, json!({ "read": [docs] })).await["stdout"], "own");
}

#[tokio::test]
async fn a_program_in_a_home_is_named_with_the_line_that_shows_it() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::new();
    // The user's checkout is out of sight as a home is.
    let program = lab.repo().join("bin/tool");
    std::fs::create_dir(lab.repo().join("bin")).unwrap();
    std::fs::write(&program, "#!/bin/sh\necho seen\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (argv, programs) = (json!({ "argv": [program] }), json!([program]));
    let told = lab.call("shell", "run", &argv, &json!({ "programs": programs })).await;
    assert!(told.contains("[tools.shell.settings] read = [") && told.contains("bin\"]"), "{told}");
    let shown = json!({ "programs": programs, "read": [lab.repo().join("bin")] });
    assert_eq!(run(&lab, argv, shown).await["stdout"], "seen\n");
}

/// As if a directory became a link after the tool had looked at it.
#[tokio::test]
async fn a_program_stands_in_the_tree_or_is_not_started() {
    let lab = Lab::new();
    lab.link(lab.outside(), "out");
    for cwd in ["out", "out/sub", "..", "/etc"] {
        let mut program = Program::new("`ls`", vec!["/bin/ls".to_owned()]);
        (program.cwd, program.tree) = (cwd.into(), Some(lab.tree()));
        let report = longhaul_sandbox::run(&lab.host(), &program).await.unwrap();
        assert_eq!((report.exit_code, report.stdout.as_str(), report.level), (126, "", Level::Full), "{cwd}");
        // A place outside does not exist in there, unless the system has it, too.
        let is_refused = ["it leads out of the tree", "No such file"].iter().any(|why| report.stderr.contains(why));
        assert!(is_refused && report.stderr.contains("cannot start in"), "{cwd}: {}", report.stderr);
    }
}

#[tokio::test]
async fn each_tool_tells_what_it_does_with_a_schema() {
    let lab = Lab::new();
    for (tool, functions) in
        [("git", &["status", "diff", "log", "show", "commit"][..]), ("search", &["text", "names"]), ("shell", &["run"])]
    {
        let info = lab.info(tool).await;
        let names: Vec<&str> = info.functions.iter().map(|function| function.name.as_str()).collect();
        assert_eq!(names, functions);
        for function in &info.functions {
            let schema: Value = serde_json::from_str(&function.parameters).unwrap();
            assert_eq!(schema["additionalProperties"], false, "{}", function.name);
        }
    }
}

#[tokio::test]
async fn a_checkpoint_is_made_once_for_a_call_and_again_for_another() {
    let lab = Lab::new();
    lab.write("a.txt", "two\n");
    let commit = |key: &'static str| {
        let lab = &lab;
        async move { lab.call_as(key, "git", "commit", &json!({ "message": "half way" }), &json!({})).await }
    };
    let first = commit("one").await;
    lab.write("a.txt", "three\n");
    assert_eq!(commit("one").await, first, "the same call finds what it made");
    let second = commit("two").await;
    assert!(second.contains("/2\""), "{second}");
    let refs = lab.git(&["for-each-ref", "--format=%(refname)", "refs/longhaul"]);
    assert_eq!(refs.lines().count(), 2, "{refs}");
    assert_eq!(lab.git(&["show", "refs/longhaul/checkpoints/r-000000000001/1:a.txt"]), "two\n");
    assert_eq!(lab.git(&["status", "--porcelain"]), "", "the user's checkout is as it was");
}

/// The cases of executors that are about a program; those about source code are `exec`'s.
#[tokio::test]
async fn cases_of_executors_hold_for_programs() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/cases");
    let folder = std::env::var("LONGHAUL_CASES").unwrap_or_else(|_| own.to_owned());
    let mut driven = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read(entry.unwrap().path()).unwrap_or_default();
        let Ok(suite) = serde_json::from_slice::<Value>(&text) else { continue };
        for case in suite["cases"].as_array().into_iter().flatten().filter(|_| suite["suite"] == "executor_tasks") {
            let Some((script, limits)) = case["agent"].as_str().and_then(|agent| as_program(case, agent)) else {
                continue;
            };
            let lab = Lab::new();
            let told = run(&lab, sh(&script), json!({ "limits": limits })).await;
            let (id, expected) = (&case["id"], &case["expected"]);
            if limits["memory_bytes_max"].is_null() {
                assert_eq!(told["success"], expected["success"], "{id}: {told}");
            } else {
                // Shells end differently after a broken pipe, so only the text of the program counts: it names the lack
                // of memory.
                assert!(told["stderr"].as_str().unwrap().contains("memory"), "{id}: {told}");
            }
            if let Some(text) = expected["stdout_contains"].as_str() {
                assert!(told["stdout"].as_str().unwrap().contains(text), "{id}: {told}");
            }
            if let Some(text) = expected["error_contains"].as_str() {
                assert!(told["error"].as_str().unwrap().contains(text), "{id}: {told}");
            }
            if let Some(seconds) = expected["duration_min_s"].as_u64() {
                assert!(told["duration_ms"].as_u64().unwrap() >= seconds * 1_000, "{id}: {told}");
            }
            driven += 1;
        }
    }
    assert!(driven > 0, "no case can be said as a program");
}

/// The program of a case, and its limits; none where only source code, or a record of an agent, can show it.
fn as_program(case: &Value, agent: &str) -> Option<(String, Value)> {
    let wall_ms_max = case["timeout_s"].as_u64()? * 1_000;
    if let Some(text) = agent.strip_prefix("print(\"").and_then(|rest| rest.strip_suffix("\")")) {
        return Some((format!("echo '{}'", text.replace('\'', "'\\''")), json!({ "wall_ms_max": wall_ms_max })));
    }
    if agent == "loop forever" {
        return Some(("while :; do sleep 0.1; done".into(), json!({ "wall_ms_max": wall_ms_max, "grace_ms": 0 })));
    }
    let sizes: Vec<u64> = agent.split(' ').filter_map(|word| word.parse().ok()).collect();
    match (agent.starts_with("allocate "), sizes.as_slice()) {
        (true, [size, limit]) => {
            let bytes = size << 20;
            let script = format!("head -c {bytes} /dev/zero | tail -c {bytes} | wc -c");
            Some((script, json!({ "wall_ms_max": wall_ms_max, "memory_bytes_max": limit << 20 })))
        }
        _ => None,
    }
}
