// Kernels for any sizes in the place of several steps: drawn programs with drawn sizes against the operators, and planted faults, which must be found.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { compile, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { withConfig } from 'tensorfx/compile'
import { counters } from 'tensorfx/debug'
import type { OpDef } from 'tensorfx/dispatch'
import { FusedSteps, isClose } from '../../../src/dynamo/run/fusedSteps.ts'
import { BEGINNINGS, SeenSizes } from '../../../src/dynamo/run/sampleSizes.ts'
import { Step } from '../../../src/dynamo/tree/traceTree.ts'
import { present } from '../../../src/errors/index.ts'
import { Layouts } from '../../../src/inductor/sized/layouts.ts'
import { SizedKernel } from '../../../src/inductor/sized/sizedKernel.ts'
import { opByName } from '../../../src/ops/index.ts'

/** Numbers from 0 up to 1, the same for the same seed. */
function drawing(seed: number): (below: number) => number {
  let state = seed * 2654435761 + 1
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

type Piece = (y: Tensor, x: Tensor, w: Tensor) => Tensor

const pieces: readonly Piece[] = [
  (y, x) => y.add(x),
  (y, _, w) => y.mul(w),
  (y) => y.tanh(),
  (y) => y.relu().sub(0.25),
  (y) => y.sub(y.mean(-1, true)),
  (y) => y.div(y.mul(y).mean(-1, true).add(0.1).sqrt()),
  (y) => y.softmax(-1),
  (y) => y.sub(y.mul(0.1).sum([0], true)),
  (y, x) => y.t().exp().t().mul(x),
  (y, x) => y.reshape([-1]).sigmoid().reshape(x.shape),
  (y, x) =>
    y
      .unsqueeze(0)
      .expand([2, ...x.shape])
      .sum(0),
]

/** The sizes of the calls: 0 and 1 are among them. */
const SIZES = [5, 7, 9, 2, 33, 64, 100, 3, 1, 0, 65]

const limits = (): number => counters.limits['verifySizes'] ?? 0

describe('a program whose sizes change', () => {
  /** Of each call of a kernel: whether it was for its inputs. */
  let runs: boolean[] = []
  /** How many of them may write a result over an input. */
  let overwriting = 0
  const { run } = SizedKernel.prototype
  beforeEach(() => {
    runs = []
    overwriting = 0
    SizedKernel.prototype.run = function (this: SizedKernel, inputs) {
      const results = run.call(this, inputs)
      runs.push(results !== null)
      if (this.overwrites.size > 0) overwriting++
      return results
    }
  })
  afterEach(() => {
    SizedKernel.prototype.run = run
  })

  it.each(Array.from({ length: 12 }, (_, i) => i))('gives what the operators give, drawn program %i', (seed) => {
    const draw = drawing(seed + 1)
    const chosen = Array.from({ length: 4 + draw(4) }, () => present(pieces[draw(pieces.length)], 'a piece'))
    const program = (x: Tensor, w: Tensor): Tensor[] => {
      const y = chosen.reduce((value, piece) => piece(value, x, w), x.mul(0.5).add(w))
      return [y, y.sum(-1)]
    }
    const compiled = compile(program, { dynamic: true })
    const before = limits()
    withConfig({ verifySizes: true }, () =>
      noGrad(() => {
        for (let call = 0; call < 20; call++) {
          const size = (): number => present(SIZES[draw(call < 4 ? 7 : SIZES.length)], 'a size')
          const [n, m] = [size(), Math.max(1, size())]
          const [x, w] = [torch.randn([n, m]), torch.randn([m])]
          compiled(x, w).forEach((got, i) => expect([n, m, i, isClose(got, program(x, w)[i])]).toEqual([n, m, i, true]))
        }
      }),
    )
    expect(limits()).toBe(before)
    expect(runs.filter(Boolean).length).toBeGreaterThan(10)
  })

  it('may write its results over the inputs that they are for, drawn programs', () => {
    for (let seed = 0; seed < 40; seed++) {
      const draw = drawing(seed + 101)
      const chosen = Array.from({ length: 2 + draw(3) }, () => present(pieces[draw(pieces.length)], 'a piece'))
      const [first, second] = [draw(3), draw(3)]
      const program = (x: Tensor, v: Tensor, w: Tensor): Tensor => {
        const y = chosen.reduce((value, piece) => piece(value, x, w), first === 0 ? x : x.mul(0.5).add(v))
        v.mul_(0.9).add_(second === 0 ? x.mean(-1, true) : y)
        x.sub_(second === 1 ? x.mean(0) : v.mul(0.1)).clamp_(-2, 2)
        return first === 1 ? x.sum(-1) : y.sum(-1)
      }
      const compiled = compile(program, { dynamic: true })
      const before = limits()
      withConfig({ verifySizes: true }, () =>
        noGrad(() => {
          for (let call = 0; call < 12; call++) {
            const size = (): number => present(SIZES[draw(call < 4 ? 7 : SIZES.length)], 'a size')
            const [n, m] = [size(), Math.max(1, size())]
            const inputs = [torch.randn([n, m]), torch.randn([n, m]), torch.randn([m])] as const
            const twins = [inputs[0].clone(), inputs[1].clone(), inputs[2]] as const
            const pairs = [[compiled(...inputs), program(...twins)] as const, ...inputs.map((one, i) => [one, twins[i]] as const)]
            pairs.forEach(([got, expected], i) => expect([seed, n, m, i, isClose(got, expected, inputs)]).toEqual([seed, n, m, i, true]))
          }
        }),
      )
      expect([seed, limits()]).toEqual([seed, before])
    }
    expect(overwriting).toBeGreaterThan(20)
  })

  it.each([
    [
      'each result needs what the other overwrites',
      (x: Tensor, v: Tensor) => {
        const [a, b] = [v.mul(0.5).sub(1), x.mul(0.25).add(v)]
        x.copy_(a)
        v.copy_(b)
      },
      true,
    ],
    ['a result needs other elements of what it overwrites', (x: Tensor) => void x.add_(x.t().mul(0.5).tanh()), false],
  ] as const)('writes over its inputs only what it has read: %s', (_, program, isOver) => {
    const compiled = compile(program, { dynamic: true })
    const before = limits()
    noGrad(() => {
      for (let call = 0; call < 40; call++) {
        const n = 33 + (call % 5)
        const inputs = [torch.randn([n, n]), torch.randn([n, n])] as const
        const twins = [inputs[0].clone(), inputs[1].clone()] as const
        compiled(...inputs)
        program(...twins)
        inputs.forEach((one, i) => expect([call, i, isClose(one, twins[i])]).toEqual([call, i, true]))
      }
    })
    expect(limits()).toBe(before)
    expect(runs.some(Boolean)).toBe(true)
    expect(overwriting > 0).toBe(isOver)
  })

  it.each([
    ['half of a size', (x: Tensor) => x.slice(0, 0, null, 2)],
    ['a size without an end', (x: Tensor) => x.slice(0, 1).mul(1)],
    ['a window in the middle', (x: Tensor) => x.narrow(0, 1, (x.shape[0] ?? 0) - 1)],
  ] as const)('is not one kernel where %s is 1, which squeeze leaves out and which broadcasts', (_, part) => {
    const programs = [
      (x: Tensor) => part(x).squeeze().clamp(-1, 0.5).mul(2),
      (x: Tensor, w: Tensor) =>
        part(x)
          .add(w.slice(0, 0, part(x).shape[0]))
          .mul(2)
          .tanh(),
    ]
    for (const program of programs) {
      const compiled = compile(program, { dynamic: true })
      const before = limits()
      withConfig({ verifySizes: true }, () => {
        for (const n of [9, 12, 7, 2, 31, 2, 8]) {
          const [x, w] = [torch.randn([n]), torch.randn([64])]
          const [expected, got] = [program(x, w), compiled(x, w)]
          expect(got.shape).toEqual(expected.shape)
          expect(torch.allclose(got, expected)).toBe(true)
        }
      })
      expect(limits() - before).toBe(0)
    }
    expect(runs.includes(true)).toBe(true)
  })

  it('is not for other sizes where those that were seen are in a proportion, such as images of one format', () => {
    const program = (x: Tensor): Tensor[] => {
      const both = torch.stack([x.mul(2), x.mul(2)])
      return [both.clamp(-1, null), torch.nn.functional.silu(both)]
    }
    for (const shapes of [
      [
        [2, 3],
        [4, 6],
        [2, 7],
        [8, 12],
      ],
      [
        [6, 3],
        [8, 4],
        [5, 4],
        [9, 2],
      ],
    ]) {
      const compiled = compile(program, { dynamic: true })
      const before = limits()
      withConfig({ verifySizes: true }, () => {
        for (const shape of shapes) {
          const x = torch.randn(shape)
          compiled(x).forEach((got, i) => expect(torch.allclose(got, present(program(x)[i], 'a result'))).toBe(true))
        }
      })
      expect(limits() - before).toBe(0)
    }
  })

  it('is not called wrong where the sizes that it is tried with are no sizes of its operators', () => {
    const program = (x: Tensor): Tensor => x.select(0, (x.shape[0] ?? 0) >> 1).sign()
    const compiled = compile(program, { dynamic: true })
    const before = limits()
    withConfig({ verifySizes: true }, () => {
      for (const n of [5, 7, 4, 9]) expect(compiled(torch.ones([n])).item()).toBe(1)
    })
    expect(limits() - before).toBe(0)
  })

  it('has no kernel for sizes that it is not for: the operators run, and a new kernel is found', () => {
    const program = (x: Tensor): Tensor => x.mul(2).add(1).tanh()
    const compiled = compile(program, { dynamic: true })
    noGrad(() => {
      for (const [n, m] of [
        [50, 80],
        [60, 80],
        [70, 80],
        [90, 80],
        [90, 110],
        [100, 120],
        [130, 140],
      ] as const) {
        const x = torch.randn([n, m])
        expect(isClose(compiled(x), program(x))).toBe(true)
      }
    })
    expect(runs).toEqual([true, false, true, true])
  })
})

const op = (name: string): OpDef => present(opByName(name), name)

/** The steps `x * 3 + x`, whose last has its result at slot 2. */
function chain(x: Tensor): Step {
  const call = { results: [x], single: true, stack: null, recording: false, sourceOffset: 0, isSized: true }
  const mul = new Step(null, {
    ...call,
    op: op('torch.mul'),
    args: [
      { kind: 'slot', slot: 0 },
      { kind: 'const', value: 3 },
    ],
    firstSlot: 1,
  })
  const alpha = { kind: 'const', value: 1 } as const
  return new Step(mul, { ...call, op: op('torch.add'), args: [{ kind: 'slot', slot: 1 }, { kind: 'slot', slot: 0 }, alpha], firstSlot: 2 })
}

describe('a kernel that is wrong', () => {
  const x = torch.arange(35).reshape([5, 7]).float()
  const right = x.mul(3).add(x)
  const faults: Readonly<Record<string, () => Tensor>> = {
    'reads with a stride that is off by one': () => torch.asStrided(right, [5, 6], [6, 1]).contiguous(),
    'reads one element further': () => torch.cat([right.reshape([-1]).narrow(0, 1, 34), torch.zeros([1])]).reshape([5, 7]),
    'has the extent of other sizes': () => torch.cat([right.narrow(0, 0, 4), torch.zeros([1, 7])]),
    'leaves out the last column': () => torch.cat([right.narrow(1, 0, 6), torch.zeros([5, 1])], 1),
    'has another shape': () => right.reshape([7, 5]),
    'has another layout': () => right.t().contiguous().t(),
    'has another dtype': () => right.double(),
    'divides by another count': () => right.mul(1 + 1 / 35),
    'gives NaN': () => right.mul(Number.NaN),
    'lacks a step': () => x.mul(3),
  }

  it.each(Object.keys(faults))('%s: it is found in its first call, and the operators run', (name) => {
    const wrong = present(faults[name], 'a fault')()
    const events: string[] = []
    const steps = new FusedSteps(
      { run: () => [wrong] },
      chain(x),
      { args: [{ kind: 'slot', slot: 0 }], results: [2] },
      {
        missed: () => events.push('missed'),
        failed: () => events.push('failed'),
      },
    )
    const before = limits()
    for (let call = 0; call < 3; call++) expect(steps.run([x]).map((result) => isClose(result, right))).toEqual([true])
    expect(events).toEqual(['failed'])
    expect(limits()).toBe(before + 1)
  })

  it('is not called wrong where it only rounds', () => {
    const failed = vi.fn()
    const steps = new FusedSteps(
      { run: () => [right.mul(1 + 1e-6)] },
      chain(x),
      { args: [{ kind: 'slot', slot: 0 }], results: [2] },
      { missed: failed, failed },
    )
    steps.run([x])
    expect(failed).not.toHaveBeenCalled()
  })

  it('is judged by the terms of a sum, which may cancel, and by their precision', () => {
    const terms = torch.tensor([[0.3, -0.1, -0.2]])
    const call = { results: [terms], single: true, stack: null, recording: false, sourceOffset: 0, isSized: false }
    const value = (constant: string | null | boolean | readonly number[]) => ({ kind: 'const', value: constant }) as const
    const sum = new Step(null, {
      ...call,
      op: op('torch.sum'),
      args: [{ kind: 'slot', slot: 0 }, value([1]), value(false), value(null)],
      firstSlot: 1,
    })
    const wide = new Step(sum, { ...call, op: op('torch.ops.tensorfx.to_copy'), args: [{ kind: 'slot', slot: 1 }, value('float64')], firstSlot: 2 })
    const isFound = (result: number): boolean => {
      const failed = vi.fn()
      const kernel = { run: () => [torch.tensor([result], { dtype: 'float64' })] }
      new FusedSteps(kernel, wide, { args: [{ kind: 'slot', slot: 0 }], results: [2] }, { missed: failed, failed }).run([terms])
      return failed.mock.calls.length > 0
    }
    const other = terms.sum(1).item() + 2e-8
    expect([other, 0.3, -0.1, 0.001].map(isFound)).toEqual([false, true, true, true])
  })
})

describe('the numbers of a kernel', () => {
  const tensor = (shape: readonly number[], strides: readonly number[]) => ({ kind: 'tensor', spec: { shape, strides, dtype: 'float32' } }) as const
  const two = present(Layouts.of([tensor([1009, 8], [8, 1]), tensor([1009], [1])], [tensor([1019, 8], [8, 1]), tensor([1019], [1])]), 'layouts')

  it('are products of what the inputs have, and constants', () => {
    expect(two.productOf(1009 * 24, 0)).toEqual(two.productOf(1019 * 24, 1))
    expect(two.productOf(24, 0)).toEqual({ constant: 24, atoms: [] })
    // By chance a multiple of a size, or a sum of sizes.
    expect(two.productOf(2018, 0)).not.toEqual(two.productOf(2018, 1))
    expect(two.productOf(1009 + 500, 0)).not.toEqual(two.productOf(1019 + 500, 1))
  })

  it('are for inputs only whose layouts depend on each other as in the samples', () => {
    expect(two.valuesOf([torch.zeros([5, 8]), torch.zeros([5])])).not.toBeNull()
    for (const wrong of [
      [torch.zeros([5, 8]), torch.zeros([6])],
      [torch.zeros([5, 9]), torch.zeros([5])],
      [torch.zeros([8, 5]).t(), torch.zeros([5])],
      [torch.zeros([5, 8]), torch.zeros([10]).slice(0, 0, 10, 2)],
      [torch.zeros([5, 8]), 5],
    ])
      expect(two.valuesOf(wrong)).toBeNull()
  })

  it('may be fractions of each other, which holds of all inputs then: products of sizes have other factors without', () => {
    const [rows, columns] = [24 * 1009, 24 * 1013]
    const shape = (n: number): readonly number[] => [2, n, (n * 3) / 2, n / 2]
    const strides = (n: number): readonly number[] => [(n * n * n * 3) / 4, (n * n * 3) / 4, n / 2, 1]
    const layouts = present(Layouts.of([tensor(shape(rows), strides(rows))], [tensor(shape(columns), strides(columns))]), 'layouts')
    expect(layouts.valuesOf([torch.zeros([2, 4, 6, 2])])).not.toBeNull()
    for (const wrong of [
      [2, 4, 7, 2],
      [2, 4, 6, 3],
      [2, 6, 6, 2],
    ])
      expect(layouts.valuesOf([torch.zeros(wrong)])).toBeNull()
  })

  it('follow from sizes that were seen: equal, multiples, sums, products', () => {
    const seen = new SeenSizes([torch.zeros([3, 4]), 0, 0, 0, 0], () => true)
    for (const [n, m] of [
      [3, 4],
      [5, 4],
      [7, 9],
    ] as const)
      seen.note([torch.zeros([n, m]), n, n + 1, 2 * m, n * m])
    const samples = present(seen.samples(present(BEGINNINGS[0], 'a beginning')), 'samples')
    for (const [input, ...numbers] of samples) {
      const [n = 0, m = 0] = input?.kind === 'tensor' ? input.spec.shape : []
      expect(numbers.map((sample) => (sample.kind === 'size' ? sample.value : null))).toEqual([n, n + 1, 2 * m, n * m])
      expect(input?.kind === 'tensor' ? input.spec.strides : null).toEqual([m, 1])
    }
  })
})
