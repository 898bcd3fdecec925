// A reporter that reads what really ran: after a run of the whole suite, every test of PyTorch's must have passed under its name, or be excused in the docs.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Reporter, TestModule, Vitest } from 'vitest/node'
import { portingErrors, pytorchTests, rowsNotPorted } from './portedTests.ts'

export class PortedReporter implements Reporter {
  #vitest: Vitest | null = null

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const vitest = this.#vitest
    if (vitest === null || vitest.config.testNamePattern !== undefined) return
    // Of a part of the suite nothing follows.
    const files = readdirSync(join(vitest.config.root, 'test'), { recursive: true, encoding: 'utf8' })
    if (modules.length < files.filter((name) => name.endsWith('.test.ts')).length) return
    const titles = modules.flatMap((module) => [...module.children.allTests('passed')].map((test) => test.fullName))
    const errors = portingErrors(titles, pytorchTests(), rowsNotPorted())
    if (errors.length === 0) return
    console.error(`PyTorch's own tests, as they ran here:\n${errors.map((error) => `  ${error}`).join('\n')}`)
    process.exitCode = 1
  }
}
