//! The subject of a check: a component, and its manifest. Nothing here reads or runs it.

use longhaul_core::Limits;
use longhaul_core::grant::DirectoryGrant;
use longhaul_testkit::{Call, Script};
use serde_json::Value;

/// A component, and its manifest.
#[derive(Clone, Debug)]
pub struct ConformSubject {
    /// Its name, for people.
    pub name: String,
    /// The component.
    pub bytes: Vec<u8>,
    /// The limits in its manifest.
    pub limits: Limits,
    /// The settings for its calls.
    pub settings: Value,
    /// The requested directories; temporary ones replace their targets.
    pub directories: Vec<DirectoryGrant>,
    /// True when its manifest requests hosts.
    pub asks_hosts: bool,
    /// True when its manifest says that its answers depend on randomness.
    pub random: bool,
    /// Good calls, beside the generated ones.
    pub calls: Vec<Call>,
    /// Answers of models, tools, checks and sub-agents to good calls. None: meaningless answers.
    pub script: Option<Script>,
    /// True when the journals of good calls are cut at each entry and resumed, too.
    pub crash: bool,
}

impl ConformSubject {
    /// A component without a manifest, within [`stated_by_nobody`].
    #[must_use]
    pub fn new(name: &str, bytes: Vec<u8>) -> Self {
        Self {
            name: name.to_owned(),
            bytes,
            limits: stated_by_nobody(),
            settings: serde_json::json!({}),
            directories: Vec::new(),
            asks_hosts: false,
            random: false,
            calls: Vec::new(),
            script: None,
            crash: false,
        }
    }
}

/// The limits of a plugin that states none: those of a run, but 20 000 000 000 fuel, twice what an
/// interpreter needed for a megabyte of text. Fuel decides and not time, since a verdict must not depend
/// on how busy the machine is.
#[must_use]
pub fn stated_by_nobody() -> Limits {
    Limits { fuel_max: 20_000_000_000, wall_ms_max: 600_000, cpu_ms_max: 600_000, ..Limits::default() }
}
