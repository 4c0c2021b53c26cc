/* Products with packed weights; included by operations.h.
 *
 * A tile is TILE_ROWS rows of activations times TILE_VECTORS vectors of outputs, held in registers
 * while it goes through all inputs. Every output is summed in the same order whatever the number of
 * rows, so that the result of a row does not depend on the batch. */
enum { TILE = LANES * TILE_VECTORS };

typedef struct {
    const Product *product;
    int64_t activation;
    const float *residual;  /* null: none */
    float *output;
    int64_t stride;         /* between rows of the output and of the residual */
} Epilogue;

/* Bias, activation and residual of a tile, and its way to memory. */
TARGET __attribute__((noinline)) static void finish(const Epilogue *e, const float *tile, int64_t row,
                                                    int64_t column, int64_t rows) {
    for (int64_t r = row; r < row + rows; r++)
        for (int64_t c = column; c < column + TILE; c += LANES, tile += LANES) {
            const int64_t left = e->product->outputs - c;
            float *to = e->output + r * e->stride + c;
            const float *residual = e->residual ? e->residual + r * e->stride + c : 0;
            if (left <= 0) continue;
            Vector v = activate(load(tile) + load(e->product->bias + c), e->activation);
            if (left >= LANES) {
                if (residual) v += load(residual);
                store(to, v);
            } else {
                if (residual) v += load_some(residual, left, 0.0f);
                store_some(to, v, left);
            }
        }
}

INLINE void float_tile(const float *x, int64_t stride, const float *panel, int64_t inputs,
                       const Epilogue *e, int64_t row, int64_t column, const int rows) {
    Vector total[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < TILE_VECTORS; c++) total[r][c] = all(0.0f);
    for (int64_t k = 0; k < inputs; k++, panel += PANEL) {
        Vector w[TILE_VECTORS];
#pragma GCC unroll 8
        for (int c = 0; c < TILE_VECTORS; c++) w[c] = load(panel + c * LANES);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            Vector a = all(x[r * stride + k]);
#pragma GCC unroll 8
            for (int c = 0; c < TILE_VECTORS; c++) total[r][c] = multiply_add(a, w[c], total[r][c]);
        }
    }
    float tile[TILE_ROWS * TILE] __attribute__((aligned(64)));
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < TILE_VECTORS; c++) store(tile + r * TILE + c * LANES, total[r][c]);
    finish(e, tile, row, column, rows);
}

INLINE void byte_tile(const uint8_t *x, int64_t stride, const float *row_scale,
                      const int8_t *panel, int64_t fours, const Epilogue *e, int64_t row,
                      int64_t column, const int rows) {
    Whole total[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < TILE_VECTORS; c++) total[r][c] = (Whole){0};
    for (int64_t k = 0; k < fours; k++, panel += 4 * PANEL) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            uint32_t a;
            memcpy(&a, x + r * stride + 4 * k, 4);
#pragma GCC unroll 8
            for (int c = 0; c < TILE_VECTORS; c++)
                total[r][c] = dot_four(total[r][c], a, panel + 4 * c * LANES);
        }
    }
    float tile[TILE_ROWS * TILE] __attribute__((aligned(64)));
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < TILE_VECTORS; c++) {
            const int64_t first = column + c * LANES;
            Whole exact = total[r][c] - *(const LooseWhole *)(e->product->shift + first);
            Vector scale = load(e->product->scale + first) * row_scale[r];
            store(tile + r * TILE + c * LANES, to_float(exact) * scale);
        }
    finish(e, tile, row, column, rows);
}

/* The sizes of a tile are constants of the compiler, so that it stays in registers. */
#define BY_ROWS(TILE_OF)                 \
    switch (rows - row) {                \
        case 1: TILE_OF(1); break;       \
        case 2: TILE_OF(2); break;       \
        case 3: TILE_OF(3); break;       \
        case 4: TILE_OF(4); break;       \
        case 5: TILE_OF(TILE_ROWS < 5 ? TILE_ROWS : 5); break; \
        default: TILE_OF(TILE_ROWS);     \
    }

TARGET static void float_product(const Product *p, const float *x, int64_t stride, int64_t rows,
                                 const Epilogue *e) {
    for (int64_t column = 0; column < p->outputs; column += TILE) {
        const float *panel = p->weights + column / PANEL * PANEL * p->inputs + column % PANEL;
        for (int64_t row = 0; row < rows; row += TILE_ROWS) {
#define ONE(n) float_tile(x + row * stride, stride, panel, p->inputs, e, row, column, n)
            BY_ROWS(ONE)
#undef ONE
        }
    }
}

INLINE int64_t filled(int64_t n, int64_t by) { return (n + by - 1) / by * by; }

/* One row in bytes: x = scale * (byte - 128), with the largest |x| at 127. Adding 3 * 2^22 rounds to
 * the nearest integer, half to even, and leaves it in the low bits. */
TARGET static float quantize(const float *x, int64_t n, uint8_t *bytes) {
    Vector top = all(0.0f);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) top = larger(larger(load(x + i), -load(x + i)), top);
    float size = 0.0f;
    for (int lane = 0; lane < LANES; lane++) size = top[lane] > size ? top[lane] : size;
    for (; i < n; i++) size = fabsf(x[i]) > size ? fabsf(x[i]) : size;
    const float factor = size > 0.0f ? 127.0f / size : 0.0f;
    for (i = 0; i + LANES <= n; i += LANES) {
        Vector scaled = load(x + i) * factor;
        Whole whole = (Whole)(scaled + 12582912.0f);
        for (int lane = 0; lane < LANES; lane++) bytes[i + lane] = (uint8_t)(whole[lane] + 128);
    }
    for (; i < n; i++) {
        float scaled = x[i] * factor;
        float shifted = scaled + 12582912.0f;
        int32_t whole;
        memcpy(&whole, &shifted, 4);
        bytes[i] = (uint8_t)(whole + 128);
    }
    for (; i % 4; i++) bytes[i] = 128;
    return size / 127.0f;
}

TARGET static void byte_product(const Product *p, const float *x, int64_t stride, int64_t rows,
                                const Epilogue *e, float *scratch) {
    const int64_t width = filled(p->inputs, 4);
    uint8_t *bytes = (uint8_t *)(scratch + filled(rows, 16));
    for (int64_t row = 0; row < rows; row++)
        scratch[row] = quantize(x + row * stride, p->inputs, bytes + row * width);
    for (int64_t column = 0; column < p->outputs; column += TILE) {
        const int8_t *panel = p->bytes + column / PANEL * PANEL * width + 4 * (column % PANEL);
        for (int64_t row = 0; row < rows; row += TILE_ROWS) {
#define ONE(n) \
    byte_tile(bytes + row * width, width, scratch + row, panel, width / 4, e, row, column, n)
            BY_ROWS(ONE)
#undef ONE
        }
    }
}

INLINE size_t product_floats(const Product *p, int64_t rows) {
    if (p->weights) return 0;
    return (size_t)(filled(rows, 16) + filled(rows * filled(p->inputs, 4), 4) / 4);
}

TARGET static void multiply(const Product *p, const float *x, int64_t stride, int64_t rows,
                            const Epilogue *e, float *scratch) {
    if (p->weights)
        float_product(p, x, stride, rows, e);
    else
        byte_product(p, x, stride, rows, e, scratch);
}
