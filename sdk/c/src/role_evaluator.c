/* The export of an evaluator around `lh_evaluator_judge`. */

#include "inside.h"

#if defined(LH_WORLD_EVALUATOR)

static void give_judgement(const lh_judgement *from, lh_judgement *to) {
    lhi_give_text(&from->criterion, &to->criterion);
    to->mark = from->mark;
    lhi_give_text(&from->reason, &to->reason);
}

static void give_issue(const lh_issue *from, lh_issue *to) {
    lhi_give_optional(&from->criterion, &to->criterion);
    lhi_give_text(&from->text, &to->text);
}

bool exports_longhaul_plugin_evaluator_judge(lh_subject *subject, lh_rubric *rubric, lh_verdict *ret,
                                             exports_longhaul_plugin_evaluator_judge_error_t *err) {
    lh_error error = {0};
    lh_verdict verdict = {0};
    memset(ret, 0, sizeof *ret);
    bool ok = lh_evaluator_judge(subject, rubric, &verdict, &error);
    if (ok) {
        LHI_GIVE_LIST(&verdict.judgements, &ret->judgements, give_judgement);
        LHI_GIVE_LIST(&verdict.issues, &ret->issues, give_issue);
    }
    ok = lhi_settle(ok, &error);
    if (!ok) LHI_GIVE_ERROR(EXPORTS_LONGHAUL_PLUGIN_EVALUATOR_JUDGE_ERROR, &error, err, );
    lhi_finish();
    exports_longhaul_plugin_evaluator_subject_free(subject);
    exports_longhaul_plugin_evaluator_rubric_free(rubric);
    return ok;
}

#endif
