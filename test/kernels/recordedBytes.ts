// Bytes of code and of scratch memory that are recorded: what takes more fails, so that code that does the same with more instructions is noticed. TENSORFX_RECORD=1 records them anew, for
// a reason that the commit says.
import { readFileSync, writeFileSync } from 'node:fs'
import { expect } from 'vitest'

const file = new URL('../goldens/kernelBytes.json', import.meta.url)

/** What is recorded under a name, which is `found` from now on where TENSORFX_RECORD=1 is set. */
export function recordedBytes<T>(name: string, found: T): T {
  const all = JSON.parse(readFileSync(file, 'utf8')) as Record<string, T>
  if (process.env['TENSORFX_RECORD'] === '1') writeFileSync(file, `${JSON.stringify({ ...all, [name]: found }, null, 1)}\n`)
  const recorded = process.env['TENSORFX_RECORD'] === '1' ? found : all[name]
  if (recorded === undefined) throw new Error(`nothing is recorded for ${name}`)
  return recorded
}

/** Fails at the first number that is larger than the recorded one. */
export function expectNoMore(found: readonly number[], recorded: readonly number[], what: string): void {
  expect(found, what).toHaveLength(recorded.length)
  found.forEach((bytes, i) => expect(bytes, `${what}, number ${i}`).toBeLessThanOrEqual(recorded[i] ?? NaN))
}
