// Compiled graphs that are kept for later processes: what is found is the program that the stages make, and what follows from other things than the text says is not kept. Drawn programs:
// npm run fuzz:compile -- --kept.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { memoryStore } from '../../scripts/fuzz/memoryStore.mjs'
import { makeFx } from '../../src/entries/aot.ts'
import { onEvent } from '../../src/events/index.ts'
import type { GraphModule } from '../../src/fx/index.ts'
import { torch } from '../../src/index.ts'
import type { Tensor } from '../../src/index.ts'
import { compileFx, defineTemplate, onCompile, registerTemplate } from '../../src/inductor/index.ts'
import type { CompiledGraph } from '../../src/inductor/index.ts'
import { call, withComputing, withFailingAllocation } from '../../src/kernels/index.ts'
import { convolutionBackward, defineCustomOp, registerOp } from '../../src/ops/index.ts'
import { withDefaultDtype } from '../../src/tensor/index.ts'
import { setVerification } from '../../src/pipeline/index.ts'
import { setResultStore } from '../../src/protocol/index.ts'

const { functional: F } = torch.nn
type Fn = (...tensors: Tensor[]) => unknown

let memory = memoryStore()
let verified = false
beforeEach(() => {
  memory = memoryStore()
  setResultStore(memory.store)
  // What is verified is compiled.
  verified = setVerification(false)
  torch.manualSeed(7)
})
afterEach(() => {
  setResultStore(null)
  setVerification(verified)
})

const traced = (f: Fn, inputs: readonly Tensor[], writeBacks?: ReadonlyMap<number, number>): GraphModule => {
  const gm = makeFx(f)(...inputs)
  if (writeBacks !== undefined) gm.meta['writeBacks'] = writeBacks
  return gm
}

/** Compiles a function twice: the second time it is found. */
function both(f: Fn, inputs: readonly Tensor[]): readonly [CompiledGraph, CompiledGraph] {
  const gm = traced(f, inputs)
  const [made, found] = [compileFx(gm, inputs), compileFx(gm, inputs)]
  expect(memory.counts).toEqual({ found: 1, kept: 1 })
  return [made, found]
}

const bitsOf = (results: readonly unknown[]): unknown =>
  results.map((result) => (result instanceof torch.Tensor ? [result.dtype, result.shape, result.stride(), result.contiguous().toArray()] : result))

/** What is said of a program, but for its name. */
const saidOf = ({ source, kernels, arenaBytes, writtenInPlace, isProgram }: CompiledGraph): unknown =>
  JSON.parse(JSON.stringify([source, kernels, arenaBytes, [...writtenInPlace], isProgram?.()]).replaceAll(/compiled_graph_\d+/g, 'compiled_graph'))

const randn = (...shape: number[]): Tensor => torch.randn(shape)

const programs: readonly (readonly [string, Fn, () => Tensor[]])[] = [
  ['pointwise, with several results and a view', (x, y) => [x.mul(y).tanh(), x.add(1).t(), 3], () => [randn(5, 7), randn(5, 7)]],
  ['reductions of other layouts', (x) => [x.t().sum(1), x.softmax(0), x.amax([0, 1])], () => [randn(40, 33)]],
  ['products with what follows', (x, w, b) => F.gelu(F.linear(x, w, b)).mm(w), () => [randn(37, 41), randn(41, 41), randn(41)]],
  ['convolutions and their gradients', conv, () => [randn(2, 16, 14, 14), randn(16, 16, 3, 3), randn(2, 16, 14, 14)]],
  ['operators without loops', (x) => [...(x.sort(1) as readonly unknown[]), torch.linalg.svdvals(x), x.relu().cumsum(0)], () => [randn(6, 5)]],
  ['complex numbers', (x, y) => [torch.complex(x, y).mul(torch.complex(y, x)), torch.complex(x, y).abs()], () => [randn(9), randn(9)]],
  ['a constant and a range', () => [torch.full([3], 2.5), torch.arange(7).mul(2)], () => []],
  ['one operator', (x) => x.relu(), () => [randn(4)]],
]

/** A convolution with what follows, and its gradients. */
function conv(x: Tensor, w: Tensor, g: Tensor): unknown {
  const y = F.conv2d(x, w, null, 1, 1)
  const [gx, gw] = [true, false].map((needInput) => {
    const [ofImage, ofWeight] = convolutionBackward(g, x, w, [1, 1], [1, 1], [1, 1], 1, needInput, !needInput)
    return needInput ? ofImage : ofWeight
  })
  return [y.relu(), gx, gw]
}

describe.each(programs)('%s', (_, f, inputsOf) => {
  test('is the program that the stages make, and computes the same at each of ten calls', () => {
    const inputs = inputsOf()
    const [made, found] = both(f, inputs)
    expect(saidOf(found)).toEqual(saidOf(made))
    expect([found.stages.length, made.stages.length > 0]).toEqual([0, true])
    // Weights that stay are packed after a few calls.
    for (let i = 0; i < 10; i++) expect(bitsOf(found(...inputs))).toEqual(bitsOf(made(...inputs)))
  })
})

test('where there is no room for scratch memory, the kernels that need none run, or memory is out, as in the program that the stages make', () => {
  const inputs = [randn(70, 130), randn(130, 150)]
  const [made, found] = both((a, b) => a.mm(b).relu(), inputs)
  made(...inputs)
  let failures = 0
  for (let nth = 1; ; nth++) {
    const [first, second] = [made, found].map((run) => {
      torch.memory.emptyCache()
      const { failed, outcome } = withFailingAllocation(nth, () => run(...inputs))
      return { failed, outcome: 'threw' in outcome ? String(outcome.threw) : bitsOf(outcome.returned) }
    })
    expect(second).toEqual(first)
    if (first?.failed !== true) break
    failures++
  }
  expect(failures).toBeGreaterThan(1)
})

describe('is not kept, nor found', () => {
  const [x, y] = [torch.ones([3]), torch.ones([3])]
  const compileTwice = (f: Fn): void => {
    const gm = traced(f, [x, y])
    for (let i = 0; i < 2; i++) compileFx(gm, [x, y])
    expect(memory.counts).toEqual({ found: 0, kept: 0 })
  }

  test('with an operator that a program has defined, whose rules may be others in another process', () => {
    const twice = defineCustomOp({
      schema: 'kept_twice(Tensor self) -> Tensor',
      namespace: 'torch.ops.kept',
      pointwise: { promotion: 'promote', compute: (value) => call('add', value, value) },
    })
    registerOp(twice)
    compileTwice((a) => (twice as (t: Tensor) => Tensor)(a).relu())
  })

  test('with templates that a program has added', () => {
    const match = vi.fn(() => null)
    const never = { match, spec: () => ({ out: { shape: [], dtype: 'float32' as const }, iter: [], reads: [] }), emit: () => ({}) as never }
    const remove = registerTemplate(defineTemplate({ name: 'never', ops: [torch.mm], ...never }))
    compileTwice((a, b) => a.mul(b))
    remove()
  })

  test('while someone listens to events or looks at stages, which all run', () => {
    const kinds: string[] = []
    const stopEvents = onEvent((event) => void kinds.push(event.kind))
    compileTwice((a, b) => a.mul(b))
    stopEvents()
    expect(kinds.filter((kind) => kind === 'lower')).toHaveLength(2)
    const stages: string[] = []
    const stopStages = onCompile({ after: ({ name }) => void stages.push(name) })
    compileTwice((a, b) => a.mul(b))
    stopStages()
    expect(stages.filter((name) => name === 'lower')).toHaveLength(2)
  })
})

test('texts tell apart whatever makes another program', () => {
  const relu: Fn = (a) => a.relu()
  const add =
    (number: number): Fn =>
    (a) =>
      a.add(number)
  const cases: readonly (readonly [Fn, readonly Tensor[], ReadonlyMap<number, number>?])[] = [
    ...[torch.ones([4, 6]), torch.ones([6, 4]), torch.ones([6, 4]).t(), torch.ones([4, 6], { dtype: 'float64' })].map((a) => [relu, [a]] as const),
    [relu, [torch.ones([4, 6])], new Map([[0, 0]])],
    [(a) => a.abs(), [torch.ones([4, 6])]],
    ...[0, -0, 1, 1 + Number.EPSILON, NaN, Infinity, -Infinity].map((number) => [add(number), [torch.ones([4])]] as const),
    ...[[0], [1], [0, 1]].map((dims) => [(a: Tensor) => a.sum(dims), [torch.ones([4, 6])]] as const),
    [(a, b) => a.sub(b), [torch.ones([4]), torch.ones([4])]],
    [(a, b) => b.sub(a), [torch.ones([4]), torch.ones([4])]],
  ]
  const compileAll = (): void => {
    for (const [f, inputs, writeBacks] of cases) compileFx(traced(f, inputs, writeBacks), inputs)
  }
  compileAll()
  for (const how of [{ accuracy: 'strict' }, { engine: 'wasm' }, { emitter: 'wasm' }] as const) withComputing(how, compileAll)
  withDefaultDtype('float64', compileAll)
  expect(memory.counts).toEqual({ found: 0, kept: 5 * cases.length })
  compileAll()
  expect(memory.counts.found).toBe(cases.length)
})

test('a number that is given at each call is no part of the text, but for its kind', () => {
  const x = torch.ones([4, 6])
  const gm = makeFx((a: Tensor, rate: number) => a.mul(rate))(x, 0.5)
  const graph = gm.graph
  const [, rate] = graph.findNodes({ op: 'placeholder' })
  const [mul] = [...graph.nodes].filter(({ op }) => op === 'call_function')
  if (rate === undefined || mul === undefined) throw new Error('the graph has no number')
  mul.args = [mul.args[0] ?? null, rate]
  gm.recompile()
  const results = [0.5, 0.25, 2].map((number) => compileFx(gm, [x, number])(x, number))
  expect(results.map(([result]) => (result as Tensor).sum().item())).toEqual([12, 6, 48])
  expect(memory.counts).toEqual({ found: 1, kept: 2 })
})
