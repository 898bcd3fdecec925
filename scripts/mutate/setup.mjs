// Runs before each test file: switches the mutant on, or records which test reaches which mutant.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, inject } from 'vitest'

const state = (globalThis.__stryker__ ??= {})
const mutant = inject('mutant')

if (mutant === null) {
  const times = (globalThis.testTimes ??= {})
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
    const { static: fixed = {}, perTest = {} } = state.mutantCoverage ?? {}
    writeFileSync(join(process.env.TENSORFX_MUTATE, `coverage-${process.pid}.json`), JSON.stringify({ fixed, perTest, times }))
  })
} else {
  state.activeMutant = mutant.id
  state.hitCount ??= 0
  state.hitLimit = mutant.hitLimit
}
