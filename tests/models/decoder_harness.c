/* Runs the native decoder over buffers of exact size at odd sizes, for builds with sanitizers. */
#include <stdio.h>
#include <stdlib.h>

#include "search.h"

int decoder_force(int level);
int decoder_step(const Plan *plan, const Call *call, int threads);
int decoder_search(const Plan *plan, const Search *search, int threads);
int decoder_sequences(const Plan *plans, const Sequences *records, int64_t directions, int64_t rows,
                      int threads);
int decoder_product(const Product *p, const float *x, const float *residual, float *y, int64_t rows,
                    int64_t activation, int threads);

static void *blocks[3000];
static int used;

static void *bytes_of(size_t n) { return blocks[used++] = malloc(n ? n : 1); }

static float *floats(int64_t n) {
    static uint32_t seed = 1;
    float *made = bytes_of((size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        made[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
    return made;
}

static int64_t *whole(int64_t n, int64_t below) {
    int64_t *made = bytes_of((size_t)n * sizeof(int64_t));
    for (int64_t i = 0; i < n; i++) made[i] = i % below;
    return made;
}

static Product product(int64_t inputs, int64_t outputs, int quantized) {
    const int64_t filled = (outputs + PANEL - 1) / PANEL * PANEL, fours = (inputs + 3) / 4 * 4;
    Product p = {inputs, outputs, 0, 0, 0, 0, floats(filled)};
    if (quantized) {
        int8_t *weights = bytes_of((size_t)(filled * fours));
        int32_t *shift = bytes_of((size_t)filled * sizeof(int32_t));
        for (int64_t i = 0; i < filled * fours; i++) weights[i] = (int8_t)(i % 255 - 127);
        for (int64_t i = 0; i < filled; i++) shift[i] = 128;
        p.bytes = weights, p.shift = shift, p.scale = floats(filled);
    } else {
        p.weights = floats(filled * inputs);
    }
    return p;
}

enum { WIDTH = 22, HEADS = 2, WORDS_COUNT = 71, ROWS = 7, POSITION = 3, KEYS = 5, SENTENCES = 2 };

static int take_step(int quantized, int threads, const Search *search) {
    const int64_t w = WIDTH, state = 2 * w;
    enum { FREE = 48 }; /* the first aligned column behind the state */
    const float *gain = floats(w), *shift = floats(w), *table = floats(WORDS_COUNT * w);
    Operation operations[] = {
        {.kind = EMBED, .output = FREE, .width = w, .first = table, .scale = 2.0f},
        {.kind = NORM, .input = FREE, .output = FREE, .width = w, .first = gain, .second = shift,
         .epsilon = 1e-5f},
        {.kind = PRODUCT, .input = FREE, .output = 160, .other = -1,
         .product = product(w, 3 * w, quantized)},
        {.kind = SELF_ATTENTION, .input = 160, .output = 80, .width = w, .heads = HEADS,
         .value_width = w, .scale = 0.3f},
        {.kind = PRODUCT, .input = 80, .output = FREE, .other = FREE, .activation = GELU,
         .product = product(w, w, quantized)},
        {.kind = SOURCE_ATTENTION, .input = FREE, .output = 80, .width = w, .heads = HEADS, .value = w,
         .value_width = w, .scale = 0.3f},
        {.kind = ADDITIVE_ATTENTION, .input = FREE, .output = 80, .width = w, .value = w,
         .value_width = w, .first = gain},
        {.kind = PRODUCT, .input = 80, .output = 160, .other = -1, .activation = TANH,
         .product = product(w, 4 * w, quantized)},
        {.kind = LSTM, .input = 160, .state = 0, .width = w},
        {.kind = GRU, .input = 160, .other = 160, .state = 0, .width = w},
        {.kind = COPY, .input = 0, .output = FREE, .width = w},
        {.kind = WORDS, .input = FREE, .product = product(w, WORDS_COUNT, quantized)},
    };
    const Plan plan = {operations, sizeof operations / sizeof *operations, 256, state, 2 * w, 2 * w,
                       1, HEADS, WORDS_COUNT};
    if (search) return decoder_search(&plan, search, threads);
    const float *earlier[POSITION];
    for (int i = 0; i < POSITION; i++) earlier[i] = floats(ROWS * 2 * w);
    int64_t *lengths = whole(SENTENCES, SENTENCES);
    lengths[1] = KEYS; /* the other one is empty */
    uint8_t *allowed = bytes_of(ROWS * KEYS);
    for (int i = 0; i < ROWS * KEYS; i++) allowed[i] = i % 3 != 0;
    const Call call = {ROWS, POSITION, whole(ROWS, WORDS_COUNT), gain, whole(ROWS, SENTENCES),
                       floats(SENTENCES * KEYS * 2 * w), lengths, KEYS, allowed, earlier,
                       whole(ROWS * POSITION, ROWS), floats(ROWS * 2 * w), floats(ROWS * state),
                       floats(ROWS * state), floats(ROWS * HEADS * (POSITION + 1)),
                       floats(ROWS * HEADS * KEYS), floats(ROWS * WORDS_COUNT)};
    return decoder_step(&plan, &call, threads);
}

/* Beams of several widths over two sentences; the plan is that of a step. */
static int search(int quantized, int threads, int64_t width, int full) {
    enum { LONGEST = 6 };
    const int64_t w = WIDTH, nbest = width, found = SENTENCES * nbest;
    int64_t *limits = whole(SENTENCES, 1), *lengths = whole(SENTENCES, SENTENCES);
    limits[0] = LONGEST, limits[1] = 2, lengths[1] = KEYS;
    float *penalties = floats(LONGEST + 1);
    for (int i = 0; i <= LONGEST; i++) penalties[i] = (float)(i + 1);
    const Search s = {
        .sentences = SENTENCES, .width = width, .nbest = nbest, .full = full, .longest = LONGEST,
        .enough_ends = -1, .eos = 5, .bos = whole(SENTENCES, WORDS_COUNT), .limits = limits,
        .penalties = penalties, .forbidden = whole(3, 3), .forbidden_count = 3,
        .places = floats(LONGEST * w), .place_width = w, .source = floats(SENTENCES * KEYS * 2 * w),
        .lengths = lengths, .keys = KEYS, .state = floats(SENTENCES * 2 * w),
        .lengths_found = whole(found, 1), .tokens = whole(found * LONGEST, 1),
        .token_log_probabilities = floats(found * LONGEST), .log_probabilities = floats(found),
        .normalized = floats(found), .finished = bytes_of((size_t)found),
        .own_weights = full ? 0 : floats(found * HEADS * LONGEST * LONGEST),
        .source_weights = full ? 0 : floats(found * HEADS * LONGEST * KEYS),
    };
    return take_step(quantized, threads, &s) || s.lengths_found[0] < 1;
}

/* Three sequences of 4, 2 and 0 words, in both directions. */
static int read_sequences(int quantized, int threads) {
    enum { HIDDEN = 19, TIME = 4, COUNT = 3, TOTAL = 6 };
    const int64_t gates = 2 * HIDDEN, of_state = gates + 4 * HIDDEN;
    Operation operations[] = {
        {.kind = PRODUCT, .input = 0, .output = of_state, .other = gates,
         .product = product(HIDDEN, 4 * HIDDEN, quantized)},
        {.kind = GRU, .input = gates, .other = of_state, .state = 0, .width = HIDDEN},
        {.kind = LSTM, .input = of_state, .state = 0, .width = HIDDEN},
    };
    const Plan plan = {.operations = operations, .count = 3, .columns = of_state + 4 * HIDDEN,
                       .state_columns = gates};
    const Plan plans[] = {plan, plan};
    int64_t *active = whole(TIME, TIME), *first = whole(TIME, TIME);
    active[0] = active[1] = 2, active[2] = active[3] = 1;
    first[0] = 0, first[1] = 2, first[2] = 4, first[3] = 5;
    Sequences records[2];
    for (int direction = 0; direction < 2; direction++)
        records[direction] = (Sequences){
            TIME, direction, active, first, floats(TOTAL * 4 * HIDDEN), gates, 4 * HIDDEN,
            4 * HIDDEN, floats(TOTAL * HIDDEN), HIDDEN, HIDDEN, floats(COUNT * gates)};
    return decoder_sequences(plans, records, 2, COUNT, threads);
}

int main(void) {
    const int64_t sizes[][3] = {{1, 1, 1}, {5, 17, 67}, {13, 64, 64}, {9, 3, 130}};
    for (int level = 0; level < 4; level++) {
        if (decoder_force(level)) continue; /* this machine has fewer instruction sets */
        for (int quantized = 0; quantized < 2; quantized++) {
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                const int64_t rows = sizes[i][0], inputs = sizes[i][1], outputs = sizes[i][2];
                const Product p = product(inputs, outputs, quantized);
                if (decoder_product(&p, floats(rows * inputs), floats(rows * outputs),
                                    floats(rows * outputs), rows, GELU, 1))
                    return 1;
            }
            if (take_step(quantized, 1, 0) || read_sequences(quantized, 1)) return 1;
            if (search(quantized, 1, 1, 0) || search(quantized, 1, 3, 0)) return 1;
            if (search(quantized, 1, 3, 1) || search(quantized, 1, WORDS_COUNT, 0)) return 1;
        }
        while (used) free(blocks[--used]);
    }
    puts("done");
    return 0;
}
