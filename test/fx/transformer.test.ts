// The Transformer: graphs rewritten by interpreting them with traced values.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, NodeSource, Transformer, getGraphProvenanceJson, symbolicTrace } from 'tensorfx/fx'
import type { Node, Target } from 'tensorfx/fx'
import * as nn from 'tensorfx/nn'

const { tensor } = torch

const { Module, Parameter } = nn
const values = (t: unknown): number[] => Array.from((t as Tensor).contiguous().toTypedArray(), Number)
const run = (m: GraphModule, ...args: readonly unknown[]): unknown => (m.forward as (...a: readonly unknown[]) => unknown)(...args)

class MyModule extends Module {
  readonly param = new Parameter(torch.ones([3, 4]))
  readonly linear = new nn.Linear(4, 5)
  override forward(x: Tensor): Tensor {
    return this.linear.call(x.add(this.param)).relu()
  }
}

class Inner extends Module {
  readonly w = new Parameter(torch.ones([2]))
  override forward(x: Tensor): Tensor {
    return x.mul(this.w)
  }
}
class Outer extends Module {
  readonly inner = new Inner()
  override forward(x: Tensor): Tensor {
    return this.inner.call(x).add(1)
  }
}

describe('Transformer', () => {
  it('test_transformer_noop: nothing overridden, nothing changed', () => {
    const gm = symbolicTrace(new MyModule())
    const made = new Transformer(gm).transform()
    expect(String(made.graph)).toBe(String(gm.graph))
    const x = torch.ones([3, 4])
    expect(values(run(made, x))).toEqual(values(run(gm, x)))
    expect((made as unknown as MyModule).linear).toBe((gm as unknown as MyModule).linear)
    made.graph.lint()
  })

  it('test_transformer_op_swap: functions and methods change places', () => {
    class Swap extends Transformer {
      override callFunction(target: Target, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
        return target === torch.sigmoid ? torch.neg(...(args as [Tensor])) : super.callFunction(target, args, kwargs)
      }
      override callMethod(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
        return target === 'neg' ? (args[0] as Tensor).sigmoid() : super.callMethod(target, args, kwargs)
      }
    }
    const made = new Swap(symbolicTrace((x: Tensor) => torch.sigmoid(x).neg())).transform()
    const x = tensor([0.5, -1])
    expect(values(run(made, x))).toEqual(values(torch.neg(x).sigmoid()))
  })

  it('test_transformer_multi_outputs: several outputs, nested', () => {
    const gm = symbolicTrace((x: Tensor) => ({ a: x.add(1), b: [x.mul(2), null] }))
    const made = new Transformer(gm).transform()
    expect(String(made.graph)).toBe(String(gm.graph))
    const out = run(made, tensor([1])) as { a: Tensor; b: [Tensor, null] }
    expect([values(out.a), values(out.b[0]), out.b[1]]).toEqual([[2], [2], null])
  })

  it('an overridden output is the new graph’s output', () => {
    class Twice extends Transformer {
      override output(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
        const value = super.output(target, args, kwargs) as Tensor
        return [value, value.neg()]
      }
    }
    const made = new Twice(symbolicTrace((x: Tensor) => x.relu())).transform()
    expect((run(made, tensor([2])) as Tensor[]).map(values)).toEqual([[2], [-2]])
  })

  it('defaults, rest and options parameters, names and types survive', () => {
    const gm = symbolicTrace((x: Tensor, y = 2, { scale = 3 } = {}, ...more: Tensor[]) =>
      x
        .mul(y)
        .mul(scale)
        .add(more[0] as Tensor),
    )
    ;(gm.graph.first as Node).type = 'Tensor'
    const made = new Transformer(gm).transform()
    expect(String(made.graph)).toBe(String(gm.graph))
    expect(made.graph.first?.type).toBe('Tensor')
    expect(values(run(made, tensor([1]), 2, { scale: 5 }, tensor([4])))).toEqual([14])
  })

  it('test_stack_traces_with_transformer: new nodes have the stacks of the old ones', () => {
    const gm = symbolicTrace(new MyModule())
    const made = new Transformer(gm).transform()
    for (const node of made.graph.nodes) {
      if (node.op === 'output') continue
      expect(String(node.stackTrace)).toMatch(/transformer\.test\.ts/)
    }
    const before = [...gm.graph.nodes].map((n) => String(n.stackTrace))
    expect([...made.graph.nodes].map((n) => String(n.stackTrace))).toEqual(before)
  })

  it('test_transformer_preserves_nn_module_stack_for_get_attr: module paths survive, also for parameters', () => {
    const made = new Transformer(symbolicTrace(new Outer())).transform()
    const w = [...made.graph.nodes].find((n) => n.op === 'get_attr') as Node
    expect([...(w.meta['nn_module_stack'] as Map<string, unknown>)]).toEqual([['inner', ['inner', 'Inner']]])
  })

  it('test_node_source, test_graph_provenance: new nodes know the nodes and passes that they came from, through several passes', () => {
    const first = symbolicTrace((x: Tensor) => x.relu())
    class Again extends Transformer {}
    const second = new Transformer(first).transform()
    const third = new Again(second).transform()
    const relu = [...third.graph.nodes][1] as Node
    const [source] = relu.meta['from_node'] as NodeSource[]
    expect(source).toBeInstanceOf(NodeSource)
    expect([source?.name, source?.target, source?.passName, source?.action]).toEqual(['relu', 'relu', 'Interpreter_Again', ['create']])
    expect(source?.fromNode[0]?.passName).toBe('Interpreter_Transformer')
    expect(String(source)).toBe(
      `(name=relu, pass_name=Interpreter_Again, action=create, graph_id=${second.graph.label})\n` +
        `    (name=relu, pass_name=Interpreter_Transformer, action=create, graph_id=${first.graph.label})\n`,
    )
    const json = getGraphProvenanceJson(third.graph)
    expect(JSON.parse(JSON.stringify(json['relu']))).toEqual([
      {
        name: 'relu',
        target: 'relu',
        graph_id: second.graph.label,
        pass_name: 'Interpreter_Again',
        action: 'create',
        from_node: [
          { name: 'relu', target: 'relu', graph_id: first.graph.label, pass_name: 'Interpreter_Transformer', action: 'create', from_node: [] },
        ],
      },
    ])
  })
})
