// Captured stack traces, and how many frames errors record.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'
import { CapturedStack, captureStack, deepenStacks, restoreStacks } from '../../src/provenance/index.ts'
import type { Frame } from '../../src/provenance/index.ts'

const limit = Error.stackTraceLimit
afterEach(() => {
  Error.stackTraceLimit = limit
})

const below = (depth: number, run: () => CapturedStack): CapturedStack => (depth === 0 ? run() : below(depth - 1, run))

describe('captureStack', () => {
  test('the innermost frame is the caller', () => {
    function caller(): CapturedStack {
      return captureStack()
    }
    const stack = caller()
    expect(stack.userFrame).toBe(stack.frames.at(-1))
    expect(stack.userFrame?.fn).toBe('caller')
    expect(stack.userFrame?.file).toMatch(/stack\.test\.ts$/)
  })

  test('frames above and including the given function are left out', () => {
    function library(): CapturedStack {
      return captureStack(library)
    }
    function user(): CapturedStack {
      return library()
    }
    const { frames } = user()
    expect(frames.at(-1)?.fn).toBe('user')
    expect(frames.some(({ fn }) => fn === 'library')).toBe(false)
  })

  test('it records 24 frames whatever the limit of errors is, and leaves that limit', () => {
    Error.stackTraceLimit = 3
    expect(below(40, () => captureStack()).frames).toHaveLength(24)
    expect(Error.stackTraceLimit).toBe(3)
  })

  test('frames are computed once', () => {
    const holder = { stack: '    at f (/app/a.ts:1:2)' }
    const stack = new CapturedStack(holder)
    const { frames } = stack
    holder.stack = '    at g (/app/b.ts:1:2)'
    expect(stack.frames).toBe(frames)
    expect(frames.map(({ fn }) => fn)).toEqual(['f'])
  })

  test('without a record there are no frames', () => {
    const stack = new CapturedStack({})
    expect([stack.frames, stack.userFrame, String(stack)]).toEqual([[], undefined, ''])
  })
})

describe('CapturedStack.of', () => {
  const frame = (file: string, line: number, fn: string): Frame => ({ file, line, column: 1, fn })

  test('keeps the frames it was given, also as JSON', () => {
    const frames = [frame('/nowhere/a.ts', 1, 'outer'), frame('/nowhere/b.ts', 2, 'inner')]
    const stack = CapturedStack.of(frames)
    expect(stack.frames).toBe(frames)
    expect(stack.userFrame).toBe(frames[1])
    expect(JSON.parse(JSON.stringify(stack))).toEqual(frames)
  })

  test('prints as PyTorch does, with the source lines that were recorded, and opens no file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'stack-'))
    try {
      const file = join(folder, 'model.ts')
      writeFileSync(file, 'secret\n')
      expect(String(CapturedStack.of([frame(file, 1, 'outer'), { ...frame(file, 2, 'inner'), code: '  return x.relu() ' }]))).toBe(
        `  File "${file}", line 1, in outer\n  File "${file}", line 2, in inner\n    return x.relu()\n`,
      )
    } finally {
      removeFolder(folder)
    }
  })
})

describe('deepenStacks', () => {
  test('raises a lower limit to 64, and restoreStacks brings it back', () => {
    Error.stackTraceLimit = 10
    const before = deepenStacks()
    expect([before, Error.stackTraceLimit]).toEqual([10, 64])
    restoreStacks(before)
    expect(Error.stackTraceLimit).toBe(10)
  })

  test('leaves a higher limit, and a host without one', () => {
    Error.stackTraceLimit = 100
    expect(deepenStacks()).toBe(100)
    expect(Error.stackTraceLimit).toBe(100)
    Reflect.deleteProperty(Error, 'stackTraceLimit')
    expect(deepenStacks()).toBeUndefined()
    expect('stackTraceLimit' in Error).toBe(false)
  })

  test('restoreStacks takes away a limit that was not there', () => {
    Error.stackTraceLimit = 10
    restoreStacks(undefined)
    expect('stackTraceLimit' in Error).toBe(false)
  })

  test('a host without captureStackTrace keeps its limit, and captureStack records an error', () => {
    const { captureStackTrace } = Error
    Reflect.deleteProperty(Error, 'captureStackTrace')
    try {
      Error.stackTraceLimit = 10
      expect(deepenStacks()).toBe(10)
      expect(Error.stackTraceLimit).toBe(10)
      function caller(): CapturedStack {
        return captureStack()
      }
      expect(caller().userFrame?.fn).toBe('caller')
    } finally {
      Error.captureStackTrace = captureStackTrace
    }
  })
})
