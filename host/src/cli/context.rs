//! The context of a command: the data directory, the project, the options of every command, and a client that asks the
//! service.
//!
//! Only requests that may be carried out twice are repeated.

use super::arguments::RunArg;
use super::owner;
use crate::door::{Door, OwnerGone, which};
use crate::service::{Answer, Request, SecurityAsk, SecurityDone, Which};
use longhaul_core::fault::{self, bail};
use longhaul_home::Home;
use std::path::PathBuf;
use std::time::Duration;

/// The most owners of a data directory that may stop one after the other while a command asks.
pub(super) const OWNERS_MAX: u32 = 10;

/// Time for an owner that has just stopped to be gone.
pub(super) const OWNER_PAUSE: Duration = Duration::from_millis(50);

/// Options that hold for every command.
pub(super) struct Context {
    pub(super) home: Home,
    /// An absolute path: the owner of the data directory may have another working directory.
    pub(super) project: PathBuf,
    /// Whether the command line names a project with `--project`.
    pub(super) names_project: bool,
    pub(super) json: bool,
    /// Whether longhaul.toml is agreed to without a question.
    pub(super) trust: bool,
}

impl Context {
    pub(super) async fn security(&self, wanted: SecurityAsk) -> fault::Result<SecurityDone> {
        let Answer::Security { done } = self.ask(Request::Security { wanted }).await? else {
            bail!("the service answered something else")
        };
        Ok(*done)
    }

    pub(super) async fn door(&self) -> fault::Result<Door> {
        owner::open::open(&self.home, &self.project).await
    }

    /// Asks for something that may be carried out twice: if the owner stops meanwhile, the next owner is asked again.
    pub(super) async fn ask(&self, request: Request) -> fault::Result<Answer> {
        let mut tries = OWNERS_MAX;
        loop {
            let door = self.door().await?;
            let answered = door.ask(request.clone()).await;
            owner::hand_over(door).await;
            tries -= 1;
            match answered {
                Err(error) if error.is::<OwnerGone>() && tries > 0 => tokio::time::sleep(OWNER_PAUSE).await,
                other => return other,
            }
        }
    }

    /// Asks once, for something that a repeated request would do twice.
    pub(super) async fn ask_once(&self, request: Request) -> fault::Result<Answer> {
        let door = self.door().await?;
        let answered = door.ask(request).await;
        owner::hand_over(door).await;
        answered
    }

    pub(super) fn which(&self, run: RunArg) -> Which {
        which(run.named, &self.project)
    }
}
