//! Instances that were made ahead of the jobs that need them.
//!
//! One shelf a language: a job takes an instance, and its place is refilled off the job's path. An
//! instance serves one job and is dropped, whoever it served.

use super::{ExecError, Job, JobLimits, Language, setup};
use longhaul_capabilities::Console;
use longhaul_engine::{Plugin, Standby};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The shelves.
#[derive(Clone, Default)]
pub(super) struct Ready {
    shelves: Arc<Mutex<HashMap<Language, Shelf>>>,
}

struct Shelf {
    plugin: Arc<Plugin>,
    limits: JobLimits,
    waiting: VecDeque<(Standby, Console)>,
}

impl Ready {
    pub(super) async fn keep(
        &self,
        language: Language,
        plugin: Arc<Plugin>,
        limits: JobLimits,
        count: usize,
    ) -> Result<(), ExecError> {
        let mut waiting = VecDeque::with_capacity(count);
        for _ in 0..count {
            waiting.push_back(make(&plugin, &limits).await?);
        }
        self.lock().insert(language, Shelf { plugin, limits, waiting });
        Ok(())
    }

    /// An instance that fits the job, if one waits: one that sees nothing, with the same limits.
    pub(super) fn take(&self, job: &Job) -> Option<(Standby, Console)> {
        let language = job.code.language();
        let mut shelves = self.lock();
        let shelf = shelves.get_mut(&language)?;
        if shelf.limits != job.limits || !job.directories.is_empty() || !job.hosts.is_empty() {
            return None;
        }
        let taken = shelf.waiting.pop_front();
        let (ready, plugin, limits) = (self.clone(), Arc::clone(&shelf.plugin), shelf.limits.clone());
        drop(shelves);
        if taken.is_some() {
            tokio::spawn(async move { ready.refill(language, &plugin, &limits).await });
        }
        taken
    }

    async fn refill(&self, language: Language, plugin: &Plugin, limits: &JobLimits) {
        match make(plugin, limits).await {
            Ok(made) => {
                // The shelf may be another one by now.
                if let Some(shelf) = self.lock().get_mut(&language).filter(|shelf| shelf.limits == *limits) {
                    shelf.waiting.push_back(made);
                }
            }
            Err(error) => tracing::warn!("an instance could not be made ahead: {error}"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Language, Shelf>> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn make(plugin: &Plugin, limits: &JobLimits) -> Result<(Standby, Console), ExecError> {
    let console = Console::new(limits.output_bytes_max);
    let setup = setup(limits, Vec::new(), Vec::new(), &console);
    let standby = plugin.stand_by(setup).await.map_err(|error| ExecError::Host(error.to_string()))?;
    Ok((standby, console))
}
