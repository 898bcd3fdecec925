// When a rank that waits gives its core away: by a clock of the test's own.
import { availableParallelism } from 'node:os'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Patience } from '../../src/distributed/patience.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

/** Milliseconds, in steps of 1/16, after which a wait gives the core away. */
function spin(patience: Patience): number {
  let time = 0
  for (let attempt = 0; patience.overdue(attempt) <= 0 && time < 10; attempt++) {
    vi.advanceTimersByTime(0.0625)
    time += 0.0625
  }
  return time
}

/** A wait that ends before its first look at the clock. */
const quick = (patience: Patience): number => patience.overdue(0)

test('a rank with a core of its own looks again for longer than it takes to wake another', () => {
  expect(spin(new Patience(1))).toBeGreaterThanOrEqual(0.1)
})

test('with more ranks than cores a rank gives its core away at once', () => {
  expect(spin(new Patience(availableParallelism() + 1))).toBeLessThanOrEqual(0.0625)
})

test('where looking again does not help, a rank stops to do so, and tries it again from time to time', () => {
  const patience = new Patience(1)
  const times = Array.from({ length: 200 }, () => spin(patience))
  const long = times.filter((time) => time > 0.0625)
  expect(times[0]).toBe(long[0])
  expect(long.length).toBeGreaterThan(3)
  expect(long.length).toBeLessThan(20)
})

test('a wait that ends early restores the patience', () => {
  const patience = new Patience(1)
  const [first] = Array.from({ length: 10 }, () => spin(patience))
  quick(patience)
  quick(patience)
  expect(spin(patience)).toBe(first)
})

test('a wait begins anew when what it waits for has come nearer', () => {
  const patience = new Patience(1)
  spin(patience)
  patience.restart()
  expect(patience.overdue(5)).toBeLessThanOrEqual(0)
})
