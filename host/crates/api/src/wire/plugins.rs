//! Plugins: lists, projects, builds, installations and removals; inspections, checks and calls of one component.

use super::words;
use crate::rehearsals::RehearsalReport;
use longhaul_config::asks::{RequestedDirectory, RequestedGrants};
use longhaul_core::LimitHit;
use longhaul_core::event::Event;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One installed version of a plugin.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct InstalledVersion {
    /// The version of its manifest.
    pub version: String,
    /// The digest of its bytes.
    pub digest: String,
    /// The number of its bytes.
    pub bytes: u64,
}

/// A plugin.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Plugin))]
pub struct PluginView {
    /// Its name.
    pub name: String,
    /// Path of the component that a run uses.
    pub path: String,
    /// Its role, for example `tool`; null if it cannot be read.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub role: Option<String>,
    /// The version of its manifest.
    pub version: String,
    /// Its description, in one line.
    pub description: String,
    /// The digest of its bytes; null if it cannot be read.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub digest: Option<String>,
    /// The grants that it asks for, one line each.
    pub requested_grants: Vec<String>,
    /// The reason why it cannot be read.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub error: Option<String>,
    /// Its installed versions.
    pub installed: Vec<InstalledVersion>,
}

words! {
    /// The access to a directory.
    RequestedAccess of longhaul_core::grant::Access as InnerAccess {
        /// Its files are listed and read.
        Read,
        /// Its files are also changed.
        Write,
    }
}

/// A directory that a plugin asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestedDirectoryView {
    /// The path in the guest.
    pub guest: String,
    /// The access.
    pub access: RequestedAccess,
}

impl From<RequestedDirectory> for RequestedDirectoryView {
    fn from(inner: RequestedDirectory) -> Self {
        let RequestedDirectory { guest, access } = inner;
        Self { guest, access: access.into() }
    }
}

/// The grants that a plugin asks for. longhaul.toml decides about them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestedGrantsView {
    /// True when it calls models.
    pub models: bool,
    /// True when it calls tools.
    pub tools: bool,
    /// True when it delegates to agents.
    pub agents: bool,
    /// The directories.
    pub directories: Vec<RequestedDirectoryView>,
    /// The hosts, as patterns; `*`: any hosts that the operator grants.
    pub hosts: Vec<String>,
}

impl From<RequestedGrants> for RequestedGrantsView {
    fn from(inner: RequestedGrants) -> Self {
        let RequestedGrants { models, tools, agents, directories, hosts } = inner;
        Self { models, tools, agents, directories: directories.into_iter().map(Into::into).collect(), hosts }
    }
}

/// The facts in the bytes of a component.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComponentView {
    /// The role, for example `tool`.
    pub role: String,
    /// The version of the contract.
    pub contract: String,
    /// The digest of the bytes.
    pub digest: String,
    /// Number of the bytes.
    pub bytes: u64,
    /// Number of functions in all its modules.
    pub functions: u64,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// The interfaces that it exports.
    pub exports: Vec<String>,
}

/// A component and its manifest, neither of which was run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PluginInspection {
    /// The facts in its bytes.
    pub component: ComponentView,
    /// The name in its manifest. Empty: it has no manifest.
    pub name: String,
    /// The version in its manifest.
    pub version: String,
    /// The description in its manifest, in one line.
    pub description: String,
    /// The grants that it asks for.
    pub asks: RequestedGrantsView,
    /// The settings that it declares, in the form of `plugin.toml`; null: it declares none.
    pub settings: Option<Value>,
    /// Texts that its tool chain put in, by their names.
    pub metadata: BTreeMap<String, String>,
}

/// The verdict of one rule of a check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuleFindingView {
    /// The name of the rule.
    pub rule: String,
    /// `PASS`, `FAIL`, or `SKIP` where the rule does not apply.
    pub result: String,
    /// The reason, in words.
    pub why: String,
}

/// The verdicts of a check of one component.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConformView {
    /// The name of the component.
    pub plugin: String,
    /// The role, for example `tool`; null: it has none.
    pub role: Option<String>,
    /// True when no rule failed.
    pub passes: bool,
    /// The verdicts, in the order of the rules.
    pub findings: Vec<RuleFindingView>,
}

/// A limit that was reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LimitHitView {
    /// The name of the limit, which has its unit.
    pub name: String,
    /// The amount that was used or asked for.
    pub used: f64,
    /// The limit.
    pub max: f64,
}

impl From<LimitHit> for LimitHitView {
    fn from(inner: LimitHit) -> Self {
        let LimitHit { name, used, max } = inner;
        Self { name, used, max }
    }
}

/// The reason for which a call was stopped.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoppedCallView {
    /// `limit`, `trap`, `contract`, `question`, `outage`, `journal`, `cancel` or `host`.
    pub by: String,
    /// The reason, in words.
    pub text: String,
}

/// The end of a call of an export.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PluginCallEnd {
    /// The value that the export returned.
    Result(Value),
    /// The error that the export returned: its case, with the detail of the case.
    Error(Map<String, Value>),
    /// The call was stopped.
    Stopped(StoppedCallView),
}

/// A call of an import.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportCallView {
    /// The capability and verb, for example `tools.call`.
    pub name: String,
    /// A summary for people.
    pub summary: String,
}

/// A line of the log of a plugin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LogLineView {
    /// `trace`, `debug`, `info`, `warn`, `error`, or `stdout` and `stderr` for printed text.
    pub level: String,
    /// The text.
    pub text: String,
}

/// The result of a call of one export of a plugin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PluginCallView {
    /// The end of the call.
    #[serde(flatten)]
    pub end: PluginCallEnd,
    /// The name of the export.
    pub export: String,
    /// The limit that stopped it; null: none did.
    pub limit: Option<LimitHitView>,
    /// The fuel that it used, in units of wasmtime.
    pub fuel: u64,
    /// The highest sum of its memories, in bytes.
    pub memory_bytes_peak: u64,
    /// Number of calls of imports.
    pub host_calls: u64,
    /// Number of calls of models.
    pub model_calls: u32,
    /// Time from start to end, in milliseconds.
    pub wall_ms: f64,
    /// The calls of imports, if it is a planner, an agent or an evaluator.
    pub calls: Vec<ImportCallView>,
    /// The events of its conversations.
    pub events: Vec<Event>,
    /// The log of the plugin.
    pub log: Vec<LogLineView>,
    /// Number of lines above the limit of the log.
    pub log_dropped: u64,
}

/// A new project of a plugin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewPluginView {
    /// The name of the plugin.
    pub name: String,
    /// The kind: `agent`, `planner`, `tool`, `evaluator` or `memory`.
    pub kind: String,
    /// The language.
    pub language: String,
    /// The path of the project.
    pub directory: String,
}

/// A built component.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BuiltPluginView {
    /// The name of the plugin.
    pub name: String,
    /// The version in its manifest.
    pub version: String,
    /// The world that it was built for.
    pub world: String,
    /// The language.
    pub language: String,
    /// The path of the component.
    pub path: String,
    /// The length of the component, in bytes.
    pub bytes: usize,
    /// The digest of the component.
    pub digest: String,
    /// The duration of the build, in seconds.
    pub seconds: f64,
}

/// The result of one scenario of a plugin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScenarioView {
    /// The name of the folder of the scenario.
    pub scenario: String,
    /// `PASS`, `FAIL`, or `UPDATE` where a changed expectation was written.
    pub result: String,
    /// The difference from the expectation; null: it passes.
    pub difference: Option<String>,
    /// The difference that was written into the expectation; null: none was.
    pub accepted: Option<String>,
}

/// A scenario that was recorded of an invocation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordedScenarioView {
    /// The name of the folder of the scenario.
    pub scenario: String,
    /// The invocation.
    pub invocation: String,
    /// The name of the plugin.
    pub plugin: String,
    /// The version in its manifest. Empty: it has none.
    pub version: String,
    /// The first entry whose call is compared.
    pub from: u32,
    /// The last one.
    pub to: u32,
    /// True when the end of the invocation is compared, too.
    pub has_end: bool,
}

/// Values of one kind that were replaced in a recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplacementView {
    /// The kind, for example `e-mail address`, or the pattern of a rule.
    pub kind: String,
    /// The number of replacements.
    pub count: usize,
}

/// The scenarios that were recorded of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordedScenariosView {
    /// The path of the directory with their folders.
    pub directory: String,
    /// The scenarios, in the order of the invocations.
    pub scenarios: Vec<RecordedScenarioView>,
    /// What was replaced.
    pub replaced: Vec<ReplacementView>,
    /// The reason for each invocation that was left out.
    pub skipped: Vec<String>,
}

/// The source of an installed plugin.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PluginSourceView {
    /// The path of a file of this machine.
    File(String),
    /// An address.
    Url(String),
    /// Built by this program from its own sources, which have this digest.
    Made(String),
}

/// An installed version of a plugin, with its source.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PluginVersionView {
    /// The version in its manifest.
    pub version: String,
    /// The digest of its bytes.
    pub digest: String,
    /// Number of its bytes.
    pub bytes: u64,
    /// Its source.
    pub source: PluginSourceView,
}

/// The changes from one version of a plugin to the next. Lines with `+` are new, lines with `-` are gone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PluginChangesView {
    /// The changes of the grants that it asks for.
    pub asks: Vec<String>,
    /// All other changes.
    pub others: Vec<String>,
}

/// An installation of a plugin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PluginInstallation {
    /// The name of the plugin.
    pub name: String,
    /// The installed version.
    pub installed: PluginVersionView,
    /// The version that runs took before; null: there was none.
    pub before: Option<PluginVersionView>,
    /// The grants that it asks for.
    pub asks: RequestedGrantsView,
    /// The changes since the version before.
    pub changes: PluginChangesView,
    /// The warnings for the person who agreed.
    pub notes: Vec<String>,
    /// The rehearsal of the live runs of a server on it; null: there are none, or it was not asked for.
    #[serde(default)]
    pub rehearsal: Option<RehearsalReport>,
}

/// A removal of versions of a plugin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PluginRemoval {
    /// The name of the plugin.
    pub name: String,
    /// The removed versions.
    pub removed: Vec<PluginVersionView>,
    /// The digest of the version that runs take now; null: there is none.
    pub current: Option<String>,
}

/// An interpreter of this program, which is a plugin that is made on demand.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuntimeView {
    /// The name of the interpreter.
    pub name: String,
    /// `ready`; `stale`: built from other sources than those of this program; `missing`; `shipped`: ready, since this
    /// program carries it; `foreign`: another plugin has this name; `provided`: runs use one of another directory of
    /// plugins.
    pub state: String,
    /// The path of its component.
    pub path: String,
    /// The length of its component, in bytes; null: there is none.
    pub bytes: Option<u64>,
    /// The duration of the build, in seconds; null: it was not built now.
    pub seconds: Option<f64>,
    /// The paths of components with this name in other directories of plugins, which runs do not use.
    #[serde(default)]
    pub unused: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_end_of_a_call_is_read_from_the_form_that_it_is_printed_in() {
        for end in [
            json!({ "result": null }),
            json!({ "result": { "a": 1 } }),
            json!({ "error": { "invalid-arguments": "no number" } }),
            json!({ "stopped": { "by": "limit", "text": "limit `fuel_max` reached: 2 of 1" } }),
        ] {
            let read: PluginCallEnd = serde_json::from_value(end.clone()).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), end);
        }
    }
}
