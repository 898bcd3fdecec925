// The account of what launches gain and lose: interruptions now and then do not end what gains, nothing that loses goes on, and what is lost is a small part of the time whatever happens.
import { expect, test, vi } from 'vitest'
import { Account } from '../../../src/kernels/threads/account.ts'

/** Numbers from 0 to 1 that depend on a seed. */
function drawing(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

interface Program {
  /** What a call takes on one thread, and what of that a launch takes; in milliseconds. */
  readonly takes: number
  readonly launch: (draw: () => number) => number
}

/** What calls take in all, one thread's alone, and how many of them were launches, over so many milliseconds. */
function run({ takes, launch }: Program, most: number, time: number, seed: number) {
  const draw = drawing(seed)
  const account = new Account(most)
  let [now, calls, launches] = [0, 0, 0]
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
  for (; now < time; calls++) {
    const took = account.rests ? takes : launch(draw)
    now += took
    if (took === takes) continue
    launches++
    account.note(took - 0.9 * takes, now)
  }
  clock.mockRestore()
  return { ratio: now / (calls * takes), launched: launches / calls }
}

test.each([0.03, 0.2, 2, 20])('launches of %f ms that gain go on, though one in forty is interrupted', (takes) => {
  // A thread that loses its core gets it back after a few milliseconds.
  const launch = (draw: () => number): number => takes * (0.55 + 0.1 * draw()) + (draw() < Math.min(1, takes) / 40 ? 4 : 0)
  for (let seed = 0; seed < 10; seed++) {
    const { ratio, launched } = run({ takes, launch }, 5, 10_000, seed)
    expect(launched).toBeGreaterThan(0.9)
    expect(ratio).toBeLessThan(0.8)
  }
})

test.each([0.03, 0.2, 2, 20])('where a busy program has the other core, launches of %f ms cost at most 2 in 100 of the time', (takes) => {
  const launch = (draw: () => number): number => takes * (1.01 + 0.3 * draw()) + (draw() < 0.1 ? 4 : 0)
  for (let seed = 0; seed < 10; seed++) {
    const { ratio, launched } = run({ takes, launch }, 5, 20_000, seed)
    expect(launched).toBeLessThan(0.15)
    expect(ratio).toBeLessThan(1.02)
  }
})

test('after a time of losses, the first rest after gains is short again', () => {
  let now = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
  const account = new Account(1)
  const rest = (): number => {
    account.note(2, now)
    const start = now
    while (account.rests) now++
    return now - start
  }
  expect([rest(), rest(), rest(), rest(), rest(), rest(), rest(), rest()]).toEqual([50, 100, 200, 400, 800, 1600, 2000, 2000])
  account.note(-0.5, now)
  expect(rest()).toBe(2000)
  account.note(-1, now)
  account.note(2, now)
  account.note(1, now)
  expect(account.rests).toBe(true)
  const start = now
  while (account.rests) now++
  expect(now - start).toBe(50)
  clock.mockRestore()
})
