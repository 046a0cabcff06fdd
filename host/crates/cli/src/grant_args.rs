//! Parsers of arguments: directories, hosts and sandbox levels for code, the plan of a run.

use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::grant::{Access, DirectoryGrant, HostPattern};
use longhaul_core::work::Plan;
use longhaul_sandbox::Level;
use std::path::Path;

/// Parses `HOST:GUEST`, writable, or `HOST:GUEST:ro`.
pub fn directory(text: &str) -> Result<DirectoryGrant, String> {
    let (rest, access) = text.strip_suffix(":ro").map_or((text, Access::Write), |rest| (rest, Access::Read));
    // Split from the right: the path on the host may contain a colon.
    let Some((host, guest)) = rest.rsplit_once(':').filter(|(host, guest)| !host.is_empty() && guest.starts_with('/'))
    else {
        return Err("write HOST:GUEST or HOST:GUEST:ro, where GUEST starts with `/`, such as ./data:/work:ro".into());
    };
    if !Path::new(host).is_dir() {
        return Err(format!("`{host}` is no directory"));
    }
    Ok(DirectoryGrant { guest: guest.to_owned(), host: host.into(), access })
}

/// Parses `SCHEME://HOST[:PORT]`.
pub fn host(text: &str) -> Result<HostPattern, String> {
    HostPattern::try_from(text.to_owned()).map_err(|error| error.to_string())
}

/// Parses a level of the sandbox.
pub fn sandbox_level(text: &str) -> Result<Level, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

/// Longest file of a plan, in bytes. The harness keeps far less.
const PLAN_BYTES_MAX: u64 = 16 << 20;

/// Reads the file of a plan.
pub fn plan(path: &Path) -> fault::Result<Plan> {
    let bytes = std::fs::metadata(path).with_context(|| format!("cannot read the plan `{}`", path.display()))?.len();
    if bytes > PLAN_BYTES_MAX {
        bail!("the plan `{}` has {bytes} bytes, more than {PLAN_BYTES_MAX}; split it", path.display());
    }
    let text = longhaul_home::text_file::read(path, PLAN_BYTES_MAX)
        .with_context(|| format!("the plan `{}`", path.display()))?;
    longhaul_harness::plan::written::read(&text).with_context(|| format!("the plan `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_of_the_sandbox_is_one_of_its_words() {
        assert_eq!(sandbox_level("landlock"), Ok(Level::Landlock));
        assert!(sandbox_level("all").unwrap_err().contains("`full`"));
    }

    #[test]
    fn a_directory_is_named_on_both_sides_and_may_be_read_only() {
        let grant = directory(".:/work:ro").unwrap();
        assert_eq!((grant.guest.as_str(), grant.access), ("/work", Access::Read));
        assert_eq!(directory(".:/work").unwrap().access, Access::Write);
        for wrong in ["", ".", ":/work", ".:work", "/nowhere-at-all:/work", ".:/work:ro:ro"] {
            assert!(directory(wrong).is_err(), "{wrong}");
        }
    }
}
