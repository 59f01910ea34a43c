/* The accelerator of a scan: reads the records of known layouts into columns, and finds those that Python must read.

   receipt_cli/scan/kernel/reader.py is its only user, receipt_cli/scan/engine.py the definition of what it gives: the
   columns are those of the record-by-record path, to the last bit. C99 and the stable ABI of Python 3.11; no static
   state. The interpreter lock is released while records are read, and taken only to ask for a text not seen before.

   A layout is the bytes of a record whose digits may vary at some places (receipt_cli/scan/layout.py). A key, which no
   digit changes, selects the layouts to compare a record with; every byte is compared. A record is read only when each
   of its values is certain. Any other record that contains a literal is handed back. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <float.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define LIKELY(x) __builtin_expect(!!(x), 1)
#else
#define LIKELY(x) (x)
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

typedef unsigned char byte;

#define MAX_LENGTH 16384         /* bytes of a record that may have a layout: MAX_LENGTH of scan/layout.py */
#define WORD 8
#define MAX_ID 65536             /* tables, columns, grammars and rules are numbered below */
#define MAX_VALUES 4096          /* values of one record */
#define MAX_MEMO 65536           /* texts whose meaning is kept */
#define MAX_MEMO_BYTES (8 << 20)
#define POSITION_BITS 17         /* of scan/columns.py */
#define NO_RANK (-1)
#define HIGH UINT64_C(0x8080808080808080)
#define MAY_BE_DIGIT UINT64_C(0x1010101010101010)
#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)

/* ---- words ---- */

static uint64_t load64(const byte *p) {
    uint64_t x;
    memcpy(&x, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

/* Return the `count` bytes at p, below 8, as a word; `room` bytes may be read there. */
static uint64_t load_part(const byte *p, size_t count, size_t room) {
    uint64_t x = 0;
    size_t i;
    if (LIKELY(room >= 8)) return load64(p) & ((UINT64_C(1) << (8 * count)) - 1);
    for (i = 0; i < count; i++) x |= (uint64_t)p[i] << (8 * i);
    return x;
}

static uint32_t load32(const byte *p) {
    uint32_t x;
    memcpy(&x, p, 4);
    return x;
}

static int is_digit(byte c) { return (byte)(c - '0') <= 9; }

/* ---- growing memory: malloc, since it grows without the interpreter lock ---- */

/* Make room for `count` items of `size` bytes; return 0 where there is none. */
static int reserve(void **data, size_t *capacity, size_t count, size_t size) {
    size_t wanted;
    void *grown;
    if (LIKELY(count <= *capacity)) return 1;
    wanted = *capacity < 64 ? 64 : *capacity + *capacity / 2;
    if (wanted < count) wanted = count;
    if (wanted > SIZE_MAX / 2 / size) return 0;
    grown = realloc(*data, wanted * size);
    if (grown == NULL) return 0;
    *data = grown;
    *capacity = wanted;
    return 1;
}

typedef struct {
    int64_t *data;
    size_t count, capacity;
} Integers;

static int push(Integers *list, int64_t value) {
    if (!reserve((void **)&list->data, &list->capacity, list->count + 1, sizeof(int64_t))) return 0;
    list->data[list->count++] = value;
    return 1;
}

/* ---- literals ---- */

typedef struct {
    const byte *text;
    uint32_t length, offset, next;  /* `offset`: of its window of four bytes; `next`: the next literal of that slot */
} Literal;

typedef struct {
    uint8_t bits[32768];  /* finer than the heads: few slots that hold no literal look as if they did */
    uint32_t heads[65536];
    Literal *literals;  /* from 1 on; those shorter than a window come last and are in no slot */
    uint32_t count, windowed;
    byte *text;
} Gate;

static uint32_t slot_of(const byte *p) { return (load32(p) * UINT32_C(0x9E3779B1)) >> 14; }

static int commonness(byte c) {
    if (c == ' ' || is_digit(c) || (c != 0 && strchr("eatoinsrlE", c) != NULL)) return 4;
    return c >= 'a' && c <= 'z' ? 2 : 1;
}

static void gate_enter(Gate *gate, uint32_t number) {
    Literal *literal = &gate->literals[number];
    uint32_t at, best = 0, slot;
    int least = 1000;
    for (at = 0; at + 4 <= literal->length; at++) {
        const byte *p = literal->text + at;
        int score = commonness(p[0]) + commonness(p[1]) + commonness(p[2]) + commonness(p[3]);
        if (score < least) {
            least = score;
            best = at;
        }
    }
    literal->offset = best;
    slot = slot_of(literal->text + best);
    literal->next = gate->heads[slot >> 2];
    gate->heads[slot >> 2] = number;
    gate->bits[slot >> 3] |= (uint8_t)(1u << (slot & 7));
}

static int gate_verify(const Gate *gate, uint32_t slot, const byte *p, size_t length, size_t at) {
    uint32_t number;
    for (number = gate->heads[slot >> 2]; number != 0; number = gate->literals[number].next) {
        const Literal *one = &gate->literals[number];
        if (at >= one->offset && at - one->offset + one->length <= length &&
            memcmp(p + at - one->offset, one->text, one->length) == 0)
            return 1;
    }
    return 0;
}

/* Return whether the record contains a literal. */
static int gate_find(const Gate *gate, const byte *p, size_t length) {
    size_t at;
    uint32_t number;
    for (at = 0; at + 4 <= length; at++) {
        uint32_t slot = slot_of(p + at);
        if ((gate->bits[slot >> 3] >> (slot & 7)) & 1 && gate_verify(gate, slot, p, length, at)) return 1;
    }
    for (number = gate->windowed + 1; number <= gate->count; number++) {
        const Literal *one = &gate->literals[number];
        for (at = 0; at + one->length <= length; at++)
            if (memcmp(p + at, one->text, one->length) == 0) return 1;
    }
    return 0;
}

/* ---- UTF-8 as Python's decoder defines it ---- */

static int is_utf8(const byte *p, size_t length) {
    size_t i = 0;
    while (i < length) {
        byte c = p[i], low = 0x80, high = 0xBF;
        size_t more, j;
        if (c < 0x80) {
            i++;
            continue;
        }
        if (c >= 0xC2 && c <= 0xDF) more = 1;
        else if (c >= 0xE0 && c <= 0xEF) {
            more = 2;
            if (c == 0xE0) low = 0xA0;
            if (c == 0xED) high = 0x9F;  /* no surrogates */
        } else if (c >= 0xF0 && c <= 0xF4) {
            more = 3;
            if (c == 0xF0) low = 0x90;
            if (c == 0xF4) high = 0x8F;
        } else return 0;
        if (more >= length - i) return 0;
        if (p[i + 1] < low || p[i + 1] > high) return 0;
        for (j = 2; j <= more; j++)
            if ((p[i + j] & 0xC0) != 0x80) return 0;
        i += more + 1;
    }
    return 1;
}

/* ---- numbers ---- */

#define MOST_POWER 45  /* 10**45 is the sum of two float64s; 10**22 is one */
static const double TENS[MOST_POWER + 1][2] = {
    {1e0, 0.0}, {1e1, 0.0}, {1e2, 0.0}, {1e3, 0.0}, {1e4, 0.0}, {1e5, 0.0}, {1e6, 0.0}, {1e7, 0.0}, {1e8, 0.0},
    {1e9, 0.0}, {1e10, 0.0}, {1e11, 0.0}, {1e12, 0.0}, {1e13, 0.0}, {1e14, 0.0}, {1e15, 0.0}, {1e16, 0.0}, {1e17, 0.0},
    {1e18, 0.0}, {1e19, 0.0}, {1e20, 0.0}, {1e21, 0.0}, {1e22, 0.0},
    {1e+23, 8388608.0}, {1e+24, 16777216.0}, {1e+25, -905969664.0}, {1e+26, -4764729344.0}, {1e+27, -13287555072.0},
    {1e+28, 416880263168.0}, {1e+29, 8566849142784.0}, {1e+30, -19884624838656.0}, {1e+31, 364103705034752.0},
    {1e+32, -5366162204393472.0}, {1e+33, 5.442476901295718e+16}, {1e+34, 5.4424769012957184e+17},
    {1e+35, 3.1366338920820244e+18}, {1e+36, -4.242063737401796e+19}, {1e+37, 4.6123734179787886e+20},
    {1e+38, 2.251190176543966e+21}, {1e+39, 6.029083362839682e+22}, {1e+40, -3.037860284270037e+23},
    {1e+41, -6.200086450407783e+23}, {1e+42, -4.488571267807592e+25}, {1e+43, -1.393721169594141e+26},
    {1e+44, -8.821361405306423e+27}, {1e+45, 7.024271097546445e+28},
};

/* Return the exact error of the product of two numbers (T. J. Dekker, "A floating-point technique for extending the
   available precision", 1971). */
static double product_error(double product, double left, double right) {
    const double splitter = 134217729.0;  /* 2**27 + 1 */
    double scaled = left * splitter, other = right * splitter;
    double left_high = scaled - (scaled - left), right_high = other - (other - right);
    double left_low = left - left_high, right_low = right - right_high;
    return ((left_high * right_high - product) + left_high * right_low + left_low * right_high) + left_low * right_low;
}

/* Set *out to integer * 10**power, rounded once; return 0 where that is not certain.

   Both exact in float64: one operation rounds (W. D. Clinger, "How to read floating point numbers accurately", 1990).
   Else in the sum of two float64s, whose rounding is certain where it is the same a little above and below (A. Ziv). */
static int scale(uint64_t integer, int power, double *out) {
    double head, tail, high, low, value, rest, product, error, slack, upper;
    int size = power < 0 ? -power : power;
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
    if (integer > (UINT64_C(1) << 53) || power != 0) return 0;  /* this processor rounds twice */
#endif
    if (LIKELY(integer <= (UINT64_C(1) << 53) && size <= 22)) {
        *out = power < 0 ? (double)integer / TENS[size][0] : (double)integer * TENS[size][0];
        return 1;
    }
    if (integer == 0 || power == 0) {
        *out = (double)integer;
        return 1;
    }
    if (integer >= (UINT64_C(1) << 62) || size > MOST_POWER) return 0;
    high = TENS[size][0];
    low = TENS[size][1];
    head = (double)integer;
    tail = (double)((int64_t)integer - (int64_t)head);
    if (power < 0) {
        value = head / high;
        product = value * high;
        error = product_error(product, value, high);
        rest = ((head - product) - error + tail - value * low) / high;
    } else {
        value = head * high;
        rest = product_error(value, head, high) + (head * low + tail * high);
    }
    slack = value * 3.1554436208840472e-30;  /* 2**-98: the relative error is at most about 2**-101 */
    upper = value + (rest + slack);
    *out = upper;
    return upper == value + (rest - slack);
}

typedef struct {
    int32_t kind, column, start, end, resolver, power, bounded;
    uint64_t times;
    double factor, least;
} Value;

/* Set *out to the number that p[0:length] spells, times `times` * 10**`power` * `factor`, rounded once; return 0 where
   that is not certain. The layout has proved the form: a sign, digits, commas and a point between them, an exponent. */
static int read_decimal(const byte *p, size_t length, uint64_t times, int power, double factor, double *out) {
    const byte *end = p + length;
    uint64_t integer = 0;
    int digits = 0, behind = 0, exponent = 0, negative = 0, down = 0, count = 0, leading = 0;
    double value;
    if (p < end && (*p == '-' || *p == '+')) negative = *p++ == '-';
    if (LIKELY(end - p <= 18)) {  /* no more digits than an integer holds */
        const byte *begin = p, *point;
        for (; p < end && is_digit(*p); p++) integer = integer * 10 + (uint64_t)(*p - '0');
        count = (int)(p - begin);
        if (p < end && *p == '.') {
            for (point = ++p; p < end && is_digit(*p); p++) integer = integer * 10 + (uint64_t)(*p - '0');
            count += (int)(p - point);
            power -= (int)(p - point);
            if (p < end && (*p == '.' || *p == ',')) return 0;
        } else if (p < end && *p == ',') p = begin, integer = 0, count = 0;
    }
    if (count == 0) {
        for (; p < end; p++) {
            unsigned d = (unsigned)*p - '0';
            if (LIKELY(d <= 9)) {
                digits += integer != 0;
                if (digits > 18) return 0;
                leading |= count == 0 && d == 0;
                integer = integer * 10 + d;
                power -= behind;
                count++;
            } else if (*p == '.') {
                if (behind) return 0;
                behind = 1;
            } else if (*p == ',') {
                if (behind || count == 0 || leading) return 0;  /* no thousands begin with a zero */
            } else break;
        }
    }
    if (count == 0) return 0;
    if (p < end) {
        if (*p != 'e' && *p != 'E') return 0;
        p++;
        if (p < end && (*p == '-' || *p == '+')) down = *p++ == '-';
        if (p == end || end - p > 3) return 0;
        for (; p < end; p++) {
            if (!is_digit(*p)) return 0;
            exponent = exponent * 10 + (*p - '0');
        }
        power += down ? -exponent : exponent;
    }
    if (times != 1) {
        if (integer > (UINT64_C(1) << 62) / times) return 0;
        integer *= times;
    }
    if (!scale(integer, power, &value)) return 0;
    value *= factor;
    *out = negative ? -value : value;
    return 1;
}

/* ---- what texts mean: Python is asked once ---- */

enum { NOTHING, NUMBER, TEXT, MOMENT, UNREADABLE };

typedef struct {
    uint64_t key;
    size_t at;  /* of its bytes */
    uint32_t length;
    int32_t resolver, kind, moves;
    int64_t integer;      /* the number of a text; a rank */
    double value, taken;  /* a number; the clock at midnight, and what to take off it */
} Meaning;

typedef struct {
    Meaning *all;
    size_t count, capacity;
    byte *bytes;
    size_t used, room;
    uint32_t *slots;  /* 2 * MAX_MEMO; 0: none */
} Memo;

static uint64_t mix(uint64_t key) {
    key ^= key >> 32;
    key *= GOLDEN;
    return key ^ (key >> 29);
}

static uint64_t key_of_text(int resolver, const byte *p, size_t length) {
    uint64_t key = (uint64_t)resolver * GOLDEN + length;
    size_t at;
    for (at = 0; at + 8 <= length; at += 8) key = mix(key ^ load64(p + at));
    return mix(key ^ load_part(p + at, length - at, 0));
}

/* ---- layouts ---- */

typedef struct {
    int32_t table, offset, prefix, resolver, time, time_end, values;
    uint32_t last;  /* the number of the prefix's latest meaning */
} Event;

typedef struct {
    int32_t start, length;
    byte *text;
} Absent;

typedef struct {
    int32_t first, length, second, room;
    uint64_t same;
} Echo;

typedef struct Layout Layout;

struct Layout {
    uint64_t key;
    Layout *next;  /* of the record that came behind the latest one of this layout */
    uint32_t length, words;
    uint64_t *masked, *room;
    Event *events;
    Value *values;
    Echo *echoes;
    Absent *absent;
    int32_t *ignored, *near_;
    int32_t event_count, value_count, ignored_count, near_count, echo_count, absent_count;
    int32_t bad, hit, any_bar;  /* whether its records are not UTF-8, whether a rule explains them, and any_bar of layout.py */
};

enum { DECIMAL, ASKED_NUMBER, ASKED_TEXT, CONSTANT_NUMBER, CONSTANT_TEXT, PLACE, DIGITS };
#define PLACE_BITS 40  /* of a value of a place: that of its record in the block, below a number */
#define MAX_DIGITS 18  /* of a number among the digits of a text */

typedef struct {
    double *values;  /* or, as int64, the numbers of texts */
    size_t count, capacity;
    Integers rows;  /* while `sparse`: else value i is that of row i */
    int sparse;
} Column;

typedef struct {
    int64_t *at, *line, *rank;
    double *clock;
    size_t count, capacity;
    Integers order;  /* the columns by first appearance */
} Table;

typedef struct {
    int64_t ordinal, line;
    Py_ssize_t start, end;
    int32_t rule;
} Miss;

typedef struct {
    int64_t count;
    int32_t kept;
} Misses;

#define QUIET_LENGTH 512  /* bytes of a record whose form is kept */
#define QUIET_SLOTS 4096

typedef struct {
    uint64_t key, last, never;  /* of the form; of the latest other record that belonged here; of one whose digits matter */
    uint64_t *words;     /* of the form, its digits as 0, each with the room that they leave: see `fits` */
    uint32_t length;
    int bad, blank;
} Form;

typedef struct {
    Form forms[QUIET_SLOTS];
    Gate *gate;  /* of the literals, their digits as 0 */
} Quiet;

typedef struct {
    PyObject_HEAD
    PyObject *resolve;
    Gate *gate;
    Quiet *quiet;
    Memo memo;
    Layout **layouts;
    Layout *latest;  /* of the latest record that had one as it was printed */
    size_t layout_count, layout_capacity;
    uint32_t *slots;  /* of layouts: the number from 1 on, 0: none */
    size_t slot_count;
    uint64_t factors[MAX_LENGTH / WORD + 1];
    double *scratch;
    byte known[MAX_VALUES];
    byte masked_prefix[MAX_LENGTH];
    byte shortened[MAX_LENGTH + WORD];
    Table *tables;
    size_t table_count, table_capacity;
    Column *columns;
    size_t column_count, column_capacity;
    Integers *ignored;
    size_t ignored_count, ignored_capacity;
    Integers matched;  /* records that are not UTF-8 and that a rule explains */
    Misses *misses;
    size_t miss_count, miss_capacity;
    Miss *missed;
    size_t missed_count, missed_capacity;
    int32_t first;  /* near-misses of a rule that are kept */
    Py_buffer text;
    int reading, busy, handed;  /* `handed`: the last record was handed back */
    size_t at;
    Py_ssize_t newline, carriage;
    int64_t ordinal, line, blank, undecodable;
    struct {
        size_t at;
        int64_t ordinal, line, blank, undecodable;
    } left;  /* before the record that was handed back last */
    PyThreadState *saved;
    int no_memory;
} Kernel;

static uint64_t key_of(const Kernel *kernel, const byte *p, size_t length, size_t room, uint64_t *high) {
    uint64_t key = length * GOLDEN, seen = 0, x, ones;
    size_t word = 0, at;
    for (at = 0; at + 8 <= length; at += 8, word++) {
        x = load64(p + at);
        seen |= x;
        ones = x & MAY_BE_DIGIT;
        key += (x | (ones - (ones >> 4))) * kernel->factors[word];
    }
    if (at < length) {
        x = load_part(p + at, length - at, room - at);
        seen |= x;
        ones = x & MAY_BE_DIGIT;
        key += (x | (ones - (ones >> 4))) * kernel->factors[word];
    }
    *high = seen & HIGH;
    return key ^ (key >> 32);
}

/* Return whether the record has the layout: what differs from its bytes, its moving digits masked as 0, is 0, or 0 to 9
   at a moving digit. Either way it stays below 0x80 when the room of the place is added, and anything else does not. */
static int fits(const Layout *layout, const byte *p, size_t room) {
    uint64_t high = 0, differs;
    size_t word, whole = layout->length / WORD;
    for (word = 0; word < whole; word++) {
        differs = load64(p + word * WORD) ^ layout->masked[word];
        high |= (differs + layout->room[word]) | differs;
    }
    if (whole < layout->words) {
        differs = load_part(p + whole * WORD, layout->length % WORD, room - whole * WORD) ^ layout->masked[whole];
        high |= (differs + layout->room[whole]) | differs;
    }
    return (high & HIGH) == 0;
}

/* Return whether the digits of a record that fits are those of the layout, where patterns and literals tell them apart. */
static int agrees(const Layout *layout, const byte *p) {
    int i, at;
    for (i = 0; i < layout->absent_count; i++)
        if (memcmp(p + layout->absent[i].start, layout->absent[i].text, (size_t)layout->absent[i].length) == 0) return 0;
    for (i = 0; i < layout->echo_count; i++) {
        const Echo *echo = &layout->echoes[i];
        uint64_t same = 0;
        for (at = 0; at < echo->length; at++) {
            int rest = echo->length - at;
            if (rest <= echo->room && memcmp(p + echo->first + at, p + echo->second, (size_t)rest) == 0)
                same |= UINT64_C(1) << at;
        }
        if (same != echo->same) return 0;
    }
    return 1;
}

static Layout *find_layout(const Kernel *kernel, const byte *p, size_t length, size_t room, uint64_t key) {
    size_t slot;
    if (kernel->slot_count == 0) return NULL;
    for (slot = key & (kernel->slot_count - 1); kernel->slots[slot] != 0; slot = (slot + 1) & (kernel->slot_count - 1)) {
        Layout *layout = kernel->layouts[kernel->slots[slot] - 1];
        if (layout->key == key && layout->length == length && fits(layout, p, room) && agrees(layout, p)) return layout;
    }
    return NULL;
}

static void enter_layout(Kernel *kernel, size_t number) {
    size_t slot = kernel->layouts[number]->key & (kernel->slot_count - 1);
    while (kernel->slots[slot] != 0) slot = (slot + 1) & (kernel->slot_count - 1);
    kernel->slots[slot] = (uint32_t)number + 1;
}

/* ---- asking Python ---- */

static Meaning *find_meaning(const Memo *memo, uint64_t key, int resolver, const byte *p, size_t length) {
    size_t slot;
    for (slot = key & (2 * MAX_MEMO - 1); memo->slots[slot] != 0; slot = (slot + 1) & (2 * MAX_MEMO - 1)) {
        Meaning *found = &memo->all[memo->slots[slot] - 1];
        if (found->key == key && found->resolver == resolver && found->length == length &&
            memcmp(memo->bytes + found->at, p, length) == 0)
            return found;
    }
    return NULL;
}

/* Set *out to what the callable `resolve` answers; return 0 with an exception set. The interpreter lock is held. */
static int ask(Kernel *kernel, int resolver, const byte *p, size_t length, Meaning *out) {
    PyObject *answer = PyObject_CallFunction(kernel->resolve, "iy#", resolver, (const char *)p, (Py_ssize_t)length);
    int fine = 1;
    if (answer == NULL) return 0;
    if (answer == Py_None) out->kind = NOTHING;
    else if (answer == Py_NotImplemented) out->kind = UNREADABLE;
    else if (PyFloat_Check(answer)) {
        out->kind = NUMBER;
        out->value = PyFloat_AsDouble(answer);
    } else if (PyLong_Check(answer)) {
        out->kind = TEXT;
        out->integer = PyLong_AsLongLong(answer);
        fine = !PyErr_Occurred();
    } else if (!PyTuple_Check(answer)) {
        PyErr_SetString(PyExc_TypeError, "no answer to a text");
        fine = 0;
    } else {
        long long rank = NO_RANK;
        out->kind = MOMENT;
        fine = PyArg_ParseTuple(answer, "Lddp", &rank, &out->value, &out->taken, &out->moves);
        out->integer = rank;
    }
    Py_DECREF(answer);
    return fine;
}

/* Return what a text means, which lasts until the next call; NULL with an exception set, or without memory. */
static const Meaning *meaning_of(Kernel *kernel, int resolver, const byte *p, size_t length, Meaning *spare) {
    uint64_t key = key_of_text(resolver, p, length);
    Memo *memo = &kernel->memo;
    Meaning *found = find_meaning(memo, key, resolver, p, length);
    size_t slot;
    int fine;
    if (LIKELY(found != NULL)) return found;
    memset(spare, 0, sizeof *spare);
    PyEval_RestoreThread(kernel->saved);
    fine = ask(kernel, resolver, p, length, spare);
    kernel->saved = PyEval_SaveThread();
    if (!fine) return NULL;
    if (memo->count >= MAX_MEMO || memo->used + length > MAX_MEMO_BYTES) return spare;
    if (!reserve((void **)&memo->all, &memo->capacity, memo->count + 1, sizeof(Meaning)) ||
        !reserve((void **)&memo->bytes, &memo->room, memo->used + length + 1, 1)) {
        kernel->no_memory = 1;
        return NULL;
    }
    spare->key = key;
    spare->resolver = resolver;
    spare->at = memo->used;
    spare->length = (uint32_t)length;
    if (length) memcpy(memo->bytes + memo->used, p, length);
    memo->used += length;
    memo->all[memo->count++] = *spare;
    slot = key & (2 * MAX_MEMO - 1);
    while (memo->slots[slot] != 0) slot = (slot + 1) & (2 * MAX_MEMO - 1);
    memo->slots[slot] = (uint32_t)memo->count;
    return &memo->all[memo->count - 1];
}

/* ---- reading one record of a layout ---- */

enum { READ, LEFT, FAILED };

static int two_digits(const byte *p) { return 10 * (p[0] - '0') + (p[1] - '0'); }

/* Set rank and clock of an event: Prefix.read of scan/layout.py. */
static int read_prefix(Kernel *kernel, Event *event, const byte *p, int64_t *rank, double *clock) {
    const byte *prefix = p;
    const Meaning *day = NULL;
    Meaning spare;
    int i, hour, minute, second, begin, digits;
    int64_t part = 0;
    if (event->time >= 0) {
        memcpy(kernel->masked_prefix, p, (size_t)event->prefix);
        for (i = event->time; i < event->time_end; i++)
            if (is_digit(p[i])) kernel->masked_prefix[i] = '0';
        prefix = kernel->masked_prefix;
    }
    if (event->last != 0) {
        day = &kernel->memo.all[event->last - 1];
        if (day->length != (uint32_t)event->prefix || day->resolver != event->resolver ||
            memcmp(kernel->memo.bytes + day->at, prefix, day->length) != 0)
            day = NULL;
    }
    if (day == NULL) {
        day = meaning_of(kernel, event->resolver, prefix, (size_t)event->prefix, &spare);
        if (day == NULL) return FAILED;
        if (day != &spare) event->last = (uint32_t)(day - kernel->memo.all) + 1;
    }
    if (day->kind != MOMENT) return LEFT;
    *rank = day->integer;
    *clock = day->value;
    if (event->time < 0 || !day->moves) return READ;
    hour = two_digits(p + event->time);
    minute = two_digits(p + event->time + 3);
    second = two_digits(p + event->time + 6);
    if (hour > 23 || minute > 59 || second > 59) return LEFT;
    *clock = day->value + (double)(3600 * hour + 60 * minute + second);
    begin = event->time + 9;
    digits = event->time_end - begin;
    if (digits > 0) {
        for (i = begin; i < event->time_end; i++) part = part * 10 + (p[i] - '0');
        *clock = *clock + (double)part / TENS[digits][0];
    }
    *clock = *clock - day->taken;
    return READ;
}

/* Compute all values of the record p, which begins at `start` of the block, into the scratch memory. */
static int compute(Kernel *kernel, Layout *layout, const byte *p, size_t start) {
    const Value *value = layout->values;
    const Meaning *meaning;
    Meaning spare;
    double *out = kernel->scratch;
    int64_t place;
    uint64_t digits;
    int event, i, at, made;
    for (event = 0; event < layout->event_count; event++) {
        Event *one = &layout->events[event];
        int64_t rank = NO_RANK;
        double clock = Py_NAN;
        if (one->prefix > 0 && (made = read_prefix(kernel, one, p, &rank, &clock)) != READ) return made;
        memcpy(out++, &rank, sizeof rank);
        *out++ = clock;
        for (i = 0; i < one->values; i++, value++, out++) {
            byte *known = &kernel->known[value - layout->values];
            *known = 1;
            switch (value->kind) {
            case DECIMAL:
                if (!read_decimal(p + value->start, (size_t)(value->end - value->start), value->times, value->power,
                                  value->factor, out))
                    return LEFT;
                if (value->bounded && *out < value->least) return LEFT;
                break;
            case CONSTANT_NUMBER:
                *out = value->least;
                break;
            case CONSTANT_TEXT:
                memcpy(out, &value->times, sizeof value->times);
                break;
            case PLACE:
                place = (int64_t)(value->times << PLACE_BITS) | (int64_t)start;
                memcpy(out, &place, sizeof place);
                break;
            case DIGITS:
                for (at = value->start, digits = 0; at < value->end; at++)
                    if (is_digit(p[at])) digits = digits * 10 + (uint64_t)(p[at] - '0');
                memcpy(out, &digits, sizeof digits);
                break;
            default:
                meaning = meaning_of(kernel, value->resolver, p + value->start, (size_t)(value->end - value->start), &spare);
                if (meaning == NULL) return FAILED;
                if (meaning->kind == NOTHING) *known = 0;
                else if (meaning->kind == NUMBER && value->kind == ASKED_NUMBER) *out = meaning->value;
                else if (meaning->kind == TEXT && value->kind == ASKED_TEXT)
                    memcpy(out, &meaning->integer, sizeof meaning->integer);
                else return LEFT;
            }
        }
    }
    return READ;
}

static int append_row(Table *table, int64_t at, int64_t line, int64_t rank, double clock) {
    size_t room = table->capacity, wanted = table->count + 1;
    if (wanted > room) {
        size_t a = room, b = room, c = room, d = room;
        if (!reserve((void **)&table->at, &a, wanted, 8) || !reserve((void **)&table->line, &b, wanted, 8) ||
            !reserve((void **)&table->rank, &c, wanted, 8) || !reserve((void **)&table->clock, &d, wanted, 8))
            return 0;
        table->capacity = a;
    }
    table->at[table->count] = at;
    table->line[table->count] = line;
    table->rank[table->count] = rank;
    table->clock[table->count++] = clock;
    return 1;
}

static int append_value(Table *table, Column *column, int32_t number, size_t row, double value) {
    if (column->count == 0 && !push(&table->order, number)) return 0;
    if (!column->sparse && column->count != row) {
        size_t i;
        for (i = 0; i < column->count; i++)
            if (!push(&column->rows, (int64_t)i)) return 0;
        column->sparse = 1;
    }
    if (column->sparse && !push(&column->rows, (int64_t)row)) return 0;
    if (!reserve((void **)&column->values, &column->capacity, column->count + 1, sizeof(double))) return 0;
    memcpy(&column->values[column->count++], &value, sizeof value);
    return 1;
}

static int append_miss(Kernel *kernel, int32_t rule, int64_t ordinal, int64_t line, size_t start, size_t end) {
    Misses *misses = &kernel->misses[rule];
    misses->count++;
    if (misses->kept >= kernel->first) return 1;
    if (!reserve((void **)&kernel->missed, &kernel->missed_capacity, kernel->missed_count + 1, sizeof(Miss))) return 0;
    kernel->missed[kernel->missed_count].ordinal = ordinal;
    kernel->missed[kernel->missed_count].line = line;
    kernel->missed[kernel->missed_count].start = (Py_ssize_t)start;
    kernel->missed[kernel->missed_count].end = (Py_ssize_t)end;
    kernel->missed[kernel->missed_count++].rule = rule;
    misses->kept++;
    return 1;
}

/* Read one record p of a layout, printed from `start` to `end`, into the columns; LEFT where Python must, and then nothing
   was appended. */
static int read_layout(Kernel *kernel, Layout *layout, const byte *p, size_t start, size_t end, int64_t ordinal, int64_t line) {
    const Value *value = layout->values;
    const double *made = kernel->scratch;
    int event, i, done = compute(kernel, layout, p, start);
    if (done != READ) return done;
    for (event = 0; event < layout->event_count; event++) {
        const Event *one = &layout->events[event];
        Table *table = &kernel->tables[one->table];
        size_t row = table->count;
        int64_t rank;
        memcpy(&rank, made++, sizeof rank);
        if (!append_row(table, ordinal * ((int64_t)1 << POSITION_BITS) + one->offset, line, rank, *made++)) goto failed;
        for (i = 0; i < one->values; i++, value++, made++) {
            Column *column = &kernel->columns[value->column];
            if (!kernel->known[value - layout->values]) continue;
            if (!append_value(table, column, value->column, value->kind == DIGITS ? column->count : row, *made)) goto failed;
        }
    }
    for (i = 0; i < layout->ignored_count; i++)
        if (!push(&kernel->ignored[layout->ignored[i]], ordinal)) goto failed;
    if (layout->bad && layout->hit && !push(&kernel->matched, ordinal)) goto failed;
    for (i = 0; i < layout->near_count; i++)
        if (!append_miss(kernel, layout->near_[i], ordinal, line, start, end)) goto failed;
    return READ;
failed:
    kernel->no_memory = 1;
    return FAILED;
}

/* ---- quiet records: of a form that contains no literal, whatever its digits are ---- */

static Gate *copy_masked(const Gate *gate) {
    Gate *made = calloc(1, sizeof(Gate));
    uint32_t number;
    size_t total = 1, at = 0, i;
    if (made == NULL) return NULL;
    for (number = 1; number <= gate->count; number++) total += gate->literals[number].length;
    made->literals = calloc((size_t)gate->count + 1, sizeof(Literal));
    made->text = malloc(total);
    if (made->literals == NULL || made->text == NULL) {
        free(made->literals);
        free(made->text);
        free(made);
        return NULL;
    }
    made->count = gate->count;
    made->windowed = gate->windowed;
    for (number = 1; number <= gate->count; number++) {
        const Literal *one = &gate->literals[number];
        made->literals[number].text = made->text + at;
        made->literals[number].length = one->length;
        for (i = 0; i < one->length; i++) made->text[at++] = is_digit(one->text[i]) ? '0' : one->text[i];
        if (number <= made->windowed) gate_enter(made, number);
    }
    return made;
}

/* Return the quiet form of a record, NULL where it has none; `room` bytes may be read. */
static const Form *find_quiet(const Quiet *quiet, const byte *p, size_t length, size_t room, uint64_t key) {
    const Form *form = &quiet->forms[key & (QUIET_SLOTS - 1)];
    uint64_t high = 0, differs;
    size_t word, whole = length / WORD;
    if (form->key != key || form->words == NULL || form->length != length) return NULL;
    for (word = 0; word < whole; word++) {
        differs = load64(p + word * WORD) ^ form->words[2 * word];
        high |= (differs + form->words[2 * word + 1]) | differs;
    }
    if (whole * WORD < length) {
        differs = load_part(p + whole * WORD, length % WORD, room - whole * WORD) ^ form->words[2 * word];
        high |= (differs + form->words[2 * word + 1]) | differs;
    }
    return (high & HIGH) == 0 ? form : NULL;
}

/* Keep the form of a record that contains no literal, if one with its key came before and no digits make it contain one. */
static void keep_quiet(Quiet *quiet, const Gate *gate, const byte *p, size_t length, uint64_t key, int bad, int blank) {
    Form *form = &quiet->forms[key & (QUIET_SLOTS - 1)];
    byte masked[QUIET_LENGTH], room[QUIET_LENGTH];
    uint64_t *words;
    size_t at, count = (length + WORD - 1) / WORD;
    if (form->last != key || form->never == key) {
        form->last = key;
        return;
    }
    memset(masked + (count - 1) * WORD, 0, WORD);
    memset(room, 0x7F, count * WORD);
    for (at = 0; at < length; at++) {
        int moves = is_digit(p[at]);
        masked[at] = moves ? '0' : p[at];
        if (moves) room[at] = 0x76;
    }
    if (quiet->gate == NULL && (quiet->gate = copy_masked(gate)) == NULL) return;
    if (gate_find(quiet->gate, masked, length)) {
        form->never = key;
        return;
    }
    words = malloc(2 * count * sizeof(uint64_t));
    if (words == NULL) return;
    for (at = 0; at < count; at++) {
        words[2 * at] = load64(masked + WORD * at);
        words[2 * at + 1] = load64(room + WORD * at);
    }
    free(form->words);
    form->words = words;
    form->key = key;
    form->length = (uint32_t)length;
    form->bad = bad;
    form->blank = blank;
}

/* ---- reading a block ---- */

#define CELLS_KEPT 2  /* KEPT of records/bars.py */

/* Copy p[0:length] to `out` with its bars shortened: short_bars of records/bars.py. Set *length to what it has then;
   return 0 where nothing changes. */
static int shorten(byte *out, const byte *p, size_t *length) {
    static const byte FULL[] = {0xE2, 0x96, 0x88, 0xE2, 0x96, 0x88};
    size_t size = *length, done = 0, made = 0, at = 0;
    while (at < size) {
        const byte *mark = memchr(p + at, '|', size - at);
        size_t begin, full = 0, blank = 0, part;
        if (mark == NULL) break;
        at = begin = (size_t)(mark - p) + 1;
        if (begin < 2 || mark[-1] != '%') continue;
        while (at + 3 <= size && memcmp(p + at, FULL, 3) == 0) full++, at += 3;
        part = at + 3 <= size && memcmp(p + at, FULL, 2) == 0 && p[at + 2] >= 0x89 && p[at + 2] <= 0x8F ? 3 : 0;
        at += part;
        while (at < size && p[at] == ' ') blank++, at++;
        if (at >= size || p[at] != '|' || full + part == 0) {
            at = begin;
            continue;
        }
        if (full <= CELLS_KEPT && blank <= CELLS_KEPT && (part == 0 || p[begin + 3 * full + 2] == 0x8C)) continue;
        memcpy(out + made, p + done, begin - done);
        made += begin - done;
        full = full < CELLS_KEPT ? full : CELLS_KEPT;
        blank = blank < CELLS_KEPT ? blank : CELLS_KEPT;
        memcpy(out + made, FULL, 3 * full);
        made += 3 * full;
        if (part) memcpy(out + made, "\xE2\x96\x8C", 3);
        made += part;
        memset(out + made, ' ', blank);
        made += blank;
        done = at;
    }
    if (done == 0) return 0;
    memcpy(out + made, p + done, size - done);
    *length = made + size - done;
    return 1;
}

static int is_blank(const byte *p, size_t length) {
    while (length > 0 && (*p == ' ' || *p == '\t')) p++, length--;
    return length == 0;
}

typedef struct {
    size_t start, end;
    int64_t ordinal, line;
    int bad;
} Record;

/* Return the layout that followed the latest record's before, if the record p has it, too: most logs print the same in
   turn. `room` bytes may be read. */
static Layout *expected(const Kernel *kernel, const byte *p, size_t room) {
    Layout *layout = kernel->latest != NULL ? kernel->latest->next : NULL;
    if (layout == NULL || layout->length >= room) return NULL;
    if (p[layout->length] != '\n' && p[layout->length] != '\r') return NULL;
    return fits(layout, p, room) && agrees(layout, p) ? layout : NULL;
}

/* Set where the record ends that begins at `start`. */
static size_t find_end(Kernel *kernel, const byte *text, size_t start, size_t size) {
    if (kernel->newline < (Py_ssize_t)start) {
        const byte *found = memchr(text + start, '\n', size - start);
        kernel->newline = found != NULL ? found - text : (Py_ssize_t)size;
    }
    if (kernel->carriage < (Py_ssize_t)start) {
        const byte *found = memchr(text + start, '\r', size - start);
        kernel->carriage = found != NULL ? found - text : (Py_ssize_t)size;
    }
    return (size_t)(kernel->newline < kernel->carriage ? kernel->newline : kernel->carriage);
}

/* Read until a record that Python must read (LEFT) or the end of the block (READ). The interpreter lock is released. */
static int read_on(Kernel *kernel, Record *record) {
    const byte *text = kernel->text.buf;
    size_t size = (size_t)kernel->text.len;
    while (kernel->at < size) {
        size_t start = kernel->at, end, length;
        uint64_t high = 0, key = 0;
        int bad = 0, blank;
        const Form *form;
        Layout *layout = expected(kernel, text + start, size - start), *known = layout;
        end = layout != NULL ? start + layout->length : find_end(kernel, text, start, size);
        length = end - start;
        kernel->left.at = start;
        record->ordinal = kernel->left.ordinal = kernel->ordinal;
        kernel->left.line = kernel->line;
        kernel->left.blank = kernel->blank;
        kernel->left.undecodable = kernel->undecodable;
        record->line = kernel->line + 1;
        kernel->at = end + 1;
        kernel->ordinal += end < size;
        kernel->line += end < size && text[end] == '\n';
        if (length == 0) {
            kernel->blank += end < size;
            continue;
        }
        if (length <= MAX_LENGTH) {
            const byte *p = text + start;
            size_t size_of_short = length;
            uint64_t short_key, ignored;
            if (layout == NULL) {
                key = key_of(kernel, p, length, size - start, &high);
                known = layout = find_layout(kernel, p, length, size - start, key);
            }
            if (known != NULL) {
                if (kernel->latest != NULL) kernel->latest->next = known;
                kernel->latest = known;
            }
            if (layout == NULL && (form = find_quiet(kernel->quiet, p, length, size - start, key)) != NULL) {
                kernel->undecodable += form->bad;
                kernel->blank += end < size && form->blank;
                continue;
            }
            if (layout == NULL && high != 0 && shorten(kernel->shortened, p, &size_of_short)) {
                p = kernel->shortened;
                short_key = key_of(kernel, p, size_of_short, sizeof kernel->shortened, &ignored);
                layout = find_layout(kernel, p, size_of_short, sizeof kernel->shortened, short_key);
                if (layout != NULL && (!layout->any_bar || !gate_find(kernel->gate, text + start, length))) layout = NULL;
            }
            if (layout != NULL) {
                int done = read_layout(kernel, layout, p, start, end, record->ordinal, record->line);
                if (LIKELY(done == READ)) {
                    kernel->undecodable += layout->bad && !layout->hit;
                    continue;
                }
                if (done == FAILED) return FAILED;
                if (key == 0) key = key_of(kernel, text + start, length, size - start, &high);  /* it was expected */
            }
        } else high = 1;
        if (high != 0 && !is_utf8(text + start, length)) {
            bad = 1;
            kernel->undecodable++;
        }
        blank = is_blank(text + start, length);
        kernel->blank += end < size && blank;
        if (!gate_find(kernel->gate, text + start, length)) {
            if (length <= QUIET_LENGTH) keep_quiet(kernel->quiet, kernel->gate, text + start, length, key, bad, blank);
            continue;
        }
        record->start = start;
        record->end = end;
        record->bad = bad;
        return LEFT;
    }
    return READ;
}

/* ---- the type ---- */

static void forget_rows(Kernel *kernel) {
    size_t i;
    for (i = 0; i < kernel->table_count; i++) kernel->tables[i].count = kernel->tables[i].order.count = 0;
    for (i = 0; i < kernel->column_count; i++)
        kernel->columns[i].count = kernel->columns[i].rows.count = 0, kernel->columns[i].sparse = 0;
    for (i = 0; i < kernel->ignored_count; i++) kernel->ignored[i].count = 0;
    kernel->matched.count = 0;
    for (i = 0; i < kernel->miss_count; i++) kernel->misses[i].count = kernel->misses[i].kept = 0;
    kernel->missed_count = 0;
}

static void free_gate(Gate *gate) {
    if (gate == NULL) return;
    free(gate->literals);
    free(gate->text);
    free(gate);
}

/* Return the gate of a tuple of literals; NULL with an exception set. */
static Gate *make_gate(PyObject *literals) {
    Py_ssize_t count = PyTuple_Size(literals), i, length;
    size_t total = 0, at = 0;
    int pass;
    char *data;
    Gate *gate;
    if (count < 0 || count >= UINT32_MAX) return NULL;
    for (i = 0; i < count; i++) {
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(literals, i), &data, &length) < 0) return NULL;
        if (length < 1 || length > MAX_LENGTH) {
            PyErr_SetString(PyExc_ValueError, "a literal is empty or too long");
            return NULL;
        }
        total += (size_t)length;
    }
    gate = calloc(1, sizeof(Gate));
    if (gate != NULL) {
        gate->literals = calloc((size_t)count + 1, sizeof(Literal));
        gate->text = malloc(total + 1);
    }
    if (gate == NULL || gate->literals == NULL || gate->text == NULL) {
        free_gate(gate);
        PyErr_NoMemory();
        return NULL;
    }
    for (pass = 0; pass < 2; pass++) {
        for (i = 0; i < count; i++) {
            if (PyBytes_AsStringAndSize(PyTuple_GetItem(literals, i), &data, &length) < 0) {
                free_gate(gate);
                return NULL;
            }
            if ((length < 4) != (pass == 1)) continue;
            memcpy(gate->text + at, data, (size_t)length);
            gate->count++;
            gate->literals[gate->count].text = gate->text + at;
            gate->literals[gate->count].length = (uint32_t)length;
            at += (size_t)length;
            if (pass == 0) gate_enter(gate, gate->count);
        }
        if (pass == 0) gate->windowed = gate->count;
    }
    return gate;
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    PyObject *literals, *resolve;
    int first;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Kernel *kernel;
    size_t i;
    uint64_t factor = GOLDEN;
    if (keywords != NULL && PyDict_Size(keywords) > 0) {
        PyErr_SetString(PyExc_TypeError, "no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "OOi", &literals, &resolve, &first)) return NULL;
    if (!PyTuple_Check(literals)) {
        PyErr_SetString(PyExc_TypeError, "literals must be a tuple");
        return NULL;
    }
    kernel = (Kernel *)allocate(type, 0);
    if (kernel == NULL) return NULL;
    for (i = 0; i < sizeof kernel->factors / sizeof kernel->factors[0]; i++, factor *= GOLDEN * GOLDEN)
        kernel->factors[i] = factor;
    kernel->first = first;
    Py_INCREF(resolve);
    kernel->resolve = resolve;
    kernel->scratch = malloc(3 * MAX_VALUES * sizeof(double));
    kernel->memo.slots = calloc(2 * MAX_MEMO, sizeof(uint32_t));
    kernel->quiet = calloc(1, sizeof(Quiet));
    kernel->gate = make_gate(literals);
    if (kernel->gate == NULL || kernel->quiet == NULL || kernel->scratch == NULL || kernel->memo.slots == NULL) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        Py_DECREF(kernel);
        return NULL;
    }
    return (PyObject *)kernel;
}

static int kernel_traverse(Kernel *kernel, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)kernel));
    Py_VISIT(kernel->resolve);
    Py_VISIT(kernel->text.obj);
    return 0;
}

static int kernel_clear(Kernel *kernel) {
    Py_CLEAR(kernel->resolve);
    return 0;
}

static void kernel_dealloc(Kernel *kernel) {
    PyTypeObject *type = Py_TYPE((PyObject *)kernel);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    size_t i;
    PyObject_GC_UnTrack(kernel);
    Py_CLEAR(kernel->resolve);
    if (kernel->reading) PyBuffer_Release(&kernel->text);
    free_gate(kernel->gate);
    if (kernel->quiet != NULL) {
        free_gate(kernel->quiet->gate);
        for (i = 0; i < QUIET_SLOTS; i++) free(kernel->quiet->forms[i].words);
        free(kernel->quiet);
    }
    free(kernel->scratch);
    free(kernel->memo.all);
    free(kernel->memo.bytes);
    free(kernel->memo.slots);
    for (i = 0; i < kernel->layout_count; i++) free(kernel->layouts[i]);
    free(kernel->layouts);
    free(kernel->slots);
    for (i = 0; i < kernel->table_count; i++) {
        Table *table = &kernel->tables[i];
        free(table->at), free(table->line), free(table->rank), free(table->clock), free(table->order.data);
    }
    free(kernel->tables);
    for (i = 0; i < kernel->column_count; i++) free(kernel->columns[i].values), free(kernel->columns[i].rows.data);
    free(kernel->columns);
    for (i = 0; i < kernel->ignored_count; i++) free(kernel->ignored[i].data);
    free(kernel->ignored);
    free(kernel->matched.data);
    free(kernel->misses);
    free(kernel->missed);
    release(kernel);
    Py_DECREF(type);
}

static int is_free(const Kernel *kernel) {
    if (kernel->busy) PyErr_SetString(PyExc_RuntimeError, "the kernel is in use");
    return !kernel->busy;
}

/* Make the list of `size`-byte items hold item `id`, zeroed; return 0 with an exception set. */
static int hold(void **data, size_t *count, size_t *capacity, int64_t id, size_t size) {
    if (id < 0 || id >= MAX_ID) {
        PyErr_SetString(PyExc_ValueError, "a number is out of range");
        return 0;
    }
    if ((size_t)id < *count) return 1;
    if (!reserve(data, capacity, (size_t)id + 1, size)) {
        PyErr_NoMemory();
        return 0;
    }
    memset((byte *)*data + *count * size, 0, ((size_t)id + 1 - *count) * size);
    *count = (size_t)id + 1;
    return 1;
}

#define HOLD(kernel, list, counts, id) \
    hold((void **)&(kernel)->list, &(kernel)->counts##_count, &(kernel)->counts##_capacity, id, sizeof *(kernel)->list)

/* The numbers of a program, front to back. */
typedef struct {
    const byte *data;
    size_t count, at;
    int wrong;
} Program;

static int64_t take_number(Program *program, int64_t least, int64_t most) {
    int64_t number = 0;
    if (program->at < program->count) memcpy(&number, program->data + 8 * program->at++, 8);
    else program->wrong = 1;
    if (number < least || number > most) program->wrong = 1;
    return program->wrong ? least : number;
}

static double take_double(Program *program) {
    double number = 0;
    if (program->at < program->count) memcpy(&number, program->data + 8 * program->at++, 8);
    else program->wrong = 1;
    return number;
}

/* Read the program into the layout, with `room` for its `text`; return 0 with an exception set. */
static int read_program(Kernel *kernel, Layout *layout, Program *program, byte *text, int64_t room) {
    int64_t length = (int64_t)layout->length;
    Value *value = layout->values, *end = layout->values + layout->value_count;
    int i, j;
    for (i = 0; i < layout->absent_count; i++) {
        Absent *absent = &layout->absent[i];
        absent->start = (int32_t)take_number(program, 0, length);
        absent->length = (int32_t)take_number(program, 1, length - absent->start < room ? length - absent->start : room);
        if (program->wrong) return 0;
        absent->text = text;
        room -= absent->length;
        for (j = 0; j < absent->length; j++) *text++ = (byte)take_number(program, 0, 255);
    }
    for (i = 0; i < layout->echo_count; i++) {
        Echo *echo = &layout->echoes[i];
        echo->first = (int32_t)take_number(program, 0, length);
        echo->length = (int32_t)take_number(program, 0, length - echo->first < 64 ? length - echo->first : 64);
        echo->second = (int32_t)take_number(program, 0, length);
        echo->room = (int32_t)take_number(program, 0, length - echo->second);
        echo->same = (uint64_t)take_number(program, 0, INT64_MAX);
    }
    for (i = 0; i < layout->ignored_count; i++) {
        layout->ignored[i] = (int32_t)take_number(program, 0, MAX_ID - 1);
        if (!HOLD(kernel, ignored, ignored, layout->ignored[i])) return 0;
    }
    for (i = 0; i < layout->near_count; i++) {
        layout->near_[i] = (int32_t)take_number(program, 0, MAX_ID - 1);
        if (!HOLD(kernel, misses, miss, layout->near_[i])) return 0;
    }
    for (i = 0; i < layout->event_count; i++) {
        Event *event = &layout->events[i];
        event->table = (int32_t)take_number(program, 0, MAX_ID - 1);
        event->offset = (int32_t)take_number(program, 0, 65535);
        event->prefix = (int32_t)take_number(program, 0, length);
        event->resolver = (int32_t)take_number(program, -1, MAX_ID - 1);
        event->time = (int32_t)take_number(program, -1, event->prefix);
        event->time_end = (int32_t)take_number(program, -1, event->prefix);
        event->values = (int32_t)take_number(program, 0, end - value);
        if (event->time >= 0 && (event->time_end < event->time + 8 || event->time_end > event->time + 9 + 15)) program->wrong = 1;
        if (event->prefix > 0 && event->resolver < 0) program->wrong = 1;
        if (program->wrong || !HOLD(kernel, tables, table, event->table)) return 0;
        for (j = 0; j < event->values; j++, value++) {
            value->kind = (int32_t)take_number(program, DECIMAL, DIGITS);
            value->column = (int32_t)take_number(program, 0, MAX_ID - 1);
            value->start = (int32_t)take_number(program, 0, length);
            value->end = (int32_t)take_number(program, value->start, length);
            value->resolver = (int32_t)take_number(program, -1, MAX_ID - 1);
            value->times = (uint64_t)take_number(program, 0, INT64_MAX);
            value->power = (int32_t)take_number(program, -1000, 1000);
            value->factor = take_double(program);
            value->bounded = (int32_t)take_number(program, 0, 1);
            value->least = take_double(program);
            if (value->kind == DECIMAL && value->times == 0) program->wrong = 1;
            if (value->kind == PLACE && value->times >= MAX_ID) program->wrong = 1;
            if (value->kind == DIGITS && value->end - value->start > MAX_DIGITS + 1) program->wrong = 1;
            if ((value->kind == ASKED_NUMBER || value->kind == ASKED_TEXT) && value->resolver < 0) program->wrong = 1;
            if (program->wrong || !HOLD(kernel, columns, column, value->column)) return 0;
        }
    }
    if (program->at != program->count || value != end) program->wrong = 1;
    return !program->wrong;
}

PyDoc_STRVAR(add_doc, "add(sample, moving, program): let records of a layout be read; see reader.py.");

static PyObject *kernel_add(Kernel *kernel, PyObject *arguments) {
    const char *sample, *moving, *numbers;
    Py_ssize_t length, moving_length, size, i;
    int64_t counts[9];
    Program program = {0};
    Layout *layout;
    byte *masked, *room, *place;
    size_t words;
    uint64_t high;
    if (!PyArg_ParseTuple(arguments, "y#y#y#", &sample, &length, &moving, &moving_length, &numbers, &size)) return NULL;
    if (!is_free(kernel)) return NULL;
    program.data = (const byte *)numbers;
    program.count = (size_t)size / 8;
    /* ignored, near, events, values, absent, the bytes of their texts, echoes, whether a rule explains it, any_bar */
    for (i = 0; i < 9; i++) counts[i] = take_number(&program, 0, MAX_VALUES);
    if (length < 1 || length > MAX_LENGTH || moving_length != length || size % 8 || program.wrong) {
        PyErr_SetString(PyExc_ValueError, "no layout");
        return NULL;
    }
    words = ((size_t)length + WORD - 1) / WORD;
    place = calloc(1, sizeof(Layout) + 16 * words + (size_t)counts[2] * sizeof(Event) +
                          (size_t)counts[3] * sizeof(Value) + (size_t)counts[4] * sizeof(Absent) +
                          (size_t)counts[6] * sizeof(Echo) + 4 * (size_t)(counts[0] + counts[1]) + (size_t)counts[5] + 64);
    if (place == NULL) return PyErr_NoMemory();
    layout = (Layout *)place;
    layout->length = (uint32_t)length;
    layout->words = (uint32_t)words;
    layout->masked = (uint64_t *)(place + (sizeof(Layout) + 7) / 8 * 8);
    layout->room = layout->masked + words;
    layout->values = (Value *)(layout->room + words);
    layout->echoes = (Echo *)(layout->values + counts[3]);
    layout->absent = (Absent *)(layout->echoes + counts[6]);
    layout->events = (Event *)(layout->absent + counts[4]);
    layout->ignored = (int32_t *)(layout->events + counts[2]);
    layout->near_ = layout->ignored + counts[0];
    layout->absent_count = (int32_t)counts[4];
    layout->echo_count = (int32_t)counts[6];
    layout->hit = counts[7] != 0;
    layout->any_bar = counts[8] != 0;
    layout->bad = !is_utf8((const byte *)sample, (size_t)length);
    layout->ignored_count = (int32_t)counts[0];
    layout->near_count = (int32_t)counts[1];
    layout->event_count = (int32_t)counts[2];
    layout->value_count = (int32_t)counts[3];
    masked = calloc(2, words * WORD);
    if (masked == NULL) {
        free(layout);
        return PyErr_NoMemory();
    }
    room = masked + words * WORD;
    memset(room, 0x7F, words * WORD);
    for (i = 0; i < length; i++) {
        int moves = moving[i] != 0;
        masked[i] = moves ? '0' : (byte)sample[i];
        if (moves) room[i] = 0x76;
        if (moves && !is_digit((byte)sample[i])) program.wrong = 1;
    }
    for (i = 0; i < (Py_ssize_t)words; i++) {
        layout->masked[i] = load64(masked + WORD * i);
        layout->room[i] = load64(room + WORD * i);
    }
    layout->key = key_of(kernel, masked, (size_t)length, words * WORD, &high);
    free(masked);
    if (program.wrong || !read_program(kernel, layout, &program, (byte *)(layout->near_ + counts[1]), counts[5])) {
        free(layout);
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "no program of a layout");
        return NULL;
    }
    if (kernel->layout_count + 1 >= UINT32_MAX / 4 ||
        !reserve((void **)&kernel->layouts, &kernel->layout_capacity, kernel->layout_count + 1, sizeof(Layout *))) {
        free(layout);
        return PyErr_NoMemory();
    }
    if (2 * (kernel->layout_count + 1) > kernel->slot_count) {
        size_t more = kernel->slot_count ? 2 * kernel->slot_count : 256, number;
        uint32_t *slots = calloc(more, sizeof(uint32_t));
        if (slots == NULL) {
            free(layout);
            return PyErr_NoMemory();
        }
        free(kernel->slots);
        kernel->slots = slots;
        kernel->slot_count = more;
        for (number = 0; number < kernel->layout_count; number++) enter_layout(kernel, number);
    }
    kernel->layouts[kernel->layout_count++] = layout;
    enter_layout(kernel, kernel->layout_count - 1);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(begin_doc, "begin(text, ordinal, line): begin to read normalised whole records, `ordinal` and `line` behind others.");

static PyObject *kernel_begin(Kernel *kernel, PyObject *arguments) {
    PyObject *text;
    long long ordinal, line;
    if (!PyArg_ParseTuple(arguments, "OLL", &text, &ordinal, &line)) return NULL;
    if (!is_free(kernel)) return NULL;
    if (kernel->reading) {
        PyErr_SetString(PyExc_RuntimeError, "a block is being read");
        return NULL;
    }
    if (PyObject_GetBuffer(text, &kernel->text, PyBUF_SIMPLE) < 0) return NULL;
    if ((uint64_t)kernel->text.len >= UINT64_C(1) << PLACE_BITS) {
        PyBuffer_Release(&kernel->text);
        PyErr_SetString(PyExc_ValueError, "the block is too long");
        return NULL;
    }
    kernel->reading = 1;
    kernel->handed = 0;
    kernel->at = 0;
    kernel->newline = kernel->carriage = -1;
    kernel->ordinal = ordinal;
    kernel->line = line;
    kernel->blank = kernel->undecodable = 0;
    kernel->no_memory = 0;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(next_doc, "next(): read on; the next record for Python: its start, end, ordinal, line, whether it is not UTF-8.");

static PyObject *kernel_next(Kernel *kernel, PyObject *unused) {
    Record record;
    int done;
    (void)unused;
    if (!is_free(kernel)) return NULL;
    if (!kernel->reading) {
        PyErr_SetString(PyExc_RuntimeError, "no block is being read");
        return NULL;
    }
    kernel->busy = 1;
    kernel->saved = PyEval_SaveThread();
    done = read_on(kernel, &record);
    PyEval_RestoreThread(kernel->saved);
    kernel->busy = 0;
    kernel->handed = done == LEFT;
    if (done == FAILED) return kernel->no_memory ? PyErr_NoMemory() : NULL;
    if (done == READ) Py_RETURN_NONE;
    return Py_BuildValue("nnLLi", (Py_ssize_t)record.start, (Py_ssize_t)record.end, (long long)record.ordinal,
                         (long long)record.line, record.bad);
}

PyDoc_STRVAR(again_doc, "again(): go back to the record that was handed back last.");

static PyObject *kernel_again(Kernel *kernel, PyObject *unused) {
    (void)unused;
    if (!is_free(kernel)) return NULL;
    if (!kernel->reading || !kernel->handed) {
        PyErr_SetString(PyExc_RuntimeError, "no record was handed back");
        return NULL;
    }
    kernel->handed = 0;
    kernel->at = kernel->left.at;
    kernel->ordinal = kernel->left.ordinal;
    kernel->line = kernel->left.line;
    kernel->blank = kernel->left.blank;
    kernel->undecodable = kernel->left.undecodable;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(finish_doc, "finish(): end the block and forget its rows; (ordinal, line) behind it, blank and undecodable records.");

static PyObject *kernel_finish(Kernel *kernel, PyObject *unused) {
    (void)unused;
    if (!is_free(kernel)) return NULL;
    if (kernel->reading) PyBuffer_Release(&kernel->text);
    kernel->reading = 0;
    forget_rows(kernel);
    return Py_BuildValue("LLLL", (long long)kernel->ordinal, (long long)kernel->line, (long long)kernel->blank,
                         (long long)kernel->undecodable);
}

static PyObject *bytes_of(const void *data, size_t count) {
    return PyBytes_FromStringAndSize(count ? (const char *)data : "", (Py_ssize_t)(8 * count));
}

/* Append `item`, which is used up, to a list; return 0 with an exception set. */
static int append_item(PyObject *list, PyObject *item) {
    int done;
    if (item == NULL) return 0;
    done = PyList_Append(list, item);
    Py_DECREF(item);
    return done == 0;
}

PyDoc_STRVAR(filled_doc, "filled(): the tables with rows.");

static PyObject *kernel_filled(Kernel *kernel, PyObject *unused) {
    PyObject *numbers = is_free(kernel) ? PyList_New(0) : NULL;
    size_t i;
    (void)unused;
    for (i = 0; numbers != NULL && i < kernel->table_count; i++)
        if (kernel->tables[i].count && !append_item(numbers, PyLong_FromSize_t(i))) Py_CLEAR(numbers);
    return numbers;
}

PyDoc_STRVAR(take_doc, "take(table, before): its rows, which are forgotten: at, line, rank, clock, [(column, values, rows behind `before` or "
                       "None)]; or None.");

static PyObject *kernel_take(Kernel *kernel, PyObject *arguments) {
    long number;
    long long before;
    Table *table;
    PyObject *columns;
    size_t i, j;
    if (!PyArg_ParseTuple(arguments, "lL", &number, &before) || !is_free(kernel)) return NULL;
    if (number < 0 || (size_t)number >= kernel->table_count || kernel->tables[number].count == 0) Py_RETURN_NONE;
    table = &kernel->tables[number];
    columns = PyList_New(0);
    if (columns == NULL) return NULL;
    for (i = 0; i < table->order.count; i++) {
        Column *column = &kernel->columns[table->order.data[i]];
        PyObject *values = bytes_of(column->values, column->count), *rows = Py_None;
        for (j = 0; j < column->rows.count; j++) column->rows.data[j] += before;
        if (column->sparse) rows = bytes_of(column->rows.data, column->rows.count);
        else Py_INCREF(rows);
        if (values == NULL || rows == NULL) {
            Py_XDECREF(values);
            Py_XDECREF(rows);
            Py_DECREF(columns);
            return NULL;
        }
        if (!append_item(columns, Py_BuildValue("LNN", (long long)table->order.data[i], values, rows))) {
            Py_DECREF(columns);
            return NULL;
        }
    }
    for (i = 0; i < table->order.count; i++) {
        Column *column = &kernel->columns[table->order.data[i]];
        column->count = column->rows.count = 0;
        column->sparse = 0;
    }
    i = table->count;
    table->count = table->order.count = 0;
    return Py_BuildValue("NNNNN", bytes_of(table->at, i), bytes_of(table->line, i), bytes_of(table->rank, i),
                         bytes_of(table->clock, i), columns);
}

PyDoc_STRVAR(ignored_doc, "ignored(): [(grammar, ordinals)] of the records that grammars ignore; -1: not UTF-8 and explained. Forgets them.");

static PyObject *kernel_ignored(Kernel *kernel, PyObject *unused) {
    PyObject *list;
    size_t i;
    (void)unused;
    if (!is_free(kernel) || (list = PyList_New(0)) == NULL) return NULL;
    for (i = 0; i <= kernel->ignored_count; i++) {
        Integers *ordinals = i > 0 ? &kernel->ignored[i - 1] : &kernel->matched;
        if (ordinals->count == 0) continue;
        if (!append_item(list, Py_BuildValue("nN", (Py_ssize_t)i - 1, bytes_of(ordinals->data, ordinals->count)))) {
            Py_DECREF(list);
            return NULL;
        }
        ordinals->count = 0;
    }
    return list;
}

PyDoc_STRVAR(missed_doc, "missed(): near-misses since the last call: [(rule, ordinal, line, start, end)] of the first of the block, [(rule, count)]; or None.");

static PyObject *kernel_missed(Kernel *kernel, PyObject *unused) {
    PyObject *first = NULL, *counts = NULL;
    size_t i;
    int some = 0;
    (void)unused;
    if (!is_free(kernel)) return NULL;
    for (i = 0; i < kernel->miss_count; i++) some |= kernel->misses[i].count != 0;
    if (!some) Py_RETURN_NONE;
    first = PyList_New(0);
    counts = PyList_New(0);
    if (first == NULL || counts == NULL) goto failed;
    for (i = 0; i < kernel->missed_count; i++) {
        const Miss *one = &kernel->missed[i];
        if (!append_item(first, Py_BuildValue("iLLnn", one->rule, (long long)one->ordinal, (long long)one->line, one->start, one->end)))
            goto failed;
    }
    for (i = 0; i < kernel->miss_count; i++)
        if (kernel->misses[i].count != 0 &&
            !append_item(counts, Py_BuildValue("nL", (Py_ssize_t)i, (long long)kernel->misses[i].count)))
            goto failed;
    for (i = 0; i < kernel->miss_count; i++) kernel->misses[i].count = 0;
    kernel->missed_count = 0;
    return Py_BuildValue("NN", first, counts);
failed:
    Py_XDECREF(first);
    Py_XDECREF(counts);
    return NULL;
}

PyDoc_STRVAR(sizes_doc, "sizes(): how many layouts there are, and how many meanings of texts.");

static PyObject *kernel_sizes(Kernel *kernel, PyObject *unused) {
    (void)unused;
    return Py_BuildValue("nn", (Py_ssize_t)kernel->layout_count, (Py_ssize_t)kernel->memo.count);
}

PyDoc_STRVAR(contains_doc, "contains(record): whether it contains a literal.");

static PyObject *kernel_contains(Kernel *kernel, PyObject *argument) {
    Py_ssize_t length;
    char *data;
    if (PyBytes_AsStringAndSize(argument, &data, &length) < 0) return NULL;
    return PyBool_FromLong(gate_find(kernel->gate, (const byte *)data, (size_t)length));
}

static PyMethodDef kernel_methods[] = {
    {"add", (PyCFunction)(void (*)(void))kernel_add, METH_VARARGS, add_doc},
    {"begin", (PyCFunction)(void (*)(void))kernel_begin, METH_VARARGS, begin_doc},
    {"next", (PyCFunction)(void (*)(void))kernel_next, METH_NOARGS, next_doc},
    {"again", (PyCFunction)(void (*)(void))kernel_again, METH_NOARGS, again_doc},
    {"finish", (PyCFunction)(void (*)(void))kernel_finish, METH_NOARGS, finish_doc},
    {"filled", (PyCFunction)(void (*)(void))kernel_filled, METH_NOARGS, filled_doc},
    {"take", (PyCFunction)(void (*)(void))kernel_take, METH_VARARGS, take_doc},
    {"ignored", (PyCFunction)(void (*)(void))kernel_ignored, METH_NOARGS, ignored_doc},
    {"missed", (PyCFunction)(void (*)(void))kernel_missed, METH_NOARGS, missed_doc},
    {"sizes", (PyCFunction)(void (*)(void))kernel_sizes, METH_NOARGS, sizes_doc},
    {"contains", (PyCFunction)(void (*)(void))kernel_contains, METH_O, contains_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(kernel_doc, "Kernel(literals, resolve, first): reads blocks of normalised records; see receipt_cli/scan/kernel/reader.py.");

static PyType_Slot kernel_slots[] = {
    {Py_tp_doc, (void *)kernel_doc},
    {Py_tp_new, (void *)kernel_new},
    {Py_tp_dealloc, (void *)kernel_dealloc},
    {Py_tp_traverse, (void *)kernel_traverse},
    {Py_tp_clear, (void *)kernel_clear},
    {Py_tp_methods, kernel_methods},
    {0, NULL},
};

static PyType_Spec kernel_spec = {
    "receipt_cli.scan.kernel._native.Kernel", sizeof(Kernel), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, kernel_slots,
};

PyDoc_STRVAR(decimal_doc, "decimal(text, times, power, factor): the number in base units, rounded once, or None where that is not certain.");

static PyObject *native_decimal(PyObject *module, PyObject *arguments) {
    const char *text;
    Py_ssize_t length;
    unsigned long long times;
    int power;
    double factor, value;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y#Kid", &text, &length, &times, &power, &factor)) return NULL;
    if (times == 0 || power < -1000 || power > 1000) {
        PyErr_SetString(PyExc_ValueError, "no scale");
        return NULL;
    }
    if (!read_decimal((const byte *)text, (size_t)length, times, power, factor, &value)) Py_RETURN_NONE;
    return PyFloat_FromDouble(value);
}

/* ---- records that look like metrics: where to try the patterns of records/heuristics.py ---- */

static int is_word(byte c) { return is_digit(c) || c == '_' || (byte)((c | 0x20) - 'a') < 26; }

/* Return whether p[0:length] begins with `word`, which is in lower case, in any case. */
static int begins(const byte *p, size_t length, const char *word) {
    size_t i;
    for (i = 0; word[i] != 0; i++)
        if (i >= length || (p[i] | 0x20) != (byte)word[i]) return 0;
    return 1;
}

static int begins_one(const byte *p, size_t length, const char *const *words) {
    for (; *words != NULL; words++)
        if (begins(p, length, *words)) return 1;
    return 0;
}

static int is_one_of(byte c, const char *set) { return c != 0 && strchr(set, c) != NULL; }

#define LETTER(c) (UINT32_C(1) << ((c) - 'a'))

/* Return whether c is one of the letters, in any case. */
static int is_letter_of(byte c, uint32_t letters) {
    byte place = (byte)((c | 0x20) - 'a');
    return place < 26 && (letters >> place) & 1;
}

/* Return whether the name of a metric begins p[0:length], and behind it, after at most four marks, a number, an n or a brace. */
static int has_value(const byte *p, size_t length) {
    static const char *const NAMES[] = {"accuracy", "acc", "loss", "lr", "learning rate", "learning\x7frate", "ppl", "/sec", "/s", "eta"};
    size_t name, at, marks;
    for (name = 0; name < sizeof NAMES / sizeof NAMES[0]; name++) {
        if (!begins(p, length, NAMES[name])) continue;
        at = strlen(NAMES[name]);
        for (marks = 0; at < length && marks < 4 && is_one_of(p[at], " :=("); marks++)
            if (p[at++] == '(') return 1;
        at += at < length && (p[at] == '-' || p[at] == '+');
        if (at < length && (is_digit(p[at]) || p[at] == '(' || (p[at] | 0x20) == 'n')) return 1;
    }
    return 0;
}

/* Return whether STEP_LINE may match at p, where a word of its begins; `length` bytes are left of the record. */
static int may_be_step(const byte *p, size_t length) {
    const uint32_t NAMED = LETTER('l') | LETTER('a') | LETTER('p') | LETTER('e');
    size_t at = 0, end, blanks;
    while (at < length && is_word(p[at]) && !is_digit(p[at])) at++;
    for (blanks = 0; at < length && blanks < 6 && is_one_of(p[at], " \t\f\v:=#(["); blanks++) at++;
    if (at >= length || !is_digit(p[at++])) return 0;
    for (end = length < at + 201 ? length : at + 201; at < end; at++)
        if ((p[at] == '/' || is_letter_of(p[at], NAMED)) && has_value(p + at, length - at)) return 1;
    return 0;
}

/* Return whether METRIC_LINE may match at p, where a word of its begins. */
static int may_be_metric(const byte *p, size_t length) {
    size_t at, end = length < 24 ? length : 24;
    for (at = 2; at < end; at++)
        if (is_digit(p[at])) return 1;
    return 0;
}

PyDoc_STRVAR(likely_doc, "likely(records, start, steps): the next place from start on where STEP_LINE, or METRIC_LINE, may match; -1 for none.");

static PyObject *native_likely(PyObject *module, PyObject *arguments) {
    static const char *const METRICS[] = {"step", "iter", "epoch", "batch", "loss", "lr", "acc", "ppl", "tok", "mfu", NULL};
    static const char *const STEPS[] = {"step", "iter", "epoch", "batch", NULL};
    uint32_t letters = LETTER('s') | LETTER('i') | LETTER('e') | LETTER('b');
    const char *records;
    Py_ssize_t length, start, found = -1;
    int steps;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y#np", &records, &length, &start, &steps)) return NULL;
    if (start < 0) start = 0;
    if (!steps) letters |= LETTER('l') | LETTER('a') | LETTER('p') | LETTER('t') | LETTER('m');
    Py_BEGIN_ALLOW_THREADS
    for (; start < length; start++) {
        const byte *p = (const byte *)records + start, *end;
        size_t room = (size_t)(length - start);
        if (LIKELY(!is_letter_of(*p, letters)) || (start > 0 && is_word(p[-1]))) continue;
        if (!begins_one(p, room, steps ? STEPS : METRICS)) continue;
        if (room > 1024) room = 1024;
        for (end = p; end < p + room && *end != '\n' && *end != '\r'; end++) {}
        if (steps ? may_be_step(p, (size_t)(end - p)) : may_be_metric(p, (size_t)(end - p))) {
            found = start;
            break;
        }
    }
    Py_END_ALLOW_THREADS
    return PyLong_FromSsize_t(found);
}

/* ---- passes over all bytes ---- */

#if defined(__GNUC__) || defined(__clang__)
#define LANES 16
typedef byte Lanes __attribute__((vector_size(LANES)));

static Lanes lanes_at(const byte *p) {
    Lanes lanes;
    memcpy(&lanes, p, LANES);
    return lanes;
}

static int any_lane(Lanes lanes) {
    uint64_t halves[2];
    memcpy(halves, &lanes, LANES);
    return (halves[0] | halves[1]) != 0;
}
#endif

/* Return how often c is in p[0:length]. */
static size_t count_of(const byte *p, size_t length, byte c) {
    size_t at = 0, count = 0;
#ifdef LANES
    while (length - at >= LANES) {
        size_t rounds = (length - at) / LANES, i;
        Lanes sums = {0};
        byte each[LANES];
        if (rounds > 255) rounds = 255;
        for (; rounds > 0; rounds--, at += LANES) sums -= (Lanes)(lanes_at(p + at) == c);
        memcpy(each, &sums, LANES);
        for (i = 0; i < LANES; i++) count += each[i];
    }
#endif
    for (; at < length; at++) count += p[at] == c;
    return count;
}

/* ---- plain records: what plain of records/envelope.py gives, one of its steps after the other ---- */

/* Return the length of the terminal sequence at p, which begins with an escape; 0 for none. */
static size_t sequence_length(const byte *p, size_t length) {
    size_t at = 2;
    if (length < 2) return 0;
    if (p[1] == '[') {
        while (at < length && p[at] >= '0' && p[at] <= '?') at++;
        while (at < length && p[at] >= ' ' && p[at] <= '/') at++;
        return at < length && p[at] >= '@' && p[at] <= '~' ? at + 1 : 2;
    }
    if (is_one_of(p[1], "]PX^_")) {
        while (at < length && p[at] != 7 && p[at] != 27 && p[at] != '\r' && p[at] != '\n') at++;
        if (p[1] == ']' && at < length && p[at] == 7) return at + 1;
        return at + 1 < length && p[at] == 27 && p[at + 1] == '\\' ? at + 2 : at;
    }
    for (at = 1; at < length && p[at] >= ' ' && p[at] <= '/';) at++;
    return at < length && p[at] >= '0' && p[at] <= '~' ? at + 1 : 0;
}

/* Return the length of the echoed key press at p; 0 for none. */
static size_t echo_length(const byte *p, size_t length) {
    size_t at = 3;
    if (length < 4 || p[0] != '^' || p[1] != '[') return 0;
    if (p[2] == 'O') return p[3] >= 'A' && p[3] <= 'Z' ? 4 : 0;
    if (p[2] != '[') return 0;
    while (at < length && (is_digit(p[at]) || p[at] == ';')) at++;
    return at < length && (p[at] == '~' || (byte)((p[at] | 0x20) - 'a') < 26) ? at + 1 : 0;
}

/* Return the length of up to nine digits at p; 0 for none, or more. */
static size_t nine_digits(const byte *p, size_t length) {
    size_t at = 0;
    while (at < length && is_digit(p[at])) at++;
    return at <= 9 ? at : 0;
}

/* Return whether p is the place that ends a bar, as in ` 12/391 `. */
static int is_place(const byte *p, size_t length) {
    size_t at, next;
    if (length < 4 || p[0] != ' ' || (next = nine_digits(p + 1, length - 1)) == 0) return 0;
    at = 1 + next;
    if (at == length || p[at++] != '/' || (next = nine_digits(p + at, length - at)) == 0) return 0;
    at += next;
    if (at < length && p[at] == ' ') at++;
    return at == length || p[at] == '\r' || p[at] == '\n';
}

/* Copy p[0:length] to `out`, which may be p, without what begins with `mark`; return the length of what is left. */
static size_t clean(byte *out, const byte *p, size_t length, byte mark) {
    size_t at = 0, made = 0, gone;
    while (at < length) {
        const byte *found = memchr(p + at, mark, length - at);
        size_t plain = found != NULL ? (size_t)(found - p) - at : length - at;
        memmove(out + made, p + at, plain);
        made += plain;
        at += plain;
        if (at == length) break;
        if (mark == '\r') gone = at + 1 < length && p[at + 1] == '\n';
        else if (mark == 27) gone = sequence_length(p + at, length - at);
        else if (mark == '^') gone = echo_length(p + at, length - at);
        else for (gone = 1; mark == 8 && at + gone < length && p[at + gone] == 8;) gone++;
        if (mark == 8) out[made++] = is_place(p + at + gone, length - at - gone) ? ' ' : '\r';
        else if (gone == 0) out[made++] = mark, gone = 1;
        at += gone;
    }
    return made;
}

#define NOT_PLAIN(x) (Lanes)((x == (byte)0) | (x == (byte)8) | (x == (byte)'\r') | (x == (byte)27) | (x == (byte)'^'))

/* Return how long p[0:length] has no byte that a plain record lacks: no carriage return, NUL, escape, caret or backspace. */
static size_t plain_length(const byte *p, size_t length) {
    size_t at = 0;
#ifdef LANES
    for (; length - at >= 4 * LANES; at += 4 * LANES) {
        Lanes a = lanes_at(p + at), b = lanes_at(p + at + LANES), c = lanes_at(p + at + 2 * LANES), d = lanes_at(p + at + 3 * LANES);
        if (any_lane(NOT_PLAIN(a) | NOT_PLAIN(b) | NOT_PLAIN(c) | NOT_PLAIN(d))) break;
    }
#endif
    while (at < length && p[at] != 0 && p[at] != 8 && p[at] != '\r' && p[at] != 27 && p[at] != '^') at++;
    return at;
}

/* Return whether p is a time mark of Buildkite: `_BUILDKITE` of records/envelope.py. */
static int is_time_mark(const byte *p, size_t length) {
    size_t at;
    if (length < 21 || memcmp(p, "\x1b_bk;t=", 7) != 0 || p[20] != 7) return 0;
    for (at = 7; at < 20 && is_digit(p[at]); at++) {}
    return at == 20;
}

/* Copy p[0:length] to `out` with such marks as seconds before their lines; return the length of what that is. */
static size_t write_times(byte *out, const byte *p, size_t length) {
    size_t at = 0, made = 0;
    while (at < length) {
        const byte *found = memchr(p + at, 27, length - at);
        size_t plain = found != NULL ? (size_t)(found - p) - at : length - at;
        memmove(out + made, p + at, plain);
        made += plain;
        at += plain;
        if (at == length) break;
        if (is_time_mark(p + at, length - at)) {
            memcpy(out + made, p + at + 7, 10);
            out[made + 10] = '.';
            memcpy(out + made + 11, p + at + 17, 3);
            out[made + 14] = ' ';
            made += 15;
            at += 21;
        } else out[made++] = p[at++];
    }
    return made;
}

/* Write p[0:length], whole records that begin with `first` bytes that are plain, to `out`; return the length of what is left. */
static size_t write_plain(byte *out, const byte *p, size_t length, size_t first) {
    static const byte STEPS[] = {'\r', 0, 27, '^', 8};
    const byte *mark;
    size_t step;
    for (mark = p + first; (mark = memchr(mark, 27, (size_t)(p + length - mark))) != NULL; mark++) {
        if (!is_time_mark(mark, (size_t)(p + length - mark))) continue;
        length = write_times(out, p, length);
        p = out;
        first = 0;
        break;
    }
    for (step = 0; step < sizeof STEPS; step++) {
        if (first >= length || memchr(p + first, STEPS[step], length - first) == NULL) continue;
        length = clean(out, p, length, STEPS[step]);
        p = out;
    }
    if (p != out) memcpy(out, p, length);
    return length;
}

#define STRETCH 32768  /* bytes that are made plain together: they stay in the first caches */

PyDoc_STRVAR(plain_doc, "plain(raw): whole records with one-byte ends, without terminal sequences and NULs, times of Buildkite as seconds.");

static PyObject *native_plain(PyObject *module, PyObject *raw) {
    const byte *text;
    byte *out = NULL;
    char *data;
    Py_ssize_t size;
    size_t length, at, made;
    PyObject *records;
    (void)module;
    if (PyBytes_AsStringAndSize(raw, &data, &size) < 0) return NULL;
    text = (const byte *)data;
    length = (size_t)size;
    at = made = plain_length(text, length);  /* a moment: giving up the interpreter would cost more */
    if (at == length) {
        Py_INCREF(raw);
        return raw;
    }
    Py_BEGIN_ALLOW_THREADS
    if ((out = malloc(length)) != NULL) {
        while (at > 0 && text[at - 1] != '\n') at--;
        memcpy(out, text, at);
        made = at;
        while (at < length) {
            size_t part = length - at, first;
            if (part > STRETCH) {
                const byte *end = memchr(text + at + STRETCH, '\n', part - STRETCH);
                if (end != NULL) part = (size_t)(end - text) + 1 - at;
            }
            first = plain_length(text + at, part);
            if (first < part) made += write_plain(out + made, text + at, part, first);
            else memcpy(out + made, text + at, part), made += part;
            at += part;
        }
    }
    Py_END_ALLOW_THREADS
    if (out == NULL) return PyErr_NoMemory();
    records = PyBytes_FromStringAndSize((const char *)out, (Py_ssize_t)made);
    free(out);
    return records;
}

#define HAS(p, room, text) ((room) >= sizeof text - 1 && memcmp(p, text, sizeof text - 1) == 0)

/* Return whether one of _NONFINITE_SIGNS of records/split.py is at p; `before` is the byte before it. */
static int is_sign(const byte *p, size_t room, byte before) {
    switch (*p) {
    case '#':
        return HAS(p, room, "#QNAN") || HAS(p, room, "#SNAN") || HAS(p, room, "#IND") || HAS(p, room, "#INF");
    case 'n':
        return HAS(p, room, "nan(") || HAS(p, room, "nan.") || (before == '(' && HAS(p, room, "nan)")) || HAS(p, room, "nfinity");
    case 'N':
        return HAS(p, room, "NaN.") || HAS(p, room, "NaN(") || HAS(p, room, "NAN");
    case '+':
        return HAS(p, room, "+inf") || HAS(p, room, "+Inf");
    case 'I':
        return HAS(p, room, "Inf");
    }
    return 0;
}

static int has_sign(const byte *p, size_t length) {
    size_t at = 0;
#ifdef LANES
    for (; length - at >= LANES + 2; at += LANES) {
        const Lanes small = {32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32};
        Lanes one = lanes_at(p + at), two = lanes_at(p + at + 1), three = lanes_at(p + at + 2) | small, first = one | small;
        Lanes nan = (Lanes)((first == 'n') & ((two | small) == 'a') & (three == 'n'));
        Lanes inf = (Lanes)(((one == 'I') & (two == 'n') & (three == 'f')) | ((one == '+') & ((two | small) == 'i')));
        size_t i;
        if (!any_lane(nan | inf | (Lanes)(one == '#') | (Lanes)((one == 'n') & (two == 'f') & (three == 'i')))) continue;
        for (i = at; i < at + LANES; i++)
            if (is_sign(p + i, length - i, i > 0 ? p[i - 1] : 0)) return 1;
    }
#endif
    for (; at < length; at++)
        if (is_sign(p + at, length - at, at > 0 ? p[at - 1] : 0)) return 1;
    return 0;
}

PyDoc_STRVAR(spells_doc, "spells(raw): whether a number that is not finite may be spelled otherwise than nan, inf and -inf.");

static PyObject *native_spells(PyObject *module, PyObject *raw) {
    char *text;
    Py_ssize_t size;
    int found;
    (void)module;
    if (PyBytes_AsStringAndSize(raw, &text, &size) < 0) return NULL;
    Py_BEGIN_ALLOW_THREADS
    found = has_sign((const byte *)text, (size_t)size);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(found);
}

/* ---- packed lines: what Unpacker of io/envelopes.py makes of an object around a line, where that is certain ---- */

#define MOST_KEYS 48
#define DEEPEST 32
#define CUT_LENGTH 16384  /* CUT_AT of io/envelopes.py */

enum { KEPT, UNPACKED, ASKED };                           /* what becomes of an object; ASKED: Python decides */
enum { STRING = 1, INTEGER, FRACTION, WORD_VALUE, ARRAY, OBJECT };
enum { ESCAPED = 1, WIDE = 2 };                           /* a string with a backslash, with a byte outside ASCII */
enum { IS_LINE = 1, IS_TIME = 2, IS_LEVEL = 4, IS_STREAM = 8, IS_OUTSIDE = 16, IS_RAISED = 32, IS_NUMBER = 64 };
#define LINES 6
#define TIMES 10
#define LEVELS 5

typedef struct {
    const byte *start, *end;
    int kind, odd;
} Json;

typedef struct {
    const char *name;
    byte length, roles, place;  /* `place`: in the list of the role, the most telling first */
} Role;

/* _LINES, _TIMES, _LEVELS, _OUTSIDE, _RAISED and _NUMBERS of io/envelopes.py. */
#define ROLE(name, roles, place) {name, sizeof name - 1, roles, place}
static const Role ROLES[] = {
    ROLE("log", IS_LINE, 0), ROLE("line", IS_LINE, 1), ROLE("message", IS_LINE, 2), ROLE("MESSAGE", IS_LINE, 3),
    ROLE("msg", IS_LINE, 4), ROLE("textPayload", IS_LINE, 5), ROLE("time", IS_TIME | IS_NUMBER, 0),
    ROLE("timestamp", IS_TIME | IS_NUMBER, 1), ROLE("@timestamp", IS_TIME | IS_NUMBER, 2), ROLE("ts", IS_TIME | IS_NUMBER, 3),
    ROLE("date", IS_TIME | IS_NUMBER, 4), ROLE("asctime", IS_TIME | IS_NUMBER, 5), ROLE("datetime", IS_TIME | IS_NUMBER, 6),
    ROLE("__REALTIME_TIMESTAMP", IS_TIME | IS_NUMBER, 7), ROLE("created", IS_TIME | IS_NUMBER, 8),
    ROLE("eventTime", IS_TIME | IS_NUMBER, 9), ROLE("level", IS_LEVEL | IS_NUMBER, 0), ROLE("levelname", IS_LEVEL | IS_NUMBER, 1),
    ROLE("severity", IS_LEVEL | IS_NUMBER, 2), ROLE("lvl", IS_LEVEL | IS_NUMBER, 3), ROLE("log.level", IS_LEVEL | IS_NUMBER, 4),
    ROLE("stream", IS_STREAM, 0), ROLE("jsonPayload", IS_OUTSIDE, 0), ROLE("_source", IS_OUTSIDE, 0), ROLE("exc_info", IS_RAISED, 0),
    ROLE("exception", IS_RAISED, 0), ROLE("stack_trace", IS_RAISED, 0), ROLE("traceback", IS_RAISED, 0),
    ROLE("exc_text", IS_RAISED, 0), ROLE("levelno", IS_NUMBER, 0), ROLE("priority", IS_NUMBER, 0), ROLE("facility", IS_NUMBER, 0),
    ROLE("pid", IS_NUMBER, 0), ROLE("tid", IS_NUMBER, 0), ROLE("process", IS_NUMBER, 0), ROLE("thread", IS_NUMBER, 0),
    ROLE("process_id", IS_NUMBER, 0), ROLE("thread_id", IS_NUMBER, 0), ROLE("rank", IS_NUMBER, 0), ROLE("local_rank", IS_NUMBER, 0),
    ROLE("global_rank", IS_NUMBER, 0), ROLE("node_rank", IS_NUMBER, 0), ROLE("world_size", IS_NUMBER, 0),
    ROLE("lineno", IS_NUMBER, 0), ROLE("line_number", IS_NUMBER, 0), ROLE("offset", IS_NUMBER, 0), ROLE("seq", IS_NUMBER, 0),
    ROLE("v", IS_NUMBER, 0), ROLE("partial_id", IS_NUMBER, 0), ROLE("partial_ordinal", IS_NUMBER, 0), ROLE("msecs", IS_NUMBER, 0),
    ROLE("relativeCreated", IS_NUMBER, 0), ROLE("monotonic", IS_NUMBER, 0), ROLE("ingestionTime", IS_NUMBER, 0),
    ROLE("ingestion_time", IS_NUMBER, 0), ROLE("observed_timestamp", IS_NUMBER, 0),
};

typedef struct {
    Json lines[LINES], times[TIMES], levels[LEVELS], stream;
    int figure, wide;
} Packed;

static const Role *role_of(const byte *name, size_t length) {
    size_t i;
    for (i = 0; i < sizeof ROLES / sizeof ROLES[0]; i++)
        if (ROLES[i].length == length && ROLES[i].name[0] == (char)name[0] && memcmp(ROLES[i].name, name, length) == 0) return &ROLES[i];
    return NULL;
}

static const byte *behind_blanks(const byte *p, const byte *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r')) p++;
    return p;
}

static const byte *behind_digits(const byte *p, const byte *end) {
    while (p < end && is_digit(*p)) p++;
    return p;
}

/* Return the quote that ends the string whose text begins at p, NULL where it is none. */
static const byte *end_of_string(const byte *p, const byte *end, int *odd) {
    const uint64_t ONES = UINT64_C(0x0101010101010101);
    for (;;) {
        while (end - p >= 8) {
            uint64_t x = load64(p), quote = x ^ (ONES * '"'), back = x ^ (ONES * '\\');
            if (((x - ONES * 0x20) | (quote - ONES) | (back - ONES) | x) & HIGH) break;  /* one of them, or a byte after one */
            p += 8;
        }
        if (p >= end || *p < 0x20) return NULL;
        if (*p == '"') return p;
        if (*p >= 0x80) *odd |= WIDE;
        if (*p == '\\') {
            *odd |= ESCAPED;
            if (++p == end) return NULL;
            if (*p == 'u') {
                int i;
                for (i = 1; i <= 4; i++)
                    if (end - p <= i || !(is_digit(p[i]) || (byte)((p[i] | 0x20) - 'a') < 6)) return NULL;
                p += 4;
            } else if (!is_one_of(*p, "\"\\/bfnrt")) return NULL;
        }
        p++;
    }
}

/* Read the value at p into *value; return what is behind it, NULL where it is none for certain. */
static const byte *read_value(const byte *p, const byte *end, int depth, Json *value, int *wide) {
    value->start = value->end = p;
    value->odd = 0;
    if (p >= end || depth > DEEPEST) return NULL;
    if (*p == '"') {
        value->kind = STRING;
        value->start = p + 1;
        value->end = end_of_string(p + 1, end, &value->odd);
        *wide |= value->odd & WIDE;
        return value->end != NULL ? value->end + 1 : NULL;
    }
    if (*p == '-' || is_digit(*p)) {
        value->kind = INTEGER;
        p += *p == '-';
        if (p == end || !is_digit(*p)) return NULL;
        p = *p == '0' ? p + 1 : behind_digits(p, end);
        if (end - p >= 2 && *p == '.' && is_digit(p[1])) value->kind = FRACTION, p = behind_digits(p + 1, end);
        if (p < end && (*p | 0x20) == 'e') {
            const byte *next = p + 1;
            next += next < end && (*next == '-' || *next == '+');
            if (next < end && is_digit(*next)) value->kind = FRACTION, p = behind_digits(next, end);
        }
        value->end = p;
        return value->end - value->start <= 400 ? p : NULL;  /* Python reads no integer of thousands of digits */
    }
    if (*p == '[' || *p == '{') {
        int braces = *p == '{';
        byte close = braces ? '}' : ']';
        Json part;
        value->kind = braces ? OBJECT : ARRAY;
        p = behind_blanks(p + 1, end);
        if (p < end && *p == close) return p + 1;
        for (;;) {
            if (braces) {
                if (p >= end || *p != '"' || (p = read_value(p, end, depth + 1, &part, wide)) == NULL) return NULL;
                p = behind_blanks(p, end);
                if (p >= end || *p != ':') return NULL;
                p = behind_blanks(p + 1, end);
            }
            if ((p = read_value(p, end, depth + 1, &part, wide)) == NULL) return NULL;
            p = behind_blanks(p, end);
            if (p >= end || (*p != close && *p != ',')) return NULL;
            if (*p == close) return p + 1;
            p = behind_blanks(p + 1, end);
        }
    }
    value->kind = WORD_VALUE;
    if (end - p >= 4 && (memcmp(p, "true", 4) == 0 || memcmp(p, "null", 4) == 0)) return p + 4;
    return end - p >= 5 && memcmp(p, "false", 5) == 0 ? p + 5 : NULL;
}

/* Read the object p..end into *found; return 0 where Python must. */
static int read_packed(const byte *p, const byte *end, Packed *found) {
    struct { const byte *name; size_t length; } keys[MOST_KEYS];
    size_t count = 0, i;
    memset(found, 0, sizeof *found);
    p = behind_blanks(p + 1, end);
    for (;;) {
        Json key, value;
        const Role *role;
        const byte *colon, *start;
        size_t length;
        int uncertain = 0;
        if (p >= end || *p != '"' || (p = read_value(p, end, 0, &key, &found->wide)) == NULL || key.odd & ESCAPED) return 0;
        length = (size_t)(key.end - key.start);
        for (i = 0; i < count; i++)
            if (keys[i].length == length && memcmp(keys[i].name, key.start, length) == 0) return 0;  /* the last one counts */
        if (count == MOST_KEYS) return 0;
        keys[count].name = key.start;
        keys[count++].length = length;
        colon = behind_blanks(p, end);
        if (colon >= end || *colon != ':') return 0;
        start = behind_blanks(colon + 1, end);
        role = length > 0 ? role_of(key.start, length) : NULL;
        if (role != NULL && role->roles & IS_LINE &&
            (colon > p + 1 || (colon > p && *p != ' ') || start > colon + 2 || (start > colon + 1 && colon[1] != ' ')))
            return 0;  /* _HAS_LINE looks for one blank at most */
        if ((p = read_value(start, end, 1, &value, &found->wide)) == NULL) return 0;
        if ((value.kind == INTEGER || value.kind == FRACTION) && !(role != NULL && role->roles & IS_NUMBER) &&
            !(length > 0 && *key.start == '_'))
            found->figure = 1;
        if (role != NULL) {
            if (role->roles & IS_LINE) found->lines[role->place] = value, uncertain = value.kind == ARRAY;
            if (role->roles & IS_TIME) found->times[role->place] = value, uncertain = value.kind == FRACTION;
            if (role->roles & IS_LEVEL) found->levels[role->place] = value;
            if (role->roles & IS_STREAM) found->stream = value;
            if (role->roles & IS_OUTSIDE) uncertain = value.kind == OBJECT;
            if (role->roles & IS_RAISED) uncertain = value.kind == STRING && value.end > value.start;
        }
        if (uncertain) return 0;
        p = behind_blanks(p, end);
        if (p >= end || (*p != '}' && *p != ',')) return 0;
        if (*p == '}') return p + 1 == end;
        p = behind_blanks(p + 1, end);
    }
}

/* Return whether p[0:length] is a time: _STAMP of io/envelopes.py. */
static int is_stamp(const byte *p, size_t length) {
    static const char FORM[] = "0000-00-00T00:00:00";
    size_t at;
    if (length < sizeof FORM - 1) return 0;
    for (at = 0; at < sizeof FORM - 1; at++) {
        if (FORM[at] == '0' ? !is_digit(p[at]) : FORM[at] == '-' ? p[at] != '-' && p[at] != '/' :
            FORM[at] == 'T' ? p[at] != 'T' && p[at] != ' ' : p[at] != ':')
            return 0;
    }
    if (at < length && (p[at] == '.' || p[at] == ',')) {
        size_t digits = 1;
        while (at + digits < length && digits <= 9 && is_digit(p[at + digits])) digits++;
        if (digits == 1) return 0;
        at += digits;
    }
    if (at == length) return 1;
    if (p[at] == 'Z') return at + 1 == length;
    if (p[at] != '+' && p[at] != '-') return 0;
    p += at + 1;
    length -= at + 1;
    if (length == 5 && p[2] == ':') return is_digit(p[0]) && is_digit(p[1]) && is_digit(p[3]) && is_digit(p[4]);
    return length == 4 && is_digit(p[0]) && is_digit(p[1]) && is_digit(p[2]) && is_digit(p[3]);
}

/* Write `value` in `digits` digits at least, zeros before it; return what is behind it. */
static byte *write_number(byte *out, int64_t value, int digits) {
    int64_t rest = value;
    int count = 1, i;
    while (rest >= 10) rest /= 10, count++;
    if (count < digits) count = digits;
    for (i = count - 1; i >= 0; i--, value /= 10) out[i] = (byte)('0' + value % 10);
    return out + count;
}

/* Write a time as the head of a line and return its length, 0 for none: _stamp of io/envelopes.py. -1: Python must. */
static int write_stamp(byte *out, const Json *time) {
    size_t length = (size_t)(time->end - time->start), at;
    int64_t value = 0, part = 1;
    int places = 0;
    byte *end;
    if (time->kind == FRACTION) {  /* of ten digits before the point and six behind it a float64 keeps all */
        const byte *point = time->start + 10;
        if (length < 12 || length > 17 || *point != '.' || behind_digits(point + 1, time->end) != time->end) return -1;
        if (behind_digits(time->start, point) != point || time->start[0] < '1' || time->start[0] > '2') return -1;
        memcpy(out, time->start, length);
        memset(out + length, '0', 17 - length);
        out[17] = ' ';
        return 18;
    }
    if (time->kind == STRING) {
        if (time->odd) return -1;
        if (is_stamp(time->start, length)) {
            memcpy(out, time->start, length);
            out[length] = ' ';
            return (int)length + 1;
        }
        if (length > 19) return 0;
    } else if (time->kind != INTEGER) return 0;
    for (at = 0; at < length; at++)
        if (!is_digit(time->start[at])) return 0;
    if (length > 18) return -1;
    for (at = 0; at < length; at++) value = value * 10 + (time->start[at] - '0');
    if (value < 1000000000) return 0;
    while (value >= 3000000000 * part) part *= 1000, places += 3;
    end = write_number(out, value / part, 1);
    *end++ = '.';
    end = write_number(end, value % part, places > 3 ? places : 3);
    *end++ = ' ';
    return (int)(end - out);
}

/* Write the level of an object as the head of a line and return its length, 0 for none: _level. -1: Python must. */
static int write_level(byte *out, const Packed *found) {
    static const char *const WORDS[] = {"DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "FATAL"};
    static const char *const SHORT[][2] = {{"WARN", "WARNING"}, {"ERR", "ERROR"}, {"PANIC", "FATAL"}};
    char said[9];
    const char *word = said;
    size_t length, at;
    int i;
    for (i = 0; i < LEVELS && found->levels[i].kind != STRING; i++) {}
    if (i == LEVELS) return 0;
    if (found->levels[i].odd) return -1;
    length = (size_t)(found->levels[i].end - found->levels[i].start);
    if (length >= sizeof said) return 0;
    for (at = 0; at < length; at++) {
        byte c = found->levels[i].start[at];
        said[at] = (char)(c >= 'a' && c <= 'z' ? c - 32 : c);
    }
    said[length] = 0;
    for (i = 0; i < 3; i++)
        if (strcmp(said, SHORT[i][0]) == 0) word = SHORT[i][1];
    for (i = 0; i < 7; i++) {
        if (strcmp(word, WORDS[i]) != 0) continue;
        length = strlen(word);
        memcpy(out, word, length);
        memcpy(out + length, ": ", 2);
        return (int)length + 2;
    }
    return 0;
}

/* Write the text of a string without its escapes; return what is behind it, NULL where Python must. */
static byte *write_text(byte *out, const Json *text) {
    const byte *p = text->start;
    if (!(text->odd & ESCAPED)) {
        size_t length = (size_t)(text->end - p);
        memcpy(out, p, length);
        return out + length;
    }
    while (p < text->end) {
        const byte *next = memchr(p, '\\', (size_t)(text->end - p));
        size_t plain = (size_t)((next != NULL ? next : text->end) - p);
        memcpy(out, p, plain);
        out += plain;
        p += plain;
        if (p == text->end) break;
        p += 2;
        switch (p[-1]) {
        case 'b': *out++ = 8; break;
        case 'f': *out++ = 12; break;
        case 'n': *out++ = '\n'; break;
        case 'r': *out++ = '\r'; break;
        case 't': *out++ = '\t'; break;
        case 'u': {
            unsigned code = 0;
            int i;
            for (i = 0; i < 4; i++, p++) code = 16 * code + (unsigned)(is_digit(*p) ? *p - '0' : (*p | 0x20) - 'a' + 10);
            if (code >= 0xD800 && code < 0xE000) return NULL;
            if (code < 0x80) *out++ = (byte)code;
            else {
                if (code < 0x800) *out++ = (byte)(0xC0 | code >> 6);
                else {
                    *out++ = (byte)(0xE0 | code >> 12);
                    *out++ = (byte)(0x80 | (code >> 6 & 0x3F));
                }
                *out++ = (byte)(0x80 | (code & 0x3F));
            }
            break;
        }
        default: *out++ = p[-1];
        }
    }
    return out;
}

static int is_blank_byte(byte c) { return c == ' ' || (c >= 9 && c <= 13); }

/* Write the line that the object p..end packs to `out`, which has room for as many bytes, and set *length; `held`: lines
   wait for the rest of theirs, `ended`: a text without a line end is a part of a line. */
static int unpack_object(byte *out, const byte *p, const byte *end, int held, int ended, size_t *length) {
    Packed found;
    const Json *line = NULL;
    byte *at = out, *start, *behind;
    byte head[64];
    int i, size = 0, more;
    if (!read_packed(p, end, &found)) return ASKED;
    if (found.figure) return KEPT;
    for (i = 0; i < LINES && line == NULL; i++)
        if (found.lines[i].kind == STRING) line = &found.lines[i];
    if (line == NULL) return KEPT;
    if (found.wide && !is_utf8(p, (size_t)(end - p))) return ASKED;
    for (i = 0; i < TIMES && size == 0; i++)
        if (found.times[i].kind != 0 && (size = write_stamp(head, &found.times[i])) < 0) return ASKED;
    if (found.stream.kind == STRING) {
        if (found.stream.odd & ESCAPED) return ASKED;
        if (found.stream.end - found.stream.start != 6 ||
            (memcmp(found.stream.start, "stdout", 6) != 0 && memcmp(found.stream.start, "stderr", 6) != 0))
            found.stream.kind = 0;
    } else found.stream.kind = 0;
    if (found.stream.kind != 0) {
        if (held) return ASKED;
        memcpy(head + size, found.stream.start, 6);
        memcpy(head + size + 6, " F ", 3);
        size += 9;
    } else if (line != &found.lines[5]) {
        if ((more = write_level(head + size, &found)) < 0) return ASKED;
        size += more;
    }
    if (size == 0) return KEPT;
    if (line == &found.lines[3]) return ASKED;  /* journald names the host */
    if (size + (line->end - line->start) > end - p) return ASKED;
    memcpy(at, head, (size_t)size);
    start = at + size;
    behind = write_text(start, line);
    if (behind == NULL) return ASKED;
    if (found.stream.kind != 0 && (ended || behind - start == CUT_LENGTH) && (behind == start || behind[-1] != '\n')) return ASKED;
    for (at = start; at < behind && is_blank_byte(*at); at++) {}
    if (at < behind && *at == '{') {
        const byte *last = behind - 1;
        while (is_blank_byte(*last)) last--;
        if (*last == '}') return ASKED;  /* perhaps another packing */
    }
    if (behind > start && behind[-1] == '\n') behind--;
    if (behind > start && behind[-1] == '\r') behind--;
    if ((at = memchr(start, '\n', (size_t)(behind - start))) != NULL) {
        const byte *from = at;
        if (at > start && at[-1] == '\r') at--;
        for (; from < behind; from++) {
            if (*from == '\r' && from + 1 < behind && from[1] == '\n') continue;
            *at++ = *from == '\n' ? '\r' : *from;
        }
        behind = at;
    }
    *length = (size_t)(behind - out);
    return UNPACKED;
}

/* Return the next place from p on of ` stdout P` or ` stderr P`, NULL where there is none: _CUT_LINE of io/envelopes.py. */
static const byte *find_cut(const byte *p, const byte *end) {
    p = end - p < 9 ? NULL : p + 8;
    while (p != NULL && p < end && (p = memchr(p, 'P', (size_t)(end - p))) != NULL) {
        if (p[-1] == ' ' && (memcmp(p - 8, " stdout", 7) == 0 || memcmp(p - 8, " stderr", 7) == 0)) return p - 8;
        p++;
    }
    return NULL;
}

PyDoc_STRVAR(cut_line_doc, "cut_line(text, start): the next place from start on of ` stdout P` or ` stderr P`; -1 for none.");

static PyObject *native_cut_line(PyObject *module, PyObject *arguments) {
    const char *text;
    const byte *found;
    Py_ssize_t length, start;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y#n", &text, &length, &start)) return NULL;
    if (start < 0 || start > length) start = length;
    Py_BEGIN_ALLOW_THREADS
    found = find_cut((const byte *)text + start, (const byte *)text + length);
    Py_END_ALLOW_THREADS
    return PyLong_FromSsize_t(found != NULL ? (Py_ssize_t)(found - (const byte *)text) : -1);
}

PyDoc_STRVAR(unpack_doc, "unpack(text, parts, ask, ended=False): whole lines with their objects unpacked, their line ends, cut_line(lines, 0); `ask` unpacks a line "
                         "that is not certain, and may fill `parts`; `ended`: a text without a line end is a part of a line.");

static PyObject *native_unpack(PyObject *module, PyObject *arguments) {
    PyObject *given, *parts, *resolve, *made;
    const byte *text, *cut;
    byte *out = NULL;
    char *data;
    Py_ssize_t size, place = -1;
    size_t length, at = 0, done = 0, used = 0, room = 0, ends = 0;
    int held, ended = 0, changed = 0, no_memory = 0;
    PyThreadState *saved;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "SOO|p", &given, &parts, &resolve, &ended)) return NULL;
    if (PyBytes_AsStringAndSize(given, &data, &size) < 0 || (held = PyObject_IsTrue(parts)) < 0) return NULL;
    text = (const byte *)data;
    length = (size_t)size;
    saved = PyEval_SaveThread();
    while (at < length && !no_memory) {
        const byte *brace = memchr(text + at, '{', length - at), *next, *end, *start;
        size_t wide, plain, answered = 0;
        int what = ASKED;
        if (brace == NULL) break;
        next = memchr(brace, '\n', (size_t)(text + length - brace));
        if (next == NULL) next = text + length;
        at = (size_t)(next - text);
        if (next - brace < 3 || (brace[1] != '"' && (brace[1] != ' ' || brace[2] != '"'))) continue;
        if (brace > text && brace[-1] != '\n' && brace[-1] != '\t' && brace[-1] != '[') continue;
        for (start = brace; start > text && start[-1] != '\n';) start--;
        for (end = next, wide = 0; wide < 3 && end > brace; wide++)
            if (end[-1] == "\r,]"[wide]) end--;
        if (end[-1] != '}') continue;
        wide = (size_t)(next - start);
        if (out == NULL) {  /* what is unpacked is never longer, and what Python answers finds its room */
            room = length;
            no_memory = (out = malloc(room)) == NULL;
            if (no_memory) continue;
        }
        plain = (size_t)(start - text) - done;
        if (start == brace || (brace - start == 1 && *start == '['))
            what = unpack_object(out + used + plain, brace, end, held, ended, &answered);
        if (what == KEPT) continue;
        memcpy(out + used, text + done, plain);
        used += plain;
        changed = 1;
        if (what == UNPACKED) used += answered;
        else {
            PyObject *answer;
            char *line;
            Py_ssize_t many;
            PyEval_RestoreThread(saved);
            answer = PyObject_CallFunction(resolve, "y#", (const char *)start, (Py_ssize_t)wide);
            if (answer == NULL || PyBytes_AsStringAndSize(answer, &line, &many) < 0 || (held = PyObject_IsTrue(parts)) < 0) {
                Py_XDECREF(answer);
                free(out);
                return NULL;
            }
            if ((size_t)many > wide) {
                byte *grown = realloc(out, room + (size_t)many - wide);
                if (grown == NULL) {
                    Py_DECREF(answer);
                    free(out);
                    return PyErr_NoMemory();
                }
                out = grown;
                room += (size_t)many - wide;
            }
            memcpy(out + used, line, (size_t)many);
            used += (size_t)many;
            Py_DECREF(answer);
            saved = PyEval_SaveThread();
        }
        done = at;
    }
    if (changed) {
        memcpy(out + used, text + done, length - done);
        used += length - done;
        text = out;
        length = used;
    }
    if (!no_memory) {
        ends = count_of(text, length, '\n');
        cut = find_cut(text, text + length);
        place = cut != NULL ? (Py_ssize_t)(cut - text) : -1;
    }
    PyEval_RestoreThread(saved);
    if (no_memory) return PyErr_NoMemory();
    if (changed) made = PyBytes_FromStringAndSize((const char *)out, (Py_ssize_t)used);
    else Py_INCREF(made = given);
    free(out);
    if (made == NULL) return NULL;
    return Py_BuildValue("Nnn", made, (Py_ssize_t)ends, place);
}

static PyMethodDef native_methods[] = {
    {"cut_line", native_cut_line, METH_VARARGS, cut_line_doc},
    {"unpack", native_unpack, METH_VARARGS, unpack_doc},
    {"plain", native_plain, METH_O, plain_doc},
    {"spells", native_spells, METH_O, spells_doc},
    {"likely", native_likely, METH_VARARGS, likely_doc},
    {"decimal", native_decimal, METH_VARARGS, decimal_doc},
    {NULL, NULL, 0, NULL},
};

static int native_exec(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &kernel_spec, NULL);
    if (type == NULL) return -1;
    if (PyModule_AddObject(module, "Kernel", type) < 0) {
        Py_DECREF(type);
        return -1;
    }
    return 0;
}

static PyModuleDef_Slot native_slots[] = {{Py_mod_exec, (void *)native_exec}, {0, NULL}};

PyDoc_STRVAR(native_doc, "Read records of known layouts into columns: the compiled part of a scan.");

static struct PyModuleDef native_module = {
    PyModuleDef_HEAD_INIT, "_native", native_doc, 0, native_methods, native_slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&native_module); }
