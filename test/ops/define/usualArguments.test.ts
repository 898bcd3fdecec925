// The fast way through the checks of arguments gives what the full one gives, or leaves the call to it.
import { expect, test } from 'vitest'
import { torch } from 'tensorfx'
import { defineOp } from 'tensorfx/ops'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { normalize } from '../../../src/ops/define/normalize.ts'
import { usualArguments } from '../../../src/ops/define/usualArguments.ts'
import { builtInOps } from '../builtInOps.ts'

const x = torch.ones([2])
const VALUES: readonly unknown[] = [
  x,
  0,
  2,
  1.5,
  -1,
  NaN,
  Infinity,
  2 ** 60,
  true,
  null,
  undefined,
  [1, 2],
  [],
  [1.5],
  [x],
  [null],
  'mean',
  'float32',
  'nothing',
  {},
  new Date(0),
]

/** The list of arguments that an operator gets, or the name of the error. */
function attempt(fn: () => unknown): unknown {
  try {
    return fn()
  } catch (error) {
    return error instanceof Error ? error.name : error
  }
}

/** Whether these are the same, without the time that `expect` takes to see it. */
const isSame = (a: unknown, b: unknown): boolean =>
  Object.is(a, b) || (Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => isSame(item, b[i])))

test('whatever an operator is given, by position and by name, the fast way gives its full arguments or none', () => {
  const { int, chance, pick } = randomFrom(1)
  let fast = 0
  for (const op of builtInOps()) {
    const names = op.schema.args.map(({ name }) => name)
    const usual = usualArguments(op)
    for (let round = 0; round < 200; round++) {
      const given = int(names.length + 2)
      // A tensor in first place is what most calls have.
      const args = Array.from({ length: given }, (_, i) => (i === 0 && chance(0.7) ? x : pick(VALUES)))
      if (chance(0.6)) args.push(Object.fromEntries(names.filter(() => chance(0.3)).map((name) => [name, pick(VALUES)])))
      const quick = usual.of([...args])
      if (quick === null) continue
      fast++
      const full = attempt(() => normalize(op, args))
      if (isSame(quick, full)) continue
      expect(quick, `${op.qualname}(${args.map(String).join(', ')}) of ${op.schema.text}`).toEqual(full)
    }
  }
  expect(fast).toBeGreaterThan(5000)
})

test('several numbers are one list where only options follow, even if an option takes a number', () => {
  const { op } = defineOp({
    schema: 'spread(int[] sizes, *, int scale=1) -> Tensor',
    namespace: 'test',
    meta: (sizes) => ({ shape: sizes, dtype: 'float32' }),
    kernel: (sizes, scale) => torch.full(sizes, scale),
  })
  expect(usualArguments(op).of([2, 3])).toBeNull()
  expect(normalize(op, [2, 3])).toEqual([[2, 3], 1])
  expect(usualArguments(op).of([{ sizes: 2, scale: 3 }])).toEqual([[2], 3])
})
