/* The operations in four lanes of plain vector C: SSE2, NEON, or whatever the compiler has. */
#include "decoder.h"

#define TARGET
#define OPERATIONS decoder_baseline
enum { LANES = 4, TILE_ROWS = 4, TILE_VECTORS = 2 };
typedef float Vector __attribute__((vector_size(16), may_alias));
typedef float Loose __attribute__((vector_size(16), may_alias, aligned(4)));
typedef int32_t Whole __attribute__((vector_size(16), may_alias));
typedef int32_t LooseWhole __attribute__((vector_size(16), may_alias, aligned(4)));

static inline Vector multiply_add(Vector a, Vector b, Vector c) { return a * b + c; }
static inline Vector smaller(Vector a, Vector b) {
    Whole less = (Whole)(a < b);
    return (Vector)((less & (Whole)a) | (~less & (Whole)b));
}
static inline Vector larger(Vector a, Vector b) {
    Whole more = (Whole)(a > b);
    return (Vector)((more & (Whole)a) | (~more & (Whole)b));
}
static inline float sum(Vector v) { return (v[0] + v[1]) + (v[2] + v[3]); }
static inline Vector to_float(Whole v) { return __builtin_convertvector(v, Vector); }
static inline int any(Whole mask) { return (mask[0] | mask[1] | mask[2] | mask[3]) != 0; }

/* Adds to each lane the product of four bytes: those of `weights` and the four of `activations`. */
static inline Whole dot_four(Whole total, uint32_t activations, const int8_t *weights) {
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < 4; i++)
            total[lane] += (int32_t)((activations >> 8 * i) & 255) * weights[4 * lane + i];
    return total;
}

#include "operations.h"
