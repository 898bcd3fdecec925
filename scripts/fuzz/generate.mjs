// Makes random programs. A program is run while it is written, once for each of its calls side by side (their arguments and numbers differ): a statement
// that throws is dropped, unless errors are wanted, and the shapes and dtypes of values are known for the next one.
import { kinds as allKinds } from './kinds/index.mjs'
import { preludeOf } from './prelude.mjs'
import { line, makeProgram, textOf } from './program.mjs'
import { randomFrom } from './random.mjs'

/** Elements that a tensor may have, unless its kind of program takes more. */
const MAX_ELEMENTS = 600

/** The state of one call while the program is written: its variables, as properties. */
class Trial {
  constructor(prelude) {
    this.scope = { ...prelude }
  }

  run(code) {
    // eslint-disable-next-line typescript/no-implied-eval -- the fuzzer writes programs
    return new Function('scope', `with (scope) { ${code} }`)(this.scope)
  }
}

/** What kinds of statements use to write a program. */
export class Writer {
  #block
  #trials
  #next = 0

  constructor(api, random, program, callCount, traced) {
    this.api = api
    this.random = random
    this.program = program
    this.#block = program.setup
    this.callCount = callCount
    /** Names of tensors in scope. */
    this.tensors = []
    /** Those that only statements of the kind that made them use. */
    this.apart = []
    this.#trials = Array.from({ length: callCount }, () => new Trial(preludeOf(api, { wrap: (f) => f, notes: [] })))
    this.state = {}
    this.most = MAX_ELEMENTS
    /** Whether the program will be traced: nothing may depend on what a trace does not see. */
    this.traced = traced
  }

  name(prefix = 'v') {
    return `${prefix}${++this.#next}`
  }

  /** Values of an expression in each trial; null if it throws in one. */
  values(expression) {
    try {
      return this.#trials.map((trial) => trial.run(`return (${expression})`))
    } catch {
      return null
    }
  }

  /** Runs a statement in each trial. Returns whether it went well everywhere. */
  runs(code) {
    const { setGradEnabled } = this.api
    try {
      for (const trial of this.#trials) trial.run(code)
      return true
    } catch {
      setGradEnabled(true)
      return false
    }
  }

  /** Sets a name to the value of a different expression in each trial. */
  assignEach(name, expressions) {
    this.#trials.forEach((trial, i) => {
      trial.scope[name] = trial.run(`return (${expressions[i]})`)
    })
  }

  /** Sets a name to the value of one expression, or class, in every trial. */
  each(name, expression) {
    this.assignEach(
      name,
      this.#trials.map(() => expression),
    )
  }

  /** The current value of a tensor, in the first call. */
  value(name) {
    return this.#trials[0].scope[name]
  }

  shape(name) {
    return this.value(name).shape
  }

  dtype(name) {
    return this.value(name).dtype
  }

  isFloat(name) {
    return /float/.test(this.dtype(name))
  }

  /** A tensor in scope for which `test` holds. */
  tensor(test = () => true) {
    const found = this.tensors.filter((name) => test(name))
    if (found.length === 0) return undefined
    // Later ones are more interesting.
    return this.random.chance(0.5) ? found[found.length - 1 - this.random.int(Math.min(3, found.length))] : this.random.pick(found)
  }

  float(test = () => true) {
    return this.tensor((name) => this.isFloat(name) && test(name))
  }

  push(statement) {
    this.#block.push(statement)
  }

  /** Writes a statement if it runs. */
  statement(code, simpler = []) {
    if (!this.runs(code)) return false
    this.push(line(code, simpler))
    return true
  }

  /** Writes `const name = expression` if that is a tensor of bearable size in every call; returns the name, or null. */
  define(expression, operands = [], keyword = 'const') {
    const results = this.values(expression)
    const { Tensor } = this.api
    if (results === null || !results.every((t) => t instanceof Tensor && t.numel <= this.most)) return null
    const name = this.name()
    this.#trials.forEach((trial, i) => {
      trial.scope[name] = results[i]
    })
    this.push(
      line(
        `${keyword} ${name} = ${expression}`,
        operands.map((operand) => `${keyword} ${name} = ${operand}`),
      ),
    )
    this.tensors.push(name)
    return name
  }

  /** Makes a variable known that other code defines. */
  declare(name) {
    this.tensors.push(name)
  }

  /** Writes statements into another list. Tensors that they define are gone afterwards, unless `keep`. */
  inside(list, write, { keep = false } = {}) {
    const block = this.#block
    const [count, apart] = [this.tensors.length, this.apart.length]
    this.#block = list
    try {
      write()
    } finally {
      this.#block = block
      if (!keep) [this.tensors.length, this.apart.length] = [count, apart]
    }
    return list
  }

  /** Writes `count` random statements of the program's kinds. */
  more(count) {
    for (let i = 0; i < count; i++) this.one()
  }

  one() {
    const able = (names) => names.map((name) => allKinds[name]).filter((kind) => kind.write !== undefined)
    const [basis, special] = [able(this.program.kinds.filter(isBasis)), able(this.program.kinds.filter((name) => !isBasis(name)))]
    for (let tries = 0; tries < 8; tries++) {
      const list = special.length > 0 && (basis.length === 0 || this.random.chance(0.6)) ? special : basis
      if (list.length === 0 || this.random.pick(list).write(this) !== false) return
    }
  }
}

/** Kinds of statements that every program may have. */
const BASIS = ['pointwise', 'views']
const isBasis = (name) => BASIS.includes(name)

/**
 * A random program. `names` are the kinds that it may use; `traced`: it is for makeFx or aotFunction; `newShapes`: eight calls, each with shapes of its own.
 */
export function generate(api, seed, names, { traced = false, newShapes = false } = {}) {
  const random = randomFrom(seed)
  const others = names.filter((name) => !BASIS.includes(name))
  const chosen = [...BASIS.filter((name) => names.includes(name))]
  const count = Math.min(others.length, 1 + random.int(4))
  while (chosen.length < count + BASIS.length && chosen.length < names.length) {
    const next = random.pick(others)
    if (!chosen.includes(next)) chosen.push(next)
  }
  const program = makeProgram(seed, chosen)
  api.reset()
  api.torch.manualSeed(1)
  const writer = new Writer(api, random, program, newShapes ? 8 : 2 + random.int(3), traced)
  const kinds = chosen.map((name) => allKinds[name])
  for (const kind of kinds) kind.setup?.(writer)
  argumentsOf(writer, kinds, newShapes)
  writer.inside(program.body, () => {
    writer.more(2 + random.int(8))
    for (const kind of kinds) kind.finish?.(writer)
    writer.push(line(`return ${resultOf(writer, kinds)}`, ['return null', ...writer.tensors.slice(-3).map((name) => `return ${name}`)]))
  })
  program.calls.forEach((call, i) => {
    for (const kind of kinds) {
      writer.inside(call.before, () => kind.before?.(writer, i))
      writer.inside(call.after, () => kind.after?.(writer, i))
    }
  })
  api.setGradEnabled(true)
  api.torch.setDefaultDtype('float32')
  return program
}

const SHAPES = [[], [3], [2, 3], [3, 1], [1, 3], [4], [2, 3, 4], [5, 4], [16], [1], [2, 2], [9, 7], [3, 3]]

/** A shape for each call: equal sizes of a program become equal sizes, mostly others than before, some of them 0 and 1. */
function drawnAnew({ random, callCount }) {
  const drawn = Array.from({ length: callCount }, () => new Map())
  const sizeOf = () => (random.chance(0.06) ? 0 : random.chance(0.12) ? 1 : 2 + random.int(6))
  return (shape) =>
    drawn.map((sizes, call) =>
      shape.map((size) => {
        if (!sizes.has(size)) sizes.set(size, call === 0 || size === 1 ? size : sizeOf())
        return sizes.get(size)
      }),
    )
}

/** How an argument lies in a larger tensor, or in one of another order, from a place that differs from call to call: the shape of that tensor, and the view. */
const LAYOUTS = [
  (shape) => ({ of: shape.toReversed(), view: '.T' }),
  (shape, at) => ({ of: shape.with(0, shape[0] + at), view: `.narrow(0, ${at}, ${shape[0]})` }),
  (shape, at) => ({ of: [...shape.slice(0, -1), shape.at(-1) + at], view: `.narrow(-1, ${at >> 1}, ${shape.at(-1)})` }),
]

/** f's parameters, and the arguments of each call. */
function argumentsOf(writer, kinds, newShapes) {
  const { random, program, callCount } = writer
  const count = 1 + random.int(3)
  const tensors = Array.from({ length: count }, (_, i) => {
    const shape = random.pick(i > 0 && random.chance(0.5) ? [SHAPES[2]] : SHAPES)
    return { name: 'abc'[i], shape, dtype: undefined, grad: random.chance(0.4) }
  })
  for (const kind of kinds) kind.tensors?.(writer, tensors)
  const draw = drawnAnew(writer)
  const layouts = new Map()
  // A view of another argument may need that one to be contiguous.
  const areSeen = tensors.some((t) => t.alias !== undefined)
  if (newShapes) {
    for (const t of tensors) {
      t.shapes ??= draw(t.shape)
      if (!areSeen && t.shape.length > 0 && random.chance(0.3)) layouts.set(t, random.pick(LAYOUTS))
    }
  }
  const dataOf = (t, call) => {
    const shape = t.shapes?.[call] ?? t.shape
    const { of, view } = layouts.get(t)?.(shape, random.int(4)) ?? { of: shape, view: null }
    const made = `data([${of.join(', ')}], ${random.int(1000)}${t.dtype === undefined ? '' : `, '${t.dtype}'`})`
    if (view !== null) return `${made}${view}`
    return t.grad && (t.dtype === undefined || /float/.test(t.dtype)) ? `${made}.requiresGrad_()` : made
  }
  program.params = tensors.map((t) => t.name)
  for (let call = 0; call < callCount; call++) {
    program.calls.push({ before: [], after: [], list: tensors.map((t) => t.alias ?? dataOf(t, call)) })
  }
  // Arguments may name earlier ones: they are made in order.
  tensors.forEach((t, i) => {
    writer.assignEach(
      t.name,
      program.calls.map((call) => call.list[i]),
    )
    writer.declare(t.name)
  })
  for (const kind of kinds) kind.parameters?.(writer)
}

/** What f returns. */
function resultOf(writer, kinds) {
  for (const kind of kinds) {
    const result = kind.result?.(writer)
    if (result !== undefined) return result
  }
  // Values that nothing else uses are results, or they could be wrong unseen.
  const { random, program } = writer
  const body = textOf(program)
  const unused = writer.tensors.filter((name) => body.match(new RegExp(`\\b${name}\\b`, 'g'))?.length === 1)
  const some = [...unused.slice(-3), ...(unused.length === 0 || random.chance(0.2) ? [writer.tensor()] : [])]
  return some.length === 1 ? some[0] : `[${some.join(', ')}]`
}
