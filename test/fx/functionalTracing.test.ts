// Every function and method of the operator table is one node when it meets a traced value (PyTorch's generated TestFunctionalTracing).
import { describe, expect, it } from 'vitest'
import { Tensor, torch } from 'tensorfx'
import { GraphModule, Interpreter, Tracer, symbolicTrace, wrap } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import * as nn from 'tensorfx/nn'
import { builtInOps } from '../ops/builtInOps.ts'
import { OVERRIDE, findOverride } from '../../src/protocol/index.ts'

const { tensor } = torch

const values = (t: unknown): number[] => Array.from((t as Tensor).contiguous().toTypedArray(), Number)
const run = (m: GraphModule, ...args: readonly unknown[]): unknown => (m.forward as (...a: readonly unknown[]) => unknown)(...args)
const call = (graph: Tracer['graph']): Node => [...graph.nodes].find((n) => n.op.startsWith('call')) as Node

/** Operators that take a tensor, or a list of them, first. */
const withTensor = builtInOps().filter((op) => op.schema.args[0]?.type.base === 'Tensor')
const first = (op: (typeof withTensor)[number], x: unknown): unknown => (op.schema.args[0]?.type.list === true ? [x, x] : x)

describe('the operator table', () => {
  // They do nothing but call the method, and a trace sees through them, as in PyTorch.
  const onlyMethods = ['torch.nn.functional.sigmoid', 'torch.nn.functional.tanh']
  const functions = withTensor.filter((op) => !onlyMethods.includes(op.qualname))
  it.each(functions.map((op) => [op.qualname, op] as const))('%s is recorded as a function', (qualname, op) => {
    const node = call(new Tracer().trace((x: unknown) => op.fn(first(op, x))))
    expect(node.op).toBe('call_function')
    expect(node.target).toBe(op.fn)
    expect(node.formatNode()).toContain(`call_function[target=${qualname}]`)
  })

  const methods = withTensor.filter((op) => op.fn.name in Tensor.prototype)
  it.each(methods.map((op) => [op.qualname, op] as const))('%s is recorded as a method', (_, op) => {
    const node = call(new Tracer().trace((x: Record<string, () => unknown>) => x[op.fn.name]?.()))
    expect([node.op, node.target]).toEqual(['call_method', op.fn.name])
  })
})

describe('functions that are no operators', () => {
  it('test_custom_import: a function of the user runs in the graph', () => {
    const plus = (a: Tensor, b: number): Tensor => a.add(b)
    const gm = symbolicTrace((x: Tensor) => x.relu())
    const relu = [...gm.graph.nodes][1] as Node
    const made = gm.graph.insertingAfter(relu, () => gm.graph.callFunction(plus, [relu, 2]))
    gm.graph.outputNode().args = [made]
    gm.recompile()
    expect(values(run(gm, tensor([1])))).toEqual([3])
  })

  it('test_torch_custom_ops: a function that a library makes recordable by the override protocol', () => {
    const scale = (x: Tensor, by: number): Tensor => {
      const override = findOverride([x, by])
      return override === null ? x.mul(by) : (override[OVERRIDE]('function', scale, [x, by], {}) as Tensor)
    }
    const gm = symbolicTrace((x: Tensor) => scale(x, 3))
    expect(call(gm.graph).target).toBe(scale)
    expect(values(new Interpreter(gm).run(tensor([2])))).toEqual([6])
  })
})

describe('graphs of graphs', () => {
  class Inner extends nn.Module {
    readonly fc = new nn.Linear(2, 2)
    override forward(x: Tensor): Tensor {
      return this.fc.call(x).relu()
    }
  }
  class Outer extends nn.Module {
    inner: nn.Module = new Inner()
    override forward(x: Tensor): Tensor {
      return (this.inner.call as (t: Tensor) => Tensor)(x).neg()
    }
  }
  class GraphModulesAreLeaves extends Tracer {
    override isLeafModule(module: nn.Module, path: string): boolean {
      return module instanceof GraphModule || super.isLeafModule(module, path)
    }
  }

  it('test_tracing_graphmodules_as_leaf_submodules: a traced child is a leaf for a tracer that says so, and is traced through otherwise', () => {
    const outer = new Outer()
    outer.inner = symbolicTrace(outer.inner)
    const through = symbolicTrace(outer)
    expect([...through.graph.nodes].map((n) => n.target)).toEqual(['x', 'inner.fc', 'relu', 'neg', 'output'])
    const leaf = symbolicTrace(outer, { tracer: new GraphModulesAreLeaves() })
    expect([...leaf.graph.nodes].map((n) => n.target)).toEqual(['x', 'inner', 'neg', 'output'])
    expect(leaf.graph.tracerClass).toBe(GraphModulesAreLeaves)
    expect((leaf as unknown as Outer).inner).toBe(outer.inner)
    const x = tensor([[1, -1]])
    expect([values(run(through, x)), values(run(leaf, x))]).toEqual([values(outer.call(x)), values(outer.call(x))])
  })

  it('test_deepcopy_graph_with_tracer_cls: copies of a graph keep the tracer’s class', () => {
    expect(symbolicTrace((x: Tensor) => x, { tracer: new GraphModulesAreLeaves() }).graph.deepCopy().tracerClass).toBe(GraphModulesAreLeaves)
  })

  it('a graph with more nodes than are compiled at once is traced again as well', () => {
    const gm = symbolicTrace((x: Tensor) => {
      let y = x
      for (let i = 0; i < 20_100; i++) y = y.add(1)
      return y
    })
    const again = symbolicTrace(gm)
    expect(again.graph.nodes.length).toBe(gm.graph.nodes.length)
  })

  it('a wrapped function of a graph stays one', () => {
    const half = wrap((x: Tensor) => torch.div(x, 2), { name: 'test.functionalTracing.half' })
    const outer = symbolicTrace((x: Tensor) => half(x).neg())
    expect(call(symbolicTrace(outer).graph).target).toBe(half)
  })
})
