//! The files of a project that `longhaul.toml` itself names: a plugin by its path, a program of `[notify]`, `[mcp]` or
//! a tool of the host, and the goal, each with the links that lead to it.

use crate::part::PluginConfig;
use crate::tables::Config;
use longhaul_worktree::Protected;
use serde_json::Value;
use std::path::{Component, Path, PathBuf};

/// Links that Linux follows to one file.
const LINKS_MAX: usize = 40;

/// The protected files of a project.
pub fn protected(config: &Config, project: &Path) -> Protected {
    let listed = config.protect.paths.iter().map(|path| (path.clone(), "is listed in [protect]".to_owned()));
    let further: Vec<_> = listed.chain(named(config, project)).collect();
    Protected::new(&further, &config.protect.allow)
}

/// A word of the configuration that may name a file, and the file's purpose.
struct Word {
    path: PathBuf,
    why: String,
    /// True when it names a file even if there is none: a file that is created there would be started.
    is_sure: bool,
}

/// Files of the project that the configuration names, with their purposes.
fn named(config: &Config, project: &Path) -> Vec<(String, String)> {
    let Ok(top) = project.canonicalize() else { return Vec::new() };
    let mut words: Vec<Word> = config.parts().flat_map(|(table, part)| of_part(&table, part)).collect();
    for (name, server) in &config.mcp {
        words.extend(of_command(&format!("mcp.{name}"), &server.command, &server.directory_in(&top, &top)));
    }
    if let Some(notify) = &config.notify {
        words.extend(of_command("notify", &notify.command, &top));
        let notifier = notify.email.iter().flat_map(|email| of_command("notify.email", &email.sendmail, &top));
        words.extend(notifier);
    }
    let why = "says what later runs do, and what they are judged by".to_owned();
    words.push(Word { path: config.project.goal.clone(), why, is_sure: true });
    words.iter().flat_map(|word| word.own_files(&top)).collect()
}

/// The plugin that a table names by a path, with its manifest, and the full paths that a tool of the host starts.
fn of_part(table: &str, part: &PluginConfig) -> Vec<Word> {
    let word = |path: &Path, why: String| Word { path: path.to_owned(), why, is_sure: true };
    if part.plugin.starts_with(['.', '/']) {
        let plugin = Path::new(&part.plugin);
        let manifest = word(&plugin.with_extension("toml"), format!("says what the plugin of [{table}] asks for"));
        return vec![word(plugin, started(table)), manifest];
    }
    if !part.plugin.starts_with("builtin:") {
        return Vec::new();
    }
    let programs = part.settings.get("programs").and_then(Value::as_array).into_iter().flatten();
    let programs = part.settings.get("program").into_iter().chain(programs).filter_map(Value::as_str);
    programs.filter(|path| path.starts_with('/')).map(|path| word(Path::new(path), started(table))).collect()
}

fn of_command(table: &str, command: &[String], directory: &Path) -> Vec<Word> {
    let word = |(at, word): (usize, &String)| Word {
        path: directory.join(word),
        why: started(table),
        is_sure: at == 0 && word.contains('/'),
    };
    command.iter().enumerate().map(word).collect()
}

fn started(table: &str) -> String {
    format!("is started by [{table}]")
}

impl Word {
    /// The patterns of the named file of the project, and of the links to it, each with its purpose.
    fn own_files(&self, top: &Path) -> Vec<(String, String)> {
        let steps = steps(&top.join(&self.path));
        let is_file = steps.last().is_some_and(|file| file.is_file() || (self.is_sure && !file.exists()));
        let own = |step: &PathBuf| {
            let path = step.strip_prefix(top).ok()?.to_str()?;
            Some((longhaul_worktree::pattern_of(path), self.why.clone()))
        };
        steps.iter().filter(|_| is_file).filter_map(own).collect()
    }
}

/// The links on the path, and its target. A change of one of them changes what is read there.
fn steps(path: &Path) -> Vec<PathBuf> {
    let (mut at, mut rest, mut found) = (PathBuf::new(), path.to_owned(), Vec::new());
    while found.len() < LINKS_MAX {
        let mut parts = rest.components();
        let Some(part) = parts.next() else { break };
        let behind = parts.as_path().to_owned();
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                at.pop();
            }
            part => at.push(part),
        }
        rest = match at.read_link() {
            Ok(target) => {
                found.push(at.clone());
                at.pop();
                target.join(behind)
            }
            Err(_) => behind,
        };
    }
    found.push(at);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const CONFIG: &str = r#"
        [project]
        name = "app"

        [agents.code]
        plugin = "{top}/tools/x.wasm"

        [tools.browse]
        plugin = "builtin:browser"
        settings = { program = "{top}/chrome" }

        [mcp.own]
        command = ["node", "server/index.js", "--quiet"]

        [mcp.other]
        command = ["./start"]
        directory = "server"

        [notify]
        command = ["./tell.sh", "-v"]

        [notify.email]
        to = ["a@a.example"]
        from = "b@a.example"
        sendmail = ["./bin/mail", "-t"]
    "#;

    #[test]
    fn what_the_configuration_names_is_protected_with_each_link_on_the_way() {
        let dir = tempfile::tempdir().expect("ours");
        let top = dir.path();
        for path in ["tools/x.wasm", "chrome", "server/index.js", "scripts/tell-1.sh", "GOAL.md", "-v"] {
            std::fs::create_dir_all(top.join(path).parent().expect("a directory")).expect("ours");
            std::fs::write(top.join(path), "x").expect("ours");
        }
        symlink("now/tell.sh", top.join("tell.sh")).expect("ours");
        symlink("scripts", top.join("now")).expect("ours");
        symlink("tell-1.sh", top.join("scripts/tell.sh")).expect("ours");
        let text = CONFIG.replace("{top}", top.to_str().expect("text"));
        let protected = protected(&toml::from_str(&text).expect("a configuration"), top);
        let named = [
            "tools/x.wasm",
            "tools/x.toml",
            "chrome",
            "server/index.js",
            "server/start",
            "tell.sh",
            "now",
            "scripts/tell.sh",
            "scripts/tell-1.sh",
            "bin/mail",
            "GOAL.md",
            "-v",
        ]
        .map(str::to_owned);
        assert_eq!(protected.among_paths(&named), named);
        let free = ["node", "index.js", "start", "scripts/tell-2.sh", "mail", "tools/y.wasm", "server/other.js"];
        assert_eq!(protected.among_paths(&free.map(str::to_owned)), Vec::<String>::new());
    }
}
