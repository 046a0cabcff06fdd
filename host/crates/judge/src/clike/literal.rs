//! Literals of source, and other values near them of the same type.
//!
//! Refuses literals that it cannot change within their type: numbers that are not decimal, strings with escapes.

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};

/// A number, a string or a truth value that can be changed within its type.
pub(crate) fn is_literal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = digits.starts_with(|char: char| char.is_ascii_digit())
        && !digits.starts_with("0x")
        && !digits.starts_with("0b")
        && !digits.starts_with("0o")
        && digits.chars().all(|char| char.is_ascii_alphanumeric() || char == '_' || char == '.');
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let is_string = inner.is_some_and(|inner| !inner.contains(['"', '\\']));
    is_number || is_string || text == "true" || text == "false"
}

/// The maximum of each type of whole numbers.
const MOST: [u64; 8] = [
    i8::MAX as u64,
    u8::MAX as u64,
    i16::MAX as u64,
    u16::MAX as u64,
    i32::MAX as u64,
    u32::MAX as u64,
    i64::MAX as u64,
    u64::MAX,
];

/// Texts of other, near values.
pub(crate) fn near(literal: &str, count: usize, random: &mut StdRng) -> Vec<String> {
    match literal {
        "true" => return vec!["false".to_owned()],
        "false" => return vec!["true".to_owned()],
        _ => {}
    }
    if let Some(inner) = literal.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return near_texts(inner, count, random).into_iter().map(|text| format!("\"{text}\"")).collect();
    }
    let (sign, digits) = literal.strip_prefix('-').map_or(("", literal), |digits| ("-", digits));
    let end = digits.find(|char: char| !char.is_ascii_digit() && char != '_').unwrap_or(digits.len());
    let Ok(value) = digits[..end].replace('_', "").parse::<u64>() else { return Vec::new() };
    // Within the smallest type that the value may have, and on both sides of it if there is space.
    let below = value.min(random.random_range(0..=4));
    let above = MOST.iter().find_map(|most| most.checked_sub(value)).unwrap_or(0).min(5);
    let mut values: Vec<u64> = (value - below..=value + above).filter(|other| *other != value).collect();
    if values.is_empty() {
        values.push(value - 1);
    }
    values.shuffle(random);
    values.truncate(count);
    values.into_iter().map(|other| format!("{sign}{other}{}", &digits[end..])).collect()
}

/// A walk of single letters, with the true text at any place.
fn near_texts(text: &str, count: usize, random: &mut StdRng) -> Vec<String> {
    let before = random.random_range(0..=count);
    let mut found: Vec<String> = Vec::new();
    for steps in [before, count - before] {
        let mut at = text.to_owned();
        for _ in 0..steps {
            let places: Vec<(usize, char)> =
                at.char_indices().filter(|(_, char)| char.is_ascii_alphanumeric()).collect();
            let place = places.choose(random).copied();
            let letter = loop {
                let letter = char::from(random.random_range(b'a'..=b'z'));
                if place.is_none_or(|(_, before)| before != letter) {
                    break letter.to_string();
                }
            };
            match place {
                Some((place, _)) => at.replace_range(place..=place, &letter),
                None => at.push_str(&letter),
            }
            if at != text && !found.contains(&at) {
                found.push(at.clone());
            }
        }
    }
    found
}
