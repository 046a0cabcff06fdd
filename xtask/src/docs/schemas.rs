//! The JSON Schemas of configuration files, as the program prints them.
//!
//! A schema is a file of its own, so that an editor can read it. Refuses a name that is no file's.

use super::program::Program;
use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// The folder of the files, below `reference`.
const FOLDER: &str = "schemas";

/// A file a schema.
pub(crate) fn files(program: &Program) -> Result<BTreeMap<String, String>> {
    let names = program.said(&["--json", "schema"])?;
    let names: Vec<String> = serde_json::from_str(&names).context("read the names of configuration files")?;
    names.iter().map(|name| -> Result<_> { Ok((path(name)?, program.said(&["schema", name])?)) }).collect()
}

/// The place of the schema of a file.
fn path(name: &str) -> Result<String> {
    let stem = name.strip_suffix(".toml").filter(|stem| stem.chars().all(|letter| letter.is_ascii_lowercase()));
    let stem = stem.with_context(|| format!("`{name}` is no name of a configuration file"))?;
    Ok(format!("{FOLDER}/{stem}.schema.json"))
}

#[test]
fn a_schema_has_the_name_of_its_file() {
    assert_eq!(path("longhaul.toml").expect("a name"), "schemas/longhaul.schema.json");
    assert!(path("../longhaul.toml").is_err());
    assert!(path("longhaul").is_err());
}
