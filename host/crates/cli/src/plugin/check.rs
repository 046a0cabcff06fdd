//! `longhaul plugin check`: checks a plugin without giving it work. A tool is asked for its functions, in the sandbox
//! and without any grant; no other export is called.

use super::super::context::Context;
use super::super::exit::Exit;
use super::source;
use crate::order::print_json;
use longhaul_api::wire::plugins::{ConformView, RuleFindingView};
use longhaul_conform::{ConformReport, RuleFinding, RuleVerdict, examine};
use longhaul_core::fault;
use longhaul_engine::{CompileLimits, Role};
use longhaul_plugins::manifest::{self, ManifestFile, PluginManifest};
use longhaul_plugins::{read_bounded, verdict};
use longhaul_testkit::{Call, Ending};
use std::path::Path;

/// Runs the command.
pub async fn run(context: &Context, file: &str) -> fault::Result<Exit> {
    let path = source::file_of(context, file)?;
    let name = source::stem(&path);
    let bytes = read_bounded(&name, &path, &CompileLimits::default())?;
    let report = report(name, &path, &bytes).await?;
    show(context, &report)?;
    Ok(if report.passes() { Exit::Done } else { Exit::Error })
}

/// Prints the findings.
pub(crate) fn show(context: &Context, report: &ConformReport) -> fault::Result<()> {
    if context.json {
        return print_json(&view(report));
    }
    outtext!(report.to_string());
    Ok(())
}

fn view(report: &ConformReport) -> ConformView {
    let finding = |RuleFinding { rule, judged }: &RuleFinding| RuleFindingView {
        rule: (*rule).to_owned(),
        result: judged.word().to_owned(),
        why: judged.why().to_owned(),
    };
    ConformView {
        plugin: report.name.clone(),
        role: report.role.map(str::to_owned),
        passes: report.passes(),
        findings: report.findings.iter().map(finding).collect(),
    }
}

/// Collects the findings.
pub(super) async fn report(name: String, path: &Path, bytes: &[u8]) -> fault::Result<ConformReport> {
    let (mut findings, looked) = examine(&name, bytes);
    let role = looked.map(|looked| looked.role);
    let judged = match manifest::find(path, bytes) {
        Ok(found) => judge_manifest(found.as_ref(), role),
        Err(error) => RuleVerdict::Fail(format!("{error:#}")),
    };
    findings.push(RuleFinding { rule: "manifest", judged });
    let is_sound = findings.iter().all(|finding| !matches!(finding.judged, RuleVerdict::Fail(_)));
    findings.push(RuleFinding { rule: "functions", judged: functions(&name, bytes, role, is_sound).await? });
    Ok(ConformReport { name, role: role.map(Role::name), findings })
}

/// A plugin without a manifest asks for no grants, which is no fault.
pub(crate) fn judge_manifest(found: Option<&ManifestFile>, role: Option<Role>) -> RuleVerdict {
    let Some(found) = found else {
        return RuleVerdict::Skip(
            "it carries none, so it asks for nothing; `longhaul plugin pack` puts one in".to_owned(),
        );
    };
    let manifest: PluginManifest = match found.read() {
        Ok(manifest) => manifest,
        Err(error) => return RuleVerdict::Fail(format!("{error:#}")),
    };
    let checked = match role {
        Some(role) => verdict::check(&manifest, role),
        None => verdict::check_names(&manifest),
    };
    if let Err(error) = checked {
        return RuleVerdict::Fail(error.to_string());
    }
    let asks = serde_json::to_string(&manifest.asks).unwrap_or_default();
    RuleVerdict::Pass(format!("{} {}, asks for {asks}", manifest.name, manifest.version))
}

/// The functions that a tool describes.
async fn functions(name: &str, bytes: &[u8], role: Option<Role>, is_sound: bool) -> fault::Result<RuleVerdict> {
    if role != Some(Role::Tool) {
        return Ok(RuleVerdict::Skip("only tools have functions".to_owned()));
    }
    if !is_sound {
        return Ok(RuleVerdict::Skip("it is not asked, since it is no sound plugin".to_owned()));
    }
    let scene = match super::kit()?.load_bytes(name, bytes).await {
        Ok(scene) => scene,
        Err(error) => return Ok(RuleVerdict::Fail(error.to_string())),
    };
    let done = scene.call(Call::Describe).await?;
    Ok(match done.ending {
        Ending::Returned(info) => {
            let functions = info["functions"].as_array().into_iter().flatten();
            let names: Vec<&str> = functions.filter_map(|function| function["name"].as_str()).collect();
            RuleVerdict::Pass(format!("{}: {}", longhaul_core::text::count(names.len(), "function"), names.join(", ")))
        }
        Ending::Refused(refusal) => RuleVerdict::Fail(refusal.text),
        Ending::Stopped(error) => RuleVerdict::Fail(error.to_string()),
    })
}
