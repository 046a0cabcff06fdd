//! Rules for tools.

use crate::probe::{Function, Probe};
use crate::report::RuleVerdict;
use crate::schema::check_parameters;
use longhaul_core::grant::Access;
use longhaul_core::store::Table;
use longhaul_core::text::count;
use longhaul_testkit::{Call, Ending, MemoryStore};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A function name that no tool uses.
const UNKNOWN: &str = "no-such-function-77";

pub(crate) async fn describes(probe: &Probe) -> Result<RuleVerdict, String> {
    let done = probe.call(&probe.scene(), Call::Describe).await?;
    let info = match &done.ending {
        Ending::Returned(info) => info,
        Ending::Stopped(error) => return Ok(RuleVerdict::Fail(error.to_string())),
        Ending::Refused(refusal) => return Ok(RuleVerdict::Fail(format!("`describe` gave nothing: {}", refusal.text))),
    };
    let functions: Vec<&Value> = info["functions"].as_array().into_iter().flatten().collect();
    if functions.is_empty() {
        return Ok(RuleVerdict::Fail("it has no function, so that nothing can be asked of it".to_owned()));
    }
    // The engine has checked that the names are unique.
    let mut names = BTreeSet::new();
    for function in &functions {
        let name = function["name"].as_str().unwrap_or_default();
        names.insert(name);
        if function["description"].as_str().unwrap_or_default().is_empty() {
            return Ok(RuleVerdict::Fail(format!("function `{name}` has no description, by which a model chooses it")));
        }
        if let Err(why) = check_parameters(&function["parameters"]) {
            return Ok(RuleVerdict::Fail(format!("the parameters of `{name}` are no JSON Schema: {why}")));
        }
    }
    let again = probe.call(&probe.scene(), Call::Describe).await?;
    if again.ending_json() != done.ending_json() {
        return Ok(RuleVerdict::Fail("it describes itself differently from call to call".to_owned()));
    }
    Ok(RuleVerdict::Pass(format!(
        "{}: {}",
        count(names.len(), "function"),
        names.into_iter().collect::<Vec<_>>().join(", ")
    )))
}

pub(crate) async fn unknown_function(probe: &Probe) -> Result<RuleVerdict, String> {
    let done = probe.call(&probe.scene(), Call::tool_text(UNKNOWN, "{}")).await?;
    Ok(match &done.ending {
        Ending::Refused(refusal) if refusal.case == "unknown-function" => {
            RuleVerdict::Pass("answered with `unknown-function`".to_owned())
        }
        Ending::Refused(refusal) => {
            RuleVerdict::Fail(format!("answered with `{}`; answer `unknown-function`", refusal.case))
        }
        Ending::Stopped(error) if !done.is_taken() => {
            RuleVerdict::Fail(format!("it did not survive a function that it does not have: {error}"))
        }
        Ending::Returned(_) | Ending::Stopped(_) => {
            RuleVerdict::Fail("it answered a function that it does not have".to_owned())
        }
    })
}

/// The host believes a claim when the grants prove it, and the requests are the possible grants. A function with the
/// effect `verifiable` must also be able to verify.
pub(crate) async fn effects(probe: &Probe) -> Result<RuleVerdict, String> {
    let weaker: Vec<_> = probe.functions.iter().filter(|function| function.effect != "acts").collect();
    if weaker.is_empty() {
        return Ok(RuleVerdict::Skip("no function claims less than `acts`".to_owned()));
    }
    for function in weaker.iter().filter(|function| function.effect == "verifiable") {
        if let Some(why) = cannot_verify(probe, function).await? {
            return Ok(RuleVerdict::Fail(format!("`{}` says `verifiable`, and {why}", function.name)));
        }
    }
    let hosts = probe.subject.asks_hosts.then_some("hosts");
    let writes = probe.directories().iter().any(|grant| grant.access == Access::Write);
    let asked: Vec<&str> = hosts.into_iter().chain(writes.then_some("a directory to write")).collect();
    let names = weaker.iter().map(|function| function.name.as_str()).collect::<Vec<_>>().join(", ");
    Ok(if asked.is_empty() {
        RuleVerdict::Pass(format!("it asks for nothing that it could act on: {names}"))
    } else {
        RuleVerdict::Skip(format!(
            "it asks for {}, so the claims of {names} count when the operator writes confirm_effects = true",
            asked.join(" and ")
        ))
    })
}

/// A call that was prepared and never made did not happen.
async fn cannot_verify(probe: &Probe, function: &Function) -> Result<Option<String>, String> {
    let Call::Tool { call, .. } = function.call("note") else { return Ok(None) };
    let scene = probe.scene();
    let prepared = match probe.call(&scene, Call::prepare(call.clone())).await?.ending {
        Ending::Returned(prepared) => prepared.to_string(),
        // A call that cannot be prepared is not started.
        Ending::Refused(_) => return Ok(None),
        Ending::Stopped(error) => return Ok(Some(format!("`prepare` was stopped: {error}"))),
    };
    let done = probe.call(&scene, Call::verify(call, prepared)).await?;
    Ok(match &done.ending {
        Ending::Returned(told) if told.get("happened").is_some() => {
            Some("`verify` says that a call has happened which was never made".to_owned())
        }
        Ending::Returned(_) | Ending::Refused(_) => None,
        Ending::Stopped(error) => Some(format!("`verify` was stopped: {error}")),
    })
}

/// Checks the traces of a call, in its keys and in the directories that it was given.
pub(crate) async fn read_only(probe: &Probe) -> Result<RuleVerdict, String> {
    let claimed: Vec<_> = probe.functions.iter().filter(|function| function.effect == "read-only").collect();
    for function in &claimed {
        let store = Arc::new(MemoryStore::new());
        let before = contents(probe);
        for text in ["note", "a.txt"] {
            probe.call(&probe.scene().with_store(store.clone()), function.call(text)).await?;
        }
        if !store.rows(Table::KeyValue).is_empty() {
            return Ok(RuleVerdict::Fail(format!("`{}` says `read-only` and wrote to its keys", function.name)));
        }
        if contents(probe) != before {
            return Ok(RuleVerdict::Fail(format!("`{}` says `read-only` and changed a directory", function.name)));
        }
    }
    Ok(if claimed.is_empty() {
        RuleVerdict::Skip("no function claims it".to_owned())
    } else {
        RuleVerdict::Pass(format!("{} left everything as it was", count(claimed.len(), "function")))
    })
}

/// Every file in the directories that were granted.
fn contents(probe: &Probe) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders: Vec<PathBuf> = probe.directories().iter().map(|grant| grant.host.clone()).collect();
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_symlink() || !path.is_dir() {
                all.insert(path.clone(), std::fs::read(&path).unwrap_or_default());
            } else {
                all.insert(path.clone(), Vec::new());
                folders.push(path);
            }
        }
    }
    all
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
