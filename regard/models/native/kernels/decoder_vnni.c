/* The operations in sixteen lanes: AVX-512 with its products of bytes (VNNI). */
#include "decoder.h"
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512vnni,avx2,fma")))
#define OPERATIONS decoder_vnni
#include "sixteen_lanes.h"

/* Adds to each lane the product of four bytes. */
TARGET static inline Whole dot_four(Whole total, uint32_t activations, const int8_t *weights) {
    return (Whole)_mm512_dpbusd_epi32((__m512i)total, _mm512_set1_epi32((int)activations),
                                      _mm512_loadu_si512(weights));
}

#include "operations.h"
#endif
