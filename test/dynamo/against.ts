// Runs a program eagerly and compiled, and compares everything that it reports.
import { expect } from 'vitest'
import { compile, torch } from 'tensorfx'
import { Tensor } from 'tensorfx'
import type { Backend } from 'tensorfx/compile'

/** What the program compiles its functions with: `compile`, or nothing at all. */
export type Compiler = <F extends (...args: never[]) => unknown>(fn: F) => F

const plain = (value: unknown): unknown => {
  if (value instanceof Tensor) return { dtype: value.dtype, shape: [...value.shape], values: Array.from(value.detach().toTypedArray(), Number) }
  if (value instanceof Error) return { error: value.name, message: value.message }
  if (Array.isArray(value)) return value.map(plain)
  return value
}

function expectClose(actual: unknown, expected: unknown, path: string): void {
  if (typeof expected === 'number' && typeof actual === 'number') {
    const same = Object.is(actual, expected) || Math.abs(actual - expected) <= 1e-5 + 1e-5 * Math.abs(expected)
    if (!same) expect.fail(`${path}: compiled gives ${actual}, eager ${expected}`)
  } else if (Array.isArray(expected) && Array.isArray(actual)) {
    expect(actual.length, `${path}.length`).toBe(expected.length)
    expected.forEach((value, i) => expectClose(actual[i], value, `${path}[${i}]`))
  } else if (typeof expected === 'object' && expected !== null && typeof actual === 'object' && actual !== null) {
    for (const [key, value] of Object.entries(expected)) expectClose(Reflect.get(actual, key), value, `${path}.${key}`)
  } else expect(actual, path).toEqual(expected)
}

/** What a call gives, or the error that it throws. */
export function attempt(fn: () => unknown): unknown {
  try {
    return fn()
  } catch (error) {
    return error
  }
}

/** `program` gets a compiler and returns what it saw: tensors, numbers, errors, in lists. The compiled run must see what the eager one saw. */
export function agree(backend: string | Backend, program: (compiled: Compiler) => unknown): void {
  torch.manualSeed(0)
  const expected = plain(program((fn) => fn))
  torch.manualSeed(0)
  const actual = plain(program((fn) => Object.assign(compile(fn, { backend }), {}) as unknown as typeof fn))
  expectClose(actual, expected, 'result')
}

/** Calls `fn` `n` times with the number of the call. */
export const times = <T>(n: number, fn: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => fn(i))
