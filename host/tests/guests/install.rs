//! Plugins are installed by name, version and digest: what they ask for is shown first, nothing is taken that is not
//! what was asked for, and a run takes exactly what was installed.

use crate::common::author::{Author, one_line, said};
use crate::common::guests::guest;
use longhaul_core::Digest;
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

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
    one_line(&String::from_utf8_lossy(&output.stderr), "no person can be asked; read what it asks for and add --yes");

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

/// Serves these bytes for one request, and returns the address.
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
    let refused = author.refuses(&["plugin", "install", "nowhere.wasm", "--yes"]);
    assert_eq!(refused.matches("No such file").count(), 1, "{refused}");
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
    named("name = \"echo\"\nversion = \"1\\u001b[2J\"\n", "its version is `1\\u001b[2J`");
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
    one_line(&String::from_utf8_lossy(&output.stderr), "cannot write ");
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

/// A project `kept` whose tool is the plugin of that file, committed.
fn with_tool(author: &Author, component: &[u8]) {
    author.write("kept/plugins/code.toml", "name = \"code\"\nversion = \"1\"\n");
    fs::write(author.path("kept/plugins/code.wasm"), guest("evil-agent")).expect("ours");
    fs::write(author.path("kept/plugins/tried.wasm"), component).expect("ours");
    let config = "[project]\nname = \"kept\"\n[agents.code]\nplugin = \"./plugins/code.wasm\"\n\
                  tools = [\"tried\"]\n[tools.tried]\nplugin = \"./plugins/tried.wasm\"\n[checks]\nnever = { argv = [\"false\"] }\n";
    author.write("kept/longhaul.toml", config);
    author.write("kept/GOAL.md", "# One\n\n## Feature: the first\n- id: one\n- check: never\n\nDo it.\n");
    author.write("kept/.gitignore", "plugins\n");
    let commit = "git add --all && git -c user.name=a -c user.email=a@example.org commit --quiet --message goal";
    let committed = Command::new("sh").args(["-c", commit]).current_dir(author.path("kept")).status();
    assert!(committed.is_ok_and(|status| status.success()));
}

/// `check` used to take what `install` refused, and a run took all of it.
#[test]
fn check_install_conform_and_a_run_give_one_verdict() {
    let manifest = |name: &str, version: &str, world: &str| {
        format!("name = \"{name}\"\nversion = \"{version}\"\nworld = \"{world}\"\n")
    };
    for (component, manifest, refusal) in [
        ("healthy", manifest("tried", "1.2.0", "tool-plugin"), None),
        ("healthy", manifest("Tried", "1", "tool-plugin"), Some("`Tried` is no name of a plugin")),
        ("healthy", "version = \"1\"\n".to_owned(), Some("its manifest has no name")),
        ("healthy", manifest("tried", "", "tool-plugin"), Some("its version is ``; write one such as 1.2.0")),
        ("healthy", manifest("tried", "1", "agent-plugin"), Some("the component has the role tool; write tool-plugin")),
        ("names-twice", manifest("tried", "1", "tool-plugin"), Some("function `sum` is given twice")),
    ] {
        let author = Author::new();
        author.runs(&["new", "kept"]);
        with_tool(&author, &packed(component, &manifest));
        let file = "plugins/tried.wasm";
        let mut told = Vec::new();
        for arguments in [
            &["plugin", "check", file][..],
            &["conform", file],
            &["plugin", "install", file, "--yes"],
            &["run", "--plan-only"],
        ] {
            let mut command = author.command(arguments);
            let output = command.current_dir(author.path("kept")).output().expect("it starts");
            let text = said(&output);
            let refuses = text.contains("FAIL manifest")
                || text.contains("FAIL functions")
                || text.contains("FAIL describes")
                || text.lines().any(|line| line.starts_with("longhaul: "));
            let is_named = refusal.is_none_or(|refusal| text.contains(refusal));
            if refuses != refusal.is_some() || !is_named {
                told.push(format!("{arguments:?} of {component} with {manifest:?}:\n{text}"));
            }
        }
        assert!(told.is_empty(), "{}", told.join("\n"));
    }
}

#[test]
fn another_component_of_one_version_a_way_back_and_a_removal_of_several_are_asked_about() {
    let author = Author::new();
    let first = plugin(&author, "0.2.0", "");
    author.runs(&["plugin", "install", &first, "--yes"]);
    let other = plugin(&author, "0.2.0", "models = true");
    let unasked = |arguments: &[&str]| {
        let output = author.command(arguments).stdin(Stdio::null()).output().expect("it starts");
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        said(&output)
    };
    let text = unasked(&["plugin", "install", &other]);
    assert!(text.contains("note: 0.2.0 is installed already with other bytes (sha256:"), "{text}");
    author.runs(&["plugin", "install", &other, "--yes"]);
    let older = plugin(&author, "0.1.0", "");
    let text = unasked(&["plugin", "install", &older]);
    assert!(text.contains("note: 0.1.0 is older than 0.2.0, which runs take now"), "{text}");
    let json: Value =
        serde_json::from_str(&author.runs(&["plugin", "install", &older, "--yes", "--json"])).expect("JSON");
    assert_eq!(json["notes"].as_array().map(Vec::len), Some(1), "{json}");
    for (several, count) in [("echo", 3), ("echo@0.2.0", 2)] {
        let text = unasked(&["plugin", "remove", several]);
        assert!(text.contains(&format!("these are {count} versions of echo: name one, or add --yes")), "{text}");
    }
    // One is what was named.
    author.runs(&["plugin", "remove", "echo@0.1.0"]);
    author.runs(&["plugin", "remove", "echo", "--yes"]);
    one_line(&author.refuses(&["plugin", "inspect", "echo"]), "there is no plugin `echo`");
}

/// A hostile text for every text of a plugin: an escape sequence, a C1 character, a character that changes the
/// direction, NUL, and lines that look like the host's. Further texts are in `hostile/evil-agent.wat` and
/// `hostile/evil-tool.wat`.
const EVIL_TOML: &str = "a\\u001b[6;66H\\u009b6;67H\\u202e\\u0000\\r\\nlonghaul: FORGED\\n  PASS forged";

/// The same where it stands in the name of a file, which holds no NUL.
const EVIL_NAME: &str = "a\u{1b}[6;66H\u{9b}6;67H\u{202e}\r\nlonghaul: FORGED\n  PASS forged";

/// The component with a manifest, whatever it says.
fn packed(name: &str, manifest: &str) -> Vec<u8> {
    longhaul_build::with_manifest(guest(name), manifest).expect("it takes a section")
}

/// The output of a command at a terminal, to the byte.
fn at_terminal(author: &Author, directory: &str, arguments: &[&str]) -> String {
    let mut command = Command::new("python3");
    command.args(["-c", "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"]);
    command.arg(env!("CARGO_BIN_EXE_longhaul")).args(arguments).current_dir(author.path(directory));
    command.env("LONGHAUL_HOME", author.path("home")).env("TERM", "xterm").env("LONGHAUL_LOG", "debug");
    // No person is there to answer a question about the file of the project.
    command.env("LONGHAUL_TRUST", "all");
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The characters that a terminal would obey, or that a person would take for a line of the host.
fn unclean(shown: &str) -> Option<&'static str> {
    for (evil, what) in [
        ("\u{1b}[6;66H", "an escape sequence"),
        ("\u{9b}", "a C1 character"),
        ("\u{202e}", "a character that turns the direction"),
        ("\0", "NUL"),
    ] {
        if shown.contains(evil) {
            return Some(what);
        }
    }
    let forged = |line: &str| line.starts_with("longhaul: FORGED") || line.starts_with("  PASS forged");
    let drawn = without_drawing(shown);
    drawn.lines().any(forged).then_some("a line of the host")
}

/// Without the sequences that the host itself draws the line that lives with.
fn without_drawing(shown: &str) -> String {
    let mut parts = shown.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.trim_start_matches(|char: char| !char.is_ascii_alphabetic()).get(1..).unwrap_or_default());
    }
    plain.replace('\r', "\n")
}

#[test]
fn nothing_that_a_plugin_says_reaches_a_terminal_as_it_is() {
    let author = Author::new();
    author.runs(&["new", "kept"]);
    let asks = format!(
        "[asks]\ntools = true\nhosts = [\"{EVIL_TOML}\"]\ndirectories = [{{ guest = \"{EVIL_TOML}\", access = \"read\" }}]\n"
    );
    let good = |name: &str| format!("name = \"{name}\"\nversion = \"1.0.0\"\ndescription = \"{EVIL_TOML}\"\n");
    let plugins = "kept/plugins";
    fs::create_dir_all(author.path(plugins)).expect("ours");
    let write = |name: &str, bytes: &[u8]| fs::write(author.path(plugins).join(name), bytes).expect("ours");
    write("evil.wasm", &packed("evil-agent", &format!("{}{asks}", good("evil"))));
    write("tool.wasm", &packed("evil-tool", &good("tool")));
    write(&format!("{EVIL_NAME}.wasm"), &packed("evil-agent", &good("evil")));
    write("version.wasm", &packed("evil-agent", &format!("name = \"evil\"\nversion = \"{EVIL_TOML}\"\n")));
    write("name.wasm", &packed("evil-agent", &format!("name = \"{EVIL_TOML}\"\nversion = \"1\"\n")));
    let world = format!("name = \"evil\"\nversion = \"1\"\nworld = \"{EVIL_TOML}\"\n");
    write("world.wasm", &packed("evil-agent", &world));
    write("toml.wasm", &packed("evil-agent", &format!("{}[asks]\n\"{EVIL_TOML}\" = 1\n", good("evil"))));
    write("bare.wasm", &guest("evil-agent"));
    author.write("kept/evil.toml", &format!("name = \"{EVIL_TOML}\"\nversion = \"1\"\n"));
    let config = "[project]\nname = \"kept\"\n[agents.code]\nplugin = \"./plugins/evil.wasm\"\n\
                  tools = [\"evil\"]\n[tools.evil]\nplugin = \"./plugins/tool.wasm\"\n[checks]\nnever = { argv = [\"false\"] }\n[run.limits]\niterations_max = 1\n";
    author.write("kept/longhaul.toml", config);
    author.write("kept/GOAL.md", "# One\n\n## Feature: the first\n- id: one\n- check: never\n\nDo it.\n");
    author.write("kept/.gitignore", "plugins\nevil.toml\n");
    let commit = "git add --all && git -c user.name=a -c user.email=a@example.org commit --quiet --message goal";
    let committed = Command::new("sh").args(["-c", commit]).current_dir(author.path("kept")).status();
    assert!(committed.is_ok_and(|status| status.success()));

    let evil_file = format!("plugins/{EVIL_NAME}.wasm");
    let (task, error) = ("{\"id\":\"x\",\"instruction\":\"y\"}", "{\"id\":\"e\",\"instruction\":\"y\"}");
    // Each with a word that it must show, so that it came as far as there is something to show.
    let table: Vec<(Vec<&str>, &str)> = vec![
        (
            vec!["plugin", "inspect", "plugins/evil.wasm"],
            "to reach a\\u001b[6;66H\\u009b6;67H\\u202e\\u0000 longhaul: FORGED",
        ),
        (vec!["plugin", "inspect", evil_file.as_str()], "evil 1.0.0"),
        (vec!["plugin", "inspect", "plugins/version.wasm"], "\\u001b[6;66H"),
        (vec!["plugin", "inspect", "plugins/toml.wasm"], "unknown field"),
        (vec!["plugin", "inspect", "none-such\u{1b}[6;66H"], "longhaul: "),
        (vec!["plugin", "check", "plugins/evil.wasm"], "PASS manifest"),
        (vec!["plugin", "check", "plugins/tool.wasm"], "1 function: a\\u001b[6;66H"),
        (vec!["plugin", "check", "plugins/version.wasm"], "FAIL manifest"),
        (vec!["plugin", "check", "plugins/name.wasm"], "FAIL manifest"),
        (vec!["plugin", "check", "plugins/world.wasm"], "FAIL manifest"),
        (vec!["plugin", "check", "plugins/toml.wasm"], "FAIL manifest"),
        (vec!["plugin", "check", evil_file.as_str()], "PASS manifest"),
        (vec!["plugin", "run", "plugins/evil.wasm", "run", "--input", task], "result"),
        (vec!["plugin", "run", "plugins/evil.wasm", "run", "--input", error], "error failed: a\\u001b[6;66H"),
        (vec!["plugin", "run", "plugins/tool.wasm", "describe"], "result"),
        (vec!["plugin", "run", "plugins/tool.wasm", "call", "--input", "{\"function\":\"x\"}"], "result"),
        (vec!["plugin", "pack", "plugins/bare.wasm", "--manifest", "evil.toml"], "no name of a plugin"),
        (vec!["plugin", "pack", evil_file.as_str()], "longhaul: "),
        (vec!["plugin", "list"], "files"),
        (vec!["plugin", "install", "plugins/version.wasm", "--yes"], "its version is"),
        (vec!["plugin", "install", "plugins/name.wasm", "--yes"], "no name of a plugin"),
        (vec!["plugin", "install", "plugins/world.wasm", "--yes"], "its manifest says world"),
        (vec!["plugin", "install", "plugins/toml.wasm", "--yes"], "unknown field"),
        (vec!["plugin", "install", evil_file.as_str(), "--yes"], "installed evil 1.0.0"),
        (vec!["plugin", "install", "plugins/evil.wasm", "--yes"], "installed evil 1.0.0"),
        (vec!["plugin", "list"], "also evil@1.0.0"),
        (vec!["plugin", "remove", "evil", "--yes"], "removed evil 1.0.0"),
        (vec!["conform", "plugins/tool.wasm"], "1 function: a\\u001b[6;66H"),
        (vec!["run"], "incomplete"),
        (vec!["status"], "features pass"),
        (vec!["runs"], "kept"),
        (vec!["features"], "the first"),
        (vec!["features", "--proposals"], "no proposals"),
        (vec!["journal"], "f-one/1/generate"),
        (vec!["journal", "--invocation", "f-one/1/generate"], "decisions.record a\\u001b[6;66H"),
        (vec!["decisions"], "a\\u001b[6;66H"),
        (vec!["memory", "list"], "a\\u001b[6;66H"),
        (vec!["memory", "export"], "longhaul_memory"),
        (vec!["trajectories", "list"], "rated"),
        (vec!["trajectories", "export", "--format", "full"], ""),
        (vec!["report"], "# kept"),
        (vec!["log"], "the run began here"),
        (vec!["approvals"], "no approvals"),
        (vec!["checkpoint", "list"], ""),
        (vec!["replay"], "same result"),
        (vec!["attach"], ""),
        (vec!["agent", "list"], ""),
        (vec!["graph", "list"], ""),
        (vec!["ps"], ""),
        (vec!["metrics"], "longhaul"),
        (vec!["doctor"], "data directory"),
        (vec!["detect", EVIL_NAME], ""),
    ];
    let mut wrong = String::new();
    for (arguments, expected) in &table {
        let shown = at_terminal(&author, "kept", arguments);
        if let Some(what) = unclean(&shown) {
            wrong.push_str(&format!("{arguments:?} shows {what}:\n{shown:?}\n"));
        }
        if !shown.contains(expected) {
            wrong.push_str(&format!("{arguments:?} does not show {expected:?}:\n{shown:?}\n"));
        }
    }
    // JSON is JSON for programs, whose terminal it may be all the same.
    for arguments in [
        &["plugin", "inspect", "plugins/evil.wasm"][..],
        &["plugin", "check", "plugins/tool.wasm"],
        &["plugin", "run", "plugins/evil.wasm", "run", "--input", task],
        &["status"],
        &["journal", "--invocation", "f-one/1/generate"],
        &["decisions"],
        &["memory", "list"],
    ] {
        let arguments = [arguments, &["--json"]].concat();
        let shown = at_terminal(&author, "kept", &arguments);
        let lines = shown.lines().filter(|line| line.starts_with(['{', '[']));
        let read: Vec<Value> = lines.filter_map(|line| serde_json::from_str(line.trim_end()).ok()).collect();
        let holds = read.iter().any(|value| value.to_string().contains("\u{202e}"));
        if unclean(&shown).is_some() || read.is_empty() || !(holds || arguments[0] == "status") {
            wrong.push_str(&format!("{arguments:?}: {:?}\n{shown:?}\n", unclean(&shown)));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
