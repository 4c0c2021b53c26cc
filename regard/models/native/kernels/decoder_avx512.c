/* The operations in sixteen lanes: AVX-512. */
#include "decoder.h"
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define OPERATIONS decoder_avx512
#include "sixteen_lanes.h"

/* Adds to each lane the product of four bytes, widened to 16 bits: the instruction that takes them as
 * they are saturates. */
TARGET static inline Whole dot_four(Whole total, uint32_t activations, const int8_t *weights) {
    __m512i low = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)weights));
    __m512i high = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)weights + 1));
    __m512i wide = _mm512_cvtepu8_epi16(_mm256_set1_epi32((int)activations));
    /* the two halves of each four stand side by side: even and odd ones are added */
    __m512i a = _mm512_madd_epi16(low, wide), b = _mm512_madd_epi16(high, wide);
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    __m512i sums = _mm512_add_epi32(_mm512_permutex2var_epi32(a, even, b),
                                    _mm512_permutex2var_epi32(
                                        a, _mm512_add_epi32(even, _mm512_set1_epi32(1)), b));
    return total + (Whole)sums;
}

#include "operations.h"
#endif
