//! The settings of this agent, under `[agents.NAME.settings]` of `longhaul.toml`.

use longhaul_sdk::conversation::Options;
use serde::Deserialize;

/// The way in which the agent works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Style {
    /// The model picks tools, one step at a time.
    #[default]
    Actions,
    /// The model answers with one code block, which becomes one file.
    File,
}

/// The form in which the model names its actions in the style `actions`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Calls {
    /// As JSON under a schema: works with every model.
    #[default]
    Schema,
    /// As the tool calls of its provider.
    Native,
}

/// Unknown fields are errors: a misspelt cap would not hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// The role in the system prompt. Default: by style.
    pub(crate) prompt: Option<String>,
    /// Default `actions`.
    pub(crate) style: Style,
    /// Style `actions`: default `schema`.
    pub(crate) calls: Calls,
    /// The granted tools or functions to use, such as `files` or `files.write`. Default: all.
    pub(crate) tools: Vec<String>,
    /// Style `file`: the file to write. Default: what the task says.
    pub(crate) file: Option<String>,
    /// Style `file`: the word behind the fence. Default `python`.
    pub(crate) language: String,
    /// Style `file`: the tool that writes. Default `files`.
    pub(crate) files_tool: String,
    /// Style `file`: start the reply with the fence and stop at the next. Default true; false for
    /// providers that cannot continue a reply.
    pub(crate) prefill: bool,
    /// Style `file`: run the pinned checks after writing and try again. Default false.
    pub(crate) self_check: bool,
    /// Style `actions`: the most replies of the model, at most 200. Default 50 on a repository, else 10.
    pub(crate) steps_max: Option<u32>,
    /// Replies in a row that cannot be used; in the style `file` also writings. Default 3, at most 20.
    #[serde(alias = "max_tries")]
    pub(crate) tries_max: u32,
    /// The temperature of the first round and attempt. Default: the model's own.
    pub(crate) temperature: Option<f32>,
    /// From the second round or try on. Default 0.8.
    pub(crate) temperature_retry: f32,
    /// Default 0; the second round adds 1, the third 2.
    pub(crate) seed: u32,
    /// Default: the operator's limit.
    pub(crate) output_tokens_max: Option<u32>,
    /// The most characters of a tool's answer that the model sees. Default 4000.
    pub(crate) observation_chars_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prompt: None,
            style: Style::Actions,
            calls: Calls::Schema,
            tools: Vec::new(),
            file: None,
            language: "python".to_owned(),
            files_tool: "files".to_owned(),
            prefill: true,
            self_check: false,
            steps_max: None,
            tries_max: 3,
            temperature: None,
            temperature_retry: 0.8,
            seed: 0,
            output_tokens_max: None,
            observation_chars_max: 4_000,
        }
    }
}

impl Settings {
    pub(crate) fn clamped(mut self) -> Self {
        self.steps_max = self.steps_max.map(|steps| steps.clamp(1, 200));
        self.tries_max = self.tries_max.clamp(1, 20);
        self
    }

    /// The options of a round (from 1), try `tried` (from 0).
    ///
    /// The first of all is the operator's; each later one differs, or it would fail the same way.
    pub(crate) fn options(&self, round: u32, tried: u32) -> Options {
        let rounds = round.saturating_sub(1);
        let is_first = rounds == 0 && tried == 0;
        // Far enough apart that a try never repeats the seed of a later round.
        let offset = rounds.wrapping_add(tried.wrapping_mul(1_000));
        Options {
            temperature: if is_first { self.temperature } else { Some(self.temperature_retry) },
            seed: Some(self.seed.wrapping_add(offset)),
            output_tokens_max: self.output_tokens_max,
            ..Options::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_and_each_try_has_a_seed_of_its_own() {
        let settings = Settings { seed: 7, temperature: Some(0.1), ..Settings::default() };
        let of = |round, tried| {
            let options = settings.options(round, tried);
            (options.seed, options.temperature)
        };
        assert_eq!(of(1, 0), (Some(7), Some(0.1)));
        assert_eq!(of(2, 0), (Some(8), Some(0.8)));
        assert_eq!(of(3, 0), (Some(9), Some(0.8)));
        assert_eq!(of(1, 1), (Some(1_007), Some(0.8)));
        assert_eq!(of(0, 0), (Some(7), Some(0.1)), "a round 0 counts as the first");
    }

    #[test]
    fn a_misspelt_setting_is_refused_by_name() {
        let error = longhaul_sdk::json::read::<Settings>("settings", r#"{"step_max": 3}"#);
        assert!(error.is_err_and(|error| error.to_string().contains("`step_max`")));
    }
}
