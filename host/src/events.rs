//! The stream of a run for programs that use this library: the same lines as `longhaul attach --events`.

use futures_util::Stream;
use futures_util::stream::unfold;
use longhaul_api::seen::RunNotification;
use longhaul_client::Client;
use longhaul_core::RunId;
use longhaul_core::fault::{self, bail};
use tokio::sync::mpsc::Receiver;

pub use longhaul_core::event::{Event, RunEvent};
pub use longhaul_core::stream::{Content, LineKind, StreamLine, StreamToken};

/// The events of a run from the number `from` on, counted from 1; then new ones, until no process works on the run. The
/// last line is [`Content::End`], or [`Content::Dropped`] for a reader that did not read, which may ask again from the
/// number after that. If the owner of the data directory dies meanwhile, the last line is an end with that error.
///
/// The run never waits for its readers.
///
/// # Errors
/// When the owner of the data directory is gone.
#[doc(hidden)]
pub async fn stream(client: &Client, run: &RunId, from: u64) -> fault::Result<impl Stream<Item = StreamLine> + use<>> {
    let after = from.saturating_sub(1);
    let seen = client.watch(run, after).await?;
    Ok(unfold(Reading { seen, run: run.clone(), after, is_over: false }, next))
}

/// Waits until no process works on a run.
///
/// # Errors
/// The error that interrupted it, or the owner of the data directory is gone.
pub(crate) async fn wait(client: &Client, run: &RunId) -> fault::Result<()> {
    let (mut after, mut seen) = (0, client.watch(run, 0).await?);
    while let Some(one) = seen.recv().await {
        match one {
            RunNotification::Event(event) => after = event.number,
            RunNotification::Token(_) | RunNotification::Lagged => {}
            RunNotification::Dropped => seen = client.watch(run, after).await?,
            RunNotification::Gone(Some(why)) => bail!("run {run} stopped: {why}; go on with `longhaul resume {run}`"),
            RunNotification::Gone(None) => break,
        }
    }
    Ok(())
}

/// The error when the owner ends; the next owner of the data directory has the later events.
const OWNER_GONE: &str = "the owner of the data directory is gone; open it again, and read on after the last number";

struct Reading {
    seen: Receiver<RunNotification>,
    run: RunId,
    after: u64,
    is_over: bool,
}

async fn next(mut reading: Reading) -> Option<(StreamLine, Reading)> {
    if reading.is_over {
        return None;
    }
    let seen = reading.seen.recv().await;
    let after = reading.after;
    let content = match seen {
        Some(RunNotification::Event(event)) => {
            reading.after = event.number;
            return Some((StreamLine::of(event), reading));
        }
        Some(RunNotification::Token(token)) => Content::Token(token),
        Some(RunNotification::Lagged) => Content::Lagged { after },
        Some(RunNotification::Dropped) => Content::Dropped { after },
        Some(RunNotification::Gone(error)) => Content::End { after, error },
        None => Content::End { after, error: Some(OWNER_GONE.to_owned()) },
    };
    reading.is_over = matches!(content, Content::Dropped { .. } | Content::End { .. });
    Some((StreamLine { run: reading.run.clone(), content }, reading))
}
