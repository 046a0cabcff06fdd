//! Prices and context windows of common models, as of the table's date: see its first line.
//!
//! An endpoint is identified by its host: a model of the same name at another host may have another price, so the table
//! does not apply there. `cargo xtask prices` generates the table; it is never written by hand.

use super::{LongPrompts, Prices, Rates};

const TABLE: &str = include_str!("table.tsv");

/// The table's entry of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The window, in tokens.
    pub(crate) window_tokens: Option<u32>,
    /// Its prices.
    pub(crate) prices: Prices,
}

/// The entry of the model `id` at `host`. If the table has no price for the cache, it is `cached_share` and
/// `written_share` of the price of other tokens.
pub(crate) fn find(host: &str, id: &str, cached_share: f64, written_share: f64) -> Option<Entry> {
    let id = id.to_ascii_lowercase();
    // The longest pattern is the most specific: `gpt-5-nano-*` has precedence over `gpt-5*`.
    let found = rows().filter(|row| is_at(row[0], host)).filter_map(|row| Some((best(row[1], &id)?, row)));
    let (_, row) = found.max_by_key(|(length, _)| *length)?;
    let price = |at: usize| row.get(at).and_then(|text| Price::read(text));
    let (input, output) = (price(3)?, price(6)?);
    let rates = |of: fn(&Price) -> f64| {
        let input = of(&input);
        let share = |at, share: f64| price(at).map_or(input * share, |price| of(&price));
        Rates { input, cached: share(4, cached_share), written: share(5, written_share), output: of(&output) }
    };
    let long = input.above_tokens.map(|above_tokens| LongPrompts { above_tokens, rates: rates(|price| price.long) });
    let prices = Prices::Known { rates: rates(|price| price.base), long };
    Some(Entry { window_tokens: row[2].parse().ok(), prices })
}

/// As [`find`], for the endpoint at an address.
pub(crate) fn find_at(base_url: &str, id: &str, cached_share: f64, written_share: f64) -> Option<Entry> {
    let url = reqwest::Url::parse(base_url).ok()?;
    find(url.host_str()?, id, cached_share, written_share)
}

fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    let rows = TABLE.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect::<Vec<_>>());
    rows.filter(|row| row.len() == 7)
}

/// A dot at the start stands for any name before it.
fn is_at(known: &str, host: &str) -> bool {
    known == host || known.starts_with('.') && host.ends_with(known)
}

/// The length of the longest pattern that matches the id.
fn best(patterns: &str, id: &str) -> Option<usize> {
    patterns.split(' ').filter(|pattern| fits(pattern, id)).map(str::len).max()
}

/// `*` stands for anything, at either end; `#` for a digit.
fn fits(pattern: &str, id: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(rest), Some(_)) => id.contains(rest.trim_end_matches('*')),
        (Some(rest), None) => id.ends_with(rest),
        (None, Some(rest)) => id.starts_with(rest),
        (None, None) => {
            let same = |(a, b): (char, char)| a == b || a == '#' && b.is_ascii_digit();
            pattern.chars().count() == id.chars().count() && pattern.chars().zip(id.chars()).all(same)
        }
    }
}

/// A price, and that of long prompts, such as `2.5>272000:5`.
struct Price {
    base: f64,
    above_tokens: Option<u32>,
    long: f64,
}

impl Price {
    fn read(text: &str) -> Option<Self> {
        let (base, long) = text.split_once('>').map_or((text, None), |(base, long)| (base, long.split_once(':')));
        let base = base.parse().ok()?;
        let (above_tokens, long) = match long {
            Some((above, price)) => (Some(above.parse().ok()?), price.parse().ok()?),
            None => (None, base),
        };
        Some(Self { base, above_tokens, long })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input_price(host: &str, id: &str) -> Option<f64> {
        match find(host, id, 1.0, 1.0)?.prices {
            Prices::Known { rates, .. } => Some(rates.input),
            Prices::Unknown => None,
        }
    }

    #[test]
    fn common_models_are_known_at_their_own_host_and_nowhere_else() {
        assert_eq!(input_price("api.openai.com", "gpt-5-mini"), Some(0.25));
        assert_eq!(input_price("api.openai.com", "GPT-5-mini-2025-08-07"), Some(0.25));
        assert_eq!(input_price("api.anthropic.com", "claude-sonnet-4-5-20250929"), Some(3.0));
        assert_eq!(input_price("api.anthropic.com", "claude-sonnet-5-5-20260901"), Some(2.0));
        assert!(input_price("me.openai.azure.com", "o3-mini").is_some());
        for (host, id) in [
            ("127.0.0.1", "gpt-5-mini"),
            ("api.openai.com.evil.net", "gpt-5-mini"),
            ("api.openai.com", "gpt-5-minimal"),
            ("api.openai.com", "llama3"),
        ] {
            assert_eq!(input_price(host, id), None, "{host} {id}");
        }
    }

    #[test]
    fn a_window_and_the_price_of_long_prompts_come_with_it() {
        let entry = find("api.openai.com", "gpt-5.4", 1.0, 1.0).unwrap();
        assert_eq!(entry.window_tokens, Some(1_050_000));
        let Prices::Known { long: Some(long), .. } = entry.prices else { panic!("{entry:?}") };
        assert_eq!((long.above_tokens, long.rates.input, long.rates.output), (272_000, 5.0, 22.5));
    }

    /// A refresh that breaks the form, or loses most of it, fails here and not at a user's.
    #[test]
    fn the_whole_table_can_be_read_and_says_of_when_it_is() {
        let first = TABLE.lines().next().unwrap();
        assert!(first.starts_with("# Made by `cargo xtask prices` from genai-prices "), "{first}");
        let date = first.trim_end_matches('.').rsplit(' ').next().unwrap();
        assert!(date.len() == 10 && date.split('-').all(|part| part.parse::<u16>().is_ok()), "{first}");
        let mut count = 0;
        for row in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<_> = row.split('\t').collect();
            assert_eq!(fields.len(), 7, "{row}");
            let is_price = |text: &&str| Price::read(text).is_some_and(|price| (0.0..=10_000.0).contains(&price.base));
            assert!([fields[3], fields[6]].iter().all(is_price), "{row}");
            count += 1;
        }
        assert!(count > 500, "only {count} models");
    }
}
