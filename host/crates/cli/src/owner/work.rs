//! `longhaul schedule work`: owns the data directory and runs due schedules in the foreground.

use crate::command_client::OWNER_PAUSE;
use crate::context::Context;
use crate::exit::Exit;
use longhaul_client::Client;
use longhaul_core::fault::{self, bail};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// Most time to wait for another command that owns the data directory.
const OWNER_WAIT: Duration = Duration::from_secs(5);

/// Runs due schedules. This process must own the data directory.
pub async fn run(context: &Context, time: Option<Duration>) -> fault::Result<Exit> {
    // Registered first, so that a signal after the line below is heard.
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let client = owned(context).await?;
    let scheduler = match context.owner.schedule(&client).await {
        Ok(scheduler) => scheduler,
        Err(error) => {
            client.close().await;
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
    client.close().await;
    Ok(Exit::Done)
}

/// Opens the data directory as its owner. Waits for a command that owns it for a moment.
async fn owned(context: &Context) -> fault::Result<Client> {
    let since = Instant::now();
    loop {
        let client = context.client().await?;
        if client.is_owner() {
            return Ok(client);
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
