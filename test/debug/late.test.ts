// Errors that come after a call has returned.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { settled } from '../../src/debug/judge/lateErrors.ts'

describe('what comes after a call', () => {
  const names = ['unhandledRejection', 'uncaughtException'] as const
  const others = new Map<string, ((...args: never[]) => void)[]>()
  // The test runner's own listeners would take these errors for failures of a test.
  beforeEach(() => {
    for (const name of names) {
      others.set(name, process.listeners(name as 'uncaughtException') as never)
      process.removeAllListeners(name)
    }
  })
  afterEach(() => {
    for (const name of names) for (const listener of others.get(name) ?? []) process.on(name, listener as never)
  })

  it('is told with the result: the first error of a promise that nothing awaits, or of the next turns', async () => {
    const error = (text: string): RangeError => new RangeError(text)
    const rejected = await settled(() => (void Promise.reject(error('one')), void Promise.reject(error('two')), 5))
    expect(rejected).toEqual({ result: 5, late: { thrown: error('one') } })
    const thrown = await settled(() => {
      setImmediate(() => {
        throw error('three')
      })
    })
    expect(thrown.late?.thrown).toEqual(error('three'))
    const chained = await settled(() => void Promise.resolve().then(() => Promise.reject(error('four'))))
    expect(chained.late?.thrown).toEqual(error('four'))
  })

  it('is nothing where all is handled; what is thrown is thrown; nothing goes on listening', async () => {
    expect(await settled(() => Promise.reject(new Error('handled')).catch(() => 1))).toMatchObject({ late: null })
    await expect(
      settled(() => {
        throw new TypeError('at once')
      }),
    ).rejects.toThrow('at once')
    expect(names.map((name) => process.listenerCount(name))).toEqual([0, 0])
  })
})
