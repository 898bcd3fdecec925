// Unique names, also where the numbers of a base are first counted late.
import { expect, test } from 'vitest'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { Namespace } from '../../src/fx/graph/namespace.ts'

/** PyTorch's rule, as plainly as it can be written. */
class Plain {
  readonly used = new Set<string>()
  readonly counts = new Map<string, number>()

  create(name: string): string {
    const match = /^(.+)_(\d+)$/.exec(name)
    const base = match?.[1] ?? name
    let number = match === null || this.used.has(name) ? (this.counts.get(base) ?? 0) : Number(match[2])
    let made = name
    while (this.used.has(made)) made = `${base}_${++number}`
    this.used.add(made)
    this.counts.set(base, number)
    return made
  }
}

test('names are those of the rule, whatever the order of the wishes', () => {
  const wishes = ['a', 'b', 'a_3', 'b_1', 'a_1', 'a_2', 'c_7']
  const { pick } = randomFrom(1)
  for (let round = 0; round < 300; round++) {
    const ours = new Namespace()
    const plain = new Plain()
    for (let i = 0; i < 12; i++) {
      const wish = pick(wishes)
      expect(ours.create(wish)).toBe(plain.create(wish))
    }
  }
})

test('a reserved name is taken, but counts as no name given', () => {
  const names = new Namespace()
  names.reserve('a_5')
  expect([names.create('a'), names.create('a'), names.create('a_5')]).toEqual(['a', 'a_1', 'a_2'])
})
