/* Notes of the work that was done, for the next worker on the project. */

#include "inside.h"

#if defined(LH_WORLD_AGENT)

bool lh_progress_add(lh_str action, lh_str outcome, lh_str_list files, lh_error *err) {
    longhaul_plugin_progress_progress_error_t e;
    action = lh_utf8(action);
    outcome = lh_utf8(outcome);
    files = lhi_utf8_texts(files);
    if (longhaul_plugin_progress_add(&action, &outcome, &files, &e)) return true;
    switch (e.tag) {
    case LONGHAUL_PLUGIN_PROGRESS_PROGRESS_ERROR_DENIED: return lhi_fail_denied(err, e.val.denied);
    case LONGHAUL_PLUGIN_PROGRESS_PROGRESS_ERROR_LIMIT: return lhi_fail_hit(err, e.val.limit);
    default: return lhi_fail_text(err, LH_FAILED, e.val.failed);
    }
}

#endif
