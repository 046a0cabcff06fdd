//! The state of one invocation on the host's side: what its capabilities share.
//!
//! A `Ctx` lives as long as its store and is never used for a second invocation.

use crate::console::Console;
use crate::conversation::Conversations;
use crate::gate::Stop;
use crate::http::{Exchange, Outgoing};
use crate::in_flight::InFlight;
use crate::log::LogBook;
use crate::meter::Meter;
use crate::pipe::PipeEnd;
use crate::poll::Timers;
use crate::supervised::Watched;
use crate::time::GuestClock;
use longhaul_core::approval::Approvals;
use longhaul_core::census::Guest;
use longhaul_core::context::PinnedContext;
use longhaul_core::event::{Event, Used};
use longhaul_core::grant::Grants;
use longhaul_core::graph::Graphs;
use longhaul_core::journal::Journal;
use longhaul_core::memory::{MemoryBackend, Trust};
use longhaul_core::model::{Message, Model};
use longhaul_core::store::Store;
use longhaul_core::supervisor::Supervisor;
use longhaul_core::text::truncate;
use longhaul_core::tool::{Checks, Delegate, ToolInfo, Tools};
use longhaul_core::{Clock, InvocationId, LimitHit, Limits};
use longhaul_egress::Keyring;
use std::collections::BTreeSet;
use std::sync::Arc;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

/// Sources of untrusted words that are told apart in one invocation, and bytes of the name of one.
const SOURCES_MAX: usize = 32;
const SOURCE_BYTES_MAX: usize = 200;

/// The names of sources that are no tools: what an invocation was handed, and all beyond the number of sources.
const HANDED: &str = "what it was handed";
const FURTHER: &str = "further sources";

/// The models of the operator, by their names in `longhaul.toml`.
pub trait Models: Send + Sync {
    /// The model of that name.
    fn model(&self, name: &str) -> Option<Arc<dyn Model>>;
}

/// Who watches live, beside the events that are kept.
pub trait Watch: Send + Sync {
    /// A model said something more.
    fn heard(&self, invocation: &InvocationId, text: &str);

    /// A model begins to reply: what was heard of it before is over.
    fn begins(&self, _invocation: &InvocationId) {}

    /// A step of the work: something thought, done or seen. Counts from 1 within the invocation; an invocation
    /// that is resumed says its first steps again, under the same numbers.
    fn step(&self, _invocation: &InvocationId, _number: u32, _step: Event) {}

    /// Something is new in a conversation, counted from 0; also when what made it so came from a journal.
    fn said(&self, _conversation: usize, _said: Said<'_>) {}
}

/// What is new in a conversation.
#[derive(Clone, Copy, Debug)]
pub enum Said<'a> {
    /// It began, with these words.
    System(&'a str),
    /// A message, of the guest's or of the model's.
    Message(&'a Message),
}

/// Everything that does work for capabilities.
#[derive(Clone)]
#[expect(missing_docs, reason = "each field is its trait")]
pub struct Services {
    pub models: Arc<dyn Models>,
    pub tools: Arc<dyn Tools>,
    pub checks: Arc<dyn Checks>,
    pub delegate: Arc<dyn Delegate>,
    pub graphs: Arc<dyn Graphs>,
    pub approvals: Arc<dyn Approvals>,
    pub supervisor: Arc<dyn Supervisor>,
    pub store: Arc<dyn Store>,
    pub memory: Arc<dyn MemoryBackend>,
    pub clock: Arc<dyn Clock>,
    pub watch: Arc<dyn Watch>,
    /// In place of the network; none: the network itself.
    pub exchange: Option<Arc<dyn Exchange>>,
}

/// Whose memory an invocation reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The project: decisions, progress and episodes are shared within it.
    pub project: String,
    /// The plugin's name in `longhaul.toml`: hand-offs and key-value spaces are its own.
    pub plugin: String,
}

/// What an invocation starts with.
#[derive(Clone)]
pub struct Setup {
    /// Which one.
    pub invocation: InvocationId,
    /// Whose memory.
    pub scope: Scope,
    /// What it may do.
    pub grants: Grants,
    /// What it may use.
    pub limits: Limits,
    /// Who does the work.
    pub services: Services,
    /// Its journal; none for tools and memory backends, whose whole call is an entry of the caller's.
    pub journal: Option<Arc<dyn Journal>>,
    /// Where randomness comes from.
    pub seed: [u8; 32],
    /// How its conversations are cut back, as its journal has it; none: never.
    pub context: Option<PinnedContext>,
    /// What it reads and prints, when that is not its log.
    pub console: Option<Console>,
    /// Secrets that it may send, and what stands for them in it.
    pub keyring: Arc<Keyring>,
    /// The least trusted words in what it is handed, beside those of who asks it; none: there are no others.
    pub told: Option<Trust>,
}

/// The state of one invocation.
pub struct Ctx {
    pub(crate) invocation: InvocationId,
    pub(crate) scope: Scope,
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
    /// Bytes that were logged since the log last yielded.
    pub(crate) logged_bytes: usize,
    pub(crate) wasi: WasiCtx,
    /// Its end of a pipe to another guest.
    pipe: Option<PipeEnd>,
    pub(crate) table: ResourceTable,
    pub(crate) timers: Timers,
    pub(crate) http: Outgoing,
    /// What the instance holds: the engine's limiter.
    pub meter: Meter,
    /// Fuel used up to the last call of an import; the engine keeps it true.
    pub fuel_used: u64,
    /// What was used, but for fuel and memory, which the engine knows.
    pub used: Used,
    /// What its sub-agents used.
    pub delegated: Used,
    /// What people should hear of it once it has ended; an attempt that broke off says it again.
    pub events: Vec<Event>,
    pub(crate) delegations_asked: u32,
    pub(crate) steps: u32,
    /// The least trusted words that it has heard, which may be in whatever it says from then on.
    pub heard: Trust,
    /// The sources of those that are not trusted to lead to an act outwards.
    pub(crate) untrusted: BTreeSet<String>,
    pub(crate) watched: Watched,
    /// Bytes in its key-value space, once they were counted.
    pub(crate) space_bytes: Option<u64>,
}

impl Ctx {
    /// The state of a new invocation.
    ///
    /// # Errors
    /// A directory that was granted cannot be opened.
    pub fn new(setup: Setup) -> Result<Self, std::io::Error> {
        let clock = Arc::new(GuestClock::new(setup.journal.clone(), setup.services.clock.clone()));
        let log = LogBook::new(&setup.limits);
        let wasi = crate::wasi::context(&setup, &clock, &log)?;
        let mut table = ResourceTable::new();
        table.set_max_capacity(setup.limits.handles_max as usize);
        let guest = Guest::new(
            setup.invocation.clone(),
            setup.scope.project.clone(),
            setup.scope.plugin.clone(),
            setup.limits.memory_bytes_max,
            setup.limits.fuel_max,
        );
        Ok(Self {
            meter: Meter::new(&setup.limits, Arc::new(guest)),
            http: Outgoing::new(&setup, &log),
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
            timers: Timers::new(),
            fuel_used: 0,
            used: Used::default(),
            delegated: Used::default(),
            events: Vec::new(),
            delegations_asked: 0,
            steps: 0,
            heard: setup.told.unwrap_or(Trust::OwnWords),
            untrusted: setup.told.filter(|told| is_untrusted(*told)).map(|_| HANDED.to_owned()).into_iter().collect(),
            watched: Watched::default(),
            space_bytes: None,
        })
    }

    /// Closes what the guest left open, its streams too: what it printed and did not end by a line feed is in its
    /// log then, and the guest at the other end of a pipe reads its end. It makes no call after this.
    pub fn close(&mut self) {
        self.table = ResourceTable::new();
        if let Some(pipe) = &self.pipe {
            pipe.close();
        }
    }

    /// Its effects on their way.
    #[must_use]
    pub fn in_flight(&self) -> InFlight {
        self.in_flight.clone()
    }

    /// The plugin's log, which outlives the invocation.
    #[must_use]
    pub fn log_book(&self) -> LogBook {
        self.log.clone()
    }

    /// Counts a call of an import. Every interface is linked with this, so what wasmtime itself enters the host for,
    /// such as a yield, the growth of a memory or a large copy, is no call.
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

    /// Whether its calls of imports are within `host_calls_max`.
    ///
    /// # Errors
    /// [`Stop::Limit`].
    pub fn check_calls(&self) -> Result<(), Stop> {
        let (used, max) = (self.used.host_calls, self.limits.host_calls_max);
        if used > max { Err(LimitHit::new("host_calls_max", used, max).into()) } else { Ok(()) }
    }

    /// Somebody else's words reach it from a source, in words for people.
    pub(crate) fn hears(&mut self, words: Trust, source: &str) {
        self.heard = self.heard.max(words);
        if !is_untrusted(words) || self.untrusted.contains(source) {
            return;
        }
        let is_full = self.untrusted.len() >= SOURCES_MAX;
        self.untrusted.insert(if is_full { FURTHER.to_owned() } else { truncate(source, SOURCE_BYTES_MAX) });
    }

    /// Whether calls are still answered from the journal, where limits of time are off.
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.is_replaying())
    }
}

/// Whether whoever hears these words is asked about before they act outwards.
fn is_untrusted(words: Trust) -> bool {
    words >= Trust::Web
}

impl WasiView for Ctx {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let Self { wasi, table, .. } = self.called();
        WasiCtxView { ctx: wasi, table }
    }
}
