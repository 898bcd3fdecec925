// Minimum cuts against all cuts of small random networks.
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { FlowNetwork } from '../../../src/aot/joint/maxFlow.ts'

type Edge = readonly [from: number, to: number, capacity: number]
const NODES = 6

/** The capacity of the edges that leave a set of nodes. */
const cutOf = (side: ReadonlySet<number>, edges: readonly Edge[]): number =>
  edges.reduce((sum, [from, to, capacity]) => (side.has(from) && !side.has(to) ? sum + capacity : sum), 0)

/** The smallest capacity of a cut between node 0 and the last one. */
function smallestCut(edges: readonly Edge[]): number {
  const sides = Array.from(
    { length: 2 ** (NODES - 2) },
    (_, bits) => new Set([0, ...Array.from({ length: NODES - 2 }, (_, i) => i + 1).filter((n) => (bits >> (n - 1)) & 1)]),
  )
  return Math.min(...sides.map((side) => cutOf(side, edges)))
}

const node = fc.integer({ min: 0, max: NODES - 1 })
const edge = fc.tuple(node, node, fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constant(Infinity)))

test('no cut is smaller', () => {
  fc.assert(
    fc.property(fc.array(edge, { maxLength: 20 }), (edges) => {
      const network = new FlowNetwork(NODES)
      for (const [from, to, capacity] of edges) network.addEdge(from, to, capacity)
      const side = network.minCut(0, NODES - 1)
      const smallest = smallestCut(edges)
      expect(side === null ? [true, false] : [side.has(0), side.has(NODES - 1)]).toEqual([true, false])
      expect(side === null ? Infinity : cutOf(side, edges)).toBe(smallest)
    }),
    { numRuns: 500 },
  )
})

test('a long path needs no recursion', () => {
  const length = 50_000
  const network = new FlowNetwork(length)
  for (let i = 1; i < length; i++) network.addEdge(i - 1, i, i === 777 ? 1 : 2)
  expect(network.minCut(0, length - 1)?.size).toBe(777)
})
