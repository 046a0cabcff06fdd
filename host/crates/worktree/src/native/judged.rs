//! Runs a check as often as its judge requests, each time on a fresh copy and in a sandbox of its own.
//!
//! The judge decides the runs and the pass; see `longhaul-judge`. People see the output of the first run, which is the
//! operator's own command. Refuses to judge while a sandbox still runs: each has ended before the next one starts.

use super::check::NativeCheck;
use super::copy::{Copy, CopyFiles};
use super::error::NativeError;
use super::go_library::provide_go_library;
use crate::TreeError;
use crate::git::UserRepository;
use crate::tree::Tree;
use longhaul_core::work::CheckReport;
use longhaul_judge::{CheckVerdict, EvidenceKind, Judge, JudgeStep, JudgedCheck, Launch, ProgramEnd};
use longhaul_sandbox::{LeadsOut, Level, Program, ProgramLimits, ProgramReport, SandboxHost, granted, run_in};

/// Bytes of an output that the judge reads.
const WHOLE_BYTES_MAX: u64 = 64 << 20;

/// Bytes of one file that a check writes. A debug build's archives have hundreds of megabytes.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// One check of one tree.
pub(super) struct Judging<'a> {
    pub(super) host: &'a SandboxHost,
    pub(super) project: &'a UserRepository,
    pub(super) tree: &'a Tree,
    pub(super) name: &'a str,
    pub(super) check: &'a NativeCheck,
    /// None only while another thread prepares it.
    pub(super) copy: Option<Copy>,
}

/// The verdict on a check.
pub(super) struct Judged {
    pub(super) report: CheckReport,
    pub(super) level: Level,
    pub(super) wall_ms: u64,
}

impl Judging<'_> {
    pub(super) async fn run(&mut self, base: &str) -> Result<Judged, NativeError> {
        let mut judge = self.judge(base)?;
        let mut first: Option<Judged> = None;
        let mut ended = None;
        let verdict = loop {
            let launch = match judge.next(ended.take()) {
                JudgeStep::Launch(launch) => launch,
                JudgeStep::Judged(verdict) => break verdict,
            };
            self.make_ready(&launch, first.is_none()).await?;
            let done = self.launch(&launch).await?;
            let (hit, level, wall_ms) = (done.hit.clone(), done.level, done.wall_ms);
            ended = Some(ProgramEnd {
                exit_code: done.exit_code,
                stdout: done.stdout.clone(),
                stderr: done.stderr.clone(),
                files: launch.reads.iter().filter_map(|path| Some((path.clone(), self.left(path)?))).collect(),
            });
            let mut told = report(self.name, done);
            if launch.is_read_whole {
                told.truncated |= cut(&mut told.stdout, self.check.output_bytes_max)
                    | cut(&mut told.stderr, self.check.output_bytes_max);
            }
            let judged = first.get_or_insert(Judged { report: told, level, wall_ms: 0 });
            judged.wall_ms = judged.wall_ms.saturating_add(wall_ms);
            // The weakest sandbox decides the level of the verdict.
            judged.level = judged.level.min(level);
            if let Some(hit) = hit {
                let is_first = judged.report.exit_code != 0;
                let why = if is_first { String::new() } else { format!("not taken as a pass: in the audit {hit}") };
                break CheckVerdict { passed: false, why };
            }
        };
        let judged = first.ok_or_else(|| self.failed("nothing was run"))?;
        Ok(self.told(judged, &verdict))
    }

    fn judge(&self, base: &str) -> Result<Judge, NativeError> {
        let copy = self.copy.as_ref().ok_or_else(|| self.failed("it has no copy"))?;
        let files = CopyFiles::of(copy, self.project, base, self.tree.caps())?;
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| self.failed(error))?;
        let NativeCheck { twins, report, tests_min, .. } = self.check;
        let argv = self.check.argv_in(self.project.root());
        let (kind, report) = (self.check.evidence_kind(), report.as_deref());
        Ok(Judge::of(&JudgedCheck {
            argv: &argv,
            kind,
            twins: *twins,
            report,
            tests_min: *tests_min,
            seed,
            files: &files,
        }))
    }

    /// The copy was just made for the first program, which may have no files of its own.
    async fn make_ready(&mut self, launch: &Launch, is_first: bool) -> Result<(), NativeError> {
        if is_first && launch.beside.is_empty() && launch.over.is_empty() {
            return Ok(());
        }
        let mut copy = self.copy.take().ok_or_else(|| self.failed("it has no copy"))?;
        let (project, tree, launch) = (self.project.clone(), self.tree.clone(), launch.clone());
        let ready = tokio::task::spawn_blocking(move || {
            let ready = copy.make_ready(&project, &tree, &launch);
            (copy, ready)
        });
        let (copy, ready): (Copy, Result<(), TreeError>) = ready.await.map_err(|error| self.failed(error))?;
        self.copy = Some(copy);
        Ok(ready?)
    }

    async fn launch(&self, launch: &Launch) -> Result<ProgramReport, NativeError> {
        let copy = self.copy.as_ref().ok_or_else(|| self.failed("it has no copy"))?;
        let mut program: Program = self.check.program(self.name, self.project, self.host.level_min)?;
        program.argv.clone_from(&launch.argv);
        program.env.extend(launch.env.clone());
        if copy.is_without_modules() {
            program.node_modules = Program::node_modules_of(self.project.root());
        }
        if launch.is_read_whole {
            program.limits.output_bytes_max = program.limits.output_bytes_max.max(WHOLE_BYTES_MAX);
        }
        // A script or a target of `make` may start Go; the runner of another language does not.
        let is_unknown = matches!(self.check.evidence_kind(), EvidenceKind::Exit | EvidenceKind::Junit);
        let has_module = is_unknown && copy.is_go_module();
        provide_go_library(self.host, &program, copy.dir(), has_module).await;
        Ok(run_in(self.host, copy.dir(), &program).await?)
    }

    fn left(&self, path: &str) -> Option<Vec<u8>> {
        self.copy.as_ref()?.left(path)
    }

    fn told(&self, judged: Judged, verdict: &CheckVerdict) -> Judged {
        let Judged { mut report, level, wall_ms } = judged;
        report.passed = verdict.passed && report.passed;
        if level < Level::Full {
            report.sandbox = Some(level.to_string());
            let line = format!("this check was held by the sandbox level `{level}`, and not by `full`");
            add_line(&mut report.stderr, &line);
        }
        let unseen = self.copy.as_ref().map_or(&[][..], |copy| &copy.unseen);
        if !unseen.is_empty() {
            let names = unseen.join("`, `");
            add_line(
                &mut report.stderr,
                &format!(
                    "changes to `{names}` were not seen by this check: files of a test runner are taken from the base \
                     commit; to allow one, name it in `unpinned` of [checks.{}]",
                    self.name
                ),
            );
        }
        if !verdict.why.is_empty() {
            add_line(&mut report.stderr, &verdict.why);
        }
        Judged { report, level, wall_ms }
    }

    fn failed(&self, why: impl ToString) -> NativeError {
        NativeError::Host { name: self.name.to_owned(), why: why.to_string() }
    }
}

impl NativeCheck {
    fn program(&self, name: &str, project: &UserRepository, level_min: Level) -> Result<Program, NativeError> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| u64::try_from(cores.get()).unwrap_or(1));
        let limits = ProgramLimits {
            wall_ms_max: self.wall_ms_max,
            grace_ms: 0,
            cpu_seconds_max: self.wall_ms_max.div_ceil(1_000).saturating_mul(cores),
            memory_bytes_max: self.memory_bytes_max,
            output_bytes_max: self.output_bytes_max,
            processes_max: self.processes_max,
            disk_bytes_max: self.disk_bytes_max,
            file_bytes_max: FILE_BYTES_MAX.min(self.disk_bytes_max),
        };
        let env = self.env.clone();
        let read = self.read.iter().map(|path| granted(project.root(), path));
        let not_granted = |error: LeadsOut| NativeError::Invalid {
            name: name.to_owned(),
            why: format!("cannot `read` what it names: {error}"),
        };
        let read = read.collect::<Result<Vec<_>, _>>().map_err(not_granted)?;
        let program = Program::new(format!("check `{name}`"), self.argv.clone());
        Ok(Program { env, read, level_min, limits, ..program })
    }
}

/// The report of one run: the level is reported for all of them together.
fn report(name: &str, done: ProgramReport) -> CheckReport {
    let ProgramReport { exit_code, hit, stdout, mut stderr, truncated, .. } = done;
    if let Some(hit) = &hit {
        let line_end = if stderr.is_empty() || stderr.ends_with('\n') { "" } else { "\n" };
        // Limits of all of its processes together have this prefix.
        let together = if hit.name.starts_with("max_") { "[program] of resources.toml, and in " } else { "" };
        let raise = format!("raise it in {together}[checks.{name}], or make the check use less");
        stderr.push_str(&format!("{line_end}{hit}; {raise}\n"));
    }
    CheckReport {
        name: name.to_owned(),
        passed: hit.is_none() && exit_code == 0,
        exit_code,
        stdout,
        stderr,
        truncated,
        sandbox: None,
        duration_ms: 0,
    }
}

fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
    text.push('\n');
}

/// Cuts the middle out of a text that is too long for a person; returns whether it did.
fn cut(text: &mut String, bytes_max: u64) -> bool {
    let half = usize::try_from(bytes_max / 2).unwrap_or(usize::MAX);
    if text.len() <= half.saturating_mul(2) {
        return false;
    }
    let (head, tail) = (text.floor_char_boundary(half), text.ceil_char_boundary(text.len() - half));
    *text = format!("{}\n[{} bytes left out]\n{}", &text[..head], tail - head, &text[tail..]);
    true
}
