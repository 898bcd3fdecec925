// What random programs can use besides the package: deterministic data, and notes of what happened. Each run of a program has its own.

/** A number in [-2, 2) from two integers, a float32. */
function hashed(seed, i) {
  let h = Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(i + 1, 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d)
  h = Math.imul(h ^ (h >>> 12), 0x297a2d39)
  return Math.fround((((h ^ (h >>> 15)) >>> 0) / 2 ** 32) * 4 - 2)
}

/** The float32 next to `x`, up or down. */
function neighbor(x, up) {
  const f = new Float32Array([x])
  const bits = new Int32Array(f.buffer)
  if (x !== 0) bits[0] += up === x > 0 ? 1 : -1
  return f[0]
}

const FRACTION = /-?\d+\.\d*(?:e[+-]?\d+)?/g

/** A text; the fractions in it, to be compared as numbers, and the unit of the last digit that is shown. */
function textOf(value) {
  const shown = value.match(FRACTION)
  if (shown === null) return { plain: value }
  const unit = (text) => {
    const [, digits, exponent = 'e0'] = /\.(\d*)(e.*)?$/.exec(text)
    return digits === '' ? 0 : 10 ** (Number(exponent.slice(1)) - digits.length)
  }
  return { text: value.replace(FRACTION, '#').replace(/\s+/g, ''), whole: value, data: shown.map(Number), unit: Math.max(...shown.map(unit)) }
}

/** The label of the note that the function under test has thrown. */
export const THREW = 'f threw'

/** The value at this moment, as data that later writes cannot change. */
export function snapshot(Tensor, value, { taintOf = null, history = true, layout = false } = {}, depth = 0) {
  const inner = (item) => snapshot(Tensor, item, { taintOf, history, layout }, depth + 1)
  if (value instanceof Tensor) {
    const { shape, dtype } = value
    // Before detach(), which is an operator like others.
    const taint = taintOf === null ? false : taintOf(value)
    const requiresGrad = history && value.requiresGrad
    const flat = value.detach().toArray()
    // A complex number is two.
    const data = [flat].flat(Infinity).flatMap((item) => (item !== null && typeof item === 'object' && 're' in item ? [item.re, item.im] : [item]))
    const shot = { tensor: true, shape: [...shape], dtype, requiresGrad, data, taint }
    if (layout) shot.layout = `strides ${value.strides.join()}, offset ${value.offset}, version ${value.storage?.version}`
    return shot
  }
  if (typeof value === 'number') return { number: value }
  if (typeof value === 'string') return textOf(value)
  if (value instanceof Error) return { error: value.constructor.name, message: value.message }
  if (typeof value === 'function') return { function: value.name }
  if (value === null || typeof value !== 'object' || depth > 6) return { plain: typeof value === 'bigint' ? `${value}n` : String(value) }
  if (value instanceof Map) return { map: [...value].map(([k, v]) => [String(k), inner(v)]) }
  if (Array.isArray(value)) return { list: value.map(inner) }
  return { object: Object.entries(value).map(([k, v]) => [k, inner(v)]) }
}

/**
 * The names that programs use, for one run. `api` holds the package's names; `perturb`, a seed, moves all data to a neighboring float32;
 * `history`: whether notes say which tensors require grad; `layout`: whether they say how tensors lie in memory, and how often it was written.
 */
export function preludeOf(api, { wrap, notes, dtype = 'float32', perturb = null, taintOf = null, history = true, layout = false }) {
  const { torch, Tensor } = api
  const dtypeOf = (dtype) => dtype ?? torch.getDefaultDtype()
  const data = (shape, seed, dtype) => {
    const count = shape.reduce((n, s) => n * s, 1)
    const values = Array.from({ length: count }, (_, i) => {
      const x = hashed(seed, i)
      if (dtype === 'bool') return x > 0
      if (dtype !== undefined && /int/.test(dtype)) return Math.abs(Math.trunc(x * 3)) * (dtype === 'uint8' || x > 0 ? 1 : -1)
      return perturb === null ? x : neighbor(x, hashed(perturb, i) > 0)
    })
    return torch.tensor(values, { dtype: dtypeOf(dtype) }).reshape(shape)
  }
  // In the float64 reference every default is float64.
  const defaultDtype = (name) => torch.setDefaultDtype(dtype === 'float64' ? dtype : name)
  const note = (label, value) => {
    let shot
    try {
      shot = snapshot(Tensor, value, { taintOf, history, layout })
    } catch (error) {
      shot = { unreadable: true, ...snapshot(Tensor, error) }
    }
    notes.push({ label, value: shot })
  }
  let underTest = null
  let calls = 0
  let latest = []
  const inputs = new Set()
  const attempt = (f, makeArgs) => {
    const call = ++calls
    let args = []
    let result
    try {
      args = makeArgs()
      if (args.length > 0) latest = args
      result = f(...args)
    } catch (error) {
      note(f === underTest ? THREW : `call ${call} threw`, error)
    }
    note(`result ${call}`, result)
    note(`arguments after call ${call}`, args)
    for (const arg of args) if (arg instanceof Tensor && arg.requiresGrad && arg.gradFn === null) inputs.add(arg)
    if (inputs.size > 0)
      note(
        `gradients of arguments`,
        [...inputs].map((input) => input.grad),
      )
    return result
  }
  const indices = (shape, seed, below) =>
    torch
      .tensor(
        Array.from({ length: shape.reduce((n, s) => n * s, 1) }, (_, i) => Math.min(below - 1, Math.floor(((hashed(seed, i) + 2) / 4) * below))),
        { dtype: 'int64' },
      )
      .reshape(shape)
  const wrapped = (f) => (underTest = wrap(f))
  return {
    ...api,
    // Disabled code runs outside of all modes, so that whoever follows a run to bound its rounding would not know where its results come from. It means the same without.
    ...(taintOf === null ? {} : { disable: (fn) => fn }),
    wrap: wrapped,
    data,
    indices,
    note,
    defaultDtype,
    attempt,
    latestArguments: () => latest,
    range: (n) => Array.from({ length: n }, (_, i) => i),
  }
}
