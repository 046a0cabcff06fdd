//! The rules, in the order of the report, and the check of a component.

mod crash;
mod every;
mod memory;
mod pure;
mod tool;

use crate::inspection::examine;
use crate::probe::Probe;
use crate::report::{ConformReport, RuleFinding, RuleVerdict};
use crate::subject::ConformSubject;
use longhaul_engine::Role;
use longhaul_testkit::Kit;
pub use memory::Bench;
use memory::TestedBackend;
use std::pin::Pin;

/// The finding of a rule, when it is known.
type Judging<'a> = Pin<Box<dyn Future<Output = Result<RuleVerdict, String>> + 'a>>;

/// A rule of the contract.
pub struct ConformRule {
    /// Its id, which never changes.
    pub id: &'static str,
    /// The property that must hold, in one line.
    pub says: &'static str,
    /// The roles that it is for.
    roles: &'static [Role],
    check: for<'a> fn(&'a Probe) -> Judging<'a>,
    /// The same for a built-in memory backend, if the rule is for one.
    own: Option<for<'a> fn(TestedBackend<'a>) -> Judging<'a>>,
}

const ALL: &[Role] = &Role::ALL;
const PURE: &[Role] = &[Role::Planner, Role::Agent, Role::Evaluator];
const TOOL: &[Role] = &[Role::Tool];
const MEMORY: &[Role] = &[Role::Memory];

macro_rules! rule {
    ($id:literal, $roles:expr, $check:path, $says:literal) => {
        ConformRule { id: $id, says: $says, roles: $roles, check: |probe| Box::pin($check(probe)), own: None }
    };
}

/// A rule for any memory backend, a component or not.
macro_rules! backend_rule {
    ($id:literal, $check:path, $says:literal) => {
        ConformRule {
            id: $id,
            says: $says,
            roles: MEMORY,
            check: |probe| Box::pin($check(TestedBackend::of(probe))),
            own: Some(|backend| Box::pin($check(backend))),
        }
    };
}

/// The rules that call a component; the checks before them have the ids `component`, `world`, `imports` and `loads`.
#[must_use]
pub fn rules() -> &'static [ConformRule] {
    const RULES: &[ConformRule] = &[
        rule!("describes", TOOL, tool::describes, "a tool describes itself, with JSON Schemas that are ones"),
        rule!("unknown-function", TOOL, tool::unknown_function, "an unknown function is a typed error"),
        rule!("wrong-input", ALL, every::wrong_input, "wrong input is a typed error and no trap"),
        rule!("empty-input", ALL, every::empty_input, "empty input is survived"),
        rule!("huge-input", ALL, every::huge_input, "a megabyte of text is survived"),
        rule!("deep-input", ALL, every::deep_input, "deeply nested input is survived"),
        rule!("odd-input", ALL, every::odd_input, "any characters are survived"),
        rule!("within-limits", ALL, every::within_limits, "good calls stay within the stated limits"),
        rule!("deterministic", PURE, pure::deterministic, "the same call gives the same result, calls and fuel"),
        rule!("fresh-randomness", PURE, pure::fresh_randomness, "each invocation has randomness of its own"),
        rule!("cancel", ALL, every::cancel, "a call that is cancelled stops promptly"),
        rule!("effects", TOOL, tool::effects, "an effect weaker than `acts` is backed by imports and asks"),
        rule!("read-only", TOOL, tool::read_only, "a function that says `read-only` changes nothing"),
        backend_rule!("memory-refuses", memory::refuses, "a value that is no JSON is refused and not kept"),
        backend_rule!("memory-keeps", memory::keeps, "what was put is got, after a reopening too"),
        backend_rule!("memory-lists", memory::lists, "keys are listed by prefix, page by page"),
        backend_rule!("memory-searches", memory::searches, "a search keeps to its namespace and its limit"),
        backend_rule!("memory-expires", memory::expires, "what expired is not found any more"),
        backend_rule!("memory-isolates", memory::isolates, "a namespace sees nothing of another"),
        backend_rule!("memory-odd-keys", memory::odd_keys, "any key and namespace is kept apart"),
        rule!(
            "answers-json",
            ALL,
            every::answers_json,
            "what is returned is what the contract says, in every call before"
        ),
    ];
    RULES
}

/// Checks a component against every rule; where the subject says so, also by cuts of its journals, with the id `crash`.
pub async fn conform(kit: &Kit, subject: ConformSubject) -> ConformReport {
    let (mut findings, looked) = examine(&subject.name, &subject.bytes);
    let mut report = ConformReport { name: subject.name.clone(), role: None, findings: Vec::new() };
    if let Some(looked) = looked {
        report.role = Some(looked.role.name());
        let crash = subject.crash;
        match load(kit, subject).await {
            Ok(probe) => {
                findings
                    .push(RuleFinding { rule: "loads", judged: RuleVerdict::Pass("it compiles and links".to_owned()) });
                for rule in rules() {
                    findings.push(RuleFinding { rule: rule.id, judged: judge(rule, &probe).await });
                }
                if crash {
                    let judged = crash::survives(&probe).await.unwrap_or_else(RuleVerdict::Fail);
                    findings.push(RuleFinding { rule: "crash", judged });
                }
            }
            Err(why) => findings.push(RuleFinding { rule: "loads", judged: RuleVerdict::Fail(why) }),
        }
    }
    report.findings = findings;
    report
}

/// Checks a built-in memory backend against the rules for one.
pub async fn conform_backend(name: &str, bench: &dyn Bench) -> ConformReport {
    let mut findings = Vec::new();
    for rule in rules() {
        let Some(check) = rule.own else { continue };
        let judged = check(TestedBackend::Own(bench, rule.id)).await.unwrap_or_else(RuleVerdict::Fail);
        findings.push(RuleFinding { rule: rule.id, judged });
    }
    ConformReport { name: name.to_owned(), role: Some(Role::Memory.name()), findings }
}

async fn load(kit: &Kit, subject: ConformSubject) -> Result<Probe, String> {
    let scene = kit.load_bytes(&subject.name, &subject.bytes).await.map_err(|error| error.to_string())?;
    Probe::new(scene, subject).await
}

async fn judge(rule: &ConformRule, probe: &Probe) -> RuleVerdict {
    if !rule.roles.contains(&probe.role()) {
        return RuleVerdict::Skip(format!("not for the role {}", probe.role().name()));
    }
    if let Err(error) = probe.clean() {
        return RuleVerdict::Fail(format!("its directories cannot be emptied: {error}"));
    }
    (rule.check)(probe).await.unwrap_or_else(RuleVerdict::Fail)
}
