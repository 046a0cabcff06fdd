//! The command `longhaul exec`: its output, its exit codes and its errors.

use crate::common::lab::Lab;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::DirBuilderExt;

#[test]
fn the_command_shows_output_and_says_what_is_wrong() {
    let lab = Lab::empty();
    let file = |name: &str, text: &str| {
        let path = lab.path(name);
        fs::write(&path, text).expect("ours");
        path.to_str().expect("plain").to_owned()
    };
    let good = file("good.py", "import sys\nprint('out')\nprint('err', file=sys.stderr)\n");
    // The first time it is compiled, which is said.
    lab.run(&["exec", &good]).expect(0);
    let ran = lab.run(&["exec", &good]).expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("out\n", "err\n"));
    let report = lab.json(&["exec", &good, "--context", "{\"a\": 1}"]);
    assert_eq!((&report["success"], &report["exit_code"]), (&json!(true), &json!(0)));

    let bad = file("bad.py", "print('so far')\nimport sys; sys.exit(7)\n");
    let ran = lab.run(&["exec", &bad]).expect(7);
    assert!(ran.stdout == "so far\n" && ran.stderr.contains("exit code 7"), "{}", ran.said());
    let ran = lab.run(&["exec", &bad, "--exit-code-of-longhaul"]).expect(0);
    assert!(ran.stdout == "so far\n" && ran.stderr.contains("exit code 7"), "{}", ran.said());
    lab.run(&["exec", "what.txt", "--exit-code-of-longhaul"]).expect(1);
    let unknown = file("what.txt", "1");
    let huge = file("huge.py", &"#".repeat(50 << 20));
    let missing = lab.path("missing.py").to_str().expect("plain").to_owned();
    for (args, code, says) in [
        (vec!["exec", unknown.as_str()], 125, "say --lang"),
        (vec!["exec", missing.as_str()], 125, "missing.py"),
        (vec!["exec", "../../etc/passwd.py"], 125, "passwd.py"),
        (vec!["exec", "../../etc/passwd"], 125, "say --lang"),
        (vec!["exec", huge.as_str()], 125, "is longer than 1000000 bytes"),
        (vec!["exec", "/", "--lang", "python"], 125, "is not a file"),
        (vec!["exec", &good, "--context", "{"], 125, "--context is not JSON"),
        (vec!["exec", &good, "--context", "[]"], 125, "must be a JSON object"),
        (vec!["exec", &good, "--dir", "/nowhere:/data"], 2, "is no directory"),
        (vec!["exec", &good, "--dir", "/tmp:data"], 2, "where GUEST starts with `/`"),
        (vec!["exec", &good, "--allow-host", "ftp://x"], 2, "ftp://x"),
        (vec!["exec", &good, "--lang", "cobol"], 2, "cobol"),
        (vec!["exec", &good, "--lang", "wasm"], 125, "does not start as WebAssembly"),
        (vec!["exec", &good, "--module", "../helper.py"], 125, "is not below the working directory"),
        (vec!["exec", &good, "--module", "missing.py"], 125, "missing.py"),
    ] {
        let ran = lab.run(&args);
        assert_eq!(ran.code(), Some(code), "{args:?}: {}", ran.said());
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.said());
    }
}

#[test]
fn what_the_code_prints_is_shown_while_it_runs() {
    let lab = Lab::empty();
    fs::create_dir(lab.path("out")).expect("ours");
    let source = "import os, sys, time\nprint('first', 1)\nprint('warned', file=sys.stderr)\n\
                  while not os.path.exists('/out/go'): time.sleep(0.01)\nprint('last')\n";
    let file = lab.path("waits.py");
    fs::write(&file, source).expect("ours");
    let grant = format!("{}:/out:ro", lab.path("out").display());
    let mut run = lab.start(&["exec", file.to_str().expect("plain"), "--dir", &grant]);
    run.wait_for("first 1\n");
    run.wait_for("warned\n");
    assert!(run.is_running() && !run.printed().contains("last"), "{}", run.printed());
    fs::write(lab.path("out/go"), "").expect("ours");
    let ran = run.wait().expect(0);
    assert_eq!(ran.stdout, "first 1\nlast\n", "nothing is printed twice");
    assert_eq!(ran.stderr.matches("warned\n").count(), 1, "{}", ran.said());
}

#[test]
fn the_command_ends_with_a_code_for_the_limit_that_stopped_the_code() {
    let lab = Lab::empty();
    let file = |name: &str, text: &str| {
        let path = lab.path(name);
        fs::write(&path, text).expect("ours");
        path.to_str().expect("plain").to_owned()
    };
    let (endless, hungry) = (file("endless.py", "while True: pass\n"), file("hungry.py", "x = b'a' * (1 << 30)\n"));
    for (args, code, limit) in [
        (vec!["exec", &endless, "--timeout-ms", "400"], 124, "timeout_ms"),
        (vec!["exec", &endless, "--fuel-max", "1000000000"], 122, "fuel_max"),
        (vec!["exec", &hungry], 121, "memory_bytes_max"),
    ] {
        lab.run(&args).expect(code);
        let ran = lab.run(&[&args[..], &["--json"]].concat()).expect(code);
        let report: Value = serde_json::from_str(&ran.stdout).expect("a report");
        assert_eq!(report["limit"], limit, "{args:?}: {}", ran.said());
        lab.run(&[&args[..], &["--exit-code-of-longhaul"]].concat()).expect(0);
    }
}

/// Compiled code is mapped from the cache, and the system's words for a denial named neither the cache nor the reason.
#[test]
fn a_cache_that_is_mounted_noexec_is_told_in_one_line_with_what_to_do() {
    let lab = Lab::new("", "");
    let good = lab.path("good.py");
    fs::write(&good, "print(1)\n").expect("ours");
    let cache = lab.path("cache");
    fs::DirBuilder::new().mode(0o700).create(&cache).expect("ours");
    let script = format!(
        "mount -t tmpfs -o noexec,mode=700 tmpfs {0} && export LONGHAUL_CACHE={0} && exec \"$0\" \"$@\"",
        cache.display()
    );
    let flags = if rustix::process::geteuid().is_root() { "-m" } else { "-Urm" };
    let through = ["unshare", flags, "sh", "-c", &script];
    let ran = lab.run_through(&through, &["exec", good.to_str().expect("plain")]).expect(125);
    assert_eq!(ran.error_lines(), 1, "{}", ran.said());
    let named = format!("`{}`", cache.join("compiled").display());
    for words in [named.as_str(), "is mounted noexec", "LONGHAUL_CACHE or XDG_CACHE_HOME"] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.said());
    }
    assert!(!ran.stderr.contains("Permission denied"), "{}", ran.said());
    let told = lab.run_through(&through, &["doctor"]).expect(1).stdout;
    let told = told.lines().find(|line| line.starts_with("disk of cache")).expect("it is told");
    assert!(told.contains("BROKEN: ") && told.contains("is mounted noexec"), "{told}");
}

#[test]
fn the_command_takes_interpreters_that_are_installed_in_its_own_data_directory() {
    let lab = Lab::empty();
    let good = lab.path("good.py");
    fs::write(&good, "print(1)\n").expect("ours");
    fs::create_dir_all(lab.home().join("plugins")).expect("ours");
    fs::write(lab.home().join("plugins/python.wasm"), "no component").expect("ours");
    let mut command = lab.command(&["exec", good.to_str().expect("plain")]);
    command.env_remove("LONGHAUL_PLUGINS");
    let ran = lab.start_command(command).wait().expect(125);
    assert!(ran.stderr.contains("`python`") && ran.stderr.contains("WebAssembly"), "{}", ran.said());
}
