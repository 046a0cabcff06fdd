//! The powers of a `longhaul.toml`, one line each: programs it starts, hosts it reaches, directories, secrets, tools.
//! Imports compare them, a person trusts them, and people see them.
//!
//! A power is *plain* when it reaches nothing that a run without any configuration could not reach: the run's own tree,
//! tools over it, checks in the full sandbox, a provider's own address. A *guard* is the opposite of a power: a
//! restriction that the file tightens. It is listed beside them, so that a person is asked before it goes.
//! `powers/found.rs` goes through the tables. Refuses to grant anything: that is [`crate::grants`].

mod found;
mod power;

pub use found::leads_out;
pub use power::{Power, PowerKind};

use crate::tables::Config;
use longhaul_core::store::Key;
use longhaul_core::text::printable;
use longhaul_core::{Digest, RunId};
use power::POWER_BYTES_MAX;
use std::collections::BTreeSet;
use std::path::Path;

/// Differences that an error names. The rest are counted.
const SHOWN_MAX: usize = 6;

/// All powers of a configuration, in order.
#[must_use]
pub fn of(config: &Config) -> BTreeSet<Power> {
    found::of(config, None)
}

/// The same for the configuration of a project. Its own files that a command or a table with grants names are
/// identified by their digests: a change of such a file changes the program that is started.
#[must_use]
pub fn of_project(config: &Config, directory: &Path) -> BTreeSet<Power> {
    found::of(config, Some(directory))
}

/// The key of the row with the powers of a run that continued with a file which grants more than the one it began with.
/// It is not under the run's own name, so no checkpoint brings it along.
#[must_use]
pub fn key_of_run(run: &RunId) -> Key {
    Key::of("run-powers").and(run.as_str())
}

/// The digest of the powers that an agreement keeps.
#[must_use]
pub fn digest(powers: &BTreeSet<Power>) -> Digest {
    let lines: Vec<String> = powers.iter().filter(|power| power.is_agreed_on()).map(unabridged).collect();
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
    bounded(lines.chain(before.difference(&after).map(|power| format!("- {power}"))).collect())
}

/// The same for two sets of lines.
#[must_use]
pub fn differing_lines(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Option<String> {
    let line = |sign: &str, line: &String| format!("{sign} {}", printable(line, POWER_BYTES_MAX));
    let lines = after.difference(before).map(|added| line("+", added));
    bounded(lines.chain(before.difference(after).map(|gone| line("-", gone))).collect())
}

fn bounded(lines: Vec<String>) -> Option<String> {
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
        for name in ["when_untrusted", "when_heard"] {
            one(
                &tool(&format!("approval = {{ {name} = \"allow\" }}")),
                "[tools.t] lets calls pass after untrusted words were heard",
            );
        }
        let shell = |settings: &str| {
            format!("[tools.s]\nplugin = \"builtin:shell\"\nsettings = {{ programs = [\"ls\"], {settings} }}")
        };
        one(&shell("read = [\"/home/u/.ssh\"]"), "[tools.s] reads /home/u/.ssh in the sandbox");
        one(&shell("env_inherit = [\"GH_TOKEN\"]"), "[tools.s] is handed the variable `GH_TOKEN`");
        one(&shell("sandbox_min = \"none\""), "[tools.s] sandbox_min = \"none\"");
        let native = "[tools.python]\nplugin = \"python\"\nruntime = \"native\"\n";
        assert_eq!(asked(native), Vec::<String>::new(), "no more than a check");
        one(&format!("{native}venv = \"/v\""), "[tools.python] reads /v in the sandbox");
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
        // A key is as good as sent if the repository names the address.
        let model = "[models.m]\nprovider = \"openai\"\nid = \"m\"\nbase_url = \"https://x.example/v1\"\n";
        one(model, "[models.m] sends prompts to https://x.example/v1");
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
            "[models.m] sends prompts to http://127.0.0.1.x.example/v1",
        );
    }

    /// Another path on the same host used to be no difference.
    #[test]
    fn an_address_is_told_whole_and_what_may_be_a_key_in_it_by_its_digest() {
        let short = |address: &str| Digest::of(address.as_bytes()).short();
        let hook = |address: &str| asked(&format!("[notify]\nwebhook = \"{address}\""));
        let secret = "https://u:p@x.example/s3cret";
        assert_eq!(hook(secret), [format!("[notify] posts to https://x.example, {}", short(secret))]);
        assert_eq!(hook("https://x.example"), ["[notify] posts to https://x.example"]);
        assert_ne!(hook("https://x.example/a"), hook("https://x.example/b"));
        let server = |address: &str| asked(&format!("[mcp.m]\nurl = \"{address}\""));
        assert_eq!(server("https://x.example/mine/mcp"), ["[mcp.m] sends calls to https://x.example/mine/mcp"]);
        for keyed in [
            "https://x.example/s/2fa8c1d97b6e4405a1b2/mcp",
            "https://x.example/mcp?key=hunter2",
            "https://x.example/s/2fa8c1d97b6e4405a1b2/mcp?key=hunter2",
        ] {
            let told = server(keyed).concat();
            assert!(told.ends_with(&format!(", {}", short(keyed))), "{told}");
            assert!(!told.contains("2fa8") && !told.contains("hunter2"), "{told}");
        }
        let telemetry = |path: &str| asked(&format!("[telemetry]\notlp_endpoint = \"https://x.example/{path}\""));
        assert_ne!(telemetry("mine"), telemetry("theirs"));
    }

    /// Another component in its place used to get all that its table grants.
    #[test]
    fn a_plugin_is_a_power_where_its_table_reaches_on_and_where_it_is_a_file() {
        let tool = |plugin: &str, more: &str| asked(&format!("[tools.t]\nplugin = \"{plugin}\"\n{more}"));
        let hosts = "hosts = [\"https://a.example\"]";
        for more in [
            hosts,
            "secrets = [{ name = \"g\", hosts = [\"https://a.example\"] }]",
            "directories = [{ guest = \"/k\", host = \"../keys\", access = \"read\" }]",
        ] {
            assert!(tool("web", more).contains(&"[tools.t] is the plugin `web`".to_owned()), "{more}");
        }
        let tree = "confirm_effects = true\ndirectories = [{ guest = \"/w\", access = \"write\" }]";
        assert_eq!(tool("files", tree), Vec::<String>::new());
        for path in ["./evil.wasm", "/tmp/evil.wasm"] {
            assert_eq!(tool(path, ""), [format!("[tools.t] is the plugin `{path}`")]);
        }
    }

    /// Every author of the repository could change a script behind a command without an agreement.
    #[test]
    fn a_file_of_the_project_that_a_command_names_is_told_by_its_digest() {
        let (folder, outside) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let project = folder.path().canonicalize().expect("there");
        for (file, text) in [("tell.sh", "one"), ("lib/server.py", "one"), ("evil.wasm", "one"), ("free.wasm", "one")] {
            std::fs::create_dir_all(project.join(file).parent().expect("a folder")).expect("ours");
            std::fs::write(project.join(file), text).expect("ours");
        }
        std::fs::write(outside.path().join("theirs"), "one").expect("ours");
        std::os::unix::fs::symlink(outside.path().join("theirs"), project.join("link")).expect("ours");
        let text = format!(
            "[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\n\
             [notify]\ncommand = [\"sh\", \"-c\", \"exec ./tell.sh \\\"$@\\\"\"]\n\
             [notify.email]\nto = [\"a@b.example\"]\nfrom = \"a@b.example\"\nsendmail = [\"./link\", {:?}]\n\
             [mcp.m]\ncommand = [\"python3\", \"server.py\", \"../missing\"]\ndirectory = \"lib\"\n\
             [tools.t]\nplugin = \"./evil.wasm\"\nhosts = [\"https://a.example\"]\n\
             [tools.u]\nplugin = \"./free.wasm\"\n",
            outside.path().join("theirs")
        );
        let config = Config::parse(&text).expect("it is read");
        let told = || -> Vec<String> {
            let more = of_project(&config, &project).into_iter().filter(|power| !of(&config).contains(power));
            more.map(|power| power.to_string()).collect()
        };
        let line = |table: &str, file: &str, text: &str| {
            format!("[{table}] uses {file} of the project, {}", Digest::of(text.as_bytes()))
        };
        let all = |server: &str| {
            let mut all = vec![
                line("mcp.m", "lib/server.py", server),
                line("notify", "tell.sh", "one"),
                line("notify.email", "link", "one"),
                line("tools.t", "evil.wasm", "one"),
            ];
            all.sort();
            all
        };
        let mut before = told();
        before.sort();
        assert_eq!(before, all("one"));
        std::fs::write(project.join("lib/server.py"), "two").expect("ours");
        let mut after = told();
        after.sort();
        assert_eq!(after, all("two"));
    }

    #[test]
    fn what_is_asked_about_less_than_by_default_is_a_power_and_more_is_a_guard() {
        let found = |more: &str| -> Vec<String> {
            let powers = powers_of(more).into_iter();
            let walls = powers.filter(|power| matches!(power.kind, PowerKind::Wall | PowerKind::Guard));
            walls.map(|power| format!("{}{power}", if power.is_plain { "" } else { "! " })).collect()
        };
        let check = |more: &str, expected: &[&str]| assert_eq!(found(more), expected, "{more}");
        let tool = |approval: &str| format!("[tools.t]\nplugin = \"t\"\napproval = {{ {approval} }}");
        let browser = |approval: &str| format!("[tools.t]\nplugin = \"builtin:browser\"\napproval = {{ {approval} }}");
        let server = "[mcp.m]\ncommand = [\"x\"]\napproval = { default = \"ask\", functions = { f = \"allow\" } }";
        check(&tool("default = \"allow\""), &[]);
        check(&tool("default = \"ask\""), &["[tools.t] asks a person before calls"]);
        check(&tool("default = \"deny\""), &["[tools.t] asks a person before calls", "[tools.t] refuses calls"]);
        check(&tool("functions = { f = \"ask\", g = \"allow\" }"), &["[tools.t] asks a person before calls of `f`"]);
        check(
            &tool(
                "functions = { f = \"ask\" }, rules = [{ function = \"f\", where = { a = \"x*\" }, then = \"allow\" }]",
            ),
            &[
                "! [tools.t] makes calls of `f` with {\"a\":\"x*\"} without a question",
                "[tools.t] asks a person before calls of `f`",
            ],
        );
        check(&tool("when_heard = \"deny\""), &["[tools.t] refuses calls after untrusted words were heard"]);
        check(&browser("default = \"ask\""), &[]);
        check(&browser("default = \"allow\""), &["! [tools.t] makes calls without a question"]);
        check(&browser("functions = { open = \"allow\" }"), &["! [tools.t] makes calls of `open` without a question"]);
        check(server, &["! [mcp.m] makes calls of `f` without a question", "[mcp.m] asks a person before calls"]);
        check("[plan]\naccept = \"ask\"", &["[plan] asks a person to agree to a plan"]);
        check("[protect]\npaths = [\"/deploy/**\"]", &["[protect] protects `/deploy/**`"]);
        check("[run]\nsandbox_min = \"runsc\"", &["[run] sandbox_min = \"runsc\""]);
        check(
            "agents = [\"reader\"]\n[agents.reader]\nplugin = \"react\"\nquarantine = true\n\
             schema = { type = \"object\", properties = { n = { type = \"integer\" } }, required = [\"n\"] }",
            &["[agents.reader] hears untrusted words in quarantine"],
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
