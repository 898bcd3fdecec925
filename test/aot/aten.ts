// PyTorch's primitive operators in float64 on plain arrays, so that graphs that PyTorch captured run here without any kernel or derivative of ours: a reference.
import type { Tensor } from 'tensorfx'
import type { GoldenNode, GoldenValue } from '../fx/samples/golden.ts'

const product = (numbers: readonly number[]): number => numbers.reduce((a, b) => a * b, 1)

/** A dense row-major array. */
export class Plain {
  readonly shape: readonly number[]
  readonly data: readonly number[]

  constructor(shape: readonly number[], data: readonly number[]) {
    if (data.length !== product(shape)) throw new Error(`${data.length} numbers have no shape [${shape.join(', ')}]`)
    this.shape = shape
    this.data = data
  }

  /** An array from a function of the index. */
  static make(shape: readonly number[], value: (...index: readonly number[]) => number): Plain {
    const data = Array.from({ length: product(shape) }, (_, flat) => {
      const index: number[] = []
      for (const size of shape.toReversed()) {
        index.unshift(flat % size)
        flat = Math.floor(flat / size)
      }
      return value(...index)
    })
    return new Plain(shape, data)
  }

  /** The number at an index; dimensions of size 1 are read as often as wanted, and missing ones in front are ignored. */
  at(...index: readonly number[]): number {
    const own = index.slice(index.length - this.shape.length)
    const flat = this.shape.reduce((sum, size, i) => sum * size + (size === 1 ? 0 : (own[i] ?? 0)), 0)
    const value = this.data[flat]
    if (value === undefined) throw new Error(`[${index.join(', ')}] is outside of [${this.shape.join(', ')}]`)
    return value
  }

  map(f: (value: number, i: number) => number): Plain {
    return new Plain(this.shape, this.data.map(f))
  }

  size(dim: number): number {
    return this.shape.at(dim) ?? 1
  }
}

/** The numbers of a tensor, in float64. */
export const plain = (x: Tensor): Plain => new Plain(x.shape, Array.from(x.contiguous().toTypedArray()))

/** An operator's arguments, checked as they are read. */
class Args {
  readonly #values: readonly unknown[]

  constructor(values: readonly unknown[]) {
    this.#values = values
  }

  array(i: number): Plain {
    const value = this.#values[i]
    if (!(value instanceof Plain)) throw new Error(`argument ${i} is not an array`)
    return value
  }

  arrays(i: number): readonly Plain[] {
    const value = this.#values[i]
    if (!Array.isArray(value) || !value.every((x) => x instanceof Plain)) throw new Error(`argument ${i} is not a list of arrays`)
    return value
  }

  number(i: number): number {
    const value = this.#values[i]
    if (typeof value !== 'number') throw new Error(`argument ${i} is not a number`)
    return value
  }

  numbers(i: number): readonly number[] {
    const value = this.#values[i]
    if (!Array.isArray(value) || !value.every((x) => typeof x === 'number')) throw new Error(`argument ${i} is not a list of numbers`)
    return value
  }

  /** An operand: an array, or a number for every element. */
  operand(i: number): (at: number) => number {
    const value = this.#values[i]
    return value instanceof Plain ? (at) => value.data[at] ?? Number.NaN : () => this.number(i)
  }
}

const mm = (x: Plain, y: Plain): Plain => Plain.make([x.size(0), y.size(1)], (i = 0, j = 0) => sumOver(x.size(1), (k) => x.at(i, k) * y.at(k, j)))

function sumOver(count: number, term: (k: number) => number): number {
  let sum = 0
  for (let k = 0; k < count; k++) sum += term(k)
  return sum
}

/** Sums over dimensions, which stay with size 1. */
function sumDims(x: Plain, dims: readonly number[]): Plain {
  const sizes = x.shape.map((size, d) => (dims.includes(d) ? 1 : size))
  const sums = new Array<number>(product(sizes)).fill(0)
  const target = Plain.make(sizes, (...index) => index.reduce((flat, at, d) => flat * (sizes[d] ?? 1) + at, 0))
  Plain.make(x.shape, (...index) => (sums[target.at(...index)] = (sums[target.at(...index)] ?? 0) + x.at(...index)))
  return new Plain(sizes, sums)
}

function erf(x: number): number {
  let [sum, term] = [x, x]
  for (let n = 1; n < 200; n++) {
    term *= (-x * x) / n
    sum += term / (2 * n + 1)
  }
  return (2 / Math.sqrt(Math.PI)) * sum
}
const cdf = (x: number): number => 0.5 * (1 + erf(x / Math.SQRT2))
const density = (x: number): number => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI)

/** Normalizes over `dims`: the normalized values, mean, variance and 1 / standard deviation. */
function normalized(x: Plain, dims: readonly number[], eps: number): { hat: Plain; mean: Plain; variance: Plain; rstd: Plain } {
  const count = product(dims.map((d) => x.size(d)))
  const mean = sumDims(x, dims).map((s) => s / count)
  const centred = Plain.make(x.shape, (...i) => x.at(...i) - mean.at(...i))
  const variance = sumDims(
    centred.map((v) => v * v),
    dims,
  ).map((s) => s / count)
  const rstd = variance.map((v) => 1 / Math.sqrt(v + eps))
  return { hat: Plain.make(x.shape, (...i) => centred.at(...i) * rstd.at(...i)), mean, variance, rstd }
}

/** The gradient of a normalized, scaled and shifted input: for the input, the weight and the bias. `affine` are the dimensions of the weight. */
function normBackward(g: Plain, x: Plain, weight: Plain, dims: readonly number[], eps: number, affine: readonly number[]): readonly Plain[] {
  const { hat, rstd } = normalized(x, dims, eps)
  const scaled = Plain.make(x.shape, (...i) => g.at(...i) * weight.at(...i))
  const count = product(dims.map((d) => x.size(d)))
  const mean = sumDims(scaled, dims).map((s) => s / count)
  const along = sumDims(
    scaled.map((v, i) => v * (hat.data[i] ?? Number.NaN)),
    dims,
  ).map((s) => s / count)
  const others = x.shape.map((_, d) => d).filter((d) => !affine.includes(d))
  const flat = (y: Plain): Plain =>
    new Plain(
      affine.map((d) => x.size(d)),
      y.data,
    )
  return [
    Plain.make(x.shape, (...i) => rstd.at(...i) * (scaled.at(...i) - mean.at(...i) - hat.at(...i) * along.at(...i))),
    flat(
      sumDims(
        g.map((v, i) => v * (hat.data[i] ?? Number.NaN)),
        others,
      ),
    ),
    flat(sumDims(g, others)),
  ]
}

const PLANES = [0, 2, 3]
/** A vector over the channels of [n, c, h, w]. */
const channels = (x: Plain): Plain => new Plain([x.size(0), 1, 1], x.data)
const affine = (hat: Plain, weight: Plain, bias: Plain): Plain => Plain.make(hat.shape, (...i) => hat.at(...i) * weight.at(...i) + bias.at(...i))
const vector = (x: Plain): Plain => new Plain([x.data.length], x.data)

/** All taps of a convolution: `visit(n, output channel, y, x, input channel, ky, kx, iy, ix)`. */
function taps(
  g: readonly number[],
  x: Plain,
  w: Plain,
  stride: readonly number[],
  padding: readonly number[],
  visit: (...at: readonly number[]) => void,
): void {
  Plain.make([...g, w.size(1), w.size(2), w.size(3)], (n = 0, o = 0, y = 0, z = 0, c = 0, ky = 0, kx = 0) => {
    const iy = y * (stride[0] ?? 1) - (padding[0] ?? 0) + ky
    const ix = z * (stride[1] ?? 1) - (padding[1] ?? 0) + kx
    if (iy >= 0 && ix >= 0 && iy < x.size(2) && ix < x.size(3)) visit(n, o, y, z, c, ky, kx, iy, ix)
    return 0
  })
}

/** Adds into a new array: `add(value, ...index)`. */
function accumulator(shape: readonly number[]): { add: (value: number, ...index: readonly number[]) => void; done: () => Plain } {
  const data = new Array<number>(product(shape)).fill(0)
  return {
    add: (value, ...index) => {
      const flat = index.reduce((sum, at, d) => sum * (shape[d] ?? 1) + at, 0)
      data[flat] = (data[flat] ?? 0) + value
    },
    done: () => new Plain(shape, data),
  }
}

const reshaped = (a: Args): Plain => new Plain(a.numbers(1), a.array(0).data)

const aten: Readonly<Record<string, (a: Args) => unknown>> = {
  t: (a) => Plain.make(a.array(0).shape.toReversed(), (i = 0, j = 0) => a.array(0).at(j, i)),
  mm: (a) => mm(a.array(0), a.array(1)),
  addmm: (a) => {
    const y = mm(a.array(1), a.array(2))
    return Plain.make(y.shape, (...i) => y.at(...i) + a.array(0).at(...i))
  },
  bmm: (a) => {
    const [x, y] = [a.array(0), a.array(1)]
    return Plain.make([x.size(0), x.size(1), y.size(2)], (b = 0, i = 0, j = 0) => sumOver(x.size(2), (k) => x.at(b, i, k) * y.at(b, k, j)))
  },
  relu: (a) => a.array(0).map((v) => Math.max(v, 0)),
  cos: (a) => a.array(0).map(Math.cos),
  detach: (a) => a.array(0),
  mul: (a) => a.array(0).map((v, i) => v * a.operand(1)(i)),
  div: (a) => a.array(0).map((v, i) => v / a.operand(1)(i)),
  add: (a) => a.array(0).map((v, i) => v + a.operand(1)(i)),
  // Its result alone: no graph here reads the written buffer again.
  add_: (a) => a.array(0).map((v, i) => v + a.operand(1)(i)),
  sum: (a) => sumDims(a.array(0), a.numbers(1)),
  view: reshaped,
  _unsafe_view: reshaped,
  expand: (a) => Plain.make(a.numbers(1), (...i) => a.array(0).at(...i)),
  transpose: (a) => {
    const x = a.array(0)
    const [from, to] = [a.number(1), a.number(2)].map((d) => (d + x.shape.length) % x.shape.length)
    const swap = (list: readonly number[]): number[] =>
      list.map((v, d) => (d === from ? (list[to ?? 0] ?? 0) : d === to ? (list[from ?? 0] ?? 0) : v))
    return Plain.make(swap(x.shape), (...i) => x.at(...swap(i)))
  },
  cat: (a) => {
    const parts = a.arrays(0)
    const [first] = parts
    if (first === undefined) throw new Error('nothing to join')
    const dim = (a.number(1) + first.shape.length) % first.shape.length
    const starts = parts.map((_, p) => sumOver(p, (k) => parts[k]?.size(dim) ?? 0))
    const total = sumOver(parts.length, (k) => parts[k]?.size(dim) ?? 0)
    return Plain.make(first.shape.with(dim, total), (...i) => {
      const p = starts.findLastIndex((start) => start <= (i[dim] ?? 0))
      return (parts[p] ?? first).at(...i.with(dim, (i[dim] ?? 0) - (starts[p] ?? 0)))
    })
  },
  split: (a) => {
    const [x, size] = [a.array(0), a.number(1)]
    const dim = (a.number(2) + x.shape.length) % x.shape.length
    return Array.from({ length: x.size(dim) / size }, (_, p) =>
      Plain.make(x.shape.with(dim, size), (...i) => x.at(...i.with(dim, (i[dim] ?? 0) + p * size))),
    )
  },
  empty: (a) => Plain.make(a.numbers(0), () => Number.NaN),
  gelu: (a) => a.array(0).map((x) => x * cdf(x)),
  gelu_backward: (a) => a.array(1).map((x, i) => (a.array(0).data[i] ?? Number.NaN) * (cdf(x) + x * density(x))),
  threshold_backward: (a) => a.array(0).map((g, i) => ((a.array(1).data[i] ?? Number.NaN) > a.number(2) ? g : 0)),
  _softmax: (a) => {
    const x = a.array(0).map(Math.exp)
    const sums = sumDims(x, [x.shape.length - 1])
    return Plain.make(x.shape, (...i) => x.at(...i) / sums.at(...i))
  },
  _softmax_backward_data: (a) => {
    const [g, y] = [a.array(0), a.array(1)]
    const sums = sumDims(
      g.map((v, i) => v * (y.data[i] ?? Number.NaN)),
      [g.shape.length - 1],
    )
    return Plain.make(g.shape, (...i) => y.at(...i) * (g.at(...i) - sums.at(...i)))
  },
  convolution: (a) => {
    const [x, w, b, stride, padding] = [a.array(0), a.array(1), a.array(2), a.numbers(3), a.numbers(4)]
    const size = (d: number): number => Math.floor((x.size(d + 2) + 2 * (padding[d] ?? 0) - w.size(d + 2)) / (stride[d] ?? 1)) + 1
    const y = accumulator([x.size(0), w.size(0), size(0), size(1)])
    taps([x.size(0), w.size(0), size(0), size(1)], x, w, stride, padding, (n = 0, o = 0, i = 0, j = 0, c = 0, ky = 0, kx = 0, iy = 0, ix = 0) =>
      y.add(x.at(n, c, iy, ix) * w.at(o, c, ky, kx), n, o, i, j),
    )
    return Plain.make(y.done().shape, (...i) => y.done().at(...i) + channels(b).at(...i))
  },
  convolution_backward: (a) => {
    const [g, x, w] = [a.array(0), a.array(1), a.array(2)]
    const [gx, gw] = [accumulator(x.shape), accumulator(w.shape)]
    taps(g.shape, x, w, a.numbers(4), a.numbers(5), (n = 0, o = 0, i = 0, j = 0, c = 0, ky = 0, kx = 0, iy = 0, ix = 0) => {
      gx.add(g.at(n, o, i, j) * w.at(o, c, ky, kx), n, c, iy, ix)
      gw.add(g.at(n, o, i, j) * x.at(n, c, iy, ix), o, c, ky, kx)
    })
    return [gx.done(), gw.done(), vector(sumDims(g, PLANES))]
  },
  native_batch_norm: (a) => {
    const { hat, mean, rstd } = normalized(a.array(0), PLANES, a.number(7))
    return [affine(hat, channels(a.array(1)), channels(a.array(2))), vector(mean), vector(rstd)]
  },
  _native_batch_norm_legit_functional: (a) => {
    const [x, momentum] = [a.array(0), a.number(6)]
    const { hat, mean, variance, rstd } = normalized(x, PLANES, a.number(7))
    const count = product(PLANES.map((d) => x.size(d)))
    const running = (old: Plain, now: Plain, factor: number): Plain =>
      old.map((v, i) => (1 - momentum) * v + momentum * factor * (now.data[i] ?? Number.NaN))
    return [
      affine(hat, channels(a.array(1)), channels(a.array(2))),
      vector(mean),
      vector(rstd),
      running(a.array(3), mean, 1),
      running(a.array(4), variance, count / (count - 1)),
    ]
  },
  native_batch_norm_backward: (a) => normBackward(a.array(0), a.array(1), channels(a.array(2)), PLANES, a.number(8), [1]),
  native_layer_norm: (a) => {
    const x = a.array(0)
    const { hat, mean, rstd } = normalized(x, [x.shape.length - 1], a.number(4))
    return [affine(hat, a.array(2), a.array(3)), mean, rstd]
  },
  native_layer_norm_backward: (a) => {
    const [g, x] = [a.array(0), a.array(1)]
    // PyTorch's operator reads the saved statistics instead of an epsilon; that of the layer is the usual one.
    return normBackward(g, x, a.array(5), [x.shape.length - 1], 1e-5, [x.shape.length - 1])
  },
  max_pool2d_with_indices: (a) => {
    const [x, [size = 1]] = [a.array(0), a.numbers(1)]
    const shape = [x.size(0), x.size(1), Math.floor(x.size(2) / size), Math.floor(x.size(3) / size)]
    const best = (n: number, c: number, y: number, z: number): readonly number[] => {
      const places = Array.from({ length: size * size }, (_, k) => [y * size + Math.floor(k / size), z * size + (k % size)] as const)
      const [iy, ix] = places.reduce((top, place) => (x.at(n, c, ...place) > x.at(n, c, ...top) ? place : top))
      return [x.at(n, c, iy, ix), iy * x.size(3) + ix]
    }
    return [0, 1].map((k) => Plain.make(shape, (n = 0, c = 0, y = 0, z = 0) => best(n, c, y, z)[k] ?? Number.NaN))
  },
  max_pool2d_with_indices_backward: (a) => {
    const [g, x, indices] = [a.array(0), a.array(1), a.array(7)]
    const gx = accumulator(x.shape)
    Plain.make(g.shape, (n = 0, c = 0, y = 0, z = 0) => {
      const at = indices.at(n, c, y, z)
      gx.add(g.at(n, c, y, z), n, c, Math.floor(at / x.size(3)), at % x.size(3))
      return 0
    })
    return gx.done()
  },
}

/** Runs nodes that PyTorch captured; `given` has the values of placeholders and attributes by name. Returns every value by name; `output` among them. */
export function runAten(nodes: readonly GoldenNode[], given: ReadonlyMap<string, unknown>): Map<string, unknown> {
  const values = new Map(given)
  const value = (v: GoldenValue): unknown => {
    if (Array.isArray(v)) return (v as readonly GoldenValue[]).map(value)
    if (typeof v !== 'object' || v === null) return v
    if ('node' in v) return values.get(v.node)
    if ('tuple' in v) return v.tuple.map(value)
    return 'float' in v ? Number(v.float) : null
  }
  for (const { op, name, target, args } of nodes) {
    if (op === 'placeholder' || op === 'get_attr') continue
    const inputs = args.map(value)
    const [, primitive = ''] = /^torch\.ops\.aten\.(\w+)\./.exec(target) ?? []
    if (op === 'output') values.set('output', inputs[0])
    else if (target === 'operator.getitem') {
      const [list, index] = inputs
      if (!Array.isArray(list) || typeof index !== 'number') throw new Error(`${name} takes an item of something that is no list`)
      values.set(name, list[index])
    } else if (aten[primitive] === undefined) throw new Error(`there is nothing for ${target}`)
    else values.set(name, aten[primitive](new Args(inputs)))
  }
  return values
}
