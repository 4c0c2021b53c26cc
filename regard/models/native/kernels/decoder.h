/* One step of a translator's decoder in float32 or int8, as a flat list of operations.
 *
 * Python compiles a decoder into a Plan once; a Call says what one step reads and writes. Every row
 * (one hypothesis) has a workspace of `columns` floats, and an operation reads and writes ranges of
 * it, named by their first column. What the schedule (decoder.c) and the operations (operations.h,
 * compiled once per instruction set) share.
 */
#ifndef REGARD_DECODER_H
#define REGARD_DECODER_H

#include <stddef.h>
#include <stdint.h>

enum { PANEL = 64 }; /* columns of packed weights that lie together */

/* y = activation(W x + b) (+ residual). Weights are packed in panels of 64 outputs; the last panel is
 * filled up with zeros. float32: [panel][input][64]. int8: [panel][input / 4][64][4], inputs filled up
 * to a multiple of 4; then scale and shift have one number per output. */
typedef struct {
    int64_t inputs, outputs;
    const float *weights;  /* null: int8 */
    const int8_t *bytes;
    const float *scale;    /* w = scale * byte */
    const int32_t *shift;  /* 128 * sum of the bytes: activations are stored with 128 added */
    const float *bias;     /* as long as all panels; never null */
} Product;

enum { EMBED, NORM, PRODUCT, SELF_ATTENTION, SOURCE_ATTENTION, ADDITIVE_ATTENTION, GRU, LSTM, COPY,
       WORDS };
enum { LINEAR, GELU, TANH };

typedef struct {
    int64_t kind, activation;
    int64_t input, output, width; /* columns of the workspace, and how many */
    int64_t other;  /* residual of a product, hidden gates of a cell; -1: none */
    int64_t state;  /* the state that a cell replaces (LSTM: hidden, then memory) */
    int64_t heads, layer;         /* attention; width is that of all heads together */
    int64_t key, value;           /* columns of Call.source */
    int64_t value_width;          /* attention to the source: size of all heads' values */
    float scale, epsilon;         /* of scores or word vectors; of a norm */
    const float *first, *second;  /* gain and shift of a norm; word vectors; additive weights */
    Product product;
} Operation;

typedef struct {
    const Operation *operations;
    int64_t count;
    int64_t columns;              /* of the workspace of a row */
    int64_t state_columns;        /* the workspace begins with the recurrent state */
    int64_t block_columns;        /* keys and values of all layers, of one row and position */
    int64_t source_columns;
    int64_t layers, heads;        /* of the weights that are returned */
    int64_t words;
} Plan;

typedef struct {
    int64_t rows, position;
    const int64_t *tokens;        /* [rows] */
    const float *place;           /* position vector, or null */
    const int64_t *sentence;      /* [rows]: whose source */
    const float *source;          /* [sentences, keys, source_columns] */
    const int64_t *lengths;       /* [sentences] */
    int64_t keys;
    const uint8_t *allowed;       /* [rows, keys], 1 = may attend; null: all */
    const float *const *blocks;   /* [position]: keys and values of earlier steps, [n, block_columns] */
    const int64_t *ancestry;      /* [rows, position]: the row of each earlier step */
    float *block;                 /* [rows, block_columns], of this step */
    const float *state;           /* [rows, state_columns] */
    float *next_state;
    float *own_weights;           /* [layers, rows, heads, position + 1], or null */
    float *source_weights;        /* [layers, rows, heads, keys], or null */
    float *log_probabilities;     /* [rows, words] */
} Call;

/* Sequences that a recurrent layer reads in one direction, the longest first, packed by time: the
 * inputs of all sequences at the first step, then those at the second, and so on. */
typedef struct {
    int64_t steps, backward;
    const int64_t *active;        /* [steps]: how many sequences reach a step */
    const int64_t *first;         /* [steps]: their first row in the packed tensors */
    const float *inputs;          /* the gates of the inputs, read into the column `input` */
    int64_t input, input_width, input_stride;
    float *outputs;               /* the hidden vectors */
    int64_t output_width, output_stride;
    float *state;                 /* [sequences, state_columns]: before, and then after */
} Sequences;

/* A possible next token of a hypothesis; `total` is the log-probability of all its tokens. */
typedef struct {
    int64_t row, token;
    float total, log_probability;
} Candidate;

typedef struct {
    size_t (*scratch)(const Plan *, const Call *, int64_t rows); /* floats */
    void (*step)(const Plan *, const Call *, int64_t from, int64_t to, float *scratch);
    size_t (*sequences_scratch)(const Plan *, int64_t rows);
    void (*sequences)(const Plan *, const Sequences *, int64_t from, int64_t to, float *scratch);
    /* y [rows, outputs] = product of x [rows, inputs]: for tests and benchmarks */
    size_t (*product_scratch)(const Product *, int64_t rows);
    void (*product)(const Product *, const float *x, const float *residual, float *y, int64_t rows,
                    int64_t activation, float *scratch);
    /* adds the tokens of a row to the `most` best candidates; returns how many there are now */
    int64_t (*pick)(const float *log_probabilities, int64_t words, float total, int64_t row,
                    Candidate *best, int64_t count, int64_t most);
} Operations;

/* Memory aligned to 64 bytes; scratch memory belongs to the thread, until its next call. */
void *decoder_allocate(size_t bytes);
void decoder_release(void *block);
float *decoder_scratch(size_t floats);

extern const Operations decoder_baseline;
#if defined(__x86_64__)
extern const Operations decoder_avx2, decoder_avx512, decoder_vnni;
#endif

#endif
