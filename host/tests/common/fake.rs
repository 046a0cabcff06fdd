//! A fake server for both sides of the world: a model whose answers follow from what it is asked, and
//! a place that counts what it is told.
//!
//! `POST /post/TEXT` counts every time, `PUT /put/TEXT` once for a key, `GET /look/TEXT` never, and
//! `POST /v1/chat/completions` is the model, which has two kinds of answers: see [`reader`]. `GET /told` says what was
//! told so far.

use super::{asker, reader};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The server; dropping it ends it.
pub struct Fake {
    /// `HOST:PORT`.
    pub address: String,
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    seen: Mutex<Seen>,
    at_work: AtomicUsize,
    ends: AtomicBool,
}

#[derive(Default)]
struct Seen {
    posts: Vec<Told>,
    puts: BTreeMap<String, String>,
    asked: Vec<String>,
    tokens_most: u64,
    requests: BTreeMap<&'static str, u32>,
    model_takes: Duration,
    posts_take: Duration,
    kill: Option<Kill>,
    last_request: Value,
    schemas: BTreeMap<String, Value>,
    window: Option<u64>,
    refuses: Option<(u16, String)>,
    replies: VecDeque<Value>,
    replied_to: Vec<Value>,
    models: BTreeMap<String, String>,
    remembers: VecDeque<String>,
    advises: Option<String>,
    remembered: u32,
    script: Option<Script>,
}

/// The reply of a scripted model to the body of a request: a text, or the fields of a message.
type Script = Box<dyn Fn(&Value) -> Option<Value> + Send>;

/// A request that the fake server received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The idempotency key.
    pub key: String,
    /// The text.
    pub text: String,
}

/// A process that dies of a request, which is answered no more.
#[derive(Clone, Copy, Debug)]
pub struct Kill {
    /// The process.
    pub pid: u32,
    /// `post`, `put`, `look` or `model`.
    pub kind: &'static str,
    /// At the how many'th of the kind, from 1.
    pub number: u32,
    /// True when the request still has its effect.
    pub happens: bool,
}

impl Fake {
    /// Serves on a free port.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("bound").to_string();
        let inner = Arc::new(Inner::default());
        let own = Arc::clone(&inner);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if own.ends.load(Ordering::Relaxed) {
                    return;
                }
                own.at_work.fetch_add(1, Ordering::SeqCst);
                let inner = Arc::clone(&own);
                std::thread::spawn(move || {
                    // A client that died in the middle of its request said nothing.
                    let _ = inner.serve(stream);
                    inner.at_work.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, inner }
    }

    /// Plays the model's part where this gives a reply.
    pub fn plays(&self, script: impl Fn(&Value) -> Option<Value> + Send + 'static) {
        self.inner.seen().script = Some(Box::new(script));
    }

    /// Sets the time that the model takes for a reply.
    pub fn model_takes(&self, time: Duration) {
        self.inner.seen().model_takes = time;
    }

    /// Sets the time of the answer to a post, which has its effect at once.
    pub fn posts_take(&self, time: Duration) {
        self.inner.seen().posts_take = time;
    }

    /// The model's reply about a failed step of a graph.
    pub fn advises(&self, text: &str) {
        self.inner.seen().advises = Some(text.to_owned());
    }

    /// The model's reply to the request for facts to remember of a run.
    pub fn remembers(&self, text: &str) {
        self.remembers_in_turn([text.to_owned()]);
    }

    /// The same in turn, and the last of it from then on.
    pub fn remembers_in_turn(&self, texts: impl IntoIterator<Item = String>) {
        self.inner.seen().remembers = texts.into_iter().collect();
    }

    /// The number of requests for facts to remember.
    pub fn asked_to_remember(&self) -> u32 {
        self.inner.seen().remembered
    }

    /// The next reply of the model to any request: a text, or JSON as text.
    pub fn says(&self, replies: impl IntoIterator<Item = Value>) {
        self.inner.seen().replies.extend(replies);
    }

    /// The requests to the model that were answered so, whole and in order.
    pub fn replied_to(&self) -> Vec<Value> {
        self.inner.seen().replied_to.clone()
    }

    /// Kills a process at a request.
    pub fn kill_at(&self, kill: Kill) {
        self.inner.seen().kill = Some(kill);
    }

    /// The posted bodies, in order.
    pub fn posts(&self) -> Vec<Told> {
        self.inner.seen().posts.clone()
    }

    /// The put bodies, by key.
    pub fn puts(&self) -> BTreeMap<String, String> {
        self.inner.seen().puts.clone()
    }

    /// The requests to the model, in order.
    pub fn asked(&self) -> Vec<String> {
        self.inner.seen().asked.clone()
    }

    /// The last request to the model, whole.
    pub fn last_request(&self) -> Value {
        self.inner.seen().last_request.clone()
    }

    /// The models that were asked, by the provider's name of them, each with how its first system prompt begins.
    pub fn models(&self) -> BTreeMap<String, String> {
        self.inner.seen().models.clone()
    }

    /// Tokens of the longest request to the model, as it counts.
    pub fn tokens_most(&self) -> u64 {
        self.inner.seen().tokens_most
    }

    /// A model whose window is so many tokens, as it counts, and that says so when it is asked for more.
    pub fn has_window(&self, tokens: u64) {
        self.inner.seen().window = Some(tokens);
    }

    /// The model answers with this status and these words until it is told otherwise.
    pub fn refuses(&self, refusal: Option<(u16, &str)>) {
        self.inner.seen().refuses = refusal.map(|(status, message)| (status, message.to_owned()));
    }

    /// The schemas of replies that were asked for, by their fields.
    pub fn schemas(&self) -> BTreeMap<String, Value> {
        self.inner.seen().schemas.clone()
    }

    /// The number of requests of each kind.
    pub fn requests(&self) -> BTreeMap<&'static str, u32> {
        self.inner.seen().requests.clone()
    }

    /// Waits until what a dead client had sent is counted.
    pub fn settle(&self) {
        std::thread::sleep(Duration::from_millis(20));
        let since = Instant::now();
        while self.inner.at_work.load(Ordering::SeqCst) > 0 && since.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.inner.ends.store(true, Ordering::Relaxed);
        // Wakes the listener.
        let _ = TcpStream::connect(&self.address);
    }
}

impl Inner {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let Some((path, body)) = request(&stream)? else { return Ok(()) };
        let answered = match path.as_str() {
            // It lists no models, and requests for the list do not count.
            "/v1/models" => Some((json!({}), Duration::ZERO)),
            "/told" => Some((self.seen().told(), Duration::ZERO)),
            _ => self.take(&path, &body),
        };
        let Some((answer, pause)) = answered else { return Ok(()) };
        std::thread::sleep(pause);
        let status = answer["error"]["status"].as_u64().unwrap_or(200);
        let answer = answer.to_string();
        let head = format!("HTTP/1.1 {status} Fake\r\nContent-Type: application/json\r\nConnection: close\r\n");
        write!(&stream, "{head}Content-Length: {}\r\n\r\n{answer}", answer.len())
    }

    /// The effect of a request and its answer; none when the client died of it.
    fn take(&self, path: &str, body: &str) -> Option<(Value, Duration)> {
        let (kind, text) = path.trim_start_matches('/').split_once('/').unwrap_or((path, ""));
        let kind = ["post", "put", "look"].into_iter().find(|one| *one == kind).unwrap_or("model");
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let mut seen = self.seen();
        let number = seen.requests.entry(kind).or_default();
        *number += 1;
        let kill = seen.kill.filter(|kill| kill.kind == kind && kill.number == seen.requests[kind]);
        if let Some(kill) = kill {
            seen.kill = None;
            super::lab::kill(kill.pid);
            if !kill.happens {
                return None;
            }
        }
        let (answer, pause) = seen.answer(kind, text, &body);
        kill.is_none().then_some((answer, pause))
    }
}

impl Seen {
    /// All requests, in a form that is the same in every run.
    fn told(&self) -> Value {
        let posts: Vec<&str> = self.posts.iter().map(|told| told.text.as_str()).collect();
        let mut puts: Vec<&str> = self.puts.values().map(String::as_str).collect();
        puts.sort_unstable();
        json!({
            "posts": posts, "puts": puts, "requests": self.requests, "models": self.models,
            "remembered": self.remembered,
        })
    }

    fn refusal(&self, body: &Value) -> Option<Value> {
        if let Some((status, message)) = &self.refuses {
            return Some(refusal(*status, message));
        }
        let (window, asked) = (self.window?, reader::tokens(body));
        let text = format!(
            "This model's maximum context length is {window} tokens. However, your messages resulted in {asked} tokens."
        );
        (asked > window).then(|| refusal(400, &text))
    }

    fn answer(&mut self, kind: &str, text: &str, body: &Value) -> (Value, Duration) {
        let schema = &body["response_format"]["json_schema"]["schema"];
        if let Some(fields) = schema["properties"].as_object() {
            let fields: Vec<&str> = fields.keys().map(String::as_str).collect();
            self.schemas.insert(fields.join(" "), schema.clone());
        }
        if kind == "model"
            && let Some(refusal) = self.refusal(body)
        {
            return (refusal, Duration::ZERO);
        }
        let key = body["key"].as_str().unwrap_or_default().to_owned();
        match kind {
            "post" => self.posts.push(Told { key, text: text.to_owned() }),
            "put" => drop(self.puts.insert(key, text.to_owned())),
            "look" => {}
            _ if body["messages"][0]["content"].to_string().contains("You keep the memory of a project") => {
                self.remembered += 1;
                let next =
                    if self.remembers.len() > 1 { self.remembers.pop_front() } else { self.remembers.front().cloned() };
                let text = next.unwrap_or_else(|| "I would rather not.".to_owned());
                return (completion(&text, 10), self.model_takes);
            }
            _ if body["messages"][0]["content"].to_string().contains("You mend steps of Python code") => {
                let text = self.advises.clone().unwrap_or_else(|| "I would rather not.".to_owned());
                return (completion(&text, 10), self.model_takes);
            }
            _ if !self.replies.is_empty() => {
                let reply = self.replies.pop_front().unwrap_or_default();
                self.replied_to.push(body.clone());
                let text = reply.as_str().map_or_else(|| reply.to_string(), str::to_owned);
                return (completion(&text, reader::tokens(body)), self.model_takes);
            }
            _ => {
                let question = last_message(body);
                if let Some(played) = self.script.as_ref().and_then(|script| script(body)) {
                    return (completion_of(&played, reader::tokens(body)), self.model_takes);
                }
                let (text, tokens) = match asker::reply(body).or_else(|| reader::reply(body)) {
                    Some(reply) => (reply, reader::tokens(body)),
                    None => (format!("line {:016x}", fnv(&question)), 10),
                };
                self.last_request = body.clone();
                let short = |value: &Value| value.as_str().unwrap_or_default().chars().take(24).collect::<String>();
                self.models.entry(short(&body["model"])).or_insert_with(|| short(&body["messages"][0]["content"]));
                self.asked.push(question);
                self.tokens_most = self.tokens_most.max(tokens);
                return (completion(&text, tokens), self.model_takes);
            }
        }
        let pause = if kind == "post" { self.posts_take } else { Duration::ZERO };
        (answer_to(kind, text), pause)
    }
}

/// As OpenAI words it.
fn refusal(status: u16, message: &str) -> Value {
    json!({ "error": { "message": message, "type": "invalid_request_error", "status": status } })
}

/// The response of the fake server, which follows from the request.
pub fn answer_to(kind: &str, text: &str) -> Value {
    json!({ kind: text })
}

fn completion(text: &str, tokens: u64) -> Value {
    completion_of(&Value::from(text), tokens)
}

/// A reply of a text, or of the fields of a message.
fn completion_of(said: &Value, tokens: u64) -> Value {
    let (message, reason) = match said {
        Value::Object(fields) => (json!(fields), "tool_calls"),
        text => (json!({ "role": "assistant", "content": text }), "stop"),
    };
    json!({
        "id": "fake", "object": "chat.completion", "created": 0, "model": "fake",
        "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
        "usage": { "prompt_tokens": tokens, "completion_tokens": 5, "total_tokens": tokens + 5 },
    })
}

fn last_message(body: &Value) -> String {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    messages.last().map(|message| message["content"].to_string()).unwrap_or_default()
}

/// A number for a text.
pub fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The path and the whole body; none when the client went before it had said all.
fn request(stream: &TcpStream) -> std::io::Result<Option<(String, String)>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 {
            return Ok(None);
        }
        let header = header.trim().to_ascii_lowercase();
        match header.split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().unwrap_or(0),
            Some(("transfer-encoding", value)) => is_chunked = value.contains("chunked"),
            _ if header.is_empty() => break,
            _ => {}
        }
    }
    let mut body = Vec::new();
    if is_chunked {
        loop {
            let mut size = String::new();
            if reader.read_line(&mut size)? == 0 {
                return Ok(None);
            }
            let size = u64::from_str_radix(size.trim(), 16).unwrap_or(0);
            let mut chunk = vec![0; usize::try_from(size).unwrap_or(0) + 2];
            reader.read_exact(&mut chunk)?;
            if size == 0 {
                break;
            }
            chunk.truncate(chunk.len() - 2);
            body.extend(chunk);
        }
    } else {
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
    }
    Ok(Some((path, String::from_utf8_lossy(&body).into_owned())))
}
