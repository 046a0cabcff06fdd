//! One browser with one page, and its operations.

use crate::environment::BrowserEnvironment;
use crate::error::{BrowserError, SAID_BYTES_MAX};
use crate::events::{ErrorPage, EventListener, PageEvents};
use crate::page::{About, FUNCTIONS, Filled, Place, Text};
use crate::pipe::{ANSWER, Pipe};
use crate::process::Process;
use crate::refusals;
use crate::settings::BrowserSettings;
use http::{Method, StatusCode, Uri};
use longhaul_core::InvocationId;
use longhaul_core::text::truncate;
use longhaul_egress::{EgressError, Proxy, RefusedRequest};
use longhaul_sandbox::Level;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Wait after a click for the page to begin something.
const SETTLE: Duration = Duration::from_millis(400);

/// The browser's error when the address is no page, such as a download.
const ABORTED: &str = "net::ERR_ABORTED";

/// The browser's error for a page that leads to a file or to data.
const UNSAFE_REDIRECT: &str = "net::ERR_UNSAFE_REDIRECT";

/// Attempts to ask a page that is replaced by another one meanwhile.
const ASKS_MAX: usize = 5;

/// A larger picture is taken again as JPEG: one answer has 4 MiB, and a data URL is a third longer.
const PNG_BASE64_BYTES_MAX: usize = 1_500_000;

/// A browser with a page.
pub(crate) struct Session {
    // The order of the fields is that of their ends: the connection ends before the process does.
    ear: JoinHandle<()>,
    pipe: Arc<Pipe>,
    process: Process,
    proxy: Arc<Proxy>,
    seen: Arc<PageEvents>,
    page: String,
    frame: String,
    load: Duration,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.ear.abort();
    }
}

/// A picture of the window.
pub(crate) struct Picture {
    pub(crate) media_type: &'static str,
    pub(crate) base64: String,
}

impl Session {
    /// The sandbox level of the browser.
    pub(crate) fn level(&self) -> Level {
        self.process.level()
    }

    /// Starts a browser with an empty page.
    pub(crate) async fn start(
        environment: &BrowserEnvironment,
        settings: &BrowserSettings,
        caller: &InvocationId,
    ) -> Result<Self, BrowserError> {
        let proxy = Proxy::new(environment.guard.clone(), settings.traffic_bytes_max);
        let proxy = Arc::new(proxy.telling(Arc::clone(&environment.supervisor), caller.clone()));
        let (process, pipe, events) = Process::start(environment, settings, &proxy).await?;
        let pipe = Arc::new(pipe);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let browser = |method, params| pipe.call(None, method, params, ANSWER);
        browser("Browser.setDownloadBehavior", json!({ "behavior": "deny", "eventsEnabled": true })).await?;
        let frame = text(&browser("Target.createTarget", json!({ "url": "about:blank" })).await?["targetId"]);
        let attached = browser("Target.attachToTarget", json!({ "targetId": frame, "flatten": true })).await?;
        let page = text(&attached["sessionId"]);
        let seen = Arc::new(PageEvents::default());
        let ear = EventListener {
            pipe: Arc::clone(&pipe),
            seen: Arc::clone(&seen),
            page: page.clone(),
            frame: frame.clone(),
        };
        let ear = tokio::spawn(ear.hear(events));
        let load = Duration::from_millis(settings.load_ms_max);
        let session = Self { ear, pipe, process, proxy, seen, page, frame, load };
        session.call("Page.enable", json!({})).await?;
        session.call("Page.setInterceptFileChooserDialog", json!({ "enabled": true })).await?;
        // Keys would go nowhere otherwise once another window has been in front.
        session.call("Emulation.setFocusEmulationEnabled", json!({ "enabled": true })).await?;
        session.browser("Target.setDiscoverTargets", json!({ "discover": true })).await?;
        Ok(session)
    }

    async fn browser(&self, method: &'static str, params: Value) -> Result<Value, BrowserError> {
        self.pipe.call(None, method, params, ANSWER).await
    }

    async fn call(&self, method: &'static str, params: Value) -> Result<Value, BrowserError> {
        self.pipe.call(Some(&self.page), method, params, ANSWER).await
    }

    /// Replaces an error by how the browser or the page ended, if one has: that explains more.
    pub(crate) async fn why_it_ended(&mut self, error: BrowserError) -> BrowserError {
        match self.process.why_it_ended(error).await {
            ended @ BrowserError::Ended { .. } => ended,
            _ if self.seen.has_crashed() => BrowserError::Ended { limit: None, said: "the page crashed".to_owned() },
            error => error,
        }
    }

    /// Opens an address.
    pub(crate) async fn open(&self, url: &str) -> Result<Value, BrowserError> {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        if !matches!(scheme.as_deref(), Some("http" | "https")) {
            return Err(BrowserError::NotHttp { url: shown(url) });
        }
        let uri: Uri = url.parse().map_err(|_| EgressError::BadAddress)?;
        let mut guarded = self.proxy.guard().check(&Method::GET, &uri)?;
        // A place of the page, which the guard drops and no server sees.
        guarded.set_fragment(url.split_once('#').map(|(_, place)| place));
        self.forget();
        let until = Instant::now() + self.load;
        let mut loaded = self.seen.loaded.subscribe();
        loaded.mark_unchanged();
        let asked = self.pipe.call(Some(&self.page), "Page.navigate", json!({ "url": guarded.as_str() }), self.load);
        let navigated = match asked.await {
            Err(BrowserError::TimedOut { ms, .. }) => {
                self.stop().await?;
                return Err(BrowserError::NotLoaded { url: shown(url), why: format!("no answer in {ms} ms") });
            }
            navigated => navigated?,
        };
        if let Some(why) = navigated["errorText"].as_str() {
            return Err(self.not_loaded(url, why, navigated["loaderId"].as_str()).await);
        }
        let (about, is_loaded) = if navigated["loaderId"].is_null() {
            // Another place of the page that is open.
            (self.location().await?, true)
        } else {
            self.wait_for_load(&mut loaded, until).await?
        };
        let mut refused = self.proxy.take_refusals();
        // A plain request that the proxy refused has a response, which is no page.
        if about.status == Some(StatusCode::FORBIDDEN.as_u16())
            && let Some(refusal) = refusals::take_answer(&mut refused, &about.url)
        {
            self.close().await?;
            return Err(BrowserError::NotLoaded { url: shown(url), why: shown(&refusal.to_string()) });
        }
        Ok(self.report(&about, &refused, is_loaded))
    }

    /// The reason why an address was not opened: the guard's refusal is more specific than the browser's error.
    async fn not_loaded(&self, url: &str, why: &str, navigation: Option<&str>) -> BrowserError {
        // The guard does not see the browser's own refusals: its refusals concern earlier requests of a page, or those
        // of the browser for itself. Nor does a request that it refuses end as a download.
        if ![UNSAFE_REDIRECT, ABORTED].contains(&why) {
            let last = self.unreachable(navigation).await.unwrap_or_else(|| url.to_owned());
            if let Some(refusal) = refusals::take_of_document(&mut self.proxy.take_refusals(), &last) {
                return refusal.into_error().into();
            }
        }
        if why == ABORTED {
            // A download may be reported a moment later.
            tokio::time::sleep(SETTLE).await;
        }
        let remarks = self.seen.take();
        let why = match (remarks.first(), why) {
            (Some(remark), _) => remark,
            (None, ABORTED) => "there is nothing to show: it is a download, which is refused, or no page",
            (None, why) => why,
        };
        BrowserError::NotLoaded { url: shown(url), why: truncate(why, SAID_BYTES_MAX) }
    }

    /// The address that could not be opened, which after redirects is the last one: that of a navigation, or of the
    /// page that is shown. None where the browser shows no error page in time.
    async fn unreachable(&self, navigation: Option<&str>) -> Option<String> {
        // The browser answers before it shows the page, and may still have to show that of the navigation before.
        let is_it = |page: &ErrorPage| navigation.is_none_or(|navigation| page.navigation == navigation);
        let mut shown = self.seen.error_page.subscribe();
        let shown = tokio::time::timeout(ANSWER, shown.wait_for(|page| page.as_ref().is_some_and(is_it))).await;
        shown.ok()?.ok()?.as_ref().map(|page| page.address.clone())
    }

    /// The text from `offset`, with its location.
    pub(crate) async fn read(&self, offset: usize, bytes_max: usize) -> Result<(Value, bool), BrowserError> {
        let about = self.opened().await?;
        let part: Text = self.ask(&format!("longhaul.text({offset}, {bytes_max})")).await?;
        // A note about the missing part would count as text of the page, and that much would never be read.
        let text = &part.text[..part.text.floor_char_boundary(bytes_max)];
        let read = offset.saturating_add(text.encode_utf16().count()).min(part.chars);
        let is_more = read < part.chars;
        let mut told = json!({ "url": about.url, "title": about.title, "text": text, "chars_total": part.chars });
        if is_more {
            told["read_on_at_offset"] = read.into();
        }
        Ok((told, is_more))
    }

    /// The elements that can be clicked or typed into, from `offset`.
    pub(crate) async fn elements(&self, offset: usize, max: usize) -> Result<Value, BrowserError> {
        self.opened().await?;
        self.ask(&format!("longhaul.elements({offset}, {max})")).await
    }

    /// Clicks an element, and waits for the consequences.
    pub(crate) async fn click(&self, element: u32) -> Result<Value, BrowserError> {
        self.opened().await?;
        let place: Place = self.ask(&format!("longhaul.place({element})")).await?;
        self.forget();
        let (begun, loaded) = self.now();
        for (kind, clicks) in [("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 1)] {
            let button = if clicks == 0 { "none" } else { "left" };
            let mouse = json!({ "type": kind, "x": place.x, "y": place.y, "button": button, "clickCount": clicks });
            self.call("Input.dispatchMouseEvent", mouse).await?;
        }
        self.settle(begun, loaded).await
    }

    /// Types a text into an element in place of its content, and presses Enter on request.
    pub(crate) async fn fill(&self, element: u32, text: &str, is_submitted: bool) -> Result<Value, BrowserError> {
        self.opened().await?;
        let quoted = Value::from(text).to_string();
        self.forget();
        let (begun, loaded) = self.now();
        let filled: Filled = self.ask(&format!("longhaul.fill({element}, {quoted})")).await?;
        if !filled.done {
            let method = if text.is_empty() { "Input.dispatchKeyEvent" } else { "Input.insertText" };
            let typed = if text.is_empty() { key("keyDown", "Delete", 46, "") } else { json!({ "text": text }) };
            self.call(method, typed).await?;
        }
        if is_submitted {
            self.call("Input.dispatchKeyEvent", key("keyDown", "Enter", 13, "\r")).await?;
            self.call("Input.dispatchKeyEvent", key("keyUp", "Enter", 13, "")).await?;
        }
        self.settle(begun, loaded).await
    }

    /// A picture of the window.
    pub(crate) async fn screenshot(&self) -> Result<Picture, BrowserError> {
        self.opened().await?;
        let take = async |format: Value| -> Result<String, BrowserError> {
            let shot = self.call("Page.captureScreenshot", format).await?;
            let data = shot["data"].as_str();
            data.map(str::to_owned).ok_or_else(|| BrowserError::protocol("Page.captureScreenshot", "no picture"))
        };
        let base64 = take(json!({ "format": "png" })).await?;
        if base64.len() <= PNG_BASE64_BYTES_MAX {
            return Ok(Picture { media_type: "image/png", base64 });
        }
        let base64 = take(json!({ "format": "jpeg", "quality": 60 })).await?;
        Ok(Picture { media_type: "image/jpeg", base64 })
    }

    fn now(&self) -> (watch::Receiver<u64>, watch::Receiver<u64>) {
        let (mut begun, mut loaded) = (self.seen.begun.subscribe(), self.seen.loaded.subscribe());
        begun.mark_unchanged();
        loaded.mark_unchanged();
        (begun, loaded)
    }

    /// Drops earlier refusals, remarks, crashes and error pages, which belong to no later answer.
    fn forget(&self) {
        self.proxy.take_refusals();
        self.seen.forget();
    }

    async fn settle(
        &self,
        mut begun: watch::Receiver<u64>,
        mut loaded: watch::Receiver<u64>,
    ) -> Result<Value, BrowserError> {
        let begins = tokio::time::timeout(SETTLE, begun.changed()).await.is_ok();
        let (about, is_loaded) = if begins {
            self.wait_for_load(&mut loaded, Instant::now() + self.load).await?
        } else {
            (self.location().await?, true)
        };
        Ok(self.report(&about, &self.proxy.take_refusals(), is_loaded))
    }

    /// Waits until the page has loaded, and returns its location. False when it did not: then it is stopped, and read
    /// in its present state.
    async fn wait_for_load(
        &self,
        loaded: &mut watch::Receiver<u64>,
        until: Instant,
    ) -> Result<(About, bool), BrowserError> {
        while let Ok(Ok(())) = timeout_at(until, loaded.changed()).await {
            let about = self.location().await?;
            // The page before may still end to load after the browser has answered that it shows this one.
            if about.loaded {
                return Ok((about, true));
            }
        }
        self.stop().await?;
        Ok((self.location().await?, false))
    }

    async fn stop(&self) -> Result<(), BrowserError> {
        self.call("Page.stopLoading", json!({})).await.map(drop)
    }

    /// Leaves the page for an empty one.
    async fn close(&self) -> Result<(), BrowserError> {
        self.call("Page.navigate", json!({ "url": "about:blank" })).await.map(drop)
    }

    /// The page's present location. A page that may not stay open is left.
    async fn location(&self) -> Result<About, BrowserError> {
        let about: About = self.ask("longhaul.about()").await?;
        if about.is_of_the_web() {
            return Ok(about);
        }
        let why = self.why_it_is_left(&about).await;
        self.close().await?;
        Err(why)
    }

    /// The reason why a page may not stay open. An error page stands for the address that was not opened.
    async fn why_it_is_left(&self, about: &About) -> BrowserError {
        let address = if about.is_error_page() { self.unreachable(None).await } else { None };
        let Some(address) = address else { return BrowserError::NotHttp { url: shown(&about.url) } };
        match refusals::take_of_document(&mut self.proxy.take_refusals(), &address) {
            Some(refusal) => refusal.into_error().into(),
            None => BrowserError::NotLoaded { url: shown(&address), why: "the browser shows an error page".to_owned() },
        }
    }

    /// The location of an open page.
    async fn opened(&self) -> Result<About, BrowserError> {
        let about = self.location().await?;
        if about.is_empty() { Err(BrowserError::NotOpen { last: None }) } else { Ok(about) }
    }

    /// The page's location, and its refused attempts.
    fn report(&self, about: &About, refused: &[RefusedRequest], is_loaded: bool) -> Value {
        let mut told = json!({
            "url": shown(&about.url), "title": about.title, "status": about.status, "loaded": is_loaded,
        });
        for (name, list) in [("remarks", self.seen.take()), ("refused", refusals::texts(refused))] {
            if !list.is_empty() {
                told[name] = list.into();
            }
        }
        told
    }

    /// Evaluates an expression in the page, or in the one that takes its place meanwhile.
    async fn ask<T: DeserializeOwned>(&self, expression: &str) -> Result<T, BrowserError> {
        for _ in 1..ASKS_MAX {
            match self.ask_once(expression).await {
                Err(error) if error.is_of_a_replaced_page() => {}
                answer => return answer,
            }
        }
        self.ask_once(expression).await
    }

    /// Evaluates an expression in an isolated world of the page. Its exception is a message about an element.
    async fn ask_once<T: DeserializeOwned>(&self, expression: &str) -> Result<T, BrowserError> {
        let world = json!({ "frameId": self.frame, "worldName": "longhaul" });
        let world = self.call("Page.createIsolatedWorld", world).await?;
        let asked = json!({
            "expression": format!("{FUNCTIONS};{expression}"),
            "contextId": world["executionContextId"],
            "returnByValue": true,
            "silent": true,
        });
        let answer = self.call("Runtime.evaluate", asked).await?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            let said = thrown["exception"]["description"].as_str().unwrap_or("the page broke");
            let said = said.lines().next().unwrap_or_default().trim_start_matches("Error: ");
            return Err(BrowserError::Element(truncate(said, SAID_BYTES_MAX)));
        }
        let value = answer["result"]["value"].clone();
        serde_json::from_value(value).map_err(|error| BrowserError::protocol("Runtime.evaluate", &error.to_string()))
    }
}

fn shown(text: &str) -> String {
    truncate(text, SAID_BYTES_MAX)
}

fn key(kind: &str, name: &str, code: u32, text: &str) -> Value {
    json!({ "type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code, "text": text })
}
