//! The overview of the run or the ask that would begin, as text.

use crate::scope::CheckScope;
use longhaul_api::checks::Overview;
use longhaul_config::{Config, PluginConfig, RunConfig};
use longhaul_models::Provider;

pub(crate) fn overview(config: &Config, scope: &CheckScope) -> Overview {
    let parts = config.parts().filter(|(table, _)| !scope.leaves_out(table));
    let used = config.models.iter().filter(|(name, _)| config.uses_model(name));
    let checks = config.checks.iter().filter(|_| !matches!(scope, CheckScope::Ask));
    Overview {
        project: config.project.name.clone(),
        parts: parts.map(|(table, part)| format!("{table}: {}{}", part.plugin, powers(part))).collect(),
        models: used.map(|(name, model)| format!("{name}: {}", model_words(&model.provider))).collect(),
        checks: checks.map(|(name, check)| format!("{name}: {}", check.argv.join(" "))).collect(),
        turn: turn(&config.run),
        features: None,
        run_needs: None,
    }
}

/// The conditions on which a run gets its turn, where the file has others than the usual ones.
fn turn(run: &RunConfig) -> Vec<String> {
    let labels = run.labels_needed().join(", ");
    let labels = (!labels.is_empty()).then(|| format!("on a server with the labels {labels}"));
    let usual = RunConfig::default().priority();
    let priority = run.priority();
    let priority = (priority != usual).then(|| format!("priority {priority}, where {usual} is the usual one"));
    labels.into_iter().chain(priority).collect()
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

/// The operator's grants to a part.
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
