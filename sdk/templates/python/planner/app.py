"""The planner `{{name}}`: each line of the goal is a step. It plans and reviews, and executes nothing."""

from longhaul_sdk import (
    Criterion,
    Goal,
    Planner,
    PlanStep,
    PlanStepResult,
    Synthesis,
    UnclearError,
    WorkPlan,
    export,
)


@export
class Plugin(Planner):
    def plan(self, goal: Goal) -> WorkPlan:
        lines = [line.strip() for line in goal.text.splitlines() if line.strip()]
        if not lines:
            raise UnclearError("what is to be done?")
        return WorkPlan([_step(number, line) for number, line in enumerate(lines, start=1)])

    def replan(self, goal: Goal, plan: WorkPlan, results: list[PlanStepResult]) -> WorkPlan:
        """Called when steps have failed: here the plan stays, without what is done."""
        done = {result.step for result in results if result.passed}
        return WorkPlan([step for step in plan.steps if step.id not in done], plan.notes)

    def synthesize(self, goal: Goal, results: list[PlanStepResult]) -> Synthesis:
        """Called at the end: one answer out of what the steps gave."""
        passed = sum(result.passed for result in results)
        return Synthesis(
            answer={result.step: result.outcome.output if result.outcome else None for result in results},
            confidence=passed / len(results) if results else 0.0,
            unknowns=[result.step for result in results if not result.passed],
        )


def _step(number: int, line: str) -> PlanStep:
    # The criterion is what the evaluator will judge.
    return PlanStep(
        id=f"step-{number}",
        title=line[:80],
        instruction=line,
        criteria=[Criterion("done", line)],
    )
