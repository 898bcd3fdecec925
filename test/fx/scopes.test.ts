// Where nodes were recorded: the modules that were being called, in meta and in the tracer.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Tracer, symbolicTrace } from 'tensorfx/fx'
import type { Graph } from 'tensorfx/fx'
import * as nn from 'tensorfx/nn'

const { Module, Parameter } = nn

class Inner extends Module {
  readonly w = new Parameter(torch.ones([2]))
  override forward(x: Tensor): Tensor {
    return x.mul(this.w)
  }
}
class Middle extends Module {
  readonly inner = new Inner()
  override forward(x: Tensor): Tensor {
    return this.inner.call(x).neg()
  }
}
class Outer extends Module {
  readonly middle = new Middle()
  readonly act = new nn.ReLU()
  override forward(x: Tensor): Tensor {
    return this.act.call(this.middle.call(x).add(1))
  }
}

const stacks = (graph: Graph): Record<string, unknown> =>
  Object.fromEntries([...graph.nodes].map((n) => [n.name, [...((n.meta['nn_module_stack'] as ReadonlyMap<string, unknown> | undefined) ?? [])]]))

describe('nn_module_stack', () => {
  it('test_nn_module_stack: the modules on the way to each node, outermost first, with their classes; nothing for the root', () => {
    expect(stacks(symbolicTrace(new Outer()).graph)).toEqual({
      x: [],
      middle_inner_w: [
        ['middle', ['middle', 'Middle']],
        ['middle.inner', ['middle.inner', 'Inner']],
      ],
      mul: [
        ['middle', ['middle', 'Middle']],
        ['middle.inner', ['middle.inner', 'Inner']],
      ],
      neg: [['middle', ['middle', 'Middle']]],
      add: [],
      act: [['act', ['act', 'ReLU']]],
      output: [],
    })
  })

  it('a module that is called again has the number of the call behind its path', () => {
    class Repeats extends Module {
      readonly inner = new Inner()
      readonly relu = new nn.ReLU()
      override forward(x: Tensor): Tensor {
        return this.relu.call(this.inner.call(this.inner.call(this.relu.call(x))))
      }
    }
    expect([...Object.values(stacks(symbolicTrace(new Repeats()).graph))].map((s) => (s as [string, unknown][]).map(([key]) => key))).toEqual([
      [],
      ['relu'],
      ['inner'],
      ['inner'],
      ['inner@1'],
      ['relu@1'],
      [],
    ])
  })

  it('an error inside a module does not leave its scope open', () => {
    class Fails extends Module {
      override forward(x: Tensor): Tensor {
        throw new Error(String(x === null))
      }
    }
    class Catches extends Module {
      readonly fails = new Fails()
      override forward(x: Tensor): Tensor {
        try {
          return this.fails.call(x)
        } catch {
          return x.relu()
        }
      }
    }
    expect(stacks(symbolicTrace(new Catches()).graph)['relu']).toEqual([])
  })

  it('nodeNameToScope has the innermost module of each node', () => {
    const tracer = new Tracer()
    tracer.trace(new Outer())
    expect(tracer.nodeNameToScope.get('mul')).toEqual({ modulePath: 'middle.inner', moduleType: 'Inner' })
    expect(tracer.nodeNameToScope.get('add')).toEqual({ modulePath: '', moduleType: null })
  })

  it('copies of nodes and graphs keep it', () => {
    const { graph } = symbolicTrace(new Outer())
    expect(stacks(graph.deepCopy())).toEqual(stacks(graph))
  })
})
