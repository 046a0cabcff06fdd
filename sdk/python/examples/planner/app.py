"""The planner `outline`: each line `- id: instruction` of the goal is a step. It asks no model."""

import re

from longhaul_sdk import (
    Criterion,
    Goal,
    Planner,
    PlanStep,
    PlanStepResult,
    Retry,
    Synthesis,
    UnclearError,
    WorkPlan,
    export,
)

LINE = re.compile(r"- ([^\s:]+):\s+(\S.*)")
TITLE_CHARS_MAX = 80


@export
class Outline(Planner):
    """Plans what is written, and adds nothing."""

    def plan(self, goal: Goal) -> WorkPlan:
        steps = [step for line in goal.text.splitlines() if (step := step_of(line)) is not None]
        if not steps:
            raise UnclearError("which steps are there? write each as a line `- id: instruction`")
        return WorkPlan(steps)

    def replan(self, goal: Goal, plan: WorkPlan, results: list[PlanStepResult]) -> WorkPlan:
        passed = {result.step for result in results if result.passed}
        return WorkPlan([step for step in plan.steps if step.id not in passed], plan.notes)

    def synthesize(self, goal: Goal, results: list[PlanStepResult]) -> Synthesis:
        answer = {result.step: result.outcome.output for result in results if result.outcome is not None}
        failed = [result.step for result in results if not result.passed]
        confidence = (len(results) - len(failed)) / len(results) if results else 0.0
        return Synthesis(answer, confidence, unknowns=failed)


def step_of(line: str) -> PlanStep | None:
    """The step that a line describes, if it does."""
    found = LINE.fullmatch(line.strip())
    if found is None:
        return None
    name, instruction = found.groups()
    return PlanStep(
        id=name,
        title=instruction[:TITLE_CHARS_MAX],
        instruction=instruction,
        category="functional",
        priority=5,
        criteria=[Criterion("does-it", instruction)],
        on_failure=Retry(1),
    )
