//! Rules of the source tree that a machine can check: which crates and modules may import each other, which names stand
//! once, where `unsafe` may stand, what each folder has, what CONTRIBUTING.md may claim.
//!
//! A rule that fails says which file breaks it and what would be right. The rules read text and link nothing of the
//! host, so that they can be asked while it does not compile.

mod arrows;
mod book;
mod circles;
mod contributing;
mod graph;
mod imports;
mod modules;
mod names;
mod packages;
mod texts;
mod tokens;
mod tree;
mod unit_tests;
