//! `longhaul memory`: shows, searches, exports and deletes the memory of a project, and shows the conversations of
//! agents.

use super::arguments::RunArg;
use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use super::{terminal, trajectories};
use clap::{Subcommand, ValueEnum};
use longhaul_api::memory::{
    ForgetMemory, ListMemory, MemoryItem, MemoryScope, PromoteMemory, SearchMemory, ShowMemory,
};
use longhaul_api::operations::MemoryOperations as _;
use longhaul_api::wire::exports::MemoryExport;
use longhaul_api::wire::knowledge::Memories;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::text::printable;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// Default number of entries of each kind.
const LIMIT: u32 = 50;

/// Longest text on a line of the list, and of an entry in full, in bytes.
const LINE_BYTES_MAX: usize = 160;
const TEXT_BYTES_MAX: usize = 64 << 10;

#[derive(Subcommand, Debug)]
pub enum MemoryCommand {
    /// List the memory: facts, episodes, and notes of the run for itself.
    List {
        #[command(flatten)]
        run: RunArg,
        /// List only keys with this prefix.
        #[arg(long, default_value = "", value_name = "TEXT")]
        prefix: String,
        /// The most entries of each kind.
        #[arg(long, default_value_t = LIMIT)]
        limit: u32,
    },
    /// Search the memory for entries that bear on a question, the best first.
    Search {
        /// The question.
        query: String,
        #[command(flatten)]
        run: RunArg,
        /// The most entries of each kind.
        #[arg(long, default_value_t = LIMIT)]
        limit: u32,
    },
    /// Show an entry in full, with its source and the values that it replaced.
    Show {
        /// Key of the entry.
        key: String,
        /// Look only among entries of this kind. Default: all kinds.
        #[arg(long, value_name = "KIND")]
        kind: Option<KindArg>,
        #[command(flatten)]
        run: RunArg,
    },
    /// Vouch for an entry. Later runs read entries from the web only after this.
    Promote {
        /// Key of the entry.
        key: String,
        /// Look only among entries of this kind. Default: all kinds.
        #[arg(long, value_name = "KIND")]
        kind: Option<KindArg>,
        #[command(flatten)]
        run: RunArg,
    },
    /// Delete an entry.
    Forget {
        /// Key of the entry.
        key: String,
        /// Look only among entries of this kind. Default: all kinds.
        #[arg(long, value_name = "KIND")]
        kind: Option<KindArg>,
        #[command(flatten)]
        run: RunArg,
    },
    /// Export all entries as one JSON value.
    Export {
        #[command(flatten)]
        run: RunArg,
        /// Write to this file, which must not exist yet. Default: standard output.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Show the conversation of an agent's invocation, which is its working memory. With --json it is complete.
    Conversation {
        #[command(flatten)]
        one: trajectories::TrajectoryArg,
    },
}

/// The names of the shelves.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum KindArg {
    /// A fact for later runs.
    Fact,
    /// The outcome of a run.
    Episode,
    /// A note of the run for itself.
    Working,
}

impl From<KindArg> for MemoryScope {
    fn from(argument: KindArg) -> Self {
        match argument {
            KindArg::Fact => Self::Fact,
            KindArg::Episode => Self::Episode,
            KindArg::Working => Self::Working,
        }
    }
}

/// Runs the command.
pub async fn run(context: &Context, command: MemoryCommand) -> fault::Result<Exit> {
    match command {
        MemoryCommand::List { run, prefix, limit } => {
            let request = ListMemory { run: context.which(run), prefix, limit: limit as usize };
            show_lines(context, context.memories(request).await?)?;
        }
        MemoryCommand::Search { query, run, limit } => {
            let request = SearchMemory { run: context.which(run), query, limit };
            show_lines(context, context.search_memory(request).await?)?;
        }
        MemoryCommand::Show { key, kind, run } => {
            let request = ShowMemory { run: context.which(run), key, shelf: kind.map(Into::into) };
            let found = context.memory(request).await?;
            if context.json {
                print_json(&Memories::from(found))?;
            } else {
                found.iter().for_each(show);
            }
        }
        MemoryCommand::Promote { key, kind, run } => {
            let request = PromoteMemory { run: context.which(run), key, shelf: kind.map(Into::into) };
            changed(context, context.promote_memory(request).await?, "promoted")?;
        }
        MemoryCommand::Forget { key, kind, run } => {
            let request = ForgetMemory { run: context.which(run), key, shelf: kind.map(Into::into) };
            changed(context, context.forget_memory(request).await?, "forgotten")?;
        }
        MemoryCommand::Export { run, output } => {
            let request = ListMemory { run: context.which(run), prefix: String::new(), limit: usize::MAX };
            export(context.memories(request).await?, output)?;
        }
        MemoryCommand::Conversation { one } => return trajectories::conversation(context, one).await,
    }
    Ok(Exit::Done)
}

fn changed(context: &Context, memories: Vec<MemoryItem>, what: &str) -> fault::Result<()> {
    if context.json {
        return print_json(&Memories::from(memories));
    }
    for one in memories {
        outln!("{what}: {} {}", one.shelf.as_str(), printable(&one.key, LINE_BYTES_MAX));
    }
    Ok(())
}

fn show_lines(context: &Context, memories: Vec<MemoryItem>) -> fault::Result<()> {
    if context.json {
        return print_json(&Memories::from(memories));
    }
    if memories.is_empty() {
        outln!("nothing is remembered");
    }
    for one in &memories {
        let conflicts = match one.note.replaced.len() {
            0 => String::new(),
            count => format!(", replaced {count}"),
        };
        outln!(
            "{:<8} {}  ({}{conflicts})",
            one.shelf.as_str(),
            printable(&one.key, LINE_BYTES_MAX),
            one.note.trust.as_str()
        );
        outln!("         {}", printable(&text_of(one), LINE_BYTES_MAX));
    }
    Ok(())
}

fn text_of(one: &MemoryItem) -> String {
    let value = &one.note.value;
    let text = value["summary"].as_str().or(value.as_str());
    text.map_or_else(|| value.to_string(), str::to_owned)
}

fn show(one: &MemoryItem) {
    let note = &one.note;
    let rows = [
        ("kind", one.shelf.as_str().to_owned()),
        ("key", one.key.clone()),
        ("says", text_of(one)),
        ("words of", note.trust.as_str().to_owned()),
        ("kept by", note.by.clone()),
        ("run", note.run.clone()),
        ("step", note.step.clone()),
        ("made by", note.value["made_by"].as_str().unwrap_or_default().to_owned()),
    ];
    for (name, text) in rows.iter().filter(|(_, text)| !text.is_empty()) {
        outln!("{name:<9} {}", printable(text, TEXT_BYTES_MAX));
    }
    for earlier in &note.replaced {
        let text = earlier.value.as_str().map_or_else(|| earlier.value.to_string(), str::to_owned);
        outln!("replaced  {} (run {}, {})", printable(&text, LINE_BYTES_MAX), earlier.run, earlier.trust.as_str());
    }
}

fn export(memories: Vec<MemoryItem>, output: Option<PathBuf>) -> fault::Result<()> {
    let text = serde_json::to_string(&MemoryExport::from(memories))?;
    match output {
        Some(path) => {
            // The export holds words of agents, and text that they read.
            let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            let mut file = file.with_context(|| format!("cannot make `{}`", path.display()))?;
            writeln!(file, "{text}")?;
        }
        None => terminal::document(&text),
    }
    Ok(())
}
