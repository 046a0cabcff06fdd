//! A browser tool as the host makes it, for one task.

use crate::site::Site;
use longhaul_browser::{Browser, BrowserEnvironment, BrowserSettings};
use longhaul_core::InvocationId;
use longhaul_core::grant::{Grants, HostPattern};
use longhaul_core::supervisor::Unsupervised;
use longhaul_core::tool::{HostTool as _, ToolCall};
use longhaul_egress::{Guard, RequestLimits, Resolve};
use longhaul_sandbox::{Level, SandboxHost};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

pub struct Lab {
    pub browser: Browser,
    pub scratch: tempfile::TempDir,
}

/// This crate's stand-in for the command.
pub fn child() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples/browser_child")
}

impl Lab {
    /// A lab whose browser may reach the site, and more hosts.
    pub fn new(site: &Site, more: &[&str], settings: &Value, resolver: Option<Arc<dyn Resolve>>) -> Self {
        let origin = site.url("");
        let hosts = std::iter::once(origin.as_str()).chain(more.iter().copied());
        let hosts = hosts.map(|host| HostPattern::try_from(host.to_owned()).unwrap()).collect();
        let grants = Grants { table: "tools.browser".into(), hosts, ..Grants::default() };
        let caps = RequestLimits { connect_ms_max: 2_000, ..RequestLimits::default() };
        let guard = Guard::new(grants, caps);
        let guard = match resolver {
            Some(resolver) => guard.with_resolver(resolver),
            None => guard,
        };
        let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let host = SandboxHost {
            program: child(),
            prefix_args: vec!["check".into()],
            scratch: scratch.path().to_owned(),
            cache: None,
            hidden: vec![],
            checkout: None,
            level_min: Level::Full,
            redact: None,
        };
        let environment =
            BrowserEnvironment { host, child_args: vec!["browser".into()], guard, supervisor: Arc::new(Unsupervised) };
        Self { browser: Browser::new(environment, BrowserSettings::read(settings).unwrap()), scratch }
    }

    pub async fn call_as(&self, task: &str, function: &str, arguments: Value) -> Result<Value, String> {
        let call = ToolCall { tool: "browser".into(), function: function.into(), arguments: arguments.to_string() };
        let caller = InvocationId::from_text(task);
        let told = self.browser.call(&call, &caller, "key", 1).await;
        told.map(|told| serde_json::from_str(&told.output).unwrap()).map_err(|error| error.to_string())
    }

    pub async fn call(&self, function: &str, arguments: Value) -> Result<Value, String> {
        self.call_as("r-000000000001/f-one/1/generate", function, arguments).await
    }

    pub async fn open(&self, url: &str) -> Result<Value, String> {
        self.call("open", json!({ "url": url })).await
    }

    pub async fn text(&self) -> String {
        let read = self.call("read", json!({})).await;
        read.map_or_else(|error| error, |read| read["text"].as_str().unwrap().to_owned())
    }

    /// The `ref` of the element with that label.
    pub async fn element(&self, label: &str) -> u64 {
        let listed = self.call("elements", json!({})).await.unwrap();
        let found = listed["elements"].as_array().unwrap().iter().find(|one| one["label"] == label);
        found.unwrap_or_else(|| panic!("{label}: {listed}"))["ref"].as_u64().unwrap()
    }

    pub async fn click(&self, label: &str) -> Result<Value, String> {
        let element = self.element(label).await;
        self.call("click", json!({ "ref": element })).await
    }
}

/// Processes whose command line has all of these words.
pub fn running(words: &[&str]) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| words.iter().all(|word| String::from_utf8_lossy(line).contains(word))).count()
}
