// The scripts of threads and child processes: where they are, and what is said where there is no such place.
import { describe, expect, it } from 'vitest'
import { scriptAt } from '../../src/protocol/index.ts'

describe('scriptAt', () => {
  it('finds the script when its address is read, and not before', () => {
    const calls: string[] = []
    const script = scriptAt(() => {
      calls.push('resolved')
      return new URL('./worker.js', 'https://example.org/app/main.js')
    })
    expect(calls).toEqual([])
    expect(script.url).toBe('https://example.org/app/worker.js')
  })

  it('has the address that was set', () => {
    const script = scriptAt(() => new URL('./worker.js', 'data:text/javascript,'))
    script.url = 'file:///built/worker.js'
    expect(script.url).toBe('file:///built/worker.js')
  })

  it.each(['data:text/javascript,0', 'blob:https://example.org/7a2c', 'about:blank'])(
    'says what to do in a program at %s, which is in no folder',
    (address) => {
      expect(() => scriptAt(() => new URL('./worker.js', address)).url).toThrow(
        /this program is an inline script, a blob or a data: address, which is in no folder\. Load it/,
      )
    },
  )
})
