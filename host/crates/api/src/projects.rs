//! Requests and responses about projects and their MCP servers. This module reads no file.

use crate::checks::{Finding, Overview};
use crate::runs::ProjectSummary;
use longhaul_mcp::Definition;
use longhaul_models::set::ModelOptions;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Create a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreateProject {
    /// The directory of the project.
    pub directory: PathBuf,
    /// The name of the project. None: that of the directory.
    pub name: Option<String>,
    /// True when the directory must be missing or empty. False: it exists, and may hold files.
    pub fresh: bool,
}

/// List the projects.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListProjects {}

/// Check a project without asking a model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckProject {
    /// The directory of the project.
    pub directory: PathBuf,
    /// The options of its models.
    #[serde(default)]
    pub models: ModelOptions,
}

/// Read the descriptions of the tools of an MCP server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DescribeMcp {
    /// The directory of the project.
    pub directory: PathBuf,
    /// The name of the server in `longhaul.toml`.
    pub server: String,
}

/// Accept the tools of an MCP server as it describes them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AcceptMcp {
    /// The directory of the project.
    pub directory: PathBuf,
    /// The name of the server in `longhaul.toml`.
    pub server: String,
    /// The digest of the descriptions that were shown.
    pub digest: String,
}

impl CreateProject {
    pub(crate) fn paths(&self) -> Vec<&Path> {
        vec![&self.directory]
    }
}

impl DescribeMcp {
    pub(crate) fn paths(&self) -> Vec<&Path> {
        vec![&self.directory]
    }
}

impl AcceptMcp {
    pub(crate) fn paths(&self) -> Vec<&Path> {
        vec![&self.directory]
    }
}

/// A created project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreatedProject {
    /// The name of the project.
    pub project: String,
    /// The directory of the project.
    pub directory: PathBuf,
    /// True when its git repository was created, too.
    pub repository_is_new: bool,
}

/// All projects.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProjectList {
    /// The projects, the one with the latest event first.
    pub projects: Vec<ProjectSummary>,
}

/// The result of checking a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProjectCheck {
    /// The faults. Empty: there is none.
    pub findings: Vec<Finding>,
    /// The description of a run.
    pub overview: Overview,
}

/// The descriptions of the tools of an MCP server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct McpTools {
    /// The digest of all descriptions, which [`AcceptMcp`] names.
    pub digest: String,
    /// The description of each tool.
    pub tools: Vec<Definition>,
}

/// Accepted descriptions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AcceptedMcp {
    /// The digest of the descriptions.
    pub digest: String,
}
