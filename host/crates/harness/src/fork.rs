//! The state of a fork: a new run that goes on from an earlier state of another one.
//!
//! Work keeps its keys, so that it finds what its invocations have of the other run's journals. This file refuses to
//! start anything: the fork is paused, and its resume requests the work.

use crate::action::{Work, WorkKind};
use crate::state::{Phase, RunState, WaitFor};
use crate::texts;
use longhaul_core::RunId;
use longhaul_core::event::WorkUsage;

impl RunState {
    /// The state with which a fork of the name `run` begins. `is_shared` tells the commits that the fork takes over from
    /// the other run; the others are made anew, with the fork's name in their messages.
    ///
    /// The usage of the other run is not the fork's, whose caps begin anew. Work that waited for a person about a call
    /// is requested again, and asks again: no approval or answer of the other run holds here.
    #[must_use]
    pub fn forked(&self, run: RunId, is_shared: impl Fn(&Work) -> bool) -> Self {
        let mut state = self.clone();
        state.run = Some(run);
        state.used = WorkUsage::default();
        state.cancelled.clear();
        state.paused = state.phase == Phase::Running;
        let messages: Vec<Option<String>> = state
            .lanes
            .iter()
            .map(|lane| match &lane.work.job {
                WorkKind::Commit { feature, .. } if !is_shared(&lane.work) => {
                    state.feature(feature).map(|feature| texts::commit_message(&state, feature))
                }
                _ => None,
            })
            .collect();
        for (lane, anew) in state.lanes.iter_mut().zip(messages) {
            if let (WorkKind::Commit { message, .. }, Some(anew)) = (&mut lane.work.job, anew) {
                *message = anew;
            }
            lane.wait = lane.wait.take().filter(|wait| wait.wait != WaitFor::Work);
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Park;
    use crate::state::{Feature, Lane, Session, Wait};
    use longhaul_core::work::FeatureSpec;

    fn feature(id: &str) -> Feature {
        Feature::new(FeatureSpec {
            id: id.to_owned(),
            title: "Sums".to_owned(),
            instruction: "add".to_owned(),
            category: "functional".to_owned(),
            priority: 5,
            agent: None,
            criteria: Vec::new(),
            checks: Vec::new(),
            depends_on: Vec::new(),
        })
    }

    fn lane(feature: &str, job: WorkKind, wait: Option<WaitFor>) -> Lane {
        let park = || Park { reason: "because".to_owned(), until_ms: None };
        let wait = wait.map(|wait| Wait { wait, park: park() });
        Lane { session: Some(Session::of(feature)), work: Work::new(format!("f-{feature}/work"), job), wait }
    }

    fn at_work() -> RunState {
        let commit =
            |id: &str| WorkKind::Commit { feature: id.to_owned(), message: "Longhaul-Run: r-old\n".to_owned() };
        let discard = |id: &str| WorkKind::Discard { feature: id.to_owned() };
        RunState {
            run: Some(RunId::from_text("r-old")),
            phase: Phase::Running,
            features: ["a", "b", "c", "d"].map(feature).into(),
            lanes: vec![
                lane("a", commit("a"), None),
                lane("b", commit("b"), None),
                lane("c", discard("c"), Some(WaitFor::Work)),
                lane("d", discard("d"), Some(WaitFor::Repository)),
            ],
            used: WorkUsage { model_calls: 3, ..WorkUsage::default() },
            ..RunState::new()
        }
    }

    #[test]
    fn a_fork_is_paused_spends_from_zero_and_asks_again() {
        let state = at_work();
        let forked = state.forked(RunId::from_text("r-new"), |work| work.feature() == Some("b"));
        assert_eq!((forked.run.as_ref().map(RunId::as_str), forked.paused), (Some("r-new"), true));
        assert_eq!(forked.used, WorkUsage::default());
        let waits: Vec<_> = forked.lanes.iter().map(|lane| lane.wait.as_ref().map(|wait| wait.wait)).collect();
        assert_eq!(waits, [None, None, None, Some(WaitFor::Repository)]);
        let keys = |state: &RunState| state.lanes.iter().map(|lane| lane.work.key()).collect::<Vec<_>>();
        assert_eq!(keys(&forked), keys(&state));
        assert_eq!(forked.features, state.features);
    }

    #[test]
    fn a_commit_that_is_made_anew_names_the_fork_and_one_that_is_taken_over_does_not() {
        let forked = at_work().forked(RunId::from_text("r-new"), |work| work.feature() == Some("b"));
        let message = |at: usize| match &forked.lanes[at].work.job {
            WorkKind::Commit { message, .. } => message.clone(),
            other => panic!("a commit: {other:?}"),
        };
        assert!(message(0).ends_with("Longhaul-Run: r-new\n"), "{}", message(0));
        assert_eq!(message(1), "Longhaul-Run: r-old\n");
    }

    #[test]
    fn a_run_that_had_ended_stays_ended() {
        let status = crate::action::EndStatus::Completed;
        let ended = RunState { phase: Phase::Ended { status, summary: "all".into() }, ..at_work() };
        let forked = ended.forked(RunId::from_text("r-new"), |_| false);
        assert!(!forked.paused && forked.phase == ended.phase);
    }
}
