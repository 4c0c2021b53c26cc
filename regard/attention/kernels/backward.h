/* Backward, for one tile of queries and keys. With weights p and their gradient g = d_output . value:
 *
 *   d_s = p (g - d_output . output),  d_value[k] += p d_output[q],
 *   d_query[q,a] += d_s w[a] 4y(1 - y),  d_key[k,a] likewise,  d_w[a] += d_s (1 - 2y)
 *
 * p comes back from the scores and the log-sum of the row. The y of SIDE x SIDE pairs are computed
 * once and stay in the first-level cache until d_s is known. Included by tile.h. */

enum { PAIRS = SIDE * SIDE };

TARGET static size_t backward_floats(const Additive *p) {
    int64_t hidden = padded(p->hidden), width = padded(p->width);
    return (size_t)((2 * QUERY_BLOCK + 2 * KEY_BLOCK + 2 + PAIRS) * hidden +
                    (QUERY_BLOCK + 2 * KEY_BLOCK) * width + QUERY_BLOCK * KEY_BLOCK);
}

typedef struct {
    float *query, *key, *weight, *value, *output_gradient;                  /* packed inputs */
    float *query_gradient, *key_gradient, *value_gradient, *weight_gradient; /* sums */
    float *weights, *kept;
    float log_sum[QUERY_BLOCK], delta[QUERY_BLOCK]; /* delta = d_output . output */
    float shift, gradient_sum;
    uint8_t seen[QUERY_BLOCK * KEY_BLOCK];
    int64_t hidden, width;
} Block;

INLINE void keep(const Block *b, int64_t r, int64_t c, int high, int direct, float *scores) {
    for (int i = 0; i < high; i++) {
        const uint8_t *look = b->seen + (r + i) * KEY_BLOCK + c;
        const float *q = b->query + (r + i) * b->hidden, *k = b->key + c * b->hidden;
        float *kept = b->kept + i * SIDE * LANES, *s = scores + i * SIDE;
        if (look[0] & look[1] & look[2] & look[3]) {
            unit_sums(q, k, b->weight, b->hidden, SIDE, direct, s, kept);
            continue;
        }
        for (int j = 0; j < SIDE; j++, kept += LANES) {
            if (look[j])
                unit_sums(q, k + j * b->hidden, b->weight, b->hidden, 1, direct, s + j,
                          kept);
            else
                for (int64_t a = 0; a < b->hidden; a += LANES)
                    store(kept + a * PAIRS, all(0.0f));
        }
    }
}

/* d_output . value for `high` x SIDE pairs. */
INLINE void weight_gradients(const Block *b, int64_t r, int64_t c, int high, float *gradients) {
    const float *g = b->output_gradient + r * b->width, *v = b->value + c * b->width;
    Vector sum[SIDE][SIDE];
    for (int i = 0; i < PAIRS; i++) sum[i / SIDE][i % SIDE] = all(0.0f);
    for (int64_t n = 0; n < b->width; n += LANES)
        for (int i = 0; i < high; i++) {
            Vector row = load(g + i * b->width + n);
            for (int j = 0; j < SIDE; j++) sum[i][j] += row * load(v + j * b->width + n);
        }
    for (int i = 0; i < high; i++) sum_four(sum[i], gradients + i * SIDE);
}

/* From scores to weights and score gradients, in place; zero where nobody looks. */
INLINE void differentiate(Block *b, int64_t r, int64_t c, int high, const float *scores,
                          float *gradients) {
    float weights[PAIRS] __attribute__((aligned(64))) = {0};
    for (int i = 0; i < high * SIDE; i++)
        weights[i] = scores[i] + b->shift - b->log_sum[r + i / SIDE];
    for (int i = 0; i < PAIRS; i += LANES)
        store(weights + i, raise(0.5f * load(weights + i), 44.0f));
    for (int i = 0; i < high * SIDE; i++) {
        int64_t at = (r + i / SIDE) * KEY_BLOCK + c + i % SIDE;
        b->weights[at] = b->seen[at] ? weights[i] : 0.0f;
        gradients[i] = b->seen[at] ? weights[i] * (gradients[i] - b->delta[r + i / SIDE]) : 0.0f;
    }
}

/* Adds the pairs' share to the sums; the factor 4w is left for the end. */
INLINE void spread(Block *b, int64_t r, int64_t c, int high, const float *gradients) {
    const int64_t hidden = b->hidden;
    float *query = b->query_gradient + r * hidden, *key = b->key_gradient + c * hidden;
    for (int64_t a = 0; a < hidden; a += LANES) {
        Vector weight = load(b->weight_gradient + a), keys[SIDE];
        for (int j = 0; j < SIDE; j++) keys[j] = load(key + j * hidden + a);
        for (int i = 0; i < high; i++) {
            Vector row = load(query + i * hidden + a);
            for (int j = 0; j < SIDE; j++) {
                Vector y = load(b->kept + a * PAIRS + (i * SIDE + j) * LANES);
                Vector slope = y - y * y, gradient = all(gradients[i * SIDE + j]);
                row += gradient * slope;
                keys[j] += gradient * slope;
                weight += gradient * y;
            }
            store(query + i * hidden + a, row);
        }
        for (int j = 0; j < SIDE; j++) store(key + j * hidden + a, keys[j]);
        store(b->weight_gradient + a, weight);
    }
}

INLINE void backward_pairs(Block *b, const float *given, int64_t stride, int64_t r, int64_t c,
                           int high, int direct) {
    float scores[PAIRS] = {0}, gradients[PAIRS] = {0};
    keep(b, r, c, high, direct, scores);
    if (given) {
        for (int i = 0; i < high * SIDE; i++) {
            int64_t row = r + i / SIDE, column = c + i % SIDE;
            if (b->seen[row * KEY_BLOCK + column]) gradients[i] = given[row * stride + column];
        }
    } else {
        weight_gradients(b, r, c, high, gradients);
        differentiate(b, r, c, high, scores, gradients);
    }
    for (int i = 0; i < PAIRS; i++) b->gradient_sum += gradients[i];
    spread(b, r, c, high, gradients);
}

INLINE void backward_block(Block *b, const float *given, int64_t stride, int64_t rows,
                           int64_t columns, int direct) {
    for (int64_t r = 0; r < rows; r += SIDE)
        for (int64_t c = 0; c < columns; c += SIDE) {
            uint32_t any = 0;
            for (int i = 0; i < SIDE; i++) {
                uint32_t four;
                memcpy(&four, b->seen + (r + i) * KEY_BLOCK + c, sizeof four);
                any |= four;
            }
            if (!any) continue;
            if (r + SIDE <= rows)
                backward_pairs(b, given, stride, r, c, SIDE, direct);
            else
                for (int64_t i = r; i < rows; i++)
                    backward_pairs(b, given, stride, i, c, 1, direct);
        }
}
TARGET static void backward_raised(Block *b, const float *given, int64_t stride, int64_t rows,
                                   int64_t columns) {
    backward_block(b, given, stride, rows, columns, 0);
}
TARGET static void backward_direct(Block *b, const float *given, int64_t stride, int64_t rows,
                                   int64_t columns) {
    backward_block(b, given, stride, rows, columns, 1);
}

/* to[r,i] += from[r,i], times -2 weight[i] = 4w[i] when the packed weight (-2w) is given */
TARGET static void unpack(const float *from, int64_t stride, const float *weight, int64_t rows,
                          int64_t n, float *to) {
    for (int64_t r = 0; r < rows; r++, from += stride, to += n)
        for (int64_t i = 0; i < n; i++) to[i] += weight ? -2.0f * weight[i] * from[i] : from[i];
}

TARGET static int pack_rows(const Additive *p, Block *b, int64_t batch, int64_t query,
                            int64_t rows) {
    const int64_t first = batch * p->queries + query, column = p->gradient_column;
    const float *from = p->output_gradient + batch * p->gradient_batch + query * p->gradient_row;
    const float *output = p->output + first * p->width;
    float odd = 0.0f;
    for (int64_t r = 0; r < rows; r++, from += p->gradient_row, output += p->width) {
        float *to = b->output_gradient + r * b->width, delta = 0.0f;
        if (column == 1)
            memcpy(to, from, (size_t)p->width * sizeof(float));
        else
            for (int64_t i = 0; i < p->width; i++) to[i] = from[i * column];
        memset(to + p->width, 0, (size_t)(b->width - p->width) * sizeof(float));
        for (int64_t i = 0; i < p->width; i++) delta += to[i] * output[i];
        for (int64_t i = 0; i < b->width; i += LANES) {
            Vector v = load(to + i) - load(to + i);
            for (int l = 0; l < LANES; l++) odd += v[l];
        }
        b->delta[r] = delta;
        b->log_sum[r] = p->log_sum[first + r];
    }
    return odd == 0.0f;
}

TARGET static void backward(const Additive *p, const Tile *t, float *weight_gradient,
                            float *scratch) {
    Block b = {.hidden = padded(p->hidden), .width = padded(p->width)};
    float **parts[] = {&b.query, &b.query_gradient, &b.key, &b.key_gradient, &b.weight,
                       &b.weight_gradient, &b.kept, &b.output_gradient, &b.value,
                       &b.value_gradient, &b.weights};
    const int64_t sizes[] = {QUERY_BLOCK * b.hidden, QUERY_BLOCK * b.hidden, KEY_BLOCK * b.hidden,
                             KEY_BLOCK * b.hidden, b.hidden, b.hidden, PAIRS * b.hidden,
                             QUERY_BLOCK * b.width, KEY_BLOCK * b.width, KEY_BLOCK * b.width,
                             QUERY_BLOCK * KEY_BLOCK};
    for (int i = 0; i < 11; i++) *parts[i] = scratch, scratch += sizes[i];
    b.shift = pack_weight(p, b.weight);
    memset(b.weight_gradient, 0, (size_t)b.hidden * sizeof(float));

    for (int64_t q = t->query_from; q < t->query_to; q += QUERY_BLOCK) {
        const int64_t rows = least(QUERY_BLOCK, t->query_to - q), first = t->batch * p->queries + q;
        const float *queries = p->query + first * p->hidden;
        const float query_top = largest(queries, rows * p->hidden);
        int packed_direct = -1, calm = 1;
        int64_t from, to;
        key_range(p, t, q, rows, &from, &to);
        if (from >= to) continue;
        if (!p->scores_gradient) calm = pack_rows(p, &b, t->batch, q, rows);
        memset(b.query_gradient, 0, (size_t)(rows * b.hidden) * sizeof(float));
        for (int64_t k = from; k < to; k += KEY_BLOCK) {
            const int64_t columns = least(KEY_BLOCK, to - k), row = t->batch * p->keys + k;
            if (!look(p, t->batch, q, rows, k, columns, b.seen)) continue;
            const float *keys = p->key + row * p->hidden;
            int direct = rows < FEW_QUERIES || query_top + largest(keys, columns * p->hidden) > SAFE_SUM;
            if (direct != packed_direct) pack_units(queries, rows, p->hidden, b.query, direct);
            packed_direct = direct;
            pack_units(keys, columns, p->hidden, b.key, direct);
            memset(b.key_gradient, 0, (size_t)(KEY_BLOCK * b.hidden) * sizeof(float));
            const float *given = 0;
            if (p->scores_gradient) {
                given = p->scores_gradient + first * p->keys + k;
            } else {
                pack_plain(p->value + row * p->width, columns, p->width, b.value, b.width);
                memset(b.weights, 0, QUERY_BLOCK * KEY_BLOCK * sizeof(float));
                memset(b.value_gradient, 0, (size_t)(KEY_BLOCK * b.width) * sizeof(float));
            }
            (direct ? backward_direct : backward_raised)(&b, given, p->keys, rows, columns);
            unpack(b.key_gradient, b.hidden, b.weight, columns, p->hidden,
                   p->key_gradient + row * p->hidden);
            if (given) continue;
            accumulate_rows(b.value_gradient, b.weights, 1, KEY_BLOCK, b.output_gradient, rows,
                            b.width, columns, !calm);
            unpack(b.value_gradient, b.width, 0, columns, p->width,
                   p->value_gradient + row * p->width);
        }
        unpack(b.query_gradient, b.hidden, b.weight, rows, p->hidden,
               p->query_gradient + first * p->hidden);
    }
    for (int64_t i = 0; i < p->hidden; i++)
        weight_gradient[i] += b.gradient_sum - 2.0f * b.weight_gradient[i];
}
