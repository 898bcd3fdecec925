// Writes to views while gradients are recorded. Random programs are compared with the same without memory, in which each write is a scatter into the base: values, gradients, and
// gradients of gradients; eager, compiled, and through aotFunction. TENSORFX_FUZZ=2000 draws more.
import { describe, expect, it } from 'vitest'
import { fx, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { aotFunction } from 'tensorfx/aot'
import { compile } from 'tensorfx/compile'
import { grad, hessian, vmap } from 'tensorfx/func'
import { randomFrom } from '../../scripts/fuzz/random.mjs'

const { operator } = fx

const COUNT = Math.max(60, Number(process.env['TENSORFX_FUZZ'] ?? 0))
const FIRST = Number(process.env['TENSORFX_FUZZ_SEED'] ?? 0)

type Random = ReturnType<typeof randomFrom>
type View = (x: Tensor) => Tensor

/** Operators that give a tensor another shape in place, with the view that it becomes. */
interface Change {
  readonly name: string
  readonly inPlace: (x: Tensor) => Tensor
  readonly view: View
}

function drawChange(random: Random, shape: readonly number[]): Change {
  const dim = random.int(shape.length + 1)
  const [last, size] = [Math.max(0, shape.length - 1), shape.reduce((a, b) => a * b, 1)]
  const all: readonly Change[] = [
    { name: 'unsqueeze_', inPlace: (x) => x.unsqueeze_(dim), view: (x) => x.unsqueeze(dim) },
    { name: 'squeeze_', inPlace: (x) => x.squeeze_(), view: (x) => x.squeeze() },
    { name: 'transpose_', inPlace: (x) => x.transpose_(0, last), view: (x) => x.transpose(0, last) },
    { name: 'swapaxes_', inPlace: (x) => x.swapaxes_(last, 0), view: (x) => x.swapaxes(last, 0) },
  ]
  return random.pick(shape.length === 0 || size === 0 ? all.slice(0, 2) : all)
}

/** A random view operator for a shape. */
function drawView(random: Random, shape: readonly number[]): View {
  const dim = random.int(Math.max(1, shape.length))
  const size = shape[dim] ?? 1
  const [at, count] = [random.int(size), 1 + random.int(Math.max(1, size - 1))]
  const kinds: readonly View[] = [
    (x) => x.narrow(dim, Math.min(at, size - count), count),
    (x) => x.transpose(0, x.ndim - 1),
    (x) => x.unsqueeze(dim),
    (x) => x.view([-1, ...shape.slice(1)]),
    (x) => (x.ndim > 1 ? x.select(dim, at) : x.narrow(0, at, 1)),
    (x) => (x.ndim > 1 ? x.diagonal(0, 0, 1) : x.narrow(0, 0, 1)),
  ]
  return shape.length === 0 ? (x) => x.unsqueeze(0) : random.pick(kinds)
}

interface Step {
  readonly what: 'view' | 'change' | 'list' | 'write' | 'read'
  /** Which of the tensors so far. */
  readonly on: number
  readonly view: View | null
  readonly change: Change | null
  /** What is written: from the number of the tensor that it reads, its own value, and weights. */
  readonly how: 'copy' | 'mul' | 'add' | 'fill' | 'exp'
  readonly scale: number
}

interface Program {
  readonly startsWithHistory: boolean
  readonly steps: readonly Step[]
}

function draw(seed: number): Program {
  const random = randomFrom(seed)
  const steps: Step[] = []
  const shapes: (readonly number[])[] = [[2, 3]]
  const length = 3 + random.int(7)
  for (let i = 0; i < length; i++) {
    const on = random.int(shapes.length)
    const how = random.pick(['copy', 'mul', 'add', 'fill', 'exp'] as const)
    const scale = 0.5 + random.next()
    const shape = shapes[on] ?? []
    // The base keeps its shape, which the scatters need.
    if (on > 0 && random.chance(0.2)) {
      const change = drawChange(random, shape)
      shapes[on] = change.view(torch.zeros(shape)).shape
      steps.push({ what: 'change', on, view: null, change, how, scale })
    } else if (shape.length > 0 && random.chance(0.15)) {
      // All results of unbind are tensors of their own.
      const dim = random.int(shape.length)
      for (let k = 0; k < (shape[dim] ?? 0); k++) {
        shapes.push(shape.toSpliced(dim, 1))
      }
      steps.push({ what: 'list', on, view: null, change: null, how, scale: dim })
    } else if (random.chance(0.5)) {
      const view = drawView(random, shape)
      let made: Tensor
      try {
        made = view(torch.zeros(shape))
      } catch {
        continue
      }
      if (made.viewBase === null) continue
      shapes.push(made.shape)
      steps.push({ what: 'view', on, view, change: null, how, scale })
    } else steps.push({ what: random.chance(0.7) ? 'write' : 'read', on, view: null, change: null, how, scale })
  }
  return { startsWithHistory: random.chance(0.5), steps }
}

/** What is written over `value`. `w` are the weights. */
function written(how: Step['how'], value: Tensor, w: Tensor, scale: number): Tensor {
  const source = w.mul(scale).sum()
  if (how === 'mul') return value.mul(source.add(1))
  if (how === 'add') return value.add(source.mul(source))
  if (how === 'exp') return value.mul(0.1).exp()
  return source.mul(how === 'fill' ? 1 : scale).expand(value.shape)
}

/** With memory: writes change the tensor, and all that share it. */
function withMemory({ startsWithHistory, steps }: Program, w: Tensor): Tensor {
  const start = torch.arange(6, { dtype: 'float64' }).reshape([2, 3]).add(1)
  const tensors = [startsWithHistory ? start.mul(w.narrow(0, 0, 1)) : start]
  let sum = torch.zeros([], { dtype: 'float64' })
  for (const { what, on, view, change, how, scale } of steps) {
    const x = tensors[on] as Tensor
    if (what === 'view') tensors.push((view as View)(x))
    else if (what === 'change') change?.inPlace(x)
    else if (what === 'list') tensors.push(...x.unbind(scale))
    else if (what === 'read') sum = sum.add(x.clone().square().sum().mul(scale))
    else if (how === 'mul') x.mul_(w.mul(scale).sum().add(1))
    else if (how === 'add') x.add_(w.mul(scale).sum().square())
    else if (how === 'exp') x.copy_(x.mul(0.1).exp())
    else if (how === 'fill') x.copy_(w.mul(scale).sum())
    else x.copy_(w.mul(scale).sum().mul(scale).expand(x.shape))
  }
  tensors.forEach((x, i) => {
    sum = sum.add(
      x
        .sin()
        .sum()
        .mul(i + 1),
    )
  })
  return sum
}

/** Without memory: every write is a scatter into the base. */
function pure({ startsWithHistory, steps }: Program, w: Tensor): Tensor {
  const start = torch.arange(6, { dtype: 'float64' }).reshape([2, 3]).add(1)
  let base = startsWithHistory ? start.mul(w.narrow(0, 0, 1)) : start
  const places = torch.arange(6, { dtype: 'int64' }).reshape([2, 3])
  const through = (x: Tensor, chain: readonly View[]): Tensor => chain.reduce((value, view) => view(value), x)
  const made: (readonly View[])[] = [[]]
  let sum = torch.zeros([], { dtype: 'float64' })
  for (const { what, on, view, change, how, scale } of steps) {
    const chain = made[on] ?? []
    if (what === 'view') made.push([...chain, view as View])
    else if (what === 'change') made[on] = [...chain, (change as Change).view]
    else if (what === 'list') {
      const count = through(places, chain).shape[scale] ?? 0
      for (let k = 0; k < count; k++) made.push([...chain, (x) => x.select(scale, k)])
    } else if (what === 'read') {
      const x = through(base, chain)
      sum = sum.add(x.mul(x).sum().mul(scale))
    } else {
      const value = written(how, through(base, chain), w, scale)
      base = base
        .reshape([6])
        .scatter(0, through(places, chain).reshape([-1]), value.reshape([-1]))
        .reshape([2, 3])
    }
  }
  made.forEach((chain, i) => {
    sum = sum.add(
      through(base, chain)
        .sin()
        .sum()
        .mul(i + 1),
    )
  })
  return sum
}

const weights = (): Tensor => torch.tensor([0.3, -0.2, 0.5], { dtype: 'float64', requiresGrad: true })

/** The value, its gradient, and the gradient of the gradient's sum of squares. */
function derivatives(f: (w: Tensor) => Tensor, isTwice: boolean): readonly (readonly number[])[] {
  const w = weights()
  const value = f(w)
  if (!value.requiresGrad) return [[value.item() as number]]
  const [first] = torch.autograd.grad(value, [w], { createGraph: isTwice })
  const results = [value, first as Tensor]
  if (isTwice && (first as Tensor).requiresGrad) results.push(torch.autograd.grad((first as Tensor).square().sum(), [w])[0] as Tensor)
  return results.map((t) => Array.from(t.detach().contiguous().toTypedArray(), Number))
}

const close = (ours: readonly (readonly number[])[], theirs: readonly (readonly number[])[]): boolean =>
  ours.length === theirs.length &&
  ours.every((list, i) => list.every((v, k) => Math.abs(v - (theirs[i]?.[k] ?? NaN)) <= 1e-9 * (1 + Math.abs(theirs[i]?.[k] ?? 0))))

const describeProgram = ({ startsWithHistory, steps }: Program): string =>
  `${startsWithHistory ? 'with' : 'without'} history: ${steps.map(({ what, on, view, change, how }) => (what === 'view' ? `view of ${on} ${String(view).slice(7)}` : what === 'change' ? `${change?.name} of ${on}` : what === 'list' ? `unbind of ${on}` : what === 'read' ? `read ${on}` : `${how} ${on}`)).join('; ')}`

/** The programs of which a way to run them gives something else than the scatters. */
function wrongOnes(run: (f: (w: Tensor) => Tensor) => (w: Tensor) => Tensor, isTwice: boolean, count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => FIRST + i).flatMap((seed) => {
    const program = draw(seed)
    const theirs = derivatives((w) => pure(program, w), isTwice)
    try {
      const ours = derivatives(
        run((w) => withMemory(program, w)),
        isTwice,
      )
      return close(ours, theirs) ? [] : [`${seed} ${describeProgram(program)}: ${JSON.stringify(ours)} instead of ${JSON.stringify(theirs)}`]
    } catch (error) {
      return [`${seed} ${describeProgram(program)}: ${String(error)}`]
    }
  })
}

describe('random writes to views equal scatters into the base', { timeout: 600_000 }, () => {
  it('in eager mode, twice differentiated', () => expect(wrongOnes((f) => f, true, COUNT)).toEqual([]))
  it('in compiled functions', () => expect(wrongOnes((f) => compile(f, { backend: 'eager' }), false, COUNT)).toEqual([]))
  it('in compiled kernels', () => expect(wrongOnes((f) => compile(f), false, COUNT >> 2)).toEqual([]))
  it('through aotFunction', () =>
    expect(
      wrongOnes(
        (f) =>
          aotFunction(f, {
            fwCompiler:
              (gm) =>
              (...values) =>
                gm.forward(...values) as unknown[],
          }) as typeof f,
        false,
        COUNT,
      ),
    ).toEqual([]))
})

describe('writes to views', () => {
  const w = (): Tensor => torch.tensor([2, 3], { requiresGrad: true })
  const gradOf = (w: Tensor): unknown => w.grad?.toArray()

  it('give the base and all its views their history, under the names of PyTorch', () => {
    const [a, z] = [w(), torch.zeros([2, 2])]
    const [first, second] = [z.select(0, 0), z.select(0, 1)]
    first.copy_(a)
    expect([z.requiresGrad, z.isLeaf, z.gradFn?.name]).toEqual([true, false, 'CopySlices'])
    expect(second.requiresGrad).toBe(true)
    expect([first.gradFn?.name, second.gradFn?.name]).toEqual(['AsStridedBackward0', 'AsStridedBackward0'])
    second.add_(a.mul(5))
    z.sum().add(first.sum()).backward()
    expect(gradOf(a)).toEqual([7, 7])
  })

  it('of diagonals, items, windows with strides, and of a base whose dimensions are swapped in memory', () => {
    const a = w()
    const z = torch.zeros([2, 2])
    z.diagonal().copy_(a)
    z.asStrided([2], [2], 1).copy_(a.mul(10))
    z.mul(
      torch.tensor([
        [1, 2],
        [3, 4],
      ]),
    )
      .sum()
      .backward()
    // The window overwrote the end of the diagonal.
    expect(z.toArray()).toEqual([
      [2, 20],
      [0, 30],
    ])
    expect(gradOf(a)).toEqual([21, 40])
    const b = w()
    const swapped = torch
      .ones([3, 2])
      .t()
      .clone()
      .mul(b.reshape([2, 1]))
    swapped.narrow(1, 1, 2).mul_(b.reshape([2, 1]))
    swapped.sum().backward()
    expect(gradOf(b)).toEqual([1 + 4 * 2, 1 + 4 * 3])
  })

  it('keep what a gradient needs of the overwritten values, and nothing else', () => {
    const a = w()
    const z = a.mul(1)
    z.narrow(0, 0, 1).sin_()
    z.mul_(z.clone())
    z.sum().backward()
    expect((gradOf(a) as number[])[0]).toBeCloseTo(2 * Math.sin(2) * Math.cos(2), 5)
    expect((gradOf(a) as number[])[1]).toBeCloseTo(6, 5)
  })

  it('raise the version of what shares the memory', () => {
    const a = w()
    const z = torch.zeros([2, 2])
    z.select(0, 0).copy_(a)
    const squares = z.square()
    z.select(0, 1).copy_(a)
    expect(() => squares.sum().backward()).toThrow(/modified in place/)
  })

  it('can be seen by hooks, kept gradients, and a second backward that is refused', () => {
    const a = w()
    const z = torch.zeros([2])
    z.narrow(0, 0, 1).copy_(a.narrow(0, 1, 1))
    z.retainGrad()
    const seen: unknown[] = []
    z.registerHook((grad) => void seen.push(grad.toArray()))
    z.mul(3).sum().backward()
    expect([gradOf(a), z.grad?.toArray(), seen]).toEqual([[0, 3], [3, 3], [[3, 3]]])
    expect(() => z.sum().backward()).toThrow(/walked before/)
  })

  it.each([
    ['a view of a leaf', (a: Tensor) => a.narrow(0, 0, 1).mul_(2), /view of a leaf that requires grad/],
    ['a view of a leaf that is a view', () => torch.zeros([4]).view([2, 2]).requiresGrad_().select(0, 0).mul_(2), /leaf that requires grad/],
    ['a view that was made under noGrad', (a: Tensor) => torch.noGrad(() => a.mul(1).narrow(0, 0, 1)).copy_(a.narrow(0, 0, 1)), /made inside noGrad/],
    [
      'a view of a detached tensor',
      (a: Tensor) =>
        a
          .mul(1)
          .detach()
          .narrow(0, 0, 1)
          .copy_(a.narrow(0, 0, 1)),
      /of a detached tensor/,
    ],
    ['a view with repeated elements', (a: Tensor) => torch.zeros([1]).expand([2]).copy_(a), /./],
  ])('are refused for %s', (_, write, message) => {
    const a = w()
    expect(() => write(a)).toThrow(message)
  })

  it('to a detached tensor give that one a history, and not what shares its memory', () => {
    const a = w()
    const z = torch.zeros([2])
    const apart = z.detach()
    apart.copy_(a)
    expect([z.requiresGrad, apart.requiresGrad, z.toArray()]).toEqual([false, true, [2, 3]])
    apart.sum().backward()
    expect(gradOf(a)).toEqual([1, 1])
  })

  it('of lists give the tensor behind them a history, as of any view (difference: list-views-writable)', () => {
    const a = w()
    const z = torch.zeros([2, 2])
    for (const row of z.unbind()) row.copy_(a)
    const [, right] = z.chunk(2, 1)
    right?.mul_(3)
    z.sum().backward()
    expect(gradOf(a)).toEqual([2, 6])
  })

  it('through operator.setitem, in eager mode and compiled', () => {
    const f = (a: Tensor): Tensor => {
      const z = torch.zeros([2, 2])
      operator.setitem(z, 0, a)
      operator.setitem(z, [1, 1], a.sum())
      return z.square().sum()
    }
    for (const run of [f, compile(f), compile(f, { backend: 'aot_eager' })]) {
      const a = w()
      run(a).backward()
      expect(gradOf(a)).toEqual([2 * 2 + 10, 2 * 3 + 10])
    }
  })

  it('under vmap, and in derivatives of derivatives', () => {
    const f = (a: Tensor): Tensor => {
      const z = a.mul(1)
      z.narrow(0, 0, 1).mul_(a.narrow(0, 1, 1))
      return z.square().sum()
    }
    const rows = torch.tensor([
      [2, 3],
      [4, 5],
    ])
    expect(vmap(grad(f))(rows).toArray()).toEqual(rows.unbind().map((row) => grad(f)(row).toArray()))
    expect(vmap(grad(f))(rows).toArray()).toEqual([
      [36, 30],
      [200, 170],
    ])
    expect((hessian(f)(torch.tensor([2, 3])) as Tensor).toArray()).toEqual([
      [18, 24],
      [24, 10],
    ])
  })
})
