// Every line of the cheat sheet runs: the right columns of its tables are expressions in terms of the names that its example defines.
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { examplesOf } from '../../scripts/docs/examples.mjs'
import { printed, removeExamples } from './snippets.ts'

const page = readFileSync(new URL('../../docs/guide/cheat-sheet.md', import.meta.url), 'utf8')
const cells = [...page.matchAll(/^\| `.*\| `(.*)` +\|$/gm)].map((match) => match[1] ?? '')
let run: readonly (() => unknown)[] = []

beforeAll(async () => {
  const [example] = examplesOf(page)
  if (example === undefined) throw new Error('the cheat sheet has no example')
  const code = `${example.code}\nglobalThis.receiveCells([${cells.map((cell) => `() => (${cell})`).join(',\n')}])\n`
  Object.assign(globalThis, { receiveCells: (given: typeof run) => void (run = given) })
  await printed({ ...example, code })
  // The import of the sources is slow on a busy machine.
}, 120_000)
afterAll(removeExamples)

describe('the cheat sheet', () => {
  it('has an expression in each row of its tables', () => {
    const rows = page.split('\n').filter((line) => /^\| (?!PyTorch|-)/.test(line))
    expect(rows.length).toBeGreaterThan(60)
    expect(cells).toHaveLength(rows.length)
  })

  it.each(cells.map((cell, i) => [cell, i] as const))('%s', (_, i) => {
    expect(run[i]).not.toThrow()
  })
})
