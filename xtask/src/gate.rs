//! The command `test` of the README, which is the whole gate, and `prices` and `docs`.
//!
//! All do all the set-up they need through ordinary package clients, into the cache outside the tree. None asks for an
//! account or a key.

use crate::as_user;
use crate::browser;
use crate::commands::{cargo, run, sysroot, tests_at_once};
use crate::docs::{self, DocsArgs};
use crate::guests::{self, PluginsArgs};
use crate::timing::Stages;
use anyhow::{Context, Result, ensure};
use longhaul_build::cache::Cache;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds with an old compiler stay possible; a newer one is taken when it is installed already.
const NEXTEST: &str = "0.9.143";
/// All of nextest but its update of itself, which brings a client of HTTP.
const NEXTEST_FEATURES: [&str; 3] = ["--no-default-features", "--features", "default-no-update"];
/// Checks licences and bans.
const DENY: &str = "0.20.2";
/// Makes HTML of the book, when asked for it.
const MDBOOK: &str = "0.5.4";

/// Checks and tests everything, and ends with the summary of the tests.
pub(crate) fn test(root: &Path) -> Result<()> {
    let mut stages = Stages::new(root);
    let cache = Cache::open(guests::say)?;
    let tools = Tools::fetched(&mut stages, &cache)?;
    check_apart_from_host(&mut stages, root, &cache, &tools)?;
    let (lints, path) = (Lints::of(root)?, tools.path());
    let linting = || lints.in_build(with(cargo(root), &path));
    // After the tests of the SDKs, which leave files where the build looks for changes.
    stages.run("build and lints", || build_all(linting))?;
    // The build made the program, too.
    stages.run("book", || docs(root, &DocsArgs::check(root.join("target/debug/longhaul"))))?;
    // Before those of root, whose summary is the last word.
    let as_user = stages.run("tests as a user", || as_user::test(root, linting, &tools.nextest));
    stages.run("tests", || run_all(linting))?;
    stages.print();
    as_user
}

/// The directories of the tools of the gate.
struct Tools {
    nextest: PathBuf,
    deny: PathBuf,
    /// None: the variable `PATH` leads to a browser already.
    browser: Option<PathBuf>,
    /// None: the variable `PATH` leads to Go already.
    go: Option<PathBuf>,
}

impl Tools {
    /// Finds the tools, and fetches those that are missing, each in a stage of its own.
    fn fetched(stages: &mut Stages, cache: &Cache) -> Result<Self> {
        Ok(Self {
            nextest: stages.run("nextest", || tool(cache, "cargo-nextest", NEXTEST, &NEXTEST_FEATURES))?,
            deny: stages.run("deny", || tool(cache, "cargo-deny", DENY, &[]))?,
            browser: stages.run("browser", browser::directory)?,
            go: stages.run("go", || Ok(longhaul_build::go(cache)?))?,
        })
    }

    /// The directories in which tests find the programs that they start.
    fn path(&self) -> Vec<&Path> {
        let tools = [Some(&self.nextest), self.browser.as_ref(), self.go.as_ref()];
        tools.into_iter().flatten().map(PathBuf::as_path).collect()
    }
}

/// Checks and tests whatever needs no build of the host: format, licences, plugins and SDKs.
fn check_apart_from_host(stages: &mut Stages, root: &Path, cache: &Cache, tools: &Tools) -> Result<()> {
    stages.run("format", || run("check the format", cargo(root).args(["fmt", "--all", "--check"])))?;
    stages.run("licences", || licences(root, &tools.deny))?;
    stages.run("plugins", || guests::plugins(root, &PluginsArgs::all()))?;
    stages.run("plugin tests", || plugin_tests(root, &tools.nextest))?;
    stages.run("sdk tests", || sdk_tests(root, cache, &tools.nextest))
}

/// Builds all tests and benches, with clippy in the place of the compiler.
fn build_all(linting: impl Fn() -> Command) -> Result<()> {
    run("build the tests, with lints", linting().args(["nextest", "run", "--workspace", "--no-run"]))?;
    run("build the benches, with lints", linting().args(["build", "--quiet", "--workspace", "--bench", "*"]))
}

/// Runs all tests. Those that keep all cores busy by themselves are a group in `.config/nextest.toml`, of which one runs
/// at a time.
fn run_all(linting: impl Fn() -> Command) -> Result<()> {
    let mut tests = linting();
    tests.args(["nextest", "run", "--workspace", "--no-fail-fast", "--test-threads", &tests_at_once()]);
    run("run the tests", &mut tests)
}

/// Advisories are looked at apart, since they need a database from elsewhere; see CONTRIBUTING.md.
fn licences(root: &Path, deny: &Path) -> Result<()> {
    let mut check = with(cargo(root), &[deny]);
    check.args(["deny", "--log-level", "error", "check", "licenses", "bans", "sources"]);
    run("check licences and bans", &mut check)
}

/// The logic of the shipped plugins, without a host.
fn plugin_tests(root: &Path, nextest: &Path) -> Result<()> {
    let mut tests = guest_tests(root, nextest, "plugins/Cargo.toml");
    run("test the plugins' logic", tests.args(["--no-tests", "pass"]))
}

/// Clippy in the place of the compiler, for the crates of this workspace: one build serves the lints and the tests,
/// where `cargo clippy` would read every dependency once more. A warning is an error.
struct Lints {
    driver: PathBuf,
}

impl Lints {
    fn of(root: &Path) -> Result<Self> {
        let driver = sysroot(root)?.join("bin/clippy-driver");
        ensure!(driver.is_file(), "clippy is missing; add it with `rustup component add clippy`");
        Ok(Self { driver })
    }

    fn in_build(&self, mut cargo: Command) -> Command {
        // The form in which `cargo clippy` itself hands arguments on to its driver.
        cargo.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
        cargo.env("RUSTC_WORKSPACE_WRAPPER", &self.driver);
        cargo
    }
}

/// Writes the table of prices anew; what changed is for a person to read before it is committed.
pub(crate) fn prices(root: &Path) -> Result<()> {
    let script = root.join("xtask/src/prices.py");
    let table = root.join("host/crates/models/src/prices/table.tsv");
    run("make the table of prices, which needs Python 3 with pip", Command::new("python3").arg(script).arg(table))
}

/// Writes or checks the pages of the book, with a program that is built for it where none is named.
pub(crate) fn docs(root: &Path, args: &DocsArgs) -> Result<()> {
    docs::docs(root, args, || {
        run("build longhaul", cargo(root).args(["build", "--quiet", "-p", "longhaul"]))?;
        Ok(root.join("target/debug/longhaul"))
    })?;
    if args.html {
        let directory = tool(&Cache::open(guests::say)?, "mdbook", MDBOOK, &[])?;
        run("make the book", Command::new(directory.join("mdbook")).arg("build").arg(root.join("docs/book")))?;
        println!("the book is in {}", root.join("target/book").display());
    }
    Ok(())
}

/// The SDKs without a host, each in its own language, the tool `python` without a component, and the recipe that adds
/// numpy to it without its build; C's examples are tested as components.
fn sdk_tests(root: &Path, cache: &Cache, nextest: &Path) -> Result<()> {
    let tested = [
        ("test the Python SDK", "sdk/python"),
        ("test the tool `python`", "plugins/python"),
        ("test the recipe of Python with numpy", "packaging/python-numpy"),
    ];
    for (doing, folder) in tested {
        run(doing, Command::new("python3").current_dir(root.join(folder)).args(["-m", "unittest", "--quiet"]))?;
    }
    let mut node = longhaul_build::node(cache)?;
    run(
        "test the JavaScript SDK",
        node.current_dir(root.join("sdk/js")).args(["--test", "--test-reporter", "dot", "test/"]),
    )?;
    run("test the Rust SDK", &mut guest_tests(root, nextest, "sdk/rust/Cargo.toml"))
}

/// Tests in a workspace of guests, without WebAssembly. All have one directory, since they stand on the same crates.
fn guest_tests(root: &Path, nextest: &Path, manifest: &str) -> Command {
    let mut tests = with(cargo(root), &[nextest]);
    tests.args(["nextest", "run", "--target-dir"]).arg(root.join("target/sdk"));
    tests.arg("--manifest-path").arg(root.join(manifest));
    tests
}

/// Puts directories of tools first on the path, so that cargo finds its subcommands there.
fn with(mut command: Command, tools: &[&Path]) -> Command {
    let mut paths: Vec<PathBuf> = tools.iter().map(|directory| directory.to_path_buf()).collect();
    paths.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    command.env("PATH", std::env::join_paths(paths).unwrap_or_else(|_| OsString::from("/usr/bin")));
    command
}

/// The directory of a program: where it is installed, or one in the cache that cargo builds it into.
fn tool(cache: &Cache, name: &str, version: &str, features: &[&str]) -> Result<PathBuf> {
    let installed = std::env::var_os("PATH")
        .iter()
        .flat_map(std::env::split_paths)
        .find(|directory| directory.join(name).is_file());
    if let Some(directory) = installed {
        return Ok(directory);
    }
    let folder = cache.folder(&format!("{name}-{version}"), |directory| {
        println!("building {name} {version}, once");
        let mut install = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // Their own speed does not matter, and a build without optimisation takes half the time.
        install
            .args(["install", "--debug", "--locked", "--quiet", "--version", version, "--root"])
            .arg(directory)
            .args(features)
            .arg(name);
        // Nor do the line numbers of their back traces.
        install.env("CARGO_PROFILE_DEV_DEBUG", "0");
        // Their own target directory, or cargo would build them beside us with our settings.
        install.env("CARGO_TARGET_DIR", directory.join("build"));
        run(&format!("install {name}"), &mut install)?;
        std::fs::remove_dir_all(directory.join("build")).context("remove the build of a tool")
    })?;
    Ok(folder.join("bin"))
}
