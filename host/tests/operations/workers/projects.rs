//! Projects for servers to work on, the person who answers for them, and what must be left of their runs.
//!
//! The agent of a project makes calls of every class of effect at once, again and again: `post` acts, `put` is
//! idempotent, `look` is read-only, and `files.write` is verifiable. What it tells the receiver names the project, so
//! that each effect of each run is counted. All projects do the same otherwise, so each must leave what an undisturbed
//! one leaves.

use super::lab::{Cluster, LOOK, PATIENCE};
use crate::common::fake::answer_to;
use crate::common::{gated, in_toml, web};
use crate::list;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The features of a project, each of which depends on the one before.
const FEATURES: [&str; 3] = ["one", "two", "three"];

/// The lists of calls of each feature.
const BATCHES: u32 = 2;

/// The effects of a run of each kind.
pub const EFFECTS: usize = FEATURES.len() * BATCHES as usize;

/// The pause between two looks at the receiver.
const CALL_LOOK: Duration = Duration::from_millis(5);

const CONFIG: &str = r#"
[project]
name = "{name}"

[models.fake]
provider = "openai"
id = "fake"
base_url = "http://{server}/v1"

[agents.code]
plugin = "caller"
models = ["fake"]
tools = ["files", "poster"]
settings = {settings}

[tools.files]
plugin = "files"
directories = [{ guest = "/work", host = "tree", access = "write" }]
confirm_effects = true

[tools.poster]
plugin = "poster"
hosts = ["http://{server}"]
settings = { server = "{server}" }
confirm_effects = true

[tools.poster.approval]
when_heard = "allow"
functions = { post = "{policy}" }

[checks]
did_one = { argv = ["grep", "-q", "written one", "one-2.txt"] }
did_two = { argv = ["grep", "-q", "written two", "two-2.txt"] }
did_three = { argv = ["grep", "-q", "written three", "three-2.txt"] }

[run.limits]
iterations_max = 2
unavailable_wait_ms_min = 100
"#;

/// Makes a project.
pub fn make(cluster: &Cluster, name: &str) {
    make_with(cluster, name, "allow", "");
}

/// Makes a project that only servers with a label work on.
pub fn make_for(cluster: &Cluster, name: &str, label: &str) {
    make_with(cluster, name, "allow", &needs(label));
}

/// Makes such a project, whose calls that act ask a person first.
pub fn make_asking_for(cluster: &Cluster, name: &str, label: &str) {
    make_with(cluster, name, "ask", &needs(label));
}

fn needs(label: &str) -> String {
    format!("\n[run]\nlabels_needed = [\"{label}\"]\n")
}

fn make_with(cluster: &Cluster, name: &str, policy: &str, tables: &str) {
    let batches: Vec<Value> = (1..=BATCHES).map(|number| batch(name, number)).collect();
    let settings = in_toml(&json!({ "ask": "A line about {id}.", "batches": batches }));
    let config = CONFIG.replace("{name}", name).replace("{policy}", policy).replace("{settings}", &settings);
    cluster.lab.make_project(name, &format!("{config}{tables}"), &goal());
}

fn batch(name: &str, number: u32) -> Value {
    let text = |kind: &str| format!("{name}-{{id}}-{number}{kind}");
    let tell =
        |function: &str, text: String| json!({ "tool": "poster", "function": function, "arguments": { "text": text } });
    let file = json!({ "path": format!("{{id}}-{number}.txt"), "content": format!("written {{id}} {number}\n") });
    json!([
        gated::post(&text("")),
        tell("put", text("-put")),
        tell("look", text("-look")),
        { "tool": "files", "function": "write", "arguments": file },
    ])
}

fn goal() -> String {
    let feature = |(at, id): (usize, &str)| {
        let before = at.checked_sub(1).map(|before| format!("- depends on: {}\n", FEATURES[before]));
        format!("\n## Feature: {id}\n- id: {id}\n{}- check: did_{id}\n\nDo it.\n", before.unwrap_or_default())
    };
    let features: String = FEATURES.into_iter().enumerate().map(feature).collect();
    format!("# Errands\n{features}")
}

/// The calls of a project that act, as the receiver heard them.
fn posts(name: &str) -> BTreeSet<String> {
    let of = |id: &str| (1..=BATCHES).map(|number| format!("{name}-{id}-{number}")).collect::<Vec<_>>();
    FEATURES.into_iter().flat_map(of).collect()
}

/// The number of posts of a project that the receiver has.
pub fn posted(cluster: &Cluster, name: &str) -> usize {
    let expected = posts(name);
    cluster.lab.fake.posts().iter().filter(|told| expected.contains(&told.text)).count()
}

/// Waits until a run has made its first call that acts. Returns the server that has the run.
#[track_caller]
pub fn wait_for_call(cluster: &Cluster, name: &str, run: &str) -> usize {
    let since = Instant::now();
    while posted(cluster, name) == 0 {
        assert!(since.elapsed() < PATIENCE, "no call of {name}\n{}", cluster.printed());
        std::thread::sleep(CALL_LOOK);
    }
    cluster.wait_for_holder(run)
}

/// The questions of a run about effects.
pub fn questions(run: &Value) -> &[Value] {
    list(run, "questions")
}

/// Answers each open question of a run as a person does who looks at the receiver. Returns the number of answers that
/// were taken.
pub fn answer(cluster: &Cluster, run: &str) -> usize {
    let path = format!("/api/v1/runs/{run}");
    let status = cluster.get(&path);
    let mut taken = 0;
    for question in questions(&status) {
        let asked = question["text"].as_str().expect("a text");
        let text = asked.split_once("poster.post {\"text\":\"").and_then(|(_, rest)| rest.split_once('"'));
        let (text, _) = text.unwrap_or_else(|| panic!("only a post may be asked about: {asked}"));
        let happened = cluster.lab.fake.posts().iter().any(|told| told.text == text);
        let resolution = match happened {
            true => json!({ "happened": answer_to("post", text).to_string() }),
            false => json!("did_not_happen"),
        };
        let answer = json!({ "question": question["id"], "resolution": resolution });
        // A server that was killed meanwhile asks again.
        let said = cluster.ask("POST", &format!("{path}/answer"), &answer);
        taken += usize::from(said.is_some_and(|said| said.status == 200));
    }
    taken
}

/// True when a run has ended well. Fails when it ended in another way.
#[track_caller]
pub fn is_completed(cluster: &Cluster, run: &str) -> bool {
    let status = cluster.get(&format!("/api/v1/runs/{run}"));
    let is_lost = matches!(status["status"].as_str(), Some("failed" | "incomplete" | "abandoned" | "paused"));
    assert!(!is_lost, "{status:#}\n{}", cluster.printed());
    status["status"] == "completed"
}

/// Brings a run to its end, with answers of a person where it asks. Returns their number.
#[track_caller]
pub fn finish(cluster: &Cluster, run: &str) -> usize {
    let (since, mut answers) = (Instant::now(), 0);
    while !is_completed(cluster, run) {
        answers += answer(cluster, run);
        assert!(since.elapsed() < PATIENCE, "{run} does not end\n{}", cluster.printed());
        std::thread::sleep(LOOK);
    }
    answers
}

/// The traces of an ended run, without names and dates.
#[derive(Debug, PartialEq, Eq)]
pub struct Trace {
    /// Each invocation with its calls and their answers.
    invocations: Vec<(String, Vec<String>)>,
    /// Subject and files of each commit of the branch, oldest first.
    commits: Vec<String>,
}

/// The traces of an undisturbed run, of a new project of this name. No server has a run then.
#[track_caller]
pub fn undisturbed(cluster: &Cluster, name: &str) -> Trace {
    make(cluster, name);
    let run = cluster.run(name);
    cluster.until_status(&run, "completed");
    cluster.wait_until_idle();
    trace(cluster, name, &run)
}

/// Checks an ended run: each effect happened once, no step and no event is missing, its journals replay, and it left
/// what an undisturbed run leaves.
#[track_caller]
pub fn account(cluster: &Cluster, name: &str, run: &str, reference: &Trace) {
    assert_eq!(&trace(cluster, name, run), reference, "{name}, {run}");
    let expected = posts(name);
    let told = cluster.lab.fake.posts().into_iter().filter(|told| expected.contains(&told.text));
    let (texts, keys): (Vec<String>, BTreeSet<String>) = told.map(|told| (told.text, told.key)).unzip();
    assert_eq!(texts.len(), expected.len(), "{name}: each is told once: {texts:?}");
    assert_eq!(keys.len(), expected.len(), "{name}: each has a key of its own: {texts:?}");
    assert_eq!(texts.into_iter().collect::<BTreeSet<_>>(), expected, "{name}");
    let puts: Vec<String> = cluster.lab.fake.puts().into_values().collect();
    for text in expected {
        let put = format!("{text}-put");
        assert_eq!(puts.iter().filter(|told| **told == put).count(), 1, "{name}: {put} has one key");
    }
    let numbers = events(cluster, run).iter().map(|event| event["number"].as_u64()).collect::<Vec<_>>();
    let whole: Vec<Option<u64>> = (1..=numbers.len() as u64).map(Some).collect();
    assert_eq!(numbers, whole, "{name}: events without gaps");
    let path = format!("/api/v1/runs/{run}/replay");
    let replayed = cluster.ask("POST", &path, &json!({})).unwrap_or_else(|| panic!("no replay\n{}", cluster.printed()));
    let replayed = replayed.expect(200).json();
    assert!(list(&replayed, "invocations").iter().all(|one| one["same"] == true), "{name}: {replayed:#}");
}

/// All events of a run, in order.
#[track_caller]
pub fn events(cluster: &Cluster, run: &str) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        let page = cluster.get(&format!("/api/v1/runs/{run}/events?limit=1000&after={}", events.len()));
        let items = list(&page, "items");
        events.extend_from_slice(items);
        if items.is_empty() {
            return events;
        }
    }
}

/// The number of events of a type.
#[track_caller]
pub fn count(cluster: &Cluster, run: &str, kind: &str) -> usize {
    events(cluster, run).iter().filter(|event| event["type"] == kind).count()
}

#[track_caller]
fn trace(cluster: &Cluster, name: &str, run: &str) -> Trace {
    let journal = cluster.get(&format!("/api/v1/runs/{run}/journal?limit=1000"));
    let names = list(&journal, "items").iter().filter_map(|one| one["invocation"].as_str());
    let plain = |text: &str| text.replace(run, "RUN").replace(name, "PROJECT");
    let invocations = names.map(|invocation| (plain(invocation), calls(cluster, run, invocation, plain))).collect();
    Trace { invocations, commits: commits(cluster, name).iter().map(|commit| plain(commit)).collect() }
}

/// A line each. What only a model or the host said is compared by what came of it.
fn calls(cluster: &Cluster, run: &str, invocation: &str, plain: impl Fn(&str) -> String) -> Vec<String> {
    let invocation = web::in_a_path(invocation);
    let journal = cluster.get(&format!("/api/v1/runs/{run}/journal/entries?limit=1000&invocation={invocation}"));
    assert!(!journal["finished"].is_null(), "{journal:#}");
    let line = |entry: &Value| {
        let answer = entry["answer"].as_str().unwrap_or_else(|| panic!("no answer: {entry:#}"));
        let answer = if entry["name"] == "tools.call" { answer } else { "" };
        plain(&format!("{} {} {} -> {answer}", entry["number"], entry["name"], entry["summary"]))
    };
    list(&journal, "entries").iter().map(line).collect()
}

fn commits(cluster: &Cluster, name: &str) -> Vec<String> {
    let (lab, project) = (&cluster.lab, cluster.lab.path(name));
    let range = format!("main..longhaul/{name}");
    let ids = lab.git_in(&project, &["log", "--reverse", "--topo-order", "--format=%H", &range]);
    let commit = |id: &str| {
        let subject = lab.git_in(&project, &["show", "-s", "--format=%s", id]);
        let tree = lab.git_in(&project, &["ls-tree", "-r", id]);
        // The configuration names the project.
        let files: Vec<&str> = tree.lines().filter(|line| !line.ends_with("\tlonghaul.toml")).collect();
        format!("{subject}{}", files.join("\n"))
    };
    ids.lines().map(commit).collect()
}
