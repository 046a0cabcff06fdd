//! Plugins that are not built are told in one line, before anything needs them.

use crate::common::built_plugins::{file, missing};

#[test]
fn what_is_not_built_is_told_with_the_command_that_builds_it() {
    assert!(file("files").is_file());
    assert_eq!(missing(&["files", "tests/doer"]), None);
    let told = |names: &[&str]| missing(names).unwrap_or_default();
    assert_eq!(told(&["no-such", "files"]), "plugins that this needs are not built: no-such; run: cargo xtask plugins");
    assert_eq!(
        told(&["no-such", "tests/no-such"]),
        "plugins that this needs are not built: no-such, tests/no-such; run: cargo xtask plugins --tests"
    );
}
