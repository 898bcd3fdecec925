// Names of nodes: PyTorch's rules, and the names that it gives.
import { describe, expect, it } from 'vitest'
import { operator, torch } from 'tensorfx'
import { Graph } from 'tensorfx/fx'
import type { Opcode, Target } from 'tensorfx/fx'
import { Namespace } from '../../src/fx/graph/namespace.ts'
import { snakeCase } from '../../src/protocol/index.ts'
import { nameTarget } from '../../src/protocol/index.ts'
import { readExtra } from './golden.ts'

const golden = readExtra<{
  create_name: readonly (readonly [string, string])[]
  node_names: readonly (readonly [Opcode, string, string, string, string])[]
  snake_case: readonly (readonly [string, string])[]
  /** Python's keywords and builtins, and what PyTorch's code refers to. */
  reserved: readonly string[]
}>('naming')

/** Words of JavaScript that PyTorch may use as names. */
const JAVASCRIPT = new Set([
  'null',
  'this',
  'let',
  'var',
  'const',
  'function',
  'new',
  'void',
  'typeof',
  'switch',
  'case',
  'default',
  'do',
  'catch',
  'throw',
  'delete',
])

/** The function with that name here, or one that only has the name. */
function targetOf(name: string): Target {
  const known: Readonly<Record<string, unknown>> = {
    'torch.relu': torch.relu,
    'torch.nn.functional.relu': torch.nn.functional.relu,
    'operator.add': operator.add,
    'torch.add': torch.add,
    'operator.getitem': operator.getitem,
    'torch.sum': torch.sum,
    'operator.truediv': operator.truediv,
  }
  if (known[name] !== undefined) return known[name] as Target
  const parts = name.split('.')
  const overload = name.startsWith('torch.ops.') && parts.length === 5
  return nameTarget(() => {}, { name: `named.${name}`, shortName: overload ? parts.slice(-2).join('_').toLowerCase() : (parts.at(-1) as string) })
}

describe('names', () => {
  it('are made unique as PyTorch does', () => {
    const namespace = new Namespace()
    for (const [candidate, name] of golden.create_name) expect(JAVASCRIPT.has(candidate) ? name : namespace.create(candidate)).toBe(name)
  })

  it('test_snake_case: are written in snake case as PyTorch does', () => {
    for (const [name, snake] of golden.snake_case) expect(snakeCase(name)).toBe(snake)
  })

  it('of nodes come from what they call', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    for (const [op, , name, target, text] of golden.node_names) {
      const node = graph.createNode(op, op === 'call_function' ? targetOf(target) : target, op === 'placeholder' ? [] : [x])
      expect(node.name).toBe(name)
      expect(node.formatNode().replace('target=named.', 'target=')).toBe(text)
    }
  })

  it('test_graph_unique_names_manual: names that end in numbers stay unique in copies', () => {
    const graph = new Graph()
    const a = graph.placeholder('x')
    const b = graph.createNode('call_module', 'linear_mod', [a], {}, 'foo_1_1')
    const c = graph.createNode('call_module', 'other', [b], {}, 'foo_1')
    graph.output(graph.callFunction(torch.add, [b, c]))
    const copy = new Graph()
    copy.output(copy.graphCopy(graph, new Map()))
    const names = [...copy.nodes].map((n) => n.name)
    expect(new Set(names).size).toBe(names.length)
  })

  it('of erased nodes are not used again', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    graph.eraseNode(graph.callFunction(torch.relu, [x]))
    expect(graph.callFunction(torch.relu, [x]).name).toBe('relu_1')
  })

  it('no node takes a word that PyTorch reserves; it gives away `None`', () => {
    const taken = golden.reserved.filter((word) => word !== 'None' && new Graph().createNode('placeholder', 'x', [], {}, word).name !== `${word}_1`)
    expect(taken).toEqual([])
  })
})
