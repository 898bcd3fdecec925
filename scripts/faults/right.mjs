// Backends that are right, and round otherwise than eager kernels: sums and products in another order, more precision within, functions that are one or two units in the last place off.
import { operatorOf } from './faulty.mjs'

const isFloat = (value, Tensor) => value instanceof Tensor && value.dtype.startsWith('float')
const DIGITS = { float64: 2 ** -52, float32: 2 ** -23, float16: 2 ** -10 }

/** Functions that libraries compute with errors of a unit or two in the last place. */
const INEXACT =
  /^torch\.(?:nn\.functional\.)?(?:ops\.tensorfx\.)?(?:sin|cos|exp|log|log1p|tanh|sigmoid|atan|rsqrt|pow|gelu|gelu_backward|silu|softplus|softmax|log_softmax|logsumexp|erf|expm1|sinh|cosh|tan)$/
/** Operators that round, which are as right if they compute in float64 and round once. */
const ROUNDED =
  /^torch\.(?:nn\.functional\.)?(?:ops\.tensorfx\.)?(?:add|sub|mul|div|sum|mean|mm|bmm|linear|convolution|convolution_backward|exp|sin|cos|tanh|sigmoid|softmax|log_softmax|gelu|silu|sqrt|rsqrt|addcmul|addcdiv|lerp|cumsum|prod|native_layer_norm|native_batch_norm|native_layer_norm_backward|native_batch_norm_backward|square)$/

/** How quotients are rounded, by the mode of a division and by operator. */
const ROUNDINGS = { trunc: 'trunc', floor: 'floor' }
const ROUNDED_QUOTIENTS = { 'torch.fmod': 'trunc', 'torch.remainder': 'floor', 'torch.floor_divide': 'floor' }

const dimsOf = (x, dims) => (dims === undefined || dims === null ? x.shape.map((_, i) => i) : [dims].flat())

/**
 * What computes a node, by name: a function of the operator's name, its arguments and the eager result (a function), or null for what it leaves alone. All of them
 * compute the same with exact numbers.
 */
const VARIANTS = {
  /** Sums and products from the end to the beginning. */
  reversed:
    ({ torch }) =>
    (name, args, kwargs, target) => {
      const [a, b] = args
      if (name === 'torch.sum' || name === 'torch.mean') return target(torch.flip(a, dimsOf(a, b)), ...args.slice(1), kwargs)
      if (name === 'torch.mm') return target(torch.flip(a, [1]), torch.flip(b, [0]))
      if (name === 'torch.bmm') return target(torch.flip(a, [2]), torch.flip(b, [1]))
      if (name === 'torch.nn.functional.linear') return target(torch.flip(a, [-1]), torch.flip(b, [-1]), ...args.slice(2))
      if (name === 'torch.ops.tensorfx.convolution' && args[6] === 1) return target(torch.flip(a, [1]), torch.flip(b, [1]), ...args.slice(2))
      return null
    },

  /** Sums and products of halves. Half precision keeps the parts in float32. */
  blocked:
    ({ Tensor }) =>
    (name, args, kwargs, target) => {
      const [a, b] = args
      const halves = (x, dim) => {
        const wide = x.dtype === 'float16' ? x.to('float32') : x
        const at = wide.shape[dim] >> 1
        return [wide.narrow(dim, 0, at), wide.narrow(dim, at, wide.shape[dim] - at)]
      }
      if (name === 'torch.sum' && a.ndim > 0 && isFloat(a, Tensor)) {
        const [dim] = dimsOf(a, b)
        const at = (dim + a.ndim) % a.ndim
        if (a.shape[at] < 2) return null
        const [left, right] = halves(a, at).map((half) => target(half, ...args.slice(1), kwargs))
        return left.add(right).to(a.dtype)
      }
      if ((name === 'torch.mm' || name === 'torch.bmm') && a.shape.at(-1) > 1) {
        const [left, right] = [halves(a, a.ndim - 1), halves(b, b.ndim - 2)]
        return target(left[0], right[0]).add(target(left[1], right[1])).to(a.dtype)
      }
      return null
    },

  /** float64 within each operator, rounded once. */
  wider:
    ({ Tensor }) =>
    (name, args, kwargs, target) => {
      if (!ROUNDED.test(name)) return null
      const dtypes = new Set(args.filter((arg) => isFloat(arg, Tensor)).map((arg) => arg.dtype))
      if (dtypes.size !== 1) return null
      const [dtype] = dtypes
      const wide = args.map((arg) => (isFloat(arg, Tensor) ? arg.to('float64') : arg))
      const result = target(...wide, kwargs)
      const narrow = (value) => (isFloat(value, Tensor) ? value.to(dtype) : value)
      return Array.isArray(result) ? result.map(narrow) : narrow(result)
    },

  /** Functions that are up to two units in the last place off, up and down by place. */
  nudged:
    ({ torch, Tensor }) =>
    (name, args, kwargs, target) => {
      if (!INEXACT.test(name)) return null
      const value = target(...args, kwargs)
      if (!isFloat(value, Tensor) || value.numel === 0) return null
      const most = value.dtype === 'float16' ? 1 : 2
      const factors = Array.from({ length: value.numel }, (_, i) => 1 + (((i * 7) % (2 * most + 1)) - most) * (DIGITS[value.dtype] / 2))
      return value.mul(torch.tensor(factors, { dtype: 'float64' }).reshape(value.shape).to('float64')).to(value.dtype)
    },

  /** Products with the reciprocal, also where the quotient is rounded: at a whole number it may come to the next one. */
  reciprocal: ({ torch, Tensor }) => {
    const quotient = (a, b) => {
      if (!isFloat(a, Tensor) || a.dtype === 'float16') return null
      if (isFloat(b, Tensor)) return b.dtype === a.dtype ? a.mul(torch.reciprocal(b)) : null
      return typeof b === 'number' && b !== 0 ? a.mul(a.dtype === 'float32' ? Math.fround(1 / b) : 1 / b) : null
    }
    // Of a large quotient nothing is left, and an infinity times zero is no number.
    const isSmall = (q) => q !== null && q.numel > 0 && q.abs().lt(4096).all().item() === true
    return (name, args, kwargs) => {
      const mode = args[2] ?? Object.values(kwargs)[0] ?? null
      const rounding = name === 'torch.div' ? ROUNDINGS[mode] : ROUNDED_QUOTIENTS[name]
      if (name !== 'torch.div' && rounding === undefined) return null
      const [a, b] = args
      const q = quotient(a, b)
      if (rounding === undefined) return q
      if (!isSmall(q) || (b instanceof Tensor && b.isfinite().all().item() !== true)) return null
      const whole = torch[rounding](q)
      return name === 'torch.fmod' || name === 'torch.remainder' ? a.sub(whole.mul(b)) : whole
    }
  },

  /** A sum with a product is rounded once. */
  fused: ({ Tensor }) => {
    const products = new WeakMap()
    return (name, args, kwargs, target) => {
      const [a, b] = args
      if (name === 'torch.mul' && isFloat(a, Tensor) && isFloat(b, Tensor) && a.dtype === b.dtype) {
        const value = target(a, b)
        products.set(value, [a, b])
        return value
      }
      if (name !== 'torch.add' || args.length > 2 || Object.keys(kwargs).length > 0) return null
      const [factors, other] = products.has(a) ? [products.get(a), b] : [products.get(b), a]
      if (factors === undefined || !isFloat(other, Tensor) || other.dtype !== factors[0].dtype) return null
      const [x, y, z] = [...factors, other].map((tensor) => tensor.to('float64'))
      return x.mul(y).add(z).to(other.dtype)
    }
  },
}

export const VARIANT_NAMES = Object.keys(VARIANTS)

/** The backends of the package that are right. */
export const REGISTERED = ['inductor', 'aot_eager', 'eager']

/** A backend that computes node by node in these variants. The first that knows an operator computes it. */
export function rightBackend(api, names) {
  const { Interpreter } = api
  const variants = names.map((name) => VARIANTS[name](api))
  class Right extends Interpreter {
    runNode(node) {
      if (node.op !== 'call_function' || node.target.op === undefined) return super.runNode(node)
      const [args, kwargs] = this.fetchArgsKwargs(node)
      const target = (...given) => {
        const last = given.at(-1)
        return node.target(...(last === kwargs && Object.keys(kwargs).length === 0 ? given.slice(0, -1) : given))
      }
      for (const variant of variants) {
        const value = variant(operatorOf(node), args, kwargs, target)
        if (value !== null) return value
      }
      return super.runNode(node)
    }
  }
  return (gm) => {
    const own = gm.deepCopy()
    return (...inputs) => new Right(own).run(...inputs)
  }
}
