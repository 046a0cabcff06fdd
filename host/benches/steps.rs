//! The stored bytes of a step of an agent, and its steps a second, from the first to the fifteen hundredth.
//!
//! ```text
//! cargo xtask plugins --tests
//! cargo bench -p longhaul --bench steps
//! ```
//!
//! `LONGHAUL_STEPS` says how many. Goals: as many bytes at step 1,000 as at step 10, and at step 1,500 at least nine
//! tenths of the rate of step 10.

#[path = "../tests/common/mod.rs"]
mod common;

use common::built_plugins;
use common::steps::{bytes_around, rate_from, run};

const STEPS: usize = 1_500;

fn main() {
    built_plugins::expect(&["files", "initializer", "tests/caller", "tests/doer", "tests/lenient"]);
    let asked = std::env::var("LONGHAUL_STEPS").ok().and_then(|text| text.parse().ok());
    let count: usize = asked.unwrap_or(STEPS).max(220);
    let steps = run(count);
    println!("{count} steps, {} checkpoints, {} bytes in the file at the end", steps.checkpoints, steps.file_bytes);
    for at in [10, 100, 1_000].into_iter().filter(|at| *at < count) {
        println!("step {at:>5}: {:>8.0} bytes stored", bytes_around(&steps, at));
    }
    let (early, late) = (rate_from(&steps, 10), rate_from(&steps, count - 101));
    println!(
        "steps a second: {early:.0} from step 10, {late:.0} up to step {count}: {:.0} percent",
        late / early * 100.0
    );
}
