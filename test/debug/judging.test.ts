// Where a judge draws the line: right backends that round otherwise never differ, and wrong ones do, however small the values.
import { afterEach, describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { config } from 'tensorfx/compile'
import { compareBackends } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { compareTwoModels } from '../../src/debug/judge/twoModels.ts'
import type { Verdict } from '../../src/debug/judge/twoModels.ts'
import { resetConfig } from './inProcess.ts'
import { third, turn } from '../helpers/rotation.ts'

afterEach(resetConfig)

type Fn = (...inputs: Tensor[]) => Tensor

const statusOf = (gm: GraphModule, other: Fn, inputs: readonly Tensor[]): Verdict['status'] => compareTwoModels(gm, other, inputs).status

/** A sum in another order: from the last element to the first, one after the other. */
const backwards = (x: Tensor): Tensor =>
  x
    .flip([-1])
    .cumsum(-1)
    .select(-1, (x.shape.at(-1) ?? 0) - 1)

/** Pairs of programs that are equal but for rounding. */
const EQUAL: Readonly<Record<string, readonly [Fn, Fn]>> = {
  'a sum in another order': [(x) => x.sum(-1), backwards],
  'a sum that cancels': [(x) => x.sub(x.mean(-1, true)).sum(-1), (x) => backwards(x.sub(x.mean(-1, true)))],
  'a mean as a sum': [(x) => x.mean(-1), (x) => x.div(x.shape.at(-1) ?? 0).sum(-1)],
  'a product in two halves': [
    (x) => x.matmul(x.transpose(0, 1)),
    (x) => {
      const [a, b] = torch.chunk(x, 2, -1) as [Tensor, Tensor]
      return a.matmul(a.transpose(0, 1)).add(b.matmul(b.transpose(0, 1)))
    },
  ],
  'a softmax by its definition': [(x) => torch.softmax(x, -1), (x) => x.exp().div(x.exp().sum(-1, true))],
  'a variance by its moments': [(x) => x.square().mean(-1).sub(x.mean(-1).square()), (x) => x.sub(x.mean(-1, true)).square().mean(-1)],
  'what is left of large values': [(x) => x.add(1e4).sub(1e4), (x) => x.add(5e3).sub(1e4).add(5e3)],
  'a tanh by exponentials': [(x) => torch.tanh(x), (x) => torch.sigmoid(x.mul(2)).mul(2).sub(1)],
  powers: [(x) => x.mul(x).mul(x), (x) => x.mul(x.square())],
  'tiny values': [(x) => x.mul(1e-6).sum(-1), (x) => backwards(x).mul(1e-6)],
}

describe('a right backend with other rounding', () => {
  for (const dtype of ['float32', 'float16', 'bfloat16'] as const satisfies readonly DType[])
    it.each(Object.entries(EQUAL))(`is the same in ${dtype}: %s`, (_what, [one, other]) => {
      const gm = symbolicTrace(one)
      for (const seed of third([0, 1, 2, 3, 4, 5, 6])) {
        torch.manualSeed(seed)
        const x = torch.randn([6, 64]).to(dtype).requiresGrad_()
        const { status, reasons } = compareTwoModels(gm, other, [x])
        expect([seed, status, reasons]).toEqual([seed, 'same', []])
      }
    })

  it('is the same where gradients cancel to zero behind a normalization', () => {
    const net = new nn.Sequential(new nn.Linear(5, 4), new nn.BatchNorm1d(4), new nn.ReLU(), new nn.Linear(4, 3), new nn.LayerNorm([3]))
    const gm = symbolicTrace(net)
    class Other extends nn.Module {
      readonly own = gm.deepCopy()
      forward(x: Tensor): Tensor {
        const [first, norm, , last, layerNorm] = ['0', '1', '2', '3', '4'].map((name) => this.own.getSubmodule(name)) as unknown as [
          nn.Linear,
          nn.BatchNorm1d,
          nn.ReLU,
          nn.Linear,
          nn.LayerNorm,
        ]
        const linear = (v: Tensor, { weight, bias }: nn.Linear): Tensor =>
          v
            .unsqueeze(1)
            .mul(weight)
            .flip([-1])
            .sum(-1)
            .add(bias as Tensor)
        return layerNorm(linear(torch.relu(norm(linear(x, first))), last))
      }
    }
    for (const seed of third([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])) {
      torch.manualSeed(seed)
      expect(compareTwoModels(gm, new Other(), [torch.randn([8, 5])])).toMatchObject({ status: 'same', reasons: [] })
    }
  })

  it('is the same where rounding changes an index, and different where it does not', () => {
    const gm = symbolicTrace((x: Tensor) => x.mul(3).argmax(-1))
    const near = torch.tensor([1.1, 1.1 + 2 ** -23, 0])
    expect(statusOf(gm, () => torch.tensor(0, { dtype: 'int64' }), [near])).toBe('same')
    expect(statusOf(gm, () => torch.tensor(2, { dtype: 'int64' }), [near])).toBe('different')
    expect(statusOf(gm, () => torch.tensor(0, { dtype: 'int64' }), [torch.tensor([1.1, 1.2, 0])])).toBe('different')
  })
})

/** The quotient with a reciprocal: 49 / 49 is a little less than 1. */
const byReciprocal = (x: Tensor, y: Tensor): Tensor => x.mul(y.reciprocal())

/** Operators that jump where a quotient is whole: as a graph has them, by a right backend with reciprocals, and by wrong ones. */
const JUMPS: Readonly<Record<string, readonly [Fn2, Fn2, Readonly<Record<string, Fn2>>]>> = {
  fmod: [
    (x, y) => x.fmod(y),
    (x, y) => x.sub(byReciprocal(x, y).trunc().mul(y)),
    {
      'the sign of the divisor': (x, y) => x.remainder(y),
      'the nearest quotient': (x, y) => x.sub(x.div(y).round().mul(y)),
      'one divisor too much': (x, y) => x.fmod(y).add(y),
      'no divisor': (x) => x,
    },
  ],
  remainder: [
    (x, y) => x.remainder(y),
    (x, y) => x.sub(byReciprocal(x, y).floor().mul(y)),
    { 'the sign of the dividend': (x, y) => x.fmod(y), 'half of it': (x, y) => x.remainder(y).mul(0.5) },
  ],
  floorDivide: [
    (x, y) => torch.floorDivide(x, y),
    (x, y) => byReciprocal(x, y).floor(),
    { truncated: (x, y) => x.div(y).trunc(), 'one more': (x, y) => x.div(y).floor().add(1) },
  ],
  'a truncated quotient': [
    (x, y) => x.div(y, { roundingMode: 'trunc' }),
    (x, y) => byReciprocal(x, y).trunc(),
    { 'rounded down': (x, y) => x.div(y).floor(), 'not rounded': (x, y) => x.div(y) },
  ],
  'the floor of a quotient': [(x, y) => x.div(y).floor(), (x, y) => byReciprocal(x, y).floor(), { rounded: (x, y) => x.div(y).round() }],
  'a remainder of a quotient': [
    (x, y) => x.div(y).fmod(0.5),
    (x, y) => byReciprocal(x, y).fmod(0.5),
    { 'the sign of the divisor': (x, y) => x.div(y).remainder(0.5) },
  ],
  'a comparison of a quotient': [
    (x, y) => x.div(y).ge(1),
    (x, y) => byReciprocal(x, y).ge(1),
    { 'with another number': (x, y) => x.div(y).ge(2), 'always true': (x, y) => x.div(y).ge(-1e9) },
  ],
  'the place of the least quotient': [
    (x, y) => x.div(y).argmin(-1),
    (x, y) => byReciprocal(x, y).argmin(-1),
    { 'of the greatest': (x, y) => x.div(y).argmax(-1) },
  ],
  'a mean that is whole': [
    (x) => x.round().mean(-1).floor(),
    (x) =>
      x
        .round()
        .sum(-1)
        .mul(torch.tensor(1 / (x.shape[1] ?? 1), { dtype: x.dtype }))
        .floor(),
    { rounded: (x) => x.round().mean(-1).add(0.7).floor() },
  ],
}

type Fn2 = (x: Tensor, y: Tensor) => Tensor

describe('an operator that jumps where a quotient is whole', () => {
  /** Quotients that are whole, and others, of both signs. */
  const operands = (dtype: DType): readonly [Tensor, Tensor] => {
    torch.manualSeed(5)
    // The reciprocals of these numbers are too small.
    const width = dtype === 'float32' ? 61 : 49
    const integers = (from: number, to: number): Tensor => torch.randint(from, to, [8, width]).to(dtype)
    const y = integers(1, 50).add(integers(0, 2).mul(0.3))
    const x = y.mul(integers(-4, 5)).add(integers(0, 2).mul(torch.rand([8, width]).to(dtype)))
    // A row whose first and last quotient are 1, the others 2; and rows of one value.
    const row = Array.from({ length: width }, (_, i) => i + 1)
    const divisors = torch.tensor([row], { dtype })
    const dividends = torch.tensor([row.map((value) => (value === 1 || value === width ? value : 2 * value))], { dtype })
    const constant = torch.arange(1, 16).to(dtype).unsqueeze(1).expand(15, width)
    return [torch.cat([x, dividends, constant]), torch.cat([y, divisors, constant.add(0.5)])]
  }

  for (const dtype of turn(['float32', 'float64'] as const satisfies readonly DType[]))
    it.each(Object.entries(JUMPS))(`is right on either side in ${dtype}: %s`, async (_what, [graph, right, wrongs]) => {
      const gm = symbolicTrace(graph)
      const inputs = operands(dtype)
      const backend =
        (fn: Fn2) =>
        () =>
        (x: Tensor, y: Tensor): Tensor =>
          fn(x, y)
      // The reciprocal does jump somewhere.
      expect(
        torch
          .ne(graph(...inputs), right(...inputs))
          .any()
          .item(),
      ).toBe(true)
      const judged = (fn: Fn2): Verdict => compareTwoModels(gm, fn, inputs, { onlyFwd: true })
      expect(judged(right)).toMatchObject({ status: 'same', reasons: [] })
      const compared = async (fn: Fn2): Promise<unknown> => (await compareBackends(gm, inputs, { backends: [backend(fn)] })).first?.kind ?? null
      // Its single nodes are not these functions.
      if (gm.graph.nodes.length === inputs.length + 2) expect(await compared(right)).toBeNull()
      for (const [name, wrong] of Object.entries(wrongs)) {
        expect([name, judged(wrong).status]).toEqual([name, 'different'])
        expect([name, await compared(wrong)]).toEqual([name, 'wrong'])
      }
    })

  it('jumps nowhere else: quotients by powers of two are exact, and so are integers', () => {
    const x = torch.tensor([8, 16, 4, 24])
    for (const graph of [(v: Tensor) => v.fmod(4), (v: Tensor) => v.remainder(0.5), (v: Tensor) => v.div(4).floor()]) {
      const gm = symbolicTrace(graph)
      expect(statusOf(gm, graph, [x])).toBe('same')
      expect(statusOf(gm, (v) => graph(v).add(torch.tensor([0, 0, 1, 0])), [x])).toBe('different')
    }
    const integers = symbolicTrace((v: Tensor) => v.fmod(7))
    expect(statusOf(integers, (v) => v.fmod(7).add(torch.tensor([0, 7, 0], { dtype: 'int64' })), [torch.tensor([6, 7, 8], { dtype: 'int64' })])).toBe(
      'different',
    )
  })
})

describe('a wrong backend (difference: small-values)', () => {
  const x = torch.tensor([0.3, 0.7, -1.1, 0.45], { requiresGrad: true })

  it.each<[string, Fn, Fn]>([
    ['small values as zero', (v) => v.mul(1e-6), (v) => v.mul(0)],
    ['very small values with the wrong sign', (v) => v.mul(1e-30), (v) => v.mul(-1e-30)],
    ['one small element', (v) => v.mul(1e-6), (v) => v.mul(torch.tensor([1e-6, 1e-6, 1e-6, 1.1e-6]))],
    ['an element beside a NaN', (v) => v.log(), (v) => v.log().mul(torch.tensor([1, 1, 1, 1.5]))],
    ['an element beside an infinity', (v) => v.div(torch.tensor([0, 1, 1, 1])), (v) => v.div(torch.tensor([0, 1, 1, 1.5]))],
    ['the sign of an infinity', (v) => v.div(torch.tensor([0, 1, 1, 1])), (v) => v.div(torch.tensor([-0, 1, 1, 1]))],
    ['a NaN for a number', (v) => v.mul(2), (v) => v.mul(torch.tensor([2, NaN, 2, 2]))],
    ['a number for a NaN', (v) => v.log(), (v) => v.abs().log()],
    ['a shape that broadcasts', (v) => v.sum().reshape([1]), (v) => v.sum()],
    ['the gradient of a softmax', (v) => torch.softmax(v, 0), (v) => torch.softmax(v, 0).detach().add(v).sub(v.detach())],
    ['a gradient alone', (v) => v.sin(), (v) => v.sin().mul(2).sub(v.sin().detach())],
  ])('differs: %s', (_what, right, wrong) => {
    expect(statusOf(symbolicTrace(right), right, [x])).toBe('same')
    expect(statusOf(symbolicTrace(right), wrong, [x])).toBe('different')
  })

  it('differs without a float64 reference too', () => {
    config.sameTwoModelsUseFp64 = false
    const gm = symbolicTrace((v: Tensor) => v.mul(2))
    expect(statusOf(gm, (v) => v.add(v), [x])).toBe('same')
    for (const wrong of [torch.tensor([2, NaN, 2, 2]), torch.tensor([2, 2.01, 2, 2])]) {
      const { status, reasons } = compareTwoModels(gm, (v: Tensor) => v.mul(wrong), [x])
      expect([status, reasons[0]]).toEqual([
        'different',
        expect.stringMatching(/^Accuracy failed: allclose not within tol=0\.001; element 1 is .* \(output\)$/),
      ])
    }
  })

  it('is shown by its worst element', () => {
    const { reasons } = compareTwoModels(
      symbolicTrace((v: Tensor) => v.mul(2)),
      (v: Tensor) => v.mul(torch.tensor([2, 2.1, 4, 2])),
      [x],
      { onlyFwd: true },
    )
    expect(reasons).toEqual([expect.stringMatching(/^RMSE .*; element 2 is -4\.4\d*, not -2\.2\d* \(output\)$/)])
  })

  it('one element of many differs, which an average would hide', () => {
    const many = torch.randn([10_000])
    const wrong = (v: Tensor): Tensor => torch.cat([v.narrow(0, 0, 1).mul(2).add(0.01), v.narrow(0, 1, 9999).mul(2)])
    expect(
      statusOf(
        symbolicTrace((v: Tensor) => v.mul(2)),
        wrong,
        [many],
      ),
    ).toBe('different')
  })

  it('differs in integers exactly, unless they do not count (difference: exact-integers)', () => {
    const gm = symbolicTrace((v: Tensor) => v.add(1))
    const big = torch.tensor([10_000_000], { dtype: 'int64' })
    expect(statusOf(gm, (v) => v.add(2), [big])).toBe('different')
    expect(compareTwoModels(gm, (v: Tensor) => v.add(2), [big], { ignoreNonFp: true }).status).toBe('same')
  })

  it('differs in what it writes to its inputs', () => {
    const writes = symbolicTrace((v: Tensor) => v.add_(1).mul(2))
    const y = torch.ones([3])
    expect(statusOf(writes, (v) => v.add(1).mul(2), [y])).toBe('different')
    const { reasons } = compareTwoModels(
      symbolicTrace((v: Tensor) => v.mul(2)),
      (v: Tensor) => [v.mul(2), v.fill_(7)].at(0),
      [y],
      { onlyFwd: true },
    )
    expect(reasons.join()).toMatch(/\(input 0\)$/)
    expect(y.toArray()).toEqual([1, 1, 1])
  })

  it('differs in dropout: the runs draw the same numbers', () => {
    const gm = symbolicTrace(new nn.Sequential(new nn.Dropout(0.5)))
    const y = torch.randn([8, 8], { requiresGrad: true })
    const state = torch.getRngState()
    expect(statusOf(gm, (v) => torch.nn.functional.dropout(v, 0.5, true), [y])).toBe('same')
    expect(statusOf(gm, (v) => torch.nn.functional.dropout(v, 0.5, true).mul(1.5), [y])).toBe('different')
    expect(statusOf(gm, (v) => v.mul(1), [y])).toBe('different')
    expect(torch.getRngState()).toEqual(state)
  })
})

describe('what could not be judged', () => {
  const gm = symbolicTrace((v: Tensor) => v.mul(2))
  const y = torch.ones([2], { requiresGrad: true })
  const boom = (): never => {
    throw new RangeError('boom')
  }

  it('is neither the same nor different', () => {
    expect(compareTwoModels(gm, boom, [y])).toMatchObject({
      status: 'not judged',
      origin: 'compiled',
      reasons: ['the compiled model fails: RangeError: boom'],
    })
    expect(
      compareTwoModels(
        symbolicTrace((v: Tensor) => v.matmul(v.unsqueeze(0))),
        boom,
        [y],
      ),
    ).toMatchObject({ status: 'not judged', origin: 'graph' })
  })

  it('is a backward that a function does not have, but not a wrong forward', () => {
    expect(compareTwoModels(gm, (v: Tensor) => v.detach().mul(2), [y])).toMatchObject({ status: 'not judged', origin: null, error: null })
    expect(statusOf(gm, (v) => v.detach().mul(3), [y])).toBe('different')
    class Detached extends nn.Module {
      forward(v: Tensor): Tensor {
        return v.detach().mul(2)
      }
    }
    expect(compareTwoModels(gm, new Detached(), [y]).status).toBe('different')
  })

  it('is a parameter without a counterpart', () => {
    const layer = symbolicTrace(new nn.Linear(2, 2))
    class Constant extends nn.Module {
      forward(v: Tensor): Tensor {
        return layer.call(v) as Tensor
      }
    }
    expect(compareTwoModels(layer, new Constant(), [torch.ones([1, 2])], { onlyFwd: true })).toMatchObject({
      status: 'not judged',
      reasons: ["'weight' has no counterpart in the compiled model", "'bias' has no counterpart in the compiled model"],
    })
  })
})
