//! What a file is, without running or compiling it.

use crate::error::LoadError;
use crate::jail::CompileLimits;
use crate::role::Role;
use longhaul_bindings::{PACKAGE, VERSION};
use longhaul_core::{Digest, LimitHit};
use wasmparser::{ComponentExternalKind, Encoding, Parser, Payload};

/// What is known of a component from its bytes.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Inspection {
    /// Its role.
    #[serde(serialize_with = "role_name")]
    pub role: Role,
    /// The contract that it was built for.
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

fn role_name<S: serde::Serializer>(role: &Role, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(role.name())
}

/// Looks at the bytes of a plugin.
///
/// # Errors
/// [`LoadError::NotAComponent`], [`LoadError::WrongWorld`] or [`LoadError::Limit`].
pub fn inspect(name: &str, bytes: &[u8], limits: &CompileLimits) -> Result<Inspection, LoadError> {
    let shape = read(name, bytes, limits)?;
    let role = role_of(&shape.exports).map_err(|reason| LoadError::WrongWorld { name: name.to_owned(), reason })?;
    Ok(Inspection {
        role,
        contract: VERSION.to_owned(),
        digest: Digest::of(bytes),
        bytes: bytes.len() as u64,
        functions: shape.functions,
        imports: shape.imports,
        exports: shape.exports,
    })
}

/// Looks at the bytes of a program of WASI; answers their digest.
pub(crate) fn inspect_command(name: &str, bytes: &[u8], limits: &CompileLimits) -> Result<Digest, LoadError> {
    let shape = read(name, bytes, limits)?;
    if shape.exports.iter().any(|export| export.starts_with("wasi:cli/run@0.2.")) {
        return Ok(Digest::of(bytes));
    }
    let reason =
        "it exports no `wasi:cli/run@0.2`, so there is nothing to run; build it as a program and not as a library";
    Err(LoadError::WrongWorld { name: name.to_owned(), reason: reason.into() })
}

/// Whether the bytes are a component within the caps, whatever it is for.
pub(crate) fn check_shape(name: &str, bytes: &[u8], limits: &CompileLimits) -> Result<(), LoadError> {
    read(name, bytes, limits).map(drop)
}

fn read(name: &str, bytes: &[u8], limits: &CompileLimits) -> Result<Shape, LoadError> {
    Shape::read(bytes, limits).map_err(|wrong| match wrong {
        Wrong::Limit(hit) => LoadError::Limit { name: name.to_owned(), hit },
        Wrong::Format(reason) => LoadError::NotAComponent { name: name.to_owned(), reason },
    })
}

/// Which role the exports make, or what is wrong with them.
fn role_of(exports: &[String]) -> Result<Role, String> {
    let roles: Vec<Role> = Role::ALL.into_iter().filter(|role| exports.contains(&role.export())).collect();
    match roles[..] {
        [role] => Ok(role),
        [] => Err(no_role(exports)),
        [first, second, ..] => {
            Err(format!("it exports both {} and {}; a plugin has one role", first.name(), second.name()))
        }
    }
}

fn no_role(exports: &[String]) -> String {
    let ours = exports.iter().find(|export| export.starts_with(PACKAGE));
    match ours {
        Some(other) => format!(
            "it exports `{other}`, and this host speaks {PACKAGE} {VERSION}; build it for that version, or update longhaul"
        ),
        None => format!(
            "it exports none of planner, agent, evaluator, tool or memory of {PACKAGE}@{VERSION}; see wit/v0.1/worlds.wit"
        ),
    }
}

enum Wrong {
    Limit(LimitHit),
    Format(String),
}

/// What one pass over the bytes finds, the caps kept while it goes.
#[derive(Default)]
struct Shape {
    imports: Vec<String>,
    exports: Vec<String>,
    functions: u64,
}

impl Shape {
    fn read(bytes: &[u8], limits: &CompileLimits) -> Result<Self, Wrong> {
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
            shape.take(&payload, depth)?;
            capped("functions_max", shape.functions, limits.functions_max)?;
        }
        Ok(shape)
    }

    fn take(&mut self, payload: &Payload<'_>, depth: u64) -> Result<(), Wrong> {
        let corrupt = |error: wasmparser::BinaryReaderError| Wrong::Format(format!("it is corrupt: {error}"));
        match payload {
            Payload::FunctionSection(functions) => self.functions += u64::from(functions.count()),
            Payload::ComponentImportSection(imports) if depth == 1 => {
                for import in imports.clone() {
                    self.imports.push(import.map_err(corrupt)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(exports) if depth == 1 => {
                for export in exports.clone() {
                    let export = export.map_err(corrupt)?;
                    if export.kind == ComponentExternalKind::Instance {
                        self.exports.push(export.name.name.to_owned());
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
