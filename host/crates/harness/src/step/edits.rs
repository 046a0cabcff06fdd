//! Features that an operator adds, edits or drops while the run works, or after it ended.
//!
//! An edit of the feature under work cancels its work, restores the tree and begins a new session, whose keys differ,
//! so that no late report of the old one can count for the new one.

use super::{Ignored, OrderRefusal, Turn};
use crate::action::{EndStatus, Work, WorkKind};
use crate::plan;
use crate::state::{Feature, Lane, Phase};
use crate::{select, texts};
use longhaul_core::work::FeatureSpec;
use longhaul_core::work::FeatureStatus::{Dropped, InProgress, NotStarted, Passing};

type Taken = Result<Option<Ignored>, OrderRefusal>;

impl Turn<'_> {
    pub(super) fn add(&mut self, spec: FeatureSpec) -> Taken {
        self.check_editable()?;
        let spec = self.accept(spec, None)?;
        let id = spec.id.clone();
        self.state.features.push(Feature::new(spec));
        // The planner synthesises two answers.
        self.state.direct = false;
        self.set_status(&id, NotStarted, "added by the operator");
        self.edited();
        Ok(None)
    }

    pub(super) fn edit(&mut self, spec: FeatureSpec) -> Taken {
        self.check_editable()?;
        let position = self.position(&spec.id)?;
        self.check_not_committing(&spec.id)?;
        let spec = self.accept(spec, Some(position))?;
        if self.state.features[position].spec == spec && self.state.features[position].status != Dropped {
            return Ok(Some(Ignored::NothingToDo));
        }
        let id = spec.id.clone();
        let feature = &mut self.state.features[position];
        feature.spec = spec;
        // A person set the rubric, so no offer waits for consent any more.
        feature.offered = None;
        feature.consent = None;
        feature.attempts_forgiven = feature.attempts;
        let goes_on = feature.status == InProgress;
        // It stays in progress, so that it is chosen first, unless it now waits for another.
        let feature = &self.state.features[position];
        let status =
            if goes_on && select::dependencies_pass(feature, &self.state.features) { InProgress } else { NotStarted };
        self.set_status(&id, status, "edited by the operator");
        self.leave(&id);
        self.edited();
        Ok(None)
    }

    pub(super) fn drop_feature(&mut self, id: &str) -> Taken {
        self.check_editable()?;
        let position = self.position(id)?;
        self.check_not_committing(id)?;
        match self.state.features[position].status {
            Dropped => return Ok(Some(Ignored::NothingToDo)),
            Passing => return Err(OrderRefusal::AlreadyPasses { feature: id.to_owned() }),
            _ => {}
        }
        self.set_status(id, Dropped, "dropped by the operator");
        self.leave(id);
        self.edited();
        Ok(None)
    }

    fn check_editable(&self) -> Result<(), OrderRefusal> {
        match self.ended() {
            Some(status @ (EndStatus::Failed | EndStatus::Abandoned)) => return Err(OrderRefusal::Ended { status }),
            Some(EndStatus::Completed | EndStatus::Incomplete) | None => {}
        }
        if self.state.phase == Phase::New {
            return Err(OrderRefusal::NotBegun);
        }
        if self.state.is_planning() {
            return Err(OrderRefusal::NoPlanYet);
        }
        let edits_max = self.state.limits.edits_max;
        if self.state.counts.edits >= edits_max {
            return Err(OrderRefusal::TooManyEdits { edits_max });
        }
        Ok(())
    }

    fn position(&self, id: &str) -> Result<usize, OrderRefusal> {
        let found = self.state.features.iter().position(|feature| feature.spec.id == id);
        found.ok_or_else(|| OrderRefusal::UnknownFeature { feature: texts::line(id, 80) })
    }

    /// A commit cannot be cancelled once it is requested, but it can while it waits for a person.
    pub(super) fn check_not_committing(&self, id: &str) -> Result<(), OrderRefusal> {
        let lane = self.state.lane_of(id).map(|position| &self.state.lanes[position]);
        match lane {
            Some(Lane { work: Work { job: WorkKind::Commit { .. }, .. }, wait: None, .. }) => {
                Err(OrderRefusal::BeingCommitted { feature: id.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// The feature as it will be stored; `replaces` is the position of its predecessor.
    fn accept(&mut self, spec: FeatureSpec, replaces: Option<usize>) -> Result<FeatureSpec, OrderRefusal> {
        let numbered = self.state.features.iter().enumerate();
        let others: Vec<_> =
            numbered.filter(|(position, _)| Some(*position) != replaces).map(|(_, other)| &other.spec).collect();
        let (spec, warnings) = plan::accept_edit(spec, &others, &self.state.setup, &self.state.limits)?;
        warnings.into_iter().for_each(|warning| self.warn(warning));
        Ok(spec)
    }

    /// Cancels the work on a feature, if there is any, and has the tree restored.
    pub(super) fn leave(&mut self, id: &str) {
        let Some(position) = self.state.lane_of(id) else { return };
        if matches!(self.state.lanes[position].work.job, WorkKind::Discard { .. }) {
            return;
        }
        let Lane { session: Some(session), .. } = self.cancel(position) else { return };
        if self.ended().is_none() {
            return self.start_discard(session);
        }
        // Held-back work was not started; `edited` resumes the run with this instead.
        if let Some(work) = self.discard_of(&session) {
            self.state.lanes.push(Lane { session: Some(session), work, wait: None });
        }
    }

    pub(super) fn edited(&mut self) {
        self.state.counts.edits = self.state.counts.edits.saturating_add(1);
        self.settle_or_reopen();
    }
}
