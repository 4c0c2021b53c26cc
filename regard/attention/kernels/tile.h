/* One tile of additive attention, forward and backward; included once per instruction set, after
 * TARGET, KERNELS, LANES, Vector, Loose, Whole, smaller, larger, over and sum_four are defined.
 *
 * tanh(q + k) = 1 - 2y with y = 1 / (1 + e^2q e^2k). The exponentials are taken once per row of a
 * block, so a (query, key, unit) triple costs a product and a reciprocal, and two triples share one
 * reciprocal: u/c + w/d = (ud + wc) / (cd). Where e^2q e^2k could overflow, or too few queries
 * share the exponentials of a key, the tile is "direct": e^2(q+k) is taken per triple, clamped.
 * The derivative is 1 - tanh^2 = 4y(1 - y).
 */
#include <math.h>
#include <string.h>

#define INLINE TARGET static inline __attribute__((always_inline))

/* |q| + |k| below this keeps the product of two denominators, e^4(|q|+|k|), inside float32. */
#define SAFE_SUM 21.0f
/* tanh is 1 in float32 long before 20; the square of e^40 is still finite. */
#define SATURATED 20.0f
enum { FEW_QUERIES = 3, SIDE = 4, PAIR = 2 * LANES };

INLINE Vector all(float x) { return (Vector){0} + x; }
INLINE Vector load(const float *p) { return *(const Vector *)p; }
INLINE void store(float *p, Vector v) { *(Vector *)p = v; }

/* e^2x for |x| <= bound <= 44 (clamped; below -43.7 exactly 0; NaN stays NaN). The integer part of
 * 2x / ln 2 lands in the low bits of `shifted`, already biased as a float's exponent. */
INLINE Vector raise(Vector x, float bound) {
    const float bias = 12582912.0f + 127.0f;
    x = smaller(all(bound), larger(all(-bound), x));
    Vector shifted = x * 2.88539008f + bias;
    Vector n = shifted - bias;
    Vector r = (x - n * 0.3466796875f) + n * 1.06097220e-4f;
    Vector p = r * 8.84130597e-2f + 2.67799854e-1f;
    p = p * r + 6.66694224e-1f;
    p = p * r + 1.33332169f;
    p = p * r + 1.99999976f;
    p = (r * r) * p + (r + r) + 1.0f;
    return p * (Vector)((Whole)shifted << 23);
}

INLINE Vector denominator(Vector q, Vector k, int direct) {
    if (direct) return raise(q + k, SATURATED) + 1.0f;
    return q * k + 1.0f;
}

INLINE int64_t padded(int64_t n) { return (n + PAIR - 1) / PAIR * PAIR; }
INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* The largest finite or infinite |x|; NaN is passed over. */
TARGET static float largest(const float *x, int64_t n) {
    Vector top = all(0.0f);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        Vector v = *(const Loose *)(x + i);
        top = larger(-v, larger(v, top));
    }
    float result = 0.0f;
    for (int l = 0; l < LANES; l++) result = top[l] > result ? top[l] : result;
    for (; i < n; i++) result = fabsf(x[i]) > result ? fabsf(x[i]) : result;
    return result;
}

/* Copies rows of n floats to rows of `stride`, as they are or as e^2x; the rest of each row, and
 * whole rows up to a multiple of SIDE, become zero. Tells whether all of it was finite. */
INLINE int pack(const float *from, int64_t rows, int64_t n, float *to, int64_t stride, int raised) {
    Vector odd = all(0.0f);
    int64_t full = n / LANES * LANES;
    for (int64_t r = 0; r < rows; r++, from += n, to += stride) {
        int64_t i = 0;
        for (; i < full; i += LANES) {
            Vector v = *(const Loose *)(from + i);
            odd += v - v;
            store(to + i, raised ? raise(v, 44.0f) : v);
        }
        if (i < n) {
            float rest[LANES] __attribute__((aligned(64))) = {0};
            memcpy(rest, from + i, (size_t)(n - i) * sizeof(float));
            Vector v = load(rest);
            odd += v - v;
            store(to + i, raised ? raise(v, 44.0f) : v);
            i += LANES;
        }
        for (; i < stride; i += LANES) store(to + i, all(0.0f));
    }
    for (; rows % SIDE; rows++, to += stride) memset(to, 0, (size_t)stride * sizeof(float));
    float sum = 0.0f;
    for (int l = 0; l < LANES; l++) sum += odd[l];
    return sum == 0.0f;
}

TARGET static int pack_plain(const float *from, int64_t rows, int64_t n, float *to, int64_t stride) {
    return pack(from, rows, n, to, stride, 0);
}
TARGET static void pack_units(const float *from, int64_t rows, int64_t n, float *to, int direct) {
    if (direct)
        pack(from, rows, n, to, padded(n), 0);
    else
        pack(from, rows, n, to, padded(n), 1);
}

/* For one query and `count` keys: sums[c] = sum_a weight[a] y[c,a], and y itself is kept at
 * kept[a / LANES][c][a % LANES] (SIDE * SIDE vectors apart), unless that is null. */
INLINE void unit_sums(const float *query, const float *key, const float *weight, int64_t stride,
                      int count, int direct, float *sums, float *kept) {
    Vector total[SIDE];
    for (int c = 0; c < SIDE; c++) total[c] = all(0.0f);
    for (int64_t i = 0; i < stride; i += PAIR) {
        Vector q0 = load(query + i), q1 = load(query + i + LANES);
        Vector w0 = load(weight + i), w1 = load(weight + i + LANES);
        for (int c = 0; c < count; c++) {
            const float *k = key + c * stride + i;
            Vector d0 = denominator(q0, load(k), direct);
            Vector d1 = denominator(q1, load(k + LANES), direct);
            if (kept) {
                float *y = kept + i * SIDE * SIDE + c * LANES;
                Vector inverse = over(all(1.0f), d0 * d1);
                Vector y0 = d1 * inverse, y1 = d0 * inverse;
                store(y, y0);
                store(y + LANES * SIDE * SIDE, y1);
                total[c] += w0 * y0;
                total[c] += w1 * y1;
            } else {
                total[c] += over(w0 * d1 + w1 * d0, d0 * d1);
            }
        }
    }
    if (count == SIDE) {
        sum_four(total, sums);
    } else {
        for (int c = 0; c < count; c++) {
            Vector four[SIDE] = {total[c], total[c], total[c], total[c]};
            float result[SIDE];
            sum_four(four, result);
            sums[c] = result[0];
        }
    }
}

/* Which keys each query of the block may see; tells whether any pair is left. */
TARGET static int look(const Additive *p, int64_t b, int64_t query, int64_t rows, int64_t key,
                       int64_t columns, uint8_t *seen) {
    int any = 0;
    memset(seen, 0, QUERY_BLOCK * KEY_BLOCK);
    for (int64_t r = 0; r < rows; r++) {
        int64_t q = query + r, from = 0, to = columns;
        if (p->start) {
            from = most(p->start[b * p->queries + q] - key, 0);
            to = least(p->stop[b * p->queries + q] - key, columns);
        }
        uint8_t *row = seen + r * KEY_BLOCK;
        if (from >= to) continue;
        if (!p->mask) {
            memset(row + from, 1, (size_t)(to - from));
            any = 1;
            continue;
        }
        int64_t which = p->mask_of[b] * p->mask_rows + (p->mask_rows == 1 ? 0 : q);
        const uint8_t *mask = p->mask + which * p->keys + key;
        for (int64_t c = from; c < to; c++) any |= row[c] = mask[c] != 0;
    }
    return any;
}

/* The part of the tile's keys that some query of these rows may see by its span. */
TARGET static void key_range(const Additive *p, const Tile *t, int64_t query, int64_t rows,
                             int64_t *from, int64_t *to) {
    *from = t->key_from;
    *to = t->key_to;
    if (!p->start) return;
    int64_t first = *to, last = *from;
    for (int64_t i = t->batch * p->queries + query, n = i + rows; i < n; i++) {
        if (p->start[i] >= p->stop[i]) continue;
        first = least(first, p->start[i]);
        last = most(last, p->stop[i]);
    }
    *from = most(*from, first);
    *to = least(*to, last);
}

/* c[r,:] += sum_n a[r,n] b[n,:] for two vectors of some rows. With `skip`, terms with a = 0 are left
 * out instead of multiplied, so that what nobody looks at may hold anything. */
INLINE void accumulate(float *c, const float *a, int64_t a_row, int64_t a_column, const float *b,
                       int64_t terms, int64_t stride, int rows, int skip) {
    Vector sum[SIDE][2];
    for (int r = 0; r < rows; r++) {
        sum[r][0] = load(c + r * stride);
        sum[r][1] = load(c + r * stride + LANES);
    }
    for (int64_t n = 0; n < terms; n++) {
        Vector b0 = load(b + n * stride), b1 = load(b + n * stride + LANES);
        for (int r = 0; r < rows; r++) {
            float factor = a[r * a_row + n * a_column];
            if (skip && factor == 0.0f) continue;
            sum[r][0] += factor * b0;
            sum[r][1] += factor * b1;
        }
    }
    for (int r = 0; r < rows; r++) {
        store(c + r * stride, sum[r][0]);
        store(c + r * stride + LANES, sum[r][1]);
    }
}
TARGET static void accumulate_rows(float *c, const float *a, int64_t a_row, int64_t a_column,
                                   const float *b, int64_t terms, int64_t stride, int64_t rows,
                                   int skip) {
    for (int64_t i = 0; i < stride; i += PAIR, b += PAIR) {
        int64_t r = 0;
        for (; r + SIDE <= rows && !skip; r += SIDE)
            accumulate(c + r * stride + i, a + r * a_row, a_row, a_column, b, terms, stride, SIDE, 0);
        for (; r < rows && !skip; r++)
            accumulate(c + r * stride + i, a + r * a_row, a_row, a_column, b, terms, stride, 1, 0);
        for (; r < rows; r++)
            accumulate(c + r * stride + i, a + r * a_row, a_row, a_column, b, terms, stride, 1, 1);
    }
}

TARGET static float pack_weight(const Additive *p, float *to) {
    double sum = 0.0;
    int64_t i = 0;
    for (; i < p->hidden; i++) sum += p->weight[i], to[i] = -2.0f * p->weight[i];
    for (; i < padded(p->hidden); i++) to[i] = 0.0f;
    return (float)sum;
}

#include "forward.h"
#include "backward.h"

TARGET static void tanh_loop(const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i + LANES <= n; i += LANES) {
        Vector v = *(const Loose *)(x + i);
        *(Loose *)(y + i) = 1.0f - over(all(2.0f), denominator(v, all(0.0f), 1));
    }
}

const Kernels KERNELS = {forward_floats, backward_floats, forward, backward, tanh_loop};
