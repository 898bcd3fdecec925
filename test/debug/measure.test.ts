// The numbers that comparisons stand on: errors, tolerances, the reference, and what a comparison prints.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { MemoryFileStore, compareBackends, compareGradients, drift, fileStore, findFirst, logNumerics, setFileStore } from 'tensorfx/debug'
import { Graph, GraphModule, operator, symbolicTrace } from 'tensorfx/fx'
import { registerBackend } from 'tensorfx/compile'
import { loadGraphModule, readSafetensors } from 'tensorfx/interop'
import { F } from 'tensorfx/nn'
import { errorOf, magnitudeOf, toleranceOf } from '../../src/debug/closeness/closeness.ts'
import { measure } from '../../src/debug/compare/measure.ts'
import { onnxSession } from '../../src/debug/compare/onnxRuntime.ts'
import { inFloat64 } from '../../src/debug/compare/float64.ts'
import { noiseOfNode } from '../../src/debug/compare/noise.ts'
import { ReferenceRun, taskOf, writesIn } from '../../src/debug/compare/reference.ts'
import { leastOf, move, movedBy } from '../../src/debug/closeness/rounding.ts'
import { textOf } from './inProcess.ts'

const t = torch.tensor
const wide = (...values: number[]): Tensor => t(values, { dtype: 'float64' })

describe('the error of a result', () => {
  it('is relative to the value beyond one, and to the size of the tensor below', () => {
    expect(errorOf(wide(0, 1, 99), t([0, 1, 100]), 1e-4)).toBeCloseTo(1 / (1 + 99), 6)
    expect(errorOf(wide(0.01, 0.01), t([0.01, 0.02]), 1e-4)).toBeCloseTo(0.5, 4)
    expect(errorOf(wide(1), t([1]), 1e-4)).toBe(0)
    // However small the values are.
    expect(errorOf(wide(1e-30, -1e-30), t([0, 0]), 1e-4)).toBeCloseTo(0.5, 4)
    expect(errorOf(wide(1e-40), t([0]), 1e-4)).toBeLessThanOrEqual(0.5e-4)
  })

  it('that rounding explains is at most half of the tolerance', () => {
    expect(errorOf(wide(0, 0), t([0, 9e-5]), 1e-3, { slack: 1e-4 })).toBe(5e-4)
    expect(errorOf(wide(0, 0), t([0, 2e-4]), 1e-3, { slack: 1e-4 })).toBe(Infinity)
    expect(errorOf(wide(1e-6, 1e-6), t([1e-6, 9e-6]), 1e-3, { slack: 1e-6 })).toBeCloseTo(4, 4)
    expect(errorOf(wide(1, 1), t([1, 1.0001]), 1e-3, { slack: 1 })).toBeCloseTo(0.5e-4, 6)
  })

  it('may be as in eager mode or as in float64 where only one of them overflows', () => {
    const huge = t([Infinity, Infinity, NaN])
    expect(errorOf(wide(1e39, 1, 2), huge, 1e-4, { eager: huge })).toBe(0)
    expect(errorOf(wide(1e39, 1, 2), t([3e38, 1, 2]), 1e-4, { eager: huge })).toBeGreaterThan(0.1)
    expect(errorOf(wide(1, 1, 2), t([1, 1, 2]), 1e-4, { eager: huge })).toBe(0)
    expect(errorOf(wide(1, 1, 2), t([1, -Infinity, 2]), 1e-4, { eager: huge })).toBe(Infinity)
    expect(errorOf(wide(1, 1, 2), t([1, 1, 2.01]), 1e-4, { eager: huge })).toBeCloseTo(0.01 / 3, 4)
    expect(errorOf(wide(1, 1, 2), t([1, 1, 3]), 1e-4, { eager: huge })).toBe(Infinity)
    // A finite value of eager kernels is no second right answer.
    expect(errorOf(wide(1), t([2]), 1e-4, { eager: t([2]) })).toBeCloseTo(0.5, 4)
  })

  it('is infinite at a NaN or an infinity that no run has in its place', () => {
    const runs = [wide(1, 2, 3), wide(1, Infinity, 3)]
    const error = (...got: number[]): number => errorOf(wide(1, 2, 3), t(got), 1e-4, { eager: wide(1, 2, 3), others: runs })
    expect([error(1, Infinity, 3), error(1, 2, 3)]).toEqual([0, 0])
    expect([error(1, NaN, 3), error(1, -Infinity, 3), error(NaN, 2, 3), error(1, 2, Infinity)]).toEqual([Infinity, Infinity, Infinity, Infinity])
    expect(error(1, 7, 3)).toBeGreaterThan(1)
  })

  it('may be eight times as far as runs that rounding has moved, at their place', () => {
    const others = [wide(1, 2.5, 3, 4, 5, 6, 7, 8, 9, 10, 11)]
    const want = wide(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
    const at = (place: number, by: number): number => {
      const got = want.toArray() as number[]
      return errorOf(want, t(got.with(place, (got[place] ?? NaN) + by), { dtype: 'float64' }), 1e-4, { others })
    }
    expect([at(1, 3.9), at(1, -3.9)]).toEqual([0.5e-4, 0.5e-4])
    expect(at(1, 4.1)).toBeCloseTo(4.1 / 3, 6)
    expect(at(2, 0.1)).toBeCloseTo(0.1 / 4, 6)
  })

  it('is the smallest of those from what is as right, at each place', () => {
    const alternatives = [wide(0, 7, NaN), wide(7, 0, 1)]
    const error = (...got: number[]): number => errorOf(wide(0, 0, 0), t(got), 1e-4, { alternatives })
    expect([error(7, 7, 1), error(0, 7, 0), error(7, 0, NaN)]).toEqual([0, 0, 0])
    expect(error(3, 0, 0)).toBeGreaterThan(1)
    expect([error(NaN, 0, 0), error(0, 0, Infinity)]).toEqual([Infinity, Infinity])
  })

  it('is infinite beside NaN and infinity, unless both have them', () => {
    expect(errorOf(wide(NaN, Infinity, -Infinity), t([NaN, Infinity, -Infinity]), 1e-4)).toBe(0)
    for (const [want, got] of [
      [NaN, 1],
      [1, NaN],
      [Infinity, 1],
      [1, -Infinity],
      [Infinity, -Infinity],
    ] as const)
      expect(errorOf(wide(1, want), t([1, got]), 1e-4)).toBe(Infinity)
  })

  it('of integers and bools is the difference, unless runs have smaller and larger ones at the place', () => {
    const ints = (...values: number[]): Tensor => t(values, { dtype: 'int64' })
    expect([errorOf(ints(100, 5), ints(103, 5), 1), errorOf(ints(100, 5), ints(103, 5), 1, { slack: 9 })]).toEqual([3, 3])
    expect(errorOf(t([true, false]), t([true, true]), 1e-4)).toBe(1)
    const others = [ints(104, 5), ints(98, 5)]
    const error = (...got: number[]): number => errorOf(ints(100, 5), ints(...got), 1, { others })
    expect([error(104, 5), error(98, 5), error(103, 5), error(105, 5), error(97, 5), error(100, 6)]).toEqual([0, 0, 0, 5, 3, 1])
    expect([
      errorOf(ints(100, 5), ints(102, 5), 1, { eager: ints(103, 5) }),
      errorOf(t([true]), t([false]), 1, { alternatives: [t([false])] }),
    ]).toEqual([0, 0])
    const big = t([9007199254740993n], { dtype: 'int64' })
    expect([errorOf(big, big.sub(1), 1), errorOf(big, big.clone(), 1)]).toEqual([1, 0])
  })

  it('has the tolerance of the dtype', () => {
    expect(toleranceOf('float32', 1e-4)).toBe(1e-4)
    expect(toleranceOf('float32', 1e-12)).toBeCloseTo(8 * 2 ** -23, 10)
    expect(toleranceOf('float16', 1e-4)).toBe(8 * 2 ** -10)
    expect([toleranceOf('int64', 1e-4), toleranceOf('bool', 5)]).toEqual([0, 0])
  })

  it('knows the magnitude of a tensor: the largest finite float', () => {
    expect(magnitudeOf(t([1, -7, NaN, Infinity]))).toBe(7)
    expect(magnitudeOf(t([99], { dtype: 'int64' }))).toBe(0)
  })
})

it('what rounding moves does not cross zero, and the smallest numbers may become zero', () => {
  const least = 2 ** -24
  expect([leastOf('float16'), movedBy(least, -least, 'float16'), movedBy(least, -3 * least, 'float16')]).toEqual([least, 0, 0])
  expect([movedBy(-least, 2 * least, 'float16'), movedBy(0, -least, 'float16', 1), movedBy(0, least, 'float16', 1)]).toEqual([0, 0, least])
  expect(movedBy(0.01, -0.02, 'float16')).toBeCloseTo(-0.01, 10)
  expect([movedBy(Infinity, -Infinity, 'float32'), movedBy(-Infinity, Infinity, 'float32')]).toEqual([Infinity, -Infinity])
  const small = t([1.5 * least, 0.5], { dtype: 'float16' })
  const runs = [1, 2, 3, 4].map((seed) => {
    const copy = small.clone()
    move(copy, seed, 4)
    return copy.toTypedArray()[0]
  })
  expect(new Set(runs).size).toBeGreaterThan(1)
})

const NOTHING = { reason: null, rule: null, thrown: null }

describe('a measured node', () => {
  const one = [t([1, 2])]
  const want = [wide(1, 2)]
  const slack = (): readonly number[] => [0, 0, 0]
  const measured = (wanted: readonly Tensor[], like: readonly Tensor[], got: readonly Tensor[], tol = 1e-4): ReturnType<typeof measure> =>
    measure({ want: wanted, like, slack }, got, tol)

  it('is right, or differs by an error', () => {
    expect(measured(want, one, one)).toEqual({ status: 'ok', error: 0, rate: 0, ...NOTHING })
    const near = measured(want, one, [t([1, 2.0001])])
    expect([near.status, near.error > 1e-5 && near.error < 1e-4, near.reason]).toEqual(['ok', true, null])
    expect(measured(want, one, [t([1, 2.1])])).toMatchObject({ status: 'differs', rate: 1, error: expect.closeTo(0.1 / 3, 4) as number })
  })

  it('asks what rounding explains only beyond the tolerance', () => {
    let asked = 0
    const some = (): readonly number[] => [(asked++, 0.2)]
    expect([measure({ want, like: one, slack: some }, one, 1e-4).status, asked]).toEqual(['ok', 0])
    expect([measure({ want, like: one, slack: some }, [t([1, 2.1])], 1e-4).status, asked]).toEqual(['ok', 1])
    expect(measure({ want, like: one, slack: some }, [t([1, 2.3])], 1e-4).status).toBe('differs')
  })

  it('differs by number, shape and dtype of its results', () => {
    const differs = (reason: string): object => ({ ...NOTHING, status: 'differs', error: Infinity, reason, rate: 1 })
    expect(measured(want, one, [])).toEqual(differs('0 tensors instead of 1'))
    expect(measured(want, one, [t([[1, 2]])])).toEqual(differs('shape [1, 2] instead of [2]'))
    expect(measured(want, one, want)).toEqual(differs('dtype float64 instead of float32'))
  })

  it('with several results has the error of the worst', () => {
    const like = [t([1]), t([1]), t([1])]
    const got = [t([1.5]), t([3]), t([1])]
    const right = [wide(1), wide(1), wide(1)]
    expect(measured(right, like, got)).toMatchObject({ status: 'differs', error: 1 })
    expect(measured(right, like, got.toReversed())).toMatchObject({ status: 'differs', error: 1 })
    // A dtype with fewer digits may be farther away, and does not hide another one.
    const half = [t([1]).half(), t([1])]
    expect(measured([wide(1), wide(1)], half, [t([1.006]).half(), t([1.004])]).status).toBe('differs')
    expect(measured([wide(1), wide(1)], half, [t([1.006]).half(), t([1])]).status).toBe('ok')
  })
})

describe('the reference', () => {
  const chain = symbolicTrace((a: Tensor) => torch.mul(torch.sin(a), 3).sum())
  const x = t([0.1, 0.2, 0.3])

  it('computes each node in float64, on inputs that were rounded to their dtypes', () => {
    const run = new ReferenceRun(chain, 'float64')
    run.walk([x])
    expect(run.steps.map((step) => [step.node.name, step.want[0]?.dtype, step.like[0].dtype, step.isRandom])).toEqual([
      ['sin', 'float64', 'float32', false],
      ['mul', 'float64', 'float32', false],
      ['sum_1', 'float64', 'float32', false],
    ])
    expect(run.steps[0]?.want[0]?.toArray()).toEqual([...x.toTypedArray()].map(Math.sin))
    const rounded = [...x.toTypedArray()].map((value) => Math.fround(Math.sin(value)))
    expect(run.steps[1]?.inputs[0]?.toArray()).toEqual(rounded)
    expect(run.steps[1]?.want[0]?.toArray()).toEqual(rounded.map((value) => 3 * value))
    const eager = new ReferenceRun(chain, 'eager')
    eager.walk([x])
    expect(eager.steps.map((step) => step.want[0] === step.like[0])).toEqual([true, true, true])
  })

  it('leaves out what gives no tensor or takes a part; random numbers are drawn in the dtypes of the graph', () => {
    const gm = symbolicTrace((a: Tensor) => operator.getitem(torch.split(F.dropout(a, { p: 0.5 }), 1), 0))
    const run = new ReferenceRun(gm, 'float64')
    run.walk([x])
    expect(run.steps.map((step) => [step.node.name, step.isRandom, step.want === step.like])).toEqual([
      ['dropout', true, true],
      ['split', false, false],
    ])
  })

  it('gives one input for a tensor that is taken twice, and constants for what is none', () => {
    const run = new ReferenceRun(
      symbolicTrace((a: Tensor) => torch.add(a, a, { alpha: 2 })),
      'float64',
    )
    run.walk([x])
    const [step] = run.steps
    expect([step?.inputs.length, [...(step?.gm.graph.nodes ?? [])].map((node) => node.name), step?.want[0]?.toArray()]).toEqual([
      1,
      ['in_1', 'add', 'output'],
      [...x.toTypedArray()].map((value) => 3 * value),
    ])
  })

  it('computes integers as they are', () => {
    const gm = symbolicTrace((a: Tensor) => torch.mul(a, 2))
    expect(inFloat64(gm, [t([3], { dtype: 'int64' })]).map((value) => [value.dtype, value.toArray()])).toEqual([['int64', [6]]])
  })

  it('knows what rounding explains: little for a product, more where terms cancel, nothing for the step of a function', () => {
    const slackOf = (fn: (a: Tensor) => unknown, a: Tensor): number => {
      const gm = symbolicTrace(fn)
      const run = new ReferenceRun(gm, 'float64')
      run.walk([a])
      return run.steps.at(-1)?.slack?.()[0] ?? NaN
    }
    const eps = 2 ** -23
    expect(slackOf((a) => a.mul(1e-6), t([1, 2]))).toBeGreaterThan(2e-6 * eps)
    expect(slackOf((a) => a.mul(1e-6), t([1, 2]))).toBeLessThan(50e-6 * eps)
    expect(slackOf((a) => a.sum(), t([1e4, -1e4, 1, -1]))).toBeGreaterThan(1e4 * eps)
    expect(slackOf((a) => a.sum(), t([1e4, -1e4, 1, -1]))).toBeLessThan(1e6 * eps)
    expect(slackOf((a) => a.floor(), t([2, 3]))).toBe(0)
    expect(slackOf((a) => a.gt(1), t([1, 1]))).toBe(0)
    const exact = symbolicTrace((a: Tensor) => a.sum())
    expect(noiseOfNode(exact, [t([1, 2])], [t([3])], [t([3])])[0]?.[0]).toBeGreaterThan(0)
    // A zero of relu is no sum that happens to cancel: no element of it moves.
    const relu = symbolicTrace((a: Tensor) => torch.relu(a))
    const [noise] = noiseOfNode(relu, [t([-1, 2])], [t([0, 2])], [t([0, 2])])
    expect([noise?.[0], (noise?.[1] ?? 0) > 0]).toEqual([0, true])
  })

  it('of a whole graph knows what the roundings of its nodes come to, and which integers they decide', () => {
    /** How far the runs of a graph are from what it should give. */
    const spread = (fn: (a: Tensor) => unknown, a: Tensor): number => {
      const { want, runs } = taskOf(symbolicTrace(fn), [a], 'float64')
      const distance = (values: readonly Tensor[]): number =>
        Math.max(
          ...values.map((value, i) =>
            value
              .to('float64')
              .sub(want[i]?.to('float64') ?? NaN)
              .abs()
              .max()
              .item(),
          ),
        )
      return Math.max(...((runs?.() ?? []) as (readonly Tensor[])[]).map(distance))
    }
    // A sum whose terms cancel, and then grows.
    const grown = spread((a) => a.mul(1.1).sum().mul(1e6), t([1e4, -1e4, 0.3]))
    expect(grown).toBeGreaterThan(0.1)
    expect(grown).toBeLessThan(1e5)
    // Whether the largest of two equal products is the first depends on their last bits; that of different ones does not.
    expect(spread((a) => a.mul(1.1).argmax(), t([1, 5, 3]))).toBe(0)
    expect(spread((a) => a.mul(1.1).sin().argmax(), t([1, 1, 1, 1, 1]))).toBeGreaterThan(0)
    // Exact values stay as they are.
    expect(spread((a) => a.gt(0).float().eq(1), t([1, -1]))).toBe(0)
    // A quotient that is whole may round to the next lower one.
    expect(spread((a) => a.div(7).floor(), t([21, 8]))).toBeCloseTo(1, 5)
  })

  it('knows what a graph changes of its inputs and its buffers, and changes nothing itself', () => {
    const a = t([1, 2])
    const { inputsAfter, want } = taskOf(
      symbolicTrace((b: Tensor) => torch.mul(b.add_(1), 3)),
      [a],
      'float64',
    )
    expect([...inputsAfter].map(([i, value]) => [i, value.toArray()])).toEqual([[0, [2, 3]]])
    expect([want[0]?.toArray(), a.toArray()]).toEqual([
      [6, 9],
      [1, 2],
    ])
  })

  it('knows a write that is read later by another name', () => {
    const name = (fn: (a: Tensor) => unknown): string | undefined => writesIn(symbolicTrace(fn), [x]).shared?.name
    expect(name((a) => torch.sin(a))).toBeUndefined()
    expect(name((a) => a.mul(2).relu_())).toBeUndefined()
    expect(
      name((a) => {
        const b = a.mul(2)
        const c = b.view(-1)
        b.add_(5)
        return c
      }),
    ).toBe('add_')
    expect(
      name((a) => {
        a.add_(1)
        return torch.sin(a)
      }),
    ).toBe('add_')
    const { shared, overwritten } = writesIn(
      symbolicTrace((a: Tensor) => a.mul(2).relu_()),
      [x],
    )
    expect([shared, [...overwritten]]).toEqual([null, ['mul']])
    expect(x.toArray()).toEqual([...x.toTypedArray()])
  })
})

describe('what a comparison prints', () => {
  const gm = symbolicTrace((a: Tensor) => torch.sum(torch.relu(torch.mul(a, 2))))
  const x = t([0.5, -1])
  const wrong = 'relu_accuracy_error_TESTING_ONLY'

  it('is a table of errors, with a star at those beyond the tolerance, and the culprits', async () => {
    const result = await compareBackends(gm, [x], { backends: ['eager', wrong] })
    expect(String(result)).toBe(
      [
        'node   target      value        eager  relu_accuracy_error_TESTING_ONLY',
        '-----  ----------  -----------  -----  --------------------------------',
        'mul    torch.mul   float32 [2]  0      0',
        'relu   torch.relu  float32 [2]  0      1.4e+0 *',
        'sum_1  torch.sum   float32 []   0      0',
        '',
        'eager: no node differs',
        `${wrong}: 'relu' differs (error 1.4e+0; found alone)`,
      ].join('\n'),
    )
    expect(result.first).toMatchObject({ backend: wrong, found: 'alone' })
    expect(result.inputs.map((input) => (input as Tensor).toArray())).toEqual([[0.5, -1]])
  })

  it('names another shape, and what failed', async () => {
    const shape = function flattened(part: GraphModule) {
      return (...inputs: never[]) => {
        const names = [...part.graph.nodes].map((node) => node.name)
        if (names.includes('mul')) throw new RangeError('no mul')
        return (part.forward(...inputs) as Tensor).reshape([1, -1])
      }
    }
    const result = await compareBackends(gm, [x], { backends: [shape] })
    expect(String(result)).toContain("flattened: 'relu' differs (shape [1, 2] instead of [2]; found alone)")
    expect(result.rows.map((row) => row.alone.get('flattened')?.reason)).toEqual([
      'RangeError: no mul',
      'shape [1, 2] instead of [2]',
      'shape [1, 1] instead of []',
    ])
    expect(String(result)).toMatch(/^mul .* failed$/m)
    expect(String(result)).toMatch(/^relu .* Infinity \*$/m)
  })

  it('says when the whole graph cannot be run', async () => {
    const alone = function whole(part: GraphModule) {
      if (part.graph.nodes.length > 3) throw new RangeError('too large')
      return part
    }
    const result = await compareBackends(gm, [x], { backends: [alone] })
    expect(result.notes).toEqual(['whole: the graph with all values as outputs could not be run: RangeError: too large'])
    expect(String(result).split('\n').at(-1)).toBe(result.notes[0])
    const parts = await compareBackends(gm, [x], { backends: [alone], whole: false })
    expect([parts.notes, parts.first]).toEqual([[], null])
  })

  it('gives a registered backend a graph of operators, with the weights as inputs after its own', async () => {
    const seen: string[][] = []
    registerBackend('sees_weights', (graph, examples) => {
      const inputs = graph.graph.findNodes({ op: 'placeholder' })
      expect(inputs.map((node) => (node.meta['val'] as { shape: readonly number[] } | undefined)?.shape)).toEqual(
        examples.map((value) => (value as Tensor).shape),
      )
      seen.push(inputs.map((node) => node.name))
      return graph
    })
    const weight = t([2, 3])
    const model = symbolicTrace((a: Tensor, b: Tensor) => torch.add(torch.mul(a, weight), torch.mul(b, weight)))
    const result = await compareBackends(model, [x, t([1, 2])], { backends: ['sees_weights'] })
    expect(result.first).toBeNull()
    expect(seen.at(-1)?.slice(-1)).toEqual(['_tensor_constant0'])
    expect(seen.at(-1)).toHaveLength(3)
    const constant = await compareBackends(
      symbolicTrace(() => torch.neg(weight)),
      [],
      { backends: ['sees_weights'] },
    )
    expect(constant.first).toBeNull()
  })

  it('shows the larger of two errors: of a node alone, and in the graph', async () => {
    const nearly = function nearly(part: GraphModule) {
      const isWhole = part.graph.nodes.length > 4
      return (...inputs: never[]) => {
        const out: unknown = part.forward(...inputs)
        return isWhole && Array.isArray(out) ? out.map((value, i) => (i === 1 ? (value as Tensor).add(1e-5) : (value as Tensor))) : (out as Tensor)
      }
    }
    const result = await compareBackends(gm, [x], { backends: [nearly] })
    expect(result.first).toBeNull()
    expect(String(result)).toMatch(/^relu .* 1.4e-5$/m)
    expect(String(result)).toMatch(/^mul .* 0$/m)
  })

  it('takes functions without a name', async () => {
    const result = await compareBackends(gm, [x], { backends: [(part) => part] })
    expect([...result.culprits]).toEqual([['backend', null]])
  })

  it('compares with eager kernels, if that is the reference', async () => {
    const rounding = function rounded(part: GraphModule) {
      return (...inputs: never[]) => (part.forward(...inputs) as Tensor).add(1e-7)
    }
    const both = symbolicTrace((a: Tensor) => torch.sin(torch.exp(a)))
    const errors = async (reference: 'eager' | 'float64'): Promise<unknown[]> => {
      const { rows } = await compareBackends(both, [x], { backends: [(part) => part], reference })
      return rows.map((row) => row.inGraph.get('backend')?.error)
    }
    expect(await errors('eager')).toEqual([0, 0])
    expect(await errors('float64')).not.toContain(0)
    const exact = await compareBackends(gm, [x], { backends: ['eager'], reference: 'eager' })
    expect(exact.rows.map((row) => row.alone.get('eager')?.error)).toEqual([0, 0, 0])
    const result = await compareBackends(
      symbolicTrace((a: Tensor) => torch.exp(a)),
      [t([5.1])],
      { backends: ['eager', rounding], reference: 'eager', whole: false },
    )
    expect(result.rows[0]?.alone.get('eager')?.error).toBe(0)
  })

  it('minifies, and writes a folder with graph, inputs and a script that compares them', async () => {
    const before = fileStore()
    const store = new MemoryFileStore()
    setFileStore(store)
    try {
      const result = await compareBackends(gm, [x], { backends: [wrong], tol: 0.01 })
      const lines: string[] = []
      const module = 'data:text/javascript,'
      const small = await result.minify(wrong, { directory: '/out', module, print: (line) => void lines.push(line) })
      expect(small.path).toBe('/out/compare.mjs')
      expect(lines.at(-1)).toMatch(/^Made \d+ queries$/)
      const loaded = loadGraphModule(store.files.get('/out/graph.safetensors') ?? new Uint8Array())
      expect([...loaded.graph.nodes].map((node) => node.name)).toEqual(['mul', 'relu', 'output'])
      const { tensors } = readSafetensors(store.files.get('/out/inputs.safetensors') ?? new Uint8Array())
      expect([...tensors].map(([name, value]) => [name, value.toArray()])).toEqual([['input_0', [1]]])
      const script = textOf(store, '/out/compare.mjs')
      expect(script).toContain(`const backends = ['${module}#${wrong}']`)
      expect(script).toContain("{ backends, reference: 'float64', tol: 0.01 }")
      const plain = await result.minify(wrong, { directory: '/plain' })
      expect(textOf(store, plain.path ?? '')).toContain(`const backends = ['${wrong}']`)
      expect(textOf(store, plain.path ?? '')).toContain('const [isWrong] = backends.map(')
      await expect(result.minify(wrong, { folder: '/out' } as never)).rejects.toThrow(/folder/)
      await expect(result.minify('eager')).rejects.toThrow(`minify: 'eager' was not compared; it was '${wrong}'.`)
    } finally {
      setFileStore(before)
    }
  })

  it('has nothing to minify where the outputs agree', async () => {
    const result = await compareBackends(gm, [x], { backends: ['eager'] })
    await expect(result.minify('eager')).rejects.toThrow('Input graph did not fail the tester')
  })
})

describe('onnxSession', () => {
  it('runs a graph on its tensors: floats, integers, bools, inputs that are not used', async () => {
    const gm = symbolicTrace((a: Tensor, b: Tensor, m: Tensor, _unused: Tensor) => [torch.where(m, a, torch.mul(a, 2)), torch.add(b, 1)])
    const inputs = [t([1, 2]), t([3, 4], { dtype: 'int64' }), t([true, false]), t([9])]
    const session = await onnxSession(gm, inputs)
    try {
      const results = await session.run(...inputs)
      expect(results.map((value) => [value.dtype, value.toArray()])).toEqual([
        ['float32', [1, 4]],
        ['int64', [4, 5]],
      ])
      await expect(session.run(t([1, 2]))).rejects.toThrow('The exported graph takes 4 tensors, got 1.')
    } finally {
      await session.release()
    }
    await expect(onnxSession(gm, inputs, { provider: 'wasm' } as never)).rejects.toThrow(/provider/)
  })
})

describe('numbers node by node', () => {
  it('of drift are clones, several by number, and differ by dtype', () => {
    const two = symbolicTrace((a: Tensor) => torch.split(a, 1)[0])
    const graph = new Graph()
    const pair = graph.callFunction(torch.split, [graph.placeholder('a'), 1])
    graph.output(graph.callFunction(operator.getitem as never, [pair, 0]))
    const gm = new GraphModule({}, graph)
    const result = drift({ gm, inputs: [t([1, 2])] }, { gm, inputs: [t([1, 2], { dtype: 'float64' })] })
    expect(result.rows.map(({ name, reason, differs }) => [name, reason, differs])).toEqual(
      ['a', 'split[0]', 'split[1]', 'getitem'].map((name) => [name, 'float32 and float64', false]),
    )
    expect(two).toBeInstanceOf(GraphModule)
    const written = symbolicTrace((a: Tensor) => {
      const b = torch.mul(a, 2)
      return b.add_(1)
    })
    const rows = drift({ gm: written, inputs: [t([1])] }, { gm: written, inputs: [t([1])] }).rows
    expect(rows.map((row) => row.error)).toEqual([0, 0, 0])
  })

  it('of drift have the tolerance that is asked for, and print what only one run has', () => {
    const a = { gm: symbolicTrace((x: Tensor) => torch.mul(x, 2)), inputs: [t([1])] }
    const b = { gm: symbolicTrace((x: Tensor) => torch.sin(torch.mul(x, 2.001))), inputs: [t([1])] }
    expect(drift(a, b).first?.name).toBe('mul')
    const wider = drift(a, b, { tol: 0.01 })
    expect([wider.first, wider.onlyBefore, wider.onlyAfter]).toEqual([null, [], ['sin']])
    expect(String(wider)).toBe('name  error\n----  ------\nx     0\nmul   3.3e-4\nonly in the second: sin')
    expect(() => drift(a, b, { tolerance: 1 } as never)).toThrow(/tolerance/)
    expect(() => drift(a, b, { tol: '1' as never })).toThrow(/tol/)
    expect(() => drift(a, null as never)).toThrow(/^drift: .*after/)
    expect(() => drift(a, { gm: 3 as never, inputs: [] })).toThrow(/^drift: .*GraphModule/)
  })

  it('of findFirst have an index in each dimension', () => {
    const gm = symbolicTrace((a: Tensor) => torch.log(a))
    const x = torch.ones([2, 3, 4])
    x.select(0, 1).select(0, 2).select(0, 3).fill_(-1)
    expect(findFirst(gm, [x], isNaN)).toMatchObject({ index: [1, 2, 3], element: NaN })
    expect(findFirst(gm, [t([1, 2], { dtype: 'int64' })], (v) => v === 2)).toMatchObject({ index: [1], element: 2 })
    expect(() => findFirst(gm, 3 as never, isNaN)).toThrow(/inputs/)
  })

  it('of a run that throws are an error', () => {
    const gm = symbolicTrace((a: Tensor) => torch.matmul(a, torch.ones([2, 2])))
    expect(() => logNumerics(gm, [torch.ones([3, 3])])).toThrow(/matmul/)
    expect(() => logNumerics(3 as never, [])).toThrow(/GraphModule/)
  })

  it('of gradients need models that can be called', () => {
    expect(() => compareGradients(3 as never, () => 1, [])).toThrow(/before/)
    expect(() => compareGradients(() => 1, 3 as never, [])).toThrow(/after/)
    expect(() =>
      compareGradients(
        () => 1,
        () => 1,
        3 as never,
      ),
    ).toThrow(/inputs/)
    expect(() =>
      compareGradients(
        () => 1,
        () => 1,
        [],
        { tol: 0 },
      ),
    ).toThrow(/compareGradients.*tol/)
  })
})
