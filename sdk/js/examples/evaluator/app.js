// The evaluator `mentions`: what a criterion has in double quotes must occur in the output or in the
// evidence. A criterion without quotes is decided by the pinned check of its name. It asks no model.

import { checks, defineEvaluator, Failed } from "longhaul-sdk";

export const evaluator = defineEvaluator({
  judge(subject, rubric) {
    if (rubric.criteria.length === 0) throw new Failed("a rubric without criteria cannot be judged");
    const places = [textsOf(subject.output), ...subject.evidence.map((file) => file.content)];
    const known = new Set(checks.list().map((check) => check.name));
    const judgements = rubric.criteria.map((criterion) => judge(criterion, places, known));
    const issues = judgements
      .filter(({ mark }) => mark === "fail")
      .map(({ criterion, reason }) => ({ criterion, text: reason }));
    return { judgements, issues };
  },
});

function judge({ id, text }, places, known) {
  const quoted = [...text.matchAll(/"([^"]+)"/g)].map((match) => match[1]);
  if (quoted.length === 0) return judgeByCheck(id, known);
  const missing = quoted.filter((wanted) => !places.some((place) => place.includes(wanted)));
  if (missing.length === 0) return { criterion: id, mark: "pass", reason: "all that it quotes is there" };
  return { criterion: id, mark: "fail", reason: `missing: ${missing.map((one) => `"${one}"`).join(", ")}` };
}

function judgeByCheck(id, known) {
  if (!known.has(id)) {
    return { criterion: id, mark: "fail", reason: `it quotes nothing, and there is no check \`${id}\`` };
  }
  const { passed, exitCode } = checks.run(id);
  const end = exitCode === undefined ? "at a limit" : `with exit code ${exitCode}`;
  const reason = passed ? `the check \`${id}\` passed` : `the check \`${id}\` failed ${end}`;
  return { criterion: id, mark: passed ? "pass" : "fail", reason };
}

/** All texts in a JSON value, and the value itself as it was written. */
function textsOf(output) {
  const texts = [JSON.stringify(output)];
  const waiting = [output];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === "string") texts.push(value);
    else if (typeof value === "object" && value !== null) waiting.push(...Object.keys(value), ...Object.values(value));
  }
  return texts.join("\n");
}
