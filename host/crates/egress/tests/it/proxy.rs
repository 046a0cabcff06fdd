//! Attempts of a program behind the proxy to reach forbidden targets, each with the words of its refusal.
//!
//! An attempt that is not refused fails by its name. Adding one is adding a line.

use longhaul_core::grant::{Grants, HostPattern};
use longhaul_core::supervisor::Supervisor;
use longhaul_core::{InvocationId, LimitHit};
use longhaul_egress::{Guard, Proxy, RequestLimits, Resolve};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::TcpListener;

/// Answers each question with the next address, and the last one for ever.
struct Script(Mutex<Vec<IpAddr>>);

#[async_trait::async_trait]
impl Resolve for Script {
    async fn resolve(&self, _: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        let mut script = self.0.lock().unwrap();
        let ip = if script.len() > 1 { script.remove(0) } else { script[0] };
        Ok(vec![SocketAddr::new(ip, port)])
    }
}

/// A run with a cap on outgoing bytes.
struct Capped {
    sent: Mutex<u64>,
    max: u64,
}

impl Supervisor for Capped {
    fn sends(&self, _: &InvocationId, bytes: u64) -> Result<(), LimitHit> {
        let mut sent = self.sent.lock().unwrap();
        if *sent + bytes > self.max {
            return Err(LimitHit::new("egress_bytes_max", *sent + bytes, self.max));
        }
        *sent += bytes;
        Ok(())
    }
}

fn proxy(host: &str, leads_to: &[&str], bytes_max: u64) -> Arc<Proxy> {
    Arc::new(plain(host, leads_to, bytes_max))
}

fn plain(host: &str, leads_to: &[&str], bytes_max: u64) -> Proxy {
    let hosts = vec![HostPattern::try_from(host.to_owned()).unwrap()];
    let grants = Grants { table: "tools.browser".into(), hosts, ..Grants::default() };
    let script = leads_to.iter().map(|ip| ip.parse().unwrap()).collect();
    let caps = RequestLimits { request_bytes_max: 100, ..RequestLimits::default() };
    let guard = Guard::new(grants, caps).with_resolver(Arc::new(Script(Mutex::new(script))));
    Proxy::new(guard, bytes_max)
}

/// A connection of the program.
fn connected(proxy: &Arc<Proxy>) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    tokio::spawn(Arc::clone(proxy).serve(theirs));
    ours
}

/// The whole response to a request.
async fn asked(proxy: &Arc<Proxy>, request: &str) -> String {
    let mut connection = connected(proxy);
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A broken connection is an end as well.
    let _ = connection.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// A server that answers every connection with these bytes, and the first bytes that it got.
async fn server(answer: Vec<u8>) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut first = vec![0; 4_096];
            let length = stream.read(&mut first).await.unwrap_or(0);
            hears.lock().unwrap().push(String::from_utf8_lossy(&first[..length]).into_owned());
            let _ = stream.write_all(&answer).await;
        }
    });
    (port, heard)
}

#[tokio::test]
async fn attempts_through_the_proxy() {
    let close = "connection: close\r\n\r\n";
    let public = "93.184.216.34";
    let attempts = [
        ("a tunnel to metadata", "https://a.com", public, "CONNECT 169.254.169.254:80 HTTP/1.1\r\n", "may not reach"),
        (
            "a tunnel to a private name",
            "https://a.com",
            "10.0.0.1",
            "CONNECT a.com:443 HTTP/1.1\r\n",
            "a private address",
        ),
        ("a tunnel to another port", "https://a.com", public, "CONNECT a.com:22 HTTP/1.1\r\n", "may not reach"),
        (
            "a tunnel where methods are granted",
            "GET https://a.com",
            public,
            "CONNECT a.com:443 HTTP/1.1\r\n",
            "hosts = [\"CONNECT https://a.com:443\"]",
        ),
        (
            "a tunnel to decimal loopback",
            "http://2130706433",
            public,
            "CONNECT 2130706433:80 HTTP/1.1\r\n",
            "means `127.0.0.1`",
        ),
        (
            "a request for loopback",
            "http://a.com",
            public,
            "GET http://127.0.0.1/ HTTP/1.1\r\nhost: a.com\r\n",
            "may not reach",
        ),
        (
            "a name that leads to loopback",
            "http://a.com",
            "127.0.0.1",
            "GET http://a.com/ HTTP/1.1\r\n",
            "a loopback address",
        ),
        (
            "a method that is not granted",
            "GET http://a.com",
            public,
            "POST http://a.com/ HTTP/1.1\r\ncontent-length: 0\r\n",
            "may not send POST",
        ),
        ("a path and no address", "http://a.com", public, "GET / HTTP/1.1\r\nhost: a.com\r\n", "no address of http"),
        ("another scheme", "http://a.com", public, "GET ftp://a.com/ HTTP/1.1\r\n", "may not reach"),
        (
            "a user in the address",
            "http://a.com",
            public,
            "GET http://me:pw@a.com/ HTTP/1.1\r\n",
            "an address with a user in it",
        ),
    ];
    for (name, grant, leads_to, request, because) in attempts {
        let proxy = proxy(grant, &[leads_to], 1 << 20);
        let said = asked(&proxy, &format!("{request}{close}")).await;
        assert!(said.starts_with("HTTP/1.1 403 ") && said.contains(because), "{name}: {said}");
        let told: Vec<String> = proxy.take_refusals().iter().map(ToString::to_string).collect();
        assert!(told.len() == 1 && told[0].contains(because), "{name}: {told:?}");
    }
}

/// A browser asks for more than its page does, and two refusals may read alike.
#[tokio::test]
async fn a_refusal_is_told_with_the_host_and_the_port_that_it_was_for() {
    let proxy = proxy("http://a.com", &["93.184.216.34"], 1 << 20);
    for request in ["CONNECT b.com:443", "GET http://me@C.com/x", "GET http://me@c.com/y", "GET http://me@d.com:8080/x"]
    {
        let said = asked(&proxy, &format!("{request} HTTP/1.1\r\nconnection: close\r\n\r\n")).await;
        assert!(said.starts_with("HTTP/1.1 403 "), "{request}: {said}");
    }
    let refusals = proxy.take_refusals();
    let are_for = |address: &str| -> Vec<bool> { refusals.iter().map(|one| one.is_for(address)).collect() };
    assert_eq!(are_for("https://b.com/page?q"), [true, false, false]);
    assert_eq!(are_for("http://c.com/"), [false, true, false]);
    assert_eq!(are_for("http://d.com:8080/"), [false, false, true]);
    for other in ["http://b.com/", "https://www.b.com/", "http://d.com/", "chrome-error://chromewebdata/", ""] {
        assert_eq!(are_for(other), [false, false, false], "{other}");
    }
    let are_answers = |address: &str| -> Vec<bool> { refusals.iter().map(|one| one.is_answer_at(address)).collect() };
    assert_eq!(are_answers("http://c.com/x#part"), [false, true, false]);
    assert_eq!(are_answers("http://c.com/y"), [false, true, false], "a repetition for another address");
    for other in ["https://b.com/", "http://b.com:443/", "https://c.com/x", "http://c.com/", "http://c.com/x?y", ""] {
        assert_eq!(are_answers(other), [false, false, false], "{other}");
    }
}

#[tokio::test]
async fn a_name_is_checked_again_for_each_request() {
    let flips = proxy("http://a.com", &["93.184.216.34", "127.0.0.1"], 1 << 20);
    // This request, which is never sent, uses up the first answer of the resolver.
    let first = flips.guard().check(&http::Method::GET, &"http://a.com/".parse().unwrap()).unwrap();
    assert!(flips.guard().look_up(first).await.is_ok());
    let said = asked(&flips, "GET http://a.com/ HTTP/1.1\r\nconnection: close\r\n\r\n").await;
    assert!(said.contains("a loopback address"), "{said}");
}

#[tokio::test]
async fn a_tunnel_of_https_carries_nothing_but_tls() {
    let (port, heard) = server(b"answer".to_vec()).await;
    let proxy = proxy(&format!("https://127.0.0.1:{port}"), &["127.0.0.1"], 1 << 20);
    let opened = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n");
    let said = asked(&proxy, &format!("{opened}GET / HTTP/1.1\r\n\r\n")).await;
    assert!(said.starts_with("HTTP/1.1 200 ") && !said.contains("answer"), "{said}");
    assert!(proxy.take_refusals()[0].to_string().contains("carries no TLS"));
    let said = asked(&proxy, &format!("{opened}\u{16}hello")).await;
    assert!(said.ends_with("answer"), "{said}");
    assert!(!heard.lock().unwrap().iter().any(|text| text.contains("GET")), "{heard:?}");
}

#[tokio::test]
async fn what_goes_through_is_bounded_in_both_directions() {
    let body = "x".repeat(100_000);
    let (port, heard) = server(format!("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{body}").into_bytes()).await;
    let grant = format!("http://127.0.0.1:{port}");
    let get =
        format!("GET {grant}/ HTTP/1.1\r\nproxy-authorization: x\r\nconnection: close, x-mine\r\nx-mine: 1\r\n\r\n");
    let roomy = proxy(&grant, &["127.0.0.1"], 1 << 20);
    assert!(asked(&roomy, &get).await.ends_with(&body));
    let sent = heard.lock().unwrap()[0].to_ascii_lowercase();
    assert!(!sent.contains("proxy-authorization") && !sent.contains("x-mine"), "meant for the proxy: {sent}");

    let tight = proxy(&grant, &["127.0.0.1"], 10_000);
    assert!(asked(&tight, &get).await.len() < 80_000);
    assert!(tight.take_refusals()[0].to_string().contains("traffic_bytes_max"));
    let post = format!("POST {grant}/ HTTP/1.1\r\ncontent-length: 200\r\nconnection: close\r\n\r\n{}", "y".repeat(200));
    let said = asked(&roomy, &post).await;
    assert!(said.contains("request_bytes_max"), "{said}");
}

/// A server with several names answers by this header, and only the address was granted.
#[tokio::test]
async fn a_forged_host_leaves_as_the_host_of_the_address() {
    let (port, heard) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec()).await;
    let grant = format!("http://127.0.0.1:{port}");
    let proxy = proxy(&grant, &["127.0.0.1"], 1 << 20);
    for forged in [
        "host: evil.example\r\n",
        "Host: 169.254.169.254\r\n",
        "host: evil.example\r\nhost: other.example\r\n",
        "host: evil.example\r\nconnection: host\r\n",
        "",
    ] {
        let said = asked(&proxy, &format!("GET {grant}/ HTTP/1.1\r\n{forged}connection: close\r\n\r\n")).await;
        assert!(said.ends_with("ok"), "{forged}: {said}");
        let sent = heard.lock().unwrap().pop().unwrap().to_ascii_lowercase();
        let hosts: Vec<&str> = sent.lines().filter(|line| line.starts_with("host:")).collect();
        assert_eq!(hosts, [format!("host: 127.0.0.1:{port}")], "{forged}: {sent}");
        assert!(!sent.contains("example") && !sent.contains("169.254"), "{forged}: {sent}");
    }
}

#[tokio::test]
async fn what_leaves_counts_as_sent_by_the_run_whose_cap_ends_it() {
    let (port, heard) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec()).await;
    let grant = format!("http://127.0.0.1:{port}");
    let run = Arc::new(Capped { sent: Mutex::default(), max: 250 });
    let telling = plain(&grant, &["127.0.0.1"], 1 << 20).telling(run.clone(), InvocationId::from_text("r-1/a"));
    let proxy = Arc::new(telling);
    let post = format!("POST {grant}/ HTTP/1.1\r\ncontent-length: 90\r\nconnection: close\r\n\r\n{}", "y".repeat(90));
    assert!(asked(&proxy, &post).await.ends_with("ok"));
    let sent = *run.sent.lock().unwrap();
    assert!((90..250).contains(&sent), "the head counts, the answer does not: {sent}");
    let said = asked(&proxy, &post).await;
    assert!(said.contains("egress_bytes_max"), "{said}");
    assert_eq!(heard.lock().unwrap().len(), 1, "nothing left for the second");

    let tunnel = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n{}", "z".repeat(1_000));
    asked(&proxy, &tunnel).await;
    assert_eq!(*run.sent.lock().unwrap(), sent);
}

#[tokio::test]
async fn a_program_that_opens_connections_without_end_gets_no_more_of_them() {
    let (port, _) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec()).await;
    let grant = format!("http://127.0.0.1:{port}");
    let proxy = proxy(&grant, &["127.0.0.1"], 1 << 20);
    let get = format!("GET {grant}/ HTTP/1.1\r\nconnection: close\r\n\r\n");
    let open: Vec<DuplexStream> = (0..256).map(|_| connected(&proxy)).collect();
    assert_eq!(asked(&proxy, &get).await, "");
    drop(open);
    // So that their ends are noticed.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    let said = asked(&proxy, &get).await;
    assert!(said.ends_with("ok"), "{said}");
}
