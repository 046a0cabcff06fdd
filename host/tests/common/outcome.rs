//! The traces of an ended run, in a form in which two runs can be compared: without names, dates and keys, which differ
//! from run to run.

use super::lab::Lab;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The traces of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The status at its end.
    pub status: String,
    /// Id, status, why, files.
    pub features: Vec<String>,
    /// Each invocation with its calls, answers, result and fuel.
    pub invocations: Vec<(String, Vec<String>)>,
    /// Tree and message of each commit of the branch, oldest first.
    pub commits: Vec<String>,
    /// The posted bodies, with the number of times.
    pub posts: BTreeMap<String, usize>,
    /// The put bodies, with the number of keys.
    pub puts: BTreeMap<String, usize>,
    /// The decisions: author, decision, feature and outcome.
    pub decisions: BTreeMap<String, usize>,
}

impl Outcome {
    /// The traces of the only run of a laboratory.
    pub fn of(lab: &Lab) -> Self {
        let runs = lab.runs();
        let [run] = runs.as_slice() else { panic!("one run: {runs:?}") };
        let status = lab.json(&["status", run]);
        Self {
            status: status["status"].as_str().expect("a status").to_owned(),
            features: features(&status),
            invocations: invocations(lab, run),
            commits: commits(lab, run),
            posts: counted(lab.fake.posts().into_iter().map(|told| told.text)),
            puts: counted(lab.fake.puts().into_values()),
            decisions: counted(decisions(lab, run).into_iter()),
        }
    }
}

fn counted(texts: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for text in texts {
        *counts.entry(text).or_default() += 1;
    }
    counts
}

fn features(status: &Value) -> Vec<String> {
    let features = status["features"].as_array().expect("a list");
    let line =
        |feature: &Value| format!("{} {} {} {}", feature["id"], feature["status"], feature["reason"], feature["files"]);
    features.iter().map(line).collect()
}

fn invocations(lab: &Lab, run: &str) -> Vec<(String, Vec<String>)> {
    let answer = lab.json(&["journal", run]);
    let names = answer["items"].as_array().expect("a list").iter().filter_map(|one| one["invocation"].as_str());
    names.map(|name| (name.replace(run, "RUN"), calls(lab, run, name))).collect()
}

/// A line each, in no order.
pub fn decisions(lab: &Lab, run: &str) -> Vec<String> {
    let listed = lab.json(&["decisions", run, "list", "--limit", "1000"]);
    let line = |decision: &Value| {
        format!("{} {} {} {}", decision["by"], decision["feature"], decision["outcome"], decision["decision"])
    };
    listed["items"].as_array().expect("a list").iter().map(line).collect()
}

fn calls(lab: &Lab, run: &str, invocation: &str) -> Vec<String> {
    let answer = lab.json(&["journal", run, "--invocation", invocation]);
    let entries = answer["entries"].as_array().expect("a list");
    let mut lines: Vec<String> = entries
        .iter()
        .map(|entry| {
            let answer = entry["answer"].as_str().unwrap_or("none");
            let answered = match entry["name"].as_str() {
                // It answers a key, which differs from run to run.
                Some("decisions.record") => "KEY".to_owned(),
                Some("decisions.find") => without_keys(answer),
                _ => answer.to_owned(),
            };
            let call = format!("{} {} {}", entry["number"], entry["name"], entry["summary"]);
            let line = format!("{call} {} -> {answered}", entry["fuel_used"]);
            VARYING.iter().fold(without_times(&line), |line, count| without_count(&line, count))
        })
        .collect();
    let finished = &answer["finished"];
    lines.push(format!("{} after {} fuel", finished["result"], finished["fuel_used"]));
    lines
}

/// Fields that differ from run to run: the duration of a check; and the usage that a caller sees of a sub-agent, whose
/// model call may have been sent again; and the free port of the model's server.
const VARYING: [&str; 3] = ["\"duration_ms\":", "\"possibly_paid_twice\":", "\"port\":"];

fn without_count(text: &str, count: &str) -> String {
    let mut parts = text.split(count);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shown, rest| shown + count + "N" + rest.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// Decisions that were found, without their keys. A call that was cut off has no answer.
fn without_keys(answer: &str) -> String {
    let Ok(mut found) = serde_json::from_str::<Value>(answer) else { return answer.to_owned() };
    for decision in found.as_array_mut().into_iter().flatten() {
        decision["id"] = "KEY".into();
    }
    found.to_string()
}

/// Milliseconds since 1970 have 13 digits, and nothing else here has as many.
fn without_times(text: &str) -> String {
    let mut shown = String::new();
    let mut digits = String::new();
    for character in text.chars().chain(['\n']) {
        if character.is_ascii_digit() {
            digits.push(character);
            continue;
        }
        shown.push_str(if digits.len() == 13 { "TIME" } else { &digits });
        digits.clear();
        shown.push(character);
    }
    shown.trim_end().to_owned()
}

fn commits(lab: &Lab, run: &str) -> Vec<String> {
    let branch = lab.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/longhaul/"]);
    let Some(branch) = branch.lines().next() else { return Vec::new() };
    let range = format!("main..{branch}");
    let ids = lab.git(&["log", "--reverse", "--topo-order", "--format=%H", &range]);
    let ids: Vec<&str> = ids.lines().collect();
    let mut parent = lab.git(&["rev-parse", "main"]).trim().to_owned();
    let mut commits = Vec::new();
    for id in ids {
        let text = lab.git(&["show", "-s", "--format=%P %an%n%B", id]);
        // The configuration names the server, whose port is another one in each laboratory.
        let tree = lab.git(&["ls-tree", "-r", id]);
        let files: Vec<&str> = tree.lines().filter(|line| !line.ends_with("\tlonghaul.toml")).collect();
        // Ids differ with their dates; what matters is that each follows the one before.
        commits.push(format!("{}{}", text.replace(run, "RUN").replace(&parent, "PARENT"), files.join("\n")));
        id.clone_into(&mut parent);
    }
    commits
}

/// The files in the project, the data directory and the tree that should not exist after a run.
pub fn leftovers(lab: &Lab) -> Vec<String> {
    let mut found = Vec::new();
    let mut git = BTreeSet::new();
    walk(&lab.project().join(".git"), &mut git);
    // Objects that libgit2 was writing are removed when they are old; see `a_half_written_object_goes`.
    let is_left = |path: &String| path.ends_with(".lock") || path.contains("tmp_obj_");
    found.extend(git.into_iter().filter(is_left));
    let changed = lab.git(&["status", "--porcelain", "--ignored"]);
    found.extend(changed.lines().map(|line| format!("the user's checkout: {line}")));
    let branch = lab.git(&["symbolic-ref", "--short", "HEAD"]);
    if branch.trim() != "main" {
        found.push(format!("the user's checkout is on {branch}"));
    }
    let worktrees = lab.git(&["worktree", "list"]);
    found.extend(worktrees.lines().skip(1).map(|line| format!("worktree {line}")));
    let damage = lab.git(&["fsck", "--strict", "--no-dangling", "--no-progress"]);
    found.extend(damage.lines().map(|line| format!("git fsck: {line}")));
    found.extend(home(lab));
    found
}

fn home(lab: &Lab) -> Vec<String> {
    let names = |directory: &Path| -> Vec<String> {
        let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let mut found = Vec::new();
    // A process that was killed last leaves the logs of its store.
    let known = [
        "lock",
        "state.redb",
        "state.log.0",
        "state.log.1",
        "state.lock",
        "store.lock",
        "trees",
        "scratch",
        "socket-token",
    ];
    found.extend(names(&lab.home()).into_iter().filter(|name| !known.contains(&name.as_str())));
    found.extend(names(&lab.home().join("scratch")).into_iter().map(|name| format!("scratch/{name}")));
    let runs = lab.runs();
    let trees = names(&lab.home().join("trees"));
    found.extend(trees.iter().filter(|name| !is_tree(name, &runs)).map(|name| format!("trees/{name}")));
    for run in runs.iter().filter(|run| trees.contains(run)) {
        let mut files = BTreeSet::new();
        walk(&lab.home().join("trees").join(run), &mut files);
        let prefix = format!("{}/", lab.home().join("trees").join(run).display());
        let files: BTreeSet<String> = files.iter().map(|path| path.replace(&prefix, "")).collect();
        // Others may have committed since, from trees of their own.
        let at = fs::read_to_string(lab.home().join("trees").join(format!("{run}.at"))).expect("it was brought there");
        let kept: BTreeSet<String> =
            lab.git(&["ls-tree", "-r", "--name-only", at.trim()]).lines().map(str::to_owned).collect();
        found.extend(files.symmetric_difference(&kept).map(|path| format!("tree and branch differ in {path}")));
    }
    found
}

/// `RUN`, or `RUN.N` for sessions side by side; and beside each what it was last brought to.
fn is_tree(name: &str, runs: &[String]) -> bool {
    let tree = name.strip_suffix(".at").unwrap_or(name);
    let (run, number) = tree.split_once('.').unwrap_or((tree, "0"));
    runs.iter().any(|known| known == run) && number.parse::<u32>().is_ok()
}

fn walk(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&path, found);
        } else {
            found.insert(path.display().to_string());
        }
    }
}
