/* Greedy and beam search over the steps of a plan, a whole search in one call.
 *
 * Each thread takes some sentences from their first word to their last; hypotheses and sentences
 * that have ended leave the batch. The rules, and the order of candidates, are those of
 * `regard/search/beam.py`; greedy search is a beam of width one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "search.h"

/* A hypothesis that ended: the row of a step that produced its last token. */
typedef struct {
    int64_t step, sentence, row, token, finished;
    float log_probability, total, normalized;
} Ended;

/* One step as it was taken: rows and what they were fed, by their parents in the step before. */
typedef struct {
    int64_t rows;
    int64_t *tokens, *parents;
    float *chosen;  /* log-probability of the token that was fed */
    float *totals;  /* of the hypothesis with that token */
    float *block;   /* keys and values */
    float *own_weights, *source_weights;
} Step;

/* The sentences that one thread searches. */
typedef struct {
    const Plan *plan;
    const Search *search;
    const Operations *kernel;
    int64_t from, sentences, most_rows, candidates;
    int64_t rows;
    int64_t *sentence;                  /* [rows] */
    int64_t *first, *ends;              /* [sentences + 1], [sentences] */
    int64_t *ancestry, *old_ancestry;   /* [rows, position] */
    float *state, *next_state;          /* [rows, state_columns] */
    float *kept;                        /* [sentences, nbest]: the best finished ones, best first */
    float *log_probabilities;
    const float **blocks;               /* [step] */
    Candidate *best;
    Step *steps;
    int64_t taken;
    Ended *ended;
    int64_t ended_count, ended_room;
    void **owned;                       /* everything above that was allocated */
    int64_t owned_count, owned_room;
} Beams;

static void *claim(Beams *b, int64_t count, size_t size) {
    if (b->owned_count == b->owned_room) {
        const int64_t room = 2 * b->owned_room + 64;
        void **more = realloc(b->owned, (size_t)room * sizeof *more);
        if (!more) return 0;
        b->owned = more;
        b->owned_room = room;
    }
    void *memory = decoder_allocate((size_t)(count > 0 ? count : 1) * size + 64);
    if (memory) b->owned[b->owned_count++] = memory;
    return memory;
}

#define CLAIM(to, count) (((to) = claim(b, (count), sizeof *(to))) == 0)

static void release_all(Beams *b) {
    for (int64_t i = 0; i < b->owned_count; i++) decoder_release(b->owned[i]);
    free(b->owned);
    free(b->ended);
}

static int begin(Beams *b) {
    const Plan *p = b->plan;
    const Search *s = b->search;
    const int64_t n = b->most_rows;
    if (CLAIM(b->sentence, n) || CLAIM(b->first, b->sentences + 1) || CLAIM(b->ends, b->sentences) ||
        CLAIM(b->ancestry, n * s->longest) || CLAIM(b->old_ancestry, n * s->longest) ||
        CLAIM(b->state, n * p->state_columns) ||
        CLAIM(b->next_state, n * p->state_columns) || CLAIM(b->kept, b->sentences * s->nbest) ||
        CLAIM(b->log_probabilities, n * p->words) || CLAIM(b->blocks, s->longest) ||
        CLAIM(b->best, b->candidates) || CLAIM(b->steps, s->longest + 1))
        return NO_MEMORY;
    b->rows = b->sentences;
    for (int64_t i = 0; i < b->sentences; i++) {
        b->sentence[i] = b->first[i] = i;
        b->ends[i] = 0;
        for (int64_t k = 0; k < s->nbest; k++) b->kept[i * s->nbest + k] = -INFINITY;
    }
    b->first[b->sentences] = b->sentences;
    if (p->state_columns)
        memcpy(b->state, s->state + b->from * p->state_columns,
               (size_t)(b->sentences * p->state_columns) * sizeof(float));
    return 0;
}

/* Feeds `step->tokens` to all rows. */
static int advance(Beams *b, Step *step, int64_t position) {
    const Plan *p = b->plan;
    const Search *s = b->search;
    const int64_t n = step->rows;
    if (CLAIM(step->block, n * p->block_columns)) return NO_MEMORY;
    step->own_weights = step->source_weights = 0;
    if (s->source_weights && CLAIM(step->source_weights, p->layers * n * p->heads * s->keys)) return NO_MEMORY;
    if (s->own_weights && CLAIM(step->own_weights, p->layers * n * p->heads * (position + 1))) return NO_MEMORY;
    b->blocks[position] = step->block;
    const Call call = {
        .rows = n,
        .position = p->block_columns ? position : 0,
        .tokens = step->tokens,
        .place = s->places ? s->places + position * s->place_width : 0,
        .sentence = b->sentence,
        .source = s->source + b->from * s->keys * p->source_columns,
        .lengths = s->lengths + b->from,
        .keys = s->keys,
        .blocks = b->blocks,
        .ancestry = b->ancestry,
        .block = step->block,
        .state = b->state,
        .next_state = b->next_state,
        .own_weights = step->own_weights,
        .source_weights = step->source_weights,
        .log_probabilities = b->log_probabilities,
    };
    float *scratch = decoder_scratch(b->kernel->scratch(p, &call, n));
    if (!scratch) return NO_MEMORY;
    b->kernel->step(p, &call, 0, n, scratch);
    for (int64_t row = 0; row < n; row++)
        for (int64_t i = 0; i < s->forbidden_count; i++)
            b->log_probabilities[row * p->words + s->forbidden[i]] = -INFINITY;
    return 0;
}

static int end(Beams *b, int64_t position, int64_t sentence, const Candidate *c, int64_t finished) {
    if (b->ended_count == b->ended_room) {
        const int64_t room = 2 * b->ended_room + 64;
        Ended *more = realloc(b->ended, (size_t)room * sizeof *more);
        if (!more) return NO_MEMORY;
        b->ended = more;
        b->ended_room = room;
    }
    const float normalized = c->total / b->search->penalties[position + 1];
    b->ended[b->ended_count++] = (Ended){position, sentence, c->row, c->token, finished,
                                         c->log_probability, c->total, normalized};
    if (!finished) return 0;
    b->ends[sentence]++;
    float *kept = b->kept + sentence * b->search->nbest, value = normalized;
    for (int64_t k = 0; k < b->search->nbest; k++)
        if (value > kept[k]) {
            const float lower = kept[k];
            kept[k] = value;
            value = lower;
        }
    return 0;
}

/* Whether no live hypothesis of a sentence can enter its n best, given the best of their totals. */
static int decided(const Beams *b, int64_t position, int64_t sentence, float best) {
    const Search *s = b->search;
    const int64_t limit = s->limits[b->from + sentence];
    if (limit <= position + 1) return 1;
    if (s->enough_ends >= 0 && b->ends[sentence] >= s->enough_ends) return 1;
    const float next = best / s->penalties[position + 2 < s->longest ? position + 2 : s->longest];
    const float last = best / s->penalties[limit];
    return b->kept[(sentence + 1) * s->nbest - 1] >= (next > last ? next : last);
}

/* The candidates of one sentence: those that end, those that continue as rows of the next step. */
static int grow(Beams *b, int64_t position, int64_t sentence, const Step *step, Step *next) {
    const Search *s = b->search;
    int64_t count = 0, live = 0;
    for (int64_t row = b->first[sentence]; row < b->first[sentence + 1]; row++)
        count = b->kernel->pick(b->log_probabilities + row * b->plan->words, b->plan->words,
                                step->totals[row], row, b->best, count, b->candidates);
    if (!count) return NO_CANDIDATE;
    float best = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        Candidate *c = b->best + i;
        if (c->token == s->eos) {
            if ((!s->full || i < s->width) && end(b, position, sentence, c, 1)) return NO_MEMORY;
        } else if (live < s->width) {
            best = c->total > best ? c->total : best;
            b->best[live++] = *c;
        }
    }
    if (s->limits[b->from + sentence] <= position + 1)
        for (int64_t i = 0; i < live; i++)
            if (end(b, position, sentence, b->best + i, 0)) return NO_MEMORY;
    if (decided(b, position, sentence, best)) return 0;
    for (int64_t i = 0; i < live; i++) {
        const Candidate *c = b->best + i;
        next->tokens[next->rows] = c->token;
        next->parents[next->rows] = c->row;
        next->totals[next->rows] = c->total;
        next->chosen[next->rows++] = c->log_probability;
    }
    return 0;
}

/* Makes the rows of the next step continue their parents. */
static void follow(Beams *b, const Step *next, int64_t position) {
    const int64_t width = b->plan->state_columns;
    int64_t *swapped = b->old_ancestry;
    b->old_ancestry = b->ancestry;
    b->ancestry = swapped;
    for (int64_t row = 0; row < next->rows; row++) {
        const int64_t parent = next->parents[row];
        int64_t *to = b->ancestry + row * (position + 1);
        if (position)
            memcpy(to, b->old_ancestry + parent * position, (size_t)position * sizeof(int64_t));
        to[position] = parent;
        if (width)
            memcpy(b->state + row * width, b->next_state + parent * width,
                   (size_t)width * sizeof(float));
    }
}

static int claim_step(Beams *b, Step *step) {
    step->rows = 0;
    return CLAIM(step->tokens, b->most_rows) || CLAIM(step->parents, b->most_rows) ||
           CLAIM(step->chosen, b->most_rows) || CLAIM(step->totals, b->most_rows);
}

static int run(Beams *b, int *stopped) {
    const Search *s = b->search;
    if (begin(b) || claim_step(b, b->steps)) return NO_MEMORY;
    b->steps[0].rows = b->rows;
    for (int64_t row = 0; row < b->rows; row++) {
        b->steps[0].tokens[row] = s->bos[b->from + row];
        b->steps[0].totals[row] = 0.0f;
    }
    for (int64_t position = 0; position < s->longest && b->rows; position++) {
        int now;
#pragma omp atomic read
        now = *stopped;
        if (now) return now;
#if defined(_OPENMP)
        const int asks = s->interrupted && omp_get_thread_num() == 0;
#else
        const int asks = s->interrupted != 0;
#endif
        if (asks && s->interrupted()) return INTERRUPTED;
        Step *step = b->steps + position, *next = step + 1;
        if (advance(b, step, position) || claim_step(b, next)) return NO_MEMORY;
        b->taken = position + 1;
        for (int64_t sentence = 0; sentence < b->sentences; sentence++) {
            const int64_t rows = b->first[sentence + 1] - b->first[sentence], from = next->rows;
            const int failed = rows ? grow(b, position, sentence, step, next) : 0;
            if (failed) return failed;
            /* the places of the rows of earlier sentences are known, and not read any more */
            b->first[sentence] = from;
        }
        b->first[b->sentences] = next->rows;
        for (int64_t sentence = 0; sentence < b->sentences; sentence++)
            for (int64_t row = b->first[sentence]; row < b->first[sentence + 1]; row++)
                b->sentence[row] = sentence;
        follow(b, next, position);
        b->rows = next->rows;
    }
    return 0;
}

/* Finished ones first, then by normalized log-probability; among equals the oldest. */
static int ranks_before(const Ended *a, const Ended *b) {
    if (a->finished != b->finished) return a->finished > b->finished;
    return a->normalized > b->normalized;
}

/* The weights of one layer and hypothesis at one step, to the place that the hypothesis has for
 * them; zeros fill the row up to `width`. */
static void keep_weights(float *to, int64_t stride, const float *from, int64_t heads, int64_t keys,
                         int64_t width) {
    for (int64_t head = 0; head < heads; head++) {
        memcpy(to + head * stride, from + head * keys, (size_t)keys * sizeof(float));
        memset(to + head * stride + keys, 0, (size_t)(width - keys) * sizeof(float));
    }
}

/* Traces a hypothesis back from the row that produced its last token. */
static void rebuild(const Beams *b, const Ended *e, int64_t place) {
    const Plan *p = b->plan;
    const Search *s = b->search;
    int64_t row = e->row;
    s->tokens[place * s->longest + e->step] = e->token;
    s->token_log_probabilities[place * s->longest + e->step] = e->log_probability;
    for (int64_t t = e->step; t >= 0; t--) {
        const Step *step = b->steps + t;
        for (int64_t layer = 0; layer < p->layers; layer++) {
            const int64_t from = (layer * step->rows + row) * p->heads;
            const int64_t to = (place * p->layers + layer) * p->heads * s->longest + t;
            if (s->source_weights)
                keep_weights(s->source_weights + to * s->keys, s->longest * s->keys,
                             step->source_weights + from * s->keys, p->heads, s->keys, s->keys);
            if (s->own_weights)
                keep_weights(s->own_weights + to * s->longest, s->longest * s->longest,
                             step->own_weights + from * (t + 1), p->heads, t + 1, e->step + 1);
        }
        if (!t) break;
        s->tokens[place * s->longest + t - 1] = step->tokens[row];
        s->token_log_probabilities[place * s->longest + t - 1] = step->chosen[row];
        row = step->parents[row];
    }
    s->lengths_found[place] = e->step + 1;
    s->log_probabilities[place] = e->total;
    s->normalized[place] = e->normalized;
    s->finished[place] = (uint8_t)e->finished;
}

static void write_best(Beams *b) {
    const int64_t nbest = b->search->nbest;
    for (int64_t sentence = 0; sentence < b->sentences; sentence++)
        for (int64_t k = 0; k < nbest; k++) {
            Ended *best = 0;
            for (Ended *e = b->ended; e < b->ended + b->ended_count; e++)
                if (e->sentence == sentence && (!best || ranks_before(e, best))) best = e;
            if (!best) break;
            rebuild(b, best, (b->from + sentence) * nbest + k);
            best->sentence = -1; /* written */
        }
}

int search_sentences(const Plan *plan, const Search *search, const Operations *kernel, int64_t from,
                     int64_t to, int *stopped) {
    const int64_t most = search->full ? 2 * search->width : search->width;
    Beams b = {.plan = plan, .search = search, .kernel = kernel, .from = from,
               .sentences = to - from, .most_rows = (to - from) * search->width,
               .candidates = most};
    const int failed = run(&b, stopped);
    if (!failed) write_best(&b);
    release_all(&b);
    return failed;
}
