//! The values of OpenTelemetry's conventions for generative AI, version 0.1.0: providers, operations, reasons.
//!
//! The conventions have a repository of their own, `open-telemetry/semantic-conventions-genai`. Their attributes are
//! under development; the tests of the program hold what it sends against them.

use longhaul_core::model::StopReason;

/// The provider of a reply whose model is not known any more.
const UNKNOWN: &str = "unknown";

/// Hosts of providers, and their names in the conventions. An entry that begins with a dot or a hyphen is
/// the end of a host.
const PROVIDERS: [(&str, &str); 16] = [
    ("api.openai.com", "openai"),
    ("api.anthropic.com", "anthropic"),
    (".openai.azure.com", "azure.ai.openai"),
    (".inference.ai.azure.com", "azure.ai.inference"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("-aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("api.cohere.com", "cohere"),
    ("api.cohere.ai", "cohere"),
    ("api.deepseek.com", "deepseek"),
    ("api.groq.com", "groq"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.moonshot.ai", "moonshot_ai"),
    ("api.moonshot.cn", "moonshot_ai"),
    ("api.perplexity.ai", "perplexity"),
    ("api.x.ai", "x_ai"),
];

/// The provider: by the host that replied, else `protocol`, the first part of the model's name.
pub(crate) fn provider<'a>(protocol: &'a str, server: Option<&str>) -> &'a str {
    let is_of = |host: &str, server: &str| match host.starts_with(['.', '-']) {
        true => server.ends_with(host),
        false => server == host,
    };
    let found = server.and_then(|server| PROVIDERS.iter().find(|(host, _)| is_of(host, server)));
    match found {
        Some((_, provider)) => provider,
        None if protocol.is_empty() => UNKNOWN,
        None => protocol,
    }
}

/// The name of an export's operation.
pub(crate) fn operation(export: &str) -> &'static str {
    match export {
        "planner.plan" | "planner.replan" => "plan",
        _ => "invoke_agent",
    }
}

/// The reason for the end of a reply.
pub(crate) fn finish_reason(reason: StopReason) -> &'static str {
    match reason {
        StopReason::End => "stop",
        StopReason::Length => "length",
        StopReason::Tools => "tool_call",
        StopReason::Filtered => "content_filter",
        StopReason::Other => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_has_its_name_in_the_conventions_by_its_host() {
        for (protocol, server, expected) in [
            ("openai", Some("api.openai.com"), "openai"),
            ("openai", Some("api.groq.com"), "groq"),
            ("openai", Some("mine.openai.azure.com"), "azure.ai.openai"),
            ("openai", Some("europe-west1-aiplatform.googleapis.com"), "gcp.vertex_ai"),
            ("openai", Some("notapi.groq.com"), "openai"),
            ("openai", Some("127.0.0.1"), "openai"),
            ("anthropic", None, "anthropic"),
            ("", None, "unknown"),
        ] {
            assert_eq!(provider(protocol, server), expected, "{server:?}");
        }
    }
}
