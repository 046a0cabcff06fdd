//! The library that a check of Go needs, by its words, its variables, and the machine's Go and C compilers.
//!
//! Checks with the same name share a library. The name need not contain all that Go looks at: an entry of a build cache
//! that does not fit is not used, and only time is lost. Starts nothing.

use longhaul_core::Digest;
use longhaul_sandbox::{Program, ProgramLimits};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Compiles each package of the library that a program can import, and the facts about each that `go vet` and `go test`
/// look for. Its arguments are the word for `go`, and flags of the build.
const MAKE: &str = r#"set -e
go=$1
shift
printf 'module library\n\ngo 1.18\n' > go.mod
printf 'package library\n\nimport "testing"\n\nfunc TestLibrary(t *testing.T) {}\n' > library_test.go
"$go" list "$@" std > names
echo 'package library' > library.go
while read -r name; do
    case $name in
    *internal* | vendor/* | builtin | runtime/cgo | runtime/race) ;;
    *) echo "import _ \"$name\"" >> library.go ;;
    esac
done < names
"$go" vet "$@" .
"$go" test "$@" -c -o library.test .
"#;

/// Flags of the build with which the library is another one.
const FLAGS: [&str; 2] = ["race", "trimpath"];

/// Variables with which the library is another one, or by which its compilers are found.
const VARIABLES: [&str; 12] = [
    "CC",
    "CGO_CFLAGS",
    "CGO_ENABLED",
    "CGO_LDFLAGS",
    "GOAMD64",
    "GOARCH",
    "GOARM",
    "GOARM64",
    "GOEXPERIMENT",
    "GOOS",
    "GOROOT",
    "PATH",
];

/// Variables by which a check has its build cache elsewhere.
const ELSEWHERE: [&str; 4] = ["GOCACHE", "GOCACHEPROG", "HOME", "XDG_CACHE_HOME"];

/// Commands of Go that compile nothing.
const COMPILES_NOTHING: [&str; 5] = ["env", "fmt", "list", "mod", "version"];

/// C compilers, on which the packages with C depend.
const COMPILERS: [&str; 3] = ["cc", "clang", "gcc"];

/// Wall time for making a library. It takes about a minute.
const WALL_MS_MAX: u64 = 900_000;

/// A library, and how it is made.
pub(super) struct Flavour {
    /// Its name among libraries.
    pub(super) name: String,
    /// The program that makes it in its own build cache.
    pub(super) maker: Program,
}

impl Flavour {
    /// None: `check` does not compile with Go, or has its build cache elsewhere.
    pub(super) fn of(check: &Program, has_module: bool) -> Option<Self> {
        if ELSEWHERE.iter().any(|name| check.env.contains_key(*name)) {
            return None;
        }
        let mut words: Vec<&str> = check.argv.iter().flat_map(|word| word.split_whitespace()).collect();
        let go = go_of(&words, has_module)?;
        words.extend(check.env.get("GOFLAGS").map_or("", String::as_str).split_whitespace());
        let flags = FLAGS.iter().filter(|flag| words.iter().any(|word| is_flag(word, flag)));
        let flags: Vec<String> = flags.map(|flag| format!("-{flag}")).collect();
        let set = |name: &&str| Some(((*name).to_owned(), check.env.get(*name)?.clone()));
        let env: BTreeMap<String, String> = VARIABLES.iter().filter_map(set).collect();
        let name = name_of(go, &flags, &env)?;
        let mut argv = ["sh", "-c", MAKE, "sh", go].map(str::to_owned).to_vec();
        argv.extend(flags);
        let program = Program::new("the build of Go's standard library", argv);
        let (starts, level_min) = (Some(go.to_owned()), check.level_min);
        Some(Self { name, maker: Program { starts, env, level_min, limits: limits(), ..program } })
    }
}

/// The word of the Go that compiles, which is that on PATH for a module whose check names none.
fn go_of<'a>(words: &[&'a str], has_module: bool) -> Option<&'a str> {
    let named: Vec<usize> = (0..words.len()).filter(|at| is_go(words[*at])).collect();
    if named.is_empty() {
        return has_module.then_some("go");
    }
    let compiles = |at: &usize| words.get(at + 1).is_none_or(|next| !COMPILES_NOTHING.contains(next));
    named.into_iter().find(compiles).map(|at| words[at])
}

fn is_go(word: &str) -> bool {
    word == "go" || word.starts_with('/') && word.ends_with("/go")
}

/// Go reads `-race` and `--race`.
fn is_flag(word: &str, flag: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| rest.strip_prefix('-').unwrap_or(rest) == flag)
}

/// The digest of what decides about a library. None: there is no such Go.
fn name_of(go: &str, flags: &[String], env: &BTreeMap<String, String>) -> Option<String> {
    let path = env.get("PATH").cloned().or_else(|| std::env::var("PATH").ok()).unwrap_or_default();
    let go = if go.starts_with('/') { PathBuf::from(go) } else { which(go, &path)? };
    let real = go.canonicalize().ok()?;
    // Beside `bin`, which has the program.
    let version = real.ancestors().nth(2).and_then(|root| std::fs::read_to_string(root.join("VERSION")).ok());
    let of_machine = [MAKE, std::env::consts::OS, std::env::consts::ARCH].map(str::to_owned);
    let mut parts = of_machine.to_vec();
    parts.extend([stamp(&real)?, version.unwrap_or_default()]);
    parts.extend(COMPILERS.iter().filter_map(|name| stamp(&which(name, &path)?)));
    parts.extend(flags.iter().cloned());
    parts.extend(env.iter().map(|(name, value)| format!("{name}={value}")));
    Some(Digest::of_parts(&parts.iter().map(String::as_bytes).collect::<Vec<_>>()).to_string())
}

fn which(name: &str, path: &str) -> Option<PathBuf> {
    let dirs = std::env::split_paths(path).filter(|dir| dir.is_absolute());
    dirs.map(|dir| dir.join(name)).find(|program| program.is_file())
}

/// The real path of a program, with its size and the time of its last change: reading it would cost more than it saves.
fn stamp(program: &Path) -> Option<String> {
    let real = program.canonicalize().ok()?;
    let found = real.metadata().ok()?;
    Some(format!("{} {} {}.{}", real.display(), found.len(), found.mtime(), found.mtime_nsec()))
}

/// Go starts a compiler for each core, each with a dozen threads.
fn limits() -> ProgramLimits {
    ProgramLimits {
        wall_ms_max: WALL_MS_MAX,
        grace_ms: 0,
        cpu_seconds_max: WALL_MS_MAX / 1_000,
        memory_bytes_max: 4 << 30,
        processes_max: 2_048,
        file_bytes_max: 1 << 30,
        disk_bytes_max: 4 << 30,
        ..ProgramLimits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_for_checks_that_compile_with_go() {
        let check = |words: &str, has_module: bool, expected: Option<&str>| {
            let words: Vec<&str> = words.split_whitespace().collect();
            assert_eq!(go_of(&words, has_module), expected, "{words:?}");
        };
        for words in ["go test ./...", "env A=b go -C sub build", "sh -c cd sub && go vet", "go mod verify && go build"]
        {
            check(words, false, Some("go"));
        }
        check("/usr/local/go/bin/go test", false, Some("/usr/local/go/bin/go"));
        check("go list -e -json ./...", true, None);
        check("make test", true, Some("go"));
        check("make test", false, None);
        check("./go test", false, None);
    }

    /// A directory with files that stand in for Go and its version.
    fn with_go(check: impl Fn(&Path)) {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("bin")).expect("made");
        ["bin/go", "VERSION"].iter().for_each(|name| std::fs::write(dir.path().join(name), "1").expect("written"));
        check(dir.path());
    }

    fn flavour(root: &Path, words: &[&str], env: &[(&str, &str)]) -> Option<Flavour> {
        let mut check = Program::new("check `test`", words.iter().map(|word| (*word).to_owned()).collect());
        check.env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        check.env.insert("PATH".to_owned(), root.join("bin").display().to_string());
        Flavour::of(&check, false)
    }

    #[test]
    fn checks_share_a_library_unless_it_would_be_another_one() {
        with_go(|root| {
            let name = |words: &[&str], env: &[(&str, &str)]| flavour(root, words, env).expect("there is a Go").name;
            let test = ["go", "test", "./..."];
            let plain = name(&test, &[]);
            for env in [("GOFLAGS", "-mod=mod"), ("GOMODCACHE", "/m"), ("A", "b")] {
                assert_eq!(name(&["go", "build", "-v"], &[env]), plain, "{env:?}");
            }
            let others = [
                name(&["go", "test", "-race"], &[]),
                name(&test, &[("GOFLAGS", "-trimpath --race")]),
                name(&test, &[("CGO_ENABLED", "0")]),
                name(&test, &[("GOOS", "js")]),
            ];
            std::fs::write(root.join("VERSION"), "2").expect("written");
            let updated = name(&test, &[]);
            let different: std::collections::BTreeSet<&String> = others.iter().chain([&plain, &updated]).collect();
            assert_eq!(different.len(), others.len() + 2);
        });
    }

    #[test]
    fn the_maker_has_the_flags_and_variables_of_the_build_and_nothing_else_of_the_check() {
        with_go(|root| {
            let env = [("CGO_ENABLED", "1"), ("GOFLAGS", "-mod=mod"), ("TOKEN", "x")];
            let made = flavour(root, &["go", "test", "-race", "./..."], &env).expect("there is a Go").maker;
            assert_eq!(made.argv[3..], ["sh", "go", "-race"]);
            assert_eq!(made.env.keys().collect::<Vec<_>>(), ["CGO_ENABLED", "PATH"]);
            assert!(made.read.is_empty() && made.write.is_empty() && made.tree.is_none());
        });
    }

    #[test]
    fn a_check_with_a_build_cache_of_its_own_choice_keeps_it() {
        with_go(|root| {
            for name in ELSEWHERE {
                assert!(flavour(root, &["go", "build"], &[(name, "/elsewhere")]).is_none(), "{name}");
            }
            std::fs::remove_file(root.join("bin/go")).expect("removed");
            assert!(flavour(root, &["go", "build"], &[]).is_none(), "there is no Go");
        });
    }
}
