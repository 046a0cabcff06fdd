//! `longhaul serve`: runs this process as a server that owns the data directory.
//!
//! It serves the socket of all other commands, the HTTP API and the web page, and resumes runs that a kill or a
//! shutdown interrupted. SIGTERM and Ctrl-C end it: runs stay as they are, and are resumed when it is started again.
//! Where the state is in a database that another server works with, it stands by first, and forwards requests there.

use super::{RunningServer, ServerStart, end_at_once, supervisor};
use crate::context::Context;
use crate::exit::Exit;
use crate::serve::ServeArgs;
use crate::trust;
use longhaul_client::Client;
use longhaul_config::server::{FILE, ServerSettings};
use longhaul_core::fault::{self, Context as _};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Runs the command.
pub async fn run(context: &Context, args: ServeArgs) -> fault::Result<Exit> {
    context.home.make()?;
    // Asked first: where another server has the same address, that would be told in place of the reason.
    context.home.refuse_second_server()?;
    let settings = args.settings(&context.home)?;
    let listen = settings.listen;
    // Bound before the data directory is owned: a server that cannot listen must not block other commands.
    let listener = TcpListener::bind(listen).await.with_context(|| {
        format!("cannot listen at {listen}; choose another address with --listen, or in server.toml")
    })?;
    let address = listener.local_addr()?;
    let owning = context.owner.own_soon(&context.home, &listener, &settings, Box::new(standing_by));
    let owned =
        if settings.worker().is_some() { owned_or_told(context, &args, owning).await? } else { Some(owning.await?) };
    let Some(owned) = owned else { return Ok(Exit::Done) };
    let client = agreed(context, owned).await?;
    let start = ServerStart {
        home: context.home.clone(),
        listener,
        settings: ServerSettings { listen: address, ..settings },
        page: args.page.clone(),
    };
    let server = context.owner.serve(&client, start).await?;
    outln!("serving at http://{address}");
    supervisor::tell(&format!("READY=1\nSTATUS=serving at http://{address}"));
    until_told(context, &args, &*server).await?;
    supervisor::tell("STOPPING=1");
    let seconds = longhaul_engine::IN_FLIGHT_MS_MAX / 1_000;
    errln!(
        "stopping: effects that are on their way are finished first, for at most {seconds} s; Ctrl-C again ends at once"
    );
    let active = client.active();
    let stopped = async {
        server.stop().await;
        client.close().await;
    };
    tokio::select! {
        () = stopped => {}
        _ = tokio::signal::ctrl_c() => end_at_once(&active),
    }
    outln!("stopped; runs that were worked on go on when it is started again");
    Ok(Exit::Done)
}

/// Waits until this server owns the database, while it works for the one that does. None: SIGTERM or Ctrl-C came, and
/// its runs are handed over. At SIGHUP the file is read again.
async fn owned_or_told(
    context: &Context,
    args: &ServeArgs,
    owning: impl Future<Output = fault::Result<Client>>,
) -> fault::Result<Option<Client>> {
    let mut owning = std::pin::pin!(owning);
    let mut ends = signal(SignalKind::terminate())?;
    let mut hangs_up = signal(SignalKind::hangup())?;
    let mut interrupts = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            owned = &mut owning => return owned.map(Some),
            _ = hangs_up.recv() => match args.settings(&context.home) {
                Ok(read) => {
                    context.owner.set_worker(&read);
                    errln!("read [worker] of {FILE} again");
                }
                Err(error) => errln!("{FILE} is not taken over: {error:#}"),
            },
            _ = interrupts.recv() => break,
            _ = ends.recv() => break,
        }
    }
    supervisor::tell("STOPPING=1");
    errln!(
        "stopping: what is on its way is finished first, and other servers go on with the runs; Ctrl-C again ends at once"
    );
    tokio::select! {
        // It stands by meanwhile, and may come to own the database: that ends with the process.
        () = context.owner.end_work() => {}
        _ = interrupts.recv() => end_at_once(&[]),
    }
    outln!("stopped; other servers go on with its runs");
    Ok(None)
}

/// Says that this server stands by. Until it takes over, every signal ends it at once, unless it works on runs.
fn standing_by(waits_for: &str) {
    errln!("standing by: {waits_for}; this server takes over when that one ends or is cut off");
    supervisor::tell(&format!("READY=1\nSTATUS=standing by: {waits_for}"));
}

/// Returns the same client once longhaul.toml is agreed to, if there is somebody to ask.
async fn agreed(context: &Context, client: Client) -> fault::Result<Client> {
    context.client.put(client).await;
    trust::ask_first(context, context.trust).await?;
    context.client().await
}

/// Waits for SIGTERM or Ctrl-C; at SIGHUP the file is read again.
async fn until_told(context: &Context, args: &ServeArgs, server: &dyn RunningServer) -> fault::Result<()> {
    let mut ends = signal(SignalKind::terminate())?;
    let mut hangs_up = signal(SignalKind::hangup())?;
    let mut interrupts = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            _ = interrupts.recv() => return Ok(()),
            _ = ends.recv() => return Ok(()),
            _ = hangs_up.recv() => reload(context, args, server),
        }
    }
}

/// Reads server.toml again. A file with an error changes nothing.
fn reload(context: &Context, args: &ServeArgs, server: &dyn RunningServer) {
    supervisor::tell_reloading();
    match args.settings(&context.home) {
        Ok(read) => {
            let before = server.settings();
            // If a free port was asked for, the port that was found stays.
            let listen = if read.listen.port() == 0 { before.listen } else { read.listen };
            let (now, kept) = before.reloaded(ServerSettings { listen, ..read });
            server.set(now);
            errln!("read {FILE} again");
            if !kept.is_empty() {
                errln!("{} changes when the server is started again", kept.join(", "));
            }
        }
        Err(error) => errln!("{FILE} is not taken over: {error:#}"),
    }
    supervisor::tell("READY=1");
}
