/* Talking with a model. */

#include "inside.h"

#if defined(LH_WORLD_AGENT) || defined(LH_WORLD_PLANNER) || defined(LH_WORLD_EVALUATOR)

static bool fail_model(lh_error *err, longhaul_plugin_conversation_model_error_t e) {
    switch (e.tag) {
    case LONGHAUL_PLUGIN_CONVERSATION_MODEL_ERROR_DENIED: return lhi_fail_denied(err, e.val.denied);
    case LONGHAUL_PLUGIN_CONVERSATION_MODEL_ERROR_LIMIT: return lhi_fail_hit(err, e.val.limit);
    case LONGHAUL_PLUGIN_CONVERSATION_MODEL_ERROR_UNAVAILABLE: return lhi_fail_outage(err, e.val.unavailable);
    case LONGHAUL_PLUGIN_CONVERSATION_MODEL_ERROR_CONTEXT_FULL: return lhi_fail_hit(err, e.val.context_full);
    case LONGHAUL_PLUGIN_CONVERSATION_MODEL_ERROR_INVALID: return lhi_fail_text(err, LH_INVALID, e.val.invalid);
    case LONGHAUL_PLUGIN_CONVERSATION_MODEL_ERROR_REFUSED:
        lhi_adopt_text(e.val.refused);
        return lh_fail(err, LH_FAILED, "the model refused: %.*s", LH_ARG(e.val.refused));
    default: return lhi_fail_text(err, LH_FAILED, e.val.failed);
    }
}

lh_chat lh_chat_open(lh_str system) {
    system = lh_utf8(system);
    return longhaul_plugin_conversation_constructor_conversation(&system);
}

void lh_chat_close(lh_chat chat) { longhaul_plugin_conversation_conversation_drop_own(chat); }

static bool push(lh_chat chat, uint8_t role, longhaul_plugin_message_types_part_t part, bool pinned, lh_error *err) {
    longhaul_plugin_conversation_model_error_t e;
    longhaul_plugin_message_types_message_t message = {.role = role, .parts = {&part, 1}};
    longhaul_plugin_conversation_borrow_conversation_t borrow = longhaul_plugin_conversation_borrow_conversation(chat);
    return longhaul_plugin_conversation_method_conversation_push(borrow, &message, pinned, &e) || fail_model(err, e);
}

bool lh_chat_say(lh_chat chat, lh_str text, bool pinned, lh_error *err) {
    longhaul_plugin_message_types_part_t part = {.tag = LONGHAUL_PLUGIN_MESSAGE_TYPES_PART_TEXT,
                                                 .val.text = lh_utf8(text)};
    return push(chat, LONGHAUL_PLUGIN_MESSAGE_TYPES_ROLE_USER, part, pinned, err);
}

bool lh_chat_answer(lh_chat chat, lh_str id, lh_str output_json, bool failed, lh_error *err) {
    longhaul_plugin_message_types_part_t part = {
        .tag = LONGHAUL_PLUGIN_MESSAGE_TYPES_PART_TOOL_RESULT,
        .val.tool_result = {.id = lh_utf8(id), .output = lh_utf8(output_json), .failed = failed}};
    return push(chat, LONGHAUL_PLUGIN_MESSAGE_TYPES_ROLE_TOOL, part, false, err);
}

/* The options as the host takes them. */
static lh_ask mend_ask(const lh_ask *ask) {
    lh_ask mended = *ask;
    if (mended.model.is_some) mended.model.val = lh_utf8(mended.model.val);
    if (mended.prefill.is_some) mended.prefill.val = lh_utf8(mended.prefill.val);
    mended.stop = lhi_utf8_texts(mended.stop);
    mended.offer_tools = lhi_utf8_texts(mended.offer_tools);
    mended.extra = lh_utf8(mended.extra);
    return mended;
}

bool lh_chat_ask(lh_chat chat, const lh_ask *ask, lh_reply *reply, lh_error *err) {
    longhaul_plugin_conversation_model_error_t e;
    lh_ask options = mend_ask(ask);
    longhaul_plugin_conversation_borrow_conversation_t borrow = longhaul_plugin_conversation_borrow_conversation(chat);
    *reply = (lh_reply){0};
    if (!longhaul_plugin_conversation_method_conversation_complete(borrow, &options, reply, &e)) return fail_model(err, e);
    lhi_adopt_text(reply->text);
    lhi_adopt_text(reply->extra);
    for (size_t i = 0; i < reply->calls.len; i++) {
        lhi_adopt_text(reply->calls.ptr[i].id);
        lhi_adopt_text(reply->calls.ptr[i].tool);
        lhi_adopt_text(reply->calls.ptr[i].function);
        lhi_adopt_text(reply->calls.ptr[i].arguments);
    }
    if (reply->calls.len > 0) lh_adopt(reply->calls.ptr);
    return true;
}

void lh_ask_schema(lh_ask *ask, lh_str schema) {
    ask->format.tag = LONGHAUL_PLUGIN_CONVERSATION_REPLY_FORMAT_SCHEMA;
    ask->format.val.schema = lh_utf8(schema);
}

bool lh_chat_json(lh_chat chat, lh_str prompt, lh_str schema, lh_value *reply, lh_error *err) {
    lh_ask ask = {0};
    lh_reply said;
    lh_ask_schema(&ask, schema);
    return lh_chat_say(chat, prompt, false, err) && lh_chat_ask(chat, &ask, &said, err) &&
           lh_json_read("the model's reply", said.text, reply, err);
}

lh_chat_context lh_chat_usage(lh_chat chat) {
    lh_chat_context context;
    longhaul_plugin_conversation_method_conversation_usage(longhaul_plugin_conversation_borrow_conversation(chat), &context);
    return context;
}

bool lh_chat_reset(lh_chat chat, lh_str summary, lh_error *err) {
    longhaul_plugin_conversation_model_error_t e;
    longhaul_plugin_conversation_borrow_conversation_t borrow = longhaul_plugin_conversation_borrow_conversation(chat);
    summary = lh_utf8(summary);
    return longhaul_plugin_conversation_method_conversation_reset(borrow, &summary, &e) || fail_model(err, e);
}

#endif
