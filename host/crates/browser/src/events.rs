//! Events of the browser: what a page does while it is opened and used, and answers to what would block it.

use crate::error::SAID_BYTES_MAX;
use crate::pipe::{ANSWER, Event, Pipe};
use longhaul_core::text::truncate;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, watch};

/// Remarks for one answer: dialogs, windows and downloads that were refused.
const REMARKS_MAX: usize = 10;

/// Events of the page.
#[derive(Default)]
pub(crate) struct PageEvents {
    remarks: Mutex<Vec<String>>,
    has_crashed: AtomicBool,
    /// Counts the beginnings of navigations of the page.
    pub(crate) begun: watch::Sender<u64>,
    /// Counts loaded documents, and the ends of navigations, of which some lead to no new document.
    pub(crate) loaded: watch::Sender<u64>,
    /// The browser's error page, where it shows one.
    pub(crate) error_page: watch::Sender<Option<ErrorPage>>,
}

/// An error page of the browser, in the place of a document.
pub(crate) struct ErrorPage {
    /// The navigation that led to it.
    pub(crate) navigation: String,
    /// The address that could not be opened.
    pub(crate) address: String,
}

impl ErrorPage {
    /// The error page that a main frame shows; none for a document.
    fn of(frame: &Value) -> Option<Self> {
        let address = frame["unreachableUrl"].as_str()?.to_owned();
        Some(Self { navigation: frame["loaderId"].as_str().unwrap_or_default().to_owned(), address })
    }
}

impl PageEvents {
    /// The remarks since the last query.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.remarks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Drops remarks, crashes and error pages.
    pub(crate) fn forget(&self) {
        self.take();
        self.has_crashed.store(false, Ordering::Relaxed);
        self.error_page.send_replace(None);
    }

    /// True when the process of the page ended.
    pub(crate) fn has_crashed(&self) -> bool {
        self.has_crashed.load(Ordering::Relaxed)
    }

    fn remark(&self, text: &str) {
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        if remarks.len() < REMARKS_MAX {
            remarks.push(truncate(text, SAID_BYTES_MAX));
        }
    }
}

/// Handles the browser's events, and answers those that would block a page.
pub(crate) struct EventListener {
    pub(crate) pipe: Arc<Pipe>,
    pub(crate) seen: Arc<PageEvents>,
    /// The session of the page.
    pub(crate) page: String,
    /// The target, whose main frame has the same id.
    pub(crate) frame: String,
}

impl EventListener {
    /// Handles events until the browser has ended.
    pub(crate) async fn hear(self, mut events: mpsc::Receiver<Event>) {
        while let Some(Event { method, params }) = events.recv().await {
            match method.as_str() {
                "Page.loadEventFired" | "Page.frameStoppedLoading" if self.is_of_page(&params) => {
                    self.seen.loaded.send_modify(|count| *count += 1);
                }
                // A form is requested before the click on its button is answered, and begins to load some time later.
                "Page.frameRequestedNavigation" | "Page.frameStartedLoading" if self.is_of_page(&params) => {
                    self.seen.begun.send_modify(|count| *count += 1);
                }
                "Page.frameNavigated" if params["frame"]["id"] == self.frame.as_str() => {
                    self.seen.error_page.send_replace(ErrorPage::of(&params["frame"]));
                }
                "Page.javascriptDialogOpening" => self.dismiss(&params).await,
                "Target.targetCreated" => self.keep_out(&params["targetInfo"]).await,
                "Browser.downloadWillBegin" | "Page.downloadWillBegin" => {
                    let url = params["url"].as_str().unwrap_or_default();
                    self.seen.remark(&format!("a download was refused: {url}"));
                }
                "Page.fileChooserOpened" => self.seen.remark("the page asked for a file, and got none"),
                "Inspector.targetCrashed" | "Target.targetCrashed" => {
                    self.seen.has_crashed.store(true, Ordering::Relaxed);
                    self.seen.remark("the page crashed");
                }
                _ => {}
            }
        }
    }

    /// True for an event of the main frame that concerns no other window and no download.
    fn is_of_page(&self, params: &Value) -> bool {
        let is = |name: &str, value: &str| params.get(name).is_none_or(|found| found == value);
        is("frameId", &self.frame) && is("disposition", "currentTab")
    }

    /// A dialog stops the page until it is answered. Only the question whether to leave the page gets a yes.
    async fn dismiss(&self, params: &Value) {
        let kind = params["type"].as_str().unwrap_or_default();
        let text = params["message"].as_str().unwrap_or_default();
        self.seen.remark(&format!("the page showed a dialog ({kind}), which was dismissed: {text}"));
        let answer = json!({ "accept": kind == "beforeunload" });
        // It may be closed already.
        let _ = self.pipe.call(Some(&self.page), "Page.handleJavaScriptDialog", answer, ANSWER).await;
    }

    /// Closes every other window.
    async fn keep_out(&self, target: &Value) {
        let id = target["targetId"].as_str().unwrap_or_default();
        if target["type"] != "page" || id == self.frame || target.get("openerId").is_none() {
            return;
        }
        let url = target["url"].as_str().unwrap_or_default();
        self.seen.remark(&format!("the page opened a window, which was closed: {url}"));
        let _ = self.pipe.call(None, "Target.closeTarget", json!({ "targetId": id }), ANSWER).await;
        let _ = self.pipe.call(Some(&self.page), "Page.bringToFront", json!({}), ANSWER).await;
    }
}
