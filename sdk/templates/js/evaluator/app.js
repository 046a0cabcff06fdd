// The evaluator `{{name}}`: a criterion passes when its text occurs in the output.
//
// It sees the output and the rubric, never how the output came to be.

import { defineEvaluator, Failed } from "longhaul-sdk";

export const evaluator = defineEvaluator({
  judge(subject, rubric) {
    if (rubric.criteria.length === 0) throw new Failed("a rubric without criteria cannot be judged");
    const output = JSON.stringify(subject.output);
    const passes = (criterion) => output.includes(criterion.text);
    return {
      judgements: rubric.criteria.map((criterion) =>
        passes(criterion)
          ? { criterion: criterion.id, mark: "pass", reason: "the output says it" }
          : { criterion: criterion.id, mark: "fail", reason: "the output does not say it" },
      ),
      // Advice for the agent before its next round.
      issues: rubric.criteria
        .filter((criterion) => !passes(criterion))
        .map(({ id, text }) => ({ criterion: id, text: `the output does not say: ${text}` })),
    };
  },
});
