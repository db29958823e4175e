// Matrix products of float32, exp and tanh for Python in a browser, where NumPy has no BLAS and no vector mathematics.
//
// An extension module whose `matmul(a, b)`, `exp(x, out)` and `tanh(x, out)` stand in for NumPy's own, which are given
// whatever these do not take; its products with 8-bit weights and with blocks stand in for those in kernels.py. It is
// compiled without Emscripten and without Python's headers (`make kernels`): what it uses of Python is declared below
// and belongs to the stable interface, so that one file serves every version.
//
// The arithmetic is that of every fast product (Goto and van de Geijn, 2008, "Anatomy of High-Performance Matrix
// Multiplication"): a tile of C stays in registers while rows of A and a panel of B pass by; B is copied so that it
// passes in order, and A and B are cut so that what is used again is still in the cache.

#include <wasm_simd128.h>

#ifdef RELAXED // the processor's fused multiply-add, in a browser that passes it on
#define MULTIPLY_ADD(x, y, sum) __builtin_wasm_relaxed_madd_f32x4(x, y, sum)
#else
#define MULTIPLY_ADD(x, y, sum) wasm_f32x4_add(sum, wasm_f32x4_mul(x, y))
#endif

enum { ROWS = 4, COLUMNS = 8 };                  // of a tile: 8 registers of sums, and others for A and B
enum { DEPTH = 256, WIDTH = 512, HEIGHT = 96 };  // of the parts of A and B at work: 0.5 MB of B, 0.1 MB of A
enum { MAX_AXES = 64 };                          // NumPy allows no more

// What is used of Python ------------------------------------------------------------------------------------------

typedef long Py_ssize_t;
typedef struct _object PyObject;
typedef struct {
    char *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char *format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void *internal;
} Py_buffer;
typedef struct {
    const char *name;
    PyObject *(*function)(PyObject *, PyObject *const *, Py_ssize_t);
    int flags;
    const char *doc;
} PyMethodDef;
typedef struct {
    Py_ssize_t references;
    void *type, *init;
    Py_ssize_t index;
    PyObject *copy;
    const char *name, *doc;
    Py_ssize_t size;
    PyMethodDef *methods;
    void *slots, *traverse, *clear, *free;
} PyModuleDef;
enum { PyBUF_WRITABLE = 0x1, PyBUF_FORMAT = 0x4, PyBUF_STRIDES = 0x18, PyBUF_C_CONTIGUOUS = 0x38 };
enum { METH_FASTCALL = 0x80, STABLE_ABI = 3 };

extern int PyObject_GetBuffer(PyObject *, Py_buffer *, int);
extern void PyBuffer_Release(Py_buffer *);
extern void PyErr_Clear(void), *PyMem_RawMalloc(unsigned long);
extern void Py_IncRef(PyObject *), Py_DecRef(PyObject *);
extern PyObject *PyTuple_New(Py_ssize_t), *PyLong_FromSsize_t(Py_ssize_t);
extern int PyTuple_SetItem(PyObject *, Py_ssize_t, PyObject *);
extern PyObject *PyObject_Type(PyObject *);
extern PyObject *PyObject_Vectorcall(PyObject *, PyObject *const *, unsigned long, PyObject *);
extern PyObject *PyModule_Create2(PyModuleDef *, int);

// One product -----------------------------------------------------------------------------------------------------

typedef struct {
    const float *data;
    long down, right; // from a row to the next, from a column to the next, in floats
} Matrix;

static float *packed; // DEPTH x WIDTH numbers of B: panels of COLUMNS columns, one behind the other

static long smaller(long a, long b) { return a < b ? a : b; }

static Matrix from(Matrix x, long row, long column) {
    return (Matrix){x.data + row * x.down + column * x.right, x.down, x.right};
}

// Four rows of four numbers that lie `right` apart, as columns.
static void transpose(const float *from, long right, float *to) {
    v128_t a = wasm_v128_load(from), b = wasm_v128_load(from + right);
    v128_t c = wasm_v128_load(from + 2 * right), d = wasm_v128_load(from + 3 * right);
    v128_t ab = wasm_i32x4_shuffle(a, b, 0, 4, 1, 5), cd = wasm_i32x4_shuffle(c, d, 0, 4, 1, 5);
    wasm_v128_store(to, wasm_i64x2_shuffle(ab, cd, 0, 2));
    wasm_v128_store(to + COLUMNS, wasm_i64x2_shuffle(ab, cd, 1, 3));
    ab = wasm_i32x4_shuffle(a, b, 2, 6, 3, 7), cd = wasm_i32x4_shuffle(c, d, 2, 6, 3, 7);
    wasm_v128_store(to + 2 * COLUMNS, wasm_i64x2_shuffle(ab, cd, 0, 2));
    wasm_v128_store(to + 3 * COLUMNS, wasm_i64x2_shuffle(ab, cd, 1, 3));
}

// Copy a panel of B, (depth, columns), row by row; at the right edge of B zeros fill its rows.
static void pack(Matrix b, long depth, long columns, float *to) {
    long k = 0;
    if (columns == COLUMNS && b.right == 1) {
        for (; k < depth; k++)
            for (int j = 0; j < COLUMNS; j += 4)
                wasm_v128_store(to + k * COLUMNS + j, wasm_v128_load(b.data + k * b.down + j));
    } else if (columns == COLUMNS && b.down == 1) {
        for (; k + 4 <= depth; k += 4)
            for (int j = 0; j < COLUMNS; j += 4)
                transpose(b.data + k + j * b.right, b.right, to + k * COLUMNS + j);
    }
    for (; k < depth; k++)
        for (int j = 0; j < COLUMNS; j++)
            to[k * COLUMNS + j] = j < columns ? b.data[k * b.down + j * b.right] : 0;
}

// A tile of C, whose rows are `to_down` apart: the sum over k of a column of A times a row of the panel b.
static void tile(const float *a[ROWS], long right, const float *b, long down, long depth, float *to, long to_down,
                 int add) {
    v128_t sum[ROWS][2];
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        sum[i][0] = add ? wasm_v128_load(to + i * to_down) : wasm_f32x4_splat(0);
        sum[i][1] = add ? wasm_v128_load(to + i * to_down + 4) : wasm_f32x4_splat(0);
    }
    const float *row[ROWS] = {a[0], a[1], a[2], a[3]};
#pragma clang loop unroll(disable)
    for (long k = 0; k < depth; k++, b += down) {
        v128_t left = wasm_v128_load(b), rest = wasm_v128_load(b + 4);
#pragma unroll
        for (int i = 0; i < ROWS; i++, row[i - 1] += right) {
            v128_t x = wasm_v128_load32_splat(row[i]);
            sum[i][0] = MULTIPLY_ADD(x, left, sum[i][0]);
            sum[i][1] = MULTIPLY_ADD(x, rest, sum[i][1]);
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        wasm_v128_store(to + i * to_down, sum[i][0]);
        wasm_v128_store(to + i * to_down + 4, sum[i][1]);
    }
}

// Up to ROWS x COLUMNS numbers of C; at its edges a whole tile is computed elsewhere, and what belongs to C is added.
static void tile_or_edge(Matrix A, long rows, const float *b, long down, long columns, long depth, float *to,
                         long to_down, int add) {
    const float *a[ROWS];
    for (int i = 0; i < ROWS; i++) a[i] = A.data + (i < rows ? i : 0) * A.down;
    if (rows >= ROWS && columns >= COLUMNS) {
        tile(a, A.right, b, down, depth, to, to_down, add);
        return;
    }
    float edge[ROWS * COLUMNS];
    tile(a, A.right, b, down, depth, edge, COLUMNS, 0);
    for (int i = 0; i < smaller(rows, ROWS); i++)
        for (int j = 0; j < smaller(columns, COLUMNS); j++)
            to[i * to_down + j] = edge[i * COLUMNS + j] + (add ? to[i * to_down + j] : 0);
}

// The part of C, (m, width), to which DEPTH columns of A and as many rows of B contribute.
static void multiply_part(Matrix A, Matrix B, long m, long width, long depth, float *to, long to_down, int add) {
    int as_it_is = m <= ROWS && B.right == 1; // too little is done with B to copy it
    for (long j = 0; j < width; j += COLUMNS)
        if (!as_it_is || width - j < COLUMNS)
            pack(from(B, 0, j), depth, smaller(COLUMNS, width - j), packed + j * depth);
    for (long top = 0; top < m; top += HEIGHT)
        for (long j = 0; j < width; j += COLUMNS) {
            int copied = !as_it_is || width - j < COLUMNS;
            const float *b = copied ? packed + j * depth : B.data + j;
            for (long i = top; i < smaller(m, top + HEIGHT); i += ROWS)
                tile_or_edge(from(A, i, 0), m - i, b, copied ? COLUMNS : B.down, width - j, depth,
                             to + i * to_down + j, to_down, add);
        }
}

// C (m, n) = A (m, depth) @ B (depth, n); the rows of C lie one behind the other.
static void multiply(Matrix A, Matrix B, long m, long n, long depth, float *C) {
    if (!depth) // an empty sum
        for (long i = 0; i < m * n; i++) C[i] = 0;
    for (long j = 0; j < n; j += WIDTH)
        for (long k = 0; k < depth; k += DEPTH)
            multiply_part(from(A, 0, k), from(B, k, j), m, smaller(WIDTH, n - j), smaller(DEPTH, depth - k), C + j, n,
                          k > 0);
}

// A stack of products ---------------------------------------------------------------------------------------------

static int is_stack_of_matrices(const Py_buffer *x) {
    if (x->ndim < 2 || x->ndim > MAX_AXES || x->format[0] != 'f' || x->format[1]) return 0;
    for (int i = 0; i < x->ndim; i++)
        if (x->strides[i] % (long)sizeof(float)) return 0;
    return 1;
}

static Matrix last_two_axes(const Py_buffer *x) {
    const Py_ssize_t *strides = x->strides + x->ndim - 2;
    return (Matrix){(const float *)x->buf, strides[0] / (long)sizeof(float), strides[1] / (long)sizeof(float)};
}

// Length and step, in floats, of axis `i` of `axes`, to which those of x are aligned from the right.
static long length(const Py_buffer *x, int i, int axes) {
    i -= axes - x->ndim;
    return i < 0 ? 1 : x->shape[i];
}

static long step(const Py_buffer *x, int i, int axes) {
    i -= axes - x->ndim;
    return i < 0 || x->shape[i] == 1 ? 0 : x->strides[i] / (long)sizeof(float);
}

// The shape of a @ b; says whether they fit.
static int shape_of_product(const Py_buffer *a, const Py_buffer *b, int axes, long *shape) {
    for (int i = 0; i < axes - 2; i++) {
        long one = length(a, i, axes), other = length(b, i, axes);
        if (one != other && one != 1 && other != 1) return 0;
        shape[i] = one == 1 ? other : one;
    }
    shape[axes - 2] = a->shape[a->ndim - 2];
    shape[axes - 1] = b->shape[b->ndim - 1];
    return a->shape[a->ndim - 1] == b->shape[b->ndim - 2];
}

static void multiply_stack(const Py_buffer *a, const Py_buffer *b, int axes, const long *shape, float *to) {
    Matrix A = last_two_axes(a), B = last_two_axes(b);
    long m = shape[axes - 2], n = shape[axes - 1], depth = a->shape[a->ndim - 1];
    long count = m * n ? 1 : 0, at[MAX_AXES] = {0};
    for (int i = 0; i < axes - 2; i++) count *= shape[i];
    for (; count > 0; count--, to += m * n) {
        multiply(A, B, m, n, depth, to);
        for (int i = axes - 3; i >= 0; i--) { // to the next pair, as a counter goes to its next number
            A.data += step(a, i, axes), B.data += step(b, i, axes);
            if (++at[i] < shape[i]) break;
            at[i] = 0;
            A.data -= shape[i] * step(a, i, axes), B.data -= shape[i] * step(b, i, axes);
        }
    }
}

// 8-bit weights ---------------------------------------------------------------------------------------------------

// Of every weight but one product and one sum are made, so what counts is that the weights pass by once, in order, and
// that they are converted on the way. HEADS rows pass by side by side, so that what they share is loaded once.

enum { HEADS = 4, FEW = 8 }; // with more than FEW rows of x the matrix is better converted once, and then multiplied

typedef struct {
    const signed char *data;
    long rows, columns, down; // `down` from a row to the next
} Weights;

static v128_t first_four(v128_t h) { return wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(h)); }
static v128_t last_four(v128_t h) { return wasm_f32x4_convert_i32x4(wasm_i32x4_extend_high_i16x8(h)); }

// Row i and those after it; below the last row there is the last again.
static void heads(Weights q, long i, const signed char *row[HEADS]) {
    for (int k = 0; k < HEADS; k++) row[k] = q.data + smaller(i + k, q.rows - 1) * q.down;
}

// y (columns) = x (rows) @ q
static void multiply_rows(const float *x, Weights q, float *y) {
    const signed char *row[HEADS];
    for (long j = 0; j < q.columns; j++) y[j] = 0;
    for (long i = 0; i < q.rows; i += HEADS) {
        float factor[HEADS];
        v128_t factors[HEADS];
        heads(q, i, row);
        for (int k = 0; k < HEADS; k++) factors[k] = wasm_f32x4_splat(factor[k] = i + k < q.rows ? x[i + k] : 0);
        long j = 0;
        for (; j + 8 <= q.columns; j += 8) {
            v128_t left = wasm_v128_load(y + j), right = wasm_v128_load(y + j + 4);
#pragma unroll
            for (int k = 0; k < HEADS; k++) {
                v128_t h = wasm_i16x8_load8x8(row[k] + j);
                left = MULTIPLY_ADD(factors[k], first_four(h), left);
                right = MULTIPLY_ADD(factors[k], last_four(h), right);
            }
            wasm_v128_store(y + j, left);
            wasm_v128_store(y + j + 4, right);
        }
#pragma clang loop vectorize(disable) unroll(disable)
        for (; j < q.columns; j++)
            for (int k = 0; k < HEADS; k++) y[j] += factor[k] * row[k][j];
    }
}

// y (rows) = x (columns) @ q^T
static void multiply_transposed(const float *x, Weights q, float *y) {
    const signed char *row[HEADS];
    for (long i = 0; i < q.rows; i += HEADS) {
        v128_t left[HEADS], right[HEADS];
        heads(q, i, row);
        for (int k = 0; k < HEADS; k++) left[k] = right[k] = wasm_f32x4_splat(0);
        long j = 0;
        for (; j + 8 <= q.columns; j += 8) {
            v128_t x_left = wasm_v128_load(x + j), x_right = wasm_v128_load(x + j + 4);
#pragma unroll
            for (int k = 0; k < HEADS; k++) {
                v128_t h = wasm_i16x8_load8x8(row[k] + j);
                left[k] = MULTIPLY_ADD(x_left, first_four(h), left[k]);
                right[k] = MULTIPLY_ADD(x_right, last_four(h), right[k]);
            }
        }
        for (int k = 0; k < smaller(HEADS, q.rows - i); k++) {
            float part[4];
            wasm_v128_store(part, wasm_f32x4_add(left[k], right[k]));
            float sum = (part[0] + part[1]) + (part[2] + part[3]);
#pragma clang loop vectorize(disable) unroll(disable)
            for (long rest = j; rest < q.columns; rest++) sum += x[rest] * row[k][rest];
            y[i + k] = sum;
        }
    }
}

// Weights in blocks -----------------------------------------------------------------------------------------------

// As a GGUF stores them: 32 numbers of a row are a block, with a scale of their own, and in Q4_1 with a smallest number
// of their own. An input is rounded to 16 bits in blocks alike, by half of a 32,767th of the largest in its block at
// most. Then the products of two blocks are summed as integers, exactly, in half the instructions that floats take.

enum { BLOCK = 32, Q4_1 = 20, Q8_0 = 34 };   // numbers of a block, and its bytes
enum { DECODED = 1 << 18 };                  // numbers that are decoded at a time, 1 MB

typedef struct { // an input: a number is nearly its block's scale times q
    short *q;
    float *scale, *sum; // of each block; the sum is that of its numbers
} Rounded;

typedef struct {
    const unsigned char *data;
    long rows, columns, down; // `down` in bytes
    int kind;                 // the bytes of a block
} Blocks;

static float *decoded; // of DECODED numbers

static Rounded round_row(const float *x, long columns) {
    long blocks = columns / BLOCK;
    Rounded to = {(short *)(decoded + 2 * blocks), decoded, decoded + blocks};
    for (long b = 0; b < blocks; b++, x += BLOCK) {
        v128_t largest = wasm_f32x4_splat(0), sum = wasm_f32x4_splat(0);
        for (int i = 0; i < BLOCK; i += 4) {
            v128_t four = wasm_v128_load(x + i);
            largest = wasm_f32x4_pmax(largest, wasm_f32x4_abs(four));
            sum = wasm_f32x4_add(sum, four);
        }
        float most[4], parts[4];
        wasm_v128_store(most, largest), wasm_v128_store(parts, sum);
        for (int i = 1; i < 4; i++) most[0] = most[i] > most[0] ? most[i] : most[0];
        to.sum[b] = (parts[0] + parts[1]) + (parts[2] + parts[3]);
        to.scale[b] = most[0] / 32767 + 0 * to.sum[b]; // NaN if a number is not finite
        v128_t factor = wasm_f32x4_splat(most[0] > 0 ? 32767 / most[0] : 0);
        for (int i = 0; i < BLOCK; i += 8) {
            v128_t left = wasm_f32x4_nearest(wasm_f32x4_mul(wasm_v128_load(x + i), factor));
            v128_t right = wasm_f32x4_nearest(wasm_f32x4_mul(wasm_v128_load(x + i + 4), factor));
            left = wasm_i32x4_trunc_sat_f32x4(left), right = wasm_i32x4_trunc_sat_f32x4(right);
            wasm_v128_store(to.q + b * BLOCK + i, wasm_i16x8_narrow_i32x4(left, right));
        }
    }
    return to;
}

// The finite float16 in the lower half of each lane; exponents count from 15 in the one and from 127 in the other.
static v128_t halves(v128_t bits) {
    v128_t size = wasm_i32x4_shl(wasm_v128_and(bits, wasm_i32x4_splat(0x7fff)), 13);
    v128_t sign = wasm_i32x4_shl(wasm_v128_and(bits, wasm_i32x4_splat(0x8000)), 16);
    return wasm_v128_or(wasm_f32x4_mul(size, wasm_f32x4_splat(0x1p112f)), sign);
}

// The sum of 32 products, in four parts.
static v128_t products_of(const unsigned char *q, const short *x, int kind) {
    v128_t low = wasm_v128_load(q), high;
    if (kind == Q4_1) {
        high = wasm_u8x16_shr(low, 4), low = wasm_v128_and(low, wasm_i8x16_splat(15));
    } else {
        high = wasm_v128_load(q + 16);
    }
    v128_t sum = wasm_i32x4_dot_i16x8(wasm_i16x8_extend_low_i8x16(low), wasm_v128_load(x + 0));
    sum = wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(wasm_i16x8_extend_high_i8x16(low), wasm_v128_load(x + 8)));
    sum = wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(wasm_i16x8_extend_low_i8x16(high), wasm_v128_load(x + 16)));
    return wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(wasm_i16x8_extend_high_i8x16(high), wasm_v128_load(x + 24)));
}

// In lane k the sum of the four numbers of part[k].
static v128_t sums(const v128_t part[HEADS]) {
    v128_t a = wasm_i32x4_add(wasm_i32x4_shuffle(part[0], part[1], 0, 4, 1, 5),
                              wasm_i32x4_shuffle(part[0], part[1], 2, 6, 3, 7));
    v128_t b = wasm_i32x4_add(wasm_i32x4_shuffle(part[2], part[3], 0, 4, 1, 5),
                              wasm_i32x4_shuffle(part[2], part[3], 2, 6, 3, 7));
    return wasm_i32x4_add(wasm_i64x2_shuffle(a, b, 0, 2), wasm_i64x2_shuffle(a, b, 1, 3));
}

// y (rows) = x (columns) @ q^T; four rows far from each other pass by side by side, which memory delivers fastest.
static inline void multiply_blocks(Rounded x, Blocks q, int kind, float *y) {
    long apart = (q.rows + HEADS - 1) / HEADS;
    for (long i = 0; i < apart; i++) {
        const unsigned char *row[HEADS];
        for (int k = 0; k < HEADS; k++) row[k] = q.data + smaller(i + k * apart, q.rows - 1) * q.down;
        v128_t total = wasm_f32x4_splat(0);
        const short *numbers = x.q;
        for (long b = 0; b < q.columns / BLOCK; b++, numbers += BLOCK) {
            v128_t part[HEADS], heads = wasm_i32x4_splat(0);
            heads = wasm_v128_load32_lane(row[0], heads, 0), heads = wasm_v128_load32_lane(row[1], heads, 1);
            heads = wasm_v128_load32_lane(row[2], heads, 2), heads = wasm_v128_load32_lane(row[3], heads, 3);
#pragma unroll
            for (int k = 0; k < HEADS; k++) {
                part[k] = products_of(row[k] + kind - (kind == Q4_1 ? BLOCK / 2 : BLOCK), numbers, kind);
                row[k] += kind;
            }
            v128_t scale = wasm_f32x4_mul(halves(heads), wasm_f32x4_splat(x.scale[b]));
            total = MULTIPLY_ADD(wasm_f32x4_convert_i32x4(sums(part)), scale, total);
            if (kind == Q4_1)
                total = MULTIPLY_ADD(halves(wasm_u32x4_shr(heads, 16)), wasm_f32x4_splat(x.sum[b]), total);
        }
        float rows[HEADS];
        wasm_v128_store(rows, total);
        for (int k = 0; k < HEADS; k++)
            if (i + k * apart < q.rows) y[i + k * apart] = rows[k];
    }
}

// One row as floats.
static void decode_row(const unsigned char *q, long columns, int kind, float *to) {
    for (long b = 0; b < columns / BLOCK; b++, q += kind, to += BLOCK) {
        float head[4];
        v128_t bits = wasm_v128_load32_zero(q);
        wasm_v128_store(head, wasm_i32x4_shuffle(halves(bits), halves(wasm_u32x4_shr(bits, 16)), 0, 4, 1, 5));
        for (int i = 0; i < BLOCK / 2; i++) {
            if (kind == Q4_1) {
                to[i] = head[0] * (q[4 + i] & 15) + head[1], to[i + BLOCK / 2] = head[0] * (q[4 + i] >> 4) + head[1];
            } else {
                const signed char *numbers = (const signed char *)q + 2;
                to[i] = head[0] * numbers[i], to[i + BLOCK / 2] = head[0] * numbers[i + BLOCK / 2];
            }
        }
    }
}

// C (m, rows) = A (m, columns) @ q^T: some rows of q are decoded at a time, and multiplied as any others.
static void multiply_decoded(Matrix A, long m, Blocks q, float *C) {
    long some = smaller(WIDTH, DECODED / q.columns);
    for (long first = 0; first < q.rows; first += some) {
        long rows = smaller(some, q.rows - first);
        for (long i = 0; i < rows; i++)
            decode_row(q.data + (first + i) * q.down, q.columns, q.kind, decoded + i * q.columns);
        Matrix B = {decoded, 1, q.columns};
        for (long k = 0; k < q.columns; k += DEPTH)
            multiply_part(from(A, 0, k), from(B, k, 0), m, rows, smaller(DEPTH, q.columns - k), C + first, q.rows,
                          k > 0);
    }
}

// Exponentials ----------------------------------------------------------------------------------------------------

#define EACH(x) wasm_f32x4_splat(x)

// The polynomial with these coefficients, that of the highest power first.
static inline v128_t polynomial(v128_t x, const float *coefficients, int count) {
    v128_t sum = EACH(coefficients[0]);
#pragma unroll
    for (int i = 1; i < count; i++) sum = MULTIPLY_ADD(sum, x, EACH(coefficients[i]));
    return sum;
}

static v128_t power_of_two(v128_t n) { return wasm_i32x4_shl(wasm_i32x4_add(n, wasm_i32x4_splat(127)), 23); }

// e^x = 2^n e^r with |r| <= ln(2) / 2; the coefficients are those of Moshier's Cephes (expf).
static inline v128_t exp4(v128_t x) {
    static const float fit[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
    x = wasm_f32x4_pmax(wasm_f32x4_pmin(x, EACH(89)), EACH(-110)); // beyond are infinity and 0
    v128_t shift = EACH(0x1.8p23f), shifted = wasm_f32x4_add(wasm_f32x4_mul(x, EACH(1.44269504f)), shift);
    v128_t n = wasm_f32x4_sub(shifted, shift); // so large a number has no fraction: n is whole
    v128_t r = wasm_f32x4_sub(x, wasm_f32x4_mul(n, EACH(0.693359375f))); // ln(2) in two parts, the first exact
    r = wasm_f32x4_sub(r, wasm_f32x4_mul(n, EACH(-2.12194440e-4f)));
    v128_t y = MULTIPLY_ADD(polynomial(r, fit, 6), wasm_f32x4_mul(r, r), r);
    v128_t whole = wasm_i32x4_sub(shifted, shift), half = wasm_i32x4_shr(whole, 1); // 2^n itself may not be a float
    y = wasm_f32x4_mul(wasm_f32x4_add(y, EACH(1)), power_of_two(half));
    return wasm_f32x4_mul(y, power_of_two(wasm_i32x4_sub(whole, half)));
}

// tanh x = 1 - 2 / (e^2x + 1); near 0, where that cancels, an odd polynomial (Cephes, tanhf).
static inline v128_t tanh4(v128_t x) {
    static const float fit[] = {-5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f,
                                -3.33332819422e-1f};
    v128_t size = wasm_f32x4_abs(x), square = wasm_f32x4_mul(x, x);
    v128_t near = MULTIPLY_ADD(wasm_f32x4_mul(polynomial(square, fit, 5), square), x, x);
    v128_t far = wasm_f32x4_add(exp4(wasm_f32x4_add(size, size)), EACH(1));
    far = wasm_f32x4_sub(EACH(1), wasm_f32x4_div(EACH(2), far));
    v128_t result = wasm_v128_bitselect(near, far, wasm_f32x4_lt(size, EACH(0.625f)));
    return wasm_v128_or(result, wasm_v128_and(x, EACH(-0.0f))); // with the sign of x
}

static inline void each(v128_t function(v128_t), const float *x, long count, float *to) {
    for (; count >= 4; count -= 4, x += 4, to += 4) wasm_v128_store(to, function(wasm_v128_load(x)));
    float rest[4] = {0};
    for (long i = 0; i < count; i++) rest[i] = x[i];
    wasm_v128_store(rest, function(wasm_v128_load(rest)));
    for (long i = 0; i < count; i++) to[i] = rest[i];
}

static void exp_of(const float *x, long count, float *to) { each(exp4, x, count, to); }
static void tanh_of(const float *x, long count, float *to) { each(tanh4, x, count, to); }

// What Python calls -----------------------------------------------------------------------------------------------

static PyObject *array_type, *empty, *float32, *numpy_matmul, *numpy_exp, *numpy_tanh;
static PyObject *in_blocks, *transposed_in_blocks, *q4_1_in_numpy, *q8_0_in_numpy;

static int is_plain_array(PyObject *x) {
    PyObject *type = PyObject_Type(x);
    Py_DecRef(type);
    return type == array_type;
}

static PyObject *new_array(int axes, const long *shape) {
    PyObject *tuple = PyTuple_New(axes);
    for (int i = 0; i < axes; i++) PyTuple_SetItem(tuple, i, PyLong_FromSsize_t(shape[i]));
    PyObject *const arguments[] = {tuple, float32};
    PyObject *array = PyObject_Vectorcall(empty, arguments, 2, 0);
    Py_DecRef(tuple);
    return array;
}

// A new array; NULL where NumPy has to multiply, or to say what is wrong.
static PyObject *product(const Py_buffer *a, const Py_buffer *b) {
    int axes = a->ndim > b->ndim ? a->ndim : b->ndim;
    long shape[MAX_AXES];
    if (!is_stack_of_matrices(a) || !is_stack_of_matrices(b) || !shape_of_product(a, b, axes, shape)) return 0;
    PyObject *array = new_array(axes, shape);
    Py_buffer to;
    if (!array || PyObject_GetBuffer(array, &to, PyBUF_STRIDES | PyBUF_WRITABLE)) return 0;
    multiply_stack(a, b, axes, shape, (float *)to.buf);
    PyBuffer_Release(&to);
    return array;
}

// A few rows of floats by 8-bit weights, likewise.
static PyObject *product_int8(const Py_buffer *x, const Py_buffer *q, int transposed) {
    if (x->ndim != 2 || q->ndim != 2 || x->format[0] != 'f' || x->format[1] || q->format[0] != 'b' || q->format[1] ||
        x->strides[0] % (long)sizeof(float) || x->strides[1] != (long)sizeof(float) || q->strides[1] != 1 ||
        x->shape[0] > FEW || x->shape[1] != q->shape[transposed])
        return 0;
    const long shape[] = {x->shape[0], q->shape[!transposed]};
    Weights weights = {(const signed char *)q->buf, q->shape[0], q->shape[1], q->strides[0]};
    PyObject *array = new_array(2, shape);
    Py_buffer to;
    if (!array || PyObject_GetBuffer(array, &to, PyBUF_STRIDES | PyBUF_WRITABLE)) return 0;
    for (long i = 0; i < shape[0]; i++) {
        const float *row = (const float *)(x->buf + i * x->strides[0]);
        float *y = (float *)to.buf + i * shape[1];
        if (transposed) multiply_transposed(row, weights, y);
        else multiply_rows(row, weights, y);
    }
    PyBuffer_Release(&to);
    return array;
}

// Floats by weights in blocks, likewise.
static PyObject *product_blocks(const Py_buffer *x, const Py_buffer *q, int kind) {
    if (x->ndim != 2 || q->ndim != 2 || x->format[0] != 'f' || x->format[1] || q->format[0] != 'B' || q->format[1] ||
        x->strides[0] % (long)sizeof(float) || x->strides[1] != (long)sizeof(float) || q->strides[1] != 1 ||
        q->shape[1] % kind || x->shape[1] != q->shape[1] / kind * BLOCK || x->shape[1] > DECODED / HEADS ||
        !x->shape[1])
        return 0;
    const long shape[] = {x->shape[0], q->shape[0]};
    Blocks blocks = {(const unsigned char *)q->buf, q->shape[0], x->shape[1], q->strides[0], kind};
    PyObject *array = new_array(2, shape);
    Py_buffer to;
    if (!array || PyObject_GetBuffer(array, &to, PyBUF_STRIDES | PyBUF_WRITABLE)) return 0;
    if (shape[0] > FEW) {
        multiply_decoded(last_two_axes(x), shape[0], blocks, (float *)to.buf);
    } else {
        for (long i = 0; i < shape[0]; i++) {
            float *y = (float *)to.buf + i * shape[1];
            Rounded row = round_row((const float *)(x->buf + i * x->strides[0]), x->shape[1]);
            if (kind == Q4_1) multiply_blocks(row, blocks, Q4_1, y);
            else multiply_blocks(row, blocks, Q8_0, y);
        }
    }
    PyBuffer_Release(&to);
    return array;
}

static PyObject *product_q4_1(const Py_buffer *x, const Py_buffer *q) { return product_blocks(x, q, Q4_1); }
static PyObject *product_q8_0(const Py_buffer *x, const Py_buffer *q) { return product_blocks(x, q, Q8_0); }

static PyObject *product_with_rows(const Py_buffer *x, const Py_buffer *q) { return product_int8(x, q, 0); }
static PyObject *product_transposed(const Py_buffer *x, const Py_buffer *q) { return product_int8(x, q, 1); }

static PyObject *of_two(PyObject *product(const Py_buffer *, const Py_buffer *), PyObject *instead,
                        PyObject *const *arguments, Py_ssize_t count) {
    PyObject *result = 0;
    Py_buffer a, b;
    if (count == 2 && is_plain_array(arguments[0]) && is_plain_array(arguments[1]) &&
        !PyObject_GetBuffer(arguments[0], &a, PyBUF_STRIDES | PyBUF_FORMAT)) {
        if (!PyObject_GetBuffer(arguments[1], &b, PyBUF_STRIDES | PyBUF_FORMAT)) {
            result = product(&a, &b);
            PyBuffer_Release(&b);
        }
        PyBuffer_Release(&a);
    }
    if (result) return result;
    PyErr_Clear(); // an array without a buffer, of dates for instance, or no memory: NumPy says which
    return PyObject_Vectorcall(instead, arguments, count, 0);
}

static PyObject *matmul(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    return of_two(product, numpy_matmul, arguments, count);
}

static PyObject *matmul_int8(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    return of_two(product_with_rows, in_blocks, arguments, count);
}

static PyObject *matmul_int8_transposed(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    return of_two(product_transposed, transposed_in_blocks, arguments, count);
}

static PyObject *matmul_q4_1(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    return of_two(product_q4_1, q4_1_in_numpy, arguments, count);
}

static PyObject *matmul_q8_0(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    return of_two(product_q8_0, q8_0_in_numpy, arguments, count);
}

static int is_row_of_floats(const Py_buffer *x) { return x->ndim > 0 && x->format[0] == 'f' && !x->format[1]; }

static int have_one_shape(const Py_buffer *x, const Py_buffer *y) {
    if (x->ndim != y->ndim) return 0;
    for (int i = 0; i < x->ndim; i++)
        if (x->shape[i] != y->shape[i]) return 0;
    return 1;
}

// f(x) in the memory of `to`, or in a new array; NULL where NumPy has to compute it.
static PyObject *filled(void f(const float *, long, float *), const Py_buffer *x, PyObject *to) {
    Py_buffer y;
    if (!is_row_of_floats(x)) return 0;
    if (to) Py_IncRef(to);
    else to = new_array(x->ndim, x->shape);
    if (to && !PyObject_GetBuffer(to, &y, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | PyBUF_WRITABLE)) {
        int fits = is_row_of_floats(&y) && have_one_shape(x, &y);
        if (fits) f((const float *)x->buf, x->len / (long)sizeof(float), (float *)y.buf);
        PyBuffer_Release(&y);
        if (fits) return to;
    }
    if (to) Py_DecRef(to);
    return 0;
}

static PyObject *elementwise(void f(const float *, long, float *), PyObject *numpys, PyObject *const *arguments,
                             Py_ssize_t count) {
    PyObject *result = 0;
    Py_buffer x;
    if ((count == 1 || (count == 2 && is_plain_array(arguments[1]))) && is_plain_array(arguments[0]) &&
        !PyObject_GetBuffer(arguments[0], &x, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)) {
        result = filled(f, &x, count == 2 ? arguments[1] : 0);
        PyBuffer_Release(&x);
    }
    if (result) return result;
    PyErr_Clear(); // not in one piece, for instance
    return PyObject_Vectorcall(numpys, arguments, count, 0);
}

static PyObject *exp(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    return elementwise(exp_of, numpy_exp, arguments, count);
}

static PyObject *tanh(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    return elementwise(tanh_of, numpy_tanh, arguments, count);
}

// use(np.ndarray, np.empty, np.dtype('f4'), np.matmul, np.exp, np.tanh, and the products with 8-bit
// weights and with blocks in NumPy): what the others need.
static PyObject *use(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    PyObject **kept[] = {&array_type, &empty,     &float32,   &numpy_matmul,         &numpy_exp,
                         &numpy_tanh, &in_blocks, &transposed_in_blocks, &q4_1_in_numpy, &q8_0_in_numpy};
    for (int i = 0; i < 10; i++) Py_IncRef(*kept[i] = arguments[i]);
    packed = PyMem_RawMalloc(DEPTH * WIDTH * sizeof(float));
    decoded = PyMem_RawMalloc(DECODED * sizeof(float));
    return PyLong_FromSsize_t(packed && decoded);
}

static PyMethodDef methods[] = {
    {"matmul", matmul, METH_FASTCALL, "matmul(a, b): the product, as np.matmul has it"},
    {"matmul_int8", matmul_int8, METH_FASTCALL, "matmul_int8(x, q): x @ q, q of 8-bit integers"},
    {"matmul_int8_transposed", matmul_int8_transposed, METH_FASTCALL, "matmul_int8_transposed(x, q): x @ q.T"},
    {"matmul_q4_1", matmul_q4_1, METH_FASTCALL, "matmul_q4_1(x, q): x @ q.T, the rows of q in blocks of Q4_1"},
    {"matmul_q8_0", matmul_q8_0, METH_FASTCALL, "matmul_q8_0(x, q): x @ q.T, the rows of q in blocks of Q8_0"},
    {"exp", exp, METH_FASTCALL, "exp(x, out): as np.exp has it"},
    {"tanh", tanh, METH_FASTCALL, "tanh(x, out): as np.tanh has it"},
    {"use", use, METH_FASTCALL, "use(...): what the others need of NumPy"},
    {0},
};
static PyModuleDef definition = {.references = 1, .name = "kernels", .size = -1, .methods = methods};

__attribute__((visibility("default"))) PyObject *PyInit_kernels(void) {
    return PyModule_Create2(&definition, STABLE_ABI);
}
