//! The answer to a question about an effect that a kill left in flight, as a person would find it: by looking at the
//! receiver.

use crate::observation::{EntryKey, RunObservation};
use crate::points::{PointOccurrence, counts};
use crate::receivers::{ReceivedRequest, counted};
use crate::reference::{Reference, TOOL_CALL};
use longhaul_core::journal::{EffectQuestion, Resolution};
use longhaul_core::tool::{ToolError, ToolOutput};
use std::collections::BTreeSet;

/// The point that a process reaches when a tool has returned.
const TOOL_RETURNED: &str = "tool.after-call";

impl Reference {
    /// The answer to the question with an id; none when no entry in flight of the run asks it, or the runs without a
    /// kill have no such entry.
    ///
    /// A call that sent requests has happened when the receiver has got one more of each than the answered calls sent.
    /// A call that sent none has happened when a tool has returned more often than calls were answered: `log` lists the
    /// points that the killed process reached.
    #[must_use]
    pub fn resolution(
        &self,
        id: &str,
        parked: &RunObservation,
        received: &[ReceivedRequest],
        log: &[PointOccurrence],
    ) -> Option<Resolution> {
        let mut open = parked.entries().filter(|(_, _, entry)| entry.answered.is_none());
        let (key, _, _) = open.find(|(key, invocation, entry)| {
            let (invocation, text) = ((*invocation).clone(), String::new());
            let (entry, attempt) = (key.entry, entry.asked.attempt);
            EffectQuestion { invocation, entry, text, approval: None, attempt }.id() == id
        })?;
        let expected = self.entries.get(&key)?;
        let happened = match expected.requests.is_empty() {
            true => has_returned(parked, log),
            false => self.was_received(&key, parked, received),
        };
        if !happened {
            return Some(Resolution::DidNotHappen);
        }
        // Only a result can be told as one. A call that failed is made again.
        let answer = serde_json::from_str::<Result<ToolOutput, ToolError>>(&expected.answer).ok()?;
        Some(answer.map_or(Resolution::DidNotHappen, |output| Resolution::Happened(output.output)))
    }

    fn was_received(&self, key: &EntryKey, parked: &RunObservation, received: &[ReceivedRequest]) -> bool {
        let answered: BTreeSet<EntryKey> =
            parked.entries().filter(|(_, _, entry)| entry.answered.is_some()).map(|(key, _, _)| key).collect();
        let counts = counted(received, self.likeness);
        let Some(expected) = self.entries.get(key) else { return false };
        expected.requests.iter().all(|told| {
            let before = self.entries.iter().filter(|(other, _)| answered.contains(other));
            let sent = before.flat_map(|(_, entry)| &entry.requests).filter(|other| *other == told).count();
            counts.get(told).is_some_and(|count| usize::try_from(*count).is_ok_and(|count| count > sent))
        })
    }
}

fn has_returned(parked: &RunObservation, log: &[PointOccurrence]) -> bool {
    let returned = counts(log).get(TOOL_RETURNED).copied().unwrap_or_default();
    let calls = parked.entries().filter(|(_, _, entry)| entry.asked.name == TOOL_CALL);
    let answered = calls.filter(|(_, _, entry)| entry.answered.is_some()).count();
    usize::try_from(returned).is_ok_and(|returned| returned > answered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::reached;
    use crate::samples::{answered, in_flight, observation, request};
    use std::collections::BTreeMap;

    const OUTPUT: &str = r#"{"Ok":{"output":"{\"id\":7}","truncated":false}}"#;

    fn id_of(observed: &RunObservation) -> String {
        let invocation = observed.journals[0].invocation.clone();
        EffectQuestion { invocation, entry: 2, text: String::new(), approval: None, attempt: 1 }.id()
    }

    fn reference(requests: &[ReceivedRequest]) -> Reference {
        let entries = vec![answered(1, TOOL_CALL, 100, OUTPUT), answered(2, TOOL_CALL, 200, OUTPUT)];
        let observed = observation(entries, &[]);
        Reference::of((&observed, requests, &BTreeMap::new()), (&observed, requests, &BTreeMap::new()))
    }

    fn sent(at_ms: u64) -> ReceivedRequest {
        request(at_ms, "POST", "http://a.example/pay", "{}", None)
    }

    #[test]
    fn a_call_happened_when_the_receiver_got_one_more_than_was_answered() {
        let reference = reference(&[sent(100), sent(200)]);
        let parked = observation(vec![answered(1, TOOL_CALL, 100, OUTPUT), in_flight(2, TOOL_CALL, 200)], &[]);
        let told = |received: &[ReceivedRequest]| reference.resolution(&id_of(&parked), &parked, received, &[]);
        assert_eq!(told(&[sent(100)]), Some(Resolution::DidNotHappen));
        assert_eq!(told(&[sent(100), sent(200)]), Some(Resolution::Happened("{\"id\":7}".to_owned())));
        assert_eq!(reference.resolution("q-other", &parked, &[], &[]), None);
    }

    #[test]
    fn a_call_that_sends_nothing_happened_when_its_tool_returned() {
        let reference = reference(&[]);
        let parked = observation(vec![answered(1, TOOL_CALL, 100, OUTPUT), in_flight(2, TOOL_CALL, 200)], &[]);
        let told = |log: &str| reference.resolution(&id_of(&parked), &parked, &[], &reached(log));
        assert_eq!(told("tool.after-call:1\ntool.before-call:2\n"), Some(Resolution::DidNotHappen));
        assert!(matches!(told("tool.after-call:1\ntool.after-call:2\n"), Some(Resolution::Happened(_))));
    }
}
