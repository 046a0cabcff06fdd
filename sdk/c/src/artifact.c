/* The artifact of an agent: the state that one invocation passes to the next. */

#include "inside.h"

#if defined(LH_WORLD_AGENT)

static bool fail_artifact(lh_error *err, longhaul_plugin_artifact_artifact_error_t e) {
    switch (e.tag) {
    case LONGHAUL_PLUGIN_ARTIFACT_ARTIFACT_ERROR_DENIED: return lhi_fail_denied(err, e.val.denied);
    case LONGHAUL_PLUGIN_ARTIFACT_ARTIFACT_ERROR_LIMIT: return lhi_fail_hit(err, e.val.limit);
    case LONGHAUL_PLUGIN_ARTIFACT_ARTIFACT_ERROR_INVALID: return lhi_fail_text(err, LH_INVALID, e.val.invalid);
    default: return lhi_fail_text(err, LH_FAILED, e.val.failed);
    }
}

bool lh_artifact_load(lh_saved_artifact *saved, bool *found, lh_error *err) {
    longhaul_plugin_artifact_option_saved_artifact_t ret;
    longhaul_plugin_artifact_artifact_error_t e;
    *saved = (lh_saved_artifact){0};
    *found = false;
    if (!longhaul_plugin_artifact_load(&ret, &e)) return fail_artifact(err, e);
    *found = ret.is_some;
    if (!ret.is_some) return true;
    *saved = ret.val;
    lhi_adopt_text(saved->state);
    lhi_adopt_text(saved->summary);
    return true;
}

bool lh_artifact_save(lh_str state_json, lh_str summary, lh_error *err) {
    longhaul_plugin_artifact_artifact_error_t e;
    state_json = lh_utf8(state_json);
    summary = lh_utf8(summary);
    return longhaul_plugin_artifact_save(&state_json, &summary, &e) || fail_artifact(err, e);
}

#endif
