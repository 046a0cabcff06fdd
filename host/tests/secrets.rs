//! Secrets through the whole program: set on the command line, granted in `longhaul.toml`, sent by a plugin that never
//! has the value, and nowhere to be found afterwards.

mod common;

use common::lab::{Lab, Ran};
use common::refused;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

const TOKEN: &str = "tok-1234567890-abcdef";

/// A server that says back, as JSON, what came as authorization; gives its port and what came.
fn echo() -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("bound").port();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let came = Arc::clone(&seen);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let lines = BufReader::new(stream.try_clone().expect("a stream")).lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let said = head.iter().find_map(|line| line.strip_prefix("authorization: ")).unwrap_or("none").to_owned();
            let body = format!("{{\"said\":\"{said}\"}}");
            let answer = format!(
                "HTTP/1.1 200 OK\r\nx-said: {said}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            came.lock().expect("nobody panicked").push(said);
            // The client may have gone.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (port, seen)
}

fn lab(port: u16, secrets: &str) -> Lab {
    let config = format!(
        "[project]\nname = \"kept\"\n[agents.code]\nplugin = \"caller\"\ntools = [\"poster\"]\n\
         settings = {{ calls = [{{ tool = \"poster\", function = \"look\", arguments = {{ text = \"a\" }} }}] }}\n\
         [tools.poster]\nplugin = \"poster\"\nhosts = [\"GET http://127.0.0.1:{port}\"]\nsecrets = [{secrets}]\n\
         settings = {{ server = \"127.0.0.1:{port}\", token = {{ secret = \"github\" }} }}\n\
         [evaluator]\nplugin = \"lenient\"\n[run.limits]\niterations_max = 1\n"
    );
    Lab::new(&config, "# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n\nDo it.\n")
}

fn journal(lab: &Lab) -> String {
    lab.run(&["--json", "journal", "--invocation", "f-one/1/generate"]).expect(0).stdout
}

#[test]
fn a_plugin_sends_a_secret_that_is_nowhere_to_be_found() {
    let (port, seen) = echo();
    let lab = lab(port, &format!("{{ name = \"github\", hosts = [\"http://127.0.0.1:{port}\"] }}"));
    lab.set_secret("github", TOKEN);
    let ran = lab.run(&["run"]).expect(0);
    assert_eq!(*seen.lock().expect("nobody panicked"), [format!("Bearer {TOKEN}")]);
    let journal = journal(&lab);
    assert!(journal.contains("Bearer [secret]") && !journal.contains(TOKEN), "{journal}");
    assert!(!ran.said().contains(TOKEN));
    let report = lab.run(&["report"]).expect(0);
    assert!(!report.said().contains(TOKEN));
    assert_eq!(holding(&lab.home(), TOKEN), ["secrets/github"], "only the file of the secret has it");
}

#[test]
fn a_secret_that_is_not_there_or_goes_elsewhere_is_refused_with_its_line() {
    let (port, seen) = echo();
    let lab_without = lab(port, &format!("{{ name = \"github\", hosts = [\"http://127.0.0.1:{port}\"] }}"));
    refused(&lab_without.run(&["run"]), &["[tools.poster] secrets", "longhaul secrets set github"]);
    let elsewhere = lab(port, "{ name = \"github\", hosts = [\"https://api.github.com\"] }");
    elsewhere.set_secret("github", TOKEN);
    elsewhere.run(&["run"]).expect(0);
    let told = journal(&elsewhere);
    assert!(told.contains("the secret `github` may not go to `http://127.0.0.1") && !told.contains(TOKEN), "{told}");
    assert!(seen.lock().expect("nobody panicked").is_empty());
}

/// The files below a folder that have these words in them, by their paths in it.
fn holding(folder: &Path, words: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in std::fs::read_dir(next).expect("readable").map(|entry| entry.expect("readable").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if std::fs::read(&path)
                .is_ok_and(|bytes| bytes.windows(words.len()).any(|part| part == words.as_bytes()))
            {
                found.push(path.strip_prefix(folder).expect("below it").display().to_string());
            }
        }
    }
    found
}

#[test]
fn a_secret_is_set_listed_and_removed_and_shown_by_nothing() {
    let lab = Lab::empty();
    lab.set_secret("github", "tok-1111111111-bbbbbb");
    let said = |args: &[&str]| -> Ran { lab.run(args) };
    assert_eq!(said(&["secrets", "list"]).expect(0).stdout, "github\n");
    said(&["secrets", "remove", "github"]).expect(0);
    refused(&said(&["secrets", "remove", "github"]), &["there is no secret `github`"]);
    // A value on the command line is no value.
    assert_eq!(said(&["secrets", "set", "github", "tok-1111111111-bbbbbb"]).code(), Some(2));
    let mut short = lab.command(&["secrets", "set", "github"]);
    let output = short.stdin(Stdio::null()).output().expect("ran");
    assert!(String::from_utf8_lossy(&output.stderr).contains("8 to 4096 visible"));
}

/// A key of a model was stored, and told to models, as soon as a program printed it.
#[test]
fn a_key_that_programs_print_is_neither_stored_nor_told() {
    const KEY: &str = "sk-live-/Zq8+vT5mB1xW3nR7";
    // Neither the project nor the configuration has the key as it is.
    let backwards: String = KEY.chars().rev().collect();
    let leak = format!(
        "import base64\nkey = {backwards:?}[::-1]\nprint('as it is:', key)\n\
         print('encoded:', base64.b64encode(b'x' + key.encode()).decode(), key.encode().hex())\n\
         print('secret:', {:?}[::-1])\n",
        TOKEN.chars().rev().collect::<String>()
    );
    let check = format!("{leak}import sys\nprint('complains:', key, file=sys.stderr)\nsys.exit(1)\n");
    let lab = Lab::empty();
    let key_file = lab.path("key");
    std::fs::write(&key_file, KEY).expect("ours");
    std::fs::set_permissions(&key_file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("ours");
    let config = format!(
        "[project]\nname = \"kept\"\n[models.m]\nprovider = \"openai\"\nid = \"m\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
         api_key_file = {key_file:?}\n[agents.code]\nplugin = \"caller\"\nmodels = [\"m\"]\ntools = [\"shell\"]\n\
         settings = {{ calls = [{{ tool = \"shell\", function = \"run\", arguments = {{ command = \"python3 leak.py\" }} }}] }}\n\
         [tools.shell]\nplugin = \"builtin:shell\"\nallow = [\"python3 leak.py\"]\n\
         [evaluator]\nplugin = \"check-evaluator\"\n[checks]\nleaks = [\"python3\", \"check.py\"]\n[run.limits]\niterations_max = 1\n"
    );
    let goal = "# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n- check: leaks\n\nDo it.\n";
    lab.make_project("project", &config, goal);
    std::fs::write(lab.project().join("leak.py"), leak).expect("ours");
    std::fs::write(lab.project().join("check.py"), check).expect("ours");
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "leaks"]);
    lab.set_secret("github", TOKEN);
    let ran = lab.run(&["run"]);
    let journal = |invocation| ["--json", "journal", "-i", invocation];
    let (generated, judged) = (journal("f-one/1/generate"), journal("f-one/1/judge"));
    let told: String = [&generated[..], &judged, &["--json", "status"], &["report"]]
        .map(|args| lab.run(args).expect(0).said())
        .concat();
    let told = format!("{}{told}", ran.said());
    for shown in ["as it is: [secret]", "encoded: ", "secret: [secret]", "complains: [secret]"] {
        assert!(told.contains(shown), "{shown}: {told}");
    }
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let escaped = KEY.replace('/', "\\/");
    for form in [KEY, &hex, &escaped] {
        assert!(!told.contains(form), "{form}: {told}");
        assert!(holding(&lab.home(), form).is_empty(), "{form} is in {:?}", holding(&lab.home(), form));
    }
    assert_eq!(holding(&lab.home(), TOKEN), ["secrets/github"], "only the file of the secret has it");
}
