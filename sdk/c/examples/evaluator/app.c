/* The evaluator `mentions`: what a criterion quotes must be in the work.
 *
 * Every text in double quotes must be in the output or in an evidence file. A criterion without quotes is decided by
 * the pinned check of its id. No model is asked, and there is no mark between pass and fail: what cannot be decided
 * fails and says so. */

#include "longhaul.h"

/* Takes the next text between a pair of `"` off, but empty ones. */
static bool next_quote(lh_str *rest, lh_str *quote) {
    lh_str skipped;
    while (lh_split(rest, '"', &skipped)) {
        /* Without another `"` the quote is open, and an open one is none. */
        if (!lh_contains(*rest, lh_lit("\""))) return false;
        lh_split(rest, '"', quote);
        if (quote->len > 0) return true;
    }
    return false;
}

/* The output is JSON, in which one text can be written in several ways: `plain` has its escapes read. */
static bool is_in_work(const lh_subject *subject, lh_str plain, lh_str quote) {
    if (lh_contains(subject->output, quote) || lh_contains(plain, quote)) return true;
    for (size_t i = 0; i < subject->evidence.len; i++) {
        if (lh_contains(subject->evidence.ptr[i].content, quote)) return true;
    }
    return false;
}

/* Whether the quotes of a criterion are in the work; `reason` stays empty when it has none. */
static bool is_mentioned(const lh_subject *subject, lh_str plain, const lh_criterion *criterion, lh_str *reason) {
    lh_out missing = {0};
    lh_str rest = criterion->text, quote;
    while (next_quote(&rest, &quote)) {
        *reason = lh_lit("everything that it quotes is in the work");
        if (is_in_work(subject, plain, quote)) continue;
        quote = lh_cut(quote, 80);
        lh_addf(&missing, "%s\"%.*s\"", missing.len == 0 ? "not in the work: " : ", ", LH_ARG(quote));
    }
    if (missing.len > 0) *reason = lh_cut(lh_out_text(&missing), 400);
    return reason->len > 0 && missing.len == 0;
}

/* The verdict of the check that has the criterion's id. */
static bool run_check(const lh_check_list *checks, lh_str name, bool *passed, lh_str *reason, lh_error *err) {
    size_t i = 0;
    while (i < checks->len && !lh_eq(checks->ptr[i].name, name)) i++;
    *passed = false;
    if (i == checks->len) {
        *reason = lh_format("it quotes nothing, and there is no check `%.*s`", LH_ARG(name));
        return true;
    }
    lh_check_report report;
    if (!lh_check_run(name, &report, err)) return false;
    *passed = report.passed;
    lh_str end = report.exit_code.is_some ? lh_format("with exit code %d", (int)report.exit_code.val) : lh_lit("at a limit");
    *reason = lh_format("the check `%.*s` %s %.*s", LH_ARG(name), report.passed ? "passes" : "fails", LH_ARG(end));
    return true;
}

bool lh_evaluator_judge(const lh_subject *subject, const lh_rubric *rubric, lh_verdict *verdict, lh_error *err) {
    size_t count = rubric->criteria.len;
    if (count == 0) return lh_fail(err, LH_FAILED, "a rubric without criteria cannot be judged");
    lh_judgement *judgements = lh_alloc(count, sizeof *judgements);
    lh_issue *issues = lh_alloc(count, sizeof *issues);
    if (judgements == NULL || issues == NULL) return lh_fail(err, LH_FAILED, "out of memory for %zu criteria", count);
    verdict->judgements.ptr = judgements;
    verdict->issues.ptr = issues;
    lh_str plain = lh_json_plain(subject->output);
    lh_check_list checks = lh_checks();
    for (size_t i = 0; i < count; i++) {
        const lh_criterion *criterion = &rubric->criteria.ptr[i];
        lh_str reason = {NULL, 0};
        bool passed = is_mentioned(subject, plain, criterion, &reason);
        if (reason.len == 0 && !run_check(&checks, criterion->id, &passed, &reason, err)) return false;
        judgements[verdict->judgements.len++] = (lh_judgement){criterion->id, passed ? LH_PASS : LH_FAIL, reason};
        if (!passed) issues[verdict->issues.len++] = (lh_issue){{true, criterion->id}, reason};
    }
    return true;
}
