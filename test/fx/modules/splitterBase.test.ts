// SplitterBase, FxNetAccNodesFinder, NodeEventTracker and generateInputsForSubmodules; PyTorch's passes.splitter_base and fx/test_fx_split_node_finder.py.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, Interpreter, operator, symbolicTrace } from 'tensorfx/fx'
import { Linear, Module, Parameter, ReLU, Sequential, Tanh } from 'tensorfx/nn'
import { FxNetAccNodesFinder, ShapeProp, SplitterBase, createOpSupport, generateInputsForSubmodules } from 'tensorfx/fx/passes'
import type { SplitterOptions } from 'tensorfx/fx/passes'
import { detInit, detInput } from '../../helpers/deterministic.ts'
import { checkOutput, run, traced } from '../samples/harness.ts'
import type { GoldenOutput } from '../samples/golden.ts'
import { plain as gpt2 } from '../samples/s06_gpt2.ts'
import { Branch, Chain, X, Y, chain, describeGolden, messageOf, names, resultOf } from './golden.ts'
import type { GoldenCase } from './golden.ts'

interface Made {
  readonly splitter: SplitterBase
  readonly printed: string[]
}

/** A splitter for an accelerator that supports the nodes of these names. */
function splitterFor(
  model: Module | ((x: Tensor) => unknown),
  inputs: readonly Tensor[],
  supported: readonly string[],
  options: SplitterOptions = {},
): Made {
  const printed: string[] = []
  const gm = model instanceof GraphModule ? model : symbolicTrace(model)
  const ok = new Set(supported)
  const support = createOpSupport((_, node) => ok.has(node.name))
  return { splitter: new SplitterBase(gm, inputs, support, { ...options, print: (line) => void printed.push(line) }), printed }
}

interface Split {
  readonly acc_nodes: string[]
  readonly tags: string[]
  readonly map: Record<string, string>
  readonly printed: string
  readonly main: string
  readonly parts: Record<string, string>
}

/** A list of sizes is one argument here. */
const ourText = (text: string): string => text.replace(/%size, -1\)/, '[%size, -1])')

/** The golden's graph with all placeholders first, as they are here. */
function placeholdersFirst(text: string): string {
  const [head = '', ...lines] = text.split('\n')
  const isPlaceholder = (line: string): boolean => line.includes('= placeholder[')
  return [head, ...lines.filter(isPlaceholder), ...lines.filter((line) => !isPlaceholder(line))].join('\n')
}

function split(...args: Parameters<typeof splitterFor>): Split {
  const { splitter, printed } = splitterFor(...args)
  const accNodes = names(splitter.accNodes)
  const whole = splitter.run()
  whole.graph.lint()
  const parts = Object.fromEntries(Array.from(whole.namedChildren(), ([name, part]) => [name, String((part as GraphModule).graph)]))
  const gm = splitter.module
  // The whole computes what the model does.
  expect(torch.allclose(whole.call(...args[1]) as Tensor, gm.call(...args[1]) as Tensor)).toBe(true)
  return {
    acc_nodes: accNodes,
    tags: splitter.tags,
    map: splitter.getNodeSubmoduleMap(),
    printed: `${printed.join('\n')}\n`,
    main: String(whole.graph),
    parts,
  }
}

const asOurs = (golden: Split): Split => ({
  ...golden,
  parts: Object.fromEntries(Object.entries(golden.parts).map(([name, text]) => [name, ourText(placeholdersFirst(text))])),
})

const agrees =
  (...args: Parameters<typeof splitterFor>): ((golden: GoldenCase) => void) =>
  (golden) => {
    expect(split(...args)).toEqual(asOurs(resultOf<Split>(golden)))
  }

const model = (): Chain => detInit(new Chain())

const sizeFirst = (x: Tensor): Tensor => {
  const s = x.size(0)
  return torch.sin(torch.relu(x).reshape([s, -1]))
}
const sizeOfRelu = (x: Tensor): Tensor => {
  const y = torch.relu(x)
  const s = y.size(0)
  return torch.sin(y).reshape([s, -1])
}

describeGolden('splitter_base', {
  diamond: agrees(new Branch(), [X], ['sin', 'cos']),
  chain_alternates: agrees(model(), [X, Y], ['lin', 'relu', 'sin', 'cos']),
  all_supported_and_none: (golden) => {
    const [all, none] = resultOf<[Split, Split]>(golden)
    expect(split(new Branch(), [X], ['sin', 'cos', 'add'])).toEqual(asOurs(all))
    expect(split(new Branch(), [X], [])).toEqual(asOurs(none))
  },
  other_prefix_and_tuple: agrees(new Branch(), [X], ['sin'], { nonAccSubmoduleName: '_run_on_gpu_', returnTuple: true }),
  'non_tensor_input_moves_to_cpu (difference: placeholders-first)': (golden) => {
    const expected = resultOf<Record<string, Split>>(golden)
    const supported = ['relu', 'reshape', 'sin']
    expect(split(sizeFirst, [X], supported)).toEqual(asOurs(expected['size is cpu'] as Split))
    const allowed = split(sizeFirst, [X], supported, { settings: { allowNonTensor: true } })
    expect(allowed).toEqual(asOurs(expected['allowed'] as Split))
    expect(allowed.parts['_run_on_acc_1']).not.toBe(ourText(expected['allowed']?.parts['_run_on_acc_1'] ?? ''))
    expect(split(sizeFirst, [X], ['size', ...supported])).toEqual(asOurs(expected['all'] as Split))
  },
  non_tensor_output_moves_to_cpu: (golden) => {
    const [moved, allowed] = resultOf<[Split, Split]>(golden)
    const supported = ['relu', 'size', 'sin']
    expect(split(sizeOfRelu, [X], supported)).toEqual(asOurs(moved))
    // A number that goes to the CPU may stay on the accelerator only as part of a group, and this group is not supported.
    expect(split(sizeOfRelu, [X], supported, { settings: { allowNonTensor: true } })).toEqual(asOurs(allowed))
  },
  fusions_keep_together: (golden) => {
    const program = (x: Tensor): Tensor => {
      const y = torch.relu(x)
      const s = y.size(0)
      return (operator.add(torch.sin(y), 1) as Tensor).reshape([s, -1])
    }
    const supported = ['relu', 'size', 'sin', 'add', 'reshape']
    const groups = (options: SplitterOptions = {}): Record<string, string[]> =>
      Object.fromEntries([...splitterFor(program, [X], supported, options).splitter.fusions].map(([node, group]) => [node.name, names(group)]))
    expect([groups(), groups({ settings: { skipFusion: true } })]).toEqual(golden.result)
  },
  'subgraphs_before_tagging (difference: graph-order)': (golden) => {
    const { splitter } = splitterFor(model(), [X, Y], ['lin', 'relu', 'sin', 'cos'])
    expect(splitter.putNodesIntoSubgraphs().map(({ isAcc, nodes }) => [isAcc, names(nodes)])).toEqual(golden.result)
  },
  'node_support_preview (difference: home-of-classes)': (golden) => {
    const { result, printed } = resultOf<{ result: string; printed: string }>(golden)
    const ours = (text: string): string => text.replace('torch.nn.modules.linear.Linear', 'Linear').replace('_operator', 'operator')
    const made = splitterFor(model(), [X, Y], ['lin', 'relu', 'sin'])
    const report = made.splitter.nodeSupportPreview()
    // PyTorch sorts by its own names.
    const sorted = (text: string): string[] => text.split('\n').toSorted()
    expect(sorted(report)).toEqual(sorted(ours(result)))
    expect(report.indexOf('torch.sin')).toBeLessThan(report.indexOf('Unsupported'))
    expect(report.indexOf('Unsupported')).toBeLessThan(report.indexOf('torch.neg'))
    expect(`${made.printed.join('\n')}\n`.length).toBe(ours(printed).length)
  },
  split_preview: (golden) => {
    const [report, tagged] = resultOf<[string, boolean[]]>(golden)
    const { splitter, printed } = splitterFor(model(), [X, Y], ['lin', 'relu', 'sin'])
    expect(splitter.splitPreview()).toBe(report)
    expect(printed).toEqual([report])
    expect(Array.from(splitter.module.graph.nodes, (node) => 'tag' in node.meta)).toEqual(tagged)
  },
  split_preview_reports_failures: (golden) => {
    const [report, missing] = resultOf<[string, string]>(golden)
    const callsOf = (part: GraphModule): string[] => names(part.graph.nodes).filter((name) => !['x', 'add', 'output'].includes(name))
    const failing: SplitterOptions = {
      lowerModelToBackend: (part) => {
        if (String(part.graph).includes('lin')) throw new Error('no')
        return () => {
          throw new Error('boom')
        }
      },
      findCulprit: (part) => `culprit of ${callsOf(part).join(' ')}\n`,
    }
    expect(splitterFor(model(), [X, Y], ['lin', 'sin'], failing).splitter.splitPreview()).toBe(report)
    expect(missing).toContain('Unable to find a culprit because')
    const { lowerModelToBackend } = failing
    const silent = splitterFor(model(), [X, Y], ['lin', 'sin'], lowerModelToBackend === undefined ? {} : { lowerModelToBackend })
    expect(silent.splitter.splitPreview()).toContain('Unable to find a culprit because the option findCulprit is missing.')
  },
  too_many_splits: (golden) => {
    const { splitter } = splitterFor(model(), [X, Y], ['lin', 'sin'], { settings: { maxAccSplits: 2 } })
    expect(messageOf(() => splitter.generateSplitResults())).toBe(resultOf<{ error: string }>(golden).error)
  },
  tagged_twice: (golden) => {
    const { splitter } = splitterFor(new Branch(), [X], ['sin'])
    splitter.run()
    expect(messageOf(() => splitter.run())).toContain(resultOf<{ error: string }>(golden).error)
  },
  inputs_for_submodules: (golden) => {
    const [inputs, same, copiedIsSame] = resultOf<[Record<string, GoldenOutput[]>, boolean, boolean]>(golden)
    const m = detInit(new Sequential(new Linear(4, 3), new ReLU(), new Sequential(new Linear(3, 2), new Tanh())))
    const found = generateInputsForSubmodules(m, [X], ['0', '2.1', 'missing'])
    expect(Object.keys(found)).toEqual(Object.keys(inputs))
    for (const [path, [golden1]] of Object.entries(inputs)) checkOutput(found[path]?.[0], golden1 as GoldenOutput)
    const copy = generateInputsForSubmodules(m, [X], ['0'], { deepcopy: true })
    expect([found['0']?.[0] === X, copy['0']?.[0] === X]).toEqual([same, copiedIsSame])
    checkOutput(copy['0']?.[0], inputs['0']?.[0] as GoldenOutput)
  },
  event_tracker: (golden) => {
    const [events, all, one] = resultOf<[Record<string, string[]>, { printed: string }, { printed: string }]>(golden)
    const gm = symbolicTrace(new Branch())
    new ShapeProp(gm).propagate(X)
    const lines: string[] = []
    const finder = new FxNetAccNodesFinder(
      gm,
      createOpSupport((_, node) => node.name !== 'cos'),
      false,
      (line) => void lines.push(line),
    )
    finder.run()
    expect(finder.tracker.toDict()).toEqual(events)
    finder.tracker.printAll()
    expect(`${lines.splice(0).join('\n')}\n`).toBe(all.printed)
    finder.tracker.printNode('sin', { recursive: true, tab: '|-' })
    expect(`${lines.join('\n')}\n`).toBe(one.printed)
  },
  get_attr_goes_into_the_part: (golden) => {
    class A extends Module {
      w: Parameter = new Parameter(detInput([4, 4], 3))
      override forward(x: Tensor): Tensor {
        return operator.add(torch.relu(operator.matmul(x, this.w)), this.w)
      }
    }
    expect(split(new A(), [detInput([4, 4], 1)], ['matmul', 'relu'])).toEqual(asOurs(resultOf<Split>(golden)))
  },
})

describe('FxNetAccNodesFinder', () => {
  it('testFinder: a supported function that returns a number leaves the accelerator if its user is not supported', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    const size = graph.callMethod('size', [x, 0])
    graph.output(graph.callFunction(operator.add, [x, size]))
    const gm = new GraphModule({}, graph)
    new ShapeProp(gm).propagate(X)
    const finder = new FxNetAccNodesFinder(
      gm,
      createOpSupport((_, node) => node === size),
      false,
    )
    expect(names(finder.run())).toEqual([])
    expect(finder.tracker.toDict()['size']).toEqual([
      'size: init_acc|callable_and_operator_supported #',
      'size: acc_del|non_tensor_output_with_cpu_user add',
    ])
  })

  it('what follows from a number on the CPU is tracked through its users', () => {
    const gm = symbolicTrace((x: Tensor) => {
      const size = x.size(0)
      const sum = operator.add(size, 1)
      return x.reshape([operator.sub(sum, 1), -1])
    })
    new ShapeProp(gm).propagate(X)
    const lines: string[] = []
    const finder = new FxNetAccNodesFinder(
      gm,
      createOpSupport((_, node) => node.name !== 'size'),
      false,
      (line) => void lines.push(line),
    )
    expect(names(finder.run())).toEqual([])
    expect(finder.tracker.toDict()['add']).toEqual([
      'add: init_acc|callable_and_operator_supported #',
      'add: acc_del|user_of_new_cpu_node size',
      'add: new_cpu_node|non_tensor_output #',
    ])
    finder.tracker.printNode('sub', { recursive: true })
    expect(lines).toEqual([
      'sub: init_acc|callable_and_operator_supported #',
      'sub: acc_del|user_of_new_cpu_node add',
      '| add: init_acc|callable_and_operator_supported #',
      '| add: acc_del|user_of_new_cpu_node size',
      '| | size: init_cpu|operator_support #',
      '| | size: new_cpu_node|callable_non_tensor_input #',
      '| add: new_cpu_node|non_tensor_output #',
      'sub: new_cpu_node|non_tensor_output #',
    ])
    expect(() => finder.tracker.printNode('nobody')).toThrow("name must be that of a node with events, got 'nobody'")
  })
})

describe('parts', () => {
  it('small parts for the accelerator go to the part before them', () => {
    const { splitter, printed } = splitterFor(model(), [X, Y], ['lin', 'sin', 'cos'], { settings: { minAccModuleSize: 2 } })
    const whole = splitter.run()
    expect(printed).toEqual([
      "Eliminating acc subgraph because it's smaller than the threshold: 1 < 2",
      'Got 1 acc subgraphs and 2 non-acc subgraphs',
    ])
    expect(splitter.getNodeSubmoduleMap()).toEqual({
      lin: '_run_on_cpu_0',
      relu: '_run_on_cpu_0',
      add: '_run_on_cpu_0',
      sin: '_run_on_acc_1',
      cos: '_run_on_acc_1',
      neg: '_run_on_cpu_2',
    })
    expect(torch.allclose(whole.call(X, Y) as Tensor, chain().call(X, Y))).toBe(true)
  })

  it('a fusion waits for all that any of its nodes needs, and what uses one of them for all of them', () => {
    const { splitter } = splitterFor(sizeOfRelu, [X], ['relu', 'size', 'sin', 'reshape'])
    expect(splitter.putNodesIntoSubgraphs().map(({ isAcc, nodes }) => [isAcc, names(nodes)])).toEqual([[true, ['relu', 'sin', 'size', 'reshape']]])
    const onlyGroup = splitterFor(sizeOfRelu, [X], ['size', 'reshape']).splitter
    // size could run behind relu, but its group also waits for sin.
    expect(onlyGroup.putNodesIntoSubgraphs().map(({ isAcc, nodes }) => [isAcc, names(nodes)])).toEqual([
      [false, ['relu', 'sin']],
      [true, ['size', 'reshape']],
    ])
  })

  it('the supported parts of a GPT run on another backend, and the result equals eager', () => {
    const gm = traced(gpt2)
    const inputs = (gpt2.inputs?.() ?? []) as Tensor[]
    const eager = run(gpt2.make(), inputs) as Tensor
    const supported = new Set(['Linear', 'GELU', 'Dropout', 'add', 'mul', 'matmul', 'torch.nn.functional.gelu', 'softmax', 'torch.softmax'])
    const support = createOpSupport((owner, node) => {
      const { op, target } = node
      return supported.has(
        op === 'call_module' ? String(owner.attribute(target)?.constructor.name) : String(typeof target === 'string' ? target : target.name),
      )
    })
    const splitter = new SplitterBase(gm, inputs, support, { print: () => {} })
    const { splitModule, submoduleInputs } = splitter.generateSplitResults()
    const ran: string[] = []
    /** A toy backend: an interpreter that notes what it runs. */
    class Toy extends Module {
      readonly #part: GraphModule
      constructor(part: GraphModule) {
        super()
        this.#part = part
      }
      override forward(...args: unknown[]): unknown {
        ran.push(...names([...this.#part.graph.nodes].filter((node) => node.op.startsWith('call'))))
        return new Interpreter(this.#part).run(...args)
      }
    }
    const parts = [...splitModule.namedChildren()].filter(([name]) => name.startsWith('_run_on_acc_'))
    expect(parts.length).toBeGreaterThan(2)
    for (const [name, part] of parts) splitModule.addSubmodule(name, new Toy(part as GraphModule))
    const result = splitModule.call(...inputs) as Tensor
    expect(torch.equal(result, eager)).toBe(true)
    expect(new Set(ran)).toEqual(new Set(names(splitter.accNodes)))
    expect(Object.keys(submoduleInputs)).toEqual(Array.from(splitModule.namedChildren(), ([name]) => name))
  })
})
