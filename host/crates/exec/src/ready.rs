//! Warm instances: made ahead of the jobs that need them.
//!
//! There is one pool for each language: a job takes an instance, and its place is refilled off the job's path, when no
//! other job came for a moment, or when half of the pool is empty. An instance serves one job and is dropped. While it
//! waits it runs [`rehearsal`], a source of the host: this leaves a warmer heap in an interpreter, and nothing that a
//! job could tell from a fresh start except time, fuel and addresses.

use crate::call::{run_call, setup, streaming};
use crate::error::ExecError;
use crate::job::{Code, GraphLanguage, Job, JobLimits};
use longhaul_capabilities::Console;
use longhaul_engine::{CallError, Plugin, WarmInstance};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time for which no job may come before places are refilled.
const REST: Duration = Duration::from_millis(2);

/// The pools of all languages.
#[derive(Clone, Default)]
pub(crate) struct WarmPool {
    pools: Arc<Mutex<HashMap<GraphLanguage, LanguagePool>>>,
}

struct LanguagePool {
    plugin: Arc<Plugin>,
    limits: JobLimits,
    waiting: Vec<(WarmInstance, Console)>,
    /// The number of instances that should wait.
    count: usize,
    making: usize,
    /// Jobs so far.
    jobs: u64,
}

impl WarmPool {
    pub(crate) async fn keep(
        &self,
        language: GraphLanguage,
        plugin: Arc<Plugin>,
        limits: JobLimits,
        count: usize,
    ) -> Result<(), ExecError> {
        let mut waiting = Vec::with_capacity(count);
        for _ in 0..count {
            waiting.push(make(language, &plugin, &limits).await?);
        }
        self.lock().insert(language, LanguagePool { plugin, limits, waiting, count, making: 0, jobs: 0 });
        Ok(())
    }

    /// A waiting instance that fits the job, if there is one: a job without grants, with the same limits.
    pub(crate) fn take(&self, job: &Job) -> Option<(WarmInstance, Console)> {
        let language = job.code.language();
        let mut pools = self.lock();
        let pool = pools.get_mut(&language)?;
        if pool.limits != job.limits || !job.directories.is_empty() || !job.hosts.is_empty() {
            return None;
        }
        // The newest instance: more of it is in the processor caches.
        pool.waiting.pop()
    }

    /// Refills the pool of a language after a job has ended: two instances in one address space delay each other when
    /// pages are touched for the first time. It also retries instances that could not be made before.
    pub(crate) fn restock(&self, language: GraphLanguage) {
        let Some(jobs) = self.note_job(language) else { return };
        let ready = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(REST).await;
            ready.refill_all(language, |pool| pool.jobs == jobs);
        });
        self.refill_all(language, |pool| 2 * (pool.waiting.len() + pool.making) < pool.count);
    }

    fn note_job(&self, language: GraphLanguage) -> Option<u64> {
        let mut pools = self.lock();
        let pool = pools.get_mut(&language)?;
        pool.jobs += 1;
        Some(pool.jobs)
    }

    /// Starts to make the missing instances, if it is time.
    fn refill_all(&self, language: GraphLanguage, is_time: impl Fn(&LanguagePool) -> bool) {
        let mut pools = self.lock();
        let Some(pool) = pools.get_mut(&language).filter(|pool| is_time(pool)) else { return };
        for _ in pool.waiting.len() + pool.making..pool.count {
            pool.making += 1;
            let (ready, plugin, limits) = (self.clone(), Arc::clone(&pool.plugin), pool.limits.clone());
            tokio::spawn(async move { ready.refill(language, &plugin, &limits).await });
        }
    }

    async fn refill(&self, language: GraphLanguage, plugin: &Plugin, limits: &JobLimits) {
        let made = make(language, plugin, limits).await;
        // Another pool may be there by now.
        let mut pools = self.lock();
        let Some(pool) = pools.get_mut(&language).filter(|pool| pool.limits == *limits) else { return };
        pool.making = pool.making.saturating_sub(1);
        match made {
            Ok(made) => pool.waiting.push(made),
            Err(error) => tracing::warn!("an instance could not be made ahead: {error}"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<GraphLanguage, LanguagePool>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn make(
    language: GraphLanguage,
    plugin: &Plugin,
    limits: &JobLimits,
) -> Result<(WarmInstance, Console), ExecError> {
    let console = Console::new(limits.output_bytes_max);
    let failed = |error: CallError| ExecError::Host(error.to_string());
    let standby = plugin.stand_by(setup(limits, Vec::new(), Vec::new(), &console)).await.map_err(failed)?;
    let source = rehearsal(language);
    let call = run_call(plugin, &Job::of(Code::Python(source.into())), source);
    let standby = plugin.rehearse_tool(standby, &call, &streaming(limits)).await.map_err(failed)?;
    Ok((standby, console))
}

/// Does what most jobs do, so that the pages which they write exist, and leaves no output.
fn rehearsal(language: GraphLanguage) -> &'static str {
    match language {
        GraphLanguage::Python => include_str!("ready/rehearsal.py"),
        GraphLanguage::JavaScript => "process.stdout.write('')",
        GraphLanguage::Wasm => "",
    }
}
