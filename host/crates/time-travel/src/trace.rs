//! The steps and the verdicts of one run, as its journals and events tell them, within bounds.
//!
//! It is fed in the order of the journals: a work begins, its entries follow, and its result where it has one. What is
//! beyond the bounds is counted, and its text is left out.

use crate::step::Step;
use longhaul_api::comparison::LastVerdict;
use longhaul_api::runs::Status;
use longhaul_core::InvocationId;
use longhaul_core::event::Event;
use longhaul_core::journal::{Finished, JournalEntry};
use longhaul_core::text::truncate;
use longhaul_core::work::Judgement;
use std::collections::BTreeMap;

/// Steps of a run that are compared. The longest runs have some thousands; further steps are counted.
const STEPS_MAX: usize = 10_000;

/// Bytes of an answer that are kept, and of all answers of a run. An answer beyond is compared by its digest alone.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const ANSWERS_BYTES_MAX: usize = 16 << 20;

/// Bytes of the reason of a judgement.
const REASON_BYTES_MAX: usize = 500;

/// A run that is compared.
#[derive(Debug)]
pub struct TracedRun {
    /// Its status.
    pub status: Status,
    /// Its steps.
    pub trace: RunTrace,
}

/// The steps of a run.
#[derive(Debug, Default)]
pub struct RunTrace {
    works: Vec<WorkSteps>,
    /// The works by their invocations, with the number of delegations so far.
    begun: BTreeMap<InvocationId, (usize, u32)>,
    verdicts: BTreeMap<String, LastVerdict>,
    steps: usize,
    left_out: usize,
    answer_bytes: usize,
}

/// The steps of one work.
#[derive(Debug)]
pub(crate) struct WorkSteps {
    /// The key of the work, with its delegations counted and not named by entries, whose numbers differ between runs.
    pub(crate) work: String,
    pub(crate) feature: Option<String>,
    pub(crate) steps: Vec<Step>,
}

impl RunTrace {
    /// Begins a work: the entries that follow are its. A delegation begins after the work that delegates.
    pub fn begin(&mut self, invocation: &InvocationId) {
        let work = self.name_of(invocation);
        self.begun.insert(invocation.clone(), (self.works.len(), 0));
        let feature = invocation.feature().map(str::to_owned);
        self.works.push(WorkSteps { work, feature, steps: Vec::new() });
    }

    /// Adds an entry of the journal of the work that began last.
    pub fn entry(&mut self, number: u32, entry: JournalEntry) {
        if let Some(step) = Step::of_entry(number, entry) {
            self.add(step);
        }
    }

    /// Adds the end of the work that began last.
    pub fn result(&mut self, finished: Finished) {
        self.add(Step::of_result(finished));
    }

    /// Takes a verdict from an event. Other events say nothing here.
    pub fn event(&mut self, event: Event) {
        let Event::Judged { feature, round, passed, judgements, .. } = event else { return };
        let verdicts = self.verdicts.get(&feature).map_or(0, |before| before.verdicts).saturating_add(1);
        let shortened =
            |judgement: Judgement| Judgement { why: truncate(&judgement.why, REASON_BYTES_MAX), ..judgement };
        let judgements = judgements.into_iter().map(shortened).collect();
        self.verdicts.insert(feature, LastVerdict { round, verdicts, passed, judgements });
    }

    pub(crate) fn works(&self) -> &[WorkSteps] {
        &self.works
    }

    pub(crate) fn verdict(&self, feature: &str) -> Option<&LastVerdict> {
        self.verdicts.get(feature)
    }

    pub(crate) fn steps(&self) -> usize {
        self.steps
    }

    pub(crate) fn left_out(&self) -> usize {
        self.left_out
    }

    fn add(&mut self, mut step: Step) {
        let Some(work) = self.works.last_mut().filter(|_| self.steps < STEPS_MAX) else {
            self.left_out += 1;
            return;
        };
        step.cut_to(ANSWER_BYTES_MAX.min(ANSWERS_BYTES_MAX - self.answer_bytes));
        self.answer_bytes += step.answer.len();
        self.steps += 1;
        work.steps.push(step);
    }

    /// `f-sum/2/generate`, or `f-sum/2/generate > 1` for its first delegation.
    fn name_of(&mut self, invocation: &InvocationId) -> String {
        let whole = invocation.as_str();
        let parent = whole.rsplit_once('#').map(|(parent, _)| InvocationId::from_text(parent));
        let Some((at, delegations)) = parent.and_then(|parent| self.begun.get_mut(&parent)) else {
            return whole.split_once('/').map_or(whole, |(_, work)| work).to_owned();
        };
        *delegations += 1;
        format!("{} > {delegations}", self.works[*at].work)
    }
}
