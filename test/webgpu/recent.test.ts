// What is kept of plans: those that were used last.
import { expect, test } from 'vitest'
import { Recent } from '../../src/inductor/webgpu/recent.ts'

test('of ten thousand keys the last are kept, those that are asked for again longest, and the others are handed out once', () => {
  const dropped: number[] = []
  const recent = new Recent<number>(100, (value) => dropped.push(value))
  let made = 0
  const ask = (i: number): number =>
    recent.of(`key ${i}`, () => {
      made++
      return i
    })
  for (let i = 0; i < 10_000; i++) {
    expect(ask(i)).toBe(i)
    expect(ask(0)).toBe(0)
  }
  expect(made).toBe(10_000)
  expect(dropped).toHaveLength(9_900)
  expect(new Set(dropped).size).toBe(9_900)
  expect(dropped).not.toContain(0)
  for (let i = 9_901; i < 10_000; i++) ask(i)
  expect(made).toBe(10_000)
  ask(1)
  expect(made).toBe(10_001)
})
