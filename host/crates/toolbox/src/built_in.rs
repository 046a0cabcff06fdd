//! Tools that the host itself implements. No plugin can be named `builtin:NAME`, so no component can take the place of
//! one.

use crate::ask_human::AskHuman;
use crate::environment::ToolEnvironment;
use crate::native_python::NativePython;
use crate::project::ProjectTool;
use crate::todo::TodoTool;
use longhaul_browser::{Browser, BrowserEnvironment, BrowserSettings};
use longhaul_config::PluginConfig;
use longhaul_config::tools::built_in::{ASK_HUMAN, BROWSER, PREFIX, PROJECT, TODO, settings};
use longhaul_config::tools::native_python::is_native;
use longhaul_core::fault;
use longhaul_core::grant::Grants;
use longhaul_core::supervisor::Supervisor;
use longhaul_core::tool::HostTool;
use longhaul_egress::{Guard, RequestLimits};
use longhaul_sandbox::Level;
use longhaul_tools::ToolRoot;
use std::path::Path;
use std::sync::Arc;

/// The place where the tools of a run work.
pub struct ToolSite<'a> {
    /// Confines the programs of tools.
    pub environment: &'a ToolEnvironment,
    /// The user's project.
    pub project: &'a Path,
    /// The name of the run; its branch has the same.
    pub name: &'a str,
    /// The lowest sandbox level that programs may run at.
    pub sandbox_min: Level,
    /// The tree of the run.
    pub tree: &'a Path,
    /// The supervisor, which counts outgoing traffic.
    pub supervisor: &'a Arc<dyn Supervisor>,
}

/// Opens the tool of a table that [`longhaul_config::tools::built_in::check`] accepted.
pub fn open(tool: &str, part: &PluginConfig, site: &ToolSite<'_>) -> fault::Result<Arc<dyn HostTool>> {
    let ToolSite { environment, project, name, sandbox_min, tree, supervisor } = *site;
    let (store, clock) = (Arc::clone(&environment.store), Arc::clone(&environment.clock));
    if is_native(part) {
        let host = environment.check_host(sandbox_min, project)?;
        return Ok(Arc::new(NativePython::new(part, host, project, tree)?));
    }
    match part.plugin.strip_prefix(PREFIX) {
        Some(PROJECT) => Ok(Arc::new(ProjectTool { store, clock })),
        Some(ASK_HUMAN) => Ok(Arc::new(AskHuman)),
        Some(TODO) => Ok(Arc::new(TodoTool)),
        Some(BROWSER) => {
            let grants = Grants { table: format!("tools.{tool}"), hosts: part.hosts.clone(), ..Grants::default() };
            let around = BrowserEnvironment {
                host: environment.check_host(sandbox_min, project)?,
                child_args: vec!["browser-child".into()],
                guard: Guard::new(grants, RequestLimits::default()),
                supervisor: Arc::clone(supervisor),
            };
            Ok(Arc::new(Browser::new(around, BrowserSettings::read(&settings(part))?)))
        }
        tool => {
            let place = ToolRoot {
                project: project.to_owned(),
                tree: tree.to_owned(),
                branch: format!("longhaul/{name}"),
                host: environment.check_host(sandbox_min, project)?,
                clock,
            };
            Ok(longhaul_tools::open(tool.unwrap_or_default(), &settings(part), &place)?)
        }
    }
}
