//! The choice of a feature's agent.

use crate::input::HarnessSetup;

/// The agent for features whose usual agent the operator did not configure.
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

/// The agent for features of `category`: the operator's choice, else the usual one, else the fallback.
#[must_use]
pub fn agent_for<'a>(category: &str, setup: &'a HarnessSetup) -> &'a str {
    let usual = || ROUTES.iter().find(|(name, _)| *name == category).map_or(FALLBACK, |(_, agent)| agent);
    let routed = setup.categories.get(category).map_or_else(usual, String::as_str);
    setup.agents.iter().find(|name| *name == routed).map_or(FALLBACK, String::as_str)
}

/// The agent that a feature names, else the one of its category.
#[must_use]
pub fn agent_of<'a>(wanted: Option<&str>, category: &str, setup: &'a HarnessSetup) -> &'a str {
    let named = wanted.and_then(|wanted| setup.agents.iter().find(|name| *name == wanted));
    named.map_or_else(|| agent_for(category, setup), String::as_str)
}

/// True when `category` is a valid category.
#[must_use]
pub fn is_category(category: &str) -> bool {
    ROUTES.iter().any(|(name, _)| *name == category)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_category_that_was_given_to_an_agent_goes_there_and_the_others_as_usual() {
        let agents = ["code", "auditor", "testing"].map(String::from).to_vec();
        let categories = [("security".to_owned(), "auditor".to_owned()), ("ui".to_owned(), "gone".to_owned())];
        let setup = HarnessSetup { agents, categories: categories.into(), ..HarnessSetup::default() };
        let routed = ["security", "testing", "ui", "integration"].map(|category| agent_for(category, &setup));
        assert_eq!(routed, ["auditor", "testing", "code", "code"]);
        assert_eq!(agent_of(Some("testing"), "security", &setup), "testing");
    }
}
