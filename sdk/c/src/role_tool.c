/* The exports of a tool around `lh_plugin`. */

#include "inside.h"

#if defined(LH_WORLD_TOOL)

typedef exports_longhaul_plugin_tool_tool_error_t tool_error;

static void give_error(const lh_error *err, tool_error *to) {
    LHI_GIVE_ERROR(LONGHAUL_PLUGIN_TOOL_TYPES_TOOL_ERROR, err, to,
                   LHI_GIVE_KIND(LH_INVALID, LONGHAUL_PLUGIN_TOOL_TYPES_TOOL_ERROR, INVALID_ARGUMENTS, invalid_arguments, err, to)
                   LHI_GIVE_KIND(LH_UNKNOWN_FUNCTION, LONGHAUL_PLUGIN_TOOL_TYPES_TOOL_ERROR, UNKNOWN_FUNCTION, unknown_function, err, to)
                   LHI_GIVE_KIND(LH_OUTCOME_UNKNOWN, LONGHAUL_PLUGIN_TOOL_TYPES_TOOL_ERROR, OUTCOME_UNKNOWN, outcome_unknown, err, to)
                   case LH_TIMED_OUT: (to)->tag = LONGHAUL_PLUGIN_TOOL_TYPES_TOOL_ERROR_TIMED_OUT;
                       (to)->val.timed_out = err->used >= 0 && err->used <= UINT32_MAX ? (uint32_t)err->used : UINT32_MAX; break;);
}

static lh_call call_of(const exports_longhaul_plugin_tool_call_context_t *context) {
    return (lh_call){.idempotency_key = context->idempotency_key,
                     .remaining_ms = context->remaining_ms,
                     .attempt = context->attempt,
                     .settings = context->settings};
}

/* Finds the function and reads its arguments into `call`. */
static bool find(const tool_plugin_string_t *name, const tool_plugin_string_t *arguments, const lh_function **function,
                 lh_call *call, lh_error *err) {
    const lh_function *one = lh_plugin.functions;
    while (one != NULL && one->name != NULL && !lh_is(*name, one->name)) one++;
    if (one == NULL || one->name == NULL) {
        lh_out known = {0};
        for (one = lh_plugin.functions; one != NULL && one->name != NULL; one++) {
            lh_addf(&known, "%s`%s`", known.len > 0 ? ", " : "", one->name);
        }
        lh_str cut = lh_cut(*name, 100), names = lh_out_text(&known);
        return lh_fail(err, LH_UNKNOWN_FUNCTION, "`%.*s`; the tool `%s` has %.*s", LH_ARG(cut), lh_plugin.id, LH_ARG(names));
    }
    *function = one;
    call->function = *name;
    if (!lh_json_read("the arguments", *arguments, &call->arguments, err)) return false;
    if (lhi_check_arguments(one, call->arguments, err)) return true;
    lh_str wrong = err->text;
    return lh_fail(err, LH_INVALID, "the arguments of `%s`: %.*s", one->name, LH_ARG(wrong));
}

static bool end_call(bool ok, lh_error *error, tool_error *err) {
    ok = lhi_settle(ok, error);
    if (!ok) give_error(error, err);
    lhi_finish();
    return ok;
}

bool exports_longhaul_plugin_tool_describe(exports_longhaul_plugin_tool_json_t *settings,
                                           exports_longhaul_plugin_tool_tool_info_t *ret, tool_error *err) {
    lh_error error = {0};
    memset(ret, 0, sizeof *ret);
    size_t count = 0;
    while (lh_plugin.functions != NULL && lh_plugin.functions[count].name != NULL) count++;
    lh_str id = lh_from(lh_plugin.id), about = lh_from(lh_plugin.about);
    lhi_give_text(&id, &ret->id);
    lhi_give_text(&about, &ret->description);
    ret->functions.ptr = lhi_take(count, sizeof *ret->functions.ptr);
    ret->functions.len = ret->functions.ptr == NULL ? 0 : count;
    for (size_t i = 0; i < ret->functions.len; i++) {
        const lh_function *function = &lh_plugin.functions[i];
        lh_str name = lh_from(function->name), words = lh_from(function->about), schema = lhi_schema_of(function);
        lhi_give_text(&name, &ret->functions.ptr[i].name);
        lhi_give_text(&words, &ret->functions.ptr[i].description);
        lhi_give_text(&schema, &ret->functions.ptr[i].parameters);
        ret->functions.ptr[i].effect = (uint8_t)function->effect;
    }
    bool ok = end_call(true, &error, err);
    tool_plugin_string_free(settings);
    return ok;
}

bool exports_longhaul_plugin_tool_prepare(tool_plugin_string_t *name, exports_longhaul_plugin_tool_json_t *arguments,
                                          exports_longhaul_plugin_tool_call_context_t *context,
                                          exports_longhaul_plugin_tool_json_t *ret, tool_error *err) {
    const lh_function *function;
    lh_error error = {0};
    lh_call call = call_of(context);
    lh_out note = {0};
    bool ok = find(name, arguments, &function, &call, &error);
    if (ok && function->prepare != NULL) ok = function->prepare(&call, &note, &error);
    lh_str text = note.len == 0 ? lh_lit("{}") : lh_out_text(&note);
    if (ok) lhi_give_text(&text, ret);
    ok = end_call(ok, &error, err);
    tool_plugin_string_free(name);
    tool_plugin_string_free(arguments);
    exports_longhaul_plugin_tool_call_context_free(context);
    return ok;
}

bool exports_longhaul_plugin_tool_verify(tool_plugin_string_t *name, exports_longhaul_plugin_tool_json_t *arguments,
                                         exports_longhaul_plugin_tool_json_t *prepared,
                                         exports_longhaul_plugin_tool_call_context_t *context,
                                         exports_longhaul_plugin_tool_verification_t *ret, tool_error *err) {
    const lh_function *function;
    lh_error error = {0};
    lh_call call = call_of(context);
    lh_out out = {0};
    lh_value note;
    lh_verdict_kind verdict = LH_CANNOT_TELL;
    memset(ret, 0, sizeof *ret);
    bool ok = find(name, arguments, &function, &call, &error);
    if (ok && function->verify != NULL) {
        ok = lh_json_read("the note of `prepare`", *prepared, &note, &error) &&
             function->verify(&call, note, &verdict, &out, &error);
    } else if (ok) {
        lh_addf(&out, "`%s` keeps no note of whether it happened", function->name);
    }
    lh_str text = lh_out_text(&out);
    if (ok && verdict == LH_HAPPENED) {
        ret->tag = EXPORTS_LONGHAUL_PLUGIN_TOOL_VERIFICATION_HAPPENED;
        lhi_give_text(&text, &ret->val.happened.output);
        ret->val.happened.truncated = out.truncated;
    } else if (ok && verdict == LH_DID_NOT_HAPPEN) {
        ret->tag = EXPORTS_LONGHAUL_PLUGIN_TOOL_VERIFICATION_DID_NOT_HAPPEN;
    } else if (ok) {
        ret->tag = EXPORTS_LONGHAUL_PLUGIN_TOOL_VERIFICATION_UNKNOWN;
        lhi_give_text(&text, &ret->val.unknown);
    }
    ok = end_call(ok, &error, err);
    tool_plugin_string_free(name);
    tool_plugin_string_free(arguments);
    tool_plugin_string_free(prepared);
    exports_longhaul_plugin_tool_call_context_free(context);
    return ok;
}

bool exports_longhaul_plugin_tool_call(tool_plugin_string_t *name, exports_longhaul_plugin_tool_json_t *arguments,
                                       exports_longhaul_plugin_tool_call_context_t *context,
                                       exports_longhaul_plugin_tool_tool_result_t *ret, tool_error *err) {
    const lh_function *function;
    lh_error error = {0};
    lh_call call = call_of(context);
    lh_out answer = {0};
    memset(ret, 0, sizeof *ret);
    bool ok = find(name, arguments, &function, &call, &error);
    if (ok && function->run == NULL) ok = lh_fail(&error, LH_FAILED, "`%s` has no `run`", function->name);
    ok = ok && function->run(&call, &answer, &error);
    if (ok && (answer.failed || answer.depth > 0)) ok = lh_fail(&error, LH_FAILED, "the answer of `%s` is not whole", function->name);
    lh_str text = lh_out_text(&answer);
    if (ok) lhi_give_text(&text, &ret->output);
    ret->truncated = answer.truncated;
    ok = end_call(ok, &error, err);
    tool_plugin_string_free(name);
    tool_plugin_string_free(arguments);
    exports_longhaul_plugin_tool_call_context_free(context);
    return ok;
}

#endif
