/* What both variants of AVX-512 share; included after TARGET is defined. */
enum { LANES = 16, TILE_ROWS = 6, TILE_VECTORS = 4 };
typedef float Vector __attribute__((vector_size(64), may_alias));
typedef float Loose __attribute__((vector_size(64), may_alias, aligned(4)));
typedef int32_t Whole __attribute__((vector_size(64), may_alias));
typedef int32_t LooseWhole __attribute__((vector_size(64), may_alias, aligned(4)));

TARGET static inline Vector multiply_add(Vector a, Vector b, Vector c) {
    return (Vector)_mm512_fmadd_ps(a, b, c);
}
TARGET static inline Vector smaller(Vector a, Vector b) { return (Vector)_mm512_min_ps(a, b); }
TARGET static inline Vector larger(Vector a, Vector b) { return (Vector)_mm512_max_ps(a, b); }
TARGET static inline float sum(Vector v) { return _mm512_reduce_add_ps(v); }
TARGET static inline Vector to_float(Whole v) { return (Vector)_mm512_cvtepi32_ps((__m512i)v); }
TARGET static inline int any(Whole mask) { return _mm512_movepi32_mask((__m512i)mask) != 0; }
