//! The wait of a run for its turn in the queue, for other runs of its project, and then for memory of the machine.
//!
//! The actor asks when no work of its run is under way, and says why the run waits. The queue decides which run is
//! next, and admission control decides about memory. Nothing here starts or ends work.

use super::RunActor;
use crate::queue::{ProjectCap, QueueWait, RunPlace};
use longhaul_core::capacity::AdmissionVerdict;
use longhaul_core::event::Event;
use longhaul_core::fault;
use longhaul_core::store::Batch;
use longhaul_core::text::count;
use longhaul_harness::Input;
use longhaul_records::record;
use std::sync::Arc;

impl RunActor {
    /// Enters the queue of runs, before [`Self::live`] with the same input: runs that are resumed one after the other
    /// have their places in this order, whichever of them begins to work first. A run that needs no turn gives its
    /// place back.
    pub fn enter_queue(&mut self, first: Option<&Input>) {
        self.arrived_ms = Some(self.arrival_ms(first));
        self.place();
    }

    /// Gives its place back while it waits for a person or a service.
    pub(super) fn release_place(&mut self) {
        if self.running.is_empty() && self.waits.get().is_none() {
            self.place = None;
        }
    }

    /// True when it is the turn of the run, and the machine has capacity for it to continue. Asked when no work is
    /// under way, and not again until the work has ended: work that has begun keeps its place. Waiting work is in the
    /// state and begins once there is capacity.
    pub(super) async fn has_room(&mut self) -> fault::Result<bool> {
        if !self.running.is_empty() {
            return Ok(true);
        }
        let runs_max = self.capacity.runs_max();
        if let Some(wait) = self.ask_for_turn(runs_max) {
            self.wait_in_queue(wait, runs_max).await?;
            return Ok(false);
        }
        let admitted = self.capacity.admit(self.record.run.as_str(), !self.let_in, self.need);
        let AdmissionVerdict::Wait(why) = admitted else {
            self.let_in = true;
            self.waits.set(None);
            return Ok(true);
        };
        self.place().step_aside();
        if self.waits.get().is_none() {
            let text = format!("waits for room on this machine: {why}");
            self.keep(Batch::new(), vec![Event::Warning { text }]).await?;
        }
        self.waits.set(Some(why));
        Ok(false)
    }

    /// The time of its arrival in the queue. A run that broke off has the one of its wait, and one that was at work
    /// then comes before all that waited.
    fn arrival_ms(&self, first: Option<&Input>) -> u64 {
        match first {
            Some(Input::Begin { .. }) => self.record.created_ms,
            Some(_) => self.host.clock.now_ms(),
            None => self.queued_ms.unwrap_or(0),
        }
    }

    /// Its place in the queue, which it enters if it has none.
    fn place(&mut self) -> &mut RunPlace {
        let Self { place, queue, record, priority, arrived_ms, host, .. } = self;
        place.get_or_insert_with(|| {
            let since_ms = arrived_ms.take().unwrap_or_else(|| host.clock.now_ms());
            queue.enter(&record.run, record.scope(), *priority, since_ms)
        })
    }

    /// Asks the queue, with the cap of the project as its file has it now.
    fn ask_for_turn(&mut self, runs_max: u32) -> Option<QueueWait> {
        self.at_once.renew(&self.record, self.host.clock.now_ms());
        let (capacity, project) = (Arc::clone(&self.capacity), self.record.scope().to_owned());
        let elsewhere = || capacity.runs_elsewhere(&project);
        let cap = self.at_once.runs_max.map(|runs_max| ProjectCap { runs_max, elsewhere: &elsewhere });
        self.place().ask(runs_max, cap.as_ref())
    }

    /// Waits for its turn. The beginning of the wait is an event, and its time is stored with it.
    async fn wait_in_queue(&mut self, wait: QueueWait, runs_max: u32) -> fault::Result<()> {
        let QueueWait { place, .. } = wait;
        let of_project = self.at_once.runs_max.filter(|_| wait.is_capped);
        if self.waits.get().is_none() {
            let since_ms = self.place().since_ms();
            let batch = record::put_queued(Batch::new(), &self.record.run, since_ms);
            let event = match of_project {
                None => Event::RunQueued { place, runs_max },
                Some(max) => Event::Warning { text: format!("waits for its turn: {}", self.cap_words(max)) },
            };
            self.keep(batch, vec![event]).await?;
            self.queued_ms = Some(since_ms);
        }
        let why = match of_project {
            None => format!("{runs_max} runs work at once at most (runs_max in resources.toml)"),
            Some(max) => self.cap_words(max),
        };
        self.waits.set(Some(format!("it is number {place} in the queue, since {why}")));
        Ok(())
    }

    fn cap_words(&self, max: u32) -> String {
        let project = &self.record.project;
        format!(
            "runs_at_once_max under [project] of longhaul.toml allows {} of project `{project}` at once, on all servers \
             together",
            count(max as usize, "run")
        )
    }
}
