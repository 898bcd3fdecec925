// The function that runs passes: order, what observers see, verification, errors.
import { describe, expect, it } from 'vitest'
import { PassError, isVerifying, replaced, runPasses, setVerification } from '../../src/pipeline/index.ts'
import type { Pass } from '../../src/pipeline/index.ts'

const append = (name: string, extra: Partial<Pass<string[]>> = {}): Pass<string[]> => ({ name, run: (list) => list.push(name) > 0, ...extra })
const idle: Pass<string[]> = { name: 'idle', run: () => false }

describe('runPasses', () => {
  it('runs passes in order on one value and says which of them changed it', () => {
    const value: string[] = []
    const result = runPasses([append('a'), idle, append('b')], value)
    expect(result.value).toBe(value)
    expect(value).toEqual(['a', 'b'])
    expect(result.changed).toBe(true)
    expect(result.runs.map((run) => [run.name, run.changed])).toEqual([
      ['a', true],
      ['idle', false],
      ['b', true],
    ])
    expect(runPasses([idle], value).changed).toBe(false)
  })

  it('goes on with the value that a pass made', () => {
    const fresh: Pass<string[]> = { name: 'fresh', run: (list) => replaced([...list, 'fresh']) }
    const value = ['old']
    const result = runPasses([fresh, append('b')], value)
    expect(value).toEqual(['old'])
    expect(result.value).toEqual(['old', 'fresh', 'b'])
    expect(runPasses([{ name: 'same', run: (list: string[]) => replaced(list, false) }], value).changed).toBe(false)
  })

  it('refuses a pass whose requirement did not run, before it runs', () => {
    const value: string[] = []
    const b = append('b', { requires: ['a'] })
    expect(() => runPasses([b], value)).toThrow("pass 'b' needs 'a' to run before it")
    expect(value).toEqual([])
    runPasses([append('a'), b], value)
    runPasses([b], value, { done: ['a'] })
    expect(value).toEqual(['a', 'b', 'b'])
  })

  it('tells observers of every pass, with the value before and after, and of the error of one that failed', () => {
    const seen: string[] = []
    const observer = {
      before: (pass: Pass<string[]>, value: string[]) => void seen.push(`before ${pass.name} ${value.length}`),
      after: (pass: Pass<string[]>, value: string[], run: { changed: boolean; milliseconds: number }) => {
        expect(run.milliseconds).toBeGreaterThanOrEqual(0)
        seen.push(`after ${pass.name} ${value.length} ${run.changed}`)
      },
      failed: (pass: Pass<string[]>, value: string[], error: unknown) => void seen.push(`failed ${pass.name} ${value.length} ${String(error)}`),
    }
    const error = new RangeError('no')
    const bad: Pass<string[]> = {
      name: 'bad',
      run: () => {
        throw error
      },
    }
    let thrown: unknown
    try {
      runPasses([append('a'), bad, append('c')], [], { observers: [observer] })
    } catch (caught) {
      thrown = caught
    }
    expect(thrown).toBe(error)
    expect(seen).toEqual(['before a 0', 'after a 1 true', 'before bad 1', 'failed bad 1 RangeError: no'])
  })

  it('verifies after each pass only when asked, and names the pass that broke the value', () => {
    const short = (list: readonly string[]): void => {
      if (list.length > 1) throw new RangeError('too long')
    }
    const passes = [append('a'), append('b', { verifies: short })]
    expect(() => runPasses(passes, [], { verify: true })).toThrow("pass 'b' left a value that is not well formed: too long")
    expect(() => runPasses([append('a'), append('b')], [], { verify: short })).toThrow(PassError)
    expect(runPasses(passes, [], { verify: false }).value).toEqual(['a', 'b'])
    const before = setVerification(false)
    try {
      expect(isVerifying()).toBe(false)
      expect(runPasses(passes, []).value).toEqual(['a', 'b'])
      expect(setVerification(true)).toBe(false)
      expect(() => runPasses(passes, [])).toThrow(PassError)
    } finally {
      setVerification(before)
    }
  })
})
