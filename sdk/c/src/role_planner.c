/* The exports of a planner around the plugin's three functions. */

#include "inside.h"

#if defined(LH_WORLD_PLANNER)

typedef exports_longhaul_plugin_planner_plan_error_t plan_error;
typedef exports_longhaul_plugin_planner_check_spec_t check_spec;

static void give_criterion(const lh_criterion *from, lh_criterion *to) {
    lhi_give_text(&from->id, &to->id);
    lhi_give_text(&from->text, &to->text);
    lhi_give_optional(&from->check, &to->check);
}

static void give_check(const check_spec *from, check_spec *to) {
    lhi_give_text(&from->name, &to->name);
    to->body.tag = from->body.tag;
    if (from->body.tag == LH_CHECK_SOURCE) {
        lhi_give_text(&from->body.val.source.language, &to->body.val.source.language);
        lhi_give_text(&from->body.val.source.text, &to->body.val.source.text);
    } else {
        lhi_give_text(&from->body.val.native, &to->body.val.native);
    }
}

static void give_step(const lh_plan_step *from, lh_plan_step *to) {
    lhi_give_text(&from->id, &to->id);
    lhi_give_text(&from->title, &to->title);
    lhi_give_text(&from->instruction, &to->instruction);
    lhi_give_text(&from->category, &to->category);
    to->priority = from->priority;
    lhi_give_optional(&from->agent, &to->agent);
    LHI_GIVE_LIST(&from->criteria, &to->criteria, give_criterion);
    LHI_GIVE_LIST(&from->checks, &to->checks, give_check);
    lhi_give_texts(&from->depends_on, &to->depends_on);
    to->on_failure = from->on_failure;
}

static bool end_call(bool ok, lh_error *error, plan_error *err) {
    ok = lhi_settle(ok, error);
    if (!ok) {
        LHI_GIVE_ERROR(EXPORTS_LONGHAUL_PLUGIN_PLANNER_PLAN_ERROR, error, err,
                       LHI_GIVE_KIND(LH_BLOCKED, EXPORTS_LONGHAUL_PLUGIN_PLANNER_PLAN_ERROR, UNCLEAR, unclear, error, err));
    }
    lhi_finish();
    return ok;
}

static void give_plan(const lh_plan *from, lh_plan *to) {
    LHI_GIVE_LIST(&from->steps, &to->steps, give_step);
    lhi_give_text(&from->notes, &to->notes);
}

bool exports_longhaul_plugin_planner_plan(lh_goal *goal, lh_plan *ret, plan_error *err) {
    lh_error error = {0};
    lh_plan plan = {0};
    memset(ret, 0, sizeof *ret);
    bool ok = lh_planner_plan(goal, &plan, &error);
    if (ok) give_plan(&plan, ret);
    ok = end_call(ok, &error, err);
    exports_longhaul_plugin_planner_goal_free(goal);
    return ok;
}

bool exports_longhaul_plugin_planner_replan(lh_goal *goal, lh_plan *old, lh_plan_step_result_list *results, lh_plan *ret,
                                            plan_error *err) {
    lh_error error = {0};
    lh_plan plan = {0};
    memset(ret, 0, sizeof *ret);
    bool ok = lh_planner_replan(goal, old, results, &plan, &error);
    if (ok) give_plan(&plan, ret);
    ok = end_call(ok, &error, err);
    exports_longhaul_plugin_planner_goal_free(goal);
    exports_longhaul_plugin_planner_work_plan_free(old);
    exports_longhaul_plugin_planner_list_plan_step_result_free(results);
    return ok;
}

bool exports_longhaul_plugin_planner_synthesize(lh_goal *goal, lh_plan_step_result_list *results, lh_synthesis *ret,
                                                plan_error *err) {
    lh_error error = {0};
    lh_synthesis synthesis = {0};
    memset(ret, 0, sizeof *ret);
    bool ok = lh_planner_synthesize(goal, results, &synthesis, &error);
    if (ok) {
        lhi_give_text(&synthesis.answer, &ret->answer);
        ret->confidence = synthesis.confidence;
        lhi_give_texts(&synthesis.conflicts, &ret->conflicts);
        lhi_give_texts(&synthesis.unknowns, &ret->unknowns);
    }
    ok = end_call(ok, &error, err);
    exports_longhaul_plugin_planner_goal_free(goal);
    exports_longhaul_plugin_planner_list_plan_step_result_free(results);
    return ok;
}

#endif
