//! The tool chains of a program, found by the host's own environment, by the program itself, and by their own
//! configuration.
//!
//! A program sees no home, so the parts of its tool chain there are granted, read-only: a virtual environment with its
//! base interpreter, version managers, the tool chains of rustup, the caches of cargo and go. The program's own
//! variables make nothing visible: its PATH only chooses among the directories of the host's. Reads nothing of the
//! tree, where agents write; grants no whole home, no credentials of cargo, of an installation only its usual
//! directories, and no hidden directory of the host except a virtual environment.

use crate::{Program, SandboxHost};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// Directories of the system that every program sees.
pub(crate) const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// Links that are followed from a name in PATH to a program.
const LINKS_MAX: usize = 8;

/// Directories of users' own programs, from their home: a program's PATH may name them though the host's does not.
const BIN_IN_HOME: [&str; 3] = [".cargo/bin", ".local/bin", "go/bin"];

/// Directories of home with a `bin` that are no installation.
const PREFIXES_IN_HOME: [&str; 3] = ["", ".local", ".cargo"];

/// The marks of an installation around a `bin`, with the parts that are shown of it. Other files there may be a user's
/// project with its keys.
const INSTALLATIONS: [(&str, &[&str]); 8] = [
    ("lib", &["bin", "include", "lib", "lib32", "lib64", "libexec", "sbin", "share"]),
    ("pyvenv.cfg", &ENVIRONMENT),
    ("conda-meta", &["bin", "conda-meta", "condabin", "etc", "include", "lib", "libexec", "sbin", "share", "ssl"]),
    // Version managers.
    ("shims", &["bin", "installs", "lib", "libexec", "plugins", "pyenv.d", "rbenv.d", "shims", "version", "versions"]),
    // Homebrew's.
    ("Cellar", &["Cellar", "bin", "etc", "include", "lib", "libexec", "opt", "sbin", "share"]),
    // Maven's.
    ("boot", &["bin", "boot", "conf", "lib"]),
    // Go's.
    ("src/runtime", &["VERSION", "api", "bin", "go.env", "lib", "misc", "pkg", "src"]),
    // Java's.
    ("jmods", &["bin", "conf", "include", "jmods", "lib", "release"]),
];

/// The parts of a virtual environment.
const ENVIRONMENT: [&str; 6] = ["bin", "include", "lib", "lib64", "pyvenv.cfg", "share"];

/// Bytes of a virtual environment's configuration, which has some 200.
const CONFIG_BYTES_MAX: u64 = 64 << 10;

/// The marks of a directory with Chromium, Chrome or a related browser, which have no `bin`.
const MARKS_OF_BROWSERS: [&str; 3] = ["icudtl.dat", "resources.pak", "headless_lib_data.pak"];

/// Programs that scripts beside them start.
const BROWSERS: [&str; 3] = ["brave", "chrome", "msedge"];

/// The files of such a browser beside its program, besides files whose names end in [`ENDS_IN_BROWSERS`].
const IN_BROWSERS: [&str; 11] = [
    "MEIPreload",
    "PrivacySandboxAttestationsPreloaded",
    "WidevineCdm",
    "chrome_crashpad_handler",
    "hyphen-data",
    "icudtl.dat",
    "locales",
    "snapshot_blob.bin",
    "swiftshader",
    "v8_context_snapshot.bin",
    "vk_swiftshader_icd.json",
];
const ENDS_IN_BROWSERS: [&str; 3] = [".pak", ".so", ".so.1"];

/// The grants and variables for a program's tool chains.
#[derive(Debug, Default)]
pub(crate) struct ToolChains {
    pub(crate) read: Vec<PathBuf>,
    pub(crate) env: BTreeMap<String, String>,
}

/// The host's environment of tool chains.
#[derive(Clone, Debug, Default)]
struct Environment {
    path: Vec<PathBuf>,
    home: Option<PathBuf>,
    /// The homes of all users of the machine.
    homes: Vec<PathBuf>,
    /// Variables whose values are full paths, or lists of them.
    variables: BTreeMap<String, PathBuf>,
}

impl Environment {
    fn of_this_process() -> Self {
        let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into())));
        let variables = variables.filter(|(_, value): &(_, PathBuf)| value.is_absolute()).collect();
        let mut found = Self { variables, ..Self::default() };
        found.home = found.variables.get("HOME").cloned();
        found.path = std::env::var("PATH").map(|path| full_paths(&path)).unwrap_or_default();
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let homes = users.lines().filter_map(|line| line.split(':').nth(5).map(PathBuf::from));
        found.homes = homes.filter(|home| home.is_absolute() && home.parent().is_some() && !is_system(home)).collect();
        found
    }

    /// True when the host itself looks for programs in a directory.
    fn has_programs_in(&self, dir: &Path) -> bool {
        let is_in_home = |home: &PathBuf| BIN_IN_HOME.iter().any(|bin| dir == home.join(bin));
        self.path.iter().any(|known| known == dir) || self.home.as_ref().is_some_and(is_in_home)
    }

    /// True when a directory is the home of a user, or has some below it. Network users are in no list.
    fn has_homes(&self, dir: &Path) -> bool {
        let is_above = |home: &PathBuf| home.starts_with(dir);
        self.home.iter().chain(&self.homes).any(is_above) || dir.parent() == Some(Path::new("/home"))
    }
}

/// The search for tool chains.
struct Finder<'a> {
    host: &'a Environment,
    path: Vec<PathBuf>,
    /// Not granted, nor the directories that contain them.
    hidden: Vec<PathBuf>,
    /// The hidden directory in which an environment may be granted; by its real name.
    checkout: Option<PathBuf>,
    found: ToolChains,
}

impl ToolChains {
    /// The tool chains of `program` with the PATH `path`.
    pub(crate) fn find(program: &Program, path: &str, host: &SandboxHost) -> Self {
        Self::find_by(&Environment::of_this_process(), program, path, &host.hidden, host.checkout.as_deref())
    }

    fn find_by(host: &Environment, program: &Program, path: &str, hidden: &[PathBuf], checkout: Option<&Path>) -> Self {
        // If a whole home is the checkout, its tool chains are its user's, of which no more is shown than elsewhere.
        let checkout = checkout.filter(|dir| !host.has_homes(dir));
        let hidden = hidden.iter().map(PathBuf::as_path).chain(checkout);
        let hidden = hidden.flat_map(|dir| [Some(dir.to_owned()), dir.canonicalize().ok()]).flatten().collect();
        let checkout = checkout.and_then(|dir| dir.canonicalize().ok());
        let mut path = full_paths(path);
        path.retain(|dir| is_system(dir) || host.has_programs_in(dir));
        let mut finder = Finder { host, path, hidden, checkout, found: Self::default() };
        finder.of_path();
        program.argv.first().into_iter().chain(&program.starts).for_each(|word| finder.of_program(word));
        finder.of_cargo();
        finder.of_go();
        finder.found
    }
}

impl Finder<'_> {
    fn of_path(&mut self) {
        for dir in self.path.clone().iter().filter(|dir| !is_system(dir)) {
            self.add_prefix(dir);
            let root = dir.parent().filter(|root| dir.ends_with("shims") && root.join("versions").is_dir());
            if let Some(root) = root.and_then(Path::to_str).filter(|root| root.contains("pyenv")) {
                self.found.env.insert("PYENV_ROOT".to_owned(), root.to_owned());
            }
        }
    }

    /// The program, each link to it, and their environments.
    fn of_program(&mut self, word: &str) {
        let found = if word.contains('/') { Some(PathBuf::from(word)) } else { self.which(word) };
        // Inside, `..` may lead elsewhere.
        let is_plain =
            |path: &PathBuf| path.is_absolute() && !path.components().any(|part| part == Component::ParentDir);
        self.of_links(found.filter(is_plain).filter(|path| is_program(path)));
    }

    fn of_links(&mut self, mut at: Option<PathBuf>) {
        for _ in 0..LINKS_MAX {
            let Some(path) = at.filter(|path| !is_system(path)) else { return };
            // By its real directory: another name of a hidden one is hidden too.
            let Some(dir) = path.parent().and_then(|dir| dir.canonicalize().ok()) else { return };
            // Below `/proc` is this very binary, which every program has.
            if path.starts_with("/proc") || dir.starts_with("/proc") {
                return;
            }
            // A repository may bring links to anything along.
            let is_hidden = self.is_hidden(&path) || self.is_hidden(&dir);
            if !is_hidden {
                self.add(&path);
            }
            if let Some(dir) = path.parent() {
                self.of_python(dir);
            }
            if is_hidden {
                return;
            }
            if let Some(dir) = path.parent() {
                self.of_browser(dir);
            }
            at = std::fs::read_link(&path).ok().and_then(|target| Some(path.parent()?.join(target)));
        }
    }

    /// The files of a browser beside its program. The directory may be any user's.
    fn of_browser(&mut self, dir: &Path) {
        if !MARKS_OF_BROWSERS.iter().any(|mark| dir.join(mark).is_file()) {
            return;
        }
        let is_part = |name: &str| {
            let is_known = IN_BROWSERS.contains(&name) || ENDS_IN_BROWSERS.iter().any(|end| name.ends_with(end));
            is_known || BROWSERS.contains(&name) && is_program(&dir.join(name))
        };
        let names =
            dir.read_dir().into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
        for name in names.filter(|name| is_part(name)) {
            self.add_part(dir, &name);
        }
    }

    /// A virtual environment, with its base installation.
    fn of_python(&mut self, bin: &Path) {
        let Some(root) = bin.parent() else { return };
        let Some(config) = config_of(root) else { return };
        if self.is_hidden(root) || root.canonicalize().is_ok_and(|real| self.is_hidden(&real)) {
            self.add_environment(root);
        } else {
            ENVIRONMENT.iter().for_each(|part| self.add_part(root, part));
        }
        let home = config.lines().filter_map(|line| line.split_once('=')).find(|(key, _)| key.trim() == "home");
        let Some(home) = home.map(|(_, home)| PathBuf::from(home.trim())).filter(|home| home.is_absolute()) else {
            return;
        };
        let pythons = ["python3", "python"].map(|name| home.join(name));
        if let Some(python) = pythons.into_iter().find(|python| is_program(python)).filter(|_| has_python(&home)) {
            self.add_prefix(&home);
            // The interpreter may be a link to the installation.
            self.of_links(Some(python).filter(|python| !python.starts_with(root) && is_program(python)));
        }
    }

    /// A virtual environment in the checkout: itself, and only its own files. A repository may bring a fake one along.
    fn add_environment(&mut self, root: &Path) {
        let Ok(real) = root.canonicalize() else { return };
        let Some(checkout) = self.checkout.as_ref().filter(|dir| real.starts_with(dir)) else { return };
        // The checkout itself is none, nor is a directory that the host hides for another reason.
        let is_hidden = |dir: &PathBuf| dir.starts_with(&real) || real.starts_with(dir) && !checkout.starts_with(dir);
        if self.hidden.iter().any(is_hidden) || !is_program(&root.join("bin/python")) || !root.join("lib").is_dir() {
            return;
        }
        for part in ENVIRONMENT {
            if real.join(part).canonicalize().is_ok_and(|part| part.starts_with(&real) && part != real) {
                self.push(root.join(part));
                self.push(real.join(part));
            }
        }
    }

    fn of_cargo(&mut self) {
        if self.which("cargo").is_none() && self.which("rustc").is_none() {
            return;
        }
        if let Some(home) = self.set_or_in_home("CARGO_HOME", ".cargo") {
            ["bin", "registry", "git"].iter().for_each(|name| self.add(&home.join(name)));
            for config in ["config.toml", "config"].map(|name| home.join(name)) {
                // A token belongs in the credentials; a file that contains one is not shown.
                if std::fs::read_to_string(&config).is_ok_and(|text| !text.contains("token")) {
                    self.add(&config);
                }
            }
            self.set("CARGO_HOME", &home);
        }
        // There is no network: without this cargo tries for minutes.
        self.found.env.insert("CARGO_NET_OFFLINE".to_owned(), "true".to_owned());
        if let Some(home) = self.set_or_in_home("RUSTUP_HOME", ".rustup") {
            // rustup's proxies look for all of these, and create missing ones.
            ["settings.toml", "toolchains", "update-hashes", "downloads", "tmp"]
                .iter()
                .for_each(|name| self.add(&home.join(name)));
            // Custom tool chains are links.
            for entry in home.join("toolchains").read_dir().into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                    self.add(&entry.path());
                }
            }
            self.set("RUSTUP_HOME", &home);
        }
    }

    fn of_go(&mut self) {
        let Some(go) = self.which("go").and_then(|go| go.canonicalize().ok()) else { return };
        if let Some(bin) = go.parent() {
            self.add_prefix(bin);
        }
        // Inside, the home is another one, and with it the file of `go env -w`.
        let written = self.go_env();
        let of_go = |name: &str| self.variable(name).or_else(|| written.get(name).cloned());
        let first = of_go("GOPATH").and_then(|list| std::env::split_paths(&list).next());
        let of_path = first.or_else(|| Some(self.host.home.as_ref()?.join("go"))).map(|path| path.join("pkg/mod"));
        if let Some(cache) = of_go("GOMODCACHE").or(of_path).filter(|cache| cache.is_dir()) {
            self.add(&cache);
            self.set("GOMODCACHE", &cache);
        }
        for (name, value) in [("GOPROXY", "off"), ("GOTOOLCHAIN", "local")] {
            self.found.env.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Paths that `go env -w` stored for the host's user.
    fn go_env(&self) -> BTreeMap<String, PathBuf> {
        let config = self.variable("XDG_CONFIG_HOME").or_else(|| Some(self.host.home.as_ref()?.join(".config")));
        let file = self.variable("GOENV").or_else(|| Some(config?.join("go/env")));
        let text = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        let set = text.lines().filter_map(|line| line.trim().split_once('='));
        let paths = set.filter(|(_, value)| value.starts_with('/'));
        paths.map(|(name, value)| (name.to_owned(), PathBuf::from(value))).collect()
    }

    /// A directory of programs, and the parts of the installation around it: `PREFIX/bin`.
    fn add_prefix(&mut self, bin: &Path) {
        self.of_python(bin);
        self.add(bin);
        let prefix = bin.parent().filter(|_| ["bin", "sbin", "shims"].iter().any(|name| bin.ends_with(name)));
        let Some(prefix) = prefix.filter(|prefix| !self.is_somebodys(prefix)) else { return };
        for (mark, parts) in INSTALLATIONS {
            if prefix.join(mark).exists() {
                parts.iter().for_each(|part| self.add_part(prefix, part));
            }
        }
    }

    /// True when a directory with programs belongs to a person and not to an installation.
    fn is_somebodys(&self, prefix: &Path) -> bool {
        let is_of_home = |dir: &Path| {
            let home = self.host.home.as_ref();
            let is_in_home = home.is_some_and(|home| PREFIXES_IN_HOME.iter().any(|name| dir == home.join(name)));
            is_in_home || self.host.has_homes(dir) || self.variable("CARGO_HOME").is_some_and(|home| home == dir)
        };
        is_of_home(prefix) || prefix.canonicalize().is_ok_and(|real| real.parent().is_none() || is_of_home(&real))
    }

    /// Adds the part of an installation with that name, unless it leads out of the installation.
    fn add_part(&mut self, root: &Path, part: &str) {
        let Ok(real) = root.canonicalize() else { return };
        let path = root.join(part);
        if path.canonicalize().is_ok_and(|path| path.starts_with(&real) && path != real || is_system(&path)) {
            self.add(&path);
        }
    }

    /// Adds a path by its name, and by its real one.
    fn add(&mut self, path: &Path) {
        let Ok(real) = path.canonicalize() else { return };
        let is_whole = |path: &Path| path.parent().is_none() || self.host.has_homes(path);
        if [path, &real].iter().any(|path| is_whole(path) || self.is_hidden(path)) {
            return;
        }
        self.push(path.to_owned());
        self.push(real);
    }

    fn push(&mut self, path: PathBuf) {
        if !is_system(&path) && !self.found.read.contains(&path) {
            self.found.read.push(path);
        }
    }

    /// True when a path is, contains or is inside a hidden directory.
    fn is_hidden(&self, path: &Path) -> bool {
        self.hidden.iter().any(|dir| dir.starts_with(path) || path.starts_with(dir))
    }

    /// Sets a variable to a path, unless the path is not shown: caches in the checkout are not.
    fn set(&mut self, name: &str, path: &Path) {
        if let Some(text) = path.to_str().filter(|_| !self.is_hidden(path)) {
            self.found.env.insert(name.to_owned(), text.to_owned());
        }
    }

    fn which(&self, word: &str) -> Option<PathBuf> {
        self.path.iter().map(|dir| dir.join(word)).find(|path| path.is_file())
    }

    fn variable(&self, name: &str) -> Option<PathBuf> {
        self.host.variables.get(name).cloned()
    }

    fn set_or_in_home(&self, name: &str, in_home: &str) -> Option<PathBuf> {
        let usual = || Some(self.host.home.as_ref()?.join(in_home));
        self.variable(name).or_else(usual).filter(|dir| dir.is_dir())
    }
}

/// True when a directory has the programs of a Python installation: a repository may bring a reference to another one
/// along.
fn has_python(bin: &Path) -> bool {
    let is_library = |entry: std::fs::DirEntry| {
        entry.file_name().as_encoded_bytes().starts_with(b"python3") && entry.path().is_dir()
    };
    let libraries = bin.parent().filter(|_| bin.ends_with("bin")).map(|prefix| prefix.join("lib"));
    libraries.and_then(|lib| lib.read_dir().ok()).is_some_and(|lib| lib.flatten().any(is_library))
}

fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|dir| path.starts_with(dir))
}

fn full_paths(list: &str) -> Vec<PathBuf> {
    std::env::split_paths(list).filter(|dir| dir.is_absolute()).collect()
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The configuration of a virtual environment. A repository may bring one along that is a pipe, a device or without
/// end.
fn config_of(environment: &Path) -> Option<String> {
    let path = environment.join("pyvenv.cfg");
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(CONFIG_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `check` in a directory with these programs.
    fn with_files(names: &[&str], check: impl Fn(&dyn Fn(&str) -> PathBuf)) {
        let dir = tempfile::tempdir().expect("a directory");
        let top = dir.path().canonicalize().expect("its name");
        for name in names {
            let path = top.join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(&path, "").expect("written");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("changed");
        }
        check(&|name| top.join(name));
    }

    /// The tool chains for a program with the host's PATH.
    fn found(host: &Environment, argv0: &str, hidden: &[PathBuf]) -> ToolChains {
        let path = std::env::join_paths(&host.path).expect("a PATH").into_string().expect("text");
        ToolChains::find_by(host, &Program::new("test", vec![argv0.to_owned()]), &path, hidden, None)
    }

    fn host(path: &[PathBuf]) -> Environment {
        Environment { path: path.to_vec(), ..Environment::default() }
    }

    #[test]
    fn the_module_cache_of_go_is_found_as_go_finds_it() {
        let names = ["bin/go", "one/pkg/mod/x", "two/pkg/mod/x", "three/x"];
        with_files(&names, |at| {
            let check = |variables: &[(&str, String)], expected: &str| {
                let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), PathBuf::from(value)));
                let host = Environment { variables: variables.collect(), ..host(&[at("bin")]) };
                let found = found(&host, "go", &[]);
                assert!(found.read.contains(&at(expected)), "{host:?}: {:?}", found.read);
                assert_eq!(found.env["GOMODCACHE"], at(expected).to_str().expect("text"), "{host:?}");
                assert_eq!((&*found.env["GOPROXY"], &*found.env["GOTOOLCHAIN"]), ("off", "local"));
            };
            let shown = |name: &str| at(name).display().to_string();
            check(&[("GOPATH", format!("{}:{}", shown("one"), shown("two")))], "one/pkg/mod");
            check(&[("GOMODCACHE", shown("three")), ("GOPATH", shown("one"))], "three");
            std::fs::write(at("env"), format!("GOFLAGS=-x\nGOPATH={}\n", shown("two"))).expect("written");
            check(&[("GOENV", shown("env"))], "two/pkg/mod");
        });
    }

    #[test]
    fn a_virtual_environment_comes_with_its_interpreter_and_without_its_neighbours() {
        let names = [
            "venv/bin/python",
            "venv/lib/x",
            "venv/.env",
            "base/bin/python3",
            "base/lib/python3.12/os.py",
            "secret/bin/key",
        ];
        with_files(&names, |at| {
            let found = |hidden: &[PathBuf]| {
                found(&host(&["/usr/bin".into()]), at("venv/bin/python").to_str().expect("text"), hidden).read
            };
            let config = |home: &str| {
                std::fs::write(at("venv/pyvenv.cfg"), format!("home = {}\n", at(home).display())).expect("written");
            };
            config("base/bin");
            let read = found(&[]);
            for shown in ["venv/bin", "venv/lib", "venv/pyvenv.cfg", "base/bin", "base/lib"] {
                assert!(read.contains(&at(shown)), "{shown}: {read:?}");
            }
            for other in ["", "venv", "venv/.env", "base"] {
                assert!(!read.contains(&at(other)), "{other}: {read:?}");
            }
            let late = format!("{}\nhome = {}\n", "#".repeat(64 << 10), at("base/bin").display());
            std::fs::write(at("venv/pyvenv.cfg"), late).expect("written");
            assert!(!found(&[]).contains(&at("base/bin")), "a configuration has no such length");
            config("base/bin");
            assert!(!found(&[at("base")]).iter().any(|path| path.starts_with(at("base"))), "a hidden one stays hidden");
            config("secret/bin");
            let shows_secret = || found(&[]).iter().any(|path| path.starts_with(at("secret")));
            assert!(!shows_secret(), "no interpreter is there");
            std::fs::create_dir_all(at("secret/bin/python3")).expect("made");
            assert!(!shows_secret(), "a directory is no interpreter");
            std::fs::remove_dir(at("secret/bin/python3")).expect("removed");
            std::fs::copy(at("base/bin/python3"), at("secret/bin/python3")).expect("copied");
            assert!(!shows_secret(), "an interpreter has its library beside it");
        });
    }

    #[test]
    fn another_name_of_what_is_hidden_shows_no_more_of_it() {
        with_files(&["hidden/bin/tool", "other/bin/secret"], |at| {
            std::os::unix::fs::symlink(at("hidden"), at("alias")).expect("made");
            std::os::unix::fs::symlink(at("other/bin/secret"), at("hidden/bin/link")).expect("made");
            let usual = host(&["/usr/bin".into()]);
            for name in ["hidden/bin/link", "alias/bin/link", "other/../hidden/bin/link"] {
                let found = found(&usual, at(name).to_str().expect("text"), &[at("hidden")]).read;
                assert_eq!(found, Vec::<PathBuf>::new(), "{name}");
            }
        });
    }

    #[test]
    fn around_a_directory_of_programs_only_what_an_installation_has_is_shown() {
        let names =
            ["node/bin/node", "node/lib/x", "node/.npmrc", "tool/bin/tool", "tool/.env", "me/bin/x", "me/lib/x"];
        with_files(&names, |at| {
            let mut host = host(&[at("node/bin"), at("tool/bin"), at("me/bin")]);
            host.homes = vec![at("me")];
            let mut read = found(&host, "node", &[]).read;
            read.retain(|path| path.is_dir());
            assert_eq!(read, [at("node/bin"), at("node/lib"), at("tool/bin"), at("me/bin")]);
        });
    }

    #[test]
    fn a_browser_comes_with_what_browsers_have_and_nothing_else_that_lies_beside_it() {
        let names = ["me/chrome", "me/icudtl.dat", "me/locales/x", "me/libEGL.so", "me/key", "me/lib/key", "me/.env"];
        with_files(&names, |at| {
            let mut host = host(&["/usr/bin".into()]);
            host.homes = vec![at("me")];
            let mut read = found(&host, at("me/chrome").to_str().expect("text"), &[]).read;
            read.sort();
            assert_eq!(read, ["me/chrome", "me/icudtl.dat", "me/libEGL.so", "me/locales"].map(at));
            std::fs::remove_file(at("me/icudtl.dat")).expect("removed");
            assert_eq!(found(&host, at("me/chrome").to_str().expect("text"), &[]).read, [at("me/chrome")]);
        });
    }

    #[test]
    fn a_path_of_the_program_chooses_among_the_directories_of_the_host() {
        with_files(&["one/x", "two/x", "three/x"], |at| {
            let host = host(&[at("one"), at("two")]);
            let path = format!("{}:{}", at("two").display(), at("three").display());
            let found = ToolChains::find_by(&host, &Program::new("test", vec!["x".to_owned()]), &path, &[], None);
            assert_eq!(found.read, [at("two"), at("two/x")]);
        });
    }
}
