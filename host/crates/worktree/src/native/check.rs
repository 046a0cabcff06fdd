//! A check as the operator writes it in `[checks]`, with its defaults.

use super::error::NativeError;
use longhaul_judge::EvidenceKind;
use schemars::{JsonSchema, Schema, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// A check of `[checks]` in `longhaul.toml`: a table, or just the list of words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(default = "without_words", deny_unknown_fields, transform = or_words)]
pub struct NativeCheck {
    /// The program and its arguments; no shell. A program of a virtual environment in the checkout, such as
    /// `.venv/bin/python`, is that of the checkout.
    #[schemars(length(min = 1))]
    pub argv: Vec<String>,
    /// Globs of the files that decide, such as `tests/**`: they are taken from the base commit.
    ///
    /// `*` and `?` stay within a name, `**` stands for any directories, and a directory stands for all files below it.
    /// A matching file that the base does not have is absent from the copy, so that nothing can be put beside the tests
    /// to change them. A glob that matches nothing in the base pins nothing.
    pub files: Vec<String>,
    /// The evidence for its pass. Default: by the program that `argv` starts; see [`NativeCheck::evidence_kind`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceKind>,
    /// True when its tests may run several times in one process, beside twins that must fail. Default true.
    pub twins: bool,
    /// The path of its report in the form of JUnit, from the top of the copy: `evidence = "junit"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// The least number of tests that such a report must have. Default 1.
    pub tests_min: u64,
    /// Globs of files of a test runner, such as `conftest.py`, that the work may change: they are not taken from the
    /// base commit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unpinned: Vec<String>,
    /// Environment variables besides PATH, HOME, LANG and TMPDIR.
    pub env: BTreeMap<String, String>,
    /// Files and directories outside of the copy that it may read, besides the system's and its tool chain's: full
    /// paths, or from the top of the project. A path in the project that a link leads out of there is refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
    /// Wall time, in milliseconds. Default 600 000.
    #[schemars(range(min = 1))]
    pub wall_ms_max: u64,
    /// Private writable memory of each process, in bytes. Default 2 GiB. All of them together may have four times as
    /// much; see [`longhaul_sandbox::ProgramLimits::memory_bytes_max`].
    #[schemars(range(min = 1))]
    pub memory_bytes_max: u64,
    /// Bytes kept of each output; the middle is left out. Default 200 000.
    pub output_bytes_max: u64,
    /// Processes and threads. Default 256. Enforced where there are namespaces, and not for root.
    pub processes_max: u64,
    /// Bytes that the disk may lose meanwhile, to any process. Default 10 GiB. Checked each half second.
    pub disk_bytes_max: u64,
}

impl NativeCheck {
    /// `argv` with every default.
    #[must_use]
    pub fn of_argv(argv: Vec<String>) -> Self {
        let table = Table { argv, ..Table::default() };
        Self::from(table)
    }

    /// Its words for the user's `checkout`: a program of a virtual environment there, which git ignores and no copy
    /// has, is replaced by its full path, under which it is visible.
    #[must_use]
    pub fn argv_in(&self, checkout: &Path) -> Vec<String> {
        let mut argv = self.argv.clone();
        if let Some(first) = argv.first_mut()
            && let Some(program) = of_environment(checkout, Path::new(&*first))
        {
            *first = program;
        }
        argv
    }

    /// The evidence for its pass.
    #[must_use]
    pub fn evidence_kind(&self) -> EvidenceKind {
        self.evidence.unwrap_or_else(|| EvidenceKind::of_argv(&self.argv))
    }

    /// Refuses values with which no program can be started.
    ///
    /// # Errors
    /// [`NativeError::Invalid`], with the remedy.
    pub fn validate(&self, name: &str) -> Result<(), NativeError> {
        let invalid = |why: &str| Err(NativeError::Invalid { name: name.to_owned(), why: why.to_owned() });
        let words = self.argv.iter().chain(self.env.keys()).chain(self.env.values());
        if self.argv.first().is_none_or(String::is_empty) {
            return invalid("has no program; write for example: argv = [\"cargo\", \"test\"]");
        }
        if words.clone().any(|word| word.contains('\0'))
            || self.env.keys().any(|key| key.is_empty() || key.contains('='))
        {
            return invalid("has a word or variable that no program can be given; remove NUL, and `=` from names");
        }
        if words.map(String::len).sum::<usize>() > 64 << 10 {
            return invalid("has over 65536 bytes of words and variables; put them into a script");
        }
        if self.evidence.is_some_and(|kind| !kind.fits(&self.argv)) {
            return invalid("names evidence that its words do not start a runner of; correct `evidence`, or `argv`");
        }
        let is_inside = |path: &str| path.split('/').all(|name| !matches!(name, "" | "." | ".."));
        if self.report.as_deref().is_some_and(is_inside) != (self.evidence == Some(EvidenceKind::Junit)) {
            return invalid(
                "has `evidence = \"junit\"` where it has a `report`, a path within the copy; write both or none",
            );
        }
        if self.wall_ms_max == 0 || self.memory_bytes_max == 0 {
            return invalid("may use no time or no memory; remove the limit or set it above 0");
        }
        Ok(())
    }
}

/// The full path of a program in a virtual environment below `checkout`. One that a link leads out of there does not
/// count: a repository may bring it along.
fn of_environment(checkout: &Path, program: &Path) -> Option<String> {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let bin = program.parent().filter(|bin| bin.ends_with("bin") && program.components().all(is_plain))?;
    let environment = checkout.join(bin.parent()?);
    let (real, top) = (environment.canonicalize().ok()?, checkout.canonicalize().ok()?);
    let is_one = real != top && real.starts_with(&top) && environment.join("pyvenv.cfg").is_file();
    let program = program.components().filter(|part| *part != Component::CurDir).collect::<PathBuf>();
    checkout.join(program).to_str().filter(|_| is_one).map(str::to_owned)
}

/// A check as written, with its defaults.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Table {
    argv: Vec<String>,
    files: Vec<String>,
    evidence: Option<EvidenceKind>,
    twins: bool,
    report: Option<String>,
    tests_min: u64,
    unpinned: Vec<String>,
    env: BTreeMap<String, String>,
    read: Vec<PathBuf>,
    wall_ms_max: u64,
    memory_bytes_max: u64,
    output_bytes_max: u64,
    processes_max: u64,
    disk_bytes_max: u64,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            argv: Vec::new(),
            files: Vec::new(),
            evidence: None,
            twins: true,
            report: None,
            tests_min: 1,
            unpinned: Vec::new(),
            env: BTreeMap::new(),
            read: Vec::new(),
            wall_ms_max: 600_000,
            memory_bytes_max: 2 << 30,
            output_bytes_max: 200_000,
            processes_max: 256,
            disk_bytes_max: 10 << 30,
        }
    }
}

impl From<Table> for NativeCheck {
    fn from(table: Table) -> Self {
        let Table { argv, files, evidence, twins, report, tests_min, unpinned, env, read, .. } = table;
        let Table { wall_ms_max, memory_bytes_max, output_bytes_max, processes_max, disk_bytes_max, .. } = table;
        Self {
            argv,
            files,
            evidence,
            twins,
            report,
            tests_min,
            unpinned,
            env,
            read,
            wall_ms_max,
            memory_bytes_max,
            output_bytes_max,
            processes_max,
            disk_bytes_max,
        }
    }
}

/// The defaults of a table, for its schema.
fn without_words() -> NativeCheck {
    NativeCheck::of_argv(Vec::new())
}

/// Adds the list of words to the schema of a table.
fn or_words(schema: &mut Schema) {
    let table = std::mem::take(schema);
    *schema = json_schema!({
        "anyOf": [table, {
            "description": "The program and its arguments.",
            "type": "array",
            "items": { "type": "string" },
            "minItems": 1,
        }],
    });
}

/// By hand, so that a mistake in a table is reported as such and not as `no variant matched`.
impl<'de> Deserialize<'de> for NativeCheck {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = NativeCheck;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of words, such as [\"cargo\", \"test\"], or a table with `argv`")
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut words: A) -> Result<NativeCheck, A::Error> {
                let mut argv = Vec::new();
                while let Some(word) = words.next_element()? {
                    argv.push(word);
                }
                Ok(NativeCheck::of_argv(argv))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<NativeCheck, A::Error> {
                Table::deserialize(MapAccessDeserializer::new(map)).map(NativeCheck::from)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}
