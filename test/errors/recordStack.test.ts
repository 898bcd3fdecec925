// recordStack: which frames an error keeps and shows, on engines with V8's API for stack traces and on others.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DEEP, host, recordStack, recordedStack, setStackText } from '../../src/errors/stack.ts'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { programFirst } from '../../src/provenance/index.ts'

const { captureStackTrace, stackTraceLimit } = host

// Shows what is arranged, and for how many frames.
beforeEach(() => setStackText((frames, limit) => `${limit} frames: ${frames}`))

afterEach(() => {
  setStackText(programFirst)
  Object.assign(host, { captureStackTrace, stackTraceLimit })
})

/** An error to which the engine gave this stack. */
function errorWith(stack: string | undefined): Error {
  const error = new Error('wrong')
  Object.defineProperty(error, 'stack', { value: stack, configurable: true, writable: true })
  return error
}

/** What an error with this stack shows where there is no V8. */
function shown(stack: string): string | undefined {
  const error = errorWith(stack)
  Object.assign(host, { captureStackTrace: undefined, stackTraceLimit: undefined })
  recordStack(error, Error)
  const text = error.stack
  // Assertions that fail need it.
  Object.assign(host, { captureStackTrace, stackTraceLimit })
  return text
}

test('without the API the engine gives the stack; what it writes above the first frame is left out', () => {
  expect(shown('f@file.js:1:2\ng@file.js:30:45')).toBe(`Error: wrong\n${DEEP} frames: f@file.js:1:2\ng@file.js:30:45`)
  expect(shown('Error: wrong\nf@file.js:10:20')).toBe(`Error: wrong\n${DEEP} frames: f@file.js:10:20`)
  expect(shown('Error: mail a@b.c and look at x\n    at f (file.js:1:2)')).toBe(`Error: wrong\n${DEEP} frames:     at f (file.js:1:2)`)
  expect(shown('nothing that is a frame')).toBe(`Error: wrong\n${DEEP} frames: nothing that is a frame`)
})

test('frames begin with the first line that is one, whatever the lines of the message say', () => {
  const { pick, int } = randomFrom(7)
  const place = (): string => `${pick(['file.js', 'https://x.org/a@2/b.mjs', 'node:fs'])}:${1 + int(300)}:${1 + int(90)}`
  // Of V8, Firefox and Safari, whose functions without a name have none in front of the place.
  const frame = (): string => pick([`    at f (${place()})`, `    at ${place()}`, `f@${place()}`, `own.forward@${place()}`, `@${place()}`])
  const line = (): string =>
    pick(['wrong', 'write to a@b.org', `see a@${place()}, and more`, `the file y.js:${int(300)}:${int(90)}`, 'look at x (y:1:2)', ''])
  for (let run = 0; run < 200; run++) {
    const frames = Array.from({ length: 1 + int(3) }, frame).join('\n')
    const message = Array.from({ length: 1 + int(3) }, line).join('\n')
    expect(shown(`Error: ${message}\n${frames}`)).toBe(`Error: wrong\n${DEEP} frames: ${frames}`)
  }
})

test('an error without a stack has none recorded', () => {
  const error = errorWith(undefined)
  Object.assign(host, { captureStackTrace: undefined })
  recordStack(error, Error)
  expect(recordedStack(error)).toBe('')
})

test('a program that asks for no frames gets the stack as the engine made it', () => {
  const error = errorWith('Error: wrong')
  host.stackTraceLimit = 0
  recordStack(error, errorWith)
  expect(recordedStack(error)).toBe('Error: wrong')
  expect(error.stack).toBe('Error: wrong\n0 frames: Error: wrong')
})

test('the frames of the constructor and above it are left out, and the limit of the program stays', () => {
  host.stackTraceLimit = 3
  class OwnError extends Error {
    constructor() {
      super('own')
      recordStack(this, OwnError)
    }
  }
  const error = new OwnError()
  expect(recordedStack(error)).not.toContain('new OwnError')
  expect(recordedStack(error).split('\n').length).toBeGreaterThan(4)
  expect(error.stack).toMatch(/^Error: own\n3 frames: /)
  expect(host.stackTraceLimit).toBe(3)
})

test('the stack of an error can be set, and defined anew by tools', () => {
  const error = errorWith('Error: wrong\n    at f (file.js:1:2)')
  recordStack(error, errorWith)
  error.stack = 'another one'
  expect(error.stack).toBe('another one')
  Object.defineProperty(error, 'stack', { value: 'a third one' })
  expect(error.stack).toBe('a third one')
})
