//! Removes decisions of another machine about calls that were not made yet.
//!
//! A journal that comes from another machine is history up to its end, and no person here approved the next calls. A
//! decision whose call was announced stays, or the journal would be another one. Decisions behind the last such call
//! are removed, so that this machine asks about them again. A decision in front of it, in the same batch, has to keep
//! its place, and becomes a refusal: its call was not made, so no guest has seen the earlier answer.

use crate::record::{At, Content, Kind, StoredAnswer, parse};
use longhaul_core::approval::{CallDecision, ENTRY};
use longhaul_core::journal::{ImportCall, JournalError};
use longhaul_core::store::Row;
use longhaul_core::{Digest, InvocationId};
use std::collections::BTreeMap;

/// The entry of a call of a tool.
const CALL: &str = "tools.call";

/// Text for an agent about a call that another machine allowed and did not make.
const NOT_OURS: &str = "another machine allowed it and did not make it; ask again where it is still wanted";

/// The records of one entry.
#[derive(Default)]
struct Seen {
    name: String,
    arguments: Option<Digest>,
    /// Position of its answer among the rows.
    answered: Option<usize>,
}

/// The rows of one invocation's journal, in the order of their keys, without the decisions about calls that were not
/// made; and the entries of the decisions that are removed or turned into refusals. `content` finds answers that are
/// stored by digest. An ended invocation is left unchanged.
///
/// # Errors
/// [`JournalError::Damaged`].
pub fn disowned(
    invocation: &InvocationId,
    mut rows: Vec<Row>,
    content: &dyn Fn(&Digest) -> Option<Vec<u8>>,
) -> Result<(Vec<Row>, Vec<u32>), JournalError> {
    let Some(seen) = seen(invocation, &rows)? else { return Ok((rows, Vec::new())) };
    // A batch holds nothing but decisions and calls: its guest makes no other call meanwhile.
    let is_batch = |seen: &Seen| seen.name == ENTRY || seen.name == CALL;
    let mut tail: Vec<(u64, Seen)> = seen.into_iter().rev().take_while(|(_, one)| is_batch(one)).collect();
    tail.reverse();
    let last_call = tail.iter().rev().find(|(_, one)| one.name == CALL).map_or(0, |(entry, _)| *entry);
    let mut calls: Vec<Option<Digest>> =
        tail.iter().filter(|(_, one)| one.name == CALL).map(|(_, one)| one.arguments).collect();
    let (mut gone, mut taken) = (Vec::new(), Vec::new());
    for (entry, one) in tail.iter().filter(|(_, one)| one.name == ENTRY) {
        if *entry > last_call {
            gone.push(*entry);
            continue;
        }
        if let Some(at) = calls.iter().position(|call| *call == one.arguments) {
            calls.swap_remove(at);
            continue;
        }
        let Some(at) = one.answered else { continue };
        if let Some(answer) = refusing(invocation, *entry, &rows[at].1, content)? {
            rows[at].1 = answer;
            taken.push(*entry);
        }
    }
    let is_gone = |row: &Row| parse(invocation, &row.0).is_some_and(|(entry, _)| gone.contains(&entry));
    rows.retain(|row| !is_gone(row));
    taken.extend(gone);
    Ok((rows, taken.into_iter().filter_map(|entry| u32::try_from(entry).ok()).collect()))
}

/// The entries after the beginning; none if the invocation has ended.
fn seen(invocation: &InvocationId, rows: &[Row]) -> Result<Option<BTreeMap<u64, Seen>>, JournalError> {
    let mut seen: BTreeMap<u64, Seen> = BTreeMap::new();
    for (at, (key, value)) in rows.iter().enumerate() {
        let place = At { invocation, entry: 0 };
        let (entry, kind) = parse(invocation, key).ok_or_else(|| place.damaged("a key makes no sense"))?;
        match kind {
            Kind::Finished => return Ok(None),
            // The other journal is not part of it, and here may be one of that name.
            Kind::Shared => return Err(place.damaged("it shares entries of another journal")),
            Kind::Began | Kind::Prepared(_) | Kind::Resolution(_) => {}
            Kind::Asked(_) => {
                let asked: ImportCall = At { invocation, entry }.decode(value)?;
                let one = seen.entry(entry).or_default();
                (one.name, one.arguments) = (asked.name, Some(asked.arguments));
            }
            Kind::Answered => seen.entry(entry).or_default().answered = Some(at),
        }
    }
    Ok(Some(seen))
}

/// The answer of a decision that allowed a call, turned into a refusal; none for any other.
fn refusing(
    invocation: &InvocationId,
    entry: u64,
    value: &[u8],
    content: &dyn Fn(&Digest) -> Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, JournalError> {
    let at = At { invocation, entry };
    let stored: StoredAnswer = at.decode(value)?;
    let decision: CallDecision = match &stored.content {
        Content::Inline(text) => at.decode(text.as_bytes())?,
        Content::Blob { digest, .. } => {
            at.decode(&content(digest).ok_or_else(|| at.damaged("its answer is missing"))?)?
        }
    };
    if !matches!(decision, CallDecision::Allowed(_)) {
        return Ok(None);
    }
    let text = serde_json::to_string(&CallDecision::Rejected(Some(NOT_OURS.to_owned())));
    let text = text.map_err(|why| at.damaged(why.to_string()))?;
    let refused = StoredAnswer { content: Content::Inline(text), ..stored };
    serde_json::to_vec(&refused).map(Some).map_err(|why| at.damaged(why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::key;
    use longhaul_core::journal::EffectClass;

    const INVOCATION: &str = "r-1/f-a/1/generate";

    fn asked(entry: u64, name: &str, call: &str) -> Row {
        let asked = ImportCall {
            name: name.to_owned(),
            summary: call.to_owned(),
            arguments: Digest::of(call.as_bytes()),
            class: EffectClass::ReadOnly,
            prepared: None,
            fuel_used: 0,
            at_ms: 1,
            attempt: 1,
        };
        let invocation = InvocationId::from_text(INVOCATION);
        (key(&invocation, entry, Kind::Asked(1)).as_bytes().to_vec(), serde_json::to_vec(&asked).expect("JSON"))
    }

    fn decided(entry: u64, decision: &CallDecision) -> Row {
        let content = Content::Inline(serde_json::to_string(decision).expect("JSON"));
        let answer = serde_json::to_vec(&StoredAnswer { content, at_ms: 1, edited: false }).expect("JSON");
        (key(&InvocationId::from_text(INVOCATION), entry, Kind::Answered).as_bytes().to_vec(), answer)
    }

    fn finished() -> Row {
        let invocation = InvocationId::from_text(INVOCATION);
        (key(&invocation, crate::record::FINISHED_AT, Kind::Finished).as_bytes().to_vec(), b"{}".to_vec())
    }

    /// Checks the rest of a journal, an entry a line, with each decision's present answer.
    #[track_caller]
    fn check(rows: Vec<Row>, expected: &[&str]) {
        let invocation = InvocationId::from_text(INVOCATION);
        let mut rows = rows;
        rows.sort();
        let (left, _) = disowned(&invocation, rows, &|_| None).expect("whole");
        let mut lines: Vec<String> = Vec::new();
        for (key, value) in left {
            let (entry, kind) = parse(&invocation, &key).expect("a key");
            match kind {
                Kind::Asked(_) => {
                    let asked: ImportCall = serde_json::from_slice(&value).expect("JSON");
                    lines.push(format!("{entry} {} {}", asked.name, asked.summary));
                }
                Kind::Answered => {
                    let answer: StoredAnswer = serde_json::from_slice(&value).expect("JSON");
                    let Content::Inline(text) = answer.content else { panic!("inline") };
                    let decision: CallDecision = serde_json::from_str(&text).expect("a decision");
                    let word = if decision.refusal().is_some() { "no" } else { "yes" };
                    lines.push(format!("{entry} {word}"));
                }
                _ => {}
            }
        }
        assert_eq!(lines, expected);
    }

    fn yes() -> CallDecision {
        CallDecision::Allowed("a person, once".to_owned())
    }

    #[test]
    fn leave_for_a_call_that_was_not_made_is_taken_out() {
        check(
            vec![asked(1, "conversation.complete", "x"), asked(2, ENTRY, "a"), decided(2, &yes())],
            &["1 conversation.complete x"],
        );
    }

    #[test]
    fn leave_for_a_call_that_was_made_stays() {
        check(
            vec![asked(1, ENTRY, "a"), decided(1, &yes()), asked(2, CALL, "a")],
            &["1 yes", "1 tools.approve a", "2 tools.call a"],
        );
        let later = vec![asked(1, ENTRY, "a"), decided(1, &yes()), asked(2, "conversation.complete", "x")];
        check(later, &["1 yes", "1 tools.approve a", "2 conversation.complete x"]);
    }

    #[test]
    fn of_a_batch_of_which_one_call_was_made_the_others_are_not() {
        let rows = vec![
            asked(1, ENTRY, "a"),
            decided(1, &yes()),
            asked(2, ENTRY, "b"),
            decided(2, &yes()),
            asked(3, ENTRY, "c"),
            decided(3, &CallDecision::Rejected(None)),
            asked(4, CALL, "a"),
            asked(5, ENTRY, "d"),
            decided(5, &yes()),
        ];
        let expected =
            ["1 yes", "1 tools.approve a", "2 no", "2 tools.approve b", "3 no", "3 tools.approve c", "4 tools.call a"];
        check(rows, &expected);
    }

    #[test]
    fn a_journal_that_refers_to_another_one_is_refused() {
        let invocation = InvocationId::from_text(INVOCATION);
        let shared = br#"{"version":1,"of":"r-2/f-a/1/generate","through":1}"#.to_vec();
        let rows = vec![(key(&invocation, 0, Kind::Shared).as_bytes().to_vec(), shared), asked(2, CALL, "a")];
        let refused = disowned(&invocation, rows, &|_| None).unwrap_err();
        assert!(matches!(refused, JournalError::Damaged { entry: 0, .. }), "{refused}");
    }

    #[test]
    fn an_invocation_that_has_ended_stays_as_it_was() {
        check(vec![asked(1, ENTRY, "a"), decided(1, &yes()), finished()], &["1 yes", "1 tools.approve a"]);
    }
}
