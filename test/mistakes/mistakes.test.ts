// Mistakes that are drawn from the public surface: each is an error that says what to do. TENSORFX_MISTAKES=2000 draws more, TENSORFX_MISTAKES_SEED=7 others.
import { expect, test } from 'vitest'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { rightCalls } from './calls.ts'
import { MISTAKES, drawMistake } from './draw.ts'
import { judge } from './judge.ts'

const count = Number(process.env['TENSORFX_MISTAKES'] ?? 300)
const seed = Number(process.env['TENSORFX_MISTAKES_SEED'] ?? 1)
const calls = await rightCalls()

test('the calls that mistakes are made of are right', () => {
  const wrong: string[] = []
  for (const call of calls) {
    const options = call.options()
    try {
      call.run(...call.positional(), ...(Object.keys(options).length === 0 ? [] : [options]))
    } catch (error) {
      wrong.push(`${call.code}: ${String(error)}`)
    }
  }
  expect(wrong).toEqual([])
})

test(`${count} drawn mistakes name the call, the argument, the value and the fix, and begin at the program's line`, () => {
  const findings: string[] = []
  const kinds = new Map<string, number>()
  for (let i = 0; i < count; i++) {
    const mistake = drawMistake(calls, randomFrom(seed * 1_000_000 + i))
    kinds.set(mistake.kind, (kinds.get(mistake.kind) ?? 0) + 1)
    const wrong = judge(mistake, '/test/mistakes/')
    if (wrong !== null) findings.push(`${mistake.kind}: ${mistake.code}\n    ${wrong}`)
  }
  expect(findings.join('\n')).toBe('')
  for (const kind of MISTAKES) expect(kinds.get(kind) ?? 0, kind).toBeGreaterThan(0)
})
