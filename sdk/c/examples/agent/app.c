/* The agent `reporter`: lets a model pick tools until it can report.
 *
 * The loop is the SDK's. The agent never judges its own work: what it finishes with goes to an evaluator. */

#include "longhaul.h"

/* Under `[agents.NAME.settings]` of longhaul.toml. Unknown fields are errors: a misspelt cap would not hold. */
static bool read_settings(lh_str json, lh_react_options *options, lh_error *err) {
    lh_value settings;
    if (!lh_json_read("the settings", json, &settings, err)) return false;
    if (lh_kind_of(settings) != LH_OBJECT) return lh_fail(err, LH_FAILED, "the settings: an object is expected");
    for (lh_value value = lh_first(settings); lh_there(value); value = lh_next(value)) {
        lh_str name = lh_name_of(value);
        double number = lh_number_of(value);
        if (lh_is(name, "prompt") && lh_kind_of(value) == LH_TEXT) {
            options->prompt = lh_text_of(value);
        } else if (lh_is(name, "steps_max") && number >= 1 && number <= 200) {
            options->steps_max = (uint32_t)number;
        } else {
            name = lh_cut(name, 100);
            return lh_fail(err, LH_FAILED,
                           "the settings: `%.*s` is not usable; there are `prompt`, a text, and `steps_max`, 1 to 200",
                           LH_ARG(name));
        }
    }
    return true;
}

bool lh_agent_run(const lh_task *task, lh_outcome *outcome, lh_error *err) {
    lh_react_options options = {
        .prompt = lh_lit("You find things out with the tools you are given, and report what you found."),
        .steps_max = 8,
    };
    return read_settings(task->settings, &options, err) && lh_react(task, &options, outcome, err);
}
