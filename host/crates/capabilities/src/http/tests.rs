//! Against servers on loopback; each test sets where names lead.

use super::*;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Full};
use longhaul_core::grant::{Grants, HostPattern};
use longhaul_core::supervisor::{Supervisor, Unsupervised};
use longhaul_core::{InvocationId, LimitHit, Limits};
use longhaul_egress::{HeaderSecret, Resolve, Secret, SecretPlaceholders};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi_http::p2::bindings::http::outgoing_handler::Host as _;
use wasmtime_wasi_http::p2::bindings::http::types::{
    ErrorCode, HostFields, HostFutureIncomingResponse, HostOutgoingRequest, Scheme,
};
use wasmtime_wasi_io::bindings::wasi::io::poll::HostPollable as _;

/// Answers each question with the next list, and the last one for ever.
struct Script(Mutex<Vec<Vec<IpAddr>>>);

#[async_trait::async_trait]
impl Resolve for Script {
    async fn resolve(&self, _: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        let mut script = self.0.lock().unwrap();
        let answer = if script.len() > 1 { script.remove(0) } else { script[0].clone() };
        Ok(answer.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }
}

fn meter(supervisor: &Arc<impl Supervisor + 'static>) -> Meter {
    Meter { supervisor: Arc::clone(supervisor) as Arc<dyn Supervisor>, caller: InvocationId::from_text("r-1/plan") }
}

fn outgoing(hosts: &[&str], script: &[&[&str]], bytes_max: u64) -> (Outgoing, LogBook) {
    let log = LogBook::new(&Limits::default());
    let script = script.iter().map(|ips| ips.iter().map(|ip| ip.parse().unwrap()).collect()).collect();
    let grants = Grants {
        table: "tools.web".into(),
        hosts: hosts.iter().map(|host| HostPattern::try_from((*host).to_owned()).unwrap()).collect(),
        ..Grants::default()
    };
    let outgoing = Outgoing::with(Rules {
        plugin: "web".into(),
        meter: meter(&Arc::new(Unsupervised)),
        guard: Guard::new(grants, RequestLimits::default()).with_resolver(Arc::new(Script(Mutex::new(script)))),
        bytes_max,
        log: log.clone(),
        exchange: None,
        permits: Arc::new(Semaphore::new(REQUESTS_MAX)),
    });
    (outgoing, log)
}

fn get(url: &str) -> Request<WasiBody> {
    Request::get(url).body(Empty::new().map_err(Error::from).boxed_unsync()).unwrap()
}

fn post(url: &str, bytes: usize) -> Request<WasiBody> {
    Request::post(url).body(Full::new(vec![b'x'; bytes].into()).map_err(Error::from).boxed_unsync()).unwrap()
}

async fn send(outgoing: &mut Outgoing, request: Request<WasiBody>) -> Result<Response<WasiBody>, Error> {
    let future = outgoing.gate.send_request(request, None, Box::new(async { Ok(()) }));
    Box::into_pin(future).await.map(|(response, _)| response)
}

async fn body(response: Response<WasiBody>) -> Result<Vec<u8>, Error> {
    Ok(response.into_body().collect().await?.to_bytes().to_vec())
}

/// One response for each connection, always the same; returns the requests' heads.
async fn server(response: String) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let requests = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = vec![0; 4_096];
            let length = stream.read(&mut head).await.unwrap_or(0);
            requests.lock().unwrap().push(String::from_utf8_lossy(&head[..length]).into_owned());
            // The client may have hung up by then.
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    (port, seen)
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn a_named_loopback_address_is_reached_without_additions() {
    let (port, seen) = server(response("200 OK", "x-made-by: test\r\n", "hello")).await;
    let host = format!("http://127.0.0.1:{port}");
    let (mut outgoing, log) = outgoing(&[&host], &[&["192.0.2.1"]], 1_000);
    let answer = send(&mut outgoing, get(&format!("{host}/a?b"))).await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["x-made-by"]), (200, &"test".parse().unwrap()));
    assert_eq!(body(answer).await.unwrap(), b"hello");
    let request = seen.lock().unwrap()[0].to_lowercase();
    assert!(request.starts_with("get /a?b http/1.1\r\n"), "{request}");
    for absent in ["cookie", "chunked", "accept-encoding", "user-agent", "referer"] {
        assert!(!request.contains(absent), "{request}");
    }
    assert!(log.take().0.is_empty());
}

#[tokio::test]
async fn a_redirect_goes_back_to_the_guest() {
    let (port, seen) = server(response("302 Found", "location: http://169.254.169.254/latest\r\n", "")).await;
    let host = format!("http://127.0.0.1:{port}");
    let (mut outgoing, _) = outgoing(&[&host], &[&[]], 1_000);
    let answer = send(&mut outgoing, get(&format!("{host}/"))).await.unwrap();
    assert_eq!(answer.status(), 302);
    assert_eq!(seen.lock().unwrap().len(), 1);
    let error = send(&mut outgoing, get("http://169.254.169.254/latest")).await.unwrap_err();
    assert!(error.to_string().contains("may not reach"), "{error}");
}

#[tokio::test]
async fn bodies_are_held_to_the_limit_in_both_directions() {
    for (bytes, fits) in [(99, true), (100, true), (101, false)] {
        let (port, _) = server(response("200 OK", "", &"y".repeat(bytes))).await;
        let host = format!("http://127.0.0.1:{port}");
        let (mut outgoing, log) = outgoing(&[&host], &[&[]], 100);
        let read = body(send(&mut outgoing, get(&format!("{host}/"))).await.unwrap()).await;
        assert_eq!(read.is_ok(), fits, "{bytes}: {read:?}");
        let (lines, _) = log.take();
        assert_eq!(lines.iter().any(|line| line.text.contains("host_bytes_max")), !fits, "{lines:?}");

        let sent = send(&mut outgoing, post(&format!("{host}/"), bytes)).await;
        assert_eq!(matches!(sent, Err(Error::HttpRequestBodySize(Some(_)))), !fits, "{bytes}");
    }
}

#[tokio::test]
async fn a_flood_of_headers_is_an_error() {
    for headers in ["a: b\r\n".repeat(101), format!("a: {}\r\n", "b".repeat(FIELD_BYTES_MAX))] {
        let (port, _) = server(response("200 OK", &headers, "")).await;
        let host = format!("http://127.0.0.1:{port}");
        let (mut outgoing, _) = outgoing(&[&host], &[&[]], 100);
        assert!(send(&mut outgoing, get(&format!("{host}/"))).await.is_err());
    }
}

#[tokio::test]
async fn requests_at_once_are_bounded_until_their_responses_end() {
    let (port, _) = server(response("200 OK", "", "x")).await;
    let host = format!("http://127.0.0.1:{port}");
    let (mut outgoing, _) = outgoing(&[&host], &[&[]], 100);
    let mut held = Vec::new();
    for _ in 0..REQUESTS_MAX {
        held.push(send(&mut outgoing, get(&format!("{host}/"))).await.unwrap());
    }
    let over = send(&mut outgoing, get(&format!("{host}/"))).await;
    assert!(matches!(over, Err(Error::ConnectionLimitReached)));
    body(held.remove(0)).await.unwrap();
    assert!(send(&mut outgoing, get(&format!("{host}/"))).await.is_ok());
}

#[tokio::test]
async fn what_nobody_answers_is_an_error_that_says_so() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = format!("http://127.0.0.1:{}", silent.local_addr().unwrap().port());
    let (mut outgoing, _) = outgoing(&[&host], &[&[]], 100);
    let soon = Some(Duration::from_millis(20));
    let options = RequestOptions { connect_timeout: soon, first_byte_timeout: soon, between_bytes_timeout: None };
    let future = outgoing.gate.send_request(get(&format!("{host}/")), Some(options), Box::new(async { Ok(()) }));
    assert!(matches!(Box::into_pin(future).await, Err(Error::HttpResponseTimeout)));
    drop(silent);
    assert!(matches!(send(&mut outgoing, get(&format!("{host}/"))).await, Err(Error::ConnectionRefused)));
}

#[test]
fn a_guest_may_wait_shorter_than_we_do_and_not_longer() {
    let times = Times::of(Some(RequestOptions {
        connect_timeout: Some(Duration::from_secs(1)),
        first_byte_timeout: Some(Duration::from_secs(600)),
        between_bytes_timeout: None,
    }));
    let expected =
        Times { connect: Duration::from_secs(1), first_byte: FIRST_BYTE_MAX, between_bytes: BETWEEN_BYTES_MAX };
    assert_eq!(times, expected);
}

#[tokio::test]
async fn a_denial_reaches_the_guest_and_the_log_with_its_fix() {
    let (mut outgoing, log) = outgoing(&[], &[&[]], 100);
    let mut table = ResourceTable::new();
    let mut view = outgoing.view(&mut table);
    let headers = HostFields::new(&mut view).unwrap();
    let request = HostOutgoingRequest::new(&mut view, headers).unwrap();
    let rep = request.rep();
    let borrowed = || Resource::new_borrow(rep);
    view.set_scheme(borrowed(), Some(Scheme::Https)).unwrap().unwrap();
    view.set_authority(borrowed(), Some("api.example.com".into())).unwrap().unwrap();
    view.set_path_with_query(borrowed(), Some("/v1".into())).unwrap().unwrap();
    let future = view.handle(request, None).unwrap();
    let pollable = view.subscribe(Resource::new_borrow(future.rep())).unwrap();
    view.table.block(pollable).await.unwrap();
    let answer = HostFutureIncomingResponse::get(&mut view, future).unwrap().unwrap().unwrap();
    let Err(ErrorCode::InternalError(Some(text))) = answer else { panic!("{answer:?}") };
    let fix = "to allow it, add to longhaul.toml: [tools.web] hosts = [\"https://api.example.com\"]";
    assert!(text.contains(fix), "{text}");
    let (lines, _) = log.take();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].level == "warn" && lines[0].text.contains(fix), "{lines:?}");
}

/// The case of GHSA-5qpp-g3j2-8frx: the path of a request is the address of another host.
#[tokio::test]
async fn a_request_whose_path_is_an_address_reaches_no_other_host() {
    let (port, seen) = server(response("200 OK", "", "inside")).await;
    let (granted, other) = (port.to_string(), server(response("200 OK", "", "granted")).await);
    let front = &granted[..granted.len() - 1];
    let host = format!("http://127.0.0.1:{}", other.0);
    let (mut outgoing, _) = outgoing(&[&host, &format!("http://127.0.0.1:{front}"), "http://127.0.0.1"], &[&[]], 100);
    let attempts = [
        (format!("127.0.0.1:{}", other.0), format!("http://127.0.0.1:{port}/")),
        (format!("127.0.0.1:{}", other.0), format!("@127.0.0.1:{port}/")),
        ("127.0.0.1".to_owned(), format!(":{port}/")),
        (format!("127.0.0.1:{front}"), format!("{}/", &granted[granted.len() - 1..])),
    ];
    let (rows, mut refused_by) = (attempts.len(), BTreeMap::new());
    for (authority, path) in attempts {
        let mut table = ResourceTable::new();
        let mut view = outgoing.view(&mut table);
        let headers = HostFields::new(&mut view).unwrap();
        let request = HostOutgoingRequest::new(&mut view, headers).unwrap();
        let rep = request.rep();
        view.set_scheme(Resource::new_borrow(rep), Some(Scheme::Http)).unwrap().unwrap();
        view.set_authority(Resource::new_borrow(rep), Some(authority)).unwrap().unwrap();
        // The guard's own tests cover such paths.
        let layer = if view.set_path_with_query(Resource::new_borrow(rep), Some(path.clone())).unwrap().is_err() {
            "the path of the request"
        } else if let Ok(future) = view.handle(request, None) {
            let pollable = view.subscribe(Resource::new_borrow(future.rep())).unwrap();
            view.table.block(pollable).await.unwrap();
            let answer = HostFutureIncomingResponse::get(&mut view, future).unwrap().unwrap().unwrap();
            let Err(ErrorCode::InternalError(Some(text))) = answer else { panic!("{path}: {answer:?}") };
            assert!(text.contains("a path begins with `/`"), "{path}: {text}");
            "the guard"
        } else {
            "the address of the request"
        };
        *refused_by.entry(layer).or_insert(0_usize) += 1;
    }
    assert_eq!(refused_by.values().sum::<usize>(), rows, "{refused_by:?}");
    assert!(seen.lock().unwrap().is_empty(), "{:?}", seen.lock().unwrap());
}

struct Echo;

#[async_trait::async_trait]
impl Exchange for Echo {
    async fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let told = format!("{} {} {}", request.method(), request.uri(), request.body().len());
        Response::new(told.into())
    }
}

#[tokio::test]
async fn an_exchange_answers_what_is_granted_and_within_the_limits_and_nothing_leaves() {
    let (mut outgoing, _) = outgoing(&["https://a.com"], &[&["127.0.0.1"]], 100);
    Arc::get_mut(&mut outgoing.gate.0).expect("nobody else has it").exchange = Some(Arc::new(Echo));
    let answered = send(&mut outgoing, post("https://a.com/x", 100)).await.unwrap();
    assert_eq!(body(answered).await.unwrap(), b"POST https://a.com/x 100");
    assert!(send(&mut outgoing, post("https://a.com/x", 101)).await.is_err());
    assert!(send(&mut outgoing, get("https://b.com/")).await.is_err());
}

#[tokio::test]
async fn a_guest_sends_a_secret_and_never_sees_it() {
    const VALUE: &str = "tok-1234567890-abcdef";
    let echo = format!("{}x{VALUE}", "y".repeat(50));
    let (port, seen) = server(response("200 OK", &format!("x-echo: {VALUE}\r\n"), &echo)).await;
    let host = format!("http://127.0.0.1:{port}");
    let key = HeaderSecret {
        name: "github".into(),
        secret: Secret::new(VALUE).unwrap(),
        hosts: vec![HostPattern::try_from(host.clone()).unwrap()],
        header: ::http::header::AUTHORIZATION,
    };
    let placeholders = Arc::new(SecretPlaceholders::new("tools.web", vec![key], || [7; 32]));
    let (mut outgoing, log) = outgoing(&[&host], &[&[]], 1_000);
    let rules = Arc::get_mut(&mut outgoing.gate.0).expect("nobody else has it");
    rules.guard = rules.guard.clone().with_placeholders(Arc::clone(&placeholders));
    let with = |header: &str| {
        let mut request = get(&format!("{host}/"));
        let name: ::http::HeaderName = header.parse().unwrap();
        request.headers_mut().insert(name, placeholders.placeholder("github").unwrap().parse().unwrap());
        request
    };
    let answer = send(&mut outgoing, with("authorization")).await.unwrap();
    assert_eq!(answer.headers()["x-echo"], "[secret]");
    assert_eq!(body(answer).await.unwrap(), format!("{}x[secret]", "y".repeat(50)).into_bytes());
    assert!(seen.lock().unwrap()[0].contains(VALUE));
    let error = send(&mut outgoing, with("x-other")).await.unwrap_err().to_string();
    assert!(error.contains("may not go into the header `x-other`") && !error.contains(VALUE), "{error}");
    assert!(log.take().0.iter().all(|line| !line.text.contains(VALUE)));
}

/// A run with so many bytes left.
struct Left(Mutex<u64>);

impl Supervisor for Left {
    fn sends(&self, _: &InvocationId, bytes: u64) -> Result<(), LimitHit> {
        let mut left = self.0.lock().unwrap();
        *left = left.checked_sub(bytes).ok_or_else(|| LimitHit::new("egress_bytes_max", bytes, *left))?;
        Ok(())
    }
}

/// They used to be counted nowhere.
#[tokio::test]
async fn what_a_tool_sends_counts_for_its_run_which_may_have_no_room_for_it() {
    let (port, seen) = server(response("200 OK", "", "hello")).await;
    let host = format!("http://127.0.0.1:{port}");
    let (mut outgoing, log) = outgoing(&[&host], &[&["192.0.2.1"]], 100_000);
    let left = Arc::new(Left(Mutex::new(1_000)));
    let rules = Arc::get_mut(&mut outgoing.gate.0).unwrap();
    rules.meter = meter(&left);
    send(&mut outgoing, post(&format!("{host}/a"), 400)).await.unwrap();
    let after = *left.0.lock().unwrap();
    assert!((500..600).contains(&after), "{after}");
    // The head of the second fits, its body does not.
    let error = send(&mut outgoing, post(&format!("{host}/a"), 600)).await.unwrap_err();
    assert!(matches!(&error, Error::InternalError(Some(text)) if text.contains("raise egress_bytes_max")), "{error:?}");
    let requests = seen.lock().unwrap().len();
    *left.0.lock().unwrap() = 3;
    send(&mut outgoing, get(&format!("{host}/a"))).await.unwrap_err();
    assert_eq!(seen.lock().unwrap().len(), requests, "nothing left");
    assert!(log.take().0.iter().all(|line| line.text.contains("egress_bytes_max")));
}
