//! The stop condition of a run, as the operator asked: the run pauses by itself after it.
//!
//! It is stored with each step that changes it, so that an interrupted run goes as far as it was asked to, and no
//! further.

use longhaul_core::event::Event;
use longhaul_harness::RunState;
use longhaul_harness::state::Phase;
use serde::{Deserialize, Serialize};

/// The stop condition of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCondition {
    /// The run goes to its end.
    End,
    /// Until there is a plan.
    Plan,
    /// For so many sessions; one that was held back counts as the first.
    Sessions(u32),
    /// Until a session begins whose number is above this.
    Session(u32),
}

impl StopCondition {
    /// For so many sessions, or to the end.
    #[must_use]
    pub fn sessions(count: Option<u32>) -> Self {
        count.map_or(Self::End, Self::Sessions)
    }

    /// True when the run has to pause after a step, before any work of the step starts.
    pub fn is_reached(&mut self, before: &RunState, after: &RunState, events: &[Event]) -> bool {
        if let Self::Sessions(count) = *self {
            *self = Self::Session(last_session(before, after, count));
        }
        match *self {
            Self::Plan => events.iter().any(|event| matches!(event, Event::Planned { .. })),
            Self::End | Self::Sessions(_) | Self::Session(_) => self.was_reached(after),
        }
    }

    /// True when a run in this state should have paused: a kill came between the step that reached the condition and
    /// the pause.
    pub fn was_reached(&self, state: &RunState) -> bool {
        match *self {
            Self::End | Self::Sessions(_) => false,
            Self::Plan => !state.features.is_empty(),
            Self::Session(last) => state.counts.sessions > last,
        }
    }
}

/// The number of the last session of `count`, the first of which is under way or comes next.
fn last_session(before: &RunState, after: &RunState, count: u32) -> u32 {
    // An interrupted run is resumed without a step of its own: its first step may be the end of a session.
    let began = if before.phase == Phase::Running && !before.paused { before } else { after };
    let under_way = u32::try_from(began.lanes.iter().filter(|lane| lane.session.is_some()).count()).unwrap_or(u32::MAX);
    began.counts.sessions.saturating_add(count).saturating_sub(under_way)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_harness::state::{Lane, Session};
    use longhaul_harness::{Work, WorkKind};

    fn state(sessions: u32, in_session: bool, paused: bool) -> RunState {
        let mut state = RunState::new();
        state.phase = Phase::Running;
        state.paused = paused;
        state.counts.sessions = sessions;
        let work = Work { name: "f-a/discard".into(), attempt: 1, job: WorkKind::Discard { feature: "a".into() } };
        let lane = || Lane { session: Some(Session::of("a")), work, wait: None };
        state.lanes = in_session.then(lane).into_iter().collect();
        state
    }

    /// The number of these steps that are taken; each is the number of the session after it.
    fn steps(count: u32, start: RunState, first: RunState, sessions: &[u32]) -> usize {
        let mut until = StopCondition::Sessions(count);
        let mut before = first.clone();
        if until.is_reached(&start, &first, &[]) {
            return 0;
        }
        for (taken, number) in sessions.iter().enumerate() {
            let after = state(*number, true, false);
            if until.is_reached(&before, &after, &[]) {
                return taken;
            }
            before = after;
        }
        sessions.len()
    }

    #[test]
    fn a_run_goes_for_as_many_sessions_as_were_asked_for() {
        let planning = || state(0, false, false);
        assert_eq!(
            steps(1, RunState::new(), planning(), &[1, 1, 2, 2]),
            2,
            "the second session is the end of the first"
        );
        assert_eq!(steps(2, RunState::new(), planning(), &[1, 2, 2, 3]), 3);
        // A session that a pause held back is the first.
        assert_eq!(steps(1, state(3, true, true), state(3, true, false), &[3, 4]), 1);
        // After a revert, or an end, the resume itself begins the first.
        assert_eq!(steps(1, state(3, false, true), state(4, true, false), &[4, 5]), 1);
        // A run that broke off in a session.
        assert_eq!(steps(1, state(3, true, false), state(4, true, false), &[]), 0);
    }

    #[test]
    fn a_run_that_a_kill_cut_off_goes_as_far_as_it_was_asked_to() {
        let mut until = StopCondition::Sessions(2);
        assert!(!until.is_reached(&RunState::new(), &state(0, false, false), &[]));
        assert!(!until.is_reached(&state(0, false, false), &state(1, true, false), &[]));
        // The condition as another process reads it.
        let stored = serde_json::to_string(&until).expect("JSON");
        let mut until: StopCondition = serde_json::from_str(&stored).expect("ours");
        assert_eq!((stored.as_str(), until), (r#"{"session":2}"#, StopCondition::Session(2)));
        let (second, third) = (state(2, true, false), state(3, true, false));
        assert!(!until.was_reached(&state(1, true, false)) && !until.was_reached(&second));
        assert!(until.is_reached(&second, &third, &[]));
        // The run was killed before it paused.
        assert!(until.was_reached(&third));
        assert!(!StopCondition::Plan.was_reached(&state(0, false, false)) && !StopCondition::End.was_reached(&third));
    }

    #[test]
    fn a_run_without_a_number_goes_on() {
        let mut until = StopCondition::sessions(None);
        assert!(!until.is_reached(&state(1, true, false), &state(90, true, false), &[]));
    }
}
