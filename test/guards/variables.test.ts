// Arguments that a function also reads from variables: what is recorded of such a call must not answer one whose argument is another tensor, and the other way around. A tenth of 80 draws a day; TENSORFX_FUZZ=1000 draws more.
import { afterEach, describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { reset } from 'tensorfx/compile'
import { treeMap } from 'tensorfx/pytree'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { tenth } from '../helpers/rotation.ts'
import { users } from './users.ts'

const COUNT = Number(process.env['TENSORFX_FUZZ'] ?? 0)
/** The draws. */
const SEEDS = COUNT > 0 ? Array.from({ length: COUNT }, (_, seed) => seed) : tenth([...Array(80).keys()], (seed) => `variables ${seed}`)

afterEach(() => reset())

/** Some tensors that a function reads, the function, and the arguments of calls of it, among which are those tensors. */
function draw(seed: number): {
  readonly fn: (...args: Tensor[]) => unknown
  readonly known: readonly Tensor[]
  readonly calls: readonly (readonly Tensor[])[]
} {
  const { int, pick, chance } = randomFrom(seed)
  const known = [2, 3, 5].map((value) => torch.full([2], value).requiresGrad_(chance(0.5)))
  const operands = Array.from({ length: 3 }, () => int(5))
  const returned = chance(0.5) ? int(5) : null
  const fn = (...args: Tensor[]): unknown => {
    const at = (i: number): Tensor => [...args, ...known][i] as Tensor
    const sum = operands.reduce((value, i) => value.mul(at(i)).add(at(i)), torch.ones([2]))
    return returned === null ? sum : [sum, at(returned).mul(2)]
  }
  const calls = Array.from({ length: 10 }, () => [0, 1].map(() => (chance(0.4) ? torch.full([2], int(90)).requiresGrad_(chance(0.3)) : pick(known))))
  return { fn, known, calls }
}

describe.each(Object.entries(users))('%s', (_, { use, reference }) => {
  it('tells arguments from variables, in any order of calls', { timeout: 120_000 }, () => {
    for (const seed of SEEDS) {
      const { fn, known, calls } = draw(seed)
      const [ours, theirs] = [use(fn), reference(fn)]
      for (const [i, args] of calls.entries()) {
        const run = (f: (...args: Tensor[]) => unknown): unknown => {
          for (const tensor of [...known, ...args]) tensor.grad = null
          const result = f(...args)
          const first = (Array.isArray(result) ? result[0] : result) as Tensor
          if (first.requiresGrad) first.sum().backward()
          const values = treeMap(result, (leaf) => (leaf as Tensor).toArray())
          return [values, ...[...known, ...args].map((tensor) => tensor.grad?.toArray() ?? null)]
        }
        expect(run(ours), `seed ${seed}, call ${i}`).toEqual(run(theirs))
      }
      reset()
    }
  })
})
