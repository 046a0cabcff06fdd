//! The provider of the demo's model: those that are found, the choice of the user, and a test of it.
//!
//! Without a word of the user no provider is taken that costs money.

use super::demo::{DemoModel, RECORDING_FILE};
use super::person::Person;
use super::words::say;
use crate::context::Context;
use crate::machine::{self, FoundModels};
use longhaul_config::Config;
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::text::printable;
use longhaul_home::cache;
use longhaul_models::probe::probe_plain;
use longhaul_models::pull::DEFAULT;
use longhaul_models::set::ModelSet;

/// Most tokens of a reply of the small model, as in the recording.
const SMALL_TOKENS_MAX: u32 = 180;

/// The same of its reply to the request that tests it: it writes up to its limit.
const TEST_TOKENS_MAX: u32 = 64;

/// The same of other models, with room for thoughts before the reply.
const TOKENS_MAX: u32 = 4_096;

/// A provider that is known by the variable of its key.
struct KnownKey {
    name: &'static str,
    variable: &'static str,
    /// Its address, where it is not that of its protocol's own provider.
    base_url: Option<&'static str>,
}

static KEYS: [KnownKey; 10] = [
    KnownKey { name: "openai", variable: "OPENAI_API_KEY", base_url: None },
    KnownKey { name: "anthropic", variable: "ANTHROPIC_API_KEY", base_url: None },
    KnownKey { name: "openrouter", variable: "OPENROUTER_API_KEY", base_url: Some("https://openrouter.ai/api/v1") },
    KnownKey {
        name: "gemini",
        variable: "GEMINI_API_KEY",
        base_url: Some("https://generativelanguage.googleapis.com/v1beta/openai"),
    },
    KnownKey { name: "mistral", variable: "MISTRAL_API_KEY", base_url: Some("https://api.mistral.ai/v1") },
    KnownKey { name: "groq", variable: "GROQ_API_KEY", base_url: Some("https://api.groq.com/openai/v1") },
    KnownKey { name: "deepseek", variable: "DEEPSEEK_API_KEY", base_url: Some("https://api.deepseek.com/v1") },
    KnownKey { name: "together", variable: "TOGETHER_API_KEY", base_url: Some("https://api.together.xyz/v1") },
    KnownKey {
        name: "fireworks",
        variable: "FIREWORKS_API_KEY",
        base_url: Some("https://api.fireworks.ai/inference/v1"),
    },
    KnownKey { name: "xai", variable: "XAI_API_KEY", base_url: Some("https://api.x.ai/v1") },
];

/// A provider that the demo may take.
struct Provider {
    name: String,
    kind: Kind,
}

enum Kind {
    /// A key in the environment.
    Key(&'static KnownKey),
    /// A server on this machine.
    Server { base_url: String, models: Vec<String> },
    /// The small model of this program.
    Local { is_fetched: bool },
    /// Replies of that model from a file.
    Recorded,
}

/// The provider that was chosen, and works.
pub(super) struct Chosen {
    pub(super) name: String,
    pub(super) model: DemoModel,
}

/// The provider of this name; otherwise the one that the person chooses; without a person the first that works and
/// costs nothing.
pub(super) async fn choose(
    context: &Context,
    person: &Person,
    named: Option<&str>,
    id: Option<&str>,
) -> fault::Result<Chosen> {
    let mut all = providers(machine::models().await?, context.owner.has_local_model());
    if let Some(name) = named {
        let Some(at) = all.iter().position(|provider| provider.name == name) else {
            let names: Vec<&str> = all.iter().map(|provider| provider.name.as_str()).collect();
            bail!("there is no provider `{name}` here; there are: {}", names.join(", "));
        };
        return all.swap_remove(at).tried(context, person, id).await;
    }
    if !person.is_asked() {
        all.retain(Provider::costs_nothing);
        return first_that_works(context, person, all).await;
    }
    loop {
        let provider = asked(context, person, &all).await?;
        match provider.tried(context, person, id).await {
            Ok(chosen) => return Ok(chosen),
            Err(error) => say(context, &format!("{error:#}")),
        }
    }
}

async fn first_that_works(context: &Context, person: &Person, all: Vec<Provider>) -> fault::Result<Chosen> {
    let mut failed: Option<Fault> = None;
    for provider in all {
        match provider.tried(context, person, None).await {
            Ok(chosen) => return Ok(chosen),
            Err(error) => {
                say(context, &format!("{error:#}"));
                failed = Some(error);
            }
        }
    }
    match failed {
        Some(error) => Err(error),
        None => bail!("no provider was found; name one with --provider NAME"),
    }
}

/// Asks until one of them is named.
async fn asked<'a>(context: &Context, person: &Person, all: &'a [Provider]) -> fault::Result<&'a Provider> {
    say(context, "which model shall write the demo?");
    for (number, provider) in all.iter().enumerate() {
        say(context, &format!("  {}  {:<12} {}", number + 1, provider.name, provider.words()));
    }
    loop {
        let answer = person.answer("a number or a name [recorded]:").await?;
        let answer = if answer.is_empty() { "recorded" } else { answer.as_str() };
        let number = answer.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let by_number = number.and_then(|at| all.get(at));
        match by_number.or_else(|| all.iter().find(|provider| provider.name == answer)) {
            Some(provider) => return Ok(provider),
            None => say(context, &format!("`{answer}` is none of them")),
        }
    }
}

/// All providers: keys first, then servers, the local model if this program has it, and always the recording.
fn providers(found: FoundModels, has_local: bool) -> Vec<Provider> {
    let FoundModels { discovery, local } = found;
    let is_found = |known: &&KnownKey| discovery.keys.iter().any(|key| key == known.variable);
    let keys = KEYS.iter().filter(is_found);
    let mut all: Vec<Provider> =
        keys.map(|known| Provider { name: known.name.to_owned(), kind: Kind::Key(known) }).collect();
    all.extend(discovery.servers.into_iter().map(|server| Provider {
        name: server.usually.replace(' ', "-"),
        kind: Kind::Server { base_url: server.base_url, models: server.models },
    }));
    if has_local {
        all.push(Provider { name: "local".to_owned(), kind: Kind::Local { is_fetched: local.is_some() } });
    }
    all.push(Provider { name: "recorded".to_owned(), kind: Kind::Recorded });
    all
}

impl Provider {
    /// The cost and origin of its replies, for a person who chooses a provider.
    fn words(&self) -> String {
        match &self.kind {
            Kind::Key(known) => format!("{} is set; requests cost money", known.variable),
            Kind::Server { base_url, .. } => format!("a server on this machine, {base_url}"),
            Kind::Local { is_fetched: true } => "a small model on this machine's processor".to_owned(),
            Kind::Local { is_fetched: false } => {
                "a small model on this machine's processor; 98 MB are fetched first".to_owned()
            }
            Kind::Recorded => "a recording of the small model; nothing is sent".to_owned(),
        }
    }

    /// True when it may be taken unasked: it costs nothing and nothing is fetched.
    fn costs_nothing(&self) -> bool {
        matches!(self.kind, Kind::Local { is_fetched: true } | Kind::Recorded)
    }

    /// The choice of this provider, once one small request shows that it works.
    async fn tried(&self, context: &Context, person: &Person, id: Option<&str>) -> fault::Result<Chosen> {
        if matches!(self.kind, Kind::Local { is_fetched: false }) {
            let mut told = |text: &str| errln!("{text}");
            longhaul_models::pull(DEFAULT, &cache()?, &mut told).await?;
        }
        let model = self.model(&self.id(person, id).await?);
        if matches!(self.kind, Kind::Recorded) {
            say(context, "recorded: a recording answers in place of a model; nothing is sent");
        } else {
            self.test(context, &model).await?;
        }
        Ok(Chosen { name: self.name.clone(), model })
    }

    /// The provider's own name of the model; empty where there is one alone.
    async fn id(&self, person: &Person, given: Option<&str>) -> fault::Result<String> {
        let first = match &self.kind {
            Kind::Local { .. } | Kind::Recorded => return Ok(String::new()),
            Kind::Key(_) => None,
            Kind::Server { models, .. } => models.first().cloned(),
        };
        if let Some(id) = given.map(str::to_owned).or(first) {
            return Ok(id);
        }
        if !person.is_asked() {
            bail!("`{}` has several models; name one with --model ID", self.name);
        }
        match person.answer(&format!("the name of the model at {}:", self.name)).await? {
            id if id.is_empty() => bail!("no model was named"),
            id => Ok(id),
        }
    }

    /// The model of the demo at this provider.
    fn model(&self, id: &str) -> DemoModel {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let mut lines = Vec::new();
        match &self.kind {
            Kind::Key(known) => {
                let protocol = if known.name == "anthropic" { "anthropic" } else { "openai" };
                lines.push(format!("provider = \"{protocol}\""));
                lines.push(format!("id = {}", quoted(id)));
                lines.extend(known.base_url.map(|base_url| format!("base_url = \"{base_url}\"")));
                lines.push(format!("api_key_env = \"{}\"", known.variable));
            }
            Kind::Server { base_url, .. } => {
                lines.push("provider = \"openai\"".to_owned());
                lines.push(format!("id = {}", quoted(id)));
                lines.push(format!("base_url = {}", quoted(base_url)));
            }
            Kind::Local { .. } => lines.push("provider = \"local\"".to_owned()),
            Kind::Recorded => {
                lines.push("provider = \"recorded\"".to_owned());
                lines.push(format!("file = \"{RECORDING_FILE}\""));
            }
        }
        let (name, output_tokens_max) = match &self.kind {
            Kind::Local { .. } | Kind::Recorded => ("small", SMALL_TOKENS_MAX),
            Kind::Key(_) | Kind::Server { .. } => ("model", TOKENS_MAX),
        };
        DemoModel { name, table: format!("[models.{name}]\n{}\n", lines.join("\n")), output_tokens_max }
    }

    /// Sends one small request, as `longhaul models test` does.
    async fn test(&self, context: &Context, model: &DemoModel) -> fault::Result<()> {
        let config = Config::parse(&model.config())?;
        let environment = context.owner.model_environment()?;
        let asked = ModelSet::one(&config.models, model.name, &context.project, &environment)?;
        let is_local = matches!(self.kind, Kind::Local { .. });
        let tokens_max = if is_local { TEST_TOKENS_MAX } else { model.output_tokens_max };
        let probed = probe_plain(&*asked, model.name, tokens_max).await;
        if !probed.works {
            bail!("{} does not work: {}", self.name, printable(&probed.why, usize::MAX));
        }
        say(context, &format!("{}: works, {} ms, {} tokens", self.name, probed.took_ms, probed.usage.tokens()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_models::Discovery;
    use longhaul_models::discover::FoundServer;

    fn found() -> FoundModels {
        let server = FoundServer {
            usually: "lm studio".to_owned(),
            base_url: "http://127.0.0.1:1234/v1".to_owned(),
            models: vec!["qwen \"3\"".to_owned()],
        };
        let keys = ["ANTHROPIC_API_KEY", "XAI_API_KEY"].map(str::to_owned).to_vec();
        FoundModels { discovery: Discovery { keys, servers: vec![server] }, local: None }
    }

    #[test]
    fn keys_come_first_and_the_recording_is_always_there() {
        let names = |all: Vec<Provider>| all.into_iter().map(|provider| provider.name).collect::<Vec<_>>();
        assert_eq!(names(providers(found(), true)), ["anthropic", "xai", "lm-studio", "local", "recorded"]);
        let nothing = FoundModels { discovery: Discovery::default(), local: None };
        assert_eq!(names(providers(nothing, false)), ["recorded"]);
    }

    #[test]
    fn unasked_nothing_is_paid_or_fetched() {
        let mut all = providers(found(), true);
        all.retain(Provider::costs_nothing);
        assert_eq!(all.iter().map(|provider| provider.name.as_str()).collect::<Vec<_>>(), ["recorded"]);
        let fetched = FoundModels { local: Some("/m.gguf".into()), ..found() };
        let mut all = providers(fetched, true);
        all.retain(Provider::costs_nothing);
        assert_eq!(all.iter().map(|provider| provider.name.as_str()).collect::<Vec<_>>(), ["local", "recorded"]);
    }

    #[test]
    fn the_configuration_of_every_provider_is_read() {
        for provider in providers(found(), true) {
            let model = provider.model("an \"id\"");
            let config = Config::parse(&model.config());
            assert!(config.is_ok(), "{}: {}", provider.name, model.config());
            assert!(config.is_ok_and(|config| config.models.contains_key(model.name)));
        }
    }
}
