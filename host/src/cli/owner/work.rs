//! `longhaul schedule work`: this process owns the data directory and runs what is due, in the foreground.

use crate::agents::Scheduler;
use crate::cli::context::{Context, OWNER_PAUSE};
use crate::cli::exit::Exit;
use crate::door::Door;
use longhaul_core::fault::{self, bail};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// How long another command may have the data directory.
const OWNER_WAIT: Duration = Duration::from_secs(5);

/// Runs what is due. Whoever owns the data directory already has to do that.
pub async fn run(context: &Context, time: Option<Duration>) -> fault::Result<Exit> {
    // Heard from here on, so that whoever waits for the line below can end it.
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let door = owned(context).await?;
    let Door::Own { service, .. } = &door else { bail!("the data directory is not ours") };
    let scheduler = match Scheduler::start(Arc::clone(service)).await {
        Ok(scheduler) => scheduler,
        Err(error) => {
            door.close().await;
            return Err(error);
        }
    };
    if !context.json {
        outln!("working; Ctrl-C ends it");
    }
    let over = async {
        match time {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = over => {}
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
    }
    scheduler.stop().await;
    door.close().await;
    Ok(Exit::Done)
}

/// The data directory as its owner. A command that has it for a moment is waited for.
async fn owned(context: &Context) -> fault::Result<Door> {
    let since = Instant::now();
    loop {
        let door = context.door().await?;
        if door.is_owner() {
            return Ok(door);
        }
        if since.elapsed() > OWNER_WAIT {
            bail!(
                "another longhaul owns `{}`, and a scheduler works only in its owner; end that one, or let it be the server",
                context.home.path().display()
            );
        }
        tokio::time::sleep(OWNER_PAUSE).await;
    }
}
