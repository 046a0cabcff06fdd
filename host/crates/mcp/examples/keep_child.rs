//! Stands in for the `longhaul` command in the tests of servers: it only implements the keeper child.

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let host = arguments.next().and_then(|host| host.to_str()?.parse().ok()).unwrap_or_default();
    std::process::exit(longhaul_mcp::keep_child(host, &arguments.collect::<Vec<_>>()));
}
