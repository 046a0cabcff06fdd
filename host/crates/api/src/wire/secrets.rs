//! Secrets by their names. No type of this module holds a value.

use longhaul_security::secrets::{ListedSecret, SecretBinding};
use serde::{Deserialize, Serialize};

/// The binding of a secret: no other consumer gets it, whatever longhaul.toml grants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SecretBindingView {
    /// Tables of tools and servers, such as `tools.poster`. Empty: every table of the project.
    pub tables: Vec<String>,
    /// The hosts that it may be sent to. Empty: those in longhaul.toml if no table is named either; otherwise none,
    /// since the program of a server gets it.
    pub hosts: Vec<String>,
}

impl From<SecretBinding> for SecretBindingView {
    fn from(inner: SecretBinding) -> Self {
        let SecretBinding { tables, hosts } = inner;
        Self { tables, hosts: hosts.into_iter().map(Into::into).collect() }
    }
}

/// A secret that is set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SecretView {
    /// The name of the secret.
    pub name: String,
    /// True when every project of the data directory may be granted it.
    pub any_project: bool,
    /// Its binding.
    pub bound: SecretBindingView,
}

impl From<ListedSecret> for SecretView {
    fn from(inner: ListedSecret) -> Self {
        let ListedSecret { name, any_project, bound } = inner;
        Self { name, any_project, bound: bound.into() }
    }
}

/// A change of a secret, by its name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretChange {
    /// The secret was set.
    Set(String),
    /// The secret was removed.
    Removed(String),
}
