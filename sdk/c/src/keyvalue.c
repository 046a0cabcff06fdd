/* The key-value space of a tool or a memory backend. */

#include "inside.h"

#include <stdlib.h>

#if defined(LH_WORLD_TOOL) || defined(LH_WORLD_MEMORY)
static bool fail_kv(lh_error *err, longhaul_plugin_keyvalue_keyvalue_error_t e) {
    switch (e.tag) {
    case LONGHAUL_PLUGIN_KEYVALUE_KEYVALUE_ERROR_DENIED: return lhi_fail_denied(err, e.val.denied);
    case LONGHAUL_PLUGIN_KEYVALUE_KEYVALUE_ERROR_LIMIT: return lhi_fail_hit(err, e.val.limit);
    default: return lhi_fail_text(err, LH_FAILED, e.val.failed);
    }
}

bool lh_kv_get(lh_str key, lh_str *value, bool *found, lh_error *err) {
    LH_BINDING(option_list_u8) ret;
    longhaul_plugin_keyvalue_keyvalue_error_t e;
    key = lh_utf8(key);
    *value = EMPTY;
    *found = false;
    if (!longhaul_plugin_keyvalue_get(&key, &ret, &e)) return fail_kv(err, e);
    *found = ret.is_some;
    if (ret.is_some) *value = lhi_adopt_text((lh_str){ret.val.ptr, ret.val.len});
    return true;
}

bool lh_kv_set(lh_str key, lh_str value, lh_error *err) {
    longhaul_plugin_keyvalue_keyvalue_error_t e;
    LH_BINDING(list_u8) bytes = {value.ptr, value.len};
    key = lh_utf8(key);
    return longhaul_plugin_keyvalue_set(&key, &bytes, &e) || fail_kv(err, e);
}

bool lh_kv_delete(lh_str key, lh_error *err) {
    longhaul_plugin_keyvalue_keyvalue_error_t e;
    key = lh_utf8(key);
    return longhaul_plugin_keyvalue_delete(&key, &e) || fail_kv(err, e);
}

bool lh_kv_exists(lh_str key, bool *exists, lh_error *err) {
    longhaul_plugin_keyvalue_keyvalue_error_t e;
    key = lh_utf8(key);
    return longhaul_plugin_keyvalue_exists(&key, exists, &e) || fail_kv(err, e);
}

static int compare_texts(const void *a, const void *b) { return lh_compare(*(const lh_str *)a, *(const lh_str *)b); }

/* Adds a page to the keys. */
static bool add_keys(lh_str_list *keys, size_t *room, lh_str_list page) {
    if (page.len > 0) lh_adopt(page.ptr);
    if (page.len > *room - keys->len) {
        size_t more = (keys->len + page.len) * 2;
        lh_str *ptr = lh_alloc(more, sizeof *ptr);
        if (ptr == NULL) return false;
        if (keys->len > 0) memcpy(ptr, keys->ptr, keys->len * sizeof *ptr);
        keys->ptr = ptr;
        *room = more;
    }
    for (size_t i = 0; i < page.len; i++) keys->ptr[keys->len++] = lhi_adopt_text(page.ptr[i]);
    return true;
}

bool lh_kv_keys(lh_str prefix, lh_str_list *keys, lh_error *err) {
    longhaul_plugin_keyvalue_key_page_t page;
    longhaul_plugin_keyvalue_keyvalue_error_t e;
    size_t room = 0;
    lh_str cursor = EMPTY;
    *keys = (lh_str_list){0};
    prefix = lh_utf8(prefix);
    for (bool is_first = true; is_first || page.cursor.is_some; is_first = false) {
        if (!longhaul_plugin_keyvalue_list_keys(&prefix, is_first ? NULL : &cursor, &page, &e)) return fail_kv(err, e);
        if (!add_keys(keys, &room, page.keys)) return lh_fail(err, LH_FAILED, "out of memory for the keys");
        if (page.cursor.is_some) cursor = lhi_adopt_text(page.cursor.val);
    }
    if (keys->len > 1) qsort(keys->ptr, keys->len, sizeof *keys->ptr, compare_texts);
    return true;
}
#endif
