//! Stands in for the `longhaul` command in tests of native programs: does nothing but be the child.

fn main() {
    // The last: what comes before it leads the tests here in different ways.
    let code = match std::env::args().skip(1).last() {
        Some(spec) => longhaul_sandbox::sandbox_child(&spec),
        None => 2,
    };
    std::process::exit(code);
}
