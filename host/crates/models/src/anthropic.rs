//! Any endpoint that speaks `POST /v1/messages`: Anthropic, and gateways with its format.
//!
//! What the model thought comes with a signature and goes back as it came, to the same model only. Tools that
//! it names are only asked for, never trusted. What is bounded on the way is [`crate::wire`]'s affair. This
//! file never repairs JSON that a model wrote, and sends no seed: the protocol has none.

mod config;
mod reply;
mod request;

pub use config::{AnthropicConfig, AnthropicSchema};

use crate::http::Endpoint;
use crate::prefill::PrefillMode;
use crate::problem::Problem;
use crate::tool_names::Names;
use crate::wire::{Ask, Wire};
use crate::{Adaptations, ModelsError};
use longhaul_core::model::{Cost, Heard, Model, ModelError, ModelInfo, ModelReply, ModelRequest, Usage};
use reply::AnthropicAssembly;
use request::Sending;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::sync::{Mutex, PoisonError};

/// A model behind such an endpoint.
pub struct Anthropic {
    config: AnthropicConfig,
    headers: HeaderMap,
    wire: Wire,
}

impl Anthropic {
    /// Prepares the model `name`; nothing is sent yet. `variable` looks into the environment.
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
        let wire = Wire::new(&config.connection(name, known), variable)?;
        let headers = headers(name, &config, &wire.endpoint)?;
        Ok(Self { config, headers, wire })
    }

    /// With what this process has learned of providers.
    #[must_use]
    pub fn adapting(mut self, adaptations: &Adaptations) -> Self {
        self.wire.adaptations = adaptations.clone();
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
        ModelInfo { id: format!("anthropic/{}", self.config.id), context_tokens_max: self.wire.window_tokens() }
    }

    fn cost_most(&self, request: &ModelRequest) -> Usage {
        self.wire.prices.most(request)
    }

    async fn ask(&self, request: &ModelRequest, heard: Heard<'_>, cost: &dyn Cost) -> Result<ModelReply, ModelError> {
        self.wire.find_window(&self.headers, request).await;
        let sending = |adaptation| Sending::of(&self.config, adaptation, request);
        let sent = Mutex::new((sending(self.wire.adaptation())?, Vec::new()));
        let adapt = |problem: &Problem, body: &Value| {
            let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
            let note = self.wire.learn(&sent.0.adaptation, problem, body);
            sent.0 = sending(self.wire.adaptation()).ok()?;
            sent.1.extend(note);
            Some(sent.0.body.clone())
        };
        let body = sent.lock().unwrap_or_else(PoisonError::into_inner).0.body.clone();
        let is_native = self.config.prefill == PrefillMode::Native;
        let is_heard = request.prefill.is_none() || is_native;
        let ask = Ask {
            path: "messages",
            headers: self.headers.clone(),
            body,
            adapt: &adapt,
            request,
            opening: request.prefill.as_deref().filter(|_| is_native),
            is_heard,
        };
        let begin = || AnthropicAssembly::new(self.wire.endpoint.key.as_ref());
        let (assembly, headers) = self.wire.complete(&ask, begin, heard, cost).await?;
        let names = Names::of(&request.tools);
        let mut reply = assembly.into_reply(request, &self.config, &names, &self.wire.prices, &headers);
        let (sent, notes) = sent.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(lowered) = &sent.lowered {
            reply.text = lowered.raise(reply.text);
        }
        reply.notes = notes;
        if !is_heard {
            heard(&reply.text);
        }
        Ok(reply)
    }
}

/// A reply of which nothing came yet, from an endpoint without a key.
pub(crate) fn fresh() -> AnthropicAssembly {
    AnthropicAssembly::new(None)
}

#[cfg(test)]
mod tests;
