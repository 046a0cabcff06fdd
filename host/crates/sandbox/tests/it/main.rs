//! Programs in the sandbox: attempts to reach outside, tool chains, and `runsc`.

mod attacks;
mod lab;
mod runsc;
mod toolchains;
