/* Memory that lives until the export call returns: what was given and what was adopted, newest first.
 *
 * A failed allocation is noted, and the call ends with an error whatever the plugin says; see `lhi_settle`. */

#include "inside.h"

#include <stdlib.h>

/* Room that was given, or memory that was adopted, newest first. */
struct lh_node {
    struct lh_node *next;
    void *adopted;
    _Alignas(max_align_t) uint8_t room[];
};

static struct lh_node *newest;
static bool is_out_of_memory;

static struct lh_node *push_node(size_t room) {
    struct lh_node *node = NULL;
    if (room <= SIZE_MAX - sizeof *node) node = calloc(1, sizeof *node + room);
    if (node == NULL) {
        is_out_of_memory = true;
        return NULL;
    }
    node->next = newest;
    newest = node;
    return node;
}

void *lh_alloc(size_t count, size_t size) {
    if (count == 0 || size == 0) return NULL;
    if (count > SIZE_MAX / size) {
        is_out_of_memory = true;
        return NULL;
    }
    struct lh_node *node = push_node(count * size);
    return node == NULL ? NULL : node->room;
}

void *lh_adopt(void *memory) {
    /* Without a node it only lives longer than it should. */
    struct lh_node *node = memory == NULL ? NULL : push_node(0);
    if (node != NULL) node->adopted = memory;
    return memory;
}

lh_mark_t lh_mark(void) { return newest; }

void lh_release(lh_mark_t mark) {
    while (newest != NULL && newest != mark) {
        struct lh_node *node = newest;
        newest = node->next;
        free(node->adopted);
        free(node);
    }
}

/* A generated function gives nothing for an empty text or list, so there is nothing to free then. */
lh_str lhi_adopt_text(lh_str text) {
    if (text.len > 0) lh_adopt(text.ptr);
    return text;
}

lh_str_list lhi_adopt_texts(lh_str_list texts) {
    for (size_t i = 0; i < texts.len; i++) lhi_adopt_text(texts.ptr[i]);
    if (texts.len > 0) lh_adopt(texts.ptr);
    return texts;
}

void *lhi_take(size_t count, size_t size) {
    if (count == 0) return NULL;
    void *memory = calloc(count, size);
    if (memory == NULL) is_out_of_memory = true;
    return memory;
}

void lhi_note_out_of_memory(void) { is_out_of_memory = true; }

bool lhi_is_out_of_memory(void) { return is_out_of_memory; }

/* With what the exports free behind it, their arguments, nothing is left for the next call. */
void lhi_finish(void) {
    lh_release(NULL);
    is_out_of_memory = false;
}
