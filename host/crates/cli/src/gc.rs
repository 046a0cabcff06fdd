//! `longhaul gc`: deletes expired data.

use super::checkpoint::age_ms;
use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use clap::Args;
use longhaul_api::operations::MaintenanceOperations as _;
use longhaul_api::upkeep::{GcOptions, GcReport};
use longhaul_core::fault;
use longhaul_report::messages::counted;

#[derive(Args, Debug)]
pub struct GcArgs {
    /// Delete saved checkpoints that are older, for example 7d, 12h, 30m or 60s. Expired ones are deleted in any case.
    #[arg(long, value_name = "AGE", default_value = "7d", value_parser = age_ms)]
    older_than: u64,
    /// Delete runs that ended longer ago, for example 30d, with their journals, events and worktrees. The newest run of
    /// a project stays. Default: no run.
    #[arg(long, value_name = "AGE", value_parser = age_ms)]
    runs_older_than: Option<u64>,
    /// Delete compiled code beyond this size, in MB, least recently used first. It is compiled again on demand.
    /// Default: none.
    #[arg(long, value_name = "MB")]
    cache_mb: Option<u64>,
    /// Print what would be deleted, and delete nothing.
    #[arg(long)]
    dry_run: bool,
    /// Also print the id of each run.
    #[arg(long)]
    verbose: bool,
}

/// Runs the command.
pub async fn run(context: &Context, args: GcArgs) -> fault::Result<Exit> {
    let wanted = GcOptions {
        dry_run: args.dry_run,
        checkpoints_older_ms: args.older_than,
        runs_older_ms: args.runs_older_than,
        cache_bytes_max: args.cache_mb.map(|mb| mb.saturating_mul(1 << 20)),
    };
    let swept = context.collect_garbage(wanted).await?;
    if context.json {
        print_json(&swept)?;
    } else {
        lines(&swept, args.verbose).iter().for_each(|line| outln!("{line}"));
    }
    Ok(Exit::Done)
}

/// The deletions: counts, and with `verbose` the id of each run.
fn lines(swept: &GcReport, verbose: bool) -> Vec<String> {
    let verb = if swept.dry_run { "would remove" } else { "removed" };
    let checkpoints = counted(swept.checkpoints, "checkpoint");
    let mut lines = vec![match swept.memories {
        Some(memories) => format!("{verb} {checkpoints} and {} of memory", counted(memories, "entry")),
        None => format!("{verb} {checkpoints}, and expired entries of memory"),
    }];
    if !swept.runs.is_empty() {
        let (runs, rows) = (counted(swept.runs.len(), "run"), counted(swept.rows, "row"));
        lines.push(format!("{verb} {runs} with {rows}"));
        if verbose {
            lines.extend(swept.runs.iter().map(|run| format!("  {run}")));
        }
    }
    if swept.trees > 0 || swept.tree_bytes > 0 {
        let trees = counted(swept.trees, "orphaned tree");
        lines.push(format!("{verb} {trees}; all trees took {} bytes", swept.tree_bytes));
    }
    match (&swept.content, &swept.content_kept_for) {
        (Some(content), _) => lines.push(format!(
            "{verb} {} unreferenced contents of {}: {} bytes of the store, which uses them again",
            content.removed,
            content.removed + content.kept,
            content.bytes
        )),
        (None, Some(why)) => lines.push(format!("content stays: {why}")),
        (None, None) => {}
    }
    if swept.compiled > 0 {
        let files = counted(swept.compiled, "file");
        lines.push(format!("{verb} {files} of compiled code: {} bytes", swept.compiled_bytes));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::RunId;

    #[test]
    fn deletions_are_told_in_counts_and_the_ids_of_runs_on_request() {
        let runs = ["r-000000000001", "r-000000000002"].map(RunId::from_text).to_vec();
        let swept = GcReport { dry_run: true, memories: Some(1), runs, rows: 30, compiled: 1, ..GcReport::default() };
        assert_eq!(
            lines(&swept, false),
            [
                "would remove 0 checkpoints and 1 entry of memory",
                "would remove 2 runs with 30 rows",
                "would remove 1 file of compiled code: 0 bytes",
            ]
        );
        let all = lines(&swept, true);
        assert_eq!(all[2..4], ["  r-000000000001", "  r-000000000002"]);
    }
}
