//! The pinned checks of a feature, run on the tree as it stands.
//!
//! The command of a check comes from the run's state, which was written when the work started, and never from the tree.
//! An agent can run a check; it can neither change nor add one.

use longhaul_capabilities::{Console, InvocationSetup};
use longhaul_config::Config;
use longhaul_core::event::Event;
use longhaul_core::grant::Grants;
use longhaul_core::text::{count, printable, truncate};
use longhaul_core::tool::{CheckError, CheckInfo, Checks, ToolCall, ToolError, ToolOutput};
use longhaul_core::work::{CheckBody, CheckReport, CheckSpec, FeatureSpec};
use longhaul_core::{Denial, InvocationId, Outage};
use longhaul_engine::{CallError, Cancel, ToolAttempt};
use longhaul_harness::TrialOutcome;
use longhaul_plugins::plugin_set::{PluginSet, PreparedPlugin};
use longhaul_records::pins::PYTHON_CHECKS;
use longhaul_worktree::{ExactCopy, NativeError};

use super::executor::NativeChecks;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of the reason why a check was judged beside the work; the reason may hold the work's own text.
const WHY_BYTES_MAX: usize = 300;

/// The checks of one feature.
pub struct PinnedChecks {
    /// The plugins of the run, with the plugin `python`.
    pub plugin_set: Arc<PluginSet>,
    /// The operator's configuration with the native checks, as of the start of the run.
    pub config: Arc<Config>,
    /// The executor of native checks.
    pub native: Arc<NativeChecks>,
    /// The calling invocation, for the log.
    pub caller: InvocationId,
    /// Ends a check that is no longer wanted.
    pub cancel: Cancel,
    /// The pinned checks.
    pub specs: Vec<CheckSpec>,
    /// Names of the checks that passed before the work began.
    pub vacuous: Vec<String>,
    /// Checks that passed in one interpreter with the work: name and reason.
    pub beside: Mutex<BTreeMap<String, String>>,
}

#[async_trait::async_trait]
impl Checks for PinnedChecks {
    fn list(&self) -> Vec<CheckInfo> {
        let info = |spec: &CheckSpec| CheckInfo {
            name: spec.name.clone(),
            description: describe(&spec.body),
            vacuous: self.vacuous.contains(&spec.name),
        };
        self.specs.iter().map(info).collect()
    }

    async fn run(&self, name: &str) -> Result<CheckReport, CheckError> {
        let spec = self.specs.iter().find(|spec| spec.name == name);
        let spec = spec.ok_or_else(|| CheckError::UnknownCheck(truncate(name, 120)))?;
        self.plugin_set.crash().reach("check.before-start");
        let ran = match &spec.body {
            CheckBody::Python(source) => self.python(name, source).await,
            CheckBody::Native(native) => self.native(name, native).await,
        };
        self.plugin_set.crash().reach("check.after-end");
        let redactor = self.plugin_set.redactor();
        ran.map(|report| CheckReport {
            stdout: redactor.scrub(&report.stdout),
            stderr: redactor.scrub(&report.stderr),
            ..report
        })
    }
}

fn describe(body: &CheckBody) -> String {
    match body {
        CheckBody::Python(source) => format!("python, {}", count(source.lines().count(), "line")),
        CheckBody::Native(name) => format!("the command `{name}` of [checks]"),
    }
}

/// The answer of the plugin `python` to a check.
#[derive(serde::Deserialize)]
struct CheckRun {
    stdout: String,
    stderr: String,
    exit_code: i32,
}

/// Its answer to a check that ran apart from the work.
#[derive(serde::Deserialize)]
struct ApartCheckRun {
    #[serde(flatten)]
    ran: CheckRun,
    /// The reason why this run decides nothing.
    beside: Option<String>,
    /// True when the work ended before the check ended.
    gone: bool,
}

/// The outcome of a check that ran apart from the work.
enum ApartOutcome {
    Decided(CheckReport),
    /// The check has to be judged beside the work, for this reason.
    Undecided(String),
}

/// The answer of the plugin `python` as a judge.
#[derive(serde::Deserialize)]
struct Audit {
    twins: Vec<Twin>,
}

/// A check with one line changed, so that it must fail.
#[derive(serde::Deserialize)]
struct Twin {
    line: usize,
    source: String,
}

/// One call of the plugin `python`.
struct PythonCall<'a> {
    function: &'static str,
    /// The name of the check.
    name: &'a str,
    source: &'a str,
    grants: Grants,
    console: Option<Console>,
}

type PythonAnswer = Result<Result<ToolOutput, ToolError>, CallError>;

impl PinnedChecks {
    /// Events that report checks which passed on weaker evidence than others.
    pub fn told(&self, feature: &str) -> Vec<Event> {
        let beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        let text = |(check, why): (&String, &String)| {
            format!(
                "`{feature}`: the check `{check}` passed in one interpreter with the work and not apart from it: {why}"
            )
        };
        beside.iter().map(|of| Event::Warning { text: text(of) }).collect()
    }

    /// The work never shares an interpreter with its judge, unless the check looks at more than data.
    async fn python(&self, name: &str, source: &str) -> Result<CheckReport, CheckError> {
        let missing = || CheckError::Failed("this run has no plugin that runs Python".into());
        let part = self.plugin_set.part(PYTHON_CHECKS).ok_or_else(missing)?;
        match self.apart(part, name, source).await? {
            ApartOutcome::Decided(report) => Ok(report),
            ApartOutcome::Undecided(why) => self.beside(part, name, source, &printable(&why, WHY_BYTES_MAX)).await,
        }
    }

    /// Runs the check in an instance that sees nothing of the work, and the work in an instance of its own, which
    /// answers the check's requests through a pipe. Each has the limits of a call.
    async fn apart(&self, part: &PreparedPlugin, name: &str, source: &str) -> Result<ApartOutcome, CheckError> {
        let copy = self.native.exact_copy().await.map_err(not_run)?;
        let (judge, work) = Console::pair();
        let grants = Grants { table: PYTHON_CHECKS.into(), ..Grants::default() };
        let judge = PythonCall { function: "check_apart", name, source, grants, console: Some(judge) };
        let grants = grants_of(part, &copy);
        let work = PythonCall { function: "serve", name, source: "", grants, console: Some(work) };
        let (judged, served) = tokio::join!(self.ask_python(part, judge), self.ask_python(part, work));
        tokio::task::spawn_blocking(move || copy.done());
        match judged {
            Ok(Ok(output)) => decided(name, &output, served),
            Ok(Err(ToolError::UnknownFunction(_))) => {
                Ok(ApartOutcome::Undecided("this run pinned a plugin `python` of before".into()))
            }
            Ok(Err(error)) => Ok(ApartOutcome::Undecided(error.to_string())),
            // Traffic through the pipe counts too, and the check alone may be within its limits.
            Err(error) if !error.is_retryable() => Ok(ApartOutcome::Undecided(error.to_string())),
            Err(error) => Err(CheckError::Failed(error.to_string())),
        }
    }

    /// Accepts a pass only after each twin of the check failed, each beside its own copy of the work. The work shares
    /// the interpreter with the check and can forge any single result.
    async fn beside(
        &self,
        part: &PreparedPlugin,
        name: &str,
        source: &str,
        why: &str,
    ) -> Result<CheckReport, CheckError> {
        let ran = self.beside_the_work(part, name, source).await?;
        if !ran.passed {
            return Ok(ran);
        }
        let twins = self.twins(part, name, source).await?;
        for twin in &twins {
            if self.beside_the_work(part, name, &twin.source).await?.passed {
                return Ok(failed(name, &pretended(twin.line)));
            }
        }
        self.beside.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), why.to_owned());
        let line = if ran.stdout.is_empty() || ran.stdout.ends_with('\n') { "" } else { "\n" };
        let twins = count(twins.len(), "twin");
        let stdout = format!("{}{line}judged beside the work, where {twins} failed: {why}\n", ran.stdout);
        Ok(CheckReport { stdout, ..ran })
    }

    async fn beside_the_work(
        &self,
        part: &PreparedPlugin,
        name: &str,
        source: &str,
    ) -> Result<CheckReport, CheckError> {
        let copy = self.native.exact_copy().await.map_err(not_run)?;
        let grants = grants_of(part, &copy);
        let called = self.ask_python(part, PythonCall { function: "check", name, source, grants, console: None }).await;
        tokio::task::spawn_blocking(move || copy.done());
        match called {
            Ok(Ok(output)) => report(name, &output.output, output.truncated),
            Ok(Err(error)) => Ok(failed(name, &error.to_string())),
            // A check that reaches a limit has failed; the limit is its reason.
            Err(error) if !error.is_retryable() => Ok(failed(name, &error.to_string())),
            Err(error) => Err(CheckError::Failed(error.to_string())),
        }
    }

    /// Makes the twins in an instance that sees nothing of the work. A run that pinned an earlier plugin has none.
    async fn twins(&self, part: &PreparedPlugin, name: &str, source: &str) -> Result<Vec<Twin>, CheckError> {
        let grants = Grants { table: PYTHON_CHECKS.into(), ..Grants::default() };
        let asked = PythonCall { function: "judge", name, source, grants, console: None };
        let why = match self.ask_python(part, asked).await {
            Ok(Ok(output)) => match serde_json::from_str::<Audit>(&output.output) {
                Ok(audit) => return Ok(audit.twins),
                Err(error) => error.to_string(),
            },
            Ok(Err(ToolError::UnknownFunction(_))) => return Ok(Vec::new()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        Err(CheckError::Failed(format!("the plugin `python` made no twins of it: {why}")))
    }

    async fn ask_python(&self, part: &PreparedPlugin, asked: PythonCall<'_>) -> PythonAnswer {
        let PythonCall { function, name, source, grants, console } = asked;
        let arguments = serde_json::json!({ "source": source }).to_string();
        let call = ToolCall { tool: "python".into(), function: function.into(), arguments };
        let setup = InvocationSetup { console, ..self.plugin_set.setup_tool(part, &self.caller, grants) };
        let attempt = ToolAttempt { key: name, number: 1, settings: &part.settings };
        part.plugin.call_tool(setup, &self.cancel, &call, attempt).await.result
    }

    async fn native(&self, name: &str, native: &str) -> Result<CheckReport, CheckError> {
        let Some(check) = self.config.checks.get(native) else {
            return Err(CheckError::Denied(Denial {
                reason: format!("there is no native check `{native}`"),
                fix: format!("add to longhaul.toml: [checks] {native} = [\"program\", \"argument\"]"),
            }));
        };
        let ran = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(CheckError::Failed("cancelled".into())),
            ran = self.native.run(name, check) => ran,
        };
        ran.map_err(not_run)
    }
}

/// A check that did not run for lack of resources can run later.
fn not_run(error: NativeError) -> CheckError {
    let reason = error.to_string();
    if error.is_full_disk() {
        return CheckError::Unavailable(Outage { reason, retry_after_ms: None });
    }
    CheckError::Failed(reason)
}

/// The check sees the copy under the name by which it sees the work.
fn grants_of(part: &PreparedPlugin, copy: &ExactCopy) -> Grants {
    let mut grants = part.grants.clone();
    for directory in &mut grants.directories {
        directory.host = copy.dir();
    }
    grants
}

/// The result of a check that ran apart, given how the work ended.
fn decided(name: &str, output: &ToolOutput, served: PythonAnswer) -> Result<ApartOutcome, CheckError> {
    let ApartCheckRun { ran, beside, gone } = read(&output.output)?;
    if gone {
        return ended(name, served);
    }
    Ok(match beside {
        Some(why) => ApartOutcome::Undecided(why),
        None => ApartOutcome::Decided(reported(name, ran, output.truncated)),
    })
}

/// The work ended before its check ended.
fn ended(name: &str, served: PythonAnswer) -> Result<ApartOutcome, CheckError> {
    let why = match served {
        Err(error) if error.is_retryable() => return Err(CheckError::Failed(error.to_string())),
        // The time that the work waits for the check, and each of its answers, counts towards the other limits.
        Err(CallError::Limit { ref hit, .. }) if !LIMITS_OF_COMPUTING.contains(&hit.name.as_str()) => {
            return Ok(ApartOutcome::Undecided(format!("the work reached `{}` while it answered", hit.name)));
        }
        Err(error) => error.to_string(),
        Ok(Ok(_)) => "the work ended the check before it was through".to_owned(),
        Ok(Err(error)) => error.to_string(),
    };
    Ok(ApartOutcome::Decided(failed(name, &why)))
}

/// Limits that only the work's own computing can reach.
const LIMITS_OF_COMPUTING: [&str; 4] = ["fuel_max", "cpu_ms_max", "memory_bytes_max", "stack_bytes_max"];

fn read<T: serde::de::DeserializeOwned>(output: &str) -> Result<T, CheckError> {
    serde_json::from_str(output).map_err(|error| CheckError::Failed(format!("the plugin `python` answered {error}")))
}

fn report(name: &str, output: &str, truncated: bool) -> Result<CheckReport, CheckError> {
    Ok(reported(name, read(output)?, truncated))
}

fn reported(name: &str, ran: CheckRun, truncated: bool) -> CheckReport {
    CheckReport {
        name: name.to_owned(),
        passed: ran.exit_code == 0,
        exit_code: ran.exit_code,
        stdout: ran.stdout,
        stderr: ran.stderr,
        truncated,
        sandbox: None,
        duration_ms: 0,
    }
}

fn failed(name: &str, why: &str) -> CheckReport {
    CheckReport {
        name: name.to_owned(),
        passed: false,
        exit_code: -1,
        stdout: String::new(),
        stderr: why.to_owned(),
        truncated: false,
        sandbox: None,
        duration_ms: 0,
    }
}

fn pretended(line: usize) -> String {
    format!(
        "it passes too where its line {line} is changed so that it must fail: the work decides how the check ends, and not \
         what it computes. Take out of the work what ends the interpreter, compares equal to everything or reaches into \
         the check"
    )
}

/// The outcome of a check of `spec` that ran before any work. It distinguishes a failing check from one that can never
/// pass here: its own source does not parse, or it imports a module that nothing provides.
pub fn trial(report: &CheckReport, spec: &FeatureSpec) -> TrialOutcome {
    if report.passed {
        return TrialOutcome::Passes;
    }
    let said = report.stderr.trim();
    let last = said.lines().last().unwrap_or_default().trim();
    let is_its_own = said.rsplit_once("File \"").is_some_and(|(_, place)| place.starts_with(CHECK_FILE));
    let is_unreadable = ["SyntaxError:", "IndentationError:", "TabError:"].iter().any(|kind| last.starts_with(kind));
    if is_its_own && is_unreadable {
        return TrialOutcome::CannotLoad(last.to_owned());
    }
    let missing = last.split_once("No module named '").and_then(|(_, rest)| rest.split(['.', '\'']).next());
    match missing.filter(|module| !is_named(module, spec)) {
        Some(module) => TrialOutcome::CannotLoad(format!(
            "it needs the module `{module}`, which neither the sandbox nor the repository has and the feature does not \
             name; use the standard library, `pytest` and modules of the repository"
        )),
        None => TrialOutcome::Fails,
    }
}

/// The name of a check's source in tracebacks.
const CHECK_FILE: &str = "<python>\"";

/// True when the feature names a module, which it may then add.
fn is_named(module: &str, spec: &FeatureSpec) -> bool {
    let criteria = spec.criteria.iter().map(|criterion| criterion.text.as_str());
    [spec.title.as_str(), spec.instruction.as_str()].into_iter().chain(criteria).any(|text| text.contains(module))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::LimitHit;
    use longhaul_core::work::Criterion;

    fn said(apart: Result<ApartOutcome, CheckError>) -> String {
        match apart {
            Ok(ApartOutcome::Decided(report)) => format!("passed {}: {}", report.passed, report.stderr),
            Ok(ApartOutcome::Undecided(why)) => format!("undecided: {why}"),
            Err(error) => format!("error: {error}"),
        }
    }

    fn answered(output: &str) -> ToolOutput {
        ToolOutput { output: output.into(), truncated: false }
    }

    #[test]
    fn a_check_apart_decides_unless_it_says_that_it_cannot() {
        let ran = |code: i32, rest: &str| {
            let output = format!(r#"{{"stdout": "", "stderr": "said", "exit_code": {code}, "passed": true, {rest}}}"#);
            said(decided("c", &answered(&output), Ok(Ok(answered("{}")))))
        };
        assert_eq!(ran(0, r#""beside": null, "gone": false"#), "passed true: said");
        assert_eq!(ran(1, r#""beside": null, "gone": false"#), "passed false: said");
        assert_eq!(ran(0, r#""beside": "it asks", "gone": false"#), "undecided: it asks");
        let ended = "passed false: the work ended the check before it was through";
        assert_eq!(ran(0, r#""beside": null, "gone": true"#), ended);
        assert_eq!(ran(0, r#""beside": "it asks", "gone": true"#), ended);
        assert!(ran(0, r#""beside": null"#).starts_with("error: the plugin `python` answered"));
    }

    #[test]
    fn a_work_that_ends_before_its_check_fails_it_unless_it_was_the_pipe_that_took_too_much() {
        let limit = |name: &str| {
            let hit = LimitHit::new(name, 2, 1);
            Err(CallError::Limit { plugin: "python".into(), export: "tool.call", hit })
        };
        let fuel = said(ended("c", limit("fuel_max")));
        assert!(fuel.starts_with("passed false: ") && fuel.contains("fuel_max"), "{fuel}");
        let calls = said(ended("c", limit("host_calls_max")));
        assert_eq!(calls, "undecided: the work reached `host_calls_max` while it answered");
        assert_eq!(said(ended("c", Err(CallError::Cancelled))), "error: cancelled");
    }

    #[track_caller]
    fn check(stderr: &str, expected: &str) {
        let report = CheckReport { stderr: stderr.into(), ..failed("c", "") };
        let spec = FeatureSpec {
            id: "a".into(),
            title: "Totals".into(),
            instruction: "Write `total` in totals.py.".into(),
            category: "functional".into(),
            priority: 5,
            agent: None,
            criteria: vec![Criterion { id: "c".into(), text: "it sums".into(), check: None }],
            checks: vec![],
            depends_on: vec![],
        };
        let said = match trial(&report, &spec) {
            TrialOutcome::CannotLoad(why) => why,
            outcome => format!("{outcome:?}"),
        };
        assert!(said.starts_with(expected), "{said}");
    }

    #[test]
    fn a_check_that_can_never_pass_is_told_from_one_that_fails() {
        check("AssertionError: assert 1 == 2", "Fails");
        check("  File \"<python>\", line 1\n    def (:\nSyntaxError: invalid syntax\n", "SyntaxError: invalid syntax");
        // The work may contain unparsable files, and the feature may be to repair them.
        check("  File \"/work/shop.py\", line 1\n    def (:\nSyntaxError: invalid syntax\n", "Fails");
        check("ModuleNotFoundError: No module named 'totals'", "Fails");
        check(
            "1 of 1 tests failed: test_a: ModuleNotFoundError: No module named 'numpy.linalg'",
            "it needs the module `numpy`",
        );
    }
}
