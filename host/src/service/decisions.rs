//! The decisions of a project: listed, found, judged.

use super::{Answer, Service};
use longhaul_core::decision::{Decision, DecisionHit, DecisionOutcome, relevant};
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::store::Batch;
use longhaul_harness::decisions::clamp_score;
use longhaul_records::decisions;
use longhaul_records::record::StoredRun;

impl Service {
    pub(super) fn decisions(
        &self,
        stored: &StoredRun,
        question: Option<String>,
        limit: usize,
    ) -> fault::Result<Answer> {
        let all = decisions::all(&*self.host.store, stored.record.scope())?;
        let hits = match question {
            Some(question) => relevant(all, &question, self.host.clock.now_ms(), limit),
            None => {
                let hit = |decision| DecisionHit { decision, relevance: 0.0, why: String::new() };
                all.into_iter().take(limit).map(hit).collect()
            }
        };
        Ok(Answer::Decisions { hits })
    }

    /// The decision of that id, or the one whose id begins so.
    pub(super) fn decision(&self, stored: &StoredRun, id: &str) -> fault::Result<Decision> {
        let all = decisions::all(&*self.host.store, stored.record.scope())?;
        if let Some(exact) = all.iter().find(|decision| decision.id == id) {
            return Ok(exact.clone());
        }
        let mut fitting = all.into_iter().filter(|decision| decision.id.starts_with(id));
        match (fitting.next(), fitting.next()) {
            (Some(decision), None) => Ok(decision),
            (Some(_), Some(_)) => {
                bail!(Fault::conflict(format!("several decisions begin with `{id}`; write more of it")))
            }
            (None, _) => bail!(Fault::unknown(format!("there is no decision `{id}`; `longhaul decisions` lists them"))),
        }
    }

    /// One decision, by the beginning of its id.
    pub(super) fn show_decision(&self, stored: &StoredRun, id: &str) -> fault::Result<Answer> {
        Ok(one_hit(self.decision(stored, id)?))
    }

    pub(super) async fn judge_decision(
        &self,
        stored: &StoredRun,
        id: &str,
        outcome: Option<DecisionOutcome>,
        score: Option<f64>,
        lesson: Option<String>,
    ) -> fault::Result<Answer> {
        let mut decision = self.decision(stored, id)?;
        decision.outcome = outcome.unwrap_or(decision.outcome);
        decision.score = score.map(clamp_score).or(decision.score);
        decision.lesson = lesson.or(decision.lesson);
        let store = &*self.host.store;
        let batch = longhaul_core::decision::put(store, Batch::new(), stored.record.scope(), &decision)?;
        store.commit(batch).await?;
        Ok(one_hit(decision))
    }
}

fn one_hit(decision: Decision) -> Answer {
    Answer::Decisions { hits: vec![DecisionHit { decision, relevance: 0.0, why: String::new() }] }
}
