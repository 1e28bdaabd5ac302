/* Fingerprints of memory, the numbers of fingerprints.py: that file says what they are. Compiled when a job is recorded, if
 * there is a compiler; where there is none NumPy computes the same. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HAS_AVX2 1
#endif

enum { ROW = 2048, PARTS = 16 };
static const uint64_t GOLDEN = 0x9E3779B97F4A7C15u;
static uint32_t factors[ROW];

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

typedef struct {
    uint64_t low, high; /* sums of the words' halves, each times its factor */
} sums_t;

static sums_t sum_plainly(const unsigned char *data, size_t words) {
    sums_t found = {0, 0};
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, data + 8 * i, 8);
        found.low += (word & 0xFFFFFFFFu) * factors[i];
        found.high += (word >> 32) * factors[i];
    }
    return found;
}

#ifdef HAS_AVX2
__attribute__((target("avx2"))) static sums_t sum_avx2(const unsigned char *data, size_t words) {
    __m256i low[4], high[4];
    for (int k = 0; k < 4; k++) low[k] = high[k] = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 16 <= words; i += 16)
        for (int k = 0; k < 4; k++) {
            __m256i word = _mm256_loadu_si256((const __m256i *)(data + 8 * (i + 4 * k)));
            __m256i factor = _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(factors + i + 4 * k)));
            low[k] = _mm256_add_epi64(low[k], _mm256_mul_epu32(word, factor));
            high[k] = _mm256_add_epi64(high[k], _mm256_mul_epu32(_mm256_srli_epi64(word, 32), factor));
        }
    uint64_t lows[4], highs[4];
    _mm256_storeu_si256((__m256i *)lows, _mm256_add_epi64(_mm256_add_epi64(low[0], low[1]), _mm256_add_epi64(low[2], low[3])));
    _mm256_storeu_si256((__m256i *)highs, _mm256_add_epi64(_mm256_add_epi64(high[0], high[1]), _mm256_add_epi64(high[2], high[3])));
    sums_t found = {lows[0] + lows[1] + lows[2] + lows[3], highs[0] + highs[1] + highs[2] + highs[3]};
    for (; i < words; i++) {
        uint64_t word;
        memcpy(&word, data + 8 * i, 8);
        found.low += (word & 0xFFFFFFFFu) * factors[i];
        found.high += (word >> 32) * factors[i];
    }
    return found;
}
#endif

static sums_t (*sum)(const unsigned char *, size_t) = sum_plainly;

/* The factors, handed over once. */
void phalanx_begin(const uint32_t *given) {
    memcpy(factors, given, sizeof factors);
#ifdef HAS_AVX2
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) sum = sum_avx2;
#endif
}

/* The fingerprint of `size` bytes, in rows of `row` words; `parts` gets one sum for every `step` rows. Where `copy` is
 * given the bytes are copied there on the way: what has just been read is at hand. */
uint64_t phalanx_words(const unsigned char *data, size_t size, size_t row, size_t step, unsigned char *copy, uint64_t *parts) {
    size_t words = size / 8, rows = words / row, at = 0;
    uint64_t whole = 0, part = 0, tail = 0;
    for (size_t number = 0; number < rows + 2; number++) {
        sums_t found = {0, 0};
        size_t here = number < rows ? row * 8 : number == rows ? (words - rows * row) * 8 : size - words * 8;
        if (number <= rows) {
            found = sum(data + at, here / 8);
        } else {
            memcpy(&tail, data + at, here);
            found.low = tail;
        }
        if (copy) memcpy(copy + at, data + at, here);
        at += here;
        part += mix(mix(found.low + (found.high << 32) + (2 * number + 1) * GOLDEN) + found.high);
        if ((number + 1) % step == 0 || number == rows + 1) {
            if (parts) *parts++ = part;
            whole += part;
            part = 0;
        }
    }
    return mix(whole + size * GOLDEN);
}
