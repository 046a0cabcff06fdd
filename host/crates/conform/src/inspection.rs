//! Findings about a component that is neither run nor compiled.

use crate::report::{RuleFinding, RuleVerdict};
use longhaul_engine::{CompileLimits, Inspection, LoadError, Role, inspect};
use wasmparser::Validator;

/// Packages of WASI that the linker offers to every role; the role decides which of their functions work.
const WASI: [&str; 6] = ["wasi:io", "wasi:clocks", "wasi:random", "wasi:cli", "wasi:filesystem", "wasi:sockets"];

/// The line of WASI that the host serves.
const WASI_LINE: &str = "0.2.";

/// Interfaces of the contract that hold only types, which every world may use.
const TYPES: [&str; 3] = ["types", "tool-types", "message-types"];

/// Examines the bytes of a component: whether they are one, its role, and its imports.
#[must_use]
pub fn examine(name: &str, bytes: &[u8]) -> (Vec<RuleFinding>, Option<Inspection>) {
    let finding = |rule, judged| RuleFinding { rule, judged };
    let skipped = |rule| finding(rule, RuleVerdict::Skip("it is no plugin that could be looked at".to_owned()));
    let looked = match inspect(name, bytes, &CompileLimits::default()) {
        Ok(looked) => looked,
        Err(error @ LoadError::WrongWorld { .. }) => {
            let world = finding("world", RuleVerdict::Fail(error.to_string()));
            return (vec![finding("component", valid(bytes)), world, skipped("imports")], None);
        }
        Err(error) => {
            let component = finding("component", RuleVerdict::Fail(error.to_string()));
            return (vec![component, skipped("world"), skipped("imports")], None);
        }
    };
    let world = format!("role {}, contract {}", looked.role.name(), looked.contract);
    let findings = vec![
        finding("component", valid(bytes)),
        finding("world", RuleVerdict::Pass(world)),
        finding("imports", imports(&looked)),
    ];
    (findings, Some(looked))
}

fn valid(bytes: &[u8]) -> RuleVerdict {
    match Validator::new().validate_all(bytes) {
        Ok(_) => RuleVerdict::Pass(format!("a valid component of {} bytes", bytes.len())),
        Err(error) => RuleVerdict::Fail(format!("it is not valid: {error}; build it again with its tool chain")),
    }
}

fn imports(looked: &Inspection) -> RuleVerdict {
    let wrong: Vec<&str> =
        looked.imports.iter().map(String::as_str).filter(|import| !allowed(looked.role, import)).collect();
    if !wrong.is_empty() {
        let role = looked.role.name();
        return RuleVerdict::Fail(format!(
            "the world of the role {role} does not have {}; see wit/v0.1/worlds.wit",
            wrong.join(", ")
        ));
    }
    let beyond = looked.imports.iter().filter(|import| looked.role.is_pure() && reaches_out(import)).count();
    let note = if beyond > 0 {
        format!(", {beyond} of them files and sockets that it is given none of")
    } else {
        String::new()
    };
    RuleVerdict::Pass(format!("all {} are in its world{note}", looked.imports.len()))
}

fn reaches_out(import: &str) -> bool {
    import.starts_with("wasi:filesystem/") || import.starts_with("wasi:sockets/")
}

/// True when the world of a role has an import, `PACKAGE/INTERFACE@VERSION`.
fn allowed(role: Role, import: &str) -> bool {
    let Some((path, version)) = import.split_once('@') else { return false };
    let Some((package, interface)) = path.split_once('/') else { return false };
    let served = version.starts_with(WASI_LINE);
    match package {
        "longhaul:plugin" => {
            // A later patch of the contract is the same contract.
            version.starts_with("0.1.")
                && (TYPES.contains(&interface) || role.capabilities().iter().any(|one| one.name() == interface))
        }
        "wasi:http" => served && !role.is_pure() && matches!(interface, "types" | "outgoing-handler"),
        package => served && WASI.contains(&package),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_has_its_own_imports_and_no_others() {
        for (role, import, expected) in [
            (Role::Agent, "longhaul:plugin/tools@0.1.0", true),
            (Role::Planner, "longhaul:plugin/tools@0.1.0", false),
            (Role::Tool, "longhaul:plugin/keyvalue@0.1.3", true),
            (Role::Tool, "longhaul:plugin/keyvalue@0.2.0", false),
            (Role::Tool, "longhaul:plugin/types@0.1.0", true),
            (Role::Tool, "wasi:http/outgoing-handler@0.2.9", true),
            (Role::Agent, "wasi:http/outgoing-handler@0.2.9", false),
            (Role::Agent, "wasi:cli/stdout@0.2.12", true),
            (Role::Agent, "wasi:cli/stdout@0.3.0", false),
            (Role::Tool, "wasi:nn/tensor@0.2.0", false),
            (Role::Tool, "env", false),
        ] {
            assert_eq!(allowed(role, import), expected, "{} and {import}", role.name());
        }
    }

    #[test]
    fn what_is_no_component_fails_and_the_rest_is_skipped() {
        let (findings, looked) = examine("x", b"\0asm\x01\0\0\0");
        assert!(looked.is_none());
        assert_eq!(findings.iter().map(|one| one.judged.word()).collect::<Vec<_>>(), ["FAIL", "SKIP", "SKIP"]);
        assert!(findings[0].judged.why().contains("core module"), "{}", findings[0]);
    }
}
