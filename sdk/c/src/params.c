/* The parameters of a tool's functions: the JSON Schema that `describe` shows, and the check of arguments against the
 * same, so that the two cannot disagree. */

#include "inside.h"

#include <math.h>

#if defined(LH_WORLD_TOOL)

static const char *type_name(lh_kind kind) {
    switch (kind) {
    case LH_TEXT: return "string";
    case LH_WHOLE: return "integer";
    case LH_NUMBER: return "number";
    case LH_BOOL: return "boolean";
    case LH_LIST: return "array";
    case LH_OBJECT: return "object";
    default: return NULL;
    }
}

static const char *words_for(lh_kind kind) {
    switch (kind) {
    case LH_NULL: return "null";
    case LH_TEXT: return "a text";
    case LH_WHOLE: return "a whole number";
    case LH_NUMBER: return "a number";
    case LH_BOOL: return "true or false";
    case LH_LIST: return "a list";
    default: return "an object";
    }
}

static bool is_bounded(const lh_param *param) { return param->min != 0 || param->max != 0; }

/* A `max` that nobody wrote is 0, which is below any smallest number that means something. */
static bool has_max(const lh_param *param) { return is_bounded(param) && param->max >= param->min; }

static void put_param(lh_out *out, const lh_param *param) {
    lh_begin_object(out);
    if (type_name(param->kind) != NULL) {
        lh_key(out, "type");
        lh_put_text(out, lh_from(type_name(param->kind)));
    }
    if (is_bounded(param) && (param->kind == LH_TEXT || param->kind == LH_WHOLE || param->kind == LH_NUMBER)) {
        lh_key(out, param->kind == LH_TEXT ? "minLength" : "minimum");
        lh_put_whole(out, param->min);
    }
    if (has_max(param) && (param->kind == LH_TEXT || param->kind == LH_WHOLE || param->kind == LH_NUMBER)) {
        lh_key(out, param->kind == LH_TEXT ? "maxLength" : "maximum");
        lh_put_whole(out, param->max);
    }
    if (param->about != NULL) {
        lh_key(out, "description");
        lh_put_text(out, lh_from(param->about));
    }
    lh_end(out);
}

/* The JSON Schema of a function's arguments. */
lh_str lhi_schema_of(const lh_function *function) {
    lh_out out = {0};
    lh_begin_object(&out);
    lh_key(&out, "type");
    lh_put_text(&out, lh_lit("object"));
    lh_key(&out, "properties");
    lh_begin_object(&out);
    for (const lh_param *param = function->params; param != NULL && param->name != NULL; param++) {
        lh_key(&out, param->name);
        put_param(&out, param);
    }
    lh_end(&out);
    lh_key(&out, "required");
    lh_begin_list(&out);
    for (const lh_param *param = function->params; param != NULL && param->name != NULL; param++) {
        if (!param->optional) lh_put_text(&out, lh_from(param->name));
    }
    lh_end(&out);
    lh_key(&out, "additionalProperties");
    lh_put_bool(&out, false);
    lh_end(&out);
    return lh_out_text(&out);
}

static bool check_value(const lh_param *param, lh_value value, lh_error *err) {
    lh_kind kind = lh_kind_of(value), wanted = param->kind == LH_WHOLE ? LH_NUMBER : param->kind;
    if (wanted == LH_ANY) return true;
    if (kind != wanted) {
        return lh_fail(err, LH_INVALID, "`%s` must be %s, not %s", param->name, words_for(param->kind), words_for(kind));
    }
    double number = kind == LH_NUMBER ? lh_number_of(value) : 0;
    if (kind == LH_NUMBER && !isfinite(number)) return lh_fail(err, LH_INVALID, "`%s` is out of range", param->name);
    if (param->kind == LH_WHOLE && number != rint(number)) {
        return lh_fail(err, LH_INVALID, "`%s` must be a whole number", param->name);
    }
    if (!is_bounded(param) || (kind != LH_NUMBER && kind != LH_TEXT)) return true;
    if (kind == LH_TEXT) number = (double)lh_chars(lh_text_of(value));
    if (number >= param->min && (!has_max(param) || number <= param->max)) return true;
    lh_str most = has_max(param) ? lh_format(" to %ld", (long)param->max) : lh_lit(" or more");
    return lh_fail(err, LH_INVALID, "`%s` must %s %ld%.*s%s", param->name, kind == LH_TEXT ? "have" : "be",
                   (long)param->min, LH_ARG(most), kind == LH_TEXT ? " characters" : "");
}

static const lh_param *find_param(const lh_function *function, lh_str name) {
    const lh_param *param = function->params;
    while (param != NULL && param->name != NULL && !lh_is(name, param->name)) param++;
    return param == NULL || param->name == NULL ? NULL : param;
}

bool lhi_check_arguments(const lh_function *function, lh_value arguments, lh_error *err) {
    if (lh_kind_of(arguments) != LH_OBJECT) {
        return lh_fail(err, LH_INVALID, "an object is expected, not %s", words_for(lh_kind_of(arguments)));
    }
    for (lh_value value = lh_first(arguments); lh_there(value); value = lh_next(value)) {
        const lh_param *param = find_param(function, lh_name_of(value));
        if (param == NULL) {
            lh_out known = {0};
            for (param = function->params; param != NULL && param->name != NULL; param++) {
                lh_addf(&known, "%s`%s`", known.len > 0 ? ", " : "", param->name);
            }
            lh_str name = lh_cut(lh_name_of(value), 100), names = lh_out_text(&known);
            return lh_fail(err, LH_INVALID, "`%.*s` is not known here; known: %.*s", LH_ARG(name), LH_ARG(names));
        }
        /* Models send null for what they leave out. */
        bool is_left_out = param->optional && lh_kind_of(value) == LH_NULL;
        if (!is_left_out && !check_value(param, value, err)) return false;
    }
    for (const lh_param *param = function->params; param != NULL && param->name != NULL; param++) {
        bool is_missing = !param->optional && !lh_there(lh_get(arguments, param->name));
        if (is_missing) return lh_fail(err, LH_INVALID, "`%s` is missing", param->name);
    }
    return true;
}

#endif
