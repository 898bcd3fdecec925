// The error classes that several rooms share: names, codes and causes.
import { readFileSync } from 'node:fs'
import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { ArgumentError, DTypeError, InternalError, ShapeError, TensorfxError, UnsupportedError, messageOf, present } from '../../src/errors/index.ts'

test('each class has its own name and code, and the message it was given', () => {
  const errors = [new ArgumentError('a'), new ShapeError('b'), new DTypeError('c'), new UnsupportedError('d'), new TensorfxError('TFX_OWN', 'e')]
  expect(errors.map(({ name, code, message }) => [name, code, message])).toEqual([
    ['ArgumentError', 'TFX_ARGUMENT', 'a'],
    ['ShapeError', 'TFX_SHAPE', 'b'],
    ['DTypeError', 'TFX_DTYPE', 'c'],
    ['UnsupportedError', 'TFX_UNSUPPORTED', 'd'],
    ['TensorfxError', 'TFX_OWN', 'e'],
  ])
  for (const error of errors) expect([error instanceof TensorfxError, error instanceof Error, error.cause]).toEqual([true, true, undefined])
})

test('each names the section of docs/errors.md about its code, which Node prints', () => {
  const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8')
  const error = new ShapeError('b')
  expect(error.page).toBe('tensorfx/docs/errors.md#tfx_shape')
  expect(page).toContain('\n## TFX_SHAPE\n')
  expect(inspect(error)).toContain("page: 'tensorfx/docs/errors.md#tfx_shape'")
})

test('an internal error asks for a report', () => {
  const { name, code, message } = new InternalError('no shape')
  expect([name, code, message]).toEqual(['InternalError', 'TFX_INTERNAL', 'no shape (this is a bug in tensorfx, please report it)'])
})

test('errors keep their cause', () => {
  const cause = new Error('below')
  for (const error of [new ArgumentError('a', { cause }), new UnsupportedError('b', { cause }), new InternalError('c', { cause })]) {
    expect(error.cause).toBe(cause)
  }
})

test('what was thrown is told by its message, or as a string where it is no error', () => {
  expect([new ShapeError('b'), new TypeError('c'), 'd', 3, null, undefined].map(messageOf)).toEqual(['b', 'c', 'd', '3', 'null', 'undefined'])
})

test('a subclass has its own name', () => {
  class FolderError extends ArgumentError {}
  expect([new FolderError('a').name, new FolderError('a').code]).toEqual(['FolderError', 'TFX_ARGUMENT'])
})

test('present gives the value back, unless it is null or undefined', () => {
  expect([present(0, 'zero'), present('', 'text'), present(false, 'flag')]).toEqual([0, '', false])
  for (const missing of [null, undefined]) {
    expect(() => present(missing, 'the node')).toThrow(new InternalError('the node is missing'))
  }
})
