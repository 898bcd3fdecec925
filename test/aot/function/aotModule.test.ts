// Modules ahead of time: aotModule, aotModuleSimplified and memoryEfficientFusion; with PyTorch's tests of them in test/functorch/test_aotdispatch.py.
import { describe, expect, it } from 'vitest'
import { inferenceMode, nn, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { aotFunction, aotModule, aotModuleSimplified } from 'tensorfx/aot'
import { Function } from 'tensorfx/autograd'
import type { FunctionContext } from 'tensorfx/autograd'
import { fakeLike } from 'tensorfx/dispatch'
import type { GraphModule } from 'tensorfx/fx'
import { memoryEfficientFusion } from 'tensorfx/inductor'
import { differences, inputsOf, interpreted } from '../asInEager.ts'

const fwCompiler = interpreted
const ramp = (...shape: number[]): Tensor =>
  torch
    .arange(1, shape.reduce((a, b) => a * b, 1) + 1, { dtype: 'float32' })
    .reshape(shape)
    .div(7)
const values = (t: Tensor | null | undefined): unknown => t?.detach().toArray()
const gradients = (model: nn.Module): unknown => [...model.namedParameters()].map(([name, p]) => [name, values(p.grad)])

class Counting extends nn.Module {
  declare buf: Tensor
  w1 = new nn.Parameter(torch.ones([1]))
  w2 = new nn.Parameter(torch.ones([1]).mul(2))
  constructor() {
    super()
    this.registerBuffer('buf', torch.zeros([1]))
  }
  override forward(x: Tensor): Tensor {
    this.buf.add_(1)
    return this.w1.mul(x).mul(this.w2).sum().add(this.buf.sum())
  }
}

describe('aotModule', () => {
  it('test_module', () => {
    const model = new nn.Sequential(new nn.Linear(4, 4), new nn.ReLU())
    const x = ramp(4, 4)
    const expected = model.call(x) as Tensor
    expected.sum().backward()
    const theirs = gradients(model)
    model.zeroGrad()
    const compiled = aotModule(model, { fwCompiler })
    const out = compiled.call(x) as Tensor
    out.sum().backward()
    expect([values(out), gradients(model)]).toEqual([values(expected), theirs])
    const own = [...model.parameters()]
    expect([...compiled.parameters()].map((p) => own.indexOf(p))).toEqual([0, 1])
  })

  it('test_batchnorm: running statistics are written', () => {
    const [model, other] = [new nn.BatchNorm2d(4), new nn.BatchNorm2d(4)]
    const x = ramp(2, 4, 2, 2)
    ;(model.call(x) as Tensor).square().sum().backward()
    ;(aotModule(other, { fwCompiler }).call(x) as Tensor).square().sum().backward()
    const all = (m: nn.Module): unknown => [[...m.buffers()].map((b) => values(b)), gradients(m)]
    expect(all(other)).toEqual(all(model))
  })

  it('test_batchnorm_inference: nothing is written in eval mode', () => {
    const model = new nn.BatchNorm2d(4).eval()
    const graphs: GraphModule[] = []
    const compiled = aotModule(model, {
      fwCompiler: (gm) => {
        graphs.push(gm)
        return interpreted(gm)
      },
    })
    const x = ramp(4, 4, 4, 4)
    expect(values(noGrad(() => compiled.call(x)) as Tensor)).toEqual(values(noGrad(() => model.call(x)) as Tensor))
    expect(graphs.map((gm) => (gm.meta['writeBacks'] as Map<number, number>).size)).toEqual([0])
  })

  it('the mode of a child, other parameters, and frozen ones are seen', () => {
    const model = new nn.Sequential(new nn.Linear(2, 2), new nn.BatchNorm1d(2))
    const compiled = aotModule(model, { fwCompiler })
    const x = ramp(3, 2)
    const agrees = (): void => expect(values(compiled.call(x) as Tensor)).toEqual(values(model.call(x) as Tensor))
    model.eval()
    agrees()
    ;(model.getSubmodule('1') as nn.Module).train()
    const before = values((model.getSubmodule('1') as nn.BatchNorm1d).runningMean)
    compiled.call(x)
    expect(values((model.getSubmodule('1') as nn.BatchNorm1d).runningMean)).not.toEqual(before)
    model.eval()
    ;(model.getSubmodule('0') as nn.Linear).weight = new nn.Parameter(ramp(2, 2))
    agrees()
    for (const p of model.parameters()) p.requiresGrad_(false)
    expect((compiled.call(x) as Tensor).requiresGrad).toBe(false)
  })

  it('test_buffer_copied_in_graph', () => {
    const [eager, model] = [new Counting(), new Counting()]
    const compiled = aotModule(model, { fwCompiler })
    for (let call = 0; call < 2; call++) {
      const [a, b] = [torch.ones([1]), torch.ones([1])]
      const [expected, out] = [eager.call(a) as Tensor, compiled.call(b) as Tensor]
      expected.backward()
      out.backward()
      expect([values(out), values(model.buf), gradients(model)]).toEqual([values(expected), values(eager.buf), gradients(eager)])
    }
  })

  it('test_inference_mode', () => {
    const model = new nn.Linear(4, 4)
    const x = ramp(4, 4)
    expect(values(inferenceMode(() => aotModule(model, { fwCompiler }).call(x)) as Tensor)).toEqual(values(model.call(x) as Tensor))
  })
})

class Sum extends nn.Module {
  readonly change: (x: Tensor, y: Tensor) => void
  constructor(change: (x: Tensor, y: Tensor) => void = () => undefined) {
    super()
    this.change = change
  }
  override forward(x: Tensor, y: Tensor): readonly Tensor[] {
    this.change(x, y)
    return [x.add(y)]
  }
}

describe('aotModuleSimplified', () => {
  const leaf = (): Tensor => ramp(3, 3).requiresGrad_()
  const inner = (): Tensor => leaf().clone()

  it('traces at once, without calling the module', () => {
    let traces = 0
    const run = aotModuleSimplified(new Sum(() => void traces++), [ramp(3, 3), ramp(3, 3)], { fwCompiler })
    expect(traces).toBe(1)
    expect(values((run(ramp(3, 3), ramp(3, 3)) as Tensor[])[0])).toEqual(values(ramp(3, 3).mul(2)))
    expect(traces).toBe(1)
  })

  it('test_invalid_dupe_left_bias: one tensor twice is told apart from two (difference: aot-simplified-retraces)', () => {
    const model = new Sum((x) => void x.t_())
    const [x, y, z] = [inner(), inner(), leaf()]
    const run = aotModuleSimplified(model, [x, x], { fwCompiler })
    expect(values((run(x, x) as Tensor[])[0])).toEqual(values(ramp(3, 3).t().mul(2)))
    expect(values((run(y, z) as Tensor[])[0])).toEqual(values(ramp(3, 3).t().add(ramp(3, 3))))
  })

  it.each([
    ['test_invalid_dupe', (t: Tensor) => t],
    ['test_invalid_dupe_fake', (t: Tensor) => fakeLike(t.detach())],
  ])('%s: each of the two after a trace of the other (difference: aot-simplified-retraces)', (_, given) => {
    const model = new Sum((x, y) => {
      x.unsqueeze_(0)
      y.unsqueeze_(0)
    })
    const [one, other] = [given(inner()), given(inner())]
    for (const run of [aotModuleSimplified(model, [one, other], { fwCompiler }), aotModuleSimplified(model, [one, one], { fwCompiler })]) {
      const [x, y, z] = [inner(), inner(), inner()]
      expect([(run(x, y) as Tensor[])[0]?.shape, x.shape, y.shape]).toEqual([
        [1, 3, 3],
        [1, 3, 3],
        [1, 3, 3],
      ])
      expect([(run(z, z) as Tensor[])[0]?.shape, z.shape]).toEqual([
        [1, 1, 3, 3],
        [1, 1, 3, 3],
      ])
    }
  })

  it.each([
    ['test_invalid_requires_grad', (t: Tensor) => t],
    ['test_invalid_requires_grad_fake', (t: Tensor) => fakeLike(t)],
  ])('%s: inputs that want gradients after a trace for some that do not (difference: aot-simplified-retraces)', (_, given) => {
    const run = aotModuleSimplified(new Sum(), [given(leaf()), given(ramp(3, 3))], { fwCompiler })
    for (const wants of [true, false]) {
      const [x, y] = [leaf(), ramp(3, 3).requiresGrad_(wants)]
      ;(run(x, y) as Tensor[])[0]?.sum().backward()
      expect([values(x.grad), values(y.grad)]).toEqual([values(torch.ones([3, 3])), wants ? values(torch.ones([3, 3])) : undefined])
    }
  })
})

describe('aotFunction', () => {
  it('test_custom_autograd', () => {
    class More extends Function {
      static override forward(_ctx: FunctionContext, x: Tensor): Tensor {
        return x.clone()
      }
      static override backward(_ctx: FunctionContext, g: Tensor): Tensor {
        return g.add(1)
      }
    }
    expect(
      differences(
        (x: Tensor) => More.apply(x),
        inputsOf(() => [ramp(3)], { requiresGrad: true }),
      ),
    ).toEqual([])
  })

  it('test_list_codegen: a compiler whose code takes all inputs', () => {
    const inputs = [ramp(5), ramp(5), ramp(5)].map((t) => t.requiresGrad_())
    const f = aotFunction((a: Tensor, b: Tensor, c: Tensor) => a.sin().mul(b.cos()).mul(c.sin()), { fwCompiler })
    f(...(inputs as [Tensor, Tensor, Tensor]))
      .sum()
      .backward()
    expect(inputs.every((t) => t.grad !== null)).toBe(true)
  })

  class Writing extends Function {
    static override forward(ctx: FunctionContext, x: Tensor): Tensor {
      ctx.saveForBackward(x)
      return x.clone()
    }
    static override backward(ctx: FunctionContext, g: Tensor): Tensor {
      ctx.savedTensors[0]?.mul_(2)
      return g.clone()
    }
  }
  class Turning extends Writing {
    static override backward(ctx: FunctionContext, g: Tensor): Tensor {
      ctx.savedTensors[0]?.transpose_(1, 0)
      return g.clone()
    }
  }
  class OnGradient extends Writing {
    static override backward(_ctx: FunctionContext, g: Tensor): Tensor {
      return g.mul_(2).clone()
    }
  }

  it('test_backward_mutation_data: a backward that writes to an input is refused (difference: backward-writes)', () => {
    const f = aotFunction((a: Tensor, b: Tensor) => a.mul(Writing.apply(b) as never), { fwCompiler })
    const out = f(ramp(3, 3).requiresGrad_(), ramp(3, 3).requiresGrad_())
    expect(() => out.sum().backward()).toThrow(/a backward writes to an input/)
  })

  it('test_backward_mutation_metadata: a backward that gives an input another shape leaves the argument as it was', () => {
    const f = aotFunction((a: Tensor, b: Tensor) => a.mul(Turning.apply(b) as never), { fwCompiler })
    const [a, b] = [ramp(2, 3).requiresGrad_(), ramp(2, 3).requiresGrad_()]
    f(a, b).sum().backward()
    expect([b.shape, values(a.grad), values(b.grad)]).toEqual([[2, 3], values(ramp(2, 3)), values(ramp(2, 3))])
  })

  it('test_backward_mutation_on_grad_out: what a backward writes to its gradient counts', () => {
    const [a, b] = [ramp(3, 3).requiresGrad_(), ramp(3, 3).requiresGrad_()]
    aotFunction((x: Tensor, y: Tensor) => OnGradient.apply(x.mul(y)), { fwCompiler })(a, b)
      .sum()
      .backward()
    expect([values(a.grad), values(b.grad)]).toEqual([values(ramp(3, 3).mul(2)), values(ramp(3, 3).mul(2))])
  })

  it('test_subclass_metadata_mutation: a subclass of Tensor is refused, whatever is done with it', () => {
    class Named extends torch.Tensor {}
    const named = Object.setPrototypeOf(ramp(2), Named.prototype) as Tensor
    expect(() => aotFunction((x: Tensor) => x.unsqueeze_(0).mul(2), { fwCompiler })(named)).toThrow(/subclass of Tensor, Named/)
  })

  it('a tensor from outside that is no leaf gets its gradient, and passes it on once', () => {
    const w = ramp(3).requiresGrad_()
    const outer = w.mul(2)
    const f = aotFunction((x: Tensor) => x.mul(outer).add(w), { fwCompiler })
    f(ramp(3)).sum().backward()
    expect(values(w.grad)).toEqual(values(ramp(3).mul(2).add(1)))
  })
})

describe('memoryEfficientFusion', () => {
  it('of a function and of a module computes what they do', () => {
    const f = (x: Tensor): Tensor => x.sin().mul(2).add(1).relu()
    const [a, b] = [ramp(4).requiresGrad_(), ramp(4).requiresGrad_()]
    f(a).sum().backward()
    memoryEfficientFusion(f)(b).sum().backward()
    expect(values(b.grad)).toEqual(values(a.grad))
    const model = new nn.Linear(2, 3)
    const fused = memoryEfficientFusion(model)
    const x = ramp(4, 2)
    ;(fused.call(x) as Tensor).sum().backward()
    const ours = gradients(model)
    model.zeroGrad()
    ;(model.call(x) as Tensor).sum().backward()
    expect(ours).toEqual(gradients(model))
  })
})
