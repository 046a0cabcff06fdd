//! Attempts of pages, and of their callers, to bypass the guard and leave the browser. The browser and the servers are
//! real; the test's resolver sets where names lead.
//!
//! An attempt that is not refused fails by its name. Adding one is adding a line.

use crate::lab::{Lab, running};
use crate::site::{Page, Site};
use longhaul_egress::Resolve;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The longest wait for what a page does by itself, on a slow and busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const HTML: &str = "content-type: text/html; charset=utf-8\r\n";

/// Resolves every name to the first address once, then to the machine itself; records the names.
#[derive(Default)]
struct Flipping(Mutex<Vec<String>>);

#[async_trait::async_trait]
impl Resolve for Flipping {
    async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        let mut asked = self.0.lock().unwrap();
        let ip = if asked.iter().any(|known| known == host) { [127, 0, 0, 1] } else { [93, 184, 216, 34] };
        asked.push(host.to_owned());
        Ok(vec![SocketAddr::from((ip, port))])
    }
}

/// A script whose page shows `done` after its attempt.
fn trying(path: &'static str, script: &str) -> Page {
    let body = format!(
        "<!doctype html><p id=said>waiting</p><script type=module>\
         const say = (text) => {{ said.textContent = text }};\
         const tried = async (attempt) => {{ try {{ say(`got ${{await attempt()}}`) }} catch (e) {{ say(`failed ${{e}}`) }} }};\
         {script}</script>"
    );
    (path, HTML, body)
}

fn pages() -> Vec<Page> {
    let wait = "new Promise((done) => setTimeout(done, 1500))";
    vec![
        ("/", HTML, "<a href='/next'>next</a>".into()),
        ("/metadata", "location: http://169.254.169.254/latest/meta-data/\r\n", String::new()),
        ("/to-file", "location: file:///etc/passwd\r\n", String::new()),
        ("/to-data", "location: data:text/html,evil\r\n", String::new()),
        ("/to-evil", "location: http://127.0.0.1:EVIL/\r\n", String::new()),
        ("/to-tunnel", "location: https://127.0.0.1:EVIL/\r\n", String::new()),
        trying("/fetch", "tried(() => fetch('http://127.0.0.1:EVIL/', {mode:'no-cors'}).then((r) => r.type + r.status))"),
        trying("/localhost", "tried(() => fetch('http://localhost:EVIL/', {mode:'no-cors'}).then((r) => r.type))"),
        trying("/v6", "tried(() => fetch('http://[::1]:EVIL/', {mode:'no-cors'}).then((r) => r.type))"),
        trying("/decimal", "tried(() => fetch('http://2130706433:EVIL/', {mode:'no-cors'}).then((r) => r.type))"),
        trying("/https", "tried(() => fetch('https://127.0.0.1:EVIL/', {mode:'no-cors'}).then((r) => r.type))"),
        trying(
            "/socket",
            "tried(() => new Promise((done, fail) => { const s = new WebSocket('ws://127.0.0.1:EVIL/'); s.onopen = done; s.onerror = () => fail('closed') }))",
        ),
        trying(
            "/rtc",
            &format!("tried(async () => {{ const p = new RTCPeerConnection({{iceServers:[{{urls:'stun:127.0.0.1:EVIL'}}]}}); p.createDataChannel('x'); await p.setLocalDescription(await p.createOffer()); await {wait}; return 'nothing' }})"),
        ),
        trying(
            "/beacon",
            &format!("tried(async () => {{ navigator.sendBeacon('http://127.0.0.1:EVIL/', 'x'); new Image().src = 'http://127.0.0.1:EVIL/i'; await {wait}; return 'nothing' }})"),
        ),
        (
            "/prefetch",
            HTML,
            "<link rel=dns-prefetch href='//prefetched.example'><link rel=preconnect href='http://preconnected.example'>".into(),
        ),
        ("/frames", HTML, "<iframe src='http://10.0.0.1/'></iframe><iframe src='http://127.0.0.1:EVIL/'></iframe><iframe src='file:///etc/passwd'></iframe>seen".into()),
        ("/form", HTML, "<form method=post action='http://127.0.0.1:EVIL/'><button>Send</button></form>".into()),
        ("/links", HTML, "<a href='file:///etc/passwd'>file</a> <a href='data:text/html,evil'>data</a> <a href='chrome://version'>chrome</a> <a href='view-source:http://127.0.0.1:PORT/'>source</a> <a href='http://127.0.0.1:EVIL/'>evil</a> <a href='https://127.0.0.1:EVIL/'>tunnel</a>".into()),
        trying("/steal", "tried(() => fetch('file:///etc/passwd').then((r) => r.text()))"),
        trying("/devtools", "tried(() => fetch('http://127.0.0.1:9222/json/version', {mode:'no-cors'}).then((r) => r.type))"),
        ("/alert", HTML, "<script>alert('hello'); confirm('sure?'); prompt('who?')</script>after".into()),
        ("/leave", HTML, "<script>onbeforeunload = (e) => e.preventDefault()</script><a href='/'>leave</a>".into()),
        ("/popup", HTML, "<button onclick=\"window.open('/next')\">Pop</button>".into()),
        ("/download", "content-type: application/octet-stream\r\ncontent-disposition: attachment; filename=x\r\n", "data".into()),
        ("/save", HTML, "<a href='data:application/octet-stream,x' download=x>Save</a>".into()),
        ("/endless", "content-type: text/html\r\nx-endless: 1\r\n", "<p>begin</p>".into()),
        ("/slow", "content-type: text/html\r\nx-slow: 1\r\ncontent-length: 1000\r\n", "<p>begin</p>".into()),
        trying("/busy", "setTimeout(() => { while (true) {} }, 300)"),
        trying("/greedy", "const kept = []; await tried(() => { while (true) kept.push(new Uint8Array(16 << 20).fill(1)) }); kept.length = 0"),
        ("/greedy-frames", HTML, "<script>for (let i = 0; i < 12; i++) { const f = document.createElement('iframe'); f.sandbox = 'allow-scripts'; f.src = `http://127.0.0.${i + 1}:PORT/greedy-slowly`; document.documentElement.append(f) }</script>many".into()),
        ("/greedy-slowly", HTML, "<script>const kept = []; setInterval(() => { if (kept.length < 15) kept.push(new Uint8Array(16 << 20).fill(1)) }, 30)</script>".into()),
        ("/next", HTML, "next".into()),
        ("/file", HTML, "<input type=file aria-label=File>".into()),
        ("/echo", HTML, "<form action='/next'><input name=key aria-label=Key><button>Send</button></form>".into()),
    ]
}

/// The final text of a page that tries.
async fn tried(lab: &Lab, url: &str) -> String {
    if let Err(error) = lab.open(url).await {
        return error;
    }
    shown(lab, |text| !["", "waiting"].contains(&text)).await
}

/// The text of the page once it is as expected, or after all patience.
async fn shown(lab: &Lab, is_it: impl Fn(&str) -> bool) -> String {
    let begun = Instant::now();
    loop {
        let text = lab.text().await;
        if is_it(&text) || begun.elapsed() > PATIENCE {
            return text;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Opens a page and clicks an element, until the answer says this: on a busy machine a page may do after the answer
/// what it was clicked for.
async fn clicked(lab: &Lab, url: &str, label: &str, expected: &str) -> Result<Value, String> {
    let begun = Instant::now();
    loop {
        lab.open(url).await.unwrap();
        let clicked = lab.click(label).await;
        let said = format!("{clicked:?}");
        assert!(!said.contains("chrome-error"), "{label}: {said}");
        if said.contains(expected) {
            return clicked;
        }
        assert!(begun.elapsed() < PATIENCE, "{label}: {said}");
    }
}

#[track_caller]
fn refused(name: &str, told: &Result<Value, String>, because: &str) {
    let said = told.as_ref().err().unwrap_or_else(|| panic!("{name} was not refused: {told:?}"));
    assert!(said.contains(because), "{name}: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_to_reach_what_was_not_granted() {
    let site = Site::serve(pages());
    let names = Arc::new(Flipping::default());
    let lab = Lab::new(&site, &["http://rebinds.example"], &json!({}), Some(Arc::clone(&names) as Arc<dyn Resolve>));

    // Requests of the caller: the address, and its refusal.
    let evil = format!("http://127.0.0.1:{}/", site.evil_port());
    for (name, url, because) in [
        ("a file", "file:///etc/passwd".to_owned(), "only addresses of http and https are"),
        ("a file with a host", "file://x/etc/passwd".to_owned(), "only addresses of http and https are"),
        ("data", "data:text/html,evil".to_owned(), "only addresses of http and https are"),
        ("a script", "javascript:alert(1)".to_owned(), "only addresses of http and https are"),
        ("settings of the browser", "chrome://version".to_owned(), "only addresses of http and https are"),
        ("a source", format!("view-source:{}", site.url("/")), "only addresses of http and https are"),
        ("another port", evil.clone(), "[tools.browser] hosts = "),
        ("another host", "https://example.com/".to_owned(), "may not reach `https://example.com`"),
        ("another form of it", format!("http://2130706433:{}/", site.port), "may not reach"),
        ("a user in it", format!("http://me:pass@127.0.0.1:{}/", site.port), "an address with a user in it"),
        ("a redirect to metadata", site.url("/metadata"), "may not reach `http://169.254.169.254"),
        ("a redirect to a file", site.url("/to-file"), "ERR_UNSAFE_REDIRECT"),
        ("a redirect to data", site.url("/to-data"), "ERR_UNSAFE_REDIRECT"),
        ("a redirect to another port", site.url("/to-evil"), "may not reach"),
        ("a redirect into a tunnel", site.url("/to-tunnel"), "may not reach `https://127.0.0.1"),
    ] {
        refused(name, &lab.open(&url).await, because);
        site.untouched(name);
    }

    // Requests of pages, each of which shows its result in the end.
    for (name, path) in [
        ("fetch of loopback", "/fetch"),
        ("fetch of localhost", "/localhost"),
        ("fetch of IPv6 loopback", "/v6"),
        ("fetch of decimal loopback", "/decimal"),
        ("fetch through a tunnel", "/https"),
        ("a web socket", "/socket"),
        ("WebRTC", "/rtc"),
        ("a beacon and a picture", "/beacon"),
        ("fetch of a file", "/steal"),
        ("the port of a debugger", "/devtools"),
    ] {
        let said = tried(&lab, &site.url(path)).await;
        // An opaque response has no content for the page; the proxy's refusal is such a response.
        assert!(
            said.starts_with("failed") || ["got nothing", "got opaque0", "got opaque"].contains(&&*said),
            "{name}: {said}"
        );
        site.untouched(name);
    }

    let framed = lab.open(&site.url("/frames")).await.unwrap();
    assert!(framed["refused"].to_string().contains("10.0.0.1"), "{framed}");
    site.untouched("frames");
    clicked(&lab, &site.url("/form"), "Send", "may not reach").await.unwrap();
    site.untouched("a form");
    for label in ["file", "data", "chrome", "source", "evil"] {
        lab.open(&site.url("/links")).await.unwrap();
        let clicked = lab.click(label).await;
        let text = lab.text().await;
        assert!(!text.contains("root:") && !text.contains("evil\n"), "{label}: {text} {clicked:?}");
        site.untouched(label);
    }
    let sent = clicked(&lab, &site.url("/links"), "tunnel", "may not reach").await;
    let tunnel = format!("https://127.0.0.1:{}", site.evil_port());
    refused("a link into a tunnel", &sent, &format!("may not reach `{tunnel}`"));
    refused("its page", &lab.call("read", json!({})).await, "no page is open");
    // The browser's error page is told by the address that it is shown for.
    refused("a tunnel", &lab.open(&site.url("/to-tunnel")).await, "may not reach");
    refused("its page", &lab.call("read", json!({})).await, &tunnel);
    site.untouched("a link into a tunnel");

    // A name is resolved only when something is fetched from it.
    lab.open(&site.url("/prefetch")).await.unwrap();
    assert!(names.0.lock().unwrap().is_empty(), "{:?}", names.0.lock().unwrap());
    // It led to a public address at first, which the test cannot reach, then to loopback.
    let first = lab.open("http://rebinds.example/").await;
    assert!(first.is_err() || first.as_ref().unwrap()["status"] != 200, "{first:?}");
    refused("a name that flips", &lab.open("http://rebinds.example/").await, "a loopback address");
    site.untouched("a name that flips");
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_to_hold_a_task_up_or_to_leave_something() {
    let site = Site::serve(pages());
    let settings = json!({ "load_ms_max": 3_000, "traffic_bytes_max": 20_000_000_u64 });
    let lab = Lab::new(&site, &[], &settings, None);

    // The placeholders of secrets in other tools have no function here, and are sent nowhere.
    lab.open(&site.url("/echo")).await.unwrap();
    let placeholder = json!({ "ref": lab.element("Key").await, "text": "longhaul-secret-key", "submit": true });
    let sent = lab.call("type", placeholder).await.unwrap();
    assert!(sent["refused"].to_string().contains("secret"), "{sent}");
    assert!(!site.asked().iter().any(|line| line.contains("key=")), "{:?}", site.asked());

    let alert = lab.open(&site.url("/alert")).await.unwrap();
    let remarks = alert["remarks"].to_string();
    assert!(["(alert)", "(confirm)", "(prompt)", "hello"].iter().all(|word| remarks.contains(word)), "{alert}");
    assert_eq!(lab.text().await, "after");
    lab.open(&site.url("/leave")).await.unwrap();
    lab.click("leave").await.unwrap();
    assert_eq!(shown(&lab, |text| text == "next").await, "next");

    let popped = clicked(&lab, &site.url("/popup"), "Pop", "opened a window, which was closed").await.unwrap();
    assert!(popped["remarks"].is_array() && popped["url"] == site.url("/popup"), "{popped}");

    // The browser tells of a download before or after it says that there is no page.
    refused("a download", &lab.open(&site.url("/download")).await, " a download");
    let saved = clicked(&lab, &site.url("/save"), "Save", "a download was refused").await.unwrap();
    assert!(saved["remarks"].is_array(), "{saved}");
    lab.open(&site.url("/file")).await.unwrap();
    refused("a file for a page", &lab.click("File").await, "a file cannot be chosen");

    let slow = lab.open(&site.url("/slow")).await.unwrap();
    assert_eq!((&slow["loaded"], lab.text().await.as_str()), (&json!(false), "begin"));
    // It sends until a cap: that of the browser's traffic, or the time in which a page has to respond or to load.
    let endless = lab.open(&site.url("/endless")).await;
    let is_given_up = endless.as_ref().is_ok_and(|page| page["loaded"] == json!(false));
    let said = format!("{endless:?} {:?}", lab.open(&site.url("/next")).await);
    assert!(is_given_up || said.contains("traffic_bytes_max") || said.contains("given up after"), "{said}");
}

/// A further task.
const OTHER: &str = "r-000000000001/f-two/1/generate";

/// A lab in which another task has a page, whose browser has to outlive that of the first one.
async fn with_another_task(site: &Site, settings: &Value) -> Lab {
    let lab = Lab::new(site, &[], settings, None);
    lab.call_as(OTHER, "open", json!({ "url": site.url("/next") })).await.unwrap();
    lab
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_takes_all_time_or_memory_ends_its_own_browser_only() {
    let site = Site::serve(pages());
    let lab = with_another_task(&site, &json!({ "call_ms_max": 8_000, "load_ms_max": 2_000 })).await;
    // It gets busy soon: while it is opened, or while it is read.
    let opened = lab.open(&site.url("/busy")).await.map(drop);
    let said = match opened {
        Ok(()) => shown(&lab, |text| text.contains("given up after")).await,
        Err(said) => said,
    };
    assert!(said.contains("given up after"), "a busy page: {said}");
    refused("its browser", &lab.call("read", json!({})).await, "no page is open");
    assert_eq!(lab.call_as(OTHER, "read", json!({})).await.unwrap()["text"], "next");

    let lab = with_another_task(&site, &json!({ "memory_bytes_max": 700 << 20 })).await;
    // One process gets no more than all may have.
    let said = tried(&lab, &site.url("/greedy")).await;
    assert!(said.contains("failed RangeError") || said.contains("memory_bytes_max"), "{said}");
    // Its processes take more together: some may be slow, and the browser may be too busy to answer until then.
    let (begun, mut said) = (Instant::now(), String::new());
    while !said.contains("the browser ended") {
        assert!(begun.elapsed() < PATIENCE, "{said}");
        tokio::time::sleep(Duration::from_millis(200)).await;
        let elements = lab.call("elements", json!({})).await;
        let is_gone = said.is_empty() || elements.as_ref().is_err_and(|error| error.contains("no page is open"));
        let told = if is_gone { lab.open(&site.url("/greedy-frames")).await } else { elements };
        said = format!("{told:?}");
    }
    assert!(said.contains("the browser ended at its limit `memory_bytes_max`"), "{said}");
    assert_eq!(lab.call_as(OTHER, "read", json!({})).await.unwrap()["text"], "next");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_browser_is_left_when_the_tool_is_dropped() {
    let site = Site::serve(pages());
    let lab = Lab::new(&site, &[], &json!({}), None);
    lab.open(&site.url("/")).await.unwrap();
    let scratch = lab.scratch.path().display().to_string();
    assert!(running(&["examples/browser_child", &scratch]) > 0);
    let Lab { browser, scratch: kept } = lab;
    drop(browser);
    for _ in 0..200 {
        if running(&["examples/browser_child", &scratch]) == 0 && std::fs::read_dir(&scratch).unwrap().next().is_none()
        {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    drop(kept);
    panic!("something is left in {scratch}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_in_vain_for_a_browser_is_told_that_all_are_at_work() {
    let site = Site::serve(pages());
    let settings = json!({ "browsers_max": 1, "call_ms_max": 3_000, "load_ms_max": 2_900 });
    let lab = Lab::new(&site, &[], &settings, None);
    let opened = async |task: &str, after_ms: u64| {
        tokio::time::sleep(std::time::Duration::from_millis(after_ms)).await;
        let caller = format!("r-000000000001/{task}/1/generate");
        format!("{:?}", lab.call_as(&caller, "open", json!({ "url": site.url("/endless") })).await)
    };
    // The first one has the browser for about the time of a call, and then one of the others has it.
    let (_, second, third) = tokio::join!(opened("f-one", 0), opened("f-two", 300), opened("f-three", 300));
    let said = format!("{second} {third}");
    assert!(said.contains("all 1 browsers were at work for 3000 ms"), "{said}");
}
