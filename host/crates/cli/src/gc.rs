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
        print(&swept);
    }
    Ok(Exit::Done)
}

fn print(swept: &GcReport) {
    let verb = if swept.dry_run { "would remove" } else { "removed" };
    match swept.memories {
        Some(memories) => {
            outln!("{verb} {} and {} of memory", counted(swept.checkpoints, "checkpoint"), counted(memories, "entry"));
        }
        None => outln!("{verb} {}, and expired entries of memory", counted(swept.checkpoints, "checkpoint")),
    }
    if !swept.runs.is_empty() {
        let names: Vec<_> = swept.runs.iter().map(ToString::to_string).collect();
        let (runs, rows) = (counted(swept.runs.len(), "run"), counted(swept.rows, "row"));
        outln!("{verb} {runs} with {rows}: {}", names.join(", "));
    }
    if swept.trees > 0 || swept.tree_bytes > 0 {
        outln!("{verb} {}; all trees took {} bytes", counted(swept.trees, "orphaned tree"), swept.tree_bytes);
    }
    match (&swept.content, &swept.content_kept_for) {
        (Some(content), _) => outln!(
            "{verb} {} unreferenced contents of {}: {} bytes of the store, which uses them again",
            content.removed,
            content.removed + content.kept,
            content.bytes
        ),
        (None, Some(why)) => outln!("content stays: {why}"),
        (None, None) => {}
    }
    if swept.compiled > 0 {
        outln!("{verb} {} files of compiled code: {} bytes", swept.compiled, swept.compiled_bytes);
    }
}
