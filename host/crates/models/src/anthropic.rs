//! Any endpoint that speaks `POST /v1/messages`: Anthropic, and gateways with its format.
//!
//! The model's thoughts come with a signature and are returned unchanged, to the same model only. Tool calls in a reply
//! are only requests, never trusted. [`crate::http_exchange`] enforces the bounds. This file never repairs JSON that a
//! model wrote, and sends no seed: the protocol has none.

mod config;
mod reply;
mod request;

pub use config::{AnthropicConfig, AnthropicSchema};

use crate::http::Endpoint;
use crate::http_exchange::{ExchangeRequest, HttpExchange};
use crate::prefill::PrefillMode;
use crate::problem::Problem;
use crate::tool_names::Names;
use crate::{Adaptations, ModelsError};
use longhaul_core::model::{Cost, Model, ModelError, ModelInfo, ModelReply, ModelRequest, ReplyListener, Usage};
use reply::AnthropicAssembly;
use request::Sending;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::sync::{Mutex, PoisonError};

/// A model behind such an endpoint.
pub struct Anthropic {
    config: AnthropicConfig,
    headers: HeaderMap,
    exchange: HttpExchange,
}

impl Anthropic {
    /// Prepares the model `name`; nothing is sent yet. `variable` reads the environment.
    ///
    /// # Errors
    /// [`ModelsError`] about the key, the address or another setting.
    pub fn new(
        name: &str,
        config: AnthropicConfig,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelsError> {
        request::check_settings(name, &config)?;
        let known = config.known(name)?;
        let exchange = HttpExchange::new(&config.connection(name, known), variable)?;
        let headers = headers(name, &config, &exchange.endpoint)?;
        Ok(Self { config, headers, exchange })
    }

    /// Uses this process's adaptations.
    #[must_use]
    pub fn adapting(mut self, adaptations: &Adaptations) -> Self {
        self.exchange.adaptations = adaptations.clone();
        self
    }
}

fn headers(name: &str, config: &AnthropicConfig, endpoint: &Endpoint) -> Result<HeaderMap, ModelsError> {
    let mut headers = match config.bearer {
        true => endpoint.bearer(),
        false => endpoint.key_in(HeaderName::from_static("x-api-key"), str::to_owned),
    };
    let mut set = |header: &'static str, field, value: &str| {
        let remedy = "it becomes a header: write letters, digits, `-` and `,`".to_owned();
        let wrong = |_| ModelsError::Setting { model: name.to_owned(), field, value: value.to_owned(), remedy };
        headers.insert(header, HeaderValue::from_str(value).map_err(wrong)?);
        Ok(())
    };
    set("anthropic-version", "version", &config.version)?;
    if !config.beta.is_empty() {
        set("anthropic-beta", "beta", &config.beta.join(","))?;
    }
    Ok(headers)
}

#[async_trait::async_trait]
impl Model for Anthropic {
    fn info(&self) -> ModelInfo {
        ModelInfo { id: format!("anthropic/{}", self.config.id), context_tokens_max: self.exchange.window_tokens() }
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
        self.exchange.find_window(&self.headers, request).await;
        let sending = |adaptation| Sending::of(&self.config, adaptation, request);
        let sent = Mutex::new((sending(self.exchange.adaptation())?, Vec::new()));
        let adapt = |problem: &Problem, body: &Value| {
            let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
            let note = self.exchange.learn(&sent.0.adaptation, problem, body);
            sent.0 = sending(self.exchange.adaptation()).ok()?;
            sent.1.extend(note);
            Some(sent.0.body.clone())
        };
        let body = sent.lock().unwrap_or_else(PoisonError::into_inner).0.body.clone();
        let is_native = self.config.prefill == PrefillMode::Native;
        let is_heard = request.prefill.is_none() || is_native;
        let ask = ExchangeRequest {
            path: "messages",
            headers: self.headers.clone(),
            body,
            adapt: &adapt,
            request,
            opening: request.prefill.as_deref().filter(|_| is_native),
            is_heard,
        };
        let begin = || AnthropicAssembly::new(self.exchange.endpoint.key.as_ref());
        let (assembly, headers) = self.exchange.complete(&ask, begin, heard, cost).await?;
        let names = Names::of(&request.tools);
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
pub(crate) fn fresh() -> AnthropicAssembly {
    AnthropicAssembly::new(None)
}

#[cfg(test)]
mod tests;
