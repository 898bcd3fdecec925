// MinimizerBase; PyTorch's passes.net_min_base and fx/test_net_min_base.py.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Interpreter, operator, symbolicTrace } from 'tensorfx/fx'
import type { GraphModule, Node } from 'tensorfx/fx'
import { BatchNorm2d, Conv2d, Module, ReLU } from 'tensorfx/nn'
import { FxNetMinimizerBadModuleError, MinimizerBase, MinimizerSettingBase } from 'tensorfx/fx/passes'
import type { MinimizeOptions, MinimizerOptions, TraverseMethod } from 'tensorfx/fx/passes'
import { detInit, detInput } from '../../helpers/deterministic.ts'
import { Chain, X, Y, chain, describeGolden, messageOf, names, nodeOf, resultOf } from './golden.ts'
import type { GoldenCase } from './golden.ts'

/** Adds 1 to the values of some nodes, and fails at others. */
class BadInterpreter extends Interpreter {
  readonly #bad: ReadonlySet<string>
  readonly #crash: ReadonlySet<string>

  constructor(gm: GraphModule, bad: ReadonlySet<string>, crash: ReadonlySet<string>) {
    super(gm)
    this.#bad = bad
    this.#crash = crash
  }

  override runNode(node: Node): unknown {
    const value = super.runNode(node)
    if (this.#crash.has(node.name)) throw new Error(`backend failed in ${node.name}`)
    return this.#bad.has(node.name) ? operator.add(value as Tensor, 1) : value
  }
}

type Log = unknown[][]

interface Program extends MinimizerOptions, MinimizeOptions {
  readonly bad?: readonly string[]
  readonly crash?: readonly string[]
  readonly model?: GraphModule
  readonly inputs?: readonly Tensor[]
}

const difference = (a: unknown, b: unknown): number => {
  const [one, other] = [a, b].map((v) => (Array.isArray(v) ? v : [v]) as (Tensor | number)[])
  const each = (one ?? []).map((p, i) => {
    const q = other?.[i]
    return typeof p === 'number'
      ? Math.abs(p - Number(q))
      : (
          p
            .sub(q as Tensor)
            .abs()
            .max() as Tensor
        ).item()
  })
  return Math.round(Math.max(...each.map(Number)) * 1e4) / 1e4
}

/** The minimizer of the goldens: a runs the module as it is, b with faults; both are noted in the log. */
function minimizer(program: Program): { minimizer: MinimizerBase; log: Log; printed: string[] } {
  const log: Log = []
  const printed: string[] = []
  const { bad = [], crash = [], model = chain(), inputs = [X, Y] } = program
  const compare = (a: unknown, b: unknown, compared: readonly string[]): [number, boolean] => {
    const far = difference(a, b)
    log.push(['compare', [...compared], far])
    return [far, far < 1e-3]
  }
  const minimizer = new MinimizerBase(model, inputs, compare, {
    runA: (part, args) => {
      const called = [...part.graph.nodes].filter((node) => node.op.startsWith('call'))
      log.push(['run', names(called), names(part.graph.findNodes({ op: 'placeholder' })), names(part.graph.outputNode().allInputNodes)])
      return part.call(...args)
    },
    runB: (part, args) => new BadInterpreter(part, new Set(bad), new Set(crash)).run(...args),
    ...program,
    print: (line) => void printed.push(line),
  })
  return { minimizer, log, printed }
}

interface Summary {
  readonly culprits: string[]
  readonly reports: string[][]
  readonly log: Log
  readonly iteration: number
  readonly results: Record<string, number>
}

/** Lines that agree in both languages: 0 for 0.0, sets in one order, sizes one by one, no texts of errors. */
const comparable = (lines: readonly string[]): string[] =>
  lines
    .filter((line) => !line.includes('Exception raised'))
    .map((line) =>
      line
        .replace('[%size, -1]', '%size, -1')
        .replace(/(= -?\d+)\.0$/, '$1')
        .replace(/\{(\w+(?:, \w+)+)\}/, (_, set: string) => `{${set.split(', ').toSorted().join(', ')}}`),
    )

const withoutSets = (reports: readonly (readonly string[])[]): string[][] =>
  reports.map((report) => comparable(report).filter((line) => !(line.includes('{') && line.includes(','))))

function summary(program: Program): { ours: Summary; printed: string[] } {
  const { minimizer: m, log, printed } = minimizer(program)
  const culprits = names(m.minimize(program))
  const ours = { culprits, reports: withoutSets(m.reports), log, iteration: m.iteration, results: Object.fromEntries(m.results) }
  return { ours, printed }
}

const asOurs = (golden: Summary): Summary => ({ ...golden, reports: withoutSets(golden.reports) })

/** The golden's culprits, reports, log and results, and what it printed. */
const agrees =
  (program: Program): ((golden: GoldenCase) => void) =>
  (golden) => {
    const { ours, printed } = summary(program)
    expect(ours).toEqual(asOurs(resultOf<Summary>(golden)))
    // Both name the node that failed in the error, followed by other texts.
    const lines = (text: string): string[] => comparable(text.replace(/\n\nWhile executing[^]*?(?=\n \. )/g, '').split('\n'))
    expect(lines(`${printed.join('\n')}\n`)).toEqual(lines(golden.stdout ?? ''))
  }

const METHOD = (traverseMethod: TraverseMethod, findAll = false): Program => ({ settings: { traverseMethod, findAll } })

describeGolden('net_min_base', {
  settings_text: (golden) => {
    const all = { accumulateError: true, traverseMethod: 'binary', findAll: true, returnIntermediate: true, allOutputs: true } as const
    expect([String(new MinimizerSettingBase()), String(new MinimizerSettingBase(all))]).toEqual(golden.result)
  },
  sequential_one_culprit: agrees({ bad: ['add'] }),
  sequential_find_all: agrees({ bad: ['relu', 'cos'], ...METHOD('sequential', true) }),
  sequential_crash: agrees({ crash: ['sin'] }),
  sequential_from_to: agrees({ bad: ['lin', 'sin'], start: 'relu', end: 'cos' }),
  binary_one_culprit: agrees({ bad: ['sin'], ...METHOD('binary') }),
  'binary_find_all_two (difference: minimizer-keeps-culprits)': (golden) => {
    const { ours } = summary({ bad: ['relu', 'neg'], ...METHOD('binary', true) })
    const theirs = asOurs(resultOf<Summary>(golden))
    expect(theirs.culprits).toEqual(['neg'])
    // A part that ends behind relu fails too, so add is among those found in the left half.
    expect(ours).toEqual({ ...theirs, culprits: ['relu', 'add', 'neg'] })
  },
  binary_crash: agrees({ crash: ['lin'], ...METHOD('binary') }),
  accumulate_one: agrees({ bad: ['add'], ...METHOD('accumulate') }),
  accumulate_find_all_is_not_supported: (golden) => {
    const { printed, result } = resultOf<{ printed: string; result: Summary }>(golden)
    const found = summary({ bad: ['add'], ...METHOD('accumulate', true) })
    expect(found.ours).toEqual(result)
    expect(`${found.printed.join('\n')}\n`).toBe(printed)
  },
  skip_nodes: agrees({ bad: ['sin'], skipNodes: ['add'], ...METHOD('skip') }),
  skip_needs_names: (golden) => {
    const { culprits } = resultOf<{ culprits: { error: string } }>(golden)
    expect(culprits.error).toBe("'skip_nodes' can't be None when 'traverse_method' is 'skip'.")
    expect(() => summary(METHOD('skip'))).toThrow("'skipNodes' can't be missing when 'traverseMethod' is 'skip'")
  },
  'defined (difference: minimizer-keeps-culprits)': (golden) => {
    const [failing, fine] = resultOf<[Summary, Summary]>(golden).map(asOurs)
    expect(failing?.culprits).toEqual([])
    const range = summary({ bad: ['add'], start: 'relu', end: 'sin', ...METHOD('defined') })
    expect(range.ours).toEqual({ ...failing, culprits: ['relu', 'add', 'sin'] })
    expect(range.printed.slice(-2)).toEqual(['Defined graph from relu to sin', ' . Found culprit {relu, add, sin}'])
    expect(summary(METHOD('defined')).ours).toEqual(fine)
  },
  block_both_ends: agrees({ bad: ['add'], ...METHOD('block') }),
  block_two_culprits: agrees({ bad: ['relu', 'sin'], ...METHOD('block') }),
  block_none: agrees(METHOD('block')),
  accumulate_error_uses_b_inputs: agrees({ bad: ['relu'], settings: { findAll: true, accumulateError: true } }),
  unknown_method: (golden) => {
    const { culprits } = resultOf<{ culprits: { error: string } }>(golden)
    expect(messageOf(() => minimizer({ settings: { traverseMethod: 'magic' as never } }))).toContain(culprits.error)
  },
  printed_output_of_minimize: (golden) => {
    const { printed, result } = resultOf<{ printed: string; result: string[] }>(golden)
    const { ours, printed: lines } = summary({ bad: ['add'] })
    expect(ours.culprits).toEqual(result)
    expect(comparable(lines).join('\n')).toBe(comparable(printed.trimEnd().split('\n')).join('\n'))
  },
  run_nodes_whole_and_final_output: (golden) => {
    const [{ printed }, reports, log] = resultOf<[{ printed: string }, string[][], Log]>(golden)
    const ours = minimizer({})
    ours.minimizer.runNodes()
    expect(ours.printed.join('\n')).toBe(printed)
    expect(ours.minimizer.reports).toEqual(withoutSets(reports))
    expect(ours.log).toEqual(log)
  },
  exporter_and_exclusion: (golden) => {
    const { culprits, calls, reports } = resultOf<{ culprits: string[]; calls: unknown[][]; reports: string[][] }>(golden)
    const seen: unknown[][] = []
    const { ours } = summary({
      bad: ['relu', 'sin'],
      settings: { findAll: true },
      moduleExporter: (_, part, name) => void seen.push(['export', name, names(part.graph.nodes)]),
      exclusionFn: (nodes, start, end) => {
        seen.push(['exclude', names(nodes), start, end])
        const at = nodes.findIndex((node) => node.name === 'relu')
        if (at >= 0) nodes.splice(at, 1)
      },
    })
    expect(ours.culprits).toEqual(culprits)
    // The erased output gives its name free here.
    expect(seen).toEqual(calls)
    expect(ours.reports).toEqual(withoutSets(reports))
  },
  fusion_groups_keep_non_tensors_together: agrees({
    bad: ['reshape'],
    model: symbolicTrace((x: Tensor) => {
      const s = x.size(0)
      return torch.sin(torch.relu(x).reshape([s, -1]))
    }),
    inputs: [X],
  }),
  'constructor_errors (difference: errors-before-running)': (golden) => {
    const [notTraced, count, noA, noB] = resultOf<{ error: string }[]>(golden).map((e) => e.error)
    expect(notTraced).toContain('Expected GraphModule, got')
    expect(() => new MinimizerBase(new Chain() as never, [X, Y], () => [0, true])).toThrow(
      "MinimizerBase: argument 'module' must be a GraphModule, got a Chain.",
    )
    expect(count).toContain('ShapeProp error for: node=%y')
    expect(() => minimizer({ inputs: [X] })).toThrow('Placeholder count (2) does not match sampleInput count (1).')
    expect([noA, noB]).toEqual(['run_a() is not implemented.', 'run_b() is not implemented.'])
    const bare = new MinimizerBase(chain(), [X, Y], () => [0, true])
    expect(() => bare.runA(bare.module, [])).toThrow('runA() is not implemented.')
    expect(() => bare.runB(bare.module, [])).toThrow('runB() is not implemented.')
  },
})

describe('TestNetMinBaseBlock', () => {
  /** A chain of ten nodes; a part fails if it contains all of the culprits. */
  function blockOf(culprits: readonly number[]): number[] {
    const gm = symbolicTrace((x: Tensor) => {
      let y = x
      for (let i = 0; i < 10; i++) y = torch.neg(y)
      return y
    })
    const nodes = [...gm.graph.nodes].filter((node) => node.op === 'call_function')
    const wanted = culprits.map((i) => nodes[i]?.name)
    let ran = new Set<string | undefined>()
    const runA = (part: GraphModule, inputs: readonly unknown[]): unknown => {
      ran = new Set(names(part.graph.findNodes({ op: 'call_function', target: torch.neg })))
      return part.call(...inputs)
    }
    const compare = (): [number, boolean] => [0, !(wanted.length > 0 && wanted.every((name) => ran.has(name)))]
    const m = new MinimizerBase(gm, [X], compare, { runA, runB: runA, settings: { traverseMethod: 'block' }, print: () => {} })
    return [...m.minimize()].map((node) => nodes.indexOf(node as never))
  }
  const all = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]

  it.each([
    ['test_no_discrepancy', []],
    ['test_all_nodes_discrepancy', all],
    ['test_first_node_discrepancy', [0]],
    ['test_last_node_discrepancy', [9]],
    ['test_middle_node_discrepancy', [5]],
    ['test_contiguous_partial_discrepancy_end', [6, 7, 8, 9]],
    ['test_continugous_partial_discrepancy_beginning', [0, 1, 2, 3]],
  ])('%s', (_, culprits) => {
    expect(blockOf(culprits)).toEqual(culprits)
  })

  it('every contiguous block is found exactly', () => {
    for (const start of all) for (let end = start + 1; end <= 10; end++) expect(blockOf(all.slice(start, end))).toEqual(all.slice(start, end))
  })
})

class Block extends Module {
  conv1: Conv2d = new Conv2d(4, 4, 3, { padding: 1, bias: false })
  bn1: BatchNorm2d = new BatchNorm2d(4)
  relu: ReLU = new ReLU()
  conv2: Conv2d = new Conv2d(4, 4, 3, { padding: 1, bias: false })
  bn2: BatchNorm2d = new BatchNorm2d(4)

  override forward(x: Tensor): Tensor {
    const y = this.relu.call(this.bn1.call(this.conv1.call(x)))
    return this.relu.call(this.bn2.call(this.conv2.call(y)).add(x))
  }
}

class ResNet extends Module {
  readonly blocks: number

  constructor(blocks: number) {
    super()
    this.blocks = blocks
    for (let i = 0; i < blocks; i++) this.addModule(`block${i}`, new Block())
  }

  override forward(x: Tensor): Tensor {
    return Array.from({ length: this.blocks }, (_, i) => this.getSubmodule(`block${i}`) as Block).reduce((y, block) => block.call(y), x)
  }
}

/** Runs one batch norm with another eps. */
class WrongEps extends Interpreter {
  readonly #path: string

  constructor(gm: GraphModule, path: string) {
    super(gm)
    this.#path = path
  }

  override callModule(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    if (target !== this.#path) return super.callModule(target, args, kwargs)
    const { weight, bias, runningMean, runningVar } = this.module.attribute(target) as BatchNorm2d
    return torch.nn.functional.batchNorm(args[0] as Tensor, runningMean, runningVar, { weight, bias, eps: 0.5 })
  }
}

it('a batch norm with the wrong eps in a ResNet of 200 nodes is found in at most 2·⌈log2 n⌉ + 1 comparisons', () => {
  const gm = symbolicTrace(detInit(new ResNet(29)).eval())
  const n = [...gm.graph.nodes].filter((node) => node.op.startsWith('call')).length
  expect(n).toBeGreaterThanOrEqual(200)
  for (const path of ['block0.bn1', 'block17.bn2']) {
    let comparisons = 0
    const compare = (a: unknown, b: unknown): [number, boolean] => {
      comparisons++
      const far = (a as Tensor)
        .sub(b as Tensor)
        .abs()
        .max()
        .item() as number
      return [far, far < 1e-5]
    }
    const m = new MinimizerBase(gm, [detInput([1, 4, 5, 5], 3)], compare, {
      runA: (part, inputs) => part.call(...inputs),
      runB: (part, inputs) => new WrongEps(part, path).run(...inputs),
      settings: { traverseMethod: 'binary' },
      print: () => {},
    })
    expect([...m.minimize()].map((node) => node.target)).toEqual([path])
    expect(comparisons).toBeLessThanOrEqual(2 * Math.ceil(Math.log2(n)) + 1)
  }
})

describe('parts', () => {
  it('nodes that another node separates are an error that names it', () => {
    const gm = chain()
    const m = new MinimizerBase(gm, [X, Y], () => [0, true], {
      runA: (part, inputs) => part.call(...inputs),
      runB: (part, inputs) => part.call(...inputs),
      exclusionFn: (nodes) => {
        if (nodes.length === 6) nodes.splice(2, 1)
      },
      settings: { traverseMethod: 'binary' },
      print: () => {},
    })
    expect(() => m.minimize()).toThrow(FxNetMinimizerBadModuleError)
    expect(() => m.minimize()).toThrow("'sin' needs a value that is computed from them outside")
  })

  it('start and end must be nodes, and a range that ends before it starts has none', () => {
    expect(() => summary({ start: 'nowhere' })).toThrow("minimize: start must be the name of a node that calls something, got 'nowhere'.")
    expect(() => summary({ end: 'x' })).toThrow("end must be the name of a node that calls something, got 'x'.")
    expect(() => summary({ start: 'sin', end: 'relu', ...METHOD('defined') })).toThrow('there is no node between start and end')
  })

  it('runNodes prints a difference, and compares every node with returnIntermediate', () => {
    const { minimizer: m, printed, log } = minimizer({ bad: ['relu'], settings: { returnIntermediate: true } })
    m.runNodes('lin', 'add')
    expect(printed).toEqual(["Result mismatch for (('lin', 'relu', 'add'),)"])
    expect(log.at(-1)?.[1]).toEqual(['lin', 'relu', 'add'])
    expect([...m.aOutputs.keys()]).toEqual(['x', 'y', 'lin', 'relu', 'add'])
  })

  it('the user’s graph gets no tags', () => {
    const { minimizer: m } = minimizer({ bad: ['relu'] })
    m.minimize()
    expect(nodeOf(m.module, 'relu').meta['tag']).toBeUndefined()
  })

  it('all outputs of a part are compared with allOutputs', () => {
    const { log } = (() => {
      const made = minimizer({
        bad: ['relu'],
        settings: { traverseMethod: 'binary', allOutputs: true },
        model: symbolicTrace((x: Tensor, y: Tensor) => [torch.relu(x), torch.sin(y)]),
      })
      made.minimizer.minimize()
      return made
    })()
    expect(log[0]?.[3]).toEqual(['relu', 'sin'])
  })
})
