/* Errors: the plugin's own, and those of the imports, whose texts are adopted. */

#include "inside.h"

#include <math.h>

bool lh_fail(lh_error *err, lh_error_kind kind, const char *format, ...) {
    lh_out out = {0};
    va_list arguments;
    va_start(arguments, format);
    lhi_add_formatted(&out, format, arguments);
    va_end(arguments);
    *err = (lh_error){.kind = kind, .text = lh_out_text(&out)};
    return false;
}

bool lh_fail_limit(lh_error *err, const char *name, double used, double max) {
    *err = (lh_error){.kind = LH_OVER_LIMIT, .text = lh_from(name), .used = used, .max = max};
    return false;
}

/* A figure of a limit, for people: whole, since the exact one is in the error. */
static void add_figure(lh_out *out, double number) {
    bool is_small = fabs(number) <= 9007199254740992.0; /* 2^53; false of what is no number */
    if (is_small) lhi_add_whole(out, (int64_t)rint(number));
    else lh_addf(out, "more than 2^53");
}

lh_str lh_error_text(const lh_error *err) {
    lh_out out = {0};
    switch (err->kind) {
    case LH_DENIED: lh_addf(&out, "%.*s; to allow it, %.*s", LH_ARG(err->text), LH_ARG(err->fix)); break;
    case LH_OVER_LIMIT:
        lh_addf(&out, "limit `%.*s` reached: ", LH_ARG(err->text));
        add_figure(&out, err->used);
        lh_addf(&out, " of ");
        add_figure(&out, err->max);
        break;
    case LH_TIMED_OUT:
        lh_addf(&out, "timed out after ");
        add_figure(&out, err->used);
        lh_addf(&out, " ms");
        break;
    case LH_OUTCOME_UNKNOWN: lh_addf(&out, "%.*s, and what the call did is unknown", LH_ARG(err->text)); break;
    case LH_UNKNOWN_FUNCTION: lh_addf(&out, "unknown function: %.*s", LH_ARG(err->text)); break;
    case LH_FAILED:
    case LH_UNAVAILABLE:
    case LH_INVALID:
    case LH_BLOCKED:
    case LH_IMPOSSIBLE: return err->text;
    }
    return lh_out_text(&out);
}

bool lhi_fail_text(lh_error *err, lh_error_kind kind, lh_str text) {
    *err = (lh_error){.kind = kind, .text = lhi_adopt_text(text)};
    return false;
}

bool lhi_fail_denied(lh_error *err, longhaul_plugin_types_denial_t denial) {
    *err = (lh_error){.kind = LH_DENIED, .text = lhi_adopt_text(denial.reason), .fix = lhi_adopt_text(denial.fix)};
    return false;
}

bool lhi_fail_hit(lh_error *err, longhaul_plugin_types_limit_hit_t hit) {
    *err = (lh_error){.kind = LH_OVER_LIMIT, .text = lhi_adopt_text(hit.name), .used = hit.used, .max = hit.max};
    return false;
}

#if !defined(LH_WORLD_TOOL) && !defined(LH_WORLD_MEMORY)
bool lhi_fail_outage(lh_error *err, longhaul_plugin_types_outage_t outage) {
    *err = (lh_error){.kind = LH_UNAVAILABLE,
                      .text = lhi_adopt_text(outage.reason),
                      .has_retry = outage.retry_after_ms.is_some,
                      .retry_after_ms = outage.retry_after_ms.val};
    return false;
}
#endif
