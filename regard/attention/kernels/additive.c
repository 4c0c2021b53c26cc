/* The schedule: tiles to threads, and the choice of instruction set.
 *
 * Backward adds to the gradients of the queries and of the keys. Queries and keys are cut into the
 * same number of chunks, and in round r query chunk i meets key chunk (i + r) mod chunks: within a
 * round no two tiles touch the same row, and rounds follow one another, so that every sum has a
 * fixed order without atomics or copies per thread. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000 /* one build serves Python 3.11 and all later versions */
#include <Python.h>
#include <stdlib.h>
#include <string.h>

#include "additive.h"

#if !defined(__GNUC__) && !defined(__clang__)
#error "the additive kernel needs the vector extensions of GCC or clang"
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
static void *allocate(size_t bytes) { return _aligned_malloc(bytes, 64); }
static void release(void *block) { _aligned_free(block); }
#else
static void *allocate(size_t bytes) {
    void *block = 0;
    return posix_memalign(&block, 64, bytes) ? 0 : block;
}
static void release(void *block) { free(block); }
#endif

static float *scratch_of(size_t floats) {
    if (floats > scratch_floats) {
        release(scratch);
        scratch_floats = 0;
        scratch = allocate(floats * sizeof(float));
        if (scratch) scratch_floats = floats;
    }
    return scratch;
}

enum { BASELINE, AVX2, AVX512, LEVELS };
static int forced = -1;

static int supported(int level) {
#if defined(__x86_64__) && defined(_WIN32)
    /* clang's __builtin_cpu_supports needs a library that MSVC does not link. Windows asks for the
     * first part of AVX-512 only, and every desktop or server processor that has it has the others. */
    if (level == AVX512) return IsProcessorFeaturePresent(41 /* PF_AVX512F_INSTRUCTIONS_AVAILABLE */);
    if (level == AVX2) return IsProcessorFeaturePresent(40 /* PF_AVX2_INSTRUCTIONS_AVAILABLE */);
#elif defined(__x86_64__)
    if (level == AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (level == AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return level == BASELINE;
}

/* The level in use: 0 baseline, 1 AVX2, 2 AVX-512. */
EXPORT int additive_level(void) {
    if (forced >= 0) return forced;
    int level = LEVELS - 1;
    while (!supported(level)) level--;
    return level;
}

/* Uses this level from now on, or the best one again if negative; -1 if the machine lacks it. */
EXPORT int additive_force(int level) {
    if (level >= LEVELS || (level >= 0 && !supported(level))) return -1;
    forced = level < 0 ? -1 : level;
    return 0;
}

static const Kernels *kernels(void) {
#if defined(__x86_64__)
    if (additive_level() == AVX512) return &additive_avx512;
    if (additive_level() == AVX2) return &additive_avx2;
#endif
    return &additive_baseline;
}

EXPORT void additive_tanh(const float *x, float *y, int64_t n) { kernels()->tanh_loop(x, y, n); }

/* Threads that the work is worth: waking one costs as much as some 30 000 triples. */
static int useful_threads(const Additive *p, int threads) {
    int64_t work = p->batch * p->queries * p->keys * p->hidden >> 15;
    if (threads > work) threads = (int)work;
    return threads < 1 ? 1 : threads;
}

static int64_t ceiling(int64_t n, int64_t by) { return (n + by - 1) / by; }

/* Both return 0, or 1 when there is no memory. */
EXPORT int additive_forward(const Additive *p, int threads) {
    const Kernels *kernel = kernels();
    const size_t floats = kernel->forward_floats(p);
    int64_t rows = p->queries < QUERY_BLOCK ? p->queries : QUERY_BLOCK;
    int failed = 0;
    threads = useful_threads(p, threads);
    while (threads > 1 && rows > 8 && p->batch * ceiling(p->queries, rows) < 4 * threads)
        rows = ceiling(rows, 2);
    const int64_t blocks = rows ? ceiling(p->queries, rows) : 0, tiles = p->batch * blocks;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        float *own = scratch_of(floats);
        if (!own) {
#pragma omp atomic write
            failed = 1;
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < tiles; i++) {
            int64_t from = i % blocks * rows;
            Tile tile = {i / blocks, from, from + rows < p->queries ? from + rows : p->queries,
                         0, p->keys};
            if (own) kernel->forward(p, &tile, own);
        }
    }
    return failed;
}

/* The chunks that additive_backward cuts queries and keys into: weight_gradient has room for
 * batch x chunks x hidden. */
EXPORT int64_t additive_chunks(const Additive *p, int threads) {
    int64_t shorter = p->queries < p->keys ? p->queries : p->keys;
    threads = useful_threads(p, threads);
    if (threads == 1 || p->batch >= 4 * threads) return 1;
    int64_t chunks = ceiling(4 * threads, p->batch);
    if (chunks > shorter / 16) chunks = shorter / 16;
    return chunks < 1 ? 1 : chunks;
}

/* All gradients are added to, so they come in as zeros. */
EXPORT int additive_backward(const Additive *p, int64_t chunks, int threads) {
    const Kernels *kernel = kernels();
    const size_t floats = kernel->backward_floats(p);
    const int64_t tiles = p->batch * chunks;
    int failed = 0;
    threads = useful_threads(p, threads);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        float *own = scratch_of(floats);
        if (!own) {
#pragma omp atomic write
            failed = 1;
        }
        for (int64_t round = 0; round < chunks; round++) {
#pragma omp for schedule(dynamic, 1)
            for (int64_t i = 0; i < tiles; i++) {
                int64_t q = i % chunks, k = (q + round) % chunks;
                Tile tile = {i / chunks, q * p->queries / chunks, (q + 1) * p->queries / chunks,
                             k * p->keys / chunks, (k + 1) * p->keys / chunks};
                if (own) kernel->backward(p, &tile, p->weight_gradient + i * p->hidden, own);
            }
        }
    }
    return failed;
}

/* Python finds the file by importing it; the functions above are called through ctypes. */
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_additive", 0, -1, 0, 0, 0, 0, 0};
PyMODINIT_FUNC PyInit__additive(void) { return PyModule_Create(&definition); }
