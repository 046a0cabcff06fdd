//! What must be approved before a tool is called, what a person's answer means, and what they are shown.
//!
//! Everything here is a pure function of words: it reads no clock, no file and no terminal, knows no store, and runs
//! nothing. In doubt it asks: a call that cannot be read, a command line that is more than one plain command, a value
//! that a pattern could be fooled by.
//!
//! | file | holds |
//! |---|---|
//! | `allow.rs` | commands that the operator lets run without a question |
//! | `answer.rs` | what a person's line means, and what it makes of an approval |
//! | `arguments.rs` | the arguments of a call, read so that no two readers see different ones |
//! | `policy.rs` | what the operator wrote: `allow`, `ask` or `deny`, with patterns |
//! | `forms.rs` | the reviewed table: which options of a program keep it to what its name says |
//! | `shell.rs` | whether a command line is one plain command, and of which program |
//! | `rule.rs` | what `a` allows for the rest of a run |
//! | `approval.rs` | one approval: what it is bound to, and what became of it |
//! | `banner.rs` | what an approver reads |
//! | `visible.rs` | text in which nothing hides |

mod allow;
mod answer;
mod approval;
mod arguments;
mod banner;
mod forms;
mod policy;
mod rule;
mod shell;
mod visible;

pub use allow::{AllowError, AllowedCommand, allows};
pub use answer::{ApprovalAnswer, ApprovalError, NoAnswer};
pub use approval::{Approval, ApprovalKind, ApprovalStatus, ApprovalSubject};
pub use arguments::{Arguments, NotArguments};
pub use banner::{banner, question};
pub use policy::{ApprovalPolicy, PolicyError, PolicyMode, PolicyRule, PolicyVerdict};
pub use rule::{Commands, NoRule, RunRule, runs_commands};
pub use shell::{NotPlain, ShellCommand, command_line, command_words};
pub use visible::visible;
