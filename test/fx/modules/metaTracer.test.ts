// Tracing with known shapes; PyTorch's experimental.meta_tracer.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { operator, symbolicTrace } from 'tensorfx/fx'
import type { ConcreteArgs, GraphModule, Traceable } from 'tensorfx/fx'
import { MetaTracer } from 'tensorfx/fx/experimental'
import type { MetaTracerOptions } from 'tensorfx/fx/experimental'
import { Embedding, LayerNorm, Linear, Module, Parameter, ReLU } from 'tensorfx/nn'
import { detInit, detInput } from '../../helpers/deterministic.ts'
import { describeGolden, expectText, messageOf, resultOf } from './golden.ts'

interface Traced {
  readonly result: { readonly graph: string; readonly error?: string }
  readonly warnings: readonly string[]
}

const add = operator.add as unknown as (a: unknown, b: unknown) => Tensor

/** Traces for tensors of these shapes. */
const traced = (program: Traceable, shapes: Readonly<Record<string, readonly number[]>>, concreteArgs: ConcreteArgs = {}): GraphModule =>
  symbolicTrace(program, {
    tracer: new MetaTracer({
      metaArgs: Object.fromEntries(
        Object.entries(shapes).map(([name, shape]) => [name, name === 'i' ? torch.zeros([...shape], { dtype: 'int32' }) : torch.zeros([...shape])]),
      ),
    }),
    concreteArgs,
  })

const last = (gm: GraphModule): string => String(gm.graph.outputNode().args[0])

describeGolden('meta_tracer', {
  'size_branches (difference: meta-sizes)': (golden) => {
    const theirs = resultOf<Record<string, Traced>>(golden)
    const f = (x: Tensor): Tensor => (x.size(0) > 1 ? x.sum() : x.mean())
    const h = (x: Tensor): Tensor => ((x.shape[0] ?? 0) > 1 ? x.sum() : x.mean())
    const k = (x: Tensor): Tensor => (x.size(1) === 2 && x.dim() === 2 ? x.neg() : x)
    const through = (x: Tensor): Tensor => h(x.t().reshape([-1, 2]))
    expect(last(traced(f, { x: [3, 2] }))).toBe('sum_1')
    const programs: Record<string, () => GraphModule> = {
      'shape[0] = 3': () => traced(h, { x: [3, 2] }),
      'shape[0] = 1': () => traced(h, { x: [1, 2] }),
      'size(1) = 2': () => traced(k, { x: [1, 2] }),
      'size(1) = 5': () => traced(k, { x: [1, 5] }),
    }
    for (const [name, make] of Object.entries(programs)) expectText(make(), theirs[name]?.result.graph ?? '')
    expect(last(traced(through, { x: [2, 3] }))).toBe('sum_1')
    expect(theirs['through operations']?.result.graph).toContain('return sum_1')
  },
  shape_dim_dtype_are_values: (golden) => {
    const program = (x: Tensor): Tensor => {
      const [a = 0, b = 0] = x.shape
      const y = x.reshape(b, a)
      return x.dtype === 'float32' ? operator.mul(y, x.dim()) : y
    }
    expectText(traced(program, { x: [3, 2] }), resultOf<Traced>(golden).result.graph)
  },
  'without_meta_args_is_a_proxy (difference: meta-sizes)': (golden) => {
    expect(resultOf<Traced>(golden).result.graph).toContain('(args = ((3, 2), %size)')
    const gm = traced((x: Tensor, y: Tensor) => operator.add(x.size(0), y.size(0)), { x: [3, 2] })
    expect(gm.graph.findNodes({ op: 'call_method', target: 'size' }).map((node) => node.args.map(String))).toEqual([['y', '0']])
    expect(gm.call(torch.zeros([3, 2]), torch.zeros([4]))).toBe(7)
  },
  'module_meta_and_stateless_module (difference: meta-sizes)': (golden) => {
    expect(resultOf<Traced>(golden).result.graph).toContain('%relu_0 : [num_users=1] = call_module[target=relu_0](args = (%l,), kwargs = {})')
    class A extends Module {
      l: Linear = new Linear(4, 6)
      e: Embedding = new Embedding(5, 3)
      override forward(x: Tensor): Tensor {
        const y = this.l.call(x)
        const z = new ReLU().call(y)
        return z.reshape((y.shape[0] ?? 0) * (y.shape[1] ?? 0))
      }
    }
    const model = detInit(new A())
    const keys = Object.keys(model)
    const gm = traced(model, { x: [2, 4] })
    expect([...gm.graph.nodes].map((node) => node.name)).toEqual(['x', 'l', 'relu_0', 'reshape', 'output'])
    expect(gm.attribute('relu_0')).toBeInstanceOf(ReLU)
    expect(Object.keys(model)).toEqual(keys)
    const input = detInput([2, 4], 1)
    expect(torch.allclose(gm.call(input), model.call(input))).toBe(true)
  },
  stateful_module_not_a_child_fails: (golden) => {
    const { error = '' } = resultOf<Traced>(golden).result
    class A extends Module {
      override forward(x: Tensor): Tensor {
        return new Linear(4, 4).call(x)
      }
    }
    expect(messageOf(() => traced(new A(), { x: [2, 4] }))).toContain(error.replace('module ', ''))
  },
  overrides: (golden) => {
    class A extends Module {
      n: LayerNorm = new LayerNorm(4)
      r: ReLU = new ReLU()
      e: Embedding = new Embedding(5, 3)
      override forward(x: Tensor, i: Tensor): unknown {
        const y = torch.abs(torch.nn.functional.relu(torch.relu(this.r.call(this.n.call(x)))))
        const z = torch.where(operator.gt(y, 0), y, x)
        const w = this.e.call(i)
        return [z.reshape(z.shape[1] ?? 0, -1), w.reshape(w.size(1), w.shape.at(-1) ?? 0)]
      }
    }
    expectText(traced(new A(), { x: [2, 4], i: [1, 2] }), resultOf<Traced>(golden).result.graph)
  },
  'size_of_dim_zero_is_whole_size (difference: meta-sizes)': (golden) => {
    expect(resultOf<Traced>(golden).result.graph).toContain('(args = (%x, (3,)), kwargs = {})')
    const gm = traced((x: Tensor) => x.reshape(x.size(0)), { x: [3] })
    expect(gm.graph.findNodes({ op: 'call_method', target: 'reshape' }).map((node) => node.args.map(String))).toEqual([['x', '3']])
  },
  get_attr_and_concrete_args: (golden) => {
    const both = resultOf<Traced[]>(golden)
    class A extends Module {
      w: Parameter = new Parameter(torch.zeros([4]))
      override forward(x: Tensor, flag: boolean): Tensor {
        const y = add(x, this.w)
        return flag ? y.reshape(y.size(1), -1) : y
      }
    }
    for (const [i, flag] of [true, false].entries())
      expectText(traced(new A(), { x: [2, 4] }, { flag }), both[i]?.result.graph ?? '', [
        `flag has been specialized to have value ${flag ? 'True' : 'False'} but got another value`,
      ])
  },
  'device_is_kept_as_attribute (difference: no-meta-device)': (golden) => {
    expect(resultOf<Traced>(golden).result.graph).toContain('device')
    expect(String(traced((x: Tensor) => x.device, { x: [3] }).graph)).toContain('target=builtins.getattr](args = (%x, device)')
  },
  'tracer_extras (difference: no-meta-device)': (golden) => {
    const [, error] = resultOf<[string[], { error: string }]>(golden)
    expect(error.error).toContain('Expected dict for meta_args')
    expect(messageOf(() => new MetaTracer({ metaArgs: 3 as unknown as MetaTracerOptions['metaArgs'] }))).toContain(
      'options.metaArgs must be an object',
    )
  },
})

describe('MetaTracer', () => {
  it('modules without state get numbers, and leave no trace on the model if tracing fails', () => {
    class A extends Module {
      override forward(x: Tensor, fails = false): Tensor {
        const act = new ReLU()
        const y = new ReLU().call(act.call(act.call(x)))
        if (fails) throw new Error('after two modules')
        return y
      }
    }
    const model = new A()
    const names = [...traced(model, { x: [2] }, { fails: false }).graph.nodes].filter((node) => node.op === 'call_module').map((node) => node.target)
    expect(names).toEqual(['relu_0', 'relu_0', 'relu_1'])
    const fresh = new A()
    expect(() => traced(fresh, { x: [2] }, { fails: true })).toThrow('after two modules')
    expect(Object.getOwnPropertyNames(fresh)).toEqual(Object.getOwnPropertyNames(new A()))
  })

  it('a program that fails for these shapes is an error (difference: meta-errors)', () => {
    expect(() => traced((x: Tensor) => x.reshape(5), { x: [3] })).toThrow('Could not compute metadata for call_method target reshape')
  })
})
