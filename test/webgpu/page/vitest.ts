// In the place of vitest in a page: the part of it that the tests of a GPU use, with its expect. Tests are collected as their files are read; `runTests` runs them one after the other.
import { JestAsymmetricMatchers, JestChaiExpect, JestExtend, chai } from '@vitest/expect'

type Body = (...args: readonly unknown[]) => unknown

interface Collected {
  readonly name: string
  readonly body: () => unknown
}

/** What became of a test; null if it passed. */
export interface PageResult {
  readonly name: string
  readonly failure: string | null
  readonly milliseconds: number
}

for (const plugin of [JestExtend, JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin)

/** vitest's expect, where nothing follows a test. */
export const expect = Object.assign((value: unknown, message?: string) => chai.expect(value, message), {
  unreachable: (message: string): never => {
    throw new Error(message)
  },
})

const tests: Collected[] = []
const before: Body[] = []
const after: Body[] = []
let outer: readonly string[] = []

/** A row's name: its values in the places of %s and %i. */
function named(name: string, row: readonly unknown[]): string {
  let at = 0
  return name.replaceAll(/%[si]/g, () => String(row[at++]))
}

const each =
  (add: (name: string, body: Body) => void) =>
  (rows: readonly unknown[]) =>
  (name: string, body: Body): void => {
    for (const given of rows) {
      const row = Array.isArray(given) ? given : [given]
      add(named(name, row), () => body(...row))
    }
  }

function addGroup(name: string, body: Body): void {
  const around = outer
  outer = [...around, name]
  body()
  outer = around
}

const addTest = (name: string, body: Body): void => void tests.push({ name: [...outer, name].join(' > '), body })

export const beforeAll = (body: Body): void => void before.push(body)
export const afterEach = (body: Body): void => void after.push(body)
export const describe = Object.assign(addGroup, { each: each(addGroup) })
export const test = Object.assign(addTest, { each: each(addTest) })

/** Runs what was collected; `tell` is called after each test. */
export async function runTests(tell: (result: PageResult) => void, pattern = ''): Promise<void> {
  for (const body of before) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await body()
  }
  for (const { name, body } of tests.filter((one) => one.name.includes(pattern))) {
    const began = performance.now()
    let failure: string | null = null
    try {
      // oxlint-disable-next-line no-await-in-loop -- as above
      await body()
      // oxlint-disable-next-line no-await-in-loop -- as above
      for (const end of after) await end()
    } catch (error) {
      failure = error instanceof Error ? (error.stack ?? error.message) : String(error)
    }
    tell({ name, failure, milliseconds: performance.now() - began })
  }
}
