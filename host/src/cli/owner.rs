//! The owner of the data directory, when this process is it: it hands its runs over before it ends.
//!
//! A run that another terminal follows goes on there, once effects in flight have finished. A run that no terminal
//! follows keeps this process until it ends or somebody presses Ctrl-C.
//!
//! The files below do the work that only an owner can do. No other file of the command line names the wiring or the
//! scheduler.

pub mod model;
pub mod open;
pub mod restore;
pub mod serve;
pub mod work;

use longhaul_api::operations::RunOperations as _;
use longhaul_api::runs::RunRef;
use longhaul_api::runs::ShowRun;
use longhaul_client::Client;
use longhaul_core::RunId;
use longhaul_engine::HAND_OVER_MS_MAX;
use std::time::Duration;

/// Interval between two looks for followers of runs.
const LOOK: Duration = Duration::from_millis(500);

/// Exit code after a second Ctrl-C: 128 + SIGINT, as shells report it.
const INTERRUPTED: i32 = 130;

/// Waits as long as this process works on runs that no other terminal follows, then hands over.
pub async fn stay(client: Client) {
    let mut told = Vec::new();
    loop {
        let alone = client.unfollowed();
        if alone.is_empty() {
            break;
        }
        if told != alone {
            let runs = named(&client, &alone).await;
            errln!("this process stays: it works on {runs}, which no other terminal follows; Ctrl-C hands over");
            told = alone;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    hand_over(client).await;
}

/// Stops serving once effects in flight have finished. Ctrl-C stops at once.
pub async fn hand_over(client: Client) {
    let active = client.active();
    if !active.is_empty() {
        let alone = client.unfollowed();
        let (runs, minutes) = (named(&client, &active).await, HAND_OVER_MS_MAX / 60_000);
        errln!("finishing what is on its way of {runs}, for at most {minutes} minutes; Ctrl-C ends at once");
        alone.iter().for_each(|run| errln!("go on with: longhaul resume {run}"));
    }
    tokio::select! {
        () = client.leave() => {}
        _ = tokio::signal::ctrl_c(), if !active.is_empty() => end_at_once(&active),
    }
}

/// Ends this process like a kill.
pub fn end_at_once(active: &[RunId]) -> ! {
    errln!("ended at once; what was on its way may have happened, and is asked about");
    active.iter().for_each(|run| errln!("go on with: longhaul resume {run}"));
    std::process::exit(INTERRUPTED);
}

/// The runs with their projects, as a person knows them.
async fn named(client: &Client, runs: &[RunId]) -> String {
    let mut named = Vec::new();
    for run in runs {
        named.push(match client.run_status(ShowRun { run: RunRef::Named(run.to_string()) }).await {
            Ok(status) => format!("run {run} of {}", status.summary.project),
            Err(_) => format!("run {run}"),
        });
    }
    named.join(", ")
}
