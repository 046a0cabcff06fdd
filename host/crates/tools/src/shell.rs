//! `builtin:shell`: programs of the operator's list, started in the tree of a run.
//!
//! Off unless configured, and each call asks a person. It starts one program by the exact word on the list, with a list
//! of arguments; a command line is split without a shell, and every character that a shell would interpret is refused
//! by its name. The program runs in the sandbox of native checks: no network, its own processes, only the tree
//! writable, the data directory, the user's checkout and people's homes out of sight, limits on time, memory,
//! processes, files and output, and none of its processes outlives the call or the host. Refuses to run if the sandbox
//! is weaker than `sandbox_min`. It cannot see the further programs that a program on the list starts; they stay in the
//! same sandbox. Git gets settings by which it starts nothing (`shell/git.rs`).

mod command_line;
mod git;
mod programs;

use crate::arguments::{at_most, blocking, failed, invalid, path, shown};
use crate::environment::ToolRoot;
use crate::error::ToolsError;
use longhaul_core::journal::EffectClass;
use longhaul_core::text::truncate;
use longhaul_core::tool::{FunctionInfo, HostTool, ToolCall, ToolError, ToolInfo, ToolOutput};
use longhaul_core::{Denial, InvocationId};
use longhaul_sandbox::{Level, Program, ProgramLimits, ProgramReport, granted, run};
use programs::{Programs, Refusal};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Words of one command, and bytes of all of them.
const WORDS_MAX: usize = 1_000;
const WORDS_BYTES_MAX: usize = 128 << 10;

/// The operator's settings: `[tools.NAME.settings]`.
#[derive(Clone, Debug)]
pub struct ShellSettings {
    programs: Programs,
    env: BTreeMap<String, String>,
    read: Vec<PathBuf>,
    sandbox_min: Option<Level>,
    limits: ProgramLimits,
    /// Lines of commands that need no question, for display. The approval gate applies them.
    allow: Vec<String>,
}

/// The written form.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Written {
    /// The allowed programs: names, looked up in PATH, or full paths.
    programs: Vec<String>,
    /// Variables with their values. PATH is `/usr/local/bin:/usr/bin:/bin` unless it is here.
    env: BTreeMap<String, String>,
    /// Variables that are copied from the host's environment, if they are set.
    env_inherit: Vec<String>,
    /// Files and directories that programs may read besides the system's and their tool chains', full paths. Default
    /// none.
    read: Vec<PathBuf>,
    /// `full`, `namespaces`, `landlock` or `none`: with a weaker sandbox nothing is started. Default that of `[run]`.
    sandbox_min: Option<Level>,
    limits: ProgramLimits,
    /// From the tool's own table, by the host.
    allow: Vec<String>,
}

impl ShellSettings {
    /// Reads settings strictly.
    ///
    /// # Errors
    /// The fault, with its remedy.
    pub fn read(settings: &Value) -> Result<Self, ToolsError> {
        let wrong = |why: String| ToolsError::Settings { why };
        let written: Written = serde_json::from_value(settings.clone()).map_err(|error| wrong(error.to_string()))?;
        let Written { programs, mut env, env_inherit, read, sandbox_min, limits, allow } = written;
        for name in &env_inherit {
            if let Ok(value) = std::env::var(name) {
                env.entry(name.clone()).or_insert(value);
            }
        }
        if let Some(name) = env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return Err(wrong(format!("`{}` is no variable's name", shown(name))));
        }
        if env.values().any(|value| value.contains('\0')) {
            return Err(wrong("a variable's value has a NUL".to_owned()));
        }
        if limits.wall_ms_max == 0 || limits.memory_bytes_max == 0 || limits.processes_max == 0 {
            return Err(wrong("a limit of 0 lets nothing run; remove it or set it above 0".to_owned()));
        }
        if let Some(dir) = read.iter().find(|dir| !dir.is_absolute()) {
            return Err(wrong(format!("`read` has `{}`; write a full path", dir.display())));
        }
        let programs = Programs::of(&programs, env.get("PATH").map(String::as_str)).map_err(wrong)?;
        env.insert("PATH".to_owned(), programs.path().to_owned());
        for (name, value) in git::environment() {
            env.entry(name).or_insert(value);
        }
        Ok(Self { programs, env, read, sandbox_min, limits, allow })
    }
}

/// The tool.
pub struct Shell {
    place: ToolRoot,
    settings: ShellSettings,
    /// The weakest level that has confined a program so far.
    least: Mutex<Option<Level>>,
}

impl Shell {
    /// The tool, in a place, with the operator's settings.
    #[must_use]
    pub fn new(place: ToolRoot, settings: ShellSettings) -> Self {
        Self { place, settings, least: Mutex::default() }
    }

    fn note_level(&self, level: Level) {
        let mut least = self.least.lock().unwrap_or_else(PoisonError::into_inner);
        *least = Some(least.map_or(level, |before| before.min(level)));
    }
}

#[async_trait::async_trait]
impl HostTool for Shell {
    async fn info(&self, name: &str) -> Result<ToolInfo, ToolError> {
        let ShellSettings { programs, allow, .. } = &self.settings;
        let programs = truncate(&programs.names().join(", "), 2_000);
        let mut description =
            format!("Starts one program in the project, without a shell and without a network. There are: {programs}");
        if !allow.is_empty() {
            let allow = truncate(&allow.join("; "), 2_000);
            description.push_str(&format!(". Nobody has to be asked about: {allow}"));
        }
        Ok(ToolInfo { id: name.to_owned(), description, functions: vec![run_function(&self.settings.limits)] })
    }

    fn refusal(&self, call: &ToolCall) -> Option<ToolError> {
        self.program(call).err()
    }

    fn held_by(&self) -> Option<String> {
        let least = *self.least.lock().unwrap_or_else(PoisonError::into_inner);
        least.filter(|level| *level < Level::Full).map(|level| level.to_string())
    }

    async fn call(&self, call: &ToolCall, _: &InvocationId, _: &str, _: u32) -> Result<ToolOutput, ToolError> {
        let mut program = self.program(call)?;
        if git::is_git(Path::new(&program.argv[0])) {
            let tree = self.place.tree.clone();
            let named = blocking(move || git::named_in(&tree).map_err(failed)).await?;
            git::add(&mut program.env, named);
        }
        let report = run(&self.place.host, &program).await.map_err(failed)?;
        self.note_level(report.level);
        Ok(told(&report, &program, &call.tool))
    }
}

fn run_function(limits: &ProgramLimits) -> FunctionInfo {
    let what = "A program and its arguments. Either `argv`, a list of words, or `command`, a line of which nothing is \
                special but quotes: no chains, no redirection, no substitution, no patterns";
    FunctionInfo::of(
        "run",
        what,
        EffectClass::Acts,
        json!({
            "argv": { "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": WORDS_MAX },
            "command": { "type": "string", "maxLength": WORDS_BYTES_MAX },
            "cwd": { "type": "string", "description": "Where it starts, from the top; default there" },
            "timeout_ms": { "type": "integer", "minimum": 1, "maximum": limits.wall_ms_max },
        }),
        &[],
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    argv: Option<Vec<String>>,
    command: Option<String>,
    #[serde(default)]
    cwd: String,
    timeout_ms: Option<u64>,
}

impl Shell {
    /// The program of a call, or the reason for a refusal.
    fn program(&self, call: &ToolCall) -> Result<Program, ToolError> {
        if call.function != "run" {
            return Err(ToolError::UnknownFunction(truncate(&call.function, 120)));
        }
        let (asked, tool): (Run, &str) = (call.read()?, &call.tool);
        let mut argv = words_of(asked.argv, asked.command)?;
        let word = argv.first().cloned().ok_or_else(|| invalid("there is no program; give `argv` or `command`"))?;
        let found = self.settings.programs.find(&word, &self.place.tree);
        let found = found.map_err(|why| denied(why, &word, tool))?;
        let read = self.granted(tool)?;
        self.check_seen(&found, tool)?;
        argv[0] = found.to_string_lossy().into_owned();
        let mut limits = self.settings.limits.clone();
        limits.wall_ms_max = asked.timeout_ms.unwrap_or(u64::MAX).clamp(1, limits.wall_ms_max);
        let cwd = PathBuf::from(path(&asked.cwd)?);
        self.check_cwd(&cwd)?;
        let ShellSettings { env, sandbox_min, .. } = self.settings.clone();
        let level_min = sandbox_min.unwrap_or(self.place.host.level_min);
        let tree = Some(self.place.tree.clone());
        Ok(Program { cwd, env, read, tree, level_min, limits, ..Program::new(format!("`{word}`"), argv) })
    }

    /// The paths that programs may read by the operator's settings, as far as they exist.
    fn granted(&self, tool: &str) -> Result<Vec<PathBuf>, ToolError> {
        let checkout = self.place.host.checkout.as_ref().unwrap_or(&self.place.project);
        let read = self.settings.read.iter().map(|path| granted(checkout, path)).collect::<Result<Vec<_>, _>>();
        let mut read = read.map_err(|error| failed(format!("[tools.{tool}.settings] read: {error}")))?;
        read.retain(|path| path.exists());
        Ok(read)
    }

    /// The user's own files may hold uncommitted content: a program there is visible only if the operator allows it.
    fn check_seen(&self, program: &Path, tool: &str) -> Result<(), ToolError> {
        let real = program.canonicalize().map_err(failed)?;
        let is_below = |dir: &PathBuf| dir.canonicalize().is_ok_and(|dir| real.starts_with(dir));
        let hidden = self.place.host.hidden.iter().chain([&self.place.project]);
        if !hidden.into_iter().any(is_below) || self.settings.read.iter().any(is_below) {
            return Ok(());
        }
        let dir = real.parent().unwrap_or(&real).display();
        Err(failed(format!(
            "`{}` is not seen by programs, which see no checkout; add to longhaul.toml: [tools.{tool}.settings] read = \
             [\"{dir}\"]",
            real.display()
        )))
    }

    /// For a clear message. The real check is on the started program's directory; see `sandbox.rs` of the tree.
    fn check_cwd(&self, cwd: &Path) -> Result<(), ToolError> {
        let top = self.place.tree.canonicalize().map_err(failed)?;
        match top.join(cwd).canonicalize() {
            Ok(there) if there.starts_with(&top) && there.is_dir() => Ok(()),
            Ok(there) if !there.starts_with(&top) => Err(invalid("`cwd` leads out of the tree")),
            _ => Err(invalid("`cwd` is no directory of the tree")),
        }
    }
}

fn words_of(argv: Option<Vec<String>>, command: Option<String>) -> Result<Vec<String>, ToolError> {
    let command_line = match (argv, command) {
        (Some(argv), None) => argv,
        (None, Some(line)) => {
            at_most("words_bytes_max", line.len(), WORDS_BYTES_MAX)?;
            command_line::split(&line).map_err(|why| invalid(format!("`command` is not taken: {why}")))?
        }
        (Some(_), Some(_)) => return Err(invalid("give `argv` or `command`, not both")),
        (None, None) => Vec::new(),
    };
    at_most("words_max", command_line.len(), WORDS_MAX)?;
    at_most("words_bytes_max", command_line.iter().map(String::len).sum(), WORDS_BYTES_MAX)?;
    if command_line.iter().any(|word| word.contains('\0')) {
        return Err(invalid("a word has a NUL, which no program can be given"));
    }
    Ok(command_line)
}

fn denied(why: Refusal, word: &str, tool: &str) -> ToolError {
    let word = shown(word);
    match why {
        Refusal::NotListed => ToolError::Denied(Denial {
            reason: format!("`{word}` is not on the list of programs of `{tool}`"),
            fix: format!("[tools.{tool}.settings] programs = [{word:?}]"),
        }),
        Refusal::NotThere => failed(format!("`{word}` may be started, and is not installed in PATH")),
        Refusal::InTree => failed(format!("`{word}` lies in the tree, where agents write, so it is not started")),
    }
}

fn told(report: &ProgramReport, program: &Program, tool: &str) -> ToolOutput {
    let error = report.hit.as_ref().map(|hit| {
        // Limits of all of its processes together have this prefix.
        let together = if hit.name.starts_with("max_") { "[program] of resources.toml, and in " } else { "" };
        let raise = format!("raise it in {together}[tools.{tool}.settings.limits], or do less");
        if hit.name == "wall_ms_max" {
            format!("Timeout: given up after {} ms; {raise}", program.limits.wall_ms_max)
        } else {
            format!("{hit}; {raise}")
        }
    });
    let mut output = json!({
        "success": report.hit.is_none() && report.exit_code == 0,
        "exit_code": report.exit_code,
        "stdout": report.stdout,
        "stderr": report.stderr,
        "duration_ms": report.wall_ms,
        "error": error,
    });
    // Only a weaker level than usual is reported.
    if report.level < Level::Full {
        output["sandbox"] = json!(report.level);
    }
    ToolOutput { output: output.to_string(), truncated: report.truncated }
}
