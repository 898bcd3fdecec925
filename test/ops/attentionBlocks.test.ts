// Attention by blocks of rows, forward and backward, eager and compiled, against the same call in float64, which is composed of products and a softmax.
import { compile, nn, noGrad, torch } from 'tensorfx'
import { explain } from 'tensorfx/compile'
import type { Tensor } from 'tensorfx'
import { beforeEach, describe, expect, test } from 'vitest'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { attend, beginPieces, endPieces } from '../../src/kernels/schedules/attention.ts'
import { attendBackward } from '../../src/kernels/schedules/attentionBackward.ts'
import { packKeys, packValues } from '../../src/kernels/schedules/attentionPanels.ts'
import { withStrict } from '../../src/kernels/engine/computing.ts'
import type { Kernel } from '../../src/kernels/ir/loopIr.ts'
import { runBoth } from '../kernels/harness.ts'
import { attentionBackwardByBlocks, attentionByBlocks, takesBlocks } from '../../src/ops/nn/attention/attentionKernel.ts'

const F = nn.functional

let draws = randomFrom(3)
const random = (below: number): number => draws.int(below)
const pick = <T>(values: readonly T[]): T => draws.pick(values)
const data = (n: number, scale = 1): number[] => Array.from({ length: n }, () => ((random(2001) - 1000) / 500) * scale)
const product = (sizes: readonly number[]): number => sizes.reduce((total, size) => total * size, 1)

/** A tensor of that shape; sometimes its last two dimensions lie in memory the other way round, or its heads beside each other. */
function tensorOf(shape: readonly number[]): Tensor {
  const how = random(3)
  const x = torch.tensor(data(product(shape))).reshape(shape)
  if (how === 1) return x.transpose(-1, -2).contiguous().transpose(-1, -2)
  return how === 2 && shape.length > 2 ? x.transpose(-3, -2).contiguous().transpose(-3, -2) : x
}

const numbers = (x: Tensor): number[] => Array.from(x.contiguous().toTypedArray() as ArrayLike<number>)

/** `score` bounds the scores: their rounding errors are those of the exponents. */
function expectClose(actual: Tensor, expected: Tensor, what: string, score = 8): void {
  const [a, e] = [numbers(actual), numbers(expected)]
  expect(actual.sizes, what).toEqual(expected.sizes)
  e.forEach((right, i) => {
    const got = a[i] ?? Infinity
    const isClose = !Number.isFinite(right) ? Object.is(got, right) : Math.abs(got - right) <= 2 ** -22 * (1 + score) * Math.max(1, Math.abs(right))
    if (!isClose) expect(got, `${what}, element ${i}`).toBe(right)
  })
}

const gradientsOf = (outs: readonly Tensor[], leaves: readonly Tensor[], options: { readonly createGraph?: boolean } = {}): readonly Tensor[] =>
  torch.autograd.grad(outs, leaves, options).map((gradient) => gradient ?? torch.zeros([0]))

const double = (x: Tensor): Tensor => (x.dtype === 'bool' ? x : x.double())

/** A drawn call: sizes around blocks and panels, views, every kind of mask, grouped heads. */
function drawn(depths: readonly [number, ...number[]] = [1, 3, 8, 16, 33]) {
  const lead = pick<readonly number[]>([[], [2], [2, 3], [1, 4]])
  const groups = lead.length > 0 ? pick([1, 1, 2]) : 1
  const heads = lead.map((size, d) => (d === lead.length - 1 ? size * groups : size))
  const [rows, keys, depth, width] = [pick([16, 17, 19, 20, 31, 33, 48]), pick([1, 3, 7, 8, 9, 16, 17, 40]), pick(depths), pick([8, 16, 24])]
  const kind = pick(['none', 'causal', 'bool', 'added', 'padding'] as const)
  const maskShape =
    kind === 'padding' ? [...heads.map((size, d) => (d === 0 ? size : 1)), 1, keys] : [...pick([heads, [], heads.map(() => 1)]), rows, keys]
  const hidden = Array.from({ length: product(maskShape) }, (_, at) => random(3) === 0 || Math.floor(at / keys) % 5 === 2)
  const bool = torch.tensor(hidden.map((x) => !x)).reshape(maskShape)
  const added = torch.tensor(hidden.map((x) => (x ? -Infinity : (random(100) - 50) / 25))).reshape(maskShape)
  const attnMask = kind === 'bool' || kind === 'padding' ? bool : kind === 'added' ? added : null
  const scale = pick([null, 0.5, 2])
  return {
    tensors: [tensorOf([...heads, rows, depth]), tensorOf([...lead, keys, depth]), tensorOf([...lead, keys, width])] as const,
    options: { isCausal: kind === 'causal', scale, enableGqa: groups > 1, attnMask },
    score: 4 * depth * (scale ?? 1 / Math.sqrt(depth)),
    what: `${kind} ${heads.join()} ${rows} ${keys} ${depth} ${width} of ${groups} groups, scale ${scale}`,
  }
}

type Call = ReturnType<typeof drawn>

/** What the kernels get for a call. */
function problemOf({ tensors: [query, key, value], options: { isCausal, scale, attnMask } }: Call) {
  const mask = attnMask?.dtype === 'bool' ? torch.where(attnMask, 0, -Infinity) : attnMask
  return { query, key, value, mask, isCausal, scale: scale ?? 1 / Math.sqrt(query.size(-1)) }
}

/** The result and the gradients of its sum, weighted with `grad`. */
function withGradients({ tensors, options }: Call, grad: Tensor, cast: (x: Tensor) => Tensor = (x) => x): readonly Tensor[] {
  const leaves = tensors.map((x) => cast(x).detach().requiresGrad_())
  const [query, key, value] = leaves as [Tensor, Tensor, Tensor]
  const attnMask = options.attnMask === null ? null : cast(options.attnMask)
  const out = F.scaledDotProductAttention(query, key, value, { ...options, attnMask })
  return [out.detach(), ...gradientsOf([out.mul(cast(grad)).sum()], leaves)]
}

const gradFor = ({ tensors: [query, , value] }: Call): Tensor => tensorOf([...query.sizes.slice(0, -1), value.size(-1)])

describe('attention by blocks of rows', () => {
  beforeEach(() => {
    draws = randomFrom(3)
  })

  test('computes what products and a softmax in float64 do, with all keys at once and in pieces', () => {
    for (let i = 0; i < 40; i++) {
      const call = drawn()
      const [query, key, value] = call.tensors
      const { attnMask } = call.options
      const expected = noGrad(() =>
        F.scaledDotProductAttention(double(query), double(key), double(value), { ...call.options, attnMask: attnMask && double(attnMask) }),
      )
      const what = `problem ${i}, ${call.what}`
      expectClose(
        noGrad(() => F.scaledDotProductAttention(query, key, value, call.options)),
        expected,
        what,
        call.score,
      )
      expect(takesBlocks(problemOf(call)), what).toBe(true)
      const pieces = attentionByBlocks(problemOf(call), pick([8, 16]))
      expect(pieces, what).not.toBe(null)
      if (pieces !== null) expectClose(pieces[0], expected, `${what}, in pieces`, call.score)
      // In float64 the operator is composed.
      const problem = problemOf(call)
      const inDouble = [query, key, value].map(double) as [Tensor, Tensor, Tensor]
      const logs = torch.ops.tensorfx.blockAttention(...inDouble, problem.mask && double(problem.mask), problem.isCausal, problem.scale)[1]
      for (const result of [pieces, attentionByBlocks(problem)]) if (result !== null) expectClose(result[1], logs, `${what}, logarithms`, call.score)
    }
  })

  test('gives the gradients that products and a softmax in float64 have, eager and compiled', () => {
    const compiled = compile((q: Tensor, k: Tensor, v: Tensor, options: Call['options']) => F.scaledDotProductAttention(q, k, v, options))
    for (let i = 0; i < 25; i++) {
      const call = drawn([3, 8, 16, 24])
      const grad = gradFor(call)
      const expected = withGradients(call, grad, double)
      const what = `problem ${i}, ${call.what}`
      const names = ['result', 'query', 'key', 'value']
      const score = 16 * call.score
      withGradients(call, grad).forEach((x, n) => expectClose(x, expected[n] ?? x, `${what}: ${names[n]}`, score))
      const problem = problemOf(call)
      const forward = attentionByBlocks(problem)
      if (forward === null) throw new Error(what)
      const pieces = attentionBackwardByBlocks({ ...problem, grad, out: forward[0], logs: forward[1] }, pick([8, 16]))
      expect(pieces === null, what).toBe(problem.query.size(-1) % 8 !== 0)
      pieces?.forEach((x, n) => expectClose(x, expected[n + 1] ?? x, `${what}, in pieces: ${names[n + 1]}`, score))
      if (i % 5 > 0) continue
      const leaves = call.tensors.map((x) => x.detach().requiresGrad_())
      const [q, k, v] = leaves as [Tensor, Tensor, Tensor]
      const out = compiled(q, k, v, call.options)
      const results = [out.detach(), ...gradientsOf([out.mul(grad).sum()], leaves)]
      results.forEach((x, n) => expectClose(x, expected[n] ?? x, `${what}, compiled: ${names[n]}`, score))
    }
  })

  test('has gradients of gradients, and gradients of the mask', () => {
    const call = { query: tensorOf([2, 16, 8]), key: tensorOf([2, 9, 8]), value: tensorOf([2, 9, 8]), mask: tensorOf([16, 9]) }
    const second = (cast: (x: Tensor) => Tensor): readonly Tensor[] => {
      const leaves = Object.values(call).map((x) => cast(x).detach().requiresGrad_())
      const [q, k, v, attnMask = null] = leaves as [Tensor, Tensor, Tensor, Tensor]
      const first = gradientsOf([F.scaledDotProductAttention(q, k, v, { attnMask }).square().sum()], leaves, { createGraph: true })
      const again = gradientsOf([first.map((g) => g.square().sum()).reduce((a, b) => a.add(b))], leaves)
      return [...first.map((g) => g.detach()), ...again]
    }
    const expected = second(double)
    second((x) => x).forEach((x, n) => expectClose(x, expected[n] ?? x, `gradient ${n}`, 400))
  })

  test('is one operator of a compiled graph, in training too; under strict the graph is the composed one, with its bits', () => {
    const tensors = [tensorOf([2, 32, 8]), tensorOf([2, 24, 8]), tensorOf([2, 24, 16])] as const
    const program = (q: Tensor, k: Tensor, v: Tensor): Tensor => F.scaledDotProductAttention(q, k, v, { isCausal: true }).sum()
    const run = (isStrict: boolean, f: (q: Tensor, k: Tensor, v: Tensor) => Tensor): readonly number[] =>
      withStrict(isStrict, () => {
        const leaves = tensors.map((x) => x.detach().requiresGrad_())
        const [q, k, v] = leaves as [Tensor, Tensor, Tensor]
        const out = f(q, k, v)
        return [out.item(), ...gradientsOf([out], leaves).flatMap(numbers)]
      })
    const composed = (q: Tensor, k: Tensor, v: Tensor): Tensor => {
      const hidden = torch.arange(24).reshape(1, 24).gt(torch.arange(32).reshape(32, 1))
      const scores = q.matmul(k.transpose(-2, -1)).mul(1 / Math.sqrt(8))
      return torch.softmax(scores.maskedFill(hidden, -Infinity), -1).matmul(v).sum()
    }
    const isOne = (isStrict: boolean): boolean =>
      withStrict(isStrict, () =>
        explain(program)(...tensors)
          .opsPerGraph.flat()
          .includes('torch.ops.tensorfx.block_attention'),
      )
    expect([isOne(false), isOne(true)]).toEqual([true, false])
    expect(run(true, program)).toEqual(run(true, composed))
    expect(run(true, compile(program))).toEqual(run(true, compile(composed)))
    expect(run(false, compile(program))).toEqual(run(false, program))
  })

  test('lets NaN and infinities through as the composed operators do', () => {
    const [query, key, value] = [tensorOf([2, 18, 4]), tensorOf([2, 11, 4]), tensorOf([2, 11, 8])]
    const spoiled = (x: Tensor, at: number, by: number): Tensor => torch.tensor(numbers(x).map((v, i) => (i === at ? by : v))).reshape(x.sizes)
    const both = (q: Tensor, k: Tensor, v: Tensor, isCausal = false): readonly [Tensor, Tensor] => [
      noGrad(() => F.scaledDotProductAttention(q, k, v, { isCausal })),
      withStrict(true, () => noGrad(() => F.scaledDotProductAttention(q, k, v, { isCausal }))),
    ]
    for (const by of [NaN, Infinity, -Infinity]) {
      for (const isCausal of [false, true]) {
        expectClose(...both(spoiled(query, 5, by), key, value, isCausal), `query ${by}`)
        expectClose(...both(query, spoiled(key, 9, by), value, isCausal), `key ${by}`)
      }
      expectClose(...both(query, key, spoiled(value, 17, by)), `value ${by}`)
    }
  })

  test('is 0 in rows that a mask hides as a whole, whatever their values, and gives them no gradient, eager, compiled and strict', () => {
    const [rows, keys, depth] = [20, 11, 8]
    const isHidden = (row: number): boolean => row % 7 === 2
    const bool = torch.tensor(Array.from({ length: rows }, (_, r) => Array.from({ length: keys }, (__, k) => !isHidden(r) && (r + k) % 3 > 0)))
    const added = torch.where(bool, 0, -Infinity)
    const [query, key, value] = [tensorOf([2, rows, depth]), tensorOf([2, keys, depth]), tensorOf([2, keys, depth])]
    const step = (q: Tensor, k: Tensor, v: Tensor, attnMask: Tensor): readonly Tensor[] => {
      const leaf = q.detach().requiresGrad_()
      const out = F.scaledDotProductAttention(leaf, k, v, { attnMask })
      return [out.detach(), ...gradientsOf([out.sum()], [leaf])]
    }
    for (const mask of [bool, added]) {
      for (const strict of [false, true]) {
        for (const f of [step, compile(step)]) {
          withStrict(strict, () => f(query, key, value, mask)).forEach((result) =>
            (result.toArray() as number[][][]).flat().forEach((row, at) => {
              const r = at % rows

              expect(
                row.every((x) => Math.abs(x) === 0),
                `row ${r}`,
              ).toBe(isHidden(r))
              expect(row.every(Number.isFinite)).toBe(true)
            }),
          )
        }
      }
    }
  })

  test('takes halves, which are rounded once, and is not used where there is nothing to gain', () => {
    const [query, key, value] = [tensorOf([2, 16, 8]), tensorOf([2, 16, 8]), tensorOf([2, 16, 8])]
    const halves = [query, key, value].map((x) => x.to('bfloat16')) as [Tensor, Tensor, Tensor]
    const wide = halves.map((x) => x.float()) as [Tensor, Tensor, Tensor]
    noGrad(() => {
      expect(F.scaledDotProductAttention(...halves).toArray()).toEqual(
        F.scaledDotProductAttention(...wide)
          .to('bfloat16')
          .toArray(),
      )
    })
    const call = { query, key, value, mask: null }
    expect(takesBlocks(call)).toBe(true)
    expect(takesBlocks({ ...call, query: tensorOf([2, 15, 8]) })).toBe(false)
    expect(takesBlocks({ ...call, value: tensorOf([2, 16, 7]) })).toBe(false)
    expect(takesBlocks({ ...call, key: tensorOf([1, 16, 8]) })).toBe(false)
    expect(takesBlocks({ ...call, mask: tensorOf([1, 16]) })).toBe(true)
    expect(takesBlocks({ ...call, mask: tensorOf([3, 1, 16]) })).toBe(false)
    expect(withStrict(true, () => attentionByBlocks({ ...call, isCausal: false, scale: 1 }))).toBe(null)
  })

  test('its kernels do what the reference interpreter says, in both engines', () => {
    const [rows, keys, all, depth, width] = [7, 11, 13, 5, 8]
    const numbersOf = (n: number): Float32Array => Float32Array.from(data(n, 0.5))
    const same = (kernel: Kernel, args: Parameters<typeof runBoth>[1], written: readonly string[]): void => {
      for (const strict of [false, true]) {
        const { wasm, oracle } = withStrict(strict, () => runBoth(kernel, args))
        for (const name of written) {
          const expected = oracle[name] as Float32Array
          ;(wasm[name] as Float32Array).forEach((x, i) => {
            const right = expected[i] ?? NaN
            expect(Math.abs(x - right), `${kernel.name}, ${name} ${i}`).toBeLessThan(2e-5 * (1 + Math.abs(right)))
          })
        }
      }
    }
    const [room, queryStride, maskStride, first, scale] = [24, 6, 15, 4, 0.5]
    same(packKeys(), { panels: new Float32Array(16 * depth), keys: numbersOf(all * 7), count: all, depth, stride: 7 }, ['panels'])
    same(packValues(), { panels: new Float32Array(all * width), values: numbersOf(all * 9), count: all, width, stride: 9 }, ['panels'])
    const sizes = { rows, keys, all, width, room, queryStride, maskStride, first, scale }
    const row = (value: number): Float32Array => new Float32Array(16).fill(value)
    for (const mask of ['none', 'causal', 'added'] as const) {
      const operands = {
        ...{ out: numbersOf(rows * width), logs: row(0), query: numbersOf(rows * queryStride), mask: numbersOf(rows * maskStride) },
        ...{ keyPanels: numbersOf(16 * 8), valuePanels: numbersOf(16 * width), scores: new Float32Array(16 * room), factors: row(0) },
        ...{ greatest: row(1), sums: row(2), depth, ...sizes },
      }
      same(attend(mask, 'all'), operands, ['out', 'logs', 'factors'])
      same(attend(mask, 'piece'), operands, ['out', 'greatest', 'sums', 'factors'])
      same(endPieces(mask), operands, ['out', 'logs'])
      const gradients = { gradQuery: numbersOf(rows * 8), gradKey: numbersOf(all * 8), gradValue: numbersOf(all * width) }
      const saved = { grad: numbersOf(rows * width), keyColumns: numbersOf(all * 8), slopes: new Float32Array(16 * room), means: row(0) }
      same(attendBackward(mask), { ...operands, ...gradients, ...saved, query: numbersOf(rows * 8), queryStride: 8, logs: row(3), depth: 8 }, [
        'gradQuery',
        'gradKey',
        'gradValue',
      ])
    }
    same(beginPieces(), { out: numbersOf(rows * width), greatest: row(1), sums: row(2), rows, width }, ['out', 'sums'])
  })
})
