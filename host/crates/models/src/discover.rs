//! Finds models that this machine could use, for `longhaul doctor`.
//!
//! Of keys, only the names of their variables are read and never a value. Of servers, only the well-known ports of
//! loopback are queried, without a key, and little is read.

use crate::http::{Endpoint, Reach, read_body};
use futures_util::future::join_all;
use reqwest::header::HeaderMap;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::timeout;

/// Variables that hold keys of providers.
pub const KEY_VARIABLES: [&str; 11] = [
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "OPENROUTER_API_KEY",
    "GEMINI_API_KEY",
    "MISTRAL_API_KEY",
    "GROQ_API_KEY",
    "DEEPSEEK_API_KEY",
    "TOGETHER_API_KEY",
    "FIREWORKS_API_KEY",
    "XAI_API_KEY",
    "LITELLM_API_KEY",
];

/// Default ports of model servers.
pub const PORTS: [(&str, u16); 4] = [("ollama", 11434), ("llama-server", 8080), ("lm studio", 1234), ("vllm", 8000)];

/// Longest time for a port to answer. A server on this machine needs a few milliseconds.
const ANSWER: Duration = Duration::from_millis(300);

/// Longest time for an endpoint to list its models. Without an answer a default applies.
const LIST: Duration = Duration::from_secs(5);

/// Bytes of the list that are read; OpenRouter's has about a million.
const LIST_BYTES_MAX: usize = 8 << 20;

/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// Names of models that are kept, and their length in characters.
const NAMES_MAX: usize = 20;
const NAME_CHARS_MAX: usize = 80;

/// The result of a discovery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discovery {
    /// Names of variables that are not empty.
    pub keys: Vec<String>,
    /// Servers that answered.
    pub servers: Vec<FoundServer>,
}

/// A server on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundServer {
    /// The usual server on its port; it may be another.
    pub usually: String,
    /// Value for [`crate::openai::OpenAiConfig::base_url`].
    pub base_url: String,
    /// The models that it lists, at most 20.
    pub models: Vec<String>,
}

/// Looks for keys in the environment and for servers on `ports`, usually [`PORTS`]. Takes at most about 300 ms.
pub async fn discover(variable: &dyn Fn(&str) -> Option<String>, ports: &[(&str, u16)]) -> Discovery {
    let holds = |name: &&str| variable(name).is_some_and(|value| !value.trim().is_empty());
    let keys = KEY_VARIABLES.iter().filter(|name| holds(name)).map(|name| (*name).to_owned()).collect();
    let asked = ports.iter().map(|(usually, port)| ask(usually, *port));
    Discovery { keys, servers: join_all(asked).await.into_iter().flatten().collect() }
}

async fn ask(usually: &str, port: u16) -> Option<FoundServer> {
    let base_url = format!("http://127.0.0.1:{port}/v1");
    let models = timeout(ANSWER, models(&base_url)).await.ok()??;
    Some(FoundServer { usually: usually.to_owned(), base_url, models })
}

/// None: no server, or not a model server.
async fn models(base_url: &str) -> Option<Vec<String>> {
    let reach = Reach { model: "", base_url, key: None, allow_plain_http: false, connect: ANSWER, idle: ANSWER };
    let endpoint = Endpoint::new(reach).ok()?;
    let mut response = endpoint.client.get(endpoint.url("models")).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let (body, _) = read_body(&mut response, ANSWER_BYTES_MAX, ANSWER).await.ok()?;
    let listed: Listed = serde_json::from_slice(&body).ok()?;
    Some(listed.data.unwrap_or_default().into_iter().take(NAMES_MAX).map(|model| calm(&model.id)).collect())
}

/// The window of a model, in tokens, as its endpoint lists it.
pub(crate) async fn window(endpoint: &Endpoint, headers: HeaderMap, id: &str) -> Option<u32> {
    let asked = endpoint.client.get(endpoint.url("models")).headers(headers).send();
    let mut response = timeout(LIST, asked).await.ok()?.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let (body, _) = read_body(&mut response, LIST_BYTES_MAX, LIST).await.ok()?;
    let listed: Listed = serde_json::from_slice(&body).ok()?;
    listed.data?.iter().find(|model| model.id == id)?.window_tokens()
}

#[derive(Deserialize)]
struct Listed {
    // Ollama without a model returns null.
    data: Option<Vec<ListedModel>>,
}

#[derive(Deserialize)]
struct ListedModel {
    id: String,
    /// vLLM and SGLang.
    #[serde(default)]
    max_model_len: Option<u64>,
    /// OpenRouter and Together.
    #[serde(default)]
    context_length: Option<u64>,
    /// Groq.
    #[serde(default)]
    context_window: Option<u64>,
    /// Mistral and LM Studio.
    #[serde(default)]
    max_context_length: Option<u64>,
    /// Anthropic.
    #[serde(default)]
    max_input_tokens: Option<u64>,
}

impl ListedModel {
    fn window_tokens(&self) -> Option<u32> {
        let windows = [
            self.max_model_len,
            self.context_length,
            self.context_window,
            self.max_context_length,
            self.max_input_tokens,
        ];
        let window = windows.into_iter().flatten().find(|window| *window > 0)?;
        Some(u32::try_from(window).unwrap_or(u32::MAX))
    }
}

/// The name is the server's and ends up on a terminal.
fn calm(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_server::{FakeServer, answer};

    async fn check(body: &str) -> Vec<FoundServer> {
        let server = FakeServer::start(vec![answer(200, "Content-Type: application/json\r\n", body)]).await;
        discover(&|_| None, &[("ollama", server.port)]).await.servers
    }

    #[tokio::test]
    async fn keys_are_found_by_name_and_never_shown() {
        let variable = |name: &str| match name {
            "OPENAI_API_KEY" => Some("sk-hunter2".to_owned()),
            "GROQ_API_KEY" => Some("  ".to_owned()),
            _ => None,
        };
        let found = discover(&variable, &[]).await;
        assert_eq!(found.keys, ["OPENAI_API_KEY"]);
        assert!(!format!("{found:?}").contains("hunter2"));
    }

    #[tokio::test]
    async fn a_server_is_found_with_its_models() {
        let found = check("{\"object\":\"list\",\"data\":[{\"id\":\"qwen3:8b\"},{\"id\":\"evil\\u001b[31m\"}]}").await;
        assert_eq!(found[0].models, ["qwen3:8b", "evil[31m"]);
        assert!(found[0].base_url.starts_with("http://127.0.0.1:"));
    }

    #[tokio::test]
    async fn what_is_no_server_of_models_is_left_out() {
        assert_eq!(check("<html>hello</html>").await, []);
        assert_eq!(check("{\"data\":7}").await, []);
        let silent = FakeServer::start(vec![vec![]]).await;
        let closed = FakeServer::start(vec![]).await.port;
        assert_eq!(discover(&|_| None, &[("vllm", silent.port), ("vllm", closed)]).await, Discovery::default());
    }
}
