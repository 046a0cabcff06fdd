//! A server that stands by before one that works. Both are real servers of HTTP on this machine; the one that works
//! answers what a test tells it to.

use super::*;
use crate::http::{REQUEST_ID, problem, sse};
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::unfold;
use http::{HeaderName, HeaderValue, Method, header};
use http_body_util::BodyExt as _;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Sooner than connections are cut off while a server stops.
const SOON: Duration = Duration::from_secs(8);

/// The end of a body in chunks.
const LAST_CHUNK: &str = "0\r\n\r\n";

type Exchange = (Request<Incoming>, oneshot::Sender<Response>);

/// A server that works.
struct Working {
    url: ServerUrl,
    exchanges: mpsc::UnboundedReceiver<Exchange>,
    _stop: watch::Sender<bool>,
}

impl Working {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = url_of(listener.local_addr().expect("bound"));
        let (stop, stopping) = watch::channel(false);
        let (asked, exchanges) = mpsc::unbounded_channel();
        let answer = move |_: SocketAddr, request: Request<Incoming>| {
            let asked = asked.clone();
            async move {
                let (answer, answered) = oneshot::channel();
                assert!(asked.send((request, answer)).is_ok(), "nobody answers");
                Ok::<_, Infallible>(answered.await.unwrap_or_default())
            }
        };
        tokio::spawn(longhaul_listen::serve(listener, 16, stopping, answer));
        Self { url, exchanges, _stop: stop }
    }

    /// The next request, and what answers it.
    async fn next(&mut self) -> Exchange {
        timeout(SOON, self.exchanges.recv()).await.expect("a request").expect("it serves")
    }

    /// Answers the next request.
    async fn answers(&mut self, response: Response) {
        let (_, answer) = self.next().await;
        answer.send(response).expect("it waits");
    }
}

/// A server that stands by.
struct Standby {
    server: StandbyServer,
    address: SocketAddr,
    holder: watch::Sender<Option<ServerUrl>>,
    listener: TcpListener,
}

impl Standby {
    async fn start(holder: Option<&ServerUrl>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let (holder, known) = watch::channel(holder.cloned());
        let server = StandbyServer::start(&listener, ServerSettings::default(), known).expect("a second handle");
        Self { server, address, holder, listener }
    }

    /// Sends a request without its body. The connection is closed after the answer.
    async fn open(&self, line: &str, headers: &[&str]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        let host = format!("Host: {}", self.address);
        let named = headers.iter().any(|header| header.starts_with("Host: "));
        let lines = [host.as_str()].into_iter().filter(|_| !named).chain(headers.iter().copied());
        let lines: String = lines.map(|line| format!("{line}\r\n")).collect();
        let request = format!("{line} HTTP/1.1\r\n{lines}Connection: close, X-Gone\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        stream
    }

    async fn ask(&self, line: &str, headers: &[&str]) -> String {
        rest(self.open(line, headers).await).await
    }

    /// Asks, while the server that works gives this answer.
    async fn ask_with(&self, line: &str, working: &mut Working, response: Response) -> String {
        let (answer, ()) = tokio::join!(self.ask(line, &[]), working.answers(response));
        answer
    }
}

fn url_of(address: SocketAddr) -> ServerUrl {
    ServerUrl::parse(&format!("http://{address}")).expect("an address")
}

/// All that still comes, also where the connection breaks.
async fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = timeout(SOON, stream.read_to_end(&mut bytes)).await.expect("it ends");
    String::from_utf8(bytes).expect("text")
}

/// What comes up to these words.
async fn until(stream: &mut TcpStream, words: &str) -> String {
    let mut text = String::new();
    while !text.contains(words) {
        let mut some = [0; 1_024];
        let read = timeout(SOON, stream.read(&mut some)).await.expect("it comes").expect("it is open");
        assert!(read > 0, "the end after {text}");
        text.push_str(std::str::from_utf8(&some[..read]).expect("text"));
    }
    text
}

fn response(status: StatusCode, headers: &[(&'static str, &'static str)], body: &'static str) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    for (name, value) in headers {
        response.headers_mut().append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

/// A response whose body is what is sent to the channel.
fn streaming(kind: &'static str) -> (mpsc::UnboundedSender<&'static str>, Response) {
    let (sender, pieces) = mpsc::unbounded_channel::<&'static str>();
    let body = Body::from_stream(unfold(pieces, async |mut pieces| {
        let piece = pieces.recv().await?;
        Some((Ok::<_, Infallible>(Bytes::from_static(piece.as_bytes())), pieces))
    }));
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    (sender, response)
}

#[tokio::test]
async fn a_standby_lives_and_leaves_the_address_to_the_server_that_follows() {
    let standby = Standby::start(None).await;
    let health = standby.ask("GET /health", &[]).await;
    assert!(health.starts_with("HTTP/1.1 200") && health.contains("\"status\":\"standby\""), "{health}");
    for path in ["/ready", "/api/v1/runs", "/"] {
        let refused = standby.ask(&format!("GET {path}"), &[]).await;
        assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("stands by"), "{refused}");
        let refused = refused.to_lowercase();
        assert!(refused.contains("retry-after: 5") && refused.contains(REQUEST_ID.as_str()), "{refused}");
    }
    standby.server.stop().await;
    let (connected, accepted) = tokio::join!(TcpStream::connect(standby.address), standby.listener.accept());
    assert!(connected.is_ok() && accepted.is_ok());
}

#[tokio::test]
async fn a_request_is_forwarded_with_its_token_and_without_what_is_of_its_connection() {
    let mut working = Working::start().await;
    let standby = Standby::start(Some(&working.url)).await;
    let origin = format!("Origin: http://{}", standby.address);
    let headers = [
        "Authorization: Bearer lh_one",
        "Content-Length: 4",
        "Cookie: other=1",
        "Keep-Alive: timeout=5",
        "TE: trailers",
        "X-Gone: 1",
        "X-Kept: 1",
        "X-Kept: 2",
        origin.as_str(),
    ];
    let mut stream = standby.open("POST /api/v1/a%20b?c=d%2Fe&f", &headers).await;
    stream.write_all(b"body").await.expect("sent");
    let (request, answer) = working.next().await;
    let (parts, body) = request.into_parts();
    assert_eq!((&parts.method, parts.uri.to_string().as_str()), (&Method::POST, "/api/v1/a%20b?c=d%2Fe&f"));
    let mut found: Vec<&str> = parts.headers.keys().map(HeaderName::as_str).collect();
    found.sort_unstable();
    assert_eq!(found, ["accept", "authorization", "content-length", "host", "longhaul-forwarded-by", "x-kept"]);
    assert_eq!(parts.headers["authorization"], "Bearer lh_one");
    assert_eq!(format!("http://{}", parts.headers["host"].to_str().expect("text")), working.url.as_str());
    assert_eq!(parts.headers.get_all("x-kept").iter().collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(body.collect().await.expect("it comes").to_bytes(), "body");
    let headers = [("connection", "x-hop"), ("x-hop", "1"), ("set-cookie", "a=b"), ("x-request-id", "q-its-own")];
    answer.send(response(StatusCode::ACCEPTED, &headers, "made")).expect("it waits");
    let answer = rest(stream).await;
    assert!(answer.starts_with("HTTP/1.1 202") && answer.ends_with("\r\n\r\nmade"), "{answer}");
    assert!(answer.contains("x-request-id: q-its-own\r\n") && answer.contains("content-length: 4\r\n"), "{answer}");
    assert!(!answer.contains("x-hop") && !answer.contains("set-cookie"), "{answer}");
    assert!(answer.contains("content-security-policy: "), "{answer}");
}

#[tokio::test]
async fn an_answer_is_forwarded_as_it_is_and_a_page_that_is_no_problem_becomes_one() {
    let mut working = Working::start().await;
    let standby = Standby::start(Some(&working.url)).await;
    let elsewhere = response(StatusCode::TEMPORARY_REDIRECT, &[("location", "http://127.0.0.1:1/")], "");
    let moved = standby.ask_with("GET /", &mut working, elsewhere).await;
    assert!(moved.starts_with("HTTP/1.1 307") && moved.contains("location: http://127.0.0.1:1/\r\n"), "{moved}");
    let head = standby.ask_with("HEAD /", &mut working, response(StatusCode::OK, &[], "12345")).await;
    assert!(head.contains("content-length: 5\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let told = response(StatusCode::UNAUTHORIZED, &[("content-type", problem::MEDIA_TYPE)], "{\"status\":401}");
    let told = standby.ask_with("GET /api/v1/runs", &mut working, told).await;
    assert!(told.starts_with("HTTP/1.1 401") && told.ends_with("{\"status\":401}"), "{told}");
    let page = response(StatusCode::BAD_GATEWAY, &[("content-type", "text/html")], "<script>1</script>");
    let page = standby.ask_with("GET /", &mut working, page).await;
    assert!(page.starts_with("HTTP/1.1 502") && page.contains(problem::MEDIA_TYPE), "{page}");
    assert!(!page.contains("<script>"), "{page}");
}

#[tokio::test]
async fn a_body_is_forwarded_before_its_end_has_come() {
    let mut working = Working::start().await;
    let standby = Standby::start(Some(&working.url)).await;
    let mut stream = standby.open("PUT /", &["Transfer-Encoding: chunked"]).await;
    stream.write_all(b"5\r\nfirst\r\n").await.expect("sent");
    let (mut request, answer) = working.next().await;
    let first =
        timeout(SOON, request.body_mut().frame()).await.expect("it comes").expect("a piece").expect("it is open");
    assert_eq!(first.into_data().expect("bytes"), "first");
    stream.write_all(b"4\r\nlast\r\n0\r\n\r\n").await.expect("sent");
    assert_eq!(request.into_body().collect().await.expect("it comes").to_bytes(), "last");
    answer.send(response(StatusCode::OK, &[], "")).expect("it waits");
    assert!(rest(stream).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn events_are_forwarded_as_they_come_and_end_once_another_server_has_the_state() {
    let mut working = Working::start().await;
    let standby = Standby::start(Some(&working.url)).await;
    let mut opened = Vec::new();
    for kind in [sse::MEDIA_TYPE, "application/octet-stream"] {
        let (pieces, response) = streaming(kind);
        let (mut stream, ()) = tokio::join!(standby.open("GET /", &[]), working.answers(response));
        for piece in ["data: one\n\n", "data: two\n\n"] {
            pieces.send(piece).expect("it is read");
            until(&mut stream, piece).await;
        }
        opened.push((stream, pieces));
    }
    standby.holder.send_replace(None);
    let mut ends = Vec::new();
    for (stream, pieces) in opened {
        let last = rest(stream).await;
        timeout(SOON, pieces.closed()).await.expect("the connection to the other server ends, too");
        ends.push(last.ends_with(LAST_CHUNK));
    }
    assert_eq!(ends, [true, false], "events end in order, and half a file is not taken for the whole");
}

#[tokio::test]
async fn a_standby_that_takes_over_ends_what_it_forwards_at_once() {
    let mut working = Working::start().await;
    let standby = Standby::start(Some(&working.url)).await;
    let (pieces, response) = streaming(sse::MEDIA_TYPE);
    let (mut stream, ()) = tokio::join!(standby.open("GET /", &[]), working.answers(response));
    pieces.send("data: one\n\n").expect("it is read");
    until(&mut stream, "data: one\n\n").await;
    let waiting = standby.open("POST /", &["Content-Length: 0"]).await;
    let (_, _unanswered) = working.next().await;
    timeout(SOON, standby.server.stop()).await.expect("it waits for no stream");
    assert!(rest(stream).await.ends_with(LAST_CHUNK));
    let cut_off = rest(waiting).await;
    assert!(cut_off.starts_with("HTTP/1.1 502") && cut_off.contains("may have done"), "{cut_off}");
}

#[tokio::test]
async fn a_request_that_was_forwarded_before_is_not_forwarded_again() {
    let standby = Standby::start(None).await;
    standby.holder.send_replace(Some(url_of(standby.address)));
    let refused = standby.ask("GET /api/v1/runs", &[]).await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("another server forwarded"), "{refused}");
    assert!(refused.contains("retry-after: 5\r\n"), "{refused}");
}

#[tokio::test]
async fn a_name_that_is_not_ours_and_a_page_of_another_origin_are_refused_before_anything_is_forwarded() {
    let mut working = Working::start().await;
    let standby = Standby::start(Some(&working.url)).await;
    let check = async |line: &str, headers: &[&str], words: &str| {
        let refused = standby.ask(line, headers).await;
        assert!(refused.starts_with("HTTP/1.1 403") && refused.contains(words), "{refused}");
    };
    check("GET /", &["Host: evil.example"], "does not go by `evil.example`").await;
    check("POST /", &["Origin: http://evil.example", "Content-Length: 0"], "another origin").await;
    check("POST /", &["Sec-Fetch-Site: cross-site", "Content-Length: 0"], "another origin").await;
    let lines = standby.ask("OPTIONS *", &[]).await;
    assert!(lines.starts_with("HTTP/1.1 400") && lines.contains("has no path"), "{lines}");
    assert!(working.exchanges.try_recv().is_err());
}

#[tokio::test]
async fn a_server_that_gives_no_answer_is_told_without_its_address() {
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = gone.local_addr().expect("bound");
    drop(gone);
    let standby = Standby::start(Some(&url_of(address))).await;
    let check = async |line: &str, status: &str, words: &str| {
        let told = standby.ask(line, &["Content-Length: 0"]).await;
        assert!(told.starts_with(&format!("HTTP/1.1 {status}")) && told.contains(words), "{told}");
        assert_eq!(told.contains("retry-after: 5\r\n"), status == "503", "{told}");
        assert!(!told.contains(&address.to_string()), "{told}");
    };
    check("GET /", "503", "cannot be reached").await;
    check("POST /", "503", "cannot be reached").await;
    let dying = TcpListener::bind(address).await.expect("the port is free");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = dying.accept().await {
            let _ = stream.read(&mut [0; 1_024]).await;
        }
    });
    check("GET /", "503", "ended before its answer; try again").await;
    check("POST /", "502", "may have done what was asked").await;
    standby.holder.send_replace(None);
    check("GET /", "503", "knows no address").await;
}

#[tokio::test]
async fn a_standby_whose_wait_has_ended_asks_clients_to_come_again() {
    let Standby { server, address, holder, listener } = Standby::start(None).await;
    drop(holder);
    let (holder, _) = watch::channel(None);
    let standby = Standby { server, address, holder, listener };
    let told = standby.ask("GET /", &[]).await;
    assert!(told.starts_with("HTTP/1.1 503") && told.contains("takes over at this moment"), "{told}");
}
