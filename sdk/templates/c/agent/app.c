/* The agent `{{name}}`: asks a model once, and hands its answer back. */

#include "longhaul.h"

/* Schema of the model's reply; the host holds it to this. */
#define SCHEMA \
    "{\"type\":\"object\",\"properties\":{\"answer\":{\"type\":\"string\"}}," \
    "\"required\":[\"answer\"],\"additionalProperties\":false}"

bool lh_agent_run(const lh_task *task, lh_outcome *outcome, lh_error *err) {
    lh_chat chat = lh_chat_open(lh_lit("You do the task and answer in JSON."));
    lh_value reply;
    if (!lh_chat_json(chat, task->instruction, lh_lit(SCHEMA), &reply, err)) return false;
    lh_out output = {0};
    lh_begin_object(&output);
    lh_key(&output, "answer");
    lh_put_text(&output, lh_text_of(lh_get(reply, "answer")));
    lh_end(&output);
    outcome->output = lh_out_text(&output);
    outcome->summary = lh_lit("asked a model");
    return true;
}
