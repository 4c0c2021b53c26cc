/* The tiles in eight lanes: AVX2 with fused multiply-add. */
#include "additive.h"
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))
#define KERNELS additive_avx2
enum { LANES = 8 };
typedef float Vector __attribute__((vector_size(32), may_alias));
typedef float Loose __attribute__((vector_size(32), may_alias, aligned(4)));
typedef int32_t Whole __attribute__((vector_size(32), may_alias));

TARGET static inline Vector smaller(Vector a, Vector b) { return (Vector)_mm256_min_ps(a, b); }
TARGET static inline Vector larger(Vector a, Vector b) { return (Vector)_mm256_max_ps(a, b); }

/* 12 bits of the reciprocal and one Newton step: relative error 2e-7. */
TARGET static inline Vector over(Vector numerator, Vector denominator) {
    Vector guess = (Vector)_mm256_rcp_ps(denominator);
    return (numerator * guess) * (2.0f - denominator * guess);
}
TARGET static inline void sum_four(const Vector *v, float *sums) {
    __m256 halves = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
    _mm_storeu_ps(sums, _mm_add_ps(_mm256_castps256_ps128(halves),
                                   _mm256_extractf128_ps(halves, 1)));
}

#include "tile.h"
#endif
