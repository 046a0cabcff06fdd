/* The evaluator `{{name}}`: a criterion passes when its text occurs in the output.
 *
 * It sees the output and the rubric, never how the output came to be. */

#include "longhaul.h"

bool lh_evaluator_judge(const lh_subject *subject, const lh_rubric *rubric, lh_verdict *verdict, lh_error *err) {
    size_t count = rubric->criteria.len;
    if (count == 0) return lh_fail(err, LH_FAILED, "a rubric without criteria cannot be judged");
    verdict->judgements.ptr = lh_alloc(count, sizeof *verdict->judgements.ptr);
    verdict->issues.ptr = lh_alloc(count, sizeof *verdict->issues.ptr);
    if (verdict->judgements.ptr == NULL || verdict->issues.ptr == NULL) {
        return lh_fail(err, LH_FAILED, "out of memory for %zu criteria", count);
    }
    for (size_t i = 0; i < count; i++) {
        const lh_criterion *criterion = &rubric->criteria.ptr[i];
        bool passes = lh_contains(subject->output, criterion->text);
        lh_str reason = passes ? lh_lit("the output says it") : lh_lit("the output does not say it");
        verdict->judgements.ptr[verdict->judgements.len++] =
            (lh_judgement){criterion->id, passes ? LH_PASS : LH_FAIL, reason};
        if (!passes) {
            /* Advice for the agent before its next round. */
            lh_str text = lh_format("the output does not say: %.*s", LH_ARG(criterion->text));
            verdict->issues.ptr[verdict->issues.len++] = (lh_issue){{true, criterion->id}, text};
        }
    }
    return true;
}
