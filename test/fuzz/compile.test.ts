// Random programs mean the same compiled as eagerly. `npm run fuzz:compile -- N seed` runs more of them and shrinks those that fail.
import { describe, expect, it } from 'vitest'
import { Tensor } from 'tensorfx'
import { aotFunction } from 'tensorfx/aot'
import { fuzzOne, notYet, passingKinds } from '../../scripts/fuzz/fuzz.mjs'
import type { FuzzApi, FuzzFailure } from '../../scripts/fuzz/fuzz.mjs'
import { generate } from '../../scripts/fuzz/generate.mjs'
import { judge } from '../../scripts/fuzz/judge.mjs'
import type { Program } from '../../scripts/fuzz/judge.mjs'
import { treeMap } from '../../src/pytree/index.ts'
import { api } from './api.ts'
import { tenth } from '../helpers/rotation.ts'

/** What fails, as text that says how to replay it. */
function failures(wrapper: string, count: number, first: number, backend = 'inductor'): string {
  const kinds = passingKinds(wrapper)
  const found = Array.from({ length: count }, (_, i) => fuzzOne(api, first + i, { with: wrapper, kinds, backend })).filter(
    (failure) => failure !== null,
  )
  return found
    .map((f) => `seed ${f.seed}:\n${f.text}\n// ${f.difference.where}: expected ${f.difference.expected}, got ${f.difference.got}`)
    .join('\n\n')
}

/** First seeds of `count` programs in parts of ten, as far as they run this time: a part that fails is soon found, and mutation testing takes the parts that it has time for. */
const parts = (count: number, first: number): readonly number[] =>
  tenth(
    Array.from({ length: count / 10 }, (_, i) => first + 10 * i),
    String,
  )

describe('random programs', () => {
  it.each(parts(500, 20_000))('from seed %d on, ten mean the same compiled as eagerly', (first) => expect(failures('compile', 10, first)).toBe(''))
  it.each(parts(200, 30_000))('from seed %d on, ten mean the same as graphs of makeFx', (first) => expect(failures('makeFx', 10, first)).toBe(''))
  it.each(parts(100, 40_000))('from seed %d on, ten mean the same as graphs that reinplace changed', (first) =>
    expect(failures('reinplace', 10, first)).toBe(''),
  )
  it.each(parts(200, 50_000))('from seed %d on, ten mean the same under aotFunction', (first) => expect(failures('aot', 10, first)).toBe(''))
  it.each(parts(200, 60_000))('from seed %d on, ten mean the same with shapes drawn anew for each of eight calls', (first) => {
    expect(failures('dynamic', 10, first, 'eager')).toBe('')
    expect(failures('automatic', 10, first + 1000, 'eager')).toBe('')
    expect(failures('dynamic', 2, first + 2000)).toBe('')
  })
  it('of all kinds', () => expect(Object.values(notYet).flat()).toEqual([]))
})

describe('the fuzzer', () => {
  /** A compiler whose results are off by `error`. */
  const off = (error: number): FuzzApi => ({
    ...api,
    compile:
      (f: (...args: readonly unknown[]) => unknown) =>
      (...args: readonly unknown[]): unknown =>
        treeMap(f(...args), (leaf) => (leaf instanceof Tensor && leaf.dtype === 'float32' ? leaf.add(error) : leaf)),
  })
  const found = (wrong: FuzzApi, count: number, kinds: readonly string[]): readonly FuzzFailure[] =>
    Array.from({ length: count }, (_, i) => fuzzOne(wrong, 100 + i, { kinds })).filter((failure) => failure !== null)

  it('leaves no rejected promise behind where a program lost what its async functions read, as shrinking may', async () => {
    const rejected: unknown[] = []
    const listener = (error: unknown): void => void rejected.push(error)
    process.on('unhandledRejection', listener)
    try {
      const started = Array.from({ length: 20 }, (_, i) => generate(api, 7_300_100 + i, ['asyncParts'])).filter(({ setup }) => setup.length > 0)
      for (const program of started) judge(api, { ...program, setup: [] }, (f) => f)
      await new Promise((resolve) => setImmediate(resolve))
      expect(started.length).toBeGreaterThan(5)
      expect(rejected).toEqual([])
    } finally {
      process.off('unhandledRejection', listener)
    }
  })

  it('finds results that are 1e-6 off, and shrinks the programs', () => {
    const failed = found(off(1e-6), 20, ['pointwise', 'views'])
    expect(failed.length).toBeGreaterThan(15)
    for (const { text } of failed) expect(text.split('\n').length).toBeLessThanOrEqual(8)
  })

  it('finds sums and products that are 1e-3 off', () => {
    expect(found(off(1e-3), 10, ['reductions', 'templates']).length).toBeGreaterThan(8)
    expect(found(off(0), 10, ['reductions', 'templates'])).toEqual([])
  })

  describe('admits gradients that are added in another order', () => {
    // A graph adds the gradients of the product and of the mask first, eager mode those of the view and of the mask, and then comes the derivative of the view.
    const program: Program = {
      seed: 1,
      kinds: [],
      setup: [],
      params: ['a'],
      body: [{ text: 'const view = a.slice(1, 4, -1)' }, { text: 'return [a.mul(a.detach()).mul(1 / 63), view, view.mul(view.detach()).mul(0.3)]' }],
      calls: [
        {
          list: ['data([9, 7], 911).requiresGrad_()'],
          before: [],
          after: [{ text: 'attempt(() => result.map((t) => t.sum()).reduce((p, q) => p.add(q)).backward(), () => [])' }],
        },
      ],
    }
    const scaled =
      (scale: number) =>
      (f: (...args: readonly unknown[]) => unknown) =>
      (...args: readonly unknown[]): unknown => {
        const [a] = args
        const inner = a instanceof Tensor ? a.mul(1) : a
        if (inner instanceof Tensor && inner.requiresGrad) inner.registerHook((g) => g.mul(scale))
        return f(inner)
      }

    it('also where a derivative lies between the sums', () => {
      const aot = (f: (...args: readonly unknown[]) => unknown): ((...args: readonly unknown[]) => unknown) =>
        aotFunction(f, {
          fwCompiler: (gm) => {
            return (...inputs) => gm.forward(...inputs)
          },
        })
      expect(judge(api, program, aot, { traced: true })).toBeNull()
    })

    it('and none that are 1e-5 off', () => {
      expect(judge(api, program, scaled(1))).toBeNull()
      expect(judge(api, program, scaled(1 + 1e-5))).toMatchObject({ numeric: true })
    })
  })

  it('gives the same program for the same seed', () => {
    const text = (): string => fuzzOne(off(1), 101, { kinds: ['pointwise'], shrinking: false })?.text ?? ''
    expect(text()).toContain('const f = wrap(')
    expect(text()).toBe(text())
  })
})
