/* Declarations that the files of the SDK share. Nothing here is for plugins, and every name says so: `lhi_`.
 *
 * Sizes are checked before they are added, nothing recurses, and every loop over a text ends with the text. What
 * cannot be had (memory, mostly) makes the call end with the error `failed`. Only two things trap: the host giving
 * more than fits into memory, which ends in the generated `cabi_realloc`, and the plugin's own mistakes.
 *
 * Each file is compiled for each world, and has for it what the world has: a file of another world is empty. */

#ifndef LONGHAUL_INSIDE_H
#define LONGHAUL_INSIDE_H

#include "longhaul.h"

#include <stdarg.h>
#include <string.h>

static const lh_str EMPTY = {NULL, 0};

/* ---- Memory (alloc.c) ---- */

void lhi_note_out_of_memory(void);
bool lhi_is_out_of_memory(void);

/* Calls of tools so far: the host knows long answers by the number of their call. */
uint32_t lhi_calls_made(void);
/* Adopts a text that a generated function gave, and gives it back. */
lh_str lhi_adopt_text(lh_str text);
/* Adopts a list of texts and its texts, and gives it back. */
lh_str_list lhi_adopt_texts(lh_str_list texts);
/* Zeroed memory that the bindings free; NULL when there is none, or for nothing. */
void *lhi_take(size_t count, size_t size);
/* Ends a call: frees what was given in it. */
void lhi_finish(void);

/* ---- Texts (text.c, write.c) ---- */

/* The bytes of a code point, and how many they are. */
size_t lhi_encode(uint32_t code, uint8_t bytes[4]);
/* The texts as the host takes them, each valid UTF-8; the list is empty when memory ran out. */
lh_str_list lhi_utf8_texts(lh_str_list texts);
void lhi_add_byte(lh_out *out, uint8_t byte);
void lhi_add_whole(lh_out *out, int64_t number);
void lhi_add_formatted(lh_out *out, const char *format, va_list arguments);

/* ---- Errors of imports (error.c): each adopts the texts, fills the error and gives false ---- */

bool lhi_fail_text(lh_error *err, lh_error_kind kind, lh_str text);
bool lhi_fail_denied(lh_error *err, longhaul_plugin_types_denial_t denial);
bool lhi_fail_hit(lh_error *err, longhaul_plugin_types_limit_hit_t hit);
/* Tools and memory backends have no import that has outages. */
#if !defined(LH_WORLD_TOOL) && !defined(LH_WORLD_MEMORY)
bool lhi_fail_outage(lh_error *err, longhaul_plugin_types_outage_t outage);
#endif

#if defined(LH_WORLD_AGENT)
/* Adopts what an agent handed back. */
lh_outcome lhi_adopt_outcome(lh_outcome outcome);
#endif

/* ---- The parameters of a tool (params.c) ---- */

#if defined(LH_WORLD_TOOL)
/* The JSON Schema of a function's arguments. */
lh_str lhi_schema_of(const lh_function *function);
/* Fills the error with what is wrong with them. */
bool lhi_check_arguments(const lh_function *function, lh_value arguments, lh_error *err);
#endif

/* ---- What goes out (give.c): copies that the bindings free ---- */

void lhi_give_text(const lh_str *from, lh_str *to);
void lhi_give_texts(const lh_str_list *from, lh_str_list *to);
void lhi_give_optional(const lh_optional_str *from, lh_optional_str *to);
void lhi_give_denial(const lh_error *err, longhaul_plugin_types_denial_t *to);
void lhi_give_hit(const lh_error *err, longhaul_plugin_types_limit_hit_t *to);
void lhi_give_outage(const lh_error *err, longhaul_plugin_types_outage_t *to);

/* What every role does around the plugin's function: `ok` of it in, and whether the result goes out. When memory
 * ran out somewhere, the result may lack a part, and the error says so instead. */
bool lhi_settle(bool ok, lh_error *err);

/* Copies a list with the function for one of its items. */
#define LHI_GIVE_LIST(from, to, give)                                                \
    do {                                                                             \
        (to)->ptr = lhi_take((from)->len, sizeof *(to)->ptr);                        \
        (to)->len = (to)->ptr == NULL ? 0 : (from)->len;                             \
        for (size_t i = 0; i < (to)->len; i++) give(&(from)->ptr[i], &(to)->ptr[i]); \
    } while (0)

/* The error of a role: the cases that all have, then where the others go. */
#define LHI_GIVE_ERROR(PREFIX, err, to, SPECIAL)                                                                      \
    do {                                                                                                              \
        memset((to), 0, sizeof *(to));                                                                                \
        switch ((err)->kind) {                                                                                        \
        case LH_DENIED: (to)->tag = PREFIX##_DENIED; lhi_give_denial((err), &(to)->val.denied); break;                \
        case LH_OVER_LIMIT: (to)->tag = PREFIX##_LIMIT; lhi_give_hit((err), &(to)->val.limit); break;                 \
        case LH_UNAVAILABLE: (to)->tag = PREFIX##_UNAVAILABLE; lhi_give_outage((err), &(to)->val.unavailable); break; \
            SPECIAL                                                                                                   \
        default: {                                                                                                    \
            lh_str words = lh_error_text(err);                                                                        \
            (to)->tag = PREFIX##_FAILED;                                                                              \
            lhi_give_text(&words, &(to)->val.failed);                                                                 \
        }                                                                                                             \
        }                                                                                                             \
    } while (0)
#define LHI_GIVE_KIND(KIND, PREFIX, NAME, field, err, to) \
    case KIND: (to)->tag = PREFIX##_##NAME; lhi_give_text(&(err)->text, &(to)->val.field); break;

#endif
