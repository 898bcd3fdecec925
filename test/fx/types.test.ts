// What TypeScript knows about traced modules and nodes.
import { expect, expectTypeOf, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, Transformer, mapArg, symbolicTrace } from 'tensorfx/fx'
import type { Argument, CallFunctionNode, Kwargs, Node, TargetFunction } from 'tensorfx/fx'
import { runPasses } from 'tensorfx/fx/passes'

class Scale extends nn.Module {
  override forward(x: Tensor, by = 2): Tensor {
    return x.mul(by)
  }
}

test('a traced module is called as the module was', () => {
  const gm = symbolicTrace(new Scale())
  expectTypeOf(gm.call).toBeCallableWith(torch.ones([1]), 3)
  expectTypeOf(gm.call).returns.toEqualTypeOf<Tensor>()
  expect(gm.call(torch.ones([1]), 3).toArray()).toEqual([3])
})

test('a traced function is called as the function was, and what replaces it may be any GraphModule', () => {
  let gm = symbolicTrace((x: Tensor) => [x.relu(), x.neg()] as const)
  expectTypeOf(gm.call).returns.toEqualTypeOf<readonly [Tensor, Tensor]>()
  gm = new Transformer(gm).transform()
  expect(gm.call(torch.tensor([2]))[1].toArray()).toEqual([-2])
})

test('the type of a GraphModule made by hand says nothing, and allows everything', () => {
  const gm = new GraphModule({}, symbolicTrace((x: Tensor) => x.neg()).graph)
  expectTypeOf(gm.call).returns.toBeAny()
  const out: Tensor = gm.call(torch.ones([1]))
  expect(out.toArray()).toEqual([-1])
})

/** What nodes call, by op: a pass as users write them, without a single assertion. */
function describeNodes(gm: GraphModule): string[] {
  const lines: string[] = []
  for (const node of gm.graph.nodes) {
    switch (node.op) {
      case 'call_function':
        lines.push(`${node.target.name}/${node.args.length}`)
        break
      case 'call_module': {
        const module = gm.attribute(node.target)
        lines.push(module instanceof nn.Linear ? `Linear ${module.outFeatures}` : node.target.toUpperCase())
        break
      }
      case 'get_attr':
      case 'call_method':
        lines.push(node.target.toUpperCase())
        break
      case 'placeholder':
      case 'output':
        lines.push(node.target)
    }
  }
  return lines
}

/** `relu(x)` becomes `clamp(x, min: 0)`; the first argument may be anything. */
function reluToClamp(gm: GraphModule): boolean {
  let changed = false
  for (const node of gm.graph.nodes) {
    if (node.op !== 'call_function' || node.target !== torch.relu) continue
    const [input] = node.args
    const clamp = gm.graph.insertingBefore(node, () => gm.graph.callFunction(torch.clamp, [input], { ...node.kwargs, min: 0 }))
    clamp.copyMeta(node)
    node.replaceAllUsesWith(clamp)
    gm.graph.eraseNode(node)
    changed = true
  }
  return changed
}

test('a node is a union by op: checking the op tells what its target is', () => {
  class Net extends nn.Module {
    fc = new nn.Linear(2, 3)
    scale = new nn.Parameter(torch.ones([1]))
    override forward(x: Tensor): Tensor {
      return torch.relu(this.fc.call(x)).mul(this.scale)
    }
  }
  const gm = symbolicTrace(new Net())
  expect(describeNodes(gm)).toEqual(['x', 'Linear 3', 'relu/1', 'SCALE', 'MUL', 'output'])
  expect(runPasses([reluToClamp], gm).changed).toBe(true)
  expect(describeNodes(gm)[2]).toBe('clamp/1')
})

test('what does not fit does not compile', () => {
  const gm = symbolicTrace((x: Tensor) => torch.relu(x))
  const [node] = gm.graph.findNodes({ op: 'call_function', target: torch.relu })
  expectTypeOf(node).toEqualTypeOf<CallFunctionNode | undefined>()
  expectTypeOf(gm.graph.findNodes({ op: 'placeholder' })[0]?.target).toEqualTypeOf<string | undefined>()
  const check = (any: Node): void => {
    expectTypeOf(any.target).toEqualTypeOf<TargetFunction | string>()
    if (any.op === 'call_method') expectTypeOf(any.target).toEqualTypeOf<string>()
    // @ts-expect-error -- the target of any node may be a function
    any.target.toUpperCase()
    // @ts-expect-error -- there is no such op
    if (any.op === 'call_nothing') throw new Error('unreachable')
    // @ts-expect-error -- args are frozen
    any.args.push(1)
  }
  if (node !== undefined) expect(() => check(node)).toThrow()
  expectTypeOf(mapArg([1, 'a'], (n) => n)).toEqualTypeOf<readonly (Argument | Node)[]>()
  const kwargs: Kwargs = { a: 1 }
  expectTypeOf(mapArg(kwargs, () => 1)).toEqualTypeOf<Readonly<Record<string, Argument | number>>>()
})
