/* The pinned checks of the work. */

#include "inside.h"

#if defined(LH_WORLD_AGENT) || defined(LH_WORLD_EVALUATOR)
lh_check_list lh_checks(void) {
    lh_check_list list;
    longhaul_plugin_checks_list(&list);
    for (size_t i = 0; i < list.len; i++) {
        lhi_adopt_text(list.ptr[i].name);
        lhi_adopt_text(list.ptr[i].description);
    }
    if (list.len > 0) lh_adopt(list.ptr);
    return list;
}

bool lh_check_run(lh_str name, lh_check_report *report, lh_error *err) {
    longhaul_plugin_checks_check_error_t e;
    name = lh_utf8(name);
    if (longhaul_plugin_checks_run(&name, report, &e)) {
        lhi_adopt_text(report->name);
        lhi_adopt_text(report->stdout_);
        lhi_adopt_text(report->stderr_);
        if (report->sandbox_level.is_some) lhi_adopt_text(report->sandbox_level.val);
        return true;
    }
    switch (e.tag) {
    case LONGHAUL_PLUGIN_CHECKS_CHECK_ERROR_UNKNOWN_CHECK: return lhi_fail_text(err, LH_INVALID, e.val.unknown_check);
    case LONGHAUL_PLUGIN_CHECKS_CHECK_ERROR_DENIED: return lhi_fail_denied(err, e.val.denied);
    case LONGHAUL_PLUGIN_CHECKS_CHECK_ERROR_LIMIT: return lhi_fail_hit(err, e.val.limit);
    case LONGHAUL_PLUGIN_CHECKS_CHECK_ERROR_UNAVAILABLE: return lhi_fail_outage(err, e.val.unavailable);
    default: return lhi_fail_text(err, LH_FAILED, e.val.failed);
    }
}
#endif
