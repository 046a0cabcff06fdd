//! The surfaces at which people and programs meet the host: the command line with its errors and its first minute,
//! several terminals, a server elsewhere, HTTP, the types that all of them show, the web page, and the examples.

#[path = "../common/mod.rs"]
mod common;

mod bad_input;
mod examples;
mod http;
mod onboard;
mod page;
mod remote;
mod terminals;
mod wire;
