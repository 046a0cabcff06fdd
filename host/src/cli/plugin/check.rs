//! `longhaul plugin check`: what can be said of a plugin without running or compiling it.

use super::super::{Context, Exit};
use crate::cli::conform::manifest_of;
use longhaul_conform::{Finding, Judged, Report, look};
use longhaul_engine::CompileLimits;
use std::path::Path;

/// Carries it out.
pub fn run(context: &Context, file: &str) -> anyhow::Result<Exit> {
    let path = super::file_of(context, file)?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let bytes = super::read_bounded(&name, &path, &CompileLimits::default())?;
    let (mut findings, looked) = look(&name, &bytes);
    let role = looked.map(|looked| looked.role.name());
    findings.push(Finding { rule: "manifest", judged: manifest(&path, &bytes, role) });
    let report = Report { name, role, findings };
    if context.json {
        outln!("{}", report.to_json());
    } else {
        outln!("{report}");
    }
    Ok(if report.passes() { Exit::Done } else { Exit::Error })
}

/// Without a manifest a plugin asks for nothing, which is no fault.
fn manifest(component: &Path, bytes: &[u8], role: Option<&str>) -> Judged {
    let read = match manifest_of(component, bytes, None) {
        Ok(Some(read)) => read,
        Ok(None) => {
            return Judged::Skip(
                "it carries none, so it asks for nothing; `longhaul plugin pack` puts one in".to_owned(),
            );
        }
        Err(error) => return Judged::Fail(format!("{error:#}")),
    };
    let (manifest, more) = (&read.manifest, &read.more);
    if let (Some(world), Some(role)) = (&more.world, role)
        && *world != format!("{role}-plugin")
    {
        return Judged::Fail(format!(
            "it says world = \"{world}\", and the component has the role {role}; write {role}-plugin"
        ));
    }
    if manifest.name.is_empty() {
        return Judged::Fail("it has no name; write name = \"...\"".to_owned());
    }
    let asks = serde_json::to_string(&manifest.asks).unwrap_or_default();
    Judged::Pass(format!("{} {}, asks for {asks}", manifest.name, manifest.version))
}
