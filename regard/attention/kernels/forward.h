/* Forward, for up to QUERY_BLOCK queries of one batch element: key block after key block, with a
 * running maximum and a running sum (Milakov & Gimelshein 2018, https://arxiv.org/abs/1805.02867;
 * Dao et al. 2022, https://arxiv.org/abs/2205.14135). Included by tile.h. */

TARGET static size_t forward_floats(const Additive *p) {
    int64_t hidden = padded(p->hidden), width = padded(p->width);
    return (size_t)((QUERY_BLOCK + KEY_BLOCK + 1) * hidden + (QUERY_BLOCK + KEY_BLOCK) * width +
                    QUERY_BLOCK * KEY_BLOCK);
}

INLINE void score_block(const float *query, const float *key, const float *weight, int64_t stride,
                        int64_t rows, const uint8_t *seen, int direct, float *scores) {
    for (int64_t r = 0; r < rows; r++)
        for (int c = 0; c < KEY_BLOCK; c += SIDE) {
            const uint8_t *look = seen + r * KEY_BLOCK + c;
            const float *q = query + r * stride, *k = key + c * stride;
            float *s = scores + r * KEY_BLOCK + c;
            if (look[0] & look[1] & look[2] & look[3])
                unit_sums(q, k, weight, stride, SIDE, direct, s, 0);
            else
                for (int i = 0; i < SIDE; i++)
                    if (look[i])
                        unit_sums(q, k + i * stride, weight, stride, 1, direct, s + i, 0);
        }
}
TARGET static void score_raised(const float *query, const float *key, const float *weight,
                                int64_t stride, int64_t rows, const uint8_t *seen, float *scores) {
    score_block(query, key, weight, stride, rows, seen, 0, scores);
}
TARGET static void score_direct(const float *query, const float *key, const float *weight,
                                int64_t stride, int64_t rows, const uint8_t *seen, float *scores) {
    score_block(query, key, weight, stride, rows, seen, 1, scores);
}

/* Turns a row of scores into unnormalised weights, and rescales what was summed before. */
TARGET static void soften(float *scores, const uint8_t *seen, float shift, float *top,
                          float *total, float *sum, int64_t width) {
    float highest = -INFINITY;
    int any = 0;
    for (int c = 0; c < KEY_BLOCK; c++) {
        float s = seen[c] ? scores[c] + shift : -INFINITY;
        highest = s > highest ? s : highest;
        scores[c] = s;
        any |= seen[c];
    }
    if (!any) {
        memset(scores, 0, KEY_BLOCK * sizeof(float));
        return;
    }
    if (highest > *top) {
        float scale = expf(*top - highest);
        *top = highest;
        *total *= scale;
        for (int64_t i = 0; i < width; i += LANES) store(sum + i, scale * load(sum + i));
    }
    Vector part = all(0.0f);
    for (int c = 0; c < KEY_BLOCK; c += LANES) {
        Vector weights = raise(0.5f * (load(scores + c) - *top), 44.0f);
        part += weights;
        store(scores + c, weights);
    }
    for (int l = 0; l < LANES; l++) *total += part[l];
}

TARGET static void forward(const Additive *p, const Tile *t, float *scratch) {
    const int64_t hidden = padded(p->hidden), width = padded(p->width);
    const int64_t rows = t->query_to - t->query_from, first = t->batch * p->queries + t->query_from;
    float *query = scratch, *key = query + QUERY_BLOCK * hidden, *weight = key + KEY_BLOCK * hidden;
    float *value = weight + hidden, *sum = value + KEY_BLOCK * width;
    float *scores = sum + QUERY_BLOCK * width;
    float top[QUERY_BLOCK], total[QUERY_BLOCK];
    uint8_t seen[QUERY_BLOCK * KEY_BLOCK];

    const float *queries = p->query + first * p->hidden;
    const float shift = pack_weight(p, weight), query_top = largest(queries, rows * p->hidden);
    int packed_direct = -1;
    memset(sum, 0, (size_t)(rows * width) * sizeof(float));
    memset(scores, 0, (size_t)rows * KEY_BLOCK * sizeof(float));
    for (int64_t r = 0; r < rows; r++) top[r] = -INFINITY, total[r] = 0.0f;

    int64_t from, to;
    key_range(p, t, t->query_from, rows, &from, &to);
    for (int64_t k = from; k < to; k += KEY_BLOCK) {
        const int64_t columns = least(KEY_BLOCK, to - k), row = t->batch * p->keys + k;
        if (!look(p, t->batch, t->query_from, rows, k, columns, seen)) continue;
        const float *keys = p->key + row * p->hidden;
        int direct = rows < FEW_QUERIES || query_top + largest(keys, columns * p->hidden) > SAFE_SUM;
        if (direct != packed_direct) pack_units(queries, rows, p->hidden, query, direct);
        packed_direct = direct;
        pack_units(keys, columns, p->hidden, key, direct);
        (direct ? score_direct : score_raised)(query, key, weight, hidden, rows, seen, scores);
        if (p->scores) {
            for (int64_t r = 0; r < rows; r++)
                for (int64_t c = 0; c < columns; c++)
                    p->scores[(first + r) * p->keys + k + c] = scores[r * KEY_BLOCK + c] + shift;
            continue;
        }
        int finite = pack_plain(p->value + row * p->width, columns, p->width, value, width);
        for (int64_t r = 0; r < rows; r++)
            soften(scores + r * KEY_BLOCK, seen + r * KEY_BLOCK, shift, top + r, total + r,
                   sum + r * width, width);
        accumulate_rows(sum, scores, KEY_BLOCK, 1, value, columns, width, rows, !finite);
    }
    if (p->scores) return;
    for (int64_t r = 0; r < rows; r++) {
        float *output = p->output + (first + r) * p->width;
        const float scale = total[r] == 0.0f ? 0.0f : 1.0f / total[r];
        for (int64_t i = 0; i < p->width; i++) output[i] = scale * sum[r * width + i];
        p->log_sum[first + r] = top[r] + logf(total[r]);
    }
}
