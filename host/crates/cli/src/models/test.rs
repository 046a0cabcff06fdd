//! `longhaul models test`: sends one small request of each kind that runs use to each configured model.

use super::super::context::Context;
use super::super::exit::Exit;
use super::super::order::print_json;
use longhaul_api::wire::models::ModelProbeView;
use longhaul_config::Config;
use longhaul_core::fault::{self, bail};
use longhaul_core::text::printable;
use longhaul_models::Provider;
use longhaul_models::probe::{Probed, probe};
use longhaul_models::set::ModelSet;
use longhaul_report::messages::cost_words;

/// Most tokens of a reply, with room for thoughts before it.
const OUTPUT_TOKENS_MAX: u32 = 2_048;

/// The same for a small model on this machine, which does not think and writes up to its limit.
const LOCAL_OUTPUT_TOKENS_MAX: u32 = 64;

/// Tests one model, or all.
pub(super) async fn run(context: &Context, name: Option<&str>) -> fault::Result<Exit> {
    let mut config = Config::read(&context.project)?;
    super::super::trust::expect(context).await?;
    let names: Vec<String> = match name {
        Some(name) if !config.models.contains_key(name) => {
            let known: Vec<&str> = config.models.keys().map(String::as_str).collect();
            bail!("there is no model `{name}`; longhaul.toml has: {}", known.join(", "));
        }
        Some(name) => vec![name.to_owned()],
        // A route asks other models, which are tested by themselves.
        None => {
            let own = config.models.iter().filter(|(_, model)| !matches!(model.provider, Provider::Route(_)));
            own.map(|(name, _)| name.clone()).collect()
        }
    };
    if names.is_empty() {
        bail!("no model is configured; add to longhaul.toml: [models.NAME] provider = \"openai\", with its id and key");
    }
    for model in config.models.values_mut() {
        // A fallback or a cached reply would tell nothing about this model.
        model.fallback.clear();
        model.cache = false;
        match &mut model.provider {
            Provider::OpenAi(config) => config.retry.retries_max = config.retry.retries_max.min(1),
            Provider::Anthropic(config) => config.retry.retries_max = config.retry.retries_max.min(1),
            Provider::Local(_) | Provider::Recorded(_) | Provider::Route(_) => {}
        }
    }
    let environment = context.owner.model_environment()?;
    let (mut lines, mut is_fine) = (Vec::new(), true);
    for name in &names {
        let is_local = matches!(config.models[name].provider, Provider::Local(_));
        let output_tokens_max = if is_local { LOCAL_OUTPUT_TOKENS_MAX } else { OUTPUT_TOKENS_MAX };
        let model = ModelSet::one(&config.models, name, &context.project, &environment)?;
        let probed = probe(&*model, name, output_tokens_max).await;
        is_fine &= probed.iter().all(|one| one.works || !one.needed);
        if !context.json {
            probed.iter().for_each(|one| outln!("{}", line(name, one)));
        }
        lines.extend(probed.into_iter().map(|one| ModelProbeView::of(name, one)));
    }
    if context.json {
        print_json(&lines)?;
    }
    Ok(if is_fine { Exit::Done } else { Exit::Error })
}

fn line(name: &str, probed: &Probed) -> String {
    let word = match (probed.works, probed.needed) {
        (true, _) => "works",
        (false, true) => "fails",
        (false, false) => "no",
    };
    let mut parts = Vec::new();
    if probed.usage.tokens() > 0 {
        parts.push(format!("{} ms", probed.took_ms));
        parts.push(format!("{} tokens", probed.usage.tokens()));
        parts.extend(cost_words(probed.usage));
    }
    if !probed.why.is_empty() {
        parts.push(printable(&probed.why, usize::MAX));
    }
    format!("{name:<12} {:<10} {word:<6} {}", probed.kind.word(), parts.join(", ")).trim_end().to_owned()
}
