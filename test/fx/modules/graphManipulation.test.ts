// Sizes of nodes and replacing targets; PyTorch's passes.graph_manipulation.
import { expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, Tracer, operator, symbolicTrace } from 'tensorfx/fx'
import { BatchNorm1d, Linear, Module, Parameter, ReLU, Sequential } from 'tensorfx/nn'
import { ShapeProp, getSizeOfAllNodes, getSizeOfNode, replaceTargetNodesWith } from 'tensorfx/fx/passes'
import type { SizeBytes } from 'tensorfx/fx/passes'
import { checkOutput } from '../samples/harness.ts'
import type { GoldenOutput } from '../samples/golden.ts'
import { X, Y, chain, describeGolden, expectText, messageOf, nodeOf, resultOf } from './golden.ts'

type Sizes = Record<string, [number, number]>

/** The sizes noted in the meta of nodes. */
const noted = (gm: GraphModule): Sizes =>
  Object.fromEntries(
    [...gm.graph.nodes].flatMap((node) => {
      const size = node.meta['size_bytes'] as SizeBytes | undefined
      return size === undefined ? [] : [[node.name, [size.outputSize, size.totalSize]]]
    }),
  )

function sized(model: Module | ((x: Tensor) => unknown)): Sizes {
  const gm = symbolicTrace(model)
  getSizeOfAllNodes(gm, [X])
  return noted(gm)
}

class WithAttribute extends Module {
  w: Parameter = new Parameter(torch.zeros([5, 4]))
  override forward(x: Tensor): Tensor {
    return operator.matmul(x, this.w.t())
  }
}

describeGolden('graph_manipulation', {
  sizes_of_all_nodes: (golden) => {
    const gm = chain()
    const sizes = getSizeOfAllNodes(gm, [X, Y])
    expect(noted(gm)).toEqual(resultOf<Sizes>(golden))
    expect(sizes.get(nodeOf(gm, 'lin'))).toEqual({ outputSize: 32, totalSize: 112 })
  },
  sizes_by_dtype: (golden) => {
    const sizes = sized((x: Tensor) => [operator.add(x.to('float64'), 1), x.gt(0), x.to('int32')])
    // Here x.to('float64') is what x.double() is in PyTorch, so two nodes are called otherwise.
    const { double, to, ...rest } = resultOf<Sizes>(golden)
    expect(sizes).toEqual({ ...rest, to: double, to_1: to })
  },
  without_args_needs_shape_prop: (golden) => {
    const [error, size] = resultOf<[{ error: string }, [number, number]]>(golden)
    const gm = chain()
    expect(messageOf(() => getSizeOfAllNodes(gm))).toBe(error.error)
    new ShapeProp(gm).propagate(X, Y)
    getSizeOfAllNodes(gm)
    expect(noted(gm)['x']).toEqual(size)
  },
  'tuple_output_has_no_size (difference: sizes-of-tuples)': (golden) => {
    expect(resultOf<{ error: string }>(golden).error).toBe("'tuple' object has no attribute 'shape'")
    expect(() => sized((x: Tensor) => operator.getitem(torch.split(x, 2, 1), 0))).toThrow("the value of node 'split' holds several tensors")
  },
  parameters_of_nested_modules_count: (golden) => {
    class A extends Module {
      seq: Sequential = new Sequential(new Linear(4, 3), new ReLU(), new Linear(3, 2))
      bn: BatchNorm1d = new BatchNorm1d(2)
      override forward(x: Tensor): Tensor {
        return this.bn.call(this.seq.call(x) as Tensor)
      }
    }
    class T extends Tracer {
      override isLeafModule(module: Module, path: string): boolean {
        return module instanceof Sequential || super.isLeafModule(module, path)
      }
    }
    const model = new A()
    const gm = new GraphModule(model, new T().trace(model))
    getSizeOfAllNodes(gm, [X])
    expect(noted(gm)).toEqual(resultOf<Sizes>(golden))
  },
  replace_functions: (golden) => {
    const [graph] = resultOf<[string]>(golden)
    const gm = chain()
    const before = gm.code
    replaceTargetNodesWith(gm, 'call_function', torch.relu, 'call_function', torch.sigmoid)
    expect(gm.code).toBe(before)
    gm.recompile()
    expect(gm.code).toContain('torch.sigmoid(lin)')
    expectText(gm, graph)
  },
  replace_changes_op: (golden) => {
    const [{ graph }, value] = resultOf<[{ graph: string }, GoldenOutput]>(golden)
    const gm = chain()
    replaceTargetNodesWith(gm, 'call_function', torch.sin, 'call_method', 'tanh')
    gm.recompile()
    expectText(gm, graph)
    checkOutput(gm.call(X, Y), value)
  },
  size_bytes_tuple: (golden) => {
    const [, outputSize, totalSize] = resultOf<[unknown, number, number]>(golden)
    // PyTorch's named tuple is an object here: three elements of a byte, and four of the parameters.
    const model = new Sequential(new Linear(4, 1, { bias: false }))
    const gm = symbolicTrace(model)
    nodeOf(gm, '_0').meta['tensor_meta'] = { shape: [3], dtype: 'bool', requiresGrad: false, strides: [1] }
    expect(getSizeOfNode(gm, nodeOf(gm, '_0'))).toEqual({ outputSize, totalSize })
  },
  get_attr_size: (golden) => {
    expect(sized(new WithAttribute())).toEqual(resultOf<Sizes>(golden))
  },
})

it('test_replace_target_nodes_with: all nodes with the target are replaced, and only those', () => {
  const gm = symbolicTrace((x: Tensor, y: Tensor) => operator.add(operator.add(torch.relu(x), y), 1))
  replaceTargetNodesWith(gm, 'call_function', operator.add, 'call_function', operator.mul)
  gm.recompile()
  expect(Array.from(gm.graph.nodes, (node) => node.target)).toEqual(['x', 'y', torch.relu, operator.mul, operator.mul, 'output'])
  expect(torch.allclose(gm.call(X, Y) as Tensor, torch.relu(X).mul(Y))).toBe(true)
})

it('a target of the wrong kind, and a module that does not exist, are errors that say so', () => {
  const gm = chain()
  expect(() => replaceTargetNodesWith(gm, 'call_function', torch.relu, 'call_method', torch.sin)).toThrow(
    "newTarget must be a string for the op 'call_method', got a function",
  )
  new ShapeProp(gm).propagate(X, Y)
  const lin = nodeOf(gm, 'lin')
  lin.target = 'missing'
  expect(() => getSizeOfNode(gm, lin)).toThrow("node 'lin' calls 'missing', but the GraphModule has no such module")
})
