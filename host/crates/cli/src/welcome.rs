//! `longhaul` without a command, at a terminal: a sentence about itself, its findings about this machine, and three
//! next steps.
//!
//! It starts nothing, opens no store and makes no data directory.

use super::context::Context;
use super::exit::Exit;
use super::help::layout::{columns, wrapped};
use super::machine::{self, FoundModels};
use super::skill;
use longhaul_client::wire;
use longhaul_config::FILE;
use longhaul_config::server::ServerSettings;
use longhaul_core::fault;
use longhaul_models::discover::FoundServer;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Programs of other coding agents.
const AGENTS: [&str; 4] = ["claude", "codex", "gemini", "aider"];

/// Longest time for the server of the data directory to accept a connection.
const ANSWER: Duration = Duration::from_millis(300);

/// Steps that are shown.
const STEPS: usize = 3;

/// Columns of the names of what was found, and of the commands, with the space before and behind them.
const NAME_COLUMNS: usize = 16;
const COMMAND_COLUMNS: usize = 32;

/// A narrower terminal has each command on a line of its own.
const COLUMNS_OF_STEP: usize = 64;

/// The surroundings of a first start on this machine.
#[derive(Default)]
struct Surroundings {
    keys: Vec<String>,
    servers: Vec<FoundServer>,
    /// The small model that was fetched.
    local: Option<PathBuf>,
    /// True when this program can run it.
    has_local: bool,
    /// Programs of other agents.
    agents: Vec<&'static str>,
    repository: Option<PathBuf>,
    /// True when the directory has a `longhaul.toml`.
    is_project: bool,
    wants_skill: bool,
    /// True when a process owns the data directory.
    is_owned: bool,
    /// The address of the HTTP server of this data directory.
    server: Option<SocketAddr>,
}

/// A command and what it is for.
type Step = (String, &'static str);

/// Prints the surroundings and the steps.
pub(super) async fn run(context: &Context) -> fault::Result<Exit> {
    let found = look(context).await?;
    outtext!(found.text(columns()));
    Ok(Exit::Done)
}

async fn look(context: &Context) -> fault::Result<Surroundings> {
    let (models, (is_owned, server)) = tokio::join!(machine::models(), server(context));
    let FoundModels { discovery, local } = models?;
    let project = &context.project;
    Ok(Surroundings {
        keys: discovery.keys,
        servers: discovery.servers,
        local,
        has_local: context.owner.has_local_model(),
        agents: AGENTS.into_iter().filter(|name| machine::has_program(name)).collect(),
        repository: machine::repository_of(project).map(Into::into),
        is_project: project.join(FILE).is_file(),
        wants_skill: skill::is_wanted(project),
        is_owned,
        server,
    })
}

/// The owner of the data directory: true when there is one, and the address of its HTTP server, if one accepts
/// connections.
async fn server(context: &Context) -> (bool, Option<SocketAddr>) {
    let is_owned = wire::connect(&context.home).await.is_ok();
    let settings = ServerSettings::read(context.home.path()).ok().filter(|_| is_owned);
    let Some(address) = settings.map(|settings| settings.listen) else { return (is_owned, None) };
    let accepts = timeout(ANSWER, TcpStream::connect(address)).await.is_ok_and(|connected| connected.is_ok());
    (is_owned, accepts.then_some(address))
}

impl Surroundings {
    /// The whole text, for a terminal of so many columns.
    fn text(&self, columns: usize) -> String {
        let first =
            concat!("longhaul ", env!("CARGO_PKG_VERSION"), " runs long-lived AI agents, and survives being killed.");
        let mut text = wrapped(first, "", "", columns);
        text += "\nFound here:\n";
        for (what, words) in self.lines() {
            text += &wrapped(&words, &format!("  {what:<13} "), &" ".repeat(NAME_COLUMNS), columns);
        }
        text += "\nWhat you can do now:\n";
        for (command, what) in self.steps().into_iter().take(STEPS) {
            text += &if columns < COLUMNS_OF_STEP {
                format!("  {command}\n{}", wrapped(what, "      ", "      ", columns))
            } else {
                wrapped(what, &format!("  {command:<29} "), &" ".repeat(COMMAND_COLUMNS), columns)
            };
        }
        text + "\nEverything else: longhaul help\n"
    }

    /// One line for each thing, with its name.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        match &self.keys[..] {
            [] => lines.push(("keys", "none in the environment".to_owned())),
            keys => lines.push(("keys", keys.join(", "))),
        }
        for FoundServer { usually, base_url, models } in &self.servers {
            let first = models.first().map(|model| format!(" with {model}")).unwrap_or_default();
            lines.push(("model server", format!("{usually} at {base_url}{first}")));
        }
        if self.servers.is_empty() {
            lines.push(("model server", "none on the usual ports of this machine".to_owned()));
        }
        lines.push(("local model", self.local_words()));
        let agents = if self.agents.is_empty() { "none on PATH".to_owned() } else { self.agents.join(", ") };
        lines.push(("other agents", agents));
        lines.push(("project", self.project_words()));
        let server = match (self.server, self.is_owned) {
            (Some(address), _) => format!("http://{address}"),
            (None, true) => "none; another longhaul works in this data directory".to_owned(),
            (None, false) => "none".to_owned(),
        };
        lines.push(("server", server));
        lines
    }

    fn local_words(&self) -> String {
        match (&self.local, self.has_local) {
            (Some(path), true) => path.display().to_string(),
            (None, true) => "none; 98 MB are fetched with: longhaul models pull smollm2".to_owned(),
            (_, false) => "none; this longhaul was built without".to_owned(),
        }
    }

    fn project_words(&self) -> String {
        let repository = self.repository.as_ref().map(|path| format!("git repository {}", path.display()));
        match (repository, self.is_project) {
            (Some(repository), true) => format!("{repository}, with {FILE}"),
            (Some(repository), false) => format!("{repository}, without {FILE}"),
            (None, true) => format!("{FILE}, without a git repository"),
            (None, false) => "no git repository here".to_owned(),
        }
    }

    /// The steps that are possible now, the most useful first.
    fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let mut add = |command: &str, what: &'static str| steps.push((command.to_owned(), what));
        if self.is_project {
            add("longhaul check", "look for everything that would stop a run");
            add("longhaul run", "work on the goal of this project");
        } else {
            add("longhaul onboard", "try it: a demo, a kill and a resume, in a minute");
        }
        if !self.is_project && self.repository.is_some() {
            add("longhaul init", "make this repository a project");
        }
        if self.wants_skill {
            add("longhaul skill install", "teach your coding agent to use Longhaul");
        }
        if let Some(address) = self.server {
            add(&format!("http://{address}"), "open the page of the server");
        }
        if self.is_project {
            add("longhaul status", "show the newest run and its features");
        }
        if self.repository.is_none() {
            add("longhaul new DIRECTORY", "make a project with a git repository");
        }
        let has_model = self.local.is_some() || !self.keys.is_empty() || !self.servers.is_empty();
        if self.has_local && !has_model {
            add("longhaul models pull smollm2", "fetch a small model, 98 MB, without a key");
        }
        add("longhaul exec FILE", "run untrusted Python or JavaScript in a sandbox");
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(found: Surroundings, expected: [&str; STEPS]) {
        let steps: Vec<String> = found.steps().into_iter().take(STEPS).map(|(command, _)| command).collect();
        assert_eq!(steps, expected);
    }

    #[test]
    fn three_steps_fit_what_is_here() {
        check(Surroundings::default(), ["longhaul onboard", "longhaul new DIRECTORY", "longhaul exec FILE"]);
        let repository = Some(PathBuf::from("/shop"));
        check(
            Surroundings { repository: repository.clone(), wants_skill: true, ..Surroundings::default() },
            ["longhaul onboard", "longhaul init", "longhaul skill install"],
        );
        check(
            Surroundings { repository, is_project: true, ..Surroundings::default() },
            ["longhaul check", "longhaul run", "longhaul status"],
        );
        check(
            Surroundings { has_local: true, ..Surroundings::default() },
            ["longhaul onboard", "longhaul new DIRECTORY", "longhaul models pull smollm2"],
        );
    }

    /// At 40 columns the terminal used to break lines in the middle of words.
    #[test]
    fn the_text_fits_the_terminal() {
        let found = Surroundings { has_local: true, ..Surroundings::default() };
        for columns in [40, 64, 80, 100] {
            let text = found.text(columns);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(columns), "{columns}:\n{text}");
        }
        let text = found.text(80);
        assert!(
            text.contains("  longhaul onboard              try it: a demo, a kill and a resume, in a minute\n"),
            "{text}"
        );
        assert!(found.text(40).contains("\n  longhaul onboard\n      try it: a demo, a kill and a\n"));
    }

    #[test]
    fn what_is_here_is_told_a_line_each() {
        let servers = vec![FoundServer {
            usually: "ollama".to_owned(),
            base_url: "http://127.0.0.1:11434/v1".to_owned(),
            models: vec!["qwen3:8b".to_owned()],
        }];
        let found = Surroundings { servers, agents: vec!["claude"], ..Surroundings::default() };
        let lines: Vec<String> = found.lines().into_iter().map(|(what, text)| format!("{what}: {text}")).collect();
        assert_eq!(
            lines,
            [
                "keys: none in the environment",
                "model server: ollama at http://127.0.0.1:11434/v1 with qwen3:8b",
                "local model: none; this longhaul was built without",
                "other agents: claude",
                "project: no git repository here",
                "server: none",
            ]
        );
    }
}
