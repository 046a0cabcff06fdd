//! The shell blocks of the book, run as they stand: each page of `docs/book/src` that has some is a test.
//!
//! The blocks `sh` of a page run in one bash, in their order, in a folder like the top of the repository, with a data
//! directory of their own and free ports for the stand-in of a model and for a server. A block `sh no-test` does not
//! run, and the line before it gives the reason: `<!-- not run: REASON -->`. Nothing here compares what blocks print: a
//! page is right when each of its commands succeeds. Pages must need no network but loopback. One that makes a database
//! has a PostgreSQL server of its own, which `server.toml` of a data directory with state names.

use crate::common::lab::Lab;
use crate::common::repository;
use crate::postgres_server::PostgresServer;
use crate::processes::Processes;
use libtest_mimic::Trial;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const BOOK: &str = "docs/book/src";

/// Pages that the program writes; they show no shell blocks.
const GENERATED: &str = "docs/book/src/reference";

/// The stand-in of a model, which pages start.
const MODEL: &str = "docs/book/src/guides/scripted_model.py";

/// Languages of shell blocks, of which pages use the first one.
const SHELLS: [&str; 4] = ["sh", "bash", "shell", "console"];

/// The words behind the fence of a block that runs, and of one that does not.
const RUN: &str = "sh";
const NOT_RUN: &str = "sh no-test";

/// The share of blocks that run, in percent.
const RUN_PERCENT_MIN: usize = 90;

/// Ports of models and servers: below those that a system gives to outgoing connections.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

struct Page {
    /// Its path below the book, without the ending.
    name: String,
    blocks: Vec<Block>,
}

/// A block of the shell.
struct Block {
    line: usize,
    /// The words behind the fence.
    info: String,
    /// The reason for which it does not run, from the line before it.
    reason: Option<String>,
    code: String,
}

/// A test for each page with blocks that run, and one for the marks of all blocks.
pub fn trials() -> Vec<Trial> {
    let marks = || {
        check_marks(&pages());
        Ok(())
    };
    let mut trials = vec![Trial::test("book::nine_blocks_of_ten_run_and_the_others_say_why_not", marks)];
    let runs = |page: &Page| page.blocks.iter().any(Block::runs);
    trials.extend(pages().into_iter().filter(runs).map(|page| {
        Trial::test(format!("book::{}", page.name), move || {
            check(&page);
            Ok(())
        })
    }));
    trials
}

fn check_marks(pages: &[Page]) {
    let (mut wrong, mut all, mut run) = (Vec::new(), 0, 0);
    for page in pages {
        for block in &page.blocks {
            let place = format!("{BOOK}/{}.md:{}", page.name, block.line);
            all += 1;
            match (block.info.as_str(), &block.reason) {
                (RUN, _) => run += 1,
                (NOT_RUN, Some(reason)) => println!("not run: {place}: {reason}"),
                (NOT_RUN, None) => wrong.push(format!("{place}: say why in the line before: <!-- not run: REASON -->")),
                (info, _) => wrong.push(format!("{place}: write `{RUN}` or `{NOT_RUN}`, not `{info}`")),
            }
        }
    }
    assert!(wrong.is_empty(), "marks of shell blocks:\n{}", wrong.join("\n"));
    println!("{run} of {all} shell blocks run");
    assert!(run * 100 >= all * RUN_PERCENT_MIN, "{run} of {all} shell blocks run, which is below {RUN_PERCENT_MIN} %");
}

/// Runs the blocks of a page.
fn check(page: &Page) {
    let lab = Lab::empty();
    // Programs of a check may run as another user, who passes this folder.
    fs::set_permissions(lab.path(""), fs::Permissions::from_mode(0o755)).expect("ours");
    let top = lay_out(&lab);
    let mut processes = Processes::default();
    let mut bash = shell(&lab, &top, page);
    let _server = page.makes_a_database().then(|| database_server(&lab, &mut bash));
    let started = lab.start_command(bash);
    processes.add(started.pid());
    let ran = started.wait();
    assert_eq!(ran.code(), Some(0), "{BOOK}/{}.md: the block after the last `# ` failed\n{}", page.name, ran.said());
}

/// A PostgreSQL server that the shell reaches, and whose database `longhaul`, which the page makes, is for the state
/// that the data directory has.
fn database_server(lab: &Lab, bash: &mut Command) -> PostgresServer {
    let server = PostgresServer::start(&[]);
    server.rename_user("postgres");
    bash.envs(server.variables("postgres")).env("PATH", path_from([program_folder(), server.bin()]));
    let stored = lab.run(&["token", "list"]);
    assert_eq!(stored.code(), Some(0), "{}", stored.said());
    let settings = format!("[store]\nurl = \"{}\"\n", server.url_of("longhaul", "longhaul"));
    fs::write(lab.home().join("server.toml"), settings).expect("ours");
    server
}

/// A folder with what pages use of the repository: the examples, the stand-in of a model, the program and its plugins.
fn lay_out(lab: &Lab) -> PathBuf {
    let top = lab.path("longhaul");
    let model = top.join(MODEL);
    fs::create_dir_all(model.parent().expect("it is in a folder")).expect("ours");
    fs::copy(repository().join(MODEL), &model).expect("ours");
    let copy = Command::new("cp").arg("-r").arg(repository().join("examples")).arg(&top).status();
    assert!(copy.is_ok_and(|status| status.success()), "the examples are copied");
    let target = top.join("target");
    fs::create_dir(&target).expect("ours");
    symlink(program_folder(), target.join("debug")).expect("ours");
    symlink(plugins(), target.join("plugins")).expect("ours");
    fs::create_dir(lab.path("tmp")).expect("ours");
    top
}

fn shell(lab: &Lab, top: &Path, page: &Page) -> Command {
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(page.script()).current_dir(top).stdin(Stdio::null()).process_group(0);
    // Tool chains of authors are in the cache of this machine, where other tests have them, too.
    let of_this_machine = |name: &OsStr| page.builds_plugins() && (name == "HOME" || name == "LONGHAUL_CACHE");
    for (name, value) in lab.command(&[]).get_envs().filter(|(name, _)| !of_this_machine(name)) {
        match value {
            Some(value) => bash.env(name, value),
            None => bash.env_remove(name),
        };
    }
    bash.env("PATH", path_from([program_folder()]));
    bash.env("LONGHAUL_HOME", lab.home()).env("LONGHAUL_PLUGINS", plugins()).env_remove("LONGHAUL_TRUST");
    // The settings of whoever runs the tests are none of theirs.
    bash.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env_remove("XDG_CONFIG_HOME");
    for name in ["MODEL_PORT", "SERVER_PORT"] {
        bash.env(name, free_port().to_string());
    }
    bash.env("TMPDIR", lab.path("tmp")).env("LC_ALL", "C.UTF-8");
    bash
}

/// The variable `PATH` with directories before those that it has.
fn path_from<'a>(first: impl IntoIterator<Item = &'a Path>) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = first.into_iter().map(Path::to_owned).chain(std::env::split_paths(&path));
    std::env::join_paths(path).expect("no colon in it")
}

fn program_folder() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_longhaul")).parent().expect("it is in a folder")
}

fn plugins() -> PathBuf {
    repository().join("target/plugins")
}

/// A port that nobody uses. Tests that run at once, as processes or threads, begin to look at different ones.
fn free_port() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let first = (std::process::id() + TAKEN.fetch_add(1, Ordering::Relaxed)) % u32::from(PORTS.end - PORTS.start);
    let mut ports = PORTS.cycle().skip(usize::try_from(first).expect("it is below the number of ports"));
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a port is free")
}

/// The pages that people write, in the order of their names.
fn pages() -> Vec<Page> {
    let mut paths = Vec::new();
    let mut folders = vec![repository().join(BOOK)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
    }
    paths.retain(|path| !path.starts_with(repository().join(GENERATED)));
    paths.sort();
    paths.iter().map(|path| Page::read(path)).collect()
}

impl Page {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.strip_prefix(repository().join(BOOK)).expect("it is a page").with_extension("");
        let (mut lines, mut before, mut blocks) = (text.lines().enumerate(), "", Vec::new());
        while let Some((at, line)) = lines.next() {
            let info = line.trim_start_matches('`');
            let fence = &line[..line.len() - info.len()];
            if fence.len() >= 3 {
                let code = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != fence);
                let code = code.collect::<Vec<_>>().join("\n");
                let language = info.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
                if SHELLS.contains(&language) {
                    blocks.push(Block { line: at + 1, info: info.to_owned(), reason: reason(before), code });
                }
            }
            before = line;
        }
        Self { name: name.display().to_string(), blocks }
    }

    /// All blocks that run; the place of each goes to standard error, so that a failure shows where it was.
    fn script(&self) -> String {
        let blocks = self.blocks.iter().filter(|block| block.runs());
        let block = |block: &Block| format!("echo '# {}.md:{}' >&2\n{}\n", self.name, block.line, block.code);
        format!("set -euo pipefail\n{}", blocks.map(block).collect::<String>())
    }

    fn builds_plugins(&self) -> bool {
        self.runs("longhaul plugin build")
    }

    fn makes_a_database(&self) -> bool {
        self.runs("createdb ")
    }

    /// True when a block with these words runs.
    fn runs(&self, words: &str) -> bool {
        self.blocks.iter().any(|block| block.runs() && block.code.contains(words))
    }
}

impl Block {
    fn runs(&self) -> bool {
        self.info == RUN
    }
}

/// The reason in a line `<!-- not run: REASON -->`.
fn reason(line: &str) -> Option<String> {
    let reason = line.strip_prefix("<!-- not run: ")?.strip_suffix(" -->")?.trim();
    (!reason.is_empty()).then(|| reason.to_owned())
}
