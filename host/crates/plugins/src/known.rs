//! Facts about a component before it is run: its inspection, its author's manifest, and the changes since another
//! version. An inspection and an installation show them.
//!
//! Refuses to run anything, and to show an author's text unfiltered: it could move the cursor of a terminal.

use crate::manifest::PluginManifest;
use longhaul_api::wire::plugins::{ComponentView, PluginInspection};
use longhaul_core::LimitHit;
use longhaul_core::fault;
use longhaul_core::text::printable;
use longhaul_engine::{CompileLimits, Inspection, LoadError, inspect, sections};
use std::collections::BTreeMap;
use std::path::Path;

/// Longest name, version or description that is shown, in bytes.
const WORDS_BYTES_MAX: usize = 500;

/// A component with its inspection and manifest.
pub struct InspectedPlugin {
    /// The inspection of its bytes.
    pub inspection: Inspection,
    /// The author's manifest.
    pub manifest: PluginManifest,
    metadata: BTreeMap<String, String>,
}

/// Changes from one version of a plugin to the next. Lines with `+` are new, lines with `-` are gone.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PluginChanges {
    /// Changes of the requested grants.
    pub asks: Vec<String>,
    /// All other changes.
    pub others: Vec<String>,
}

impl InspectedPlugin {
    /// Inspects the component in a file.
    pub fn read(path: &Path) -> fault::Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::of(path, &read_bounded(&name, path, &CompileLimits::default())?)
    }

    /// Inspects these bytes, which are, or were, in a file of that name.
    pub fn of(path: &Path, bytes: &[u8]) -> fault::Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Self {
            inspection: inspect(&name, bytes, &CompileLimits::default())?,
            manifest: PluginManifest::of(path, bytes)?.unwrap_or_default(),
            metadata: sections(&name, bytes)?.metadata,
        })
    }

    /// The lines for a terminal, without control characters.
    pub fn lines(&self) -> Vec<String> {
        let Self { inspection, manifest, metadata } = self;
        let Inspection { contract, bytes, functions, .. } = inspection;
        let role = inspection.role.name();
        let mut lines = vec![format!("{role} for contract {contract}, {bytes} bytes, {functions} functions")];
        lines.push(format!("sha256 {}", inspection.digest));
        if !manifest.name.is_empty() {
            let words = format!("{} {}: {}", manifest.name, manifest.version, manifest.description);
            lines.push(printable(&words, WORDS_BYTES_MAX));
        }
        lines.push(format!("imports {}", printable(&inspection.imports.join(", "), 4 * WORDS_BYTES_MAX)));
        lines.extend(
            metadata.iter().map(|(name, text)| {
                format!("{} {}", printable(name, WORDS_BYTES_MAX), printable(text, WORDS_BYTES_MAX))
            }),
        );
        lines.extend(self.asks());
        lines
    }

    /// The requested grants, under a heading.
    fn asks(&self) -> Vec<String> {
        let asks = self.manifest.asks.lines();
        match asks.is_empty() {
            true => vec!["asks for nothing".to_owned()],
            false => {
                std::iter::once("asks".to_owned()).chain(asks.into_iter().map(|line| format!("  {line}"))).collect()
            }
        }
    }

    /// The published form, for programs.
    pub fn view(&self) -> fault::Result<PluginInspection> {
        let Inspection { role, contract, digest, bytes, functions, imports, exports } = self.inspection.clone();
        let (role, digest) = (role.name().to_owned(), digest.to_string());
        let PluginManifest { name, version, description, asks, settings, .. } = self.manifest.clone();
        Ok(PluginInspection {
            component: ComponentView { role, contract, digest, bytes, functions, imports, exports },
            name,
            version,
            description,
            asks: asks.into(),
            settings: settings.map(serde_json::to_value).transpose()?,
            metadata: self.metadata.clone(),
        })
    }

    /// The changes since `before`.
    pub fn changes_since(&self, before: &Self) -> PluginChanges {
        let (old, new) = (&before.inspection, &self.inspection);
        let mut others = Vec::new();
        if old.role != new.role {
            others.push(format!("it was a {}, and is a {}", old.role.name(), new.role.name()));
        }
        if old.contract != new.contract {
            others.push(format!("it was for contract {}, and is for {}", old.contract, new.contract));
        }
        let import = |name: &String| format!("import {}", printable(name, WORDS_BYTES_MAX));
        others.extend(difference(
            &old.imports.iter().map(import).collect::<Vec<_>>(),
            &new.imports.iter().map(import).collect::<Vec<_>>(),
        ));
        if old.bytes != new.bytes {
            others.push(format!("it had {} bytes, and has {}", old.bytes, new.bytes));
        }
        PluginChanges { asks: difference(&before.manifest.asks.lines(), &self.manifest.asks.lines()), others }
    }
}

/// The bytes of a component, within the limit of compilation.
pub fn read_bounded(name: &str, path: &Path, limits: &CompileLimits) -> Result<Vec<u8>, LoadError> {
    let unreadable = |source| LoadError::Unreadable { name: name.to_owned(), path: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > limits.bytes_max {
        let hit = LimitHit::new("bytes_max", size, limits.bytes_max);
        return Err(LoadError::Limit { name: name.to_owned(), hit });
    }
    std::fs::read(path).map_err(unreadable)
}

/// New lines with `+`, and removed lines with `-`.
fn difference(old: &[String], new: &[String]) -> Vec<String> {
    let came = new.iter().filter(|line| !old.contains(line)).map(|line| format!("+ {line}"));
    let went = old.iter().filter(|line| !new.contains(line)).map(|line| format!("- {line}"));
    came.chain(went).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::Digest;
    use longhaul_engine::Role;

    fn known(asks: &str, imports: &[&str]) -> InspectedPlugin {
        InspectedPlugin {
            inspection: Inspection {
                role: Role::Tool,
                contract: "0.1.0".into(),
                digest: Digest::of(asks.as_bytes()),
                bytes: 7,
                functions: 1,
                imports: imports.iter().map(|name| (*name).to_owned()).collect(),
                exports: Vec::new(),
            },
            manifest: PluginManifest::parse(asks).unwrap(),
            metadata: BTreeMap::new(),
        }
    }

    #[test]
    fn what_is_asked_for_beside_before_is_a_line_of_its_own() {
        let old = known("[asks]\nmodels = true\nhosts = [\"https://a.example\"]", &["wasi:io/poll"]);
        let new = known(
            "[asks]\nhosts = [\"https://a.example\", \"*\"]\ndirectories = [{ guest = \"/work\", access = \"write\" }]",
            &["wasi:io/poll", "wasi:http/types"],
        );
        let changes = new.changes_since(&old);
        assert_eq!(
            changes.asks,
            [
                "+ to read and change a directory that it sees as /work",
                "+ to reach the hosts that you name",
                "- to ask the models that you name"
            ]
        );
        assert_eq!(changes.others, ["+ import wasi:http/types"]);
        assert_eq!(new.changes_since(&new), PluginChanges::default());
    }

    #[test]
    fn an_authors_words_cannot_move_the_cursor() {
        let shown = known("name = \"a\\u001b[2J\"\n[asks]\nhosts = [\"https://a\\u001b[1A\"]", &["x\u{1b}[0m"]).lines();
        assert!(shown.iter().all(|line| !line.contains('\u{1b}')), "{shown:?}");
        assert!(shown.iter().any(|line| line == "  to reach https://a\\u001b[1A"), "{shown:?}");
    }
}
