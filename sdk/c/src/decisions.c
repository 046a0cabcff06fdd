/* The log of decisions and what came of them. */

#include "inside.h"

#if defined(LH_WORLD_AGENT) || defined(LH_WORLD_PLANNER)

static bool fail_decision(lh_error *err, longhaul_plugin_decisions_decision_error_t e) {
    switch (e.tag) {
    case LONGHAUL_PLUGIN_DECISIONS_DECISION_ERROR_DENIED: return lhi_fail_denied(err, e.val.denied);
    case LONGHAUL_PLUGIN_DECISIONS_DECISION_ERROR_LIMIT: return lhi_fail_hit(err, e.val.limit);
    case LONGHAUL_PLUGIN_DECISIONS_DECISION_ERROR_INVALID: return lhi_fail_text(err, LH_INVALID, e.val.invalid);
    default: return lhi_fail_text(err, LH_FAILED, e.val.failed);
    }
}

bool lh_decisions_record(const lh_decision *decision, lh_str *id, lh_error *err) {
    longhaul_plugin_decisions_decision_error_t e;
    lh_decision mended = {
        .context = lh_utf8(decision->context),
        .decision = lh_utf8(decision->decision),
        .reasoning = lh_utf8(decision->reasoning),
        .tags = lhi_utf8_texts(decision->tags),
        .outcome = decision->outcome,
        .lesson = {decision->lesson.is_some, EMPTY},
    };
    if (mended.lesson.is_some) mended.lesson.val = lh_utf8(decision->lesson.val);
    *id = EMPTY;
    if (!longhaul_plugin_decisions_record(&mended, id, &e)) return fail_decision(err, e);
    lhi_adopt_text(*id);
    return true;
}

bool lh_decisions_find(lh_str query, uint32_t limit, lh_found_decision_list *found, lh_error *err) {
    longhaul_plugin_decisions_decision_error_t e;
    query = lh_utf8(query);
    *found = (lh_found_decision_list){0};
    if (!longhaul_plugin_decisions_find(&query, limit, found, &e)) return fail_decision(err, e);
    for (size_t i = 0; i < found->len; i++) {
        lh_decision *decision = &found->ptr[i].decision;
        lhi_adopt_text(found->ptr[i].id);
        lhi_adopt_text(decision->context);
        lhi_adopt_text(decision->decision);
        lhi_adopt_text(decision->reasoning);
        lhi_adopt_texts(decision->tags);
        if (decision->lesson.is_some) lhi_adopt_text(decision->lesson.val);
    }
    if (found->len > 0) lh_adopt(found->ptr);
    return true;
}

#endif
