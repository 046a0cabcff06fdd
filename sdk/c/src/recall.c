/* Working memory of a run and episodic memory of earlier ones. */

#include "inside.h"

#if defined(LH_WORLD_AGENT) || defined(LH_WORLD_PLANNER)

static bool fail_recall(lh_error *err, longhaul_plugin_recall_recall_error_t e) {
    switch (e.tag) {
    case LONGHAUL_PLUGIN_RECALL_RECALL_ERROR_DENIED: return lhi_fail_denied(err, e.val.denied);
    case LONGHAUL_PLUGIN_RECALL_RECALL_ERROR_LIMIT: return lhi_fail_hit(err, e.val.limit);
    case LONGHAUL_PLUGIN_RECALL_RECALL_ERROR_UNAVAILABLE: return lhi_fail_outage(err, e.val.unavailable);
    case LONGHAUL_PLUGIN_RECALL_RECALL_ERROR_INVALID: return lhi_fail_text(err, LH_INVALID, e.val.invalid);
    default: return lhi_fail_text(err, LH_FAILED, e.val.failed);
    }
}

bool lh_recall_remember(lh_tier tier, lh_str key, lh_str json, lh_error *err) {
    longhaul_plugin_recall_recall_error_t e;
    key = lh_utf8(key);
    json = lh_utf8(json);
    return longhaul_plugin_recall_remember((longhaul_plugin_recall_tier_t)tier, &key, &json, &e) || fail_recall(err, e);
}

bool lh_recall_fetch(lh_tier tier, lh_str key, lh_str *json, bool *found, lh_error *err) {
    longhaul_plugin_recall_option_json_t ret;
    longhaul_plugin_recall_recall_error_t e;
    key = lh_utf8(key);
    *json = EMPTY;
    *found = false;
    if (!longhaul_plugin_recall_fetch((longhaul_plugin_recall_tier_t)tier, &key, &ret, &e)) return fail_recall(err, e);
    *found = ret.is_some;
    if (ret.is_some) *json = lhi_adopt_text(ret.val);
    return true;
}

bool lh_recall_search(lh_str query, uint32_t limit, lh_remembered_list *found, lh_error *err) {
    longhaul_plugin_recall_recall_error_t e;
    query = lh_utf8(query);
    *found = (lh_remembered_list){0};
    if (!longhaul_plugin_recall_search(&query, limit, found, &e)) return fail_recall(err, e);
    for (size_t i = 0; i < found->len; i++) {
        lhi_adopt_text(found->ptr[i].key);
        lhi_adopt_text(found->ptr[i].value);
    }
    if (found->len > 0) lh_adopt(found->ptr);
    return true;
}

#endif
