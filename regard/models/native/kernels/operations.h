/* The operations of a plan; included once per instruction set, after TARGET, OPERATIONS, the types
 * and the primitives of its vectors are defined. */
#include "vector_math.h"
#include "products.h"

typedef struct {
    const Plan *plan;
    const Call *call;
    int64_t from, rows;  /* the rows of the call that this thread computes */
    float *workspace;    /* [rows, columns] */
    float *scratch;
} Work;

INLINE float *cells(const Work *w, int64_t row, int64_t column) {
    return w->workspace + row * w->plan->columns + column;
}

TARGET static void embed(const Operation *o, const Work *w) {
    const float *place = w->call->place;
    for (int64_t row = 0; row < w->rows; row++) {
        const float *vector = o->first + w->call->tokens[w->from + row] * o->width;
        float *to = cells(w, row, o->output);
        for (int64_t i = 0; i < o->width; i++) {
            float scaled = vector[i] * o->scale;
            to[i] = place ? scaled + place[i] : scaled;
        }
    }
}

TARGET static void normalize(const Operation *o, const Work *w) {
    const int64_t n = o->width, whole = n / LANES * LANES;
    for (int64_t row = 0; row < w->rows; row++) {
        const float *x = cells(w, row, o->input);
        float *y = cells(w, row, o->output);
        Vector total = all(0.0f), squares = total;
        float rest = 0.0f, rest_squares = 0.0f;
        for (int64_t i = 0; i < whole; i += LANES) total += load(x + i);
        for (int64_t i = whole; i < n; i++) rest += x[i];
        const float mean = (sum(total) + rest) / (float)n;
        for (int64_t i = 0; i < whole; i += LANES) {
            Vector centred = load(x + i) - mean;
            squares = multiply_add(centred, centred, squares);
        }
        for (int64_t i = whole; i < n; i++) rest_squares += (x[i] - mean) * (x[i] - mean);
        const float variance = (sum(squares) + rest_squares) / (float)n;
        const float inverse = 1.0f / sqrtf(variance + o->epsilon);
        for (int64_t i = 0; i < whole; i += LANES) {
            Vector unit = (load(x + i) - mean) * inverse;
            store(y + i, multiply_add(unit, load(o->first + i), load(o->second + i)));
        }
        for (int64_t i = whole; i < n; i++)
            y[i] = (x[i] - mean) * inverse * o->first[i] + o->second[i];
    }
}

TARGET static void apply_product(const Operation *o, const Work *w) {
    const Epilogue e = {&o->product, o->activation, o->other < 0 ? 0 : cells(w, 0, o->other),
                        cells(w, 0, o->output), w->plan->columns};
    multiply(&o->product, cells(w, 0, o->input), w->plan->columns, w->rows, &e, w->scratch);
}

/* y = sum_i weights[i] values[i], n of them. */
TARGET static void mix(const float *weights, const float *const *values, int64_t offset, int64_t n,
                       float *y, int64_t width) {
    int64_t c = 0;
    for (; c + 4 * LANES <= width; c += 4 * LANES) {
        Vector total[4] = {all(0.0f), all(0.0f), all(0.0f), all(0.0f)};
        for (int64_t i = 0; i < n; i++) {
            const float *v = values[i] + offset + c;
            const Vector a = all(weights[i]);
            for (int j = 0; j < 4; j++) total[j] = multiply_add(a, load(v + j * LANES), total[j]);
        }
        for (int j = 0; j < 4; j++) store(y + c + j * LANES, total[j]);
    }
    for (; c + LANES <= width; c += LANES) {
        Vector total = all(0.0f);
        for (int64_t i = 0; i < n; i++)
            total = multiply_add(all(weights[i]), load(values[i] + offset + c), total);
        store(y + c, total);
    }
    for (; c < width; c++) {
        float total = 0.0f;
        for (int64_t i = 0; i < n; i++) total += weights[i] * values[i][offset + c];
        y[c] = total;
    }
}

/* One query per head over `n` keys; the weights of head h go to looks[h * stride + places[i]]. */
TARGET static void attend(const Operation *o, const float *query, const float *const *memory,
                          int64_t key, int64_t value, int64_t n, float *scores, float *y,
                          float *looks, int64_t stride, const int64_t *places) {
    const int64_t size = o->width / o->heads, value_size = o->value_width / o->heads;
    if (looks) memset(looks, 0, (size_t)(stride * o->heads) * sizeof(float));
    for (int64_t head = 0; head < o->heads; head++) {
        const int64_t c = head * size;
        for (int64_t i = 0; i < n; i++)
            scores[i] = dot(query + c, memory[i] + key + c, size) * o->scale;
        if (n) softmax(scores, n);
        mix(scores, memory, value + head * value_size, n, y + head * value_size, value_size);
        if (looks)
            for (int64_t i = 0; i < n; i++) looks[head * stride + places[i]] = scores[i];
    }
}

/* The columns of scratch memory that attention needs: pointers, places and scores. */
INLINE int64_t attended(const Call *call) {
    return call->position + 1 > call->keys ? call->position + 1 : call->keys;
}

TARGET static void attend_to_self(const Operation *o, const Work *w) {
    const Call *call = w->call;
    const int64_t n = call->position + 1, columns = w->plan->block_columns;
    const int64_t key = 2 * o->layer * o->width, value = key + o->width;
    const float **memory = (const float **)w->scratch;
    int64_t *places = (int64_t *)(memory + attended(call));
    float *scores = (float *)(places + attended(call));
    for (int64_t i = 0; i < n; i++) places[i] = i;
    for (int64_t row = 0; row < w->rows; row++) {
        const int64_t at = w->from + row;
        const float *query = cells(w, row, o->input);
        float *own = call->block + at * columns;
        memcpy(own + key, query + o->width, 2 * (size_t)o->width * sizeof(float));
        for (int64_t i = 0; i < call->position; i++)
            memory[i] = call->blocks[i] + call->ancestry[at * call->position + i] * columns;
        memory[n - 1] = own;
        float *looks = call->own_weights;
        if (looks) looks += (o->layer * call->rows + at) * o->heads * n;
        attend(o, query, memory, key, value, n, scores, cells(w, row, o->output), looks, n, places);
    }
}

/* The source positions that a row may attend to. */
TARGET static int64_t visible(const Work *w, int64_t row, const float **memory, int64_t *places) {
    const Call *call = w->call;
    const int64_t at = w->from + row, sentence = call->sentence[at];
    const float *source = call->source + sentence * call->keys * w->plan->source_columns;
    int64_t n = 0;
    for (int64_t k = 0; k < call->lengths[sentence]; k++) {
        if (call->allowed && !call->allowed[at * call->keys + k]) continue;
        memory[n] = source + k * w->plan->source_columns;
        places[n++] = k;
    }
    return n;
}

TARGET static void attend_to_source(const Operation *o, const Work *w) {
    const Call *call = w->call;
    const float **memory = (const float **)w->scratch;
    int64_t *places = (int64_t *)(memory + attended(call));
    float *scores = (float *)(places + attended(call));
    for (int64_t row = 0; row < w->rows; row++) {
        const int64_t n = visible(w, row, memory, places);
        float *looks = call->source_weights;
        if (looks) looks += (o->layer * call->rows + w->from + row) * o->heads * call->keys;
        attend(o, cells(w, row, o->input), memory, o->key, o->value, n, scores,
               cells(w, row, o->output), looks, call->keys, places);
    }
}

/* score = sum_a weight[a] tanh(query[a] + key[a]), then as above with a single head. */
TARGET static void attend_additively(const Operation *o, const Work *w) {
    const Call *call = w->call;
    const float **memory = (const float **)w->scratch;
    int64_t *places = (int64_t *)(memory + attended(call));
    float *scores = (float *)(places + attended(call));
    const int64_t whole = o->width / LANES * LANES;
    for (int64_t row = 0; row < w->rows; row++) {
        const int64_t n = visible(w, row, memory, places);
        const float *query = cells(w, row, o->input);
        for (int64_t i = 0; i < n; i++) {
            const float *key = memory[i] + o->key;
            Vector total = all(0.0f);
            for (int64_t a = 0; a < whole; a += LANES)
                total = multiply_add(load(o->first + a),
                                     hyperbolic_tangent(load(query + a) + load(key + a)), total);
            float score = sum(total);
            for (int64_t a = whole; a < o->width; a++) score += o->first[a] * tanhf(query[a] + key[a]);
            scores[i] = score;
        }
        if (n) softmax(scores, n);
        mix(scores, memory, o->value, n, cells(w, row, o->output), o->value_width);
        float *looks = call->source_weights;
        if (!looks) continue;
        looks += (w->from + row) * call->keys;
        memset(looks, 0, (size_t)call->keys * sizeof(float));
        for (int64_t i = 0; i < n; i++) looks[places[i]] = scores[i];
    }
}

/* r, z, n of the input and of the hidden vector: h = (1 - z) tanh(n + r n') + z h. */
INLINE Vector gru_lanes(const float *in, const float *of, int64_t width, Vector hidden, int64_t some) {
#define PART(p, i) (some == LANES ? load(p + (i) * width) : load_some(p + (i) * width, some, 0.0f))
    Vector r = sigmoid(PART(in, 0) + PART(of, 0));
    Vector z = sigmoid(PART(in, 1) + PART(of, 1));
    Vector n = hyperbolic_tangent(multiply_add(r, PART(of, 2), PART(in, 2)));
    return multiply_add(z, hidden - n, n);
}

TARGET static void step_gru(const Operation *o, const Work *w) {
    for (int64_t row = 0; row < w->rows; row++) {
        const float *in = cells(w, row, o->input), *of = cells(w, row, o->other);
        float *hidden = cells(w, row, o->state);
        int64_t i = 0;
        for (; i + LANES <= o->width; i += LANES)
            store(hidden + i, gru_lanes(in + i, of + i, o->width, load(hidden + i), LANES));
        const int64_t left = o->width - i;
        if (left) {
            Vector h = load_some(hidden + i, left, 0.0f);
            store_some(hidden + i, gru_lanes(in + i, of + i, o->width, h, left), left);
        }
    }
}

/* Input, forget, cell and output gate in one sum: c = f c + i tanh(g), h = o tanh(c). */
TARGET static void step_lstm(const Operation *o, const Work *w) {
    const int64_t width = o->width;
    for (int64_t row = 0; row < w->rows; row++) {
        const float *in = cells(w, row, o->input);
        float *hidden = cells(w, row, o->state), *memory = hidden + width;
        for (int64_t i = 0; i < width; i += LANES) {
            const int64_t some = width - i < LANES ? width - i : LANES;
            const float *at = in + i;
            Vector c = some == LANES ? load(memory + i) : load_some(memory + i, some, 0.0f);
            Vector taken = sigmoid(PART(at, 0)) * hyperbolic_tangent(PART(at, 2));
            c = multiply_add(sigmoid(PART(at, 1)), c, taken);
            Vector h = sigmoid(PART(at, 3)) * hyperbolic_tangent(c);
            store_some(memory + i, c, some);
            store_some(hidden + i, h, some);
        }
    }
}
#undef PART

TARGET static void copy(const Operation *o, const Work *w) {
    for (int64_t row = 0; row < w->rows; row++)
        memcpy(cells(w, row, o->output), cells(w, row, o->input), (size_t)o->width * sizeof(float));
}

TARGET static void predict_words(const Operation *o, const Work *w) {
    float *to = w->call->log_probabilities + w->from * w->plan->words;
    const Epilogue e = {&o->product, LINEAR, 0, to, w->plan->words};
    multiply(&o->product, cells(w, 0, o->input), w->plan->columns, w->rows, &e, w->scratch);
    for (int64_t row = 0; row < w->rows; row++)
        log_softmax(to + row * w->plan->words, w->plan->words);
}

/* Runs the plan over the workspace. */
TARGET static void run(const Work *w) {
    for (int64_t i = 0; i < w->plan->count; i++) {
        const Operation *o = w->plan->operations + i;
        switch (o->kind) {
            case EMBED: embed(o, w); break;
            case NORM: normalize(o, w); break;
            case PRODUCT: apply_product(o, w); break;
            case SELF_ATTENTION: attend_to_self(o, w); break;
            case SOURCE_ATTENTION: attend_to_source(o, w); break;
            case ADDITIVE_ATTENTION: attend_additively(o, w); break;
            case GRU: step_gru(o, w); break;
            case LSTM: step_lstm(o, w); break;
            case COPY: copy(o, w); break;
            case WORDS: predict_words(o, w); break;
        }
    }
}

/* `rows` rows of `width` floats each, from and to rows that lie further apart. */
INLINE void copy_rows(float *to, int64_t to_stride, const float *from, int64_t from_stride,
                      int64_t rows, int64_t width) {
    for (int64_t row = 0; row < rows && width; row++)
        memcpy(to + row * to_stride, from + row * from_stride, (size_t)width * sizeof(float));
}

TARGET static void step(const Plan *plan, const Call *call, int64_t from, int64_t to,
                        float *scratch) {
    const Work w = {plan, call, from, to - from, scratch, scratch + plan->columns * (to - from)};
    const int64_t state = plan->state_columns;
    copy_rows(w.workspace, plan->columns, call->state + from * state, state, w.rows, state);
    run(&w);
    copy_rows(call->next_state + from * state, state, w.workspace, plan->columns, w.rows, state);
}

/* The sequences from `from` to `to`: shorter ones end earlier, so that those which reach a step are
 * the first ones. */
TARGET static void read_sequences(const Plan *plan, const Sequences *s, int64_t from, int64_t to,
                                  float *scratch) {
    Work w = {plan, 0, from, to - from, scratch, scratch + plan->columns * (to - from)};
    const int64_t state = plan->state_columns, rows = w.rows;
    copy_rows(w.workspace, plan->columns, s->state + from * state, state, rows, state);
    for (int64_t i = 0; i < s->steps; i++) {
        const int64_t t = s->backward ? s->steps - 1 - i : i, at = s->first[t] + from;
        w.rows = (s->active[t] < to ? s->active[t] : to) - from;
        if (w.rows <= 0) continue;
        copy_rows(cells(&w, 0, s->input), plan->columns, s->inputs + at * s->input_stride,
                  s->input_stride, w.rows, s->input_width);
        run(&w);
        copy_rows(s->outputs + at * s->output_stride, s->output_stride, w.workspace, plan->columns,
                  w.rows, s->output_width);
    }
    copy_rows(s->state + from * state, state, w.workspace, plan->columns, rows, state);
}

TARGET static size_t plan_floats(const Plan *plan, size_t most, int64_t rows) {
    for (int64_t i = 0; i < plan->count; i++) {
        const Operation *o = plan->operations + i;
        if (o->kind != PRODUCT && o->kind != WORDS) continue;
        size_t floats = product_floats(&o->product, rows);
        most = floats > most ? floats : most;
    }
    return (size_t)(plan->columns * rows) + most;
}

TARGET static size_t step_floats(const Plan *plan, const Call *call, int64_t rows) {
    /* attention needs two of eight bytes and one of four for each key */
    return plan_floats(plan, 5 * (size_t)attended(call) + 16, rows);
}

TARGET static size_t sequences_floats(const Plan *plan, int64_t rows) {
    return plan_floats(plan, 16, rows);
}

TARGET static size_t one_product_floats(const Product *p, int64_t rows) {
    return product_floats(p, rows) + 16;
}

TARGET static void one_product(const Product *p, const float *x, const float *residual, float *y,
                               int64_t rows, int64_t activation, float *scratch) {
    const Epilogue e = {p, activation, residual, y, p->outputs};
    multiply(p, x, p->inputs, rows, &e, scratch);
}

/* Of equal candidates the lowest token, then the lowest row goes first. */
INLINE int goes_before(const Candidate *a, const Candidate *b) {
    if (a->total != b->total) return a->total > b->total;
    return a->token != b->token ? a->token < b->token : a->row < b->row;
}

TARGET static int64_t pick(const float *log_probabilities, int64_t words, float total, int64_t row,
                           Candidate *best, int64_t count, int64_t most) {
    for (int64_t i = 0; i < words; i += LANES) {
        const float worst = count == most ? best[most - 1].total : -INFINITY;
        const int64_t some = words - i < LANES ? words - i : LANES;
        if (some == LANES && !any((Whole)(load(log_probabilities + i) + total >= worst))) continue;
        for (int64_t token = i; token < i + some; token++) {
            const float chance = log_probabilities[token];
            const Candidate new = {row, token, chance + total, chance};
            if (!(new.total > -INFINITY)) continue;
            if (count == most && !goes_before(&new, best + most - 1)) continue;
            int64_t place = count < most ? count++ : most - 1;
            for (; place && goes_before(&new, best + place - 1); place--) best[place] = best[place - 1];
            best[place] = new;
        }
    }
    return count;
}

const Operations OPERATIONS = {
    step_floats, step, sequences_floats, read_sequences, one_product_floats, one_product, pick,
};
