// The three accuracies of docs/guide/compile.md: against float64, errors are at most 1.5 times those of strict code, and with fast convolutions 8 times. The errors are the largest of
// several draws, forward and backward, eager and compiled.
import { describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { withStrict } from '../../src/kernels/engine/computing.ts'

const F = torch.nn.functional
const DRAWS = 6

interface Program {
  readonly shapes: readonly (readonly number[])[]
  readonly run: (a: Tensor, b: Tensor, c: Tensor) => Tensor
}

const programs: Readonly<Record<string, Program>> = {
  'a product of matrices': {
    shapes: [
      [40, 300],
      [300, 70],
    ],
    run: (a, b) => a.mm(b),
  },
  'a product of batches': {
    shapes: [
      [3, 20, 100],
      [3, 100, 30],
    ],
    run: (a, b) => a.bmm(b),
  },
  'a matrix times a vector': { shapes: [[100, 500], [500]], run: (a, b) => a.mv(b) },
  'a row times a matrix': {
    shapes: [
      [1, 500],
      [500, 100],
    ],
    run: (a, b) => a.mm(b),
  },
  'a layer and gelu': { shapes: [[8, 256], [128, 256], [128]], run: (a, b, c) => F.gelu(F.linear(a, b, c)) },
  'a convolution of 3x3 windows': {
    shapes: [
      [2, 16, 16, 16],
      [24, 16, 3, 3],
    ],
    run: (a, b) => F.conv2d(a, b, { padding: 1 }),
  },
  'a convolution with a stride': {
    shapes: [
      [1, 8, 14, 14],
      [16, 8, 5, 5],
    ],
    run: (a, b) => F.conv2d(a, b, { stride: 2 }),
  },
  'a convolution with groups': {
    shapes: [
      [1, 8, 14, 14],
      [16, 2, 3, 3],
    ],
    run: (a, b) => F.conv2d(a, b, { groups: 4 }),
  },
  softmax: { shapes: [[30, 200]], run: (a) => torch.softmax(a.mul(3), 1) },
  logSoftmax: { shapes: [[30, 200]], run: (a) => torch.logSoftmax(a.mul(3), 1) },
  'cross entropy': {
    shapes: [[40, 300]],
    run: (a) => F.crossEntropy(a, torch.arange(40, { dtype: 'int64' }), { reduction: 'none' }),
  },
  'layer normalization': { shapes: [[30, 200], [200], [200]], run: (a, b, c) => F.layerNorm(a, [200], b, c) },
  'normalization by the root mean square': { shapes: [[30, 200], [200]], run: (a, b) => F.rmsNorm(a, [200], b) },
  'group normalization': { shapes: [[4, 16, 20], [16], [16]], run: (a, b, c) => F.groupNorm(a, 4, b, c) },
  'batch normalization': { shapes: [[4, 16, 20], [16], [16]], run: (a, b, c) => F.batchNorm(a, null, null, b, c, true) },
  attention: {
    shapes: [
      [2, 32, 16],
      [2, 40, 16],
      [2, 40, 16],
    ],
    run: (a, b, c) => F.scaledDotProductAttention(a, b, c),
  },
  exponentials: { shapes: [[3000]], run: (a) => a.tanh().mul(a.sigmoid()).add(a.exp().log1p()) },
  'sums of squares': { shapes: [[4, 3000]], run: (a) => a.square().sum(1) },
}

const largest = (t: Tensor): number => t.abs().max().item()

type Step = (...args: Tensor[]) => readonly Tensor[]

/** The result, and the gradients of a sum that weighs it. */
const stepOf =
  (run: Program['run']): Step =>
  (...args) => {
    const leaves = args.map((t) => t.detach().requiresGrad_())
    const [a, b = a, c = a] = leaves as [Tensor, ...Tensor[]]
    const out = run(a, b, c)
    out.mul(out.detach()).sum().backward()
    return [out.detach(), ...leaves.map((leaf) => leaf.grad as Tensor)]
  }

describe.each(Object.entries(programs))('%s', (_, { shapes, run }) => {
  test('is nearly as accurate as strict code', () => {
    const step = stepOf(run)
    const strictEager: Step = (...args) => withStrict(true, () => step(...args))
    const strictCompiled = compile(step, { options: { strict: true } })
    const ways: Readonly<Record<string, readonly [f: Step, strict: Step, times: number]>> = {
      eager: [step, strictEager, 1.5],
      compiled: [compile(step), strictCompiled, 1.5],
      'compiled with fast convolutions': [compile(step, { options: { convolution: 'fast' } }), strictCompiled, 8],
    }
    /** The largest error of each result, by what computed it. */
    const errors = new Map<Step, number[]>()
    const steps = [...new Set(Object.values(ways).flatMap(([f, strict]) => [f, strict]))]
    for (let draw = 0; draw < DRAWS; draw++) {
      torch.manualSeed(draw)
      const args = shapes.map((shape) => torch.randn(shape))
      const exact = step(...args.map((t) => t.double()))
      for (const f of steps) {
        const found = f(...args).map((t, i) => largest(t.double().sub(exact[i] as Tensor)))
        errors.set(
          f,
          found.map((error, i) => Math.max(error, errors.get(f)?.[i] ?? 0)),
        )
      }
    }
    for (const [way, [f, strict, times]] of Object.entries(ways)) {
      errors.get(f)?.forEach((error, i) => expect(error, `${way}, result ${i}`).toBeLessThanOrEqual(times * (errors.get(strict)?.[i] ?? NaN)))
    }
  })
})
