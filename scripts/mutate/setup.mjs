// Runs before each test file: switches the mutant on, or records which test reaches which mutant.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, inject } from 'vitest'

const state = (globalThis.__stryker__ ??= {})
const mutant = inject('mutant')

if (mutant === null) {
  let times = {}
  let start = 0
  beforeEach(({ task }) => {
    state.currentTestId = task.id
    start = performance.now()
  })
  afterEach(({ task }) => {
    state.currentTestId = undefined
    times[task.id] = performance.now() - start
  })
  afterAll(() => {
    // A part for each test file: one for all of them would be written again and again. The instrumented code keeps its object, so the entries are taken out of it.
    const { static: fixed = {}, perTest = {} } = state.mutantCoverage ?? {}
    const part = (globalThis.coverageParts = (globalThis.coverageParts ?? 0) + 1)
    writeFileSync(join(process.env.TENSORFX_MUTATE, `coverage-${process.pid}-${part}.json`), JSON.stringify({ fixed, perTest, times }))
    for (const entries of [fixed, perTest]) for (const key of Object.keys(entries)) delete entries[key]
    times = {}
  })
} else {
  state.activeMutant = mutant.id
  state.hitCount ??= 0
  state.hitLimit = mutant.hitLimit
}
