//! A server as a child process: started with the listed environment, connected by its pipes, and killed with all its
//! processes; also when the host itself is killed.
//!
//! It runs in the sandbox (`walled.rs`). One that cannot run there runs without it behind a keeper (`keeper.rs`), if
//! its table says so.

use crate::config::{McpConfig, Value};
use crate::environment::McpEnvironment;
use crate::walled::Walled;
use longhaul_core::process_registry::{Child as Listing, ChildKind, Registered as _, RegistryEntry};
use longhaul_egress::StreamRedactor;
use longhaul_sandbox::Level;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Bytes of a server's last standard error that its failure message repeats.
const LAST_WORDS_BYTES_MAX: usize = 2_000;

/// The longest time that a server may take to end by itself after its input has ended.
const GRACE: Duration = Duration::from_secs(2);

/// The time for which the end of a server is awaited after its connection ended, to find the reason.
const END_WAIT: Duration = Duration::from_secs(2);

/// The pipes of a server.
pub(crate) type Pipes = (ChildStdout, Box<dyn AsyncWrite + Unpin + Send>);

/// A running server. Dropping it ends all its processes, after a grace period.
pub(crate) enum Process {
    Walled(Option<Box<Walled>>),
    Bare(Box<Bare>),
}

impl Process {
    /// Starts the command. Standard error of one without a sandbox is redacted here; the sandbox redacts its own.
    pub(crate) async fn start(
        name: &str,
        config: &McpConfig,
        around: &McpEnvironment,
        stream_redactor: Option<StreamRedactor>,
    ) -> Result<(Self, Pipes), String> {
        let directory = config.directory_in(&around.tree, &around.base);
        if !directory.is_dir() {
            return Err(format!("its directory `{}` is not there", directory.display()));
        }
        let env = environment(config, around)?;
        if config.is_bare() {
            let (bare, stdout, stdin) = Bare::start(name, config, around, stream_redactor, &directory, env)?;
            return Ok((Self::Bare(Box::new(bare)), (stdout, Box::new(stdin))));
        }
        let (walled, stdout, stdin) = Walled::start(name, config, around, env).await?;
        Ok((Self::Walled(Some(Box::new(walled))), (stdout, Box::new(stdin))))
    }

    /// Its sandbox level.
    pub(crate) fn level(&self) -> Option<Level> {
        match self {
            Self::Bare(_) => Some(Level::None),
            Self::Walled(walled) => walled.as_ref().and_then(|walled| walled.level()),
        }
    }

    /// The limit of the sandbox that ended it, if one did, and the end of its standard error, without secrets.
    pub(crate) async fn ended(&mut self) -> (Option<&'static str>, String) {
        match self {
            Self::Bare(bare) => (None, bare.last_words()),
            Self::Walled(Some(walled)) => walled.ended(END_WAIT).await,
            Self::Walled(None) => (None, String::new()),
        }
    }
}

impl Drop for Process {
    /// Its input has ended by now, which asks it to end. One without a sandbox does the same by itself.
    fn drop(&mut self) {
        let Self::Walled(walled) = self else { return };
        if let (Some(walled), Ok(runtime)) = (walled.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(walled.end(GRACE));
        }
    }
}

/// The variables of the table, and no others of the host.
fn environment(config: &McpConfig, around: &McpEnvironment) -> Result<BTreeMap<String, String>, String> {
    let mut env = BTreeMap::new();
    for (name, value) in &config.env {
        let value = match value {
            Value::Plain(text) => Some(text.clone()),
            Value::Secret { secret: named } => Some((around.secret)(named)?.expose().to_owned()),
            Value::From { from } => std::env::var(from).ok(),
        };
        env.extend(value.map(|value| (name.clone(), value)));
    }
    Ok(env)
}

/// A server outside of the sandbox. Dropping it kills its process group.
pub(crate) struct Bare {
    child: Option<Child>,
    group: Option<Pid>,
    said: Arc<Mutex<Vec<u8>>>,
    /// Its entry in the list of children.
    entry: Option<RegistryEntry<Listing>>,
}

impl Bare {
    /// Starts the command behind its keeper.
    fn start(
        name: &str,
        config: &McpConfig,
        around: &McpEnvironment,
        stream_redactor: Option<StreamRedactor>,
        directory: &Path,
        env: BTreeMap<String, String>,
    ) -> Result<(Self, ChildStdout, ChildStdin), String> {
        let (keeper, arguments) = around.keeper.split_first().ok_or("it has no keeper")?;
        let mut command = Command::new(keeper);
        command.args(arguments).arg(std::process::id().to_string()).args(&config.command);
        command.current_dir(directory).env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path))).envs(env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.process_group(0).kill_on_drop(true).spawn();
        let mut child = child.map_err(|error| format!("its keeper cannot be started: {error}"))?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let entry = child.id().map(|pid| {
            let mut listed = Listing::new(pid, ChildKind::McpServer, name);
            listed.place = Some(directory.to_owned());
            listed.enter()
        });
        let said = Arc::new(Mutex::new(Vec::new()));
        let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
        let (Some(stdout), Some(stdin), Some(stderr)) = pipes else { return Err("it has no pipes".into()) };
        tokio::spawn(listen(stderr, stream_redactor, Arc::clone(&said)));
        Ok((Self { child: Some(child), group, said, entry }, stdout, stdin))
    }

    /// The end of its standard error, without secrets.
    fn last_words(&self) -> String {
        if let Some(hit) = self.entry.as_ref().and_then(|entry| entry.hit()) {
            return format!(
                "it was ended: {hit}; its limits are those of [mcp-server] in resources.toml of the data directory"
            );
        }
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&said).trim().to_owned()
    }
}

impl Drop for Bare {
    /// Its input has ended by now, which asks it to end; remaining processes are killed after the grace period. Without
    /// a runtime, it is killed at once.
    fn drop(&mut self) {
        let (Some(mut child), group) = (self.child.take(), self.group) else { return };
        let kill = move || {
            if let Some(group) = group {
                // An error means that the group does not exist any more, as intended.
                let _ = kill_process_group(group, Signal::KILL);
            }
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return kill() };
        let guard = OnDrop(Some(kill));
        runtime.spawn(async move {
            // The guard kills also when the runtime ends before the grace.
            let guard = guard;
            let _ = tokio::time::timeout(GRACE, child.wait()).await;
            drop(guard);
        });
    }
}

struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(act) = self.0.take() {
            act();
        }
    }
}

/// Reads to the end, so that the server never blocks on a full pipe, and keeps the last part. It is redacted before it
/// is cut: half a secret would not be found any more.
async fn listen(
    mut stderr: impl AsyncRead + Unpin,
    mut stream_redactor: Option<StreamRedactor>,
    said: Arc<Mutex<Vec<u8>>>,
) {
    let mut piece = [0; 4_096];
    while let Ok(length @ 1..) = stderr.read(&mut piece).await {
        match &mut stream_redactor {
            Some(stream_redactor) => keep(&said, &stream_redactor.push(&piece[..length])),
            None => keep(&said, &piece[..length]),
        }
    }
    keep(&said, &stream_redactor.map(|mut stream_redactor| stream_redactor.finish()).unwrap_or_default());
}

fn keep(said: &Mutex<Vec<u8>>, more: &[u8]) {
    let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
    said.extend_from_slice(more);
    let over = said.len().saturating_sub(LAST_WORDS_BYTES_MAX);
    said.drain(..over);
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_egress::{HeaderSecret, Secret, SecretPlaceholders};

    const TOKEN: &str = "tok-1234567890-abcdefghij-0987654321";

    async fn heard(stderr: &str) -> String {
        let secret = Secret::new(TOKEN).unwrap();
        let key = HeaderSecret { name: "t".into(), secret, hosts: Vec::new(), header: http::header::AUTHORIZATION };
        let placeholders = SecretPlaceholders::new("mcp.s", vec![key], || [7; 32]);
        let said = Arc::default();
        listen(stderr.as_bytes(), placeholders.stream_redactor(), Arc::clone(&said)).await;
        let said = said.lock().unwrap();
        assert!(said.len() <= LAST_WORDS_BYTES_MAX);
        String::from_utf8_lossy(&said).into_owned()
    }

    #[tokio::test]
    async fn no_part_of_a_secret_is_among_the_last_words_wherever_they_begin() {
        for after in LAST_WORDS_BYTES_MAX - TOKEN.len()..=LAST_WORDS_BYTES_MAX {
            let heard = heard(&format!("before {TOKEN}{}", "x".repeat(after))).await;
            assert!(heard.ends_with(&"x".repeat(after)), "{after}");
            let rest = heard.trim_end_matches('x');
            assert!("before [secret]".ends_with(rest), "{after}: {rest}");
        }
    }
}
