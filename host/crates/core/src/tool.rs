//! Tools, checks and sub-agents, as a capability calls them.

use crate::event::WorkUsage;
use crate::journal::{EffectClass, EffectQuestion, JournalError};
use crate::memory::Trust;
use crate::store::{Batch, StoreError};
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
    /// The name, unique within the tool.
    pub name: String,
    /// The purpose of the function, for a model.
    pub description: String,
    /// A JSON Schema (2020-12) of the arguments.
    pub parameters: String,
    /// The effect class that the host uses.
    pub effect: EffectClass,
    /// The effect class that the tool claims, where it is another one.
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

    /// True when it claims only to read.
    #[must_use]
    pub fn says_it_reads(&self) -> bool {
        self.claim.unwrap_or(self.effect) == EffectClass::ReadOnly
    }
}

/// The description of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolInfo {
    /// The name by which it was granted.
    pub id: String,
    /// The purpose of the tool, for a model.
    pub description: String,
    /// The functions of the tool.
    pub functions: Vec<FunctionInfo>,
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id of the tool.
    pub tool: String,
    /// The name of the function.
    pub function: String,
    /// The arguments, as JSON text.
    pub arguments: String,
}

impl ToolCall {
    /// The summary for a person in the journal: the function and the beginning of its arguments.
    #[must_use]
    pub fn summary(&self) -> String {
        crate::text::truncate(&format!("{}.{} {}", self.tool, self.function, self.arguments), 160)
    }

    /// The destinations in its arguments: `https://example.com`, for each text that begins like an address, and for
    /// each field that is named like one. An invalid address is kept literally: it equals no other.
    #[must_use]
    pub fn origins(&self) -> Vec<String> {
        let mut found = BTreeSet::new();
        collect_origins(&serde_json::from_str(&self.arguments).unwrap_or_default(), false, &mut found);
        bounded(found)
    }

    /// The arguments, parsed strictly. Missing ones are an empty object.
    ///
    /// # Errors
    /// [`ToolError::InvalidArguments`] with the place.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        let arguments = if self.arguments.trim().is_empty() { "{}" } else { &self.arguments };
        serde_json::from_str(arguments).map_err(|error| ToolError::InvalidArguments(error.to_string()))
    }
}

/// Endings of the names of fields with an address: in lower case, without the `s` of a plural.
const ADDRESS_FIELDS: [&str; 14] = [
    "url", "uri", "href", "link", "address", "addresse", "endpoint", "host", "hostname", "domain", "server", "webhook",
    "origin", "target",
];

/// Schemes that address parsers accept without slashes, or with backslashes.
const LENIENT_SCHEMES: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];

/// Characters in which a scheme and its slashes are searched; the longest registered scheme has 36.
const SCHEME_CHARS_MAX: usize = 64;

/// Distinct origins of one call, and bytes of one that are shown. Longer ones are replaced by a digest, so that no two
/// lists and no two addresses look alike.
const ORIGINS_MAX: usize = 32;
const ORIGIN_BYTES_MAX: usize = 200;

/// The parser of arguments allows 128 levels.
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

/// True when some parser takes a text for an address. Browsers skip leading spaces, and tabs and line breaks
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

/// One attempt at a call of a tool, as the caller knows it.
#[derive(Clone, Copy, Debug)]
pub struct ToolAttempt<'a> {
    /// The idempotency key: the same for every attempt of one call, different for every other call.
    pub key: &'a str,
    /// The number of the attempt, from 1.
    pub number: u32,
    /// The settings that the operator wrote for this tool, an object.
    pub settings: &'a Value,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// The output, as JSON text.
    pub output: String,
    /// True when the output was cut at a limit.
    pub truncated: bool,
}

/// The reason for which a tool call gave no result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum ToolError {
    /// There is no such function or tool. The text starts with the name; the reason may follow.
    #[error("there is no function `{0}`")]
    UnknownFunction(String),
    /// The arguments do not match the schema.
    #[error("the arguments are invalid: {0}")]
    InvalidArguments(String),
    /// The operator does not allow it.
    #[error(transparent)]
    Denied(Denial),
    /// A limit was reached.
    #[error(transparent)]
    Limit(LimitHit),
    /// The tool, or a service that it needs, is not available now.
    #[error(transparent)]
    Unavailable(Outage),
    /// The host gave the call up after this number of milliseconds.
    #[error("given up after {0} ms")]
    TimedOut(u32),
    /// The call was sent and no answer came, so its effect is unknown. For a function that acts a person is asked, and
    /// for a verifiable one its tool; the caller gets no answer until then.
    #[error("{0}, and what the call did is unknown")]
    OutcomeUnknown(String),
    /// Any other failure.
    #[error("{0}")]
    Failed(String),
}

/// A tool's finding about an interrupted call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verification {
    /// The call had its effect, with this result.
    Happened(ToolOutput),
    /// The call had no effect.
    DidNotHappen,
    /// The tool cannot tell. The text says why.
    Unknown(String),
}

/// Rows about an effect that are stored with its answer.
#[derive(Default)]
pub struct EffectRows {
    /// The rows.
    pub batch: Batch,
    /// Held until the rows are stored, so that none that were read earlier are stored later.
    pub held: Vec<Box<dyn Send>>,
}

/// The tools of an invocation. The capability has checked the grant before.
#[async_trait::async_trait]
pub trait Tools: Send + Sync {
    /// All tools. The same during the whole run.
    ///
    /// # Errors
    /// When a tool cannot describe itself.
    async fn list(&self) -> Result<Vec<ToolInfo>, ToolError>;

    /// Returns the facts by which `verify` can recognise the effect of the call. Has no effect. `key` is that of the
    /// call.
    ///
    /// # Errors
    /// Every [`ToolError`].
    async fn prepare(&self, call: &ToolCall, key: &str, attempt: u32) -> Result<String, ToolError>;

    /// Finds out if a call that was cut off has happened. `key` is that of the call.
    ///
    /// # Errors
    /// Every [`ToolError`].
    async fn verify(&self, call: &ToolCall, prepared: &str, key: &str, attempt: u32)
    -> Result<Verification, ToolError>;

    /// Executes the call. `key` is the same for every attempt of one call.
    ///
    /// # Errors
    /// Every [`ToolError`].
    async fn call(&self, call: &ToolCall, key: &str, attempt: u32) -> Result<ToolOutput, ToolError>;

    /// The rows that belong to the effect of a call of this class, which has ended: they are stored with its answer.
    ///
    /// # Errors
    /// When the store cannot be read, or is lost; then there is no answer.
    async fn settle(&self, _call: &ToolCall, _class: EffectClass) -> Result<EffectRows, StoreError> {
        Ok(EffectRows::default())
    }

    /// True when a tool's answers may come from the network: later memories of the agent are marked so.
    fn is_web(&self, _tool: &str) -> bool {
        true
    }
}

/// A tool that the host itself implements, or that represents a program beside the host. Its claims about effects are
/// trusted.
#[async_trait::async_trait]
pub trait HostTool: Send + Sync {
    /// The description under the name of its grant. The same during the whole run.
    ///
    /// # Errors
    /// When its functions are unknown, because its program is unavailable.
    async fn info(&self, name: &str) -> Result<ToolInfo, ToolError>;

    /// The note for `verify`. Has no effect. Called only for functions that are `verifiable`.
    ///
    /// # Errors
    /// Every [`ToolError`].
    async fn prepare(&self, _call: &ToolCall) -> Result<String, ToolError> {
        Ok(String::new())
    }

    /// Finds out if an interrupted call has happened. Called only for functions that are `verifiable`.
    ///
    /// # Errors
    /// Every [`ToolError`].
    async fn verify(&self, _call: &ToolCall, _prepared: &str) -> Result<Verification, ToolError> {
        Ok(Verification::Unknown("this tool cannot tell".to_owned()))
    }

    /// The reason why the call will be refused even with an approval, as far as that is known now: no person is asked
    /// about it.
    fn refusal(&self, _call: &ToolCall) -> Option<ToolError> {
        None
    }

    /// Bytes of a call that it passes to a program or a server beside the host, which the ledger counts as sent. Its
    /// own network traffic it reports to the run's supervisor itself.
    fn hands_over(&self, _call: &ToolCall) -> u64 {
        0
    }

    /// The lowest sandbox level of its programs so far, if that is below `full`: the run reports it once.
    fn held_by(&self) -> Option<String> {
        None
    }

    /// Executes the call, for `caller`. `key` is the same for every attempt of one call.
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

/// A pinned check, without its command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckInfo {
    /// The name of the check.
    pub name: String,
    /// A description of the command or the source, in one line.
    pub description: String,
    /// True when it passed before the work began.
    pub vacuous: bool,
}

/// The reason why a check did not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum CheckError {
    /// There is no check of that name.
    #[error("there is no check `{0}`")]
    UnknownCheck(String),
    /// The operator does not allow it.
    #[error(transparent)]
    Denied(Denial),
    /// A cap was reached.
    #[error(transparent)]
    Limit(LimitHit),
    /// A resource that running the check needs is not available now.
    #[error(transparent)]
    Unavailable(Outage),
    /// Any other failure.
    #[error("{0}")]
    Failed(String),
}

/// The pinned checks of the feature at work, or under judgement.
#[async_trait::async_trait]
pub trait Checks: Send + Sync {
    /// All checks of the work at hand.
    fn list(&self) -> Vec<CheckInfo>;

    /// Runs one, from its pinned copy, in a fresh sandbox, on the tree as it stands.
    ///
    /// # Errors
    /// Every [`CheckError`]. A check that fails is a report and no error.
    async fn run(&self, name: &str) -> Result<CheckReport, CheckError>;
}

/// The reason why a sub-agent failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum DelegateError {
    /// There is no agent of that name.
    #[error("there is no agent `{0}`")]
    UnknownAgent(String),
    /// The operator does not allow it.
    #[error(transparent)]
    Denied(Denial),
    /// A cap was reached.
    #[error(transparent)]
    Limit(LimitHit),
    /// The agent reports that a service is not available now.
    #[error(transparent)]
    Unavailable(Outage),
    /// The sub-agent needs an answer from a person.
    #[error("the sub-agent asks: {0}")]
    Blocked(String),
    /// Any other failure.
    #[error("{0}")]
    Failed(String),
}

/// The result of a delegation.
#[derive(Debug)]
pub struct Delegated {
    /// The sub-agent's outcome, or its error.
    pub answer: Result<Outcome, DelegateError>,
    /// The resources that the agent used, with those of its own delegations.
    pub used: WorkUsage,
    /// The lowest trust of text that it read, which may be in its answer.
    pub heard: Trust,
    /// The end of its journal, to be stored in one transaction with the caller's entry.
    pub closing: Batch,
}

impl Delegated {
    /// A delegation that no agent worked on.
    #[must_use]
    pub fn refused(error: DelegateError) -> Self {
        Self { answer: Err(error), used: WorkUsage::default(), heard: Trust::OwnWords, closing: Batch::new() }
    }
}

/// The reason why a sub-agent was interrupted. Its caller is interrupted too, and later finds it in its present state.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Interrupted {
    /// A person is asked about an effect of the sub-agent.
    #[error("{}", .0.text)]
    Parked(EffectQuestion),
    /// A required service is unavailable.
    #[error(transparent)]
    Unavailable(Outage),
    /// The journal ended the invocation.
    #[error(transparent)]
    Journal(JournalError),
    /// A cap of the run leaves no budget for its next effect.
    #[error(transparent)]
    Budget(LimitHit),
    /// A provider refuses a request until a person corrects something.
    #[error(transparent)]
    Rejected(Denial),
    /// The run is paused or cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// Sub-agents. The capability has checked the grant and the number before.
#[async_trait::async_trait]
pub trait Delegate: Send + Sync {
    /// Runs the agent on the task, as the invocation `child`, which continues where it was interrupted. `told`: the
    /// lowest trust of text that its caller has read, which may be in the task.
    ///
    /// # Errors
    /// Every [`Interrupted`]; the call is made again when the caller continues.
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
