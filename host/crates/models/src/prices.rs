//! Prices of tokens. A cost that the provider or a gateway states has precedence over a price; neither is queried. A
//! price is the operator's, or else that of the table in the program, or else unknown: never 0.

pub(crate) mod table;

use crate::ModelsError;
use longhaul_core::model::{ModelRequest, Usage};
use reqwest::header::HeaderMap;
use serde_json::Value;

/// A higher cost, in US dollars, is implausible for one reply and ignored.
const COST_USD_MAX: f64 = 10_000.0;

/// Headers in which gateways state the cost of a reply, in US dollars.
const COST_HEADERS: [&str; 3] = ["x-litellm-response-cost", "x-cost-usd", "x-helicone-cost-usd"];

/// Prices of tokens, in millionths of a dollar each, which is dollars a million.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rates {
    pub(crate) input: f64,
    pub(crate) cached: f64,
    pub(crate) written: f64,
    pub(crate) output: f64,
}

/// Rates for requests whose input has more than this number of tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LongPrompts {
    pub(crate) above_tokens: u32,
    pub(crate) rates: Rates,
}

/// The prices of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Prices {
    /// Known rates.
    Known { rates: Rates, long: Option<LongPrompts> },
    /// Unknown.
    Unknown,
}

/// The operator's prices, in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PriceSettings {
    pub(crate) input: Option<f64>,
    pub(crate) cached: Option<f64>,
    pub(crate) written: Option<f64>,
    pub(crate) output: Option<f64>,
}

impl PriceSettings {
    /// The prices of a model. `cached_share` and `written_share` are the provider's prices of cached tokens, as a share
    /// of the price of others, if nothing else sets them.
    pub(crate) fn over(
        self,
        model: &str,
        known: Prices,
        cached_share: f64,
        written_share: f64,
    ) -> Result<Prices, ModelsError> {
        let fields = [
            ("price_input_usd_per_million", self.input),
            ("price_cached_usd_per_million", self.cached),
            ("price_cache_written_usd_per_million", self.written),
            ("price_output_usd_per_million", self.output),
        ];
        let wrong = |field, value: String, remedy: &str| {
            Err(ModelsError::Setting { model: model.to_owned(), field, value, remedy: remedy.to_owned() })
        };
        for (field, price) in fields {
            if let Some(price) = price.filter(|price| !(0.0..=1e9).contains(price)) {
                return wrong(field, price.to_string(), "give dollars for a million tokens, 0 or more");
            }
        }
        let known_rates = if let Prices::Known { rates, .. } = known { Some(rates) } else { None };
        let input = self.input.or(known_rates.map(|rates| rates.input));
        let output = self.output.or(known_rates.map(|rates| rates.output));
        match (input, output) {
            _ if fields.iter().all(|(_, price)| price.is_none()) => Ok(known),
            (Some(input), Some(output)) => {
                // Another source's cache price belongs to its own input price.
                let share = |set: Option<f64>, known: Option<f64>, share: f64| match self.input {
                    None => set.or(known).unwrap_or(input * share),
                    Some(_) => set.unwrap_or(input * share),
                };
                let cached = share(self.cached, known_rates.map(|rates| rates.cached), cached_share);
                let written = share(self.written, known_rates.map(|rates| rates.written), written_share);
                Ok(Prices::Known { rates: Rates { input, cached, written, output }, long: None })
            }
            (None, _) => wrong("price_input_usd_per_million", "not set".to_owned(), "give it beside the other prices"),
            (_, None) => wrong("price_output_usd_per_million", "not set".to_owned(), "give it beside the other prices"),
        }
    }
}

impl Prices {
    /// True when a cap on money can be enforced with them.
    pub(crate) fn is_known(&self) -> bool {
        matches!(self, Self::Known { .. })
    }

    /// Usage, with its cost.
    pub(crate) fn charged(&self, mut usage: Usage, headers: &HeaderMap, stated: Option<&Value>) -> Usage {
        usage.cached_tokens = usage.cached_tokens.min(usage.input_tokens);
        usage.cache_written_tokens = usage.cache_written_tokens.min(usage.input_tokens - usage.cached_tokens);
        usage.reasoning_tokens = usage.reasoning_tokens.min(usage.output_tokens);
        let stated_usd = cost_in(headers).or_else(|| believed(stated?.get("cost")?.as_f64()?));
        let cost = stated_usd.map(|usd| usd * 1e6).or_else(|| self.cost(usage));
        Usage { cost_microdollars: cost.unwrap_or(0.0), cost_unknown: cost.is_none(), ..usage }
    }

    /// The highest expected usage and cost of a request: the longest reply, and the highest input price.
    pub(crate) fn most(&self, request: &ModelRequest) -> Usage {
        let most = Usage {
            input_tokens: estimate(request.tokens_most()),
            output_tokens: request.output_tokens_max,
            ..Usage::default()
        };
        // Any part may be written to the provider's cache, for which some charge more.
        let dearest = |rates: Rates| Rates { input: rates.input.max(rates.cached).max(rates.written), ..rates };
        let dearest = match *self {
            Self::Known { rates, long } => {
                let long = long.map(|long| LongPrompts { rates: dearest(long.rates), ..long });
                Self::Known { rates: dearest(rates), long }
            }
            Self::Unknown => Self::Unknown,
        };
        let cost = dearest.cost(most);
        Usage { cost_microdollars: cost.unwrap_or(0.0), cost_unknown: cost.is_none(), ..most }
    }

    fn cost(&self, usage: Usage) -> Option<f64> {
        let Self::Known { rates, long } = *self else { return None };
        let long = long.filter(|long| usage.input_tokens > long.above_tokens);
        let rates = long.map_or(rates, |long| long.rates);
        let fresh = usage.input_tokens - usage.cached_tokens - usage.cache_written_tokens;
        Some(
            f64::from(fresh) * rates.input
                + f64::from(usage.cached_tokens) * rates.cached
                + f64::from(usage.cache_written_tokens) * rates.written
                + f64::from(usage.output_tokens) * rates.output,
        )
    }
}

/// A count in a provider's usage object; an invalid number is none.
pub(crate) fn count(stated: Option<&Value>, path: &str) -> Option<u32> {
    let number = stated?.pointer(path)?;
    let number = number.as_u64().or_else(|| number.as_f64().map(whole))?;
    Some(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Saturates at the maximum of a count.
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

/// Gateways write 0 before they know the cost of a stream, so 0 is ignored.
fn believed(usd: f64) -> Option<f64> {
    (usd > 0.0 && usd <= COST_USD_MAX).then_some(usd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::model::ReplyFormat;

    fn request() -> ModelRequest {
        ModelRequest {
            model: "m".into(),
            system: "word ".repeat(300),
            messages: Vec::new(),
            tools: Vec::new(),
            format: ReplyFormat::Text,
            prefill: None,
            stop: Vec::new(),
            output_tokens_max: 10,
            temperature: None,
            seed: None,
        }
    }

    #[test]
    fn a_request_holds_what_it_costs_to_write_it_to_a_cache() {
        let rates = Rates { input: 4.0, cached: 0.4, written: 5.0, output: 0.0 };
        let most = Prices::Known { rates, long: None }.most(&request());
        assert!(most.input_tokens > 300 && most.cost_microdollars >= f64::from(most.input_tokens) * 5.0, "{most:?}");
    }

    #[test]
    fn a_cost_without_a_price_is_unknown_until_somebody_states_it() {
        let usage = Usage { input_tokens: 10, ..Usage::default() };
        assert_eq!(Prices::Unknown.most(&request()).cost(), None);
        assert_eq!(Prices::Unknown.charged(usage, &HeaderMap::new(), None).cost(), None);
        let stated = serde_json::json!({ "cost": 0.5 });
        assert_eq!(Prices::Unknown.charged(usage, &HeaderMap::new(), Some(&stated)).cost(), Some(500_000.0));
        let free = PriceSettings { input: Some(0.0), output: Some(0.0), ..PriceSettings::default() };
        let free = free.over("m", Prices::Unknown, 1.0, 1.0).unwrap();
        assert_eq!(free.charged(usage, &HeaderMap::new(), None).cost(), Some(0.0));
    }

    #[test]
    fn a_long_prompt_costs_what_long_prompts_cost() {
        let rates = Rates { input: 1.0, cached: 0.0, written: 0.0, output: 0.0 };
        let long = LongPrompts { above_tokens: 10, rates: Rates { input: 2.0, ..rates } };
        let prices = Prices::Known { rates, long: Some(long) };
        let cost = |input_tokens| prices.cost(Usage { input_tokens, ..Usage::default() });
        assert_eq!((cost(10), cost(11)), (Some(10.0), Some(22.0)));
    }

    #[test]
    fn the_operators_prices_go_before_the_tables() {
        let rates = Rates { input: 1.0, cached: 0.1, written: 1.25, output: 5.0 };
        let known = Prices::Known { rates, long: None };
        let over = |settings: PriceSettings| match settings.over("m", known, 0.5, 1.0).unwrap() {
            Prices::Known { rates, .. } => rates,
            Prices::Unknown => panic!("unknown"),
        };
        assert_eq!(over(PriceSettings::default()), rates);
        assert_eq!(
            over(PriceSettings { output: Some(9.0), ..PriceSettings::default() }),
            Rates { output: 9.0, ..rates }
        );
        let dearer = over(PriceSettings { input: Some(4.0), ..PriceSettings::default() });
        assert_eq!(dearer, Rates { input: 4.0, cached: 2.0, written: 4.0, output: 5.0 });
        let half = PriceSettings { output: Some(1.0), ..PriceSettings::default() };
        let error = half.over("m", Prices::Unknown, 1.0, 1.0).unwrap_err().to_string();
        assert!(error.contains("`[models.m] price_input_usd_per_million` is `not set`"), "{error}");
    }
}
