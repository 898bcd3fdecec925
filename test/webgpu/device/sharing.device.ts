// Results of operators that have a shader but no lowering lie in memory that others have used before: a longer graph takes no more of it, and gives what eager mode gives. This file runs in Node and in a page.
import { beforeAll, describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { compileGraph, init } from 'tensorfx/webgpu'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { third } from '../../helpers/rotation.ts'
import { differs } from './harness.ts'

beforeAll(async () => init({ thread: false, fallback: 'wasm' }))

const N = 16
type Step = (pick: () => Tensor) => Tensor
const indices = (x: Tensor): Tensor => x.argsort(1)
/** Operators with a shader but no lowering, each alone or with what is fused into its neighbours. */
const OPERATORS: Readonly<Record<string, Step>> = {
  cat: (pick) => torch.cat([pick(), pick()], 0).narrow(0, 3, N),
  gather: (pick) => torch.gather(pick(), 1, indices(pick())),
  scatterAdd: (pick) => pick().scatterAdd(1, indices(pick()), pick()).tanh(),
  cumsum: (pick) => pick().cumsum(1).tanh(),
  sort: (pick) => torch.sort(pick(), 1)[0].mul(2).tanh(),
  topk: (pick) => torch.topk(pick(), 3, 1)[0].sum(1, true).add(pick()).tanh(),
  embedding: (pick) => torch.nn.functional.embedding(indices(pick()).select(1, 0), pick()),
  pool: (pick) =>
    torch.nn.functional
      .avgPool2d(pick().reshape([1, 1, N, N]), 3, 1, 1)
      .reshape([N, N])
      .neg(),
  solve: (pick) => torch.linalg.solveTriangular(pick().tril().add(torch.eye(N).mul(4)), pick(), { upper: false }).t(),
}
/** What is fused, and an operator that WebAssembly computes. */
const OTHERS: readonly Step[] = [
  (pick) => pick().mul(0.5).add(pick()),
  (pick) => torch.softmax(pick(), 1).sub(pick().mean()),
  (pick) => pick().matmul(pick()).tanh(),
  (pick) => torch.lgamma(pick().abs().add(1)),
]

describe('memory', () => {
  test.each(Object.entries(OPERATORS))('of a chain of %s does not grow with it', async (_, step) => {
    const x = torch.randn([N, N])
    const bytesOf = async (length: number): Promise<number> => {
      const chain = (given: Tensor): Tensor => Array.from({ length }).reduce<Tensor>((value) => step(() => value), given)
      const graph = await compileGraph(makeFx((given: Tensor) => [chain(given)])(x), [x])
      expect(graph.onWasm).toEqual([])
      graph.release()
      return graph.bytes
    }
    // What was found of indices is kept for the end.
    const [short, long] = [await bytesOf(4), await bytesOf(12)]
    expect(long - short).toBeLessThan(4 * 4 * N * N)
  })
})

describe('what is computed', () => {
  test.each(third(Array.from({ length: 15 }, (_, i) => i)))('is what eager mode gives, drawn graph %i', async (i) => {
    const all = [...Object.values(OPERATORS), ...OTHERS]
    const drawn = (...given: readonly Tensor[]): Tensor[] => {
      const { int } = randomFrom(33_700 + i)
      const values = [...given]
      for (let k = 0; k < 16; k++) {
        // Mostly of what came last, so that what came before ends.
        const pick = (): Tensor => values[Math.max(0, values.length - 1 - int(int(4) === 0 ? values.length : 3))] ?? torch.ones([N, N])
        const value = all[int(all.length)]?.(pick)
        if (value !== undefined) values.push(value)
      }
      const kept = values[int(values.length)]
      return [...values.slice(-2), ...(kept === undefined ? [] : [kept.t().narrow(0, 2, 3)])]
    }
    torch.manualSeed(i)
    const inputs = torch.noGrad(() => [torch.randn([N, N]), torch.randn([N, N])])
    const graph = await compileGraph(makeFx(drawn)(...inputs), inputs)
    const want = drawn(...inputs)
    const got = (await graph.run(...inputs)) as Tensor[]
    graph.release()
    got.forEach((tensor, k) => expect(differs(tensor.flatten().toTypedArray(), want[k]?.flatten().toTypedArray() ?? [])).toBe(false))
    expect(got).toHaveLength(want.length)
  })
})
