/* Code in steps, of which only what a change touches runs again. */

#include "inside.h"

#if defined(LH_WORLD_AGENT)

static bool fail_graph(lh_error *err, longhaul_plugin_graph_graph_error_t e) {
    switch (e.tag) {
    case LONGHAUL_PLUGIN_GRAPH_GRAPH_ERROR_UNKNOWN_STEP: return lhi_fail_text(err, LH_INVALID, e.val.unknown_step);
    case LONGHAUL_PLUGIN_GRAPH_GRAPH_ERROR_DENIED: return lhi_fail_denied(err, e.val.denied);
    case LONGHAUL_PLUGIN_GRAPH_GRAPH_ERROR_LIMIT: return lhi_fail_hit(err, e.val.limit);
    case LONGHAUL_PLUGIN_GRAPH_GRAPH_ERROR_INVALID: return lhi_fail_text(err, LH_INVALID, e.val.invalid);
    default: return lhi_fail_text(err, LH_FAILED, e.val.failed);
    }
}

static void adopt_failure(lh_graph_failure failure) {
    lhi_adopt_text(failure.kind);
    lhi_adopt_text(failure.message);
    lhi_adopt_text(failure.traceback);
}

static bool adopt_changes(lh_graph_changes changes) {
    lhi_adopt_texts(changes.stale);
    if (changes.failure.is_some) adopt_failure(changes.failure.val);
    return true;
}

static bool adopt_replay(lh_graph_replay replay) {
    lhi_adopt_texts(replay.ran);
    lhi_adopt_texts(replay.reused);
    lhi_adopt_texts(replay.failed);
    lhi_adopt_texts(replay.blocked);
    lhi_adopt_texts(replay.warnings);
    return true;
}

static void adopt_step(lh_graph_step step) {
    lhi_adopt_text(step.id);
    lhi_adopt_text(step.source);
    lhi_adopt_texts(step.reads);
    lhi_adopt_texts(step.writes);
    lhi_adopt_texts(step.needs);
    lhi_adopt_texts(step.unstorable);
    lhi_adopt_text(step.stdout_);
    lhi_adopt_text(step.stderr_);
    if (step.value.is_some) lhi_adopt_text(step.value.val);
    if (step.failure.is_some) adopt_failure(step.failure.val);
}

bool lh_graph_add(lh_str graph, lh_str step, lh_str source, lh_graph_changes *changes, lh_error *err) {
    longhaul_plugin_graph_graph_error_t e;
    graph = lh_utf8(graph);
    step = lh_utf8(step);
    source = lh_utf8(source);
    *changes = (lh_graph_changes){0};
    if (!longhaul_plugin_graph_add_step(&graph, &step, &source, changes, &e)) return fail_graph(err, e);
    return adopt_changes(*changes);
}

bool lh_graph_change(lh_str graph, lh_str step, lh_str source, lh_graph_changes *changes, lh_error *err) {
    longhaul_plugin_graph_graph_error_t e;
    graph = lh_utf8(graph);
    step = lh_utf8(step);
    source = lh_utf8(source);
    *changes = (lh_graph_changes){0};
    if (!longhaul_plugin_graph_change_step(&graph, &step, &source, changes, &e)) return fail_graph(err, e);
    return adopt_changes(*changes);
}

bool lh_graph_remove(lh_str graph, lh_str step, lh_graph_changes *changes, lh_error *err) {
    longhaul_plugin_graph_graph_error_t e;
    graph = lh_utf8(graph);
    step = lh_utf8(step);
    *changes = (lh_graph_changes){0};
    if (!longhaul_plugin_graph_remove_step(&graph, &step, changes, &e)) return fail_graph(err, e);
    return adopt_changes(*changes);
}

bool lh_graph_run(lh_str graph, bool keep_going, lh_graph_replay *replay, lh_error *err) {
    longhaul_plugin_graph_graph_error_t e;
    graph = lh_utf8(graph);
    *replay = (lh_graph_replay){0};
    if (!longhaul_plugin_graph_run(&graph, keep_going, replay, &e)) return fail_graph(err, e);
    return adopt_replay(*replay);
}

bool lh_graph_replay_step(lh_str graph, lh_str step, lh_graph_replay *replay, lh_error *err) {
    longhaul_plugin_graph_graph_error_t e;
    graph = lh_utf8(graph);
    step = lh_utf8(step);
    *replay = (lh_graph_replay){0};
    if (!longhaul_plugin_graph_replay(&graph, &step, replay, &e)) return fail_graph(err, e);
    return adopt_replay(*replay);
}

bool lh_graph_stale(lh_str graph, lh_str_list *steps, lh_error *err) {
    longhaul_plugin_graph_graph_error_t e;
    graph = lh_utf8(graph);
    *steps = (lh_str_list){0};
    if (!longhaul_plugin_graph_stale(&graph, steps, &e)) return fail_graph(err, e);
    lhi_adopt_texts(*steps);
    return true;
}

bool lh_graph_show(lh_str graph, lh_graph_step_list *steps, lh_error *err) {
    longhaul_plugin_graph_graph_error_t e;
    graph = lh_utf8(graph);
    *steps = (lh_graph_step_list){0};
    if (!longhaul_plugin_graph_show(&graph, steps, &e)) return fail_graph(err, e);
    for (size_t i = 0; i < steps->len; i++) adopt_step(steps->ptr[i]);
    if (steps->len > 0) lh_adopt(steps->ptr);
    return true;
}

bool lh_graph_diagnose(lh_str graph, const lh_str *step, lh_graph_diagnosis *found, lh_error *err) {
    longhaul_plugin_graph_graph_error_t e;
    lh_str wanted = step == NULL ? EMPTY : lh_utf8(*step);
    graph = lh_utf8(graph);
    *found = (lh_graph_diagnosis){0};
    if (!longhaul_plugin_graph_diagnose(&graph, step == NULL ? NULL : &wanted, found, &e)) return fail_graph(err, e);
    lhi_adopt_text(found->step);
    adopt_failure(found->failure);
    for (size_t i = 0; i < found->values.len; i++) {
        lhi_adopt_text(found->values.ptr[i].name);
        lhi_adopt_text(found->values.ptr[i].text);
        if (found->values.ptr[i].producer.is_some) lhi_adopt_text(found->values.ptr[i].producer.val);
    }
    if (found->values.len > 0) lh_adopt(found->values.ptr);
    lhi_adopt_text(found->cause);
    lhi_adopt_text(found->reason);
    return true;
}

bool lh_graph_patch(lh_str graph, const lh_str *step, lh_graph_kept *kept, lh_error *err) {
    longhaul_plugin_graph_graph_error_t e;
    lh_str wanted = step == NULL ? EMPTY : lh_utf8(*step);
    graph = lh_utf8(graph);
    *kept = (lh_graph_kept){0};
    if (!longhaul_plugin_graph_patch(&graph, step == NULL ? NULL : &wanted, kept, &e)) return fail_graph(err, e);
    lhi_adopt_text(kept->step);
    lhi_adopt_text(kept->source);
    lhi_adopt_text(kept->reason);
    return adopt_replay(kept->replay);
}

bool lh_graph_export(lh_str graph, lh_graph_format format, lh_str *text, lh_error *err) {
    longhaul_plugin_graph_graph_error_t e;
    graph = lh_utf8(graph);
    *text = EMPTY;
    if (!longhaul_plugin_graph_export_graph(&graph, (longhaul_plugin_graph_graph_format_t)format, text, &e)) {
        return fail_graph(err, e);
    }
    lhi_adopt_text(*text);
    return true;
}

#endif
