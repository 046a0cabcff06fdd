//! `longhaul serve`: runs this process as a server that owns the data directory.
//!
//! It serves the socket of all other commands, the HTTP API and the web page, and resumes runs that a kill or a
//! shutdown interrupted. SIGTERM and Ctrl-C end it: runs stay as they are, and are resumed when it is started again.

use super::end_at_once;
use crate::agents::Scheduler;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::serve::ServeArgs;
use crate::cli::trust;
use crate::own_service;
use crate::wiring;
use longhaul_client::Client;
use longhaul_config::server::{FILE, ServerSettings};
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_server::http::{self, AppState, SharedState};
use longhaul_server::{recovery, supervisor};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Runs the command.
pub async fn run(context: &Context, args: ServeArgs) -> fault::Result<Exit> {
    context.home.make()?;
    let settings = args.settings(&context.home)?;
    let listen = settings.listen;
    // Bound before the data directory is owned: a server that cannot listen must not block other commands.
    let listener = TcpListener::bind(listen).await.with_context(|| {
        format!("cannot listen at {listen}; choose another address with --listen, or in server.toml")
    })?;
    let address = listener.local_addr()?;
    let client = agreed(context, wiring::own_soon(&context.home).await?).await?;
    let Some(service) = own_service::of(&client) else { bail!("another longhaul owns the data directory") };
    let (stop, stopping) = watch::channel(false);
    let (own, home, page) = (Arc::clone(service), context.home.clone(), args.page.clone());
    let state = AppState::new(own, home, ServerSettings { listen: address, ..settings }, page, stopping.clone());
    let keeping = tokio::spawn(recovery::keep(Arc::clone(service), stopping));
    let serving = tokio::spawn(http::serve(Arc::clone(&state), listener));
    service.send_notifications();
    let scheduling = Scheduler::start(service.scheduler_service(), service.agent_executor()).await?;
    outln!("serving at http://{address}");
    supervisor::tell(&format!("READY=1\nSTATUS=serving at http://{address}"));
    until_told(context, &args, &state).await?;
    supervisor::tell("STOPPING=1");
    let seconds = longhaul_engine::IN_FLIGHT_MS_MAX / 1_000;
    errln!(
        "stopping: effects that are on their way are finished first, for at most {seconds} s; Ctrl-C again ends at once"
    );
    let active = client.active();
    let stopped = async {
        let _ = stop.send(true);
        let _ = serving.await;
        let _ = keeping.await;
        scheduling.stop().await;
        client.close().await;
    };
    tokio::select! {
        () = stopped => {}
        _ = tokio::signal::ctrl_c() => end_at_once(&active),
    }
    outln!("stopped; runs that were worked on go on when it is started again");
    Ok(Exit::Done)
}

/// Returns the same client once longhaul.toml is agreed to, if there is somebody to ask.
async fn agreed(context: &Context, client: Client) -> fault::Result<Client> {
    context.client.put(client).await;
    trust::ask_first(context, context.trust).await?;
    context.client().await
}

/// Waits for SIGTERM or Ctrl-C; at SIGHUP the file is read again.
async fn until_told(context: &Context, args: &ServeArgs, state: &SharedState) -> fault::Result<()> {
    let mut ends = signal(SignalKind::terminate())?;
    let mut hangs_up = signal(SignalKind::hangup())?;
    loop {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return Ok(()),
            _ = ends.recv() => return Ok(()),
            _ = hangs_up.recv() => reload(context, args, state),
        }
    }
}

/// Reads server.toml again. A file with an error changes nothing.
fn reload(context: &Context, args: &ServeArgs, state: &SharedState) {
    supervisor::tell_reloading();
    match args.settings(&context.home) {
        Ok(read) => {
            let before = state.settings();
            // If a free port was asked for, the port that was found stays.
            let listen = if read.listen.port() == 0 { before.listen } else { read.listen };
            let (now, kept) = before.reloaded(ServerSettings { listen, ..read });
            state.set(now);
            errln!("read {FILE} again");
            if !kept.is_empty() {
                errln!("{} changes when the server is started again", kept.join(", "));
            }
        }
        Err(error) => errln!("{FILE} is not taken over: {error:#}"),
    }
    supervisor::tell("READY=1");
}
