/* Results that go out: copies in memory of their own, since the host has the bindings free each part. */

#include "inside.h"

void lhi_give_text(const lh_str *from, lh_str *to) {
    lh_str text = lh_utf8(*from);
    *to = EMPTY;
    if (text.len == 0) return;
    to->ptr = lhi_take(text.len, 1);
    if (to->ptr == NULL) return;
    memcpy(to->ptr, text.ptr, text.len);
    to->len = text.len;
}

void lhi_give_texts(const lh_str_list *from, lh_str_list *to) { LHI_GIVE_LIST(from, to, lhi_give_text); }

void lhi_give_optional(const lh_optional_str *from, lh_optional_str *to) {
    to->is_some = from->is_some;
    if (from->is_some) lhi_give_text(&from->val, &to->val);
}

void lhi_give_denial(const lh_error *err, longhaul_plugin_types_denial_t *to) {
    lhi_give_text(&err->text, &to->reason);
    lhi_give_text(&err->fix, &to->fix);
}

void lhi_give_hit(const lh_error *err, longhaul_plugin_types_limit_hit_t *to) {
    lhi_give_text(&err->text, &to->name);
    to->used = err->used;
    to->max = err->max;
}

void lhi_give_outage(const lh_error *err, longhaul_plugin_types_outage_t *to) {
    lhi_give_text(&err->text, &to->reason);
    to->retry_after_ms.is_some = err->has_retry;
    to->retry_after_ms.val = err->retry_after_ms;
}

bool lhi_settle(bool ok, lh_error *err) {
    if (lhi_is_out_of_memory()) {
        *err = (lh_error){.kind = LH_FAILED, .text = lh_lit("out of memory; give the plugin more with `memory_bytes_max`, or less to do")};
        ok = false;
    }
    return ok;
}
