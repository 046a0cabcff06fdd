/* Texts that grow, what goes into them as `printf` would write it, and JSON with its commas. */

#include "inside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Room for `more` bytes at the end; false when there is none. */
static bool make_room(lh_out *out, size_t more) {
    if (out->failed) return false;
    if (more <= out->room - out->len) return true;
    size_t room = out->room < 64 ? 64 : out->room;
    while (room - out->len < more) {
        if (room > SIZE_MAX / 2) {
            lhi_note_out_of_memory();
            out->failed = true;
            return false;
        }
        room *= 2;
    }
    uint8_t *ptr = lh_alloc(room, 1);
    if (ptr == NULL) {
        out->failed = true;
        return false;
    }
    if (out->len > 0) memcpy(ptr, out->ptr, out->len);
    out->ptr = ptr;
    out->room = room;
    return true;
}

void lh_add(lh_out *out, lh_str text) {
    if (text.len == 0 || !make_room(out, text.len)) return;
    memcpy(out->ptr + out->len, text.ptr, text.len);
    out->len += text.len;
}

void lhi_add_byte(lh_out *out, uint8_t byte) { lh_add(out, (lh_str){&byte, 1}); }

lh_str lh_out_text(const lh_out *out) { return out->failed ? EMPTY : (lh_str){out->ptr, out->len}; }

static void add_digits(lh_out *out, uint64_t number, unsigned base) {
    uint8_t digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (uint8_t)("0123456789abcdef"[number % base]);
        number /= base;
    } while (number > 0);
    lh_add(out, (lh_str){digits + at, sizeof digits - at});
}

void lhi_add_whole(lh_out *out, int64_t number) {
    if (number < 0) lhi_add_byte(out, '-');
    add_digits(out, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, 10);
}

/* The part of printf that longhaul.h promises; the compiler checks the arguments against it. */
void lhi_add_formatted(lh_out *out, const char *format, va_list arguments) {
    for (const char *p = format; *p != 0;) {
        const char *plain = p;
        while (*p != 0 && *p != '%') p++;
        lh_add(out, (lh_str){(uint8_t *)plain, (size_t)(p - plain)});
        if (*p == 0) return;
        p++;
        if (strncmp(p, ".*s", 3) == 0) {
            int len = va_arg(arguments, int);
            const char *text = va_arg(arguments, const char *);
            if (len > 0) lh_add(out, (lh_str){(uint8_t *)text, (size_t)len});
            p += 3;
            continue;
        }
        int longs = 0;
        for (; *p == 'l' || *p == 'z'; p++) longs += *p == 'l' ? 1 : 0;
        switch (*p) {
        case 's': lh_add(out, lh_from(va_arg(arguments, const char *))); break;
        case 'c': lhi_add_byte(out, (uint8_t)va_arg(arguments, int)); break;
        case 'd':
        case 'i': lhi_add_whole(out, longs > 1 ? va_arg(arguments, long long) : va_arg(arguments, long)); break;
        case 'u':
        case 'x':
            add_digits(out, longs > 1 ? va_arg(arguments, unsigned long long) : va_arg(arguments, unsigned long),
                      *p == 'x' ? 16 : 10);
            break;
        case '%': lhi_add_byte(out, '%'); break;
        case 0: return;
        default: lhi_add_byte(out, '?'); return; /* what stands behind it cannot be known */
        }
        p++;
    }
}

_Static_assert(sizeof(long) == sizeof(int) && sizeof(size_t) == sizeof(int), "%d, %ld and %zu are read alike");

void lh_addf(lh_out *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    lhi_add_formatted(out, format, arguments);
    va_end(arguments);
}

lh_str lh_format(const char *format, ...) {
    lh_out out = {0};
    va_list arguments;
    va_start(arguments, format);
    lhi_add_formatted(&out, format, arguments);
    va_end(arguments);
    return lh_out_text(&out);
}

/* A comma, unless this is the first in its list or object, or the value of a key. */
static void separate(lh_out *out) {
    if (out->failed || out->len == 0 || out->depth == 0) return;
    uint8_t last = out->ptr[out->len - 1];
    if (last != '[' && last != '{' && last != ':') lhi_add_byte(out, ',');
}

static void begin(lh_out *out, uint8_t opener, uint8_t closer) {
    separate(out);
    if (out->depth >= LH_DEPTH_MAX) {
        out->failed = true;
        return;
    }
    out->closers[out->depth++] = closer;
    lhi_add_byte(out, opener);
}

void lh_begin_object(lh_out *out) { begin(out, '{', '}'); }

void lh_begin_list(lh_out *out) { begin(out, '[', ']'); }

void lh_end(lh_out *out) {
    if (out->depth == 0) out->failed = true;
    else lhi_add_byte(out, out->closers[--out->depth]);
}

static void add_quoted(lh_out *out, lh_str text) {
    text = lh_utf8(text);
    lhi_add_byte(out, '"');
    size_t plain = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t byte = text.ptr[i];
        if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
        lh_add(out, lh_slice(text, plain, i));
        plain = i + 1;
        if (byte == '"' || byte == '\\') {
            lhi_add_byte(out, '\\');
            lhi_add_byte(out, byte);
        } else if (byte == '\n') {
            lh_add(out, lh_lit("\\n"));
        } else {
            lh_addf(out, "\\u00%c%c", "01"[byte >> 4], "0123456789abcdef"[byte & 15]);
        }
    }
    lh_add(out, lh_slice(text, plain, text.len));
    lhi_add_byte(out, '"');
}

void lh_put_text(lh_out *out, lh_str text) {
    separate(out);
    add_quoted(out, text);
}

void lh_key_text(lh_out *out, lh_str name) {
    lh_put_text(out, name);
    lhi_add_byte(out, ':');
}

void lh_key(lh_out *out, const char *name) { lh_key_text(out, lh_from(name)); }

void lh_put_json(lh_out *out, lh_str json) {
    separate(out);
    lh_add(out, json.len == 0 ? lh_lit("null") : json);
}

void lh_put_whole(lh_out *out, int64_t number) {
    separate(out);
    lhi_add_whole(out, number);
}

void lh_put_number(lh_out *out, double number) {
    /* Up to 2^53 every whole double is exact. */
    if (number == rint(number) && fabs(number) <= 9007199254740992.0) {
        lh_put_whole(out, (int64_t)number);
        return;
    }
    /* 17 digits bring every double back; fewer read better where they do, too. */
    char text[32] = "null";
    for (int digits = 15; isfinite(number) && digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number) break;
    }
    lh_put_json(out, lh_from(text));
}

void lh_put_bool(lh_out *out, bool value) { lh_put_json(out, value ? lh_lit("true") : lh_lit("false")); }

void lh_put_null(lh_out *out) { lh_put_json(out, lh_lit("null")); }
