//! One attempt at a feature: its beginning, its work, and its end.
//!
//! A session passes through `propose` (once a feature), `prepare`, `agree` if something was proposed, then rounds of
//! `generate` and `judge`, and ends in `commit` or `discard`. If the branch has moved meanwhile, `merge` brings its
//! commits into the tree, and the result is judged again: only a judged tree is committed.

use super::Turn;
use crate::action::{Work, WorkKind};
use crate::evidence;
use crate::route;
use crate::state::{Feature, Session};
use crate::texts;
use longhaul_core::event::Event;
use longhaul_core::work::FeatureStatus;

impl Turn<'_> {
    pub(super) fn start_session(&mut self, position: usize) {
        let id = self.state.features[position].spec.id.clone();
        if self.go_on_with(&id) {
            return;
        }
        self.state.counts.sessions = self.state.counts.sessions.saturating_add(1);
        let slot = self.free_slot();
        let feature = &mut self.state.features[position];
        feature.sessions = feature.sessions.saturating_add(1);
        feature.vacuous.clear();
        let number = feature.sessions;
        self.emit(Event::SessionStarting { feature: id.clone(), session: number });
        self.set_status(&id, FeatureStatus::InProgress, &format!("session {number}"));
        let session = Session { slot, ..Session::of(&id) };
        if self.state.is_ask() {
            return self.start_generate(session);
        }
        match self.proposer(position) {
            Some(agent) => self.start_propose(session, agent),
            None => self.start_prepare(session),
        }
    }

    /// The lowest number of a tree that no active session has.
    fn free_slot(&self) -> u32 {
        let taken = |slot: u32| {
            let mut sessions = self.state.lanes.iter().filter_map(|lane| lane.session.as_ref());
            sessions.any(|session| session.slot == slot)
        };
        (0..).find(|slot| !taken(*slot)).unwrap_or_default()
    }

    /// The agent that looks for additional criteria and checks, once a feature: never the feature's own agent.
    fn proposer(&self, position: usize) -> Option<String> {
        let feature = &self.state.features[position];
        let proposer = self.state.setup.contract_by.as_ref().filter(|_| !feature.proposed)?;
        (self.agent_of(feature) != proposer).then(|| proposer.clone())
    }

    fn agent_of<'a>(&'a self, feature: &'a Feature) -> &'a str {
        let spec = &feature.spec;
        if self.state.is_ask() {
            return spec.agent.as_deref().unwrap_or_else(|| self.default_agent());
        }
        route::agent_of(spec.agent.as_deref(), &spec.category, &self.state.setup)
    }

    fn start_propose(&mut self, session: Session, agent: String) {
        let Some((_, feature)) = self.find(&session.feature) else { return };
        let job = WorkKind::Propose {
            feature: session.feature.clone(),
            agent,
            task: texts::proposal_task(self.state, feature),
        };
        self.start_work(session, "propose", job);
    }

    /// Brings the tree to the branch's tip, and pins the checks of the feature.
    pub(super) fn start_prepare(&mut self, session: Session) {
        let Some((_, feature)) = self.find(&session.feature) else { return };
        let job = WorkKind::Prepare { feature: session.feature.clone(), checks: feature.spec.checks.clone() };
        self.start_work(session, "prepare", job);
    }

    /// Requests the session's present round.
    pub(super) fn start_generate(&mut self, session: Session) {
        let Some((_, feature)) = self.find(&session.feature) else { return };
        let job = WorkKind::Generate {
            feature: session.feature.clone(),
            round: session.round,
            agent: self.agent_of(feature).to_owned(),
            task: match self.state.is_ask() {
                true => texts::ask_task(self.state, feature),
                false => texts::task(self.state, feature, &session),
            },
        };
        let name = match session.handoffs {
            0 => format!("{}/generate", session.round),
            handoffs => format!("{}/generate/h{handoffs}", session.round),
        };
        self.start_work(session, &name, job);
    }

    /// Requests a verdict on the feature's last output, with its tree as it is now.
    pub(super) fn start_judge(&mut self, session: Session) {
        let Some((_, feature)) = self.find(&session.feature) else { return };
        let job = WorkKind::Judge {
            feature: session.feature.clone(),
            round: session.round,
            generated: feature.generated.clone().unwrap_or_default(),
            instruction: feature.spec.instruction.clone(),
            criteria: evidence::criteria(feature),
        };
        let name = match session.merges {
            0 => format!("{}/judge", session.round),
            merges => format!("{}/judge/m{merges}", session.round),
        };
        self.start_work(session, &name, job);
    }

    pub(super) fn start_merge(&mut self, mut session: Session) {
        session.merges = session.merges.saturating_add(1);
        let (name, job) = (format!("merge/m{}", session.merges), WorkKind::Merge { feature: session.feature.clone() });
        self.start_work(session, &name, job);
    }

    pub(super) fn start_commit(&mut self, session: Session) {
        let Some((_, feature)) = self.find(&session.feature) else { return };
        let job =
            WorkKind::Commit { feature: session.feature.clone(), message: texts::commit_message(self.state, feature) };
        let mut name = "commit".to_owned();
        if session.merges > 0 {
            name.push_str(&format!("/m{}", session.merges));
        }
        // After a refusal the commit differs from the one that the person refused.
        if session.refusals > 0 {
            name.push_str(&format!("/r{}", session.refusals));
        }
        self.start_work(session, &name, job);
    }

    /// Has the driver restore the tree; then the session is over. An ask has none.
    pub(super) fn start_discard(&mut self, session: Session) {
        if self.state.is_ask() {
            return self.end_session(&session);
        }
        let job = WorkKind::Discard { feature: session.feature.clone() };
        self.start_work(session, "discard", job);
    }

    pub(super) fn discard_of(&self, session: &Session) -> Option<Work> {
        if self.state.is_ask() {
            return None;
        }
        self.work_of(session, "discard", WorkKind::Discard { feature: session.feature.clone() })
    }

    pub(super) fn start_work(&mut self, session: Session, name: &str, job: WorkKind) {
        if let Some(work) = self.work_of(&session, name, job) {
            self.start(Some(session), work);
        }
    }

    fn work_of(&self, session: &Session, name: &str, job: WorkKind) -> Option<Work> {
        let (_, feature) = self.find(&session.feature)?;
        Some(Work::new(format!("{}/{name}", feature.key_prefix()), job))
    }

    /// The session is over, and its lane is free.
    pub(super) fn end_session(&mut self, session: &Session) {
        let next_action = self.next_action();
        let Some((_, feature)) = self.find(&session.feature) else { return self.advance() };
        let event = Event::SessionComplete {
            feature: session.feature.clone(),
            session: feature.sessions,
            outcome: feature.status,
            next_action,
        };
        self.emit(event);
        self.advance();
    }

    fn next_action(&self) -> String {
        match self.next_feature().map(|position| &self.state.features[position].spec) {
            Some(spec) => format!("work on `{}`", spec.id),
            None => "nothing is left that can be worked on".to_owned(),
        }
    }
}
