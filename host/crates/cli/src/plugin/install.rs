//! `longhaul plugin install`: installs a component from a file or an address, so that runs find it by its name.
//!
//! The command first shows the requests of the plugin for grants, and their changes since the version before; a person
//! agrees to them. Installing grants nothing: permissions come from longhaul.toml. Where a server works on runs, those
//! that have not ended are rehearsed on the new bytes first, and none of them is moved.

use super::{fetch, say, source};
use crate::confirm::agreed;
use crate::context::Context;
use crate::exit::Exit;
use crate::order::print_json;
use crate::rehearse::told_of_live;
use clap::Args;
use longhaul_api::operations::JournalOperations as _;
use longhaul_api::rehearsals::{RehearsalReport, RehearseRuns};
use longhaul_api::wire::plugins::{PluginChangesView, PluginInstallation};
use longhaul_config::asks::RequestedGrants;
use longhaul_conform::RuleVerdict;
use longhaul_core::Digest;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::grant::Access;
use longhaul_engine::{CompileLimits, Role};
use longhaul_plugins::installed::{InstalledPlugins, PluginSource, PluginVersion};
use longhaul_plugins::{InspectedPlugin, PluginChanges, find, read_bounded, verdict};
use std::io::Write as _;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub struct InstallArgs {
    /// A `.wasm` file or an `https` address, with an optional digest that the file must have. An `http` address needs a
    /// digest.
    #[arg(value_name = "FILE|URL[@sha256:DIGEST]")]
    source: String,
    /// Install it without a question.
    #[arg(long, short)]
    yes: bool,
    /// Do not rehearse the live runs of a server on it.
    #[arg(long)]
    no_rehearsal: bool,
}

/// The time for the rehearsal of live runs, in milliseconds: a person waits for the question.
const REHEARSAL_MS_MAX: u64 = 10_000;

/// Runs the command.
pub async fn run(context: &Context, args: &InstallArgs) -> fault::Result<Exit> {
    let (path, bytes, source) = read(&args.source).await?;
    let known = InspectedPlugin::of(&path, &bytes)?;
    let (name, version) = named(&path, &bytes, &known).await?;
    let installed = InstalledPlugins::of(&context.home);
    if let Some(foreign) = installed.foreign(&name) {
        bail!("`{}` was not installed by this command; move it away first", foreign.display());
    }
    let before = before(&installed, &name)?;
    let changes = before.as_ref().map(|(_, before)| known.changes_since(before));
    let mut notes = notes(&version, known.inspection.digest, &installed.versions(&name)?, before.as_ref());
    let rehearsal = match args.no_rehearsal {
        true => None,
        false => on_live_runs(context, &name, &bytes).await.unwrap_or_else(|error| {
            notes.push(format!("the live runs of the server were not rehearsed: {error:#}"));
            None
        }),
    };
    if !context.json {
        show(&known, before.as_ref().map(|(version, _)| version), changes.as_ref());
        if before.is_none()
            && let Ok(other) = find(&name, Some(&context.project), &context.home)
        {
            outln!("there is a plugin of that name already: {}", other.display());
        }
        notes.iter().for_each(|note| outln!("note: {note}"));
        if let Some(report) = &rehearsal {
            outln!("live runs keep the bytes that they have; `longhaul move RUN --plugin {name}` changes that");
            told_of_live(report).iter().for_each(|line| outln!("  {line}"));
        }
    }
    if !args.yes {
        if !context.json {
            outln!("installing grants nothing of it: longhaul.toml does");
        }
        agreed(context, "install it?", "nothing was installed", "read what it asks for and add --yes")?;
    }
    context.home.make()?;
    let digest = known.inspection.digest;
    let version = PluginVersion { version, digest, bytes: known.inspection.bytes, source };
    installed.change(say)?.install(&name, &bytes, version.clone())?;
    if context.json {
        let PluginChanges { asks, others } = changes.unwrap_or_default();
        print_json(&PluginInstallation {
            name,
            installed: version.into(),
            before: before.map(|(version, _)| version.into()),
            asks: known.manifest.asks.into(),
            changes: PluginChangesView { asks, others },
            notes,
            rehearsal,
        })?;
    } else {
        outln!("installed {name} {} (sha256:{})", version.version, digest.short());
        show_use(&name, known.inspection.role, &known.manifest.asks);
    }
    Ok(Exit::Done)
}

/// Rehearses the live runs of a server on these bytes. None: no server owns the data directory, or no live run there
/// has the plugin.
async fn on_live_runs(context: &Context, name: &str, bytes: &[u8]) -> fault::Result<Option<RehearsalReport>> {
    if context.home.lock_holder().is_none_or(|holder| !holder.is_server) {
        return Ok(None);
    }
    // The server reads the file that is judged here, even if the one that was named changes meanwhile.
    let mut file = tempfile::Builder::new().prefix("longhaul-").suffix(".wasm").tempfile()?;
    file.write_all(bytes)?;
    let (plugin, with) = (Some(name.to_owned()), Some(file.path().to_owned()));
    let time_ms_max = Some(REHEARSAL_MS_MAX);
    let request = RehearseRuns { live: true, plugin, with, time_ms_max, ..RehearseRuns::default() };
    let report = context.rehearse_runs(request).await?;
    Ok(Some(report).filter(|report| !report.runs.is_empty()))
}

/// Reads the component: its bytes, its file name, and its source.
async fn read(text: &str) -> fault::Result<(PathBuf, Vec<u8>, PluginSource)> {
    let (place, expected) = match text.rsplit_once("@sha256:") {
        Some((place, digits)) => (place, Some(digits.to_ascii_lowercase().parse::<Digest>()?)),
        None => (text, None),
    };
    let limits = CompileLimits::default();
    let read = if place.starts_with("https://") || place.starts_with("http://") {
        let address = fetch::address(place, expected.is_some())?;
        let name = address.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
        let path = PathBuf::from(if name.is_empty() { "plugin.wasm" } else { name });
        let bytes = fetch::fetch(&address, limits.bytes_max).await?;
        (path, bytes, PluginSource::Url(fetch::without_secrets(&address)))
    } else {
        let path = std::path::absolute(place)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = read_bounded(&name, &path, &limits)?;
        (path.clone(), bytes, PluginSource::File(path))
    };
    let found = Digest::of(&read.1);
    if let Some(expected) = expected.filter(|expected| *expected != found) {
        bail!("`{place}` has the digest {found}, and {expected} was asked for; nothing was installed");
    }
    Ok(read)
}

/// Name and version from the manifest that the component carries.
async fn named(path: &Path, bytes: &[u8], known: &InspectedPlugin) -> fault::Result<(String, String)> {
    if longhaul_engine::sections(&path.to_string_lossy(), bytes)?.manifest.is_none() {
        bail!(
            "`{}` carries no manifest, which says its name and what it asks for; build it with `longhaul plugin \
             build`, or put one in with `longhaul plugin pack`",
            path.display()
        );
    }
    verdict::check(&known.manifest, known.inspection.role)?;
    let report = super::check::report(source::stem(path), path, bytes).await?;
    if let Some(finding) = report.findings.iter().find(|finding| matches!(finding.judged, RuleVerdict::Fail(_))) {
        bail!("{}: {}; nothing was installed", finding.rule, finding.judged.why());
    }
    Ok((known.manifest.name.clone(), known.manifest.version.clone()))
}

/// Warnings for the person who agrees: other bytes under an installed version, and a step back to an older version.
fn notes(
    version: &str,
    digest: Digest,
    versions: &[PluginVersion],
    before: Option<&(PluginVersion, InspectedPlugin)>,
) -> Vec<String> {
    let same = versions.iter().rev().find(|other| other.version == version && other.digest != digest);
    let same = same.map(|other| {
        let short = other.digest.short();
        format!("{version} is installed already with other bytes (sha256:{short}); runs would take these instead")
    });
    let before = before.map(|(before, _)| before.version.as_str());
    let older = before.filter(|before| verdict::is_older(version, before));
    let older = older.map(|before| format!("{version} is older than {before}, which runs take now"));
    same.into_iter().chain(older).collect()
}

/// The version that runs use so far.
fn before(installed: &InstalledPlugins, name: &str) -> fault::Result<Option<(PluginVersion, InspectedPlugin)>> {
    if installed.current(name).is_none() {
        return Ok(None);
    }
    let (path, version) = installed.find(&name.parse()?)?;
    let known = InspectedPlugin::read(&path).with_context(|| format!("the installed {name} {}", version.version))?;
    Ok(Some((version, known)))
}

fn show(known: &InspectedPlugin, before: Option<&PluginVersion>, changes: Option<&PluginChanges>) {
    known.lines().iter().for_each(|line| outln!("{line}"));
    let (Some(before), Some(PluginChanges { asks, others })) = (before, changes) else { return };
    if before.digest == known.inspection.digest {
        outln!("it is installed already");
        return;
    }
    outln!("since {} (sha256:{})", before.version, before.digest.short());
    if asks.is_empty() {
        outln!("  it asks for the same");
    }
    asks.iter().chain(others).for_each(|line| outln!("  {line}"));
}

/// Prints lines for longhaul.toml that use the plugin and grant its requests.
fn show_use(name: &str, role: Role, asks: &RequestedGrants) {
    let table = match role {
        Role::Agent => format!("agents.{name}"),
        Role::Tool => format!("tools.{name}"),
        // No table of longhaul.toml uses a memory backend yet.
        Role::Memory => return,
        Role::Planner | Role::Evaluator => role.name().to_owned(),
    };
    outln!("to use it, add to longhaul.toml what you want to give it:");
    outln!("  [{table}]\n  plugin = \"{name}\"");
    let named = [(asks.models, "models = [\"default\"]"), (asks.tools, "tools = []"), (asks.agents, "agents = []")];
    named.into_iter().filter(|(asked, _)| *asked).for_each(|(_, line)| outln!("  {line}"));
    if !asks.directories.is_empty() {
        let each = asks.directories.iter().map(|asked| {
            let access = if asked.access == Access::Write { "write" } else { "read" };
            format!("{{ guest = {}, access = \"{access}\" }}", toml::Value::from(asked.guest.as_str()))
        });
        outln!("  directories = [{}]", each.collect::<Vec<_>>().join(", "));
    }
    let hosts: Vec<toml::Value> =
        asks.hosts.iter().filter(|host| *host != "*").map(|host| host.as_str().into()).collect();
    if !asks.hosts.is_empty() {
        outln!("  hosts = {}", toml::Value::from(hosts));
    }
}
