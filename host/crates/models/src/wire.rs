//! One request over HTTP and its answer, in pieces or whole, whatever the protocol.
//!
//! The endpoint is taken for hostile. Its answer is bounded in lines, bytes and time; its errors are shown
//! short and without the key. What the pieces mean is the [`Assembly`]'s affair; when to ask again, that of
//! [`crate::retry`]. This file never follows a redirect, and keeps nothing between two requests.

use crate::http::{self, Endpoint, Reach};
use crate::prices::Prices;
use crate::retry::{Failure, Retries, RetryConfig};
use crate::sse::{Decoder, Fault};
use crate::{ModelsError, Secret, secret};
use longhaul_core::model::{Cost, Heard, ModelError, ModelRequest, Usage};
use longhaul_core::{Denial, LimitHit};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tokio::time::{timeout, timeout_at};

/// How much of an error's body is read, in bytes.
pub(crate) const ERROR_BODY_BYTES_MAX: usize = 64 << 10;

/// A reply in the making.
pub(crate) trait Assembly: Send {
    /// Adds one object of the answer; gives the text in it that is certain.
    fn take(&mut self, event: &str) -> Result<String, Wrong>;
    /// The endpoint said that there is no more: the connection is not read further.
    fn is_done(&self) -> bool;
    /// Whether what came is an answer.
    fn is_whole(&self) -> bool;
    /// The end of the text, which was held back while it could have been part of the key.
    fn finish_text(&mut self) -> String;
    /// The model's own words, when it refused.
    fn refusal(&self) -> Option<String>;
    /// What was used by now. What the provider leaves out is estimated, so that a budget cannot be passed by silence.
    fn counted(&self, request: &ModelRequest) -> Usage;
    /// What the provider states of that, to the letter.
    fn stated(&self) -> Option<Value>;
}

/// Why an object cannot be part of a reply.
pub(crate) enum Wrong {
    Unreadable(String),
    Error { status: Option<u16>, message: String },
    TooManyCalls(usize),
}

/// What the table of a model says of its endpoint, whatever the protocol.
pub(crate) struct Connection<'a> {
    pub(crate) name: &'a str,
    pub(crate) base_url: &'a str,
    pub(crate) api_key_env: Option<&'a str>,
    pub(crate) api_key_file: Option<&'a Path>,
    pub(crate) allow_plain_http: bool,
    pub(crate) connect_ms_max: u64,
    pub(crate) idle_ms_max: u64,
    pub(crate) total_ms_max: u64,
    pub(crate) context_tokens_max: u32,
    pub(crate) response_bytes_max: usize,
    pub(crate) line_bytes_max: usize,
    pub(crate) retry: &'a RetryConfig,
    pub(crate) prices: Prices,
}

/// An endpoint, and what an exchange with it may cost.
pub(crate) struct Wire {
    pub(crate) name: String,
    pub(crate) endpoint: Endpoint,
    /// What helps against a key that is refused.
    pub(crate) key_fix: String,
    pub(crate) context_tokens_max: u32,
    pub(crate) total: Duration,
    pub(crate) response_bytes_max: usize,
    pub(crate) line_bytes_max: usize,
    pub(crate) retry: RetryConfig,
    pub(crate) prices: Prices,
}

/// One request.
pub(crate) struct Ask<'a> {
    /// Below the endpoint's base.
    pub(crate) path: &'a str,
    pub(crate) headers: HeaderMap,
    pub(crate) body: &'a Value,
    pub(crate) request: &'a ModelRequest,
    /// What a watcher hears before the first piece.
    pub(crate) opening: Option<&'a str>,
    /// Whether a watcher hears the pieces as they come.
    pub(crate) is_heard: bool,
}

impl Ask<'_> {
    fn hear(&self, piece: &str, heard: Heard<'_>) {
        if self.is_heard && !piece.is_empty() {
            heard(piece);
        }
    }
}

/// What came of one request by now.
struct Tried<A> {
    assembly: A,
    /// Whether any of the answer was read.
    began: bool,
    /// Those of an answer that is paid for: one that began, or came and is nonsense.
    headers: Option<HeaderMap>,
}

impl Wire {
    /// Prepares the way; nothing is sent yet. `variable` looks into the environment.
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
            key: Secret::find(name, api_key_env, api_key_file, variable)?,
            allow_plain_http: connection.allow_plain_http,
            connect: Duration::from_millis(connection.connect_ms_max),
            idle: Duration::from_millis(connection.idle_ms_max),
        };
        Ok(Self {
            name: name.to_owned(),
            endpoint: Endpoint::new(reach)?,
            key_fix: secret::fix(name, api_key_env, api_key_file),
            context_tokens_max: connection.context_tokens_max,
            total: Duration::from_millis(connection.total_ms_max),
            response_bytes_max: connection.response_bytes_max,
            line_bytes_max: connection.line_bytes_max,
            retry: connection.retry.clone(),
            prices: connection.prices,
        })
    }

    /// Asks until there is a whole answer, or asking again cannot help. An answer that began and cannot be used is
    /// told to `cost`: the provider counts it.
    ///
    /// A watcher hears a broken attempt and then, after a line that says so, the next one.
    pub(crate) async fn complete<A: Assembly>(
        &self,
        ask: &Ask<'_>,
        begin: impl Fn() -> A,
        heard: Heard<'_>,
        cost: &dyn Cost,
    ) -> Result<(A, HeaderMap), ModelError> {
        let body = serde_json::to_vec(ask.body).map_err(|error| ModelError::Invalid(error.to_string()))?;
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
        ask: &Ask<'_>,
        body: Vec<u8>,
        tried: &mut Tried<A>,
        heard: Heard<'_>,
    ) -> Result<(), Failure> {
        let post = self.endpoint.client.post(self.endpoint.url(ask.path));
        let json = HeaderValue::from_static("application/json");
        let sending = post.header(CONTENT_TYPE, json).headers(ask.headers.clone()).body(body).send();
        let mut response = match timeout(self.endpoint.idle, sending).await {
            Err(_) => return Err(self.passing(&http::silence(self.endpoint.idle))),
            // Whatever the client reports here, no answer came: it could not connect or was cut off.
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

    /// The endpoint answers in one piece, although it was asked for a stream.
    async fn read_whole(
        &self,
        response: &mut Response,
        tried: &mut Tried<impl Assembly>,
        ask: &Ask<'_>,
        heard: Heard<'_>,
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
        ask: &Ask<'_>,
        heard: Heard<'_>,
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
                // The connection ended within an event: that is no answer, and not one of the model's either.
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

    /// One object of the answer; gives the text in it that is certain.
    fn take(&self, tried: &mut Tried<impl Assembly>, event: &str) -> Result<String, Failure> {
        match tried.assembly.take(event) {
            Ok(piece) => {
                tried.began = true;
                Ok(piece)
            }
            Err(Wrong::Unreadable(why)) => Err(self.unreadable(&why)),
            Err(Wrong::Error { status, message }) => {
                // An error where an answer should begin is a refusal with a misleading status.
                tried.headers = tried.headers.take().filter(|_| tried.began);
                Err(self.error_inside(status, &message))
            }
            Err(Wrong::TooManyCalls(max)) => Err(limit("tool_calls_max", max)),
        }
    }

    /// What an answer other than 2xx means.
    async fn refused(&self, response: &mut Response, request: &ModelRequest) -> Failure {
        let status = response.status();
        let after = http::retry_after(response.headers(), SystemTime::now());
        // The status says enough when the body does not come.
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
            return denied(text, "add credit at the provider, or choose another model".to_owned());
        }
        if problem.is_context_full() {
            return Failure::Final(ModelError::ContextFull(self.overflow(&problem, request)));
        }
        match status.as_u16() {
            401 | 403 => denied(text, self.key_fix.clone()),
            408 | 425 | 429 | 500..=599 => Failure::Passing { reason: text, after },
            300..=399 => failed(format!("{text}; redirects are not followed: set base_url to the final address")),
            404 => invalid(format!("{text}; check `base_url` and `id` of [models.{}]", self.name)),
            _ => invalid(text),
        }
    }

    /// The endpoint's own numbers where it tells them; ours are an estimate and a setting.
    fn overflow(&self, problem: &Problem, request: &ModelRequest) -> LimitHit {
        let max = problem.window_tokens.unwrap_or(u64::from(self.context_tokens_max));
        let used = problem.asked_tokens.unwrap_or_else(|| request.tokens_estimated());
        LimitHit::new("context_tokens_max", used.max(max.saturating_add(1)), max)
    }

    /// An error object where a piece of the answer should be.
    fn error_inside(&self, status: Option<u16>, message: &str) -> Failure {
        let text = format!("{} ended its answer with an error: {}", self.who(), self.endpoint.excerpt(message));
        match status {
            Some(400..=407 | 409..=424 | 426..=428 | 430..=499) => failed(text),
            _ => Failure::passing(text),
        }
    }

    fn fault(&self, fault: &Fault) -> Failure {
        match fault {
            Fault::Line(max) => limit("line_bytes_max", *max),
            Fault::Whole(max) => limit("response_bytes_max", *max),
            Fault::Text => self.unreadable("it is not UTF-8"),
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

/// What an endpoint says is wrong.
struct Problem {
    message: String,
    codes: Vec<String>,
    /// llama-server tells both.
    asked_tokens: Option<u64>,
    window_tokens: Option<u64>,
}

impl Problem {
    /// There is no one word for it.
    fn is_context_full(&self) -> bool {
        let named = ["context_length_exceeded", "exceed_context_size_error"];
        let said = ["maximum context length", "context window", "context size", "prompt is too long"];
        let message = self.message.to_lowercase();
        self.codes.iter().any(|code| named.contains(&code.as_str())) || said.iter().any(|words| message.contains(words))
    }

    /// Anthropic says it with the status of a request that is wrong.
    fn is_broke(&self) -> bool {
        self.message.to_lowercase().contains("credit balance is too low")
    }
}

/// Reads `{"error": {"message", "type", "code"}}` and its relatives; any other body is its own message.
fn problem(body: &str) -> Problem {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let error = value.get("error").unwrap_or(&value);
    let text = |field: &str| error.get(field).and_then(Value::as_str).map(str::to_owned);
    let message = text("message").or_else(|| text("detail")).or_else(|| error.as_str().map(str::to_owned));
    let message = message.unwrap_or_else(|| body.to_owned());
    let told = tokens_told(&message);
    Problem {
        codes: [text("code"), text("type")].into_iter().flatten().collect(),
        asked_tokens: error.get("n_prompt_tokens").and_then(Value::as_u64).or(told.map(|told| told.0)),
        window_tokens: error.get("n_ctx").and_then(Value::as_u64).or(told.map(|told| told.1)),
        message,
    }
}

/// The numbers of `prompt is too long: 208310 tokens > 200000 maximum`.
fn tokens_told(message: &str) -> Option<(u64, u64)> {
    let (asked, window) = message.split_once("too long: ")?.1.split_once(" tokens > ")?;
    Some((asked.trim().parse().ok()?, window.split(' ').next()?.parse().ok()?))
}

/// An error object in the middle of an answer.
pub(crate) fn inside(error: &Value) -> Wrong {
    let code = error.get("code").or_else(|| error.get("status"));
    let status = code.and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    Wrong::Error { status, message: problem_text(error) }
}

/// The words of an error object.
pub(crate) fn problem_text(error: &Value) -> String {
    problem(&error.to_string()).message
}

/// The text before the first stop, whether or not the provider knew that stop.
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

fn denied(reason: String, fix: String) -> Failure {
    Failure::Final(ModelError::Denied(Denial { reason, fix }))
}

fn failed(text: String) -> Failure {
    Failure::Final(ModelError::Failed(text))
}

fn invalid(text: String) -> Failure {
    Failure::Final(ModelError::Invalid(text))
}
