//! A real browser on a real server: its use by agents, and attempts to leave it.

mod attempts;
mod lab;
mod pages;
mod site;
