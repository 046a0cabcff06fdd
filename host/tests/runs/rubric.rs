//! The criteria of a feature are fixed before the work begins: a planner proposes checks, which must fail then; an
//! agent offers more, and the evaluator consents. A check that passes without any work proves nothing.

use crate::common::builder;
use crate::common::lab::{Lab, Ran};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

const CONFIG: &str = r#"
[project]
name = "kept"

[run]
contract_by = "testing"

[agents.code]
plugin = "caller"
tools = ["files"]

[agents.code.settings]
calls = [{ tool = "files", function = "write", arguments = { path = "part.txt", content = "the part" } }]

[agents.testing]
plugin = "caller"

[agents.testing.settings.output]
checks = [{ name = "is_there", python = "import os\nassert os.path.exists('part.txt')" }]
criteria = [
    { id = "pretty", text = "it is pretty" },
    { id = "says_so", text = "anything goes" },
]

[tools.files]
plugin = "files"
directories = [{ guest = "/work", host = "tree", access = "write" }]
confirm_effects = true

[checks]
says_so = { argv = ["grep", "-q", "the part", "part.txt"] }
"#;

const GOAL: &str = "# A part\n\n## Feature: The part\n- id: part\n- check: says_so\n\nWrite the part.\n";

fn events(lab: &Lab, kind: &str) -> Vec<Value> {
    let said = lab.run(&["--json", "attach"]).stdout;
    let events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|line| line["type"] == kind).map(|line| line["payload"].clone()).collect()
}

/// The check was added, and what no check decides was not; the feature passes by both checks.
#[track_caller]
fn is_agreed(lab: &Lab, told: &str) {
    let contracts = events(lab, "contract");
    assert_eq!(contracts.len(), 1, "{told}: {contracts:?}");
    assert_eq!(contracts[0]["criteria"], serde_json::json!(["is_there"]), "{told}");
    assert_eq!(contracts[0]["checks"], serde_json::json!(["is_there"]), "{told}");
    let warnings: Vec<String> = events(lab, "warning").iter().map(|event| event["text"].to_string()).collect();
    assert!(warnings.iter().any(|text| text.contains("`pretty` is not added, the evaluator cannot judge it")));
    let judged = events(lab, "judged");
    let marks = judged[0]["judgements"].as_array().expect("one a criterion");
    assert_eq!(judged.len(), 1, "{told}: consent is no verdict");
    assert!(marks.len() == 2 && marks.iter().all(|mark| mark["mark"] == "pass"), "{told}: {marks:?}");
    assert_eq!(lab.newest().expect("a run")["status"], "completed", "{told}");
}

#[test]
fn an_agent_adds_to_a_rubric_what_the_evaluator_can_judge() {
    let lab = Lab::new(CONFIG, GOAL);
    let ran = lab.run(&["run"]).expect(0);
    assert!(ran.stdout.contains("is_there"), "{}", ran.said());
    is_agreed(&lab, &ran.said());
    lab.run(&["replay"]).expect(0);
}

#[test]
fn a_kill_while_a_rubric_is_agreed_on_agrees_once() {
    // Both ends of: the plan, what is offered, the consent.
    for point in ["invocation.end:2", "invocation.start:3", "invocation.end:3", "work.end:3", "work.start:5"] {
        let lab = Lab::new(CONFIG, GOAL);
        let killed = lab.start_with(&["run"], &[("LONGHAUL_CRASH_AT", point)]).wait();
        assert!(killed.was_killed(), "{point}: {}", killed.said());
        let ran = lab.run(&["resume"]).expect(0);
        is_agreed(&lab, &format!("{point}: {}", ran.said()));
    }
}

/// A newcomer's project: an existing repository, `longhaul init`, a goal in free words, and a model.
fn newcomer(plan: impl Fn(&str) -> Value + Send + 'static) -> Lab {
    let lab = Lab::empty();
    builder::repository(&lab);
    fs::write(lab.project().join("GOAL.md"), builder::GOAL).expect("ours");
    lab.fake.plays(move |body| builder::reply(body, &plan));
    lab.run(&["init"]).expect(0);
    let file = lab.project().join("longhaul.toml");
    let written = fs::read_to_string(&file).expect("init wrote it");
    let model = format!("id = \"fake\"\nbase_url = \"http://{}/v1\"\n", lab.fake.address);
    let own = "id = \"gpt-5-mini\"\napi_key_env = \"OPENAI_API_KEY\"\n";
    assert!(written.contains(own), "the model is what a newcomer has to write: {written}");
    fs::write(&file, written.replace(own, &model)).expect("ours");
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "Say what is to be built"]);
    lab
}

#[track_caller]
fn tells(ran: &Ran, words: &[&str]) {
    for words in words {
        assert!(ran.said().contains(words), "no `{words}` in {}", ran.said());
    }
}

#[test]
fn a_goal_in_free_words_on_a_python_repository_ends_in_commits() {
    let lab = newcomer(|_| builder::plan(builder::CHECK_DISCOUNT));
    let ran = lab.run(&["run"]).expect(0);
    let plan = [
        "- discount(total) is 10 % from 100 on, and 0 below (check c1)",
        "- README.md explains the discount with an example (the evaluator reads it)",
        "longhaul features --checks",
        "3 of 3 features pass",
    ];
    tells(&ran, &plan);
    let commits = lab.git(&["log", "--format=%s", "main..longhaul/project"]);
    assert_eq!(commits, "Add readme\nAdd to-pay\nAdd discount\n");
    assert!(lab.git(&["show", "longhaul/project:README.md"]).contains("108.00 EUR"));
    // Each pass rests on a check that failed before, or on an evaluator that read the work.
    let evidence: Vec<Value> = events(&lab, "judged").into_iter().map(|event| event["evidence"].clone()).collect();
    assert_eq!(evidence, [json!({ "c1": "check" }), json!({ "c1": "check" }), json!({ "c1": "reading" })]);
    let checks = lab.run(&["features", "--checks"]).expect(0);
    tells(&checks, &["check c1, in Python:", "from shop.pricing import discount", "the evaluator reads the work"]);
}

#[test]
fn a_planned_check_that_cannot_be_loaded_goes_back_to_the_planner_once() {
    let lab = newcomer(|prompt| match prompt.contains("cannot be loaded") {
        true => builder::plan(builder::CHECK_DISCOUNT),
        false => builder::plan("def test_discount(:\n    assert discount(100) == 10\n"),
    });
    let ran = lab.run(&["run"]).expect(0);
    tells(&ran, &["the plan goes back to the planner: check `c1` of feature `discount` cannot be loaded: SyntaxError"]);
    assert_eq!(lab.newest().expect("a run")["status"], "completed");
}

#[test]
fn a_plan_waits_for_a_person_where_the_operator_wants_that() {
    let lab = newcomer(|_| builder::plan(builder::CHECK_DISCOUNT));
    let file = lab.project().join("longhaul.toml");
    let written = fs::read_to_string(&file).expect("there").replace("accept = \"auto\"", "accept = \"ask\"");
    fs::write(&file, written).expect("ours");
    lab.git(&["commit", "-q", "-a", "-m", "Ask me"]);
    let ran = lab.run(&["run"]).expect(4);
    tells(&ran, &["(check c1)"]);
    assert_eq!(lab.git(&["branch", "--list", "longhaul/*"]), "", "nothing was worked on");
    tells(&lab.run(&["features", "--checks"]).expect(0), &["from shop.pricing import discount"]);
    lab.run(&["resume"]).expect(0);
    assert_eq!(lab.newest().expect("a run")["status"], "completed");
}

/// A project whose only check passes before any work, and an agent that may write a file.
fn green_before(calls: &str, goal: &str) -> Lab {
    let config = "[project]\nname = \"kept\"\n[agents.code]\nplugin = \"caller\"\ntools = [\"files\"]\n\
                  settings = { calls = [{calls}] }\n[tools.files]\nplugin = \"files\"\nconfirm_effects = true\n\
                  directories = [{ guest = \"/work\", host = \"tree\", access = \"write\" }]\n\
                  [checks]\nfine = { argv = [\"true\"] }\n";
    Lab::new(&config.replace("{calls}", calls), goal)
}

const WRITES: &str = "{ tool = \"files\", function = \"write\", arguments = { path = \"a.txt\", content = \"a\" } }";

/// A feature whose only check was green before the work began passed with nothing done.
#[test]
fn what_was_true_before_the_work_does_not_pass_and_a_person_is_told_why() {
    let goal = "## Feature: the first\n- id: one\n- check: fine\n\nDo it.\n";
    let lab = green_before("", goal);
    let ran = lab.run(&["run"]).expect(3);
    let why =
        ["BLOCKED one", "`fine` passed before the work began", "judges by checks alone", "--feature one --text done"];
    tells(&ran, &why);
    let run = lab.runs().remove(0);
    lab.run(&["answer", &run, "--feature", "one", "--text", "go on"]).expect(0);
    let ran = lab.run(&["resume"]).expect(3);
    tells(&ran, &["already true before the work began", "nothing was changed"]);
    lab.run(&["answer", &run, "--feature", "one", "--text", "done"]).expect(0);
    assert_eq!(lab.newest().expect("a run")["status"], "completed");
    assert_eq!(lab.git(&["branch", "--list", "longhaul/*"]), "", "there was nothing to commit");
}

#[test]
fn a_change_that_no_check_shows_is_taken_on_a_persons_word_or_on_the_evaluators() {
    let goal = "## Feature: the first\n- id: one\n- check: fine\n\nDo it.\n";
    let lab = green_before(WRITES, goal);
    lab.run(&["run"]).expect(3);
    let run = lab.runs().remove(0);
    lab.run(&["answer", &run, "--feature", "one", "--text", "go on, I look at it"]).expect(0);
    lab.run(&["resume"]).expect(0);
    assert_eq!(lab.git(&["log", "--format=%s", "main..longhaul/kept"]), "the first\n");

    let lab = green_before(WRITES, goal);
    let file = lab.project().join("longhaul.toml");
    let config = fs::read_to_string(&file).expect("there");
    fs::write(&file, format!("{config}\n[evaluator]\nplugin = \"lenient\"\n")).expect("ours");
    lab.git(&["commit", "-q", "-a", "-m", "Let somebody read"]);
    lab.run(&["run"]).expect(0);
    let judged = events(&lab, "judged");
    assert_eq!(judged[0]["evidence"], json!({ "fine": "vacuous_check", "as-asked": "reading" }));
}

#[test]
fn a_criterion_that_nobody_can_judge_is_refused_before_anything_is_done() {
    let lab = green_before(WRITES, "## Feature: the first\n- id: one\n- criterion: it is pretty\n\nDo it.\n");
    let ran = lab.run(&["run"]).expect(1);
    tells(&ran, &["names no check, and the evaluator `check-evaluator` judges by checks alone", "rubric-evaluator"]);
    assert_eq!(lab.runs(), Vec::<String>::new(), "no run was begun");
}

/// Every way of making a check in Python pass that does not know what it expects, by name.
#[derive(serde::Deserialize)]
struct Cheats {
    bases: BTreeMap<String, String>,
    cheats: Vec<Cheat>,
}

#[derive(serde::Deserialize)]
struct Cheat {
    name: String,
    #[serde(default = "plain")]
    base: String,
    /// True when the work decides how the check ends only if the two share an interpreter.
    #[serde(default)]
    beside: bool,
    work: String,
}

fn plain() -> String {
    "plain".to_owned()
}

/// The text that each of these checks requires.
const HONEST: &str = "import contextlib\n\ndef add(a, b):\n    return a + b\n\nadding = contextlib.nullcontext\n";

/// Checks of every shape, with works that are as they should be, or not.
#[derive(serde::Deserialize)]
struct Shapes {
    case: Vec<Shape>,
}

#[derive(serde::Deserialize)]
struct Shape {
    name: String,
    ends: String,
    work: String,
    check: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// A check, by its name, and the files that it is about.
struct Tried {
    name: String,
    check: String,
    files: Vec<(String, String)>,
}

impl Tried {
    /// In `check` and `files`, WORK stands for the module that holds `work`.
    fn new(name: &str, check: &str, work: &str, files: &BTreeMap<String, String>) -> Self {
        let name = name.replace('-', "_");
        let module = format!("work_{name}");
        let named = |text: &str| text.trim().replace("WORK", &module);
        let files = files.iter().map(|(path, text)| (path.replace("WORK", &module), text.replace("WORK", &module)));
        let files = files.chain([(format!("{module}.py"), work.to_owned())]).collect();
        Self { check: named(check), files, name }
    }
}

/// Mark and reason of each check, by its name, and what people heard of checks that passed beside the work.
fn judged(tried: &[Tried]) -> (BTreeMap<String, (String, String)>, String) {
    let config = "[project]\nname = \"kept\"\n[agents.code]\nplugin = \"caller\"\nsettings = { calls = [] }\n\
                  [run.limits]\niterations_max = 1\nchecks_max = 100\ncriteria_max = 100\n";
    let check = |one: &Tried| format!("```python check {}\n{}\n```\n", one.name, one.check);
    let checks: String = tried.iter().map(check).collect();
    let lab = Lab::new(config, &format!("# Add\n\n## Feature: add\n- id: add\n\nAdd.\n\n{checks}"));
    for (path, text) in tried.iter().flat_map(|one| &one.files) {
        let path = lab.project().join(path);
        fs::create_dir_all(path.parent().expect("below the project")).expect("ours");
        fs::write(path, text).expect("ours");
    }
    lab.git(&["add", "--all"]);
    lab.git(&["commit", "-q", "-m", "works that pretend"]);
    lab.run(&["run"]).expect(3);
    let judged = events(&lab, "judged").remove(0);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let judgements = judged["judgements"].as_array().expect("a list").iter();
    // A criterion that is made of a check has `-` where its name has `_`.
    let named = |one: &Value| text(&one["criterion"]).replace('-', "_");
    let marks: BTreeMap<_, _> = judgements.map(|one| (named(one), (text(&one["mark"]), text(&one["why"])))).collect();
    assert_eq!(marks.len(), tried.len(), "{judged}");
    let warnings: Vec<String> = events(&lab, "warning").iter().map(|event| text(&event["text"])).collect();
    (marks, warnings.join("\n"))
}

/// The work can make any check end as it likes that shares its interpreter, and has no way into one that does not.
#[test]
fn no_work_passes_a_check_in_python_by_deciding_how_it_ends() {
    let Cheats { bases, cheats } = toml::from_str(include_str!("rubric/cheats.toml")).expect("a table");
    let none = BTreeMap::new();
    let honest = bases.iter().map(|(base, check)| Tried::new(&format!("honest_{base}"), check, HONEST, &none));
    let pretended = cheats.iter().map(|cheat| Tried::new(&cheat.name, &bases[&cheat.base], &cheat.work, &none));
    let (marks, warnings) = judged(&honest.chain(pretended).collect::<Vec<_>>());
    for base in bases.keys() {
        let (mark, why) = &marks[&format!("honest_{base}")];
        assert_eq!(mark, "pass", "{base}: {why}");
    }
    assert!(!warnings.contains("in one interpreter"), "{warnings}");
    for cheat in &cheats {
        let (mark, why) = &marks[&cheat.name.replace('-', "_")];
        assert_eq!(mark, "fail", "{}: {why}", cheat.name);
        assert_eq!(why.contains("it passes too where its line"), cheat.beside, "{}: {why}", cheat.name);
    }
}

/// A few of the cases for one interpreter; `plugins/python/tests` has all of them.
const BESIDE: [&str; 4] = ["data_classes", "callbacks", "files", "mocks"];

#[test]
fn a_check_of_any_shape_is_judged_apart_from_an_honest_work_or_beside_it() {
    let shapes = include_str!("../../../plugins/python/tests/apart.toml");
    let Shapes { mut case } = toml::from_str(shapes).expect("a table");
    case.retain(|shape| shape.ends != "beside" || BESIDE.contains(&shape.name.as_str()));
    let tried = case.iter().map(|shape| Tried::new(&shape.name, &shape.check, &shape.work, &shape.files));
    let (marks, warnings) = judged(&tried.collect::<Vec<_>>());
    for Shape { name, ends, .. } in &case {
        let (mark, why) = &marks[name];
        assert_eq!(mark, if ends == "fail" { "fail" } else { "pass" }, "{name}: {why}");
        let is_told = warnings.contains(&format!("the check `{name}` passed in one interpreter"));
        assert_eq!(is_told, ends == "beside", "{name}: {warnings}");
    }
}
