//! Attempts to get past an approver, and the reading of command lines, as real shells read them.

mod attempts;
mod shells;
