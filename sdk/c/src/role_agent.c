/* The export of an agent around `lh_agent_run`. */

#include "inside.h"

#if defined(LH_WORLD_AGENT)

bool exports_longhaul_plugin_agent_run(exports_longhaul_plugin_agent_task_t *task,
                                       exports_longhaul_plugin_agent_outcome_t *ret,
                                       exports_longhaul_plugin_agent_agent_error_t *err) {
    lh_error error = {0};
    lh_outcome outcome = {0};
    memset(ret, 0, sizeof *ret);
    bool ok = lh_agent_run(task, &outcome, &error);
    if (ok) {
        lhi_give_text(&outcome.output, &ret->output);
        lhi_give_text(&outcome.summary, &ret->summary);
        ret->confidence = outcome.confidence;
        lhi_give_texts(&outcome.unknowns, &ret->unknowns);
    }
    ok = lhi_settle(ok, &error);
    if (!ok) {
        LHI_GIVE_ERROR(EXPORTS_LONGHAUL_PLUGIN_AGENT_AGENT_ERROR, &error, err,
                       LHI_GIVE_KIND(LH_IMPOSSIBLE, EXPORTS_LONGHAUL_PLUGIN_AGENT_AGENT_ERROR, IMPOSSIBLE, impossible, &error, err)
                       LHI_GIVE_KIND(LH_BLOCKED, EXPORTS_LONGHAUL_PLUGIN_AGENT_AGENT_ERROR, BLOCKED, blocked, &error, err));
    }
    lhi_finish();
    exports_longhaul_plugin_agent_task_free(task);
    return ok;
}

#endif
