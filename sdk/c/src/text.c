/* Texts: slices of UTF-8 with a length. Broken bytes are read as U+FFFD, each alone, and no function looks past the
 * end. */

#define _GNU_SOURCE /* memmem */

#include "inside.h"

#include <wctype.h>

lh_str lh_from(const char *text) {
    return text == NULL ? EMPTY : (lh_str){(uint8_t *)text, strlen(text)};
}

bool lh_eq(lh_str a, lh_str b) { return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0); }

bool lh_is(lh_str text, const char *wanted) { return lh_eq(text, lh_from(wanted)); }

int lh_compare(lh_str a, lh_str b) {
    size_t shorter = a.len < b.len ? a.len : b.len;
    int order = shorter == 0 ? 0 : memcmp(a.ptr, b.ptr, shorter);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

bool lh_starts(lh_str text, lh_str start) {
    return start.len <= text.len && (start.len == 0 || memcmp(text.ptr, start.ptr, start.len) == 0);
}

bool lh_contains(lh_str text, lh_str part) {
    /* The library's search takes linear time whatever the two texts are. */
    return part.len == 0 || (part.len <= text.len && memmem(text.ptr, text.len, part.ptr, part.len) != NULL);
}

lh_str lh_slice(lh_str text, size_t from, size_t to) {
    if (to > text.len) to = text.len;
    if (from >= to) return EMPTY;
    return (lh_str){text.ptr + from, to - from};
}

bool lh_split(lh_str *rest, char at, lh_str *part) {
    if (rest->len == 0) return false;
    uint8_t *found = memchr(rest->ptr, at, rest->len);
    size_t len = found == NULL ? rest->len : (size_t)(found - rest->ptr);
    *part = lh_slice(*rest, 0, len);
    *rest = lh_slice(*rest, found == NULL ? len : len + 1, rest->len);
    return true;
}

/* The length in bytes of the code point at the start, and the code point; 0 bytes when it is broken. */
static size_t decode(lh_str text, uint32_t *code) {
    if (text.len == 0) return 0;
    const uint8_t *p = text.ptr;
    if (p[0] < 0x80) {
        *code = p[0];
        return 1;
    }
    size_t len = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || text.len < len) return 0;
    uint32_t value = p[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80) return 0;
        value = value << 6 | (p[i] & 0x3F);
    }
    bool overlong = (len == 3 && value < 0x800) || (len == 4 && value < 0x10000);
    if (overlong || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return 0;
    *code = value;
    return len;
}

size_t lhi_encode(uint32_t code, uint8_t bytes[4]) {
    if (code < 0x80) {
        bytes[0] = (uint8_t)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, code >>= 6) bytes[i] = (uint8_t)(0x80 | (code & 0x3F));
    bytes[0] = (uint8_t)(0xF00u >> len | code);
    return len;
}

bool lh_char(lh_str *rest, uint32_t *code) {
    if (rest->len == 0) return false;
    size_t len = decode(*rest, code);
    if (len == 0) *code = 0xFFFD;
    *rest = lh_slice(*rest, len == 0 ? 1 : len, rest->len);
    return true;
}

static bool is_space(uint32_t code) {
    return (code >= 9 && code <= 13) || code == ' ' || code == 0x85 || code == 0xA0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
           code == 0x205F || code == 0x3000;
}

bool lh_word(lh_str *rest, lh_str *word) {
    lh_str at = *rest, start = at;
    uint32_t code;
    do {
        start = at;
        if (!lh_char(&at, &code)) return false;
    } while (is_space(code));
    size_t len = start.len;
    *rest = EMPTY;
    for (lh_str before = at; lh_char(&at, &code); before = at) {
        if (is_space(code)) {
            len = start.len - before.len;
            *rest = at;
            break;
        }
    }
    *word = lh_slice(start, 0, len);
    return true;
}

lh_str lh_trim(lh_str text) {
    uint32_t code;
    for (lh_str rest = text; lh_char(&rest, &code) && is_space(code);) text = rest;
    while (text.len > 0) {
        /* Back to the first byte of the last code point. */
        size_t start = text.len - 1;
        while (start > 0 && text.len - start < 4 && (text.ptr[start] & 0xC0) == 0x80) start--;
        lh_str last = lh_slice(text, start, text.len);
        if (!lh_char(&last, &code) || last.len > 0 || !is_space(code)) break;
        text.len = start;
    }
    return text;
}

size_t lh_chars(lh_str text) {
    size_t count = 0, len = 1;
    uint32_t code;
    for (size_t i = 0; i < text.len; i += len, count++) {
        len = text.ptr[i] < 0x80 ? 1 : decode((lh_str){text.ptr + i, text.len - i}, &code);
        if (len == 0) len = 1; /* a broken byte counts as one */
    }
    return count;
}

lh_str lh_first_chars(lh_str text, size_t chars_max) {
    lh_str rest = text;
    uint32_t code;
    for (size_t i = 0; i < chars_max && lh_char(&rest, &code); i++) {
    }
    return lh_slice(text, 0, text.len - rest.len);
}

lh_str lh_cut(lh_str text, size_t chars_max) {
    lh_str kept = lh_first_chars(text, chars_max);
    if (kept.len == text.len) return text;
    size_t missing = lh_chars(lh_slice(text, kept.len, text.len));
    return lh_format("%.*s… (%zu more characters)", LH_ARG(kept), missing);
}

lh_str lh_lower(lh_str text) {
    lh_out out = {0};
    for (uint32_t code; lh_char(&text, &code);) {
        uint8_t bytes[4];
        size_t len = lhi_encode((uint32_t)towlower((wint_t)code), bytes);
        lh_add(&out, (lh_str){bytes, len});
    }
    return lh_out_text(&out);
}

lh_str lh_utf8(lh_str text) {
    size_t whole = 0;
    uint32_t code;
    for (size_t len = 1; whole < text.len && len > 0; whole += len) {
        bool is_ascii = text.ptr[whole] < 0x80;
        len = is_ascii ? 1 : decode((lh_str){text.ptr + whole, text.len - whole}, &code);
    }
    if (whole == text.len) return text;
    lh_str rest = lh_slice(text, whole, text.len);
    lh_out out = {0};
    lh_add(&out, lh_slice(text, 0, text.len - rest.len));
    while (lh_char(&rest, &code)) {
        uint8_t bytes[4];
        size_t len = lhi_encode(code, bytes);
        lh_add(&out, (lh_str){bytes, len});
    }
    return lh_out_text(&out);
}

lh_str_list lhi_utf8_texts(lh_str_list texts) {
    lh_str_list mended = {lh_alloc(texts.len, sizeof *mended.ptr), 0};
    if (mended.ptr == NULL) return mended;
    for (; mended.len < texts.len; mended.len++) mended.ptr[mended.len] = lh_utf8(texts.ptr[mended.len]);
    return mended;
}
