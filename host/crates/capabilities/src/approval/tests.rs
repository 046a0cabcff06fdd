//! A call that the other run of a fork made, where the journal leaves no place for a decision about it.

use super::*;
use crate::poll::tests::{Entry, Fake, START_MS, guest};
use longhaul_bindings::imports::tools::Host as _;
use longhaul_bindings::tool_types::ToolCall as BoundCall;
use longhaul_core::approval::Approvals;
use longhaul_core::grant::Grants;
use longhaul_core::store::Batch;
use longhaul_core::tool::{Tools, Verification};
use std::sync::Mutex;

const LIST: &str = "tools.list";
const CALL: &str = "tools.call";

/// A tool and its function: one that reads, and one that acts.
const LOOK: (&str, &str) = ("web", "look");
const POST: (&str, &str) = ("mail", "post");

/// Both tools.
#[derive(Default)]
struct Desk {
    made: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl Tools for Desk {
    async fn list(&self) -> Result<Vec<ToolInfo>, ToolError> {
        Ok(vec![info(LOOK, EffectClass::ReadOnly), info(POST, EffectClass::Acts)])
    }

    async fn prepare(&self, _: &ToolCall, _: &str, _: u32) -> Result<String, ToolError> {
        unreachable!("neither is verifiable")
    }

    async fn verify(&self, _: &ToolCall, _: &str, _: &str, _: u32) -> Result<Verification, ToolError> {
        unreachable!("neither is verifiable")
    }

    async fn call(&self, call: &ToolCall, _: &str, _: u32) -> Result<ToolOutput, ToolError> {
        self.made.lock().unwrap().push(call.function.clone());
        Ok(ToolOutput { output: format!("{:?}", call.function), truncated: false })
    }
}

fn info((tool, function): (&str, &str), effect: EffectClass) -> ToolInfo {
    let function = FunctionInfo {
        name: function.to_owned(),
        description: String::new(),
        parameters: "{}".to_owned(),
        effect,
        claim: None,
    };
    ToolInfo { id: tool.to_owned(), description: String::new(), functions: vec![function] }
}

/// Lets every call pass, except that in a fork a person is asked about what acts, and allows it.
#[derive(Default)]
struct Gate {
    is_fork: bool,
    decided: Mutex<Vec<String>>,
    left: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl Approvals for Gate {
    fn is_free(&self, intent: &Intent) -> bool {
        !self.is_repeated(intent)
    }

    fn is_repeated(&self, intent: &Intent) -> bool {
        self.is_fork && intent.effect == EffectClass::Acts
    }

    fn leaves(&self, call: &ToolCall) {
        self.left.lock().unwrap().push(call.function.clone());
    }

    async fn decide(&self, intent: &Intent) -> Result<(CallDecision, Batch), Undecided> {
        self.decided.lock().unwrap().push(intent.call.function.clone());
        Ok((CallDecision::Allowed("a person said so".to_owned()), Batch::new()))
    }

    fn withdraw(&self, _: &Intent) -> Batch {
        Batch::new()
    }
}

/// An attempt of a guest that calls the tools.
struct Attempt {
    ctx: Ctx,
    journal: Arc<Fake>,
    desk: Arc<Desk>,
    gate: Arc<Gate>,
}

impl Attempt {
    fn over(entries: Vec<Entry>, is_fork: bool) -> Self {
        let (mut ctx, journal) = guest(entries, 100, START_MS);
        let desk = Arc::new(Desk::default());
        let gate = Arc::new(Gate { is_fork, ..Gate::default() });
        ctx.grants = Grants { tools: vec![LOOK.0.to_owned(), POST.0.to_owned()], ..Grants::default() };
        ctx.services.tools = Arc::clone(&desk) as Arc<dyn Tools>;
        ctx.services.approvals = Arc::clone(&gate) as Arc<dyn Approvals>;
        Self { ctx, journal, desk, gate }
    }

    async fn call(&mut self, list: &[(&str, &str)]) -> Vec<Result<ToolOutput, ToolError>> {
        let bound = |(tool, function): &(&str, &str)| BoundCall {
            tool: (*tool).to_owned(),
            function: (*function).to_owned(),
            arguments: "{}".to_owned(),
        };
        let answers = self.ctx.call_many(list.iter().map(bound).collect()).await.expect("no trap");
        answers.into_iter().map(|answer| answer.map(ToolOutput::from).map_err(ToolError::from)).collect()
    }

    fn made(&self) -> Vec<String> {
        self.desk.made.lock().unwrap().clone()
    }

    fn decided(&self) -> Vec<String> {
        self.gate.decided.lock().unwrap().clone()
    }

    fn entries(&self) -> Vec<Entry> {
        self.journal.book.lock().unwrap().entries.clone()
    }

    fn names(&self) -> Vec<&'static str> {
        self.entries().iter().map(|entry| entry.name).collect()
    }
}

/// The first entries of a run that made both calls in one list.
async fn first(entries: usize) -> Vec<Entry> {
    let mut run = Attempt::over(Vec::new(), false);
    run.call(&[LOOK, POST]).await;
    assert_eq!(run.names(), [LIST, CALL, CALL]);
    assert_eq!(run.made(), ["look", "post"]);
    let mut held = run.entries();
    held.truncate(entries);
    held
}

#[tokio::test]
async fn in_a_list_that_was_begun_a_repeated_call_is_refused_and_decided_about_when_it_is_made_again() {
    let mut fork = Attempt::over(first(2).await, true);
    let answers = fork.call(&[LOOK, POST]).await;
    let [Ok(_), Err(ToolError::Denied(denial))] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(denial.fix, "make the call again");
    assert!(denial.reason.contains("`mail.post`"), "{denial}");
    assert!(fork.made().is_empty() && fork.decided().is_empty(), "{:?}", fork.names());

    let again = fork.call(&[POST]).await;
    assert!(matches!(&again[..], [Ok(_)]), "{again:?}");
    assert_eq!((fork.made(), fork.decided()), (vec!["post".to_owned()], vec!["post".to_owned()]));
    assert_eq!(fork.names(), [LIST, CALL, ENTRY, CALL, ENTRY, CALL]);

    // The journal decides, whatever is known of the other run by then.
    let entries = fork.entries();
    for is_fork in [true, false] {
        let mut replay = Attempt::over(entries.clone(), is_fork);
        assert_eq!(replay.call(&[LOOK, POST]).await, answers);
        assert_eq!(replay.call(&[POST]).await, again);
        assert!(replay.made().is_empty() && replay.decided().is_empty(), "{:?}", replay.names());
        assert_eq!(replay.entries(), entries);
    }
}

#[tokio::test]
async fn in_a_list_that_is_new_a_repeated_call_is_decided_about_in_front_of_it() {
    let mut fork = Attempt::over(first(1).await, true);
    let answers = fork.call(&[LOOK, POST]).await;
    assert!(matches!(&answers[..], [Ok(_), Ok(_)]), "{answers:?}");
    assert_eq!((fork.made().len(), fork.decided()), (2, vec!["post".to_owned()]));
    assert_eq!(fork.names(), [LIST, ENTRY, CALL, CALL]);
}

#[tokio::test]
async fn without_a_fork_a_list_that_was_begun_goes_on() {
    let mut resumed = Attempt::over(first(2).await, false);
    let answers = resumed.call(&[LOOK, POST]).await;
    assert!(matches!(&answers[..], [Ok(_), Ok(_)]), "{answers:?}");
    assert_eq!(resumed.made(), ["post"]);
    assert!(resumed.decided().is_empty());
    assert_eq!(resumed.names(), [LIST, CALL, CALL]);
}

/// A call that was not made approves no destination, and its tool was not heard: not in a replay either.
#[tokio::test]
async fn a_refused_call_leaves_no_trace_in_an_attempt_that_is_made_again() {
    let mut fork = Attempt::over(first(2).await, true);
    fork.call(&[LOOK, POST]).await;
    let mut replay = Attempt::over(fork.entries(), true);
    replay.call(&[LOOK, POST]).await;
    for attempt in [&fork, &replay] {
        assert_eq!(*attempt.gate.left.lock().unwrap(), ["look"]);
        assert!(attempt.ctx.untrusted.iter().eq(["web"]), "{:?}", attempt.ctx.untrusted);
    }
}
