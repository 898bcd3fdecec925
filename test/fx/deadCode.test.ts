// Dead code: what goes, and what stays though nobody uses it. PyTorch's test_dce_pass.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { destroyProcessGroup, functional, initProcessGroup } from 'tensorfx/distributed'
import { removedNodes } from '../helpers/deadCode.ts'
import { add_ } from '../../src/ops/index.ts'
import { targetInfo } from '../../src/protocol/index.ts'
import { Graph, GraphError, GraphModule, _assert, hasSideEffect, operator, symbolicTrace, wrap } from 'tensorfx/fx'
import { graphFromJson, graphToJson } from 'tensorfx/fx/json'
import type { Node, Traceable } from 'tensorfx/fx'
import { CSEPass } from 'tensorfx/fx/passes'

const { tensor } = torch

/** Removes dead code of a traced program, and checks that it computes the same; gives the names of what was removed. */
function removed(root: Traceable, isImpure?: (node: Node) => boolean): { gone: string[]; gm: GraphModule } {
  const gm = symbolicTrace(root)
  const placeholders = gm.graph.findNodes({ op: 'placeholder' }).length
  const x = [torch.tensor([1, -2, 3])]
  const before = (gm.deepCopy().call(...x) as Tensor).toArray()
  const gone = removedNodes(gm.graph, isImpure)
  gm.graph.lint()
  gm.recompile()
  expect(gm.graph.findNodes({ op: 'placeholder' })).toHaveLength(placeholders)
  expect((gm.call(...x) as Tensor).toArray()).toEqual(before)
  expect(gm.graph.eliminateDeadCode(isImpure)).toBe(false)
  return { gone, gm }
}

class Attributed extends nn.Module {
  readonly a = new nn.Parameter(tensor([2]))
  override forward(x: Tensor): Tensor {
    void this.a.mul(2)
    return x.add(1)
  }
}

const notes: unknown[] = []
const note = hasSideEffect(
  wrap(
    (value: unknown): void => {
      notes.push(value)
    },
    { name: 'test.deadCode.note' },
  ),
)

afterEach(() => void notes.splice(0))

describe('what nobody uses', () => {
  it('test_simple: one dead operation goes', () => {
    const { gone } = removed((x: Tensor) => {
      void x.add(1)
      return x.mul(2)
    })
    expect(gone).toEqual(['add'])
  })

  it('test_dead_chain: so does what only it used, last first', () => {
    const { gone } = removed((x: Tensor) => {
      void torch.neg(torch.relu(x.add(1)))
      return x.mul(2)
    })
    expect(gone).toEqual(['neg', 'relu', 'add'])
  })

  it('test_dead_getattr: a read of an attribute goes, with what was computed from it', () => {
    expect(removed(new Attributed()).gone).toEqual(['mul', 'a'])
  })

  it('test_dead_placeholder: an input stays an input', () => {
    // oxlint-disable-next-line no-unused-vars -- the input that nobody uses is what this is about
    const { gone, gm } = removed((x: Tensor, y?: Tensor) => x.add(1))
    expect(gone).toEqual([])
    expect([...gm.graph.nodes].map((n) => n.name)).toEqual(['x', 'y', 'add', 'output'])
  })

  it('test_dead_placeholder_with_user: what is computed from an input goes, the input stays', () => {
    const { gone, gm } = removed((x: Tensor, y = 3) => {
      void torch.neg(torch.mul(x, y))
      return x.add(7)
    })
    expect(gone).toEqual(['neg', 'mul'])
    expect([...gm.graph.nodes].map((n) => n.name)).toEqual(['x', 'y', 'add', 'output'])
  })

  it('a graph without output keeps its inputs only', () => {
    const graph = new Graph()
    graph.callFunction(torch.neg, [graph.placeholder('x')])
    graph.eliminateDeadCode()
    expect([...graph.nodes].map((n) => n.name)).toEqual(['x'])
  })
})

describe('what stays', () => {
  it('test_keep_module_with_side_effects: a module that says that it is impure', () => {
    class Model extends nn.Module {
      readonly logs = Object.assign(new nn.ReLU(), { isImpure: true })
      readonly relu = new nn.ReLU()
      override forward(x: Tensor): Tensor {
        void [this.logs.call(x), this.relu.call(x)]
        return x.add(1)
      }
    }
    expect(removed(new Model()).gone).toEqual(['relu'])
  })

  it('a layer that works in place', () => {
    const inPlace = new nn.ReLU({ inplace: true })
    class Model extends nn.Module {
      readonly relu = inPlace
      override forward(x: Tensor): Tensor {
        const y = x.add(0)
        void this.relu.call(y)
        return y
      }
    }
    expect(removed(new Model()).gone).toEqual([])
  })

  it('test_keep_torch_assert: assertions, and what they look at', () => {
    const { gone, gm } = removed((x: Tensor) => {
      _assert(operator.eq(operator.getitem(x.shape, 0), 3), 'three')
      return x.add(1)
    })
    expect(gone).toEqual([])
    expect(() => gm.call(tensor([1]))).toThrow('three')
  })

  it('test_impure_nodes_args: operators that write into their argument, as functions and as methods (difference: in-place-stays)', () => {
    const { gone } = removed((x: Tensor) => {
      const y = x.add(0)
      void add_(y, 1)
      y.mul_(2)
      void y.mul(3)
      return y
    })
    expect(gone).toEqual(['mul'])
  })

  it('test_impure_kwargs: functions that are told to work in place', () => {
    const { relu, dropout } = torch.nn.functional
    const { gone } = removed((x: Tensor) => {
      const y = x.add(0)
      relu(y, { inplace: true })
      void relu(x, { inplace: false })
      void dropout(x, 0.5, false, false)
      return y
    })
    // Dropout is random.
    expect(gone).toEqual(['relu_1'])
    const graph = new Graph()
    const x = graph.placeholder('x')
    graph.callFunction(relu, [x, true])
    graph.callFunction(relu, [x, false])
    expect(removedNodes(graph)).toEqual(['relu_1'])
  })

  it('test_impure_custom: what the given function says', () => {
    const program = (x: Tensor): Tensor => {
      void [x.add(1), torch.neg(x)]
      return x.mul(2)
    }
    expect(removed(program, (n) => n.op === 'placeholder' || n.op === 'output' || n.target === torch.neg).gone).toEqual(['add'])
  })

  it('test_adding_side_effect_function: a function that was declared to have effects', () => {
    const { gone, gm } = removed((x: Tensor) => {
      note(x)
      return x.add(1)
    })
    expect(gone).toEqual([])
    notes.length = 0
    gm.call(tensor([1, 2, 3]))
    expect(notes).toHaveLength(1)
    // Written and read again, it is the same function.
    expect(graphFromJson(graphToJson(gm.graph)).eliminateDeadCode()).toBe(false)
    expect(() => hasSideEffect(3 as never)).toThrow("hasSideEffect: argument 'fn' must be a function, got 3.")
  })

  it('test_adding_side_effect_function: also one without a name, and one that is wrapped afterwards', () => {
    const plain = hasSideEffect((x: unknown): unknown => x)
    const graph = new Graph()
    graph.callFunction(plain, [graph.placeholder('x')])
    expect(graph.eliminateDeadCode()).toBe(false)
    const later = wrap(plain, { name: 'test.deadCode.later' })
    expect(symbolicTrace((x: Tensor) => [later(x), x][1]).graph.eliminateDeadCode()).toBe(false)
  })

  describe('collectives, without which the other ranks would wait', () => {
    beforeAll(() => initProcessGroup({ backend: 'single' }))
    afterAll(() => destroyProcessGroup())
    const targets = (gm: GraphModule): string[] =>
      [...gm.graph.nodes].flatMap((node) => (node.op === 'call_function' ? [targetInfo(node.target)?.name ?? ''] : []))
    const collectives = ['torch.ops._c10d_functional.all_reduce', 'torch.ops._c10d_functional.wait_tensor']

    it('test_keep_collectives_no_overload: called as operators of torch.ops', () => {
      const { allReduce, waitTensor } = torch.ops['_c10d_functional'] as unknown as Readonly<Record<string, (...args: unknown[]) => Tensor>>
      if (allReduce === undefined || waitTensor === undefined) throw new Error('the operators are missing')
      const { gone, gm } = removed((x: Tensor) => {
        const [kept, reduced, dead] = [x.mul(2), x.mul(3), x.mul(4)]
        waitTensor(allReduce(reduced, 'sum', '0'))
        return [kept, dead][0]
      })
      expect(gone).toEqual(['mul_2'])
      expect(targets(gm)).toEqual(collectives)
    })

    it('test_keep_collectives: recorded from the functions of tensorfx/distributed', () => {
      const gm = makeFx((x: Tensor) => {
        const reduced = x.mul(3)
        functional.allReduce(reduced)
        return [x.mul(2), x.mul(4)][0]
      })(tensor([1, 2]))
      expect(removedNodes(gm.graph)).toEqual(['mul_2'])
      gm.recompile()
      expect(targets(gm)).toEqual(['torch.mul', ...collectives, 'torch.mul'])
      expect((gm.call(tensor([1, 2])) as Tensor).toArray()).toEqual([2, 4])
    })
  })

  it('test_profiler_ranges_side_effect: a range is entered and left, with work between', () => {
    const enter = wrap((name: string) => notes.push(`+${name}`), { name: 'test.deadCode.enterRange', effects: 'io' })
    const exit = wrap((range: unknown) => notes.push(`-${String(range)}`), { name: 'test.deadCode.exitRange', effects: 'io' })
    const graph = new Graph()
    const x = graph.placeholder('x')
    const range = graph.callFunction(enter, ['forward'])
    const neg = graph.callFunction(torch.neg, [x])
    graph.callFunction(exit, [range])
    graph.output(neg)
    const gm = new GraphModule({}, graph)
    expect(graph.eliminateDeadCode()).toBe(false)
    gm.recompile()
    gm.call(tensor([1]))
    expect(notes).toEqual(['+forward', '-1'])
  })

  it('random operators, as functions and as methods, so that those that stay give the same numbers', () => {
    expect(removed((x: Tensor) => [torch.sigmoid(x).bernoulli(), x.add(1)][1] as Tensor).gone).toEqual([])
    expect(removed((x: Tensor) => [torch.rand([2]), x.add(1)][1] as Tensor).gone).toEqual([])
  })
})

describe('nothing is removed', () => {
  it('when the graph has no module to ask about its modules', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    const relu = graph.callModule('relu', [x])
    graph.callFunction(torch.neg, [relu])
    graph.output(x)
    expect(() => graph.eliminateDeadCode()).toThrow(GraphError)
    expect(() => relu.isImpure()).toThrow("node 'relu': graph.owningModule not set for purity check")
    expect(graph.nodes.length).toBe(4)
    expect(removedNodes(graph, (n) => n.op === 'placeholder' || n.op === 'output')).toEqual(['neg', 'relu'])
  })

  it('when the graph is not well formed, or the given function throws', () => {
    const { graph } = symbolicTrace((x: Tensor) => [torch.neg(x), torch.relu(x), x][2])
    const before = String(graph)
    let calls = 0
    const failing = (): boolean => {
      if (++calls === 2) throw new Error('no')
      return false
    }
    expect(() => graph.eliminateDeadCode(failing)).toThrow('no')
    expect(String(graph)).toBe(before)
  })
})

describe('other passes', () => {
  it('merge no calls that work in place or were declared to have effects', () => {
    const gm = symbolicTrace((x: Tensor) => {
      note(x)
      note(x)
      torch.nn.functional.relu(x, { inplace: true })
      torch.nn.functional.relu(x, { inplace: true })
      return x
    })
    expect(new CSEPass().run(gm).modified).toBe(false)
    const random = symbolicTrace((x: Tensor) => [x.bernoulli(), x.bernoulli()])
    expect(new CSEPass().run(random).modified).toBe(false)
  })
})
