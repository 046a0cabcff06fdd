//! Stands in for the `longhaul` command in the tests of native checks: does nothing but be the child.

fn main() {
    let code = match std::env::args().nth(1) {
        Some(spec) => longhaul_worktree::check_child(&spec),
        None => 2,
    };
    std::process::exit(code);
}
