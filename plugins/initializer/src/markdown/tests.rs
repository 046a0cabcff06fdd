//! Sections of a goal become features, and what is written wrong is refused with its line.

use longhaul_sdk::planner::{CheckBody, PlanError};

use super::*;

const GOAL: &str = "# Numbers

Some words before.

## Feature: Sum of squares
- id: squares
- priority: 8
- category: testing
- file: squares.py

Write `sum_of_squares(n)`.

```text
## Feature: not a heading, in a fence
```

```python check squares-sum
from squares import sum_of_squares
assert sum_of_squares(3) == 14
```

- criterion: it is short
- criterion: the sum is right (check: squares-sum)

## Feature: Sum of squares
- depends on: squares
- check: lint
- on failure: retry 2
Second one.

## Notes
not part of it
";

#[test]
fn sections_become_features_in_their_order() {
    let steps = features(GOAL).expect("a plan");
    let ids: Vec<_> = steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["squares", "sum-of-squares"]);

    let first = &steps[0];
    assert_eq!((first.priority, first.category.as_str()), (8, "testing"));
    assert_eq!(
        first.instruction,
        "Write `sum_of_squares(n)`.\n\n```text\n## Feature: not a heading, in a fence\n```\n\n\
         File: squares.py",
    );
    let source = "from squares import sum_of_squares\nassert sum_of_squares(3) == 14\n";
    assert_eq!(first.checks[0].name, "squares-sum");
    assert_eq!(first.checks[0].body, CheckBody::python(source));
    let criteria: Vec<_> =
        first.criteria.iter().map(|c| (c.id.as_str(), c.text.as_str(), c.check.as_deref())).collect();
    assert_eq!(criteria, [("c1", "it is short", None), ("c2", "the sum is right", Some("squares-sum"))]);

    let second = &steps[1];
    assert_eq!(second.instruction, "Second one.");
    assert_eq!(second.depends_on, ["squares"]);
    assert_eq!(second.on_failure, OnFailure::Retry(2));
    assert_eq!(second.checks[0].body, CheckBody::Native("lint".to_owned()));
    assert_eq!(second.criteria[0].id, "lint");
}

#[test]
fn a_goal_without_sections_writes_no_features() {
    for text in ["", "Build a shop.", "```\n## Feature: in a fence\n```", "### Feature: too deep"] {
        assert!(!has_features(text), "{text}");
        assert!(features(text).is_ok_and(|steps| steps.is_empty()), "{text}");
    }
}

#[track_caller]
fn refused(body: &str, expected: &str) {
    let text = format!("## Feature: A\n{body}");
    match features(&text) {
        Err(PlanError::Unclear(text)) => assert!(text.contains(expected), "{text}"),
        other => panic!("expected a question, got {other:?}"),
    }
}

#[test]
fn what_is_written_wrong_is_a_question_with_its_line() {
    refused("- priority: 11", "line 2 of the goal, in the feature `A`: the priority `11`");
    refused("- priority: high", "is not 1 to 10");
    refused("- category: magic", "functional, ui,");
    refused("- id: a b", "`a b` is not an id");
    refused("- id: a\n- id: b", "two `- id:` lines");
    refused("- id:", "has no value");
    refused("- depends on: ghost", "depends on `ghost`, which does not exist; there are: `a`");
    refused("- depends on: a", "in a circle");
    refused("- on failure: shrug", "`retry N`");
    refused("- criterion: x (check: ghost)", "names the check `ghost`");
    refused("```python check\nx\n```", "a check has one name");
    refused("```python check a\nx", "is not closed");
    refused("- check: a\n```python check a\nx\n```", "two checks `a`");
    refused("- id: b\n## Feature: B\n- id: b", "line 3 of the goal: two features have the id `b`");
}

#[test]
fn a_line_that_looks_like_a_known_one_is_refused_with_what_was_meant() {
    refused(
        "- prio: 9",
        "line 2 of the goal, in the feature `A`: `- prio:` means nothing; did you mean `- priority:`?",
    );
    refused("- id: a\n- dependson: b", "did you mean `- depends on:`?");
    refused("Write it.\n\n- checks: lint", "line 4 of the goal, in the feature `A`: `- checks:` means nothing");
    refused("- crtierion: fast", "did you mean `- criterion:`?");
    refused("- owner: me\n\nWrite it.", "`- owner:` means nothing; there are `- id:`, `- priority:`");
}

#[test]
fn a_list_in_an_instruction_stays_text() {
    for body in [
        "Write it:\n\n- title: a text\n- done: yes or no",
        "- Given a list of numbers: return the sum",
        "  - owner: me",
        "- https://example.com/",
        "```\n- prio: 9\n```",
        "- id: a\n\n- note: this is text",
    ] {
        let steps = features(&format!("## Feature: A\n{body}")).unwrap_or_else(|error| panic!("{body}: {error:?}"));
        assert!(!steps[0].instruction.is_empty(), "{body}");
    }
}
