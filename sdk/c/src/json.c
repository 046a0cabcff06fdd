/* Reading JSON into nodes, in the order of the text, in one pass and without recursion.
 *
 * This reader refuses the same as the host's own: more than 128 levels, half of a surrogate pair, control
 * characters in a text, and anything behind the value. */

#include "inside.h"

#include <stdlib.h>

/* One value, or the name of one: they stand in the order of the text, what is inside a value behind it. */
struct node {
    uint32_t start, end; /* in the text */
    uint32_t after;      /* the first node behind what is inside */
    uint32_t count;      /* of values inside */
    uint8_t kind;
    bool is_member; /* the node before is its name */
};

struct lh_doc {
    lh_str text;
    struct node *nodes;
    uint32_t len, room;
};

/* The text that is being read. */
struct reader {
    struct lh_doc *doc;
    size_t at;
    const char *wrong; /* why it cannot be read; NULL as long as it can */
    uint32_t depth;
    uint32_t parents[LH_DEPTH_MAX];
};

static int peek(const struct reader *r) {
    return r->at < r->doc->text.len ? r->doc->text.ptr[r->at] : -1;
}

static void skip_blanks(struct reader *r) {
    for (int c = peek(r); c == ' ' || c == '\n' || c == '\t' || c == '\r'; c = peek(r)) r->at++;
}

static bool wrong(struct reader *r, const char *why) {
    if (r->wrong == NULL) r->wrong = why;
    return false;
}

static bool new_node(struct reader *r, lh_kind kind, uint32_t *number) {
    struct lh_doc *doc = r->doc;
    if (doc->len >= doc->room) {
        uint32_t room = doc->room < 16 ? 16 : doc->room * 2;
        struct node *nodes = doc->room > UINT32_MAX / 2 ? NULL : lh_alloc(room, sizeof *nodes);
        if (nodes == NULL) return wrong(r, "it is too long for the memory");
        if (doc->len > 0) memcpy(nodes, doc->nodes, doc->len * sizeof *nodes);
        doc->nodes = nodes;
        doc->room = room;
    }
    *number = doc->len++;
    doc->nodes[*number] = (struct node){.start = (uint32_t)r->at, .after = *number + 1, .kind = (uint8_t)kind};
    return true;
}

/* Reads the four digits behind `\u`, up to the last. */
static bool read_hex(struct reader *r, uint32_t *code) {
    *code = 0;
    for (int i = 0; i < 4; i++) {
        r->at++;
        int c = peek(r), letter = c | 0x20;
        bool is_digit = c >= '0' && c <= '9';
        if (!is_digit && (letter < 'a' || letter > 'f')) return wrong(r, "four hexadecimal digits are expected behind \\u");
        *code = *code << 4 | (uint32_t)(is_digit ? c - '0' : letter - 'a' + 10);
    }
    return true;
}

static bool read_string(struct reader *r) {
    uint32_t number;
    if (peek(r) != '"') return wrong(r, "a name in quotes is expected");
    if (!new_node(r, LH_TEXT, &number)) return false;
    const lh_str text = r->doc->text;
    for (r->at++; peek(r) != '"'; r->at++) {
        /* Characters without a meaning, most of a text, go by quickly. */
        while (r->at < text.len && text.ptr[r->at] >= ']') r->at++;
        int c = peek(r);
        if (c == '"') break;
        if (c < 0) return wrong(r, "the text is not closed");
        if (c < 0x20) return wrong(r, "a control character must be escaped in a text");
        if (c != '\\') continue;
        r->at++;
        c = peek(r);
        if (c == 'u') {
            uint32_t code, low;
            if (!read_hex(r, &code)) return false;
            if (code < 0xD800 || code > 0xDFFF) continue;
            /* Half of a pair alone is refused, as the host's reader does. */
            lh_str behind = lh_slice(text, r->at + 1, r->at + 3);
            r->at += 2;
            bool is_pair = code <= 0xDBFF && lh_is(behind, "\\u") && read_hex(r, &low) && low >= 0xDC00 && low <= 0xDFFF;
            if (!is_pair) return wrong(r, "half of a surrogate pair stands alone");
        } else if (c <= 0 || strchr("\"\\/bfnrt", c) == NULL) {
            return wrong(r, "this escape is not known");
        }
    }
    r->at++;
    r->doc->nodes[number].end = (uint32_t)r->at;
    return true;
}

static bool read_digits(struct reader *r) {
    size_t start = r->at;
    while (peek(r) >= '0' && peek(r) <= '9') r->at++;
    return r->at > start ? true : wrong(r, "a digit is expected");
}

static bool read_number(struct reader *r) {
    uint32_t number;
    if (!new_node(r, LH_NUMBER, &number)) return false;
    if (peek(r) == '-') r->at++;
    if (peek(r) == '0') r->at++;
    else if (!read_digits(r)) return false;
    if (peek(r) == '.') {
        r->at++;
        if (!read_digits(r)) return false;
    }
    if ((peek(r) | 0x20) == 'e' && peek(r) > 0) {
        r->at++;
        if (peek(r) == '+' || peek(r) == '-') r->at++;
        if (!read_digits(r)) return false;
    }
    r->doc->nodes[number].end = (uint32_t)r->at;
    return true;
}

static bool read_word(struct reader *r, lh_kind kind, lh_str word) {
    uint32_t number;
    lh_str rest = lh_slice(r->doc->text, r->at, r->doc->text.len);
    if (!lh_starts(rest, word)) return wrong(r, "a value is expected");
    if (!new_node(r, kind, &number)) return false;
    r->at += word.len;
    r->doc->nodes[number].end = (uint32_t)r->at;
    return true;
}

static bool read_scalar(struct reader *r) {
    int c = peek(r);
    switch (c) {
    case '"': return read_string(r);
    case 't': return read_word(r, LH_BOOL, lh_lit("true"));
    case 'f': return read_word(r, LH_BOOL, lh_lit("false"));
    case 'n': return read_word(r, LH_NULL, lh_lit("null"));
    case -1: return wrong(r, "a value is expected, and the text ends");
    default: return c == '-' || (c >= '0' && c <= '9') ? read_number(r) : wrong(r, "a value is expected");
    }
}

/* Reads the name of a member and the colon behind it. */
static bool read_name(struct reader *r) {
    skip_blanks(r);
    if (!read_string(r)) return false;
    skip_blanks(r);
    if (peek(r) != ':') return wrong(r, "`:` is expected");
    r->at++;
    return true;
}

/* Opens the list or object at hand; false in `is_open` when it is empty and closed again. */
static bool open_value(struct reader *r, bool *is_open) {
    bool is_object = peek(r) == '{';
    uint32_t number;
    if (r->depth >= LH_DEPTH_MAX) return wrong(r, "it is nested deeper than 128");
    if (!new_node(r, is_object ? LH_OBJECT : LH_LIST, &number)) return false;
    r->parents[r->depth++] = number;
    r->at++;
    skip_blanks(r);
    *is_open = peek(r) != (is_object ? '}' : ']');
    return !*is_open || !is_object || read_name(r);
}

/* Behind a value: closes what ends here. True in `more` when another value follows. */
static bool close_values(struct reader *r, bool *more) {
    for (*more = false; r->depth > 0;) {
        struct node *parent = &r->doc->nodes[r->parents[r->depth - 1]];
        bool is_object = parent->kind == LH_OBJECT;
        skip_blanks(r);
        if (peek(r) == ',' && parent->count > 0) {
            r->at++;
            *more = true;
            return !is_object || read_name(r);
        }
        if (peek(r) != (is_object ? '}' : ']')) return wrong(r, is_object ? "`,` or `}` is expected" : "`,` or `]` is expected");
        r->at++;
        parent->end = (uint32_t)r->at;
        parent->after = r->doc->len;
        r->depth--;
        if (r->depth > 0) r->doc->nodes[r->parents[r->depth - 1]].count++;
    }
    return true;
}

/* Reads the value at the reader's place. */
static bool read_value(struct reader *r) {
    for (bool more = true; more;) {
        skip_blanks(r);
        bool is_member = r->depth > 0 && r->doc->nodes[r->parents[r->depth - 1]].kind == LH_OBJECT;
        uint32_t number = r->doc->len;
        if (peek(r) == '{' || peek(r) == '[') {
            bool is_open;
            if (!open_value(r, &is_open)) return false;
            r->doc->nodes[number].is_member = is_member;
            if (is_open) continue;
        } else {
            if (!read_scalar(r)) return false;
            r->doc->nodes[number].is_member = is_member;
            if (r->depth > 0) r->doc->nodes[r->parents[r->depth - 1]].count++;
        }
        if (!close_values(r, &more)) return false;
    }
    return true;
}

static bool fail_json(const char *what, const struct reader *r, lh_error *err) {
    lh_str rest = lh_slice(r->doc->text, 0, r->at), line;
    size_t lines = 1, column = lh_chars(rest);
    for (size_t i = 0; i < rest.len; i++) lines += rest.ptr[i] == '\n';
    if (lines > 1) {
        while (lh_split(&rest, '\n', &line)) {
        }
        column = r->at > 0 && r->doc->text.ptr[r->at - 1] == '\n' ? 0 : lh_chars(line);
    }
    return lh_fail(err, LH_INVALID, "%s: %s at line %zu column %zu", what, r->wrong, lines, column + 1);
}

bool lh_json_read(const char *what, lh_str json, lh_value *value, lh_error *err) {
    *value = (lh_value){0};
    json = lh_trim(json);
    if (json.len == 0) json = lh_lit("{}");
    struct lh_doc *doc = lh_alloc(1, sizeof *doc);
    if (doc == NULL) return lh_fail(err, LH_FAILED, "out of memory");
    doc->text = lh_utf8(json);
    struct reader reader = {.doc = doc};
    if (read_value(&reader)) {
        skip_blanks(&reader);
        if (peek(&reader) >= 0) wrong(&reader, "something follows behind the value");
    }
    if (reader.wrong != NULL) return fail_json(what, &reader, err);
    *value = (lh_value){doc, 0, doc->len};
    return true;
}

bool lh_json_find(lh_str text, const char *field, lh_value *object) {
    *object = (lh_value){0};
    text = lh_utf8(text);
    /* Every start could read to the end; a text of nothing but `{` must not cost its square. */
    for (int starts = 0; starts < 1000; starts++) {
        uint8_t *start = text.len == 0 ? NULL : memchr(text.ptr, '{', text.len);
        if (start == NULL) return false;
        text = lh_slice(text, (size_t)(start - text.ptr), text.len);
        lh_mark_t mark = lh_mark();
        struct lh_doc *doc = lh_alloc(1, sizeof *doc);
        if (doc == NULL) return false;
        doc->text = text;
        struct reader reader = {.doc = doc};
        *object = read_value(&reader) ? (lh_value){doc, 0, doc->len} : (lh_value){0};
        if (lh_there(lh_get(*object, field))) return true;
        *object = (lh_value){0};
        lh_release(mark);
        text = lh_slice(text, 1, text.len);
    }
    return false;
}

static const struct node *node_of(lh_value value) {
    return value.doc == NULL || value.at >= value.end ? NULL : &value.doc->nodes[value.at];
}

lh_kind lh_kind_of(lh_value value) {
    const struct node *node = node_of(value);
    return node == NULL ? LH_MISSING : (lh_kind)node->kind;
}

bool lh_there(lh_value value) { return node_of(value) != NULL; }

size_t lh_count(lh_value value) {
    const struct node *node = node_of(value);
    return node == NULL ? 0 : node->count;
}

lh_value lh_first(lh_value value) {
    const struct node *node = node_of(value);
    if (node == NULL || node->count == 0) return (lh_value){0};
    return (lh_value){value.doc, value.at + (node->kind == LH_OBJECT ? 2 : 1), node->after};
}

lh_value lh_next(lh_value value) {
    const struct node *node = node_of(value);
    if (node == NULL) return (lh_value){0};
    return (lh_value){value.doc, node->after + (node->is_member ? 1 : 0), value.end};
}

static void add_code(lh_out *out, uint32_t code) {
    uint8_t bytes[4];
    size_t len = lhi_encode(code, bytes);
    lh_add(out, (lh_str){bytes, len});
}

/* The number of four hexadecimal digits, which have been checked. */
static uint32_t hex(const uint8_t *digits) {
    uint32_t code = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t digit = digits[i] <= '9' ? digits[i] - '0' : (uint32_t)(digits[i] | 0x20) - 'a' + 10;
        code = code << 4 | digit;
    }
    return code;
}

/* The code point of the escape `\uXXXX` at `i` of a text that was read, and how long it is. */
static uint32_t escaped(lh_str text, size_t i, size_t *len) {
    uint32_t code = hex(text.ptr + i + 2);
    *len = code >= 0xD800 && code <= 0xDFFF ? 12 : 6;
    return *len == 6 ? code : 0x10000 + ((code - 0xD800) << 10) + (hex(text.ptr + i + 8) - 0xDC00);
}

/* The text between the quotes of a node. */
static lh_str unquoted(const struct lh_doc *doc, const struct node *node) {
    lh_str raw = lh_slice(doc->text, node->start + 1, node->end - 1);
    if (raw.len == 0 || memchr(raw.ptr, '\\', raw.len) == NULL) return raw;
    lh_out out = {0};
    for (size_t i = 0; i < raw.len;) {
        uint8_t byte = raw.ptr[i];
        if (byte != '\\') {
            lhi_add_byte(&out, byte);
            i++;
            continue;
        }
        size_t len = 2;
        switch (raw.ptr[i + 1]) {
        case 'b': lhi_add_byte(&out, '\b'); break;
        case 'f': lhi_add_byte(&out, '\f'); break;
        case 'n': lhi_add_byte(&out, '\n'); break;
        case 'r': lhi_add_byte(&out, '\r'); break;
        case 't': lhi_add_byte(&out, '\t'); break;
        case 'u': add_code(&out, escaped(raw, i, &len)); break;
        default: lhi_add_byte(&out, raw.ptr[i + 1]); break;
        }
        i += len;
    }
    return lh_out_text(&out);
}

lh_str lh_name_of(lh_value value) {
    const struct node *node = node_of(value);
    return node == NULL || !node->is_member ? EMPTY : unquoted(value.doc, node - 1);
}

lh_value lh_get(lh_value object, const char *name) {
    lh_value found = {0};
    if (lh_kind_of(object) != LH_OBJECT) return found;
    /* Of two with one name the last counts, as with other readers. */
    for (lh_value item = lh_first(object); lh_there(item); item = lh_next(item)) {
        if (lh_is(lh_name_of(item), name)) found = item;
    }
    return found;
}

lh_str lh_text_of(lh_value value) {
    return lh_kind_of(value) == LH_TEXT ? unquoted(value.doc, node_of(value)) : EMPTY;
}

double lh_number_of(lh_value value) {
    if (lh_kind_of(value) != LH_NUMBER) return 0;
    lh_str json = lh_json_of(value);
    char *copy = lh_alloc(json.len + 1, 1);
    if (copy == NULL) return 0;
    memcpy(copy, json.ptr, json.len);
    return strtod(copy, NULL);
}

bool lh_bool_of(lh_value value) { return lh_kind_of(value) == LH_BOOL && lh_is(lh_json_of(value), "true"); }

lh_str lh_json_of(lh_value value) {
    const struct node *node = node_of(value);
    return node == NULL ? EMPTY : lh_slice(value.doc->text, node->start, node->end);
}

lh_str lh_json_plain(lh_str json) {
    lh_value value;
    lh_error err;
    if (!lh_json_read("", json, &value, &err)) return json;
    json = value.doc->text;
    if (memchr(json.ptr, '\\', json.len) == NULL) return json;
    lh_out out = {0};
    for (size_t i = 0; i < json.len;) {
        /* It is JSON, so a backslash is in a text and has its escape behind it. */
        size_t len = 1;
        if (json.ptr[i] == '\\') {
            len = 2;
            uint32_t code = json.ptr[i + 1] == '/' ? '/' : 0;
            if (json.ptr[i + 1] == 'u') code = escaped(json, i, &len);
            if (code >= 0x20 && code != '"' && code != '\\') add_code(&out, code);
            else lh_add(&out, lh_slice(json, i, i + len));
        } else {
            lhi_add_byte(&out, json.ptr[i]);
        }
        i += len;
    }
    return lh_out_text(&out);
}
