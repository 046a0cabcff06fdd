//! A component under test: scenes to call it in, and good and hostile input for its role.

use crate::schema::sample;
use crate::subject::ConformSubject;
use longhaul_core::grant::DirectoryGrant;
use longhaul_core::memory::MemoryEntry;
use longhaul_core::work::{
    Criterion, FeatureSpec, Goal, OnFailure, Outcome, Plan, PlanStep, Rubric, StepResult, Subject as Judged, Task,
};
use longhaul_engine::Role;
use longhaul_testkit::{Call, Done, KitError, Scene, Script};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeSet;
use tempfile::TempDir;

/// The state that all rules share for one component.
pub(crate) struct Probe {
    pub subject: ConformSubject,
    pub imports: Vec<String>,
    base: Scene,
    /// Functions that `describe` returned, of a tool that answered.
    pub functions: Vec<Function>,
    /// Exports and fields whose JSON was invalid, in any call so far.
    breaches: RefCell<BTreeSet<String>>,
    /// Directories that were granted, kept until the probe ends.
    folders: Vec<TempDir>,
}

/// A function that a tool describes.
pub(crate) struct Function {
    pub name: String,
    pub parameters: Value,
    pub effect: String,
}

/// Depth of a text of nested lists. The host's own parser ends at 128. The parsers of interpreters go on
/// until their stack of 6 MiB is full, at some ten thousands, which the host ends as `stack_bytes_max`.
const DEEP_TEXT: usize = 1_000;

/// Depth of nested values that the host itself hands over: its own parser ends at 128.
const DEEP_VALUE: usize = 100;

/// Length of the huge text, in bytes: a large file, well below what one call may move.
const HUGE_BYTES: usize = 1 << 20;

/// A text of other scripts, of a character beyond 16 bits, of one that combines, and of controls.
pub(crate) const ODD: &str = "Grüße, 世界 🚀 e\u{301} \u{202e}x\u{0}y\tz\r\n\"\\/'{}[]%s\u{fffd}";

/// Hostile input, by the name of the rule that uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hostile {
    Empty,
    Huge,
    Deep,
    Odd,
}

impl Hostile {
    fn text(self) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Huge => "lorem ipsum ".repeat(HUGE_BYTES / 12 + 1),
            Self::Deep => format!("{}{}", "[".repeat(DEEP_TEXT), "]".repeat(DEEP_TEXT)),
            Self::Odd => ODD.to_owned(),
        }
    }

    fn value(self) -> Value {
        match self {
            Self::Deep => (0..DEEP_VALUE).fold(json!([]), |inner, _| json!([inner])),
            other => Value::String(other.text()),
        }
    }

    /// The word as JSON text, for fields that hold JSON.
    fn json_text(self) -> String {
        if self == Self::Deep { self.text() } else { Value::String(self.text()).to_string() }
    }
}

impl Probe {
    pub(crate) async fn new(scene: Scene, mut subject: ConformSubject) -> Result<Self, String> {
        let mut folders = Vec::new();
        for grant in &mut subject.directories {
            let made = tempfile::tempdir().map_err(|error| format!("no temporary directory can be made: {error}"))?;
            made.path().clone_into(&mut grant.host);
            folders.push(made);
        }
        let base = with_directories(scene, &subject.directories)
            .limits(subject.limits.clone())
            .settings(subject.settings.clone());
        let imports = base.inspection().imports.clone();
        let mut probe = Self { subject, imports, base, functions: Vec::new(), breaches: RefCell::default(), folders };
        probe.functions = probe.described().await;
        Ok(probe)
    }

    pub(crate) fn role(&self) -> Role {
        self.base.role()
    }

    pub(crate) fn imports(&self, package_or_interface: &str) -> bool {
        self.imports.iter().any(|import| import.starts_with(package_or_interface))
    }

    /// A scene with an empty store and the subject's scripted answers.
    pub(crate) fn scene(&self) -> Scene {
        self.scene_with(self.subject.script.clone().unwrap_or_else(|| meaningless("{}")))
    }

    pub(crate) fn scene_with(&self, script: Script) -> Scene {
        self.base.clone().fresh().script(script)
    }

    /// Calls it, and records the facts that are checked for every call.
    pub(crate) async fn call(&self, scene: &Scene, call: Call) -> Result<Done, String> {
        let done = scene.call(call).await.map_err(|error: KitError| error.to_string())?;
        self.examine(&done);
        Ok(done)
    }

    pub(crate) fn examine(&self, done: &Done) {
        let breaches = done.breach().map(|breach| format!("{}: {breach}", done.export));
        self.breaches.borrow_mut().extend(breaches);
    }

    /// Breaches of the contract in returned values.
    pub(crate) fn breaches(&self) -> Vec<String> {
        self.breaches.borrow().iter().cloned().collect()
    }

    async fn described(&self) -> Vec<Function> {
        if self.role() != Role::Tool {
            return Vec::new();
        }
        let Ok(done) = self.call(&self.scene(), Call::Describe).await else { return Vec::new() };
        let longhaul_testkit::Ending::Returned(info) = done.ending else { return Vec::new() };
        let functions = info["functions"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        functions
            .map(|function| Function {
                name: text(&function["name"]),
                parameters: function["parameters"].clone(),
                effect: text(&function["effect"]),
            })
            .collect()
    }

    /// Good calls: the ones that the manifest names, else one of each export.
    pub(crate) fn good(&self) -> Vec<Call> {
        if !self.subject.calls.is_empty() {
            return self.subject.calls.clone();
        }
        match self.role() {
            Role::Tool => self.functions.iter().map(|function| function.call("note")).collect(),
            _ => of_role(self.role(), &Words::of("- sum: Say what 6 times 7 is.", json!({ "files": ["a.py"] }))),
        }
    }

    /// Calls with hostile input, each with the scene that it is made in.
    pub(crate) fn hostile(&self, hostile: Hostile) -> Vec<(Scene, Call)> {
        let text = hostile.text();
        let calls = match self.role() {
            Role::Tool => self.functions.iter().flat_map(|function| function.hostile(hostile)).collect(),
            Role::Memory => memory(&text, &hostile.json_text(), &text),
            role => of_role(role, &Words { text: text.clone(), value: hostile.value(), json: hostile.json_text() }),
        };
        // A model's reply is as untrusted as any other input.
        let scene = || self.scene_with(meaningless(&text));
        calls.into_iter().map(|call| (scene(), call)).collect()
    }

    /// Empties the directories that it was granted: no files of an earlier rule remain.
    pub(crate) fn clean(&self) -> std::io::Result<()> {
        for folder in &self.folders {
            for entry in folder.path().read_dir()? {
                let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
                if kind.is_dir() { std::fs::remove_dir_all(path)? } else { std::fs::remove_file(path)? }
            }
        }
        Ok(())
    }

    /// The directories that it was granted.
    pub(crate) fn directories(&self) -> &[DirectoryGrant] {
        &self.subject.directories
    }
}

fn with_directories(scene: Scene, directories: &[DirectoryGrant]) -> Scene {
    directories.iter().fold(scene, |scene, grant| scene.directory(grant.clone()))
}

/// A script whose model gives the same reply to everything, with a tool, a check and a sub-agent.
pub(crate) fn meaningless(text: &str) -> Script {
    Script::new()
        .model_when("", text)
        .tool("notes", "count", json!({ "words": 2 }))
        .check("does-it", true)
        .agent("helper", json!("done"))
}

impl Function {
    /// A call with arguments that most likely fit, with `text` wherever one is free.
    pub(crate) fn call(&self, text: &str) -> Call {
        Call::tool(&self.name, &sample(&self.parameters, &self.parameters, text, 8))
    }

    fn hostile(&self, hostile: Hostile) -> Vec<Call> {
        let mut arguments = sample(&self.parameters, &self.parameters, &hostile.text(), 8);
        let mut calls = vec![Call::tool(&self.name, &arguments)];
        if hostile == Hostile::Deep
            && let Some(first) = arguments.as_object_mut().and_then(|map| map.values_mut().next())
        {
            *first = hostile.value();
            calls.push(Call::tool(&self.name, &arguments));
        }
        calls.push(Call::tool_text(&self.name, &hostile.text()));
        calls.push(Call::tool_text(&hostile.text(), "{}"));
        calls
    }
}

/// The texts for the fields of a call.
struct Words {
    /// Text for a field of words.
    text: String,
    /// Value that the host passes on.
    value: Value,
    /// Text for a field of JSON that a plugin passes on.
    json: String,
}

impl Words {
    fn of(text: &str, value: Value) -> Self {
        Self { text: text.to_owned(), json: value.to_string(), value }
    }
}

/// Calls of every export of a role.
fn of_role(role: Role, words: &Words) -> Vec<Call> {
    let Words { text, value, json } = words;
    match role {
        Role::Tool => vec![Call::Describe],
        Role::Planner => {
            let (goal, results) = (goal(text, value), results(text, json));
            let plan = Plan { steps: vec![step(text)], notes: String::new() };
            vec![
                Call::Plan(goal.clone()),
                Call::Replan(goal.clone(), plan, results.clone()),
                Call::Synthesize(goal, results),
            ]
        }
        Role::Agent => vec![Call::Run(Task {
            id: "probe".to_owned(),
            instruction: text.clone(),
            context: json!({ "of": value }),
            settings: json!({}),
            criteria: vec![criterion(text)],
            feedback: Vec::new(),
            attempt: 1,
        })],
        Role::Evaluator => vec![Call::Judge(
            Judged {
                instruction: text.clone(),
                output: json.clone(),
                evidence: vec![("a.txt".to_owned(), text.clone())],
            },
            Rubric { criteria: vec![criterion(text)], settings: json!({}) },
        )],
        Role::Memory => memory("probe", json, text),
    }
}

fn memory(name: &str, value: &str, text: &str) -> Vec<Call> {
    let entry =
        MemoryEntry { key: name.to_owned(), value: value.to_owned(), tags: vec![text.to_owned()], expires_at_ms: None };
    let (namespace, key) = (name.to_owned(), name.to_owned());
    vec![
        Call::Put(namespace.clone(), entry),
        Call::Get(namespace.clone(), key.clone()),
        Call::Search(namespace.clone(), text.to_owned(), 10),
        Call::List { namespace: namespace.clone(), prefix: key.clone(), cursor: Some(key.clone()), limit: 10 },
        Call::Delete(namespace, key),
    ]
}

fn goal(text: &str, value: &Value) -> Goal {
    Goal {
        text: text.to_owned(),
        context: json!({ "of": value }),
        settings: json!({}),
        criteria: vec![criterion(text)],
    }
}

fn criterion(text: &str) -> Criterion {
    Criterion { id: "does-it".to_owned(), text: text.to_owned(), check: Some("does-it".to_owned()) }
}

fn step(text: &str) -> PlanStep {
    let spec = FeatureSpec {
        id: "sum".to_owned(),
        // In one place: what is handed back may be as long as this, a few times, and no more.
        title: "A step".to_owned(),
        instruction: text.to_owned(),
        category: "functional".to_owned(),
        priority: 5,
        agent: None,
        criteria: vec![criterion("It does it.")],
        checks: Vec::new(),
        depends_on: Vec::new(),
    };
    PlanStep { spec, on_failure: OnFailure::Retry(1) }
}

fn results(text: &str, json: &str) -> Vec<StepResult> {
    let outcome =
        Outcome { output: json.to_owned(), summary: text.to_owned(), confidence: Some(1.0), unknowns: Vec::new() };
    vec![StepResult { step: "sum".to_owned(), passed: false, outcome: Some(outcome), issues: Vec::new() }]
}
