//! The decisions of a project: listed, found, judged.

use super::{Service, ServiceOperations};
use longhaul_api::decisions::{JudgeDecision, ListDecisions, ShowDecision};
use longhaul_api::operations::DecisionOperations;
use longhaul_core::decision::{Decision, DecisionHit, relevant, replace};
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::store::Batch;
use longhaul_harness::decisions::clamp_score;
use longhaul_records::contended::change;
use longhaul_records::decisions;
use longhaul_records::record::StoredRun;

#[async_trait::async_trait]
impl DecisionOperations for ServiceOperations<'_> {
    async fn decisions(&self, request: ListDecisions) -> fault::Result<Vec<DecisionHit>> {
        let ListDecisions { run, question, limit } = request;
        let host = &self.0.host;
        let all = decisions::all(&*host.store, self.0.find(&run)?.record.scope())?;
        Ok(match question {
            Some(question) => relevant(all, &question, host.clock.now_ms(), limit),
            None => all.into_iter().take(limit).map(plain_hit).collect(),
        })
    }

    async fn decision(&self, ShowDecision { run, id }: ShowDecision) -> fault::Result<DecisionHit> {
        Ok(plain_hit(self.0.decision(&self.0.find(&run)?, &id)?))
    }

    async fn judge_decision(&self, request: JudgeDecision) -> fault::Result<DecisionHit> {
        let JudgeDecision { run, id, outcome, score, lesson } = request;
        let stored = self.0.find(&run)?;
        let store = &*self.0.host.store;
        let judged = change(store, || {
            let before = self.0.decision(&stored, &id)?;
            let judged = Decision {
                outcome: outcome.unwrap_or(before.outcome),
                score: score.map(clamp_score).or(before.score),
                lesson: lesson.clone().or_else(|| before.lesson.clone()),
                ..before.clone()
            };
            Ok((replace(store, Batch::new(), stored.record.scope(), &before, &judged)?, judged))
        });
        Ok(plain_hit(judged.await?))
    }
}

impl Service {
    /// The decision of that id, or the one whose id begins so.
    fn decision(&self, stored: &StoredRun, id: &str) -> fault::Result<Decision> {
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
}

/// A decision that no question was asked about.
fn plain_hit(decision: Decision) -> DecisionHit {
    DecisionHit { decision, relevance: 0.0, why: String::new() }
}
