//! The scope that each operation of the service needs when a command line calls it by its name.
//!
//! It is that of the path of the API with the same effect, where there is one. An operation that is not in the table
//! needs `admin`. No token gives powers: what a person agrees to, and what makes a token, is asked on the server's
//! machine alone, and withheld here from every caller.

use CallRule::{Graph, Needs, Withheld};
use longhaul_api::tokens::TokenScope::{self, Admin, Approve, Read, Run};

/// The condition for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallRule {
    /// The caller has this scope. Paths that the request names may need more.
    Needs(TokenScope),
    /// The operation makes or changes a graph: `run`, and `admin` for a graph that sees directories or hosts.
    Graph,
    /// Nobody calls it over HTTP. The text says why, and where it is called instead.
    Withheld(&'static str),
}

impl CallRule {
    /// The rule for the operation of a name.
    pub fn of(name: &str) -> Self {
        RULES.iter().find(|(known, _)| *known == name).map_or(Needs(Admin), |(_, rule)| *rule)
    }

    /// The least scope; none for an operation that is withheld.
    pub fn scope(self) -> Option<TokenScope> {
        match self {
            Needs(scope) => Some(scope),
            Graph => Some(Run),
            Withheld(_) => None,
        }
    }
}

const TOKEN: &str = "a token is made on the server's machine, so that a stolen one makes no other: `longhaul token add` \
                     there";
const TRUST: &str = "the powers of a file are agreed to on the server's machine: `longhaul trust` there";
const SIGNER: &str =
    "keys of signers are trusted, or not, on the server's machine: `longhaul trust add` or `remove` there";
const SAME_PROJECT: &str = "a checkout gets the secrets and the memory of another project on the server's machine alone: \
                            `longhaul project same-as` there";
const SECRET: &str = "secrets are set and removed on the server's machine: `longhaul secrets` there";
const MCP: &str = "the tools of an MCP server are accepted on the server's machine: `longhaul mcp accept` there";

const RULES: &[(&str, CallRule)] = &[
    ("add_token", Withheld(TOKEN)),
    ("tokens", Needs(Admin)),
    ("remove_token", Needs(Admin)),
    ("write_backup", Needs(Admin)),
    ("check_store", Needs(Admin)),
    ("collect_garbage", Needs(Admin)),
    ("resources", Needs(Read)),
    ("resource_history", Needs(Read)),
    ("end_child", Needs(Admin)),
    ("metrics", Needs(Read)),
    ("workers", Needs(Read)),
    ("audit_log", Needs(Admin)),
    ("verify_audit", Needs(Admin)),
    ("grant_usage", Needs(Read)),
    ("identify_project", Needs(Run)),
    ("checkouts", Needs(Admin)),
    ("join_project", Withheld(SAME_PROJECT)),
    ("note_secret", Withheld(SECRET)),
    ("trust_status", Needs(Read)),
    ("expect_trust", Needs(Read)),
    ("trust_project", Withheld(TRUST)),
    ("distrust_project", Needs(Admin)),
    ("trusted", Needs(Admin)),
    ("set_signer", Withheld(SIGNER)),
    ("memories", Needs(Read)),
    ("search_memory", Needs(Read)),
    ("memory", Needs(Read)),
    ("promote_memory", Needs(Admin)),
    ("forget_memory", Needs(Run)),
    ("trajectories", Needs(Read)),
    ("trajectory", Needs(Read)),
    ("annotate_trajectory", Needs(Run)),
    ("decisions", Needs(Read)),
    ("decision", Needs(Read)),
    ("judge_decision", Needs(Run)),
    ("approvals", Needs(Read)),
    ("approval", Needs(Read)),
    ("answer_approval", Needs(Approve)),
    ("revoke_rule", Needs(Approve)),
    ("checkpoints", Needs(Read)),
    ("shared_checkpoints", Needs(Admin)),
    ("checkpoint", Needs(Admin)),
    ("export_checkpoint", Needs(Admin)),
    ("save_checkpoint", Needs(Admin)),
    ("saved_checkpoint", Needs(Admin)),
    ("import_checkpoint", Needs(Admin)),
    ("take_over_run", Needs(Admin)),
    ("create_graph", Graph),
    ("graphs", Needs(Read)),
    ("remove_graph", Graph),
    ("graph_history", Needs(Read)),
    ("graph_steps", Needs(Read)),
    ("graph_page", Needs(Read)),
    ("export_graph", Needs(Read)),
    ("draw_graph", Needs(Read)),
    ("operate_graph", Graph),
    ("add_steps", Graph),
    ("run_graph", Needs(Run)),
    ("graph_output", Needs(Read)),
    ("diagnose_step", Graph),
    ("patch_step", Graph),
    ("register_agent", Needs(Admin)),
    ("update_agent", Needs(Admin)),
    ("agents", Needs(Read)),
    ("agent", Needs(Read)),
    ("activate_agent", Needs(Run)),
    ("remove_agent", Needs(Admin)),
    ("execute_agent", Needs(Run)),
    ("artifact", Needs(Read)),
    ("set_artifact", Needs(Run)),
    ("clear_artifact", Needs(Run)),
    ("artifacts", Needs(Read)),
    ("put_schedule", Needs(Run)),
    ("schedules", Needs(Read)),
    ("schedule", Needs(Read)),
    ("remove_schedule", Needs(Run)),
    ("enable_schedule", Needs(Run)),
    ("fire_schedule", Needs(Run)),
    ("tasks", Needs(Read)),
    ("task", Needs(Read)),
    ("retry_task", Needs(Run)),
    ("skipped_fires", Needs(Read)),
    ("set_concurrent_max", Needs(Admin)),
    ("scheduler_status", Needs(Read)),
    ("create_project", Needs(Admin)),
    ("projects", Needs(Read)),
    ("check_project", Needs(Run)),
    ("describe_mcp", Needs(Admin)),
    ("accept_mcp", Withheld(MCP)),
    ("begin_run", Needs(Run)),
    ("begin_ask", Needs(Run)),
    ("runs", Needs(Read)),
    ("run_page", Needs(Read)),
    ("run_counts", Needs(Read)),
    ("interrupted_runs", Needs(Read)),
    ("costs", Needs(Read)),
    ("run_status", Needs(Read)),
    ("steer_run", Needs(Run)),
    ("cancel_task", Needs(Run)),
    ("resume_run", Needs(Run)),
    ("reread_goal", Needs(Run)),
    ("pause_run", Needs(Run)),
    ("abandon_run", Needs(Run)),
    ("archive_run", Needs(Run)),
    ("answer_run", Needs(Run)),
    ("take_back_answer", Needs(Run)),
    ("fork_run", Needs(Run)),
    ("revert_run", Needs(Run)),
    ("move_run", Needs(Run)),
    ("commit_log", Needs(Read)),
    ("commit_diff", Needs(Read)),
    ("compare_runs", Needs(Read)),
    ("add_feature", Needs(Run)),
    ("edit_feature", Needs(Run)),
    ("drop_feature", Needs(Run)),
    ("recheck_features", Needs(Run)),
    ("kept_work", Needs(Read)),
    ("proposals", Needs(Read)),
    ("accept_proposal", Needs(Run)),
    ("reject_proposal", Needs(Run)),
    ("invocations", Needs(Read)),
    ("journal_entries", Needs(Read)),
    ("record_invocation", Needs(Read)),
    ("replay", Needs(Run)),
    ("rehearse_runs", Needs(Run)),
    ("events", Needs(Read)),
    ("run_at_point", Needs(Read)),
    ("carried_invocations", Needs(Read)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_api::operations::names;
    use std::collections::BTreeSet;

    #[test]
    fn every_operation_of_the_api_has_one_rule_and_nothing_else_has_one() {
        let ruled: Vec<&str> = RULES.iter().map(|(name, _)| *name).collect();
        let once: BTreeSet<&str> = ruled.iter().copied().collect();
        assert_eq!(once.len(), ruled.len(), "a name stands twice");
        assert_eq!(once, names().collect::<BTreeSet<_>>());
    }

    #[test]
    fn an_operation_that_nobody_thought_of_needs_all_scopes() {
        assert_eq!(CallRule::of("an_operation_of_tomorrow"), Needs(Admin));
    }

    #[test]
    fn no_token_makes_a_token_or_gives_a_power() {
        for name in ["add_token", "trust_project", "set_signer", "join_project", "note_secret", "accept_mcp"] {
            assert!(matches!(CallRule::of(name), Withheld(why) if why.contains("`longhaul ")), "{name}");
            assert_eq!(CallRule::of(name).scope(), None, "{name}");
        }
    }
}
