// SplitterBase: splits a model into parts for an accelerator and parts for the CPU. PyTorch's torch.fx.passes.splitter_base.
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import { ArgumentError } from '../../../errors/index.ts'
import { Module, copyable } from '../../../module/index.ts'
import { GraphError } from '../../graph/errors.ts'
import { Node } from '../../graph/node.ts'
import type { Argument } from '../../graph/node.ts'
import { GraphModule } from '../../run/graphModule.ts'
import { checkArgument, checkArray, checkCount, checkIterable, isModule, isPlainObject, isTensorLike } from '../../../protocol/index.ts'
import { pyNumber } from '../../text/format.ts'
import { FxNetAccNodesFinder } from './accNodes.ts'
import { getSizeOfNode } from '../each/sizes.ts'
import type { NodeEventTracker } from './nodeEventTracker.ts'
import type { OperatorSupportBase } from './operatorSupport.ts'
import { ShapeProp } from '../each/shapeProp.ts'
import { tensorMetaOf } from '../nodes/meta.ts'
import { splitByTags } from './splitByTags.ts'
import { putNodesIntoSubgraphs } from './subgraphs.ts'
import type { Subgraph } from './subgraphs.ts'
import { FxNetAccFusionsFinder } from './fusions.ts'
import { getNodeTarget, isCall } from '../nodes/calls.ts'
import { isNodeOutputTensor } from '../nodes/meta.ts'

/** Settings of a splitter. PyTorch's _SplitterSettingBase. */
export interface SplitterSettings {
  /** Parts for the accelerator with fewer nodes go to the CPU. Default 1. */
  readonly minAccModuleSize?: number
  /** Do not keep nodes together that exchange values which are not tensors. Default false. */
  readonly skipFusion?: boolean
  /** Let the accelerator exchange values that are not tensors with the CPU. Default false. */
  readonly allowNonTensor?: boolean
  /** More parts than this are an error of `generateSplitResults`; not limited if it is 0 or less. Default −1. */
  readonly maxAccSplits?: number
}

/** Options of {@link SplitterBase}. */
export interface SplitterOptions {
  readonly settings?: SplitterSettings
  /** What the names of parts for the CPU begin with. Default `_run_on_cpu_`. */
  readonly nonAccSubmoduleName?: string
  /** Let parts that return one value return a tuple. Default false. */
  readonly returnTuple?: boolean
  /** Compiles a part for the accelerator, for {@link SplitterBase.splitPreview}. By default the part itself. PyTorch's _lower_model_to_backend. */
  readonly lowerModelToBackend?: (part: GraphModule, inputs: readonly unknown[]) => Module | ((...inputs: readonly unknown[]) => unknown)
  /** Text about why a part failed in {@link SplitterBase.splitPreview}. PyTorch's _find_culprit. */
  readonly findCulprit?: (part: GraphModule, inputs: readonly unknown[]) => string
  /** Gets the lines that the splitter prints. Default console.log. */
  readonly print?: (line: string) => void
}

/** The result of {@link SplitterBase.generateSplitResults}. PyTorch's SplitResult. */
export interface SplitResult {
  /** The model as calls of its parts. */
  readonly splitModule: GraphModule
  /** The inputs of each part. */
  readonly submoduleInputs: Readonly<Record<string, readonly unknown[]>>
  /** What the names of parts for the CPU begin with. */
  readonly nonAccSubmodulePrefix: string
}

/** Bytes per second that PyTorch takes for the transfer to an accelerator: 100 GB/s. */
const PCIE_BANDWIDTH = 100 * 2 ** 30

/**
 * Splits a model into parts for an accelerator, `_run_on_acc_0`, and parts for the CPU, `_run_on_cpu_1`, in the order in which they run. PyTorch's _SplitterBase.
 *
 *     const splitter = new SplitterBase(gm, [x], createOpSupport((_, node) => supported.has(node.target)))
 *     const split = splitter.run()
 */
export class SplitterBase {
  readonly module: GraphModule
  readonly sampleInput: readonly unknown[]
  /** The nodes for the accelerator. */
  readonly accNodes: ReadonlySet<Node>
  /** From each node that must stay together with others to all of them. */
  readonly fusions: ReadonlyMap<Node, ReadonlySet<Node>>
  /** Why each node is where it is. */
  readonly tracker: NodeEventTracker
  /** The names of the parts, in order. */
  tags: string[] = []
  readonly #support: OperatorSupportBase
  readonly #options: SplitterOptions
  readonly #settings: Required<SplitterSettings>
  readonly #partOf = new Map<string, string>()

  /** Runs the model on the sample inputs, to find out which values are tensors. @throws ArgumentError if `module` is not a GraphModule. */
  constructor(module: GraphModule, sampleInput: readonly unknown[], operatorSupport: OperatorSupportBase, options: SplitterOptions = {}) {
    checkCount('SplitterBase', arguments, 4)
    checkGraphModule('SplitterBase', module, 'module')
    this.module = module
    this.sampleInput = sampleInput
    this.#support = operatorSupport
    this.#options = options
    this.#settings = { minAccModuleSize: 1, skipFusion: false, allowNonTensor: false, maxAccSplits: -1, ...options.settings }
    new ShapeProp(module).propagate(...sampleInput)
    const finder = new FxNetAccNodesFinder(module, operatorSupport, this.#settings.allowNonTensor, this.#print)
    const accNodes = finder.run()
    this.tracker = finder.tracker
    this.fusions = this.#settings.skipFusion ? new Map() : new FxNetAccFusionsFinder(module, accNodes).run()
    this.accNodes = accNodes
  }

  /** Splits the model. `node.meta.tag` says in which part a node is. PyTorch's __call__. @throws GraphError if the model has been split already. */
  run(): GraphModule {
    const subgraphs = this.removeSmallAccSubgraphs(this.putNodesIntoSubgraphs())
    const acc = subgraphs.filter((subgraph) => subgraph.isAcc).length
    this.#print(`Got ${acc} acc subgraphs and ${subgraphs.length - acc} non-acc subgraphs`)
    this.#tag(subgraphs)
    return this.#split()
  }

  /** Splits the model, and records the inputs that each part gets. @throws ArgumentError if there are more parts than `maxAccSplits`. */
  generateSplitResults(): SplitResult {
    const splitModule = this.run()
    const names = Array.from(splitModule.namedChildren(), ([name]) => name)
    const { maxAccSplits } = this.#settings
    if (maxAccSplits > 0 && names.length > maxAccSplits)
      throw new ArgumentError('Cannot fulfill max_acc_splits limit. This may cause split fragmentation and result in performance issues.')
    return { splitModule, submoduleInputs: generateInputsForSubmodules(splitModule, this.sampleInput, names), nonAccSubmodulePrefix: this.#prefix }
  }

  /** The nodes in subgraphs, before small ones are removed. PyTorch's put_nodes_into_subgraphs. */
  putNodesIntoSubgraphs(): Subgraph[] {
    return putNodesIntoSubgraphs(this.module, this.accNodes, this.fusions)
  }

  /** Puts the nodes of small parts for the accelerator into the part before them, and joins parts for the CPU that then follow each other. PyTorch's remove_small_acc_subgraphs. */
  removeSmallAccSubgraphs(subgraphs: readonly Subgraph[]): Subgraph[] {
    const minimum = this.#settings.minAccModuleSize
    const result: Subgraph[] = []
    for (const { isAcc, nodes } of subgraphs) {
      const isSmall = isAcc && nodes.length < minimum
      if (isSmall) this.#print(`Eliminating acc subgraph because it's smaller than the threshold: ${nodes.length} < ${minimum}`)
      const last = result.at(-1)
      if (isAcc && !isSmall) result.push({ isAcc, nodes: [...nodes] })
      else if (last !== undefined && !last.isAcc) last.nodes.push(...nodes)
      else result.push({ isAcc: false, nodes: [...nodes] })
    }
    return result
  }

  /** From the name of each node to that of its part. PyTorch's get_node_submodule_map. */
  getNodeSubmoduleMap(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#partOf)
  }

  /** Text about which kinds of nodes the accelerator supports, with the dtypes of their arguments. It is also printed. */
  nodeSupportPreview(): string {
    const kinds = { supported: new Map<string, Set<string>>(), unsupported: new Map<string, Set<string>>() }
    for (const node of this.module.graph.nodes) {
      if (!isCall(node)) continue
      const kind = this.#support.isNodeSupported(this.module, node) ? kinds.supported : kinds.unsupported
      const target = getNodeTarget(this.module, node)
      const dtypes = kind.get(target) ?? new Set()
      kind.set(target, dtypes.add(dtypesText(node)))
    }
    const lines = (kind: ReadonlyMap<string, ReadonlySet<string>>): string =>
      [...kind]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .flatMap(([target, dtypes]) => Array.from(dtypes, (text) => `${target}: ${text}\n`))
        .join('')
    const report = `\nSupported node types in the model:\n${lines(kinds.supported)}\nUnsupported node types in the model:\n${lines(kinds.unsupported)}`
    this.#print(report)
    return report
  }

  /**
   * Text about how the model would be split, how many bytes each part for the accelerator takes and returns, and whether it can be compiled and run. It is also printed. The
   * graph keeps no tags.
   */
  splitPreview(): string {
    const before = this.putNodesIntoSubgraphs()
    const after = this.removeSmallAccSubgraphs(before)
    const counts = (subgraphs: readonly Subgraph[]): string => {
      const acc = subgraphs.filter((subgraph) => subgraph.isAcc).length
      return `total ${subgraphs.length} subgraphs are created: ${acc} acc subgraphs and ${subgraphs.length - acc} cpu subgraphs.\n`
    }
    this.#tag(after)
    const parts = after.map(({ nodes }, i) => `${this.tags[i] ?? ''}: ${nodes.length} node(s)\n`).join('')
    const split = this.#split()
    for (const node of this.module.graph.nodes) delete node.meta['tag']
    const accNames = this.tags.filter((_, i) => after[i]?.isAcc === true)
    const inputs = generateInputsForSubmodules(split, this.sampleInput, accNames)
    let bound = { qps: PCIE_BANDWIDTH, name: '' }
    const reports = accNames.map((name) => {
      const { text, qps } = this.#previewPart(split, name, inputs[name] ?? [])
      if (qps < bound.qps) bound = { qps, name }
      return text
    })
    const report =
      `Before removing small acc subgraphs, ${counts(before)}After removing small acc subgraphs, ${counts(after)}${parts}${reports.join('')}` +
      `\nTheoretical max qps (bounds by PCIe bandwidth) for this model is ${floatText(bound.qps)}, bottleneck is submodule ${bound.name}.`
    this.#print(report)
    return report
  }

  #previewPart(split: GraphModule, name: string, inputs: readonly unknown[]): { text: string; qps: number } {
    const part = split.attribute(name)
    if (!(part instanceof GraphModule)) throw new GraphError(`splitPreview: the split module has no part '${name}'.`)
    new ShapeProp(part).propagate(...inputs)
    const bytesOf = (what: string, nodes: readonly Node[]): [number, string] => {
      const tensors = nodes.filter(isNodeOutputTensor)
      const warnings = nodes
        .filter((node) => !isNodeOutputTensor(node))
        .map((node) => `${what} ${node.name} is not a tensor, this might cause problems during lowering!\n`)
      return [tensors.reduce((sum, node) => sum + getSizeOfNode(part, node).outputSize, 0), warnings.join('')]
    }
    const [inBytes, inputWarnings] = bytesOf('Input', part.graph.findNodes({ op: 'placeholder' }))
    const [outBytes, outputWarnings] = bytesOf('Output', part.graph.outputNode().allInputNodes)
    // A part without inputs and outputs is not bound by transfers.
    const qps = PCIE_BANDWIDTH / Math.max(1, inBytes, outBytes)
    const text =
      `\nProcessing acc submodule ${name}\nChecking inputs...\n${inputWarnings}Checking outputs...\n${outputWarnings}` +
      `Total input size in bytes is ${inBytes}, total output size in bytes is ${outBytes}, theoretical max qps (bounds by PCIe bandwidth) for this submodule is ${floatText(qps)}.\n`
    return { text: text + this.#tryPart(part, inputs), qps }
  }

  #tryPart(part: GraphModule, inputs: readonly unknown[]): string {
    const culprit = (): string => this.#options.findCulprit?.(part, inputs) ?? 'Unable to find a culprit because the option findCulprit is missing.\n'
    let lowered: ReturnType<NonNullable<SplitterOptions['lowerModelToBackend']>>
    try {
      lowered = this.#options.lowerModelToBackend?.(part, inputs) ?? part
    } catch {
      return `Run into an error during lowering!\n${culprit()}`
    }
    try {
      if (lowered instanceof Module) runModule(lowered, inputs)
      else lowered(...inputs)
    } catch {
      return `Run into an error during inference!\n${culprit()}`
    }
    return 'Lowering and running succeed!\n'
  }

  #tag(subgraphs: readonly Subgraph[]): void {
    const tags = subgraphs.map(({ isAcc }, i) => `${isAcc ? '_run_on_acc_' : this.#prefix}${i}`)
    const tagged = subgraphs.flatMap(({ nodes }) => nodes).find((node) => 'tag' in node.meta)
    if (tagged !== undefined) throw new GraphError(`Node ${tagged.name} was already tagged; a model can be split once, so trace it again.`)
    this.tags = tags
    for (const [i, { nodes }] of subgraphs.entries())
      for (const node of nodes) {
        node.meta['tag'] = tags[i]
        this.#partOf.set(node.name, tags[i] ?? '')
      }
  }

  #split(): GraphModule {
    return splitByTags(this.module, this.tags, { returnTuple: this.#options.returnTuple === true }).graphModule
  }

  get #prefix(): string {
    return this.#options.nonAccSubmoduleName ?? '_run_on_cpu_'
  }

  get #print(): (line: string) => void {
    return this.#options.print ?? ((line) => console.log(line))
  }
}

/** The dtypes of a call's arguments, as PyTorch prints them: `((torch.float32, None), {})`. Arguments at the end that are not tensors are left out. */
function dtypesText(node: Node): string {
  const dtypeOf = (arg: Argument): string => {
    const meta = arg instanceof Node ? tensorMetaOf(arg) : null
    return meta === null ? 'None' : `torch.${meta.dtype}`
  }
  const positional = node.args.map(dtypeOf)
  while (positional.at(-1) === 'None') positional.pop()
  const named = Object.entries(node.kwargs).filter(([, arg]) => arg instanceof Node)
  const text = positional.length === 1 ? `(${positional[0] ?? ''},)` : `(${positional.join(', ')})`
  return `(${text}, {${named.map(([name, arg]) => `'${name}': ${dtypeOf(arg)}`).join(', ')}})`
}

/** A number as Python prints a float. */
const floatText = (value: number): string => (Number.isInteger(value) ? `${pyNumber(value)}.0` : pyNumber(value))

/**
 * The inputs that submodules get when a model runs on these inputs, by their paths; submodules that are not called are left out. With `deepcopy`, tensors in them are copied,
 * for models that write into them. PyTorch's generate_inputs_for_submodules.
 */
export function generateInputsForSubmodules(
  model: Module,
  inputs: readonly unknown[],
  paths: Iterable<string>,
  options: { readonly deepcopy?: boolean } = {},
): Record<string, readonly unknown[]> {
  checkCount('generateInputsForSubmodules', arguments, 4)
  checkArgument(isModule(model), 'generateInputsForSubmodules', 'model', 'a Module', model)
  checkArray('generateInputsForSubmodules', 'inputs', inputs)
  checkIterable('generateInputsForSubmodules', 'paths', paths)
  const found: Record<string, readonly unknown[]> = {}
  const wanted = new Set(paths)
  const keep = (args: readonly unknown[]): readonly unknown[] => (options.deepcopy === true ? args.map(copied) : args)
  const handles = [...model.namedModules()]
    .filter(([path]) => wanted.has(path))
    .map(([path, module]) => module.registerForwardPreHook((_, args) => void (found[path] = keep(args))))
  try {
    runModule(model, inputs)
  } finally {
    for (const handle of handles) handle.remove()
  }
  return found
}

/** Calls a module whose parameters are not known. */
const runModule = (module: Module, inputs: readonly unknown[]): unknown => Reflect.apply(module.call, module, inputs)

function copied(value: unknown): unknown {
  if (isTensorLike(value)) return copyable(value).detach().clone()
  if (Array.isArray(value)) return value.map(copied)
  return isPlainObject(value) ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copied(item)])) : value
}
