// Assertions on numbers that depend on data, written into graphs; PyTorch's passes.runtime_assert. The judges are PyTorch's recorded graphs and runs.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx, shapeEnvOf } from 'tensorfx/aot'
import { AssertionFailed, operator } from 'tensorfx/fx'
import type { GraphModule, Node } from 'tensorfx/fx'
import { graphFromJson, graphToJson } from 'tensorfx/fx/json'
import { insertDeferredRuntimeAsserts } from 'tensorfx/fx/passes'
import { rangeText, textOf } from '../../../src/symbols/index.ts'
import { describeGolden, messageOf, resultOf } from './golden.ts'

type Program = (...args: Tensor[]) => unknown

const total = (x: Tensor): number => x.sum().item()
const { _check: check, _checkIsSize: checkIsSize } = torch
const { eq, ge, gt, le, lt, mod, mul, ne } = operator
const { add, floordiv } = operator
const ints = (...values: number[]): Tensor => torch.tensor(values, { dtype: 'int64' })

/** PyTorch's programs as users of tensorfx write them. */
const programs: Readonly<Record<string, Program>> = {
  'u >= 2': (x) => {
    const u = total(x)
    check(ge(u, 2))
    return torch.ones([3]).mul(u)
  },
  'u > 1': (x) => {
    const u = total(x)
    check(gt(u, 1))
    check(lt(u, 9))
    return torch.zeros([u])
  },
  'is_size(u); return torch.zeros(u)': (x) => {
    const u = total(x)
    checkIsSize(u)
    return torch.zeros([u])
  },
  'u < v': (x, y) => {
    const [u, v] = [total(x), total(y)]
    check(lt(u, v))
    return torch.ones([2]).mul(v)
  },
  'torch.cat([torch.zeros(u)': (x, y) => {
    const [u, v] = [total(x), total(y)]
    checkIsSize(u)
    checkIsSize(v)
    return torch.cat([torch.zeros([u]), torch.ones([v])])
  },
  'u % 4 == 0': (x) => {
    const u = total(x)
    check(eq(mod(u, 4), 0))
    return torch.ones([2]).mul(u)
  },
  'u != 0': (x) => {
    const u = total(x)
    check(ne(u, 0))
    return torch.ones([2]).div(u)
  },
  'n = torch.nonzero(x)': (x) => {
    const n = torch.nonzero(x)
    check(eq(n.shape[0] ?? NaN, 2))
    return n.sum()
  },
  'z = torch.zeros(u, 3)': (x) => {
    const u = total(x)
    checkIsSize(u)
    return torch.zeros([u, 3]).view(-1)
  },
  'x.tolist()': (x) => {
    const [u = NaN, v = NaN, w = NaN] = x.toArray() as number[]
    for (const size of [u, v, w]) checkIsSize(size)
    return [torch.zeros([u, v]), torch.ones([w])]
  },
  'x.shape[0] + y.shape[0]': (x, y) => torch.zeros([add(x.shape[0] ?? NaN, y.shape[0] ?? NaN)]),
  'u == 5': (x) => {
    const u = total(x)
    check(eq(u, 5))
    return torch.ones([u])
  },
}

interface Recorded {
  readonly function: string
  readonly inputs: readonly (readonly number[])[]
  readonly after: string
  readonly deferred: Readonly<Record<string, readonly string[]>>
  readonly ranges: Readonly<Record<string, string>>
  readonly runs: readonly (readonly [inputs: readonly (readonly number[])[], result: unknown])[]
}

/** An assertion: its text without the node's number, and how many numbers of the data the graph has by then. */
type Assertion = readonly [text: string, place: number]

/** Without the number of the node, and without the code frame that an error of a graph begins with. */
const withoutNumber = (text: string): string => (text.split('\n').at(-1) ?? '').replace(/_\d+(?='$)/, '').trim()

function recordedAsserts(graph: string): readonly Assertion[] {
  const found: Assertion[] = []
  let place = 0
  for (const line of graph.split('\n')) {
    if (/target=torch\.ops\.aten\.(?:_local_scalar_dense|nonzero)/.test(line)) place++
    const [, text] = /(Runtime assertion failed .*), kwargs/.exec(line.replace(/\), kwargs/, ', kwargs')) ?? []
    if (text !== undefined) found.push([withoutNumber(text), place])
  }
  return found
}

const targetOf = ({ target }: Node): string => (typeof target === 'string' ? target : target.name)

function assertsIn(gm: GraphModule): readonly Assertion[] {
  const found: Assertion[] = []
  let place = 0
  for (const node of gm.graph.nodes) {
    if (node.op !== 'call_function') continue
    if (['item', 'nonzeroRows'].includes(targetOf(node))) place++
    if (targetOf(node) === '_assert') found.push([withoutNumber(String(node.args[1])), place])
  }
  return found
}

const trace = (run: Program, inputs: readonly Tensor[]): GraphModule =>
  makeFx(run as (...args: never[]) => unknown, { tracingMode: 'symbolic' })(...inputs)

/** The graph of a program with its assertions. */
function asserting(run: Program, ...inputs: Tensor[]): GraphModule {
  const gm = trace(run, inputs)
  insertDeferredRuntimeAsserts(gm)
  gm.graph.lint()
  return gm
}

/** PyTorch writes `Ne` as the contrary of `Eq`, on a node `sym_not`. */
const theirs = (list: readonly Assertion[]): readonly Assertion[] => list.map(([text, place]) => [text.replace("'sym_not'", "'ne'"), place])
/** `1 < u` is recorded as it stands here, where Python turns it into `u > 1`. */
const ours = (list: readonly Assertion[]): readonly Assertion[] =>
  list.map(([text, place]) => [text.replace(/(1 < u\d on node) 'lt'/, "$1 'gt'"), place])

const { cases } = JSON.parse(readFileSync(new URL('../../goldens/symbols/runtimeAsserts.json', import.meta.url), 'utf8')) as {
  readonly cases: readonly Recorded[]
}

describe('assertions on numbers that depend on data are PyTorch’s', () => {
  const found = Object.entries(programs)
  for (const golden of cases) {
    it(golden.function, () => {
      const [, run] = found.find(([part]) => golden.function.includes(part)) ?? []
      if (run === undefined) throw new Error('no program')
      const gm = trace(
        run,
        golden.inputs.map((values) => ints(...values)),
      )
      const env = shapeEnvOf(gm)
      expect(Object.fromEntries([...env.deferredRuntimeAsserts].map(([of, list]) => [of.name, list.map(({ expr }) => textOf(expr))]))).toEqual(
        golden.deferred,
      )
      const unbacked = (ranges: Iterable<readonly [string, string]>): readonly (readonly [string, string])[] =>
        [...ranges].filter(([name]) => name.startsWith('u'))
      expect(unbacked([...env.ranges].map(([of, range]) => [of.name, rangeText(range)] as const))).toEqual(unbacked(Object.entries(golden.ranges)))
      insertDeferredRuntimeAsserts(gm)
      gm.graph.lint()
      expect(ours(assertsIn(gm))).toEqual(theirs(recordedAsserts(golden.after)))
      for (const [inputs, result] of golden.runs) {
        const tensors = inputs.map((values) => ints(...values))
        if (Array.isArray(result)) expect((gm.call(...tensors) as Tensor).toArray()).toEqual(result)
        else {
          const [[wanted] = ['']] = theirs([[withoutNumber((result as { readonly error: string }).error), 0]])
          expect(() => gm.call(...tensors)).toThrow(AssertionFailed)
          expect(withoutNumber(messageOf(() => gm.call(...tensors)))).toBe(wanted)
        }
      }
    })
  }

  it('each recorded program has a port', () => {
    expect(cases.filter((golden) => !found.some(([part]) => golden.function.includes(part)))).toEqual([])
    expect(cases).toHaveLength(found.length)
  })
})

/** The assertions of a case, compared with PyTorch's. */
const compared =
  (run: Program, ...inputs: Tensor[]) =>
  (golden: { readonly result: unknown }): void => {
    expect(ours(assertsIn(asserting(run, ...inputs)))).toEqual(theirs(recordedAsserts((golden.result as Recorded).after)))
  }

const oddFromTwoToTen: Program = (x) => {
  const u = total(x)
  check(ge(u, 2))
  check(le(u, 10))
  check(eq(mod(u, 2), 1))
  return torch.ones([u])
}

describeGolden('runtime_assert', {
  size_from_a_number: compared(programs['is_size(u); return torch.zeros(u)'] ?? (() => null), ints(2, 3)),
  range_checks: compared(
    (x) => {
      const u = total(x)
      check(ge(u, 2))
      check(le(u, 10))
      return torch.ones([u])
    },
    ints(2, 3),
  ),
  relation_between_two: compared(
    (x, y) => {
      const [u, v] = [total(x), total(y)]
      check(eq(u, mul(v, 2)))
      return torch.ones([3]).mul(u).add(v)
    },
    ints(2, 2),
    ints(1, 1),
  ),
  redundant_checks_once: (golden) => {
    const gm = asserting(
      (x) => {
        const u = total(x)
        check(eq(mod(u, 2), 0))
        check(eq(mod(u, 2), 0))
        check(gt(u, 1))
        return torch.ones([3]).add(u)
      },
      ints(2, 2),
    )
    // PyTorch asserts the remainder a second time, in the form that it has for numbers of at least 0.
    const recorded = recordedAsserts(resultOf<Recorded>(golden).after).filter(([text]) => !text.includes('Eq(Mod(u0, 2), 0)'))
    expect(ours(assertsIn(gm))).toEqual(recorded)
  },
  sizes_of_intermediates_from_inputs: (golden) => {
    const gm = asserting((x, y) => torch.ones([torch.cat([x, x]).repeat(y.shape[0] ?? NaN).shape[0] ?? NaN]), torch.zeros([3]), torch.zeros([2]))
    const read = (graph: string): readonly string[] => [...graph.matchAll(/sym_size\.int\]\(args = \(%(\w+),/g)].map(([, name = '']) => name)
    // Sizes are read of the inputs alone.
    expect(
      new Set([...gm.graph.nodes].filter((node) => node.op === 'call_function' && targetOf(node) === 'symSize').map((node) => String(node.args[0]))),
    ).toEqual(new Set(read(resultOf<Recorded>(golden).after)))
    expect((gm.call(torch.zeros([5]), torch.zeros([4])) as Tensor).shape).toEqual([40])
  },
  running_the_result: (golden) => {
    const [[size], ...errors] = resultOf<[[number], ...{ error: string }[]]>(golden)
    const gm = asserting(oddFromTwoToTen, ints(2, 3))
    expect((gm.call(ints(3, 4)) as Tensor).shape).toEqual([size])
    const failures = [ints(1, 0), ints(11, 0), ints(4, 0)].map((x) => withoutNumber(messageOf(() => gm.call(x))))
    expect(failures).toEqual(errors.map(({ error }) => withoutNumber(error)))
  },
  export_spelling: (golden) => {
    const gm = asserting(
      (x) => {
        const u = total(x)
        check(eq(mod(u, 3), 0))
        check(le(mul(floordiv(u, 2), 2), 100))
        return torch.ones([2]).mul(u)
      },
      ints(3, 3),
    )
    const [, plain] = resultOf<[Recorded, Recorded]>(golden)
    expect(assertsIn(gm)).toEqual(recordedAsserts(plain.after))
  },
  sum_of_two_numbers_waits_for_both: compared(
    (x, y) => {
      const [u, v] = [total(x), total(y)]
      check(le(add(u, v), 100))
      checkIsSize(u)
      return torch.ones([u]).mul(v)
    },
    ints(2, 3),
    ints(1, 1),
  ),
  number_of_nonzero: compared(
    (x) => {
      const n = torch.nonzero(x)
      check(ge(n.shape[0] ?? NaN, 1))
      return n.mul(2)
    },
    torch.tensor([1, 0, 2]),
  ),
})

describe('a graph with assertions', () => {
  it('keeps them through dead code elimination and JSON', () => {
    const gm = asserting(oddFromTwoToTen, ints(2, 3))
    const count = assertsIn(gm).length
    gm.graph.eliminateDeadCode()
    expect(assertsIn(gm)).toHaveLength(count)
    const again = graphFromJson(graphToJson(gm.graph))
    expect([...again.nodes].filter((node) => node.op === 'call_function' && targetOf(node) === '_assert')).toHaveLength(count)
  })

  it('gets none a second time', () => {
    const gm = asserting(oddFromTwoToTen, ints(2, 3))
    const count = assertsIn(gm).length
    insertDeferredRuntimeAsserts(gm)
    expect(assertsIn(gm).length).toBe(count)
  })

  it('is no graph of numbers', () => {
    const gm = makeFx((x: Tensor) => x.sin())(torch.ones([2]))
    expect(() => insertDeferredRuntimeAsserts(gm)).toThrow("tracingMode: 'symbolic'")
  })
})
