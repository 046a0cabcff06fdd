/* The memory backend `shelf`: entries in the plugin's key-value space.
 *
 * Nothing is kept in the instance, so what was put is there for the next one. Namespaces cannot see each other. An
 * entry that has expired is gone: it is not got, listed or found, and is deleted when it is met. A search reads every
 * entry of its namespace; this is a shelf and no library. */

#include "longhaul.h"

#include <math.h>
#include <stdlib.h>

/* The length of the namespace in bytes, `:`, the namespace, the key. No two pairs give one key: the length ends at
 * the first `:`, and then says where the namespace ends. */
static lh_str full_key(lh_str space, lh_str key) {
    return lh_format("%zu:%.*s%.*s", space.len, LH_ARG(space), LH_ARG(key));
}

bool lh_memory_put(lh_str space, const lh_entry *entry, lh_error *err) {
    lh_value value;
    if (entry->key.len == 0) return lh_fail(err, LH_INVALID, "the key is empty; name the entry");
    if (lh_trim(entry->value).len == 0) return lh_fail(err, LH_INVALID, "the value is empty, which is not JSON");
    if (!lh_json_read("the value is not JSON", entry->value, &value, err)) return false;
    if (entry->expires_at_ms.is_some && !isfinite(entry->expires_at_ms.val)) {
        return lh_fail(err, LH_INVALID, "`expires-at-ms` is no time; leave it out to keep the entry");
    }
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
    return text.len > 0 ? lh_kv_set(full_key(space, entry->key), text, err)
                        : lh_fail(err, LH_FAILED, "out of memory for the entry");
}

/* Reads what `lh_memory_put` wrote. */
static bool read_entry(lh_str key, lh_str json, lh_entry *entry, lh_error *err) {
    lh_value kept;
    if (!lh_json_read("a kept entry", json, &kept, err)) return false;
    lh_value tags = lh_get(kept, "tags"), expires = lh_get(kept, "expires_at_ms");
    lh_str *texts = lh_alloc(lh_count(tags), sizeof *texts);
    if (texts == NULL && lh_count(tags) > 0) return lh_fail(err, LH_FAILED, "out of memory for the tags");
    *entry = (lh_entry){.key = key, .value = lh_text_of(lh_get(kept, "value")), .tags = {texts, 0}};
    for (lh_value tag = lh_first(tags); lh_there(tag); tag = lh_next(tag)) texts[entry->tags.len++] = lh_text_of(tag);
    entry->expires_at_ms.is_some = lh_kind_of(expires) == LH_NUMBER;
    entry->expires_at_ms.val = lh_number_of(expires);
    return true;
}

/* An entry that has expired is deleted here, and not found. */
bool lh_memory_get(lh_str space, lh_str key, lh_entry *entry, bool *found, lh_error *err) {
    lh_str full = full_key(space, key), json;
    *found = false;
    if (!lh_kv_get(full, &json, found, err)) return false;
    if (!*found) return true;
    if (!read_entry(key, json, entry, err)) return false;
    if (!entry->expires_at_ms.is_some || entry->expires_at_ms.val > lh_now_ms()) return true;
    *found = false;
    return lh_kv_delete(full, err);
}

bool lh_memory_delete(lh_str space, lh_str key, bool *deleted, lh_error *err) {
    lh_entry entry;
    if (!lh_memory_get(space, key, &entry, deleted, err)) return false;
    return !*deleted || lh_kv_delete(full_key(space, key), err);
}

/* The keys of a namespace in the order of their code points; expired ones may be among them. */
static bool keys_of(lh_str space, lh_str prefix, lh_str_list *keys, lh_error *err) {
    size_t start = full_key(space, (lh_str){0}).len;
    if (!lh_kv_keys(full_key(space, prefix), keys, err)) return false;
    for (size_t i = 0; i < keys->len; i++) keys->ptr[i] = lh_slice(keys->ptr[i], start, keys->ptr[i].len);
    return true;
}

bool lh_memory_list(lh_str space, lh_str prefix, const lh_str *cursor, uint32_t limit, lh_page *page, lh_error *err) {
    lh_str_list keys;
    if (!keys_of(space, prefix, &keys, err)) return false;
    /* Listed keys take the place of the keys that were looked at, which never come before them. */
    page->keys.ptr = keys.ptr;
    for (size_t i = 0; i < keys.len; i++) {
        lh_str key = keys.ptr[i];
        lh_entry entry;
        bool found;
        if (cursor != NULL && lh_compare(key, *cursor) <= 0) continue;
        lh_mark_t mark = lh_mark();
        if (!lh_memory_get(space, key, &entry, &found, err)) return false;
        lh_release(mark);
        if (!found) continue;
        if (page->keys.len >= limit) {
            page->cursor.is_some = page->keys.len > 0;
            if (page->cursor.is_some) page->cursor.val = keys.ptr[page->keys.len - 1];
            break;
        }
        keys.ptr[page->keys.len++] = key;
    }
    return true;
}

/* Counts the words that are in the key, a tag or the value, in any case. */
static size_t words_in(const lh_str_list *words, const lh_entry *entry) {
    lh_out out = {0};
    lh_str value = lh_json_plain(entry->value);
    lh_addf(&out, "%.*s\n", LH_ARG(entry->key));
    for (size_t i = 0; i < entry->tags.len; i++) lh_addf(&out, "%.*s\n", LH_ARG(entry->tags.ptr[i]));
    lh_add(&out, value);
    lh_str text = lh_lower(lh_out_text(&out));
    size_t count = 0;
    for (size_t i = 0; i < words->len; i++) count += lh_contains(text, words->ptr[i]);
    return count;
}

/* A key and how many words its entry has. */
struct found {
    lh_str key;
    size_t words;
};

static int compare_found(const void *a, const void *b) {
    const struct found *one = a, *other = b;
    int better = (one->words < other->words) - (one->words > other->words);
    return better != 0 ? better : lh_compare(one->key, other->key);
}

static lh_str_list words_of(lh_str query) {
    lh_str rest = query = lh_lower(query), word;
    lh_str_list words = {0};
    size_t count = 0;
    while (lh_word(&rest, &word)) count++;
    words.ptr = lh_alloc(count, sizeof *words.ptr);
    for (rest = query; words.ptr != NULL && lh_word(&rest, &word);) words.ptr[words.len++] = word;
    return words;
}

bool lh_memory_search(lh_str space, lh_str query, uint32_t limit, lh_hit_list *hits, lh_error *err) {
    lh_str_list words = words_of(query), keys;
    if (words.len == 0 || limit == 0) return true;
    if (!keys_of(space, (lh_str){0}, &keys, err)) return false;
    struct found *found = lh_alloc(keys.len, sizeof *found);
    if (found == NULL && keys.len > 0) return lh_fail(err, LH_FAILED, "out of memory for %zu keys", keys.len);
    size_t count = 0;
    /* Scores first and entries again at the end, so that only `limit` of them are held at once. */
    for (size_t i = 0; i < keys.len; i++) {
        lh_mark_t mark = lh_mark();
        lh_entry entry;
        bool is_there;
        if (!lh_memory_get(space, keys.ptr[i], &entry, &is_there, err)) return false;
        size_t in = is_there ? words_in(&words, &entry) : 0;
        if (in > 0) found[count++] = (struct found){keys.ptr[i], in};
        lh_release(mark);
    }
    if (count > 1) qsort(found, count, sizeof *found, compare_found);
    if (count > limit) count = limit;
    hits->ptr = lh_alloc(count, sizeof *hits->ptr);
    for (size_t i = 0; hits->ptr != NULL && i < count; i++) {
        lh_hit *hit = &hits->ptr[hits->len];
        bool is_there;
        if (!lh_memory_get(space, found[i].key, &hit->entry, &is_there, err)) return false;
        hit->score = (double)found[i].words / (double)words.len;
        hits->len += is_there;
    }
    return true;
}
