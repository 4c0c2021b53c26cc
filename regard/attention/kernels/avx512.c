/* The tiles in sixteen lanes: AVX-512. */
#include "additive.h"
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define KERNELS additive_avx512
enum { LANES = 16 };
typedef float Vector __attribute__((vector_size(64), may_alias));
typedef float Loose __attribute__((vector_size(64), may_alias, aligned(4)));
typedef int32_t Whole __attribute__((vector_size(64), may_alias));

TARGET static inline Vector smaller(Vector a, Vector b) { return (Vector)_mm512_min_ps(a, b); }
TARGET static inline Vector larger(Vector a, Vector b) { return (Vector)_mm512_max_ps(a, b); }

/* 14 bits of the reciprocal and one Newton step: exact to the last bit or two. */
TARGET static inline Vector over(Vector numerator, Vector denominator) {
    Vector guess = (Vector)_mm512_rcp14_ps(denominator);
    return (numerator * guess) * (2.0f - denominator * guess);
}
TARGET static inline void sum_four(const Vector *v, float *sums) {
    __m512 ab = _mm512_add_ps(_mm512_shuffle_f32x4(v[0], v[1], 0x44),
                              _mm512_shuffle_f32x4(v[0], v[1], 0xee));
    __m512 cd = _mm512_add_ps(_mm512_shuffle_f32x4(v[2], v[3], 0x44),
                              _mm512_shuffle_f32x4(v[2], v[3], 0xee));
    __m512 abcd = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88),
                                _mm512_shuffle_f32x4(ab, cd, 0xdd));
    abcd = _mm512_add_ps(abcd, _mm512_permute_ps(abcd, 0x4e));
    abcd = _mm512_add_ps(abcd, _mm512_permute_ps(abcd, 0xb1));
    _mm_storeu_ps(sums, _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, abcd)));
}

#include "tile.h"
#endif
