// A reporter that ends a run with the tests that took longest, what failed, and the line `N passed, N failed`.
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node'
import { isFull, rotation } from './rotation.ts'

/** Tests that are printed at the end of a run of many. */
const LONGEST = 20

/** Milliseconds from which a test is worth a line. */
const NOTICED = 100

const milliseconds = (test: TestCase): number => test.diagnostic()?.duration ?? 0

/** A line for what failed: where, and how its message begins. `scripts/testAll.mjs` and `.ci/run` repeat these lines at their ends. */
const failure = (where: string, errors: readonly Pick<SerializedError, 'message'>[]): string =>
  `FAILED ${where}: ${(errors[0]?.message ?? '').trim().split('\n')[0]?.slice(0, 200)}`.replaceAll(/\s+/g, ' ')

export class ClosingReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const failed = tests.filter((test) => test.result().state === 'failed')
    const suites = modules.flatMap((module) => [...module.children.allSuites()])
    // What belongs to no test: a file that cannot be imported, a hook that throws, a promise that is rejected after its test has ended.
    const failures = [
      ...failed.map((test) => failure(`${test.module.relativeModuleId} ${test.fullName}`, test.result().errors ?? [])),
      ...modules.flatMap((module) => module.errors().map((error) => failure(module.relativeModuleId, [error]))),
      ...suites.flatMap((suite) => suite.errors().map((error) => failure(`${suite.module.relativeModuleId} ${suite.fullName}`, [error]))),
      ...unhandled.map((error) => failure('outside of tests', [error])),
    ]
    const passed = tests.filter((test) => test.result().state === 'passed').length
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
      console.log(`Of long tables and long files a part ran: TENSORFX_ROTATION=${rotation}; all of them with npm run test:all -- --full`)
    for (const line of failures) console.log(line)
    console.log(`${passed} passed, ${failures.length} failed`)
  }
}
