// The gradients of every operator of the table that has some, on tensors that are on the GPU: what the CPU gives. refused.ts has those that are not computed there; of the others no gradient is refused.
import { beforeAll, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import { init } from 'tensorfx/webgpu'
import { Tensor } from '../../../src/tensor/index.ts'
import { tenth } from '../../helpers/rotation.ts'
import { builtInOps } from '../../ops/builtInOps.ts'
import { allValueCases, replace, tensorOf } from '../../ops/valueCases.ts'
import { differs } from './harness.ts'
import { READS_DATA, REFUSED } from './refused.ts'

beforeAll(async () => init({ thread: false }))

const tensorsIn = (value: unknown): readonly Tensor[] => (value instanceof Tensor ? [value] : Array.isArray(value) ? value.flatMap(tensorsIn) : [])

/** The gradients of the leaves after a backward from all results, each with other weights; null where there are none. */
function gradients(fn: (...args: never[]) => unknown, given: readonly unknown[], place: (tensor: Tensor) => Tensor): readonly Tensor[] | null {
  torch.manualSeed(1)
  const leaves: Tensor[] = []
  const args = given.map((arg) =>
    replace(arg, (plain) => {
      const made = place(tensorOf(plain, 'float32'))
      if (!made.isFloatingPoint()) return made
      const leaf = made.requiresGrad_()
      leaves.push(leaf)
      // In-place operators write to no leaf.
      return leaf.mul(1)
    }),
  ) as unknown[]
  const results = tensorsIn([Reflect.apply(fn, null, args), args]).filter((tensor) => tensor.requiresGrad)
  if (results.length === 0) return null
  const total = results
    .map((result) => {
      const weights = torch.arange(result.numel, { dtype: 'float32' }).mul(0.37).sin().add(1.5).reshape(result.shape)
      return result.mul(place(weights.to(result.dtype))).sum()
    })
    .reduce((sum, one) => sum.add(one.to('float32')), place(torch.zeros([])))
  total.backward()
  return leaves.flatMap(({ grad }) => (grad === null ? [] : [grad]))
}

const cases = await allValueCases()
const judged = builtInOps().flatMap((op) => {
  const [one] = cases.get(op.qualname) ?? []
  return one === undefined || REFUSED.includes(op.qualname) || READS_DATA.includes(op.qualname) ? [] : [{ op, one }]
})

const taken = tenth(judged, ({ op }) => op.qualname)
let compared = 0

test.each(taken)('$op.qualname', async ({ op, one }) => {
  let want: readonly Tensor[] | null
  try {
    want = gradients(op.fn, one.args, (tensor) => tensor)
  } catch {
    // It has none, or none of these arguments.
    return
  }
  if (want === null) return
  compared++
  const got = gradients(op.fn, one.args, (tensor) => tensor.to('webgpu'))
  expect(got?.map(({ shape, dtype, device }) => [shape, dtype, device])).toEqual(want.map(({ shape, dtype }) => [shape, dtype, 'webgpu']))
  for (const [i, grad] of (got ?? []).entries()) {
    const [here, there] = [want[i]?.toTypedArray() ?? [], await grad.toTypedArrayAsync()]
    expect(differs(there, here), `${String(there)} for ${String(here)}`).toBe(false)
  }
})

test('most operators have gradients', () => {
  expect(compared).toBeGreaterThan(taken.length / 2)
})
