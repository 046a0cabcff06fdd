//! Files that tool calls wrote and that no commit would hold: the agent gets them as an error of the call, and they are
//! kept until the feature's session ends.
//!
//! Only the paths that a call names are checked, in its arguments or in the headers of a patch. Files that a program
//! leaves, such as `target` or `node_modules`, are ignored on purpose, and often so are an agent's notes. So an ignored
//! file fails the call, which the agent can repeat differently, and never the round. Checks run on a copy without such
//! a file, so that a feature which needs it does not pass. Refuses to undo a write.

use longhaul_core::RunId;
use longhaul_core::fault::{self, Fault};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_core::tool::ToolCall;
use longhaul_records::approvals::rows;
use longhaul_records::record::RunRecord;
use longhaul_worktree::{LeftOut, Named, Tree, UserRepository};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Texts of a call's arguments that are checked as paths.
const TEXTS_MAX: usize = 1_000;

/// One tree of a run, and the files in it that no commit would hold.
#[derive(Clone)]
pub struct DiscardedChanges {
    store: Arc<dyn Store>,
    project: UserRepository,
    tree: Tree,
    /// Prefix of the rows: one row for each file, with its path.
    rows: Key,
}

impl DiscardedChanges {
    /// The tracker for one tree of a run.
    pub fn new(store: Arc<dyn Store>, run: &RunId, project: UserRepository, tree: Tree) -> Self {
        let name = tree.dir().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let rows = RunRecord::key(run).and("unkept").and(&name);
        Self { store, project, tree, rows }
    }

    /// The directory of the tree.
    pub fn tree(&self) -> &Path {
        self.tree.dir()
    }

    /// The state of the paths that a call names. `places` are the directories of a tool and their names.
    pub async fn before(&self, call: &ToolCall, places: &[(String, PathBuf)]) -> Named {
        let paths = paths(&call.arguments, places, self.tree.dir());
        let tree = self.tree.clone();
        let noted = tokio::task::spawn_blocking(move || tree.note_named(paths.iter().map(String::as_str))).await;
        let told = noted.map_err(Fault::from).and_then(|noted| Ok(noted?));
        told.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot look at the files that a call names");
            Named::default()
        })
    }

    /// The files that the call wrote and no commit would hold.
    pub async fn after(&self, named: Named) -> fault::Result<Vec<LeftOut>> {
        let (tree, project) = (self.tree.clone(), self.project.clone());
        let found = tokio::task::spawn_blocking(move || tree.unkept_since(&project, &named)).await??;
        let row = |batch: Batch, file: &LeftOut| {
            batch.put(Table::States, self.rows.clone().and(&file.path), file.path.clone())
        };
        if !found.is_empty() {
            self.store.commit(found.iter().fold(Batch::new(), row)).await?;
        }
        Ok(found)
    }

    /// The files of this session that still exist and that still no commit would hold.
    pub async fn still(&self) -> fault::Result<Vec<LeftOut>> {
        let paths = self.paths()?;
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let (tree, project) = (self.tree.clone(), self.project.clone());
        Ok(tokio::task::spawn_blocking(move || tree.unkept(&project, &paths)).await??)
    }

    /// Begins a session: files of an earlier one do not concern it.
    pub async fn forget(&self) -> fault::Result<()> {
        let mut batch = Batch::new();
        for (key, _) in rows(&*self.store, &self.rows)? {
            batch.push(Op::Delete(Table::States, Key::from_bytes(key)));
        }
        if !batch.ops.is_empty() {
            self.store.commit(batch).await?;
        }
        Ok(())
    }

    fn paths(&self) -> fault::Result<Vec<String>> {
        let paths = rows(&*self.store, &self.rows)?.into_iter().map(|(_, path)| String::from_utf8(path));
        Ok(paths.collect::<Result<_, _>>()?)
    }
}

/// The paths that arguments name, from the top of the tree. A text may be relative to any directory of the tool, so one
/// text can yield several paths; a path at which nothing changes has no consequence.
fn paths(arguments: &str, places: &[(String, PathBuf)], tree: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    collect(&serde_json::from_str(arguments).unwrap_or_default(), &mut texts);
    let mut paths = Vec::new();
    for text in texts {
        for (guest, host) in places {
            let Ok(above) = host.strip_prefix(tree) else { continue };
            let inside = text.strip_prefix(guest.as_str()).and_then(|rest| rest.strip_prefix('/'));
            let inside = inside.unwrap_or(&text).trim_start_matches("./");
            if !inside.is_empty() && !inside.starts_with('/') {
                paths.push(above.join(inside).to_string_lossy().into_owned());
            }
        }
    }
    paths
}

/// Collects every text that could be a path, and the paths in headers of patches.
fn collect(value: &Value, texts: &mut Vec<String>) {
    if texts.len() >= TEXTS_MAX {
        return;
    }
    match value {
        Value::String(text) if text.contains('\n') => texts.extend(text.lines().filter_map(header).map(str::to_owned)),
        Value::String(text) if !text.is_empty() && text.len() <= 1_024 => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| collect(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, texts)),
        _ => {}
    }
}

/// The file that a line of a patch names, in either of the two formats that models write.
fn header(line: &str) -> Option<&str> {
    let unified = line.strip_prefix("+++ ").map(|path| path.split('\t').next().unwrap_or_default());
    let unified = unified.map(|path| path.strip_prefix("b/").unwrap_or(path));
    let begun = ["*** Add File: ", "*** Update File: ", "*** Move to: "];
    unified.or_else(|| begun.iter().find_map(|start| line.strip_prefix(start))).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_that_arguments_name_is_found_wherever_the_tool_has_its_directory() {
        let check = |arguments: &str, guest: &str, host: &str, expected: &[&str]| {
            let places = [(guest.to_owned(), PathBuf::from(host))];
            assert_eq!(paths(arguments, &places, Path::new("/trees/r-1")), expected, "{arguments}");
        };
        check(r#"{"path":"a/b.txt","text":"one\ntwo"}"#, "/work", "/trees/r-1", &["a/b.txt"]);
        check(r#"{"path":"/work/a"}"#, "/work", "/trees/r-1", &["a"]);
        check(r#"{"path":"/work/a"}"#, "/work", "/trees/r-1/docs", &["docs/a"]);
        check(r#"{"path":"/etc/passwd"}"#, "/work", "/trees/r-1", &[]);
        check(r#"{"path":"a"}"#, "/data", "/elsewhere", &[]);
        check(r#"{"edits":[{"path":"a"},{"path":"./b"}]}"#, ".", "/trees/r-1", &["a", "b"]);
        let patch = r#"{"patch":"--- a/x\n+++ b/x\tnow\n@@\n+++ c\n*** Add File: y z\n"}"#;
        check(patch, "/work", "/trees/r-1", &["x", "c", "y z"]);
        check("not JSON", "/work", "/trees/r-1", &[]);
    }
}
