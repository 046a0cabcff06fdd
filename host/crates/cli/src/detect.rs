//! `longhaul detect`: classifies the work that a prompt asks for, by its words alone.

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use longhaul_api::wire::prompts::DetectedView;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::text::printable;
use longhaul_harness::detect::{Detected, PromptKind, detect};
use std::io::Read as _;

/// Longest prompt on standard input, in bytes.
const PROMPT_BYTES_MAX: u64 = 1 << 20;

/// Longest part that is shown, in bytes.
const PART_BYTES_MAX: usize = 200;

/// Runs the command.
pub fn run(context: &Context, prompt: String) -> fault::Result<Exit> {
    let detected = detect(&read(prompt)?);
    if context.json {
        print_json(&DetectedView::from(&detected))?;
    } else {
        show(&detected);
    }
    Ok(Exit::Done)
}

/// Returns the prompt; reads it from standard input if it is `-`.
pub fn read(prompt: String) -> fault::Result<String> {
    if prompt != "-" {
        return Ok(prompt);
    }
    let mut text = String::new();
    std::io::stdin().take(PROMPT_BYTES_MAX).read_to_string(&mut text).context("cannot read the prompt")?;
    Ok(text)
}

/// The classification in a few words.
pub fn found(detected: &Detected) -> String {
    let kind = match detected.kind {
        PromptKind::Simple => "a simple question",
        PromptKind::MultiResearch => "research",
        PromptKind::CodingProject => "a coding project",
        PromptKind::MultiStep => "work in several steps",
        PromptKind::ComplexAnalysis => "an analysis",
    };
    format!("{kind} (confidence {:.2})", detected.confidence)
}

fn show(detected: &Detected) {
    let advice = if detected.use_harness {
        "worth a project: longhaul new DIR, and write it into GOAL.md"
    } else {
        "not worth a project"
    };
    outln!("{}: {advice}", found(detected));
    detected.items.iter().for_each(|item| outln!("  {}", printable(item, PART_BYTES_MAX)));
    detected.reasons.iter().for_each(|reason| outln!("because it {}", printable(reason, PART_BYTES_MAX)));
}
