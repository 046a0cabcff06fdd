//! The tools of the host on a real tree: what they answer, and attempts to escape from them.

mod attempts;
mod lab;
mod programs;
