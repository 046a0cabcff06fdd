//! Valid plans, and the errors of invalid ones.

use crate::bench::{Bench, feature, plan, python_check, setup};
use longhaul_core::work::{CheckBody, CheckSpec, Criterion, FeatureSpec, Plan, PlanStep};
use longhaul_harness::plan::accept;
use longhaul_harness::{HarnessLimits, RunStatus, WorkReport};

/// The result for one feature `a`, changed so.
#[track_caller]
fn check(change: impl Fn(&mut FeatureSpec), expected: &str) {
    let mut spec = feature("a", &[]);
    change(&mut spec);
    check_plan(plan(vec![spec]), expected);
}

/// The result for a plan; nothing is accepted silently, so `expected` is `ok` or the whole text.
#[track_caller]
fn check_plan(plan: Plan, expected: &str) {
    let limits = HarnessLimits { features_max: 3, plan_bytes_max: 100_000, ..HarnessLimits::default() };
    let said = match accept(plan, &setup(), &limits) {
        Ok(accepted) if accepted.warnings.is_empty() => "ok".to_owned(),
        Ok(accepted) => format!("ok, {}", accepted.warnings.join("; ")),
        Err(error) => error.to_string(),
    };
    assert_eq!(said, expected);
}

fn criterion(id: &str, text: &str, check: Option<&str>) -> Criterion {
    Criterion { id: id.into(), text: text.into(), check: check.map(Into::into) }
}

#[test]
fn a_plan_needs_features_and_not_too_many() {
    check_plan(plan(vec![]), "the plan has no features; give it at least one");
    let of = |count| plan((0..count).map(|n| feature(&format!("f{n}"), &[])).collect());
    check_plan(of(3), "ok");
    check_plan(of(4), "the plan has 4 features, features_max is 3; merge some, or raise it in [run.limits]");
}

#[test]
fn a_plan_has_a_size() {
    let large = CheckSpec { name: "c".into(), body: CheckBody::Python("x".repeat(60_000)) };
    check(|spec| spec.checks = vec![large.clone()], "ok");
    let twice = || FeatureSpec { checks: vec![large.clone()], ..feature("a", &[]) };
    check_plan(
        plan(vec![twice(), twice()]),
        "the plan has 120074 bytes of text, plan_bytes_max is 100000; say it shorter, or raise it in [run.limits]",
    );
}

#[test]
fn ids_are_plain_and_unique() {
    check(|spec| spec.id = "A-b_9".into(), "ok");
    check(|spec| spec.id = "a".repeat(64), "ok");
    for wrong in ["", "a b", "../x", "ä", "a/b", "a\n", "f.1"] {
        let expected = format!("the feature id {wrong:?} is not usable; write 1 to 64 letters, digits, `-` or `_`");
        check(|spec| spec.id = wrong.into(), &expected);
    }
    check(
        |spec| spec.id = "a".repeat(65),
        &format!("the feature id {:?} is not usable; write 1 to 64 letters, digits, `-` or `_`", "a".repeat(65)),
    );
    check_plan(
        plan(vec![feature("a", &[]), feature("a", &[])]),
        "the feature id `a` is used twice; rename one of them",
    );
    check(
        |spec| spec.criteria = vec![criterion("c", "x", None), criterion("c", "y", None)],
        "the criterion of feature `a`: id `c` is used twice; rename one of them",
    );
    check(
        |spec| spec.checks = vec![python_check("c"), python_check("c")],
        "the check of feature `a`: id `c` is used twice; rename one of them",
    );
    check(
        |spec| spec.checks = vec![python_check("../../etc")],
        "the check of feature `a`: id \"../../etc\" is not usable; write 1 to 64 letters, digits, `-` or `_`",
    );
}

#[test]
fn dependencies_exist_and_lead_to_an_end() {
    check_plan(plan(vec![feature("a", &["b"]), feature("b", &[])]), "ok");
    check(
        |spec| spec.depends_on = vec!["zz".into()],
        "feature `a` depends on `zz`, which is not in the plan; add it, or remove the dependency",
    );
    let circle = "the features depend on each other in a circle: ";
    let remedy = "; remove one of these dependencies";
    check(|spec| spec.depends_on = vec!["a".into()], &format!("{circle}a -> a{remedy}"));
    check_plan(plan(vec![feature("a", &["b"]), feature("b", &["a"])]), &format!("{circle}a -> b -> a{remedy}"));
    // `a` only leads into the circle and is not named as part of it.
    check_plan(
        plan(vec![feature("a", &["b"]), feature("b", &["c"]), feature("c", &["b"])]),
        &format!("{circle}b -> c -> b{remedy}"),
    );
}

#[test]
fn what_is_judged_by_is_whole() {
    check(
        |spec| spec.criteria = vec![criterion("ok", "x", None), criterion("", "y", None)],
        "criterion 2 of feature `a` has no id; give it one of letters, digits, `-` or `_`",
    );
    check(
        |spec| spec.criteria = vec![criterion("c", " ", None)],
        "criterion `c` of feature `a` has neither a text nor a check; say what must hold",
    );
    check(
        |spec| spec.criteria = vec![criterion("c", "x", Some("nope"))],
        "criterion `c` of feature `a` names the check `nope`, which the feature does not have; it has: none",
    );
    check(
        |spec| spec.criteria.clear(),
        "feature `a` has neither criteria nor checks, so its completion could not be judged; add one",
    );
    check(
        |spec| spec.checks = vec![CheckSpec { name: "t".into(), body: CheckBody::Native("pytest".into()) }],
        "check `t` of feature `a` runs `pytest`, which is not in [checks] of longhaul.toml; there is: `cargo-test`",
    );
    check(
        |spec| spec.checks = vec![CheckSpec { name: "t".into(), body: CheckBody::Native("cargo-test".into()) }],
        "ok",
    );
    check(
        |spec| spec.checks = vec![CheckSpec { name: "t".into(), body: CheckBody::Python(" \n".into()) }],
        "check `t` of feature `a` is empty; write what it runs, or remove it",
    );
}

#[test]
fn a_feature_without_criteria_gets_one_for_each_check() {
    let spec =
        FeatureSpec { criteria: vec![], checks: vec![python_check("one"), python_check("two")], ..feature("a", &[]) };
    let accepted = accept(plan(vec![spec]), &setup(), &HarnessLimits::default()).unwrap();
    let expected = vec![
        criterion("one", "the check `one` passes", Some("one")),
        criterion("two", "the check `two` passes", Some("two")),
    ];
    assert_eq!(accepted.steps[0].spec.criteria, expected);
}

#[test]
fn texts_that_decide_are_refused_when_too_long_and_never_cut() {
    check(|spec| spec.instruction = "x".repeat(16_384), "ok");
    check(
        |spec| spec.instruction = "x".repeat(16_385),
        "the instruction of feature `a` has 16385 bytes, instruction_bytes_max is 16384; say it shorter, split the feature, or raise it in [run.limits]",
    );
    check(|spec| spec.instruction = " ".into(), "feature `a` has no instruction; say what the agent is to do");
    check(
        |spec| spec.criteria[0].text = "x".repeat(2_049),
        "criterion `works` of feature `a` has 2049 bytes, criterion_bytes_max is 2048; say it shorter, split the feature, or raise it in [run.limits]",
    );
    check(
        |spec| spec.checks = vec![CheckSpec { name: "t".into(), body: CheckBody::Python("x".repeat(65_537)) }],
        "check `t` of feature `a` has 65537 bytes, check_bytes_max is 65536; say it shorter, split the feature, or raise it in [run.limits]",
    );
    check(
        |spec| spec.criteria = (0..51).map(|n| criterion(&format!("c{n}"), "x", None)).collect(),
        "feature `a` has 51 criteria, criteria_max is 50; split the feature, or raise it in [run.limits]",
    );
    check(
        |spec| spec.checks = (0..21).map(|n| python_check(&format!("c{n}"))).collect(),
        "feature `a` has 21 checks, checks_max is 20; split the feature, or raise it in [run.limits]",
    );
}

#[test]
fn what_decides_nothing_is_mended() {
    let mut spec = feature("a", &["b", "b"]);
    spec.title = format!("one\n\ntwo {}", "x".repeat(300));
    spec.priority = 0;
    spec.category = " UI ".into();
    let mut other = feature("b", &[]);
    other.priority = 255;
    other.title = "\u{1b}\n".into();
    let accepted = accept(plan(vec![spec, other]), &setup(), &HarnessLimits::default()).unwrap();
    let [PlanStep { spec: a, .. }, PlanStep { spec: b, .. }] = &accepted.steps[..] else { panic!("two features") };
    assert_eq!((a.priority, b.priority), (1, 10));
    assert!(a.title.starts_with("one two xxx") && a.title.len() < 240, "{}", a.title);
    assert_eq!(b.title, "b");
    assert_eq!((a.category.as_str(), a.depends_on.len()), ("ui", 1));
    check(
        |spec| spec.category = "magic".into(),
        "ok, feature `a` has the unknown category `magic`, taken as `functional`",
    );
    check(
        |spec| spec.agent = Some("root".into()),
        "ok, feature `a` asks for agent `root`, which is not in [agents]; its category decides instead",
    );
}

#[test]
fn a_refused_plan_ends_the_run_and_says_why() {
    let mut bench = Bench::begun(HarnessLimits::default());
    bench.report(WorkReport::Planned(plan(vec![feature("a", &["b"]), feature("b", &["a"])])));
    assert_eq!(
        bench.look(),
        "do plan\n\
         - ended failed\n\
         finish failed: no plan: the features depend on each other in a circle: a -> b -> a; remove one of these dependencies"
    );
    assert_eq!(bench.state.status(), RunStatus::Failed);
}
