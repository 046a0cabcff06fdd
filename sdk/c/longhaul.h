/* The SDK of a Longhaul plugin in C: one header over the generated bindings of its world.
 *
 * The generated bindings on the include path decide the world. The header then declares the functions that a plugin
 * of that world defines (see "The roles" at the end) and the functions that it can call. `longhaul plugin build`
 * generates the bindings; for editors, a new project has their header in `bindings/WORLD` beside this one.
 *
 * Memory. The results of all functions here live until the export call of the plugin returns, and the plugin frees
 * none of them. Results of the plugin are copied, so they may point anywhere: into arguments, literals, or the
 * middle of another text. Long loops can free memory with `lh_mark` and `lh_release`. When memory runs out,
 * `lh_alloc` returns NULL, texts are empty, and the call ends with the error `failed`, whatever the plugin returns.
 *
 * Texts are UTF-8 with a length and without a NUL at the end. Texts to the host are made valid UTF-8: a broken byte
 * becomes U+FFFD, because the host would end the instance for it.
 *
 * Functions that can fail return true on success. Otherwise they return false and fill `err`, and their other results
 * are not to be read.
 *
 * This header never recurses, keeps no state between export calls, and needs no WASI. */

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

/* A text: { uint8_t *ptr; size_t len; }, `len` in bytes. */
typedef LH_BINDING(string) lh_str;
/* An optional text: { bool is_some; lh_str val; }. */
typedef LH_BINDING(option_string) lh_optional_str;
/* A list of texts: { lh_str *ptr; size_t len; }. */
typedef LH_BINDING(list_string) lh_str_list;

/* The text of a string literal. */
#define lh_lit(literal) ((lh_str){(uint8_t *)("" literal ""), sizeof("" literal "") - 1})
/* The two arguments of `%.*s` for a text. */
#define LH_ARG(text) (int)(text).len, (const char *)(text).ptr

#if defined(__clang__) || defined(__GNUC__)
#define LH_PRINTF(words, first) __attribute__((format(printf, words, first)))
#else
#define LH_PRINTF(words, first)
#endif

/* Formats a text as printf does, with %s %.*s %c %d %i %u %x with l, ll or z, and %%. It knows no widths and no
 * floating point. */
lh_str lh_format(const char *format, ...) LH_PRINTF(1, 2);
/* Returns the text of a C string, without a copy. */
lh_str lh_from(const char *text);
/* Reports whether two texts have the same bytes. */
bool lh_eq(lh_str a, lh_str b);
/* Reports whether a text is a C string. */
bool lh_is(lh_str text, const char *wanted);
/* Compares two texts by bytes, which is the order of code points: below, at or above 0. */
int lh_compare(lh_str a, lh_str b);
/* Reports whether `part` is in `text`. */
bool lh_contains(lh_str text, lh_str part);
/* Reports whether `text` starts with `start`. */
bool lh_starts(lh_str text, lh_str start);
/* Returns the bytes from `from` up to `to`, without `to`; both are clamped to the text. */
lh_str lh_slice(lh_str text, size_t from, size_t to);
/* Returns the text without white space at both ends. */
lh_str lh_trim(lh_str text);
/* Removes the part before the first `at`, and `at` itself, from `rest`. False: `rest` was empty, as in `while
 * (lh_split(&rest, '\n', &line))`. */
bool lh_split(lh_str *rest, char at, lh_str *part);
/* Removes the next word, between white space, from `rest`. False: there is none. */
bool lh_word(lh_str *rest, lh_str *word);
/* Removes the next code point from `rest`. A broken byte is U+FFFD. False: `rest` was empty. */
bool lh_char(lh_str *rest, uint32_t *code);
/* Returns the number of code points. */
size_t lh_chars(lh_str text);
/* Returns the first `chars_max` code points, unchanged. */
lh_str lh_first_chars(lh_str text, size_t chars_max);
/* Returns the first `chars_max` code points, with a note on the missing rest. */
lh_str lh_cut(lh_str text, size_t chars_max);
/* Returns the text in lower case, one code point for one. */
lh_str lh_lower(lh_str text);
/* Returns the text itself if it is valid UTF-8, and a repaired copy otherwise. */
lh_str lh_utf8(lh_str text);

/* ---- Memory ---- */

/* Returns zeroed memory for `count` items of `size` bytes. NULL: there is no memory, or the size is 0. */
void *lh_alloc(size_t count, size_t size);
/* A point in the order of allocations. */
typedef struct lh_node *lh_mark_t;
/* Returns the present point in the order of allocations. */
lh_mark_t lh_mark(void);
/* Frees all memory that was allocated since the mark. */
void lh_release(lh_mark_t mark);
/* Frees `memory`, which a generated function returned, together with all other memory. Returns `memory`. */
void *lh_adopt(void *memory);

/* ---- Errors ---- */

/* The kind of an error. */
typedef enum {
    LH_FAILED,       /* any other failure */
    LH_DENIED,       /* the operator does not allow it: `text` is the reason, `fix` the change that would allow it */
    LH_OVER_LIMIT,   /* a limit was reached: `text` is its name, `used` and `max` are its numbers */
    LH_UNAVAILABLE,  /* a service is not available now: `text`, and `retry_after_ms` where the service said it */
    LH_INVALID,      /* the request is not valid */
    LH_BLOCKED,      /* a person must answer a question first: `text` */
    LH_IMPOSSIBLE,   /* the task cannot be done as written */
    LH_UNKNOWN_FUNCTION, /* there is no such function or tool: `text` starts with the name */
    LH_TIMED_OUT,    /* the host gave the call up after `used` milliseconds */
    LH_OUTCOME_UNKNOWN /* the tool cannot tell whether the call had its effect: `text` says what broke */
} lh_error_kind;

/* An error. */
typedef struct {
    lh_error_kind kind;
    lh_str text;             /* the reason, the name of a limit, or a question: see the kinds */
    lh_str fix;              /* of LH_DENIED alone: the file and the line to add */
    double used, max;        /* of LH_OVER_LIMIT: the amount and the limit, in the unit of its name */
    bool has_retry;          /* of LH_UNAVAILABLE: whether `retry_after_ms` is set */
    uint32_t retry_after_ms; /* the wait that the service asked for, in milliseconds */
} lh_error;

/* Fills an error and returns false, so that `return lh_fail(err, LH_INVALID, "...")` ends a function. A kind that the
 * error type of the role does not have becomes `failed`. */
bool lh_fail(lh_error *err, lh_error_kind kind, const char *format, ...) LH_PRINTF(3, 4);
/* Fills an error of the kind LH_OVER_LIMIT and returns false. */
bool lh_fail_limit(lh_error *err, const char *name, double used, double max);
/* Returns an error as one line, for a log or a model. */
lh_str lh_error_text(const lh_error *err);

/* ---- Reading JSON ---- */

/* The kind of a JSON value. */
typedef enum {
    LH_MISSING, /* there is no such value */
    LH_NULL, LH_BOOL, LH_NUMBER, LH_TEXT, LH_LIST, LH_OBJECT,
    LH_WHOLE, LH_ANY /* of parameters alone: a whole number, and a value of any kind */
} lh_kind;

/* The deepest nesting that is read and written, which is that of the host. */
#define LH_DEPTH_MAX 128

/* A value in a JSON text. Each function takes a value of any kind: for a wrong kind it returns an empty text, 0, false
 * or a value of the kind LH_MISSING. The fields belong to this header. */
typedef struct {
    const struct lh_doc *doc;
    uint32_t at, end;
} lh_value;

/* Reads a JSON text. An empty text reads as `{}`, so that missing settings take their defaults. The error is
 * LH_INVALID with `what`, the line and the column. */
bool lh_json_read(const char *what, lh_str json, lh_value *value, lh_error *err);
/* Finds the first JSON object in `text` that has a field `field`, whatever text surrounds it. False: there is none. */
bool lh_json_find(lh_str text, const char *field, lh_value *object);

/* Returns the kind of a value. */
lh_kind lh_kind_of(lh_value value);
/* Returns the field of an object. */
lh_value lh_get(lh_value object, const char *name);
/* Returns the number of items of a list, or of fields of an object. */
size_t lh_count(lh_value list_or_object);
/* Returns the first item of a list, or the value of the first field of an object, for `for (lh_value item =
 * lh_first(list); lh_there(item); item = lh_next(item))`. */
lh_value lh_first(lh_value list_or_object);
/* Returns the value after `value` in its list or object. */
lh_value lh_next(lh_value value);
/* Reports whether a value exists: its kind is not LH_MISSING. */
bool lh_there(lh_value value);
/* Returns the name of the field whose value this is. */
lh_str lh_name_of(lh_value value);
/* Returns the text of a value of the kind LH_TEXT. */
lh_str lh_text_of(lh_value value);
/* Returns the number of a value of the kind LH_NUMBER. */
double lh_number_of(lh_value value);
/* Returns the truth of a value of the kind LH_BOOL. */
bool lh_bool_of(lh_value value);
/* Returns the value as JSON text, as it was written. */
lh_str lh_json_of(lh_value value);
/* Returns JSON without needless escapes, so that a text in it can be found however it was written. */
lh_str lh_json_plain(lh_str json);

/* ---- Writing ---- */

/* A text that grows; `lh_out out = {0}` is an empty one. The other fields belong to this header. */
typedef struct {
    uint8_t *ptr;
    size_t len, room;
    uint32_t depth;
    uint8_t closers[LH_DEPTH_MAX];
    bool failed;    /* memory ran out, or the nesting is too deep: the text is empty then */
    bool truncated; /* a tool sets it where it cut its output at a limit */
} lh_out;

/* Returns the written text. Open objects and lists must be ended before. */
lh_str lh_out_text(const lh_out *out);
/* Adds a text as it is. */
void lh_add(lh_out *out, lh_str text);
/* Adds a text that is formatted as by `lh_format`. */
void lh_addf(lh_out *out, const char *format, ...) LH_PRINTF(2, 3);

/* Begins a JSON object. These functions write the commas and colons of JSON. */
void lh_begin_object(lh_out *out);
/* Begins a JSON list. */
void lh_begin_list(lh_out *out);
/* Ends the innermost object or list. */
void lh_end(lh_out *out);
/* Writes the name of a field; the next call writes its value. */
void lh_key(lh_out *out, const char *name);
/* As `lh_key`, for a name of any bytes. */
void lh_key_text(lh_out *out, lh_str name);
/* Writes a JSON text, escaped. */
void lh_put_text(lh_out *out, lh_str text);
/* Writes a whole number. */
void lh_put_whole(lh_out *out, int64_t number);
/* Writes a number. Infinities and NaN, which JSON does not have, become null. */
void lh_put_number(lh_out *out, double number);
/* Writes true or false. */
void lh_put_bool(lh_out *out, bool value);
/* Writes null. */
void lh_put_null(lh_out *out);
/* Writes a JSON value that is known to be valid; it is not checked. */
void lh_put_json(lh_out *out, lh_str json);

/* ---- Functions of every world ---- */

/* The severity of a line of the log. */
typedef enum { LH_TRACE, LH_DEBUG, LH_INFO, LH_WARN, LH_ERROR } lh_level;
/* Writes a line to the log of the plugin, formatted as by `lh_format`. The host cuts it at 4 096 bytes and drops
 * lines after 1 000, unless the operator sets other limits. */
void lh_log(lh_level level, const char *format, ...) LH_PRINTF(2, 3);
/* Returns the time in milliseconds since 1970-01-01 UTC, with a fraction. In a planner, an agent and an evaluator
 * it is that of the last journal entry, so that a replay reads the same. */
double lh_now_ms(void);

/* A criterion: { lh_str id, text; lh_optional_str check; }. Without `check` the evaluator decides it by reading. */
typedef longhaul_plugin_types_criterion_t lh_criterion;
/* A defect of the work: { lh_optional_str criterion; lh_str text; }. */
typedef longhaul_plugin_types_issue_t lh_issue;
/* The result of an agent: { lh_str output, summary; optional double confidence; lh_str_list unknowns; }. `output` is
 * JSON, and `confidence` is from 0 to 1. */
typedef longhaul_plugin_types_outcome_t lh_outcome;

#if !defined(LH_WORLD_EVALUATOR)
/* Waits for `duration_ms` milliseconds. In a planner and an agent the wait is durable: after a restart of the host
 * only the rest of it is waited. */
bool lh_sleep(uint32_t duration_ms, lh_error *err);
#endif

/* ---- The key-value space of a tool or a memory backend ---- */

#if defined(LH_WORLD_TOOL) || defined(LH_WORLD_MEMORY)
/* Gets the value of a key. `found` is false where the key does not exist. */
bool lh_kv_get(lh_str key, lh_str *value, bool *found, lh_error *err);
/* Sets the value of a key: at most 1 024 bytes of key and 4 MiB of value, otherwise LH_OVER_LIMIT. The change is
 * durable when the call returns. */
bool lh_kv_set(lh_str key, lh_str value, lh_error *err);
/* Deletes a key, which need not exist. */
bool lh_kv_delete(lh_str key, lh_error *err);
/* Reports whether a key exists. */
bool lh_kv_exists(lh_str key, bool *exists, lh_error *err);
/* Lists all keys that start with `prefix`, in the order of their bytes. */
bool lh_kv_keys(lh_str prefix, lh_str_list *keys, lh_error *err);
#endif

/* ---- Models ---- */

#if defined(LH_WORLD_AGENT) || defined(LH_WORLD_PLANNER) || defined(LH_WORLD_EVALUATOR)
/* A conversation with a model. The host holds its context, and cuts it back before it exceeds the window. */
typedef longhaul_plugin_conversation_own_conversation_t lh_chat;
/* The options of a request. `lh_ask ask = {0}` asks the first granted model for a reply as text, of at most 4 096
 * tokens. */
typedef longhaul_plugin_conversation_options_t lh_ask;
/* A reply of the model, with its text, the calls that the model asks for, the reason of its end, and its usage. */
typedef longhaul_plugin_conversation_reply_t lh_reply;

/* Starts a conversation with a system prompt, which may be empty. */
lh_chat lh_chat_open(lh_str system);
/* Drops a conversation. The host keeps its context until the invocation ends. */
void lh_chat_close(lh_chat chat);
/* Adds a text of the user. A pinned text stays when the context is cut back or reset. */
bool lh_chat_say(lh_chat chat, lh_str text, bool pinned, lh_error *err);
/* Adds the result of a call that the model asked for, with the id of that call. `failed`: the call failed. */
bool lh_chat_answer(lh_chat chat, lh_str id, lh_str output_json, bool failed, lh_error *err);
/* Asks the model for a reply, and adds the reply to the context. */
bool lh_chat_ask(lh_chat chat, const lh_ask *ask, lh_reply *reply, lh_error *err);
/* Sets the format of the options to JSON that satisfies a schema. */
void lh_ask_schema(lh_ask *ask, lh_str schema);
/* Adds `prompt` as a text of the user, and reads the reply as JSON in the form of `schema`. LH_INVALID where the
 * reply is not JSON. */
bool lh_chat_json(lh_chat chat, lh_str prompt, lh_str schema, lh_value *reply, lh_error *err);
/* The size of a conversation: its costs so far, an estimate of its tokens, the window of the first granted model, and
 * the number of resets. */
typedef longhaul_plugin_conversation_context_usage_t lh_chat_context;
/* Returns the size of a conversation. */
lh_chat_context lh_chat_usage(lh_chat chat);
/* Removes all messages but the pinned ones, and adds `summary` as a text of the user. */
bool lh_chat_reset(lh_chat chat, lh_str summary, lh_error *err);
#endif

/* ---- The pinned checks of the work ---- */

#if defined(LH_WORLD_AGENT) || defined(LH_WORLD_EVALUATOR)
/* The checks: a list of { lh_str name, description; bool vacuous; }. A vacuous check passed before the work started, so
 * that a pass proves nothing. */
typedef longhaul_plugin_checks_list_check_info_t lh_check_list;
/* The result of a check: its name, whether it passed, the exit code (none: a limit ended it), the output, whether that
 * was cut, the duration in milliseconds, and the level of the sandbox (none: it was `full`). */
typedef longhaul_plugin_checks_check_report_t lh_check_report;
/* Lists the checks. Empty where there is no work tree. */
lh_check_list lh_checks(void);
/* Runs a check on a copy of the work tree. A check that fails is a report. LH_INVALID for another name. */
bool lh_check_run(lh_str name, lh_check_report *report, lh_error *err);
#endif

/* ---- Memory of runs, and decisions ---- */

#if defined(LH_WORLD_AGENT) || defined(LH_WORLD_PLANNER)
/* The memory that a note belongs to: that of this run, or that of the project. */
typedef enum { LH_WORKING, LH_EPISODIC } lh_tier;
/* A note that a search found: { lh_str key, value; uint8_t tier; double score; }. `value` is JSON, and a higher score
 * is better. */
typedef longhaul_plugin_recall_remembered_t lh_remembered;
/* The notes that a search found. */
typedef longhaul_plugin_recall_list_remembered_t lh_remembered_list;

/* Keeps a JSON value under a key, in place of the last one. A key has at most 512 bytes, and a value at most 64
 * KiB. */
bool lh_recall_remember(lh_tier tier, lh_str key, lh_str json, lh_error *err);
/* Gets the value of a key. `found` is false where there is none. */
bool lh_recall_fetch(lh_tier tier, lh_str key, lh_str *json, bool *found, lh_error *err);
/* Finds at most `limit` notes of both tiers that fit the query, the best first. */
bool lh_recall_search(lh_str query, uint32_t limit, lh_remembered_list *found, lh_error *err);

/* A decision: { lh_str context, decision, reasoning; lh_str_list tags; uint8_t outcome; lh_optional_str lesson; }. */
typedef longhaul_plugin_decisions_decision_t lh_decision;
/* A decision of the log: { lh_str id; double at_ms; lh_decision decision; }, with the time in milliseconds since
 * 1970-01-01 UTC. */
typedef longhaul_plugin_decisions_found_decision_t lh_found_decision;
/* The decisions that a search found. */
typedef longhaul_plugin_decisions_list_found_decision_t lh_found_decision_list;
/* The outcome of a decision. */
enum { LH_DECISION_OPEN, LH_DECISION_SUCCESS, LH_DECISION_PARTIAL, LH_DECISION_FAILURE, LH_DECISION_REVERTED };

/* Adds a decision to the log of the project, and returns its id. A decision has at most 64 KiB as JSON. */
bool lh_decisions_record(const lh_decision *decision, lh_str *id, lh_error *err);
/* Finds at most `limit` decisions that fit the query, the best first. */
bool lh_decisions_find(lh_str query, uint32_t limit, lh_found_decision_list *found, lh_error *err);
#endif

/* ---- The roles: the functions that a plugin of each world defines ---- */

#if defined(LH_WORLD_TOOL)

/* One parameter of a function; a list of them ends with `{0}`. */
typedef struct {
    const char *name;
    const char *about;   /* the purpose, for the model */
    lh_kind kind;        /* LH_TEXT, LH_WHOLE, LH_NUMBER, LH_BOOL, LH_LIST, LH_OBJECT or LH_ANY */
    bool optional;       /* whether it may be missing */
    int32_t min, max;    /* bounds of a number, or of a text in characters; both 0: none; `max` < `min`: no upper */
} lh_param;

/* One call of a function. */
typedef struct {
    lh_value arguments;   /* the arguments, which satisfy the parameters */
    lh_str function;      /* the name of the function */
    /* The same for every attempt of one call, and different for every other call. */
    lh_str idempotency_key;
    uint32_t remaining_ms; /* the time that the call may still take, in milliseconds */
    uint32_t attempt;     /* the number of the attempt, from 1 */
    lh_str settings;      /* the settings that the operator wrote for this tool, as JSON; secrets are placeholders */
} lh_call;

/* The effect class of a function: what the host does with a call that was cut off. */
typedef enum {
    LH_READ_ONLY,   /* it changes nothing: the host repeats the call */
    LH_IDEMPOTENT,  /* calls with the same idempotency key have the effect once: the host repeats the call */
    LH_VERIFIABLE,  /* `verify` can tell whether the effect happened: the host asks it first */
    LH_ACTS         /* it changes something outside: the host asks a person */
} lh_effect_class;

/* The finding of `verify` about a call. */
typedef enum { LH_HAPPENED, LH_DID_NOT_HAPPEN, LH_CANNOT_TELL } lh_verdict_kind;

/* A function of the tool; a list of them ends with `{0}`. Arguments are checked against `params`, from which
 * `describe` also makes the JSON Schema, so that the two cannot disagree. */
typedef struct {
    const char *name;
    const char *about;       /* the purpose, for the model */
    lh_effect_class effect;  /* the claim of the tool */
    const lh_param *params;  /* the parameters; NULL: none */
    /* Runs the function: writes its output, one JSON value, to `answer`. */
    bool (*run)(const lh_call *call, lh_out *answer, lh_error *err);
    /* Of a verifiable function alone: writes, before the call, the facts by which `verify` can recognise the effect.
     * Must have no effect. */
    bool (*prepare)(const lh_call *call, lh_out *note, lh_error *err);
    /* Of a verifiable function alone: writes the output that the call would have had where it happened, or a question
     * for a person where it cannot tell. Must have no effect. */
    bool (*verify)(const lh_call *call, lh_value note, lh_verdict_kind *verdict, lh_out *answer, lh_error *err);
} lh_function;

/* A tool. */
typedef struct {
    const char *id;    /* the name for people; the operator may grant the tool by another one */
    const char *about; /* the purpose, for a model */
    const lh_function *functions;
} lh_tool;

/* The tool of this plugin, which the plugin defines. */
extern const lh_tool lh_plugin;

#elif defined(LH_WORLD_AGENT)

/* A piece of work: { lh_str id, instruction, context, settings; lists of criteria and feedback; uint32_t round; }.
 * `context` and `settings` are JSON objects, and `round` counts from 1. */
typedef longhaul_plugin_types_task_t lh_task;
/* The tools that were granted, with their functions. */
typedef longhaul_plugin_tools_list_tool_info_t lh_tool_list;
/* A call of a tool: { lh_str tool, function, arguments; }. `arguments` is a JSON object. */
typedef longhaul_plugin_tools_tool_call_t lh_tool_request;
/* A task for another agent: { lh_str agent; lh_task task; }. */
typedef longhaul_plugin_delegate_assignment_t lh_assignment;
/* A saved artifact: { uint32_t save_number; lh_str state, summary; }. `save_number` counts saves, from 1; `state` is
 * JSON. */
typedef longhaul_plugin_artifact_saved_artifact_t lh_saved_artifact;
/* The failure of a step: { lh_str kind, message; optional uint32_t line, column; lh_str traceback; }. Lines and columns
 * count from 1. */
typedef longhaul_plugin_graph_graph_failure_t lh_graph_failure;
/* A step: { lh_str id, source; uint8_t state; lh_str_list reads, writes, needs, unstorable; lh_str stdout_, stderr_;
 * lh_optional_str value; optional lh_graph_failure failure; uint32_t duration_ms; }. */
typedef longhaul_plugin_graph_graph_step_t lh_graph_step;
/* The steps of a graph. */
typedef longhaul_plugin_graph_list_graph_step_t lh_graph_step_list;
/* The effect of a change: { lh_str_list stale; optional lh_graph_failure failure; }. */
typedef longhaul_plugin_graph_graph_changes_t lh_graph_changes;
/* The effect of a run: { lh_str_list ran, reused, failed, blocked; uint32_t untouched; lh_str_list warnings; }. */
typedef longhaul_plugin_graph_graph_replay_t lh_graph_replay;
/* A diagnosis:
 * { lh_str step; lh_graph_failure failure; list of { lh_str name, text; lh_optional_str producer; } values;
 * lh_str cause, reason; }. */
typedef longhaul_plugin_graph_graph_diagnosis_t lh_graph_diagnosis;
/* A change that repaired a failure: { lh_str step, source, reason; uint32_t tries; lh_graph_replay replay; }. */
typedef longhaul_plugin_graph_graph_patch_t lh_graph_kept;
/* The states of a step. */
enum { LH_STEP_FRESH, LH_STEP_STALE, LH_STEP_BLOCKED, LH_STEP_FAILED, LH_STEP_BROKEN, LH_STEP_UNKNOWN };
/* The format of an export: JSON, or the language of Graphviz. */
typedef enum { LH_GRAPH_JSON, LH_GRAPH_DOT } lh_graph_format;

/* Does a task. The plugin defines this function. It must make the same calls in the same order each time, as it
 * does while all that it depends on comes from the task and from calls. */
bool lh_agent_run(const lh_task *task, lh_outcome *outcome, lh_error *err);

/* Lists the granted tools, and the host's own tool `context` where there is one. */
lh_tool_list lh_tools(void);
/* Calls a function of a tool. `arguments` and `output` are JSON; `truncated`: the output was cut at a limit. */
bool lh_tool_call(lh_str tool, lh_str function, lh_str arguments, lh_str *output, bool *truncated, lh_error *err);

/* The result of one call of several: the output where `ok` is true, and the error otherwise. */
typedef struct {
    bool ok;
    lh_str output;
    bool truncated;
    lh_error error;
} lh_tool_answer;
/* Makes up to 64 calls concurrently. `answers` has room for `count` results, which are in the order of the calls.
 * When the function itself fails, there are no results. */
bool lh_tool_call_many(const lh_tool_request *calls, size_t count, lh_tool_answer *answers, lh_error *err);

/* Runs another agent on a task, and waits for the outcome. Of the task only the instruction is required. LH_INVALID
 * for an agent that does not exist, and LH_BLOCKED for one that needs an answer from a person. */
bool lh_delegate_run(lh_str agent, const lh_task *task, lh_outcome *outcome, lh_error *err);
/* The result of one assignment of several: the outcome where `ok` is true, and the error otherwise. */
typedef struct {
    bool ok;
    lh_outcome outcome;
    lh_error error;
} lh_delegated;
/* Runs up to 64 assignments concurrently; the results are as in `lh_tool_call_many`. */
bool lh_delegate_run_many(const lh_assignment *assignments, size_t count, lh_delegated *answers, lh_error *err);

/* Adds an entry to the progress log of the project: the action, its outcome, and the paths of the files that
 * changed. The host keeps 4 096 bytes of each text and 100 files. */
bool lh_progress_add(lh_str action, lh_str outcome, lh_str_list files, lh_error *err);

/* Loads the artifact that was saved last. `found` is false where nothing was saved yet. */
bool lh_artifact_load(lh_saved_artifact *saved, bool *found, lh_error *err);
/* Saves an artifact in place of the last one: a JSON value of at most 1 MiB, and a summary of at most 64 KiB. */
bool lh_artifact_save(lh_str state_json, lh_str summary, lh_error *err);

/* Graphs of steps of Python code. After a change only the steps that it affects run again. A graph belongs to this
 * invocation, and exists from its first step on. A step that does not exist is LH_INVALID. */

/* Adds a step after the last one. A source that is not valid Python is kept, and reported in `changes`. */
bool lh_graph_add(lh_str graph, lh_str step, lh_str source, lh_graph_changes *changes, lh_error *err);
/* Replaces the source of a step. */
bool lh_graph_change(lh_str graph, lh_str step, lh_str source, lh_graph_changes *changes, lh_error *err);
/* Removes a step. */
bool lh_graph_remove(lh_str graph, lh_str step, lh_graph_changes *changes, lh_error *err);
/* Runs the stale steps. With `keep_going` it also runs those that need a failed step. A failing step is not an
 * error. */
bool lh_graph_run(lh_str graph, bool keep_going, lh_graph_replay *replay, lh_error *err);
/* Runs a step again, and then the steps that its new values affect. */
bool lh_graph_replay_step(lh_str graph, lh_str step, lh_graph_replay *replay, lh_error *err);
/* Lists the stale steps, in the order in which they will run. */
bool lh_graph_stale(lh_str graph, lh_str_list *steps, lh_error *err);
/* Lists the steps, in the order in which they were added. */
bool lh_graph_show(lh_str graph, lh_graph_step_list *steps, lh_error *err);
/* Diagnoses the failure of a step; of the first step that failed where `step` is NULL. LH_INVALID where none did. */
bool lh_graph_diagnose(lh_str graph, const lh_str *step, lh_graph_diagnosis *found, lh_error *err);
/* Repairs the failure of a step by another source; of the first step that failed where `step` is NULL. LH_FAILED
 * where no source repairs it. */
bool lh_graph_patch(lh_str graph, const lh_str *step, lh_graph_kept *kept, lh_error *err);
/* Exports the graph as text. */
bool lh_graph_export(lh_str graph, lh_graph_format format, lh_str *text, lh_error *err);

/* The options of `lh_react`; 0 in a number stands for its default. */
typedef struct {
    lh_str prompt;                 /* the role, for the system prompt */
    uint32_t steps_max;            /* the most replies of the model; default 10 */
    uint32_t unreadable_max;       /* the most replies in a row that cannot be read; default 2 */
    uint32_t observation_chars_max; /* the longest output that the model sees, in characters; default 4 000 */
    lh_ask ask;                    /* the options of the requests; the loop sets the format itself */
} lh_react_options;
/* Runs a loop in which the model calls the granted tools until it finishes. An error of a tool goes back to the
 * model, and an error of the conversation ends the loop. LH_OVER_LIMIT of `steps_max` where the model does not
 * finish. */
bool lh_react(const lh_task *task, const lh_react_options *options, lh_outcome *outcome, lh_error *err);
/* Returns the task with its context, criteria and feedback as a text for a model. */
lh_str lh_task_text(const lh_task *task);

#elif defined(LH_WORLD_PLANNER)

/* A goal: { lh_str text, context, settings; list of criteria; }. `context` and `settings` are JSON objects. */
typedef exports_longhaul_plugin_planner_goal_t lh_goal;
/* A step of a plan: one feature, and one commit. */
typedef exports_longhaul_plugin_planner_plan_step_t lh_plan_step;
/* A plan: { list of lh_plan_step steps; lh_str notes; }. It needs a step. */
typedef exports_longhaul_plugin_planner_work_plan_t lh_plan;
/* The results of the steps of a plan. */
typedef exports_longhaul_plugin_planner_list_plan_step_result_t lh_plan_step_result_list;
/* The result of a step: its id, whether it passed, the last outcome, and the issues. */
typedef exports_longhaul_plugin_planner_plan_step_result_t lh_plan_step_result;
/* The answer to a goal: `answer` is JSON, and `confidence` is from 0 to 1. */
typedef exports_longhaul_plugin_planner_synthesis_t lh_synthesis;
/* The tags of `on_failure`. LH_RETRY has the number of retries, at most 5. */
enum { LH_RETRY, LH_SKIP, LH_REPLAN, LH_ABORT };
/* The tags of the body of a check: a source { lh_str language, text; } of the language `python`, or the name of a check
 * of longhaul.toml. */
enum { LH_CHECK_SOURCE, LH_CHECK_NATIVE };

/* The plugin defines these three functions. The error LH_BLOCKED becomes `unclear`: a question for a person. */

/* Makes a plan for a goal. */
bool lh_planner_plan(const lh_goal *goal, lh_plan *plan, lh_error *err);
/* Makes a plan for what is left of a goal. Steps that passed stay as they are. */
bool lh_planner_replan(const lh_goal *goal, const lh_plan *old, const lh_plan_step_result_list *results, lh_plan *plan,
                       lh_error *err);
/* Makes the answer to a goal from the results of the steps that passed. */
bool lh_planner_synthesize(const lh_goal *goal, const lh_plan_step_result_list *results, lh_synthesis *synthesis,
                           lh_error *err);

#elif defined(LH_WORLD_EVALUATOR)

/* The work to judge: the instruction, the output as JSON, named texts as evidence, and a JSON object of further
 * facts. */
typedef exports_longhaul_plugin_evaluator_subject_t lh_subject;
/* The criteria to judge by, and the settings that the operator wrote, as JSON. */
typedef exports_longhaul_plugin_evaluator_rubric_t lh_rubric;
/* The judgement of one criterion: { lh_str criterion; uint8_t mark; lh_str reason; }. */
typedef exports_longhaul_plugin_evaluator_judgement_t lh_judgement;
/* The result: one judgement for each criterion, and the issues for the next round. */
typedef exports_longhaul_plugin_evaluator_verdict_t lh_verdict;
/* The marks. LH_UNKNOWN counts as not passed. */
enum { LH_PASS, LH_FAIL, LH_UNKNOWN };

/* Judges the work. The plugin defines this function. */
bool lh_evaluator_judge(const lh_subject *subject, const lh_rubric *rubric, lh_verdict *verdict, lh_error *err);

#elif defined(LH_WORLD_MEMORY)

/* An entry: { lh_str key, value; lh_str_list tags; optional double expires_at_ms; }. `value` is JSON, and the time is
 * in milliseconds since 1970-01-01 UTC; none: never. */
typedef exports_longhaul_plugin_memory_entry_t lh_entry;
/* An entry that a search found: { lh_entry entry; double score; }. A higher score is better. */
typedef exports_longhaul_plugin_memory_hit_t lh_hit;
/* The entries that a search found. */
typedef exports_longhaul_plugin_memory_list_hit_t lh_hit_list;
/* A page of keys: { lh_str_list keys; lh_optional_str cursor; }. Without a cursor it is the last one. */
typedef exports_longhaul_plugin_memory_page_t lh_page;

/* Returns the settings that the operator wrote for this backend, as a JSON object. */
lh_str lh_memory_settings(void);

/* The plugin defines these five functions. Each call runs in a fresh instance, and `space` is the namespace. */

/* Keeps an entry, in place of the one with the same key. Repeating the call must change nothing. */
bool lh_memory_put(lh_str space, const lh_entry *entry, lh_error *err);
/* Gets the entry of a key. Sets `found` to false where there is none, or where it has expired. */
bool lh_memory_get(lh_str space, lh_str key, lh_entry *entry, bool *found, lh_error *err);
/* Finds at most `limit` entries that have not expired, the best first. */
bool lh_memory_search(lh_str space, lh_str query, uint32_t limit, lh_hit_list *hits, lh_error *err);
/* Deletes the entry of a key. Sets `deleted` to whether there was one that had not expired. */
bool lh_memory_delete(lh_str space, lh_str key, bool *deleted, lh_error *err);
/* Lists at most `limit` keys that start with `prefix`: the first ones, or those of `cursor` where it is not NULL. */
bool lh_memory_list(lh_str space, lh_str prefix, const lh_str *cursor, uint32_t limit, lh_page *page, lh_error *err);

#endif

#endif
