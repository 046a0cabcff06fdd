//! What tokens cost. A cost that the provider or a gateway states goes before a price; neither is asked for.

use crate::ModelsError;
use longhaul_core::model::{ModelRequest, Usage};
use reqwest::header::HeaderMap;
use serde_json::Value;

/// A cost above this, in US dollars, is no cost of one reply and is not believed.
const COST_USD_MAX: f64 = 10_000.0;

/// Where gateways state what a reply cost, in US dollars.
const COST_HEADERS: [&str; 3] = ["x-litellm-response-cost", "x-cost-usd", "x-helicone-cost-usd"];

/// What tokens cost, in millionths of a dollar each, which is dollars a million.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Prices {
    input: f64,
    cached: f64,
    written: f64,
    output: f64,
}

impl Prices {
    /// Of the settings of a model. What is not set for cached tokens is as for others.
    pub(crate) fn of(
        model: &str,
        input: f64,
        cached: Option<f64>,
        written: Option<f64>,
        output: f64,
    ) -> Result<Self, ModelsError> {
        let fields = [
            ("price_input_usd_per_million", input),
            ("price_cached_usd_per_million", cached.unwrap_or(input)),
            ("price_cache_written_usd_per_million", written.unwrap_or(input)),
            ("price_output_usd_per_million", output),
        ];
        for (field, price) in fields {
            if !(0.0..=1e9).contains(&price) {
                let remedy = "give dollars for a million tokens, 0 or more".to_owned();
                return Err(ModelsError::Setting { model: model.to_owned(), field, value: price.to_string(), remedy });
            }
        }
        let [(_, input), (_, cached), (_, written), (_, output)] = fields;
        Ok(Self { input, cached, written, output })
    }

    /// What was used, with its cost.
    pub(crate) fn charged(&self, mut usage: Usage, headers: &HeaderMap, stated: Option<&Value>) -> Usage {
        usage.cached_tokens = usage.cached_tokens.min(usage.input_tokens);
        usage.cache_written_tokens = usage.cache_written_tokens.min(usage.input_tokens - usage.cached_tokens);
        usage.reasoning_tokens = usage.reasoning_tokens.min(usage.output_tokens);
        let stated_usd = cost_in(headers).or_else(|| believed(stated?.get("cost")?.as_f64()?));
        usage.cost_microdollars = stated_usd.map_or_else(|| self.cost(usage), |usd| usd * 1e6);
        usage
    }

    /// The most that a request is expected to use and to cost: the longest reply, and the dearest way to read it.
    pub(crate) fn most(&self, request: &ModelRequest) -> Usage {
        let mut most = Usage {
            input_tokens: estimate(request.tokens_most()),
            output_tokens: request.output_tokens_max,
            ..Usage::default()
        };
        // Anything of it may be written to the provider's cache, which some charge more for.
        let dearest = Self { input: self.input.max(self.cached).max(self.written), ..*self };
        most.cost_microdollars = dearest.cost(most);
        most
    }

    fn cost(&self, usage: Usage) -> f64 {
        let fresh = usage.input_tokens - usage.cached_tokens - usage.cache_written_tokens;
        f64::from(fresh) * self.input
            + f64::from(usage.cached_tokens) * self.cached
            + f64::from(usage.cache_written_tokens) * self.written
            + f64::from(usage.output_tokens) * self.output
    }
}

/// A count in what a provider states; one that is no number is none.
pub(crate) fn count(stated: Option<&Value>, path: &str) -> Option<u32> {
    let number = stated?.pointer(path)?;
    let number = number.as_u64().or_else(|| number.as_f64().map(whole))?;
    Some(u32::try_from(number).unwrap_or(u32::MAX))
}

/// As a count, which ends where counts do.
pub(crate) fn estimate(tokens: u64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what a count wants"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

fn cost_in(headers: &HeaderMap) -> Option<f64> {
    let stated = |name| headers.get(name)?.to_str().ok()?.trim().parse().ok().and_then(believed);
    COST_HEADERS.into_iter().find_map(stated)
}

/// Gateways write 0 before they know the cost of a stream, so 0 says nothing.
fn believed(usd: f64) -> Option<f64> {
    (usd > 0.0 && usd <= COST_USD_MAX).then_some(usd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::model::ReplyFormat;

    #[test]
    fn a_request_holds_what_it_costs_to_write_it_to_a_cache() {
        let prices = Prices::of("m", 4.0, Some(0.4), Some(5.0), 0.0).expect("prices");
        let request = ModelRequest {
            model: "m".into(),
            system: "word ".repeat(300),
            messages: Vec::new(),
            tools: Vec::new(),
            format: ReplyFormat::Text,
            prefill: None,
            stop: Vec::new(),
            output_tokens_max: 10,
            temperature: 0.0,
            seed: None,
        };
        let most = prices.most(&request);
        assert!(most.input_tokens > 300 && most.cost_microdollars >= f64::from(most.input_tokens) * 5.0, "{most:?}");
    }
}
