// What a trace captured from outside, and what it knows of parameters and buffers.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, Tracer, symbolicTrace } from 'tensorfx/fx'
import * as nn from 'tensorfx/nn'

const { tensor } = torch

const { Module, Parameter } = nn
const values = (t: unknown): number[] => Array.from((t as Tensor).contiguous().toTypedArray(), Number)
const run = (m: GraphModule, ...args: readonly unknown[]): unknown => (m.forward as (...a: readonly unknown[]) => unknown)(...args)

describe('captured constants', () => {
  const small = tensor([1, 2])
  const large = torch.ones([100, 2])

  it('are reported with path, size and the user’s line; largest first for a graph, in order of use by the tracer', () => {
    const tracer = new Tracer()
    const gm = symbolicTrace((x: Tensor) => x.add(small).add(large).mul(small), { tracer })
    expect(tracer.constants.map(({ path, shape, dtype, bytes }) => [path, shape, dtype, bytes])).toEqual([
      ['_tensor_constant0', [2], 'float32', 8],
      ['_tensor_constant1', [100, 2], 'float32', 800],
    ])
    expect(gm.capturedConstants().map(({ path, bytes }) => [path, bytes])).toEqual([
      ['_tensor_constant1', 800],
      ['_tensor_constant0', 8],
    ])
    expect(gm.capturedConstants()[0]?.value).toBe(large)
    expect(tracer.constants[0]?.origin?.file).toMatch(/constants\.test\.ts$/)
  })

  it('parameters, buffers and tensor attributes of the module are its own state, and are not among them', () => {
    class Owns extends Module {
      readonly p = new Parameter(torch.ones([2]))
      readonly t = tensor([3, 4])
      override forward(x: Tensor): Tensor {
        return x.mul(this.p).add(this.t)
      }
    }
    const tracer = new Tracer()
    expect(symbolicTrace(new Owns(), { tracer }).capturedConstants()).toEqual([])
    expect(tracer.constants).toEqual([])
  })

  it('what a rewrite removed is no longer reported', () => {
    const gm = symbolicTrace((x: Tensor) => {
      x.add(large)
      return x.mul(small)
    })
    expect(gm.capturedConstants()).toHaveLength(2)
    gm.graph.eliminateDeadCode()
    expect(gm.capturedConstants().map((c) => c.path)).toEqual(['_tensor_constant1'])
  })

  it('sizes follow from the dtype', () => {
    const bytes = (t: Tensor): number | null | undefined => symbolicTrace((x: Tensor) => torch.where(x, t, t)).capturedConstants()[0]?.bytes
    expect([bytes(tensor([true, false, true])), bytes(tensor(new Int32Array(4))), bytes(torch.ones([2], { dtype: 'float64' }))]).toEqual([3, 16, 16])
  })

  it('a name that the module uses already is left alone', () => {
    class Taken extends Module {
      readonly _tensor_constant0 = tensor([5])
      override forward(x: Tensor): Tensor {
        return x.add(small).mul(this._tensor_constant0)
      }
    }
    const gm = symbolicTrace(new Taken())
    expect([...gm.graph.nodes].filter((n) => n.op === 'get_attr').map((n) => n.target)).toEqual(['_tensor_constant1', '_tensor_constant0'])
    expect(values(run(gm, tensor([0, 0])))).toEqual([5, 10])
  })
})

describe('shapes of parameters and buffers are plain numbers', () => {
  class Shaped extends Module {
    readonly weight = new Parameter(torch.ones([4, 3]))
    declare table: Tensor
    readonly ask: (w: Tensor) => unknown
    constructor(ask: (w: Tensor) => unknown) {
      super()
      this.registerBuffer('table', torch.ones([4, 3]))
      this.ask = ask
    }
    override forward(x: Tensor): Tensor {
      const yes = this.ask(this.weight) === true && this.ask(this.table) === true
      return yes ? x.add(this.weight) : x.mul(this.weight)
    }
  }
  const cases: readonly [string, (w: Tensor) => unknown][] = [
    ['test_param_shape_const: shape', (w) => w.shape[0] === 4 && w.shape.length === 2],
    ['test_param_size_const: size', (w) => w.size(1) === 3 && (w.size() as number[]).join() === '4,3'],
    ['test_param_dim_const: dim', (w) => w.dim() === 2],
    ['test_param_ndim_const: ndim', (w) => w.ndim === 2],
    ['test_param_numel_const, test_param_nelement_const: numel', (w) => w.numel === 12],
    ['dtype', (w) => w.dtype === 'float32'],
  ]

  it.each(cases)('%s', (_, ask) => {
    const gm = symbolicTrace(new Shaped(ask))
    expect([...gm.graph.nodes].filter((n) => n.op === 'call_method').map((n) => n.target)).toEqual(['add'])
    const not = symbolicTrace(new Shaped((w) => ask(w) !== true))
    expect([...not.graph.nodes].filter((n) => n.op === 'call_method').map((n) => n.target)).toEqual(['mul'])
  })

  it('paramShapesConstant: false records the questions, as PyTorch does by default (difference: known-shapes)', () => {
    class Asks extends Module {
      readonly weight = new Parameter(torch.ones([4, 3]))
      override forward(x: Tensor): Tensor {
        return x.view(this.weight.shape)
      }
    }
    const gm = symbolicTrace(new Asks(), { tracer: new Tracer({ paramShapesConstant: false }) })
    expect(String(gm.graph)).toContain('call_function[target=builtins.getattr](args = (%weight, shape), kwargs = {})')
    expect(values(run(gm, torch.ones([12])))).toHaveLength(12)
  })

  it('other questions about a parameter are recorded', () => {
    class Uses extends Module {
      readonly weight = new Parameter(torch.ones([2, 2]))
      override forward(x: Tensor): Tensor {
        return x.matmul(this.weight.t())
      }
    }
    expect([...symbolicTrace(new Uses()).graph.nodes].map((n) => n.name)).toEqual(['x', 'weight', 't', 'matmul', 'output'])
  })
})
