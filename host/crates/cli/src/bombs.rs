//! Runs the bombs of the corpus: each is loaded within small limits, run if it loads, and its end compared with the
//! expected one.
//!
//! A refusal for another reason than the expected one does not count, since it may hide a hole. Where the host could
//! not compile, the result shows nothing.

use longhaul_bombs::{Bomb, BombForm, ExpectedEnd, LIMITS};
use longhaul_capabilities::{Console, InvocationScope, InvocationSetup, null};
use longhaul_core::grant::Grants;
use longhaul_core::{InvocationId, Limits};
use longhaul_engine::{CallError, Cancel, CompileLimits, Engine, EngineOptions, Jail, LoadError};
use longhaul_home::MachineClock;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Wall-clock time of a compilation and of a call, in milliseconds, also on a busy machine.
const WALL_MS_MAX: u64 = 30_000;

/// Caps of the compiler's process, one of which an exhausting bomb reaches.
const EXHAUSTED: [&str; 2] = ["cpu_ms_max", "memory_bytes_max"];

/// The verdict over the end of a bomb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BombVerdict {
    /// The bomb ended as it must.
    Held,
    /// The bomb ended otherwise.
    NotHeld,
    /// The host could not load anything.
    NotTried,
}

impl BombVerdict {
    /// The verdict in a word, as it is serialized.
    pub fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::NotHeld => "not-held",
            Self::NotTried => "not-tried",
        }
    }
}

/// The outcome of a bomb.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BombOutcome {
    /// The verdict.
    pub verdict: BombVerdict,
    /// The end, in words.
    pub said: String,
    /// Wall-clock time from load to end, in milliseconds.
    pub ms: u64,
}

/// Makes an engine with the limits of the corpus. `program` compiles; `cache` is an empty directory of the caller.
///
/// # Errors
/// Those of [`Engine::new`].
pub fn engine(cache: PathBuf, program: PathBuf) -> Result<Engine, LoadError> {
    let limits = CompileLimits {
        bytes_max: LIMITS.bytes_max,
        functions_max: LIMITS.functions_max,
        nesting_max: LIMITS.nesting_max,
        interfaces_max: LIMITS.interfaces_max,
        memory_bytes_max: LIMITS.memory_bytes_max,
        cpu_ms_max: LIMITS.cpu_ms_max,
        wall_ms_max: WALL_MS_MAX,
        ..CompileLimits::default()
    };
    let jail = Jail { program, arguments: vec!["compile-child".into()], limits };
    Engine::new(cache, jail, &EngineOptions::default())
}

/// Loads a bomb, runs it if it loads, and compares its end with the expected one.
pub async fn hold(engine: &Engine, bomb: &Bomb) -> BombOutcome {
    let bytes = bomb.bytes();
    let since = Instant::now();
    let ended = end(engine, bomb.form, &bytes).await;
    let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
    BombOutcome { verdict: ended.verdict(bomb.end), said: ended.said(), ms }
}

/// The end of a bomb.
enum BombRun {
    Refused(LoadError),
    Stopped(CallError),
    Ran(i32),
    Loaded,
}

async fn end(engine: &Engine, form: BombForm, bytes: &[u8]) -> BombRun {
    match load(engine, form, bytes).await {
        Ok(ended) => ended,
        Err(error) => BombRun::Refused(error),
    }
}

async fn load(engine: &Engine, form: BombForm, bytes: &[u8]) -> Result<BombRun, LoadError> {
    const NAME: &str = "bomb";
    if let Err(error @ LoadError::Manifest { .. }) = longhaul_engine::sections(NAME, bytes) {
        return Err(error);
    }
    let program = match form {
        BombForm::Plugin => return engine.load(NAME, bytes).await.map(|_| BombRun::Loaded),
        BombForm::Program => bytes.into(),
        BombForm::Module => longhaul_exec::component(bytes).await?,
    };
    let called = engine.load_command(NAME, &program).await?.run(setup(), &Cancel::default()).await;
    Ok(called.result.map_or_else(BombRun::Stopped, BombRun::Ran))
}

fn setup() -> InvocationSetup {
    InvocationSetup {
        invocation: InvocationId::from_text("bomb"),
        scope: InvocationScope { project: "bomb".into(), plugin: "bomb".into() },
        grants: Grants::default(),
        limits: Limits {
            fuel_max: LIMITS.fuel_max,
            memory_bytes_max: LIMITS.call_memory_bytes_max,
            table_elements_max: LIMITS.table_elements_max,
            instances_max: LIMITS.instances_max,
            handles_max: LIMITS.handles_max,
            wall_ms_max: WALL_MS_MAX,
            ..Limits::default()
        },
        services: null::services(Arc::new(MachineClock)),
        journal: None,
        context: None,
        seed: [0; 32],
        console: Some(Console::new(0)),
        placeholders: Arc::default(),
        told: None,
    }
}

impl BombRun {
    fn verdict(&self, end: ExpectedEnd) -> BombVerdict {
        match self {
            Self::Refused(error) if error.is_of_the_host() => BombVerdict::NotTried,
            _ if self.is(end) => BombVerdict::Held,
            _ => BombVerdict::NotHeld,
        }
    }

    fn is(&self, end: ExpectedEnd) -> bool {
        match (self, end) {
            (Self::Refused(LoadError::Limit { hit, .. }), ExpectedEnd::Cap(name))
            | (Self::Stopped(CallError::Limit { hit, .. }), ExpectedEnd::CallCap(name)) => hit.name == name,
            (Self::Refused(LoadError::Limit { hit, .. }), ExpectedEnd::Exhausted) => {
                EXHAUSTED.contains(&hit.name.as_str())
            }
            (Self::Refused(LoadError::TooDeep { .. }), ExpectedEnd::Exhausted)
            | (Self::Refused(LoadError::Compile { .. }), ExpectedEnd::Invalid)
            | (Self::Refused(LoadError::NotAComponent { .. }), ExpectedEnd::NoComponent)
            | (Self::Refused(LoadError::Manifest { .. }), ExpectedEnd::Manifest)
            | (Self::Refused(LoadError::WrongWorld { .. }), ExpectedEnd::WrongWorld)
            | (Self::Stopped(CallError::Trapped { .. }), ExpectedEnd::Trap)
            | (Self::Ran(0) | Self::Loaded, ExpectedEnd::Harmless) => true,
            _ => false,
        }
    }

    fn said(&self) -> String {
        match self {
            Self::Refused(error) => error.to_string(),
            Self::Stopped(error) => error.to_string(),
            Self::Ran(code) => format!("it ran and ended with {code}"),
            Self::Loaded => "it loaded".to_owned(),
        }
    }
}
