/* A whole search: what Python gives and what it gets back. */
#ifndef REGARD_SEARCH_H
#define REGARD_SEARCH_H

#include "decoder.h"

typedef struct {
    int64_t sentences, width, nbest, full, longest;
    int64_t enough_ends;          /* finished hypotheses that end a sentence; -1: no such number */
    int64_t eos;
    const int64_t *bos;           /* [sentences]: the first token that is fed */
    const int64_t *limits;        /* [sentences]: the most tokens, 1 to `longest` */
    const float *penalties;       /* [longest + 1]: divisors of log-probabilities, by length */
    const int64_t *forbidden;     /* tokens that are never chosen */
    int64_t forbidden_count;
    const float *places;          /* [longest, place_width]: position vectors, or null */
    int64_t place_width;
    const float *source;          /* [sentences, keys, source_columns] */
    const int64_t *lengths;       /* [sentences] */
    int64_t keys;
    const float *state;           /* [sentences, state_columns] */
    int (*interrupted)(void);     /* asked before each step by the calling thread; null: never */
    /* The n best of each sentence, best first. */
    int64_t *lengths_found;       /* [sentences, nbest]: tokens; 0: there is no such hypothesis */
    int64_t *tokens;              /* [sentences, nbest, longest] */
    float *token_log_probabilities;
    float *log_probabilities;     /* [sentences, nbest] */
    float *normalized;
    uint8_t *finished;
    /* Of the last two axes only the rows and columns of steps that a hypothesis has are written. */
    float *own_weights;           /* [sentences, nbest, layers, heads, longest, longest], or null */
    float *source_weights;        /* [sentences, nbest, layers, heads, longest, keys], or null */
} Search;

/* Why a step or a search ended early. */
enum { NO_MEMORY = 1, UNKNOWN_TOKEN, NO_CANDIDATE, INTERRUPTED };

/* Searches the sentences from `from` to `to`. `*stopped` becomes nonzero when another thread fails. */
int search_sentences(const Plan *plan, const Search *search, const Operations *kernel, int64_t from,
                     int64_t to, int *stopped);

#endif
