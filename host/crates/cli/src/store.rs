//! `longhaul store`: moves all state between the files of the data directory and PostgreSQL.

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use clap::{Subcommand, ValueEnum};
use longhaul_api::upkeep::{MigrationReport, StoreKind};
use longhaul_api::wire::maintenance::ReopenedStoreView;
use longhaul_core::fault;
use longhaul_report::messages::counted;

#[derive(Subcommand, Debug)]
pub enum StoreCommand {
    /// Move all state into the database that `[store]` of server.toml names, or back into the data directory. Nothing
    /// may work with either meanwhile. The target must be empty, and what was copied is kept.
    Migrate {
        /// Where the state goes.
        #[arg(long, value_enum)]
        to: TargetArg,
    },
    /// Use the database again whose state was moved away, as it was then. What was done elsewhere since is not in it.
    Reopen,
}

/// The names of the kinds of stores.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TargetArg {
    /// The database that `[store]` of server.toml names.
    Postgres,
    /// Files of the data directory.
    Redb,
}

impl From<TargetArg> for StoreKind {
    fn from(argument: TargetArg) -> Self {
        match argument {
            TargetArg::Postgres => Self::Postgres,
            TargetArg::Redb => Self::Redb,
        }
    }
}

/// Runs the command.
pub async fn run(context: &Context, command: StoreCommand) -> fault::Result<Exit> {
    match command {
        StoreCommand::Migrate { to } => {
            let report = context.owner.migrate_store(context.home.clone(), to.into()).await?;
            if context.json {
                print_json(&report)?;
            } else {
                lines(&report).iter().for_each(|line| outln!("{line}"));
            }
        }
        StoreCommand::Reopen => {
            let address = context.owner.reopen_store(context.home.clone()).await?;
            if context.json {
                print_json(&ReopenedStoreView { address })?;
            } else {
                outln!("{address} is in use again");
            }
        }
    }
    Ok(Exit::Done)
}

/// The lines about a move: its counts, the next step, and the way back.
fn lines(report: &MigrationReport) -> Vec<String> {
    let MigrationReport { from, to, copied, runs_elsewhere, next, undo } = report;
    let mut lines = vec![
        format!("moved all state from {from} to {to}"),
        format!(
            "  {} with {} bytes, each compared with the one that it was copied from",
            counted(copied.rows, "row"),
            copied.bytes
        ),
    ];
    if *runs_elsewhere > 0 {
        lines
            .push(format!("  {} have their trees on other machines, and go on there", counted(*runs_elsewhere, "run")));
    }
    lines.extend(next.iter().map(|next| format!("  next: {next}")));
    lines.push(format!("  to undo it before anything else is done: {undo}"));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::store::ReadTotals;

    #[test]
    fn a_move_is_told_with_what_is_left_to_do_and_the_way_back() {
        let mut report = MigrationReport {
            from: "/d/state.redb".to_owned(),
            to: "postgres://me@h/db".to_owned(),
            copied: ReadTotals { rows: 1, bytes: 7 },
            runs_elsewhere: 0,
            next: None,
            undo: "mv a b".to_owned(),
        };
        assert_eq!(
            lines(&report),
            [
                "moved all state from /d/state.redb to postgres://me@h/db",
                "  1 row with 7 bytes, each compared with the one that it was copied from",
                "  to undo it before anything else is done: mv a b",
            ]
        );
        report.runs_elsewhere = 2;
        report.next = Some("remove [store]".to_owned());
        assert_eq!(
            lines(&report)[2..4],
            ["  2 runs have their trees on other machines, and go on there", "  next: remove [store]"]
        );
    }
}
