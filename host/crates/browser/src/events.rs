//! Events of the browser: what a page does while it is opened and used, and answers to what would block it.

use crate::error::SAID_BYTES_MAX;
use crate::pipe::{ANSWER, Event, Pipe};
use longhaul_core::text::truncate;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, watch};

/// Remarks for one answer: dialogs, windows and downloads that were refused.
const REMARKS_MAX: usize = 10;

/// Events of the page.
#[derive(Default)]
pub(crate) struct PageEvents {
    remarks: Mutex<Vec<String>>,
    pub(crate) begun: watch::Sender<u64>,
    pub(crate) loaded: watch::Sender<u64>,
    /// The address that the browser shows an error page for.
    pub(crate) unreachable: watch::Sender<Option<String>>,
}

impl PageEvents {
    /// The remarks since the last query.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.remarks.lock().unwrap_or_else(PoisonError::into_inner))
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
                "Page.loadEventFired" => self.seen.loaded.send_modify(|count| *count += 1),
                "Page.frameStartedLoading" if params["frameId"] == self.frame.as_str() => {
                    self.seen.begun.send_modify(|count| *count += 1);
                }
                "Page.frameNavigated" if params["frame"]["id"] == self.frame.as_str() => {
                    let unreachable = params["frame"]["unreachableUrl"].as_str().map(str::to_owned);
                    self.seen.unreachable.send_replace(unreachable);
                }
                "Page.javascriptDialogOpening" => self.dismiss(&params).await,
                "Target.targetCreated" => self.keep_out(&params["targetInfo"]).await,
                "Browser.downloadWillBegin" | "Page.downloadWillBegin" => {
                    let url = params["url"].as_str().unwrap_or_default();
                    self.seen.remark(&format!("a download was refused: {url}"));
                }
                "Page.fileChooserOpened" => self.seen.remark("the page asked for a file, and got none"),
                "Inspector.targetCrashed" | "Target.targetCrashed" => self.seen.remark("the page crashed"),
                _ => {}
            }
        }
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
