/* The memory backend `{{name}}`: entries in the key-value space, which is the only place of truth.
 *
 * An instance may be gone after any call, so nothing is kept in it. A search reads its whole namespace. */

#include "longhaul.h"

#include <stdlib.h>

/* The key of an entry. The length in front keeps `a` + `bc` apart from `ab` + `c`. */
static lh_str place(lh_str space, lh_str key) {
    return lh_format("%zu:%.*s%.*s", space.len, LH_ARG(space), LH_ARG(key));
}

bool lh_memory_put(lh_str space, const lh_entry *entry, lh_error *err) {
    lh_value value;
    if (entry->key.len == 0) return lh_fail(err, LH_INVALID, "an entry needs a key");
    if (entry->value.len == 0) return lh_fail(err, LH_INVALID, "the value is not JSON: it is empty");
    if (!lh_json_read("the value is not JSON", entry->value, &value, err)) return false;
    lh_out kept = {0};
    lh_begin_object(&kept);
    lh_key(&kept, "value");
    lh_put_text(&kept, entry->value);
    lh_key(&kept, "tags");
    lh_begin_list(&kept);
    for (size_t i = 0; i < entry->tags.len; i++) lh_put_text(&kept, entry->tags.ptr[i]);
    lh_end(&kept);
    lh_key(&kept, "expires_at_ms");
    if (entry->expires_at_ms.is_some) lh_put_number(&kept, entry->expires_at_ms.val);
    else lh_put_null(&kept);
    lh_end(&kept);
    lh_str text = lh_out_text(&kept);
    return text.len > 0 ? lh_kv_set(place(space, entry->key), text, err) : lh_fail(err, LH_FAILED, "out of memory");
}

/* Reads what `lh_memory_put` wrote. */
static bool read_entry(lh_str key, lh_str json, lh_entry *entry, lh_error *err) {
    lh_value kept;
    if (!lh_json_read("a kept entry", json, &kept, err)) return false;
    lh_value tags = lh_get(kept, "tags"), expires = lh_get(kept, "expires_at_ms");
    lh_str *texts = lh_alloc(lh_count(tags), sizeof *texts);
    if (texts == NULL && lh_count(tags) > 0) return lh_fail(err, LH_FAILED, "out of memory");
    *entry = (lh_entry){.key = key, .value = lh_text_of(lh_get(kept, "value")), .tags = {texts, 0}};
    for (lh_value tag = lh_first(tags); lh_there(tag); tag = lh_next(tag)) texts[entry->tags.len++] = lh_text_of(tag);
    entry->expires_at_ms.is_some = lh_kind_of(expires) == LH_NUMBER;
    entry->expires_at_ms.val = lh_number_of(expires);
    return true;
}

/* An entry that has expired is removed here, and not found. */
bool lh_memory_get(lh_str space, lh_str key, lh_entry *entry, bool *found, lh_error *err) {
    lh_str where = place(space, key), json;
    *found = false;
    if (!lh_kv_get(where, &json, found, err)) return false;
    if (!*found) return true;
    if (!read_entry(key, json, entry, err)) return false;
    if (!entry->expires_at_ms.is_some || entry->expires_at_ms.val > lh_now_ms()) return true;
    *found = false;
    return lh_kv_delete(where, err);
}

bool lh_memory_delete(lh_str space, lh_str key, bool *deleted, lh_error *err) {
    lh_entry entry;
    if (!lh_memory_get(space, key, &entry, deleted, err)) return false;
    return !*deleted || lh_kv_delete(place(space, key), err);
}

/* The entries whose keys begin with `prefix`, in the order of the keys. */
static bool read_all(lh_str space, lh_str prefix, lh_entry **entries, size_t *count, lh_error *err) {
    lh_str_list keys;
    size_t start = place(space, (lh_str){0}).len;
    *count = 0;
    if (!lh_kv_keys(place(space, prefix), &keys, err)) return false;
    *entries = lh_alloc(keys.len, sizeof **entries);
    if (*entries == NULL && keys.len > 0) return lh_fail(err, LH_FAILED, "out of memory for %zu entries", keys.len);
    for (size_t i = 0; i < keys.len; i++) {
        bool found;
        lh_str key = lh_slice(keys.ptr[i], start, keys.ptr[i].len);
        if (!lh_memory_get(space, key, &(*entries)[*count], &found, err)) return false;
        *count += found;
    }
    return true;
}

bool lh_memory_list(lh_str space, lh_str prefix, const lh_str *cursor, uint32_t limit, lh_page *page, lh_error *err) {
    lh_entry *entries;
    size_t count;
    if (!read_all(space, prefix, &entries, &count, err)) return false;
    page->keys.ptr = lh_alloc(count, sizeof *page->keys.ptr);
    if (page->keys.ptr == NULL && count > 0) return lh_fail(err, LH_FAILED, "out of memory");
    for (size_t i = 0; i < count; i++) {
        if (cursor != NULL && lh_compare(entries[i].key, *cursor) <= 0) continue;
        if (page->keys.len == limit) {
            page->cursor.is_some = limit > 0;
            if (limit > 0) page->cursor.val = page->keys.ptr[limit - 1];
            break;
        }
        page->keys.ptr[page->keys.len++] = entries[i].key;
    }
    return true;
}

/* Counts the words of the query that are in the key, a tag or the value; `words` counts them all. */
static size_t words_in(lh_str query, const lh_entry *entry, size_t *words) {
    lh_out text = {0};
    lh_addf(&text, "%.*s ", LH_ARG(entry->key));
    for (size_t i = 0; i < entry->tags.len; i++) lh_addf(&text, "%.*s ", LH_ARG(entry->tags.ptr[i]));
    lh_add(&text, lh_json_plain(entry->value));
    lh_str lower = lh_lower(lh_out_text(&text)), rest = lh_lower(query), word;
    size_t found = 0;
    for (*words = 0; lh_word(&rest, &word); ++*words) found += lh_contains(lower, word);
    return found;
}

/* The best first, then in the order of the keys. */
static int compare_hits(const void *a, const void *b) {
    const lh_hit *one = a, *other = b;
    int better = (one->score < other->score) - (one->score > other->score);
    return better != 0 ? better : lh_compare(one->entry.key, other->entry.key);
}

bool lh_memory_search(lh_str space, lh_str query, uint32_t limit, lh_hit_list *hits, lh_error *err) {
    lh_entry *entries;
    size_t count;
    if (!read_all(space, (lh_str){0}, &entries, &count, err)) return false;
    hits->ptr = lh_alloc(count, sizeof *hits->ptr);
    if (hits->ptr == NULL && count > 0) return lh_fail(err, LH_FAILED, "out of memory");
    for (size_t i = 0; i < count; i++) {
        size_t words, found = words_in(query, &entries[i], &words);
        if (found > 0) hits->ptr[hits->len++] = (lh_hit){entries[i], (double)found / (double)words};
    }
    if (hits->len > 0) qsort(hits->ptr, hits->len, sizeof *hits->ptr, compare_hits);
    if (hits->len > limit) hits->len = limit;
    return true;
}
