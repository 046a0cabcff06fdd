/* The planner `{{name}}`: each line of the goal is a step. It plans and reviews, and executes nothing. */

#include "longhaul.h"

static bool make_step(size_t number, lh_str line, lh_plan_step *step) {
    /* Criteria for the evaluator. */
    lh_criterion *criterion = lh_alloc(1, sizeof *criterion);
    if (criterion == NULL) return false;
    *criterion = (lh_criterion){.id = lh_lit("done"), .text = line};
    *step = (lh_plan_step){
        .id = lh_format("step-%zu", number),
        .title = lh_first_chars(line, 80),
        .instruction = line,
        .category = lh_lit("functional"),
        .priority = 5,
        .criteria = {criterion, 1},
        .on_failure = {.tag = LH_RETRY, .val.retry = 1},
    };
    return true;
}

bool lh_planner_plan(const lh_goal *goal, lh_plan *plan, lh_error *err) {
    size_t lines = 1;
    for (size_t i = 0; i < goal->text.len; i++) lines += goal->text.ptr[i] == '\n';
    plan->steps.ptr = lh_alloc(lines, sizeof *plan->steps.ptr);
    if (plan->steps.ptr == NULL) return lh_fail(err, LH_FAILED, "out of memory for %zu lines", lines);
    lh_str rest = goal->text, line;
    while (lh_split(&rest, '\n', &line)) {
        line = lh_trim(line);
        if (line.len == 0) continue;
        size_t number = plan->steps.len + 1;
        if (!make_step(number, line, &plan->steps.ptr[number - 1])) return lh_fail(err, LH_FAILED, "out of memory");
        plan->steps.len = number;
    }
    return plan->steps.len > 0 || lh_fail(err, LH_BLOCKED, "what is to be done?");
}

static bool has_passed(const lh_plan_step_result_list *results, lh_str id) {
    for (size_t i = 0; i < results->len; i++) {
        if (results->ptr[i].passed && lh_eq(results->ptr[i].step, id)) return true;
    }
    return false;
}

/* Called when steps have failed: here the plan stays, without what is done. */
bool lh_planner_replan(const lh_goal *goal, const lh_plan *old, const lh_plan_step_result_list *results, lh_plan *plan,
                       lh_error *err) {
    (void)goal;
    plan->steps.ptr = lh_alloc(old->steps.len, sizeof *plan->steps.ptr);
    if (plan->steps.ptr == NULL && old->steps.len > 0) return lh_fail(err, LH_FAILED, "out of memory");
    for (size_t i = 0; i < old->steps.len; i++) {
        if (!has_passed(results, old->steps.ptr[i].id)) plan->steps.ptr[plan->steps.len++] = old->steps.ptr[i];
    }
    plan->notes = old->notes;
    return true;
}

/* Called at the end: one answer out of what the steps gave. */
bool lh_planner_synthesize(const lh_goal *goal, const lh_plan_step_result_list *results, lh_synthesis *synthesis,
                           lh_error *err) {
    (void)goal;
    lh_str *unknowns = lh_alloc(results->len, sizeof *unknowns);
    if (unknowns == NULL && results->len > 0) return lh_fail(err, LH_FAILED, "out of memory");
    synthesis->unknowns.ptr = unknowns;
    lh_out answer = {0};
    lh_begin_object(&answer);
    for (size_t i = 0; i < results->len; i++) {
        const lh_plan_step_result *result = &results->ptr[i];
        lh_value output;
        lh_key_text(&answer, result->step);
        if (result->outcome.is_some && lh_json_read("the output", result->outcome.val.output, &output, err)) {
            lh_put_json(&answer, lh_json_of(output));
        } else {
            lh_put_null(&answer);
        }
        if (!result->passed) unknowns[synthesis->unknowns.len++] = result->step;
    }
    lh_end(&answer);
    synthesis->answer = lh_out_text(&answer);
    size_t passed = results->len - synthesis->unknowns.len;
    synthesis->confidence.is_some = results->len > 0;
    if (results->len > 0) synthesis->confidence.val = (double)passed / (double)results->len;
    return true;
}
