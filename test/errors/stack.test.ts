// What an error of tensorfx shows of its stack: the program first, with the code around its innermost line, however deep in tensorfx it was thrown.
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { fx, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { ShapeError, recordedStack } from '../../src/errors/index.ts'

const here = fileURLToPath(import.meta.url)

/** The error that `fn` throws. */
function thrownBy(fn: () => unknown): Error {
  try {
    fn()
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('nothing was thrown')
}

const framesOf = (error: Error): string[] => (error.stack ?? '').split('\n').filter((line) => line.startsWith('    at '))

const deep = new nn.Sequential(new nn.Sequential(new nn.Sequential(new nn.Sequential(new nn.Linear(3, 4), new nn.Linear(5, 2)))))

test.each<[string, () => unknown]>([
  ['an operator', () => torch.ones([2, 3]).matmul(torch.ones([2, 3]))],
  ['an operator of several others', () => torch.stack([torch.ones([2]), torch.ones([3])])],
  ['an argument', () => torch.ones([2]).sum({ dim: 4 })],
  ['a layer deep in a model', () => deep.call(torch.ones([2, 3]))],
  ['a constructor', () => new nn.Linear(-1, 2)],
  ['a backward pass', () => torch.ones([2]).sum().backward()],
  ['a traced graph', () => fx.symbolicTrace((x: Tensor) => x.matmul(x)).call(torch.ones([2, 3]))],
])('the first frame is the line of the program: %s', (_, fn) => {
  const error = thrownBy(fn)
  expect(framesOf(error)[0]).toContain(here)
  expect(error.stack).toMatch(/^\w+Error: /)
  // The frames of tensorfx follow.
  const isOwn = (line: string): boolean => /[\\/](?:src|dist)[\\/](?:errors|nn|ops|dispatch|autograd)[\\/]/.test(line)
  const program = framesOf(error).findLastIndex((line) => line.includes(here))
  expect(framesOf(error).findIndex(isOwn)).toBeGreaterThan(program)
})

test('the code around that line is above the frames', () => {
  const error = thrownBy(() => torch.ones([2, 3]).matmul(torch.ones([2, 3])))
  const [, line] = /stack\.test\.ts:(\d+):/.exec(framesOf(error)[0] ?? '') ?? []
  const code = error.stack?.slice(0, error.stack.indexOf('\n    at ')) ?? ''
  expect(code).toContain(`\n> ${line} |   const error = thrownBy(() => torch.ones([2, 3]).matmul(torch.ones([2, 3])))\n`)
})

test('a message that changes before the stack is read is the one that the stack shows, and a stack may be set', () => {
  const error = new ShapeError('first')
  error.message = 'second'
  expect(error.stack).toMatch(/^ShapeError: second\n/)
  error.stack = 'third'
  expect(error.stack).toBe('third')
  expect(recordedStack(error)).toContain(here)
  expect(Object.keys(error)).not.toContain('stack')
  expect(recordedStack(new TypeError('no error of tensorfx'))).toContain(here)
})

test('the limit of the program holds for its frames, and is not changed', () => {
  const before = Error.stackTraceLimit
  try {
    Error.stackTraceLimit = 2
    const deeper = (n: number): unknown => (n === 0 ? torch.ones([2]).sum({ dim: 4 }) : deeper(n - 1))
    const error = thrownBy(() => deeper(5))
    expect(Error.stackTraceLimit).toBe(2)
    expect(framesOf(error).filter((line) => line.includes(here))).toHaveLength(2)
    expect(framesOf(error)).toHaveLength(4)
    Error.stackTraceLimit = 0
    expect(framesOf(thrownBy(() => deeper(5)))).toEqual([])
  } finally {
    Error.stackTraceLimit = before
  }
})
