//! Stands in for the `longhaul` command in tests of native programs: it only implements the sandbox child.

fn main() {
    // The last argument: tests here use different ones before it.
    let code = match std::env::args().skip(1).last() {
        Some(spec) => longhaul_sandbox::sandbox_child(&spec),
        None => 2,
    };
    std::process::exit(code);
}
