//! The folders of recorded scenarios on the disk: all of them, or none.
//!
//! They are written beside their place and renamed, so that a full disk or a kill leaves no half of a test. It refuses
//! a directory that has files, unless the caller replaces scenarios in it; what is no scenario stays even then.

use longhaul_core::fault::{self, Context as _, Fault, bail};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The file that makes a folder a scenario.
const SCENARIO: &str = "scenario.toml";

/// The files of each scenario, by the name of its folder.
pub(super) type ScenarioFiles = BTreeMap<String, BTreeMap<&'static str, String>>;

/// Refuses a directory that scenarios cannot be written to.
pub(super) fn expect_free(directory: &Path, update: bool) -> fault::Result<()> {
    let shown = directory.display();
    match is_free(directory) {
        Ok(true) => Ok(()),
        Ok(false) if update => Ok(()),
        Ok(false) => bail!(Fault::conflict(format!(
            "`{shown}` has files; name a new directory with -o, or replace the scenarios in it with --update"
        ))),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            bail!(Fault::invalid(format!("`{shown}` is no directory; name another one with -o")))
        }
        Err(error) => Err(error).with_context(|| format!("cannot read `{shown}`")),
    }
}

/// Writes scenarios into a directory that [`expect_free`] let pass.
pub(super) fn write(directory: &Path, scenarios: &ScenarioFiles, update: bool) -> fault::Result<()> {
    expect_free(directory, update)?;
    for name in scenarios.keys() {
        expect_scenario(&directory.join(name))?;
    }
    let parent = directory.parent().unwrap_or(directory);
    let cannot = || format!("cannot write to `{}`", directory.display());
    fs::create_dir_all(parent).with_context(cannot)?;
    let staging = tempfile::Builder::new().prefix(".scenarios-").tempdir_in(parent).with_context(cannot)?;
    // A folder of its own: the temporary one is closed to other users.
    let fresh = staging.path().join("new");
    for (name, files) in scenarios {
        let folder = fresh.join(name);
        fs::create_dir_all(&folder).with_context(cannot)?;
        for (file, text) in files {
            fs::write(folder.join(file), text).with_context(cannot)?;
        }
    }
    if is_free(directory).with_context(cannot)? {
        return fs::rename(&fresh, directory).with_context(cannot);
    }
    for name in scenarios.keys() {
        replace(&directory.join(name), &fresh.join(name), &staging.path().join(format!("old-{name}")))
            .with_context(cannot)?;
    }
    Ok(())
}

/// True when there is nothing: no directory, or an empty one.
fn is_free(directory: &Path) -> std::io::Result<bool> {
    match fs::read_dir(directory) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Refuses to replace a folder that is no scenario.
fn expect_scenario(folder: &Path) -> fault::Result<()> {
    if folder.exists() && !folder.join(SCENARIO).is_file() {
        bail!(Fault::conflict(format!(
            "`{}` is no scenario, so it is not replaced; name another directory with -o",
            folder.display()
        )));
    }
    Ok(())
}

/// Puts a folder in the place of another, which is put back where that fails.
fn replace(place: &Path, fresh: &Path, old: &Path) -> std::io::Result<()> {
    if !place.exists() {
        return fs::rename(fresh, place);
    }
    fs::rename(place, old)?;
    fs::rename(fresh, place).inspect_err(|_| {
        // Nothing more can be done if this fails, too; the first error is told.
        let _ = fs::rename(old, place);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenarios(text: &str) -> ScenarioFiles {
        let one = |name: &str| (name.to_owned(), BTreeMap::from([(SCENARIO, text.to_owned())]));
        BTreeMap::from([one("a"), one("b")])
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn scenarios_go_into_a_new_or_an_empty_directory() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("deep/tests");
        write(&directory, &scenarios("one"), false).unwrap();
        assert_eq!(names(&directory), ["a", "b"]);
        assert_eq!(names(&root.path().join("deep")), ["tests"], "nothing is left beside it");
        let empty = root.path().join("empty");
        fs::create_dir(&empty).unwrap();
        write(&empty, &scenarios("one"), false).unwrap();
        assert_eq!(fs::read_to_string(empty.join("b").join(SCENARIO)).unwrap(), "one");
    }

    #[test]
    fn files_stay_unless_they_are_replaced_and_what_is_no_scenario_stays_always() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("tests");
        write(&directory, &scenarios("one"), false).unwrap();
        fs::write(directory.join("notes"), "mine").unwrap();
        let refused = |update: bool| write(&directory, &scenarios("two"), update).unwrap_err().to_string();
        assert!(refused(false).contains("has files; name a new directory"));
        write(&directory, &scenarios("two"), true).unwrap();
        assert_eq!(names(&directory), ["a", "b", "notes"]);
        assert_eq!(fs::read_to_string(directory.join("a").join(SCENARIO)).unwrap(), "two");
        fs::remove_file(directory.join("b").join(SCENARIO)).unwrap();
        assert!(refused(true).contains("is no scenario"));
        assert_eq!(names(root.path()), ["tests"]);
    }

    #[test]
    fn a_file_is_no_directory_for_scenarios() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "mine").unwrap();
        let refused = expect_free(&file, true).unwrap_err().to_string();
        assert!(refused.contains("is no directory; name another one"), "{refused}");
        assert!(write(&file.join("tests"), &scenarios("one"), false).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    }
}
