//! The powers that were found so far, and those that several tables have: files of the project, levels of the sandbox,
//! and keys that nobody has reviewed.

use super::paths::{digest_of, names_in, own_file};
use super::values::is_whole;
use crate::powers::power::{Power, PowerKind};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The powers so far.
#[derive(Default)]
pub(super) struct Powers {
    found: BTreeSet<Power>,
    /// The project whose files are examined; none: no files are.
    project: Option<PathBuf>,
}

impl Powers {
    /// None so far.
    pub(super) fn none(project: Option<&Path>) -> Self {
        let project = project.map(|project| project.canonicalize().unwrap_or_else(|_| project.to_owned()));
        Self { found: BTreeSet::new(), project }
    }

    pub(super) fn into_found(self) -> BTreeSet<Power> {
        self.found
    }

    pub(super) fn add(&mut self, kind: PowerKind, table: &str, what: impl Into<String>) {
        self.found.insert(Power { kind, table: table.to_owned(), what: what.into(), is_plain: false });
    }

    pub(super) fn add_plain(&mut self, kind: PowerKind, table: &str, what: impl Into<String>) {
        self.found.insert(Power { kind, table: table.to_owned(), what: what.into(), is_plain: true });
    }

    pub(super) fn add_guard(&mut self, table: &str, what: impl Into<String>) {
        self.add_plain(PowerKind::Guard, table, what);
    }

    /// Values of a table under keys that are not reviewed.
    pub(super) fn of_others(&mut self, table: &str, values: &Value, reviewed: &str) {
        for (key, value) in values.as_object().into_iter().flatten() {
            let is_said = match value {
                Value::Null | Value::Bool(false) => false,
                Value::Array(list) => !list.is_empty(),
                Value::Object(table) => !table.is_empty(),
                Value::Bool(true) | Value::Number(_) | Value::String(_) => true,
            };
            if is_said && !reviewed.split(' ').any(|known| known == key) {
                self.add(PowerKind::Wall, table, format!("{key} = {value}"));
            }
        }
    }

    /// Files of the project that words name, relative to it or to a directory of it. Files that those start or read
    /// themselves are not searched.
    pub(super) fn of_own_files<'a>(
        &mut self,
        kind: PowerKind,
        table: &str,
        words: impl IntoIterator<Item = &'a str>,
        directory: Option<&str>,
    ) {
        let Some(project) = self.project.clone() else { return };
        let places = [Some(project.clone()), directory.map(|directory| project.join(directory))];
        let places: Vec<PathBuf> = places.into_iter().flatten().collect();
        let mut files = BTreeSet::new();
        for name in words.into_iter().flat_map(names_in).collect::<BTreeSet<&str>>() {
            files.extend(places.iter().filter_map(|place| own_file(&project, &place.join(name))));
        }
        for file in files {
            let digest =
                digest_of(&project.join(&file)).map_or_else(|error| error.to_string(), |digest| digest.to_string());
            self.add(kind, table, format!("uses {file} of the project, {digest}"));
        }
    }

    /// The lowest sandbox level.
    pub(super) fn of_level(&mut self, table: &str, key: &str, level: &Value) {
        if !is_whole(level) {
            self.add(PowerKind::Wall, table, format!("{key} = {level}"));
        } else if level == "runsc" {
            self.add_guard(table, format!("{key} = {level}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_that_nobody_has_looked_at_is_a_power() {
        let mut found = Powers::default();
        let table = json!({ "known": 1, "off": false, "none": null, "empty": [], "new": ["x"], "newer": true });
        found.of_others("tools.t", &table, "known older");
        let told: Vec<String> = found.found.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["[tools.t] new = [\"x\"]", "[tools.t] newer = true"]);
    }
}
