"""The evaluator `mentions`: what a criterion has in double quotes must occur in the work. It asks no model."""

import re

from longhaul_sdk import (
    Criterion,
    Evaluator,
    FailedError,
    Issue,
    Judgement,
    Mark,
    Rubric,
    Subject,
    Verdict,
    checks,
    export,
    jsontext,
)

QUOTED = re.compile(r'"([^"]+)"')


@export
class Mentions(Evaluator):
    """Judges by texts and, where a criterion has none, by the pinned check of its name."""

    def judge(self, subject: Subject, rubric: Rubric) -> Verdict:
        if not rubric.criteria:
            raise FailedError("a rubric without criteria cannot be judged")
        texts = [text_of(subject.output), *(evidence.content for evidence in subject.evidence)]
        judgements = [judge_one(criterion, texts) for criterion in rubric.criteria]
        wrong = [one for one in judgements if one.mark is not Mark.PASS]
        return Verdict(judgements, [Issue(one.criterion, one.reason) for one in wrong])


def judge_one(criterion: Criterion, texts: list[str]) -> Judgement:
    """Marks a criterion, with its reason in one line."""
    wanted = QUOTED.findall(criterion.text)
    if not wanted:
        return judge_by_check(criterion)
    missing = [text for text in wanted if not any(text in one for one in texts)]
    if not missing:
        return Judgement(criterion.id, Mark.PASS, "all that it names is there")
    names = ", ".join(f'"{text}"' for text in missing)
    return Judgement(criterion.id, Mark.FAIL, one_line(f"missing: {names}"))


def judge_by_check(criterion: Criterion) -> Judgement:
    """Marks a criterion that names no text."""
    if criterion.id not in [check.name for check in checks.available()]:
        reason = f"it has no text in double quotes, and there is no check `{criterion.id}`"
        return Judgement(criterion.id, Mark.FAIL, one_line(reason))
    report = checks.run(criterion.id)
    mark = Mark.PASS if report.passed else Mark.FAIL
    end = "at a limit" if report.exit_code is None else f"with exit code {report.exit_code}"
    how = "passed" if report.passed else f"failed {end}"
    return Judgement(criterion.id, mark, one_line(f"the check `{criterion.id}` {how}"))


def text_of(output: object) -> str:
    """A text as it is, anything else as JSON."""
    return output if isinstance(output, str) else jsontext.dumps(output)


def one_line(text: str) -> str:
    """At most 200 characters."""
    return jsontext.cut(" ".join(text.split()), 200)
