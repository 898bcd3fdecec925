// Every case of PyTorch's numeric goldens, eager and compiled. What cannot pass is listed in missing.ts with the reason, a list that only shrinks: a case in it that passes fails the test.
import { readdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { readCases, runCase } from './cases.ts'
import type { GoldenCase } from './cases.ts'
import { missingCases } from './missing.ts'
import { runOptimizer, runScheduler } from './training.ts'
import { tenth } from '../helpers/rotation.ts'

const folder = fileURLToPath(new URL('../goldens/numeric2', import.meta.url))
const files = ['numeric.json', ...readdirSync(folder).flatMap((name) => (name === 'inplace-ops.json' ? [] : [`numeric2/${name}`]))]
const all = files.flatMap((file) => readCases(file).map((golden) => ({ file, golden })))

const isListed = (golden: GoldenCase): boolean => missingCases.has(golden.name)
const failing = all.filter(({ golden }) => isListed(golden))

/** The ways in which a case must pass. */
function waysOf(golden: GoldenCase): readonly (readonly [string, () => void])[] {
  if (golden.trajectory !== undefined) return [['step by step', () => runOptimizer(golden)]]
  if (golden.lrs !== undefined) return [['step by step', () => runScheduler(golden)]]
  const eager = ['eager', () => runCase(golden, false)] as const
  // Functions of modules and of functions are not compiled as a whole, but use compiled parts.
  if (/^(nn\.init|func|autograd|checkpoint|parameters_to)/.test(golden.op ?? '') || Object.keys(golden.inputs).length === 0) return [eager]
  return [eager, ['compiled', () => runCase(golden, true)] as const]
}

/** Why the case fails, or null. */
function failure(golden: GoldenCase): string | null {
  for (const [how, run] of waysOf(golden)) {
    try {
      run()
    } catch (error) {
      return `${how}: ${error instanceof Error ? error.message : String(error)}`
    }
  }
  return null
}

const report = process.env['TENSORFX_GOLDENS']

describe.skipIf(report !== undefined).each(files)('%s', (file) => {
  const own = all.filter((one) => one.file === file).map(({ golden }) => golden)
  const cases = tenth(
    own.filter((golden) => !isListed(golden)),
    ({ name }) => name,
  )
  it('has cases', () => expect(own.length).toBeGreaterThan(0))

  it.each(cases.map((golden) => [golden.name, golden] as const))('%s', (_, golden) => {
    for (const [how, run] of waysOf(golden)) expect(run, how).not.toThrow()
  })
})

describe.skipIf(report !== undefined)('what is missing', () => {
  it.each(failing.map(({ golden }) => [golden.name, golden] as const))('%s still fails; take it off the list when it passes', (_, golden) => {
    expect(failure(golden)).not.toBeNull()
  })

  it('is listed under names that the goldens have', () => {
    const names = new Set(all.map(({ golden }) => golden.name))
    expect([...missingCases].filter((name) => !names.has(name))).toEqual([])
  })
})

it(`${all.length - failing.length} of ${all.length} cases pass`, () => expect(failing.length).toBeLessThan(all.length))

it.runIf(report !== undefined)(
  'report: every failing case, with its reason',
  () => {
    const lines = all.flatMap(({ file, golden }) => {
      const why = failure(golden)
      return why === null
        ? []
        : [`${file.replace(/numeric2\/|\.json/g, '')}\t${golden.op ?? golden.name}\t${golden.name}\t${why.replaceAll('\n', ' ').slice(0, 300)}`]
    })
    writeFileSync(report ?? '', `${lines.join('\n')}\n`)
  },
  600_000,
)
