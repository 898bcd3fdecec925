// How far apart two right runs of a random program may be: the bound holds for sums in another order, and wrong kernels lie beyond it.
import { describe, expect, it } from 'vitest'
import { Tensor, torch } from 'tensorfx'
import { dispatchBelowAutograd, withMode } from 'tensorfx/dispatch'
import type { Arg, OpDef, Result } from 'tensorfx/dispatch'
import { generate } from '../../scripts/fuzz/generate.mjs'
import { judge } from '../../scripts/fuzz/judge.mjs'
import type { Program } from '../../scripts/fuzz/judge.mjs'
import { runProgram } from '../../scripts/fuzz/run.mjs'
import type { Snapshot } from '../../scripts/fuzz/run.mjs'
import { spreadTracker } from '../../scripts/fuzz/spread.mjs'
import { api } from './api.ts'

type Fn = (...args: readonly unknown[]) => unknown

/** A mode under which sums and means are computed by `other`. */
const sums = (other: (op: OpDef, args: readonly Arg[]) => Result): { readonly name: string; handle(op: OpDef, args: readonly Arg[]): Result } => ({
  name: 'sums',
  handle: (op, args) => (op.name === 'sum' || op.name === 'mean' ? other(op, args) : dispatchBelowAutograd(op, args)),
})

/** The summands in another order: those of odd positions first, from the last. */
const reordered = sums((op, [x, ...rest]) => {
  if (!(x instanceof Tensor) || x.ndim === 0) return dispatchBelowAutograd(op, [x ?? null, ...rest])
  const mixed = x.shape.reduce((t, size, dim) => {
    const places = Array.from({ length: size }, (_, i) => size - 1 - i)
    return torch.indexSelect(t, dim, torch.tensor([...places.filter((i) => i % 2 === 1), ...places.filter((i) => i % 2 === 0)], { dtype: 'int64' }))
  }, x)
  return dispatchBelowAutograd(op, [dimsOf(rest) === null ? mixed : x, ...rest])
})

/** The dimensions that a sum is taken over, null for all. */
const dimsOf = (rest: readonly Arg[]): Arg => rest[0] ?? null

/** Sums that leave out the first summand in memory. */
const incomplete = sums((op, [x, ...rest]) => {
  if (!(x instanceof Tensor) || x.numel < 2) return dispatchBelowAutograd(op, [x ?? null, ...rest])
  const all = x.contiguous().clone()
  all.view([-1]).select(0, 0).zero_()
  return dispatchBelowAutograd(op, [all, ...rest])
})

/** Sums that are rounded to 16 bits. */
const narrow = sums((op, args) => {
  const result = dispatchBelowAutograd(op, args)
  return result instanceof Tensor && result.dtype === 'float32' ? result.to('float16').to('float32') : result
})

const under =
  (mode: ReturnType<typeof sums>) =>
  (f: Fn): Fn =>
  (...args) =>
    withMode(mode, () => f(...args))

/** The float tensors of a note. */
const tensorsOf = (value: Snapshot): readonly Snapshot[] =>
  value.tensor === true ? (value.dtype?.startsWith('float') === true ? [value] : []) : (value.list ?? []).flatMap(tensorsOf)

const KINDS = ['pointwise', 'views', 'viewWrites', 'gradients', 'inplace']

/** A program that returns a tensor. */
const program = (lines: readonly string[], arg: string): Program => ({
  seed: 1,
  kinds: [],
  setup: [],
  params: ['a'],
  body: lines.map((text) => ({ text })),
  calls: [{ list: [arg], before: [], after: [] }],
})

describe('the spread of a sum', () => {
  const spreadOf = (line: string): readonly number[] => {
    const { notes } = runProgram(api, program([line], 'data([500], 3)'), { taint: spreadTracker(api) })
    const note = notes.find(({ label }) => label === 'result 1')
    return note?.value.taint ?? []
  }
  const data = (): Tensor => {
    const { notes } = runProgram(api, program(['return a'], 'data([500], 3)'))
    return torch.tensor(notes[0]?.value.data ?? [], { dtype: 'float64' })
  }

  it('is twice the roundings of its summands', () => {
    const [spread = 0] = spreadOf('return a.sum()')
    const total = data().abs().sum().item()
    expect(spread).toBeGreaterThan(2 * 499 * 2 ** -24 * total)
    expect(spread).toBeLessThan(2 * 505 * 2 ** -24 * total)
  })

  it('grows with the slope of what follows, and ends at what no longer depends on it', () => {
    const [sum = 0] = spreadOf('return a.sum()')
    const [scaled = 0] = spreadOf('return a.sum().mul(-3)')
    expect(scaled / sum).toBeCloseTo(3, 1)
    expect(spreadOf('return a.sum().mul(0)')).toEqual([0])
    expect(spreadOf('return a.mul(2).sin()')).toEqual([])
  })

  it('is that of the program in code that is disabled, which runs outside of modes', () => {
    const [sum = 0] = spreadOf('return a.sum()')
    const [disabled = 0] = spreadOf('const b = disable((t) => t.mul(3))(a.sum()); b.view([1]); return b')
    expect(disabled / sum).toBeCloseTo(3, 1)
  })

  it('goes where the elements go', () => {
    const spread = spreadOf('const b = a.clone(); b.view([5, 100]).select(0, 2).add_(a.sum()); return b.view([5, 100]).t()')
    expect(spread.map((one, i) => [i % 5 === 2, one > 0]).every(([inRow, some]) => inRow === some)).toBe(true)
  })

  it('counts a step that lies within it', () => {
    expect(spreadOf('const s = a.sum(); return s.sub(s.detach()).ceil()')[0]).toBeGreaterThanOrEqual(1)
  })
})

describe('random programs', () => {
  it('whose sums are added in another order stay within their spread', () => {
    let compared = 0
    let apart = 0
    for (let seed = 500; seed < 520; seed++) {
      const one = generate(api, seed, KINDS, { traced: false })
      const [mine, theirs, spread] = [{}, { wrap: under(reordered) }, { taint: spreadTracker(api) }].map(
        (options) => runProgram(api, one, options).notes,
      )
      for (const [i, note] of (mine ?? []).entries()) {
        const others = tensorsOf(theirs?.[i]?.value ?? {})
        const bounds = tensorsOf(spread?.[i]?.value ?? {})
        for (const [k, { data = [] }] of tensorsOf(note.value).entries()) {
          const bound = bounds[k]?.taint ?? null
          if (bound === null) continue
          for (const [e, x] of data.entries()) {
            const other = others[k]?.data?.[e] ?? NaN
            if (Object.is(x, other)) continue
            apart++
            expect(Math.abs(x - other), `seed ${seed}, note ${i}, tensor ${k}, element ${e}: ${x} and ${other}`).toBeLessThanOrEqual(bound[e] ?? 0)
          }
          compared += data.length
        }
      }
    }
    expect(compared).toBeGreaterThan(1000)
    expect(apart).toBeGreaterThan(30)
  })
})

describe('the judge of random programs', () => {
  // As seed 8104638, where the compiled sum was seven units in the last place from float64, and eager's one.
  const terms = Array.from({ length: 15 }, (_, i) => `a.mul(${i + 1}).sin().sum()`)
  const many = program([`return ${terms.reduce((p, q) => `${p}.add(${q})`)}`], 'data([2, 3, 4], 392)')

  it('admits sums in another order', () => expect(judge(api, many, under(reordered))).toBeNull())

  it('admits them where disabled code goes on with them, and a view is taken of what that returns', () => {
    const lines = [`const b = disable((t) => t.mul(3))(${terms.reduce((p, q) => `${p}.add(${q})`)})`, 'return [b.view([1]), b]']
    expect(judge(api, program(lines, 'data([2, 3, 4], 392)'), under(reordered))).toBeNull()
  })

  it('finds sums that leave out a summand', () => expect(judge(api, many, under(incomplete))).toMatchObject({ numeric: true }))

  it('finds sums that are rounded to 16 bits', () =>
    expect(judge(api, program(['return a.sin().sum(2)'], 'data([2, 3, 24], 392)'), under(narrow))).toMatchObject({ numeric: true }))

  it('finds a sum that is off by more than its roundings', () => {
    const off =
      (by: number) =>
      (f: Fn): Fn =>
      (...args) => {
        const result = f(...args)
        return result instanceof Tensor ? result.add(by) : result
      }
    expect(judge(api, many, off(2e-3))).toMatchObject({ numeric: true })
  })
})

describe('the judge of programs on a GPU', () => {
  /** A mode under which the results of operators of this name are off by some units in the last place. */
  const off = (name: string, ulps: number): ReturnType<typeof sums> => ({
    name: 'off',
    handle: (op, args) => {
      const result = dispatchBelowAutograd(op, args)
      return op.name === name && result instanceof Tensor ? torch.mul(result, 1 + ulps * 2 ** -23) : result
    },
  })
  const onDevice = (line: string, name: string, ulps: number): unknown =>
    judge(api, program([line], 'data([60], 5).abs().add(0.5)'), under(off(name, ulps)), { device: true })

  it.each([
    ['return a.log2()', 'log2'],
    ['return a.tan().mul(3).sin()', 'tan'],
    ['return torch.pow(a, 1.7)', 'pow'],
    ['return a.exp2().neg()', 'exp2'],
    ['return torch.logaddexp2(a, a.neg())', 'logaddexp2'],
    ['return torch.cat([a, a.log10()]).gt(0.1).logicalNot()', 'log10'],
  ])('admits units in the last place of what has no float64 there, and finds more: %s', (line, name) => {
    expect(onDevice(line, name, 2)).toBeNull()
    if (!/gt/.test(line)) expect(onDevice(line, name, 200)).toMatchObject({ numeric: true })
  })

  it('finds one unit where there is none: of polynomials, of rounding, and of these functions without a GPU', () => {
    for (const [line, name] of [
      ['return a.sin()', 'sin'],
      ['return a.exp()', 'exp'],
      ['return a.div(3)', 'div'],
      ['return torch.pow(a, 2)', 'pow'],
    ] as const)
      expect(onDevice(line, name, 1), line).toMatchObject({ numeric: true })
    expect(judge(api, program(['return a.log2()'], 'data([60], 5).abs().add(0.5)'), under(off('log2', 1)))).toMatchObject({ numeric: true })
  })
})
