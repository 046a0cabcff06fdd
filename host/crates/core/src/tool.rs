//! Tools, checks and sub-agents, as a capability reaches them.

use crate::event::WorkUsage;
use crate::journal::{EffectClass, EffectQuestion, JournalError};
use crate::memory::Trust;
use crate::store::Batch;
use crate::work::{CheckReport, Outcome, Task};
use crate::{Denial, Digest, InvocationId, LimitHit, Outage};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

mod line;

pub use line::{call_line, line_changes, outcome_line};

/// A function of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionInfo {
    /// Unique within its tool.
    pub name: String,
    /// What it does, for a model.
    pub description: String,
    /// JSON Schema (2020-12) of its arguments.
    pub parameters: String,
    /// The class of its effect, after the host looked at the claim.
    pub effect: EffectClass,
    /// What the tool says of itself, where that is another class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<EffectClass>,
}

impl FunctionInfo {
    /// A function whose arguments are an object of `properties`, and of nothing else.
    #[must_use]
    pub fn of(name: &str, description: &str, effect: EffectClass, properties: Value, required: &[&str]) -> Self {
        let parameters = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        let (name, description) = (name.to_owned(), description.to_owned());
        Self { name, description, parameters: parameters.to_string(), effect, claim: None }
    }

    /// Whether it only reads, by its own words.
    #[must_use]
    pub fn says_it_reads(&self) -> bool {
        self.claim.unwrap_or(self.effect) == EffectClass::ReadOnly
    }
}

/// A tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolInfo {
    /// The name under which it was granted.
    pub id: String,
    /// What it is for, for a model.
    pub description: String,
    /// What it can do.
    pub functions: Vec<FunctionInfo>,
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The tool.
    pub tool: String,
    /// One of its functions.
    pub function: String,
    /// JSON.
    pub arguments: String,
}

impl ToolCall {
    /// What a person reads in the journal: the function and the beginning of its arguments.
    #[must_use]
    pub fn summary(&self) -> String {
        crate::text::truncate(&format!("{}.{} {}", self.tool, self.function, self.arguments), 160)
    }

    /// Where its arguments say that it goes: `https://example.com`, for each text that begins like an address, and for
    /// each in a field that is named so. What is no address there is kept as it is: it is like no other.
    #[must_use]
    pub fn origins(&self) -> Vec<String> {
        let mut found = BTreeSet::new();
        collect_origins(&serde_json::from_str(&self.arguments).unwrap_or_default(), false, &mut found);
        bounded(found)
    }

    /// The arguments, read strictly. None at all are an empty object.
    ///
    /// # Errors
    /// [`ToolError::InvalidArguments`] with the place.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        let arguments = if self.arguments.trim().is_empty() { "{}" } else { &self.arguments };
        serde_json::from_str(arguments).map_err(|error| ToolError::InvalidArguments(error.to_string()))
    }
}

/// Ends of the names of fields that hold an address: letters in lower case, without the `s` of several.
const ADDRESS_FIELDS: [&str; 14] = [
    "url", "uri", "href", "link", "address", "addresse", "endpoint", "host", "hostname", "domain", "server", "webhook",
    "origin", "target",
];

/// Schemes that readers of addresses take without slashes, or with slashes that lean the other way.
const LENIENT_SCHEMES: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];

/// Characters in which a scheme and its slashes are looked for; the longest registered scheme has 36.
const SCHEME_CHARS_MAX: usize = 64;

/// Origins of one call that are told apart, and bytes of one that are shown. What is over is told by its digest, so that
/// no two lists and no two addresses look alike.
const ORIGINS_MAX: usize = 32;
const ORIGIN_BYTES_MAX: usize = 200;

/// Arguments come from a reader that allows 128 levels.
fn collect_origins(value: &Value, is_address: bool, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.trim().is_empty() => {}
        Value::String(text) if is_address || begins_like_address(text) => found.extend([origin(text)]),
        Value::Object(fields) => {
            for (name, value) in fields {
                if begins_like_address(name) {
                    found.insert(origin(name));
                }
                collect_origins(value, is_address_field(name), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_origins(item, is_address, found)),
        _ => {}
    }
}

fn is_address_field(name: &str) -> bool {
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let one = letters.strip_suffix('s').unwrap_or(&letters);
    ADDRESS_FIELDS.iter().any(|field| one.ends_with(field) || letters.ends_with(field))
}

/// Whether some reader takes a text for an address. Browsers pass over spaces in front, and over tabs and line breaks
/// everywhere.
fn begins_like_address(text: &str) -> bool {
    let seen = text.chars().filter(|c| !c.is_control()).skip_while(|c| c.is_whitespace());
    let start: String = seen.take(SCHEME_CHARS_MAX).collect();
    let Some((scheme, rest)) = start.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let is_lenient = LENIENT_SCHEMES.iter().any(|one| scheme.eq_ignore_ascii_case(one));
    is_scheme && (rest.starts_with("//") || is_lenient)
}

/// The scheme and authority of an address, without a user.
fn origin(text: &str) -> String {
    let origin = match text.trim().split_once("://") {
        Some((scheme, rest)) => {
            let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}").to_ascii_lowercase()
        }
        None => text.to_owned(),
    };
    if origin.len() <= ORIGIN_BYTES_MAX {
        return origin;
    }
    format!("{} ({})", crate::text::truncate(&origin, ORIGIN_BYTES_MAX), Digest::of(origin.as_bytes()).short())
}

fn bounded(found: BTreeSet<String>) -> Vec<String> {
    let mut kept: Vec<String> = found.into_iter().collect();
    if kept.len() > ORIGINS_MAX {
        let rest = kept.split_off(ORIGINS_MAX);
        let parts: Vec<&[u8]> = rest.iter().map(String::as_bytes).collect();
        kept.push(format!("{} more addresses ({})", rest.len(), Digest::of_parts(&parts).short()));
    }
    kept
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// JSON.
    pub output: String,
    /// Whether it was cut at a limit.
    pub truncated: bool,
}

/// Why a tool did not answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum ToolError {
    /// No such function or tool.
    #[error("there is no function `{0}`")]
    UnknownFunction(String),
    /// The arguments are not what the schema says.
    #[error("the arguments are invalid: {0}")]
    InvalidArguments(String),
    /// Not allowed.
    #[error(transparent)]
    Denied(Denial),
    /// A cap was reached.
    #[error(transparent)]
    Limit(LimitHit),
    /// Not there now.
    #[error(transparent)]
    Unavailable(Outage),
    /// Given up after that many milliseconds.
    #[error("given up after {0} ms")]
    TimedOut(u32),
    /// It left and no answer came, so nobody knows what it did. Where that matters a person is asked, and the caller sees
    /// no answer until then.
    #[error("{0}, and what the call did is unknown")]
    OutcomeUnknown(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// What a tool says about a call that was cut off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verification {
    /// It happened, and this is what it would have answered.
    Happened(ToolOutput),
    /// It did not.
    DidNotHappen,
    /// Cannot be told.
    Unknown(String),
}

/// The tools of an invocation. Whether one was granted, the capability has checked before.
#[async_trait::async_trait]
pub trait Tools: Send + Sync {
    /// What is there. The same during the whole run.
    ///
    /// # Errors
    /// When a tool cannot describe itself.
    async fn list(&self) -> Result<Vec<ToolInfo>, ToolError>;

    /// What `verify` will need. Has no effect.
    ///
    /// # Errors
    /// Every [`ToolError`].
    async fn prepare(&self, call: &ToolCall) -> Result<String, ToolError>;

    /// Whether a call that was cut off has happened.
    ///
    /// # Errors
    /// Every [`ToolError`].
    async fn verify(&self, call: &ToolCall, prepared: &str) -> Result<Verification, ToolError>;

    /// Does it. `key` is the same for every attempt of one call.
    ///
    /// # Errors
    /// Every [`ToolError`].
    async fn call(&self, call: &ToolCall, key: &str, attempt: u32) -> Result<ToolOutput, ToolError>;

    /// Whether what a tool answers may have come over the network: what an agent remembers after that is marked so.
    fn is_web(&self, _tool: &str) -> bool {
        true
    }
}

/// A tool that is the host's own code, or that speaks for a program beside the host. What it says of its effects is
/// believed.
#[async_trait::async_trait]
pub trait HostTool: Send + Sync {
    /// The tool under the name that it was granted by. The same during the whole run.
    ///
    /// # Errors
    /// When it cannot be known what the tool does: what it speaks for is not there.
    async fn info(&self, name: &str) -> Result<ToolInfo, ToolError>;

    /// What `verify` will need. Has no effect. Asked only of functions that are `verifiable`.
    ///
    /// # Errors
    /// Every [`ToolError`].
    async fn prepare(&self, _call: &ToolCall) -> Result<String, ToolError> {
        Ok(String::new())
    }

    /// Whether a call that was cut off has happened. Asked only of functions that are `verifiable`.
    ///
    /// # Errors
    /// Every [`ToolError`].
    async fn verify(&self, _call: &ToolCall, _prepared: &str) -> Result<Verification, ToolError> {
        Ok(Verification::Unknown("this tool cannot tell".to_owned()))
    }

    /// Why the call will be refused whoever approves of it, as far as that is known now: nobody is asked about it.
    fn refusal(&self, _call: &ToolCall) -> Option<ToolError> {
        None
    }

    /// Bytes of a call that it hands to a program or a server beside the host, which the ledger counts as sent. What
    /// it sends on the way of its own it tells the run's supervisor itself.
    fn hands_over(&self, _call: &ToolCall) -> u64 {
        0
    }

    /// The least sandbox level that has held its programs so far, where that is less than `full`: whoever works on the run
    /// is told, once.
    fn held_by(&self) -> Option<String> {
        None
    }

    /// Does it, for `caller`. `key` is the same for every attempt of one call.
    ///
    /// # Errors
    /// Every [`ToolError`].
    async fn call(
        &self,
        call: &ToolCall,
        caller: &InvocationId,
        key: &str,
        attempt: u32,
    ) -> Result<ToolOutput, ToolError>;
}

/// A pinned check, without what it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckInfo {
    /// Its name.
    pub name: String,
    /// What it runs, in one line.
    pub description: String,
    /// Whether it passed before the work began.
    pub vacuous: bool,
}

/// Why a check did not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum CheckError {
    /// No such check.
    #[error("there is no check `{0}`")]
    UnknownCheck(String),
    /// Not allowed.
    #[error(transparent)]
    Denied(Denial),
    /// A cap was reached.
    #[error(transparent)]
    Limit(LimitHit),
    /// What runs it is not there now.
    #[error(transparent)]
    Unavailable(Outage),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// The pinned checks of what is worked on or judged.
#[async_trait::async_trait]
pub trait Checks: Send + Sync {
    /// What is there.
    fn list(&self) -> Vec<CheckInfo>;

    /// Runs one, from its pinned copy, in a fresh sandbox, on the tree as it is.
    ///
    /// # Errors
    /// Every [`CheckError`]. A check that fails is a report and no error.
    async fn run(&self, name: &str) -> Result<CheckReport, CheckError>;
}

/// Why a sub-agent did not deliver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum DelegateError {
    /// No such agent.
    #[error("there is no agent `{0}`")]
    UnknownAgent(String),
    /// Not allowed.
    #[error(transparent)]
    Denied(Denial),
    /// A cap was reached.
    #[error(transparent)]
    Limit(LimitHit),
    /// Not there now.
    #[error(transparent)]
    Unavailable(Outage),
    /// The sub-agent needs an answer from a person.
    #[error("the sub-agent asks: {0}")]
    Blocked(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// What came of a delegation.
#[derive(Debug)]
pub struct Delegated {
    /// What the sub-agent delivered, or why it did not.
    pub answer: Result<Outcome, DelegateError>,
    /// What it used, its own sub-agents included.
    pub used: WorkUsage,
    /// The least trusted words that it heard, which may be in its answer.
    pub heard: Trust,
    /// The end of its journal, to be kept in one transaction with the caller's entry.
    pub closing: Batch,
}

impl Delegated {
    /// A delegation that no agent worked on.
    #[must_use]
    pub fn refused(error: DelegateError) -> Self {
        Self { answer: Err(error), used: WorkUsage::default(), heard: Trust::OwnWords, closing: Batch::new() }
    }
}

/// Why a sub-agent came to no end. Its caller comes to none either, and finds it where it was later.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Interrupted {
    /// A person is asked about an effect of the sub-agent.
    #[error("{}", .0.text)]
    Parked(EffectQuestion),
    /// A service that it cannot do without is not there.
    #[error(transparent)]
    Unavailable(Outage),
    /// Its journal says so.
    #[error(transparent)]
    Journal(JournalError),
    /// A cap of the run has no room for what it does next.
    #[error(transparent)]
    Budget(LimitHit),
    /// A provider refuses what it needs, until a person mends something.
    #[error(transparent)]
    Rejected(Denial),
    /// The run is paused or called off.
    #[error("cancelled")]
    Cancelled,
}

/// Sub-agents. Whether one was granted, and how many may be asked, the capability has checked before.
#[async_trait::async_trait]
pub trait Delegate: Send + Sync {
    /// Runs the agent on the task, as the invocation `child`, which continues where it was cut off. `told`: the least
    /// trusted words that its caller has heard, which may be in the task.
    ///
    /// # Errors
    /// Every [`Interrupted`]; the call is made again when the caller goes on.
    async fn run(&self, child: InvocationId, agent: &str, task: Task, told: Trust) -> Result<Delegated, Interrupted>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &Value, expected: &[&str]) {
        let call = ToolCall { tool: "web".into(), function: "get".into(), arguments: arguments.to_string() };
        assert_eq!(call.origins(), expected, "{arguments}");
    }

    #[test]
    fn a_call_goes_to_each_address_in_its_arguments_whatever_the_field_is_called() {
        let a = "https://a.example/x?y#z";
        for arguments in [
            json!({ "url": a }),
            json!({ "q": a }),
            json!({ "base_url": a }),
            json!({ "options": [{ "into": [a] }] }),
            json!({ "argv": ["curl", "-s", a] }),
            json!({ "q": " \n HTTPS://user:key@A.example" }),
            json!({ "https://a.example": {} }),
            json!({ "url": [a, a], "urls": a }),
        ] {
            check(&arguments, &["https://a.example"]);
        }
        check(&json!({ "q": "http:a.example" }), &["http:a.example"]);
        check(&json!({ "q": "ht\ttps:/a.example" }), &["ht\ttps:/a.example"]);
        check(&json!({ "q": "https:\\\\a.example" }), &["https:\\\\a.example"]);
        check(&json!({ "target": "a.example:443" }), &["a.example:443"]);
        check(&json!({ "hosts": ["a.example", "b.example"] }), &["a.example", "b.example"]);
        check(&json!({ "q": "see https://a.example", "note": "a: b", "n": 1, "path": "src/a.rs", "to": ["x"] }), &[]);
    }

    #[test]
    fn no_address_hides_behind_others_or_behind_a_long_one() {
        let many = |last: &str| {
            let mut urls: Vec<String> = (0..40).map(|n| format!("https://a{n:02}.example")).collect();
            urls.push(last.to_owned());
            ToolCall { tool: "t".into(), function: "f".into(), arguments: json!({ "urls": urls }).to_string() }
                .origins()
        };
        assert_eq!(many("https://z.example").len(), ORIGINS_MAX + 1);
        assert_ne!(many("https://z.example"), many("https://zz.example"));
        let long = |end: &str| {
            let url = format!("https://{}{end}", "a".repeat(300));
            ToolCall { tool: "t".into(), function: "f".into(), arguments: json!({ "url": url }).to_string() }.origins()
        };
        assert_ne!(long("a"), long("b"));
    }
}
