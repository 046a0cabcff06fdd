//! The rubric of a feature before the work on it begins: an agent offers additions, and the evaluator consents.
//!
//! Consent is demonstrated and not requested: the evaluator judges the unchanged tree by the offer. A criterion that it
//! can mark now, it will be able to mark later. A criterion that it cannot mark is not added: no work could ever pass
//! by it. Nothing that was planned is changed here.

use super::Turn;
use crate::action::WorkKind;
use crate::contract::{self, Extended};
use crate::state::{Offered, Session};
use crate::texts;
use longhaul_core::event::Event;
use longhaul_core::work::{Judgement, Mark, Verdict};

impl Turn<'_> {
    pub(super) fn proposed(&mut self, session: Session, output: &str) {
        let Some((position, feature)) = self.find(&session.feature) else { return };
        match contract::extend(&feature.spec, output, &self.state.setup, &self.state.limits) {
            Ok(Extended { spec, criteria, checks, left_out }) => {
                let feature = &mut self.state.features[position];
                feature.spec = spec;
                feature.proposed = true;
                feature.offered = (!criteria.is_empty()).then_some(Offered { criteria, checks });
                left_out.into_iter().for_each(|why| self.warn(format!("feature `{}`: {why}", session.feature)));
                self.start_prepare(session);
            }
            Err(error) => self.not_proposed(session, &error.to_string()),
        }
    }

    /// The rubric stays as it was planned: it can be extended, and a failed extension takes nothing away.
    pub(super) fn not_proposed(&mut self, session: Session, why: &str) {
        if let Some(feature) = self.state.feature_mut(&session.feature) {
            feature.proposed = true;
        }
        self.warn(format!("feature `{}`: nothing was added to its rubric: {why}", session.feature));
        self.start_prepare(session);
    }

    pub(super) fn start_agree(&mut self, session: Session) {
        let Some((_, feature)) = self.find(&session.feature) else { return };
        let offered = feature.offered.as_ref().map(|offered| offered.criteria.as_slice()).unwrap_or_default();
        let criteria = feature.spec.criteria.iter().filter(|criterion| offered.contains(&criterion.id));
        let job = WorkKind::Agree {
            feature: session.feature.clone(),
            instruction: feature.spec.instruction.clone(),
            output: texts::NOTHING_YET.to_owned(),
            criteria: criteria.cloned().collect(),
        };
        self.start_work(session, "agree", job);
    }

    pub(super) fn agreed(&mut self, session: Session, verdict: &Verdict) {
        let marked = |id: &str| verdict.judgements.iter().find(|judgement| judgement.criterion == id);
        self.agree_to(&session.feature, |id| match marked(id) {
            Some(Judgement { mark: Mark::Pass | Mark::Fail, .. }) => Ok(()),
            Some(Judgement { why, .. }) => Err(why.clone()),
            None => Err("it was not judged".to_owned()),
        });
        self.start_generate(session);
    }

    /// An evaluator without a verdict consents to nothing.
    pub(super) fn not_agreed(&mut self, session: Session, why: &str) {
        self.agree_to(&session.feature, |_| Err(why.to_owned()));
        self.start_generate(session);
    }

    /// Keeps the offered criteria that get `consent`.
    fn agree_to(&mut self, id: &str, consent: impl Fn(&str) -> Result<(), String>) {
        let Some(feature) = self.state.feature_mut(id) else { return };
        let Some(mut offered) = feature.offered.take() else { return };
        let consents = offered.criteria.iter().map(|criterion| (criterion.clone(), consent(criterion)));
        let refused: Vec<_> = consents.filter_map(|(criterion, consent)| Some((criterion, consent.err()?))).collect();
        contract::withdraw(&mut feature.spec, &mut offered, |id| refused.iter().any(|(criterion, _)| criterion == id));
        self.emit(Event::Contract { feature: id.to_owned(), criteria: offered.criteria, checks: offered.checks });
        for (criterion, why) in refused {
            let why = self.line(&why);
            self.warn(format!(
                "feature `{id}`: criterion `{criterion}` is not added, the evaluator cannot judge it: {why}"
            ));
        }
    }
}
