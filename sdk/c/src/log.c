/* The log, which every world has. */

#include "inside.h"

void lh_log(lh_level level, const char *format, ...) {
    lh_mark_t mark = lh_mark();
    lh_out out = {0};
    va_list arguments;
    va_start(arguments, format);
    lhi_add_formatted(&out, format, arguments);
    va_end(arguments);
    lh_str text = lh_utf8(lh_out_text(&out));
    longhaul_plugin_log_write((longhaul_plugin_log_level_t)level, &text);
    lh_release(mark);
}
