//! What can be known to be wrong with a project before a model is asked: `longhaul check`, and the first thing that `run`,
//! `resume` and `ask` do.
//!
//! | file | looks at |
//! |---|---|
//! | `check/machine.rs` | this machine: directories, programs, keys, secrets |
//! | `check/plugins.rs` | components: that they are there, their settings, functions, and the plan of a written goal |
//!
//! Refuses to send anything to a model, a server or a plugin's host, to start a program of the project, and to change
//! anything.

pub mod machine;
pub mod plugins;

use crate::identity;
use crate::memory::MemoryFactory;
use crate::toolbox::plugin_host::PluginHost;
use crate::trust;
use longhaul_api::checks::{Finding, Overview};
use longhaul_config::{Config, Diagnostic, FILE, PluginConfig, toml_text};
use longhaul_core::fault::{self, bail};
use longhaul_core::ids;
use longhaul_models::Provider;
use longhaul_models::set::{ModelOptions, ProgramEnvironment};
use longhaul_records::pins::Pins;
use std::path::Path;
use std::sync::Arc;

/// What is looked at.
#[derive(Clone, Debug)]
pub enum Scope {
    /// All of it, with the goal and its plan: before a run.
    Run,
    /// As for a run that follows a plan of its own.
    Planned,
    /// What an ask needs, which has no goal, no checks and no evaluator.
    Ask,
    /// What is not pinned, of a run with these pins that is to go on.
    Resume(Pins),
}

impl Scope {
    /// Whether a part is of no use there.
    fn leaves_out(&self, table: &str) -> bool {
        matches!(self, Self::Ask) && table == "evaluator"
    }
}

/// What projects are held against: plugins, the models and the memory that this program has for them.
#[derive(Clone)]
pub struct Checker {
    /// Loads plugins, and has them say what they can do.
    pub host: Arc<PluginHost>,
    /// What memory is kept and found with.
    pub memories: Arc<dyn MemoryFactory>,
    /// What models are given.
    pub environment: ProgramEnvironment,
}

impl Checker {
    /// What is wrong with the project in `directory` for a run, and what would run.
    pub async fn examine(&self, directory: &Path, options: &ModelOptions) -> fault::Result<(Vec<Finding>, Overview)> {
        let text = match longhaul_config::of_config(directory) {
            Ok(text) => text,
            Err(error) => {
                let fix = format!("cannot be read: {error}; make a project with `longhaul new` or `longhaul init`");
                return Ok((vec![Finding::new(Some(FILE), None, &fix)], Overview::default()));
            }
        };
        let mut config = match Config::parse_all(&text) {
            Ok(config) => config,
            Err(faults) => return Ok((faults.iter().map(of_diagnostic).collect(), Overview::default())),
        };
        let known = identity::known(&*self.host.store, directory, &config.project.name)?;
        config.project.id = known.map_or_else(|| ids::drawn(&self.host.fresh_seed()), |known| known.id);
        let trusted = trust::expect(&*self.host.store, directory, &config);
        if trusted.is_err() {
            // Tools are asked what they can do, and those of a repository must not have its grants by then.
            config = config.without_powers();
        }
        let (mut findings, overview) = self.examine_config(directory, &config, &text, options, &Scope::Run).await?;
        let (name, directory) = (config.project.name.clone(), directory.to_owned());
        findings.extend(trusted.err().map(|error| Finding::new(Some(FILE), None, &format!("{error:#}"))));
        let repository = tokio::task::spawn_blocking(move || machine::repository(&name, &directory)).await?;
        findings.extend(repository.err().map(|error| Finding::new(None, None, &format!("{error:#}"))));
        Ok((findings, overview))
    }

    /// As [`Checker::examine`], of a configuration that was read of `text`, and without a look at the repository.
    pub async fn examine_config(
        &self,
        directory: &Path,
        config: &Config,
        text: &str,
        options: &ModelOptions,
        scope: &Scope,
    ) -> fault::Result<(Vec<Finding>, Overview)> {
        let mut found = Found { text: text.to_owned(), findings: Vec::new() };
        // It reads files, of which a network may hold some.
        let (at, own, options, of) = (directory.to_owned(), config.clone(), options.clone(), scope.clone());
        let checker = self.clone();
        found = tokio::task::spawn_blocking(move || {
            let Self { host, memories, environment } = &checker;
            let program = machine::Program { home: &host.home, environment, memories: &**memories };
            machine::look(&mut found, &program, &own, &at, &options, &of);
            found
        })
        .await?;
        let mut overview = overview(config, scope);
        overview.features = plugins::look(&mut found, &self.host, config, directory, scope).await;
        Ok((found.findings, overview))
    }
}

/// Refuses to begin or to go on where something is wrong: the first finding, and how many more there are.
pub fn refuse(findings: &[Finding]) -> fault::Result<()> {
    match findings {
        [] => Ok(()),
        [only] => bail!("{only}"),
        [first, rest @ ..] => bail!("{first} (and {} more; `longhaul check` lists them)", rest.len()),
    }
}

/// What a planner says of the goal's text.
pub fn of_goal(config: &Config, text: &str) -> Finding {
    let (line, text) = plugins::line_of_goal(text);
    Finding::new(Some(&config.project.goal.display().to_string()), line, text)
}

fn of_diagnostic(found: &Diagnostic) -> Finding {
    Finding::new(Some(FILE), found.line, &found.text)
}

/// Findings while they are looked for.
pub(crate) struct Found {
    /// `longhaul.toml`.
    text: String,
    findings: Vec<Finding>,
}

impl Found {
    /// About a key of `longhaul.toml`, by its path.
    fn at(&mut self, path: &str, text: &str) {
        self.findings.push(Finding::new(Some(FILE), toml_text::line_of(&self.text, path), text));
    }

    /// About another file of the project.
    fn in_file(&mut self, file: &str, line: Option<usize>, text: &str) {
        self.findings.push(Finding::new(Some(file), line, text));
    }

    fn of_machine(&mut self, text: &str) {
        self.findings.push(Finding::new(None, None, text));
    }
}

fn overview(config: &Config, scope: &Scope) -> Overview {
    let parts = config.parts().filter(|(table, _)| !scope.leaves_out(table));
    let used = config.models.iter().filter(|(name, _)| config.uses_model(name));
    Overview {
        project: config.project.name.clone(),
        parts: parts.map(|(table, part)| format!("{table}: {}{}", part.plugin, powers(part))).collect(),
        models: used.map(|(name, model)| format!("{name}: {}", model_words(&model.provider))).collect(),
        checks: config.checks.iter().map(|(name, check)| format!("{name}: {}", check.argv.join(" "))).collect(),
        features: None,
    }
}

fn model_words(provider: &Provider) -> String {
    match provider {
        Provider::OpenAi(model) => format!("openai {}", model.id),
        Provider::Anthropic(model) => format!("anthropic {}", model.id),
        Provider::Local(model) => format!("local {}", model.file.display()),
        Provider::Recorded(model) => format!("recorded {}", model.file.display()),
        Provider::Route(route) => format!("route over {}", route.models.join(", ")),
    }
}

/// What the operator gives a part.
fn powers(part: &PluginConfig) -> String {
    let listed = |what: &str, names: Vec<String>| match names.is_empty() {
        true => None,
        false => Some(format!("{what} {}", names.join(", "))),
    };
    let directories = part.directories.iter().map(|given| {
        let how = if given.access == longhaul_core::grant::Access::Write { "writes" } else { "reads" };
        format!("{how} {}", given.host.display())
    });
    let given = [
        listed("asks", part.models.clone()),
        listed("calls", part.tools.clone()),
        listed("delegates to", part.agents.clone()),
        listed("", directories.collect()).map(|words| words.trim().to_owned()),
        listed("reaches", part.hosts.iter().map(|host| host.origin()).collect()),
        listed("sends the secrets", part.secrets.iter().map(|secret| secret.name.clone()).collect()),
    ];
    let given: Vec<String> = given.into_iter().flatten().collect();
    if given.is_empty() { String::new() } else { format!(" ({})", given.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line_and_says_how_many_more_there_are() {
        let finding = |line, text: &str| Finding::new(Some("longhaul.toml"), line, text);
        let (first, second) = (finding(Some(3), "one\n  thing \u{1b}[2J"), finding(None, "another"));
        assert!(refuse(&[]).is_ok());
        let said = |findings: &[Finding]| refuse(findings).unwrap_err().to_string();
        assert_eq!(said(std::slice::from_ref(&second)), "longhaul.toml: another");
        let both = said(&[first, second]);
        assert!(both.starts_with("longhaul.toml:3: one thing "), "{both}");
        assert!(both.ends_with("(and 1 more; `longhaul check` lists them)"), "{both}");
        assert!(!both.contains(['\n', '\u{1b}']), "{both:?}");
    }
}
