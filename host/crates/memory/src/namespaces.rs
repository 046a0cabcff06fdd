//! The names of a project's namespaces. Refuses to read or write their content.

/// The namespace of the facts of a project.
pub fn facts_of(project: &str) -> String {
    format!("episodic/{project}")
}

/// The namespace of the episodes of a project.
pub fn episodes_of(project: &str) -> String {
    format!("episodes/{project}")
}
