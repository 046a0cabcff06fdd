//! Features that passed and no longer do: their commits were abandoned, or their checks fail by now.
//!
//! Neither starts work. A revert takes back the active work and leaves the run paused, with nothing outstanding, so
//! that a resume chooses the next work; a regression reopens an ended run, for a resume.

use super::{Ignored, OrderRefusal, Turn};
use crate::action::EndStatus;
use crate::state::{Counts, Phase, is_complete};
use crate::texts;
use longhaul_core::event::Event;
use longhaul_core::work::FeatureStatus::{self, Dropped, Failing, InProgress, NotStarted, Passing};

type Taken = Result<Option<Ignored>, OrderRefusal>;

/// Digits of a commit's name in a reason.
const SHORT: usize = 10;

impl Turn<'_> {
    pub(super) fn reverted(
        &mut self,
        features: &[String],
        left: Vec<String>,
        to: &str,
        kept_as: Option<String>,
    ) -> Taken {
        self.check_quiet()?;
        while !self.state.lanes.is_empty() {
            self.cancel(0);
        }
        self.state.answer = None;
        let is_left = |id: &String, status| features.contains(id) && status != Dropped;
        let back: Vec<String> = self.ids(|id, status| is_left(id, status) || status == InProgress);
        self.emit(Event::Reverted { to: to.to_owned(), kept_as, left, features: back.clone() });
        let why = format!("reverted to {}", &to[..to.floor_char_boundary(SHORT)]);
        for id in back {
            self.take_back(&id, &why);
        }
        self.settle();
        match (is_complete(&self.state.features), self.ended()) {
            (false, _) => self.leave_to_a_resume(),
            // The remaining work was taken back.
            (true, None | Some(EndStatus::Incomplete)) => self.end_as_it_stands(),
            (true, Some(EndStatus::Completed | EndStatus::Failed | EndStatus::Abandoned)) => {}
        }
        Ok(None)
    }

    pub(super) fn regressed(&mut self, features: &[(String, String)]) -> Taken {
        self.check_quiet()?;
        let passing = self.ids(|_, status| status == Passing);
        let regressed: Vec<_> = features.iter().filter(|(id, _)| passing.contains(id)).collect();
        if regressed.is_empty() {
            return Ok(Some(Ignored::NothingToDo));
        }
        for (id, why) in regressed {
            let why = self.line(why);
            self.set_status(id, Failing, &why);
            self.forgive_attempts(id);
        }
        self.settle();
        if self.ended() == Some(EndStatus::Completed) {
            self.end(EndStatus::Incomplete, texts::summary(self.state));
        }
        Ok(None)
    }

    /// No work may continue from commits that are taken away.
    fn check_quiet(&self) -> Result<(), OrderRefusal> {
        match self.state.phase {
            Phase::New => Err(OrderRefusal::NotBegun),
            Phase::Running if !self.state.paused && self.goes_on() => Err(OrderRefusal::Working),
            _ if self.state.is_planning() => Err(OrderRefusal::NoPlanYet),
            Phase::Running | Phase::Ended { .. } => Ok(()),
        }
    }

    fn goes_on(&self) -> bool {
        self.state.lanes.iter().any(|lane| lane.wait.is_none())
    }

    fn ids(&self, wanted: impl Fn(&String, FeatureStatus) -> bool) -> Vec<String> {
        let features = self.state.features.iter().filter(|feature| wanted(&feature.spec.id, feature.status));
        features.map(|feature| feature.spec.id.clone()).collect()
    }

    /// Resets it to a feature without work, except its usage and its attempts.
    fn take_back(&mut self, id: &str, why: &str) {
        if let Some(feature) = self.state.feature_mut(id) {
            feature.commit = None;
            feature.files.clear();
            feature.summary.clear();
            feature.last_error = None;
            feature.generated = None;
            feature.confidence = None;
        }
        self.forgive_attempts(id);
        self.set_status(id, NotStarted, why);
    }

    /// A person requested it: it may be attempted as often again.
    fn forgive_attempts(&mut self, id: &str) {
        if let Some(feature) = self.state.feature_mut(id) {
            feature.attempts_forgiven = feature.attempts;
        }
    }

    /// Leaves the run to a resume. An abandoned run stays abandoned.
    fn leave_to_a_resume(&mut self) {
        match self.ended() {
            Some(EndStatus::Abandoned) => return,
            // As a resume does: failures in a row are counted again.
            Some(_) => self.state.counts = Counts { edits: self.state.counts.edits, ..Counts::default() },
            None => {}
        }
        self.state.phase = Phase::Running;
        if !self.state.paused {
            self.state.paused = true;
            self.emit(Event::Paused);
        }
    }
}
