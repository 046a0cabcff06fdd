//! `longhaul workers`: the servers that work on runs of the same store, and the runs that wait for one of them.
//!
//! It changes nothing: a server works on runs because its own `server.toml` says so.

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use longhaul_api::operations::WorkerOperations as _;
use longhaul_api::wire::workers::Workers;
use longhaul_api::workers::{ListWorkers, WorkerList, WorkerView};
use longhaul_core::RunId;
use longhaul_core::fault;
use longhaul_core::text::printable;
use longhaul_report::messages::counted;

/// Longest name of a machine, in bytes.
const HOST_BYTES_MAX: usize = 40;

/// Longest name of a worker, in bytes.
const NAME_BYTES_MAX: usize = 40;

/// Longest list of labels or of runs, in bytes.
const LIST_BYTES_MAX: usize = 400;

/// The line in the place of other servers.
const NO_OTHER: &str = "no other server works on runs; to have one, write [worker] into the server.toml of another \
                        `longhaul serve` on the same database";

/// Runs the command.
pub async fn run(context: &Context) -> fault::Result<Exit> {
    let list = context.workers(ListWorkers {}).await?;
    if context.json {
        print_json(&Workers::from(list))?;
    } else {
        outtext!(text_of(&list));
    }
    Ok(Exit::Done)
}

/// The servers with their runs, as lines.
fn text_of(WorkerList { workers, runs_waiting }: &WorkerList) -> String {
    let mut lines: Vec<String> = Vec::new();
    if !workers.is_empty() {
        lines.push(row("MACHINE", "NAME", "STATE", "RUNS", "LEASE", "LABELS"));
    }
    for worker in workers {
        lines.push(row_of(worker));
        if !worker.runs.is_empty() {
            lines.push(format!("  {}", joined(&worker.runs)));
        }
    }
    if workers.iter().all(|worker| worker.is_leader) {
        lines.push(NO_OTHER.to_owned());
    }
    if !runs_waiting.is_empty() {
        let (runs, verb) = (counted(runs_waiting.len(), "run"), if runs_waiting.len() == 1 { "waits" } else { "wait" });
        let which = joined(runs_waiting);
        lines.push(format!("{runs} {verb} for a server that has the labels and a free place: {which}"));
    }
    lines.join("\n")
}

fn row_of(worker: &WorkerView) -> String {
    let labels = if worker.labels.is_empty() { "-".to_owned() } else { worker.labels.join(", ") };
    row(
        &printable(&worker.host, HOST_BYTES_MAX),
        &printable(&worker.name, NAME_BYTES_MAX),
        state_of(worker),
        &format!("{} of {}", worker.runs.len(), worker.runs_max),
        &lease_of(worker.lease_left_ms),
        &printable(&labels, LIST_BYTES_MAX),
    )
}

fn row(host: &str, name: &str, state: &str, runs: &str, lease: &str, labels: &str) -> String {
    format!("{host:<20} {name:<24} {state:<7} {runs:<9} {lease:<8} {labels}")
}

/// The state in a word.
fn state_of(worker: &WorkerView) -> &'static str {
    match (worker.is_alive, worker.is_leader) {
        (false, _) => "gone",
        (true, true) => "leads",
        (true, false) => "works",
    }
}

/// The time that is left of a lease, in seconds with one digit.
fn lease_of(left_ms: u64) -> String {
    if left_ms == 0 { "ended".to_owned() } else { format!("{}.{} s", left_ms / 1_000, left_ms % 1_000 / 100) }
}

fn joined(runs: &[RunId]) -> String {
    let names: Vec<&str> = runs.iter().map(RunId::as_str).collect();
    printable(&names.join(", "), LIST_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(host: &str, runs: &[&str]) -> WorkerView {
        WorkerView {
            name: format!("d-{host}"),
            host: host.to_owned(),
            process: 7,
            version: "0.1.0".to_owned(),
            labels: vec!["gpu".to_owned(), "linux".to_owned()],
            runs_max: 4,
            runs: runs.iter().map(|run| RunId::from_text(*run)).collect(),
            is_leader: false,
            is_alive: true,
            lease_left_ms: 8_250,
            commits: 12,
            url: None,
        }
    }

    fn leader() -> WorkerView {
        WorkerView { is_leader: true, labels: Vec::new(), ..worker("alpha", &[]) }
    }

    #[test]
    fn a_server_is_told_with_its_state_its_runs_and_its_lease() {
        let gone = WorkerView { is_alive: false, lease_left_ms: 0, ..worker("gamma", &["r-2"]) };
        let workers = vec![leader(), worker("beta", &["r-1", "r-3"]), gone];
        let text = text_of(&WorkerList { workers, runs_waiting: Vec::new() });
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            [
                "MACHINE NAME STATE RUNS LEASE LABELS",
                "alpha d-alpha leads 0 of 4 8.2 s -",
                "beta d-beta works 2 of 4 8.2 s gpu, linux",
                "r-1, r-3",
                "gamma d-gamma gone 1 of 4 ended gpu, linux",
                "r-2",
            ]
        );
    }

    #[test]
    fn a_server_that_works_alone_is_told_how_to_have_another_one() {
        assert_eq!(text_of(&WorkerList::default()), NO_OTHER);
        let alone = WorkerList { workers: vec![leader()], runs_waiting: Vec::new() };
        assert!(text_of(&alone).ends_with(NO_OTHER), "{}", text_of(&alone));
        let others = WorkerList { workers: vec![leader(), worker("beta", &[])], runs_waiting: Vec::new() };
        assert!(!text_of(&others).contains("[worker]"), "{}", text_of(&others));
    }

    #[test]
    fn runs_that_wait_for_a_server_are_named() {
        let waiting = |runs: &[&str]| {
            let runs_waiting = runs.iter().map(|run| RunId::from_text(*run)).collect();
            text_of(&WorkerList { workers: vec![worker("beta", &[])], runs_waiting })
        };
        let of_one = "1 run waits for a server that has the labels and a free place: r-7";
        assert!(waiting(&["r-7"]).ends_with(of_one), "{}", waiting(&["r-7"]));
        assert!(waiting(&["r-7", "r-8"]).contains("2 runs wait for"), "{}", waiting(&["r-7", "r-8"]));
    }

    #[test]
    fn the_end_of_a_lease_is_told_in_seconds() {
        assert_eq!(lease_of(0), "ended");
        assert_eq!(lease_of(1), "0.0 s");
        assert_eq!(lease_of(10_999), "10.9 s");
    }

    #[test]
    fn words_of_another_machine_stay_on_their_line() {
        let strange = WorkerView { host: "a\nb\u{1b}[2J".to_owned(), ..worker("beta", &[]) };
        let text = text_of(&WorkerList { workers: vec![leader(), strange], runs_waiting: Vec::new() });
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
