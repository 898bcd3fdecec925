// What judges say, as whole outcomes: of errors that come late, of what backends promise, of several calls; and what they measure by: the loss, and what rounding does.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { registerBackend } from 'tensorfx/compile'
import { AccuracyError, judge } from 'tensorfx/debug'
import type { FailureSpec } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import type { Backend } from '../../src/dynamo/index.ts'
import { judgeCalls } from '../../src/debug/judge/judgeCalls.ts'
import { judgeSettled, runBackend } from '../../src/debug/judge/judge.ts'
import { settled } from '../../src/debug/judge/lateErrors.ts'
import { lossOf } from '../../src/debug/runs/loss.ts'
import { Rounding, leastOf, movedBy } from '../../src/debug/closeness/rounding.ts'

const t = torch.tensor
const asTensor = (value: unknown): Tensor => value as Tensor
const double = symbolicTrace((a: Tensor) => [torch.mul(a, 2)])
const spec: FailureSpec = { backend: '', accuracy: 'accuracy', checkStr: null, signature: null, onlyFwd: true }
const times =
  (factor: number): Backend =>
  () =>
  (x) => [torch.mul(asTensor(x), factor)]
const isBackward = (gm: GraphModule): boolean => gm.graph.findNodes({ op: 'placeholder' }).some((node) => node.name.startsWith('tangents'))
const matching = (pattern: RegExp): string => expect.stringMatching(pattern) as string

describe('an error that comes late', () => {
  const names = ['unhandledRejection', 'uncaughtException'] as const
  const others = new Map<string, ((...args: never[]) => void)[]>()
  // The test runner's own listeners would take these errors for failures of a test.
  beforeEach(() => {
    for (const name of names) {
      others.set(name, process.listeners(name as 'uncaughtException') as never)
      process.removeAllListeners(name)
    }
  })
  afterEach(() => {
    vi.unstubAllGlobals()
    for (const name of names) for (const listener of others.get(name) ?? []) process.on(name, listener as never)
  })

  const late =
    (factor: number): Backend =>
    () =>
    (x) => {
      void Promise.reject(new RangeError('late'))
      return [torch.mul(asTensor(x), factor)]
    }

  it('is that of a backend which would pass, and changes nothing of what failed before it', async () => {
    const errors = { ...spec, accuracy: 'none' } as const
    expect(await judgeSettled(double, [t([1])], errors, times(2))).toEqual({ status: 'passes', message: 'compiled and ran' })
    expect(await judgeSettled(double, [t([1])], errors, late(2))).toEqual({
      status: 'fails',
      message: 'RangeError: late',
      signature: 'RangeError||late',
    })
    expect(await judgeSettled(double, [t([1])], spec, late(3))).toEqual({
      status: 'fails',
      message: matching(/^Bad accuracy detected\nRMSE/),
      signature: 'accuracy|value',
    })
    expect(await judgeSettled(double, [t([1])], spec, late(2))).toEqual({
      status: 'unrelated',
      message: 'an error, not wrong numbers: RangeError: late',
      signature: 'RangeError||late',
    })
  })

  it('is not waited for in pages', async () => {
    vi.stubGlobal('setImmediate', undefined)
    expect(await settled(() => 5)).toEqual({ result: 5, late: null })
    vi.unstubAllGlobals()
    vi.stubGlobal('process', undefined)
    expect(await settled(() => 6)).toEqual({ result: 6, late: null })
  })
})

describe('an outcome', () => {
  const leaf = (): Tensor => t([1, 2], { requiresGrad: true })
  const withoutBackward: Backend = (gm) => {
    if (isBackward(gm)) throw new RangeError('no backward')
    return gm
  }

  it('by the contract of backends is one of the forward alone', () => {
    for (const accuracy of ['none', 'accuracy'] as const) {
      const both = { ...spec, accuracy, onlyFwd: false }
      const message = accuracy === 'none' ? 'compiled and ran' : 'accurate'
      expect(judge(double, [leaf()], { ...both, contract: true }, withoutBackward)).toEqual({ status: 'passes', message })
      expect(judge(double, [leaf()], both, withoutBackward)).toEqual({
        status: accuracy === 'none' ? 'fails' : 'unrelated',
        message: accuracy === 'none' ? 'RangeError: no backward' : 'an error, not wrong numbers: RangeError: no backward',
        signature: 'RangeError||no backward',
      })
    }
  })

  it('names the rule that was broken', () => {
    const aliased = symbolicTrace((a: Tensor) => [torch.mul(a, 1)])
    const found = judge(aliased, [t([1, 2])], { ...spec, contract: true }, () => (x) => [asTensor(x).view(2)])
    expect(found).toEqual({
      status: 'fails',
      message:
        "Bad accuracy detected\nOutput 0 ('mul') lies in the memory of input 0 ('a'): a write to one would change the other. On eager kernels it has memory of its own.",
      signature: 'accuracy|aliases',
    })
    expect(judge(aliased, [t([1, 2])], { ...spec, contract: true, signature: 'accuracy|numbers' }, () => (x) => [asTensor(x).view(2)])).toEqual({
      status: 'unrelated',
      message: `wrong in another way (aliases): ${found.message}`,
      signature: 'accuracy|aliases',
    })
  })

  it('of wrong numbers counts where no kind of them is looked for', () => {
    const wrong = { status: 'fails', message: matching(/^Bad accuracy detected\n/), signature: 'accuracy|value' }
    for (const signature of [null, 'accuracy', 'RangeError||boom', 'accuracy|value'])
      expect(judge(double, [t([1])], { ...spec, signature }, times(3))).toEqual(wrong)
    expect(judge(double, [t([1])], { ...spec, accuracy: 'strict_accuracy', signature: 'accuracy|nan' }, times(3))).toEqual({
      ...wrong,
      signature: 'accuracy',
    })
  })

  it('of an error at the call is no wrong number', () => {
    const throwing: Backend = () => () => {
      throw new RangeError('boom')
    }
    expect(judge(double, [t([1])], spec, throwing)).toEqual({
      status: 'unrelated',
      message: 'an error, not wrong numbers: RangeError: boom',
      signature: 'RangeError||boom',
    })
  })

  it('is thrown where a script runs it, with all reasons', () => {
    registerBackend('outcome_triples', times(3))
    registerBackend('outcome_doubles', times(2))
    registerBackend('outcome_wrong_backward', (gm) => (...inputs) => {
      const outputs = gm.forward(...(inputs as never[])) as (Tensor | null)[]
      return outputs.map((value) => (value === null ? null : isBackward(gm) ? value.detach().mul(2) : value.detach()))
    })
    const thrown = (backend: string, changes: Partial<FailureSpec>, inputs: readonly unknown[], gm = double, earlier: Tensor[][] = []): unknown => {
      try {
        runBackend(gm, inputs, { ...spec, ...changes }, backend, earlier)
      } catch (error) {
        return error instanceof AccuracyError ? [error.message, error.cause] : error
      }
      return null
    }
    const bad = 'Bad accuracy detected'
    const rmse = matching(/^RMSE .*; element 0 is 3, not 2 \(output\)$/)
    expect(thrown('outcome_triples', {}, [t([1])])).toEqual([bad, rmse])
    expect(thrown('outcome_triples', { contract: true }, [t([1])])).toEqual([
      bad,
      matching(/^Its numbers are wrong\.\nRMSE .*; element 0 is 3, not 2\nAccuracy failed for key name output 0 \(mul\)$/),
    ])
    expect(thrown('outcome_wrong_backward', { onlyFwd: false }, [leaf()])).toEqual([bad, matching(/grad/)])
    expect(thrown('outcome_wrong_backward', { onlyFwd: false, contract: true }, [leaf()])).toBeNull()
    const failing = symbolicTrace((a: Tensor) => [torch.reshape(a, [7])])
    const cause = matching(/reshape/)
    expect(thrown('outcome_doubles', { contract: true }, [t([1])], failing)).toEqual(['The numbers could not be judged', cause])
    expect(thrown('outcome_doubles', {}, [t([1])], failing)).toMatchObject({ message: matching(/reshape/) })
    const narrow = symbolicTrace((a: Tensor) => [torch.mul(a, 2)])
    const [mul] = narrow.graph.findNodes({ op: 'call_function', target: torch.mul })
    const float32Only = (a: Tensor): Tensor => {
      if (a.dtype === 'float64') throw new TypeError('no float64')
      return a.mul(2)
    }
    if (mul !== undefined) mul.target = float32Only
    narrow.recompile()
    expect(thrown('outcome_doubles', {}, [t([1])], narrow)).toMatchObject({ message: matching(/^Could not generate fp64 outputs/) })
  })
})

describe('several calls', () => {
  /** Judges the calls; says in which runs the code was made, and which tensor each call got. */
  function judged(calls: readonly (readonly Tensor[])[], run: (x: Tensor) => unknown = (x) => [torch.mul(x, 2)]) {
    const runs: Tensor[][] = []
    const compile = () => {
      const got: Tensor[] = []
      runs.push(got)
      return (x: unknown): unknown => {
        got.push(asTensor(x))
        return run(asTensor(x))
      }
    }
    const found = judgeCalls(double, compile, calls, () => {})
    return { found, runs }
  }

  it('are made with new tensors, then with the same; a single one, or one that is wrong, once', () => {
    expect(judged([[t([1])]])).toMatchObject({ found: null, runs: [expect.anything()] })
    const two = judged([[t([1])], [t([2])]])
    expect([two.found, two.runs.length]).toEqual([null, 2])
    // Each call is made again, on copies.
    const programs = two.runs.map((got) => got.filter((_, i) => i % 2 === 0))
    expect(programs.map(([first, second]) => first === second)).toEqual([false, true])
    const wrong = judged([[t([1])], [t([2])]], (x) => [torch.mul(x, 3)])
    expect([wrong.found?.call, wrong.found?.finding.rule, wrong.runs.length]).toEqual([0, 'numbers', 1])
  })

  it('that remember a tensor are found with the same tensors', () => {
    const known = new WeakMap<Tensor, Tensor>()
    const { found, runs } = judged([[t([1])], [t([2])]], (x) => {
      const result = known.get(x) ?? torch.mul(x, 2)
      known.set(x, result)
      return [result.clone()]
    })
    expect([found?.call, found?.finding.rule, runs.length]).toEqual([1, 'repeats', 2])
  })

  it('get the tensor of the call before only where it has the same layout', () => {
    const wide = torch.arange(8).mul(1.5)
    const inputs = [
      t([1, 2]),
      t([3, 4]),
      t([3, 4], { dtype: 'float64' }),
      t([1, 2], { dtype: 'int64' }),
      t([1, 2]),
      wide.narrow(0, 0, 2),
      wide.narrow(0, 2, 2),
      wide.asStrided([2], [2], 2),
      wide.asStrided([2], [2], 2),
      wide.asStrided([2, 1], [2, 1], 2),
    ]
    const { found, runs } = judged(inputs.map((x) => [x]))
    const got = (runs[1] ?? []).filter((_, i) => i % 2 === 0)
    expect(found).toBeNull()
    expect(got.map((x, i) => i > 0 && x === got[i - 1])).toEqual([false, true, false, false, false, false, false, false, true, false])
  })
})

describe('the loss', () => {
  it('is an average of weighted means, whose weights are those of the places', () => {
    const shapes = [[2, 3], [40], [1]] as const
    const parts = shapes.map((shape) => torch.randn(shape, { requiresGrad: true, generator: new torch.Generator(1) }))
    const half = torch.tensor([0.5, 2], { dtype: 'float16', requiresGrad: true })
    const weight = (i: number): number => (8 + ((i * 7 + 3) % 17)) / 16
    const all = [...parts, half]
    const loss = lossOf({ all, more: [torch.ones([3]), torch.zeros([0], { requiresGrad: true }), 'text', null] })
    const expected = all.map((part) => {
      const values = [...part.toTypedArray()].map(Number)
      return values.reduce((sum, value, i) => sum + value * weight(i), 0) / values.length / all.length
    })
    expect(loss?.dtype).toBe('float32')
    expect(loss?.item()).toBeCloseTo(
      expected.reduce((a, b) => a + b, 0),
      5,
    )
    loss?.backward()
    for (const part of all) {
      const gradient = [...(part.grad?.toTypedArray() ?? [])].map(Number)
      expect(gradient).toHaveLength(part.numel)
      gradient.forEach((value, i) => expect(value).toBeCloseTo(weight(i) / part.numel / all.length, 3))
    }
    expect(lossOf(t([2], { dtype: 'float64', requiresGrad: true }))?.dtype).toBe('float64')
    expect(lossOf([torch.ones([3]), torch.zeros([0], { requiresGrad: true }), 3])).toBeNull()
  })
})

describe('a value that rounding moves', () => {
  it('becomes zero, and no number of the other sign, if it is one of the smallest', () => {
    for (const dtype of ['float32', 'float16', 'float64'] as const) {
      const least = leastOf(dtype)
      const moved = (value: number, by: number, sign?: number): number => movedBy(value * least, by * least, dtype, sign) / least
      expect([moved(1, -2), moved(-1, 2), moved(16, -17), moved(0, -3, 1), moved(0, 3, -1)]).toEqual([0, 0, 0, 0, 0])
      expect([moved(2, -1), moved(-2, 1), moved(17, -20), moved(-17, 20), moved(0, 3, 1), moved(1, 5)]).toEqual([1, -1, -3, 3, 3, 6])
    }
    expect([movedBy(1, -3, 'float32'), movedBy(NaN, 1, 'float32'), movedBy(-Infinity, 1, 'float32')]).toEqual([-2, NaN, -Infinity])
    expect(new Rounding(1).name).toBe('rounding')
  })
})
