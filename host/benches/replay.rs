//! Replaying one changed step of a thousand, beside running all of them.
//!
//! ```text
//! cargo xtask plugins
//! cargo bench -p longhaul --bench replay
//! ```
//!
//! Each step computes a little from what the first one made. One is changed, to another value each time, and the graph
//! replayed: no step reads its values, so one step is affected. Beside it: all steps again, each in an interpreter of
//! its own as a graph runs them, and all of them in one interpreter, which is what a script without a graph does.
//! `LONGHAUL_STEPS` says how many. Goal: a replay at least 100 times faster than running all.
//!
//! The last row is what values cost on their way: a step that looks at a few megabytes, and one that does not.

#[path = "../tests/common/mod.rs"]
mod common;

use common::built_plugins;
use common::graph::{Bench, EXECUTOR};
use longhaul::exec::{Code, Job};
use std::time::{Duration, Instant};

const STEPS: usize = 1_000;
const REPLAYS: usize = 30;

fn main() {
    built_plugins::expect(&["python"]);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let asked = std::env::var("LONGHAUL_STEPS").ok().and_then(|text| text.parse().ok());
    runtime.block_on(rows(asked.unwrap_or(STEPS).max(10)));
}

async fn rows(count: usize) {
    let mut bench = Bench::new();
    bench.steps.keep_ready(8).await.expect("instances");
    let sources: Vec<String> = (0..count).map(|at| source(at, 0)).collect();
    for (at, source) in sources.iter().enumerate() {
        bench.add(&format!("s{at}"), source);
    }
    let since = Instant::now();
    let walked = bench.walk().await;
    let all = since.elapsed();
    assert_eq!(walked.ran.len(), count);
    let changed = format!("s{}", count / 2);
    let mut took = Vec::new();
    for round in 1..=REPLAYS {
        // Meanwhile the host makes new instances for those that it used, as between two edits of a person.
        tokio::time::sleep(Duration::from_millis(60)).await;
        let since = Instant::now();
        bench.change(&changed, &source(count / 2, round));
        let walked = bench.walk().await;
        took.push(since.elapsed());
        assert_eq!((walked.ran, walked.answered.len()), (vec![changed.clone()], 0));
    }
    let replay = median(&mut took);
    let one = in_one_interpreter(&sources).await;
    println!("{count} steps, one changed: replayed in {:.3} ms", ms(replay));
    println!("  all by the graph: {:.1} ms, {:.0} times as long", ms(all), ratio(all, replay));
    println!("  all in one interpreter: {:.1} ms, {:.0} times as long", ms(one), ratio(one, replay));
    values().await;
}

fn source(at: usize, round: usize) -> String {
    if at == 0 {
        return "base = list(range(2_000))".to_owned();
    }
    format!("v{at} = sum(x * {at} % 7 for x in base) + {round}")
}

async fn in_one_interpreter(sources: &[String]) -> Duration {
    let mut took = Vec::new();
    for _ in 0..5 {
        let job = Job::of(Code::Python(sources.join("\n")));
        let since = Instant::now();
        let report = EXECUTOR.run(job).await.expect("it runs");
        took.push(since.elapsed());
        assert!(report.success, "{report:?}");
    }
    median(&mut took)
}

async fn values() {
    let mut bench = Bench::new();
    bench.add("rows", "rows = [{'id': i, 'name': f'name {i}', 'share': i / 7} for i in range(40_000)]");
    bench.add("bytes", "data = bytes(range(256)) * (16 << 10)");
    bench.add("nothing", "1");
    bench.add("read rows", "len(rows)");
    bench.add("read bytes", "len(data)");
    bench.walk().await;
    for id in ["nothing", "rows", "read rows", "bytes", "read bytes"] {
        let mut took = Vec::new();
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(60)).await;
            bench.replay.again(&longhaul_graph::StepId::from(id)).expect("a step");
            let since = Instant::now();
            bench.walk().await;
            took.push(since.elapsed());
        }
        let bytes: u64 = bench.report(id).delta.groups.iter().map(|group| bytes_of(&group.kept)).sum();
        println!("step `{id}`: {:.2} ms, leaves {bytes} bytes", ms(median(&mut took)));
    }
}

fn bytes_of(kept: &longhaul_graph::KeptValues) -> u64 {
    match kept {
        longhaul_graph::KeptValues::Stored { bytes, .. } => *bytes,
        longhaul_graph::KeptValues::Live { .. } => 0,
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ratio(long: Duration, short: Duration) -> f64 {
    long.as_secs_f64() / short.as_secs_f64()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
