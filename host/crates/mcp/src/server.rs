//! One server as a tool of agents: connected on demand, compared with its pin before each call.

use crate::config::McpConfig;
use crate::definitions::{self, Definition, Definitions};
use crate::environment::McpEnvironment;
use crate::error::McpError;
use crate::extract::{Extracted, extract};
use crate::http::Guarded;
use crate::offers::Offer;
use crate::process::Process;
use longhaul_core::grant::Grants;
use longhaul_core::journal::EffectClass;
use longhaul_core::text::truncate;
use longhaul_core::tool::{HostTool, ToolCall, ToolError, ToolInfo, ToolOutput};
use longhaul_core::{InvocationId, LimitHit, Outage};
use longhaul_egress::{Guard, HeaderSecret, RequestLimits, SecretPlaceholders};
use longhaul_sandbox::Level;
use rmcp::model::{CallToolRequestParams, PaginatedRequestParams, ProtocolVersion, Tool};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, Peer, RoleClient, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// Tools of one server.
const TOOLS_MAX: usize = 256;

/// Pages of a list of tools: one of four tools each still reaches [`TOOLS_MAX`].
const PAGES_MAX: usize = 64;

/// Bytes of a list of tools with their descriptions, as JSON.
const LIST_BYTES_MAX: usize = 16 << 20;

/// The time for which an unavailable server is not asked again for its tools.
const REST: Duration = Duration::from_secs(30);

/// Bytes of a foreign text that an error repeats.
const TEXT_BYTES_MAX: usize = 500;

/// The limit after which a server is not started again, since that would only reset it.
const DISK: &str = "disk_bytes_max";

/// A server.
pub struct McpServer {
    name: String,
    config: McpConfig,
    around: McpEnvironment,
    live: Mutex<Option<Live>>,
    connections: AtomicU64,
    rested: Mutex<Option<(Instant, McpError)>>,
    has_used_up_disk: AtomicBool,
    level: StdMutex<Option<Level>>,
}

/// A connection.
struct Live {
    /// The number of this connection of the server.
    number: u64,
    /// Calls in progress on it.
    calls: Arc<AtomicUsize>,
    client: RunningService<RoleClient, ()>,
    placeholders: Arc<SecretPlaceholders>,
    /// After the client, so that the child's input ends before the child is awaited.
    process: Option<Process>,
}

/// The parts of a connection that a call needs.
struct Line {
    number: u64,
    peer: Peer<RoleClient>,
    placeholders: Arc<SecretPlaceholders>,
}

/// A call in progress on a connection, which is not replaced meanwhile.
struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    fn on(live: &Live) -> Self {
        live.calls.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(&live.calls))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Live {
    fn is_closed(&self) -> bool {
        self.client.is_closed() || self.client.peer().is_transport_closed()
    }
}

impl McpServer {
    /// A server that is not started yet.
    #[must_use]
    pub fn new(name: &str, config: McpConfig, around: McpEnvironment) -> Self {
        let (live, connections, rested, has_used_up_disk, level) = Default::default();
        Self { name: name.to_owned(), config, around, live, connections, rested, has_used_up_disk, level }
    }

    /// The lowest sandbox level of its process so far. None before its first start, and for a server with an address.
    #[must_use]
    pub fn level(&self) -> Option<Level> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_level(&self, level: Option<Level>) {
        let mut least = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        *least = least.into_iter().chain(level).min();
    }

    fn down(&self, reason: &str) -> McpError {
        McpError::Down { server: self.name.clone(), reason: truncate(reason, TEXT_BYTES_MAX) }
    }

    /// The present connection, or a new one.
    async fn line(&self) -> Result<Line, McpError> {
        let mut live = self.live.lock().await;
        if live.as_ref().is_none_or(Live::is_closed) {
            if let Some(over) = live.take() {
                self.let_go(over).await;
            }
            self.expect_disk()?;
            *live = Some(self.connect().await?);
        }
        let live = live.as_ref().ok_or_else(|| self.down("it is gone"))?;
        Ok(Line { number: live.number, peer: live.client.peer().clone(), placeholders: Arc::clone(&live.placeholders) })
    }

    /// Drops a connection, and stores why its server ended, if it has.
    async fn let_go(&self, mut live: Live) {
        if live.is_closed()
            && let Some(process) = &mut live.process
        {
            self.note(process.ended().await.0);
        }
    }

    fn note(&self, limit: Option<&'static str>) {
        if limit == Some(DISK)
            && !self.has_used_up_disk.swap(true, Ordering::SeqCst)
            && let Err(error) = self.expect_disk()
        {
            tracing::warn!("{error}");
        }
    }

    /// Refuses a server that reached its disk limit.
    fn expect_disk(&self) -> Result<(), McpError> {
        if !self.has_used_up_disk.load(Ordering::SeqCst) {
            return Ok(());
        }
        let max = self.config.disk_bytes();
        Err(McpError::Limit { server: self.name.clone(), hit: LimitHit::new(DISK, max, max) })
    }

    /// Sets up a connection. One that breaks off meanwhile, early in `connect_ms_max`, is set up once more: nothing was
    /// asked of the server yet, so nothing is repeated.
    async fn connect(&self) -> Result<Live, McpError> {
        let begun = Instant::now();
        match self.connect_once().await {
            Err(McpError::Down { reason, .. }) if begun.elapsed() < self.connect_time() / 2 => {
                tracing::warn!("the MCP server `{}` is started again: {reason}", self.name);
                self.connect_once().await
            }
            connected => connected,
        }
    }

    async fn connect_once(&self) -> Result<Live, McpError> {
        let placeholders = Arc::new(self.placeholders()?);
        match self.config.url {
            Some(_) => self.connect_http(placeholders).await,
            None => self.connect_process(placeholders).await,
        }
    }

    fn placeholders(&self) -> Result<SecretPlaceholders, McpError> {
        let origin = self.config.url.is_some().then(|| self.config.origin(&self.name)).transpose()?;
        let key = |name: &str| {
            let secret = (self.around.secret)(name).map_err(|reason| self.down(&reason))?;
            let hosts = origin.iter().cloned().collect();
            Ok(HeaderSecret { name: name.to_owned(), secret, hosts, header: http::header::AUTHORIZATION })
        };
        let keys = self.config.secrets().map(key).collect::<Result<_, McpError>>()?;
        Ok(SecretPlaceholders::new(&format!("mcp.{}", self.name), keys, || (self.around.random)()))
    }

    async fn connect_process(&self, placeholders: Arc<SecretPlaceholders>) -> Result<Live, McpError> {
        let started = Process::start(&self.name, &self.config, &self.around, placeholders.stream_redactor()).await;
        let (mut process, (stdout, stdin)) = started.map_err(|reason| self.down(&reason))?;
        self.note_level(process.level());
        let bytes_max = usize::try_from(self.config.message_bytes()).unwrap_or(usize::MAX);
        let transport = AsyncRwTransport::new(stdout, stdin).with_max_line_length(bytes_max);
        let served = timeout(self.connect_time(), ().serve_with_lifecycle(transport, lifecycle())).await;
        let client = match served {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(self.unheard(&error.to_string(), &placeholders, Some(&mut process)).await),
            Err(_) => {
                let error = "it did not introduce itself in connect_ms_max";
                return Err(self.unheard(error, &placeholders, Some(&mut process)).await);
            }
        };
        Ok(self.live(client, placeholders, Some(process)))
    }

    async fn connect_http(&self, placeholders: Arc<SecretPlaceholders>) -> Result<Live, McpError> {
        let grants = Grants {
            table: format!("mcp.{}", self.name),
            hosts: vec![self.config.origin(&self.name)?],
            ..Grants::default()
        };
        let caps = RequestLimits {
            request_bytes_max: self.config.output_bytes(),
            response_bytes_max: self.config.message_bytes(),
            first_byte_ms_max: self.config.call_ms(),
            between_bytes_ms_max: self.config.call_ms(),
            total_ms_max: self.config.call_ms(),
            ..RequestLimits::default()
        };
        let bearer = self.config.bearer.as_deref().and_then(|name| placeholders.placeholder(name)).map(str::to_owned);
        let client = Guarded { guard: Guard::new(grants, caps).with_placeholders(Arc::clone(&placeholders)), bearer };
        let config = StreamableHttpClientTransportConfig::with_uri(self.config.url.clone().unwrap_or_default());
        let transport = StreamableHttpClientTransport::with_client(client, config);
        let served = timeout(self.connect_time(), ().serve_with_lifecycle(transport, lifecycle())).await;
        match served {
            Ok(Ok(client)) => Ok(self.live(client, placeholders, None)),
            Ok(Err(error)) => Err(self.unheard(&error.to_string(), &placeholders, None).await),
            Err(_) => Err(self.unheard("it did not introduce itself in connect_ms_max", &placeholders, None).await),
        }
    }

    fn live(
        &self,
        client: RunningService<RoleClient, ()>,
        placeholders: Arc<SecretPlaceholders>,
        process: Option<Process>,
    ) -> Live {
        let number = self.connections.fetch_add(1, Ordering::SeqCst);
        Live { number, calls: Arc::default(), client, placeholders, process }
    }

    fn connect_time(&self) -> Duration {
        Duration::from_millis(self.config.connect_ms())
    }

    async fn unheard(&self, error: &str, placeholders: &SecretPlaceholders, process: Option<&mut Process>) -> McpError {
        let (limit, said) = match process {
            Some(process) => process.ended().await,
            None => (None, String::new()),
        };
        self.note(limit);
        if let Err(error) = self.expect_disk() {
            return error;
        }
        let said = limit.map_or_else(|| said.clone(), |limit| format!("{said}\nit was ended at {limit}"));
        let said = said.trim();
        // The reason is at the end of its output.
        let from = said.len().saturating_sub(TEXT_BYTES_MAX / 2);
        let said = said.char_indices().find(|(at, _)| *at >= from).map_or("", |(at, _)| &said[at..]);
        let said = if said.is_empty() { String::new() } else { format!("; it said: {said}") };
        let walls = if self.config.command.is_empty() || self.config.is_bare() {
            String::new()
        } else {
            format!("; what it needs in its sandbox goes into read, write and hosts of [mcp.{}]", self.name)
        };
        self.down(&placeholders.scrub(&format!("{}{walls}{said}", truncate(error, TEXT_BYTES_MAX / 4))))
    }

    /// The server's present description of its tools, for a person's approval, with its digest. This pins nothing.
    ///
    /// # Errors
    /// When the server is unavailable, or lists too much.
    pub async fn described(&self) -> Result<(String, Vec<Definition>), McpError> {
        let line = self.line().await?;
        let said = self.said(&line).await?;
        Ok((said.digest(), said.0))
    }

    async fn said(&self, line: &Line) -> Result<Definitions, McpError> {
        let listed = timeout(self.connect_time(), self.listed(line)).await;
        let listed = listed.map_err(|_| self.down("it did not list its tools in connect_ms_max"))??;
        Ok(Definitions::of(&self.name, &listed, &line.placeholders))
    }

    /// The server's present description of its tools, compared with the pin.
    async fn held(&self, line: &Line) -> Result<Definitions, McpError> {
        let now = self.said(line).await?;
        let (store, project) = (&*self.around.store, &self.around.project);
        definitions::hold(store, project, &self.name, &now, self.config.tools.as_deref()).await?;
        Ok(now)
    }

    /// All pages of the list. The server decides whether there is another one, so they are counted here.
    async fn listed(&self, line: &Line) -> Result<Vec<Tool>, McpError> {
        let too_many = |bound: String| Err(McpError::TooMany { server: self.name.clone(), bound });
        let (mut tools, mut bytes, mut cursor) = (Vec::new(), 0, None);
        for _ in 0..PAGES_MAX {
            let asked = PaginatedRequestParams::default().with_cursor(cursor);
            let page = line.peer.list_tools(Some(asked)).await;
            let page = page.map_err(|error| self.down(&line.placeholders.scrub(&error.to_string())))?;
            bytes += serde_json::to_vec(&page.tools).map_or(LIST_BYTES_MAX + 1, |text| text.len());
            tools.extend(page.tools);
            if bytes > LIST_BYTES_MAX {
                return too_many(format!("{LIST_BYTES_MAX} bytes of tools"));
            }
            if tools.len() > TOOLS_MAX {
                return too_many(format!("{TOOLS_MAX} tools"));
            }
            match page.next_cursor {
                None => return Ok(tools),
                next => cursor = next,
            }
        }
        too_many(format!("{PAGES_MAX} pages of tools"))
    }

    /// A connection whose server listed its tools just now, for one call. A hanging one is replaced, which repeats
    /// nothing: a list has no effect.
    async fn ready(&self) -> Result<(Line, UnderWay, Definitions), McpError> {
        let (line, held) = self.line_and_held().await?;
        // Another call may have replaced the connection in between.
        match self.live.lock().await.as_ref().filter(|live| live.number == line.number) {
            Some(live) => Ok((line, UnderWay::on(live), held)),
            None => Err(self.down("it was started again before the call was made")),
        }
    }

    async fn line_and_held(&self) -> Result<(Line, Definitions), McpError> {
        let line = self.line().await?;
        match self.held(&line).await {
            Err(McpError::Down { reason, .. }) if self.leave(&line).await => {
                tracing::warn!("the MCP server `{}` is started again: {reason}", self.name);
                let line = self.line().await?;
                let held = self.held(&line).await?;
                Ok((line, held))
            }
            held => Ok((line, held?)),
        }
    }

    /// Drops a connection that did not respond, and returns whether it was dropped. A server that works on another call
    /// may be slow because of it, and ending it would end that call too.
    async fn leave(&self, line: &Line) -> bool {
        let mut live = self.live.lock().await;
        let is_needed =
            |live: &Live| live.number == line.number && !live.is_closed() && live.calls.load(Ordering::SeqCst) > 0;
        if live.as_ref().is_some_and(is_needed) {
            return false;
        }
        if let Some(left) = live.take_if(|live| live.number == line.number) {
            self.let_go(left).await;
        }
        true
    }

    /// The pinned description, or the server's when there is no pin.
    async fn known(&self) -> Result<Definitions, McpError> {
        if let Some(pinned) = definitions::pin(&*self.around.store, &self.around.project, &self.name)? {
            return Ok(pinned);
        }
        let mut rested = self.rested.lock().await;
        if let Some((since, error)) = rested.as_ref()
            && since.elapsed() < REST
        {
            return Err(error.clone());
        }
        let asked = async { self.held(&self.line().await?).await }.await;
        *rested = asked.as_ref().err().map(|error| (Instant::now(), error.clone()));
        asked
    }

    fn answer(
        &self,
        result: &rmcp::model::CallToolResult,
        placeholders: &SecretPlaceholders,
    ) -> Result<ToolOutput, ToolError> {
        match extract(result) {
            Extracted::Error(text) => Err(ToolError::Failed(truncate(&placeholders.scrub(&text), 4_000))),
            Extracted::Value(value) => self.bounded(&value, placeholders),
        }
    }

    fn bounded(&self, value: &serde_json::Value, placeholders: &SecretPlaceholders) -> Result<ToolOutput, ToolError> {
        let max = self.config.output_bytes();
        let output = placeholders.scrub(&value.to_string());
        if output.len() as u64 > max {
            return Err(ToolError::Limit(LimitHit::new("output_bytes_max", output.len() as u64, max)));
        }
        Ok(ToolOutput { output, truncated: false })
    }

    /// The answer to a sent request. Without one, only a call with an effect has an unknown outcome.
    async fn in_time<T>(
        &self,
        asked: impl Future<Output = Result<T, ServiceError>>,
        line: &Line,
        class: EffectClass,
    ) -> Result<T, ToolError> {
        let ms = self.config.call_ms();
        let lost = |why: String| match class {
            EffectClass::ReadOnly => ToolError::Unavailable(Outage { reason: why, retry_after_ms: None }),
            _ => ToolError::OutcomeUnknown(why),
        };
        let Ok(answered) = timeout(Duration::from_millis(ms), asked).await else {
            return Err(lost(format!("the MCP server `{}` did not answer in {ms} ms (call_ms_max)", self.name)));
        };
        let (text, is_answer) = match answered {
            Ok(answer) => return Ok(answer),
            Err(error) => (error.to_string(), matches!(error, ServiceError::McpError(_))),
        };
        let text = truncate(&line.placeholders.scrub(&text), TEXT_BYTES_MAX);
        if is_answer {
            return Err(ToolError::Failed(text));
        }
        // The reason is known after the connection is dropped.
        self.leave(line).await;
        match self.expect_disk() {
            Ok(()) => Err(lost(format!("the MCP server `{}` broke off ({text})", self.name))),
            Err(error) if class == EffectClass::ReadOnly => Err(error.into()),
            Err(error) => Err(ToolError::OutcomeUnknown(error.to_string())),
        }
    }
}

fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::LATEST], legacy_version: None }
}

#[async_trait::async_trait]
impl HostTool for McpServer {
    /// An unavailable server has no functions, so that an agent which does not need it continues.
    async fn info(&self, name: &str) -> Result<ToolInfo, ToolError> {
        match self.known().await {
            Ok(known) => Ok(known.info(name, &self.name, &self.config)),
            Err(error) => {
                tracing::warn!("{error}");
                Ok(ToolInfo { id: name.to_owned(), description: error.to_string(), functions: Vec::new() })
            }
        }
    }

    fn held_by(&self) -> Option<String> {
        self.level().filter(|level| *level < Level::Full).map(|level| level.to_string())
    }

    /// The server's own use of the bytes is unknown.
    fn hands_over(&self, call: &ToolCall) -> u64 {
        (call.function.len() + call.arguments.len()) as u64
    }

    async fn call(&self, call: &ToolCall, _: &InvocationId, _: &str, _: u32) -> Result<ToolOutput, ToolError> {
        let arguments: serde_json::Map<String, serde_json::Value> = call.read()?;
        let (line, _under_way, held) = self.ready().await?;
        if let Some(offer) = Offer::of(call, &self.config, |name| held.has(name))? {
            let value = self.in_time(offer.ask(&line.peer), &line, EffectClass::ReadOnly).await?;
            return self.bounded(&value, &line.placeholders);
        }
        if !held.has(&call.function) {
            return Err(ToolError::UnknownFunction(truncate(&call.function, 120)));
        }
        let request = CallToolRequestParams::new(call.function.clone()).with_arguments(arguments);
        let class = self.config.effect_of(&call.function);
        let result = self.in_time(line.peer.call_tool(request), &line, class).await?;
        self.answer(&result, &line.placeholders)
    }
}
