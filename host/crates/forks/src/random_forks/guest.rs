//! A guest whose calls follow from its beginning and from all that it heard, as those of a component do: a difference
//! in a shared past shows in the next call.

use super::dice::{Dice, mixed};
use longhaul_core::Digest;
use longhaul_core::journal::{Began, EffectClass, NewCall};
use longhaul_core::tool::ToolCall;

/// An outcome, or what is wrong.
pub(super) type Checked<T> = Result<T, String>;

/// The text of an error.
pub(super) fn text(error: impl std::fmt::Display) -> String {
    format!("{error:#}")
}

/// Delegations that lead to an invocation, at most.
const DEPTH_MAX: u32 = 2;

/// The functions of the only tool. One of them needs an approval.
const FUNCTIONS: [&str; 5] = ["read", "pay", "write", "send", ASK];
const ASK: &str = "send-asked";

/// A call of the guest.
#[derive(Clone, Debug)]
pub(super) enum GuestCall {
    Model(String),
    Tool(ToolCall),
    /// The input of another invocation.
    Delegate(String),
}

impl GuestCall {
    /// The digest of the arguments, as a journal has it.
    pub(super) fn arguments(&self) -> Digest {
        match self {
            Self::Model(text) | Self::Delegate(text) => Digest::of(text.as_bytes()),
            Self::Tool(call) => Digest::of(&serde_json::to_vec(call).expect("text")),
        }
    }

    pub(super) fn class(&self) -> EffectClass {
        match self {
            Self::Model(_) => EffectClass::ReadOnly,
            Self::Tool(call) => class_of(call),
            Self::Delegate(_) => EffectClass::Idempotent,
        }
    }

    /// The call as it is asked.
    pub(super) fn asked(&self, class: EffectClass, fuel_used: u64) -> NewCall {
        let (name, summary) = match self {
            Self::Model(text) => ("conversation.complete", text.clone()),
            Self::Tool(call) => ("tools.call", call.summary()),
            Self::Delegate(input) => ("delegate.run", input.clone()),
        };
        NewCall { name, summary, arguments: self.arguments(), class, fuel_used }
    }
}

fn class_of(call: &ToolCall) -> EffectClass {
    match call.function.as_str() {
        "read" => EffectClass::ReadOnly,
        "pay" => EffectClass::Idempotent,
        "write" => EffectClass::Verifiable,
        _ => EffectClass::Acts,
    }
}

/// True for a call that a person is asked about by the operator's rules.
pub(super) fn is_asked(call: &ToolCall) -> bool {
    call.function == ASK
}

/// A guest at some place of its work.
pub(super) struct Guest {
    memory: u64,
    lists_left: u32,
    depth: u32,
    fuel: u64,
}

impl Guest {
    /// It depends on the seed and the time of its invocation, too.
    pub(super) fn new(program: u64, began: &Began, input: &str, depth: u32) -> Self {
        let memory = mixed(program, &format!("{input} {:?} {}", began.seed, began.at_ms));
        let mut dice = Dice::of(memory, "length");
        let lists_left = if depth == 0 { 3 + dice.below(4) } else { 1 + dice.below(2) };
        Self { memory, lists_left, depth, fuel: 0 }
    }

    /// The next calls, which are made at once; none: it returns.
    pub(super) fn calls(&mut self) -> Option<Vec<GuestCall>> {
        self.lists_left = self.lists_left.checked_sub(1)?;
        let mut dice = Dice::of(self.memory, "calls");
        self.fuel += 100 + u64::from(dice.below(1_000));
        Some(match dice.below(6) {
            0 => vec![GuestCall::Model(format!("think {}", dice.below(100)))],
            1 if self.depth < DEPTH_MAX => {
                (0..=dice.below(2)).map(|part| GuestCall::Delegate(format!("part {part} of {}", self.memory))).collect()
            }
            // Few arguments, so that two runs often make equal calls.
            _ => (0..=dice.below(3)).map(|_| GuestCall::Tool(call(&mut dice))).collect(),
        })
    }

    /// Hears the answers of its latest calls, and the time.
    pub(super) fn hear(&mut self, answers: &[String], time_ms: u64) {
        self.memory = mixed(self.memory, &format!("{answers:?} {time_ms}"));
    }

    /// The fuel that it used so far.
    pub(super) fn fuel(&self) -> u64 {
        self.fuel
    }

    /// Its result, as JSON.
    pub(super) fn result(&self) -> String {
        format!("\"result {}\"", self.memory)
    }
}

fn call(dice: &mut Dice) -> ToolCall {
    let function = dice.pick(&FUNCTIONS).unwrap_or(ASK);
    let arguments = format!("{{\"n\":{}}}", dice.below(3));
    ToolCall { tool: "t".to_owned(), function: function.to_owned(), arguments }
}
