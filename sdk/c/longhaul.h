/* The SDK of a Longhaul plugin in C: one header over the generated bindings of its world.
 *
 * The generated bindings on the include path say which world this is; the header then declares what a plugin of
 * that world writes (see "The roles" at the end) and what it can call. `longhaul plugin build` generates them and
 * puts them there; for editors, a new project has their header in `bindings/WORLD` beside this one.
 *
 * Memory, in three sentences. Everything that a function here gives lives until the export call of the plugin
 * returns, and nobody frees it; what the plugin returns is copied out, so it may point anywhere: into
 * arguments, literals, or the middle of another text. Long loops can give memory back with `lh_mark` and
 * `lh_release`. When memory runs out, `lh_alloc` gives NULL, texts come out empty, and the call ends with the
 * error `failed`, whatever the plugin says.
 *
 * Texts are UTF-8 with a length and no NUL at the end. What goes to the host is made valid UTF-8 on the way: a
 * broken byte becomes U+FFFD, since the host would end the instance for it.
 *
 * Nothing here recurses, keeps anything between export calls, or needs WASI. */

#ifndef LONGHAUL_H
#define LONGHAUL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if __has_include("tool_plugin.h")
#include "tool_plugin.h"
#define LH_WORLD_TOOL 1
#define LH_BINDING(name) tool_plugin_##name##_t
#elif __has_include("agent_plugin.h")
#include "agent_plugin.h"
#define LH_WORLD_AGENT 1
#define LH_BINDING(name) agent_plugin_##name##_t
#elif __has_include("planner_plugin.h")
#include "planner_plugin.h"
#define LH_WORLD_PLANNER 1
#define LH_BINDING(name) planner_plugin_##name##_t
#elif __has_include("evaluator_plugin.h")
#include "evaluator_plugin.h"
#define LH_WORLD_EVALUATOR 1
#define LH_BINDING(name) evaluator_plugin_##name##_t
#elif __has_include("memory_plugin.h")
#include "memory_plugin.h"
#define LH_WORLD_MEMORY 1
#define LH_BINDING(name) memory_plugin_##name##_t
#else
#error "no world: put the generated bindings of one on the include path, such as -I bindings/tool-plugin"
#endif

/* ---- Texts ---- */

typedef LH_BINDING(string) lh_str; /* { uint8_t *ptr; size_t len; } */
typedef LH_BINDING(option_string) lh_optional_str; /* { bool is_some; lh_str val; } */
typedef LH_BINDING(list_string) lh_str_list; /* { lh_str *ptr; size_t len; } */

/* The text of a string literal. */
#define lh_lit(literal) ((lh_str){(uint8_t *)("" literal ""), sizeof("" literal "") - 1})
/* The two arguments of `%.*s`. */
#define LH_ARG(text) (int)(text).len, (const char *)(text).ptr

#if defined(__clang__) || defined(__GNUC__)
#define LH_PRINTF(words, first) __attribute__((format(printf, words, first)))
#else
#define LH_PRINTF(words, first)
#endif

/* Of printf: %s %.*s %c %d %i %u %x with l, ll or z, and %%. No widths, no floating point. */
lh_str lh_format(const char *format, ...) LH_PRINTF(1, 2);
lh_str lh_from(const char *text);
bool lh_eq(lh_str a, lh_str b);
bool lh_is(lh_str text, const char *wanted);
/* Below, at or above 0, by bytes, which is the order of code points. */
int lh_compare(lh_str a, lh_str b);
bool lh_contains(lh_str text, lh_str part);
bool lh_starts(lh_str text, lh_str start);
/* From byte `from` up to `to`, both brought within the text. */
lh_str lh_slice(lh_str text, size_t from, size_t to);
lh_str lh_trim(lh_str text);
/* Takes off everything before `at`, and `at`; false when nothing is left, as in `while (lh_split(&rest, '\n', &line))`. */
bool lh_split(lh_str *rest, char at, lh_str *part);
/* Takes the next word off, between white space; false when there is none. */
bool lh_word(lh_str *rest, lh_str *word);
/* Takes the next code point off; false at the end. A broken byte is U+FFFD. */
bool lh_char(lh_str *rest, uint32_t *code);
/* Code points. */
size_t lh_chars(lh_str text);
/* The first `chars_max` characters, as they are. */
lh_str lh_first_chars(lh_str text, size_t chars_max);
/* The first `chars_max` characters with a note of what is missing. */
lh_str lh_cut(lh_str text, size_t chars_max);
/* In lower case, one code point for one. */
lh_str lh_lower(lh_str text);
/* The text itself when it is UTF-8, else a mended copy. */
lh_str lh_utf8(lh_str text);

/* ---- Memory ---- */

/* Zeroed room for `count` things of `size` bytes; NULL when there is none, or for none. */
void *lh_alloc(size_t count, size_t size);
typedef struct lh_node *lh_mark_t;
lh_mark_t lh_mark(void);
/* Frees what was given since the mark. */
void lh_release(lh_mark_t mark);
/* Has `memory`, which a generated function gave, freed with the rest. Gives it back. */
void *lh_adopt(void *memory);

/* ---- Errors ---- */

typedef enum {
    LH_FAILED,       /* anything else */
    LH_DENIED,       /* not granted: `text` is the reason, `fix` what would allow it */
    LH_OVER_LIMIT,   /* `text` is the limit's name, `used` and `max` its numbers */
    LH_UNAVAILABLE,  /* a service is not there now: `text`, and perhaps `retry_after_ms` */
    LH_INVALID,      /* what was asked cannot be asked like this */
    LH_BLOCKED,      /* somebody must answer a question first */
    LH_IMPOSSIBLE,   /* the task cannot be done as written */
    LH_UNKNOWN_FUNCTION,
    LH_TIMED_OUT,    /* `used` is the milliseconds */
    LH_OUTCOME_UNKNOWN /* whether the call had its effect cannot be told: `text` says what broke */
} lh_error_kind;

typedef struct {
    lh_error_kind kind;
    lh_str text;
    lh_str fix;
    double used, max;
    bool has_retry;
    uint32_t retry_after_ms;
} lh_error;

/* Functions that can fail give false and fill the error. These fill one and give false, so that
 * `return lh_fail(err, LH_INVALID, "...")` ends a function. A kind that the role has no place for is `failed`. */
bool lh_fail(lh_error *err, lh_error_kind kind, const char *format, ...) LH_PRINTF(3, 4);
bool lh_fail_limit(lh_error *err, const char *name, double used, double max);
/* In one line, for a log or a model. */
lh_str lh_error_text(const lh_error *err);

/* ---- Reading JSON ---- */

typedef enum {
    LH_MISSING, LH_NULL, LH_BOOL, LH_NUMBER, LH_TEXT, LH_LIST, LH_OBJECT,
    LH_WHOLE, LH_ANY /* these two only of parameters */
} lh_kind;

/* Deepest nesting that is read: that of the host's own reader. */
#define LH_DEPTH_MAX 128

/* A value in a text that was read. All functions take all values: of a wrong kind the answer is empty, 0 or false,
 * and what is not there has the kind LH_MISSING. */
typedef struct {
    const struct lh_doc *doc;
    uint32_t at, end;
} lh_value;

/* Reads the whole text; an empty one is `{}`, so that settings that nobody wrote take their defaults. The error is
 * LH_INVALID with `what`, the line and the column. */
bool lh_json_read(const char *what, lh_str json, lh_value *value, lh_error *err);
/* The first object in a text that has the field `field`, whatever stands around it. */
bool lh_json_find(lh_str text, const char *field, lh_value *object);

lh_kind lh_kind_of(lh_value value);
lh_value lh_get(lh_value object, const char *name);
size_t lh_count(lh_value list_or_object);
/* `for (lh_value item = lh_first(list); lh_there(item); item = lh_next(item))`, of an object its values. */
lh_value lh_first(lh_value list_or_object);
lh_value lh_next(lh_value value);
bool lh_there(lh_value value);
/* The name of a value of an object. */
lh_str lh_name_of(lh_value value);
lh_str lh_text_of(lh_value value);
double lh_number_of(lh_value value);
bool lh_bool_of(lh_value value);
/* The value as JSON, as it was written. */
lh_str lh_json_of(lh_value value);
/* JSON with its needless escapes read, so that a text in it is found however it was written. */
lh_str lh_json_plain(lh_str json);

/* ---- Writing ---- */

/* A text that grows; `lh_out out = {0}` is an empty one. */
typedef struct {
    uint8_t *ptr;
    size_t len, room;
    uint32_t depth;
    uint8_t closers[LH_DEPTH_MAX];
    bool failed;    /* out of memory, or nested too deep: the text is then empty */
    bool truncated; /* an answer of a tool that was cut */
} lh_out;

lh_str lh_out_text(const lh_out *out);
void lh_add(lh_out *out, lh_str text);
void lh_addf(lh_out *out, const char *format, ...) LH_PRINTF(2, 3);

/* JSON; commas are put where they belong. */
void lh_begin_object(lh_out *out);
void lh_begin_list(lh_out *out);
void lh_end(lh_out *out);
void lh_key(lh_out *out, const char *name);
void lh_key_text(lh_out *out, lh_str name);
void lh_put_text(lh_out *out, lh_str text);
void lh_put_whole(lh_out *out, int64_t number);
/* Infinities and NaN, which JSON has not, become null. */
void lh_put_number(lh_out *out, double number);
void lh_put_bool(lh_out *out, bool value);
void lh_put_null(lh_out *out);
/* JSON that somebody has checked. */
void lh_put_json(lh_out *out, lh_str json);

/* ---- What every world can call ---- */

typedef enum { LH_TRACE, LH_DEBUG, LH_INFO, LH_WARN, LH_ERROR } lh_level;
void lh_log(lh_level level, const char *format, ...) LH_PRINTF(2, 3);
/* Milliseconds since 1970-01-01 UTC. */
double lh_now_ms(void);

typedef longhaul_plugin_types_criterion_t lh_criterion;
typedef longhaul_plugin_types_issue_t lh_issue;
typedef longhaul_plugin_types_outcome_t lh_outcome;

#if !defined(LH_WORLD_EVALUATOR)
bool lh_sleep(uint32_t duration_ms, lh_error *err);
#endif

/* ---- The key-value space of a tool or a memory backend ---- */

#if defined(LH_WORLD_TOOL) || defined(LH_WORLD_MEMORY)
/* A key has at most 1 024 bytes and a value 4 MiB. `found` says whether there is one. */
bool lh_kv_get(lh_str key, lh_str *value, bool *found, lh_error *err);
bool lh_kv_set(lh_str key, lh_str value, lh_error *err);
bool lh_kv_delete(lh_str key, lh_error *err);
bool lh_kv_exists(lh_str key, bool *exists, lh_error *err);
/* All keys that start with `prefix`, page after page, in order. */
bool lh_kv_keys(lh_str prefix, lh_str_list *keys, lh_error *err);
#endif

/* ---- Models ---- */

#if defined(LH_WORLD_AGENT) || defined(LH_WORLD_PLANNER) || defined(LH_WORLD_EVALUATOR)
typedef longhaul_plugin_conversation_own_conversation_t lh_chat;
/* `lh_ask ask = {0}` is the operator's model and limits, and a reply as text. */
typedef longhaul_plugin_conversation_options_t lh_ask;
typedef longhaul_plugin_conversation_reply_t lh_reply;

lh_chat lh_chat_open(lh_str system);
void lh_chat_close(lh_chat chat);
/* Adds a text of the user. A pinned one survives compaction and reset. */
bool lh_chat_say(lh_chat chat, lh_str text, bool pinned, lh_error *err);
/* Answers a tool that the model asked for through its provider. */
bool lh_chat_answer(lh_chat chat, lh_str id, lh_str output_json, bool failed, lh_error *err);
bool lh_chat_ask(lh_chat chat, const lh_ask *ask, lh_reply *reply, lh_error *err);
/* The format of an `lh_ask`: JSON under this schema. */
void lh_ask_schema(lh_ask *ask, lh_str schema);
/* Says `prompt` and reads the reply, which the host holds to `schema`. */
bool lh_chat_json(lh_chat chat, lh_str prompt, lh_str schema, lh_value *reply, lh_error *err);
/* The fill of the context, and the cost of the conversation so far. */
typedef longhaul_plugin_conversation_context_usage_t lh_chat_context;
lh_chat_context lh_chat_usage(lh_chat chat);
/* Forgets everything but the system prompt, what is pinned, and this summary. */
bool lh_chat_reset(lh_chat chat, lh_str summary, lh_error *err);
#endif

/* ---- The pinned checks of the work ---- */

#if defined(LH_WORLD_AGENT) || defined(LH_WORLD_EVALUATOR)
typedef longhaul_plugin_checks_list_check_info_t lh_check_list;
typedef longhaul_plugin_checks_check_report_t lh_check_report;
lh_check_list lh_checks(void);
bool lh_check_run(lh_str name, lh_check_report *report, lh_error *err);
#endif

/* ---- What was learned: memory, and decisions ---- */

#if defined(LH_WORLD_AGENT) || defined(LH_WORLD_PLANNER)
/* Working memory is that of this run, episodic memory that of the project. */
typedef enum { LH_WORKING, LH_EPISODIC } lh_tier;
typedef longhaul_plugin_recall_remembered_t lh_remembered;
typedef longhaul_plugin_recall_list_remembered_t lh_remembered_list;

/* Keeps one JSON value under a key, in the place of the one that was there. A key has at most 512 bytes and a value
 * 64 KiB. */
bool lh_recall_remember(lh_tier tier, lh_str key, lh_str json, lh_error *err);
/* `found` says whether there is one. */
bool lh_recall_fetch(lh_tier tier, lh_str key, lh_str *json, bool *found, lh_error *err);
/* At most `limit` things of both tiers that have to do with `query`, the best first. */
bool lh_recall_search(lh_str query, uint32_t limit, lh_remembered_list *found, lh_error *err);

typedef longhaul_plugin_decisions_decision_t lh_decision;
/* { lh_str id; double at_ms; lh_decision decision; } */
typedef longhaul_plugin_decisions_found_decision_t lh_found_decision;
typedef longhaul_plugin_decisions_list_found_decision_t lh_found_decision_list;
/* What came of a decision: its `outcome`. */
enum { LH_DECISION_OPEN, LH_DECISION_SUCCESS, LH_DECISION_PARTIAL, LH_DECISION_FAILURE, LH_DECISION_REVERTED };

/* Keeps a decision and gives its id. */
bool lh_decisions_record(const lh_decision *decision, lh_str *id, lh_error *err);
/* At most `limit` earlier decisions that have to do with `query`, the best first. */
bool lh_decisions_find(lh_str query, uint32_t limit, lh_found_decision_list *found, lh_error *err);
#endif

/* ---- The roles: what a plugin of each world writes ---- */

#if defined(LH_WORLD_TOOL)

/* One parameter of a function; a list of them ends with `{0}`. */
typedef struct {
    const char *name;
    const char *about;   /* for the model */
    lh_kind kind;        /* LH_TEXT, LH_WHOLE, LH_NUMBER, LH_BOOL, LH_LIST, LH_OBJECT or LH_ANY */
    bool optional;
    int32_t min, max;    /* of a number, or of a text in characters; both 0: any; `max` below `min`: no upper bound */
} lh_param;

typedef struct {
    lh_value arguments;   /* they satisfy the parameters */
    lh_str function;
    /* The same for every attempt of one call, different for every other. */
    lh_str idempotency_key;
    uint32_t remaining_ms;
    uint32_t attempt;     /* counts from 1 */
    lh_str settings;      /* JSON: what the operator wrote */
} lh_call;

typedef enum {
    LH_READ_ONLY,   /* touches nothing: it may be repeated */
    LH_IDEMPOTENT,  /* the same idempotency key has the effect once: it is sent again */
    LH_VERIFIABLE,  /* `verify` can tell whether it happened: it is asked first */
    LH_ACTS         /* never repeated without a person */
} lh_effect_class;

typedef enum { LH_HAPPENED, LH_DID_NOT_HAPPEN, LH_CANNOT_TELL } lh_verdict_kind;

/* A function of the tool; a list of them ends with `{0}`. Arguments are checked against `params`, from which
 * `describe` also makes the JSON Schema, so that the two cannot disagree. */
typedef struct {
    const char *name;
    const char *about;
    lh_effect_class effect;
    const lh_param *params;
    /* Writes its answer, one JSON value, to `answer`. */
    bool (*run)(const lh_call *call, lh_out *answer, lh_error *err);
    /* Only of a verifiable one: notes, before the call, what `verify` will need. */
    bool (*prepare)(const lh_call *call, lh_out *note, lh_error *err);
    /* Writes what the call would have answered if it happened, or a question for a person if it cannot tell. */
    bool (*verify)(const lh_call *call, lh_value note, lh_verdict_kind *verdict, lh_out *answer, lh_error *err);
} lh_function;

typedef struct {
    const char *id;
    const char *about;
    const lh_function *functions;
} lh_tool;

/* The plugin defines this one. */
extern const lh_tool lh_plugin;

#elif defined(LH_WORLD_AGENT)

typedef longhaul_plugin_types_task_t lh_task;
typedef longhaul_plugin_tools_list_tool_info_t lh_tool_list;
/* { lh_str tool, function, arguments; } */
typedef longhaul_plugin_tools_tool_call_t lh_tool_request;
/* { lh_str agent; lh_task task; } */
typedef longhaul_plugin_delegate_assignment_t lh_assignment;
/* { uint32_t save_number; lh_str state, summary; } */
typedef longhaul_plugin_artifact_saved_artifact_t lh_saved_artifact;
/* { lh_str kind, message; optional uint32_t line, column; lh_str traceback; } */
typedef longhaul_plugin_graph_graph_failure_t lh_graph_failure;
/* { lh_str id, source; uint8_t state; lh_str_list reads, writes, needs, unstorable; lh_str stdout_, stderr_;
 *   lh_optional_str value; optional lh_graph_failure failure; uint32_t duration_ms; } */
typedef longhaul_plugin_graph_graph_step_t lh_graph_step;
typedef longhaul_plugin_graph_list_graph_step_t lh_graph_step_list;
/* { lh_str_list stale; optional lh_graph_failure failure; } */
typedef longhaul_plugin_graph_graph_changes_t lh_graph_changes;
/* { lh_str_list ran, reused, failed, blocked; uint32_t untouched; lh_str_list warnings; } */
typedef longhaul_plugin_graph_graph_replay_t lh_graph_replay;
/* { lh_str step; lh_graph_failure failure; list of { lh_str name, text; lh_optional_str producer; } values;
 *   lh_str cause, reason; } */
typedef longhaul_plugin_graph_graph_diagnosis_t lh_graph_diagnosis;
/* { lh_str step, source, reason; uint32_t tries; lh_graph_replay replay; } */
typedef longhaul_plugin_graph_graph_patch_t lh_graph_kept;
/* The states of a step. */
enum { LH_STEP_FRESH, LH_STEP_STALE, LH_STEP_BLOCKED, LH_STEP_FAILED, LH_STEP_BROKEN, LH_STEP_UNKNOWN };
typedef enum { LH_GRAPH_JSON, LH_GRAPH_DOT } lh_graph_format;

/* The plugin defines this one. */
bool lh_agent_run(const lh_task *task, lh_outcome *outcome, lh_error *err);

/* The tools that were granted. */
lh_tool_list lh_tools(void);
bool lh_tool_call(lh_str tool, lh_str function, lh_str arguments, lh_str *output, bool *truncated, lh_error *err);

/* One answer of several: what the tool gave, or its error. */
typedef struct {
    bool ok;
    lh_str output;
    bool truncated;
    lh_error error;
} lh_tool_answer;
/* Calls them beside each other. `answers` has room for `count` and is in the order of the calls; when this fails,
 * there are none. */
bool lh_tool_call_many(const lh_tool_request *calls, size_t count, lh_tool_answer *answers, lh_error *err);

/* Hands a task to a sub-agent, which has a context of its own, and waits for its outcome. Of the task only the
 * instruction is needed. An agent that is not there is LH_INVALID, one that needs a person LH_BLOCKED. */
bool lh_delegate_run(lh_str agent, const lh_task *task, lh_outcome *outcome, lh_error *err);
typedef struct {
    bool ok;
    lh_outcome outcome;
    lh_error error;
} lh_delegated;
/* Up to 64 beside each other, as `lh_tool_call_many`. */
bool lh_delegate_run_many(const lh_assignment *assignments, size_t count, lh_delegated *answers, lh_error *err);

/* Notes an action, what came of it, and the files that it touched, for whoever works on the project next. */
bool lh_progress_add(lh_str action, lh_str outcome, lh_str_list files, lh_error *err);

/* The artifact of the invocation before; `found` is false on the first one. */
bool lh_artifact_load(lh_saved_artifact *saved, bool *found, lh_error *err);
/* Leaves `state_json`, one JSON value, and a summary in words for the next invocation. */
bool lh_artifact_save(lh_str state_json, lh_str summary, lh_error *err);

/* Code in steps, in Python: change one, and only what it touches runs again. A graph belongs to this invocation, by
 * its name, and is there once a step was added. A step that is not there is LH_INVALID. */

/* Adds a step behind the others. A source that cannot be read is kept, and `changes` says why. */
bool lh_graph_add(lh_str graph, lh_str step, lh_str source, lh_graph_changes *changes, lh_error *err);
bool lh_graph_change(lh_str graph, lh_str step, lh_str source, lh_graph_changes *changes, lh_error *err);
bool lh_graph_remove(lh_str graph, lh_str step, lh_graph_changes *changes, lh_error *err);
/* Runs what is stale; with `keep_going` also what needs a step that failed. That a step fails is no error. */
bool lh_graph_run(lh_str graph, bool keep_going, lh_graph_replay *replay, lh_error *err);
/* Runs a step again, and what its new values touch. */
bool lh_graph_replay_step(lh_str graph, lh_str step, lh_graph_replay *replay, lh_error *err);
/* The steps that would run, in their order. */
bool lh_graph_stale(lh_str graph, lh_str_list *steps, lh_error *err);
bool lh_graph_show(lh_str graph, lh_graph_step_list *steps, lh_error *err);
/* The cause of a step's failure; where `step` is NULL, of the first that failed. LH_INVALID when none did. */
bool lh_graph_diagnose(lh_str graph, const lh_str *step, lh_graph_diagnosis *found, lh_error *err);
/* Finds a source with which a failure is gone, and keeps it. LH_FAILED when there is none. */
bool lh_graph_patch(lh_str graph, const lh_str *step, lh_graph_kept *kept, lh_error *err);
bool lh_graph_export(lh_str graph, lh_graph_format format, lh_str *text, lh_error *err);

/* Reason, act, observe: lets the model call the tools that were granted until it finishes. An error of a tool goes
 * back to the model; errors of the model's side end the loop; out of steps is the limit `steps_max`. */
typedef struct {
    lh_str prompt;                 /* the role in the system prompt */
    uint32_t steps_max;            /* replies of the model; 0: 10 */
    uint32_t unreadable_max;       /* replies in a row that cannot be read; 0: 2 */
    uint32_t observation_chars_max; /* longest observation; 0: 4 000 */
    lh_ask ask;                    /* the format in it is the loop's own */
} lh_react_options;
bool lh_react(const lh_task *task, const lh_react_options *options, lh_outcome *outcome, lh_error *err);
/* The task with all that the harness said about it, as a text for a model. */
lh_str lh_task_text(const lh_task *task);

#elif defined(LH_WORLD_PLANNER)

typedef exports_longhaul_plugin_planner_goal_t lh_goal;
typedef exports_longhaul_plugin_planner_plan_step_t lh_plan_step;
typedef exports_longhaul_plugin_planner_work_plan_t lh_plan;
typedef exports_longhaul_plugin_planner_list_plan_step_result_t lh_plan_step_result_list;
typedef exports_longhaul_plugin_planner_plan_step_result_t lh_plan_step_result;
typedef exports_longhaul_plugin_planner_synthesis_t lh_synthesis;
/* Tags of `on_failure`, and of the body of a check: { lh_str language, text; } with the language `python`, or the name
 * of a check of longhaul.toml. */
enum { LH_RETRY, LH_SKIP, LH_REPLAN, LH_ABORT };
enum { LH_CHECK_SOURCE, LH_CHECK_NATIVE };

/* The plugin defines these three. LH_BLOCKED is `unclear`, a question for a person. */
bool lh_planner_plan(const lh_goal *goal, lh_plan *plan, lh_error *err);
bool lh_planner_replan(const lh_goal *goal, const lh_plan *old, const lh_plan_step_result_list *results, lh_plan *plan,
                       lh_error *err);
bool lh_planner_synthesize(const lh_goal *goal, const lh_plan_step_result_list *results, lh_synthesis *synthesis,
                           lh_error *err);

#elif defined(LH_WORLD_EVALUATOR)

typedef exports_longhaul_plugin_evaluator_subject_t lh_subject;
typedef exports_longhaul_plugin_evaluator_rubric_t lh_rubric;
typedef exports_longhaul_plugin_evaluator_judgement_t lh_judgement;
typedef exports_longhaul_plugin_evaluator_verdict_t lh_verdict;
enum { LH_PASS, LH_FAIL, LH_UNKNOWN };

/* The plugin defines this one. */
bool lh_evaluator_judge(const lh_subject *subject, const lh_rubric *rubric, lh_verdict *verdict, lh_error *err);

#elif defined(LH_WORLD_MEMORY)

typedef exports_longhaul_plugin_memory_entry_t lh_entry;
typedef exports_longhaul_plugin_memory_hit_t lh_hit;
typedef exports_longhaul_plugin_memory_list_hit_t lh_hit_list;
typedef exports_longhaul_plugin_memory_page_t lh_page;

/* JSON: what the operator wrote for this backend. */
lh_str lh_memory_settings(void);

/* The plugin defines these five. `found` and `deleted` say whether there was something. */
bool lh_memory_put(lh_str space, const lh_entry *entry, lh_error *err);
bool lh_memory_get(lh_str space, lh_str key, lh_entry *entry, bool *found, lh_error *err);
bool lh_memory_search(lh_str space, lh_str query, uint32_t limit, lh_hit_list *hits, lh_error *err);
bool lh_memory_delete(lh_str space, lh_str key, bool *deleted, lh_error *err);
bool lh_memory_list(lh_str space, lh_str prefix, const lh_str *cursor, uint32_t limit, lh_page *page, lh_error *err);

#endif

#endif
