//! The page of the HTTP API: each operation on a line, with the scope that it needs.

use super::page::{cell, opened};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const METHODS: [&str; 6] = ["get", "post", "put", "delete", "patch", "head"];

pub(crate) fn page(document: &Value) -> Result<String> {
    let paths = document["paths"].as_object().context("an OpenAPI document has paths")?;
    let mut by_tag: BTreeMap<&str, BTreeSet<[String; 4]>> = BTreeMap::new();
    for (path, item) in paths {
        for method in METHODS {
            let Some(operation) = item.get(method) else { continue };
            let tag = operation["tags"][0].as_str().with_context(|| format!("{method} {path} has no tag"))?;
            let said = operation["description"].as_str().unwrap_or_default();
            let scope = said.split_once("scope `").and_then(|(_, rest)| rest.split('`').next());
            let scope = scope.map_or_else(|| "none".to_owned(), |scope| format!("`{scope}`"));
            let summary = cell(operation["summary"].as_str().unwrap_or_default());
            by_tag.entry(tag).or_default().insert([path.clone(), method.to_uppercase(), scope, summary]);
        }
    }
    let mut text = opened("the server's own OpenAPI document", "HTTP");
    text += document["info"]["description"].as_str().unwrap_or_default();
    text += "\n\nThe whole description, with every request and answer, is the OpenAPI document that a server has at \
             `/api/v1/openapi.json`.\nA token goes with each request as `Authorization: Bearer lh_...`; \
             [HTTP](../operate/http.md) says how to use it.\n";
    for (tag, operations) in by_tag {
        text += &format!("\n## {tag}\n\n| request | scope | what it does |\n|---|---|---|\n");
        for [path, method, scope, summary] in operations {
            text += &format!("| `{method} {path}` | {scope} | {summary} |\n");
        }
    }
    Ok(text)
}
