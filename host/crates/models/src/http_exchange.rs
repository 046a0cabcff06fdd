//! One request over HTTP and its answer, in pieces or whole, for every protocol.
//!
//! The endpoint is not trusted. Its answer is bounded in lines, bytes and time; its errors are shown short and without
//! the key. The [`Assembly`] interprets the pieces; [`crate::retry`] decides about retries. This file never follows a
//! redirect, and keeps nothing between two requests.

use crate::adaptation::{Adaptation, Adaptations, Key, TRIES_MAX};
use crate::http::{self, Endpoint, Reach};
use crate::prices::Prices;
use crate::problem::{Problem, problem, problem_text};
use crate::retry::{Failure, Retries, RetryConfig};
use crate::sse::{Decoder, SseError};
use crate::{ApiKey, ModelsError, discover, secret};
use longhaul_core::model::{Cost, ModelError, ModelRequest, ReplyListener, Usage};
use longhaul_core::{Denial, LimitHit};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tokio::time::{timeout, timeout_at};

/// Bytes of an error's body that are read.
pub(crate) const ERROR_BODY_BYTES_MAX: usize = 64 << 10;

/// A shorter request, in tokens by a rough count, fits the smallest default window of servers.
const WINDOW_TOKENS_MIN: u64 = 1_500;

/// A reply under assembly.
pub(crate) trait Assembly: Send {
    /// Adds one object of the answer; returns its text as far as it is certain.
    fn take(&mut self, event: &str) -> Result<String, Wrong>;
    /// The endpoint ended the reply: the connection is not read further.
    fn is_done(&self) -> bool;
    /// True when the received parts are an answer.
    fn is_whole(&self) -> bool;
    /// The rest of the text, which was held back while it could have been part of the key.
    fn finish_text(&mut self) -> String;
    /// The model's own text, when it refused.
    fn refusal(&self) -> Option<String>;
    /// The usage so far. Counts that the provider leaves out are estimated, so that silence cannot bypass a budget.
    fn counted(&self, request: &ModelRequest) -> Usage;
    /// The provider's own usage object, unchanged.
    fn stated(&self) -> Option<Value>;
}

/// The reason why an object cannot be part of a reply.
pub(crate) enum Wrong {
    Unreadable(String),
    Error { status: Option<u16>, message: String },
    TooManyCalls(usize),
}

/// The connection settings in a model's table, for every protocol.
pub(crate) struct Connection<'a> {
    pub(crate) name: &'a str,
    /// The provider's own name of the model.
    pub(crate) id: &'a str,
    pub(crate) base_url: &'a str,
    pub(crate) api_key_env: Option<&'a str>,
    pub(crate) api_key_file: Option<&'a Path>,
    pub(crate) allow_plain_http: bool,
    pub(crate) connect_ms_max: u64,
    pub(crate) idle_ms_max: u64,
    pub(crate) total_ms_max: u64,
    /// The window, if the operator set it.
    pub(crate) context_tokens_max: Option<u32>,
    pub(crate) response_bytes_max: usize,
    pub(crate) line_bytes_max: usize,
    pub(crate) retry: &'a RetryConfig,
    pub(crate) known: KnownModel,
}

/// Known facts about a model before its endpoint is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownModel {
    pub(crate) prices: Prices,
    /// Its window, in tokens.
    pub(crate) window_tokens: Option<u32>,
    /// The window if nothing sets it.
    pub(crate) window_tokens_default: u32,
}

/// An endpoint, and the limits of an exchange with it.
pub(crate) struct HttpExchange {
    pub(crate) name: String,
    pub(crate) endpoint: Endpoint,
    /// The remedy for a refused key.
    pub(crate) key_fix: String,
    window_tokens_set: Option<u32>,
    known: KnownModel,
    /// The adaptations of the model.
    pub(crate) adaptations: Adaptations,
    pub(crate) adaptation_key: Key,
    pub(crate) total: Duration,
    pub(crate) response_bytes_max: usize,
    pub(crate) line_bytes_max: usize,
    pub(crate) retry: RetryConfig,
    pub(crate) prices: Prices,
}

/// One request.
pub(crate) struct ExchangeRequest<'a> {
    /// The path below the endpoint's base.
    pub(crate) path: &'a str,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    /// The adapted request after a refusal, if there is one.
    pub(crate) adapt: &'a (dyn Fn(&Problem, &Value) -> Option<Value> + Send + Sync),
    pub(crate) request: &'a ModelRequest,
    /// Text that a watcher gets before the first piece.
    pub(crate) opening: Option<&'a str>,
    /// True when a watcher gets the pieces as they come.
    pub(crate) is_heard: bool,
}

impl ExchangeRequest<'_> {
    fn hear(&self, piece: &str, heard: ReplyListener<'_>) {
        if self.is_heard && !piece.is_empty() {
            heard(piece);
        }
    }
}

/// The state of one request.
struct Tried<A> {
    assembly: A,
    /// True when a part of the answer was received.
    began: bool,
    /// The headers of a paid answer: one that began, or was invalid.
    headers: Option<HeaderMap>,
}

impl HttpExchange {
    /// Prepares the exchange; nothing is sent yet. `variable` reads the environment.
    ///
    /// # Errors
    /// [`ModelsError`] about the key or the address.
    pub(crate) fn new(
        connection: &Connection<'_>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelsError> {
        let Connection { name, api_key_env, api_key_file, .. } = *connection;
        let reach = Reach {
            model: name,
            base_url: connection.base_url,
            key: ApiKey::find(name, api_key_env, api_key_file, variable)?,
            allow_plain_http: connection.allow_plain_http,
            connect: Duration::from_millis(connection.connect_ms_max),
            idle: Duration::from_millis(connection.idle_ms_max),
        };
        Ok(Self {
            name: name.to_owned(),
            endpoint: Endpoint::new(reach)?,
            key_fix: secret::fix(name, api_key_env, api_key_file),
            window_tokens_set: connection.context_tokens_max,
            known: connection.known,
            adaptations: Adaptations::default(),
            adaptation_key: (connection.base_url.trim_end_matches('/').to_owned(), connection.id.to_owned()),
            total: Duration::from_millis(connection.total_ms_max),
            response_bytes_max: connection.response_bytes_max,
            line_bytes_max: connection.line_bytes_max,
            retry: connection.retry.clone(),
            prices: connection.known.prices,
        })
    }

    /// The present adaptation.
    pub(crate) fn adaptation(&self) -> Adaptation {
        self.adaptations.of(&self.adaptation_key)
    }

    /// Learns from a refusal. The note is for people.
    pub(crate) fn learn(&self, sent: &Adaptation, problem: &Problem, body: &Value) -> Option<String> {
        let said = self.adaptations.learn(&self.adaptation_key, sent, problem, body)?;
        let note = format!("{}: {}", self.who(), self.endpoint.calm(&said));
        tracing::warn!("{note}");
        Some(note)
    }

    /// The window, in tokens, as far as it is known.
    pub(crate) fn window_tokens(&self) -> u32 {
        let known = self.known;
        self.adaptation().window(self.window_tokens_set, known.window_tokens, known.window_tokens_default)
    }

    /// Queries the endpoint for the window if nothing else gives it: once, and only for a request that could be too
    /// long.
    pub(crate) async fn find_window(&self, headers: &HeaderMap, request: &ModelRequest) {
        let is_known = self.window_tokens_set.or(self.known.window_tokens).is_some();
        if is_known || request.tokens_estimated() < WINDOW_TOKENS_MIN || !self.adaptation().wants_window() {
            return;
        }
        let id = &self.adaptation_key.1;
        let window = discover::window(&self.endpoint, headers.clone(), id).await;
        self.adaptations.window_listed(&self.adaptation_key, window);
    }

    /// Asks until there is a whole answer, or a retry cannot help. A partial answer that cannot be used is reported to
    /// `cost`: the provider charges for it.
    ///
    /// A watcher sees a broken attempt and then, after a line that says so, the next one.
    pub(crate) async fn complete<A: Assembly>(
        &self,
        ask: &ExchangeRequest<'_>,
        begin: impl Fn() -> A,
        heard: ReplyListener<'_>,
        cost: &dyn Cost,
    ) -> Result<(A, HeaderMap), ModelError> {
        let bytes = |body: &Value| serde_json::to_vec(body).map_err(|error| ModelError::Invalid(error.to_string()));
        let (mut sent, mut body) = (ask.body.clone(), bytes(&ask.body)?);
        let mut adapted = 0;
        let mut retries = Retries::new(self.retry.clone(), self.total);
        let mut spoke = false;
        loop {
            let mut hear = |piece: &str| {
                spoke |= !piece.is_empty();
                heard(piece);
            };
            if let Some(opening) = ask.opening {
                hear(opening);
            }
            cost.sent(body.len() as u64);
            let mut tried = Tried { assembly: begin(), began: false, headers: None };
            let attempt = self.attempt(ask, body.clone(), &mut tried, &mut hear);
            let ended = timeout_at(retries.deadline(), attempt).await;
            let Tried { assembly, headers, .. } = tried;
            let failure = match ended {
                Ok(Ok(())) => return Ok((assembly, headers.unwrap_or_default())),
                Ok(Err(failure)) => Some(failure),
                Err(_) => None,
            };
            if let Some(headers) = headers {
                let (used, stated) = (assembly.counted(ask.request), assembly.stated());
                cost.wasted(self.prices.charged(used, &headers, stated.as_ref()));
            }
            let Some(failure) = failure else { return Err(retries.timed_out(self.total)) };
            let failure = match failure {
                Failure::Refused { error, problem } => {
                    let other = (ask.adapt)(&problem, &sent).filter(|other| *other != sent && adapted < TRIES_MAX);
                    let Some(other) = other else { return Err(error) };
                    // It was refused before an answer began, so it cost nothing and needs no wait.
                    (body, sent) = (bytes(&other)?, other);
                    adapted += 1;
                    continue;
                }
                failure => failure,
            };
            retries.wait(failure).await?;
            match timeout_at(retries.deadline(), cost.again()).await {
                Ok(may) => may.map_err(ModelError::Limit)?,
                Err(_) => return Err(retries.timed_out(self.total)),
            }
            if std::mem::take(&mut spoke) {
                heard("\n[the answer broke off; asked again]\n");
            }
        }
    }

    /// One request, answered or not.
    async fn attempt<A: Assembly>(
        &self,
        ask: &ExchangeRequest<'_>,
        body: Vec<u8>,
        tried: &mut Tried<A>,
        heard: ReplyListener<'_>,
    ) -> Result<(), Failure> {
        let post = self.endpoint.client.post(self.endpoint.url(ask.path));
        let json = HeaderValue::from_static("application/json");
        let sending = post.header(CONTENT_TYPE, json).headers(ask.headers.clone()).body(body).send();
        let mut response = match timeout(self.endpoint.idle, sending).await {
            Err(_) => return Err(self.passing(&http::silence(self.endpoint.idle))),
            // Whatever the client reports here, there is no answer: it could not connect or the connection broke.
            Ok(Err(error)) => return Err(self.passing(&http::shown(error))),
            Ok(Ok(response)) => response,
        };
        if !response.status().is_success() {
            return Err(self.refused(&mut response, ask.request).await);
        }
        tried.headers = Some(response.headers().clone());
        if is_json(response.headers()) {
            self.read_whole(&mut response, tried, ask, heard).await?;
        } else {
            self.read_stream(&mut response, tried, ask, heard).await?;
        }
        let assembly = &mut tried.assembly;
        if !assembly.is_whole() {
            return Err(self.passing("the answer broke off before its end"));
        }
        let rest = assembly.finish_text();
        if let Some(refusal) = assembly.refusal() {
            return Err(Failure::Final(ModelError::Refused(self.endpoint.excerpt(&refusal))));
        }
        ask.hear(&rest, heard);
        Ok(())
    }

    /// The endpoint answers in one piece, although a stream was requested.
    async fn read_whole(
        &self,
        response: &mut Response,
        tried: &mut Tried<impl Assembly>,
        ask: &ExchangeRequest<'_>,
        heard: ReplyListener<'_>,
    ) -> Result<(), Failure> {
        let bytes_max = self.response_bytes_max;
        let (body, whole) =
            http::read_body(response, bytes_max, self.endpoint.idle).await.map_err(|why| self.passing(&why))?;
        if !whole {
            return Err(limit("response_bytes_max", bytes_max));
        }
        let body = String::from_utf8(body).map_err(|_| self.unreadable("it is not UTF-8"))?;
        let piece = self.take(tried, &body)?;
        ask.hear(&piece, heard);
        Ok(())
    }

    async fn read_stream(
        &self,
        response: &mut Response,
        tried: &mut Tried<impl Assembly>,
        ask: &ExchangeRequest<'_>,
        heard: ReplyListener<'_>,
    ) -> Result<(), Failure> {
        let mut decoder = Decoder::new(self.line_bytes_max, self.response_bytes_max);
        loop {
            let chunk = match timeout(self.endpoint.idle, response.chunk()).await {
                Err(_) => return Err(self.passing(&http::silence(self.endpoint.idle))),
                Ok(Err(error)) => return Err(self.passing(&http::shown(error))),
                Ok(Ok(chunk)) => chunk,
            };
            let ended = chunk.is_none();
            let events = match chunk {
                Some(chunk) => decoder.push(&chunk),
                None => decoder.finish().map(Vec::from_iter),
            };
            for event in events.map_err(|fault| self.fault(&fault))? {
                if event.trim().is_empty() {
                    continue;
                }
                // The connection ended within an event: that is no answer, and no error of the model.
                if ended && event.trim() != "[DONE]" && serde_json::from_str::<serde::de::IgnoredAny>(&event).is_err() {
                    return Err(self.passing("the answer broke off before its end"));
                }
                let piece = self.take(tried, &event)?;
                ask.hear(&piece, heard);
                if tried.assembly.is_done() {
                    return Ok(());
                }
            }
            if ended {
                return Ok(());
            }
        }
    }

    /// Adds one object of the answer; returns its text as far as it is certain.
    fn take(&self, tried: &mut Tried<impl Assembly>, event: &str) -> Result<String, Failure> {
        match tried.assembly.take(event) {
            Ok(piece) => {
                tried.began = true;
                Ok(piece)
            }
            Err(Wrong::Unreadable(why)) => Err(self.unreadable(&why)),
            Err(Wrong::Error { status, message }) => {
                // An error object where an answer should begin is a refusal with a misleading status.
                tried.headers = tried.headers.take().filter(|_| tried.began);
                Err(self.error_inside(status, &message))
            }
            Err(Wrong::TooManyCalls(max)) => Err(limit("tool_calls_max", max)),
        }
    }

    /// The meaning of an answer other than 2xx.
    async fn refused(&self, response: &mut Response, request: &ModelRequest) -> Failure {
        let status = response.status();
        let after = http::retry_after(response.headers(), SystemTime::now());
        // Without a body the status is enough.
        let body = http::read_body(response, ERROR_BODY_BYTES_MAX, self.endpoint.idle).await.unwrap_or_default().0;
        let body = String::from_utf8_lossy(&body);
        let problem = problem(&body);
        let text =
            format!("{} answered HTTP {}: {}", self.who(), status.as_u16(), self.endpoint.excerpt(&problem.message));
        let is = |codes: &[&str]| problem.codes.iter().any(|code| codes.contains(&code.as_str()));
        if is(&["content_filter", "content_policy_violation"]) {
            return Failure::Final(ModelError::Refused(text));
        }
        if status == StatusCode::PAYMENT_REQUIRED || is(&["insufficient_quota", "billing_error"]) || problem.is_broke()
        {
            return rejected(text, "add credit at the provider, or choose another model".to_owned());
        }
        if problem.is_context_full() {
            return Failure::Final(ModelError::ContextFull(self.overflow(&problem, request)));
        }
        let name = &self.name;
        match status.as_u16() {
            401 | 403 => rejected(text, self.key_fix.clone()),
            408 | 425 | 429 | 500..=599 => Failure::Passing { reason: text, after },
            300..=399 => rejected(text, "redirects are not followed: set base_url to the final address".to_owned()),
            404 => rejected(text, format!("check `base_url` and `id` of [models.{name}]")),
            _ if problem.is_unknown_model() => rejected(text, format!("check `id` of [models.{name}]")),
            status => {
                let fix = format!("mend [models.{name}], and see what works with: longhaul models test {name}");
                let error = ModelError::Rejected(Denial { reason: text, fix });
                if matches!(status, 400 | 422) {
                    Failure::Refused { error, problem: Box::new(problem) }
                } else {
                    Failure::Final(error)
                }
            }
        }
    }

    /// The endpoint's own numbers if it sends them; the host's are an estimate and a setting.
    fn overflow(&self, problem: &Problem, request: &ModelRequest) -> LimitHit {
        if let Some(told) = problem.window_tokens {
            self.adaptations.window_told(&self.adaptation_key, told);
        }
        let max = problem.window_tokens.unwrap_or_else(|| self.window_tokens().into());
        let used = problem.asked_tokens.unwrap_or_else(|| request.tokens_estimated());
        LimitHit::new("context_tokens_max", used.max(max.saturating_add(1)), max)
    }

    /// An error object in place of a piece of the answer.
    fn error_inside(&self, status: Option<u16>, message: &str) -> Failure {
        let text = format!("{} ended its answer with an error: {}", self.who(), self.endpoint.excerpt(message));
        match status {
            Some(400..=407 | 409..=424 | 426..=428 | 430..=499) => failed(text),
            _ => Failure::passing(text),
        }
    }

    fn fault(&self, fault: &SseError) -> Failure {
        match fault {
            SseError::Line(max) => limit("line_bytes_max", *max),
            SseError::Whole(max) => limit("response_bytes_max", *max),
            SseError::Text => self.unreadable("it is not UTF-8"),
        }
    }

    fn passing(&self, why: &str) -> Failure {
        Failure::passing(format!("{}: {}", self.who(), self.endpoint.excerpt(why)))
    }

    fn unreadable(&self, why: &str) -> Failure {
        failed(format!("the answer of {} cannot be read: {}", self.who(), self.endpoint.excerpt(why)))
    }

    fn who(&self) -> String {
        format!("model `{}` at `{}`", self.name, self.endpoint.host())
    }
}

/// An error object in the middle of an answer.
pub(crate) fn inside(error: &Value) -> Wrong {
    let code = error.get("code").or_else(|| error.get("status"));
    let status = code.and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    Wrong::Error { status, message: problem_text(error) }
}

/// The text before the first stop sequence, whether or not the provider applied it.
pub(crate) fn until_stop(mut text: String, request: &ModelRequest) -> (String, bool) {
    let start = request.prefill.as_deref().map_or(0, str::len);
    let stops = request.stop.iter().filter(|stop| !stop.is_empty());
    let end = stops.filter_map(|stop| text[start..].find(stop.as_str())).min();
    if let Some(end) = end {
        text.truncate(start + end);
    }
    (text, end.is_some())
}

/// 0.7 as `0.7`, where the detour over 64 bits would write 0.699999988079071.
pub(crate) fn decimal(number: f32) -> Result<Value, ModelError> {
    let exact = number.to_string().parse::<f64>().ok().filter(|number| number.is_finite());
    exact
        .map(Value::from)
        .ok_or_else(|| ModelError::Invalid(format!("temperature is `{number}`; give a number from 0 to 2")))
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("application/json"))
}

fn limit(name: &str, max: usize) -> Failure {
    Failure::Final(ModelError::Limit(LimitHit::new(name, max as u64 + 1, max as u64)))
}

fn rejected(reason: String, fix: String) -> Failure {
    Failure::Final(ModelError::Rejected(Denial { reason, fix }))
}

fn failed(text: String) -> Failure {
    Failure::Final(ModelError::Failed(text))
}
