/* The tool `notes`: counts the words of a text, and keeps notes.
 *
 * Notes live in the plugin's key-value space, so they are there in the next call and after a restart. There is no
 * delete. A note is written whole, so sending `save` twice is the same as once. */

#include "longhaul.h"

static lh_str key_of(lh_str name) { return lh_format("note/%.*s", LH_ARG(name)); }

static bool count(const lh_call *call, lh_out *answer, lh_error *err) {
    (void)err;
    lh_str text = lh_text_of(lh_get(call->arguments, "text"));
    int64_t words = 0, lines = text.len > 0;
    lh_str rest = text, word;
    while (lh_word(&rest, &word)) words++;
    for (size_t i = 0; i < text.len; i++) lines += text.ptr[i] == '\n';
    lh_begin_object(answer);
    lh_key(answer, "words");
    lh_put_whole(answer, words);
    lh_key(answer, "lines");
    lh_put_whole(answer, lines);
    lh_key(answer, "characters");
    lh_put_whole(answer, (int64_t)lh_chars(text));
    lh_end(answer);
    return true;
}

static bool save(const lh_call *call, lh_out *answer, lh_error *err) {
    lh_str name = lh_text_of(lh_get(call->arguments, "name"));
    if (!lh_kv_set(key_of(name), lh_text_of(lh_get(call->arguments, "text")), err)) return false;
    lh_begin_object(answer);
    lh_key(answer, "saved");
    lh_put_text(answer, name);
    lh_end(answer);
    return true;
}

static bool read(const lh_call *call, lh_out *answer, lh_error *err) {
    lh_str name = lh_text_of(lh_get(call->arguments, "name")), text;
    bool found;
    if (!lh_kv_get(key_of(name), &text, &found, err)) return false;
    if (!found) return lh_fail(err, LH_FAILED, "there is no note `%.*s`", LH_ARG(name));
    lh_begin_object(answer);
    lh_key(answer, "text");
    lh_put_text(answer, text);
    lh_end(answer);
    return true;
}

#define NAME {.name = "name", .about = "the name of the note", .kind = LH_TEXT, .min = 1, .max = 100}
#define TEXT {.name = "text", .about = "any text", .kind = LH_TEXT}

static const lh_param text_alone[] = {TEXT, {0}};
static const lh_param name_alone[] = {NAME, {0}};
static const lh_param name_and_text[] = {NAME, TEXT, {0}};

static const lh_function functions[] = {
    {.name = "count", .about = "Counts words, lines and characters.", .effect = LH_READ_ONLY, .params = text_alone, .run = count},
    {.name = "save", .about = "Keeps a note, in the place of one of that name.", .effect = LH_IDEMPOTENT, .params = name_and_text, .run = save},
    {.name = "read", .about = "Gives a note back.", .effect = LH_READ_ONLY, .params = name_alone, .run = read},
    {0},
};

const lh_tool lh_plugin = {.id = "notes", .about = "Counts the words of a text, and keeps notes.", .functions = functions};
