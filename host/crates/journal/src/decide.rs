//! The rules of a resume for an effect that was in flight when the host died.
//!
//! Pure: no store, no clock. In doubt the answer is a question, never a repetition.

use crate::load::Slot;
use longhaul_core::journal::{EffectClass, ImportCall, Resolution};

/// The known facts about an effect in flight, and so the possible next moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The effect was announced and had not started yet: the same attempt continues.
    NeverLeft,
    /// The effect may have happened and may be repeated, or a person said that it did not happen.
    Repeat,
    /// The effect can be verified with this preparation.
    Verify(String),
    /// A person gave the result.
    Happened(String),
    /// A person said to skip it.
    Skipped,
    /// Only a person can know.
    Nobody,
}

/// Decides about the entry of `slot`, whose latest attempt is `asked`, when it is called again with the class `now`. A
/// person's resolution comes first.
pub(crate) fn decide(slot: &Slot, asked: &ImportCall, now: EffectClass) -> Known {
    match slot.resolution() {
        Some(Resolution::Happened(output)) => return Known::Happened(output.clone()),
        Some(Resolution::DidNotHappen) => return Known::Repeat,
        Some(Resolution::Skip) => return Known::Skipped,
        None => {}
    }
    match (governing(asked.class, now), &slot.prepared) {
        (EffectClass::ReadOnly | EffectClass::Idempotent, _) => Known::Repeat,
        (EffectClass::Verifiable, Some(prepared)) => Known::Verify(prepared.clone()),
        (EffectClass::Verifiable, None) => Known::NeverLeft,
        (EffectClass::Acts, _) => Known::Nobody,
    }
}

/// The class that decides when the claim changed between the attempts.
///
/// The attempt started under `then`. A weaker claim made since does not cover it, and a stronger one says that `then`
/// was wrong.
fn governing(then: EffectClass, now: EffectClass) -> EffectClass {
    match (then, now) {
        (EffectClass::ReadOnly | EffectClass::Idempotent, EffectClass::Verifiable) | (_, EffectClass::Acts) => {
            EffectClass::Acts
        }
        _ => then,
    }
}
