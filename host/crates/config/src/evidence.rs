//! The evidence behind a project's verdicts: that of its native checks, and whether any model judges.

use crate::asks::RequestedGrants;
use crate::part::PluginConfig;
use crate::tables::Config;
use longhaul_core::work::Evidence;
use longhaul_worktree::{EvidenceKind, NativeCheck};
use std::collections::{BTreeMap, BTreeSet};

impl Config {
    /// Native checks whose pass rests on an exit code alone.
    pub fn exit_checks(&self) -> BTreeSet<String> {
        let is_exit = |check: &NativeCheck| check.evidence_kind() == EvidenceKind::Exit;
        self.checks.iter().filter(|(_, check)| is_exit(check)).map(|(name, _)| name.clone()).collect()
    }

    /// The evidence of other native checks that have no counterexamples.
    pub fn weak_checks(&self) -> BTreeMap<String, Evidence> {
        let weak = |check: &NativeCheck| match check.evidence_kind() {
            EvidenceKind::Junit => Some(Evidence::Junit),
            EvidenceKind::Exit => None,
            _ => (!check.twins).then_some(Evidence::TestNames),
        };
        self.checks.iter().filter_map(|(name, check)| Some((name.clone(), weak(check)?))).collect()
    }

    /// The evaluator, if it judges by checks alone: the one that asks no model, or one without models.
    pub fn checks_only(&self, asks: Option<&RequestedGrants>) -> Option<String> {
        let PluginConfig { plugin, models, .. } = &self.evaluator;
        let is_modelless = asks.is_some_and(|asks| asks.models) && models.is_empty();
        let is_known = plugin.split('@').next() == Some("check-evaluator");
        (is_known || is_modelless).then(|| plugin.clone())
    }
}
