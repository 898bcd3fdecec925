// The priority queue, against a sorted list.
import { describe, expect, it } from 'vitest'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { PriorityQueue } from '../../src/protocol/index.ts'

describe('a priority queue', () => {
  it('gives what was added in order, whatever is added and taken between', () => {
    const { int: draw } = randomFrom(7)
    const queue = new PriorityQueue<number>((a, b) => a > b)
    const sorted: number[] = []
    for (let step = 0; step < 2000; step++) {
      if (draw(5) < 3) {
        const item = draw(50)
        queue.add(item)
        sorted.push(item)
        sorted.sort((a, b) => b - a)
      } else expect(queue.take()).toBe(sorted.shift())
      expect(queue.size).toBe(sorted.length)
    }
    while (sorted.length > 0) expect(queue.take()).toBe(sorted.shift())
    expect(queue.take()).toBeUndefined()
  })
})
