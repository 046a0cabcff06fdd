//! The rules for approval before a tool is called, the meaning of a person's answer, and the text that they see.
//!
//! Everything here is a pure function: it reads no clock, no file and no terminal, knows no store, and runs nothing. In
//! doubt it asks: a call that cannot be read, a command line that is more than one plain command, a value that could
//! fool a pattern.
//!
//! | file | holds |
//! |---|---|
//! | `allow.rs` | commands that the operator lets run without a question |
//! | `answer.rs` | the meaning of a person's line, and its effect on an approval |
//! | `arguments.rs` | the arguments of a call, in a form that every reader reads the same way |
//! | `policy.rs` | the operator's policy: `allow`, `ask` or `deny`, with patterns |
//! | `forms.rs` | the reviewed table: the options that keep a program to its usual function |
//! | `shell.rs` | whether a command line is one plain command, and of which program |
//! | `rule.rs` | the calls that `a` allows for the rest of a run |
//! | `approval.rs` | one approval: its subject and its status |
//! | `banner.rs` | the text that an approver reads |
//! | `visible.rs` | text without hidden characters |

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
