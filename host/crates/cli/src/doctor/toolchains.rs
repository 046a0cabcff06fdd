//! Tries each tool chain of a project for `longhaul doctor`.
//!
//! A tool chain is tried as a check would use it: in the sandbox, without a network, within the default limits of a
//! check, with the project read-only. The trials change nothing.

use super::checks::{broken, fine, less};
use super::walls::tried;
use longhaul_api::wire::doctor::CheckResult;
use longhaul_config::Config;
use longhaul_home::Home;
use longhaul_sandbox::{Program, ProgramLimits, ProgramReport};
use longhaul_worktree::NativeCheck;
use std::path::Path;

/// A tool chain: the files by which a project is recognised, a command that tries it, and a remedy.
struct ToolChain {
    what: &'static str,
    files: &'static [&'static str],
    /// `{}` stands for the project's directory.
    argv: &'static [&'static str],
    remedy: &'static str,
}

/// Directories of virtual environments in a project, and the program that they replace in a check.
const ENVIRONMENTS: [&str; 2] = [".venv", "venv"];
const PYTHON: &str = "python3";

/// Imports modules of Node.js, makes a WebAssembly memory, which `fetch` needs, and imports the first of the installed
/// dependencies that can be imported. The argument is the project. The dependencies are below the working directory, as
/// in a check.
const NODE: &str = "
    import 'node:https';
    import 'node:test';
    import { existsSync, readFileSync } from 'node:fs';
    new WebAssembly.Memory({ initial: 1 });
    const project = JSON.parse(readFileSync(process.argv[1] + '/package.json', 'utf8'));
    let failed;
    for (const name of Object.keys(project.dependencies ?? [])) {
        if (!existsSync(process.argv[1] + '/node_modules/' + name)) continue;
        try {
            await import(name);
            process.exit(0);
        } catch (error) {
            failed = error;
        }
    }
    if (failed) {
        console.error(String(failed).split('\\n')[0]);
        process.exit(1);
    }
";

const TOOL_CHAINS: [ToolChain; 6] = [
    ToolChain {
        what: "cargo",
        files: &["Cargo.toml"],
        argv: &["cargo", "metadata", "--offline", "--format-version=1", "--manifest-path={}/Cargo.toml"],
        remedy: "run `cargo fetch --locked` outside of the sandbox, which has no network",
    },
    ToolChain {
        what: "rustc",
        files: &["Cargo.toml"],
        argv: &["rustc", "--version", "--verbose"],
        remedy: "name the tool chain's directory in `read` of the check",
    },
    ToolChain {
        what: "python",
        files: &["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "pytest.ini", "tox.ini"],
        argv: &[PYTHON, "-c", "import ssl, sqlite3, unittest, venv"],
        remedy: "start checks with the environment's Python, or name what is missing in `read`",
    },
    ToolChain {
        what: "pytest",
        files: &["pytest.ini", "conftest.py", "tests/conftest.py"],
        argv: &[PYTHON, "-m", "pytest", "--version"],
        remedy: "install it in `.venv` of the project, and start checks with its Python: argv = [\".venv/bin/python\", ...]",
    },
    ToolChain {
        what: "node",
        files: &["package.json"],
        argv: &["node", "--input-type=module", "-e", NODE, "{}"],
        remedy: "install dependencies outside of the sandbox (`npm ci`), or name Node.js's directory in `read`",
    },
    ToolChain {
        what: "go",
        files: &["go.mod"],
        // Go has `-C` since 1.20 only.
        argv: &["sh", "-c", "cd \"$0\" && exec go list -deps -test ./...", "{}"],
        remedy: "run `go mod download` outside of the sandbox, which has no network",
    },
];

/// Tries each tool chain of the project.
pub(super) async fn all(project: &Path, home: &Home) -> Vec<CheckResult> {
    let mut found = Vec::new();
    for chain in &TOOL_CHAINS {
        if chain.files.iter().any(|file| project.join(file).is_file()) {
            found.push(of(chain, project, home).await);
        }
    }
    if found.is_empty() {
        found.push(less("tool chains", format!("`{}` has no files of one that is known", project.display())));
    }
    found.extend(bare_servers(project));
    found
}

/// MCP servers whose tables have them run outside of the sandbox.
fn bare_servers(project: &Path) -> Vec<CheckResult> {
    let Ok(config) = Config::read(project) else { return Vec::new() };
    let bare = config.mcp.iter().filter(|(_, server)| server.is_bare());
    let said =
        |name: &String| format!("`{name}` runs bare and can read what you can; remove `sandbox` of [mcp.{name}]");
    bare.map(|(name, _)| less("mcp server", said(name))).collect()
}

async fn of(chain: &ToolChain, project: &Path, home: &Home) -> CheckResult {
    let mut argv: Vec<String> =
        chain.argv.iter().map(|word| word.replace("{}", &project.display().to_string())).collect();
    let own = python_of(project).filter(|_| chain.argv.first() == Some(&PYTHON));
    if let (Some(first), Some(own)) = (argv.first_mut(), &own) {
        first.clone_from(own);
    }
    let mut program = Program::new(chain.what, argv);
    program.read = vec![project.to_owned()];
    program.node_modules = Program::node_modules_of(project);
    let NativeCheck { memory_bytes_max, processes_max, .. } = NativeCheck::of_argv(Vec::new());
    program.limits = ProgramLimits { memory_bytes_max, processes_max, ..program.limits };
    let why = match tried(&program, Some(home)).await {
        Ok(Ok(ProgramReport { exit_code: 0, hit: None, .. })) => return fine(chain.what, works(own.as_deref())),
        Ok(Ok(report)) => {
            let last = report.stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
            report.hit.map_or_else(|| last.trim().to_owned(), |hit| hit.to_string())
        }
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    broken(chain.what, format!("it does not work in the sandbox: {why}; {}", chain.remedy))
}

fn works(own: Option<&str>) -> String {
    own.map_or_else(|| "it works in the sandbox".to_owned(), |own| format!("`{own}` works in the sandbox"))
}

/// The Python of the project's environment, as a check that names it starts it.
fn python_of(project: &Path) -> Option<String> {
    ENVIRONMENTS.iter().find_map(|name| {
        let word = format!("{name}/bin/python");
        let program = NativeCheck::of_argv(vec![word.clone()]).argv_in(project).into_iter().next();
        program.filter(|program| *program != word && Path::new(program).is_file())
    })
}
