// What the judge of a call runs to judge it, and what it takes for right and wrong at the edges: whole findings.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import { config } from 'tensorfx/compile'
import { Graph, GraphModule, symbolicTrace } from 'tensorfx/fx'
import { CallCheck } from '../../src/debug/judge/callCheck.ts'
import type { Finding } from '../../src/debug/judge/callCheck.ts'
import { isolated } from '../../src/debug/runs/isolated.ts'
import { Storage, Tensor } from '../../src/tensor/index.ts'
import { resetConfig } from './inProcess.ts'

afterEach(resetConfig)

const t = torch.tensor
type Code = (...inputs: Tensor[]) => unknown
const tensors = (values: readonly unknown[]): Tensor[] => values as Tensor[]

/** A check of what the code does with a graph, and what it reports. */
function checking(gm: GraphModule, code: Code): { readonly check: CallCheck; readonly reports: string[] } {
  const reports: string[] = []
  return {
    check: new CallCheck(
      gm,
      (...inputs) => code(...tensors(inputs)),
      (why) => void reports.push(why),
    ),
    reports,
  }
}

/** One call, judged. */
function judged(gm: GraphModule, code: Code, inputs: readonly unknown[]): Finding | null {
  const { check } = checking(gm, code)
  const before = isolated(null, inputs).inputs
  check.begin()
  return check.judge(
    before,
    inputs,
    torch.noGrad(() => code(...tensors(inputs))),
  )
}

const traced = (forward: Code): GraphModule => symbolicTrace(forward)

/** A graph that calls functions one after the other, each with what comes before it. */
function calling(...functions: ((...args: never[]) => unknown)[]): GraphModule {
  const graph = new Graph()
  let values = [graph.placeholder('x'), graph.placeholder('y'), graph.placeholder('n')]
  for (const fn of functions) values = [graph.callFunction(fn, values), ...values.slice(1)]
  graph.output([values[0] ?? null])
  return new GraphModule({}, graph)
}

/** By how many units in the last place of float32 values are apart, at most. */
const apart = (a: readonly number[], b: readonly number[]): number => Math.max(...a.map((value, i) => Math.abs((b[i] ?? NaN) / value - 1) / 2 ** -23))

describe('the judge runs the graph', () => {
  const x = t([0.3, 0.7, 0.11, 1.9, 2.3, 0.9])
  const y = t([0.3, 0.7, 0.11, 1.9, 2.3, 0.9])

  it('once, and once in float64, for a right call; twice more, with everything moved by rounding, for a wrong one', () => {
    const seen: { readonly x: number[]; readonly y: number[]; readonly n: number; readonly dtype: string }[] = []
    const results: number[][] = []
    const watch = (a: Tensor, b: Tensor, n: number): Tensor => {
      seen.push({ x: a.toArray() as number[], y: b.toArray() as number[], n, dtype: a.dtype })
      return a.mul(n)
    }
    const look = (a: Tensor): Tensor => {
      results.push(a.toArray() as number[])
      return a
    }
    const gm = calling(watch, look)
    expect(judged(gm, (a) => [a.mul(2)], [x, y, 2])).toBeNull()
    const given = tensors([x, y]).map((tensor) => tensor.toArray() as number[])
    const [ofX = [], ofY = []] = given
    const plain = { x: ofX, y: ofY, n: 2 }
    expect(seen.splice(0)).toEqual([
      { ...plain, dtype: 'float32' },
      { ...plain, dtype: 'float64' },
    ])
    const doubled = ofX.map((value) => value * 2)
    expect(results.splice(0)).toEqual([doubled, doubled])

    expect(judged(gm, (a) => [a.mul(3)], [x, y, 2])).toMatchObject({ rule: 'numbers' })
    expect(seen.slice(0, 2)).toEqual([
      { ...plain, dtype: 'float32' },
      { ...plain, dtype: 'float64' },
    ])
    const moved = seen.slice(2, 4)
    expect(moved.map(({ n, dtype }) => [n, dtype])).toEqual([
      [2, 'float32'],
      [2, 'float32'],
    ])
    // Each input in its own way, in each run in another; no further than rounding goes.
    const texts = moved.flatMap((run) => [run.x.join(), run.y.join()])
    expect(new Set([...texts, ofX.join()]).size).toBe(5)
    for (const run of moved) for (const values of [run.x, run.y]) expect(apart(ofX, values)).toBeLessThan(10)
    // What operators give is moved too.
    moved.forEach((run, i) => {
      const exact = run.x.map((value) => Math.fround(value * 2))
      const result = results[2 + i] ?? []
      expect(result).not.toEqual(exact)
      expect(apart(exact, result)).toBeLessThan(6)
    })
  })

  it('without a reference in float64, where an operator has none or the setting says so', () => {
    const dtypes: string[] = []
    const narrow = (a: Tensor): Tensor => {
      dtypes.push(a.dtype)
      if (a.dtype === 'float64') throw new TypeError('no float64')
      return a.mul(2)
    }
    const gm = calling(narrow)
    expect([judged(gm, (a) => [a.mul(2)], [x, y, 2]), dtypes.splice(0)]).toEqual([null, ['float32', 'float64']])
    expect(judged(gm, (a) => [a.mul(3)], [x, y, 2])).toMatchObject({
      rule: 'numbers',
      reasons: [/^Accuracy failed: allclose/, /narrow/].map(matching),
    })
    dtypes.splice(0)
    config.sameTwoModelsUseFp64 = false
    expect([judged(gm, (a) => [a.mul(2)], [x, y, 2]), dtypes]).toEqual([null, ['float32']])
  })
})

const matching = (pattern: RegExp): unknown => expect.stringMatching(pattern)

describe('results', () => {
  const double = traced((x) => [x.mul(2)])

  it('that are too many are named by their number', () => {
    expect(judged(double, (x) => [x.mul(2), x.add(1)], [t([1, 2])])).toEqual({
      rule: 'numbers',
      message: 'Its numbers are wrong.',
      reasons: ['keys differ'],
    })
  })

  it('that are fewer, none, or of another type in another run are no repetition', () => {
    const later = (first: Code, others: Code): Finding | null => {
      let calls = 0
      return judged(double, (...inputs) => (calls++ === 0 ? first : others)(...inputs), [t([0, 0])])
    }
    const right: Code = (x) => [x.mul(2)]
    const message =
      'The same inputs do not always give the same result: 7 of 8 runs had wrong numbers. The backend is flaky, or its result depends on earlier calls.'
    const named = 'Accuracy failed for key name output 0 (mul)'
    expect(later(right, () => [])).toEqual({ rule: 'repeats', message, reasons: ['keys differ'] })
    expect(later(right, (x) => [x.mul(2), x.add(1)])).toEqual({ rule: 'repeats', message, reasons: ['keys differ'] })
    expect(later(right, () => [null])).toEqual({ rule: 'repeats', message, reasons: ['types differ: a Tensor and null', named] })
    // Zeros have the same bytes in both.
    expect(later(right, (x) => [x.mul(2).to('int32')])).toEqual({ rule: 'repeats', message, reasons: [matching(/int32/), named] })
    expect(later(right, right)).toBeNull()
    const throwing: Code = () => {
      throw new RangeError('spent')
    }
    expect(later((x) => [x.mul(3).add(1)], throwing)).toEqual({
      rule: 'repeats',
      message:
        'The same inputs do not always give the same result: 8 of 8 runs had wrong numbers or threw. The backend is flaky, or its result depends on earlier calls.',
      reasons: ['RangeError: spent'],
    })
  })

  it('that were not computed when a call began, or that the program has dropped, are no results that a call overwrites', async () => {
    const { check } = checking(double, (x) => [x.mul(2)])
    const x = t([1, 2])
    const storage = Storage.deferred(8, { settle: (late) => void late.moveTo(Storage.allocate(8)) })
    const call = (kept: readonly unknown[] = []): Finding | null => {
      check.begin()
      return check.judge(isolated(null, [x]).inputs, [x], [x.mul(2)], kept)
    }
    expect(call([new Tensor([2], 'float32', storage)])).toBeNull()
    check.begin()
    storage.writer = null
    storage.moveTo(Storage.allocate(8))
    expect(check.judge(isolated(null, [x]).inputs, [x], [x.mul(2)])).toBeNull()
    // What is left of them after the garbage collector.
    await new Promise((resolve) => setTimeout(resolve, 1))
    setFlagsFromString('--expose-gc')
    ;(runInNewContext('gc') as () => void)()
    expect(call()).toBeNull()
  })

  it('lie in an input only where the write of that input, or eager kernels, put them there', () => {
    const writing = (forward: Code, ...writeBacks: [number, number][]): GraphModule => {
      const gm = traced(forward)
      gm.meta['writeBacks'] = new Map(writeBacks)
      return gm
    }
    const alias = (output: string, input: string): unknown => ({
      rule: 'aliases',
      message: `Output ${output} lies in the memory of input ${input}: a write to one would change the other. On eager kernels it has memory of its own.`,
      reasons: [],
    })
    // The new value of x lies in y, which holds the same numbers.
    const two = writing((a, b) => [a.add(1), b.mul(1)], [0, 0])
    expect(judged(two, (_x, y) => [y.view(2), y.mul(1)], [t([1, 2]), t([2, 3])])).toEqual(alias("0 ('add')", "1 ('b')"))
    // Another output lies in x.
    const one = writing((a) => [a.add(1), a.mul(1)], [0, 0])
    expect(judged(one, (x) => [x.add(1), x.view(2)], [t([1, 2])])).toEqual(alias("1 ('mul')", "0 ('a')"))
    // Inputs that share memory: a view of any of them lies in all.
    const view = traced((a, b) => [a.view(2, 1), b.mul(1)])
    const x = t([1, 2])
    expect(judged(view, (a, b) => [a.view(2, 1), b.mul(1)], [x, x.view(2)])).toBeNull()
    expect(judged(view, (a, b) => [a.view(2, 1), b.view(2)], [x, x.view(2)])).toEqual(alias("1 ('mul')", "0 ('a')"))
  })

  it('that are missing are no new values of an input', () => {
    const gm = traced((a, b) => [a.add(1), b.mul(2)])
    gm.meta['writeBacks'] = new Map([[0, 0]])
    const written: Code = (x, y) => {
      x.add_(1)
      return [null, y.mul(2)]
    }
    const found = judged(gm, written, [t([1, 2]), t([3])])
    expect(found).toEqual({ rule: 'inputs', message: "Input 0 ('a') was overwritten, and the graph does not write to it.", reasons: [] })
    // An input that is no tensor has no new value; one that was not written keeps its own.
    gm.meta['writeBacks'] = new Map([
      [0, 0],
      [1, 1],
    ])
    expect(judged(gm, (x, y) => [x.add(1), y.mul(2)], [t([1, 2]), t([3])])).toBeNull()
    const number = traced((x, n) => [x.mul(n), x.add(1)])
    number.meta['writeBacks'] = new Map([
      [0, 1],
      [1, 0],
    ])
    expect(judged(number, (x, n) => [x.mul(n), x.add_(1)], [t([1, 2]), 3])).toEqual(null)
  })

  it('are judged before anything is written: what did not change is not written back', () => {
    const [x, y] = [t([1, 2]), t([3, 4])]
    let writes = 0
    const found = judged(
      traced((a, b) => [a.mul(2), b.mul(2)]),
      (a, b) => {
        const result = [a.mul(2), b.mul(2)]
        b.fill_(9)
        for (const tensor of [a, b]) tensor.storage?.beforeWrite(() => writes++)
        return result
      },
      [x, y],
    )
    expect([found?.message, x.toArray(), y.toArray(), writes]).toEqual([
      "Input 1 ('b') was overwritten, and the graph does not write to it.",
      [1, 2],
      [3, 4],
      1,
    ])
  })
})

describe('what is saved for the backward', () => {
  it('is not judged where the graph fails on eager kernels', () => {
    const { check, reports } = checking(
      traced((x) => [x.reshape([7])]),
      (x) => [x],
    )
    const x = t([1])
    check.begin()
    expect([check.judgeNumbers([x], [x], [x]), reports]).toEqual([null, [matching(/^it fails on eager kernels: .*reshape/s)]])
  })
})

describe('attributes of the graph', () => {
  const held = (gm: GraphModule): Tensor => gm.attribute('n') as Tensor

  it('may be more exact than on eager kernels', () => {
    class Cancels extends nn.Module {
      constructor() {
        super()
        this.registerBuffer('n', t([0.3, 0.7]))
      }
      forward(x: Tensor): unknown {
        const n = Reflect.get(this, 'n') as Tensor
        return [n.add_(1e5).sub_(1e5).add_(x).add(1)]
      }
    }
    const gm = symbolicTrace(new Cancels())
    const exact: Code = (x) => [held(gm).add_(x).add(1)]
    const wrong: Code = (x) => [held(gm).add_(x).sub_(0.01).add(1.01)]
    expect(judged(gm, exact, [t([1, 2])])).toBeNull()
    const found = judged(gm, wrong, [t([1, 2])])
    expect(found).toEqual({
      rule: 'numbers',
      message: 'Its numbers are wrong.',
      reasons: [matching(/^RMSE .*; element 1 is /), "Accuracy failed for key name attribute 'n'"],
    })
  })

  it('that are no tensors are nothing that a call could change', () => {
    class Opaque {
      readonly factor = 2
    }
    const scale = (x: Tensor, by: Opaque): Tensor => x.mul(by.factor)
    const graph = new Graph()
    const x = graph.placeholder('x')
    graph.output([graph.callFunction(scale, [x, graph.getAttr('by')])])
    const gm = new GraphModule({ by: new Opaque() }, graph)
    expect(judged(gm, (a) => [a.mul(2)], [t([1, 2])])).toBeNull()
    expect(judged(gm, (a) => [a.mul(3)], [t([1, 2])])).toMatchObject({
      rule: 'numbers',
      reasons: [matching(/^RMSE/), matching(/output 0 \(scale\)$/)],
    })
  })
})
