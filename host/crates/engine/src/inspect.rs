//! Inspects a file without running or compiling it.

use crate::edition::{Edition, Editions, is_later};
use crate::error::LoadError;
use crate::role::Role;
use longhaul_bindings::PACKAGE;
use longhaul_core::text::truncate;
use longhaul_core::{Digest, LimitHit};
use longhaul_sandbox::CompileLimits;
use wasmparser::{ComponentExternalKind, Encoding, Parser, Payload};

/// The facts in a component's bytes.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Inspection {
    /// Its role.
    #[serde(with = "role_name")]
    pub role: Role,
    /// Its contract version.
    pub contract: String,
    /// Its digest.
    pub digest: Digest,
    /// Its size.
    pub bytes: u64,
    /// Functions in all its modules.
    pub functions: u64,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// The interfaces that it exports.
    pub exports: Vec<String>,
}

mod role_name {
    use super::Role;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(role: &Role, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(role.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Role, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = Role::ALL.into_iter().find(|role| role.name() == name);
        found.ok_or_else(|| D::Error::custom(format!("`{name}` is no role")))
    }
}

/// Inspects a plugin's bytes, for a host with the default editions.
///
/// # Errors
/// [`LoadError::NotAComponent`], [`LoadError::WrongWorld`] or [`LoadError::Limit`].
pub fn inspect(name: &str, bytes: &[u8], limits: &CompileLimits) -> Result<Inspection, LoadError> {
    inspect_for(&Editions::default(), name, bytes, None, limits).map(|(inspection, _)| inspection)
}

/// The same for a host with these editions; also returns the edition that the plugin was built for. `digest` is that of
/// the bytes, if the caller has made it.
pub(crate) fn inspect_for<'e>(
    editions: &'e Editions,
    name: &str,
    bytes: &[u8],
    digest: Option<Digest>,
    limits: &CompileLimits,
) -> Result<(Inspection, &'e dyn Edition), LoadError> {
    let shape = read(name, bytes, limits)?;
    let wrong = |reason| LoadError::WrongWorld { name: name.to_owned(), reason };
    let (export, role) = role_of(&shape.exports, editions).map_err(wrong)?;
    let version = version_of(export);
    let edition = editions.serving(version).ok_or_else(|| wrong(unspoken(export, editions)))?;
    let inspection = Inspection {
        role,
        contract: version.to_owned(),
        digest: digest.unwrap_or_else(|| Digest::of(bytes)),
        bytes: bytes.len() as u64,
        functions: shape.functions,
        imports: shape.imports,
        exports: shape.exports,
    };
    Ok((inspection, edition))
}

/// Inspects the bytes of a program of WASI; returns their digest.
pub(crate) fn inspect_command(name: &str, bytes: &[u8], limits: &CompileLimits) -> Result<Digest, LoadError> {
    let shape = read(name, bytes, limits)?;
    if shape.exports.iter().any(|export| export.starts_with("wasi:cli/run@0.2.")) {
        return Ok(Digest::of(bytes));
    }
    let reason =
        "it exports no `wasi:cli/run@0.2`, so there is nothing to run; build it as a program and not as a library";
    Err(LoadError::WrongWorld { name: name.to_owned(), reason: reason.into() })
}

/// Checks that the bytes are a component within the caps, whatever its role.
pub(crate) fn check_shape(name: &str, bytes: &[u8], limits: &CompileLimits) -> Result<(), LoadError> {
    read(name, bytes, limits).map(drop)
}

fn read(name: &str, bytes: &[u8], limits: &CompileLimits) -> Result<Shape, LoadError> {
    Shape::read(bytes, limits).map_err(|wrong| match wrong {
        Wrong::Limit(hit) => LoadError::Limit { name: name.to_owned(), hit },
        Wrong::Format(reason) => LoadError::NotAComponent { name: name.to_owned(), reason },
    })
}

/// The one export that is a role, or the fault of the exports.
///
/// Unsupported versions count as well: a component's role does not depend on the host.
fn role_of<'a>(exports: &'a [String], editions: &Editions) -> Result<(&'a str, Role), String> {
    let found: Vec<_> = exports.iter().filter_map(|export| Some((export.as_str(), role_in(export)?))).collect();
    match found[..] {
        [only] => Ok(only),
        [] => Err(no_role(exports, editions)),
        [(one, first), (other, second), ..] if first == second => Err(format!(
            "it exports both `{}` and `{}`; a plugin is built for one version of the contract, so make a file for each",
            shown(one),
            shown(other)
        )),
        [(_, first), (_, second), ..] => {
            Err(format!("it exports both {} and {}; a plugin has one role", first.name(), second.name()))
        }
    }
}

/// The role that an exported interface belongs to, in any version.
fn role_in(export: &str) -> Option<Role> {
    let interface = own(export)?;
    let name = interface.split_once('@').map_or(interface, |(name, _)| name);
    Role::ALL.into_iter().find(|role| role.name() == name)
}

/// An interface of the contract, without its package.
fn own(export: &str) -> Option<&str> {
    export.strip_prefix(PACKAGE)?.strip_prefix('/')
}

/// The version of an export; empty when it has none.
fn version_of(export: &str) -> &str {
    export.split_once('@').map_or("", |(_, version)| version)
}

fn no_role(exports: &[String], editions: &Editions) -> String {
    let other = exports.iter().find(|export| own(export).is_some() && editions.serving(version_of(export)).is_none());
    match other {
        Some(other) => unspoken(other, editions),
        None => format!(
            "it exports none of planner, agent, evaluator, tool or memory of {PACKAGE}@{}; see wit/v0.1/worlds.wit",
            spoken(editions)
        ),
    }
}

/// The remedy for an export of an unsupported version.
fn unspoken(export: &str, editions: &Editions) -> String {
    let one = if editions.versions().nth(1).is_some() { "one of those versions" } else { "that version" };
    let later = editions.versions().all(|spoken| is_later(version_of(export), spoken));
    let update = if later { ", or update longhaul" } else { "" };
    format!(
        "it exports `{}`, and this host speaks {PACKAGE} {}; build it for {one}{update}",
        shown(export),
        spoken(editions)
    )
}

fn spoken(editions: &Editions) -> String {
    editions.versions().collect::<Vec<_>>().join(" and ")
}

/// The name of an export, for people. It is the plugin's own text: it may be long, and contain anything.
fn shown(export: &str) -> String {
    truncate(export, 100).escape_debug().to_string()
}

enum Wrong {
    Limit(LimitHit),
    Format(String),
}

/// The findings of one pass over the bytes, which enforces the caps as it goes.
#[derive(Default)]
struct Shape {
    imports: Vec<String>,
    exports: Vec<String>,
    functions: u64,
}

impl Shape {
    fn read(bytes: &[u8], limits: &CompileLimits) -> Result<Self, Wrong> {
        capped("bytes_max", bytes.len() as u64, limits.bytes_max)?;
        match Parser::is_component(bytes) {
            true => {}
            false if Parser::is_core_wasm(bytes) => {
                let text = "it is a core module; make a component of it with `wasm-tools component new`, or build it with a tool chain that does";
                return Err(Wrong::Format(text.into()));
            }
            false => {
                return Err(Wrong::Format(
                    "it does not start as WebAssembly does; the file is corrupt or something else".into(),
                ));
            }
        }
        let mut shape = Self::default();
        let mut depth = 0_u64;
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload.map_err(|error| Wrong::Format(format!("it is corrupt or cut off: {error}")))?;
            match &payload {
                Payload::Version { encoding: Encoding::Component | Encoding::Module, .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                _ => {}
            }
            capped("nesting_max", depth, limits.nesting_max)?;
            shape.take(&payload, depth, limits)?;
            capped("functions_max", shape.functions, limits.functions_max)?;
        }
        Ok(shape)
    }

    fn take(&mut self, payload: &Payload<'_>, depth: u64, limits: &CompileLimits) -> Result<(), Wrong> {
        let corrupt = |error: wasmparser::BinaryReaderError| Wrong::Format(format!("it is corrupt: {error}"));
        let interfaces = |names: &[String]| capped("interfaces_max", names.len() as u64, limits.interfaces_max);
        match payload {
            Payload::FunctionSection(functions) => self.functions += u64::from(functions.count()),
            Payload::ComponentImportSection(imports) if depth == 1 => {
                for import in imports.clone() {
                    self.imports.push(import.map_err(corrupt)?.name.name.to_owned());
                    interfaces(&self.imports)?;
                }
            }
            Payload::ComponentExportSection(exports) if depth == 1 => {
                for export in exports.clone() {
                    let export = export.map_err(corrupt)?;
                    if export.kind == ComponentExternalKind::Instance {
                        self.exports.push(export.name.name.to_owned());
                        interfaces(&self.exports)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn capped(name: &str, used: u64, max: u64) -> Result<(), Wrong> {
    if used > max { Err(Wrong::Limit(LimitHit::new(name, used, max))) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The role of a component with these exports for a host of the default editions, or its fault.
    #[track_caller]
    fn check(exports: &[&str], expected: &str) {
        let exports: Vec<String> = exports.iter().map(|&export| export.to_owned()).collect();
        let editions = Editions::default();
        let found = match role_of(&exports, &editions) {
            Ok((export, _)) if editions.serving(version_of(export)).is_none() => unspoken(export, &editions),
            Ok((export, role)) => format!("{} of {}", role.name(), version_of(export)),
            Err(wrong) => wrong,
        };
        assert_eq!(found, expected, "{exports:?}");
    }

    #[test]
    fn a_role_and_its_version_are_read_from_the_exports() {
        check(&["longhaul:plugin/tool@0.1.0"], "tool of 0.1.0");
        check(
            &["longhaul:plugin/types@0.1.0", "longhaul:plugin/memory@0.1.7", "wasi:cli/run@0.2.12"],
            "memory of 0.1.7",
        );
        let none = "it exports none of planner, agent, evaluator, tool or memory of longhaul:plugin@0.1.0; see wit/v0.1/worlds.wit";
        for export in ["longhaul:plugin/types@0.1.0", "longhaul:plugins/tool@0.1.0", "tool", "longhaul:plugin"] {
            check(&[export], none);
        }
    }

    #[test]
    fn a_version_that_is_not_spoken_is_named_with_what_to_do() {
        let says = |export: &str, advice: &str| {
            let text = format!("it exports `{export}`, and this host speaks longhaul:plugin 0.1.0; {advice}");
            check(&[&export.replace("\\n", "\n")], &text);
        };
        for later in ["tool@0.2.0", "tool@0.10.0", "agent@1.0.0", "steward@0.9.0"] {
            says(&format!("longhaul:plugin/{later}"), "build it for that version, or update longhaul");
        }
        for other in ["tool@0.0.9", "tool@0.1.0-draft", "tool@next", "tool", "tool@0.9\\n"] {
            says(&format!("longhaul:plugin/{other}"), "build it for that version");
        }
        let long = format!("longhaul:plugin/tool@{}", "9".repeat(1_000));
        let shown = format!("longhaul:plugin/tool@{}…[truncated 921 bytes]", "9".repeat(79));
        check(
            &[&long],
            &format!("it exports `{shown}`, and this host speaks longhaul:plugin 0.1.0; build it for that version"),
        );
    }
}
