// Random programs mean the same eager, traced, traced again, interpreted and transformed, and a trace leaves the program as it was. TENSORFX_FUZZ_RUNS sets how many.
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, Interpreter, Transformer, symbolicTrace, wrap } from 'tensorfx/fx'
import { MetaTracer } from 'tensorfx/fx/experimental'
import * as nn from 'tensorfx/nn'
import { detInit, detInput } from '../helpers/deterministic.ts'

const { tensor } = torch

const affine = wrap((x: Tensor, options: { scale: number; shift: Tensor }) => x.mul(options.scale).add(options.shift), {
  name: 'test.tracedPrograms.affine',
})

/** A step takes the values so far and adds one; `pick` chooses among them. All values are tensors of shape [4]. */
type Step = (this: Program, values: Tensor[], pick: (i: number) => Tensor, n: number) => Tensor
const STEPS: readonly Step[] = [
  (_, pick, n) => pick(n).add(pick(n + 1)),
  (_, pick, n) => torch.mul(pick(n), pick(n + 2)),
  (_, pick, n) => torch.sub(pick(n), n),
  (_, pick) => torch.sigmoid(pick(1)).neg(),
  (_, pick, n) => {
    const [a, b] = pick(n).chunk(2) as [Tensor, Tensor]
    return torch.cat([b, a])
  },
  (_, pick, n) => pick(n).view([2, 2]).transpose(0, 1).reshape([4]),
  (_, pick, n) => torch.stack([pick(n), pick(n + 1)]).sum(0),
  (_, pick, n) => affine(pick(n), { scale: 0.5, shift: pick(n + 1) }),
  function (_, pick, n) {
    return pick(n).mul(this.weight)
  },
  function (_, pick, n) {
    return pick(n).add(this.offset)
  },
  function (_, pick, n) {
    return this.act.call(pick(n))
  },
  function (_, pick, n) {
    return this.inner.call(pick(n))
  },
  (_, pick, n) => pick(n).add(OUTSIDE),
  (_, pick, n) =>
    pick(n)
      .view([...[2, 2]])
      .select(0, n % 2)
      .repeat([2]),
]
const OUTSIDE = tensor([0.5, -0.5, 1, 2])

class Inner extends nn.Module {
  readonly fc = new nn.Linear(4, 4)
  override forward(x: Tensor): Tensor {
    return torch.tanh(this.fc.call(x))
  }
}

class Program extends nn.Module {
  readonly weight = new nn.Parameter(torch.ones([4]))
  declare offset: Tensor
  readonly act = new nn.ReLU()
  readonly inner = new Inner()
  readonly plan: readonly (readonly [number, number])[]
  constructor(plan: readonly (readonly [number, number])[]) {
    super()
    this.registerBuffer('offset', tensor([1, 2, 3, 4]))
    this.plan = plan
  }
  override forward(x: Tensor, y: Tensor): { last: Tensor; some: Tensor[] } {
    const values = [x, y]
    const pick = (i: number): Tensor => values[i % values.length] as Tensor
    for (const [step, n] of this.plan) values.push((STEPS[step] as Step).call(this, values, pick, n))
    return { last: values.at(-1) as Tensor, some: values.filter((_, i) => i % 3 === 2) }
  }
}

const numbers = (out: unknown): number[][] => {
  const { last, some } = out as { last: Tensor; some: Tensor[] }
  return [last, ...some].map((t) => Array.from(t.contiguous().toTypedArray(), Number))
}
const run = (m: nn.Module, ...args: readonly unknown[]): unknown => (m.forward as (...a: readonly unknown[]) => unknown)(...args)

const plans = fc.array(fc.tuple(fc.nat(STEPS.length - 1), fc.nat(12)), { minLength: 1, maxLength: 25 })

it('random programs mean the same eager, traced, traced again, interpreted, transformed, copied, and traced with shapes', () => {
  fc.assert(
    fc.property(plans, (plan) => {
      const program = detInit(new Program(plan))
      const before = Object.getOwnPropertyDescriptors(program)
      const inputs = [detInput([4], 1), detInput([4], 2)] as const
      const expected = numbers(program.call(...inputs))
      const gm = symbolicTrace(program)
      gm.graph.lint()
      const again = symbolicTrace(gm)
      again.graph.lint()
      const transformed = new Transformer(gm).transform()
      expect(String(transformed.graph)).toBe(String(gm.graph))
      const shaped = symbolicTrace(program, { tracer: new MetaTracer({ metaArgs: { x: inputs[0], y: inputs[1] } }) })
      expect(String(shaped.graph)).toBe(String(gm.graph))
      for (const m of [gm, again, transformed, gm.deepCopy(), shaped, new GraphModule(gm, gm.graph.deepCopy())])
        expect(numbers(run(m, ...inputs))).toEqual(expected)
      expect(numbers(new Interpreter(gm).run(...inputs))).toEqual(expected)
      const after = Object.getOwnPropertyDescriptors(program)
      for (const [name, descriptor] of Object.entries(before)) expect(Object.is((after as typeof before)[name]?.value, descriptor.value)).toBe(true)
      expect(numbers(program.call(...inputs))).toEqual(expected)
    }),
    { numRuns: Number(process.env['TENSORFX_FUZZ_RUNS'] ?? 60) },
  )
})
