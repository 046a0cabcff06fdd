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
use longhaul_core::fault::{self, bail};
use longhaul_home::Home;
use std::path::PathBuf;
use std::sync::Arc;

/// Options that hold for every command.
pub(super) struct Context {
    pub(super) home: Home,
    /// An absolute path: the owner of the data directory may have another working directory. With `--server` a path of
    /// the server, and empty where none is named.
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

    /// True when a server elsewhere carries the command out: paths are those of its machine.
    pub(super) fn is_of_server(&self) -> bool {
        self.client.is_of_server()
    }

    /// Refuses an argument that names directories of this machine, where a server elsewhere is asked.
    pub(super) fn expect_own_machine(&self, what: &str) -> fault::Result<()> {
        if self.is_of_server() {
            bail!("{what} is of this machine, and not of a server; give it on the server's machine, without --server");
        }
        Ok(())
    }

    /// A path that the service reads or writes, made absolute. One of a server's machine stays as it is.
    pub(super) fn whole(&self, path: PathBuf) -> PathBuf {
        if self.is_of_server() { path } else { std::path::absolute(&path).unwrap_or(path) }
    }

    pub(super) fn which(&self, run: RunArg) -> RunRef {
        which(run.named, &self.project)
    }
}
