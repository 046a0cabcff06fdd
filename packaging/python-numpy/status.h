// The status of floating point, which WebAssembly has not, as far as numpy sets and reads it itself.
//
// numpy's compiler includes this in front of each file. The C library of this target declares these functions, and they do
// nothing, so a singular matrix would be no error, and a division of integers by zero no warning. Operations on floating
// point numbers themselves set nothing here.

#ifndef LONGHAUL_STATUS_H
#define LONGHAUL_STATUS_H

#include <fenv.h>

#define FE_INVALID 1
#define FE_DIVBYZERO 4
#define FE_OVERFLOW 8
#define FE_UNDERFLOW 16

// Names of their own, since the C library exports the others.
#define fetestexcept longhaul_fetestexcept
#define feraiseexcept longhaul_feraiseexcept
#define feclearexcept longhaul_feclearexcept

#ifdef __cplusplus
extern "C" {
#endif
int longhaul_fetestexcept(int);
int longhaul_feraiseexcept(int);
int longhaul_feclearexcept(int);
#ifdef __cplusplus
}
#endif

#endif
