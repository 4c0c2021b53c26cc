/* The tiles in four lanes of plain vector C: SSE2, NEON, or whatever the compiler has. */
#include "additive.h"

#define TARGET
#define KERNELS additive_baseline
enum { LANES = 4 };
typedef float Vector __attribute__((vector_size(16), may_alias));
typedef float Loose __attribute__((vector_size(16), may_alias, aligned(4)));
typedef int32_t Whole __attribute__((vector_size(16), may_alias));

/* Both return the second argument when one is NaN, as the x86 instructions do. */
static inline Vector smaller(Vector a, Vector b) {
    Whole less = (Whole)(a < b);
    return (Vector)((less & (Whole)a) | (~less & (Whole)b));
}
static inline Vector larger(Vector a, Vector b) {
    Whole more = (Whole)(a > b);
    return (Vector)((more & (Whole)a) | (~more & (Whole)b));
}
static inline Vector over(Vector numerator, Vector denominator) { return numerator / denominator; }
static inline void sum_four(const Vector *v, float *sums) {
    for (int c = 0; c < 4; c++) sums[c] = (v[c][0] + v[c][1]) + (v[c][2] + v[c][3]);
}

#include "tile.h"
