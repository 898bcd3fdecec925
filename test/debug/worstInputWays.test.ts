// Which inputs the search for the worst one tries: values of all magnitudes and signs, those where functions change, NaN and infinities, and then neighbours of the best.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import type { Candidate } from '../../src/debug/compare/backends.ts'
import { comparedOn } from '../../src/debug/compare/compared.ts'
import { tensorsIn } from '../../src/debug/compare/float64.ts'
import { checkWorstInput, worstInputOf } from '../../src/debug/compare/worstInput.ts'

const t = torch.tensor
const numbersOf = (value: unknown): number[] => [...(value as Tensor).to('float64').toTypedArray()].map(Number)

interface Searched {
  readonly found: Awaited<ReturnType<typeof worstInputOf>>
  /** The elements of the inputs of each run. */
  readonly seen: readonly (readonly number[][])[]
}

/** Searches with a backend that computes the graph, changed by `wrong`. */
async function searched(
  gm: GraphModule,
  inputs: readonly Tensor[],
  {
    tries = 400,
    seed = 1,
    given = null as ReadonlySet<string> | null,
    wrong = (outputs: readonly Tensor[], _inputs: readonly Tensor[]) => outputs,
  } = {},
): Promise<Searched> {
  const seen: number[][][] = []
  const one: Candidate = {
    ...{ name: 'c', registered: null, compiles: true, isHere: true },
    with: async (graph, _inputs, use) =>
      use({
        held: new Map(),
        run: (values) => {
          seen.push(values.map(numbersOf))
          return { outputs: wrong(tensorsIn(graph.forward(...values)), values as readonly Tensor[]), given: [] }
        },
      }),
  }
  const compared = comparedOn(gm, inputs, 0, [], { reference: 'float64', tol: 1e-4 })
  return { found: await worstInputOf(one, compared, given, { tries, seed }), seen }
}

const one = symbolicTrace((x: Tensor) => x.mul(1))
const GIVEN = [0.5, -0.25, 1.5, -3]
const ratios = (values: readonly number[], to: readonly number[] = GIVEN): number[] => values.map((value, i) => value / (to[i] ?? NaN))
const isConstant = (values: readonly number[]): boolean => Math.max(...values) - Math.min(...values) <= 1e-6 * Math.abs(values[0] ?? NaN)
const log = (values: readonly number[]): number[] => values.map((value) => Math.log10(Math.abs(value)))

/** What the search calls special, for float32. */
const [TINY, EPS, MAX] = [2 ** -126, 2 ** -23, (2 - 2 ** -23) * 2 ** 127]
const SPECIAL = new Set([0, TINY, EPS, 0.5, 1, 1 - EPS, 1 + EPS, 2, Math.fround(Math.sqrt(MAX))].map(Math.fround))
const isSpecial = (value: number): boolean => SPECIAL.has(Math.abs(value))

describe('the tries of a search', { timeout: 60_000 }, () => {
  it('begin with what was given, go through six ways, then have NaN and infinities too, then change what is the worst so far', async () => {
    const tries = 600
    const { seen, found } = await searched(one, [t(GIVEN)], { tries })
    const values = seen.map(([x]) => x ?? [])
    expect([values.length, values[0]]).toEqual([tries, GIVEN])
    expect(found).toMatchObject({ names: [], error: 0, status: 'ok' })
    expect(numbersOf(found.inputs[0])).toEqual(GIVEN)
    const way = (number: number): number[][] => values.filter((_, i) => i > 0 && i < 0.3 * tries && i % 6 === number)
    const later = values.filter((_, i) => i >= 0.3 * tries && i < 0.6 * tries && i % 2 === 1)
    for (const xs of values.slice(0, 0.3 * tries)) expect(xs.every(Number.isFinite)).toBe(true)

    const scales = way(0).map((xs) => ratios(xs))
    expect(scales.filter((scale) => !isConstant(scale) || (scale[0] ?? 0) <= 0)).toEqual([])
    const decades = log(scales.map(([scale = NaN]) => scale))
    expect([Math.min(...decades) >= -8, Math.min(...decades) < -6, Math.max(...decades) > 6, Math.max(...decades) <= 8]).toEqual([
      true,
      true,
      true,
      true,
    ])

    const normal = way(1)
    expect([normal.flat().some((x) => x > 0), normal.flat().some((x) => x < 0), normal.some((xs) => isConstant(ratios(xs)))]).toEqual([
      true,
      true,
      false,
    ])
    // Of one try, all are of one magnitude.
    const spreads = (tried: readonly number[][]): number[] => tried.map((xs) => Math.max(...log(xs)) - Math.min(...log(xs))).toSorted((a, b) => a - b)
    const median = (xs: readonly number[]): number => xs[xs.length >> 1] ?? NaN
    expect(median(spreads(normal))).toBeLessThan(1.5)
    expect(median(log(normal.map(([x = NaN]) => x)).map(Math.abs))).toBeGreaterThan(1)

    const negative = way(2)
    expect(negative.flat().every((x) => x < 0)).toBe(true)
    expect(negative.filter((xs) => !isConstant(ratios(xs, GIVEN.map(Math.abs))))).toEqual([])

    const positive = way(3)
    expect([positive.flat().every((x) => x >= 0), positive.some((xs) => isConstant(xs))]).toEqual([true, false])
    expect(median(spreads(positive))).toBeLessThan(1.5)

    const each = way(4)
    expect([each.flat().some((x) => x > 0), each.flat().some((x) => x < 0)]).toEqual([true, true])
    expect(median(spreads(each))).toBeGreaterThan(5)

    const specials = way(5).concat()
    const kept = specials.flat().filter((x, i) => x === GIVEN[i % 4]).length / specials.flat().length
    expect(specials.flat().filter((x, i) => x !== GIVEN[i % 4] && !isSpecial(x))).toEqual([])
    expect([kept > 0.55, kept < 0.85]).toEqual([true, true])
    const all = new Set([...specials, ...later.filter((_, i) => (i * 2 + 1 + 0.3 * tries) % 6 === 5)].flat().map(Math.abs))
    expect([...SPECIAL].filter((value) => !all.has(value)).length).toBeLessThanOrEqual(2)

    const beyond = values.filter((_, i) => i >= 0.3 * tries && i < 0.6 * tries && i % 2 === 0)
    expect(beyond.flat().filter((x, i) => Number.isFinite(x) && x !== GIVEN[i % 4])).toEqual([])
    expect([NaN, Infinity, -Infinity].map((x) => beyond.flat().some((y) => Object.is(x, y)))).toEqual([true, true, true])
    expect(later.flat().every(Number.isFinite)).toBe(true)

    const near = values.slice(0.6 * tries)
    const changes = near.flatMap((xs) => xs.map((x, i) => [x, GIVEN[i] ?? NaN] as const)).filter(([x, was]) => x !== was)
    expect([changes.length / (4 * near.length) > 0.2, changes.length / (4 * near.length) < 0.4]).toEqual([true, true])
    const [turned, special, close] = [
      changes.filter(([x, was]) => x === -was),
      changes.filter(([x, was]) => x !== -was && isSpecial(x)),
      changes.filter(([x, was]) => x !== -was && !isSpecial(x)),
    ]
    expect(close.filter(([x, was]) => Math.abs(x - was) > 5 && Math.abs(Math.log10(x / was)) > 2.5)).toEqual([])
    expect([turned, special, close].map((some) => some.length > changes.length / 8)).toEqual([true, true, true])
    // Scaled, which keeps the sign, and moved.
    expect(close.some(([x, was]) => Math.abs(x / was) > 3 && Math.abs(x - was) < 9 && x / was > 0)).toBe(true)
    expect(close.some(([x, was]) => x / was < 0)).toBe(true)
  })

  it('are within what a dtype holds, and of integers within what was given', async () => {
    const half = await searched(one, [t([1, 2]).half()], { tries: 200 })
    const magnitudes = half.seen
      .flatMap(([x]) => x ?? [])
      .filter((x) => Number.isFinite(x) && x !== 0)
      .map(Math.abs)
    expect([Math.max(...magnitudes) <= 65504 / 1024, Math.min(...magnitudes) >= 2 ** -24, half.seen.length < 200]).toEqual([true, true, true])
    for (const dtype of ['int64', 'uint8'] as const) {
      const { seen } = await searched(one, [t([7, 3, 5], { dtype })], { tries: 40 })
      const drawn = seen.slice(1).flatMap(([x]) => x ?? [])
      expect([dtype, new Set(drawn)]).toEqual([dtype, new Set([3, 4, 5, 6, 7])])
    }
    const same = await searched(one, [t([5, 5], { dtype: 'int32' })], { tries: 5 })
    expect(same.seen).toEqual(Array.from({ length: 5 }, () => [[5, 5]]))
    const flags = await searched(
      symbolicTrace((m: Tensor) => m.logicalNot()),
      [t([true, true])],
      { tries: 40 },
    )
    expect(new Set(flags.seen.slice(1).flatMap(([m]) => m ?? []))).toEqual(new Set([0, 1]))
    const empty = await searched(one, [torch.zeros([0])], { tries: 3 })
    expect(empty.seen).toEqual([[[]], [[]], [[]]])
  })

  it('change all inputs or one of them, and only those that may be changed', async () => {
    const two = symbolicTrace((x: Tensor, y: Tensor) => x.add(y))
    const given = [t([1, 2]), t([3, 4])]
    const { seen } = await searched(two, given, { tries: 100 })
    const isSame = ([x, y]: readonly number[][]): readonly boolean[] => [String(x) === '1,2', String(y) === '3,4']
    const kinds = seen.slice(1, 60).map((values) => String(isSame(values)))
    const share = (kind: string): number => kinds.filter((some) => some === kind).length / kinds.length
    expect([share('false,false') > 0.25, share('true,false') > 0.1, share('false,true') > 0.1]).toEqual([true, true, true])
    const only = await searched(two, given, { tries: 20, given: new Set(['y']) })
    expect(only.seen.every(([x]) => String(x) === '1,2')).toBe(true)
    expect(only.seen.some(([, y]) => String(y) !== '3,4')).toBe(true)
    expect((await searched(two, given, { tries: 20, given: new Set() })).seen).toHaveLength(1)
    expect(given.map(numbersOf)).toEqual([
      [1, 2],
      [3, 4],
    ])
  })

  it('pass over what overflows, or nearly', async () => {
    const large = symbolicTrace((x: Tensor) => x.mul(1e32))
    const { seen } = await searched(large, [t([1])], { tries: 120 })
    const values = seen.flatMap(([x]) => x ?? []).filter(Number.isFinite)
    expect(seen.length).toBeLessThan(120)
    expect(Math.max(...values.map(Math.abs)) * 1e32).toBeLessThanOrEqual(MAX / 1024)
    expect(Math.max(...values.map(Math.abs))).toBeGreaterThan(10)
  })
})

describe('what is the worst', { timeout: 60_000 }, () => {
  const two = symbolicTrace((x: Tensor, y: Tensor) => x.add(y))
  const given = [t([1, 2]), t([3, 4])]
  const largest = (value: Tensor | undefined): number => Math.max(...numbersOf(value).map(Math.abs))

  it('is what is wrong, with the inputs that it takes', async () => {
    const { found } = await searched(two, given, {
      tries: 40,
      wrong: (outputs, [, y]) => (largest(y) > 50 ? outputs.map((out) => out.mul(2)) : outputs),
    })
    expect([found.names, found.status, found.error > 0.1, largest(found.inputs[1] as Tensor) > 50]).toEqual([['y'], 'differs', true, true])
    const both = await searched(two, given, {
      tries: 90,
      wrong: (outputs, [x, y]) => (largest(x) > 5 && largest(y) > 5 ? outputs.map((out) => out.mul(2)) : outputs),
    })
    expect([both.found.names, both.found.status]).toEqual([['x', 'y'], 'differs'])
  })

  it('is what cannot be run, and then nothing is searched any further', async () => {
    const { found, seen } = await searched(two, given, {
      wrong: (outputs, [x]) => {
        if (largest(x) > 50) throw new RangeError('too large')
        return outputs.map((out) => out.add(1))
      },
    })
    expect([found.names, found.status, found.error]).toEqual([['x'], 'failed', NaN])
    expect(seen.length).toBeLessThan(40)
    const infinite = await searched(two, given, { wrong: (outputs, [x]) => (largest(x) > 50 ? outputs.map((out) => out.mul(NaN)) : outputs) })
    expect([infinite.found.status, infinite.found.error, infinite.seen.length < 40]).toEqual(['differs', Infinity, true])
  })

  it('is the largest error of what is right', async () => {
    // Half as large without y.
    const nearly = async (part: number): Promise<Searched['found']> => {
      const off = (value: Tensor | undefined): number => (largest(value) > 50 ? 1 : 0)
      const wrong = (outputs: readonly Tensor[], [x, y]: readonly Tensor[]): readonly Tensor[] =>
        outputs.map((out) => out.mul(1 + 2e-5 * (off(x) + part * off(y))))
      return (await searched(two, given, { wrong, tries: 200 })).found
    }
    const most = await nearly(0.5)
    expect([most.status, most.error > 1e-5, most.error < 1e-4, most.names]).toEqual(['ok', true, true, ['x']])
    expect((await nearly(3)).names).toEqual(['y'])
  })
})

it('the options of a search have defaults, and are checked', () => {
  expect(checkWorstInput({})).toEqual({ tries: 100, seed: 0 })
  expect(checkWorstInput({ tries: 1, seed: 7 })).toEqual({ tries: 1, seed: 7 })
  const said = (options: unknown): string => {
    try {
      checkWorstInput(options as never)
    } catch (error) {
      return error instanceof Error ? error.message : ''
    }
    return 'nothing'
  }
  expect(said(3)).toBe("compareBackends: argument 'options.worstInput' must be an object { tries, seed }, got 3.")
  for (const tries of [0, 1.5, Infinity])
    expect(said({ tries })).toMatch(/^compareBackends: argument 'options\.worstInput\.tries' must be a whole number of at least 1, got /)
  for (const seed of [-1, 0.5]) expect(said({ seed })).toMatch(/^compareBackends: argument 'options\.worstInput\.seed' must be a whole number, got /)
  for (const option of ['tries', 'seed'])
    expect(said({ [option]: '3' })).toMatch(new RegExp(`^compareBackends \\(options\\.worstInput\\): option '${option}' must be a number`))
  expect(said({ trys: 3 })).toMatch(/^compareBackends \(options\.worstInput\): unknown option 'trys'/)
})
