/* The exports of a memory backend around the plugin's five functions. */

#include "inside.h"

#if defined(LH_WORLD_MEMORY)

typedef exports_longhaul_plugin_memory_memory_error_t memory_error;
typedef exports_longhaul_plugin_memory_memory_context_t memory_context;

/* Of the call that runs now. */
static lh_str settings;

lh_str lh_memory_settings(void) { return settings; }

static void give_entry(const lh_entry *from, lh_entry *to) {
    lhi_give_text(&from->key, &to->key);
    lhi_give_text(&from->value, &to->value);
    lhi_give_texts(&from->tags, &to->tags);
    to->expires_at_ms = from->expires_at_ms;
}

static void give_found(const lh_hit *from, lh_hit *to) {
    give_entry(&from->entry, &to->entry);
    to->score = from->score;
}

static bool end_call(bool ok, lh_error *error, memory_context *context, memory_error *err) {
    ok = lhi_settle(ok, error);
    if (!ok) {
        LHI_GIVE_ERROR(EXPORTS_LONGHAUL_PLUGIN_MEMORY_MEMORY_ERROR, error, err,
                       LHI_GIVE_KIND(LH_INVALID, EXPORTS_LONGHAUL_PLUGIN_MEMORY_MEMORY_ERROR, INVALID, invalid, error, err));
    }
    lhi_finish();
    settings = EMPTY;
    exports_longhaul_plugin_memory_memory_context_free(context);
    return ok;
}

bool exports_longhaul_plugin_memory_put(lh_str *space, lh_entry *entry, memory_context *context, memory_error *err) {
    lh_error error = {0};
    settings = context->settings;
    bool ok = lh_memory_put(*space, entry, &error);
    ok = end_call(ok, &error, context, err);
    memory_plugin_string_free(space);
    exports_longhaul_plugin_memory_entry_free(entry);
    return ok;
}

bool exports_longhaul_plugin_memory_get(lh_str *space, lh_str *key, memory_context *context,
                                        exports_longhaul_plugin_memory_option_entry_t *ret, memory_error *err) {
    lh_error error = {0};
    lh_entry entry = {0};
    bool found = false;
    memset(ret, 0, sizeof *ret);
    settings = context->settings;
    bool ok = lh_memory_get(*space, *key, &entry, &found, &error);
    ret->is_some = ok && found;
    if (ret->is_some) give_entry(&entry, &ret->val);
    ok = end_call(ok, &error, context, err);
    memory_plugin_string_free(space);
    memory_plugin_string_free(key);
    return ok;
}

bool exports_longhaul_plugin_memory_search(lh_str *space, lh_str *query, uint32_t limit, memory_context *context,
                                           lh_hit_list *ret, memory_error *err) {
    lh_error error = {0};
    lh_hit_list hits = {0};
    memset(ret, 0, sizeof *ret);
    settings = context->settings;
    bool ok = lh_memory_search(*space, *query, limit, &hits, &error);
    if (ok) LHI_GIVE_LIST(&hits, ret, give_found);
    ok = end_call(ok, &error, context, err);
    memory_plugin_string_free(space);
    memory_plugin_string_free(query);
    return ok;
}

bool exports_longhaul_plugin_memory_delete(lh_str *space, lh_str *key, memory_context *context, bool *ret, memory_error *err) {
    lh_error error = {0};
    *ret = false;
    settings = context->settings;
    bool ok = lh_memory_delete(*space, *key, ret, &error);
    ok = end_call(ok, &error, context, err);
    memory_plugin_string_free(space);
    memory_plugin_string_free(key);
    return ok;
}

bool exports_longhaul_plugin_memory_list(lh_str *space, lh_str *prefix, lh_str *maybe_cursor, uint32_t limit,
                                         memory_context *context, lh_page *ret, memory_error *err) {
    lh_error error = {0};
    lh_page page = {0};
    memset(ret, 0, sizeof *ret);
    settings = context->settings;
    bool ok = lh_memory_list(*space, *prefix, maybe_cursor, limit, &page, &error);
    if (ok) {
        lhi_give_texts(&page.keys, &ret->keys);
        lhi_give_optional(&page.cursor, &ret->cursor);
    }
    ok = end_call(ok, &error, context, err);
    memory_plugin_string_free(space);
    memory_plugin_string_free(prefix);
    if (maybe_cursor != NULL) memory_plugin_string_free(maybe_cursor);
    return ok;
}

#endif
