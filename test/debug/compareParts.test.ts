// Parts of a comparison by themselves: what rounding moves, which nodes are steps, what eager is asked, how halves of a joint graph are judged together.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compareBackends } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import type { Backend } from '../../src/dynamo/index.ts'
import { movedRuns, slackOf } from '../../src/debug/compare/noise.ts'
import type { Computed } from '../../src/debug/compare/noise.ts'
import { taskOf } from '../../src/debug/compare/reference.ts'

const t = torch.tensor
const wide = (...values: number[]): Tensor => t(values, { dtype: 'float64' })
const numbers = (value: Tensor | undefined): number[] => [...(value?.to('float64').toTypedArray() ?? [])].map(Number)

describe('what rounding moves', () => {
  const state = torch.getRngState()
  const eps = 2 ** -23
  /** How far the values of the first node are moved in each run, in units of the last place of each. */
  function moved(gm: GraphModule, x: Tensor, node: string, computed: Computed, place = 0): readonly (readonly number[])[] {
    const plain = numbers((gm.forward(x as never) as readonly Tensor[])[place])
    return movedRuns(gm, [x], new Map([[node, computed]]), state).map((results) =>
      numbers(results[place]).map((value, i) => (value - (plain[i] ?? NaN)) / (eps * Math.abs(plain[i] ?? NaN))),
    )
  }
  const scaled = symbolicTrace((x: Tensor) => [torch.mul(x, 1.1)])

  it('is each value that is not exact, by a unit in its last place or by what is known of its node, in several directions', () => {
    const x = t([1, 100, 3])
    const exact = numbers(scaled.forward(x as never)[0 as never] as Tensor)
    const some = moved(scaled, x, 'mul', { want: [wide(1.1, 110, exact[2] ?? NaN)], noise: () => [new Float64Array([0, 110e-3, 0])] })
    expect(some).toHaveLength(4)
    for (const [first = NaN, second = NaN, third] of some) {
      expect([Math.abs(first) > 0.4, Math.abs(first) < 1.6, third]).toEqual([true, true, 0])
      expect(Math.abs(second) * eps).toBeCloseTo(1e-3, 4)
    }
    expect(new Set(some.map(([first = NaN]) => Math.sign(first)))).toEqual(new Set([-1, 1]))
    // What no node is known of stays as it is.
    expect(moved(scaled, x, 'other', { want: [], noise: () => [] })).toEqual([
      [0, 0, 0],
      [0, 0, 0],
      [0, 0, 0],
      [0, 0, 0],
    ])
    // In the reference's own dtype whole numbers are exact.
    const same = moved(
      symbolicTrace((a: Tensor) => [torch.mul(a, 1)]),
      t([2, 2.5]),
      'mul',
      { want: [t([2, 2.5])], noise: () => [new Float64Array(2)] },
    )
    expect(same.map(([whole, part = NaN]) => [whole, Math.abs(part) > 0.4])).toEqual([
      [0, true],
      [0, true],
      [0, true],
      [0, true],
    ])
  })

  it('is each of several results, and no integer', () => {
    const parts = symbolicTrace((x: Tensor) => torch.split(x, 1))
    const [want, noise] = [[wide(0.1), wide(0.2), wide(0.3)], (): Float64Array[] => [0.01, 0.02, 0.03].map((value) => new Float64Array([value]))]
    for (const place of [0, 1, 2])
      for (const [by = NaN] of moved(parts, t([0.1, 0.2, 0.3]), 'split', { want, noise }, place)) expect(Math.abs(by) * eps).toBeCloseTo(0.1, 3)
    const ints = movedRuns(
      symbolicTrace((x: Tensor) => [torch.mul(x, 2)]),
      [t([1, 2], { dtype: 'int64' })],
      new Map([['mul', { want: [wide(9, 9)], noise: () => [new Float64Array([5, 5])] }]]),
      state,
    )
    expect(ints.map(([result]) => numbers(result))).toEqual([
      [2, 4],
      [2, 4],
      [2, 4],
      [2, 4],
    ])
  })

  it('allows eight times of the most that it comes to in any element of a node', () => {
    expect(slackOf([new Float64Array([1, 3, 2]), new Float64Array(0)])).toEqual([24, 0])
  })

  it('has quotients on both sides of a whole number, unless nothing rounds there', () => {
    const alternatives = (fn: (x: Tensor) => Tensor, x: Tensor): number[][] => {
      const { step } = taskOf(
        symbolicTrace((a: Tensor) => fn(a)),
        [x],
        'float64',
      ).run.steps.map((one) => ({ step: one }))[0] ?? { step: null }
      return (step?.alternatives?.() ?? []).map(([result]) => numbers(result))
    }
    // 49 and 7 may be just below whole multiples of 7, and 48 may not; multiples of 4 are exact.
    const sevenths = alternatives((x) => x.fmod(7), t([49, 7, 48, 0]))
    expect(sevenths).toHaveLength(4)
    for (const place of [0, 1]) {
      const values = sevenths.map((values) => Math.round(values[place] ?? NaN))
      expect(new Set(values)).toEqual(new Set([0, 7]))
    }
    for (const values of sevenths) expect([Math.round(values[2] ?? NaN), values[3]]).toEqual([6, 0])
    expect(alternatives((x) => x.fmod(4), t([48, 4, 3]))).toEqual([0, 1, 2, 3].map(() => [0, 0, 3]))
    expect(new Set(alternatives((x) => x.div(7, { roundingMode: 'floor' }), t([21])).flat())).toEqual(new Set([2, 3]))
    expect(new Set(alternatives((x) => torch.floorDivide(x, 7), t([21])).flat())).toEqual(new Set([2, 3]))
  })
})

describe('a task', () => {
  it('has a step for each node that computes, of several arguments too, and what the whole graph writes', () => {
    const joined = taskOf(
      symbolicTrace((x: Tensor) => torch.cat([x, x.mul(2)]).sum()),
      [t([1, 2])],
      'float64',
    )
    expect(joined.run.steps.map(({ node }) => node.name)).toEqual(['mul', 'cat', 'sum_1'])
    const norm = symbolicTrace(new nn.Sequential(new nn.BatchNorm1d(2)))
    const x = t([
      [1, 2],
      [3, 5],
    ])
    const task = taskOf(norm, [x], 'float64')
    expect([...task.heldAfter.keys()].toSorted()).toEqual(['0.numBatchesTracked', '0.runningMean', '0.runningVar'])
    expect(numbers(task.heldAfter.get('0.runningMean')).map((value) => value.toFixed(3))).toEqual(['0.200', '0.350'])
    expect([task.isRandom, task.inputsAfter.size]).toEqual([false, 0])
  })
})

describe('eager', () => {
  it('is asked node by node, and not for the whole graph', async () => {
    const gm = symbolicTrace((x: Tensor) => x.mul(2).sin())
    const result = await compareBackends(gm, [t([1, 2])], { backends: ['eager', (part) => part] })
    expect(result.rows.map(({ alone, inGraph }) => [[...alone.keys()], [...inGraph.keys()]])).toEqual([
      [['eager', 'backend'], ['backend']],
      [['eager', 'backend'], ['backend']],
    ])
  })
})

describe('halves', () => {
  const gm = symbolicTrace((a: Tensor, b: Tensor) => torch.tanh(a).mul(torch.sin(b)))
  const inputs = (): Tensor[] => [t([0.5, 1], { requiresGrad: true }), t([0.25, 2], { requiresGrad: true })]

  it('that a backend does not compile have no gradients', async () => {
    const noBackward: Backend = (graph) => {
      if (graph.className.endsWith('_backward')) throw new RangeError('no backward here')
      return graph
    }
    const result = await compareBackends(gm, inputs(), { backends: [noBackward], gradients: true })
    expect(result.first).toMatchObject({ kind: 'failed', half: 'backward', reason: 'RangeError: no backward here' })
    expect(result.gradients.map(({ measured, statuses }) => [measured.get('noBackward')?.reason, statuses.get('noBackward')])).toEqual([
      ['RangeError: no backward here', 'failed'],
      ['RangeError: no backward here', 'failed'],
    ])
  })

  it('that are wrong only one after the other have the first gradient that is wrong as their culprit', async () => {
    let waiting = 0
    const after: Backend = (graph) => {
      const isBackward = graph.className.endsWith('_backward')
      return (...values: never[]) => {
        const out = graph.forward(...values) as readonly Tensor[]
        if (!isBackward) {
          waiting = graph.className.endsWith('_forward') ? waiting + 1 : 0
          return out
        }
        const wrong = waiting === 1
        waiting = 0
        return wrong ? out.map((value, i) => (i === 1 ? value.add(1) : value)) : out
      }
    }
    const result = await compareBackends(gm, inputs(), { backends: [after], gradients: true })
    expect(result.gradients.map(({ name, statuses }) => [name, statuses.get('after')])).toEqual([
      ['input 0', 'right'],
      ['input 1', 'wrong'],
    ])
    expect(result.first).toMatchObject({ kind: 'wrong', half: 'backward', found: 'in the graph', set: 0 })
    expect(result.first?.nodes.map(({ name }) => name)).toEqual([result.gradients[1]?.node.name])
  })
})
