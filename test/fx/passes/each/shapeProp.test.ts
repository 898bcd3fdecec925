// ShapeProp: what it notes of each value.
import { describe, expect, it } from 'vitest'
import { ShapeError, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, Interpreter, Tracer, symbolicTrace } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import type { Module } from 'tensorfx/nn'
import { ShapeProp } from 'tensorfx/fx/passes'
import type { TensorMetadata } from 'tensorfx/fx/passes'

/** The notes agree with the values of a run. */
function checkNotes(gm: GraphModule, input: Tensor): Map<string, TensorMetadata> {
  new ShapeProp(gm).propagate(input)
  const interpreter = new Interpreter(gm)
  interpreter.runWith([input], { keep: 'all' })
  const notes = new Map<string, TensorMetadata>()
  for (const node of gm.graph.nodes) {
    const note = node.meta['tensor_meta'] as TensorMetadata
    const { shape, strides, dtype, requiresGrad } = interpreter.env.get(node) as Tensor
    expect(note).toEqual({ shape, strides, dtype, requiresGrad })
    notes.set(node.name, note)
  }
  return notes
}

describe('ShapeProp', () => {
  it('an error names the node and the shapes of its inputs, and keeps its class (difference: shape-prop-errors)', () => {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => torch.relu(x).matmul(y))
    const run = (): unknown => new ShapeProp(gm).propagate(torch.ones([2, 3]), torch.ones([4, 5]))
    expect(run).toThrow(ShapeError)
    expect(run).toThrow('ShapeProp error for: node=%matmul with %relu: f32[2, 3], %y: f32[4, 5]\ntorch.matmul: self has 3')
    expect(run).toThrow('While executing %matmul')
  })

  it('test_example_shape_prop: notes shape, dtype and strides for every kind of node', () => {
    class Model extends nn.Module {
      declare readonly attr: Tensor
      readonly submod = new nn.Linear(4, 4)
      constructor() {
        super()
        this.registerBuffer('attr', torch.randn([3, 4]))
      }
      override forward(x: Tensor): Tensor {
        return torch.neg(this.submod.call(x.relu().add(this.attr)))
      }
    }
    const gm = symbolicTrace(new Model())
    const notes = checkNotes(gm, torch.rand([3, 4]))
    expect(new Set([...gm.graph.nodes].map((n) => n.op))).toEqual(
      new Set(['placeholder', 'get_attr', 'call_function', 'call_method', 'call_module', 'output']),
    )
    expect(notes.get('output')).toEqual({ shape: [3, 4], dtype: 'float32', strides: [4, 1], requiresGrad: true })
    expect(notes.get('x')?.requiresGrad).toBe(false)
    expect([...gm.graph.nodes].map((n) => n.meta['type'])).toEqual(['Tensor', 'Tensor', 'Tensor', 'Tensor', 'Tensor', 'Tensor', 'Tensor'])
  })

  it('test_shape_prop_aggregate: values in arrays and objects are noted one by one', () => {
    class ReturnsTwo extends nn.Module {
      override forward(x: Tensor): unknown {
        return [3, torch.sum(x), { deep: x }]
      }
    }
    class Model extends nn.Module {
      readonly rt = new ReturnsTwo()
      override forward(x: Tensor): unknown {
        return this.rt.call(x)
      }
    }
    class RTTracer extends Tracer {
      override isLeafModule(module: Module): boolean {
        return module instanceof ReturnsTwo
      }
    }
    const gm = symbolicTrace(new Model(), { tracer: new RTTracer() })
    new ShapeProp(gm).propagate(torch.rand([3, 4]))
    const call = gm.graph.findNodes({ op: 'call_module', target: 'rt' })[0] as Node
    const [three, sum, { deep }] = call.meta['tensor_meta'] as [number, TensorMetadata, { deep: TensorMetadata }]
    expect([three, sum.shape, deep.shape, call.meta['type']]).toEqual([3, [], [3, 4], 'Array'])
  })

  it('test_shape_prop_layout: the strides tell how a value lies in memory, channels last or not', () => {
    const gm = symbolicTrace(new nn.Sequential(new nn.Conv2d(5, 5, 3), new nn.ReLU()))
    const contiguous = checkNotes(gm, torch.rand([2, 5, 8, 8]))
    expect(contiguous.get('input_1')?.strides).toEqual([320, 64, 8, 1])
    const last = checkNotes(gm, torch.rand([2, 8, 8, 5]).permute([0, 3, 1, 2]))
    expect(last.get('input_1')).toMatchObject({ shape: [2, 5, 8, 8], strides: [320, 1, 40, 5] })
    expect(last.get('output')?.shape).toEqual([2, 5, 6, 6])
    // An operator that works element by element keeps the layout, or does not; what is noted is what is.
    checkNotes(
      symbolicTrace((x: Tensor) => torch.relu(x).add(x)),
      torch.rand([2, 8, 8, 5]).permute([0, 3, 1, 2]),
    )
  })

  it('test_shape_prop_layout_3d: also with one dimension more', () => {
    const gm = symbolicTrace((x: Tensor) => x.mul(2).sum(1))
    const last = checkNotes(gm, torch.rand([2, 4, 4, 4, 3]).permute([0, 4, 1, 2, 3]))
    expect(last.get('x')).toMatchObject({ shape: [2, 3, 4, 4, 4], strides: [192, 1, 48, 12, 3] })
    expect(last.get('output')?.shape).toEqual([2, 4, 4, 4])
  })
})
