// How the minifier shrinks values, once the graph has its last operators: shapes, numbers, dtypes, gradients, constants.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, symbolicTrace } from 'tensorfx/fx'
import { minifier } from 'tensorfx/debug'
import type { ReproState } from '../../src/debug/minify/subgraph.ts'
import { shrinkValues } from '../../src/debug/minify/shrink.ts'

const t = torch.tensor

describe('values', () => {
  /** The reductions that were kept, and the inputs at the end. */
  async function shrunk(
    fn: (...args: Tensor[]) => unknown,
    inputs: readonly unknown[],
    fails: (values: readonly Tensor[], text: string) => boolean,
    budget = 100,
  ) {
    const kept: string[] = []
    let queries = 0
    const runs = ({ graph, inputs: values }: ReproState): boolean => {
      try {
        new GraphModule({}, graph.deepCopy()).forward(...values)
        return true
      } catch {
        return false
      }
    }
    const judges = {
      runs,
      fails: async (state: ReproState) => (queries++, fails(state.inputs as readonly Tensor[], String(state.graph))),
      kept: (name: string) => void kept.push(name),
    }
    const gm = symbolicTrace(fn)
    const state = await shrinkValues({ graph: gm.graph.deepCopy(), inputs: [...inputs], earlier: [] }, budget, judges)
    const values = (state.inputs as readonly unknown[]).map((x) => (typeof x === 'number' ? x : (x as Tensor).toArray()))
    const dtypes = (state.inputs as readonly Tensor[]).map((x) => x.dtype)
    return { kept, values, dtypes, queries, graph: String(state.graph), requiresGrad: (state.inputs as readonly Tensor[]).map((x) => x.requiresGrad) }
  }
  const unary = (x: Tensor): Tensor[] => [torch.neg(x)]
  const wide = (): Tensor =>
    t(
      [
        [0.5, 2.25],
        [-3, 8.5],
      ],
      { dtype: 'float64', requiresGrad: true },
    )

  it('become one float32 one at once if nothing else matters', async () => {
    expect(await shrunk(unary, [wide()], () => true)).toMatchObject({
      kept: ['Simplify inputs'],
      values: [[1]],
      dtypes: ['float32'],
      requiresGrad: [false],
      queries: 1,
    })
  })

  it('keep what matters: the dtype, and with it the gradient', async () => {
    expect(await shrunk(unary, [wide()], ([x]) => x?.dtype === 'float64')).toMatchObject({
      kept: ['Simplify inputs', 'Simplify gradients'],
      values: [[1]],
      dtypes: ['float64'],
      requiresGrad: [false],
    })
    expect(await shrunk(unary, [wide()], ([x]) => x?.requiresGrad === true)).toMatchObject({
      kept: ['Simplify inputs'],
      values: [[1]],
      dtypes: ['float64'],
      requiresGrad: [true],
    })
  })

  it('keep the sign, and are whole', async () => {
    expect(await shrunk(unary, [wide()], ([x]) => Number(torch.min(x ?? wide()).item()) < -2)).toMatchObject({
      kept: ['Shrink shapes', 'Simplify gradients', 'Simplify dtypes'],
      values: [[-3]],
      dtypes: ['float32'],
    })
    expect(await shrunk(unary, [t([0.4, 7.6])], ([x]) => Number(torch.max(x ?? wide()).item()) > 5)).toMatchObject({
      kept: ['Shrink shapes', 'Round values'],
      values: [[8]],
    })
  })

  it('keep a NaN and an infinity, at whatever place', async () => {
    const x = t([1, 2, NaN, 3])
    expect(
      (
        await shrunk(unary, [x], ([v]) =>
          Boolean(
            torch
              .isnan(v ?? x)
              .any()
              .item(),
          ),
        )
      ).values,
    ).toEqual([[NaN]])
    const y = t([1, 2, 3, -Infinity])
    expect(
      (
        await shrunk(unary, [y], ([v]) =>
          Boolean(
            torch
              .isinf(v ?? y)
              .any()
              .item(),
          ),
        )
      ).values,
    ).toEqual([[-Infinity]])
  })

  it('keep their rank, with one element, or two where two are needed; sizes that have become equal shrink together', async () => {
    const ones = torch.full([6, 4], 0.5)
    expect((await shrunk(unary, [ones], ([x]) => x?.ndim === 2)).values).toEqual([[[1]]])
    const two = await shrunk(unary, [ones], ([x]) => x?.ndim === 2 && (x.shape[0] ?? 0) >= 2)
    expect([two.values, two.kept]).toEqual([
      [
        [
          [1, 1],
          [1, 1],
        ],
      ],
      ['Shrink a size', 'Shrink a size', 'Shrink a size', 'Simplify values'],
    ])
    expect((await shrunk(unary, [ones], ([x]) => (x?.numel ?? 0) >= 20)).values).toEqual([torch.ones([24]).toArray()])
  })

  it('at the end of a dimension are found there', async () => {
    const x = t([[0, 0, 0, 0, 0, 0, 0, 5]])
    const { values } = await shrunk(unary, [x], ([v]) => v?.ndim === 2 && Number(torch.sum(v).item()) === 5)
    expect(values).toEqual([[[5]]])
  })

  it('may all have to be zero', async () => {
    expect(await shrunk(unary, [t([0, 0, 3])], ([x]) => Number((x ?? wide()).flatten().narrow(0, 0, 1).item()) === 0)).toMatchObject({
      kept: ['Shrink shapes'],
      values: [[0]],
    })
    const even = ([x]: readonly Tensor[]): boolean => x?.numel === 2 && [0, 5].includes(Number(x.sum().item()))
    expect(await shrunk(unary, [t([2, 3])], even)).toMatchObject({ values: [[0, 0]] })
  })

  it('agree with the sizes that the graph names', async () => {
    const view = (x: Tensor): Tensor[] => [torch.reshape(x, [8, 4])]
    const { graph, values } = await shrunk(view, [torch.ones([4, 8])], ([x]) => x?.ndim === 2)
    expect([values, graph.includes('[1, 1]')]).toEqual([[[[1]]], true])
    // A constant outside of lists is no size.
    const times = (x: Tensor): Tensor[] => [torch.mul(torch.reshape(x, [8, 4]), 8)]
    const kept = await shrunk(times, [torch.ones([4, 8])], ([x], text) => x?.ndim === 2 && text.includes(', 8)'))
    expect([kept.values, kept.graph.includes('[1, 1]')]).toEqual([[[[1]]], true])
  })

  it('in the graph become one, but for 0, 1 and -1, sizes, and those that matter', async () => {
    const program = (x: Tensor): Tensor[] => [torch.add(torch.mul(torch.sum(x, [0]), -1), 2.5, { alpha: 3 })]
    const all = await shrunk(program, [t([1])], () => true)
    expect(all.graph).toMatch(/\[0\].*-1.*, 1\), kwargs = \{alpha: 1\}/s)
    expect(all.kept).toEqual(['Simplify constants'])
    const kept = await shrunk(program, [t([1])], (_values, text) => text.includes('2.5'))
    expect([kept.graph.includes('2.5'), kept.graph.includes('alpha: 1')]).toEqual([true, true])
  })

  it('are shrunk with no more queries than there are left, and numbers are left alone', async () => {
    const none = await shrunk(
      (x, k) => [torch.mul(x, k as Tensor)],
      [t([2, 3]), 5],
      () => false,
      3,
    )
    expect(none).toMatchObject({ queries: 3, kept: [], values: [[2, 3], 5] })
    expect(
      (
        await shrunk(
          (x, k) => [torch.mul(x, k as Tensor)],
          [t([2, 3]), 5],
          () => true,
        )
      ).values,
    ).toEqual([[1], 5])
    expect((await shrunk(unary, [t([1])], () => true)).queries).toBe(0)
  })

  it('that are partly plain become one, in all tensors', async () => {
    const two = await shrunk(unary, [t([1, 7])], ([x]) => x?.numel === 2)
    expect([two.values, two.kept]).toEqual([[[1, 1]], ['Simplify values']])
    const mixed = await shrunk(
      (a, b) => [torch.add(a, b)],
      [t([1, 1]), t([3, 4], { dtype: 'float64', requiresGrad: true })],
      ([a]) => a?.numel === 2,
    )
    expect([mixed.values, mixed.dtypes, mixed.kept]).toEqual([
      [
        [1, 1],
        [1, 1],
      ],
      ['float32', 'float32'],
      ['Simplify values', 'Simplify gradients', 'Simplify dtypes'],
    ])
  })

  it('of integers are neither rounded nor looked at for unusual ones', async () => {
    const k = t([5, 9], { dtype: 'int64' })
    const kept = await shrunk(unary, [k], ([x]) => x?.dtype === 'int64' && Number(x.max().item()) === 9)
    expect([kept.values, kept.kept]).toEqual([[[9]], ['Shrink a size']])
  })

  it('of two constants: the one that matters stays, and the other becomes one', async () => {
    const program = (x: Tensor): Tensor[] => [torch.mul(torch.add(x, 2.5), 4)]
    const { graph, kept } = await shrunk(program, [t([1])], (_values, text) => text.includes('2.5'))
    expect([graph.includes('2.5'), graph.includes(', 4)'), kept]).toEqual([true, false, ['Simplify constants']])
  })
})

it('a search prints what it has made plainer, in steps of one operator at a time if it is told', async () => {
  const lines: string[] = []
  const gm = symbolicTrace((x: Tensor) => [torch.neg(torch.sin(x))])
  const fails = (candidate: GraphModule): boolean => [...candidate.graph.nodes].some((node) => node.name === 'neg')
  const { steps, inputs } = await minifier(gm, [torch.ones([2, 3])], fails, {
    shrinkValues: true,
    maxGranularity: 1,
    print: (line) => void lines.push(line),
  })
  expect([lines.at(-3), lines.at(-2)]).toEqual(['Strategy: Shrink values (6 elements)', 'SUCCESS: Simplify inputs (1 elements)'])
  expect(steps.at(-1)).toMatchObject({ strategy: 'Simplify inputs', granularity: 1, nodes: 3, inputs: 1 })
  expect(new Set(steps.map(({ granularity }) => granularity))).toEqual(new Set([0, 1]))
  expect((inputs[0] as Tensor).toArray()).toEqual([1])
})
