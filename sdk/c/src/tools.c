/* Calling the tools that were granted. */

#include "inside.h"

#if defined(LH_WORLD_AGENT)

static bool fail_tool(lh_error *err, longhaul_plugin_tools_tool_error_t e) {
    switch (e.tag) {
    case LONGHAUL_PLUGIN_TOOL_TYPES_TOOL_ERROR_UNKNOWN_FUNCTION: return lhi_fail_text(err, LH_UNKNOWN_FUNCTION, e.val.unknown_function);
    case LONGHAUL_PLUGIN_TOOL_TYPES_TOOL_ERROR_INVALID_ARGUMENTS: return lhi_fail_text(err, LH_INVALID, e.val.invalid_arguments);
    case LONGHAUL_PLUGIN_TOOL_TYPES_TOOL_ERROR_DENIED: return lhi_fail_denied(err, e.val.denied);
    case LONGHAUL_PLUGIN_TOOL_TYPES_TOOL_ERROR_LIMIT: return lhi_fail_hit(err, e.val.limit);
    case LONGHAUL_PLUGIN_TOOL_TYPES_TOOL_ERROR_UNAVAILABLE: return lhi_fail_outage(err, e.val.unavailable);
    case LONGHAUL_PLUGIN_TOOL_TYPES_TOOL_ERROR_TIMED_OUT:
        *err = (lh_error){.kind = LH_TIMED_OUT, .used = e.val.timed_out};
        return false;
    case LONGHAUL_PLUGIN_TOOL_TYPES_TOOL_ERROR_OUTCOME_UNKNOWN: return lhi_fail_text(err, LH_OUTCOME_UNKNOWN, e.val.outcome_unknown);
    default: return lhi_fail_text(err, LH_FAILED, e.val.failed);
    }
}

lh_tool_list lh_tools(void) {
    lh_tool_list list;
    longhaul_plugin_tools_list(&list);
    for (size_t i = 0; i < list.len; i++) {
        lhi_adopt_text(list.ptr[i].id);
        lhi_adopt_text(list.ptr[i].description);
        for (size_t k = 0; k < list.ptr[i].functions.len; k++) {
            lhi_adopt_text(list.ptr[i].functions.ptr[k].name);
            lhi_adopt_text(list.ptr[i].functions.ptr[k].description);
            lhi_adopt_text(list.ptr[i].functions.ptr[k].parameters);
        }
        if (list.ptr[i].functions.len > 0) lh_adopt(list.ptr[i].functions.ptr);
    }
    if (list.len > 0) lh_adopt(list.ptr);
    return list;
}

static uint32_t calls_made = 0;

uint32_t lhi_calls_made(void) { return calls_made; }

bool lh_tool_call(lh_str tool, lh_str function, lh_str arguments, lh_str *output, bool *truncated, lh_error *err) {
    longhaul_plugin_tools_tool_call_t call = {lh_utf8(tool), lh_utf8(function), lh_utf8(arguments)};
    longhaul_plugin_tools_tool_result_t result;
    longhaul_plugin_tools_tool_error_t e;
    *output = EMPTY;
    *truncated = false;
    calls_made++;
    if (!longhaul_plugin_tools_call(&call, &result, &e)) return fail_tool(err, e);
    *output = lhi_adopt_text(result.output);
    *truncated = result.truncated;
    return true;
}

bool lh_tool_call_many(const lh_tool_request *calls, size_t count, lh_tool_answer *answers, lh_error *err) {
    longhaul_plugin_tools_list_tool_call_t asked = {lh_alloc(count, sizeof *asked.ptr), count};
    longhaul_plugin_tools_list_result_tool_result_tool_error_t ret;
    if (count == 0) return true;
    if (asked.ptr == NULL) return lh_fail(err, LH_FAILED, "out of memory for %zu calls", count);
    for (size_t i = 0; i < count; i++) {
        asked.ptr[i] = (lh_tool_request){lh_utf8(calls[i].tool), lh_utf8(calls[i].function), lh_utf8(calls[i].arguments)};
    }
    calls_made += (uint32_t)count;
    longhaul_plugin_tools_call_many(&asked, &ret);
    for (size_t i = 0; i < ret.len && i < count; i++) {
        answers[i] = (lh_tool_answer){.ok = !ret.ptr[i].is_err};
        if (answers[i].ok) {
            answers[i].output = lhi_adopt_text(ret.ptr[i].val.ok.output);
            answers[i].truncated = ret.ptr[i].val.ok.truncated;
        } else {
            fail_tool(&answers[i].error, ret.ptr[i].val.err);
        }
    }
    if (ret.len > 0) lh_adopt(ret.ptr);
    if (ret.len != count) return lh_fail(err, LH_FAILED, "%zu answers to %zu calls", ret.len, count);
    return true;
}

#endif
