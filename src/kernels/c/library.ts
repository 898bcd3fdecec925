// The C functions that kernels call: the instructions of LaneCode and what takes more than one, for scalars and for vectors of each width. In the templates below, `@` is the width. Vectors are
// those of GCC and Clang, which split them where the processor has shorter ones; what these have no operator for is written with the processor's own instructions, or element by element.
import { WIDTHS } from './cCode.ts'
import type { Width } from './cCode.ts'

const HEAD = `
#include <stdint.h>
#include <string.h>
#include <math.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
/* A variable that many loops add to: GCC keeps it in one register once it does not know that all of them begin with the same number. */
#define OPAQUE_1(x)
#define OPAQUE_2(x)
#if defined(__AVX512F__)
#define OPAQUE_16(x) __asm__("" : "+v"(x))
#else
#define OPAQUE_16(x)
#endif
#if defined(__AVX__)
#define OPAQUE_8(x) __asm__("" : "+x"(x))
#else
#define OPAQUE_8(x)
#endif
#if defined(__SSE4_1__)
#define OPAQUE_4(x) __asm__("" : "+x"(x))
#elif defined(__aarch64__)
#define OPAQUE_4(x) __asm__("" : "+w"(x))
#else
#define OPAQUE_4(x)
#endif
#define INL static inline __attribute__((always_inline))
#define AT(t, p) (*(t *)(p))
#define UNALIGNED __attribute__((aligned(1), may_alias))
typedef int32_t i1; typedef int64_t l1; typedef double d1; typedef float f1;
typedef int32_t i1u UNALIGNED; typedef int64_t l1u UNALIGNED; typedef double d1u UNALIGNED;
typedef uint8_t b1u UNALIGNED; typedef int8_t c1u UNALIGNED; typedef int16_t s1u UNALIGNED; typedef uint16_t h1u UNALIGNED;
INL f1 F1(i1 a) { f1 r; memcpy(&r, &a, 4); return r; }
INL i1 I1(f1 a) { i1 r; memcpy(&r, &a, 4); return r; }
INL d1 D1(l1 a) { d1 r; memcpy(&r, &a, 8); return r; }
INL l1 L1(d1 a) { l1 r; memcpy(&r, &a, 8); return r; }
#define M_1(x) (-(i1)(x))
#define M64_1(x) (-(i1)(x))
#define CV_1(x, t) ((t)(x))
INL i1 select_i_1(i1 m, i1 a, i1 b) { return m ? a : b; }
INL l1 select_l_1(i1 m, l1 a, l1 b) { return m ? a : b; }
INL d1 select_d_1(i1 m, d1 a, d1 b) { return m ? a : b; }
INL i1 f32x4_sqrt_1(i1 a) { return I1(__builtin_sqrtf(F1(a))); }
INL i1 f32x4_floor_1(i1 a) { return I1(__builtin_floorf(F1(a))); }
INL i1 f32x4_ceil_1(i1 a) { return I1(__builtin_ceilf(F1(a))); }
INL i1 f32x4_trunc_1(i1 a) { return I1(__builtin_truncf(F1(a))); }
INL i1 f32x4_nearest_1(i1 a) { return I1(__builtin_rintf(F1(a))); }
INL d1 f64x2_sqrt_1(d1 a) { return __builtin_sqrt(a); }
INL d1 f64x2_floor_1(d1 a) { return __builtin_floor(a); }
INL d1 f64x2_ceil_1(d1 a) { return __builtin_ceil(a); }
INL d1 f64x2_trunc_1(d1 a) { return __builtin_trunc(a); }
INL d1 f64x2_nearest_1(d1 a) { return __builtin_rint(a); }
#if defined(TFX_FUSED) && (defined(__FMA__) || defined(__aarch64__))
#define TFX_FMA 1
INL i1 mulAdd_1(i1 a, i1 b, i1 c) { return I1(__builtin_fmaf(F1(a), F1(b), F1(c))); }
INL i1 subMul_1(i1 a, i1 b, i1 c) { return I1(__builtin_fmaf(-F1(a), F1(b), F1(c))); }
#else
INL i1 mulAdd_1(i1 a, i1 b, i1 c) { return I1(F1(a) * F1(b) + F1(c)); }
INL i1 subMul_1(i1 a, i1 b, i1 c) { return I1(F1(c) - F1(a) * F1(b)); }
#endif
INL i1 saturated(d1 q) { return q != q ? 0 : q >= 2147483647.0 ? INT32_MAX : q <= -2147483648.0 ? INT32_MIN : (i1)q; }
INL i1 div_1(i1 a, i1 b) { return saturated(__builtin_trunc((d1)a / (d1)b)); }
INL i1 floorDiv_1(i1 a, i1 b) { return saturated(__builtin_floor((d1)a / (d1)b)); }
INL i1 remainder_1(i1 a, i1 b) { return b == -1 ? 0 : a - floorDiv_1(a, b) * b; }
INL i1 mulHigh_1(i1 a, i1 b) { return (i1)(((uint64_t)(uint32_t)a * (uint32_t)b) >> 32); }
INL i1 shl_1(i1 a, i1 n) { return (i1)((uint32_t)a << (n & 31)); }
INL i1 shrS_1(i1 a, i1 n) { return a >> (n & 31); }
INL i1 shrU_1(i1 a, i1 n) { return (i1)((uint32_t)a >> (n & 31)); }
INL i1 power_1(i1 a, i1 b) {
  if (b < 0) return a == 1 || a == -1 ? ((b & 1) ? a : 1) : 0;
  uint32_t base = (uint32_t)a, result = 1, e = (uint32_t)b;
  for (; e != 0; e >>= 1) { if (e & 1) result *= base; base *= base; }
  return (i1)result;
}
INL l1 l_power_1(l1 a, l1 b) {
  if (b < 0) return a == 1 || a == -1 ? ((b & 1) ? a : 1) : 0;
  uint64_t base = (uint64_t)a, result = 1, e = (uint64_t)b;
  for (; e != 0; e >>= 1) { if (e & 1) result *= base; base *= base; }
  return (l1)result;
}
INL l1 l_div_1(l1 a, l1 b) {
  if (b == 0) return a == 0 ? 0 : a < 0 ? INT64_MIN : INT64_MAX;
  if (b == -1) return a == INT64_MIN ? INT64_MAX : -a;
  return a / b;
}
INL l1 l_floorDiv_1(l1 a, l1 b) {
  l1 q = l_div_1(a, b), rest = a - q * b;
  return b != 0 && rest != 0 && (rest ^ b) < 0 ? q - 1 : q;
}
INL l1 l_remainder_1(l1 a, l1 b) {
  if (b == 0) return a;
  l1 rest = b == -1 ? 0 : a % b;
  return rest != 0 && (rest ^ b) < 0 ? rest + b : rest;
}
INL l1 l_shl_1(l1 a, l1 n) { return (l1)((uint64_t)a << (n & 63)); }
INL l1 l_shrS_1(l1 a, l1 n) { return a >> (n & 63); }
INL l1 l_shrU_1(l1 a, l1 n) { return (l1)((uint64_t)a >> (n & 63)); }
INL d1 floorQuotient(d1 x, d1 y) {
  if (__builtin_fabs(y) == INFINITY && __builtin_fabs(x) < INFINITY) return ((x < 0) != (y < 0)) && x != 0 ? -1 : 0;
  return __builtin_floor(x / y);
}
INL i1 fFloorDiv_1(i1 a, i1 b) {
  d1 x = F1(a), y = F1(b);
  return I1((f1)(__builtin_fabs(x) == INFINITY && y != 0 ? NAN : floorQuotient(x, y)));
}
INL i1 fRemainder_1(i1 a, i1 b) {
  d1 x = F1(a), y = F1(b), q = floorQuotient(x, y);
  return I1((f1)(q == 0 ? x : __builtin_fabs(y) == INFINITY && q == -1 ? y : x - q * y));
}
/* |x|^y as exp(y * log |x|). */
INL i1 powMagnitude_1(i1 a, i1 b) {
  d1 magnitude = __builtin_fabs((d1)F1(a)), y = F1(b);
  l1 k64 = (L1(magnitude) - L1(M_SQRT1_2)) >> 52;
  d1 m = D1(L1(magnitude) - (l1)((uint64_t)k64 << 52)), s = (m - 1) / (m + 1), z = s * s;
  d1 series = 2.0 / 15;
  series = series * z + 2.0 / 13; series = series * z + 2.0 / 11; series = series * z + 2.0 / 9; series = series * z + 2.0 / 7;
  series = series * z + 2.0 / 5; series = series * z + 2.0 / 3; series = series * z + 2.0;
  d1 full = s * series + (d1)(i1)k64 * M_LN2;
  if (magnitude == 0) full = -INFINITY;
  if (!(magnitude < INFINITY)) full = magnitude;
  d1 t = full * y;
  if (t != t) return I1((f1)t);
  t = t < -160 ? -160 : t > 100 ? 100 : t;
  d1 n = __builtin_rint(t * M_LOG2E), r = t - n * M_LN2, p = 1.0 / 362880;
  p = p * r + 1.0 / 40320; p = p * r + 1.0 / 5040; p = p * r + 1.0 / 720; p = p * r + 1.0 / 120; p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6; p = p * r + 1.0 / 2; p = p * r + 1; p = p * r + 1;
  return I1((f1)(p * D1((l1)((i1)n + 1023) << 52)));
}
INL i1 hypot_1(i1 a, i1 b) {
  d1 x = F1(a), y = F1(b);
  return __builtin_fabs(x) == INFINITY || __builtin_fabs(y) == INFINITY ? I1(INFINITY) : I1((f1)__builtin_sqrt(x * x + y * y));
}
/* Angles that are too long for float32: the quarter turns and the rest; and the sines of those beyond 1e5. */
INL d1 quarters(d1 x) { return __builtin_rint(x * (1 / M_PI_2)); }
INL i1 longTurns_1(i1 a) { return saturated(quarters(F1(a))); }
INL i1 longRest_1(i1 a) { d1 x = F1(a), n = quarters(x); return I1((f1)(x - n * M_PI_2 - n * 6.123233995736766e-17)); }
INL i1 farSine_1(i1 a, i1 near) { return __builtin_fabsf(F1(a)) > 1e5f ? I1((f1)sin((d1)F1(a))) : near; }
INL i1 farCosine_1(i1 a, i1 near) { return __builtin_fabsf(F1(a)) > 1e5f ? I1((f1)cos((d1)F1(a))) : near; }
`

/** What vectors have and scalars do not need. */
const VECTOR = `
typedef i1 i@ __attribute__((vector_size(4 * @))); typedef f1 f@ __attribute__((vector_size(4 * @)));
typedef l1 l@ __attribute__((vector_size(8 * @))); typedef d1 d@ __attribute__((vector_size(8 * @)));
typedef uint8_t b@ __attribute__((vector_size(@))); typedef int8_t c@ __attribute__((vector_size(@)));
typedef int16_t s@ __attribute__((vector_size(2 * @))); typedef uint16_t h@ __attribute__((vector_size(2 * @)));
typedef uint32_t u@ __attribute__((vector_size(4 * @)));
typedef i@ i@u UNALIGNED; typedef l@ l@u UNALIGNED; typedef d@ d@u UNALIGNED;
typedef b@ b@u UNALIGNED; typedef c@ c@u UNALIGNED; typedef s@ s@u UNALIGNED; typedef h@ h@u UNALIGNED;
INL f@ F@(i@ a) { return (f@)a; }
INL i@ I@(f@ a) { return (i@)a; }
INL d@ D@(l@ a) { return (d@)a; }
INL l@ L@(d@ a) { return (l@)a; }
#define M_@(x) ((i@)(x))
#define M64_@(x) __builtin_convertvector((l@)(x), i@)
#define CV_@(x, t) __builtin_convertvector(x, t)
INL i@ splat_i@(i1 a) { return a - (i@){0}; }
INL l@ splat_l@(l1 a) { return a - (l@){0}; }
INL d@ splat_d@(d1 a) { return a - (d@){0}; }
INL i@ select_i_@(i@ m, i@ a, i@ b) { return (m & a) | (~m & b); }
INL l@ select_l_@(i@ m, l@ a, l@ b) { l@ w = __builtin_convertvector(m, l@); return (w & a) | (~w & b); }
INL d@ select_d_@(i@ m, d@ a, d@ b) { return D@(select_l_@(m, L@(a), L@(b))); }
`

/** What scalars and vectors have. */
const COMMON = `
INL i@ f32x4_abs_@(i@ a) { return a & INT32_MAX; }
INL i@ f32x4_neg_@(i@ a) { return a ^ INT32_MIN; }
INL i@ f32x4_convert_i32x4_s_@(i@ a) { return I@(CV_@(a, f@)); }
INL i@ i32x4_abs_@(i@ a) { i@ s = a >> 31; return (a ^ s) - s; }
INL i@ i32x4_neg_@(i@ a) { return -a; }
INL i@ v128_not_@(i@ a) { return ~a; }
INL i@ f32x4_add_@(i@ a, i@ b) { return I@(F@(a) + F@(b)); }
INL i@ f32x4_sub_@(i@ a, i@ b) { return I@(F@(a) - F@(b)); }
INL i@ f32x4_mul_@(i@ a, i@ b) { return I@(F@(a) * F@(b)); }
INL i@ f32x4_div_@(i@ a, i@ b) { return I@(F@(a) / F@(b)); }
INL i@ f32x4_eq_@(i@ a, i@ b) { return M_@(F@(a) == F@(b)); }
INL i@ f32x4_ne_@(i@ a, i@ b) { return M_@(F@(a) != F@(b)); }
INL i@ f32x4_lt_@(i@ a, i@ b) { return M_@(F@(a) < F@(b)); }
INL i@ f32x4_le_@(i@ a, i@ b) { return M_@(F@(a) <= F@(b)); }
INL i@ f32x4_gt_@(i@ a, i@ b) { return M_@(F@(a) > F@(b)); }
INL i@ f32x4_ge_@(i@ a, i@ b) { return M_@(F@(a) >= F@(b)); }
INL i@ f32x4_pmin_@(i@ a, i@ b) { return select_i_@(f32x4_lt_@(b, a), b, a); }
INL i@ f32x4_pmax_@(i@ a, i@ b) { return select_i_@(f32x4_lt_@(a, b), b, a); }
INL i@ f32x4_min_@(i@ a, i@ b) {
  i@ rest = select_i_@(f32x4_eq_@(a, b), a | b, f32x4_add_@(a, b));
  return select_i_@(f32x4_lt_@(a, b), a, select_i_@(f32x4_lt_@(b, a), b, rest));
}
INL i@ f32x4_max_@(i@ a, i@ b) {
  i@ rest = select_i_@(f32x4_eq_@(a, b), a & b, f32x4_add_@(a, b));
  return select_i_@(f32x4_lt_@(a, b), b, select_i_@(f32x4_lt_@(b, a), a, rest));
}
INL i@ i32x4_trunc_sat_f32x4_s_@(i@ a) {
  i@ low = f32x4_lt_@(a, splat_i@(I1(2147483648.0f)));
  i@ bounded = f32x4_pmax_@(a & low, splat_i@(I1(-2147483648.0f)));
  return select_i_@(f32x4_ge_@(a, splat_i@(I1(2147483648.0f))), splat_i@(INT32_MAX), CV_@(F@(bounded), i@));
}
INL i@ i32x4_add_@(i@ a, i@ b) { return a + b; }
INL i@ i32x4_sub_@(i@ a, i@ b) { return a - b; }
INL i@ i32x4_mul_@(i@ a, i@ b) { return a * b; }
INL i@ i32x4_eq_@(i@ a, i@ b) { return M_@(a == b); }
INL i@ i32x4_ne_@(i@ a, i@ b) { return M_@(a != b); }
INL i@ i32x4_lt_s_@(i@ a, i@ b) { return M_@(a < b); }
INL i@ i32x4_le_s_@(i@ a, i@ b) { return M_@(a <= b); }
INL i@ i32x4_gt_s_@(i@ a, i@ b) { return M_@(a > b); }
INL i@ i32x4_ge_s_@(i@ a, i@ b) { return M_@(a >= b); }
INL i@ i32x4_min_s_@(i@ a, i@ b) { return select_i_@(i32x4_lt_s_@(a, b), a, b); }
INL i@ i32x4_max_s_@(i@ a, i@ b) { return select_i_@(i32x4_lt_s_@(a, b), b, a); }
INL i@ i32x4_shl_@(i@ a, i@ n) { return (i@)((u@)a << (u@)n); }
INL i@ i32x4_shr_s_@(i@ a, i@ n) { return a >> n; }
INL i@ i32x4_shr_u_@(i@ a, i@ n) { return (i@)((u@)a >> (u@)n); }
INL i@ v128_and_@(i@ a, i@ b) { return a & b; }
INL i@ v128_or_@(i@ a, i@ b) { return a | b; }
INL i@ v128_xor_@(i@ a, i@ b) { return a ^ b; }
INL i@ v128_andnot_@(i@ a, i@ b) { return a & ~b; }
INL l@ v128_and_l_@(l@ a, l@ b) { return a & b; }
INL l@ v128_or_l_@(l@ a, l@ b) { return a | b; }
INL l@ v128_xor_l_@(l@ a, l@ b) { return a ^ b; }
INL l@ i64x2_add_@(l@ a, l@ b) { return a + b; }
INL l@ i64x2_sub_@(l@ a, l@ b) { return a - b; }
INL l@ i64x2_mul_@(l@ a, l@ b) { return a * b; }
INL l@ i64x2_neg_@(l@ a) { return -a; }
INL l@ i64x2_abs_@(l@ a) { l@ s = a >> 63; return (a ^ s) - s; }
INL i@ i64x2_eq_@(l@ a, l@ b) { return M64_@(a == b); }
INL i@ i64x2_ne_@(l@ a, l@ b) { return M64_@(a != b); }
INL i@ i64x2_lt_s_@(l@ a, l@ b) { return M64_@(a < b); }
INL i@ i64x2_le_s_@(l@ a, l@ b) { return M64_@(a <= b); }
INL i@ i64x2_gt_s_@(l@ a, l@ b) { return M64_@(a > b); }
INL i@ i64x2_ge_s_@(l@ a, l@ b) { return M64_@(a >= b); }
INL d@ f64x2_add_@(d@ a, d@ b) { return a + b; }
INL d@ f64x2_sub_@(d@ a, d@ b) { return a - b; }
INL d@ f64x2_mul_@(d@ a, d@ b) { return a * b; }
INL d@ f64x2_div_@(d@ a, d@ b) { return a / b; }
INL d@ f64x2_neg_@(d@ a) { return D@(L@(a) ^ INT64_MIN); }
INL d@ f64x2_abs_@(d@ a) { return D@(L@(a) & INT64_MAX); }
INL i@ f64x2_eq_@(d@ a, d@ b) { return M64_@(a == b); }
INL i@ f64x2_ne_@(d@ a, d@ b) { return M64_@(a != b); }
INL i@ f64x2_lt_@(d@ a, d@ b) { return M64_@(a < b); }
INL i@ f64x2_le_@(d@ a, d@ b) { return M64_@(a <= b); }
INL i@ f64x2_gt_@(d@ a, d@ b) { return M64_@(a > b); }
INL i@ f64x2_ge_@(d@ a, d@ b) { return M64_@(a >= b); }
INL d@ f64x2_min_@(d@ a, d@ b) {
  d@ rest = select_d_@(f64x2_eq_@(a, b), D@(L@(a) | L@(b)), a + b);
  return select_d_@(f64x2_lt_@(a, b), a, select_d_@(f64x2_lt_@(b, a), b, rest));
}
INL d@ f64x2_max_@(d@ a, d@ b) {
  d@ rest = select_d_@(f64x2_eq_@(a, b), D@(L@(a) & L@(b)), a + b);
  return select_d_@(f64x2_lt_@(a, b), b, select_d_@(f64x2_lt_@(b, a), a, rest));
}
INL d@ f64OfF32_@(i@ a) { return CV_@(F@(a), d@); }
INL i@ f32OfF64_@(d@ a) { return I@(CV_@(a, f@)); }
INL d@ f64OfI32_@(i@ a) { return CV_@(a, d@); }
INL l@ i64OfI32_@(i@ a) { return CV_@(a, l@); }
INL i@ i32OfI64_@(l@ a) { return CV_@(a, i@); }
INL d@ f64OfI64_@(l@ a) { return CV_@(a, d@); }
INL i@ f32OfI64_@(l@ a) { return I@(CV_@(a, f@)); }
`

/** What scalars name as vectors do. */
const SCALAR = `
typedef uint32_t u1;
INL i1 splat_i1(i1 a) { return a; }
`

const SATURATING = `
INL i1 i32OfF64_1(d1 a) { return saturated(a); }
INL l1 i64OfF64_1(d1 a) { return a != a ? 0 : a >= 9223372036854775808.0 ? INT64_MAX : a < -9223372036854775808.0 ? INT64_MIN : (l1)a; }
`

/** What vectors compute element by element: the kinds of the operands, then that of the result. */
const ELEMENTWISE: Readonly<Record<string, string>> = {
  ...{ div: 'iii', floorDiv: 'iii', remainder: 'iii', mulHigh: 'iii', shl: 'iii', shrS: 'iii', shrU: 'iii', power: 'iii' },
  ...{ l_power: 'lll', l_div: 'lll', l_floorDiv: 'lll', l_remainder: 'lll', l_shl: 'lll', l_shrS: 'lll', l_shrU: 'lll' },
  ...{ fFloorDiv: 'iii', fRemainder: 'iii', powMagnitude: 'iii', hypot: 'iii', farSine: 'iii', farCosine: 'iii' },
  ...{ longTurns: 'ii', longRest: 'ii', i32OfF64: 'di', i64OfF64: 'dl' },
}

const elementwise = (name: string, kinds: string, width: Width): string => {
  const operands = [...kinds.slice(0, -1)].map((kind, i) => `${kind}${width} ${'ab'[i] ?? 'c'}`)
  const elements = [...kinds.slice(0, -1)].map((_, i) => `${'ab'[i] ?? 'c'}[q]`)
  const result = `${kinds.at(-1) ?? 'i'}${width}`
  return `INL ${result} ${name}_${width}(${operands.join(', ')}) { ${result} r; for (int q = 0; q < ${width}; q++) r[q] = ${name}_1(${elements.join(', ')}); return r; }\n`
}

const ROUNDINGS = ['floor', 'ceil', 'trunc', 'nearest'] as const
/** The number of each rounding in x86's instructions: 8 suppresses exceptions. */
const X86 = { floor: 9, ceil: 10, trunc: 11, nearest: 8 } as const
const ARM = { floor: 'm', ceil: 'p', trunc: '', nearest: 'n' } as const

/** Roots, roundings and fused multiply-adds of vectors: by the processor's instructions where it has them for this width. */
function processorFunctions(width: Width): string {
  const elements = (name: string, type: string, bits: boolean): string =>
    bits
      ? `INL i${width} ${name}_${width}(i${width} a) { i${width} r; for (int q = 0; q < ${width}; q++) r[q] = ${name}_1(a[q]); return r; }`
      : `INL ${type}${width} ${name}_${width}(${type}${width} a) { ${type}${width} r; for (int q = 0; q < ${width}; q++) r[q] = ${name}_1(a[q]); return r; }`
  const plain = ['sqrt', ...ROUNDINGS].map((name) => elements(`f32x4_${name}`, 'i', true))
  const doubles = ['sqrt', ...ROUNDINGS].map((name) => elements(`f64x2_${name}`, 'd', false))
  const one = (name: string, call: string, type: string): string =>
    `INL i${width} ${name}_${width}(i${width} a) { return (i${width})${call.replace('$', `(${type})a`)}; }`
  const fused = (call: (a: string, b: string, c: string) => string, type: string): string[] => [
    `INL i${width} mulAdd_${width}(i${width} a, i${width} b, i${width} c) { return (i${width})${call(`(${type})a`, `(${type})b`, `(${type})c`)}; }`,
    `INL i${width} subMul_${width}(i${width} a, i${width} b, i${width} c) { return (i${width})${call(`(${type})(a ^ INT32_MIN)`, `(${type})b`, `(${type})c`)}; }`,
  ]
  const guarded = (condition: string, own: readonly string[], others: readonly string[]): string =>
    own.length === 0 ? others.join('\n') : [`#if ${condition}`, ...own, '#else', ...others, '#endif'].join('\n')
  const prefix = width === 16 ? '_mm512' : width === 8 ? '_mm256' : '_mm'
  const type = width === 16 ? '__m512' : width === 8 ? '__m256' : '__m128'
  const has = width === 16 ? 'defined(__AVX512F__)' : width === 8 ? 'defined(__AVX__)' : 'defined(__SSE4_1__)'
  const round = width === 16 ? 'roundscale' : 'round'
  const x86 =
    width === 2
      ? []
      : [
          one('f32x4_sqrt', `${prefix}_sqrt_ps($)`, type),
          ...ROUNDINGS.map((name) => one(`f32x4_${name}`, `${prefix}_${round}_ps($, ${X86[name]})`, type)),
        ]
  const arm = [
    one('f32x4_sqrt', 'vsqrtq_f32($)', 'float32x4_t'),
    ...ROUNDINGS.map((name) => one(`f32x4_${name}`, `vrnd${ARM[name]}q_f32($)`, 'float32x4_t')),
  ]
  const rounded = guarded(has, x86, width === 4 ? [guarded('defined(__aarch64__)', arm, plain)] : plain)
  const loop = (name: string): string =>
    `INL i${width} ${name}_${width}(i${width} a, i${width} b, i${width} c) { i${width} r; for (int q = 0; q < ${width}; q++) r[q] = ${name}_1(a[q], b[q], c[q]); return r; }`
  const loops = [loop('mulAdd'), loop('subMul')]
  const ownFused = width === 2 ? [] : fused((a, b, c) => `${prefix}_fmadd_ps(${a}, ${b}, ${c})`, type)
  const armFused = width === 4 ? fused((a, b, c) => `vfmaq_f32(${c}, ${a}, ${b})`, 'float32x4_t') : []
  const hasFused = width === 16 ? 'defined(__AVX512F__)' : 'defined(__FMA__)'
  const whole = (name: string, text: string): string => `INL i${width} ${name}_${width}(i${width} a, i${width} b, i${width} c) { return ${text}; }`
  const twice = [
    whole('mulAdd', `f32x4_add_${width}(f32x4_mul_${width}(a, b), c)`),
    whole('subMul', `f32x4_sub_${width}(c, f32x4_mul_${width}(a, b))`),
  ]
  const masked = guarded(
    width === 16 ? 'defined(__AVX512F__)' : 'defined(__AVX2__)',
    width === 2
      ? []
      : [
          width === 16
            ? 'INL i16 masked_16(const char *p, i16 m) { return (i16)_mm512_maskz_loadu_epi32(_mm512_test_epi32_mask((__m512i)m, (__m512i)m), p); }'
            : `INL i${width} masked_${width}(const char *p, i${width} m) { return (i${width})${prefix}_maskload_epi32((const int *)p, (${type}i)m); }`,
        ],
    [
      `INL i${width} masked_${width}(const char *p, i${width} m) { i${width} r; for (int q = 0; q < ${width}; q++) r[q] = m[q] ? AT(i1u, p + 4 * q) : 0; return r; }`,
    ],
  )
  const once = guarded(hasFused, ownFused, [guarded('defined(__aarch64__)', armFused, loops)])
  return `${rounded}\n${masked}\n${doubles.join('\n')}\n#ifdef TFX_FMA\n${once}\n#else\n${twice.join('\n')}\n#endif\n`
}

function ofWidth(width: Width): string {
  const fill = (template: string): string => template.replaceAll('@', String(width))
  if (width === 1) return SCALAR + fill(COMMON) + SATURATING
  const loops = Object.entries(ELEMENTWISE).map(([name, kinds]) => elementwise(name, kinds, width))
  return fill(VECTOR) + fill(COMMON) + processorFunctions(width) + loops.join('')
}

/** The library. `fuses`: whether a multiplication and an addition are rounded once. */
export const libraryFor = (fuses: boolean): string => [fuses ? '#define TFX_FUSED 1' : '', HEAD, ...WIDTHS.toReversed().map(ofWidth)].join('\n')
