//! The contract's rules, held against any component of any language.
//!
//! [`examine`] says what can be said without running a component; [`conform`] also calls it, through the
//! test kit, with good, wrong and hostile input. Each rule has an id that stays, and gives one finding:
//! PASS, FAIL or SKIP with the reason.
//!
//! This crate grants nothing beyond what the manifest asks for, and nothing outside of temporary
//! directories; it never reaches a network. A component that passes can still be wrong: the rules are
//! what the host relies on, and not what the plugin is for.

mod inspection;
mod probe;
mod report;
mod rules;
mod schema;
mod subject;

pub use inspection::examine;
pub use report::{ConformReport, RuleFinding, RuleVerdict};
pub use rules::{Bench, ConformRule, conform, conform_backend, rules};
pub use subject::{ConformSubject, stated_by_nobody};
