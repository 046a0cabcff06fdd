//! `longhaul conform`: tests a component against the rules of the contract.

use super::context::Context;
use super::exit::Exit;
use super::plugin;
use clap::Args;
use longhaul_config::asks::RequestedDirectory;
use longhaul_conform::{ConformSubject, RuleFinding, conform, stated_by_nobody};
use longhaul_core::Limits;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::grant::DirectoryGrant;
use longhaul_engine::CompileLimits;
use longhaul_plugins::manifest::{self, PluginManifest};
use longhaul_plugins::read_bounded;
use longhaul_testkit::{Call, Script};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub struct ConformArgs {
    /// A `.wasm` file, or the name of a plugin.
    file: String,
    /// The manifest. Default: the one that the component carries, else the `.toml` file of the same name beside it.
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Also write the findings to this file, as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also cut the journal of each good call at every entry, before and after its answer, as a kill would, and resume
    /// the call: the result, the calls and the fuel have to be the same, and no finished effect may happen again.
    #[arg(long)]
    crash: bool,
}

/// The fields of a manifest that only this command reads.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ManifestExtras {
    /// The limits that the plugin claims to stay within. The host's limit holds for a missing field.
    limits: toml::Table,
    /// Inputs and settings of the trial.
    conform: ConformTable,
}

/// `[conform]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ConformTable {
    settings: Option<Value>,
    random: bool,
    calls: Vec<ConformCall>,
    script: Option<Script>,
}

/// `[[conform.calls]]`: a call that must succeed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConformCall {
    export: String,
    #[serde(default)]
    input: Value,
}

/// Runs the command.
pub async fn run(context: &Context, args: ConformArgs) -> fault::Result<Exit> {
    let path = plugin::file_of(context, &args.file)?;
    let name = plugin::stem(&path);
    let bytes = read_bounded(&name, &path, &CompileLimits::default())?;
    let manifest = manifest_of(&path, &bytes, args.manifest.as_deref())?;
    let role = longhaul_conform::examine(&name, &bytes).1.map(|looked| looked.role);
    let judged = plugin::judge_manifest(manifest.as_ref(), role);
    let subject = ConformSubject { crash: args.crash, ..subject(&name, bytes, manifest.as_ref())? };
    let mut report = conform(&plugin::kit()?, subject).await;
    report.findings.push(RuleFinding { rule: "manifest", judged });
    plugin::show_findings(context, &report)?;
    if let Some(file) = &args.junit {
        std::fs::write(file, report.to_junit()).with_context(|| format!("cannot write `{}`", file.display()))?;
    }
    Ok(if report.passes() { Exit::Done } else { Exit::Error })
}

/// The component with the claims of its manifest.
fn subject(name: &str, bytes: Vec<u8>, manifest: Option<&manifest::ManifestFile>) -> fault::Result<ConformSubject> {
    let nothing_said = ConformSubject::new(name, bytes);
    let Some(found) = manifest else { return Ok(nothing_said) };
    let (manifest, more): (PluginManifest, ManifestExtras) = (found.read()?, found.read()?);
    let asked = |asked: &RequestedDirectory| DirectoryGrant {
        guest: asked.guest.clone(),
        host: PathBuf::new(),
        access: asked.access,
    };
    let ConformTable { settings, random, calls, script } = more.conform;
    Ok(ConformSubject {
        limits: limits(&more.limits).context("[limits] of the manifest")?,
        settings: settings.unwrap_or_else(|| json!({})),
        directories: manifest.asks.directories.iter().map(asked).collect(),
        asks_hosts: !manifest.asks.hosts.is_empty(),
        random,
        calls: calls.into_iter().map(|one| Call::from_json(&one.export, one.input)).collect::<Result<_, _>>()?,
        script,
        ..nothing_said
    })
}

/// The manifest of a component: the named file, or else the component's own, if it has one.
fn manifest_of(component: &Path, bytes: &[u8], named: Option<&Path>) -> fault::Result<Option<manifest::ManifestFile>> {
    let Some(path) = named else { return manifest::find(component, bytes) };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    Ok(Some(manifest::ManifestFile { place: path.to_owned(), text }))
}

/// The stated limits, over the limits that hold by default.
fn limits(stated: &toml::Table) -> fault::Result<Limits> {
    let mut all = toml::Table::try_from(stated_by_nobody())?;
    all.extend(stated.clone());
    Ok(all.try_into()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_states_single_limits_and_no_made_up_ones() {
        let stated = limits(&"fuel_max = 7".parse().unwrap()).unwrap();
        assert_eq!((stated.fuel_max, stated.wall_ms_max), (7, stated_by_nobody().wall_ms_max));
        assert!(limits(&"fuel = 7".parse().unwrap()).is_err());
    }
}
