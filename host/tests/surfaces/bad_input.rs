//! Bad input is refused with one clear error and its remedy, and nothing is lost: the long table of configurations,
//! data directories and stores, and full disks. Files, repositories and arguments of the command line are in
//! `tests/scenarios`.

use crate::common::lab::{Lab, Ran};
use crate::common::{DOER_CONFIG, refused};
use expect_test::expect;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const GOAL: &str = "# One\n\n## Feature: the first\n- id: one\n- check: wrote_one\n\nDo it.\n";

fn complaints(ran: &Ran, code: i32, expected: &[&str]) -> Vec<String> {
    let mut complaints = Vec::new();
    if ran.code() != Some(code) {
        complaints.push(format!("it ended with {:?}, not {code}", ran.status));
    }
    // An error is on the error output; how a run ended is not an error of the program.
    let said = if matches!(code, 1 | 2) { ran.stderr.clone() } else { ran.said() };
    complaints.extend(expected.iter().filter(|words| !said.contains(**words)).map(|words| format!("no `{words}`")));
    for never in ["panicked", "RUST_BACKTRACE", "stack backtrace"] {
        if ran.said().contains(never) {
            complaints.push(format!("it says `{never}`"));
        }
    }
    if code == 1 && ran.stderr.matches("longhaul: ").count() != 1 {
        complaints.push("not one error".into());
    }
    complaints
}

fn commit(lab: &Lab) {
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "--allow-empty", "-m", "changed"]);
}

/// Everything that can be configured and is in order; each row of the table spoils one thing of it.
const GOOD: &str = r#"[project]
name = "kept"

[run]
contract_by = "helper"

[run.limits]
iterations_max = 2

[planner]
plugin = "initializer"

[agents.code]
plugin = "react"
models = ["fake"]
tools = ["files", "search", "mcp-clock"]
agents = ["helper"]
categories = ["testing"]
settings = { steps_max = 5, style = "actions" }

[agents.helper]
plugin = "react"
models = ["fake"]

[tools.files]
plugin = "files"
directories = [{ guest = "/work", host = "tree", access = "write" }]
settings = { read_bytes_max = 1000 }
approval = { functions = { write = "ask" } }

[tools.search]
plugin = "builtin:search"

[mcp.clock]
command = ["true"]

[models.fake]
provider = "openai"
id = "fake"
base_url = "http://{server}/v1"

[checks]
fine = { argv = ["true"] }

[notify]
command = ["true"]
"#;

/// A change of [`GOOD`]: this is taken out, and this put in its place.
type Slip = (&'static str, &'static str, &'static str);

/// Rows of the table that are about `longhaul.toml`.
const SLIPS: [Slip; 42] = [
    ("no TOML", "[project]", "[project"),
    ("a table misspelt", "[checks]", "[check]"),
    ("a field misspelt", "tools = [\"files\"", "tols = [\"files\""),
    ("a limit misspelt", "iterations_max", "iteration_max"),
    ("a limit of nothing", "iterations_max = 2", "iterations_max = 0"),
    ("a name with a slash", "\"kept\"", "\"ke/pt\""),
    (
        "a plugin misspelt",
        "plugin = \"react\"\nmodels = [\"fake\"]\ntools",
        "plugin = \"reakt\"\nmodels = [\"fake\"]\ntools",
    ),
    ("a plugin of nothing", "plugin = \"initializer\"", "plugin = \"./gone.wasm\""),
    ("a plugin of another role", "plugin = \"initializer\"", "plugin = \"files\""),
    ("a table without a plugin", "plugin = \"builtin:search\"", ""),
    ("a tool misspelt", "\"files\", \"search\"", "\"flies\", \"search\""),
    ("a tool of nothing", "\"search\", ", "\"zebra\", "),
    ("a server misspelt", "\"mcp-clock\"", "\"mcp-clok\""),
    ("a model misspelt", "models = [\"fake\"]\ntools", "models = [\"fak\"]\ntools"),
    ("an agent for contracts misspelt", "contract_by = \"helper\"", "contract_by = \"helpr\""),
    ("an agent to delegate to misspelt", "agents = [\"helper\"]", "agents = [\"hlper\"]"),
    ("a category misspelt", "[\"testing\"]", "[\"testin\"]"),
    ("a category given twice", "[agents.helper]", "[agents.helper]\ncategories = [\"testing\"]"),
    ("a setting misspelt", "steps_max = 5", "step_max = 5"),
    ("a setting of another kind", "steps_max = 5", "steps_max = \"five\""),
    ("a setting of another word", "style = \"actions\"", "style = \"action\""),
    ("a tool's setting misspelt", "read_bytes_max", "read_byte_max"),
    ("a function misspelt", "write = \"ask\"", "wirte = \"ask\""),
    ("a built-in tool misspelt", "builtin:search", "builtin:serach"),
    ("a directory of nothing", "host = \"tree\"", "host = \"docs\""),
    ("a directory that nobody asks for", "guest = \"/work\"", "guest = \"/wrok\""),
    ("a program of nothing", "argv = [\"true\"]", "argv = [\"pytset\"]"),
    ("a check without a program", "argv = [\"true\"]", "argv = []"),
    ("a provider misspelt", "provider = \"openai\"", "provider = \"opnai\""),
    ("a model without an id", "id = \"fake\"\n", ""),
    ("a cap on money without prices", "iterations_max = 2", "cost_microdollars_max = 1000000"),
    ("a cap of a day that allows nothing", "name = \"kept\"", "name = \"kept\"\ntokens_per_day_max = 0"),
    ("a key in the file", "id = \"fake\"", "id = \"fake\"\napi_key = \"sk-1\""),
    ("a key of nothing", "id = \"fake\"", "id = \"fake\"\napi_key_env = \"NO_SUCH_KEY\""),
    ("a fallback of nothing", "id = \"fake\"", "id = \"fake\"\nfallback = [\"other\"]"),
    ("a server's program of nothing", "command = [\"true\"]\n\n[models", "command = [\"mcp-clokc\"]\n\n[models"),
    (
        "a server's directory of nothing",
        "command = [\"true\"]\n\n[models",
        "command = [\"true\"]\ndirectory = \"gone\"\n\n[models",
    ),
    (
        "a server of two kinds",
        "command = [\"true\"]\n\n[models",
        "command = [\"true\"]\nurl = \"https://a.example\"\n\n[models",
    ),
    (
        "a secret of nothing",
        "[tools.search]",
        "[tools.fetch]\nplugin = \"http-fetch\"\nsecrets = [{ name = \"token\", hosts = [\"https://a.example\"] }]\n\n[tools.search]",
    ),
    ("a program to notify of nothing", "[notify]\ncommand = [\"true\"]", "[notify]\ncommand = [\"notfy\"]"),
    ("an address to notify of nothing", "[notify]\ncommand = [\"true\"]", "[notify]\nwebhook_env = \"NO_SUCH_HOOK\""),
    ("a memory of nothing", "[run]", "[memory]\nbackend = \"redis\"\n\n[run]"),
];

/// Rows of the table that are about `GOAL.md`.
const GOALS: [(&str, &str); 9] = [
    ("a line that means nothing", "## Feature: a\n- prio: 9\n- check: fine\n\nx\n"),
    ("a priority of 11", "## Feature: a\n- priority: 11\n- check: fine\n\nx\n"),
    ("a category of nothing", "## Feature: a\n- category: tests\n- check: fine\n\nx\n"),
    (
        "a circle",
        "## Feature: a\n- id: a\n- depends on: b\n- check: fine\n\nx\n\n## Feature: b\n- id: b\n- depends on: a\n- check: fine\n\nx\n",
    ),
    ("a dependency on nothing", "# Goal\n\n## Feature: a\n- depends on: gone\n- check: fine\n\nx\n"),
    ("a check of nothing", "## Feature: a\n- check: fien\n\nx\n"),
    ("an agent of nothing", "## Feature: a\n- agent: helpr\n- check: fine\n\nx\n"),
    ("no check and no criterion", "## Feature: a\n\nx\n"),
    ("free words and nobody to plan", "Build me a castle.\n"),
];

/// Each is one line with what to do, from `check` and from `run`, and no model hears of it.
#[test]
fn each_wrong_configuration_ends_with_one_line_that_names_the_fix_before_a_model_is_asked() {
    const FINE: &str = "# Goal\n\n## Feature: the first\n- id: one\n- check: fine\n\nDo it.\n";
    let lab = Lab::new(GOOD, FINE);
    lab.run(&["mcp", "accept", "clock", &"0".repeat(64)]).expect(0);
    let fine = lab.run(&["check"]).expect(0);
    assert!(fine.stdout.contains("nothing is wrong") && fine.stdout.contains("one: the first"), "{}", fine.said());
    let good = fs::read_to_string(lab.project().join("longhaul.toml")).expect("it is there");
    let slip = |(what, from, to): &Slip| {
        assert!(good.contains(from), "{what}: no `{from}`");
        (*what, good.replacen(from, to, 1), FINE.to_owned())
    };
    let goal = |(what, goal): &(&'static str, &str)| (*what, good.clone(), (*goal).to_owned());
    let mut told = String::new();
    for (what, config, goal) in SLIPS.iter().map(slip).chain(GOALS.iter().map(goal)) {
        fs::write(lab.project().join("longhaul.toml"), config).expect("ours");
        fs::write(lab.project().join("GOAL.md"), goal).expect("ours");
        commit(&lab);
        let checked = lab.run(&["check"]).expect(1);
        let first = checked.stdout.lines().next().unwrap_or_default().to_owned();
        let more = checked.stdout.lines().count() - 1;
        let ran = lab.run(&["run"]);
        refused(&ran, &[]);
        let is_place = |(place, _): &(&str, &str)| place.starts_with("longhaul.toml") || place.starts_with("GOAL.md");
        let text = first.split_once(": ").filter(is_place).map_or(first.as_str(), |(_, text)| text);
        assert!(ran.stderr.contains(text), "{what}: `{first}` and: {}", ran.said());
        let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
        told.push_str(&format!(
            "{what}\n    {}{more}\n",
            first.replace(&lab.project().display().to_string(), "PROJECT")
        ));
    }
    assert_eq!((lab.fake.requests(), lab.runs()), Default::default(), "nobody was asked, and there is no run");
    expect![[r#"
        no TOML
            longhaul.toml:1: [project] unclosed table, expected `]`
        a table misspelt
            longhaul.toml:42: [check] unknown field `check`; did you mean `checks`?
        a field misspelt
            longhaul.toml:16: [agents.code] unknown field `tols`; did you mean `tools`?
        a limit misspelt
            longhaul.toml:8: [run.limits] unknown field `iteration_max`; did you mean `iterations_max`?
        a limit of nothing
            longhaul.toml:8: [run.limits] `iterations_max` is 0, so nothing could ever be done; set it to 1 or more
        a name with a slash
            longhaul.toml:2: [project] name `ke/pt`: take 1 to 64 letters, digits, `-` and `_`
        a plugin misspelt
            longhaul.toml:14: [agents.code] there is no plugin `reakt`; did you mean `react`?
        a plugin of nothing
            longhaul.toml:11: [planner] there is no plugin at `PROJECT/./gone.wasm`
        a plugin of another role
            longhaul.toml:11: [planner] plugin `files` is a tool, and a planner is needed here
        a table without a plugin
            longhaul.toml:31: [tools.search] has no plugin; add: plugin = "NAME"
        a tool misspelt
            longhaul.toml:16: [agents.code] tools names `flies`, and there is no [tools.flies]; did you mean `files`?
        a tool of nothing
            longhaul.toml:16: [agents.code] tools names `zebra`, and there is no [tools.zebra]; add [tools.zebra], or remove the name
        a server misspelt
            longhaul.toml:16: [agents.code] tools names `mcp-clok`, and there is no [tools.mcp-clok]; did you mean `mcp-clock`?
        a model misspelt
            longhaul.toml:15: [agents.code] models names `fak`, and there is no [models.fak]; did you mean `fake`?
        an agent for contracts misspelt
            longhaul.toml:5: [run] contract_by names `helpr`, and there is no [agents.helpr]; did you mean `helper`?
        an agent to delegate to misspelt
            longhaul.toml:17: [agents.code] agents names `hlper`, and there is no [agents.hlper]; did you mean `helper`?
        a category misspelt
            longhaul.toml:13: [agents.code] categories names `testin`; did you mean `testing`?
        a category given twice
            longhaul.toml:13: category `testing` is given to [agents.code] and to [agents.helper]; keep one
        a setting misspelt
            longhaul.toml:19: [agents.code.settings] step_max: plugin `react` has no setting `step_max`; did you mean `steps_max`?
        a setting of another kind
            longhaul.toml:19: [agents.code.settings] steps_max: is "five"; write a whole number
        a setting of another word
            longhaul.toml:19: [agents.code.settings] style: is "action"; did you mean `actions`?
        a tool's setting misspelt
            longhaul.toml:28: [tools.files.settings] read_byte_max: plugin `files` has no setting `read_byte_max`; did you mean `read_bytes_max`?
        a function misspelt
            longhaul.toml:29: [tools.files.approval] names `wirte`, which the tool does not have; did you mean `write`?
        a built-in tool misspelt
            longhaul.toml:32: [tools.search] there is no tool `builtin:serach`; did you mean `builtin:search`?
        a directory of nothing
            longhaul.toml:27: [tools.files] directories gives `/work` the directory `docs`, and there is no `PROJECT/docs`; make it, or correct host (and 1 more)
        a directory that nobody asks for
            longhaul.toml:27: [tools.files] directories gives `/wrok`, which plugin `files` does not ask for; did you mean `/work`?
        a program of nothing
            longhaul.toml:43: [checks] fine cannot find the program `pytset`; install it, or give its full path
        a check without a program
            longhaul.toml:43: check `fine` has no program; write for example: argv = ["cargo", "test"]
        a provider misspelt
            longhaul.toml:37: [models.fake] unknown variant `opnai`; did you mean `openai`?
        a model without an id
            longhaul.toml:37: [models.fake] missing field `id`; add it
        a cap on money without prices
            longhaul.toml:8: [run.limits] cost_microdollars_max cannot be held: nobody knows what model `fake` costs; add to [models.fake], in US dollars, 0.0 where it costs nothing: price_input_usd_per_million = 0.0 and price_output_usd_per_million = 0.0, or remove the cap
        a cap of a day that allows nothing
            longhaul.toml:3: [project] tokens_per_day_max is 0, so that no run could do anything; write 1 or more, or remove it
        a key in the file
            longhaul.toml:40: [models.fake] unknown field `api_key`; did you mean `api_key_env`?
        a key of nothing
            longhaul.toml:37: the environment has no `NO_SUCH_KEY`, which should hold the key of model `fake`; export it, or set `api_key_file`
        a fallback of nothing
            longhaul.toml:37: `[models.fake] fallback` is `other`: there is no such model; add its table, or remove the name
        a server's program of nothing
            longhaul.toml:35: [mcp.clock] command cannot find the program `mcp-clokc`; install it, or give its full path
        a server's directory of nothing
            longhaul.toml:36: [mcp.clock] directory: there is no `PROJECT/gone`; make it, or correct the line
        a server of two kinds
            longhaul.toml:34: [mcp.clock] it has a command and a url; remove one
        a secret of nothing
            longhaul.toml:33: [tools.fetch] secrets: there is no secret `token` for this project; set it with: longhaul secrets set token
        a program to notify of nothing
            longhaul.toml:46: [notify] command cannot find the program `notfy`; install it, or give its full path
        an address to notify of nothing
            longhaul.toml:46: [notify] webhook_env: the environment has no `NO_SUCH_HOOK`; export it, or correct the name
        a memory of nothing
            longhaul.toml:4: [memory] backend is `redis`; add [memory.redis] url = "redis://HOST:PORT/0"
        a line that means nothing
            GOAL.md:2: in the feature `a`: `- prio:` means nothing; did you mean `- priority:`? Indent it to make it text
        a priority of 11
            GOAL.md:2: in the feature `a`: the priority `11` is not 1 to 10; higher goes first
        a category of nothing
            GOAL.md:2: in the feature `a`: the category `tests` is not one of functional, ui, performance, security, integration, testing, documentation
        a circle
            GOAL.md:1: these features depend on each other in a circle or wait for one that does: `a`, `b`; remove a dependency
        a dependency on nothing
            GOAL.md:3: the feature `a` depends on `gone`, which does not exist; there are: `a`
        a check of nothing
            GOAL.md: check `fien` of feature `a` runs `fien`, which is not in [checks] of longhaul.toml; there is: `fine`
        an agent of nothing
            GOAL.md: feature `a` asks for the agent `helpr`, which is not in [agents]; did you mean `helper`?
        no check and no criterion
            GOAL.md: feature `a` has neither criteria nor checks, so its completion could not be judged; add one
        free words and nobody to plan
            longhaul.toml:10: [planner] names no models, and `GOAL.md` writes no features; add: models = ["NAME"], or write `## Feature: TITLE` sections
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_data_directory_must_be_ours_alone() {
    let open_to_all = |path: &Path| {
        fs::create_dir_all(path).expect("ours");
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("ours");
    };
    let lab = Lab::new(DOER_CONFIG, GOAL);
    open_to_all(&lab.home());
    let ran = lab.run(&["run"]);
    assert_eq!(
        complaints(&ran, 1, &["others can reach the data directory", "chmod 700"]),
        Vec::<String>::new(),
        "{}",
        ran.said()
    );

    let lab = Lab::new(DOER_CONFIG, GOAL);
    fs::write(lab.home(), "a file").expect("ours");
    let ran = lab.run(&["run"]);
    assert_eq!(complaints(&ran, 1, &["home", "--home"]), Vec::<String>::new(), "{}", ran.said());

    let lab = Lab::new(DOER_CONFIG, GOAL);
    let mut command = lab.command(&["run"]);
    open_to_all(&lab.path("cache/compiled"));
    command.env("LONGHAUL_CACHE", lab.path("cache"));
    let ran = lab.start_command(command).wait();
    assert_eq!(complaints(&ran, 1, &["others can reach it", "chmod 700"]), Vec::<String>::new(), "{}", ran.said());
}

/// Root may write where a mode forbids it, but not where a mount does.
#[test]
fn a_data_directory_that_cannot_be_written_is_named_with_what_to_do() {
    let lab = Lab::new(DOER_CONFIG, GOAL);
    fs::create_dir_all(lab.home()).expect("ours");
    let mounted = Mounted::tmpfs(&lab.home(), "1m");
    fs::set_permissions(lab.home(), fs::Permissions::from_mode(0o500)).expect("ours");
    if mounted.is_some() {
        let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(lab.home()).status();
        assert!(remounted.is_ok_and(|status| status.success()));
    } else if File::create(lab.home().join("probe")).is_ok() {
        println!("skipped: this root may mount nothing");
        return;
    }
    for args in [&["run"][..], &["status"], &["runs"], &["resume"]] {
        let ran = lab.run(args);
        let expected = ["cannot write in the data directory", "make it writable, or choose another with --home"];
        assert_eq!(complaints(&ran, 1, &expected), Vec::<String>::new(), "{args:?}: {}", ran.said());
    }
}

#[test]
fn a_store_that_cannot_be_read_is_left_as_it_is() {
    type Spoil = fn(Vec<u8>) -> Vec<u8>;
    let spoil: [(&str, Spoil); 4] = [
        ("garbage", |_| b"garbage".repeat(10_000)),
        ("empty", |_| Vec::new()),
        ("cut", |bytes| bytes[..bytes.len() / 3].to_vec()),
        ("zeros in its head", |mut bytes| {
            bytes[..256].fill(0);
            bytes
        }),
    ];
    for (what, spoil) in spoil {
        let lab = Lab::new(DOER_CONFIG, GOAL);
        lab.run(&["run"]).expect(0);
        let path = lab.home().join("state.redb");
        let good = fs::read(&path).expect("it is there");
        let bad = spoil(good.clone());
        fs::write(&path, &bad).expect("ours");
        for args in [&["status"][..], &["run"], &["resume"]] {
            let ran = lab.run(args);
            let complaints = complaints(&ran, 1, &["damaged", "backup"]);
            assert!(complaints.is_empty(), "{what}: {}\n{}", complaints.join("; "), ran.said());
        }
        assert!(
            fs::read(&path).expect("it is there") == bad,
            "{what}: it was changed, and a copy might have been mended"
        );
        fs::write(&path, &good).expect("ours");
        assert_eq!(lab.newest().expect("the run is back")["status"], "completed");
    }
}

/// The program, with room for no file beyond `bytes`.
fn within(lab: &Lab, args: &[&str], bytes: u64) -> Ran {
    // `ulimit -f` counts in blocks of 512 bytes. The signal is ignored, so that a write fails as on a
    // full disk, and only the soft limit is set, which a check may set to its own.
    let script = format!("trap '' XFSZ; ulimit -S -f {} && exec \"$@\"", bytes / 512);
    lab.run_through(&["sh", "-c", &script, "sh"], args)
}

#[test]
fn a_full_disk_is_said_and_nothing_is_lost() {
    let lab = Lab::new(DOER_CONFIG, GOAL);
    // The interpreter alone has more than 20 MB, so there is not even room for a run's plugins.
    for bytes in [256 << 10, 4 << 20, 16 << 20] {
        let ran = within(&lab, &["run"], bytes);
        assert_eq!(
            complaints(&ran, 1, &["no space left", "nothing is lost"]),
            Vec::<String>::new(),
            "{bytes} bytes: {}",
            ran.said()
        );
    }
    assert_eq!(lab.runs(), Vec::<String>::new());
    lab.run(&["run"]).expect(0);
    let first = lab.newest().expect("a run");

    // Room that ends in the middle of a run.
    let mut ended_early = 0;
    for number in 0..8 {
        let size = fs::metadata(lab.home().join("state.redb")).expect("it is there").len();
        let ran = within(&lab, &["run"], size.saturating_sub(1 << 20) + number * (256 << 10));
        if ran.code() != Some(0) {
            ended_early += 1;
            assert!(ran.said().to_lowercase().contains("no space left"), "{}", ran.said());
            assert!(!ran.said().contains("panicked"), "{}", ran.said());
        }
        // The earlier data is intact, and with free space the work goes on.
        let status = lab.newest().expect("a run");
        if status["status"] != "completed" {
            lab.run(&["resume"]).expect(0);
        }
    }
    println!("ended early: {ended_early} of 8");
    let run = first["run"].as_str().expect("a name");
    assert_eq!(lab.json(&["status", run]), first);
    for run in lab.runs() {
        assert_eq!(lab.json(&["status", &run])["status"], "completed");
    }
}

#[test]
fn a_full_file_system_parks_or_ends_a_run_that_goes_on_with_room_again() {
    // A check without free space is retried; here there is none until the run has ended.
    let lab = Lab::new(&format!("{DOER_CONFIG}unavailable_retries_max = 2\n"), GOAL);
    let small = lab.path("small");
    fs::create_dir_all(&small).expect("ours");
    let Some(_mounted) = Mounted::tmpfs(&small, "96m") else {
        println!("skipped: mounting a small file system takes root");
        return;
    };
    let home = small.join("home");
    let command = |args: &[&str]| {
        let mut command = lab.command(args);
        command.env("LONGHAUL_HOME", &home);
        let mut again = Command::new(command.get_program());
        let args: Vec<_> = command.get_args().skip(2).collect();
        again.arg("--home").arg(&home).args(args).current_dir(lab.project());
        for (name, value) in command.get_envs().filter_map(|(name, value)| Some((name, value?))) {
            again.env(name, value);
        }
        lab.start_command(again).wait()
    };
    let ballast = small.join("ballast");
    let mut ended_early = 0;
    // Too little for a run's plugins, then, when they are there, enough for less and less of a run.
    for kilobytes in [16 << 10, 40 << 10, 1 << 10, 256, 64, 16, 0] {
        let disk = rustix::fs::statvfs(&small).expect("mounted");
        let free = disk.f_bavail * disk.f_frsize;
        let size = free.saturating_sub(kilobytes << 10);
        fs::write(&ballast, vec![0; usize::try_from(size).expect("small")]).expect("there is room");
        let ran = command(&["run"]);
        assert!(!ran.said().contains("panicked"), "{}", ran.said());
        println!("{kilobytes} KB: {:?}: {}", ran.code(), ran.said().lines().last().unwrap_or_default());
        if ran.code() != Some(0) {
            ended_early += 1;
            assert!(ran.said().to_lowercase().contains("no space left"), "{}", ran.said());
        }
        fs::remove_file(&ballast).expect("ours");
        let status = command(&["--json", "status"]);
        if status.code() == Some(0) && !status.stdout.contains("\"status\":\"completed\"") {
            let resumed = command(&["resume"]);
            if resumed.code() == Some(5) {
                // There was room to announce an effect, and none for what came of it: that is a person's to say.
                assert!(resumed.said().contains("it is unknown whether it happened"), "{}", resumed.said());
                command(&["answer", "--happened", "{}"]).expect(0);
                command(&["resume"]).expect(0);
            } else {
                resumed.expect(0);
            }
        }
    }
    println!("ended early: {ended_early} of 7");
    assert!(ended_early > 0);
    command(&["run"]).expect(0);
}

/// A small file system, for as long as this is.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn tmpfs(at: &Path, size: &str) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size},mode=700"), "longhaul-test"]).arg(at);
        mount.output().is_ok_and(|output| output.status.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}
