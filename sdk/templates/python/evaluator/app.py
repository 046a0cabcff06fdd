"""The evaluator `{{name}}`: a criterion passes when its text occurs in the output.

It sees the output and the rubric, never how the output came to be.
"""

import json

from longhaul_sdk import Evaluator, FailedError, Issue, Judgement, Mark, Rubric, Subject, Verdict, export


@export
class Plugin(Evaluator):
    def judge(self, subject: Subject, rubric: Rubric) -> Verdict:
        if not rubric.criteria:
            raise FailedError("a rubric without criteria cannot be judged")
        output = json.dumps(subject.output, ensure_ascii=False)
        verdict = Verdict([])
        for criterion in rubric.criteria:
            passes = criterion.text in output
            mark, reason = (Mark.PASS, "the output says it") if passes else (Mark.FAIL, "the output does not say it")
            verdict.judgements.append(Judgement(criterion.id, mark, reason))
            if not passes:
                # Advice for the agent before its next round.
                verdict.issues.append(Issue(criterion.id, f"the output does not say: {criterion.text}"))
        return verdict
