//! Attempts to bypass the guard and the placeholders, each with the words of its refusal. Servers are real and on
//! loopback; each attempt sets where names lead.
//!
//! An attempt that is not refused fails by its name. Adding one is adding a line.

use crate::server::{Server, respond};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use longhaul_core::grant::{Grants, HostPattern};
use longhaul_egress::{Guard, HeaderSecret, RequestLimits, Resolve, Secret, SecretPlaceholders};
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

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

fn pattern(text: &str) -> HostPattern {
    HostPattern::try_from(text.to_owned()).unwrap()
}

fn guard_leading(hosts: &[&str], script: &[&[&str]], caps: RequestLimits) -> Guard {
    let script = script.iter().map(|ips| ips.iter().map(|ip| ip.parse().unwrap()).collect()).collect();
    let hosts = hosts.iter().map(|host| pattern(host)).collect();
    let grants = Grants { table: "tools.web".into(), hosts, ..Grants::default() };
    Guard::new(grants, caps).with_resolver(Arc::new(Script(Mutex::new(script))))
}

fn guard(hosts: &[&str], caps: RequestLimits) -> Guard {
    guard_leading(hosts, &[&["93.184.216.34"]], caps)
}

/// The result of a request: all of it, so that a leaked value is seen anywhere.
async fn outcome(guard: &Guard, request: Request<Bytes>) -> String {
    let answered = async {
        let mut fetched = guard.fetch(request).await?;
        let body = fetched.read_all().await?;
        let headers = format!("{:?}", fetched.headers);
        Ok::<_, longhaul_egress::EgressError>(format!("{headers} {}", String::from_utf8_lossy(&body)))
    };
    answered.await.unwrap_or_else(|error| format!("refused: {error}"))
}

async fn get(guard: &Guard, url: &str) -> String {
    match url.parse::<Uri>() {
        Ok(uri) => outcome(guard, Request::get(uri).body(Bytes::new()).unwrap()).await,
        Err(error) => format!("refused: {error}"),
    }
}

#[track_caller]
fn refused(name: &str, said: &str, because: &str) {
    assert!(said.starts_with("refused: ") && said.contains(because), "{name}: {said}");
}

/// The attempt, the grant, the addresses of names, the request, the refusal.
type Reaching = (&'static str, &'static str, &'static [&'static [&'static str]], &'static str, &'static str);

#[tokio::test]
async fn attempts_to_reach_an_address_that_was_not_granted() {
    let public: &[&[&str]] = &[&["93.184.216.34"]];
    let attempts: &[Reaching] = &[
        ("decimal IPv4", "http://2130706433", public, "http://2130706433/", "means `127.0.0.1`"),
        ("octal IPv4", "http://0177.0.0.1", public, "http://0177.0.0.1/", "means `127.0.0.1`"),
        ("hexadecimal IPv4", "http://0x7f000001", public, "http://0x7f000001/", "means `127.0.0.1`"),
        ("short IPv4", "http://127.1", public, "http://127.1/", "means `127.0.0.1`"),
        ("zero", "http://0", public, "http://0/", "means `0.0.0.0`"),
        ("loopback not named", "https://a.com", public, "http://127.0.0.1/", "may not reach"),
        ("loopback under a wildcard", "http://*.0.0.1", public, "http://127.0.0.1/", "a loopback address"),
        ("IPv6 loopback written long", "http://[::1]", public, "http://[0:0:0:0:0:0:0:1]/", "may not reach"),
        ("IPv4-mapped IPv6", "https://a.com", &[&["::ffff:127.0.0.1"]], "https://a.com/", "in disguise"),
        ("IPv4-mapped public IPv6", "https://a.com", &[&["::ffff:8.8.8.8"]], "https://a.com/", "in disguise"),
        ("IPv4-compatible IPv6", "https://a.com", &[&["::127.0.0.1"]], "https://a.com/", "outside of global"),
        ("6to4", "https://a.com", &[&["2002:7f00:1::1"]], "https://a.com/", "in disguise"),
        ("NAT64 to metadata", "https://a.com", &[&["64:ff9b::a9fe:a9fe"]], "https://a.com/", "a link-local address"),
        ("Teredo", "https://a.com", &[&["2001::1"]], "https://a.com/", "an address of a protocol"),
        ("name of metadata", "https://a.com", &[&["169.254.169.254"]], "https://a.com/", "a link-local address"),
        ("IPv6 metadata", "https://a.com", &[&["fd00:ec2::254"]], "https://a.com/", "a unique local address"),
        ("name of a private address", "https://a.com", &[&["10.0.0.5"]], "https://a.com/", "a private address"),
        ("name of a carrier's address", "https://a.com", &[&["100.64.0.1"]], "https://a.com/", "a carrier's private"),
        ("name of a multicast address", "https://a.com", &[&["224.0.0.1"]], "https://a.com/", "a multicast address"),
        ("name of broadcast", "https://a.com", &[&["255.255.255.255"]], "https://a.com/", "a reserved address"),
        ("one bad among good", "https://a.com", &[&["93.184.216.34", "127.0.0.1"]], "https://a.com/", "a loopback"),
        ("localhost that leads elsewhere", "http://localhost", &[&["10.0.0.1"]], "http://localhost/", "a private"),
        ("name below localhost", "http://*.localhost", &[&["127.0.0.1"]], "http://a.localhost/", "a loopback"),
        ("trailing dot", "http://127.0.0.1", public, "http://127.0.0.1./", "may not reach"),
        ("trailing dot of a name", "https://a.com", public, "https://a.com./", "may not reach"),
        ("user in the address", "https://a.com", public, "https://me:pass@a.com/", "an address with a user in it"),
        ("granted name as user", "https://a.com", public, "https://a.com@evil.net/", "an address with a user in it"),
        ("lookalike behind the name", "https://a.com", public, "https://a.com.evil.net/", "may not reach"),
        ("lookalike before the name", "https://*.a.com", public, "https://evila.com/", "may not reach"),
        ("full-width digits", "https://a.com", public, "http://\u{ff11}\u{ff12}\u{ff17}.0.0.1/", "invalid"),
        ("letters of another alphabet", "https://a.com", public, "https://\u{430}.com/", "invalid"),
        ("the same in punycode", "https://a.com", public, "https://xn--80a.com/", "may not reach"),
        ("ideographic full stop", "https://a.com", public, "https://a\u{3002}com/", "invalid"),
        ("percent-encoded name", "http://127.0.0.1", public, "http://127.0.0.%31/", "refused"),
        ("another port", "https://a.com", public, "https://a.com:8443/", "may not reach"),
        ("another scheme", "https://a.com", public, "http://a.com/", "may not reach"),
        ("a file", "https://a.com", public, "file://a.com/etc/passwd", "may not reach"),
        ("no host", "https://a.com", public, "/etc/passwd", "no address of http"),
        ("zone of an interface", "http://[fe80::1]", public, "http://[fe80::1%25lo]/", "refused"),
    ];
    for (name, grant, script, url, because) in attempts {
        let said = get(&guard_leading(&[grant], script, RequestLimits::default()), url).await;
        refused(name, &said, because);
        assert!(!said.contains("pass@"), "{name}: {said}");
    }
}

#[tokio::test]
async fn a_name_that_flips_between_two_answers_leads_to_what_was_checked_and_is_checked_again() {
    let flip = guard_leading(&["https://a.com"], &[&["93.184.216.34"], &["127.0.0.1"]], RequestLimits::default());
    let uri: Uri = "https://a.com/".parse().unwrap();
    let way = flip.look_up(flip.check(&Method::GET, &uri).unwrap()).await.unwrap();
    assert_eq!(way.addresses(), ["93.184.216.34:443".parse().unwrap()]);
    refused("second question", &get(&flip, "https://a.com/").await, "a loopback address");
}

#[tokio::test]
async fn attempts_by_method_and_header() {
    let server = Server::start(|_, stream| respond(stream, "200 OK", "", b"reached")).await;
    let all = guard(&[&server.url()], RequestLimits { request_bytes_max: 10, ..RequestLimits::default() });
    let read = guard(&[&format!("GET,HEAD {}", server.url())], RequestLimits::default());
    let request = |method: &str| Request::builder().method(method).uri(server.url());
    let empty = Bytes::new;
    let attempts = [
        ("method not granted", &read, request("POST").body(empty()), "may not send POST"),
        ("method in small letters", &read, request("get").body(empty()), "may not send get"),
        ("tunnel", &all, request("CONNECT").body(empty()), "not a method of plain requests"),
        ("echo of the request", &all, request("TRACE").body(empty()), "not a method of plain requests"),
        (
            "another host in the header",
            &all,
            request("GET").header("host", "evil.net").body(empty()),
            "`host` is the host's",
        ),
        (
            "smuggled body",
            &all,
            request("POST").header("transfer-encoding", "chunked").body(empty()),
            "`transfer-encoding`",
        ),
        ("wrong length", &all, request("POST").header("content-length", "99").body(empty()), "`content-length`"),
        ("another protocol", &all, request("GET").header("upgrade", "h2c").body(empty()), "`upgrade`"),
        (
            "key of a proxy",
            &all,
            request("GET").header("proxy-authorization", "x").body(empty()),
            "`proxy-authorization`",
        ),
        ("body over the cap", &all, request("POST").body(Bytes::from_static(b"12345678901")), "request_bytes_max"),
    ];
    for (name, guard, request, because) in attempts {
        refused(name, &outcome(guard, request.unwrap()).await, because);
    }
    assert!(HeaderValue::from_str("a\r\nhost: evil.net").is_err(), "a line feed cannot be in a header");
    assert!(server.seen().is_empty(), "{:?}", server.seen());
}

#[tokio::test]
async fn attempts_by_redirect() {
    let attempts = [
        ("to metadata", "http://169.254.169.254/latest/meta-data", "may not reach"),
        ("to another port of loopback", "http://127.0.0.1:1/", "may not reach"),
        ("to loopback in decimal", "http://2130706433/", "may not reach"),
        ("to a host that was not granted", "https://evil.net/", "may not reach"),
        ("to an address with a user", "http://a:b@127.0.0.1/", "an address with a user in it"),
        ("to a file", "file:///etc/passwd", "no address"),
        ("to data", "data:text/plain,x", "no address"),
        ("without an end", "/again", "limit `redirects_max` reached: 6 of 5"),
        ("without a scheme", "//evil.net/x", "may not reach"),
    ];
    for (name, location, because) in attempts {
        let head = format!("location: {location}\r\n");
        let server = Server::start(move |_, stream| {
            let head = head.clone();
            async move { respond(stream, "302 Found", &head, b"").await }
        })
        .await;
        refused(name, &get(&guard(&[&server.url()], RequestLimits::default()), &server.url()).await, because);
    }
}

#[tokio::test]
async fn attempts_by_an_answer_that_costs_too_much() {
    let small = RequestLimits { response_bytes_max: 1_000, ..RequestLimits::default() };
    let hasty = RequestLimits {
        first_byte_ms_max: 50,
        connect_ms_max: 50,
        between_bytes_ms_max: 50,
        ..RequestLimits::default()
    };
    let short = RequestLimits { total_ms_max: 120, ..RequestLimits::default() };
    let bomb = gzip(&vec![0; 50 << 20]);
    let gzipped = "content-encoding: gzip\r\n";
    let attempts: Vec<(&str, RequestLimits, Answer, &str)> = vec![
        ("compressed bomb", small.clone(), Answer::Whole(gzipped, bomb.clone()), "response_bytes_max"),
        (
            "bomb in a bomb",
            small.clone(),
            Answer::Whole("content-encoding: gzip, gzip\r\n", gzip(&bomb)),
            "is not undone",
        ),
        (
            "bomb in two headers",
            small.clone(),
            Answer::Whole("content-encoding: gzip\r\ncontent-encoding: gzip\r\n", bomb),
            "is not undone",
        ),
        (
            "compression that nobody bounds",
            small.clone(),
            Answer::Whole("content-encoding: br\r\n", b"x".to_vec()),
            "is not undone",
        ),
        (
            "damaged compression",
            small.clone(),
            Answer::Whole(gzipped, b"no gzip at all, but long enough".to_vec()),
            "damaged",
        ),
        (
            "compression that breaks off",
            small.clone(),
            Answer::Whole(gzipped, gzip(&[1; 900])[..30].to_vec()),
            "damaged",
        ),
        ("endless body", small.clone(), Answer::Endless, "response_bytes_max"),
        ("body over the cap", small.clone(), Answer::Whole("", vec![b'x'; 1_001]), "response_bytes_max"),
        (
            "length that lies",
            small,
            Answer::Raw("HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\n".into()),
            "refused",
        ),
        ("no answer", hasty.clone(), Answer::Silent, "the answer did not begin"),
        ("body that stops", hasty, Answer::Stops, "the body stopped coming"),
        ("body that drips", short, Answer::Drips, "the exchange did not end"),
        (
            "huge header",
            RequestLimits::default(),
            Answer::Raw(format!("HTTP/1.1 200 OK\r\na: {}\r\n\r\n", "b".repeat(70_000))),
            "refused",
        ),
        (
            "flood of headers",
            RequestLimits::default(),
            Answer::Raw(format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(101))),
            "refused",
        ),
        ("no HTTP", RequestLimits::default(), Answer::Raw("220 mail.example.com ESMTP\r\n".into()), "refused"),
    ];
    for (name, caps, answer, because) in attempts {
        let answer = Arc::new(answer);
        let server = Server::start(move |_, stream| {
            let answer = Arc::clone(&answer);
            async move { answer.give(stream).await }
        })
        .await;
        refused(name, &get(&guard(&[&server.url()], caps), &server.url()).await, because);
    }
}

const VALUE: &str = "ghp_A1b2/C3d4+E5f6~secret";

fn placeholders(url: &str) -> Arc<SecretPlaceholders> {
    placeholders_of(url, VALUE)
}

fn placeholders_of(url: &str, value: &str) -> Arc<SecretPlaceholders> {
    let key = HeaderSecret {
        name: "github".into(),
        secret: Secret::new(value).unwrap(),
        hosts: vec![pattern(url)],
        header: HeaderName::from_static("authorization"),
    };
    let mut next = 0;
    Arc::new(SecretPlaceholders::new("tools.web", vec![key], || {
        next += 1;
        [next; 32]
    }))
}

#[tokio::test]
async fn attempts_to_send_a_secret_where_it_does_not_belong() {
    let (friend, other) = (
        Server::start(|_, stream| respond(stream, "200 OK", "", b"reached")).await,
        Server::start(|_, stream| respond(stream, "200 OK", "", b"reached")).await,
    );
    let placeholders = placeholders(&friend.url());
    let mine = placeholders.placeholder("github").unwrap().to_owned();
    let theirs = mine.replace("01", "02");
    let guard =
        guard(&[&friend.url(), &other.url()], RequestLimits::default()).with_placeholders(Arc::clone(&placeholders));
    let with =
        |url: &str, header: &str, value: &str| Request::get(url).header(header, value).body(Bytes::new()).unwrap();
    let attempts = [
        ("to another granted host", with(&other.url(), "authorization", &mine), "may not go to `http://127.0.0.1"),
        ("in another header", with(&friend.url(), "x-token", &mine), "may not go into the header `x-token`"),
        ("in a cookie", with(&friend.url(), "cookie", &format!("a={mine}")), "may not go into the header `cookie`"),
        ("in the path", with(&format!("{}/{mine}", friend.url()), "a", "b"), "does not belong into an address"),
        ("in the query", with(&format!("{}/?k={mine}", friend.url()), "a", "b"), "does not belong into an address"),
        ("of another invocation", with(&friend.url(), "authorization", &theirs), "of another invocation"),
        ("made up", with(&friend.url(), "authorization", "longhaul-secret-0"), "of another invocation"),
        (
            "one true and one made up",
            with(&friend.url(), "authorization", &format!("{mine} longhaul-secret-0")),
            "of another",
        ),
    ];
    for (name, request, because) in attempts {
        let said = outcome(&guard, request).await;
        refused(name, &said, because);
        assert!(!said.contains(VALUE), "{name}: {said}");
    }
    assert!(friend.seen().is_empty() && other.seen().is_empty());
    // In a body it stays a placeholder: worthless.
    let body = Request::post(friend.url()).body(Bytes::from(mine.clone())).unwrap();
    assert!(outcome(&guard, body).await.contains("reached"));
    // In its right place, it arrives.
    let fine = outcome(&guard, with(&friend.url(), "authorization", &format!("Bearer {mine}"))).await;
    assert!(fine.contains("reached"), "{fine}");
    let heads = friend.seen();
    assert!(!heads[0].contains(VALUE) && heads[1].contains(&format!("Bearer {VALUE}")), "{heads:?}");
}

#[tokio::test]
async fn a_redirect_does_not_carry_a_secret_to_another_host() {
    let thief = Server::start(|_, stream| respond(stream, "200 OK", "", b"reached")).await;
    let to = format!("location: {}/\r\n", thief.url());
    let friend = Server::start(move |_, stream| {
        let to = to.clone();
        async move { respond(stream, "307 Temporary Redirect", &to, b"").await }
    })
    .await;
    let placeholders = placeholders(&friend.url());
    let guard =
        guard(&[&friend.url(), &thief.url()], RequestLimits::default()).with_placeholders(Arc::clone(&placeholders));
    let request = Request::get(friend.url()).header("authorization", placeholders.placeholder("github").unwrap());
    assert!(outcome(&guard, request.body(Bytes::new()).unwrap()).await.contains("reached"));
    assert!(friend.seen()[0].contains(VALUE));
    assert!(!thief.seen()[0].contains("authorization"), "{}", thief.seen()[0]);
}

#[tokio::test]
async fn a_redirect_with_the_secret_in_its_address_is_not_followed() {
    let thief = Server::start(|_, stream| respond(stream, "200 OK", "", b"reached")).await;
    let to = format!("location: {}/?k={}\r\n", thief.url(), STANDARD.encode(VALUE));
    let friend = Server::start(move |_, stream| {
        let to = to.clone();
        async move { respond(stream, "302 Found", &to, b"").await }
    })
    .await;
    let guard =
        guard(&[&friend.url(), &thief.url()], RequestLimits::default()).with_placeholders(placeholders(&friend.url()));
    refused("in a redirect", &get(&guard, &friend.url()).await, "carries a secret");
    assert!(thief.seen().is_empty(), "{:?}", thief.seen());
}

#[tokio::test]
async fn attempts_to_get_a_secret_back_from_a_server() {
    let percent: String = VALUE.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    let json: String = VALUE.bytes().map(|byte| format!("\\u00{byte:02x}")).collect();
    let url = VALUE.replace('/', "%2F").replace('+', "%2B");
    let attempts: Vec<(&str, String, Vec<u8>)> = vec![
        ("in a header", format!("x-echo: Bearer {VALUE}\r\n"), b"body".to_vec()),
        ("in base64 in a header", format!("x-echo: {}\r\n", STANDARD.encode(VALUE)), b"body".to_vec()),
        ("in the body", String::new(), VALUE.into()),
        ("in base64", String::new(), STANDARD.encode(VALUE).into()),
        ("in base64, one in", String::new(), STANDARD.encode(format!("x{VALUE}")).into()),
        ("in base64 as a user's password", String::new(), STANDARD.encode(format!("me:{VALUE}:x")).into()),
        ("percent-encoded", String::new(), percent.into()),
        ("percent-encoded as in an address", String::new(), url.into()),
        ("in hexadecimal", String::new(), hex.into()),
        ("in escapes of JSON", String::new(), json.into()),
        ("with escaped slashes", String::new(), VALUE.replace('/', "\\/").into()),
        ("compressed", "content-encoding: gzip\r\n".into(), gzip(VALUE.as_bytes())),
    ];
    for (name, headers, body) in attempts {
        let shown = String::from_utf8_lossy(&body).into_owned();
        let server = Server::start(move |_, stream| {
            let (headers, body) = (headers.clone(), body.clone());
            async move { respond(stream, "200 OK", &headers, &body).await }
        })
        .await;
        let guard = guard(&[&server.url()], RequestLimits::default()).with_placeholders(placeholders(&server.url()));
        let said = get(&guard, &server.url()).await;
        assert!(said.contains("[secret]"), "{name}: {said}");
        assert!(!said.contains(VALUE) && (shown.len() < 20 || !said.contains(&shown)), "{name}: {said}");
    }
}

#[tokio::test]
async fn a_secret_in_the_name_of_a_header_does_not_come_back() {
    const NAME: &str = "ghp_AbCdEf0123";
    let headers = format!("x-{NAME}-y: 1\r\nx-kept: 2\r\n");
    let server = Server::start(move |_, stream| {
        let headers = headers.clone();
        async move { respond(stream, "200 OK", &headers, b"").await }
    })
    .await;
    let guard = guard(&[&server.url()], RequestLimits::default());
    let said = get(&guard, &server.url()).await.to_lowercase();
    assert!(said.contains(&NAME.to_lowercase()), "without a secret it passes: {said}");
    let said = get(&guard.with_placeholders(placeholders_of(&server.url(), NAME)), &server.url()).await.to_lowercase();
    assert!(said.contains("x-kept") && !said.contains(&NAME.to_lowercase()), "{said}");
}

#[tokio::test]
async fn a_secret_cut_by_the_borders_of_chunks_is_taken_out() {
    for cut in 1..VALUE.len() {
        let server = Server::start(move |_, mut stream| async move {
            let (first, rest) = VALUE.split_at(cut);
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
            for part in ["before ", first, rest, " after"] {
                stream.write_all(format!("{:x}\r\n{part}\r\n", part.len()).as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
                tokio::task::yield_now().await;
            }
            stream.write_all(b"0\r\n\r\n").await.unwrap();
        })
        .await;
        let guard = guard(&[&server.url()], RequestLimits::default()).with_placeholders(placeholders(&server.url()));
        let said = get(&guard, &server.url()).await;
        assert!(said.ends_with("before [secret] after"), "cut at {cut}: {said}");
    }
}

#[test]
fn a_secret_is_shown_by_nothing() {
    let secret = Secret::new(VALUE).unwrap();
    assert_eq!(format!("{secret:?}"), "[secret]");
    for text in ["", "short", "two words here", "line\nfeed-inside", &"x".repeat(5_000)] {
        let error = Secret::new(text).unwrap_err().to_string();
        assert!(error.contains("8 to 4096 visible"), "{error}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The way in which a server answers.
enum Answer {
    Whole(&'static str, Vec<u8>),
    Raw(String),
    Endless,
    Silent,
    Stops,
    Drips,
}

impl Answer {
    /// The client hangs up in the middle of most of these.
    async fn give(&self, mut stream: TcpStream) {
        let endless = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
        match self {
            Self::Whole(headers, body) => respond(stream, "200 OK", headers, body).await,
            Self::Raw(text) => drop(stream.write_all(text.as_bytes()).await),
            Self::Silent => std::future::pending().await,
            Self::Endless => {
                let _ = stream.write_all(endless).await;
                while stream.write_all(&[b'x'; 512]).await.is_ok() {}
            }
            Self::Stops => {
                let _ = stream.write_all(endless).await;
                std::future::pending().await
            }
            Self::Drips => {
                let _ = stream.write_all(endless).await;
                while stream.write_all(b"x").await.is_ok() {
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
            }
        }
    }
}
