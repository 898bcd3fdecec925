// makeFx and aotFunction against the graphs that PyTorch captured of the same modules: the same inputs and attributes, and the numbers that PyTorch's graphs
// give when a float64 reference runs them. The operators in between differ.
import { describe, expect, it } from 'vitest'
import { Tensor, torch } from 'tensorfx'
import { aotFunction, makeFx } from 'tensorfx/aot'
import { BatchNorm2d, Conv2d, F, LayerNorm, Linear, Module } from 'tensorfx/nn'
import goldens from '../goldens/fx-extra/make_fx_and_aot.json' with { type: 'json' }
import { parseGraph } from '../fx/samples/parseGraph.ts'
import { detInit } from '../helpers/deterministic.ts'
import { Plain, plain, runAten } from './aten.ts'

class MLP extends Module {
  l1: Linear = new Linear(4, 8)
  l2: Linear = new Linear(8, 2)
  override forward(x: Tensor): Tensor {
    return this.l2.call(torch.relu(this.l1.call(x)))
  }
}

class Conv extends Module {
  c: Conv2d = new Conv2d(3, 4, 3, { padding: 1 })
  b: BatchNorm2d = new BatchNorm2d(4)
  override forward(x: Tensor): Tensor {
    return F.maxPool2d(torch.relu(this.b.call(this.c.call(x))), 2).flatten(1)
  }
}

class Att extends Module {
  q: Linear = new Linear(4, 12)
  n: LayerNorm = new LayerNorm(4)
  override forward(x: Tensor): Tensor {
    const [q, k, v] = this.q.call(this.n.call(x)).chunk(3, -1) as [Tensor, Tensor, Tensor]
    return F.gelu(F.softmax(q.matmul(k.transpose(-2, -1)).div(2), -1).matmul(v))
  }
}

/** Inputs of ones make every batch and layer norm constant; these tell more. */
const input = (shape: readonly number[]): Tensor =>
  torch
    .arange(
      0,
      shape.reduce((a, b) => a * b, 1),
      { dtype: 'float32' },
    )
    .mul(0.7)
    .sin()
    .view(shape)

const models: readonly (readonly ['MLP' | 'Conv' | 'Att', () => Module, readonly number[]])[] = [
  ['MLP', () => new MLP(), [3, 4]],
  ['Conv', () => new Conv(), [2, 3, 4, 4]],
  ['Att', () => new Att(), [2, 3, 4]],
]

const call = (model: Module, x: Tensor): Tensor => (model.call as (x: Tensor) => Tensor)(x)
/** A call with other parameters and buffers than the model's own; PyTorch's functional_call. */
function callWith(model: Module, x: Tensor, state: readonly Tensor[]): Tensor {
  const places = [...model.namedParameters(), ...model.namedBuffers()].map(([path]) => {
    const dot = path.lastIndexOf('.')
    return [model.getSubmodule(path.slice(0, Math.max(dot, 0))) as unknown as Record<string, unknown>, path.slice(dot + 1)] as const
  })
  const own = places.map(([owner, key]) => owner[key])
  const set = (values: readonly unknown[]): void => places.forEach(([owner, key], i) => void (owner[key] = values[i]))
  set(state)
  try {
    return call(model, x)
  } finally {
    set(own)
  }
}

/** Whether a tensor holds the numbers of a reference, with its shape. */
function expectClose(ours: unknown, theirs: unknown): void {
  if (!(ours instanceof Tensor) || !(theirs instanceof Plain)) throw new Error('expected a tensor and a reference')
  expect(ours.shape).toEqual(theirs.shape)
  const { data } = plain(ours)
  const worst = data.map((value, i) => Math.abs(value - (theirs.data[i] ?? Number.NaN)) / (1 + Math.abs(theirs.data[i] ?? Number.NaN)))
  expect(Math.max(...worst)).toBeLessThan(2e-5)
}

/** The tensors of a graph's values, as the reference takes them. */
const plainValues = (values: Iterable<readonly [string, unknown]>): Map<string, unknown> =>
  new Map([...values].map(([name, value]): [string, unknown] => [name, value instanceof Tensor ? plain(value) : value]))

describe.each(models)('%s', (name, make, shape) => {
  const golden = goldens[name]

  it('makeFx has PyTorch’s inputs and attributes, and computes what PyTorch’s graph does (difference: own-primitives)', () => {
    const x = input(shape)
    const gm = makeFx(detInit(make()))(x)
    gm.graph.lint()
    const theirs = parseGraph(golden.make_fx.str_graph)
    const outside = (nodes: Iterable<{ readonly op: string; readonly name: string }>): string[] =>
      [...nodes].filter((node) => node.op === 'placeholder' || node.op === 'get_attr').map((node) => node.name)
    expect(outside(gm.graph.nodes)).toEqual(outside(theirs))
    const given = new Map(outside(theirs).map((n): [string, unknown] => [n, gm.attribute(n)]))
    const output = runAten(theirs, plainValues(given.set('arg0_1', x))).get('output')
    expectClose(call(detInit(make()), x), output)
    expectClose(gm.forward(x), output)
  })

  it('aotFunction’s forward and backward compute what PyTorch’s do (difference: own-primitives)', () => {
    const x = input(shape)
    const model = detInit(make())
    const state = [...model.parameters(), ...model.buffers()]
    const forward = parseGraph(golden.aot.forward.str_graph)
    const backward = parseGraph(golden.aot.backward.str_graph)
    const primals = new Map([...state.map((t) => t.clone().detach()), x].map((t, i): [string, unknown] => [`primals_${i + 1}`, t]))
    const values = runAten(forward, plainValues(primals))
    // Before the result come the new values of buffers; after it, what the backward needs.
    const buffers = [...model.buffers()]
    const outputs = values.get('output')
    if (!Array.isArray(outputs)) throw new Error('the forward has no list of outputs')
    const result: unknown = outputs[buffers.length]
    if (!(result instanceof Plain)) throw new Error('the forward has no result')
    const gradients = runAten(
      backward,
      values.set(
        'tangents_1',
        result.map(() => 1),
      ),
    ).get('output')
    if (!Array.isArray(gradients)) throw new Error('the backward has no list of gradients')

    const seen: string[] = []
    const watch = (side: string) => (gm: { forward(...i: readonly unknown[]): unknown }) => {
      seen.push(side)
      return (...inputs: readonly unknown[]) => gm.forward(...inputs) as readonly unknown[]
    }
    const traced = aotFunction((y: Tensor, ...given: readonly Tensor[]) => callWith(model, y, given), {
      fwCompiler: watch('forward'),
      bwCompiler: watch('backward'),
    })
    const output = traced(x, ...state)
    expectClose(output, result)
    output.sum().backward()
    expect(seen).toEqual(['forward', 'backward'])
    const parameters = [...model.parameters()]
    expect(parameters.length).toBeGreaterThan(3)
    for (const [i, parameter] of parameters.entries()) expectClose(parameter.grad, gradients[i])
    for (const [i, buffer] of buffers.entries()) if (buffer instanceof Tensor && buffer.isFloatingPoint()) expectClose(buffer, outputs[i])
  })
})

it('an in-place operator is recorded as the functional one (difference: makefx-functional)', () => {
  const gm = makeFx((a: Tensor) => {
    const b = a.mul(2)
    b.add_(1)
    return b.cos()
  })(torch.ones([2]))
  const theirs = parseGraph(goldens.mutation.str_graph)
  expect(theirs.map((node) => node.name)).toEqual(['a_1', 'mul', 'add_', 'cos', 'output'])
  expect([...gm.graph.nodes].map((node) => node.name)).toEqual(['a_1', 'mul', 'add', 'cos', 'output'])
})

it('arithmetic of JavaScript reads numbers, so that the graph is for these sizes (difference: makefx-sizes)', () => {
  const gm = makeFx((x: Tensor) => x.view((x.shape[0] as number) * (x.shape[1] as number)).add(x.shape[0] as number))(torch.ones([2, 3]))
  expect(goldens.symbolic.str_graph).toContain('torch.ops.aten.sym_size.int')
  expect([...gm.graph.nodes].map((node) => node.name)).toEqual(['x_1', 'view', 'add', 'output'])
})
