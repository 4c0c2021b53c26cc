/* The schedule: rows to threads, and the choice of instruction set. */
#include <stdlib.h>

#include "search.h"

#if !defined(__GNUC__) && !defined(__clang__)
#error "the decoder needs the vector extensions of GCC or clang"
#endif
#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <malloc.h>
#include <windows.h>
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* Grown, never shrunk: the first touch of fresh pages would cost more than the arithmetic. */
static _Thread_local float *scratch;
static _Thread_local size_t scratch_floats;

#if defined(_WIN32)
void *decoder_allocate(size_t bytes) { return _aligned_malloc(bytes, 64); }
void decoder_release(void *block) { _aligned_free(block); }
#else
void *decoder_allocate(size_t bytes) {
    void *block = 0;
    return posix_memalign(&block, 64, bytes) ? 0 : block;
}
void decoder_release(void *block) { free(block); }
#endif

float *decoder_scratch(size_t floats) {
    if (floats > scratch_floats) {
        decoder_release(scratch);
        scratch_floats = 0;
        scratch = decoder_allocate(floats * sizeof(float));
        if (scratch) scratch_floats = floats;
    }
    return scratch;
}

enum { BASELINE, AVX2, AVX512, VNNI, LEVELS };
static int forced = -1;

static int supported(int level) {
#if defined(__x86_64__) && defined(_WIN32)
    /* Windows does not tell whether there are products of bytes: the level below them is taken. */
    if (level == AVX512) return IsProcessorFeaturePresent(41 /* PF_AVX512F_INSTRUCTIONS_AVAILABLE */);
    if (level == AVX2) return IsProcessorFeaturePresent(40 /* PF_AVX2_INSTRUCTIONS_AVAILABLE */);
#elif defined(__x86_64__)
    const int sixteen = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (level == VNNI) return sixteen && __builtin_cpu_supports("avx512vnni");
    if (level == AVX512) return sixteen;
    if (level == AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return level == BASELINE;
}

/* The level in use: 0 baseline, 1 AVX2, 2 AVX-512, 3 AVX-512 with VNNI. */
EXPORT int decoder_level(void) {
    if (forced >= 0) return forced;
    int level = LEVELS - 1;
    while (!supported(level)) level--;
    return level;
}

/* Uses this level from now on, or the best one again if negative; -1 if the machine lacks it. */
EXPORT int decoder_force(int level) {
    if (level >= LEVELS || (level >= 0 && !supported(level))) return -1;
    forced = level < 0 ? -1 : level;
    return 0;
}

static const Operations *operations(void) {
#if defined(__x86_64__)
    if (decoder_level() == VNNI) return &decoder_vnni;
    if (decoder_level() == AVX512) return &decoder_avx512;
    if (decoder_level() == AVX2) return &decoder_avx2;
#endif
    return &decoder_baseline;
}

/* Rows of a step that are computed together: they share the weights that come from memory, and
 * their workspace stays in the cache. */
enum { ROWS_TOGETHER = 192 };

/* One step of all rows; each thread takes some of them through the whole plan. Returns 0, 1 when
 * there is no memory, or 2 when a token is not in the vocabulary. */
EXPORT int decoder_step(const Plan *plan, const Call *call, int threads) {
    const Operations *kernel = operations();
    int64_t parts = threads < call->rows ? threads : call->rows;
    if (parts * ROWS_TOGETHER < call->rows) parts = (call->rows + ROWS_TOGETHER - 1) / ROWS_TOGETHER;
    int failed = 0;
    for (int64_t row = 0; row < call->rows; row++)
        if (call->tokens[row] < 0 || call->tokens[row] >= plan->words) return UNKNOWN_TOKEN;
#pragma omp parallel for num_threads(threads) if (threads > 1 && parts > 1) schedule(dynamic, 1)
    for (int64_t part = 0; part < parts; part++) {
        const int64_t from = part * call->rows / parts, to = (part + 1) * call->rows / parts;
        float *own = decoder_scratch(kernel->scratch(plan, call, to - from));
        if (own)
            kernel->step(plan, call, from, to, own);
        else {
#pragma omp atomic write
            failed = 1;
        }
    }
    return failed;
}

/* A recurrent layer, one plan and one record per direction; threads take directions and sequences.
 * Returns 0, or 1 without memory. */
EXPORT int decoder_sequences(const Plan *plans, const Sequences *records, int64_t directions,
                             int64_t rows, int threads) {
    const Operations *kernel = operations();
    int64_t parts = rows / 16 < threads / directions ? rows / 16 : threads / directions;
    if (parts * ROWS_TOGETHER < rows) parts = (rows + ROWS_TOGETHER - 1) / ROWS_TOGETHER;
    int failed = 0;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic, 1)
    for (int64_t part = 0; part < parts * directions; part++) {
        const int64_t direction = part % directions, number = part / directions;
        const int64_t from = number * rows / parts, to = (number + 1) * rows / parts;
        float *own = decoder_scratch(kernel->sequences_scratch(plans + direction, to - from));
        if (own)
            kernel->sequences(plans + direction, records + direction, from, to, own);
        else {
#pragma omp atomic write
            failed = 1;
        }
    }
    return failed;
}

/* One product of all rows, in parts of at least 16 rows each. Returns 0, or 1 without memory. */
EXPORT int decoder_product(const Product *p, const float *x, const float *residual, float *y,
                           int64_t rows, int64_t activation, int threads) {
    const Operations *kernel = operations();
    int64_t parts = rows / 16 < threads ? rows / 16 : threads;
    if (parts * ROWS_TOGETHER < rows) parts = (rows + ROWS_TOGETHER - 1) / ROWS_TOGETHER;
    int failed = 0;
#pragma omp parallel for num_threads(threads) if (threads > 1 && parts > 1) schedule(dynamic, 1)
    for (int64_t part = 0; part < parts; part++) {
        const int64_t from = part * rows / parts, to = (part + 1) * rows / parts;
        float *own = decoder_scratch(kernel->product_scratch(p, to - from));
        if (own)
            kernel->product(p, x + from * p->inputs, residual ? residual + from * p->outputs : 0,
                            y + from * p->outputs, to - from, activation, own);
        else {
#pragma omp atomic write
            failed = 1;
        }
    }
    return failed;
}

/* The n best hypotheses of all sentences; each thread takes some sentences from beginning to end.
 * Returns 0, or why there is no result. */
EXPORT int decoder_search(const Plan *plan, const Search *search, int threads) {
    const Operations *kernel = operations();
    const int64_t sentences = search->sentences;
    int64_t parts = threads < sentences ? threads : sentences, most = ROWS_TOGETHER / search->width;
    if (most < 1) most = 1;
    if (parts * most < sentences) parts = (sentences + most - 1) / most;
    for (int64_t i = 0; i < sentences; i++)
        if (search->bos[i] < 0 || search->bos[i] >= plan->words) return UNKNOWN_TOKEN;
    int failed = 0;
#pragma omp parallel for num_threads(threads) if (threads > 1 && parts > 1) schedule(dynamic, 1)
    for (int64_t part = 0; part < parts; part++) {
        const int64_t from = part * sentences / parts, to = (part + 1) * sentences / parts;
        const int failure = search_sentences(plan, search, kernel, from, to, &failed);
        if (failure) {
#pragma omp atomic write
            failed = failure;
        }
    }
    return failed;
}
