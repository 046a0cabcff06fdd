//! The context of a command: the data directory, the project, the options of every command, and a client that asks the
//! service.
//!
//! Only requests that may be carried out twice are repeated.

use super::arguments::RunArg;
use super::command_client::CommandClient;
use super::owner::Owner;
use longhaul_api::operations::{Operation, Transport};
use longhaul_api::runs::RunRef;
use longhaul_client::{Client, which};
use longhaul_core::fault;
use longhaul_home::Home;
use std::path::PathBuf;
use std::sync::Arc;

/// Options that hold for every command.
pub(super) struct Context {
    pub(super) home: Home,
    /// An absolute path: the owner of the data directory may have another working directory.
    pub(super) project: PathBuf,
    /// True when the command line names a project with `--project`.
    pub(super) names_project: bool,
    pub(super) json: bool,
    /// True when longhaul.toml is agreed to without a question.
    pub(super) trust: bool,
    pub(super) client: CommandClient,
    /// Does what needs the store, the service or the servers.
    pub(super) owner: Arc<dyn Owner>,
}

impl Transport for Context {
    async fn call<O: Operation>(&self, request: O) -> fault::Result<O::Response> {
        self.client.call(request).await
    }
}

impl Context {
    /// See [`CommandClient::take`].
    pub(super) async fn client(&self) -> fault::Result<Client> {
        self.client.take().await
    }

    pub(super) fn which(&self, run: RunArg) -> RunRef {
        which(run.named, &self.project)
    }
}
