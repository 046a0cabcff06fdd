//! The grants of a plugin. They are decided here and nowhere else: the requested ones, as far as the operator gives
//! them.

use crate::asks::RequestedGrants;
use crate::part::{DirectoryConfig, PluginConfig, TREE};
use longhaul_core::grant::{DirectoryGrant, Grants, HostPattern};
use std::path::Path;

/// The grants of a plugin: the requested ones, as far as the operator gives them.
pub fn grants(table: &str, part: &PluginConfig, asks: &RequestedGrants, project: &Path, tree: &Path) -> Grants {
    let listed = |asked: bool, given: &[String]| if asked { given.to_vec() } else { Vec::new() };
    Grants {
        table: table.to_owned(),
        directories: part.directories.iter().filter_map(|given| directory(given, asks, project, tree)).collect(),
        hosts: part.hosts.iter().flat_map(|host| asked_host(asks, host)).collect(),
        tools: listed(asks.tools, &part.tools),
        agents: listed(asks.agents, &part.agents),
        models: listed(asks.models, &part.models),
    }
}

fn directory(given: &DirectoryConfig, asks: &RequestedGrants, project: &Path, tree: &Path) -> Option<DirectoryGrant> {
    let asked = asks.directories.iter().find(|asked| asked.guest == given.guest)?;
    let host = if given.host == Path::new(TREE) { tree.to_owned() } else { project.join(&given.host) };
    Some(DirectoryGrant { guest: given.guest.clone(), host, access: given.access.min(asked.access) })
}

/// A host, as far as the plugin requests it.
fn asked_host(asks: &RequestedGrants, given: &HostPattern) -> Vec<HostPattern> {
    let asked = |asked: &String| match asked.as_str() {
        "*" => Some(given.clone()),
        asked => given.within(&HostPattern::try_from(asked.to_owned()).ok()?),
    };
    asks.hosts.iter().filter_map(asked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::grant::Access;

    #[test]
    fn nothing_is_granted_that_is_not_on_both_lists() {
        let part: PluginConfig = toml::from_str(
            "plugin = \"x\"\nmodels = [\"m\"]\ndirectories = [{ guest = \"/work\", access = \"write\" }, { guest = \"/etc\", host = \"/etc\", access = \"read\" }]\nhosts = [\"https://a.example\"]",
        )
        .unwrap();
        let asks: RequestedGrants = toml::from_str("directories = [{ guest = \"/work\", access = \"read\" }]").unwrap();
        let grants = grants("tools.x", &part, &asks, Path::new("/p"), Path::new("/t"));
        assert_eq!(
            grants.directories,
            [DirectoryGrant { guest: "/work".into(), host: "/t".into(), access: Access::Read }]
        );
        assert!(grants.models.is_empty() && grants.hosts.is_empty());
    }
}
