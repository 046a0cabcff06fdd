//! `cargo xtask dist`: the files of a release, made from this tree.
//!
//! The program carries the shipped plugins, is linked against an old glibc by zig, and contains no path of this
//! machine, so that two builds in two directories are equal: `--verify` builds twice and compares. What is not built
//! here comes from `release.py` beside this file. Nothing is published, and a signing key is read by `minisign` alone.

mod clean_root;

use crate::commands::{run, stdout_of, sysroot};
use crate::guests::{self, PluginsArgs};
use crate::timing::Stages;
use anyhow::{Context, Result, bail, ensure};
use longhaul_build::cache::{Cache, create_dir, entries};
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The one target so far.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The oldest glibc that the program runs with: that of Debian 10, Ubuntu 18.10 and RHEL 8. `program.py` checks it.
const GLIBC: &str = "2.28";

/// Makes zig the linker and the compiler of C, for a glibc that is named.
const ZIGBUILD: &str = "0.24.1";

/// Shells, and the names of the files with their completions.
const SHELLS: [(&str, &str); 3] = [("bash", "longhaul.bash"), ("fish", "longhaul.fish"), ("zsh", "_longhaul")];

/// Names the file with the secret key; without it nothing is signed.
const KEY_VARIABLE: &str = "LONGHAUL_MINISIGN_KEY";

/// The password of that key, if it has one.
const PASSWORD_VARIABLE: &str = "LONGHAUL_MINISIGN_PASSWORD";

#[derive(clap::Args)]
pub(crate) struct DistArgs {
    /// Build once more from a copy of the tree in another directory, and compare the digests
    #[arg(long)]
    verify: bool,

    /// Install, run and remove the Debian package in a clean root; needs root
    #[arg(long)]
    test_deb: bool,
}

/// Writes the files of a release to `target/dist`.
pub(crate) fn dist(root: &Path, args: &DistArgs) -> Result<()> {
    let mut stages = Stages::new(root);
    let cache = Cache::open(guests::say)?;
    let release = Release { root: root.to_owned(), cache: &cache, epoch: commit_time(root)? };
    release.contents(&mut stages)?;
    release.program(&mut stages)?;
    if args.verify {
        verify(&release, &mut stages)?;
    }
    if args.test_deb {
        stages.run("package in a clean root", || {
            clean_root::test(&cache, &release.file(".deb")?, &release.build_directory().join("clean-root"))
        })?;
    }
    sign(&release.out())?;
    stages.print();
    Ok(())
}

/// Makes the release again, from a copy of the tree, and refuses one that differs.
fn verify(release: &Release<'_>, stages: &mut Stages) -> Result<()> {
    let second = Release { root: release.copy(), cache: release.cache, epoch: release.epoch.clone() };
    stages.run("copy", || copy_tree(&release.root, &second.root))?;
    second.contents(stages)?;
    let carried = differing(&release.shipped(), &second.shipped())?;
    for name in &carried {
        // So that the program is compared by itself, too.
        fs::copy(release.shipped().join(name), second.shipped().join(name))
            .with_context(|| format!("take `{name}` of the first build"))?;
    }
    second.program(stages)?;
    let files = differing(&release.out(), &second.out())?;
    let place = second.root.display();
    ensure!(files.is_empty(), "a build in `{place}` differs in {}", files.join(", "));
    ensure!(
        carried.is_empty(),
        "the program is the same, built in `{place}`, but these that it carries are not: {}",
        carried.join(", ")
    );
    println!("a build in `{place}` has the same digests");
    Ok(())
}

/// A release of one tree.
struct Release<'a> {
    root: PathBuf,
    cache: &'a Cache,
    /// The time of everything in it, in seconds since 1970: that of the commit.
    epoch: String,
}

impl Release<'_> {
    /// Makes what the program carries.
    fn contents(&self, stages: &mut Stages) -> Result<()> {
        ensure!(
            !self.root.to_string_lossy().contains(char::is_whitespace),
            "flags of C compilers cannot name `{}`; move the repository to a path without blanks",
            self.root.display()
        );
        stages.run("plugins", || guests::plugins(&self.root, &PluginsArgs::shipped()))?;
        stages.run("contents", || self.gather())
    }

    /// Makes the program and the files of the release.
    fn program(&self, stages: &mut Stages) -> Result<()> {
        stages.run("program", || self.build())?;
        stages.run("files", || self.write_files())
    }

    /// Gathers what the program carries: the shipped plugins, and the list of its dependencies.
    fn gather(&self) -> Result<()> {
        let (built, shipped) = (self.root.join("target/plugins"), self.shipped());
        create_dir(&shipped)?;
        let list = self.build_directory().join("dependencies.zlib");
        run("list the dependencies", self.script().arg("dependencies").arg(&self.root).arg(&list))?;
        let mut wanted = vec![shipped.join("dependencies.zlib")];
        guests::replace(&wanted[0], &read(&list)?)?;
        for name in guests::names(&built)? {
            let file = format!("{name}.wasm");
            guests::replace(&shipped.join(&file), &read(&built.join(&file))?)?;
            wanted.push(shipped.join(file));
        }
        for file in entries(&shipped)? {
            if !wanted.contains(&file) {
                fs::remove_file(&file).with_context(|| format!("remove `{}`", file.display()))?;
            }
        }
        Ok(())
    }

    fn build(&self) -> Result<()> {
        let zig = longhaul_build::zig(self.cache)?;
        let tool = longhaul_build::python_package(self.cache, "cargo-zigbuild", ZIGBUILD)?;
        let mut build = Command::new(tool.join("bin/cargo-zigbuild"));
        build
            .current_dir(&self.root)
            .args(["zigbuild", "--locked", "--profile", "dist", "--package", "longhaul", "--bin", "longhaul"])
            .args(["--features", "shipped,local-model", "--target", &format!("{TARGET}.{GLIBC}"), "--target-dir"])
            .arg(self.build_directory())
            .env("LONGHAUL_SHIPPED_DIRECTORY", self.shipped())
            // The same zig that plugins in C are built with, whatever else is installed.
            .env("CARGO_ZIGBUILD_ZIG_COMMAND", zig)
            .env("CARGO_ZIGBUILD_CACHE_DIR", self.cache.path("zigbuild"))
            .env("ZIG_GLOBAL_CACHE_DIR", self.cache.path("zig"))
            .env("ZIG_LOCAL_CACHE_DIR", self.cache.path("zig"))
            // Libraries in C come from their crates and not from this machine.
            .env("PKG_CONFIG", "false")
            .env("LIBZ_SYS_STATIC", "1")
            .env("CARGO_INCREMENTAL", "0")
            .env("SOURCE_DATE_EPOCH", &self.epoch)
            .env_remove("RUSTFLAGS");
        let names = self.names_of_paths()?;
        let of_rust = names.iter().map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()));
        build.env("CARGO_ENCODED_RUSTFLAGS", of_rust.collect::<Vec<_>>().join("\x1f"));
        let of_c = names.iter().map(|(path, name)| format!("-ffile-prefix-map={}={name}", path.display()));
        let of_c = of_c.collect::<Vec<_>>().join(" ");
        for language in ["CFLAGS", "CXXFLAGS"] {
            build.env(format!("{language}_{}", TARGET.replace('-', "_")), &of_c);
        }
        run("build the program", &mut build)
    }

    /// Paths of this machine that would get into the program, each with the name that it has there.
    fn names_of_paths(&self) -> Result<[(PathBuf, String); 3]> {
        let sysroot = sysroot(&self.root)?;
        let version = self.rustc(&["--version", "--verbose"])?;
        let commit = version.lines().find_map(|line| line.strip_prefix("commit-hash: "));
        let commit = commit.context("rustc does not say from which commit it is")?;
        Ok([
            (cargo_home()?, "/cargo".to_owned()),
            // The name that the library itself was built with, which stands in where its sources are not installed.
            (sysroot.join("lib/rustlib/src/rust"), format!("/rustc/{commit}")),
            (self.root.clone(), "/longhaul".to_owned()),
        ])
    }

    fn rustc(&self, arguments: &[&str]) -> Result<String> {
        let told = stdout_of(Command::new("rustc").current_dir(&self.root).args(arguments))?;
        String::from_utf8(told).context("read what rustc says")
    }

    /// Has the program write of itself, and writes the files of the release.
    fn write_files(&self) -> Result<()> {
        let program = self.build_directory().join(TARGET).join("dist/longhaul");
        let generated = self.build_directory().join("generated");
        if generated.exists() {
            fs::remove_dir_all(&generated).with_context(|| format!("remove `{}`", generated.display()))?;
        }
        let completions = generated.join("completions");
        create_dir(&completions)?;
        run("write the manual pages", Command::new(&program).arg("man").arg(generated.join("man")))?;
        for (shell, file) in SHELLS {
            let text = stdout_of(Command::new(&program).args(["completions", shell]))?;
            fs::write(completions.join(file), text).with_context(|| format!("write `{file}`"))?;
        }
        create_dir(&self.out())?;
        let mut files = self.script();
        files.arg("files").arg(&self.root).arg(program).arg(generated).arg(self.out()).arg(&self.epoch);
        // The paths that must not be in the program.
        for (path, _) in self.names_of_paths()? {
            files.arg(path);
        }
        run("write the files of the release", &mut files)
    }

    fn build_directory(&self) -> PathBuf {
        self.root.join("target/dist-build")
    }

    fn shipped(&self) -> PathBuf {
        self.build_directory().join("shipped")
    }

    fn out(&self) -> PathBuf {
        self.root.join("target/dist")
    }

    /// The copy of the tree for a second build.
    fn copy(&self) -> PathBuf {
        self.root.join("target/dist-verify/another-directory")
    }

    /// The file of the release with that ending.
    fn file(&self, ending: &str) -> Result<PathBuf> {
        let found = entries(&self.out())?.into_iter().find(|path| path.to_string_lossy().ends_with(ending));
        found.with_context(|| format!("`{}` has no file `*{ending}`", self.out().display()))
    }

    fn script(&self) -> Command {
        let mut python = Command::new("python3");
        python.env("PYTHONDONTWRITEBYTECODE", "1").arg(self.root.join("xtask/src/dist/release.py"));
        python
    }
}

/// The time of the last commit, which SOURCE_DATE_EPOCH overrides where there is no repository.
fn commit_time(root: &Path) -> Result<String> {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(time);
    }
    let told = stdout_of(Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]))
        .context("ask git for the time of the commit; without a repository set SOURCE_DATE_EPOCH")?;
    Ok(String::from_utf8(told).context("read the time of the commit")?.trim().to_owned())
}

fn cargo_home() -> Result<PathBuf> {
    let named = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let usual = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
    named.or_else(usual).context("neither CARGO_HOME nor HOME is set, and cargo needs one")
}

/// Copies the files that git knows or would add.
fn copy_tree(root: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("remove `{}`", to.display()))?;
    }
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let told = String::from_utf8(stdout_of(Command::new("git").current_dir(root).args(list))?)?;
    for name in told.split_terminator('\0') {
        let (from, to) = (root.join(name), to.join(name));
        // A file that is removed and not committed yet.
        let Ok(found) = from.symlink_metadata() else { continue };
        create_dir(to.parent().unwrap_or(&to))?;
        let copied = match found.is_symlink() {
            true => fs::read_link(&from).and_then(|target| symlink(target, &to)),
            false => fs::copy(&from, &to).map(drop),
        };
        copied.with_context(|| format!("copy `{name}`"))?;
    }
    Ok(())
}

/// The names of files that are not the same in both directories.
fn differing(one: &Path, other: &Path) -> Result<Vec<String>> {
    let mut names: Vec<OsString> = Vec::new();
    for path in entries(one)?.into_iter().chain(entries(other)?) {
        names.extend(path.file_name().map(OsString::from));
    }
    names.sort();
    names.dedup();
    names.retain(|name| fs::read(one.join(name)).ok() != fs::read(other.join(name)).ok());
    Ok(names.into_iter().map(|name| name.to_string_lossy().into_owned()).collect())
}

/// Signs the digests, with a key that the environment names.
fn sign(out: &Path) -> Result<()> {
    let Some(key) = std::env::var_os(KEY_VARIABLE).filter(|key| !key.is_empty()) else {
        println!("not signed: {KEY_VARIABLE} names no key");
        return Ok(());
    };
    let sums = out.join("SHA256SUMS");
    let mut minisign = Command::new("minisign");
    minisign.args(["-S", "-t", concat!("longhaul ", env!("CARGO_PKG_VERSION")), "-s"]).arg(key);
    minisign.arg("-m").arg(&sums).arg("-x").arg(out.join("SHA256SUMS.minisig")).stdin(Stdio::piped());
    let mut child = minisign.spawn().context("start minisign; on Debian: apt install minisign")?;
    if let Some(mut input) = child.stdin.take() {
        // A key without a password is not asked for one, and may have ended the program by now.
        let password = std::env::var(PASSWORD_VARIABLE).unwrap_or_default();
        let _ = writeln!(input, "{password}");
    }
    let status = child.wait().context("wait for minisign")?;
    if !status.success() {
        bail!("minisign ended with {status}; is {PASSWORD_VARIABLE} the password of the key?");
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("read `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty directory.
    fn place(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("longhaul-dist-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        create_dir(&place).unwrap();
        place
    }

    #[test]
    fn files_that_differ_or_are_missing_are_named() {
        let place = place("differ");
        for (file, text) in [("a/same", "1"), ("b/same", "1"), ("a/other", "1"), ("b/other", "2"), ("b/more", "")] {
            create_dir(place.join(file).parent().unwrap()).unwrap();
            fs::write(place.join(file), text).unwrap();
        }
        assert_eq!(differing(&place.join("a"), &place.join("b")).unwrap(), ["more", "other"]);
        fs::remove_dir_all(place).unwrap();
    }
}
