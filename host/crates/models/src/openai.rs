//! Any endpoint that speaks `POST /v1/chat/completions`: OpenAI, most clouds, most local servers.
//!
//! Tool calls in a reply are only requests, never trusted; a claimed cost counts only when it is plausible.
//! [`crate::http_exchange`] enforces the bounds. This file never repairs JSON that a model wrote.

mod config;
mod reply;
mod request;

pub use config::{ImageDetail, OpenAiConfig, OutputTokensField, SchemaMode};

use crate::http_exchange::{ExchangeRequest, HttpExchange};
use crate::prefill::PrefillMode;
use crate::problem::Problem;
use crate::schema::Dialect;
use crate::tool_names::Names;
use crate::{Adaptations, ModelsError};
use longhaul_core::model::{Cost, Model, ModelError, ModelInfo, ModelReply, ModelRequest, ReplyListener, Usage};
use reply::OpenAiAssembly;
use request::Sending;
use serde_json::Value;
use std::sync::{Mutex, PoisonError};

/// Schema forms that one refusal may lead through.
const FORMS: u32 = 4;

/// A model behind such an endpoint.
pub struct OpenAi {
    config: OpenAiConfig,
    exchange: HttpExchange,
}

impl OpenAi {
    /// Prepares the model `name`; nothing is sent yet. `variable` reads the environment.
    ///
    /// # Errors
    /// [`ModelsError`] about the key, the address or another setting.
    pub fn new(
        name: &str,
        config: OpenAiConfig,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelsError> {
        request::check_settings(name, &config)?;
        let known = config.known(name)?;
        let exchange = HttpExchange::new(&config.connection(name, known), variable)?;
        Ok(Self { config, exchange })
    }

    /// Uses this process's adaptations.
    #[must_use]
    pub fn adapting(mut self, adaptations: &Adaptations) -> Self {
        self.exchange.adaptations = adaptations.clone();
        self
    }

    /// The rules for a schema, by the address.
    fn dialect(&self) -> Dialect {
        let host = self.exchange.endpoint.base.host_str().unwrap_or_default();
        if host.ends_with(".googleapis.com") {
            return Dialect::Gemini;
        }
        // A server on this machine runs an open model, which stops at a text's bound; a gateway to another provider
        // refuses rules that the provider does not accept.
        if self.exchange.endpoint.is_loopback() { Dialect::Vllm } else { Dialect::OpenAi }
    }
}

#[async_trait::async_trait]
impl Model for OpenAi {
    fn info(&self) -> ModelInfo {
        ModelInfo { id: format!("openai/{}", self.config.id), context_tokens_max: self.exchange.window_tokens() }
    }

    fn cost_most(&self, request: &ModelRequest) -> Usage {
        self.exchange.prices.most(request)
    }

    async fn ask(
        &self,
        request: &ModelRequest,
        heard: ReplyListener<'_>,
        cost: &dyn Cost,
    ) -> Result<ModelReply, ModelError> {
        let endpoint = &self.exchange.endpoint;
        self.exchange.find_window(&endpoint.bearer(), request).await;
        let sending = |adaptation| Sending::of(&self.config, endpoint, self.dialect(), adaptation, request);
        let sent = Mutex::new((sending(self.exchange.adaptation())?, Vec::new()));
        let adapt = |problem: &Problem, body: &Value| {
            let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
            // A simpler form of a schema may give the same body, so the next one is tried at once.
            for _ in 0..FORMS {
                let note = self.exchange.learn(&sent.0.adaptation, problem, body);
                let next = sending(self.exchange.adaptation()).ok()?;
                let is_new = next.adaptation != sent.0.adaptation;
                sent.0 = next;
                sent.1.extend(note);
                if sent.0.body != *body || !is_new {
                    break;
                }
            }
            Some(sent.0.body.clone())
        };
        let is_heard = request.prefill.is_none() || self.config.prefill != PrefillMode::Prompt;
        let opens = matches!(self.config.prefill, PrefillMode::Native | PrefillMode::Continue);
        let body = sent.lock().unwrap_or_else(PoisonError::into_inner).0.body.clone();
        let ask = ExchangeRequest {
            path: "chat/completions",
            headers: endpoint.bearer(),
            body,
            adapt: &adapt,
            request,
            opening: request.prefill.as_deref().filter(|_| opens),
            is_heard,
        };
        let names = Names::of(&request.tools);
        let begin = || OpenAiAssembly::new(endpoint.key.as_ref());
        let (assembly, headers) = self.exchange.complete(&ask, begin, heard, cost).await?;
        let mut reply = assembly.into_reply(request, &self.config, &names, &self.exchange.prices, &headers);
        let (sent, notes) = sent.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(lowered) = &sent.lowered {
            reply.text = lowered.raise(reply.text);
        }
        reply.notes = notes;
        if let Some(endpoint) = &mut reply.endpoint {
            endpoint.streamed = sent.body.get("stream").and_then(Value::as_bool).unwrap_or(false);
        }
        if !is_heard {
            heard(&reply.text);
        }
        Ok(reply)
    }
}

/// An empty reply, from an endpoint without a key.
pub(crate) fn fresh() -> OpenAiAssembly {
    OpenAiAssembly::new(None)
}

#[cfg(test)]
mod like_openai;
#[cfg(test)]
mod tests;
