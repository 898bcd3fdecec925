// PyTorch's recorded calls on complex numbers, of FFTs and of windows judge tensorfx, eager and compiled: each gives PyTorch's values and gradients, or is refused by name. A run takes a tenth.
import { describe, expect, it } from 'vitest'
import { isChosen } from '../helpers/rotation.ts'
import { judge, readCalls } from './complex/judge.ts'
import type { Kind } from './complex/judge.ts'

/** Operators that refuse complex numbers, and a memory format of a cast. */
const REFUSED = /^(linalg\.ldl_.*|cfloat|cdouble)$/
/** Gradients that are not PyTorch's. Those of the first two operators are refuted, and have rows in docs/differences; the last one differs by the rounding of float32. */
const KNOWN: Readonly<Record<string, Kind>> = {
  ...Object.fromEntries([0, 1, 2, 3, 4, 5].map((i) => [`as_strided_scatter#${i}`, 'refuted'])),
  ...Object.fromEntries([3, 4, 5].map((i) => [`cholesky_inverse#${i}`, 'refuted'])),
  'linalg.vander#4': 'gradient',
}

const database = readCalls()
const cases = database.entries.flatMap((entry) =>
  entry.cases.map((one, i) => {
    const variant = entry.variant ?? ''
    return { name: entry.name, variant, one, key: `${entry.name}${variant === '' ? '' : ` ${variant}`}#${i}` }
  }),
)
const chosen = cases.filter(({ key }) => isChosen(key) || key in KNOWN)
const isAllowed = (kind: Kind, name: string, key: string): boolean =>
  kind === 'agree' || (kind === 'refused' && REFUSED.test(name)) || kind === KNOWN[key]

describe.each([
  ['eager', false],
  ['compiled', true],
] as const)('%s', (_how, compiled) => {
  it('each call gives the recorded values and gradients, or is refused', { timeout: 300_000 }, () => {
    const some = compiled ? chosen.filter(({ one }) => one.gauge === undefined) : chosen
    const verdicts = some.map(({ name, variant, one, key }) => ({ name, key, ...judge(database, name, variant, one, compiled) }))
    expect(verdicts.filter(({ kind, name, key }) => !isAllowed(kind, name, key)).map(({ key, kind, why }) => `${key}: ${kind}: ${why}`)).toEqual([])
  })
})

it('the calls that differ for a reason are there (difference: outside-the-window) (difference: own-triangle)', () => {
  expect(Object.keys(KNOWN).filter((key) => !cases.some((one) => one.key === key))).toEqual([])
  expect(cases.length).toBeGreaterThan(1400)
})
