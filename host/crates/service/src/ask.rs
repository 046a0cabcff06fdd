//! Starting an ask.
//!
//! An ask is a run without a repository: it commits nothing and moves no branch, so several may go on at once, and
//! beside a run of the same project.

use super::begin::begin;
use super::{Service, keyed_lock};
use longhaul_api::runs::{AffectedRun, AskRequest};
use longhaul_config::Config;
use longhaul_core::RunId;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault::{self, Context, bail};
use longhaul_core::store::Batch;
use longhaul_harness::{RunState, step};
use longhaul_plugins::plugin_set;
use longhaul_preflight::CheckScope;
use longhaul_records::bus::EventBus;
use longhaul_records::pins::PYTHON_CHECKS;
use longhaul_records::record::{RunRecord, StoredRun};
use longhaul_records::stop_condition::StopCondition;
use longhaul_run as run;
use std::sync::Arc;

/// Bytes of what is asked.
const GOAL_BYTES_MAX: usize = 1 << 20;

impl Service {
    pub(super) async fn start_ask(
        self: &Arc<Self>,
        question: AskRequest,
        named: Option<RunId>,
    ) -> fault::Result<AffectedRun> {
        // The outcomes of earlier asks are stored in memory meanwhile; this ask does not wait for them.
        self.remember_due_soon();
        let AskRequest { directory, goal, dispatch, plan, models } = question;
        let directory =
            directory.canonicalize().or_invalid(|| format!("there is no directory `{}`", directory.display()))?;
        if goal.len() > GOAL_BYTES_MAX {
            bail!("the question has {} bytes, more than {GOAL_BYTES_MAX}; name files instead", goal.len());
        }
        let text = longhaul_config::of_config(&directory).ok();
        let mut config = Config::read(&directory)?;
        self.expect_trust(&directory, &config)?;
        let claimed = self.claimed(&directory, &config).await?;
        self.keep_guards(&directory, &claimed.id, &config).await?;
        config.project.id.clone_from(&claimed.id);
        self.refuse_faults(&directory, &config, text.as_deref(), &models, &CheckScope::Ask).await?;
        let created_ms = self.host.clock.now_ms();
        let mut batch = Batch::new();
        let mut pins = plugin_set::pin(&self.host, &config, &directory, &mut batch)?;
        // Nothing is judged, so no evaluator is loaded.
        pins.retain(|table, _| table != PYTHON_CHECKS && table != "evaluator");
        let record = RunRecord {
            run: named.unwrap_or_else(|| RunId::derive(&config.project.name, created_ms, &self.host.fresh_seed())),
            project: config.project.name.clone(),
            id: claimed.id,
            directory,
            branch: String::new(),
            base: String::new(),
            config: text.unwrap_or_default(),
            goal,
            pins,
            models,
            model: None,
            plan,
            ask: Some(dispatch),
            passed_before: std::collections::BTreeMap::new(),
            created_ms,
        };
        let _begins = self.locks.begin(&record.run);
        // Another request may resume the run once it is stored, and must not before it is active here.
        let _alone = self.locks.take(keyed_lock::of_run(&record)).await;
        let begin = begin(self, &record, &config).await?;
        // The harness refuses before there is a run.
        step(&mut RunState::new(), created_ms, begin.clone())?;
        self.host.store.commit(batch).await?;
        let bus = EventBus::default();
        let executor = self.executor(record.clone(), bus.clone()).await?;
        let state = RunState::new();
        let started = Event::RunStarted { project: record.project.clone(), branch: String::new() };
        let told = claimed.told.map(|text| Event::Warning { text });
        let first: Vec<RunEvent> = (1..)
            .zip([started].into_iter().chain(told))
            .map(|(number, event)| RunEvent { run: record.run.clone(), number, at_ms: created_ms, event })
            .collect();
        let is_here = self.is_begun_here(&record)?;
        let mut batch = record.insert(Batch::new())?;
        if is_here {
            batch = run::places::put_here(batch, &self.host, &record, &config)?;
        }
        run::put_step(&*self.host.store, &mut batch, &record, &state, &first)?;
        self.host.store.commit(batch).await?;
        self.note_began(&record, &config).await?;
        if !is_here {
            drop(executor);
            return self.begin_elsewhere(&record).await;
        }
        let run = record.run.clone();
        self.activate(StoredRun { record, state }, executor, bus, Some(begin), StopCondition::End).await?;
        Ok(AffectedRun { run })
    }
}
