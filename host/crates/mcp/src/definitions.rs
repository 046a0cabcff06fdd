//! A server's description of its tools: redacted, bounded, pinned by digest, and compared before each call.
//!
//! The pin belongs to the project and outlives runs. A person approves the first pin, too: models read descriptions and
//! schemas, which can contain instructions. An acceptance names the digest that the person saw, so that a server which
//! changes again meanwhile is refused again.

use crate::config::McpConfig;
use crate::error::McpError;
use crate::offers;
use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Store, StoreError, Table};
use longhaul_core::text::truncate;
use longhaul_core::tool::{FunctionInfo, ToolInfo};
use longhaul_egress::SecretPlaceholders;
use rmcp::model::Tool;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// Bytes of a tool's name; providers of models take 64 characters with the server's before it.
const NAME_BYTES_MAX: usize = 128;

/// Bytes of a tool's schema.
const SCHEMA_BYTES_MAX: usize = 64 << 10;

/// Bytes of a description that a model sees; all of it is in the digest.
const DESCRIPTION_BYTES_MAX: usize = 4 << 10;

/// One tool of a server, as last listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// Its name, of letters, digits and `_-./`.
    pub name: String,
    /// Its whole description.
    pub description: String,
    /// The JSON schema of its arguments, which models see unchanged.
    pub schema: String,
}

/// The tools of a server, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Definitions(pub(crate) Vec<Definition>);

impl Definitions {
    /// A server's list, without the secrets that it got: this is stored and shown to models. Tools beyond the bounds
    /// are left out, with a line of the log.
    pub(crate) fn of(server: &str, tools: &[Tool], placeholders: &SecretPlaceholders) -> Self {
        let mut definitions: Vec<Definition> = Vec::new();
        for tool in tools {
            match definition(tool, placeholders) {
                Some(one) if definitions.iter().all(|other| other.name != one.name) => definitions.push(one),
                _ => {
                    let name = truncate(&placeholders.scrub(&tool.name), 80);
                    tracing::warn!("[mcp.{server}] the tool `{name}` is left out");
                }
            }
        }
        definitions.sort_by(|one, other| one.name.cmp(&other.name));
        Self(definitions)
    }

    /// True when the server has a tool of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|one| one.name == name)
    }

    /// Changes with every character that a model sees.
    pub(crate) fn digest(&self) -> String {
        let parts =
            self.0.iter().flat_map(|one| [one.name.as_bytes(), one.description.as_bytes(), one.schema.as_bytes()]);
        Digest::of_parts(&parts.collect::<Vec<_>>()).to_string()
    }

    /// The agent's view. The server's claims about effects do not count.
    pub(crate) fn info(&self, id: &str, server: &str, config: &McpConfig) -> ToolInfo {
        let functions = self.0.iter().map(|one| FunctionInfo {
            name: one.name.clone(),
            description: truncate(&one.description, DESCRIPTION_BYTES_MAX),
            parameters: one.schema.clone(),
            effect: config.effect_of(&one.name),
            claim: None,
        });
        ToolInfo {
            id: id.to_owned(),
            description: format!("MCP server `{server}`"),
            functions: functions.chain(offers::functions(config, |name| self.has(name))).collect(),
        }
    }
}

fn definition(tool: &Tool, placeholders: &SecretPlaceholders) -> Option<Definition> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    // A redacted name contains the replacement, which is no plain character, so the tool is left out.
    let name = placeholders.scrub(&tool.name);
    let schema = placeholders.scrub(&serde_json::to_string(&tool.input_schema).ok()?);
    // A secret of quotes and colons may have removed a part of the schema itself.
    serde_json::from_str::<IgnoredAny>(&schema).ok()?;
    let fits = !name.is_empty() && name.len() <= NAME_BYTES_MAX && schema.len() <= SCHEMA_BYTES_MAX;
    let description = placeholders.scrub(tool.description.as_deref().unwrap_or_default());
    (fits && name.chars().all(plain)).then_some(Definition { name, description, schema })
}

fn key(project: &str, server: &str, what: &str) -> Key {
    // No plugin's table has this name, so no plugin can write here.
    Key::of(project).and(&format!("mcp.{server}")).and(what)
}

fn of_store(error: StoreError) -> McpError {
    McpError::Store(error.to_string())
}

/// The pinned list of a server, and its digest.
pub(crate) fn pin(store: &dyn Store, project: &str, server: &str) -> Result<Option<Definitions>, McpError> {
    let bytes = store.get(Table::KeyValue, &key(project, server, "pin")).map_err(of_store)?;
    let read = |bytes: Vec<u8>| serde_json::from_slice(&bytes).map_err(|error| McpError::Store(error.to_string()));
    bytes.map(read).transpose()
}

/// The pinned digest of a server.
///
/// # Errors
/// When the store fails.
pub fn pinned(store: &dyn Store, project: &str, server: &str) -> Result<Option<String>, McpError> {
    Ok(pin(store, project, server)?.map(|definitions| definitions.digest()))
}

/// The known tools of a server under the name `id`, without asking it; none without a pin, or after a person accepted
/// another one.
///
/// # Errors
/// When the store fails.
pub fn known(
    store: &dyn Store,
    project: &str,
    server: &str,
    id: &str,
    config: &McpConfig,
) -> Result<Option<ToolInfo>, McpError> {
    let Some(pin) = pin(store, project, server)? else { return Ok(None) };
    let accepted = store.get(Table::KeyValue, &key(project, server, "accepted")).map_err(of_store)?;
    let is_newest = accepted.is_none_or(|accepted| accepted == pin.digest().as_bytes());
    Ok(is_newest.then(|| pin.info(id, server, config)))
}

/// Accepts the description with this digest from now on.
///
/// # Errors
/// When the store fails.
pub async fn accept(store: &dyn Store, project: &str, server: &str, digest: &str) -> Result<(), McpError> {
    let batch = Batch::new().put(Table::KeyValue, key(project, server, "accepted"), digest.as_bytes());
    store.commit(batch).await.map_err(of_store)
}

/// True when a person approved some version of a server's description.
///
/// # Errors
/// When the store fails.
pub fn is_approved(store: &dyn Store, project: &str, server: &str, config: &McpConfig) -> Result<bool, McpError> {
    if config.tools.is_some() || pin(store, project, server)?.is_some() {
        return Ok(true);
    }
    Ok(store.get(Table::KeyValue, &key(project, server, "accepted")).map_err(of_store)?.is_some())
}

/// Compares a server's present description with the pin, and pins it if a person accepted it or `configured` names it.
pub(crate) async fn hold(
    store: &dyn Store,
    project: &str,
    server: &str,
    now: &Definitions,
    configured: Option<&str>,
) -> Result<(), McpError> {
    let found = now.digest();
    let pinned = pin(store, project, server)?.map(|pin| pin.digest());
    // The operator's file has precedence over an earlier pin.
    if configured.is_none_or(|configured| configured == found) && pinned.as_ref() == Some(&found) {
        return Ok(());
    }
    let is_approved = match configured {
        Some(configured) => configured == found,
        None => {
            let accepted = store.get(Table::KeyValue, &key(project, server, "accepted")).map_err(of_store)?;
            accepted.as_deref() == Some(found.as_bytes())
        }
    };
    if !is_approved {
        let server = server.to_owned();
        return Err(match configured.map(str::to_owned).or(pinned) {
            Some(pinned) => McpError::Changed { server, pinned, found },
            None => McpError::Unapproved { server, found },
        });
    }
    let bytes = serde_json::to_vec(now).map_err(|error| McpError::Store(error.to_string()))?;
    let batch = Batch::new().put(Table::KeyValue, key(project, server, "pin"), bytes);
    store.commit(batch).await.map_err(of_store)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::journal::EffectClass;
    use serde_json::json;

    fn tools(said: serde_json::Value) -> Vec<Tool> {
        serde_json::from_value(said).unwrap()
    }

    fn of(all: serde_json::Value) -> Definitions {
        Definitions::of("s", &tools(all), &SecretPlaceholders::default())
    }

    fn said(name: &str, description: &str) -> serde_json::Value {
        json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
    }

    #[test]
    fn what_is_out_of_bounds_is_left_out() {
        let long = "n".repeat(NAME_BYTES_MAX + 1);
        let schema = json!({ "type": "object", "title": "t".repeat(SCHEMA_BYTES_MAX) });
        let mut all =
            vec![said("a", "1"), said("a", "another of that name"), said("", ""), said(&long, ""), said("b c", "")];
        all.push(json!({ "name": "big", "inputSchema": schema }));
        assert_eq!(of(all.into()), of(json!([said("a", "1")])));
    }

    #[test]
    fn a_digest_changes_with_every_letter_and_not_with_the_order() {
        let digest = |all: serde_json::Value| of(all).digest();
        let first = digest(json!([said("a", "1"), said("b", "2")]));
        assert_eq!(first, digest(json!([said("b", "2"), said("a", "1")])));
        let far = format!("{}!", "x".repeat(DESCRIPTION_BYTES_MAX));
        let mut others = vec![digest(json!([said("a", "1")])), digest(json!([said("a", "1"), said("b", "3")]))];
        others.push(digest(
            json!([said("a", "1"), { "name": "b", "description": "2", "inputSchema": { "type": "object", "a": 1 } }]),
        ));
        assert!(!others.contains(&first));
        // Also in the part that a model does not see.
        assert_ne!(digest(json!([said("a", &far)])), digest(json!([said("a", &far.replace('!', "?"))])));
    }

    #[test]
    fn nothing_that_a_server_says_of_its_effects_counts() {
        let harmless =
            json!([{ "name": "a", "inputSchema": {}, "annotations": { "readOnlyHint": true } }, said("b", "")]);
        let config = McpConfig { read_only: vec!["b".into()], ..McpConfig::default() };
        let info = of(harmless).info("mcp-s", "s", &config);
        let effects: Vec<_> = info.functions.iter().map(|function| function.effect).collect();
        assert_eq!(effects, [EffectClass::Acts, EffectClass::ReadOnly]);
    }
}
