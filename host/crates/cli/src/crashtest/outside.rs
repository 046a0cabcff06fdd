//! Powers by which a run may change things beside its copy. A project with any of them is refused, since each run of a
//! crash test would change those things once more. It looks at the configuration alone and starts nothing.

use longhaul_config::powers::leads_out;
use longhaul_config::{Config, FILE};
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::grant::Access;
use longhaul_sandbox::Level;
use std::path::Path;

/// The name of the level without a sandbox, as settings of tools write it.
const NO_SANDBOX: &str = "none";

/// Refuses a project whose runs would change what is shared with others, or could send without being counted.
pub fn refuse(config: &Config) -> fault::Result<()> {
    for (table, redis) in [("memory", &config.memory.redis), ("checkpoints", &config.checkpoints.redis)] {
        if redis.is_some() {
            bail!(
                "{FILE} has [{table}.redis], which a crash test would write to; test a copy of the project without \
                 that table"
            );
        }
    }
    if config.run.sandbox_min == Level::None {
        bail!(bare("run", "sandbox_min"));
    }
    for (name, part) in &config.tools {
        let table = format!("tools.{name}");
        if part.settings.get("sandbox_min").is_some_and(|level| level == NO_SANDBOX) {
            bail!(bare(&table, "sandbox_min"));
        }
        for given in part.directories.iter().filter(|given| !given.is_tree() && given.access == Access::Write) {
            refuse_outside(&table, &given.host)?;
        }
    }
    for (name, server) in &config.mcp {
        let table = format!("mcp.{name}");
        if server.sandbox == Some(Level::None) {
            bail!(bare(&table, "sandbox"));
        }
        server.write.iter().chain(&server.directory).try_for_each(|given| refuse_outside(&table, given))?;
    }
    Ok(())
}

/// The refusal of programs that may send by themselves.
fn bare(table: &str, key: &str) -> Fault {
    Fault::invalid(format!(
        "[{table}] {key} = \"none\" lets programs send to real hosts and change files of yours in each run of a crash \
         test; test a copy of the project with another level, such as \"landlock\""
    ))
}

/// Refuses a directory of which a run has no copy.
fn refuse_outside(table: &str, directory: &Path) -> fault::Result<()> {
    if leads_out(directory) {
        bail!(Fault::invalid(format!(
            "[{table}] may change `{}`, which is outside of the project, in each run of a crash test; test a copy of \
             the project with a directory in it",
            directory.display()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tables: &str, said: Option<&str>) {
        let text = format!("[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\n{tables}");
        let refused = refuse(&toml::from_str(&text).expect("a configuration")).err().map(|error| error.to_string());
        match said {
            None => assert_eq!(refused, None),
            Some(said) => {
                assert!(refused.as_ref().is_some_and(|text| text.contains(said)), "{refused:?} and not {said}")
            }
        }
    }

    #[test]
    fn what_a_run_has_a_copy_of_it_may_change() {
        check("", None);
        check("[tools.files]\nplugin = \"files\"\ndirectories = [{ guest = \"/w\", access = \"write\" }]", None);
        check(
            "[tools.files]\nplugin = \"files\"\n\
             directories = [{ guest = \"/w\", host = \"data\", access = \"write\" }, \
             { guest = \"/r\", host = \"/usr/share\", access = \"read\" }]",
            None,
        );
        check("[run]\nsandbox_min = \"landlock\"\n[mcp.t]\ncommand = [\"t\"]\nwrite = [\"data\"]", None);
    }

    #[test]
    fn what_lies_elsewhere_or_is_sent_uncounted_is_refused() {
        check("[run]\nsandbox_min = \"none\"", Some("[run] sandbox_min = \"none\" lets programs send"));
        check(
            "[tools.sh]\nplugin = \"builtin:shell\"\nsettings = { sandbox_min = \"none\" }",
            Some("[tools.sh] sandbox_min = \"none\""),
        );
        check("[mcp.t]\ncommand = [\"t\"]\nsandbox = \"none\"", Some("[mcp.t] sandbox = \"none\""));
        check("[mcp.t]\ncommand = [\"t\"]\nwrite = [\"/srv/data\"]", Some("[mcp.t] may change `/srv/data`"));
        check("[mcp.t]\ncommand = [\"t\"]\ndirectory = \"../other\"", Some("[mcp.t] may change `../other`"));
        check(
            "[tools.files]\nplugin = \"files\"\n\
             directories = [{ guest = \"/w\", host = \"/srv/data\", access = \"write\" }]",
            Some("[tools.files] may change `/srv/data`"),
        );
        check("[memory.redis]\nurl = \"redis://localhost:1/0\"", Some("[memory.redis]"));
    }
}
