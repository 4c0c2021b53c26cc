/* Exponential, tanh, sigmoid and GELU of vectors; included by operations.h. */
#include <math.h>
#include <string.h>

#define INLINE TARGET static inline __attribute__((always_inline))

INLINE Vector all(float x) { return (Vector){0} + x; }
INLINE Vector load(const float *p) { return *(const Loose *)p; }
INLINE void store(float *p, Vector v) { *(Loose *)p = v; }

/* The first n < LANES floats; the other lanes are `rest`. */
INLINE Vector load_some(const float *p, int64_t n, float rest) {
    float lanes[LANES];
    for (int lane = 0; lane < LANES; lane++) lanes[lane] = lane < n ? p[lane] : rest;
    return load(lanes);
}
INLINE void store_some(float *p, Vector v, int64_t n) {
    float lanes[LANES];
    store(lanes, v);
    for (int64_t lane = 0; lane < n; lane++) p[lane] = lanes[lane];
}

/* e^x to 2e-7; x is clamped to [-87, 88], and NaN stays NaN. Adding 3 * 2^22 rounds x / ln 2 to an
 * integer, which then stands in the low bits, and x - n ln 2 goes through a polynomial. */
INLINE Vector exponential(Vector x) {
    const float magic = 12582912.0f;
    x = smaller(all(88.0f), larger(all(-87.0f), x));
    Vector shifted = multiply_add(x, all(1.44269504f), all(magic));
    Vector n = shifted - magic;
    Vector r = multiply_add(n, all(-0.693359375f), x);
    r = multiply_add(n, all(2.12194440e-4f), r);
    Vector p = multiply_add(r, all(1.9875691500e-4f), all(1.3981999507e-3f));
    p = multiply_add(p, r, all(8.3334519073e-3f));
    p = multiply_add(p, r, all(4.1665795894e-2f));
    p = multiply_add(p, r, all(1.6666665459e-1f));
    p = multiply_add(p, r, all(5.0000001201e-1f));
    p = multiply_add(p, r * r, r + 1.0f);
    return p * (Vector)(((Whole)shifted << 23) + 0x3f800000);
}

INLINE Vector sigmoid(Vector x) { return 1.0f / (1.0f + exponential(-x)); }
INLINE Vector hyperbolic_tangent(Vector x) { return 1.0f - 2.0f / (1.0f + exponential(x + x)); }

/* x (1 + erf(x / sqrt 2)) / 2, with erf to 1.5e-7: Abramowitz and Stegun, 7.1.26. */
INLINE Vector gelu(Vector x) {
    Vector z = x * 0.70710678f, size = larger(z, -z);
    Vector t = 1.0f / multiply_add(size, all(0.3275911f), all(1.0f));
    Vector p = multiply_add(t, all(1.061405429f), all(-1.453152027f));
    p = multiply_add(p, t, all(1.421413741f));
    p = multiply_add(p, t, all(-0.284496736f));
    p = multiply_add(p, t, all(0.254829592f));
    Vector tail = p * t * exponential(-(z * z)); /* 1 - erf(|z|) */
    Vector half = x * 0.5f, low = half * tail;
    Whole negative = (Whole)(x < 0.0f);
    return (Vector)((negative & (Whole)low) | (~negative & (Whole)(x - low)));
}

INLINE Vector activate(Vector v, int64_t activation) {
    if (activation == GELU) return gelu(v);
    if (activation == TANH) return hyperbolic_tangent(v);
    return v;
}

TARGET static float largest(const float *x, int64_t n) {
    Vector top = all(-INFINITY);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) top = larger(load(x + i), top);
    if (i < n) top = larger(load_some(x + i, n - i, -INFINITY), top);
    float result = top[0];
    for (int lane = 1; lane < LANES; lane++) result = top[lane] > result ? top[lane] : result;
    return result;
}

INLINE float dot(const float *a, const float *b, int64_t n) {
    Vector first = all(0.0f), second = first;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        first = multiply_add(load(a + i), load(b + i), first);
        second = multiply_add(load(a + i + LANES), load(b + i + LANES), second);
    }
    for (; i + LANES <= n; i += LANES) first = multiply_add(load(a + i), load(b + i), first);
    float total = sum(first + second);
    for (; i < n; i++) total += a[i] * b[i];
    return total;
}

/* x becomes softmax(x). */
TARGET static void softmax(float *x, int64_t n) {
    const float top = largest(x, n);
    Vector total = all(0.0f);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        Vector e = exponential(load(x + i) - top);
        total += e;
        store(x + i, e);
    }
    if (i < n) {
        float lanes[LANES];
        store(lanes, exponential(load_some(x + i, n - i, top) - top));
        for (int64_t lane = 0; i + lane < n; lane++) total[lane] += x[i + lane] = lanes[lane];
    }
    const float inverse = 1.0f / sum(total);
    for (i = 0; i < n; i++) x[i] *= inverse;
}

/* x becomes log softmax(x). */
TARGET static void log_softmax(float *x, int64_t n) {
    const float top = largest(x, n);
    Vector total = all(0.0f);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) total += exponential(load(x + i) - top);
    float sums = sum(total);
    for (; i < n; i++) sums += expf(x[i] - top);
    const float log_sum = logf(sums) + top;
    for (i = 0; i + LANES <= n; i += LANES) store(x + i, load(x + i) - log_sum);
    for (; i < n; i++) x[i] -= log_sum;
}
