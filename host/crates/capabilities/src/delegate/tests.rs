//! The trust of text that goes to a sub-agent and comes back from it.

use super::*;
use crate::poll::tests::{START_MS, guest};
use longhaul_bindings::imports::delegate::Host as _;
use longhaul_bindings::types::Task as BoundTask;
use longhaul_core::grant::Grants;
use longhaul_core::store::Batch;
use std::sync::Mutex;

/// A sub-agent that has read text of a given trust.
struct FakeAgent {
    heard: Trust,
    told: Mutex<Vec<Trust>>,
}

#[async_trait::async_trait]
impl Delegate for FakeAgent {
    async fn run(&self, _: InvocationId, _: &str, _: Task, told: Trust) -> Result<Delegated, Interrupted> {
        self.told.lock().unwrap().push(told);
        let (output, summary) = ("{}".into(), "looked".into());
        let answer = Ok(Outcome { output, summary, confidence: None, unknowns: Vec::new() });
        Ok(Delegated { answer, used: WorkUsage::default(), heard: self.heard, closing: Batch::new() })
    }
}

fn assignment() -> Assignment {
    let task = BoundTask {
        id: "t".into(),
        instruction: "look".into(),
        context: "{}".into(),
        settings: "{}".into(),
        criteria: Vec::new(),
        feedback: Vec::new(),
        round: 1,
    };
    Assignment { agent: "reader".into(), task }
}

/// A sub-agent used to start with full trust, whatever its caller had read, and its caller used to get a tool's trust.
#[tokio::test]
async fn a_sub_agent_is_trusted_no_more_than_its_caller_and_its_caller_no_more_than_it() {
    let reader = Arc::new(FakeAgent { heard: Trust::Web, told: Mutex::default() });
    let (mut ctx, journal) = guest(Vec::new(), 100, START_MS);
    ctx.grants = Grants { agents: vec!["reader".into()], ..Grants::default() };
    ctx.services.delegate = Arc::clone(&reader) as Arc<dyn Delegate>;
    for heard in [Trust::OwnWords, Trust::Web] {
        assert_eq!(ctx.heard, heard);
        ctx.run(assignment()).await.expect("no trap").expect("an outcome");
    }
    assert_eq!(*reader.told.lock().unwrap(), [Trust::OwnWords, Trust::Web]);
    assert!(ctx.untrusted.iter().eq(["the agent `reader`"]), "{:?}", ctx.untrusted);

    // Also when it answered in an attempt that a kill ended; a journal of an earlier version does not record it.
    let mut recorded = journal.book.lock().unwrap().entries.clone();
    for (name, heard) in [("heard", Trust::Web), ("before", Trust::Unknown)] {
        for entry in &mut recorded {
            let (answer, _) = entry.answered.as_mut().expect("answered");
            *answer = answer.replace("\"heard\"", &format!("{name:?}"));
        }
        let (mut ctx, _) = guest(recorded.clone(), 100, START_MS);
        ctx.run(assignment()).await.expect("no trap").expect("an outcome");
        assert_eq!(ctx.heard, heard, "{name}");
    }
}
