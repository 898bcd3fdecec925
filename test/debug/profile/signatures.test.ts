// What operators were called with, in a profile, against the calls themselves: programs of drawn shapes, dtypes and flags, whose calls a profile takes for one another where a hash says so.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { profile } from 'tensorfx/debug'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { RecordMode, isArgList, withMode } from '../../../src/dispatch/index.ts'
import type { Arg, RecordedCall } from '../../../src/dispatch/index.ts'
import { flopsOf } from '../../../src/debug/profile/flops.ts'
import { dtypeInfo } from '../../../src/kernels/index.ts'
import { Tensor as TensorClass } from '../../../src/tensor/index.ts'

const tensorsIn = (args: readonly Arg[]): readonly Tensor[] =>
  args.flatMap((arg) => (arg instanceof TensorClass ? [arg] : isArgList(arg) ? tensorsIn(arg) : []))
const sizeOf = (tensors: readonly Tensor[]): number => tensors.reduce((sum, { numel, dtype }) => sum + numel * dtypeInfo[dtype].size, 0)

/** What the profile of a call should say. */
function expected({ op, args, result }: RecordedCall): object {
  const outputs = result instanceof TensorClass ? [result] : result
  const bytes = op.tags.has('view') ? 0 : sizeOf([...tensorsIn(args), ...outputs])
  return { name: op.qualname, shapes: tensorsIn(args).map(({ sizes }) => [...sizes]), bytes, flops: flopsOf(op, args, result) }
}

/** Calls with shapes that are drawn from few, so that they repeat, and from sizes whose hashes coincide: 31 * 1 + 40 = 31 * 2 + 9. */
function program(seed: number): () => void {
  const { int: draw } = randomFrom(seed)
  const sizes = [1, 2, 3, 9, 40]
  const steps = Array.from({ length: 60 }, () => {
    const [n, m, k] = [0, 0, 0].map(() => sizes[draw(sizes.length)] ?? 1)
    const dtype = draw(2) === 0 ? 'float32' : 'float64'
    const [a, b] = [torch.ones([n ?? 1, m ?? 1], { dtype }), torch.ones([m ?? 1, k ?? 1], { dtype })]
    const keepdim = draw(2) === 0
    return [() => a.mm(b), () => a.add(a), () => a.sum(0, keepdim), () => torch.cat([a, a], 1), () => a.reshape([-1]), () => a.split(1)][draw(6)]
  })
  return () => {
    for (const step of steps) step?.()
  }
}

describe('signatures of calls', () => {
  it('have the shapes, bytes and FLOPs of each call', () => {
    for (const seed of [1, 2, 3]) {
      const run = program(seed)
      const mode = new RecordMode()
      withMode(mode, run)
      const once = mode.calls.map(expected)
      const { events } = profile(run, { runs: 2 })
      const seen = events.filter(({ engine }) => engine === 'eager').map(({ name, shapes, bytes, flops }) => ({ name, shapes, bytes, flops }))
      expect(seen).toEqual([...once, ...once])
    }
  })

  it('tell the gradients that a convolution computes', () => {
    const conv = new nn.Conv2d(2, 3, 3)
    const x = torch.randn([1, 2, 8, 8])
    const flops = (input: Tensor): number => {
      const { rows } = profile(() => conv(input).sum().backward()).keyAverages()
      return rows.find(({ name }) => name.endsWith('convolution_backward'))?.flops ?? 0
    }
    const one = flops(x)
    expect(one).toBeGreaterThan(0)
    expect(flops(x.clone().requiresGrad_())).toBe(2 * one)
    const input = x.clone().requiresGrad_()
    const both = profile(() => {
      conv(x).sum().backward()
      conv(input).sum().backward()
    })
    const each = both.events.filter(({ name }) => name.endsWith('convolution_backward')).map((event) => event.flops)
    expect(each).toEqual([one, 2 * one])
  })

  it('leave nothing of the run to warm up in the events', () => {
    let run = 0
    const a = torch.ones([4, 4])
    const weight = torch.ones([4, 4], { requiresGrad: true })
    const result = profile(() => (run++ === 0 ? a.mm(weight).sum().backward() : Array.from({ length: 6 }, () => torch.relu(a))))
    expect(result.events.map(({ name, flops, shapes, sequence, backward }) => ({ name, flops, shapes, sequence, backward }))).toEqual(
      Array.from({ length: 6 }, () => ({ name: 'torch.relu', flops: 0, shapes: [[4, 4]], sequence: null, backward: null })),
    )
  })
})
