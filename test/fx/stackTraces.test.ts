// Every node knows the user's line that made it.
import { describe, expect, it } from 'vitest'
import type { Tensor } from 'tensorfx'
import {
  Graph,
  NodeSource,
  TraceError,
  Tracer,
  formatStack,
  getCurrentMeta,
  hasPreservedNodeMeta,
  originOf,
  preserveNodeMeta,
  setCurrentMeta,
  setStackTrace,
  symbolicTrace,
} from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import * as nn from 'tensorfx/nn'

const helper = (x: Tensor): Tensor => x.relu()
class Model extends nn.Module {
  readonly linear = new nn.Linear(2, 2)
  override forward(x: Tensor): Tensor {
    const y = this.linear.call(x)
    return helper(y).add(1)
  }
}

describe('stacks', () => {
  it('test_stack_traces: each node has the file, line and function of the call, and copies keep them (difference: stacks-on)', () => {
    const { graph } = symbolicTrace(new Model())
    const places = new Map([...graph.nodes].map((n) => [n.name, originOf(n)]))
    for (const name of ['linear', 'relu', 'add']) expect(places.get(name)?.file).toMatch(/stackTraces\.test\.ts$/)
    expect(places.get('relu')?.fn).toBe('helper')
    const named = symbolicTrace(function plain(x: Tensor) {
      return x.neg()
    })
    expect(originOf(named.graph.first?.next as Node)?.fn).toBe('plain')
    expect(places.get('linear')?.fn).toMatch(/forward$/)
    expect((places.get('add')?.line as number) - (places.get('linear')?.line as number)).toBe(1)
    const relu = [...graph.nodes].find((n) => n.name === 'relu') as Node
    expect(String(relu.stackTrace)).toMatch(
      / {2}File ".*", line \d+, in .*forward\n {4}return helper\(y\)\.add\(1\)\n {2}File ".*", line \d+, in helper\n {4}.*x\.relu\(\)\n$/,
    )
    const copy = new Graph().nodeCopy(graph.first as Node)
    expect(copy.stackTrace).toBe(graph.first?.stackTrace)
  })

  it('none of tensorfx’s own frames are among them', () => {
    const { graph } = symbolicTrace(new Model())
    for (const node of graph.nodes) expect(String(node.stackTrace)).not.toMatch(/\/src\/fx\/|\/dist\/fx\//)
  })

  it('recordStackTraces = false leaves them out', () => {
    class Quiet extends Tracer {
      override recordStackTraces = false
    }
    expect([...new Quiet().trace(new Model()).nodes].every((n) => n.stackTrace === null)).toBe(true)
  })

  it('they are short to keep: the record of the engine is replaced by frames when it is read, and frames are shared', () => {
    const { graph } = symbolicTrace((x: Tensor) => {
      let y = x
      for (let i = 0; i < 3; i++) y = y.add(i)
      return y
    })
    const frames = [...graph.nodes].filter((n) => n.target === 'add').map(originOf)
    expect(frames[1]).toBe(frames[0])
    expect(frames[2]).toBe(frames[0])
  })

  it('a trace error shows the user’s code with the place marked', () => {
    const condition = (x: Tensor): boolean => x.sum().gt(0) as never
    try {
      symbolicTrace((x: Tensor) => (Number(condition(x)) > 0 ? x : x.neg()))
      expect.unreachable()
    } catch (error) {
      expect(error).toBeInstanceOf(TraceError)
      expect((error as Error).message).toMatch(
        /\n {2}at .*stackTraces\.test\.ts:\d+:\d+\)\n\n[\s\S]*\n> +\d+ \| .*Number\(condition\(x\)\)[\s\S]*\n +\| +\^\n/,
      )
      expect((error as Error).message).toContain('What to do:')
    }
  })
})

describe('the meta that new nodes inherit', () => {
  const origin = (): Node => {
    const node = symbolicTrace(new Model()).graph.first?.next as Node
    node.meta['custom'] = { a: 1 }
    node.meta['other'] = 2
    return node
  }

  it('preserveNodeMeta and setCurrentMeta: stack, module path and origin are passed on, other keys are not', () => {
    const from = origin()
    const tracer = new Tracer()
    expect(hasPreservedNodeMeta()).toBe(false)
    preserveNodeMeta(() => {
      expect(hasPreservedNodeMeta()).toBe(true)
      setCurrentMeta(from, 'my_pass', () => {
        expect(getCurrentMeta()['custom']).toEqual({ a: 1 })
        expect(formatStack()).toEqual([String(from.stackTrace)])
        tracer.trace((x: Tensor) => x.neg())
      })
    })
    expect(hasPreservedNodeMeta()).toBe(false)
    const neg = [...tracer.graph.nodes][1] as Node
    expect(neg.stackTrace).toBe(from.stackTrace)
    expect(neg.meta['nn_module_stack']).toBe(from.meta['nn_module_stack'])
    expect(neg.meta['custom']).toEqual({ a: 1 })
    expect('other' in neg.meta).toBe(false)
    expect((neg.meta['from_node'] as NodeSource[])[0]?.passName).toBe('my_pass')
  })

  it('without preserveNodeMeta nothing is inherited', () => {
    const from = origin()
    const graph = setCurrentMeta(from, 'my_pass', () => new Tracer().trace((x: Tensor) => x.neg()))
    expect([...graph.nodes].every((n) => n.meta['from_node'] === undefined)).toBe(true)
  })

  it('setStackTrace sets the stack of what follows', () => {
    const graph = preserveNodeMeta(() => {
      setStackTrace('File "a", line 1, in f')
      return new Tracer().trace((x: Tensor) => x.neg())
    })
    expect(graph.first?.stackTrace).toBe('File "a", line 1, in f')
    expect(formatStack()).toEqual([])
  })

  it('a source without a node has no name', () => {
    expect(new NodeSource(null, 'pass', 'replace').toJSON()).toEqual({
      name: '',
      target: '',
      graph_id: '',
      pass_name: 'pass',
      action: 'replace',
      from_node: [],
    })
    expect(new NodeSource(null, 'pass', ['create', 'replace']).toString()).toContain('action=create+replace')
  })
})
