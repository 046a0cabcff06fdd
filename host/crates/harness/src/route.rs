//! Which agent does a feature.

/// Where a feature goes whose own agent the operator did not configure.
pub const FALLBACK: &str = "code";

/// The categories of features, each with its agent.
pub const ROUTES: [(&str, &str); 7] = [
    ("functional", "code"),
    ("ui", "code"),
    ("performance", "code"),
    ("security", "code"),
    ("integration", "research"),
    ("testing", "testing"),
    ("documentation", "documentation"),
];

/// The agent for features of `category` among those that the operator configured.
#[must_use]
pub fn agent_for<'a>(category: &str, configured: &'a [String]) -> &'a str {
    let routed = ROUTES.iter().find(|(name, _)| *name == category).map_or(FALLBACK, |(_, agent)| agent);
    configured.iter().find(|name| *name == routed).map_or(FALLBACK, String::as_str)
}

/// The agent that a feature asks for by name, else the one of its category.
#[must_use]
pub fn agent_of<'a>(wanted: Option<&str>, category: &str, configured: &'a [String]) -> &'a str {
    let named = wanted.and_then(|wanted| configured.iter().find(|name| *name == wanted));
    named.map_or_else(|| agent_for(category, configured), String::as_str)
}
