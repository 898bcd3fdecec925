// A runner of vitest that repeats each test with one mutant after the other switched on, in one process: a mutant then costs a few milliseconds instead of the
// start of a process. What a mutant leaves behind could make the next test fail, so a failure counts only if the same test passes without mutants before and
// after it. Otherwise the process ends, and the mutant is left to a process of its own.
import { appendFileSync, readFileSync } from 'node:fs'
import { TestRunner } from 'vitest'

const state = (globalThis.__stryker__ ??= {})
const { tests, log } = JSON.parse(readFileSync(process.env.TENSORFX_MUTATE_PLAN, 'utf8'))
const killed = new Set()
const note = (...words) => appendFileSync(log, `${words.join(' ')}\n`)

export default class SharedRunner extends TestRunner {
  /** What the repeats of the test still have to do: a mutant, or null for none. */
  #queue = []
  #current = null
  /** The mutant that failed, until the test has passed without it. */
  #suspect = null

  async onBeforeRunTask(test) {
    await super.onBeforeRunTask(test)
    const mutants = (tests[test.id] ?? []).filter(({ id }) => !killed.has(id))
    if (mutants.length === 0) test.mode = 'skip'
    // Twice without mutants: a test that cannot be repeated says nothing.
    this.#queue = [null, null, ...mutants]
    this.#suspect = null
    test.repeats = 1 + 2 * mutants.length
  }

  onBeforeTryTask(test) {
    const given = this.#queue.length > 0
    const next = this.#queue.shift() ?? null
    this.#current = next
    state.activeMutant = next?.id
    state.hitCount = 0
    state.hitLimit = next?.hitLimit
    if (next !== null) note('start', next.id, test.id)
    this.skipBody = !given
    super.onBeforeTryTask(test)
  }

  /** Nothing is left to do in the last repeats, if few mutants failed. */
  async runTask(test) {
    if (!this.skipBody) await TestRunner.getTestFn(test)()
  }

  onAfterTryTask(test) {
    if (!this.skipBody) super.onAfterTryTask(test)
  }

  onAfterRetryTask(test) {
    state.activeMutant = undefined
    const failed = test.result.state === 'fail'
    const current = this.#current
    if (failed && current === null) {
      if (this.#suspect === null) {
        note('unfit', test.id, test.result.errors?.[0]?.message?.split('\n')[0] ?? '')
        this.#queue = []
        test.result.state = 'run'
        test.result.errors = undefined
        return
      }
      note('dirty', this.#suspect.id, test.id)
      process.kill(-Number(process.env.TENSORFX_MUTATE_GROUP), 'SIGKILL')
    }
    if (failed) {
      this.#suspect = current
      this.#queue.unshift(null)
      test.result.state = 'run'
      test.result.errors = undefined
    } else if (current !== null) note('passed', current.id, test.id)
    else if (this.#suspect !== null) {
      killed.add(this.#suspect.id)
      note('killed', this.#suspect.id, test.id)
      this.#suspect = null
    }
  }
}
