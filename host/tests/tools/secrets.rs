//! Secrets through the whole program: set on the command line, granted in `longhaul.toml`, sent by a plugin that never
//! has the value, and nowhere to be found afterwards.

use crate::common::lab::{Lab, Ran};
use crate::common::refused;
use crate::common::terminal::Terminal;
use serde_json::json;
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
                "HTTP/1.1 200 OK\r\nx-said: {said}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n{body}",
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
    let id = lab.run(&["project", "id"]).expect(0).stdout;
    let file = format!("secrets/projects.d/{}/github", id.trim());
    assert_eq!(holding(&lab.home(), TOKEN), [file], "only the file of the secret has it");
    // The use of the secret is in the audit log, and its value is not.
    let audit = lab.run(&["audit", "log"]).expect(0).stdout;
    assert!(audit.contains("secret used") && audit.contains("tools.poster") && !audit.contains(TOKEN), "{audit}");
    lab.run(&["audit", "verify"]).expect(0);
}

/// A repository chooses its name, and used to get with it the secret of the project that has the name already.
#[test]
fn a_second_checkout_with_the_same_name_gets_no_secret_and_no_memory() {
    let (port, seen) = echo();
    let granted = format!("{{ name = \"github\", hosts = [\"http://127.0.0.1:{port}\"] }}");
    let lab = lab(port, &granted);
    lab.set_secret("github", TOKEN);
    lab.run(&["run"]).expect(0);
    let config = std::fs::read_to_string(lab.project().join("longhaul.toml")).expect("there");
    let goal = std::fs::read_to_string(lab.project().join("GOAL.md")).expect("there");
    lab.make_project("evil", &config, &goal);
    let evil = lab.path("evil");
    let at = |args: &[&str]| lab.run(&[&["--project", evil.to_str().expect("text")], args].concat());
    refused(&at(&["run"]), &["there is no secret `github` for this project"]);
    let told = at(&["project", "id"]).expect(0);
    let own = lab.run(&["project", "id"]).expect(0).stdout;
    assert_ne!(told.stdout, own);
    assert_eq!(seen.lock().expect("nobody panicked").len(), 1, "only the first one sent it");
    // Without the secret it runs, is told that it is another project, and remembers nothing of the first one.
    let without = config.replace(&granted, "").replace(", token = { secret = \"github\" }", "");
    lab.make_project("twin", &without, &goal);
    let twin = lab.path("twin");
    let at = |args: &[&str]| lab.run(&[&["--project", twin.to_str().expect("text")], args].concat());
    let ran = at(&["run"]).expect(0);
    assert!(ran.said().contains("this checkout is a project of its own"), "{}", ran.said());
    let episodes = |ran: Ran| ran.expect(0).stdout.lines().filter(|line| line.contains("episode")).count();
    assert_eq!((episodes(lab.run(&["memory", "list"])), episodes(at(&["memory", "list"]))), (1, 1), "each its own");
    // A person can say that they are one.
    let first = lab.project();
    assert_eq!(at(&["project", "same-as", first.to_str().expect("text")]).expect(0).stdout, own);
    at(&["run"]).expect(0);
    assert_eq!(episodes(at(&["memory", "list"])), 2, "those of the first one, and that of this run");
}

/// A file that is changed after the secret was set used to send it wherever it said.
#[test]
fn a_secret_stays_with_the_tool_and_the_host_that_it_was_set_for() {
    let (port, seen) = echo();
    let granted = format!("{{ name = \"github\", hosts = [\"http://127.0.0.1:{port}\"] }}");
    let lab = lab(port, &granted);
    lab.set_secret("github", TOKEN);
    let file = lab.project().join("longhaul.toml");
    let text = std::fs::read_to_string(&file).expect("there");
    let other = text.replace(&granted, "{ name = \"github\", hosts = [\"https://evil.example\"] }");
    std::fs::write(&file, other).expect("ours");
    lab.git(&["commit", "-qam", "elsewhere"]);
    refused(&lab.run(&["run"]), &["is bound to [tools.poster]", "would send it to https://evil.example", "--host"]);
    std::fs::write(&file, text.replace("[tools.poster]", "[tools.thief]").replace("\"poster\"]", "\"thief\"]"))
        .expect("ours");
    lab.git(&["commit", "-qam", "another tool"]);
    refused(&lab.run(&["run"]), &["is bound to [tools.poster]", "[tools.thief] wants it", "--tool thief"]);
    assert!(seen.lock().expect("nobody panicked").is_empty());
}

/// One that was set before anything was granted it used to be for every tool and every host that the file came to name.
#[test]
fn a_secret_that_nothing_is_granted_yet_is_set_for_a_tool_and_a_host() {
    let (port, seen) = echo();
    let lab = lab(port, "");
    let here = format!("http://127.0.0.1:{port}");
    let set = |more: &[&str]| lab.run(&[&["secrets", "set", "github"], more].concat());
    let nobody =
        ["grants the secret `github` to no plugin yet", "longhaul secrets set github --tool NAME --host https://HOST"];
    refused(&set(&[]), &nobody);
    refused(&set(&["--host", &here]), &nobody);
    refused(&set(&["--tool", "poster"]), &["[tools.poster] is not granted the secret `github` yet", "add --host"]);
    refused(&set(&["--tool", "gone"]), &["there is no [tools.gone]", "write the table of the tool first"]);
    refused(&set(&["--tool", "postr"]), &["there is no [tools.postr]", "did you mean `poster`?"]);
    assert_eq!(lab.run(&["secrets", "list"]).expect(0).stdout, "");
    lab.set_secret_for(&["secrets", "set", "github", "--tool", "poster", "--host", &here], TOKEN);
    assert_eq!(lab.run(&["secrets", "list"]).expect(0).stdout, format!("github  [tools.poster], to {here}\n"));
    let file = lab.project().join("longhaul.toml");
    let text = std::fs::read_to_string(&file).expect("there");
    let grant = |host: &str| {
        let granted = format!("secrets = [{{ name = \"github\", hosts = [\"{host}\"] }}]");
        std::fs::write(&file, text.replace("secrets = []", &granted)).expect("ours");
        lab.git(&["commit", "-qam", "a grant"]);
    };
    grant("https://evil.example");
    refused(&lab.run(&["run"]), &["is bound to [tools.poster]", "would send it to https://evil.example"]);
    grant(&here);
    lab.run(&["run"]).expect(0);
    assert_eq!(*seen.lock().expect("nobody panicked"), [format!("Bearer {TOKEN}")]);
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
    refused(&lab.run(&["secrets", "set", "github"]), &["there is no project", "--any-project"]);
    lab.set_own_secret("github", "tok-1111111111-bbbbbb");
    let said = |args: &[&str]| -> Ran { lab.run(args) };
    assert_eq!(
        said(&["secrets", "list"]).expect(0).stdout,
        "github  every project, every tool, to every host that it is granted\n"
    );
    said(&["secrets", "remove", "github"]).expect(0);
    refused(&said(&["secrets", "remove", "github"]), &["there is no secret `github`"]);
    // A value on the command line is no value.
    assert_eq!(said(&["secrets", "set", "github", "tok-1111111111-bbbbbb"]).code(), Some(2));
    let mut short = lab.command(&["secrets", "set", "github", "--any-project"]);
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
    let goal = "# Goal\n\n## Feature: the first\n- id: one\n- check: leaks\n\nDo it.\n";
    lab.make_project("project", &config, goal);
    std::fs::write(lab.project().join("leak.py"), leak).expect("ours");
    std::fs::write(lab.project().join("check.py"), check).expect("ours");
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "leaks"]);
    let host = "https://api.github.com";
    lab.set_secret_for(&["secrets", "set", "github", "--tool", "shell", "--host", host], TOKEN);
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
    let id = lab.run(&["project", "id"]).expect(0).stdout;
    let file = format!("secrets/projects.d/{}/github", id.trim());
    assert_eq!(holding(&lab.home(), TOKEN), [file], "only the file of the secret has it");
}

/// A `longhaul.toml` that came with a repository used to have its commands run and its hosts reached at the first
/// `run`.
#[test]
fn what_a_file_asks_for_beyond_the_tree_is_used_once_a_person_agreed_to_it() {
    let (port, seen) = echo();
    let lab = lab(port, "");
    let file = lab.project().join("longhaul.toml");
    let text = std::fs::read_to_string(&file).expect("there").replace(", token = { secret = \"github\" }", "");
    let ran = lab.path("it-ran");
    let notified = format!("{text}[notify]\ncommand = [\"touch\", \"{}\"]\n", ran.display());
    let write = |text: &str| {
        std::fs::write(&file, text).expect("ours");
        lab.git(&["commit", "-qam", "another file"]);
    };
    let run = |args: &[&str]| lab.start_with(args, &[("LONGHAUL_TRUST", "")]).wait();
    write(&notified);
    let expected =
        ["asks for powers without an agreement here", "[notify] starts `touch", "`longhaul trust`", "--trust"];
    refused(&run(&["run"]), &expected);
    assert!(lab.runs().is_empty() && !ran.exists() && seen.lock().expect("nobody panicked").is_empty());
    // At a terminal it is shown and asked; a no is a no.
    let mut terminal = Terminal::start(&lab, &["run"], &[("LONGHAUL_TRUST", "")]);
    terminal.wait_for("use it with these powers? [y/N]", 1);
    assert!(terminal.screen().contains(&format!("[tools.poster] reaches GET http://127.0.0.1:{port}")));
    terminal.types("n");
    let (status, screen) = terminal.wait();
    assert!(!status.success() && screen.contains("is not used"), "{screen}");
    // A file with less: agreed to once, and used without a question from then on.
    write(&text);
    run(&["run", "--trust"]).expect(0);
    let mut before = seen.lock().expect("nobody panicked").len();
    assert_eq!(before, 1);
    run(&["run"]).expect(0);
    before += 1;
    // The new powers are the difference.
    write(&notified);
    let more = run(&["run"]);
    refused(&more, &["asks for more powers", "(+ [notify] starts `touch"]);
    assert!(!more.stderr.contains("tools.poster"), "{}", more.said());
    assert!(!ran.exists());
    assert_eq!(seen.lock().expect("nobody panicked").len(), before);
    let audit = run(&["audit", "log"]).expect(0).stdout;
    assert!(audit.contains("trusted") && audit.contains("run began"), "{audit}");
    run(&["audit", "verify"]).expect(0);
    // Grants against what runs did.
    let grants = run(&["audit"]).expect(0).stdout;
    let of_run = format!(
        ": used 1 of 2 grants\n  used         [agents.code] calls the tool `poster`\n  \
         use unknown  [tools.poster] reaches GET http://127.0.0.1:{port}\n"
    );
    assert_eq!(grants.matches(&of_run).count(), 2, "{of_run}\n{grants}");
    let of_all = format!(
        "nothing tells whether a run used these grants:\n  [tools.poster] reaches GET http://127.0.0.1:{port}\n\
         no run used these grants; take them out of longhaul.toml:\n  [notify] starts `touch {}` outside the sandbox\n",
        ran.display()
    );
    assert!(grants.ends_with(&of_all), "{of_all}\n{grants}");
}

/// One call of a tool used to count as a use of all its hosts and secrets, and a power that came with a resume as none.
#[test]
fn a_grant_is_told_used_only_where_a_record_says_so() {
    let (port, seen) = echo();
    let here = format!("http://127.0.0.1:{port}");
    let config = format!(
        "[project]\nname = \"kept\"\n[agents.code]\nplugin = \"caller\"\ntools = [\"web\", \"poster\", \"idle\"]\n\
         settings = {{ calls = [\
         {{ tool = \"web\", function = \"get\", arguments = {{ url = \"{here}/x\" }} }}, \
         {{ tool = \"poster\", function = \"look\", arguments = {{ text = \"a\" }} }}] }}\n\
         [tools.web]\nplugin = \"http-fetch\"\nhosts = [\"GET {here}\", \"https://never.example\"]\n\
         [tools.poster]\nplugin = \"poster\"\nhosts = [\"GET {here}\"]\n\
         secrets = [{{ name = \"github\", hosts = [\"{here}\"] }}]\napproval = {{ when_heard = \"allow\" }}\n\
         settings = {{ server = \"127.0.0.1:{port}\", token = {{ secret = \"github\" }} }}\n\
         [tools.idle]\nplugin = \"http-fetch\"\nhosts = [\"https://idle.example\"]\n\
         [evaluator]\nplugin = \"lenient\"\n[run.limits]\niterations_max = 1\n"
    );
    let goal = "# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n\nDo it.\n";
    let lab =
        Lab::new(&config, &format!("{goal}\n## Feature: the second\n- id: two\n- criterion: it is fine\n\nDo it.\n"));
    lab.set_secret("github", TOKEN);
    lab.run(&["run", "--sessions", "1"]).expect(4);
    assert_eq!(seen.lock().expect("nobody panicked").len(), 2);
    let idle = "[tools.idle] reaches https://idle.example:443".to_owned();
    let used = [
        format!("[tools.web] reaches GET {here}"),
        "[agents.code] calls the tool `poster`".to_owned(),
        "[agents.code] calls the tool `web`".to_owned(),
    ];
    let unknown = [
        format!("[tools.poster] reaches GET {here}"),
        "[tools.web] reaches https://never.example:443".to_owned(),
        format!("[tools.poster] sends the secret `github` to {here} in `authorization`"),
        "[tools.poster] lets calls pass after untrusted words were heard".to_owned(),
    ];
    let unused = [idle.clone(), "[agents.code] calls the tool `idle`".to_owned()];
    let grants = lab.json(&["audit"]);
    let run = &grants["runs"][0];
    assert_eq!((&run["used"], &run["unknown"], &run["unused"]), (&json!(used), &json!(unknown), &json!(unused)));
    assert_eq!((&grants["unknown"], &grants["unused"]), (&json!(unknown), &json!(unused)));
    // A file that gives more when the run goes on.
    let more = config.replace("[\"https://idle.example\"]", "[\"https://idle.example\", \"https://later.example\"]");
    std::fs::write(lab.project().join("longhaul.toml"), more).expect("ours");
    lab.git(&["commit", "-qam", "more"]);
    lab.run(&["resume"]).expect(0);
    let grants = lab.json(&["audit"]);
    let later = "[tools.idle] reaches https://later.example:443".to_owned();
    let unused = [idle, later.clone(), "[agents.code] calls the tool `idle`".to_owned()];
    assert_eq!(grants["runs"][0]["unused"], json!(unused));
    let log = lab.run(&["audit", "log"]).expect(0).stdout;
    let went_on = log.lines().find(|line| line.contains("run went on")).unwrap_or_else(|| panic!("{log}"));
    assert!(went_on.contains(&later) && !went_on.contains("idle.example"), "{went_on}");
}

/// A file behind an agreement could be exchanged without a new question.
#[test]
fn what_is_changed_behind_an_agreement_is_asked_about_again() {
    let (port, seen) = echo();
    let lab = lab(port, "");
    let (file, script) = (lab.project().join("longhaul.toml"), lab.project().join("tell.sh"));
    let text = std::fs::read_to_string(&file).expect("there").replace(", token = { secret = \"github\" }", "");
    let text = text.replace("secrets = []", "approval = { default = \"ask\" }");
    let agreed = format!("{text}[protect]\npaths = [\"/deploy/**\"]\n[notify]\ncommand = [\"sh\", \"./tell.sh\"]\n");
    let run = |args: &[&str]| lab.start_with(args, &[("LONGHAUL_TRUST", "")]).wait();
    let commit = || {
        lab.git(&["add", "-A"]);
        lab.git(&["commit", "-qm", "a change"]);
    };
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).expect("ours");
        commit();
    };
    std::fs::write(&script, "true\n").expect("ours");
    write(&file, &agreed);
    run(&["trust", "--trust"]).expect(0);
    let stood = run(&["--json", "trust"]).expect(0).stdout;
    assert!(stood.contains("\"is_trusted\":true"), "{stood}");
    for (from, to, expected) in [
        (
            "plugin = \"poster\"",
            "plugin = \"./evil.wasm\"",
            "powers than were agreed to here (+ [tools.poster] is the plugin `./evil.wasm`",
        ),
        (
            "approval = { default = \"ask\" }",
            "",
            "restricts runs less than it did when it was agreed to (- [tools.poster] asks a person before calls)",
        ),
        ("paths = [\"/deploy/**\"]", "", "(- [protect] protects `/deploy/**`)"),
        ("\"sh\", ", "\"bash\", ", "(+ [notify] starts `bash ./tell.sh` outside the sandbox)"),
    ] {
        write(&file, &agreed.replacen(from, to, 1));
        refused(&run(&["run"]), &[expected]);
        write(&file, &agreed);
    }
    write(&script, "touch it-ran\n");
    refused(&run(&["run"]), &["(+ [notify] uses tell.sh of the project, "]);
    write(&script, "true\n");
    let stood = run(&["--json", "trust"]).expect(0).stdout;
    assert!(stood.contains("\"is_trusted\":true"), "{stood}");
    // Another repository in the place of this one, with the very same files but one.
    std::fs::remove_dir_all(lab.project()).expect("ours");
    lab.make_project("project", &agreed, "# Another goal\n");
    write(&script, "true\n");
    refused(&run(&["run"]), &["asks for powers without an agreement here (+ "]);
    assert!(lab.runs().is_empty() && seen.lock().expect("nobody panicked").is_empty());
}

/// A goal outside of the project used to be read for a run that is there, and sent to models, before a person was
/// asked.
#[test]
fn a_goal_that_is_read_again_is_one_that_somebody_agreed_to() {
    let plain = "[project]\nname = \"kept\"\n[agents.code]\nplugin = \"caller\"\nsettings = { calls = [] }\n\
                 [evaluator]\nplugin = \"lenient\"\n[run.limits]\niterations_max = 1\n";
    let goal = "# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n\nDo it.\n";
    let lab = Lab::new(plain, goal);
    let run = |args: &[&str]| lab.start_with(args, &[("LONGHAUL_TRUST", "")]).wait();
    run(&["run"]).expect(0);
    let other = goal.replace("id: one", "id: two");
    std::fs::write(lab.path("other.md"), other).expect("ours");
    let moved = plain.replace("name = \"kept\"", "name = \"kept\"\ngoal = \"../other.md\"");
    std::fs::write(lab.project().join("longhaul.toml"), moved).expect("ours");
    lab.git(&["commit", "-qam", "another goal"]);
    let ran = run(&["resume", "--reread-goal"]);
    refused(&ran, &["asks for powers without an agreement here (+ [project] reads ../other.md as the goal)"]);
    assert_eq!(ran.stdout, "", "nothing was read");
    assert_eq!(lab.newest().expect("a run")["features"].as_array().map(Vec::len), Some(1));
    let read = run(&["resume", "--reread-goal", "--trust"]);
    assert!(read.stdout.contains("added: two"), "{}", read.said());
}

/// A person who writes both files and starts the run is not asked.
#[test]
fn a_project_that_was_made_here_or_keeps_to_its_tree_is_never_asked_about() {
    let plain = "[project]\nname = \"kept\"\n[agents.code]\nplugin = \"doer\"\ntools = [\"files\"]\n\
                 [tools.files]\nplugin = \"files\"\n\
                 directories = [{ guest = \"/work\", host = \"tree\", access = \"write\" }]\n\
                 [checks]\nunit = { argv = [\"true\"] }\n";
    let lab = Lab::new(plain, "# Goal\n");
    let stood = lab.start_with(&["--json", "trust"], &[("LONGHAUL_TRUST", "")]).wait().expect(0).stdout;
    assert!(stood.contains("\"is_trusted\":true"), "{stood}");
    let new = lab.path("made");
    let run = |args: &[&str]| lab.start_with(args, &[("LONGHAUL_TRUST", "")]).wait();
    run(&["new", new.to_str().expect("text")]).expect(0);
    let stood = run(&["--json", "--project", new.to_str().expect("text"), "trust"]).expect(0).stdout;
    assert!(stood.contains("\"is_trusted\":true"), "{stood}");
}
