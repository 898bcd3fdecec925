// A reporter that reads what really ran: after a run of the whole suite, every test of PyTorch's must have passed under its name, or be excused in the docs.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Reporter, TestModule, TestProject, Vitest } from 'vitest/node'
import { portingErrors, pytorchTests, rowsNotPorted } from './portedTests.ts'

export class PortedReporter implements Reporter {
  #vitest: Vitest | null = null

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
  }

  /** The suite is run in two commands, so a part leaves the titles of what passed for the one that comes after it. */
  async onTestRunEnd(modules: readonly TestModule[]): Promise<void> {
    const vitest = this.#vitest
    if (vitest === null || vitest.config.testNamePattern !== undefined) return
    const folder = join(vitest.config.root, 'node_modules/.cache/tensorfx-tests')
    const ran: string[] = []
    // oxlint-disable-next-line no-await-in-loop -- four parts
    for (const project of vitest.projects) if (await ranWhole(project, modules)) ran.push(project.name)
    mkdirSync(folder, { recursive: true })
    for (const name of ran) {
      const titles = modules
        .filter((module) => module.project.name === name)
        .flatMap((module) => [...module.children.allTests('passed')].map((test) => test.fullName))
      writeFileSync(join(folder, `${name}.json`), JSON.stringify(titles))
    }
    // The long parts come last; of a part alone nothing follows.
    if (!ran.includes('longOwn')) return
    const titles = ['shared', 'own', 'long', 'longOwn'].map((name) => readTitles(join(folder, `${name}.json`)))
    if (titles.includes(null)) return
    const errors = portingErrors(
      titles.flatMap((list) => list ?? []),
      pytorchTests(),
      rowsNotPorted(),
    )
    if (errors.length === 0) return
    console.error(`PyTorch's own tests, as they ran here:\n${errors.map((error) => `  ${error}`).join('\n')}`)
    process.exitCode = 1
  }
}

/** Whether all files of a part of the suite ran. */
async function ranWhole(project: TestProject, modules: readonly TestModule[]): Promise<boolean> {
  const ran = modules.filter((module) => module.project === project).length
  return ran > 0 && ran >= (await project.globTestFiles()).testFiles.length
}

function readTitles(path: string): readonly string[] | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return null
  }
}
