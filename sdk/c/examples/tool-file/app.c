/* The tool `reader`: gives the first line of a file in the directory that it was granted.
 *
 * A path is relative to that directory. The host refuses one that leads out of it, also through a link. Files are
 * reached through the bindings of `wasi:filesystem`: fopen of libc would need a system that is not there. */

#include "longhaul.h"

#define LINE_BYTES_MAX 4096

/* Each granted directory has the name that `guest` gives it. */
static bool granted(wasi_filesystem_types_borrow_descriptor_t *directory) {
    wasi_filesystem_preopens_list_tuple2_own_descriptor_string_t all;
    wasi_filesystem_preopens_get_directories(&all);
    for (size_t i = 0; i < all.len; i++) {
        if (!lh_is(all.ptr[i].f1, "/work")) continue;
        *directory = wasi_filesystem_types_borrow_descriptor(all.ptr[i].f0);
        return true;
    }
    return false;
}

static bool first_line(const lh_call *call, lh_out *answer, lh_error *err) {
    lh_str path = lh_text_of(lh_get(call->arguments, "path"));
    wasi_filesystem_types_borrow_descriptor_t directory;
    if (!granted(&directory)) return lh_fail(err, LH_FAILED, "there is no directory /work; grant one in longhaul.toml");
    wasi_filesystem_types_own_descriptor_t file;
    wasi_filesystem_types_error_code_t code;
    /* The first 0 says that no link is followed. */
    if (!wasi_filesystem_types_method_descriptor_open_at(directory, 0, &path, 0,
                                                         WASI_FILESYSTEM_TYPES_DESCRIPTOR_FLAGS_READ, &file, &code))
        return lh_fail(err, LH_FAILED, "cannot open `%.*s`: %s", LH_ARG(path),
                       code == WASI_FILESYSTEM_TYPES_ERROR_CODE_NO_ENTRY ? "there is no such file" : "the host refuses it");
    tool_plugin_tuple2_list_u8_bool_t read;
    bool ok = wasi_filesystem_types_method_descriptor_read(wasi_filesystem_types_borrow_descriptor(file), LINE_BYTES_MAX,
                                                           0, &read, &code);
    wasi_filesystem_types_descriptor_drop_own(file);
    if (!ok) return lh_fail(err, LH_FAILED, "cannot read `%.*s`", LH_ARG(path));
    lh_adopt(read.f0.ptr);
    lh_str line = {read.f0.ptr, 0};
    while (line.len < read.f0.len && line.ptr[line.len] != '\n') line.len++;
    lh_begin_object(answer);
    lh_key(answer, "line");
    lh_put_text(answer, lh_utf8(line));
    lh_end(answer);
    return true;
}

static const lh_param path_alone[] = {
    {.name = "path", .about = "below the granted directory", .kind = LH_TEXT, .min = 1, .max = 1000}, {0}};

static const lh_function functions[] = {
    {.name = "first_line", .about = "Gives the first line of a file.", .effect = LH_READ_ONLY, .params = path_alone, .run = first_line},
    {0},
};

const lh_tool lh_plugin = {.id = "reader", .about = "Reads files.", .functions = functions};
