//! A call whose journal is cut, as a kill would cut it, and which is resumed from what is left.
//!
//! A cut lets the call end at an entry: before its answer is kept, when its effect has happened, or right after. Then
//! the call begins again over the same journal, with the script as far used up as its answered entries used it. A
//! question about an effect in flight is answered by the truth. Between the calls of one list only the time before the
//! first answer and after the last one is cut: in between nobody could say which answers of the script are used.

use crate::scripted::Scripted;
use longhaul_core::journal::{EntryHandle, JournalError, Resolution};
use longhaul_core::store::StoreError;
use longhaul_core::tool::{ToolError, ToolOutput};
use std::collections::BTreeSet;

/// The place of a cut in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalCut {
    /// The number of the entry, from 1.
    pub entry: u32,
    /// True when its answer is kept.
    pub answered: bool,
}

/// The surroundings of a cut call.
pub(crate) struct MadeCut {
    /// The answer that was lost; none when it was kept.
    lost: Option<String>,
    /// The script before the effect of the entry.
    before: Scripted,
    /// The script after it.
    after: Scripted,
}

impl MadeCut {
    /// The script as the answered entries used it.
    pub(crate) fn world(&self) -> Scripted {
        if self.lost.is_some() { self.before.fork() } else { self.after.fork() }
    }

    /// The truth about the effect in flight, and the script after it is told.
    pub(crate) fn truth(&self) -> (Resolution, Scripted) {
        let lost = self.lost.as_deref().unwrap_or_default();
        match serde_json::from_str::<Result<ToolOutput, ToolError>>(lost) {
            Ok(Ok(output)) => (Resolution::Happened(output.output), self.after.fork()),
            // A call that failed, or whose answer is no tool's, is made again.
            Ok(Err(_)) | Err(_) => (Resolution::DidNotHappen, self.before.fork()),
        }
    }
}

/// The calls in flight of an invocation, and the cut that is wanted.
pub(crate) struct Cutting {
    wanted: Option<JournalCut>,
    world: Scripted,
    /// Entries whose effects were executed.
    executed: BTreeSet<u32>,
    open: BTreeSet<u32>,
    /// Entries that were answered while others were open.
    answered: u32,
    /// The script before the first of the open entries.
    before: Option<Scripted>,
    made: Option<MadeCut>,
}

impl Cutting {
    pub(crate) fn new(wanted: Option<JournalCut>, world: Scripted) -> Self {
        let (executed, open) = (BTreeSet::new(), BTreeSet::new());
        Self { wanted, world, executed, open, answered: 0, before: None, made: None }
    }

    /// A call is about to be made. Refused after the cut: then the process is dead.
    pub(crate) fn begins(&mut self) -> Result<(), JournalError> {
        if self.made.is_some() {
            return Err(dead());
        }
        if self.wanted.is_some() && self.open.is_empty() {
            (self.before, self.answered) = (Some(self.world.fork()), 0);
        }
        Ok(())
    }

    /// A call waits for its answer. `executes`: its effect happens now.
    pub(crate) fn waits(&mut self, handle: &EntryHandle, executes: bool) {
        self.open.insert(handle.entry);
        if executes {
            self.executed.insert(handle.entry);
        }
    }

    /// An answer is about to be kept. Refused where the cut comes before that.
    pub(crate) fn answers(&mut self, handle: &EntryHandle, answer: &str) -> Result<(), JournalError> {
        if self.made.is_some() {
            return Err(dead());
        }
        let is_here = self.wanted == Some(JournalCut { entry: handle.entry, answered: false }) && self.answered == 0;
        match self.before.take_if(|_| is_here) {
            Some(before) => {
                self.made = Some(MadeCut { lost: Some(answer.to_owned()), before, after: self.world.fork() });
                Err(dead())
            }
            None => Ok(()),
        }
    }

    /// An answer was kept.
    pub(crate) fn answered(&mut self, entry: u32) {
        self.open.remove(&entry);
        self.answered += 1;
        let is_here = self.wanted == Some(JournalCut { entry, answered: true }) && self.open.is_empty();
        if is_here && self.made.is_none() {
            let (before, after) = (self.world.fork(), self.world.fork());
            self.made = Some(MadeCut { lost: None, before, after });
        }
    }

    /// The cut, once it was made.
    pub(crate) fn take_made(&mut self) -> Option<MadeCut> {
        self.made.take()
    }

    /// Entries whose effects were executed.
    pub(crate) fn executed(&self) -> BTreeSet<u32> {
        self.executed.clone()
    }
}

/// The error of everything that a dead process would still do.
fn dead() -> JournalError {
    JournalError::Store(StoreError::Failed { path: "of the test".to_owned(), detail: "the journal was cut".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    fn handle(entry: u32) -> EntryHandle {
        EntryHandle { entry, key: String::new(), attempt: 1, repeated: false }
    }

    fn cutting(entry: u32, answered: bool) -> Cutting {
        Cutting::new(Some(JournalCut { entry, answered }), Scripted::new(Script::new()))
    }

    /// Makes calls that wait together, answers them, and returns how many answers were kept.
    fn batch(cutting: &mut Cutting, entries: &[u32]) -> usize {
        for entry in entries {
            if cutting.begins().is_err() {
                return 0;
            }
            cutting.waits(&handle(*entry), true);
        }
        let answered = entries.iter().take_while(|entry| {
            let kept = cutting.answers(&handle(**entry), "{\"Ok\":{\"output\":\"7\",\"truncated\":false}}").is_ok();
            if kept {
                cutting.answered(**entry);
            }
            kept
        });
        answered.count()
    }

    #[test]
    fn a_cut_before_an_answer_loses_it_and_a_dead_process_does_nothing_more() {
        let mut cut = cutting(2, false);
        assert_eq!((batch(&mut cut, &[1]), batch(&mut cut, &[2]), batch(&mut cut, &[3])), (1, 0, 0));
        assert_eq!(cut.executed(), [1, 2].into());
        let made = cut.take_made().expect("it was cut");
        assert_eq!(made.truth().0, Resolution::Happened("7".to_owned()));
    }

    #[test]
    fn a_cut_after_an_answer_keeps_it() {
        let mut cut = cutting(2, true);
        assert_eq!((batch(&mut cut, &[1]), batch(&mut cut, &[2]), batch(&mut cut, &[3])), (1, 1, 0));
        assert_eq!(cut.take_made().expect("it was cut").truth().0, Resolution::DidNotHappen);
    }

    #[test]
    fn a_list_of_calls_is_cut_before_its_first_answer_and_after_its_last() {
        for (entry, answered, kept, is_cut) in
            [(1, false, 0, true), (2, false, 2, false), (1, true, 2, false), (2, true, 2, true)]
        {
            let mut cut = cutting(entry, answered);
            assert_eq!(batch(&mut cut, &[1, 2]), kept, "{entry} {answered}");
            assert_eq!(cut.take_made().is_some(), is_cut, "{entry} {answered}");
        }
    }
}
