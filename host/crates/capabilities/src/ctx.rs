//! The host's state of one invocation, which its capabilities share.
//!
//! A `Ctx` lives as long as its store and is never used for a second invocation.

use crate::conversation::Conversations;
use crate::disk_quota::DiskQuota;
use crate::http::Outgoing;
use crate::in_flight::InFlight;
use crate::log::LogBook;
use crate::meter::Meter;
use crate::pipe::PipeEnd;
use crate::setup::{InvocationScope, InvocationSetup, Services};
use crate::stop::Stop;
use crate::supervised::UnreportedUsage;
use crate::time::GuestClock;
use longhaul_core::context::PinnedContext;
use longhaul_core::event::{Event, WorkUsage};
use longhaul_core::grant::Grants;
use longhaul_core::journal::Journal;
use longhaul_core::memory::Trust;
use longhaul_core::process_registry::GuestRecord;
use longhaul_core::text::truncate;
use longhaul_core::tool::ToolInfo;
use longhaul_core::{InvocationId, LimitHit, Limits};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

/// Distinct sources of untrusted text in one invocation, and bytes of a source's name.
const SOURCES_MAX: usize = 32;
const SOURCE_BYTES_MAX: usize = 200;

/// The names of sources that are no tools: the invocation's input, and all beyond the number of sources.
const HANDED: &str = "what it was handed";
const FURTHER: &str = "further sources";

/// The state of one invocation.
pub struct Ctx {
    pub(crate) invocation: InvocationId,
    pub(crate) scope: InvocationScope,
    pub(crate) grants: Grants,
    pub(crate) limits: Limits,
    pub(crate) services: Services,
    pub(crate) journal: Option<Arc<dyn Journal>>,
    pub(crate) pinned_context: Option<PinnedContext>,
    pub(crate) clock: Arc<GuestClock>,
    pub(crate) in_flight: InFlight,
    pub(crate) conversations: Conversations,
    pub(crate) tool_infos: Option<Vec<ToolInfo>>,
    pub(crate) log: LogBook,
    /// Bytes of log since the log last yielded.
    pub(crate) logged_bytes: usize,
    pub(crate) wasi: WasiCtx,
    /// Its quota of bytes in directories.
    pub(crate) disk: Arc<DiskQuota>,
    /// Its end of a pipe to another guest.
    pipe: Option<PipeEnd>,
    pub(crate) table: ResourceTable,
    /// The time at which each pollable of a clock is ready, in microseconds of the guest's clock, by its handle. The
    /// table bounds their number.
    pub(crate) timers: BTreeMap<u32, u64>,
    pub(crate) http: Outgoing,
    /// The resources of the instance: the engine's limiter.
    pub meter: Meter,
    /// Fuel used up to the last call of an import; the engine updates it.
    pub fuel_used: u64,
    /// Its usage, except fuel and memory, which the engine counts.
    pub used: WorkUsage,
    /// The usage of its sub-agents.
    pub delegated: WorkUsage,
    /// Events that are reported after it has ended; the next attempt of an interrupted invocation repeats them.
    pub events: Vec<Event>,
    pub(crate) delegations_asked: u32,
    pub(crate) steps: u32,
    /// The lowest trust of any text that it has read, which may be in all its later output.
    pub heard: Trust,
    /// The sources of that text that need an approval before an act outside.
    pub(crate) untrusted: BTreeSet<String>,
    pub(crate) watched: UnreportedUsage,
    /// Bytes in its key-value space, once counted.
    pub(crate) space_bytes: Option<u64>,
}

impl Ctx {
    /// The state of a new invocation.
    ///
    /// # Errors
    /// A directory that was granted cannot be opened.
    pub fn new(setup: InvocationSetup) -> Result<Self, std::io::Error> {
        let clock = Arc::new(GuestClock::new(setup.journal.clone(), setup.services.clock.clone()));
        let log = LogBook::new(&setup.limits);
        let wasi = crate::wasi::context(&setup, &clock, &log)?;
        let mut table = ResourceTable::new();
        table.set_max_capacity(setup.limits.handles_max as usize);
        let guest = GuestRecord::new(
            setup.invocation.clone(),
            setup.scope.project.clone(),
            setup.scope.plugin.clone(),
            setup.limits.memory_bytes_max,
            setup.limits.fuel_max,
        );
        Ok(Self {
            meter: Meter::new(&setup.limits, Arc::new(guest)),
            http: Outgoing::new(&setup, &log),
            disk: DiskQuota::new(setup.limits.disk_bytes_max),
            invocation: setup.invocation,
            scope: setup.scope,
            grants: setup.grants,
            limits: setup.limits,
            services: setup.services,
            journal: setup.journal,
            pinned_context: setup.context,
            clock,
            in_flight: InFlight::default(),
            conversations: Conversations::default(),
            tool_infos: None,
            log,
            logged_bytes: 0,
            wasi,
            pipe: setup.console.and_then(|console| console.pipe),
            table,
            timers: BTreeMap::new(),
            fuel_used: 0,
            used: WorkUsage::default(),
            delegated: WorkUsage::default(),
            events: Vec::new(),
            delegations_asked: 0,
            steps: 0,
            heard: setup.told.unwrap_or(Trust::OwnWords),
            untrusted: setup.told.filter(|told| is_untrusted(*told)).map(|_| HANDED.to_owned()).into_iter().collect(),
            watched: UnreportedUsage::default(),
            space_bytes: None,
        })
    }

    /// Closes the guest's open streams: printed text without a final line feed is in its log then, and the guest at the
    /// other end of a pipe reads the end. It makes no call after this.
    pub fn close(&mut self) {
        self.table = ResourceTable::new();
        if let Some(pipe) = &self.pipe {
            pipe.close();
        }
    }

    /// Its effects in flight.
    #[must_use]
    pub fn in_flight(&self) -> InFlight {
        self.in_flight.clone()
    }

    /// The cap that refused it something, whatever it did then: growth of memory or tables, or a write to a disk.
    #[must_use]
    pub fn refused(&self) -> Option<LimitHit> {
        self.meter.refused.clone().or_else(|| self.disk.refused())
    }

    /// The plugin's log, which outlives the invocation.
    #[must_use]
    pub fn log_book(&self) -> LogBook {
        self.log.clone()
    }

    /// Counts a call of an import. Every interface is linked with this, so wasmtime's own entries into the host, such
    /// as a yield, the growth of a memory or a large copy, are no calls.
    ///
    /// The call over the cap finds nothing to work with, and [`Ctx::check_calls`] ends it.
    pub(crate) fn called(&mut self) -> &mut Self {
        self.used.host_calls += 1;
        if self.check_calls().is_err() {
            self.table = ResourceTable::new();
            self.wasi = WasiCtxBuilder::new().build();
        }
        self
    }

    /// Checks that its calls of imports are within `host_calls_max`.
    ///
    /// # Errors
    /// [`Stop::Limit`].
    pub fn check_calls(&self) -> Result<(), Stop> {
        let (used, max) = (self.used.host_calls, self.limits.host_calls_max);
        if used > max { Err(LimitHit::new("host_calls_max", used, max).into()) } else { Ok(()) }
    }

    /// Notes that it reads text of this trust from a source, which is named for people.
    pub(crate) fn hears(&mut self, words: Trust, source: &str) {
        self.heard = self.heard.max(words);
        if !is_untrusted(words) || self.untrusted.contains(source) {
            return;
        }
        let is_full = self.untrusted.len() >= SOURCES_MAX;
        self.untrusted.insert(if is_full { FURTHER.to_owned() } else { truncate(source, SOURCE_BYTES_MAX) });
    }

    /// True when calls are still answered from the journal, where limits of time are off.
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.is_replaying())
    }
}

/// True when an agent that has read such text needs an approval before it acts outside.
fn is_untrusted(words: Trust) -> bool {
    words >= Trust::Web
}

impl WasiView for Ctx {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let Self { wasi, table, .. } = self.called();
        WasiCtxView { ctx: wasi, table }
    }
}
