/* Additive attention (Bahdanau et al. 2015, https://arxiv.org/abs/1409.0473) in float32.
 *
 *   s[q,k] = sum_a w[a] tanh(query[q,a] + key[k,a]),   output[q] = sum_k softmax_k(s[q,k]) value[k]
 *
 * What the schedule (additive.c) and the tiles (tile.h, compiled once per instruction set) share.
 */
#ifndef REGARD_ADDITIVE_H
#define REGARD_ADDITIVE_H

#include <stddef.h>
#include <stdint.h>

enum { QUERY_BLOCK = 48, KEY_BLOCK = 32 };

/* Tensors are contiguous; [b] is the flattened batch. A null pointer means "not given". */
typedef struct {
    const float *query;  /* [b, queries, hidden] */
    const float *key;    /* [b, keys, hidden] */
    const float *weight; /* [hidden] */
    const float *value;  /* [b, keys, width] */
    const int64_t *start, *stop; /* [b, queries]: row q sees start <= k < stop */
    const uint8_t *mask;         /* [m, queries or 1, keys], 1 = may attend */
    const int64_t *mask_of;      /* [b]: which of the m masks */
    int64_t mask_rows;           /* queries, or 1 for one row that serves all */
    int64_t batch, queries, keys, hidden, width;
    float *scores;                   /* [b, queries, keys]; null: the output is wanted */
    float *output, *log_sum;         /* [b, queries, width], [b, queries] */
    const float *output_gradient;    /* [b, queries, width], at these strides: often expanded */
    int64_t gradient_batch, gradient_row, gradient_column;
    const float *scores_gradient;    /* [b, queries, keys], instead of output_gradient */
    float *query_gradient, *key_gradient, *value_gradient; /* like query, key, value */
    float *weight_gradient;          /* [b, chunks, hidden]: partial sums */
} Additive;

typedef struct {
    int64_t batch, query_from, query_to, key_from, key_to;
} Tile;

typedef struct {
    size_t (*forward_floats)(const Additive *), (*backward_floats)(const Additive *);
    void (*forward)(const Additive *, const Tile *, float *scratch);
    /* weight_gradient: [hidden], added to; the other gradients are added to in place */
    void (*backward)(const Additive *, const Tile *, float *weight_gradient, float *scratch);
    /* tanh(x) through the same reciprocal as the tiles: the machine limit that benchmarks quote */
    void (*tanh_loop)(const float *x, float *y, int64_t n);
} Kernels;

extern const Kernels additive_baseline;
#if defined(__x86_64__)
extern const Kernels additive_avx2, additive_avx512;
#endif

#endif
