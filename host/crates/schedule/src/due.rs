//! The fires before a moment, and those of them that still run.

use crate::Missed;
use crate::state::ScheduleEntry;
use longhaul_core::Digest;

/// A fire this late, in milliseconds, is not missed. The host checks each second; a laptop may stall for some.
const GRACE_MS: u64 = 60_000;

/// The most fires that are counted one by one after a downtime. A month of fires each second is 26 times as many.
const COUNTED_MAX: u32 = 100_000;

/// The fires that became due since the last check.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// Fires that run, the earliest first.
    pub(crate) run: Vec<u64>,
    /// Fires that do not run.
    pub(crate) missed: Option<Behind>,
    /// The next fire.
    pub(crate) next_ms: Option<u64>,
}

/// Missed fires.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Behind {
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
    pub(crate) count: u32,
    /// True with further fires, which were not counted.
    pub(crate) more: bool,
}

/// Checks a schedule at a moment.
pub(crate) fn look(entry: &ScheduleEntry, now_ms: u64) -> Due {
    let Some(first_ms) = entry.next_ms.filter(|next| *next <= now_ms) else {
        return Due { next_ms: entry.next_ms, ..Due::default() };
    };
    let next = |after_ms| entry.schedule.trigger.next_after(entry.anchor_ms, after_ms);
    let kept_max = kept_max(entry);
    let mut kept = std::collections::VecDeque::from([first_ms]);
    let (mut count, mut more, mut last_ms, mut next_ms) = (1_u32, false, first_ms, None);
    while let Ok(Some(fire_ms)) = next(last_ms) {
        if fire_ms > now_ms {
            next_ms = Some(fire_ms);
            break;
        }
        if count == COUNTED_MAX {
            more = true;
            next_ms = next(now_ms).unwrap_or(None);
            break;
        }
        (count, last_ms) = (count + 1, fire_ms);
        kept.push_back(fire_ms);
        if kept.len() > kept_max {
            kept.pop_front();
        }
    }
    let run = still_run(entry, kept.make_contiguous(), now_ms);
    let skipped = count - u32::try_from(run.len()).unwrap_or(count);
    let missed = (skipped > 0).then_some(Behind { first_ms, last_ms, count: skipped, more });
    Due { run, missed, next_ms }
}

fn kept_max(entry: &ScheduleEntry) -> usize {
    match entry.schedule.missed {
        Missed::Skip | Missed::Once => 1,
        Missed::All => usize::try_from(entry.schedule.missed_max).unwrap_or(1).max(1),
    }
}

/// The last fire runs when it is not late; otherwise the policy decides.
fn still_run(entry: &ScheduleEntry, kept: &[u64], now_ms: u64) -> Vec<u64> {
    let in_time = |fire_ms: &u64| now_ms - *fire_ms <= GRACE_MS;
    match entry.schedule.missed {
        Missed::Skip => kept.iter().copied().filter(in_time).collect(),
        Missed::All if entry.schedule.missed_max == 0 => kept.iter().copied().filter(in_time).collect(),
        Missed::Once | Missed::All => kept.to_vec(),
    }
}

/// The delay of this fire, always the same.
pub(crate) fn jitter_ms(entry: &ScheduleEntry, fire_ms: u64) -> u64 {
    let name = entry.schedule.name.as_str().as_bytes();
    let digest = Digest::of_parts(&[b"jitter", name, &fire_ms.to_le_bytes()]);
    let drawn = u64::from_str_radix(&digest.short(), 16).unwrap_or_default();
    drawn % entry.schedule.jitter_ms.saturating_add(1)
}
