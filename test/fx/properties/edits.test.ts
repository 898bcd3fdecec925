// Random edits: a graph that is checked after each one never loses an invariant, and an edit that fails leaves it as it was. TENSORFX_FUZZ=2000 runs that many.
import * as fc from 'fast-check'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { torch } from 'tensorfx'
import { Graph } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import { graphOf, programs } from './programs.ts'

// Edits that have no effect say so.
const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
afterAll(() => warn.mockRestore())

const numRuns = Number(process.env['TENSORFX_FUZZ'] ?? 40)

interface Edit {
  readonly kind: number
  readonly a: number
  readonly b: number
}
const edits = fc.array(fc.record({ kind: fc.nat(16), a: fc.nat(1000), b: fc.nat(1000) }), { minLength: 1, maxLength: 30 })

/** What must hold at all times; use before definition is the caller's business, as in PyTorch, and checked apart. */
function checkInvariants(graph: Graph): void {
  const nodes = [...graph.nodes]
  expect(nodes.length).toBe(graph.nodes.length)
  expect([...graph.nodes.reversed()].toReversed()).toEqual(nodes)
  expect(new Set(nodes.map((n) => n.name)).size).toBe(nodes.length)
  const known = new Set(nodes)
  nodes.forEach((node, i) => {
    expect(node.graph).toBe(graph)
    expect(node.erased).toBe(false)
    if (i > 0) expect((nodes[i - 1] as Node).isBefore(node)).toBe(true)
    for (const input of node.allInputNodes) {
      expect(known.has(input)).toBe(true)
      expect(input.users.has(node)).toBe(true)
    }
    for (const user of node.users) expect(user.allInputNodes.includes(node)).toBe(true)
    expect(graph.findNodes(node.op === 'call_function' ? { op: node.op, target: node.target } : { op: node.op })).toContain(node)
  })
}

function apply(graph: Graph, { kind, a, b }: Edit, foreign: Node, erased: Node[] = []): void {
  const nodes = [...graph.nodes].filter((n) => n.op !== 'output')
  const [x, y] = [nodes[a % nodes.length] as Node, nodes[b % nodes.length] as Node]
  switch (kind) {
    case 0:
      graph.eraseNode(x)
      erased.push(x)
      return
    case 1:
      return void graph.insertingAfter(x, () => graph.callFunction(torch.neg, [x]))
    case 2:
      return void graph.insertingBefore(x, () => graph.callFunction(torch.add, [y, y]))
    case 3:
      return void x.replaceAllUsesWith(y, (user) => user !== y)
    case 4:
      return x.prepend(y)
    case 5:
      return x.append(y)
    case 6:
      x.args = [y, [y, x === y ? 1 : y]]
      return
    case 7:
      return x.updateArg(b % 3, y)
    case 8:
      return x.rename(`renamed_${b % 5}`)
    case 9:
      x.target = x.op === 'call_function' ? torch.relu : x.target
      return
    case 10:
      return graph.eraseNode(foreign)
    case 11:
      return x.prepend(foreign)
    case 12: {
      // A node that was erased is no place; but it may come back.
      const gone = erased[b % erased.length]
      if (gone === undefined || !gone.erased) return
      return b % 2 === 0 ? x.append(gone) : gone.prepend(x)
    }
    case 13: {
      const gone = erased[b % erased.length]
      if (gone !== undefined) graph.insertingBefore(gone, () => graph.callFunction(torch.neg, [x]))
      return
    }
    case 14:
      // The node at the insert point goes away.
      if (x === y || x.users.size > 0) return
      return void graph.insertingBefore(x, () => {
        graph.insertingAfter(y, () => graph.callFunction(torch.relu, [y]))
        graph.insertingBefore(y, () => graph.eraseNode(x))
        erased.push(x)
        graph.placeholder('late')
      })
    case 15:
      return void graph.eliminateDeadCode()
    default:
      return void graph.createNode('call_function', 'not a function' as never, [x])
  }
}

describe('random edits', () => {
  it('never break an invariant, and leave the graph as it was when they fail', () => {
    fc.assert(
      fc.property(programs, edits, (steps, list) => {
        const { graph } = graphOf(steps)
        const foreign = new Graph().placeholder('elsewhere')
        const erased: Node[] = []
        let failed = 0
        for (const edit of list) {
          const before = String(graph)
          try {
            apply(graph, edit, foreign, erased)
          } catch {
            failed++
            expect(String(graph)).toBe(before)
          }
          checkInvariants(graph)
        }
        expect(failed).toBeLessThanOrEqual(list.length)
      }),
      { numRuns },
    )
  })

  it('that keep definitions before uses pass lint', () => {
    fc.assert(
      fc.property(programs, edits, (steps, list) => {
        const { graph } = graphOf(steps)
        for (const edit of list.filter(({ kind }) => kind <= 1)) {
          try {
            apply(graph, edit, graph.outputNode())
          } catch {
            // The node has users.
          }
          graph.lint()
        }
      }),
      { numRuns },
    )
  })
})
