/* The planner `outline`: each line `- id: instruction` of the goal is a step.
 *
 * No model is asked, so the same goal gives the same plan. A goal without such a line is a question back to its
 * author, and never a plan of one vague step. */

#include "longhaul.h"

#include <stdlib.h>
#include <string.h>

/* Ids that the harness takes: up to 64 letters, digits, `-` and `_`. */
static bool is_id(lh_str text) {
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i], low = c | 0x20;
        if (!((low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')) return false;
    }
    return text.len >= 1 && text.len <= 64;
}

/* The step of a line `- id: instruction`. */
static bool read_step(lh_str line, lh_plan_step *step) {
    lh_str id, rest = lh_trim(line);
    if (!lh_starts(rest, lh_lit("- "))) return false;
    rest = lh_slice(rest, 2, rest.len);
    if (!lh_split(&rest, ':', &id)) return false;
    id = lh_trim(id);
    lh_str instruction = lh_trim(rest);
    lh_criterion *criterion = lh_alloc(1, sizeof *criterion);
    if (!is_id(id) || instruction.len == 0 || criterion == NULL) return false;
    *criterion = (lh_criterion){.id = lh_lit("does-it"), .text = instruction};
    *step = (lh_plan_step){
        .id = id,
        .title = lh_first_chars(instruction, 80),
        .instruction = instruction,
        .category = lh_lit("functional"),
        .priority = 5,
        .criteria = {criterion, 1},
        .on_failure = {.tag = LH_RETRY, .val.retry = 1},
    };
    return true;
}

static int compare_ids(const void *a, const void *b) {
    return lh_compare(((const lh_plan_step *)a)->id, ((const lh_plan_step *)b)->id);
}

/* An id that two steps have; none is empty. In a sorted copy, since a goal may have a hundred thousand lines. */
static lh_str find_twice(const lh_plan_step *steps, size_t count) {
    lh_str none = {NULL, 0};
    lh_plan_step *sorted = lh_alloc(count, sizeof *sorted);
    if (sorted == NULL) return none;
    memcpy(sorted, steps, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_ids);
    for (size_t i = 1; i < count; i++) {
        if (lh_eq(sorted[i - 1].id, sorted[i].id)) return sorted[i].id;
    }
    return none;
}

bool lh_planner_plan(const lh_goal *goal, lh_plan *plan, lh_error *err) {
    size_t lines = 1;
    for (size_t i = 0; i < goal->text.len; i++) lines += goal->text.ptr[i] == '\n';
    lh_plan_step *steps = lh_alloc(lines, sizeof *steps);
    if (steps == NULL) return lh_fail(err, LH_FAILED, "out of memory for %zu lines", lines);
    size_t count = 0;
    lh_str rest = goal->text, line;
    while (lh_split(&rest, '\n', &line)) {
        if (read_step(line, &steps[count])) count++;
    }
    if (count == 0) {
        return lh_fail(err, LH_BLOCKED, "which steps does the goal have? write each as a line `- id: instruction`");
    }
    lh_str twice = find_twice(steps, count);
    if (twice.len > 0) {
        return lh_fail(err, LH_BLOCKED, "two steps are called `%.*s`; what is the second one's id?", LH_ARG(twice));
    }
    plan->steps.ptr = steps;
    plan->steps.len = count;
    plan->notes = lh_format("%zu steps, as the goal lists them", count);
    return true;
}

static bool has_passed(const lh_plan_step_result_list *results, lh_str id) {
    for (size_t i = 0; i < results->len; i++) {
        if (results->ptr[i].passed && lh_eq(results->ptr[i].step, id)) return true;
    }
    return false;
}

bool lh_planner_replan(const lh_goal *goal, const lh_plan *old, const lh_plan_step_result_list *results, lh_plan *plan,
                       lh_error *err) {
    (void)goal;
    lh_plan_step *steps = lh_alloc(old->steps.len, sizeof *steps);
    if (steps == NULL && old->steps.len > 0) return lh_fail(err, LH_FAILED, "out of memory for %zu steps", old->steps.len);
    size_t count = 0;
    for (size_t i = 0; i < old->steps.len; i++) {
        if (!has_passed(results, old->steps.ptr[i].id)) steps[count++] = old->steps.ptr[i];
    }
    plan->steps.ptr = steps;
    plan->steps.len = count;
    plan->notes = lh_format("%zu steps are left", count);
    return true;
}

bool lh_planner_synthesize(const lh_goal *goal, const lh_plan_step_result_list *results, lh_synthesis *synthesis,
                           lh_error *err) {
    (void)goal;
    lh_out answer = {0};
    lh_str *unknowns = lh_alloc(results->len, sizeof *unknowns);
    if (unknowns == NULL && results->len > 0) return lh_fail(err, LH_FAILED, "out of memory for %zu results", results->len);
    lh_begin_object(&answer);
    for (size_t i = 0; i < results->len; i++) {
        const lh_plan_step_result *result = &results->ptr[i];
        if (!result->passed) unknowns[synthesis->unknowns.len++] = result->step;
        if (!result->outcome.is_some) continue;
        lh_str output = result->outcome.val.output;
        lh_value value;
        lh_key_text(&answer, result->step);
        /* Empty text reads as an object elsewhere; here it is a text. */
        if (lh_trim(output).len > 0 && lh_json_read("the output", output, &value, err)) lh_put_json(&answer, lh_json_of(value));
        else lh_put_text(&answer, output);
    }
    lh_end(&answer);
    synthesis->answer = lh_out_text(&answer);
    synthesis->unknowns.ptr = unknowns;
    size_t passed = results->len - synthesis->unknowns.len;
    synthesis->confidence.is_some = results->len > 0;
    if (results->len > 0) synthesis->confidence.val = (double)passed / (double)results->len;
    return true;
}
