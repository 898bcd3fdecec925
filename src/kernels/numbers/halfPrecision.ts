// float16 and bfloat16: rounding numbers to them, and their bits. Kernels do the same in vector code (../wasm/narrowTypes.ts).

const float = new Float32Array(1)
const bits = new Uint32Array(float.buffer)

function bitsOf(value: number): number {
  float[0] = value
  return bits[0] ?? 0
}

function floatOf(pattern: number): number {
  bits[0] = pattern
  return float[0] ?? 0
}

/** 2^112 turns the exponent of a float16 into that of a float32: their biases are 15 and 127. */
const REBIAS = 2 ** 112
const [LEAST_NORMAL, GREATEST] = [2 ** -14, 65504]

/** The nearest float16, ties to even. As in PyTorch, a number that is not a float32 is rounded to float32 first. */
export function roundToFloat16(value: number): number {
  const x = Math.fround(value)
  const magnitude = Math.abs(x)
  if (!(magnitude < 65536)) return magnitude > GREATEST ? Math.sign(x) * Infinity : x
  // Adding 2^13 times its power of two to a number leaves 11 bits of it.
  const exponent = bitsOf(Math.max(magnitude, LEAST_NORMAL)) & 0x7f800000
  const shifter = floatOf(exponent + (13 << 23))
  const rounded = Math.fround(magnitude + shifter) - shifter
  const bounded = rounded > GREATEST ? Infinity : rounded
  return x < 0 || Object.is(x, -0) ? -bounded : bounded
}

/** The nearest bfloat16, ties to even. As in PyTorch, a number that is not a float32 is rounded to float32 first. */
export function roundToBfloat16(value: number): number {
  if (Number.isNaN(value)) return value
  const pattern = bitsOf(value)
  return floatOf((pattern + 0x7fff + ((pattern >>> 16) & 1)) & 0xffff0000)
}

/** The bits of a number that is a float16. */
export const float16Bits = (value: number): number => ((bitsOf(value) >>> 16) & 0x8000) | ((bitsOf(Math.abs(value) / REBIAS) >>> 13) & 0x7fff)

/** The number that the bits of a float16 stand for. */
export function float16Number(pattern: number): number {
  const magnitude = pattern & 0x7fff
  const value = magnitude < 0x7c00 ? floatOf(magnitude << 13) * REBIAS : magnitude === 0x7c00 ? Infinity : NaN
  return (pattern & 0x8000) === 0 ? value : -value
}

/** The bits of a number that is a bfloat16. */
export const bfloat16Bits = (value: number): number => bitsOf(value) >>> 16

/** The number that the bits of a bfloat16 stand for. */
export const bfloat16Number = (pattern: number): number => floatOf(pattern << 16)
