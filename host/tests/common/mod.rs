//! Shared code of the test programs: a project in its own folder, with the program as a process and a fake server for
//! the world outside; an author with the program alone; and guests that are called without a run.
//!
//! Nothing here asserts what a run or a guest does; the tests do that.

#![allow(dead_code, reason = "each test uses its part")]

pub mod asker;
pub mod author;
pub mod builder;
pub mod built_plugins;
pub mod executor_cases;
pub mod fake;
pub mod gated;
pub mod graph;
pub mod guests;
pub mod lab;
pub mod node;
pub mod outcome;
pub mod python;
pub mod reader;
pub mod readme;
pub mod steps;
pub mod terminal;
pub mod web;

use fake::answer_to;
use lab::{Lab, Ran};
use serde_json::Value;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The top of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in a folder of the repository").to_owned()
}

/// Compiled plugins and installed programs of others, kept between tests, since they take long.
pub fn test_cache() -> PathBuf {
    let cache = of_this_user("cache");
    let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&cache);
    cache
}

/// A place that outlives a test. It has one user, and root's tests are run once more as another one.
pub fn of_this_user(name: &str) -> PathBuf {
    let user = rustix::process::geteuid();
    let name = if user.is_root() { name.to_owned() } else { format!("{name}-{user}") };
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// `longhaul.toml` of a project whose agent is `doer`; `{server}` stands for the fake server's address.
pub const DOER_CONFIG: &str = r#"
[project]
name = "kept"

[models.fake]
provider = "openai"
id = "fake"
base_url = "http://{server}/v1"

[agents.code]
plugin = "doer"
models = ["fake"]
tools = ["files", "poster"]
agents = ["helper"]

[agents.helper]
plugin = "doer"
models = ["fake"]
tools = ["poster"]
agents = ["helper"]

[tools.files]
plugin = "files"
directories = [{ guest = "/work", host = "tree", access = "write" }]
confirm_effects = true

[tools.poster]
plugin = "poster"
hosts = ["http://{server}"]
settings = { server = "{server}" }
confirm_effects = true
approval = { when_heard = "allow" }

[checks]
wrote_one = { argv = ["grep", "-q", "written one-", "one.txt"] }
wrote_four = { argv = ["grep", "-q", "written four-", "four.txt"] }
has_two = { argv = ["grep", "-q", "written two-1", "two.txt"] }
has_fox = { argv = ["grep", "-q", "a fox", "three.txt"] }

[run.limits]
iterations_max = 2
unavailable_wait_ms_min = 100
"#;

/// One agent that is asked, without a repository.
pub const ASKED_CONFIG: &str = r#"
[project]
name = "asked"

[models.fake]
provider = "openai"
id = "fake"
base_url = "http://{server}/v1"

[agents.one]
plugin = "react"
models = ["fake"]
tools = ["poster"]
settings = { tries_max = 1, output_tokens_max = 100 }

[tools.poster]
plugin = "poster"
hosts = ["http://{server}"]
settings = { server = "{server}" }
confirm_effects = true
approval = { when_heard = "allow" }
"#;

/// A goal of three features: two pass, each judged in another way, and one never does.
pub const THREE_FEATURES: &str = r#"# Three

## Feature: the first
- id: one

Do it.

```python check has_one
assert "written one-1" in open("/work/one.txt").read()
```

## Feature: the second
- id: two
- depends on: one
- check: has_two

Do it, too.

## Feature: the one without a fox
- id: three
- check: has_fox

Find a fox.
"#;

/// Answers the question whether an effect happened as a person would: by looking. Returns the run as it was before.
pub fn answer_if_asked(lab: &Lab) -> Option<Value> {
    let status = lab.newest()?;
    if status["status"] != "parked" {
        return Some(status);
    }
    let run = status["run"].as_str().expect("a name").to_owned();
    let question = status["question"].as_str().unwrap_or_else(|| panic!("it waits for something else: {status:#}"));
    let text = question
        .split_once("poster.post {\"text\":\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .unwrap_or_else(|| panic!("only a post may be asked about: {question}"))
        .0;
    let answer = answer_to("post", text).to_string();
    let happened = lab.fake.posts().iter().any(|told| told.text == text);
    // Its label starts with the feature, of which several may ask.
    let feature = text.split('-').next().unwrap_or_default();
    let resolution: &[&str] = if happened { &["--happened", &answer] } else { &["--did-not-happen"] };
    lab.run(&[&["answer", &run, "--feature", feature], resolution].concat()).expect(0);
    Some(status)
}

/// A command that the program printed, with how a person fills it in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// Its arguments, without the program.
    pub args: Vec<String>,
}

impl Printed {
    fn of(text: &str) -> Self {
        let mut words = text.split_whitespace().map(str::to_owned);
        assert_eq!(words.next().as_deref(), Some("longhaul"), "a command: {text}");
        Self { args: words.collect() }
    }

    /// Carries it out in the project.
    pub fn run(&self, lab: &Lab) -> Ran {
        lab.start_command(self.command(lab)).wait()
    }

    /// About to be carried out.
    pub fn command(&self, lab: &Lab) -> std::process::Command {
        lab.command(&self.args.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// The texts that are printed after one of these words, line by line.
pub fn printed(said: &str, before: &str) -> Vec<Printed> {
    said.lines().filter_map(|line| line.split_once(before)).map(|(_, command)| Printed::of(command)).collect()
}

/// The commands with which a person who looks at the receiver answers what `said` asks, as they are printed: of the
/// alternatives the one that is true.
pub fn answers_printed(lab: &Lab, said: &str) -> Vec<Printed> {
    let mut lines = said.lines();
    let mut answers = Vec::new();
    while let Some(line) = lines.next() {
        let is_question = ["asks", "waits: "].iter().any(|word| line.trim_start().starts_with(word));
        let Some((_, text)) = line.split_once("poster.post {\"text\":\"").filter(|_| is_question) else { continue };
        let text = text.split_once('"').unwrap_or_else(|| panic!("a text: {line}")).0;
        let command = lines.next().unwrap_or_default();
        let Some((_, command)) = command.split_once("answer with: ") else {
            panic!("no command after: {line}\n{said}")
        };
        let mut alternatives = command.split(" | ").map(str::trim);
        let first = Printed::of(alternatives.next().expect("one"));
        let (base, happened) = first.args.split_at(first.args.len() - 2);
        assert_eq!(happened, ["--happened", "JSON"], "{command}");
        assert_eq!(alternatives.collect::<Vec<_>>(), ["--did-not-happen", "--skip"], "{command}");
        let is_there = lab.fake.posts().iter().any(|told| told.text == text);
        let told = if is_there {
            vec!["--happened".to_owned(), answer_to("post", text).to_string()]
        } else {
            vec!["--did-not-happen".to_owned()]
        };
        answers.push(Printed { args: [base, &told].concat() });
    }
    answers
}

/// One line on standard error that has these words, and exit code 1.
#[track_caller]
pub fn refused(ran: &Ran, words: &[&str]) {
    assert_eq!(ran.code(), Some(1), "{}", ran.said());
    assert_eq!(ran.error_lines(), 1, "one line: {}", ran.said());
    for words in words {
        assert!(ran.stderr.contains(words), "no `{words}` in {}", ran.said());
    }
}

/// JSON as TOML writes it on one line.
pub fn in_toml(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{} = {}", Value::from(name.as_str()), in_toml(value)))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(in_toml).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// The number in an environment variable by which a test does more or less work.
pub fn number<T: std::str::FromStr>(variable: &str) -> Option<T> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The occurrences of a crash point, of so many, at which a test kills: the first one in a run that is killed at the
/// middle one later on, and the last one in a run of its own. With `LONGHAUL_CRASH_ALL=1` each has a run of its own.
pub fn occurrences(count: u32) -> Vec<(u32, Option<u32>)> {
    if std::env::var_os("LONGHAUL_CRASH_ALL").is_some() {
        return (1..=count).map(|number| (number, None)).collect();
    }
    let first = (1, (count > 2).then(|| count.div_ceil(2)));
    let last = (count > 1).then_some((count, None));
    std::iter::once(first).chain(last).collect()
}

/// A xorshift generator: a seed that is printed repeats a test.
pub struct Random(u64);

impl Random {
    /// The generator of a seed, for the test's part of that number.
    pub fn new(seed: u64, number: u64) -> Self {
        let mut random = Self((seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1));
        // Seeds that are close make numbers that are close, at first.
        for _ in 0..8 {
            random.below(2);
        }
        random
    }

    /// A number from 0, below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end.max(1)
    }
}

/// Starts a program as a machine without namespaces would: root loses the right to make them, a user the number of
/// them.
pub fn without_namespaces() -> Vec<&'static str> {
    if rustix::process::geteuid().is_root() {
        return vec!["setpriv", "--bounding-set=-sys_admin"];
    }
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
    vec!["unshare", "-U", "-c", "--keep-caps", "sh", "-c", script]
}
