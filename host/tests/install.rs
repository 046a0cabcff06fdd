//! Plugins are installed by name, version and digest: what they ask for is shown first, nothing is taken that is not
//! what was asked for, and a run takes exactly what was installed.

mod support;

use longhaul_core::Digest;
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use support::author::{Author, one_line};
use support::guest::guest;

/// A plugin `echo` of this version in a file, which asks for `asks`.
fn plugin(author: &Author, version: &str, asks: &str) -> String {
    let file = format!("echo-{version}.wasm");
    fs::write(author.path(&file), guest("healthy")).expect("it can be written");
    let manifest = format!("name = \"echo\"\nversion = \"{version}\"\ndescription = \"Answers.\"\n[asks]\n{asks}\n");
    author.write("plugin.toml", &manifest);
    author.runs(&["plugin", "pack", &file]);
    file
}

fn digest(author: &Author, file: &str) -> Digest {
    Digest::of(&fs::read(author.path(file)).expect("it is there"))
}

#[test]
fn a_plugin_is_installed_found_by_name_version_and_digest_and_removed() {
    let author = Author::new();
    let first = plugin(&author, "0.1.0", "hosts = [\"https://a.example\"]");
    let shown = author.runs(&["plugin", "install", &first, "--yes"]);
    for expected in [
        "asks\n  to reach https://a.example\n",
        "installed echo 0.1.0 (sha256:",
        "  plugin = \"echo\"\n",
        "  hosts = [\"https://a.example\"]\n",
    ] {
        assert!(shown.contains(expected), "{expected}\n{shown}");
    }
    let second = plugin(&author, "0.2.0", "directories = [{ guest = \"/work\", access = \"write\" }]");
    let shown = author.runs(&["plugin", "install", &second, "--yes"]);
    let changes = "since 0.1.0 (sha256:";
    let more = "  + to read and change a directory that it sees as /work\n  - to reach https://a.example\n";
    assert!(shown.contains(changes) && shown.contains(more), "{shown}");

    let inspected = |which: &str| -> Value {
        serde_json::from_str(&author.runs(&["plugin", "inspect", which, "--json"])).expect("JSON")
    };
    assert_eq!(inspected("echo")["version"], "0.2.0");
    assert_eq!(inspected("echo@0.1.0")["version"], "0.1.0");
    let of_first = format!("echo@sha256:{}", digest(&author, &first));
    assert_eq!(inspected(&of_first)["component"]["digest"], digest(&author, &first).to_string());
    let listed = author.runs(&["plugin", "list"]);
    assert!(listed.contains("0.2.0") && listed.contains("also echo@0.1.0 (sha256:"), "{listed}");

    author.runs(&["plugin", "remove", "echo@0.2.0"]);
    assert_eq!(inspected("echo")["version"], "0.1.0");
    one_line(&author.refuses(&["plugin", "remove", "echo@0.2.0"]), "there is no such version of `echo`; installed are");
    author.runs(&["plugin", "remove", "echo"]);
    one_line(&author.refuses(&["plugin", "inspect", "echo"]), "there is no plugin `echo`");
    one_line(&author.refuses(&["plugin", "remove", "echo"]), "no plugin `echo` is installed");
}

#[test]
fn nothing_is_installed_that_nobody_agreed_to() {
    let author = Author::new();
    let file = plugin(&author, "0.1.0", "models = true");
    let mut unasked = author.command(&["plugin", "install", &file]);
    let output = unasked.stdin(Stdio::null()).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("to ask the models that you name"));
    one_line(&String::from_utf8_lossy(&output.stderr), "there is nobody to ask; read what it asks for and add --yes");

    // At a real terminal.
    for (answer, installed) in [("n\n", false), ("\n", false), ("y\n", true)] {
        let mut at_terminal = Command::new("python3");
        at_terminal.args(["-c", "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"]);
        at_terminal.arg(env!("CARGO_BIN_EXE_longhaul")).args(["plugin", "install", &file]);
        at_terminal.current_dir(author.place.path()).env("LONGHAUL_HOME", author.path("home"));
        let mut child =
            at_terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        child.stdin.take().expect("piped").write_all(answer.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("install it? [y/N]"), "{said}");
        assert_eq!(output.status.success(), installed, "{said}");
        assert_eq!(author.path("home/plugins/echo.wasm").is_file(), installed, "{said}");
    }
}

/// Serves these bytes once, to whoever asks, and gives the address.
fn served(status: &'static str, body: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a caller");
        let _ = stream.read(&mut [0; 4096]);
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
    });
    format!("http://{address}/echo.wasm")
}

#[test]
fn an_address_is_taken_when_its_bytes_are_the_right_ones() {
    let author = Author::new();
    let file = plugin(&author, "0.1.0", "");
    let (bytes, right) = (fs::read(author.path(&file)).expect("it is there"), digest(&author, &file));
    let refuses = |source: &str, expected: &str| {
        one_line(&author.refuses(&["plugin", "install", source, "--yes"]), expected);
        assert!(!author.path("home/plugins").exists(), "{source}");
    };
    refuses(&served("200 OK", bytes.clone()), "over http anybody could change it; use https, or add the digest");
    let wrong = Digest::of(b"something else");
    refuses(&format!("{}@sha256:{wrong}", served("200 OK", bytes.clone())), "was asked for; nothing was installed");
    refuses(&format!("{}@sha256:{right}", served("404 Not Found", Vec::new())), "it answered 404 Not Found");
    refuses(&format!("{}@sha256:12", served("200 OK", bytes.clone())), "`12` is not a digest");
    let shown: Value = serde_json::from_str(&author.runs(&[
        "plugin",
        "install",
        &format!("{}@sha256:{right}", served("200 OK", bytes)),
        "--yes",
        "--json",
    ]))
    .expect("JSON");
    assert_eq!(shown["installed"]["digest"], right.to_string());
    assert!(shown["installed"]["source"]["url"].as_str().is_some_and(|url| url.ends_with("/echo.wasm")), "{shown}");
}

#[test]
fn what_is_no_plugin_is_refused_and_nothing_is_kept() {
    let author = Author::new();
    let refuses = |file: &str, expected: &str| {
        one_line(&author.refuses(&["plugin", "install", file, "--yes"]), expected);
        assert!(!author.path("home/plugins").exists(), "{file}");
    };
    refuses("nowhere.wasm", "cannot read `");
    author.write("text.wasm", "hello");
    refuses("text.wasm", "does not start as WebAssembly does");
    fs::write(author.path("bare.wasm"), guest("healthy")).expect("it can be written");
    refuses("bare.wasm", "carries no manifest, which says its name and what it asks for; build it with");
    let named = |manifest: &str, expected: &str| {
        fs::copy(author.path("bare.wasm"), author.path("named.wasm")).expect("it can be copied");
        author.write("plugin.toml", manifest);
        author.runs(&["plugin", "pack", "named.wasm"]);
        refuses("named.wasm", expected);
    };
    named("name = \"echo\"\n", "its version is ``; write one such as 1.2.0 into its plugin.toml");
    named("name = \"echo\"\nversion = \"1\\u001b[2J\"\n", "its version is `1\\u{1b}[2J`");
    one_line(&author.refuses(&["plugin", "pack", "named.wasm"]), "carries a manifest already");
    author.write("plugin.toml", "name = \"../echo\"\nversion = \"1\"\n");
    one_line(&author.refuses(&["plugin", "pack", "bare.wasm"]), "`../echo` is no name of a plugin");
    author.write("plugin.toml", "name = \"echo\"\nversion = \"1\"\n[asks]\nmodel = true\n");
    one_line(&author.refuses(&["plugin", "pack", "bare.wasm"]), "plugin.toml`, line 4: unknown field `model`");
}

#[test]
fn what_was_changed_after_it_was_installed_is_not_taken_by_a_run() {
    let author = Author::new();
    let file = plugin(&author, "0.1.0", "");
    author.runs(&["plugin", "install", &file, "--yes"]);
    author.runs(&["new", "kept"]);
    let config = "[project]\nname = \"kept\"\n[agents.code]\nplugin = \"echo\"\n";
    author.write("kept/longhaul.toml", config);
    let commit = "git add --all && git -c user.name=a -c user.email=a@example.org commit --quiet --message goal";
    let committed = Command::new("sh").args(["-c", commit]).current_dir(author.path("kept")).status();
    assert!(committed.is_ok_and(|status| status.success()));
    fs::write(author.path("home/plugins/echo.wasm"), guest("healthy")).expect("it can be written");
    let text = author.refuses(&["--project", "kept", "run"]);
    assert!(text.contains("was changed after it was installed; install it again"), "{text}");
}

#[test]
fn a_full_disk_leaves_the_version_before() {
    let author = Author::new();
    let (first, second) = (plugin(&author, "0.1.0", ""), plugin(&author, "0.2.0", ""));
    author.runs(&["plugin", "install", &first, "--yes"]);
    // No file may grow beyond 2 KB, which a program sees as it sees a full disk.
    let mut full = Command::new("sh");
    full.args(["-c", "trap '' XFSZ; ulimit -S -f 4 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_longhaul")]);
    full.args(["plugin", "install", &second, "--yes"]);
    let output =
        full.current_dir(author.place.path()).env("LONGHAUL_HOME", author.path("home")).output().expect("a shell");
    assert_eq!(output.status.code(), Some(1));
    one_line(&String::from_utf8_lossy(&output.stderr), "cannot write `");
    let left = fs::read_dir(author.path("home/plugins/versions/echo")).expect("it is there").count();
    assert_eq!(left, 2, "the list and the one component");
    assert!(author.runs(&["plugin", "inspect", "echo"]).contains("echo 0.1.0: Answers."));
}

#[test]
fn two_installations_at_once_are_both_kept() {
    let author = Author::new();
    let files: Vec<String> = (0..4).map(|number| plugin(&author, &format!("0.{number}.0"), "")).collect();
    let started: Vec<_> = files
        .iter()
        .map(|file| {
            author.command(&["plugin", "install", file, "--yes"]).stdout(Stdio::null()).spawn().expect("it starts")
        })
        .collect();
    for mut child in started {
        assert!(child.wait().expect("it ends").success());
    }
    let listed = author.runs(&["plugin", "list"]);
    for file in &files {
        assert!(listed.contains(&digest(&author, file).short()), "{file}\n{listed}");
    }
}
