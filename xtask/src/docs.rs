//! `cargo xtask docs`: the pages of the book that the program and its sources say themselves, and checks of all pages.
//!
//! Pages below `docs/book/src/reference` that begin with a note about this command are written by it: from the help of
//! each command, the types that read configuration files, the schemas of events and manifests, the contract, and the
//! server's own description of its HTTP API. Beside them are the JSON Schemas of configuration files, below
//! `reference/schemas`. With `--check` nothing is written: a page that differs is an error, and so is a link that leads
//! nowhere, or a page that the table of contents does not list. mdBook is not needed for either, but for `--html`.

mod commands;
mod events;
mod http;
mod keys;
mod links;
mod manifest;
mod page;
mod program;
mod schemas;
mod wit;

use anyhow::{Context, Result, bail};
use program::Program;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The sources of the book, from the top of the repository.
const BOOK: &str = "docs/book/src";

/// Pages and schemas by their paths below `reference`.
type Pages = BTreeMap<String, String>;

#[derive(clap::Args)]
pub(crate) struct DocsArgs {
    /// Write nothing: compare the generated pages, and check links and the table of contents
    #[arg(long)]
    check: bool,

    /// Leave out the pages that a running program describes: the command line, HTTP, exit codes, plugin.toml and the
    /// schemas of configuration files
    #[arg(long)]
    no_program: bool,

    /// A built `longhaul`. Default: build it
    #[arg(long, value_name = "FILE", conflicts_with = "no_program")]
    program: Option<PathBuf>,

    /// Then make the book's HTML below `target/book`, with mdBook, which is built into the cache where it is not there
    #[arg(long)]
    pub(crate) html: bool,
}

impl DocsArgs {
    /// A check of every page with a program that is built already.
    pub(crate) fn check(program: PathBuf) -> Self {
        Self { check: true, no_program: false, program: Some(program), html: false }
    }
}

/// Writes or checks the pages. `build` builds the program and returns its path.
pub(crate) fn docs(root: &Path, args: &DocsArgs, build: impl FnOnce() -> Result<PathBuf>) -> Result<()> {
    let mut pages = of_sources(root)?;
    if !args.no_program {
        let path = args.program.clone().map_or_else(build, Ok)?;
        pages.extend(of_program(&Program::new(path))?);
    }
    let reference = root.join(BOOK).join("reference");
    if !args.check {
        for (name, text) in &pages {
            write(&reference.join(name), text)?;
        }
        println!("{} pages written below {}", pages.len(), reference.display());
        return Ok(());
    }
    let mut wrong = Vec::new();
    for (name, text) in &pages {
        if fs::read_to_string(reference.join(name)).ok().as_ref() != Some(text) {
            wrong.push(format!("{BOOK}/reference/{name}: differs from its source; run `cargo xtask docs`"));
        }
    }
    wrong.extend(links::Book::read(root)?.faults(root));
    if !wrong.is_empty() {
        bail!("{} faults in the book:\n{}", wrong.len(), wrong.join("\n"));
    }
    Ok(())
}

fn of_sources(root: &Path) -> Result<Pages> {
    let mut pages = keys::pages(root)?;
    pages.insert("events.md".to_owned(), events::page(root)?);
    pages.insert("wit.md".to_owned(), wit::page(root)?);
    Ok(pages)
}

fn of_program(program: &Program) -> Result<Pages> {
    let mut pages = commands::pages(program)?;
    pages.insert("exit-codes.md".to_owned(), commands::exit_codes(program)?);
    pages.insert("plugin-toml.md".to_owned(), manifest::page(program)?);
    pages.insert("http.md".to_owned(), http::page(&program.http_document()?)?);
    pages.extend(schemas::files(program)?);
    Ok(pages)
}

/// Writes a page that differs: programs that contain it are built again only then.
fn write(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|written| written == text) {
        return Ok(());
    }
    let folder = path.parent().context("a page is in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("make `{}`", folder.display()))?;
    fs::write(path, text).with_context(|| format!("write `{}`", path.display()))
}
