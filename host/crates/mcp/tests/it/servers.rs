//! A server's description of its tools, and parallel calls, with a fake server as a process.

use longhaul_core::store::{Batch, Key, Op, Row, Store, StoreError, Table};
use longhaul_core::tool::{HostTool as _, ToolCall, ToolError, ToolOutput};
use longhaul_core::{Digest, InvocationId};
use longhaul_egress::Secret;
use longhaul_mcp::{McpConfig, McpEnvironment, McpServer, Value};
use longhaul_sandbox::{Level, SandboxHost};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TOKEN: &str = "tok-1234567890-<abcdef>";

/// A fake store, which keeps values of keys in memory.
#[derive(Default)]
struct FakeStore(Mutex<BTreeMap<Vec<u8>, Vec<u8>>>);

#[async_trait::async_trait]
impl Store for FakeStore {
    fn get(&self, _: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.lock().unwrap().get(key.as_bytes()).cloned())
    }

    fn scan(&self, _: Table, _: &Key, _: Option<&[u8]>, _: usize) -> Result<Vec<Row>, StoreError> {
        unreachable!("a server scans nothing")
    }

    fn blob(&self, _: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        unreachable!("a server keeps no content")
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        for op in batch.ops {
            let Op::Put(_, key, value) = op else { unreachable!("a pin is put") };
            self.0.lock().unwrap().insert(key.as_bytes().to_vec(), value);
        }
        Ok(())
    }
}

/// The fake server, with these pages of tools.
struct Fake {
    folder: PathBuf,
    store: Arc<FakeStore>,
    server: McpServer,
}

impl Fake {
    fn new(folder: &str, pages: &serde_json::Value) -> Self {
        Self::given(folder, pages, 3_000)
    }

    fn given(folder: &str, pages: &serde_json::Value, connect_ms: u64) -> Self {
        // Root's tests are run once more as another user.
        let folder = format!("{folder}-{}", rustix::process::geteuid());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("pages.json"), pages.to_string()).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_server.py");
        let text = |path: &Path| path.display().to_string();
        let config = McpConfig {
            command: vec!["python3".into(), text(&script), text(&folder)],
            env: BTreeMap::from([("TOKEN".into(), Value::Secret { secret: "t".into() })]),
            connect_ms_max: Some(connect_ms),
            // The sandbox has its own tests, with the whole program.
            sandbox: Some(Level::None),
            ..McpConfig::default()
        };
        let store = Arc::<FakeStore>::default();
        let around = McpEnvironment {
            project: "p".into(),
            tree: folder.clone(),
            base: folder.clone(),
            keeper: vec![keeper().into()],
            host: SandboxHost {
                program: keeper(),
                prefix_args: Vec::new(),
                scratch: folder.join("scratch"),
                cache: None,
                hidden: Vec::new(),
                checkout: None,
                level_min: Level::None,
                redact: None,
            },
            inside: Vec::new(),
            store: Arc::clone(&store) as Arc<dyn Store>,
            secret: Arc::new(|_| Secret::new(TOKEN).map_err(|error| error.to_string())),
            random: Arc::new(|| [7; 32]),
        };
        Self { folder, store, server: McpServer::new("fake", config, around) }
    }

    /// As a person does after looking at the server's list.
    async fn approve(&self) {
        if let Ok((digest, _)) = self.server.described().await {
            longhaul_mcp::accept(&*self.store, "p", "fake", &digest).await.unwrap();
        }
    }

    async fn call(&self, function: &str) -> Result<ToolOutput, ToolError> {
        if !longhaul_mcp::is_approved(&*self.store, "p", "fake", &McpConfig::default()).unwrap() {
            self.approve().await;
        }
        let call = ToolCall {
            tool: "mcp-fake".into(),
            function: function.into(),
            arguments: json!({ "said": function }).to_string(),
        };
        self.server.call(&call, &InvocationId::from_text("r-1/generate"), "key", 1).await
    }

    fn starts(&self) -> usize {
        std::fs::read_to_string(self.folder.join("started")).unwrap_or_default().lines().count()
    }

    fn make(&self, name: &str) {
        std::fs::write(self.folder.join(name), "").unwrap();
    }

    async fn made(&self, name: &str) {
        while !self.folder.join(name).exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// This crate's stand-in for the command.
fn keeper() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples/keep_child")
}

fn tool(name: &str, description: &str) -> serde_json::Value {
    json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
}

#[tokio::test]
async fn a_secret_in_what_a_server_says_of_its_tools_is_shown_to_nobody_and_kept_nowhere() {
    let schema = json!({ "type": "object", "title": TOKEN, "properties": { TOKEN: { "default": TOKEN } } });
    let told = json!({ "name": "echo", "description": format!("It has {TOKEN}."), "inputSchema": schema });
    let named = "tok-1234567890".to_owned() + "-" + &hex("<abcdef>");
    let fake = Fake::new("secret", &json!([[told, tool(&hex(TOKEN), "its name has it"), tool(&named, "")]]));
    fake.approve().await;
    let info = fake.server.info("mcp-fake").await.unwrap();
    let names: Vec<_> = info.functions.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(names, ["echo", named.as_str()]);
    let echo = &info.functions[0];
    assert_eq!(echo.description, "It has [secret].");
    let cleaned =
        json!({ "type": "object", "title": "[secret]", "properties": { "[secret]": { "default": "[secret]" } } });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&echo.parameters).unwrap(), cleaned);
    let kept = fake.store.0.lock().unwrap().values().flatten().copied().collect::<Vec<_>>();
    let kept = String::from_utf8_lossy(&kept).into_owned();
    assert!(kept.contains("It has [secret]."), "{kept}");
    assert!(!kept.contains(TOKEN) && !kept.contains(&hex(TOKEN)), "{kept}");
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// A slow call used to end with its server as soon as a parallel one was made.
#[tokio::test]
async fn a_call_beside_a_slow_one_does_not_end_the_server_that_works_on_it() {
    let fake = Fake::new("slow", &json!([[tool("slow", ""), tool("echo", "")]]));
    let beside = async {
        fake.made("busy").await;
        let refused = fake.call("echo").await;
        fake.make("go");
        refused
    };
    let (slow, refused) = tokio::join!(fake.call("slow"), beside);
    assert!(matches!(&refused, Err(ToolError::Unavailable(_))), "it does one thing at a time: {refused:?}");
    assert_eq!(slow.unwrap().output, r#"{"said":"slow"}"#);
    assert_eq!(fake.call("echo").await.unwrap().output, r#"{"said":"echo"}"#);
    assert_eq!(fake.starts(), 1);
}

#[tokio::test]
async fn a_started_server_says_what_holds_it() {
    let fake = Fake::new("level", &json!([[tool("echo", "")]]));
    assert_eq!(fake.server.level(), None);
    fake.approve().await;
    assert_eq!(fake.server.level(), Some(Level::None));
    assert_eq!(fake.server.held_by().as_deref(), Some("none"));
}

#[tokio::test]
async fn pages_of_tools_are_followed_up_to_a_bound() {
    let fake = Fake::new("pages", &json!([[tool("one", "")], [], [tool("two", "")]]));
    assert_eq!(fake.call("two").await.unwrap().output, r#"{"said":"two"}"#);

    let endless = Fake::new("endless", &json!([[]]));
    endless.make("endless");
    check_too_many(&endless, "more than 64 pages of tools").await;

    let page = |from: usize, to: usize| (from..to).map(|at| tool(&format!("t{at}"), "")).collect::<Vec<_>>();
    let full = Fake::new("full", &json!([page(0, 200), page(200, 256)]));
    assert_eq!(full.call("t255").await.unwrap().output, r#"{"said":"t255"}"#);
    check_too_many(&Fake::new("over", &json!([page(0, 200), page(200, 257)])), "more than 256 tools").await;
}

#[tokio::test]
async fn what_a_server_says_of_its_tools_is_bounded_as_a_whole() {
    let page = |name: usize| json!([tool(&format!("t{name}"), &"x".repeat(1_000_000))]);
    let fits = Fake::given("large", &(0..16).map(page).collect(), 60_000);
    assert_eq!(fits.call("t15").await.unwrap().output, r#"{"said":"t15"}"#);
    // 16 MiB, of which a page has 1 000 000 and some bytes.
    check_too_many(&Fake::given("larger", &(0..17).map(page).collect(), 60_000), "more than 16777216 bytes of tools")
        .await;
}

/// It must not start a server again.
async fn check_too_many(fake: &Fake, expected: &str) {
    let said = fake.call("t0").await;
    assert!(matches!(&said, Err(ToolError::Failed(text)) if text.contains(expected)), "{said:?}");
    assert_eq!(fake.starts(), 1);
}
