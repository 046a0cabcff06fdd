//! The contract's rules, held against any component of any language.
//!
//! [`look`] says what can be said without running a component; [`conform`] also calls it, through the
//! test kit, with good, wrong and hostile input. Each rule has an id that stays, and gives one finding:
//! PASS, FAIL or SKIP with the reason.
//!
//! This crate grants nothing beyond what the manifest asks for, and nothing outside of temporary
//! directories; it never reaches a network. A component that passes can still be wrong: the rules are
//! what the host relies on, and not what the plugin is for.

mod look;
mod probe;
mod report;
mod rules;
mod schema;

pub use look::look;
pub use report::{Finding, Judged, Report};
pub use rules::{Bench, Rule, conform, conform_backend, rules};

use longhaul_core::Limits;
use longhaul_core::grant::DirectoryGrant;
use longhaul_testkit::{Call, Script};
use serde_json::Value;

/// A component, and what its manifest says of it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The component's name, for people.
    pub name: String,
    /// The component.
    pub bytes: Vec<u8>,
    /// Limits that it claims to keep within.
    pub limits: Limits,
    /// The settings that it is called with.
    pub settings: Value,
    /// The directories that it asks for; where they lead is replaced by temporary ones.
    pub directories: Vec<DirectoryGrant>,
    /// Whether it asks for hosts.
    pub asks_hosts: bool,
    /// Whether it says that its answers depend on randomness.
    pub random: bool,
    /// Good calls, beside the ones that are made up.
    pub calls: Vec<Call>,
    /// Answers of models, tools, checks and sub-agents to good calls. None: answers that mean nothing.
    pub script: Option<Script>,
}

impl Subject {
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
