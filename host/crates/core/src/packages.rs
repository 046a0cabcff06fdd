//! Packages of Python for the sandbox: the requirements that a person names, and the lock, which pins them by digest.
//!
//! It has texts and their checks; the crate `packages` resolves them and lays them out. A requirement names a package
//! of the index and its versions; paths, addresses and options of pip are refused, since files of strangers hold
//! requirements.

use crate::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The place of packages in a guest. Its interpreter looks there last.
pub const PACKAGES_GUEST: &str = "/packages";

/// The most packages of a lock, and of a list of requirements.
pub const PACKAGES_MAX: usize = 100;

/// The longest requirement, in bytes. One with four bounds of a version has about 60.
const REQUIREMENT_BYTES_MAX: usize = 200;

/// The longest text of a lock, in bytes: its packages, and as many requirements.
pub const LOCK_BYTES_MAX: usize = 64 << 10;

const LOCK_HEAD: &str =
    "# Packages of Longhaul's Python, as pip resolved them. `longhaul packages lock` writes this file.";

/// The beginning of a line of a lock that has a requirement.
const WANTS: &str = "# wants: ";

/// The words of pip before the digest of a package.
const HASH: &str = "--hash=sha256:";

/// A requirement: `NAME`, `NAME==1.2`, `NAME[extra]>=1,<3`. Kept without spaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("minLength" = 1, "maxLength" = REQUIREMENT_BYTES_MAX))]
pub struct PackageRequirement(String);

/// The text is no requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no package of an index; write a name with or without versions, such as `tabulate==0.9.0`")]
pub struct NotARequirement(String);

impl PackageRequirement {
    /// The requirement as pip reads it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PackageRequirement {
    type Error = NotARequirement;

    fn try_from(text: String) -> Result<Self, NotARequirement> {
        text.parse()
    }
}

impl FromStr for PackageRequirement {
    type Err = NotARequirement;

    fn from_str(text: &str) -> Result<Self, NotARequirement> {
        let tight: String = text.chars().filter(|c| *c != ' ').collect();
        if text.len() <= REQUIREMENT_BYTES_MAX && !parts_words(text) && is_requirement(&tight) {
            return Ok(Self(tight));
        }
        Err(NotARequirement(crate::text::truncate(text, 80)))
    }
}

impl From<PackageRequirement> for String {
    fn from(requirement: PackageRequirement) -> Self {
        requirement.0
    }
}

impl fmt::Display for PackageRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// True when a space parts two words, which would become one.
fn parts_words(text: &str) -> bool {
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    words.windows(2).any(|pair| pair[0].ends_with(is_of_name) && pair[1].starts_with(is_of_name))
}

fn is_requirement(text: &str) -> bool {
    let end = text.find(|c| !is_of_name(c)).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    if let Some(behind) = rest.strip_prefix('[') {
        let Some((extras, behind)) = behind.split_once(']') else { return false };
        if !extras.split(',').all(is_name) {
            return false;
        }
        rest = behind;
    }
    is_name(name) && (rest.is_empty() || rest.split(',').all(is_bound))
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// The name of a package begins and ends with a letter or a digit, so that it is no option of pip.
fn is_name(text: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.chars().all(is_of_name) && is_edge(text.chars().next()) && is_edge(text.chars().next_back())
}

/// One bound of a version, such as `>=1.2`.
fn is_bound(text: &str) -> bool {
    let operators = ["==", "~=", "!=", "<=", ">=", "<", ">"];
    let Some(version) = operators.iter().find_map(|operator| text.strip_prefix(operator)) else { return false };
    is_version(version)
}

fn is_version(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '*' | '+' | '!' | '_' | '-'))
}

/// One package of a lock: a wheel, by the digest of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LockedPackage {
    /// Its name, in the index's own form.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest of its wheel.
    pub sha256: Digest,
}

/// Requirements, and every package that they need, each by its digest. Its text is a file of requirements that pip
/// reads, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageLock {
    /// The requirements, sorted.
    pub wants: Vec<PackageRequirement>,
    /// The packages, sorted by name.
    pub packages: Vec<LockedPackage>,
}

/// The text is no lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the lock is `{text}`, which no lock has; write it anew with: longhaul packages lock")]
pub struct NotALock {
    /// The number of the line, from 1.
    line: usize,
    text: String,
}

impl PackageLock {
    /// True when it was made for these requirements, in any order.
    #[must_use]
    pub fn is_for(&self, wants: &[PackageRequirement]) -> bool {
        self.wants == sorted(wants)
    }

    /// A digest of the packages: it differs where anything of them does.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let lines: Vec<String> = self.packages.iter().map(ToString::to_string).collect();
        Digest::of(lines.join("\n").as_bytes())
    }
}

/// The requirements in the order of a lock, each once.
#[must_use]
pub fn sorted(wants: &[PackageRequirement]) -> Vec<PackageRequirement> {
    let mut sorted = wants.to_vec();
    sorted.sort();
    sorted.dedup();
    sorted
}

impl fmt::Display for LockedPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=={} {HASH}{}", self.name, self.version, self.sha256)
    }
}

impl fmt::Display for PackageLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{LOCK_HEAD}")?;
        for want in &self.wants {
            writeln!(f, "{WANTS}{want}")?;
        }
        self.packages.iter().try_for_each(|package| writeln!(f, "{package}"))
    }
}

impl FromStr for PackageLock {
    type Err = NotALock;

    fn from_str(text: &str) -> Result<Self, NotALock> {
        let mut lock = Self::default();
        for (at, line) in text.lines().enumerate() {
            let wrong = || NotALock { line: at + 1, text: crate::text::truncate(line, 80) };
            if let Some(want) = line.strip_prefix(WANTS) {
                lock.wants.push(want.parse().map_err(|_| wrong())?);
            } else if !line.is_empty() && !line.starts_with('#') {
                lock.packages.push(locked(line).ok_or_else(wrong)?);
            }
            if lock.packages.len() > PACKAGES_MAX || lock.wants.len() > PACKAGES_MAX {
                return Err(wrong());
            }
        }
        lock.wants = sorted(&lock.wants);
        lock.packages.sort();
        Ok(lock)
    }
}

fn locked(line: &str) -> Option<LockedPackage> {
    let (package, digest) = line.split_once(' ')?;
    let (name, version) = package.split_once("==")?;
    let sha256 = digest.strip_prefix(HASH)?.parse().ok()?;
    (is_name(name) && is_version(version)).then(|| LockedPackage { name: name.into(), version: version.into(), sha256 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_names_a_package_of_an_index_and_nothing_else() {
        for (text, expected) in [
            ("tabulate", Some("tabulate")),
            ("tabulate == 0.9", Some("tabulate==0.9")),
            ("ruamel.yaml>=0.18,<1", Some("ruamel.yaml>=0.18,<1")),
            ("httpx[http2,socks]~=0.27.0", Some("httpx[http2,socks]~=0.27.0")),
            ("a==1.*", Some("a==1.*")),
            ("", None),
            ("-r", None),
            ("--index-url=http://a.example", None),
            ("./wheel.whl", None),
            ("/etc/passwd", None),
            ("a @ https://a.example/a.whl", None),
            ("git+https://a.example/a", None),
            ("a==", None),
            ("a=1", None),
            ("a;b", None),
            ("a\n--pre", None),
            ("a[", None),
            ("a[-x]", None),
            ("a,b", None),
            ("tabulate 0.9", None),
        ] {
            let found = text.parse::<PackageRequirement>().ok();
            assert_eq!(found.as_ref().map(PackageRequirement::as_str), expected, "{text}");
        }
        assert!("a".repeat(REQUIREMENT_BYTES_MAX).parse::<PackageRequirement>().is_ok());
        assert!("a".repeat(REQUIREMENT_BYTES_MAX + 1).parse::<PackageRequirement>().is_err());
    }

    fn lock() -> PackageLock {
        let package =
            |name: &str, of: &[u8]| LockedPackage { name: name.into(), version: "1.0".into(), sha256: Digest::of(of) };
        PackageLock { wants: vec!["b>=1".parse().unwrap()], packages: vec![package("a", b"a"), package("b", b"b")] }
    }

    #[test]
    fn a_lock_is_read_as_it_was_written_in_any_order() {
        let text = lock().to_string();
        assert_eq!(text.parse::<PackageLock>().unwrap(), lock());
        let mut lines: Vec<&str> = text.lines().collect();
        lines.reverse();
        let turned: PackageLock = lines.join("\n").parse().unwrap();
        assert_eq!((turned.digest(), &turned), (lock().digest(), &lock()));
        assert!(lock().is_for(&["b>=1".parse().unwrap(), "b >= 1".parse().unwrap()]));
        assert!(!lock().is_for(&["b>=2".parse().unwrap()]));
        let mut other = lock();
        other.packages[0].sha256 = Digest::of(b"else");
        assert_ne!(other.digest(), lock().digest());
    }

    #[test]
    fn a_line_that_no_lock_has_is_named() {
        let digest = Digest::of(b"");
        for wrong in [
            "a==1.0".to_owned(),
            "a==1.0 --hash=sha256:12".to_owned(),
            format!("a {HASH}{digest}"),
            format!("../a==1.0 {HASH}{digest}"),
            format!("a==1/0 {HASH}{digest}"),
            format!("{WANTS}-r x"),
        ] {
            let error = format!("# a remark\n\n{wrong}\n").parse::<PackageLock>().expect_err(&wrong).to_string();
            assert!(error.starts_with("line 3 of the lock is `"), "{error}");
        }
        let many: String = (0..=PACKAGES_MAX).map(|at| format!("a{at}==1 {HASH}{digest}\n")).collect();
        assert!(many.parse::<PackageLock>().is_err());
    }
}
