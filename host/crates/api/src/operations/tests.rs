//! The operations that are carried out beside a run, and how they name it. Every operation stands in one of two lists,
//! so that a new one has to decide.

use super::*;
use crate::runs::RunRef;
use serde_json::json;
use std::collections::BTreeSet;

/// Operations that write rows of a run, or read its tree or its branch, with the case of what they name.
const BESIDE_A_RUN: [(&str, &str); 26] = [
    ("abandon_run", "Run"),
    ("accept_proposal", "Run"),
    ("add_feature", "Run"),
    ("annotate_trajectory", "Run"),
    ("answer_approval", "Approval"),
    ("answer_run", "Run"),
    ("archive_run", "Run"),
    ("cancel_task", "Run"),
    ("checkpoint", "Checkpoint"),
    ("commit_diff", "Run"),
    ("commit_log", "Run"),
    ("compare_runs", "Run"),
    ("drop_feature", "Run"),
    ("edit_feature", "Run"),
    ("export_checkpoint", "Checkpoint"),
    ("move_run", "Run"),
    ("pause_run", "Run"),
    ("recheck_features", "Run"),
    ("reject_proposal", "Run"),
    ("reread_goal", "Run"),
    ("resume_run", "Run"),
    ("revert_run", "Run"),
    ("revoke_rule", "Run"),
    ("save_checkpoint", "Checkpoint"),
    ("steer_run", "Run"),
    ("take_back_answer", "Run"),
];

/// Operations that read rows alone, or are about no run, or make one.
const ANYWHERE: &str = "\
    accept_mcp activate_agent add_steps add_token agent agents approval approvals artifact artifacts audit_log \
    begin_ask begin_run carried_invocations check_project check_store checkouts checkpoints clear_artifact \
    collect_garbage costs create_graph create_project decision decisions describe_mcp diagnose_step distrust_project \
    draw_graph enable_schedule end_child events execute_agent expect_trust export_graph fire_schedule forget_memory \
    fork_run grant_usage graph_history graph_output graph_page graph_steps graphs identify_project import_checkpoint \
    interrupted_runs invocations join_project journal_entries judge_decision kept_work memories memory metrics \
    note_secret operate_graph patch_step projects promote_memory proposals put_schedule record_invocation register_agent rehearse_runs \
    remove_agent remove_graph remove_schedule remove_token replay resource_history resources retry_task run_at_point \
    run_counts \
    run_graph run_page run_status runs saved_checkpoint schedule scheduler_status schedules search_memory \
    set_artifact set_concurrent_max set_signer shared_checkpoints skipped_fires take_over_run task tasks tokens \
    trajectories trajectory trust_project trust_status trusted update_agent verify_audit workers write_backup";

#[test]
fn every_operation_says_whether_it_is_carried_out_beside_a_run() {
    let beside: BTreeSet<&str> = BESIDE_A_RUN.iter().map(|(name, _)| *name).collect();
    let anywhere: BTreeSet<&str> = ANYWHERE.split_whitespace().collect();
    let both: Vec<_> = beside.intersection(&anywhere).collect();
    assert!(both.is_empty(), "in both lists: {both:?}");
    let listed: BTreeSet<&str> = beside.union(&anywhere).copied().collect();
    assert_eq!(listed, names().collect::<BTreeSet<_>>(), "add a new operation to one of the lists");
    assert_eq!(declared().collect::<BTreeSet<_>>(), BESIDE_A_RUN.into_iter().collect::<BTreeSet<_>>());
}

/// The operations that are declared with a run.
fn declared() -> impl Iterator<Item = (&'static str, &'static str)> {
    let resources = [
        <dyn AgentOperations>::BESIDE_A_RUN,
        <dyn ApprovalOperations>::BESIDE_A_RUN,
        <dyn CheckpointOperations>::BESIDE_A_RUN,
        <dyn DecisionOperations>::BESIDE_A_RUN,
        <dyn FeatureOperations>::BESIDE_A_RUN,
        <dyn GraphOperations>::BESIDE_A_RUN,
        <dyn JournalOperations>::BESIDE_A_RUN,
        <dyn MaintenanceOperations>::BESIDE_A_RUN,
        <dyn MemoryOperations>::BESIDE_A_RUN,
        <dyn ProjectOperations>::BESIDE_A_RUN,
        <dyn ResourceOperations>::BESIDE_A_RUN,
        <dyn RunOperations>::BESIDE_A_RUN,
        <dyn ScheduleOperations>::BESIDE_A_RUN,
        <dyn SecurityOperations>::BESIDE_A_RUN,
        <dyn TokenOperations>::BESIDE_A_RUN,
        <dyn TrajectoryOperations>::BESIDE_A_RUN,
        <dyn WorkerOperations>::BESIDE_A_RUN,
    ];
    resources.into_iter().flatten().copied()
}

#[test]
fn a_request_names_the_run_that_it_is_about() {
    let named = || RunRef::Named("r-1".to_owned());
    let newest = || RunRef::NewestIn("/srv/shop".into());
    check(&PauseRun { run: named() }, Some(RunSubject::Run(named())));
    check(&PauseRun { run: newest() }, Some(RunSubject::Run(newest())));
    check(&RevokeRule { run: named(), rule: "rule-1".to_owned() }, Some(RunSubject::Run(named())));
    check(&ListCommits { run: named(), limit: 1, reverted: false }, Some(RunSubject::Run(named())));
    let key = || "r-1:agents.code".to_owned();
    check(&ExportCheckpoint { key: key() }, Some(RunSubject::Checkpoint(key())));
    let answer = AnswerApproval { id: "a-12".to_owned(), text: "y".to_owned() };
    check(&answer, Some(RunSubject::Approval("a-12".to_owned())));
}

#[test]
fn a_request_that_any_service_carries_out_names_no_run() {
    check(&ShowRun { run: RunRef::Named("r-1".to_owned()) }, None);
    check(&ListWorkers {}, None);
}

/// The run is the same after the request crossed a socket.
#[track_caller]
fn check<O: Operation>(request: &O, expected: Option<RunSubject>) {
    assert_eq!(request.run(), expected, "{}", O::NAME);
    let crossed: O = serde_json::from_value(json!(request)).expect("its own form is read");
    assert_eq!(crossed.run(), expected, "{}", O::NAME);
}
