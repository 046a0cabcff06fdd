/* The agent `foreman`: hands each line `- PART` of its task to a sub-agent, and asks again only for what is not done.
 *
 * The outcome of a part is kept in working memory, so a later round of the same run does not hand it out again. A part
 * that fails is noted as an open decision; one that had failed before is a question for a person, and never a third
 * attempt. No model is asked here: that is the sub-agent's affair. */

#include "longhaul.h"

/* As many as the host runs beside each other. */
#define PARTS_MAX 64

typedef struct {
    lh_str text;
    lh_str output; /* JSON; empty as long as it is not done */
} part;

typedef struct {
    part all[PARTS_MAX];
    size_t count;
} parts;

/* Under `[agents.NAME.settings]` of longhaul.toml: who does the parts. */
static bool read_settings(lh_str json, lh_str *worker, lh_error *err) {
    lh_value settings;
    if (!lh_json_read("the settings", json, &settings, err)) return false;
    for (lh_value value = lh_first(settings); lh_there(value); value = lh_next(value)) {
        lh_str name = lh_cut(lh_name_of(value), 100);
        if (!lh_is(name, "worker") || lh_kind_of(value) != LH_TEXT) {
            return lh_fail(err, LH_FAILED, "the settings: `%.*s` is not usable; there is `worker`, the name of an agent",
                           LH_ARG(name));
        }
        *worker = lh_text_of(value);
    }
    return true;
}

static bool read_parts(lh_str instruction, parts *found, lh_error *err) {
    lh_str line;
    while (lh_split(&instruction, '\n', &line)) {
        lh_str text = lh_trim(line);
        if (!lh_starts(text, lh_lit("- "))) continue;
        if (found->count == PARTS_MAX) return lh_fail_limit(err, "parts", PARTS_MAX + 1, PARTS_MAX);
        found->all[found->count++].text = lh_trim(lh_slice(text, 2, text.len));
    }
    if (found->count > 0) return true;
    return lh_fail(err, LH_BLOCKED, "which parts has the task? write each as a line `- PART`");
}

/* A key of working memory has at most 512 bytes. */
static lh_str key_of(lh_str text) { return lh_format("part/%.*s", LH_ARG(lh_first_chars(text, 100))); }

/* Fills in what an earlier round got. */
static bool recall_done(parts *found, lh_error *err) {
    for (size_t i = 0; i < found->count; i++) {
        bool is_there;
        if (!lh_recall_fetch(LH_WORKING, key_of(found->all[i].text), &found->all[i].output, &is_there, err)) return false;
    }
    return true;
}

/* The memory of other parts and of earlier runs is all that the worker knows beside its part. */
static bool make_assignment(lh_str worker, lh_str text, lh_assignment *assignment, lh_error *err) {
    lh_remembered_list known;
    if (!lh_recall_search(text, 3, &known, err)) return false;
    lh_out context = {0};
    lh_begin_object(&context);
    for (size_t i = 0; i < known.len; i++) {
        lh_key_text(&context, known.ptr[i].key);
        lh_put_json(&context, known.ptr[i].value);
    }
    lh_end(&context);
    *assignment = (lh_assignment){worker, {.instruction = text, .context = lh_out_text(&context)}};
    return true;
}

static bool has_failed_before(lh_str text, bool *has, lh_error *err) {
    lh_found_decision_list found;
    *has = false;
    if (!lh_decisions_find(text, 10, &found, err)) return false;
    for (size_t i = 0; i < found.len; i++) *has = *has || lh_eq(found.ptr[i].decision.context, text);
    return true;
}

static bool keep_failure(lh_str text, const lh_error *failure, lh_error *err) {
    bool is_again;
    lh_str why = lh_error_text(failure), id;
    if (!has_failed_before(text, &is_again, err)) return false;
    if (is_again) {
        return lh_fail(err, LH_BLOCKED, "`%.*s` failed twice, now with: %.*s; how should it be done?", LH_ARG(text),
                       LH_ARG(why));
    }
    lh_str tag = lh_lit("foreman");
    lh_decision decision = {.context = text, .decision = lh_lit("left for the next round"), .reasoning = why,
                            .tags = {&tag, 1}, .outcome = LH_DECISION_OPEN};
    return lh_decisions_record(&decision, &id, err);
}

static bool keep_answer(part *one, const lh_delegated *answer, lh_error *err) {
    if (!answer->ok) return keep_failure(one->text, &answer->error, err);
    one->output = answer->outcome.output;
    return lh_recall_remember(LH_WORKING, key_of(one->text), one->output, err);
}

/* Hands out what is not done, all at once, and keeps what comes back. */
static bool hand_out(parts *found, lh_str worker, lh_error *err) {
    lh_assignment assignments[PARTS_MAX];
    lh_delegated answers[PARTS_MAX];
    part *asked[PARTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < found->count; i++) {
        part *one = &found->all[i];
        if (one->output.len > 0) continue;
        if (!make_assignment(worker, one->text, &assignments[count], err)) return false;
        asked[count++] = one;
    }
    if (!lh_delegate_run_many(assignments, count, answers, err)) return false;
    for (size_t i = 0; i < count; i++) {
        if (!keep_answer(asked[i], &answers[i], err)) return false;
    }
    return true;
}

static bool report(const parts *found, lh_outcome *outcome, lh_error *err) {
    lh_str *open = lh_alloc(found->count, sizeof *open);
    if (open == NULL) return lh_fail(err, LH_FAILED, "out of memory for %zu parts", found->count);
    outcome->unknowns.ptr = open;
    lh_out output = {0};
    lh_begin_object(&output);
    for (size_t i = 0; i < found->count; i++) {
        const part *one = &found->all[i];
        if (one->output.len == 0) {
            open[outcome->unknowns.len++] = one->text;
            continue;
        }
        lh_key_text(&output, one->text);
        lh_put_json(&output, one->output);
    }
    lh_end(&output);
    size_t done = found->count - outcome->unknowns.len;
    outcome->output = lh_out_text(&output);
    outcome->summary = lh_format("%zu of %zu parts are done", done, found->count);
    return true;
}

/* Tells people and the next invocation. */
static bool hand_over(const lh_outcome *outcome, lh_error *err) {
    lh_saved_artifact before;
    bool is_there;
    lh_str_list no_files = {0};
    if (!lh_artifact_load(&before, &is_there, err)) return false;
    if (is_there) lh_log(LH_INFO, "before: %.*s", LH_ARG(before.summary));
    return lh_progress_add(lh_lit("handed the parts out"), outcome->summary, no_files, err) &&
           lh_artifact_save(outcome->output, outcome->summary, err);
}

bool lh_agent_run(const lh_task *task, lh_outcome *outcome, lh_error *err) {
    lh_str worker = lh_lit("worker");
    parts *found = lh_alloc(1, sizeof *found);
    if (found == NULL) return lh_fail(err, LH_FAILED, "out of memory");
    return read_settings(task->settings, &worker, err) && read_parts(task->instruction, found, err) &&
           recall_done(found, err) && hand_out(found, worker, err) && report(found, outcome, err) &&
           hand_over(outcome, err);
}
