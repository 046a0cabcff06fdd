//! Projects, as they are made, listed and checked, and the MCP servers that they name. Reads no file.

use crate::checks::{Finding, Overview};
use crate::runs::ProjectSummary;
use longhaul_mcp::Definition;
use longhaul_models::set::ModelOptions;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Make a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreateProject {
    /// Where.
    pub directory: PathBuf,
    /// Its name. Default: the directory's.
    pub name: Option<String>,
    /// Whether the directory is to be made, or is empty, or is one that holds files already.
    pub fresh: bool,
}

/// List the projects.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListProjects {}

/// Check a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckProject {
    /// The project.
    pub directory: PathBuf,
    /// What is done to its models.
    #[serde(default)]
    pub models: ModelOptions,
}

/// Read how an MCP server describes its tools.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DescribeMcp {
    /// The project.
    pub directory: PathBuf,
    /// The server, by its name in `longhaul.toml`.
    pub server: String,
}

/// Accept the tools of an MCP server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AcceptMcp {
    /// The project.
    pub directory: PathBuf,
    /// The server, by its name in `longhaul.toml`.
    pub server: String,
    /// The digest of its present descriptions.
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

/// A project that was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreatedProject {
    /// Its name.
    pub project: String,
    /// Where it is.
    pub directory: PathBuf,
    /// Whether its git repository was made, too.
    pub repository_is_new: bool,
}

/// Projects in short.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProjectList {
    /// The one that something happened to last comes first.
    pub projects: Vec<ProjectSummary>,
}

/// What is wrong with a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProjectCheck {
    /// All of it; none: nothing is.
    pub findings: Vec<Finding>,
    /// What would run.
    pub overview: Overview,
}

/// How an MCP server describes its tools.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct McpTools {
    /// The digest of all of it, by which it is accepted.
    pub digest: String,
    /// Each tool.
    pub tools: Vec<Definition>,
}

/// Descriptions that were accepted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AcceptedMcp {
    /// Their digest.
    pub digest: String,
}
