// How the minifier searches: its strategies one by one, and whole searches as they are told. (shrink.test.ts: values.)
import { describe, expect, it } from 'vitest'
import { Tensor, torch } from 'tensorfx'
import { Graph, GraphModule, operator, symbolicTrace } from 'tensorfx/fx'
import { minifier } from 'tensorfx/debug'
import type { MinifierOptions, ModuleFails } from 'tensorfx/debug'
import { CONCRETE_VALUE, keepOnly, operatorsOf, withoutAttributes, withoutUnusedInputs } from '../../src/debug/minify/subgraph.ts'
import type { ReproState } from '../../src/debug/minify/subgraph.ts'
import { captureValues } from '../../src/debug/minify/concreteValues.ts'
import { strategies } from '../../src/debug/minify/strategies.ts'
import { table } from '../../src/debug/common/table.ts'

const t = torch.tensor
/** The operators and inputs of a state as text: `a, b -> relu(a) -> returned`. */
function told({ graph }: { readonly graph: Graph }): string {
  const nodes = [...graph.nodes]
  const names = (list: readonly { name: string }[]): string => list.map((node) => node.name).join(' ')
  const calls = operatorsOf(graph).map((node) => `${node.name}(${names(node.allInputNodes)})`)
  return `${names(nodes.filter((node) => node.op === 'placeholder'))} -> ${calls.join(' ')} -> ${names(graph.outputNode().allInputNodes)}`
}

const arraysOf = (state: ReproState | null): unknown[] => (state?.inputs ?? []).map((input) => (input instanceof Tensor ? input.toArray() : input))

function stateOf(gm: GraphModule, inputs: readonly unknown[]): ReproState {
  const state = { graph: gm.graph.deepCopy(), inputs: [...inputs], earlier: [] }
  captureValues(new GraphModule(gm, gm.graph.deepCopy()), state)
  return state
}

const traced = (fn: (...args: Tensor[]) => unknown, count: number): ReproState =>
  stateOf(
    symbolicTrace(fn),
    Array.from({ length: count }, (_, i) => t([i + 1, i + 2])),
  )
const named = (state: ReproState, ...names: string[]) => operatorsOf(state.graph).filter((node) => names.includes(node.name))

describe('a part of a graph', () => {
  const whole = () => traced((a, b) => [torch.cos(torch.mul(torch.sin(a), b)), torch.neg(b), a], 2)

  it('returns what the rest would have used, and takes what it needs as inputs, with their values', () => {
    const state = whole()
    const part = keepOnly(state, named(state, 'mul'))
    expect(part === null ? null : told(part)).toBe('b sin -> mul(sin b) -> mul')
    expect(arraysOf(part)).toEqual([[2, 3], torch.sin(t([1, 2])).toArray()])
    expect(operatorsOf(state.graph)).toHaveLength(4)
    // An input keeps the name that the program gave it, which may also be that of an operator.
    const sum = traced((a) => [torch.cos(torch.sin(a))], 1)
    const [given] = sum.graph.findNodes({ op: 'placeholder' })
    if (given !== undefined) given.target = 'self'
    expect(keepOnly(sum, named(sum, 'sin'))?.graph.findNodes({ op: 'placeholder' })[0]?.target).toBe('self')
  })

  it('returns inputs that the graph returned, if that is asked for', () => {
    const state = whole()
    expect(told(keepOnly(state, named(state, 'neg'), true) ?? state)).toBe('a b -> neg(b) -> a neg')
    expect(told(keepOnly(state, named(state, 'neg')) ?? state)).toBe('b -> neg(b) -> neg')
    // Without operators there is nothing else to return.
    expect(told(keepOnly(state, []) ?? state)).toBe('a ->  -> a')
  })

  it('is none if nothing goes away or nothing is returned', () => {
    const state = whole()
    expect(keepOnly(state, operatorsOf(state.graph))).toBeNull()
    const none = traced((a) => [torch.sin(a)], 1)
    expect(keepOnly(none, [])).toBeNull()
  })

  it('returns what nobody uses, if that is all that is left: it may be what fails', () => {
    const state = traced((a, b) => {
      torch.mul(a, b)
      return [torch.sin(a)]
    }, 2)
    expect(told(keepOnly(state, named(state, 'mul')) ?? state)).toBe('a b -> mul(a b) -> mul')
    expect(told(keepOnly(state, named(state, 'sin')) ?? state)).toBe('a -> sin(a) -> sin')
  })

  it('keeps an operator with several results together with those who take from it', () => {
    const graph = new Graph()
    const pair = graph.callFunction(torch.topk, [graph.placeholder('x'), 1])
    const first = graph.callFunction(operator.getitem as never, [pair, 0])
    graph.output([graph.callFunction(torch.cos, [graph.callFunction(torch.sin, [first])])])
    const state = stateOf(new GraphModule({}, graph), [t([1, 2])])
    expect(told(keepOnly(state, named(state, 'getitem')) ?? state)).toBe('x -> topk(x) getitem(topk) -> getitem')
    expect(told(keepOnly(state, named(state, 'topk')) ?? state)).toBe('x -> topk(x) getitem(topk) -> getitem')
    expect(told(keepOnly(state, named(state, 'cos')) ?? state)).toBe('sin -> cos(sin) -> cos')
  })

  it('keeps an operator whose value is not known', () => {
    const state = whole()
    const [sin] = named(state, 'sin')
    delete sin?.meta[CONCRETE_VALUE]
    expect(told(keepOnly(state, named(state, 'mul')) ?? state)).toBe('a b -> sin(a) mul(sin b) -> mul')
  })

  it('has the inputs and the values of the calls before', () => {
    const gm = symbolicTrace((_a: Tensor, b: Tensor, c: Tensor) => [torch.cos(torch.mul(torch.sin(b), c))])
    const call = (...values: number[]): Tensor[] => values.map((value) => t(value))
    const state: ReproState = { graph: gm.graph.deepCopy(), inputs: call(1, 2, 3), earlier: [call(4, 5, 6), call(7, 8, 9)] }
    captureValues(new GraphModule(gm, gm.graph.deepCopy()), state)
    const numbersOf = (part: ReproState | null): unknown =>
      [part?.inputs, ...(part?.earlier ?? [])].map((values) => values?.map((value) => Number((value as Tensor).item())))
    const sines = [2, 5, 8].map((value) => torch.sin(t(value)).item())
    const cut = keepOnly(state, named(state, 'mul'))
    expect([told(cut ?? state), numbersOf(cut)]).toEqual([
      'c sin -> mul(sin c) -> mul',
      [
        [3, sines[0]],
        [6, sines[1]],
        [9, sines[2]],
      ],
    ])
    const used = withoutUnusedInputs(state)
    expect([told(used ?? state), numbersOf(used)]).toEqual([
      'b c -> sin(b) mul(sin c) cos(mul) -> cos',
      [
        [2, 3],
        [5, 6],
        [8, 9],
      ],
    ])
    // Of inputs, the values of the calls count, also where no value was captured.
    for (const input of state.graph.findNodes({ op: 'placeholder' })) delete input.meta[CONCRETE_VALUE]
    const first = keepOnly(used ?? state, named(state, 'sin'))
    expect([told(first ?? state), numbersOf(first)]).toEqual(['b -> sin(b) -> sin', [[2], [5], [8]]])
  })

  it('is cut before an operator with several results that are returned', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    const pair = graph.callFunction(torch.topk, [graph.callFunction(torch.sin, [x]), 1])
    graph.output([pair, graph.callFunction(torch.cos, [graph.callFunction(operator.getitem as never, [pair, 0])])] as never)
    const state = stateOf(new GraphModule({}, graph), [t([1, 2])])
    expect(told(keepOnly(state, named(state, 'topk')) ?? state)).toBe('sin -> topk(sin) getitem(topk) -> getitem')
  })

  it('has no inputs that are not used, and no tensors of its own', () => {
    const state = traced((_a, b) => [torch.sin(b)], 2)
    const used = withoutUnusedInputs(state)
    expect([told(used ?? state), arraysOf(used)]).toEqual(['b -> sin(b) -> sin', [[2, 3]]])
    expect(withoutUnusedInputs(used ?? state)).toBeNull()
    const weight = t([7, 8])
    const holding = stateOf(
      symbolicTrace((a: Tensor) => [torch.mul(a, weight)]),
      [t([1, 2])],
    )
    const given = withoutAttributes(holding)
    expect([told(given ?? holding), arraysOf(given)]).toEqual([
      'a _tensor_constant0 -> mul(a _tensor_constant0) -> mul',
      [
        [1, 2],
        [7, 8],
      ],
    ])
    expect(withoutAttributes(state)).toBeNull()
  })
})

it('values of the failing run are those of before a later write', () => {
  const gm = symbolicTrace((a: Tensor) => {
    const b = torch.sin(a)
    b.add_(1)
    return [b]
  })
  const state = stateOf(gm, [t([0, 0])])
  const [sin, added] = operatorsOf(state.graph).map((node) => node.meta[CONCRETE_VALUE] as Tensor)
  expect([sin?.toArray(), added?.toArray()]).toEqual([
    [0, 0],
    [1, 1],
  ])
  expect((state.inputs[0] as Tensor).toArray()).toEqual([0, 0])
})

describe('a strategy', () => {
  /** What a strategy makes of a chain sin, cos, tanh, relu, exp, neg, and what it tried. */
  async function tried(name: keyof typeof strategies, fails: (text: string) => boolean, granularity = 1, state = chain()) {
    const seen: string[] = []
    const result = await strategies[name].run(state, granularity, async (candidate) => {
      if (candidate === null) return false
      seen.push(told(candidate))
      return fails(told(candidate))
    })
    return { result: result === null ? null : told(result), seen }
  }
  const chain = (): ReproState => traced((a) => [torch.neg(torch.exp(torch.relu(torch.tanh(torch.cos(torch.sin(a))))))], 1)
  const hasRelu = (text: string): boolean => text.includes('relu(')

  it('that truncates the suffix finds the shortest prefix by halves', async () => {
    const { result, seen } = await tried('truncateSuffix', hasRelu)
    expect(result).toBe('a -> sin(a) cos(sin) tanh(cos) relu(tanh) -> relu')
    expect(seen.map((text) => text.slice(text.lastIndexOf(' ') + 1))).toEqual(['exp', 'cos', 'tanh', 'relu'])
    expect((await tried('truncateSuffix', (text) => text.includes('neg('))).result).toBeNull()
  })

  it('that truncates the prefix finds the shortest suffix by halves', async () => {
    const { result, seen } = await tried('truncatePrefix', hasRelu)
    expect(result).toBe('tanh -> relu(tanh) exp(relu) neg(exp) -> neg')
    expect(seen.map((text) => text.split(' ')[0])).toEqual(['tanh', 'relu'])
    expect((await tried('truncatePrefix', (text) => text.includes('sin('))).result).toBeNull()
  })

  it('that isolates the last operator tries that alone', async () => {
    expect(await tried('isolateLast', (text) => text.includes('neg('))).toEqual({
      result: 'exp -> neg(exp) -> neg',
      seen: ['exp -> neg(exp) -> neg'],
    })
    expect((await tried('isolateLast', hasRelu)).result).toBeNull()
  })

  it('that debugs by deltas leaves out as many operators at a time as it is told', async () => {
    expect(await tried('deltaDebugging', hasRelu, 2)).toEqual({
      result: 'cos -> tanh(cos) relu(tanh) exp(relu) neg(exp) -> neg',
      seen: ['cos -> tanh(cos) relu(tanh) exp(relu) neg(exp) -> neg'],
    })
    const returning = traced((a) => [torch.neg(torch.sin(a)), a], 1)
    expect((await tried('deltaDebugging', () => true, 1, returning)).result).toBe('a sin -> neg(sin) -> a neg')
    const none = await tried('deltaDebugging', () => false, 2)
    expect([none.result, none.seen]).toEqual([
      null,
      [
        'cos -> tanh(cos) relu(tanh) exp(relu) neg(exp) -> neg',
        'a relu -> sin(a) cos(sin) exp(relu) neg(exp) -> cos neg',
        'a -> sin(a) cos(sin) tanh(cos) relu(tanh) -> relu',
      ],
    ])
  })

  it('that removes outputs drops half as many as its granularity', async () => {
    const many = (): ReproState => traced((a) => [torch.sin(a), torch.cos(a), torch.relu(a), torch.exp(a)], 1)
    const all = 'a -> sin(a) cos(a) relu(a) exp(a) -> '
    const { seen, result } = await tried('removeOutputs', (text) => text.endsWith('relu exp'), 4, many())
    expect([seen, result]).toEqual([[`${all}relu exp`], `${all}relu exp`])
    const last = await tried('removeOutputs', (text) => !text.split(' -> ')[2]?.includes('exp'), 1, many())
    expect(last.seen.map((text) => text.split(' -> ')[2])).toEqual(['cos relu exp', 'sin relu exp', 'sin cos exp', 'sin cos relu'])
    expect(last.result).toBe(`${all}sin cos relu`)
    expect(await tried('removeOutputs', () => true, 8, many())).toEqual({ result: null, seen: [] })
    expect(await tried('removeOutputs', () => true)).toEqual({ result: null, seen: [] })
  })

  it('that eliminates dead code says nothing where there is none', async () => {
    const dead = traced((a) => {
      torch.exp(a)
      return [torch.relu(a)]
    }, 1)
    expect((await tried('eliminateDeadCode', hasRelu, 1, dead)).result).toBe('a -> relu(a) -> relu')
    expect(await tried('eliminateDeadCode', hasRelu)).toEqual({ result: null, seen: [] })
  })

  it('that removes unused inputs, or makes inputs of tensors, gives up if that does not fail', async () => {
    const unused = (): ReproState => traced((_a, b) => [torch.relu(b)], 2)
    expect((await tried('removeUnusedInputs', hasRelu, 1, unused())).result).toBe('b -> relu(b) -> relu')
    expect((await tried('removeUnusedInputs', () => false, 1, unused())).result).toBeNull()
    const weight = t([1, 2])
    const holding = (): ReproState =>
      stateOf(
        symbolicTrace((a: Tensor) => [torch.mul(a, weight)]),
        [t([1, 2])],
      )
    expect((await tried('consolidateInputs', () => true, 1, holding())).result).toBe('a _tensor_constant0 -> mul(a _tensor_constant0) -> mul')
    expect((await tried('consolidateInputs', () => false, 1, holding())).result).toBeNull()
  })
})

describe('a search', () => {
  const program = symbolicTrace((a: Tensor, b: Tensor) => {
    const c = torch.mul(torch.sin(a), torch.cos(b))
    const d = torch.relu(torch.add(c, 1))
    return [torch.exp(d), torch.sub(c, b), torch.tanh(torch.neg(d))]
  })
  const inputs = [t([0.5, 1]), t([2, 3])]
  const calls = (gm: GraphModule, ...names: string[]): boolean =>
    names.every((name) => [...gm.graph.nodes].some((node) => node.op === 'call_function' && node.name.startsWith(name)))

  async function search(fails: ModuleFails, options: MinifierOptions = {}, gm = program) {
    const lines: string[] = []
    const dumped: string[] = []
    const result = await minifier(gm, inputs, fails, {
      ...options,
      print: (line) => void lines.push(line),
      dumpState: (state) => void dumped.push(told(state)),
    })
    return { ...result, lines: lines.filter((line) => line !== ''), dumped }
  }

  it('for one operator is told like this', async () => {
    const { lines, dumped, steps, queries, checks, gm } = await search((g) => calls(g, 'relu'))
    expect(told(gm)).toBe('add -> relu(add) -> relu')
    expect(lines).toMatchInlineSnapshot(`
      [
        "Started off with 12 nodes",
        "Strategy: Truncate suffix (G: 8) (12 nodes, 2 inputs)",
        "SUCCESS: Went from 12 to 8 nodes",
        "SUCCESS: Went from 3 to 2 outputs",
        "Strategy: Isolate the last operator (G: 8) (8 nodes, 2 inputs)",
        "SUCCESS: Went from 8 to 3 nodes",
        "SUCCESS: Went from 2 to 1 inputs",
        "SUCCESS: Went from 2 to 1 outputs",
        "Strategy: Truncate prefix (G: 2) (3 nodes, 1 inputs)",
        "FAIL: Truncate prefix",
        "Strategy: Delta Debugging (G: 1) (3 nodes, 1 inputs)",
        "FAIL: Delta Debugging",
        "Strategy: Eliminate dead code (G: 1) (3 nodes, 1 inputs)",
        "FAIL: Eliminate dead code",
        "Strategy: Consolidate Inputs (G: 1) (3 nodes, 1 inputs)",
        "FAIL: Consolidate Inputs",
        "Strategy: Remove unused inputs (G: 1) (3 nodes, 1 inputs)",
        "FAIL: Remove unused inputs",
        "Strategy: Remove outputs (G: 1) (3 nodes, 1 inputs)",
        "FAIL: Remove outputs",
        "Made 6 queries",
      ]
    `)
    expect(dumped).toMatchInlineSnapshot(`
      [
        "a b -> sin(a) cos(b) mul(sin cos) add(mul) relu(add) exp(relu) sub(mul b) neg(relu) tanh(neg) -> exp sub tanh",
        "a b -> sin(a) cos(b) mul(sin cos) add(mul) relu(add) -> mul relu",
        "add -> relu(add) -> relu",
        "add -> relu(add) -> relu",
      ]
    `)
    expect(steps).toMatchInlineSnapshot(`
      [
        {
          "granularity": 0,
          "inputs": 2,
          "nodes": 12,
          "queries": 1,
          "strategy": "original",
        },
        {
          "granularity": 8,
          "inputs": 2,
          "nodes": 8,
          "queries": 5,
          "strategy": "Truncate suffix",
        },
        {
          "granularity": 8,
          "inputs": 1,
          "nodes": 3,
          "queries": 6,
          "strategy": "Isolate the last operator",
        },
      ]
    `)
    expect([queries, checks]).toMatchInlineSnapshot(`
      [
        6,
        5,
      ]
    `)
  })

  it('for two operators that must both be there keeps both', async () => {
    const { lines, gm, steps } = await search((g) => calls(g, 'sin', 'sub'))
    expect(told(gm)).toMatchInlineSnapshot(`"a b mul -> sin(a) sub(mul b) -> sub"`)
    expect(lines).toMatchInlineSnapshot(`
      [
        "Started off with 12 nodes",
        "Strategy: Truncate suffix (G: 8) (12 nodes, 2 inputs)",
        "SUCCESS: Went from 12 to 10 nodes",
        "Strategy: Isolate the last operator (G: 8) (10 nodes, 2 inputs)",
        "FAIL: Isolate the last operator",
        "Strategy: Truncate prefix (G: 8) (10 nodes, 2 inputs)",
        "FAIL: Truncate prefix",
        "Strategy: Delta Debugging (G: 4) (10 nodes, 2 inputs)",
        "FAIL: Delta Debugging",
        "Strategy: Delta Debugging (G: 2) (10 nodes, 2 inputs)",
        "SUCCESS: Went from 2 to 4 inputs",
        "SUCCESS: Went from 3 to 5 outputs",
        "Strategy: Delta Debugging (G: 2) (10 nodes, 4 inputs)",
        "SUCCESS: Went from 10 to 7 nodes",
        "SUCCESS: Went from 4 to 3 inputs",
        "SUCCESS: Went from 5 to 3 outputs",
        "Strategy: Delta Debugging (G: 2) (7 nodes, 3 inputs)",
        "FAIL: Delta Debugging",
        "Strategy: Delta Debugging (G: 1) (7 nodes, 3 inputs)",
        "SUCCESS: Went from 7 to 6 nodes",
        "SUCCESS: Went from 3 to 2 outputs",
        "Strategy: Delta Debugging (G: 1) (6 nodes, 3 inputs)",
        "FAIL: Delta Debugging",
        "Strategy: Eliminate dead code (G: 1) (6 nodes, 3 inputs)",
        "FAIL: Eliminate dead code",
        "Strategy: Consolidate Inputs (G: 1) (6 nodes, 3 inputs)",
        "FAIL: Consolidate Inputs",
        "Strategy: Remove unused inputs (G: 1) (6 nodes, 3 inputs)",
        "FAIL: Remove unused inputs",
        "Strategy: Remove outputs (G: 1) (6 nodes, 3 inputs)",
        "SUCCESS: Went from 2 to 1 outputs",
        "Strategy: Remove outputs (G: 1) (6 nodes, 3 inputs)",
        "FAIL: Remove outputs",
        "Made 19 queries",
      ]
    `)
    expect(steps.map(({ strategy, granularity }) => `${strategy} ${granularity}`)).toMatchInlineSnapshot(`
      [
        "original 0",
        "Truncate suffix 8",
        "Delta Debugging 2",
        "Delta Debugging 2",
        "Delta Debugging 1",
        "Remove outputs 1",
      ]
    `)
  })

  it('begins with the outputs if most nodes are returned', async () => {
    const many = symbolicTrace((a: Tensor, b: Tensor) => [torch.sin(a), torch.cos(b), torch.relu(a), torch.exp(b), a, b])
    const { lines } = await search((g) => calls(g, 'relu'), {}, many)
    expect(lines[1]).toBe('Strategy: Remove outputs (G: 4) (7 nodes, 2 inputs)')
    const { lines: usual } = await search((g) => calls(g, 'relu'))
    expect(usual[1]).toBe('Strategy: Truncate suffix (G: 8) (12 nodes, 2 inputs)')
  })

  it('takes steps of at most maxGranularity, and does not check the original if it is told not to', async () => {
    const { lines } = await search((g) => calls(g, 'relu'), { maxGranularity: 2, skipSanity: true })
    const granularities = lines.flatMap((line) => /\(G: (\d+)\)/.exec(line)?.[1] ?? [])
    expect(Math.max(...granularities.map(Number))).toBe(2)
    let first = ''
    await search((g) => ((first ||= told(g)), calls(g, 'relu')), { skipSanity: true })
    expect(first).not.toBe(told(program))
    await search((g) => ((first = first === '' ? told(g) : first), calls(g, 'relu')))
  })

  it('judges no candidate twice, and each on a module of its own', async () => {
    const seen = new Map<string, number>()
    const modules = new Set<GraphModule>()
    const result = await search((gm, values) => {
      const key = `${String(gm.graph)} ${values.map((value) => String(inputs.indexOf(value as Tensor)))}`
      modules.add(gm)
      seen.set(key, (seen.get(key) ?? 0) + 1)
      return calls(gm, 'relu')
    })
    expect([modules.size, result.checks]).toEqual([result.queries + result.checks, 5])
    // The result is judged once in the search, and five times at the end.
    expect([...seen.values()].filter((times) => times > 1)).toEqual([6])
  })

  it('judges the result as often as it is told', async () => {
    let finals = 0
    const finalCheck = (): boolean => (finals++, true)
    const { checks } = await search((g) => calls(g, 'relu'), { finalCheck, finalRuns: 2 })
    expect([finals, checks]).toEqual([2, 2])
    await search((g) => calls(g, 'relu'), { finalCheck, finalRuns: 0 })
    expect(finals).toBe(3)
  })

  it('judges a result of several operators more often, since one of them may have passed by chance', async () => {
    expect((await search((g) => calls(g, 'relu'))).checks).toBe(5)
    expect((await search((g) => calls(g, 'sin', 'sub'))).checks).toBe(8)
    expect((await search((g) => calls(g, 'sin', 'sub'), { finalRuns: 3 })).checks).toBe(3)
  })

  it('gives a failure that comes and goes eight runs before it gives up', async () => {
    let runs = 0
    await expect(search(() => (runs++, false))).rejects.toMatchObject({
      code: 'TFX_MINIFIER',
      message: 'Input graph did not fail the tester (in 8 runs)',
    })
    expect(runs).toBe(8)
    let count = 0
    const { lines, failureRate } = await search((gm) => calls(gm, 'relu') && count++ % 4 === 3)
    expect(lines[0]).toBe('The failure comes and goes (25% of the runs so far): each candidate gets up to 8 runs')
    expect(lines.at(-2)).toBe('The failure comes and goes: 25% of the final runs failed')
    expect(failureRate).toBe(0.25)
  })

  it('looks again, with more patience, if only the final runs show that the failure comes and goes', async () => {
    let finals = 0
    const { lines, failureRate } = await search((gm) => calls(gm, 'relu'), { finalCheck: () => ++finals % 2 === 0 })
    expect(lines).toContain('The failure comes and goes (50% of the runs so far): each candidate gets up to 8 runs')
    expect(lines.filter((line) => line.startsWith('Strategy: Truncate suffix'))).toHaveLength(2)
    expect([failureRate, finals]).toEqual([0.5, 32])
  })

  it('looks again with the values of the inputs that are left', async () => {
    const product = symbolicTrace((a: Tensor, b: Tensor) => [torch.mm(torch.transpose(a, 0, 1), b)])
    let finals = 0
    // The operator alone has passed by chance, until it is noticed that the failure comes and goes.
    const fails = (g: GraphModule, values: readonly unknown[]): boolean => {
      Reflect.apply(g.forward.bind(g), undefined, values)
      return calls(g, 'mm') && (finals > 0 || calls(g, 'transpose'))
    }
    const result = await minifier(
      product,
      [torch.ones([4, 3]), torch.ones([4, 2])],
      (g, values) => {
        try {
          return fails(g, values)
        } catch {
          return false
        }
      },
      { shrinkValues: true, finalCheck: () => ++finals % 2 === 0 },
    )
    expect(told(result.gm)).toMatch(/^\S+ \S+ -> mm\(\S+ \S+\) -> mm$/)
  })

  it('refuses bad arguments', async () => {
    const fails = (): boolean => true
    await expect(minifier(3 as never, [], fails)).rejects.toThrow(/^minifier: .*failing/)
    await expect(minifier(program, 3 as never, fails)).rejects.toThrow(/^minifier: .*inputs/)
    await expect(minifier(program, inputs, 3 as never)).rejects.toThrow(/^minifier: .*moduleFails/)
    await expect(minifier(program, inputs, fails, { granularity: 2 } as never)).rejects.toThrow(/^minifier: .*granularity/)
    for (const maxGranularity of [0, 3, 1.5, -2])
      await expect(minifier(program, inputs, fails, { maxGranularity })).rejects.toThrow(
        `minifier: maxGranularity ${maxGranularity} is not a power of two.`,
      )
    for (const name of ['dumpState', 'print', 'control', 'finalCheck'])
      await expect(minifier(program, inputs, fails, { [name]: 3 })).rejects.toThrow(`minifier: argument 'options.${name}' must be a function, got 3.`)
    for (const finalRuns of [-1, 0.5, NaN, '2'])
      await expect(minifier(program, inputs, fails, { finalRuns: finalRuns as number })).rejects.toThrow(
        finalRuns === '2' ? /^minifier: option 'finalRuns' must be a number, got '2'/ : /^minifier: argument 'options\.finalRuns'/,
      )
  })
})

it('a table has columns of equal width', () => {
  expect(
    table(
      ['name', 'x'],
      [
        ['a', '100'],
        ['longer', ''],
      ],
    ),
  ).toBe('name    x\n------  ---\na       100\nlonger')
  expect(table(['a', 'b'], [])).toBe('a  b\n-  -')
})
