/* The clock, and for all but evaluators a sleep. */

#include "inside.h"

double lh_now_ms(void) { return longhaul_plugin_clock_now_ms(); }

#if !defined(LH_WORLD_EVALUATOR)
bool lh_sleep(uint32_t duration_ms, lh_error *err) {
    longhaul_plugin_timer_timer_error_t e;
    if (longhaul_plugin_timer_sleep(duration_ms, &e)) return true;
    switch (e.tag) {
    case LONGHAUL_PLUGIN_TIMER_TIMER_ERROR_DENIED: return lhi_fail_denied(err, e.val.denied);
    case LONGHAUL_PLUGIN_TIMER_TIMER_ERROR_LIMIT: return lhi_fail_hit(err, e.val.limit);
    default: return lhi_fail_text(err, LH_FAILED, e.val.failed);
    }
}
#endif
