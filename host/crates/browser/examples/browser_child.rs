//! Stands in for the `longhaul` command in the tests of the browser: it only implements the browser's children.

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let code = match &arguments[..] {
        [kind, spec] if kind == "browser" => longhaul_browser::browser_child(spec),
        [.., spec] => longhaul_sandbox::sandbox_child(spec),
        [] => 2,
    };
    std::process::exit(code);
}
