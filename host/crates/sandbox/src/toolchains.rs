//! The tool chains that a program runs with, found by PATH, by the program itself and by their own configuration.
//!
//! A program sees no home, so what of its tool chain lies there is granted, read-only: a virtual environment with the
//! interpreter that it was made of, version managers, the tool chains of rustup, the caches of cargo and go. Reads
//! nothing of the tree, where agents write; grants no home as a whole, no credentials of cargo, and nothing that the
//! host hides.

use crate::Program;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Directories of the system, which every program sees.
pub(crate) const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// Links that are followed from a name in PATH to a program.
const LINKS_MAX: usize = 8;

/// What a program is given for its tool chains.
#[derive(Debug, Default)]
pub(crate) struct ToolChains {
    pub(crate) read: Vec<PathBuf>,
    pub(crate) env: BTreeMap<String, String>,
}

/// Where tool chains are looked for.
struct Finder<'a> {
    program: &'a Program,
    path: Vec<PathBuf>,
    home: Option<PathBuf>,
    /// Not granted, nor what they lie in.
    hidden: Vec<PathBuf>,
    found: ToolChains,
}

impl ToolChains {
    pub(crate) fn find(program: &Program, path: &str, hidden: &[PathBuf]) -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let hidden = hidden.iter().flat_map(|dir| [Some(dir.clone()), dir.canonicalize().ok()]).flatten().collect();
        let path = std::env::split_paths(path).filter(|dir| dir.is_absolute()).collect();
        let mut finder = Finder { program, path, home, hidden, found: Self::default() };
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

    /// The program, each link to it, and the environments that they lie in.
    fn of_program(&mut self, word: &str) {
        let found = if word.contains('/') { Some(PathBuf::from(word)) } else { self.which(word) };
        let mut at = found.filter(|path| path.is_absolute());
        for _ in 0..LINKS_MAX {
            // Below `/proc` lies this very binary, which every program has.
            let Some(path) = at.filter(|path| !is_system(path) && !path.starts_with("/proc")) else { return };
            self.add(&path);
            if let Some(dir) = path.parent() {
                self.of_python(dir);
            }
            at = std::fs::read_link(&path).ok().and_then(|target| Some(path.parent()?.join(target)));
        }
    }

    /// A virtual environment, with the installation that it was made of.
    fn of_python(&mut self, bin: &Path) {
        let Some(root) = bin.parent() else { return };
        let Ok(config) = std::fs::read_to_string(root.join("pyvenv.cfg")) else { return };
        self.add(root);
        let home = config.lines().filter_map(|line| line.split_once('=')).find(|(key, _)| key.trim() == "home");
        let Some(home) = home.map(|(_, home)| PathBuf::from(home.trim())).filter(|home| home.is_absolute()) else {
            return;
        };
        if home.join("python3").exists() || home.join("python").exists() {
            self.add_prefix(&home);
        }
    }

    fn of_cargo(&mut self) {
        if self.which("cargo").is_none() && self.which("rustc").is_none() {
            return;
        }
        if let Some(home) = self.set_or_in_home("CARGO_HOME", ".cargo") {
            ["bin", "registry", "git"].iter().for_each(|name| self.add(&home.join(name)));
            for config in ["config.toml", "config"].map(|name| home.join(name)) {
                // A token belongs into the credentials; where it is here, the file is kept out of sight.
                if std::fs::read_to_string(&config).is_ok_and(|text| !text.contains("token")) {
                    self.add(&config);
                }
            }
            self.set("CARGO_HOME", &home);
            // There is no network: without this cargo tries it for minutes.
            self.found.env.insert("CARGO_NET_OFFLINE".to_owned(), "true".to_owned());
        }
        if let Some(home) = self.set_or_in_home("RUSTUP_HOME", ".rustup") {
            // Its proxies look for all of these, and make them where they are missing.
            ["settings.toml", "toolchains", "update-hashes", "downloads", "tmp"]
                .iter()
                .for_each(|name| self.add(&home.join(name)));
            // Tool chains of one's own are links.
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
        // Inside, its home is another one, and with it what `go env -w` wrote.
        let written = self.go_env();
        let of_go = |name: &str| self.variable(name).or_else(|| written.get(name).cloned());
        let first = of_go("GOPATH").and_then(|list| std::env::split_paths(&list).next());
        let of_path = first.or_else(|| Some(self.home.as_ref()?.join("go"))).map(|path| path.join("pkg/mod"));
        if let Some(cache) = of_go("GOMODCACHE").or(of_path).filter(|cache| cache.is_dir()) {
            self.add(&cache);
            self.set("GOMODCACHE", &cache);
        }
        for (name, value) in [("GOPROXY", "off"), ("GOTOOLCHAIN", "local")] {
            self.found.env.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Paths that `go env -w` wrote for the host's user.
    fn go_env(&self) -> BTreeMap<String, PathBuf> {
        let config = self.variable("XDG_CONFIG_HOME").or_else(|| Some(self.home.as_ref()?.join(".config")));
        let file = self.variable("GOENV").or_else(|| Some(config?.join("go/env")));
        let text = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        let set = text.lines().filter_map(|line| line.trim().split_once('='));
        let paths = set.filter(|(_, value)| value.starts_with('/'));
        paths.map(|(name, value)| (name.to_owned(), PathBuf::from(value))).collect()
    }

    /// A directory of programs, and the installation around it: `PREFIX/bin`.
    fn add_prefix(&mut self, bin: &Path) {
        self.of_python(bin);
        let is_of_home = |dir: &Path| {
            let names = ["", ".local", ".cargo"];
            self.home.as_ref().is_some_and(|home| names.iter().any(|name| dir == home.join(name)))
        };
        let prefix = bin.parent().filter(|_| ["bin", "sbin", "shims"].iter().any(|name| bin.ends_with(name)));
        let is_cargo = |dir: &Path| self.variable("CARGO_HOME").is_some_and(|home| home == dir);
        match prefix.filter(|dir| dir.parent().is_some() && !is_of_home(dir) && !is_cargo(dir)) {
            Some(prefix) => self.add(prefix),
            None => self.add(bin),
        }
    }

    /// A path by its name, and by its real one.
    fn add(&mut self, path: &Path) {
        let Ok(real) = path.canonicalize() else { return };
        for path in [path, &real] {
            let is_home = self.home.as_deref() == Some(path);
            let covers = |dir: &PathBuf| dir.starts_with(path) || path.starts_with(dir);
            let is_known = self.found.read.iter().any(|known| known == path);
            let is_whole = path.parent().is_none() || is_home;
            if !is_system(path) && !is_whole && !is_known && !self.hidden.iter().any(covers) {
                self.found.read.push(path.to_owned());
            }
        }
    }

    fn set(&mut self, name: &str, path: &Path) {
        if let Some(text) = path.to_str() {
            self.found.env.insert(name.to_owned(), text.to_owned());
        }
    }

    fn which(&self, word: &str) -> Option<PathBuf> {
        self.path.iter().map(|dir| dir.join(word)).find(|path| path.is_file())
    }

    fn variable(&self, name: &str) -> Option<PathBuf> {
        let set = self.program.env.get(name).map(PathBuf::from);
        set.or_else(|| std::env::var_os(name).map(PathBuf::from)).filter(|path| path.is_absolute())
    }

    fn set_or_in_home(&self, name: &str, in_home: &str) -> Option<PathBuf> {
        let usual = || Some(self.home.as_ref()?.join(in_home));
        self.variable(name).or_else(usual).filter(|dir| dir.is_dir())
    }
}

fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|dir| path.starts_with(dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(argv0: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
        let program = Program::new("test", vec![argv0.display().to_string()]);
        ToolChains::find(&program, "/usr/bin:/bin", hidden).read
    }

    #[test]
    fn the_module_cache_of_go_is_found_as_go_finds_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        for name in ["bin/go", "one/pkg/mod/x", "two/pkg/mod/x", "three/x"] {
            std::fs::create_dir_all(at(name).parent().expect("a parent")).expect("made");
            std::fs::write(at(name), "").expect("written");
        }
        let check = |variables: &[(&str, String)], expected: &str| {
            let mut program = Program::new("test", vec!["go".to_owned()]);
            program.env = variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            let found = ToolChains::find(&program, at("bin").to_str().expect("text"), &[]);
            assert!(found.read.contains(&at(expected)), "{variables:?}: {:?}", found.read);
            assert_eq!(found.env["GOMODCACHE"], at(expected).to_str().expect("text"), "{variables:?}");
            assert_eq!((&*found.env["GOPROXY"], &*found.env["GOTOOLCHAIN"]), ("off", "local"));
        };
        let shown = |name: &str| at(name).display().to_string();
        check(&[("GOPATH", format!("{}:{}", shown("one"), shown("two")))], "one/pkg/mod");
        check(&[("GOMODCACHE", shown("three")), ("GOPATH", shown("one"))], "three");
        std::fs::write(at("env"), format!("GOFLAGS=-x\nGOPATH={}\n", shown("two"))).expect("written");
        check(&[("GOENV", shown("env"))], "two/pkg/mod");
    }

    #[test]
    fn a_virtual_environment_comes_with_its_interpreter_and_without_its_neighbours() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        for name in ["venv/bin/python", "base/bin/python3", "base/lib/os.py", "secret/bin/key"] {
            std::fs::create_dir_all(at(name).parent().expect("a parent")).expect("made");
            std::fs::write(at(name), "").expect("written");
        }
        let config = |home: &str| std::fs::write(at("venv/pyvenv.cfg"), format!("home = {}\n", at(home).display()));
        config("base/bin").expect("written");
        let read = found(&at("venv/bin/python"), &[]);
        assert!(read.contains(&at("venv")) && read.contains(&at("base")), "{read:?}");
        assert!(!read.contains(&dir.path().to_owned()), "{read:?}");
        assert!(!found(&at("venv/bin/python"), &[at("base")]).contains(&at("base")), "a hidden one stays hidden");
        config("secret/bin").expect("written");
        assert!(!found(&at("venv/bin/python"), &[]).contains(&at("secret")), "no interpreter is there");
    }
}
