// A reporter that ends a run with the tests that took longest and the line `N passed, N failed`.
import type { Reporter, TestCase, TestModule } from 'vitest/node'
import { isFull, rotation } from './rotation.ts'

/** Tests that are printed at the end of a run of many. */
const LONGEST = 20

/** Milliseconds from which a test is worth a line. */
const NOTICED = 100

const milliseconds = (test: TestCase): number => test.diagnostic()?.duration ?? 0

export class ClosingReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const count = (state: 'passed' | 'failed'): number => tests.filter((test) => test.result().state === state).length
    // A file that could not be imported has no tests.
    const broken = modules.filter((module) => module.state() === 'failed' && module.errors().length > 0).length
    if (modules.length > 1) {
      const longest = tests
        .filter((test) => milliseconds(test) >= NOTICED)
        .toSorted((a, b) => milliseconds(b) - milliseconds(a))
        .slice(0, LONGEST)
      console.log(`The ${longest.length} longest tests:`)
      for (const test of longest)
        console.log(
          `${(milliseconds(test) / 1000).toFixed(1).padStart(7)} s  ${test.module.relativeModuleId}  ${test.fullName.replaceAll(/\s+/g, ' ')}`,
        )
    }
    if (modules.length > 1 && !isFull)
      console.log(`Of long tables a tenth ran: TENSORFX_ROTATION=${rotation}; all of them with npm run test:all -- --full`)
    console.log(`${count('passed')} passed, ${count('failed') + broken} failed`)
  }
}
