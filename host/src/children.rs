//! Child processes of a program that uses this library: the compiler, sandboxed programs, a browser, the server of MCP
//! and its keeper, a local model.
//!
//! They run the program itself with a hidden command, so that no second program has to be installed. They start no log,
//! no runtime and no service.

use longhaul_client::Client;
use longhaul_core::fault;
use longhaul_home::{ServedChildren, own_program, serve_children};
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;

/// Does the work of a child of a run and ends the process, if it was started as one. The `main` of a program that works
/// on runs begins with this call, before there are other threads.
///
/// A program that does not begin so starts no child of its own: `LONGHAUL_PROGRAM` names an installed `longhaul` then.
pub fn run_child_if_asked() {
    serve_children(ServedChildren::All);
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(code) = run(&arguments) {
        std::process::exit(code);
    }
}

/// Refuses work on a run, where this process would do it and has no program for the children.
pub(crate) fn expect_program(client: &Client) -> fault::Result<()> {
    if client.is_owner() {
        own_program()?;
    }
    Ok(())
}

/// The exit code of the child that the arguments ask for; none if they ask for none.
fn run(arguments: &[OsString]) -> Option<i32> {
    let (kind, arguments) = arguments.split_first()?;
    match (kind.to_str()?, arguments) {
        ("compile-child", [option, limits]) if option == "--limits" => {
            Some(longhaul_engine::compile_child(limits.to_str()?))
        }
        ("check-child", [spec]) => Some(longhaul_sandbox::sandbox_child(spec.to_str()?)),
        ("browser-child", [spec]) => Some(longhaul_browser::browser_child(spec.to_str()?)),
        ("native-child", [spec]) => Some(longhaul_exec::native_child(spec.to_str()?)),
        ("mcp-child", [spec]) => Some(longhaul_mcp::mcp_child(spec.to_str()?)),
        ("keep-child", [host, command @ ..]) => Some(longhaul_mcp::keep_child(host.to_str()?.parse().ok()?, command)),
        ("model-child", options) => Some(model(&ModelChild::of(options)?)),
        _ => None,
    }
}

/// Arguments of the child that holds a local model.
#[cfg_attr(not(feature = "local-model"), allow(dead_code, reason = "only a build with local models reads all of them"))]
struct ModelChild {
    file: PathBuf,
    context_tokens_max: usize,
    memory_bytes_max: u64,
}

impl ModelChild {
    fn of(options: &[OsString]) -> Option<Self> {
        let value = |name: &str| options.chunks_exact(2).find(|pair| pair[0] == *name).map(|pair| &pair[1]);
        Some(Self {
            file: value("--file")?.into(),
            context_tokens_max: value("--context-tokens-max")?.to_str()?.parse().ok()?,
            memory_bytes_max: value("--memory-bytes-max")?.to_str()?.parse().ok()?,
        })
    }
}

#[cfg(feature = "local-model")]
fn model(child: &ModelChild) -> i32 {
    use longhaul_llama::{LoadOptions, serve};
    use std::os::fd::BorrowedFd;
    if let Err(error) = confine(child.memory_bytes_max) {
        return failed(&format!("the memory limit could not be set: {error}"));
    }
    let options =
        LoadOptions { context_tokens_max: child.context_tokens_max, memory_bytes_max: child.memory_bytes_max };
    // A file that was pulled by its digest is known; a file of the user may come from any source.
    let give_up_powers =
        |file: BorrowedFd<'_>| longhaul_sandbox::confine_to_descriptors_and(file).map_err(|error| error.to_string());
    match serve(&child.file, &options, give_up_powers, std::io::stdin(), std::io::stdout()) {
        Ok(()) => 0,
        Err(error) => failed(&error.to_string()),
    }
}

/// Prints the reason for the end of the child.
#[cfg(feature = "local-model")]
fn failed(text: &str) -> i32 {
    let _ = writeln!(std::io::stderr(), "{}", longhaul_core::text::message(text, 0));
    1
}

/// Limit of private memory; a child that exceeds it dies and is started again. The model's own count stays below the
/// limit; the rest is for threads and for buffers of inference.
#[cfg(feature = "local-model")]
fn confine(memory_bytes_max: u64) -> std::io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    const BESIDE_BYTES: u64 = 768 << 20;
    let max = Some(memory_bytes_max.saturating_add(BESIDE_BYTES));
    Ok(setrlimit(Resource::Data, Rlimit { current: max, maximum: max })?)
}

#[cfg(not(feature = "local-model"))]
fn model(child: &ModelChild) -> i32 {
    let ModelChild { file, context_tokens_max: _, memory_bytes_max: _ } = child;
    let message = format!(
        "this longhaul was built without local models, so it cannot serve `{}`; build it with: cargo build --release --features local-model",
        file.display()
    );
    let answer = serde_json::json!({ "id": null, "error": { "kind": "unsupported", "message": message } });
    let _ = writeln!(std::io::stdout(), "{answer}");
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_a_person_ask_for_no_child() {
        for arguments in [&["run"][..], &["check-child"], &["compile-child", "--help"], &["model-child", "--file"], &[]]
        {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            assert_eq!(run(&arguments), None, "{arguments:?}");
        }
    }

    #[test]
    fn options_of_the_child_with_a_model_may_stand_in_any_order() {
        let options =
            ["--context-tokens-max", "512", "--memory-bytes-max", "7", "--file", "/m.gguf"].map(OsString::from);
        let child = ModelChild::of(&options).expect("a model");
        assert_eq!((child.file, child.context_tokens_max, child.memory_bytes_max), ("/m.gguf".into(), 512, 7));
    }
}
