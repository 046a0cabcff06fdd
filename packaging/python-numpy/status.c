// The functions of status.h. One module has them and the others import them: what numpy's linear algebra sets, its core reads.

#include "status.h"

#define EXPORTED __attribute__((visibility("default")))

static int status;

EXPORTED int longhaul_fetestexcept(int wanted) { return status & wanted; }

EXPORTED int longhaul_feraiseexcept(int raised) {
    status |= raised;
    return 0;
}

EXPORTED int longhaul_feclearexcept(int cleared) {
    status &= ~cleared;
    return 0;
}
