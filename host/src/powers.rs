//! The powers that a `longhaul.toml` asks for, one line each: programs it starts, hosts it reaches, directories, secrets,
//! tools. Imports compare them, trust is given to them, and people are shown them.
//!
//! A power is *plain* when it reaches nothing that a run without any configuration could not reach: the run's own tree,
//! tools over it, checks in the full sandbox, a provider's own address. `powers/found.rs` goes through the tables. Refuses
//! to grant anything: that is `config.rs`.

mod found;

pub(crate) use found::leads_out;

use crate::config::Config;
use longhaul_core::Digest;
use longhaul_core::text::printable;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Longest text of one power, in bytes.
const POWER_BYTES_MAX: usize = 400;

/// Differences that an error names. The rest are counted.
const SHOWN_MAX: usize = 6;

/// What a power reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerKind {
    /// A program that is started outside the sandbox of checks, or without a question.
    Command,
    /// A check: a program in the sandbox.
    Check,
    /// A host that a tool, a server or a notification reaches.
    Host,
    /// An address that the host itself sends to: models, telemetry, shared servers.
    Endpoint,
    /// A directory other than the tree of a run.
    Directory,
    /// The tree of a run.
    Tree,
    /// A secret, a key, or a variable of the environment.
    Secret,
    /// A tool, an agent or a model that a plugin may call, and the plugin itself.
    Tool,
    /// A wall that is lower than it is by default.
    Wall,
}

/// One power.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Power {
    /// What it reaches.
    pub kind: PowerKind,
    /// The table of `longhaul.toml`.
    pub table: String,
    /// What it is, as a person reads it.
    pub what: String,
    /// Whether a run without configuration could reach as much.
    pub is_plain: bool,
}

impl fmt::Display for Power {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names and words come from a file that somebody else may have written.
        write!(formatter, "[{}] {}", printable(&self.table, 100), printable(&self.what, POWER_BYTES_MAX))
    }
}

/// All powers of a configuration, in order.
#[must_use]
pub fn of(config: &Config) -> BTreeSet<Power> {
    found::Powers::of(config).0
}

/// The digest of the powers that are not plain.
#[must_use]
pub fn digest(powers: &BTreeSet<Power>) -> Digest {
    let lines: Vec<String> = powers.iter().filter(|power| !power.is_plain).map(unabridged).collect();
    Digest::of(lines.join("\n").as_bytes())
}

/// Differences between two sets, as one line: `+` is in the second alone, `-` in the first alone. None: there are none.
#[must_use]
pub fn difference<'a>(
    before: impl IntoIterator<Item = &'a Power>,
    after: impl IntoIterator<Item = &'a Power>,
) -> Option<String> {
    let (before, after): (BTreeSet<&Power>, BTreeSet<&Power>) =
        (before.into_iter().collect(), after.into_iter().collect());
    let lines = after.difference(&before).map(|power| format!("+ {power}"));
    let lines: Vec<String> = lines.chain(before.difference(&after).map(|power| format!("- {power}"))).collect();
    let more = lines.len().saturating_sub(SHOWN_MAX);
    let shown = lines.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join("; ");
    match (lines.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(shown),
        (false, more) => Some(format!("{shown}; and {more} more")),
    }
}

fn unabridged(power: &Power) -> String {
    format!("{:?}\0{}\0{}", power.kind, power.table, power.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn powers_of(more: &str) -> BTreeSet<Power> {
        let text = format!("[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\n{more}");
        of(&Config::parse(&text).unwrap_or_else(|error| panic!("{more}: {error:#}")))
    }

    #[track_caller]
    fn asked(more: &str) -> Vec<String> {
        powers_of(more).iter().filter(|power| !power.is_plain).map(ToString::to_string).collect()
    }

    #[test]
    fn what_a_run_without_configuration_could_do_is_plain() {
        let plain = "tools = [\"files\"]\n[tools.files]\nplugin = \"files\"\n\
                     directories = [{ guest = \"/work\", access = \"write\" }]\n\
                     [checks]\nunit = { argv = [\"cargo\", \"test\"] }\n";
        assert_eq!(asked(plain), Vec::<String>::new());
        for model in [
            "provider = \"local\"",
            "provider = \"openai\"\nid = \"m\"\nbase_url = \"http://127.0.0.1:8080/v1\"",
            "provider = \"openai\"\nid = \"m\"\napi_key_env = \"OPENAI_API_KEY\"",
        ] {
            assert_eq!(asked(&format!("[models.m]\n{model}\n")), Vec::<String>::new(), "{model}");
        }
    }

    #[test]
    fn what_reaches_further_is_a_power_with_its_table() {
        let one = |more: &str, expected: &str| {
            let found = asked(more);
            assert!(found.iter().any(|power| power == expected), "{expected}\n{found:#?}");
        };
        one("[notify]\ncommand = [\"sh\", \"-c\", \"id\"]", "[notify] starts `sh -c id` outside the sandbox");
        one("[notify]\nwebhook = \"https://u:p@x.example/s3cret\"", "[notify] posts to https://x.example");
        one("[mcp.m]\ncommand = [\"server\", \"a b\"]", "[mcp.m] starts `server 'a b'` in tree");
        one(
            "[mcp.m]\ncommand = [\"x\"]\nenv = { LD_PRELOAD = \"/tmp/a.so\" }",
            "[mcp.m] starts with LD_PRELOAD=/tmp/a.so",
        );
        one(
            "[mcp.m]\ncommand = [\"x\"]\nenv = { T = { from = \"HOME\" } }",
            "[mcp.m] is handed the variable `HOME` as T",
        );
        let tool = |line: &str| format!("[tools.t]\nplugin = \"t\"\n{line}");
        one(&tool("hosts = [\"GET https://a.example\"]"), "[tools.t] reaches GET https://a.example:443");
        one(
            &tool("directories = [{ guest = \"/k\", host = \"../keys\", access = \"read\" }]"),
            "[tools.t] reads the directory ../keys as /k",
        );
        one(
            &tool("secrets = [{ name = \"g\", hosts = [\"https://a.example\"] }]"),
            "[tools.t] sends the secret `g` to https://a.example:443 in `authorization`",
        );
        assert_eq!(asked(&tool("confirm_effects = true")), Vec::<String>::new(), "in the tree of the run alone");
        one(
            &tool("confirm_effects = true\nhosts = [\"https://a.example\"]"),
            "[tools.t] is believed what it says of its effects",
        );
        one(
            &tool("approval = { when_heard = \"allow\" }"),
            "[tools.t] lets calls pass after untrusted words were heard",
        );
        let shell = |settings: &str| {
            format!("[tools.s]\nplugin = \"builtin:shell\"\nsettings = {{ programs = [\"ls\"], {settings} }}")
        };
        one(&shell("read = [\"/home/u/.ssh\"]"), "[tools.s] reads /home/u/.ssh in the sandbox");
        one(&shell("env_inherit = [\"GH_TOKEN\"]"), "[tools.s] is handed the variable `GH_TOKEN`");
        one(&shell("sandbox_min = \"none\""), "[tools.s] sandbox_min = \"none\"");
        let browser = "[tools.b]\nplugin = \"builtin:browser\"\nsettings = { program = \"/tmp/x\" }";
        one(browser, "[tools.b] starts `/tmp/x`");
        one("[compile]\nsandbox_min = \"none\"", "[compile] sandbox_min = \"none\"");
        let server = "[mcp.m]\ncommand = [\"x\"]\nread_only = [\"look\"]\n";
        one(server, "[mcp.m] takes `look` for one that only reads");
        let digest = Digest::of(b"tools");
        one(&format!("{server}tools = \"{digest}\""), &format!("[mcp.m] takes the tools {digest} without a question"));
        one("[telemetry]\ncontent = true", "[telemetry] content = true");
        let check = "[checks]\nunit = { argv = [\"/home/u/venv/bin/pytest\"] }";
        one(check, "[checks.unit] sees /home/u/venv/bin/pytest in the sandbox, with its tool chain");
        // A key is as good as sent where the repository names the address.
        let model = "[models.m]\nprovider = \"openai\"\nid = \"m\"\nbase_url = \"https://x.example/v1\"\n";
        one(model, "[models.m] sends prompts to https://x.example");
        one(
            &format!("{model}api_key_env = \"OPENAI_API_KEY\""),
            "[models.m] sends the variable `OPENAI_API_KEY` as its key",
        );
        one(
            "[models.m]\nprovider = \"openai\"\nid = \"m\"\napi_key_file = \"/home/u/.ssh/id\"",
            "[models.m] reads a key from /home/u/.ssh/id",
        );
        // Names that only begin like this machine's are others.
        one(
            "[models.m]\nprovider = \"openai\"\nid = \"m\"\nbase_url = \"http://127.0.0.1.x.example/v1\"",
            "[models.m] sends prompts to http://127.0.0.1.x.example",
        );
    }

    #[test]
    fn a_goal_beyond_the_project_is_a_power() {
        for (goal, expected) in [("docs/GOAL.md", 0), ("../GOAL.md", 1), ("/etc/passwd", 1)] {
            let text = format!("[project]\nname = \"p\"\ngoal = \"{goal}\"\n[agents.code]\nplugin = \"react\"\n");
            let powers = of(&Config::parse(&text).expect("it is read"));
            assert_eq!(powers.iter().filter(|power| !power.is_plain).count(), expected, "{goal}");
        }
    }

    #[test]
    fn a_difference_is_one_line_with_both_sides_and_counts_what_it_leaves_out() {
        let (none, one) = (powers_of(""), powers_of("[notify]\ncommand = [\"a\\u001b[2J\"]"));
        assert_eq!(difference(&none, &none), None);
        let told = difference(&none, &one).expect("a difference");
        assert!(told.starts_with("+ [notify] starts ") && !told.contains('\u{1b}'), "{told:?}");
        assert!(difference(&one, &none).expect("a difference").starts_with("- [notify]"));
        let checks: String = (0..9).map(|number| format!("c{number} = {{ argv = [\"true\"] }}\n")).collect();
        let many = powers_of(&format!("[checks]\n{checks}"));
        assert!(difference(&none, &many).expect("a difference").ends_with("; and 3 more"));
        assert_eq!((digest(&none), digest(&none) == digest(&one)), (digest(&many), false), "checks are plain");
    }
}
