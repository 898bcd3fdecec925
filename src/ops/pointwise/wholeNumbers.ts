// Greatest common divisors, floats of powers, and the multivariate log-gamma function.
import type { Size } from '../../protocol/index.ts'
import { ArgumentError, DTypeError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { dtypeInfo, promoteTypes } from '../../kernels/index.ts'
import { Tensor, broadcastShapes, exactElements, tensorFromValues, numbersOf } from '../../tensor/index.ts'
import type { ComplexNumber, TensorSpec } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { abs, add, div, mul, pow, sub } from './arithmetic.ts'
import { to } from './cast.ts'
import { eq } from './comparison.ts'
import { where } from './select.ts'
import { lgamma } from './special.ts'
import { expand } from '../view/windows.ts'

function integerSpec(op: string, a: Tensor, b: Tensor): TensorSpec<Size> {
  const dtype = promoteTypes(a.dtype, b.dtype)
  if (dtypeInfo[dtype].kind !== 'integer') throw new DTypeError(`${op}: expected integers, got ${a.dtype} and ${b.dtype}. Convert first: x.long().`)
  return { shape: broadcastShapes(op, a.symSizes, b.symSizes), dtype }
}

/**
 * The greatest common divisor, elementwise; 0 for two zeros. PyTorch's `torch.gcd`.
 *
 * Shapes: `self` and `other` broadcast. Both hold integers.
 *
 * @throws DTypeError unless both hold integers.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.gcd(torch.tensor([12, 0]).long(), torch.tensor([18, 5]).long()).toArray() // [6, 5]
 */
export const gcd: Op['gcd'] = defineOp({
  schema: 'gcd(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'function',
  vmap: 'elementwise',
  onnx: { none: 'ONNX has no such function' },
  autocast: 'as is',
  meta: (a, b) => integerSpec('torch.gcd', a, b),
  kernel: (a, b) => {
    const { shape, dtype } = numbersOf(integerSpec('torch.gcd', a, b))
    const [left, right] = [exactElements(expand(a, shape)), exactElements(expand(b, shape))]
    const values = Array.from(left, (value, i) => {
      let [x, y] = [BigInt(value), BigInt(right[i] ?? 0)]
      while (y !== 0n) [x, y] = [y, x % y]
      return x < 0n ? -x : x
    })
    return tensorFromValues(dtype === 'int64' ? values : values.map(Number), shape, dtype)
  },
})

/**
 * The least common multiple, elementwise. PyTorch's `torch.lcm`.
 *
 * Shapes: `self` and `other` broadcast. Both hold integers.
 *
 * @throws DTypeError unless both hold integers.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.lcm(torch.tensor([4, 0]).long(), torch.tensor([6, 5]).long()).toArray() // [12, 0]
 */
export const lcm: Op['lcm'] = defineOp({
  schema: 'lcm(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'function',
  decompose: (a, b) => {
    const divisor = gcd(a, b)
    return abs(mul(div(a, where(eq(divisor, 0), 1, divisor), { roundingMode: 'trunc' }), b))
  },
})

/**
 * Powers in float64. PyTorch's `torch.float_power`.
 *
 * Shapes: `self` and `exponent` broadcast; the result is float64.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @throws ArgumentError if neither is a Tensor.
 * @example torch.floatPower(torch.tensor([2, 3]), 2).dtype // 'float64'
 */
export const floatPower: OpFunction<(self: Tensor | number, exponent: Tensor | number | ComplexNumber) => Tensor> = defineOp({
  schema: 'float_power(any self, any exponent) -> Tensor',
  method: true,
  decompose: (self, exponent) => {
    if (!(self instanceof Tensor) && !(exponent instanceof Tensor))
      throw new ArgumentError(`torch.float_power: one of the arguments must be a Tensor, got ${valueText(self)} and ${valueText(exponent)}.`)
    return pow(wide(self, 'self'), wide(exponent, 'exponent'))
  },
})

function wide(value: unknown, name: string): Tensor | number {
  if (typeof value === 'number') return value
  if (value instanceof Tensor) return to(value, 'float64')
  throw new ArgumentError(`torch.float_power: argument '${name}' must be a Tensor or a number, got ${valueText(value)}.`)
}

/**
 * The multivariate log-gamma function of dimension `p`, elementwise. PyTorch's `torch.mvlgamma`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError unless `p` is positive and at most 1000.
 * @example torch.mvlgamma(torch.tensor([2, 3]), 2).toArray() // [0.451583, 1.550195]
 */
export const mvlgamma: Op['mvlgamma'] = defineOp({
  schema: 'mvlgamma(Tensor self, int p) -> Tensor',
  method: true,
  inPlace: 'method',
  decompose: (self, p) => {
    // Each dimension is two steps of the graph.
    if (p < 1 || p > 1000) throw new ArgumentError(`torch.mvlgamma: p must be positive and at most 1000, got ${p}.`)
    let out = lgamma(self)
    for (let j = 1; j < p; j++) out = add(out, lgamma(sub(self, j / 2)))
    return add(out, ((p * (p - 1)) / 4) * Math.log(Math.PI))
  },
})
