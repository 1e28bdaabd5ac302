/* Fingerprints of memory, the numbers of fingerprints.py: that file says what they are; and copies that leave the processor's
 * cache to the job. Compiled when a job is recorded, if there is a compiler; where there is none NumPy computes the same. */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HAS_AVX2 1
#endif

enum { AHEAD = 1024 }; /* bytes: memory is asked for before its turn, which this processor does too late by itself */
enum { ROW = 2048, PARTS = 16, DIGITS = 16, SMALL = 4096, LINE = 4096, PAST = 1 << 18 };
static const uint64_t GOLDEN = 0x9E3779B97F4A7C15u;
static uint32_t factors[ROW];

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

typedef struct {
    uint64_t low, high; /* sums of the words' halves, each times its factor */
    uint64_t odd;       /* not zero where a number is not finite */
} sums_t;

/* How numbers that are not finite are known: all bits of the exponent are set. `width` is that of a number in bytes, zero where
 * nobody asks. */
typedef struct {
    uint64_t exponents; /* of all numbers in a word */
    int width;
} look_t;

static uint64_t is_odd(uint64_t word, look_t look) {
    if (!look.width) return 0;
    uint64_t one = look.width == 8 ? ~0ull : (1ull << 8 * look.width) - 1, set = word & look.exponents;
    for (int k = 0; k < 8; k += look.width, one <<= 8 * (look.width & 7))
        if ((set & one) == (look.exponents & one)) return 1;
    return 0;
}

static sums_t sum_some(const unsigned char *data, size_t from, size_t words, look_t look, sums_t found) {
    for (size_t i = from; i < words; i++) {
        uint64_t word;
        memcpy(&word, data + 8 * i, 8);
        found.low += (word & 0xFFFFFFFFu) * factors[i];
        found.high += (word >> 32) * factors[i];
        found.odd |= is_odd(word, look);
    }
    return found;
}

static sums_t sum_plainly(const unsigned char *data, size_t words, look_t look) {
    return sum_some(data, 0, words, look, (sums_t){0, 0, 0});
}

static void copy_plainly(unsigned char *to, const unsigned char *from, size_t size) { memcpy(to, from, size); }

#ifdef HAS_AVX2
#define AVX2 __attribute__((target("avx2")))

/* Looking costs next to nothing in the same pass, which waits for memory; `width` is known where this is put in. */
AVX2 static inline __attribute__((always_inline)) sums_t sum_wide(const unsigned char *data, size_t words, look_t look, int width) {
    __m256i low[4], high[4], odd = _mm256_setzero_si256(), exponents = _mm256_set1_epi64x((long long)look.exponents);
    for (int k = 0; k < 4; k++) low[k] = high[k] = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 16 <= words; i += 16) {
        _mm_prefetch((const char *)data + 8 * i + AHEAD, _MM_HINT_T0);
        _mm_prefetch((const char *)data + 8 * i + AHEAD + 64, _MM_HINT_T0);
        for (int k = 0; k < 4; k++) {
            __m256i word = _mm256_loadu_si256((const __m256i *)(data + 8 * (i + 4 * k)));
            __m256i factor = _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(factors + i + 4 * k)));
            low[k] = _mm256_add_epi64(low[k], _mm256_mul_epu32(word, factor));
            high[k] = _mm256_add_epi64(high[k], _mm256_mul_epu32(_mm256_srli_epi64(word, 32), factor));
            __m256i set = _mm256_and_si256(word, exponents);
            if (width == 2) odd = _mm256_or_si256(odd, _mm256_cmpeq_epi16(set, exponents));
            if (width == 4) odd = _mm256_or_si256(odd, _mm256_cmpeq_epi32(set, exponents));
            if (width == 8) odd = _mm256_or_si256(odd, _mm256_cmpeq_epi64(set, exponents));
        }
    }
    uint64_t lows[4], highs[4];
    _mm256_storeu_si256((__m256i *)lows, _mm256_add_epi64(_mm256_add_epi64(low[0], low[1]), _mm256_add_epi64(low[2], low[3])));
    _mm256_storeu_si256((__m256i *)highs, _mm256_add_epi64(_mm256_add_epi64(high[0], high[1]), _mm256_add_epi64(high[2], high[3])));
    sums_t found = {lows[0] + lows[1] + lows[2] + lows[3], highs[0] + highs[1] + highs[2] + highs[3], 0};
    found.odd = !_mm256_testz_si256(odd, odd);
    return sum_some(data, i, words, look, found);
}

AVX2 static sums_t sum_avx2(const unsigned char *data, size_t words, look_t look) {
    switch (look.width) {
    case 2: return sum_wide(data, words, look, 2);
    case 4: return sum_wide(data, words, look, 4);
    case 8: return sum_wide(data, words, look, 8);
    default: return sum_wide(data, words, look, 0);
    }
}

/* Past the cache: nobody reads a ring before something has happened. */
AVX2 static void copy_avx2(unsigned char *to, const unsigned char *from, size_t size) {
    size_t at = -(uintptr_t)to & 31;
    at = at < size ? at : size;
    memcpy(to, from, at);
    for (; at + 128 <= size; at += 128)
        for (int k = 0; k < 128; k += 32)
            _mm256_stream_si256((__m256i *)(to + at + k), _mm256_loadu_si256((const __m256i *)(from + at + k)));
    memcpy(to + at, from + at, size - at);
    _mm_sfence();
}
#endif

static sums_t (*sum)(const unsigned char *, size_t, look_t) = sum_plainly;
static void (*copy_past)(unsigned char *, const unsigned char *, size_t) = copy_plainly;

/* The factors, handed over once. */
void phalanx_begin(const uint32_t *given) {
    memcpy(factors, given, sizeof factors);
#ifdef HAS_AVX2
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) sum = sum_avx2, copy_past = copy_avx2;
#endif
}

static const char digits[] = "0123456789abcdef";

/* The bytes of a number, the lowest first. */
static char *put_parts(char *at, uint64_t value) {
    for (int k = 0; k < 8; k++, value >>= 8) {
        *at++ = digits[value >> 4 & 15];
        *at++ = digits[value & 15];
    }
    return at;
}

static char *put_whole(char *at, uint64_t value) {
    for (int k = DIGITS - 1; k >= 0; k--, value >>= 4) at[k] = digits[value & 15];
    return at + DIGITS;
}

void phalanx_copy(unsigned char *to, const unsigned char *from, size_t size) {
    (size < PAST ? copy_plainly : copy_past)(to, from, size);
}

/* The fingerprint of `size` bytes; `parts` gets the digits of those of its parts, and a zero behind them. Where `copy` is given
 * the bytes are copied there on the way: what has just been read is at hand. `odd` is set where a number is not finite. */
static uint64_t take(const unsigned char *data, size_t size, unsigned char *copy, char *parts, look_t look, uint64_t *odd) {
    size_t words = size / 8, row = (words + PARTS - 1) / PARTS, at = 0;
    row = words >= PARTS * ROW ? ROW : row < 8 ? 8 : row;
    size_t rows = words / row, step = (rows + 2 + PARTS + 1) / (PARTS + 2);
    uint64_t whole = 0, part = 0, tail = 0;
    void (*copy_row)(unsigned char *, const unsigned char *, size_t) = size < PAST ? copy_plainly : copy_past;
    for (size_t number = 0; number < rows + 2; number++) {
        sums_t found = {0, 0, 0};
        size_t here = number < rows ? row * 8 : number == rows ? (words - rows * row) * 8 : size - words * 8;
        if (number <= rows) {
            found = sum(data + at, here / 8, look);
        } else {
            memcpy(&tail, data + at, here);
            found.low = tail;
            found.odd = is_odd(tail, look);
        }
        *odd |= found.odd;
        if (copy) copy_row(copy + at, data + at, here);
        at += here;
        part += mix(mix(found.low + (found.high << 32) + (2 * number + 1) * GOLDEN) + found.high);
        if ((number + 1) % step == 0 || number == rows + 1) {
            if (parts) parts = put_parts(parts, part);
            whole += part;
            part = 0;
        }
    }
    if (parts) *parts = 0;
    return mix(whole + size * GOLDEN);
}

uint64_t phalanx_words(const unsigned char *data, size_t size, unsigned char *copy, char *parts) {
    uint64_t odd = 0;
    return take(data, size, copy, parts, (look_t){0, 0}, &odd);
}

/* Appends one line to the log: `{`, `prefix` up to an opened list, the fingerprints of `count` pieces of memory (address and size
 * of each, one behind the other) in it, their parts if these are wanted. `told` gets the first fingerprint, and whether
 * a number is not finite if `width` is given, that of numbers in bytes. Returns the bytes written, or an error's number below zero. */
long phalanx_line(int log, const char *prefix, size_t length, const uint64_t *memory, size_t count, int wants_parts,
                  unsigned char *copy, uint64_t *told, uint64_t exponents, int width) {
    char room[LINE], *line = room;
    size_t most = length + 32 + count * (DIGITS + 3 + (PARTS + 2) * DIGITS + 4);
    if (most > LINE && !(line = malloc(most))) return -ENOMEM;
    char *at = line, *parts = line + length + 32 + count * (DIGITS + 3), *end = parts;
    int has_parts = 0;
    uint64_t first = 0, odd = 0;
    *at++ = '{';
    memcpy(at, prefix, length);
    at += length;
    for (size_t k = 0; k < count; k++) {
        const unsigned char *data = (const unsigned char *)(uintptr_t)memory[2 * k];
        size_t size = memory[2 * k + 1];
        int wanted = wants_parts && size >= SMALL;
        *end++ = '"';
        uint64_t whole = take(data, size, copy, wanted ? end : NULL, (look_t){exponents, width}, &odd);
        if (wanted) end += strlen(end);
        *end++ = '"';
        *end++ = ',';
        has_parts |= wanted;
        if (copy) copy += size;
        if (!k) first = whole;
        *at++ = '"';
        at = put_whole(at, whole);
        *at++ = '"';
        *at++ = ',';
    }
    if (told) told[0] = first, told[1] = odd;
    if (count) at--;
    *at++ = ']';
    if (has_parts) {
        memcpy(at, ",\"parts\":[", 10);
        at += 10;
        memmove(at, parts, (size_t)(end - 1 - parts));
        at += end - 1 - parts;
        *at++ = ']';
    }
    *at++ = '}';
    *at++ = '\n';
    long left = at - line, written = left;
    for (at = line; left > 0;) {
        ssize_t passed = write(log, at, (size_t)left);
        if (passed < 0 && errno == EINTR) continue;
        if (passed < 0) {
            written = -errno;
            break;
        }
        at += passed;
        left -= passed;
    }
    if (line != room) free(line);
    return written;
}
