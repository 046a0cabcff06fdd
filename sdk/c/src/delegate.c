/* Handing work to sub-agents, each with a fresh context. */

#include "inside.h"

#if defined(LH_WORLD_AGENT)

static bool fail_delegate(lh_error *err, longhaul_plugin_delegate_delegate_error_t e) {
    switch (e.tag) {
    case LONGHAUL_PLUGIN_DELEGATE_DELEGATE_ERROR_UNKNOWN_AGENT: return lhi_fail_text(err, LH_INVALID, e.val.unknown_agent);
    case LONGHAUL_PLUGIN_DELEGATE_DELEGATE_ERROR_DENIED: return lhi_fail_denied(err, e.val.denied);
    case LONGHAUL_PLUGIN_DELEGATE_DELEGATE_ERROR_LIMIT: return lhi_fail_hit(err, e.val.limit);
    case LONGHAUL_PLUGIN_DELEGATE_DELEGATE_ERROR_UNAVAILABLE: return lhi_fail_outage(err, e.val.unavailable);
    case LONGHAUL_PLUGIN_DELEGATE_DELEGATE_ERROR_BLOCKED: return lhi_fail_text(err, LH_BLOCKED, e.val.blocked);
    default: return lhi_fail_text(err, LH_FAILED, e.val.failed);
    }
}

lh_outcome lhi_adopt_outcome(lh_outcome outcome) {
    lhi_adopt_text(outcome.output);
    lhi_adopt_text(outcome.summary);
    lhi_adopt_texts(outcome.unknowns);
    return outcome;
}

static lh_optional_str mend_optional(lh_optional_str text) {
    if (text.is_some) text.val = lh_utf8(text.val);
    return text;
}

/* JSON of an object, where nothing is an empty one. */
static lh_str mend_object(lh_str json) { return json.len == 0 ? lh_lit("{}") : lh_utf8(json); }

/* The task as the host takes it. Without memory a list is empty, and the call ends with an error in any case. */
static lh_task mend_task(const lh_task *task) {
    lh_task mended = {
        .id = task->id.len == 0 ? lh_lit("task") : lh_utf8(task->id),
        .instruction = lh_utf8(task->instruction),
        .context = mend_object(task->context),
        .settings = mend_object(task->settings),
        .criteria = {lh_alloc(task->criteria.len, sizeof *task->criteria.ptr), 0},
        .feedback = {lh_alloc(task->feedback.len, sizeof *task->feedback.ptr), 0},
        .round = task->round == 0 ? 1 : task->round,
    };
    for (size_t i = 0; mended.criteria.ptr != NULL && i < task->criteria.len; i++) {
        const lh_criterion *one = &task->criteria.ptr[i];
        mended.criteria.ptr[mended.criteria.len++] =
            (lh_criterion){lh_utf8(one->id), lh_utf8(one->text), mend_optional(one->check)};
    }
    for (size_t i = 0; mended.feedback.ptr != NULL && i < task->feedback.len; i++) {
        const lh_issue *one = &task->feedback.ptr[i];
        mended.feedback.ptr[mended.feedback.len++] = (lh_issue){mend_optional(one->criterion), lh_utf8(one->text)};
    }
    return mended;
}

bool lh_delegate_run(lh_str agent, const lh_task *task, lh_outcome *outcome, lh_error *err) {
    lh_assignment assignment = {lh_utf8(agent), mend_task(task)};
    longhaul_plugin_delegate_delegate_error_t e;
    *outcome = (lh_outcome){0};
    if (!longhaul_plugin_delegate_run(&assignment, outcome, &e)) return fail_delegate(err, e);
    lhi_adopt_outcome(*outcome);
    return true;
}

bool lh_delegate_run_many(const lh_assignment *assignments, size_t count, lh_delegated *answers, lh_error *err) {
    longhaul_plugin_delegate_list_assignment_t asked = {lh_alloc(count, sizeof *asked.ptr), count};
    longhaul_plugin_delegate_list_result_outcome_delegate_error_t ret;
    if (count == 0) return true;
    if (asked.ptr == NULL) return lh_fail(err, LH_FAILED, "out of memory for %zu assignments", count);
    for (size_t i = 0; i < count; i++) {
        asked.ptr[i] = (lh_assignment){lh_utf8(assignments[i].agent), mend_task(&assignments[i].task)};
    }
    longhaul_plugin_delegate_run_many(&asked, &ret);
    for (size_t i = 0; i < ret.len && i < count; i++) {
        answers[i] = (lh_delegated){.ok = !ret.ptr[i].is_err};
        if (answers[i].ok) answers[i].outcome = lhi_adopt_outcome(ret.ptr[i].val.ok);
        else fail_delegate(&answers[i].error, ret.ptr[i].val.err);
    }
    if (ret.len > 0) lh_adopt(ret.ptr);
    if (ret.len != count) return lh_fail(err, LH_FAILED, "%zu answers to %zu assignments", ret.len, count);
    return true;
}

#endif
