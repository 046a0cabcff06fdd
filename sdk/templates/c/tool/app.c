/* The tool `{{name}}`: one function, to begin with. */

#include "longhaul.h"

/* The arguments satisfy `greet_params` when this is called. */
static bool greet(const lh_call *call, lh_out *answer, lh_error *err) {
    (void)err;
    lh_str name = lh_text_of(lh_get(call->arguments, "name"));
    lh_begin_object(answer);
    lh_key(answer, "greeting");
    lh_put_text(answer, lh_format("Hello, %.*s!", LH_ARG(name)));
    lh_end(answer);
    return true;
}

static const lh_param greet_params[] = {
    {.name = "name", .about = "whom to greet", .kind = LH_TEXT},
    {0},
};

static const lh_function functions[] = {
    /* It touches nothing, so it may be repeated. LH_ACTS is for what must not be. */
    {.name = "greet", .about = "Greets somebody by name.", .effect = LH_READ_ONLY, .params = greet_params, .run = greet},
    {0},
};

const lh_tool lh_plugin = {.id = "{{name}}", .about = "Greets by name.", .functions = functions};
