//! Checks any component of any language against the contract's rules.
//!
//! [`examine`] makes the findings that need no run of a component; [`conform`] also calls it, through the test kit,
//! with good, wrong and hostile input. Each rule has a permanent id, and gives one finding: PASS, FAIL or SKIP with the
//! reason.
//!
//! This crate grants nothing beyond the manifest's requests, and nothing outside of temporary directories; it never
//! reaches a network. A component that passes can still be wrong: the rules cover the host's requirements, and not the
//! purpose of the plugin.

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
