// One pass of fuzz:arguments over a tenth of the public surface, another one each day. What it finds becomes a test of its own.
import { expect, test, vi } from 'vitest'
import { fuzzArguments } from '../../scripts/fuzz/arguments.mjs'
import { loadSurface } from '../../scripts/fuzz/surface.mjs'
import { entries } from './entries.ts'
import { isChosen } from '../helpers/rotation.ts'

test('every public function refuses absurd arguments with an error of tensorfx, and makes no impossible tensor', async () => {
  for (const name of ['log', 'warn', 'error', 'info'] as const) vi.spyOn(console, name).mockImplementation(() => undefined)
  const { library, reset } = await loadSurface((entry) => entries[entry]?.() ?? Promise.reject(new Error(entry)))
  const { functions, findings } = await fuzzArguments(library, { seed: 1, rounds: 1, isChosen, reset })
  vi.restoreAllMocks()
  expect(functions).toBeGreaterThan(2400)
  expect(findings.map(({ text, what }) => `${text}: ${what}`)).toEqual([])
}, 600_000)
