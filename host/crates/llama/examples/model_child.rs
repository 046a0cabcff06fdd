//! The model's child process without the rest of the host, to talk to by hand:
//!
//! ```text
//! echo '{"id":1,"complete":{"messages":[{"role":"user","content":"What is the capital city of Italy?"}]}}' |
//!     cargo run -p longhaul-llama --features inference --example model_child -- MODEL.gguf
//! ```

use std::path::Path;
use std::process::ExitCode;

use longhaul_llama::{LoadOptions, serve};

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: model_child MODEL.gguf");
        return ExitCode::from(2);
    };
    let options = LoadOptions::default();
    match serve(Path::new(&path), &options, |_| Err("it is an example".to_owned()), std::io::stdin(), std::io::stdout())
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
