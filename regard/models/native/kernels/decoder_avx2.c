/* The operations in eight lanes: AVX2 with fused multiply-add. */
#include "decoder.h"
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))
#define OPERATIONS decoder_avx2
enum { LANES = 8, TILE_ROWS = 6, TILE_VECTORS = 2 };
typedef float Vector __attribute__((vector_size(32), may_alias));
typedef float Loose __attribute__((vector_size(32), may_alias, aligned(4)));
typedef int32_t Whole __attribute__((vector_size(32), may_alias));
typedef int32_t LooseWhole __attribute__((vector_size(32), may_alias, aligned(4)));

TARGET static inline Vector multiply_add(Vector a, Vector b, Vector c) {
    return (Vector)_mm256_fmadd_ps(a, b, c);
}
TARGET static inline Vector smaller(Vector a, Vector b) { return (Vector)_mm256_min_ps(a, b); }
TARGET static inline Vector larger(Vector a, Vector b) { return (Vector)_mm256_max_ps(a, b); }
TARGET static inline float sum(Vector v) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}
TARGET static inline Vector to_float(Whole v) { return (Vector)_mm256_cvtepi32_ps((__m256i)v); }
TARGET static inline int any(Whole mask) { return _mm256_movemask_ps((__m256)mask) != 0; }

/* Adds to each lane the product of four bytes. Bytes are widened to 16 bits first: the instruction
 * that takes them as they are saturates. */
TARGET static inline Whole dot_four(Whole total, uint32_t activations, const int8_t *weights) {
    __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)weights));
    __m256i high = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)weights + 1));
    __m256i wide = _mm256_cvtepu8_epi16(_mm_set1_epi32((int)activations));
    /* pairs of each four: [0a 0b 1a 1b | 2a 2b 3a 3b] and [4a 4b 5a 5b | 6a 6b 7a 7b] */
    __m256i sums = _mm256_hadd_epi32(_mm256_madd_epi16(low, wide), _mm256_madd_epi16(high, wide));
    return total + (Whole)_mm256_permute4x64_epi64(sums, 0xd8);
}

#include "operations.h"
#endif
