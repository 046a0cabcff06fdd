//! The fitness of this machine for runs, as `longhaul doctor` finds it.

use longhaul_models::discover::FoundServer;
use serde::{Deserialize, Serialize};

/// The state that a check of the machine found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// Everything is in order.
    Fine,
    /// It works, with less than there could be.
    Less,
    /// Something will not work.
    Broken,
}

/// The result of a check of the machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckResult {
    /// The name of the check.
    pub what: String,
    /// The state.
    pub state: CheckState,
    /// The finding in words, with a remedy.
    pub said: String,
}

/// A model server on this machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ModelServerView {
    /// The usual server on its port. It may be another one.
    pub usually: String,
    /// The address for `base_url` of a model.
    pub base_url: String,
    /// The models that it lists, at most 20.
    pub models: Vec<String>,
}

impl From<FoundServer> for ModelServerView {
    fn from(inner: FoundServer) -> Self {
        let FoundServer { usually, base_url, models } = inner;
        Self { usually, base_url, models }
    }
}

/// The fitness of this machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DoctorView {
    /// The path of the data directory.
    pub home: String,
    /// The shipped plugins that are not found.
    pub plugins_missing: Vec<String>,
    /// The variables of the environment that hold keys of providers. Their values are not read.
    pub keys: Vec<String>,
    /// The model servers that answered on the usual ports of this machine.
    pub servers: Vec<ModelServerView>,
    /// The path of the small model that was fetched; null: none was.
    pub local_model: Option<String>,
    /// True when this longhaul can run the small model.
    pub local_model_built_in: bool,
    /// The results of the checks, in their order.
    pub checks: Vec<CheckResult>,
}

/// The end of one bomb: a component that is made to be slow, huge or deep.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BombView {
    /// The name of the bomb.
    pub name: String,
    /// The resource or the code that it attacks.
    pub attacks: String,
    /// True when it ended as it must.
    pub held: bool,
    /// `held`, `not-held`, or `not-tried` where the compiler did not start.
    pub verdict: String,
    /// The end, in words.
    pub said: String,
    /// Wall-clock time from load to end, in milliseconds.
    pub ms: u64,
    /// The highest sample of the memory of its process and the compiler, in bytes.
    pub memory_bytes: u64,
}
