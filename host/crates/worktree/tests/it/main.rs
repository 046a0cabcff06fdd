//! Trees, commits and checks, as the user's own `git` and a real sandbox see them.

mod commit_diff;
mod contents;
mod crash;
mod fork_branch;
mod into_checkout;
mod native;
mod packs;
mod repo;
mod revert;
mod tree;
mod tree_diff;
