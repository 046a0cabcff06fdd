//! The rows that are listed, with their text, and the first difference.
//!
//! A text begins where it differs. When there are more rows than are listed, the same ones far from a difference are
//! left out first.

use crate::rows::Row;
use crate::step::Step;
use longhaul_api::comparison::{AlignedStep, StepChange, StepCounts, StepSide};

/// Rows that are listed.
const ROWS_MAX: usize = 2_000;

/// Rows of the same step that are listed around a difference, where rows are left out.
const CONTEXT_ROWS: usize = 3;

/// Bytes of an answer: of one that differs, of one that does not, and in the first difference.
const DIFFERENT_BYTES_MAX: usize = 1_000;
const SAME_BYTES_MAX: usize = 200;
const FIRST_BYTES_MAX: usize = 16 << 10;

/// Bytes of all answers that are listed. Rows behind them have none.
const ANSWERS_BYTES_MAX: usize = 1 << 20;

/// Bytes of the line before a difference.
const LEAD_BYTES_MAX: usize = 200;

/// The rows of a comparison.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) counts: StepCounts,
    pub(crate) first_difference: Option<AlignedStep>,
    pub(crate) steps: Vec<AlignedStep>,
    pub(crate) left_out: usize,
}

/// Lists rows.
pub(crate) fn list(rows: &[Row<'_>]) -> Listed {
    let mut counts = StepCounts::default();
    rows.iter().for_each(|row| count(&mut counts, row.change));
    let first_difference = first(rows).map(|at| step(at, &rows[at], FIRST_BYTES_MAX));
    let mut room = ANSWERS_BYTES_MAX;
    let steps: Vec<AlignedStep> = chosen(rows).map(|at| listed(at, &rows[at], &mut room)).collect();
    Listed { counts, first_difference, left_out: rows.len() - steps.len(), steps }
}

fn count(counts: &mut StepCounts, change: StepChange) {
    let count = match change {
        StepChange::Same => &mut counts.same,
        StepChange::Request => &mut counts.request,
        StepChange::Call => &mut counts.call,
        StepChange::Answer => &mut counts.answer,
        StepChange::Missing => &mut counts.missing,
    };
    *count += 1;
}

/// The difference that came first in the time of the first run. What that one does not have came when it did the step
/// before.
fn first(rows: &[Row<'_>]) -> Option<usize> {
    let mut now = 0;
    let mut first: Option<(u64, usize)> = None;
    for (at, row) in rows.iter().enumerate() {
        now = row.sides.first().copied().flatten().map_or(now, |step| step.at_ms);
        if !row.change.is_same() && first.is_none_or(|(before, _)| now < before) {
            first = Some((now, at));
        }
    }
    first.map(|(_, at)| at)
}

/// The places of the rows that are listed.
fn chosen(rows: &[Row<'_>]) -> impl Iterator<Item = usize> {
    let mut chosen = vec![rows.len() <= ROWS_MAX; rows.len()];
    let different = rows.iter().enumerate().filter(|(_, row)| !row.change.is_same());
    for (at, _) in different {
        let until = (at + CONTEXT_ROWS + 1).min(rows.len());
        chosen[at.saturating_sub(CONTEXT_ROWS)..until].fill(true);
    }
    chosen.into_iter().enumerate().filter_map(|(at, is_chosen)| is_chosen.then_some(at)).take(ROWS_MAX)
}

/// A row within what room is left.
fn listed(at: usize, row: &Row<'_>, room: &mut usize) -> AlignedStep {
    let bytes_max = if row.change.is_same() { SAME_BYTES_MAX } else { DIFFERENT_BYTES_MAX };
    let sides = row.sides.iter().flatten().count().max(1);
    let step = step(at, row, bytes_max.min(*room / sides));
    *room -= step.sides.iter().map(|side| side.answer.len()).sum::<usize>();
    step
}

fn step(at: usize, row: &Row<'_>, bytes_max: usize) -> AlignedStep {
    let steps = || row.sides.iter().enumerate().filter_map(|(run, step)| Some((run, (*step)?)));
    let from = if row.change.is_same() { 0 } else { differs_at(&steps().map(|(_, step)| step).collect::<Vec<_>>()) };
    AlignedStep {
        number: at + 1,
        feature: row.work.feature.clone(),
        work: row.work.work.clone(),
        kind: steps().next().map(|(_, step)| step.kind.clone()).unwrap_or_default(),
        change: row.change,
        sides: steps().map(|(run, step)| side(run, step, from, bytes_max)).collect(),
    }
}

/// The place at which the answers differ, from the beginning of its line; 0 if there is one alone.
fn differs_at(steps: &[&Step]) -> usize {
    let Some((first, others)) = steps.split_first() else { return 0 };
    let first = first.answer.as_str();
    let alike = |other: &&Step| first.bytes().zip(other.answer.bytes()).take_while(|(one, two)| one == two).count();
    let Some(alike) = others.iter().map(alike).min() else { return 0 };
    let alike = first.floor_char_boundary(alike);
    let line = first[..alike].rfind('\n').map_or(0, |end| end + 1);
    line.max(first.floor_char_boundary(alike.saturating_sub(LEAD_BYTES_MAX)))
}

fn side(run: usize, step: &Step, from: usize, bytes_max: usize) -> StepSide {
    let rest = &step.answer[from..];
    let answer = rest[..rest.floor_char_boundary(bytes_max)].to_owned();
    StepSide {
        run,
        entry: step.entry,
        at_ms: step.at_ms,
        duration_ms: step.duration_ms,
        call: step.call.clone(),
        skipped_bytes: from,
        is_cut: from + answer.len() < step.answer_bytes,
        answer,
    }
}
