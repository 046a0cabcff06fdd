//! Against servers on loopback; each test sets where names lead.

#[path = "../tests/it/server.rs"]
mod server;

use super::*;
use bytes::Bytes;
use http::{Method, Request, Uri};
use longhaul_core::grant::{Grants, HostPattern};
use server::{Server, respond};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

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

pub(crate) fn guard(hosts: &[&str], script: &[&[&str]], caps: RequestLimits) -> Guard {
    let script = script.iter().map(|ips| ips.iter().map(|ip| ip.parse().unwrap()).collect()).collect();
    let grants = Grants {
        table: "tools.web".into(),
        hosts: hosts.iter().map(|host| HostPattern::try_from((*host).to_owned()).unwrap()).collect(),
        ..Grants::default()
    };
    Guard::new(grants, caps).with_resolver(Arc::new(Script(Mutex::new(script))))
}

fn get(url: &str) -> Request<Bytes> {
    Request::get(url).body(Bytes::new()).unwrap()
}

/// The result of the gates, without a connection.
async fn verdict(hosts: &[&str], script: &[&[&str]], url: &str) -> String {
    let Ok(uri) = url.parse::<Uri>() else { return "no address".into() };
    let guard = guard(hosts, script, RequestLimits::default());
    let checked = async { guard.look_up(guard.check(&Method::GET, &uri)?).await };
    match checked.await {
        Ok(way) => format!("{:?}", way.addresses()),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn each_address_is_allowed_or_refused_with_its_reason() {
    let public: &[&[&str]] = &[&["93.184.216.34"]];
    // grant, what names lead to, address, what the verdict says
    let table: &[(&str, &[&[&str]], &str, &str)] = &[
        ("https://a.com", public, "https://a.com/x?y", "[93.184.216.34:443]"),
        ("https://a.com", public, "https://A.com/", "[93.184.216.34:443]"),
        ("https://*.a.com:8443", public, "https://b.a.com:8443/", "[93.184.216.34:8443]"),
        ("https://a.com", public, "http://a.com/", "hosts = [\"http://a.com\"]"),
        ("https://a.com", public, "https://a.com.evil.net/", "may not reach"),
        ("https://a.com", public, "https://a.com:444/", "may not reach"),
        ("https://a.com", public, "https://me:secret@a.com/", "an address with a user in it is refused"),
        ("https://a.com", public, "https://a.com@evil.net/", "an address with a user in it is refused"),
        ("https://a.com", &[&["10.0.0.5"]], "https://a.com/", "leads to 10.0.0.5, a private address"),
        ("https://a.com", &[&["10.0.0.5"]], "https://a.com/", "hosts = [\"https://10.0.0.5\"]"),
        ("https://a.com", &[&["93.184.216.34", "127.0.0.1"]], "https://a.com/", "a loopback address"),
        ("https://a.com", &[&["::ffff:8.8.8.8"]], "https://a.com/", "in disguise"),
        ("https://a.com", &[&[]], "https://a.com/", "leads to no address"),
        // Read differently from its notation.
        ("http://0177.0.0.1", public, "http://0177.0.0.1/", "means `127.0.0.1`"),
        ("http://0x7f.1", public, "http://0x7f.1/", "means `127.0.0.1`"),
        ("http://127.1", public, "http://127.1/", "means `127.0.0.1`"),
        ("http://2130706433", public, "http://2130706433/", "means `127.0.0.1`"),
        ("http://0", public, "http://0/", "means `0.0.0.0`"),
        ("http://127.0.0.1", public, "http://127.0.0.1./", "may not reach"),
        ("http://[::1]", public, "http://[0:0:0:0:0:0:0:1]/", "may not reach"),
        // Named explicitly, so allowed.
        ("http://127.0.0.1:8080", public, "http://127.0.0.1:8080/", "[127.0.0.1:8080]"),
        ("http://127.0.0.1:8080", public, "http://127.0.0.1:8081/", "may not reach"),
        ("http://169.254.169.254", public, "http://169.254.169.254/", "[169.254.169.254:80]"),
        ("http://[::1]:8080", public, "http://[::1]:8080/", "[[::1]:8080]"),
        ("http://localhost:8080", &[&["::1", "127.0.0.1"]], "http://localhost:8080/", "[[::1]:8080, 127.0.0.1:8080]"),
        ("http://localhost", &[&["10.0.0.1"]], "http://localhost/", "a private address"),
        // Covered by a wildcard is not named.
        ("http://*.0.0.1", public, "http://127.0.0.1/", "a loopback address"),
        ("http://*.localhost", &[&["127.0.0.1"]], "http://a.localhost/", "a loopback address"),
    ];
    for (grant, script, url, expected) in table {
        let said = verdict(&[grant], script, url).await;
        assert!(said.contains(expected), "{url} under {grant}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

/// A guest passes the path separately, so it may be anything: after a port it could be read as more of its digits.
#[test]
fn a_path_that_is_an_address_leads_to_no_other_host_or_port() {
    let guard = guard(&["http://a.com", "http://a.com:80", "http://a.com:8"], &[], RequestLimits::default());
    let attempts = [
        ("a.com", "http://evil.com/"),
        ("a.com", "https://evil.com:443/"),
        ("a.com", ".evil.com/"),
        ("a.com", "@evil.com/"),
        ("a.com", ":81/"),
        ("a.com:80", "81/"),
        ("a.com:8", "0/"),
        ("a.com:80", "@evil.com/"),
        ("a.com", "evil.com/"),
        ("a.com", "*"),
    ];
    let mut refused_by = BTreeMap::new();
    for (authority, path) in attempts {
        // Even if the parser of addresses accepts no such path today.
        let rule = crate::guard::check_path(path).expect_err(path).to_string();
        let layer = match Uri::builder().scheme("http").authority(authority).path_and_query(path).build() {
            Err(_) => "the parser of addresses",
            Ok(uri) => {
                let checked = guard.check(&Method::GET, &uri).map_err(|error| error.to_string());
                assert_eq!(checked, Err(rule), "`{path}` behind `{authority}`");
                "the guard"
            }
        };
        *refused_by.entry(layer).or_insert(0_usize) += 1;
    }
    assert!(refused_by.contains_key("the guard"), "{refused_by:?}");
    assert_eq!(refused_by.values().sum::<usize>(), attempts.len(), "{refused_by:?}");
    assert!(crate::guard::check_path("").is_ok());
    for path in ["/", "/http://evil.com/", "//evil.com/", "/.evil.com", "/@evil.com/", "?http://evil.com/"] {
        assert!(crate::guard::check_path(path).is_ok(), "{path}");
        let uri = Uri::builder().scheme("http").authority("a.com").path_and_query(path).build().unwrap();
        let url = guard.check(&Method::GET, &uri).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!((url.host_str(), url.port_or_known_default()), (Some("a.com"), Some(80)), "{path}");
    }
}

#[test]
fn addresses_that_are_not_public_are_known() {
    let refused = "0.0.0.0 0.1.2.3 127.0.0.1 127.255.255.255 10.0.0.0 172.16.0.1 172.31.255.255 192.168.0.1 169.254.169.254
        100.64.0.1 100.127.255.255 192.0.0.1 192.0.2.1 198.51.100.1 203.0.113.1 198.18.0.1 198.19.255.255 192.88.99.1 224.0.0.1
        239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 64:ff9b::127.0.0.1
        64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1 fc00::1 fd00:ec2::254 fe80::1 febf::1 fec0::1 ff02::1 2001:db8::1 3fff::1
        2001::1 2001:1ff::1 2002:7f00:1::1 5f00::1 4000::1";
    let public = "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 169.253.0.1 169.255.0.1 172.15.0.1 172.32.0.1
        192.0.1.1 192.167.0.1 192.169.0.1 198.17.0.1 198.20.0.1 223.255.255.255 2606:4700::1111 2001:4860::8888 2001:200::1
        64:ff9b::8.8.8.8 3fff:1000::1";
    for (addresses, expected) in [(refused, true), (public, false)] {
        for ip in addresses.split_whitespace() {
            assert_eq!(special(ip.parse().unwrap()).is_some(), expected, "{ip}");
        }
    }
}

#[tokio::test]
async fn a_name_that_changes_its_mind_reaches_what_was_checked() {
    let server = Server::start(|_, stream| respond(stream, "200 OK", "", b"inside")).await;
    let host = format!("http://rebind.test:{}", server.port);
    let uri: Uri = format!("{host}/").parse().unwrap();
    // Public when it was checked, loopback if it were resolved again.
    let flop = guard(&[&host], &[&["93.184.216.34"], &["127.0.0.1"]], RequestLimits::default());
    let way = flop.look_up(flop.check(&Method::GET, &uri).unwrap()).await.unwrap();
    assert_eq!(way.addresses(), [SocketAddr::new("93.184.216.34".parse().unwrap(), server.port)]);
    // The client resolves nothing: a name that no resolver knows leads to the given address.
    let given =
        CheckedRoute { addresses: vec![SocketAddr::new("127.0.0.1".parse().unwrap(), server.port)], ..way.clone() };
    let answer = flop.send(&given, reqwest::Request::new(Method::GET, way.url().clone())).await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "inside");
    // The opposite: every request is checked again.
    let flip = guard(&[&host], &[&["127.0.0.1"]], RequestLimits::default());
    let error = flip.fetch(get(&uri.to_string())).await.err().unwrap();
    assert!(error.to_string().contains("a loopback address"), "{error}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_redirect_is_followed_to_what_is_granted_and_without_who_asked() {
    let end = Server::start(|_, stream| respond(stream, "200 OK", "", b"there")).await;
    let to = format!("location: {}/end\r\n", end.url());
    let start = Server::start(move |_, stream| {
        let to = to.clone();
        async move { respond(stream, "302 Found", &to, b"").await }
    })
    .await;
    let guard = guard(&[&start.url(), &end.url()], &[&[]], RequestLimits::default());
    let mut request = Request::post(format!("{}/a", start.url())).body(Bytes::from_static(b"x")).unwrap();
    request.headers_mut().insert("authorization", "Bearer abc".parse().unwrap());
    let mut fetched = guard.fetch(request).await.unwrap();
    assert_eq!((fetched.read_all().await.unwrap().as_slice(), fetched.url.path()), (&b"there"[..], "/end"));
    let (first, last) = (start.seen().remove(0).to_lowercase(), end.seen().remove(0).to_lowercase());
    assert!(first.contains("authorization: bearer abc") && first.contains("host: 127.0.0.1"), "{first}");
    assert!(last.starts_with("get /end") && !last.contains("authorization") && last.contains("host: "), "{last}");
}

#[test]
fn a_redirect_from_https_to_http_is_not_followed() {
    let from = reqwest::Url::parse("https://a.com/x").unwrap();
    let hop = || crate::fetch::Hop::get("https://a.com/x");
    let next = |to: &str| crate::fetch::next_hop(hop(), &from, http::StatusCode::FOUND, to);
    assert!(next("http://a.com/x").err().unwrap().to_string().contains("without TLS"));
    assert!(next("https://b.com/x").is_ok() && next("/y").is_ok());
}

#[tokio::test]
async fn a_secret_is_not_sent_to_the_receiver_of_a_crash_test() {
    let url = "https://93.184.216.34/pay";
    let key = HeaderSecret {
        name: "bank".into(),
        secret: Secret::new("a-real-value").unwrap(),
        hosts: vec![HostPattern::try_from("https://93.184.216.34".to_owned()).unwrap()],
        header: http::header::AUTHORIZATION,
    };
    let placeholders = Arc::new(SecretPlaceholders::new("tools.pay", vec![key], || [7; 32]));
    let held = placeholders.placeholder("bank").unwrap().to_owned();
    let guard = guard(&["https://93.184.216.34"], &[&[]], RequestLimits::default()).with_placeholders(placeholders);
    let way = guard.look_up(guard.check(&Method::POST, &url.parse().unwrap()).unwrap()).await.unwrap();
    let receiver = SocketAddr::from(([127, 0, 0, 1], 8_080));
    let turned = |header: &'static str| {
        let mut request = reqwest::Request::new(Method::POST, way.url().clone());
        request.headers_mut().insert(header, held.parse().unwrap());
        guard.turn(&way, &mut request, receiver).map(|()| request)
    };
    let sent = turned("authorization").unwrap();
    assert_eq!(sent.url().as_str(), "http://127.0.0.1:8080/pay");
    assert_eq!(sent.headers()["authorization"], held.as_str());
    // In another header it is refused, as without a receiver.
    assert!(turned("x-other").is_err());
}
