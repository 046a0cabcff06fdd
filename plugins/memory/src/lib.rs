//! The tool `memory`: facts that an agent keeps for later, in the project's own key-value space.
//!
//! A fact has a key and a text. Recall ranks facts by the words that they share with a question; rare words weigh
//! more. What is kept stays until it is forgotten, over runs and restarts, and no other project sees it. Refuses more
//! facts and longer ones than its caps, and to judge whether a fact is true: its reader must.

mod rank;

use longhaul_sdk::tool::CallContext;
use longhaul_sdk::tools::ToolError;
use longhaul_sdk::types::LimitHit;
use longhaul_sdk::{Functions, clock, keyvalue, schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Characters of a key and of a text.
const KEY_CHARS_MAX: u32 = 120;
const TEXT_CHARS_MAX: u32 = 8_000;

/// Tags of a fact, and characters of one.
const TAGS_MAX: u32 = 10;
const TAG_CHARS_MAX: u32 = 40;

/// Facts of a project. A recall reads all of them.
const FACTS_MAX: usize = 2_000;

/// The default number of facts in one answer, and the most.
const LIMIT: usize = 5;
const LIMIT_MAX: usize = 100;

fn functions() -> Functions {
    let key = || schema::text().chars(1, KEY_CHARS_MAX);
    let limit = || schema::whole().between(1, LIMIT_MAX as u64);
    let tags = schema::list(schema::text().chars(1, TAG_CHARS_MAX)).items(0, TAGS_MAX);
    let remember = schema::object()
        .required("text", schema::text().chars(1, TEXT_CHARS_MAX))
        .optional("key", key().about("what it is remembered as; the same key replaces it. Default: made of the text"))
        .optional("tags", tags);
    let recall = schema::object().required("query", schema::text().chars(1, 1_000)).optional("limit", limit());
    let forget = schema::object().required("key", key());
    let list = schema::object().optional("prefix", schema::text().chars(0, KEY_CHARS_MAX)).optional("limit", limit());
    Functions::new("memory", "Facts that are kept for later sessions of this project.")
        .idempotent("remember", "Keeps a fact.", remember, remember_it)
        .read_only("recall", "Facts that bear on a question, the best first.", recall, recall_it)
        .idempotent("forget", "Removes a fact.", forget, forget_it)
        .read_only("list", "Keys and the beginnings of facts.", list, list_them)
}

longhaul_sdk::export_functions!(functions);

#[derive(Serialize, Deserialize)]
struct Fact {
    text: String,
    #[serde(default)]
    tags: Vec<String>,
    at_ms: f64,
}

#[derive(Deserialize)]
struct Remember {
    text: String,
    key: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize)]
struct Recall {
    query: String,
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct Forget {
    key: String,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    prefix: String,
    limit: Option<usize>,
}

/// The beginning of all keys, so that the space can hold other data one day.
const FACTS: &str = "fact/";

fn remember_it(asked: Remember, _: &CallContext) -> Result<Value, ToolError> {
    let key = asked.key.unwrap_or_else(|| made_of(&asked.text));
    let place = format!("{FACTS}{key}");
    let replaced = keyvalue::exists(&place)?;
    let count = keyvalue::keys(FACTS)?.len();
    if !replaced && count >= FACTS_MAX {
        let (used, max) = (count as f64 + 1.0, FACTS_MAX as f64);
        return Err(ToolError::Limit(LimitHit { name: "facts_max".to_owned(), used, max }));
    }
    keyvalue::set_json(&place, &Fact { text: asked.text, tags: asked.tags, at_ms: clock::now_ms() })?;
    Ok(json!({ "key": key, "replaced": replaced }))
}

fn recall_it(asked: Recall, _: &CallContext) -> Result<Value, ToolError> {
    let mut facts = Vec::new();
    for place in keyvalue::keys(FACTS)? {
        if let Some(fact) = keyvalue::get_json::<Fact>(&place)? {
            facts.push((place[FACTS.len()..].to_owned(), fact));
        }
    }
    let texts: Vec<String> =
        facts.iter().map(|(key, fact)| format!("{key} {} {}", fact.text, fact.tags.join(" "))).collect();
    let best = rank::best(&asked.query, &texts);
    let limit = asked.limit.unwrap_or(LIMIT);
    let found: Vec<Value> = best
        .iter()
        .take(limit)
        .map(|at| {
            let (key, Fact { text, tags, at_ms }) = &facts[*at];
            json!({ "key": key, "text": text, "tags": tags, "at_ms": at_ms })
        })
        .collect();
    Ok(json!({ "facts": found, "matching": best.len(), "of": facts.len() }))
}

fn forget_it(asked: Forget, _: &CallContext) -> Result<Value, ToolError> {
    let place = format!("{FACTS}{}", asked.key);
    let was_there = keyvalue::exists(&place)?;
    keyvalue::delete(&place)?;
    Ok(json!({ "forgotten": was_there }))
}

fn list_them(asked: List, _: &CallContext) -> Result<Value, ToolError> {
    let keys = keyvalue::keys(&format!("{FACTS}{}", asked.prefix))?;
    let limit = asked.limit.unwrap_or(LIMIT_MAX);
    let mut facts = Vec::new();
    for place in keys.iter().take(limit) {
        if let Some(fact) = keyvalue::get_json::<Fact>(place)? {
            let beginning = longhaul_sdk::json::cut(&fact.text, 120);
            facts.push(json!({ "key": &place[FACTS.len()..], "text": beginning, "tags": fact.tags }));
        }
    }
    Ok(json!({ "facts": facts, "of": keys.len(), "truncated": keys.len() > limit }))
}

fn made_of(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let digits: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("f-{digits}")
}
