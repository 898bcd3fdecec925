// Programs that write to views while gradients are recorded. A step is drawn for tensors of which it knows the shapes, and has its text twice: as a program writes it, with memory, and for a
// program without memory, in which what a view shows is computed anew from the base and a write is a scatter into the base. The second judges the first. `kinds/viewWrites.mjs` writes the
// same steps into the programs of fuzz:compile.
import { randomFrom } from './random.mjs'

/** The most tensors that `unbind` gives. */
const MOST_VIEWS = 16

/** Operators that give a tensor another shape in place, with the view that it becomes. */
function drawChange(random, shape) {
  const dim = random.int(shape.length + 1)
  const last = Math.max(0, shape.length - 1)
  const all = [
    [(x) => `${x}.unsqueeze_(${dim})`, (x) => `${x}.unsqueeze(${dim})`],
    [(x) => `${x}.squeeze_()`, (x) => `${x}.squeeze()`],
    [(x) => `${x}.transpose_(0, ${last})`, (x) => `${x}.transpose(0, ${last})`],
    [(x) => `${x}.swapaxes_(${last}, 0)`, (x) => `${x}.swapaxes(${last}, 0)`],
  ]
  return random.pick(shape.length === 0 || shape.includes(0) ? all.slice(0, 2) : all)
}

/** A view of a tensor of that shape. */
function drawView(random, shape) {
  if (shape.length === 0) return (x) => `${x}.unsqueeze(0)`
  const dim = random.int(shape.length)
  const size = shape[dim]
  const [at, count, last] = [random.int(size), 1 + random.int(Math.max(1, size - 1)), shape.length - 1]
  const place = random.int(last + 1)
  const isMatrix = shape.length > 1
  return random.pick([
    (x) => `${x}.narrow(${dim}, ${Math.min(at, size - count)}, ${count})`,
    (x) => `${x}.slice(${dim}, ${at % 2}, null, 2)`,
    (x) => `${x}.transpose(0, ${last})`,
    (x) => `${x}.permute([${shape.map((_, i) => (i + 1) % shape.length).join(', ')}])`,
    (x) => `${x}.unsqueeze(${place})`,
    (x) => `${x}.view([-1])`,
    (x) => `${x}.view([${shape[0]}, -1])`,
    (x) => `${x}.detach()`,
    (x) => `${x}.expand([2, ${shape.join(', ')}])`,
    (x) => (isMatrix ? `${x}.select(${dim}, ${at})` : `${x}.narrow(0, ${at}, 1)`),
    (x) => (isMatrix ? `${x}.select(${dim}, -1)` : `${x}.narrow(0, ${at}, 1)`),
    (x) => (isMatrix ? `${x}.diagonal(${at - 1}, 0, 1)` : `${x}.chunk(2)[0]`),
    (x) => `${x}.chunk(2, ${dim})[0]`,
  ])
}

/**
 * What is written over `x`: in place, and as the value that it has afterwards. Gradients of these need no result, nor another argument that shares memory with x: those are overwritten by the next
 * write, and refused in backward. `s` is a tensor without dimensions, `y` one of the shape of x that shares no memory
 * with it.
 */
const WRITES = [
  [(x, s) => `${x}.copy_(${s})`, (x, s) => `${s}.expand(${x}.shape)`],
  [(x, s) => `${x}.copy_(${s}.mul(2).expand(${x}.shape))`, (x, s) => `${s}.mul(2).expand(${x}.shape)`],
  [(x, s) => `${x}.mul_(${s}.add(1))`, (x, s) => `${x}.mul(${s}.add(1))`],
  [(x) => `${x}.mul_(1.5)`, (x) => `${x}.mul(1.5)`],
  [(x, s) => `${x}.add_(${s}.square())`, (x, s) => `${x}.add(${s}.square())`],
  [(x, s) => `${x}.sub_(${s}, { alpha: 0.5 })`, (x, s) => `${x}.sub(${s}, { alpha: 0.5 })`],
  [(x, s) => `${x}.div_(${s}.square().add(2))`, (x, s) => `${x}.div(${s}.square().add(2))`],
  [(x, s) => `${x}.addcmul_(${x}.clone(), ${s})`, (x, s) => `${x}.addcmul(${x}, ${s})`],
  [(x, s) => `${x}.lerp_(${s}.expand(${x}.shape), 0.25)`, (x, s) => `${x}.lerp(${s}.expand(${x}.shape), 0.25)`],
  [(x) => `${x}.copy_(${x}.mul(0.1).exp())`, (x) => `${x}.mul(0.1).exp()`],
  [(x) => `${x}.sin_()`, (x) => `${x}.sin()`],
  [(x) => `${x}.square_()`, (x) => `${x}.square()`],
  [(x) => `${x}.neg_()`, (x) => `${x}.neg()`],
  [(x) => `${x}.clamp_(-2, 2)`, (x) => `${x}.clamp(-2, 2)`],
  [(x) => `${x}.maskedFill_(${x}.gt(1), 0.5)`, (x) => `${x}.maskedFill(${x}.gt(1), 0.5)`],
  [(x) => `${x}.fill_(0.25)`, (x) => `torch.full(${x}.shape, 0.25, { dtype: ${x}.dtype })`],
  [(x) => `${x}.zero_()`, (x) => `torch.zeros(${x}.shape, { dtype: ${x}.dtype })`],
  [(x, s, y) => `${x}.copy_(${y})`, (x, s, y) => `${y}.mul(1)`],
  [(x, s, y) => `${x}.mul_(${y})`, (x, s, y) => `${x}.mul(${y})`],
  [(x, s, y) => `${x}.add_(${y}, { alpha: 0.5 })`, (x, s, y) => `${x}.add(${y}, { alpha: 0.5 })`],
]

/**
 * A step for one of `tensors`, a list of { shape, isRepeated, isCut }: tensors with repeated elements and those that are cut from their history (`detach`) are not
 * written to while gradients are recorded.
 */
export function drawStep(random, tensors) {
  const on = random.int(tensors.length)
  const { shape, isRepeated, isCut } = tensors[on]
  const what = random.next()
  if (what < 0.1 && !isRepeated && !isCut) {
    const [inPlace, view] = drawChange(random, shape)
    return { what: 'change', on, inPlace, view }
  }
  // All results of unbind are tensors of their own.
  if (what < 0.2 && shape.length > 0) {
    const dim = random.int(shape.length)
    // A line for each: the program would be the larger the more there are.
    if (shape[dim] <= MOST_VIEWS) return { what: 'list', on, views: Array.from({ length: shape[dim] }, (_, k) => (x) => `${x}.unbind(${dim})[${k}]`) }
  }
  if (what < 0.5) return { what: 'view', on, views: [drawView(random, shape)] }
  if (what < 0.6 || isRepeated) return { what: 'read', on }
  const [inPlace, value] = random.pick(WRITES)
  const others = tensors.flatMap((t, i) => (t.shape.join() === shape.join() ? [i] : []))
  return { what: 'write', on, inPlace, value, other: random.pick(others), scale: 0.5 + random.next(), isSilent: isCut || random.chance(0.1) }
}

/** What a step makes of `sample`, a tensor like the one that it is for: the new tensors, for `drawStep`; null if it cannot be, or gives no view. */
export function madeBy(step, { isRepeated, isCut }, sample, evaluate) {
  try {
    const made = step.views.map((view) => evaluate(view('x'), sample))
    if (!made.every((view) => view !== sample && view.storage === sample.storage && view.numel > 0)) return null
    const text = step.views[0]('x')
    return made.map((view) => ({
      sample: view,
      shape: view.shape,
      isRepeated: isRepeated || text.includes('.expand('),
      isCut: isCut || text.includes('.detach('),
    }))
  } catch {
    return null
  }
}

/** Gives the values of texts that use `torch` and the tensors `x`, `s` and `y`. */
export function evaluator({ torch }) {
  const known = new Map()
  return (text, x, s, y) => {
    // eslint-disable-next-line typescript/no-implied-eval -- the fuzzer writes programs
    if (!known.has(text)) known.set(text, new Function('torch', 'x', 's', 'y', `return (${text})`))
    return known.get(text)(torch, x, s, y)
  }
}

const SHAPES = [[2, 3], [4], [3, 3], [2, 2, 3], [1, 4]]

/** Program number `seed`: two bases, and what happens to them and to views of them. */
export function drawViewWrites(api, seed) {
  const random = randomFrom(seed)
  const evaluate = evaluator(api)
  const bases = [0, 1].map(() => ({ shape: random.pick(SHAPES), isTransposed: random.chance(0.2), hasHistory: random.chance(0.5) }))
  const tensors = bases.map((base) => ({ sample: startOf(api, base), shape: base.shape, isRepeated: false, isCut: false }))
  const steps = []
  const length = 3 + random.int(9)
  for (let i = 0; i < length; i++) {
    const step = drawStep(random, tensors)
    const tensor = tensors[step.on]
    if (step.what === 'change') {
      const { sample } = tensor
      evaluate(step.inPlace('x'), sample)
      tensors[step.on] = { ...tensor, shape: sample.shape }
    } else if (step.views !== undefined) {
      const made = madeBy(step, tensor, tensor.sample, evaluate)
      if (made === null) continue
      tensors.push(...made)
    }
    steps.push(step)
  }
  return { bases, steps }
}

function startOf({ torch }, { shape, isTransposed }) {
  const numel = shape.reduce((a, b) => a * b, 1)
  const values = torch.arange(numel, { dtype: 'float64' }).mul(0.3).sub(0.7)
  // A tensor whose dimensions lie in memory in another order.
  return isTransposed
    ? values
        .reshape(shape.toReversed())
        .permute(shape.map((_, i) => shape.length - 1 - i))
        .mul(1)
    : values.reshape(shape).mul(1)
}

/** The base of a program before its first step. */
const baseOf = (api, base, w) => (base.hasHistory ? startOf(api, base).mul(w.narrow(0, 0, 1).squeeze()) : startOf(api, base))

/** Runs a program with memory: writes change the tensor, and all that share its memory. Returns one number. */
export function withMemory(api, { bases, steps }, w) {
  const { torch } = api
  const evaluate = evaluator(api)
  const tensors = bases.map((base) => baseOf(api, base, w))
  let sum = torch.zeros([], { dtype: 'float64' })
  for (const step of steps) {
    const x = tensors[step.on]
    if (step.what === 'change') evaluate(step.inPlace('x'), x)
    else if (step.what === 'read') sum = sum.add(x.clone().square().sum())
    else if (step.what === 'write') {
      const write = () => evaluate(step.inPlace('x', 's', 'y'), x, w.mul(step.scale).sum(), tensors[step.other].clone())
      if (step.isSilent) torch.noGrad(write)
      else write()
    } else tensors.push(...step.views.map((view) => evaluate(view('x'), x)))
  }
  return tensors.reduce(
    (total, x, i) =>
      total.add(
        x
          .sin()
          .sum()
          .mul(i + 1),
      ),
    sum,
  )
}

/** Runs a program without memory: every write is a scatter into the base. */
export function withoutMemory(api, { bases, steps }, w) {
  const { torch } = api
  const evaluate = evaluator(api)
  const values = bases.map((base) => baseOf(api, base, w))
  const places = bases.map(({ shape }) =>
    torch
      .arange(
        shape.reduce((a, b) => a * b, 1),
        { dtype: 'int64' },
      )
      .reshape(shape),
  )
  /** The views that lead from a base to each tensor. */
  const made = bases.map((_, base) => ({ base, views: [] }))
  // The base of the program may lie otherwise in memory, so that a view of it is none here.
  const through = (start, views) => views.reduce((value, view) => evaluate(view('x').replaceAll('.view(', '.reshape('), value), start)
  const read = ({ base, views }) => through(values[base], views)
  let sum = torch.zeros([], { dtype: 'float64' })
  for (const step of steps) {
    const { base, views } = made[step.on]
    if (step.what === 'change') made[step.on] = { base, views: [...views, step.view] }
    else if (step.what === 'read') sum = sum.add(read(made[step.on]).square().sum())
    else if (step.what === 'write') {
      const value = evaluate(step.value('x', 's', 'y'), read(made[step.on]), w.mul(step.scale).sum(), read(made[step.other]))
      const { shape } = bases[base]
      const scattered = values[base]
        .reshape([-1])
        .scatter(0, through(places[base], views).reshape([-1]), value.reshape([-1]))
        .reshape(shape)
      // Without a record of the write the new numbers have the old history.
      values[base] = step.isSilent ? values[base].add(scattered.sub(values[base]).detach()) : scattered
    } else made.push(...step.views.map((view) => ({ base, views: [...views, view] })))
  }
  return made.reduce(
    (total, tensor, i) =>
      total.add(
        read(tensor)
          .sin()
          .sum()
          .mul(i + 1),
      ),
    sum,
  )
}

/** A program as text, for messages. */
export function textOfViewWrites({ bases, steps }) {
  const shown = bases.map(
    ({ shape, isTransposed, hasHistory }) => `[${shape}]${isTransposed ? ' transposed' : ''}${hasHistory ? ' with history' : ''}`,
  )
  const lines = []
  let count = bases.length
  for (const step of steps) {
    const x = `t${step.on}`
    if (step.what === 'change') lines.push(step.inPlace(x))
    else if (step.what === 'read') lines.push(`read ${x}`)
    else if (step.what === 'write') lines.push(`${step.isSilent ? 'noGrad ' : ''}${step.inPlace(x, 's', `t${step.other}.clone()`)}`)
    else for (const view of step.views) lines.push(`t${count++} = ${view(x)}`)
  }
  return `${shown.join(', ')}: ${lines.join('; ')}`
}
