// The list of compiled functions, which reset() goes through, does not grow with those that the program has dropped.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { WeakRefs } from '../../../src/dynamo/end/weakRefs.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
/** References that were read in a turn live until its end. */
const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve))

it('what is collected leaves the list, what is held stays', async () => {
  const held = Array.from({ length: 10 }, (_, i) => ({ i }))
  const refs = new WeakRefs<{ readonly i: number }>()
  for (const object of held) refs.add(object)
  for (let round = 0; round < 20; round++) {
    for (let i = 0; i < 100; i++) refs.add({ i })
    // oxlint-disable-next-line no-await-in-loop -- collections happen between turns
    await turn()
    collect()
  }
  expect(refs.size).toBeLessThan(500)
  expect([...refs].filter((object) => held.includes(object))).toEqual(held)
})
