//! Outgoing HTTP for tools and memory backends.
//!
//! `longhaul_egress` decides about destinations; this module implements `wasi:http`, the guest's timeouts, and the
//! limits on size. A redirect goes back to the guest, which sends another request that is checked again. A refusal is
//! an error of `wasi:http` and a line of the plugin's log. Pure worlds do not have this module. In tests an
//! [`Exchange`] stands behind the grant and the limits, and nothing leaves the process.

mod body;
mod fault;
mod link;
#[cfg(test)]
mod tests;

pub use crate::setup::Exchange;
pub use link::add_to_linker;

use crate::log::LogBook;
use crate::setup::InvocationSetup;
use ::http::{Request, Response};
use body::Meter;
use longhaul_egress::{FIELD_BYTES_MAX, Guard, RequestLimits};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks};

/// Time to resolve a name, and again to connect, TLS included.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Time from the connection to the head of the response, the sending of the request included.
const FIRST_BYTE_MAX: Duration = Duration::from_secs(30);

/// Time between two pieces of a response.
const BETWEEN_BYTES_MAX: Duration = Duration::from_secs(30);

/// Bytes of the request's body that the host buffers; wasmtime's default of 1 MiB, times the handles
/// that a guest may hold, would be a gigabyte.
const CHUNK_BYTES_MAX: usize = 64 << 10;

/// Requests of one invocation at once, up to the end of their responses.
const REQUESTS_MAX: usize = 32;

/// Outgoing HTTP of one invocation.
pub(crate) struct Outgoing {
    wasi: WasiHttpCtx,
    gate: Gate,
}

/// The hooks of `wasi:http` for a guest's request.
struct Gate(Arc<Rules>);

/// The rules for a request.
struct Rules {
    plugin: String,
    meter: Meter,
    guard: Guard,
    bytes_max: u64,
    log: LogBook,
    exchange: Option<Arc<dyn Exchange>>,
    permits: Arc<Semaphore>,
}

/// Timeouts of the parts of an exchange: the host's, or the guest's if that is shorter.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Times {
    connect: Duration,
    first_byte: Duration,
    between_bytes: Duration,
}

type Sent = (Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

impl Outgoing {
    pub(crate) fn new(setup: &InvocationSetup, log: &LogBook) -> Self {
        Self::with(Rules {
            plugin: setup.scope.plugin.clone(),
            meter: Meter { supervisor: Arc::clone(&setup.services.supervisor), caller: setup.invocation.clone() },
            guard: Guard::new(setup.grants.clone(), RequestLimits::default())
                .with_placeholders(Arc::clone(&setup.placeholders)),
            bytes_max: setup.limits.host_bytes_max,
            log: log.clone(),
            exchange: setup.services.exchange.clone(),
            permits: Arc::new(Semaphore::new(REQUESTS_MAX)),
        })
    }

    fn with(rules: Rules) -> Self {
        let mut wasi = WasiHttpCtx::new();
        wasi.set_field_size_limit(FIELD_BYTES_MAX);
        Self { wasi, gate: Gate(Arc::new(rules)) }
    }

    fn view<'a>(&'a mut self, table: &'a mut wasmtime::component::ResourceTable) -> WasiHttpCtxView<'a> {
        WasiHttpCtxView { ctx: &mut self.wasi, table, hooks: &mut self.gate }
    }
}

impl WasiHttpHooks for Gate {
    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _answered: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<Sent, Error>> + Send> {
        let rules = Arc::clone(&self.0);
        Box::new(async move {
            let host = request.uri().host().unwrap_or_default().to_owned();
            match rules.send(request, Times::of(options)).await {
                Ok(response) => Ok((response, Box::new(async { Ok(()) }) as _)),
                Err(error) => Err(fault::told(&rules.log, &host, error)),
            }
        })
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK_BYTES_MAX
    }
}

impl Rules {
    #[tracing::instrument(name = "http.send", skip_all, fields(plugin = %self.plugin, method = %request.method()))]
    async fn send(&self, request: Request<WasiBody>, times: Times) -> Result<Response<WasiBody>, Error> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|_| Error::ConnectionLimitReached)?;
        let url = self.guard.check(request.method(), request.uri()).map_err(fault::of_guard)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        self.meter.sends(body::head_bytes(&request)).map_err(|hit| fault::of_cap(&hit))?;
        if let Some(exchange) = &self.exchange {
            let answer = exchange.answer(body::whole(request, self.bytes_max, &self.meter).await?).await;
            return body::counted(answer.into(), self.count(host, times, permit));
        }
        let way = timeout(times.connect, self.guard.look_up(url)).await.map_err(|_| Error::DnsTimeout)?;
        let way = way.map_err(fault::of_guard)?;
        let request = body::limited(way.url().clone(), request, self.bytes_max, self.meter.clone())?;
        let answer = timeout(times.connect + times.first_byte, self.guard.send(&way, request)).await;
        let mut response = answer.map_err(|_| Error::HttpResponseTimeout)?.map_err(fault::of_guard)?;
        let cleaner = self.guard.cleaner(response.headers_mut()).map_err(fault::of_guard)?;
        body::counted(response, body::Count { cleaner, ..self.count(host, times, permit) })
    }

    fn count(&self, host: String, times: Times, permit: OwnedSemaphorePermit) -> body::Count {
        body::Count {
            host,
            max: self.bytes_max,
            between: times.between_bytes,
            log: self.log.clone(),
            cleaner: None,
            permit,
        }
    }
}

impl Times {
    fn of(options: Option<RequestOptions>) -> Self {
        let options = options.unwrap_or_default();
        let shorter = |guest: Option<Duration>, ours: Duration| guest.map_or(ours, |guest| guest.min(ours));
        Self {
            connect: shorter(options.connect_timeout, CONNECT_MAX),
            first_byte: shorter(options.first_byte_timeout, FIRST_BYTE_MAX),
            between_bytes: shorter(options.between_bytes_timeout, BETWEEN_BYTES_MAX),
        }
    }
}
