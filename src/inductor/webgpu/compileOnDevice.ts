// Compiles graphs whose tensors are on the GPU. Operators that have no shader are taken out of their graph: it becomes parts, each of which is one call, and between them these operators run by themselves, as in
// eager mode.
import { FakeTensorMode, devices, isOnDevice, withDevice, withMode } from '../../dispatch/index.ts'
import { UnsupportedError } from '../../errors/index.ts'
import { GraphModule, Interpreter, operator } from '../../fx/index.ts'
import type { Node } from '../../fx/index.ts'
import { splitModule } from '../../fx/passes/split/splitModule.ts'
import { opOf } from '../../ops/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import type { KernelReport } from '../emit/kernels.ts'
import type { CompiledGraph } from '../pipeline.ts'
import { HeapCode } from './heapCode.ts'
import { nodesWithoutShader, planGraph } from './plan.ts'
import type { DevicePlan } from './plan.ts'

type Specs = readonly (TensorSpec | number)[]

const NO_WRITES: ReadonlyMap<number, number> = new Map()

const isTensorOnDevice = (value: unknown): boolean => value instanceof Tensor && isOnDevice(value)

/** What a graph is planned for: the layouts of its inputs. */
const specsOf = (inputs: readonly unknown[]): Specs =>
  inputs.map((input) => (input instanceof Tensor ? { shape: input.shape, dtype: input.dtype, strides: input.strides } : Number(input)))

/** Compiles a graph whose tensors are on the GPU; null if they are not. */
export function compileOnDevice(gm: GraphModule, exampleInputs: readonly unknown[], writeBacks: ReadonlyMap<number, number>): CompiledGraph | null {
  if (devices.here === 'cpu' && !exampleInputs.some(isTensorOnDevice)) return null
  const specs = specsOf(exampleInputs)
  const plan = planOf(gm, specs, writeBacks)
  return plan === null ? (inParts(gm, specs) ?? nodeByNode(gm)) : new HeapCode(plan, writeBacks).compiled()
}

/** The plan of a graph; null if it has an operator without a shader. */
function planOf(gm: GraphModule, specs: Specs, writeBacks: ReadonlyMap<number, number>): DevicePlan | null {
  const plan = orRefusal(() => planGraph(gm, specs, 'error', writeBacks))
  return plan instanceof UnsupportedError ? null : plan
}

function orRefusal<T>(fn: () => T): T | UnsupportedError {
  try {
    return fn()
  } catch (error) {
    if (error instanceof UnsupportedError) return error
    throw error
  }
}

const resultsOf = (returned: unknown): unknown[] => (Array.isArray(returned) ? returned : [returned])

/** What nodes that are no kernels report. */
const NO_CODE = { source: '', arenaBytes: 0, writtenInPlace: new Set<number>(), stages: [] }

/** Runs the operators of a graph one by one, where their tensors are: each that has no shader says so, or runs on copies with `fallback: 'wasm'`. */
function nodeByNode(gm: GraphModule): CompiledGraph {
  const run = (...inputs: readonly unknown[]): unknown[] => resultsOf(withDevice('webgpu', () => gm.forward(...inputs)))
  return Object.assign(run, { kernels: [], ...NO_CODE })
}

/**
 * The part of each node, from 0 on: a part needs nothing of later ones. Nodes `apart` run between the part of their number and the next, whose number what they give has for others. So there are no more parts than
 * the longest chain has nodes apart, and one.
 */
function partsOf(gm: GraphModule, apart: ReadonlySet<string>): ReadonlyMap<Node, number> {
  const parts = new Map<Node, number>()
  for (const node of gm.graph.nodes) {
    const inputs = node.allInputNodes.map((input) => (parts.get(input) ?? 0) + (apart.has(input.name) && !apart.has(node.name) ? 1 : 0))
    parts.set(node, Math.max(0, ...inputs))
  }
  return parts
}

/** Runs a graph in parts, each compiled, with the operators that have no shader between them; null where none of them can be told apart from the others. */
function inParts(gm: GraphModule, specs: Specs): CompiledGraph | null {
  const refused = orRefusal(() => nodesWithoutShader(gm, specs))
  if (refused instanceof UnsupportedError) return null
  // Results of several tensors are taken apart where they are made.
  const isApart = (node: Node): boolean => refused.has(node.name) || (node.target === operator.getitem && node.allInputNodes.some(isApart))
  const nodes = [...gm.graph.nodes]
  const apart = new Set(nodes.filter(isApart).map(({ name }) => name))
  // What writes to its arguments stays where it is.
  if (apart.size === 0 || nodes.some((node) => opOf(node.target)?.tags.has('mutates') === true)) return null
  const parts = partsOf(gm, apart)
  const split = splitModule(gm, (node) => `${apart.has(node.name) ? 'apart' : 'part'}${parts.get(node) ?? 0}`, { keepOriginalNodeName: true })
  const codes = new Map<string, PartCode>()
  for (const node of split.graph.findNodes({ op: 'call_module' })) {
    const part = split.attribute(node.target)
    if (part instanceof GraphModule && node.target.startsWith('submod_part')) codes.set(node.target, new PartCode(part))
  }
  const run = (...inputs: readonly unknown[]): unknown[] => resultsOf(withDevice('webgpu', () => new PartsRun(split, codes).run(...inputs)))
  // What is known of the results of operators without a shader may differ from what they will be; then their users are compiled at the first call.
  const given = specs.map((spec) => (typeof spec === 'number' ? spec : Tensor.fake({ ...spec, offset: 0, device: 'webgpu' })))
  new PartsRun(split, codes, true).run(...given)
  return Object.assign(run, { ...NO_CODE, kernels: [...codes.values()].flatMap(({ kernels }) => kernels) })
}

const onFakes = <T>(fn: () => T): T => withMode(new FakeTensorMode(), fn)

/** A part of a graph, compiled for the layouts that its inputs have. */
class PartCode {
  readonly #part: GraphModule
  readonly #codes = new Map<string, HeapCode | null>()

  constructor(part: GraphModule) {
    this.#part = part
  }

  get kernels(): readonly KernelReport[] {
    return [...this.#codes.values()].flatMap((code) => code?.compiled().kernels ?? [])
  }

  #codeFor(inputs: readonly unknown[]): HeapCode | null {
    const specs = specsOf(inputs)
    const key = JSON.stringify(specs.map((spec) => (typeof spec === 'number' ? 0 : spec)))
    const known = this.#codes.get(key)
    if (known !== undefined) return known
    const plan = planOf(this.#part, specs, NO_WRITES)
    const made = plan === null ? null : new HeapCode(plan, NO_WRITES)
    this.#codes.set(key, made)
    return made
  }

  /** Its results. */
  run(inputs: readonly unknown[]): readonly unknown[] {
    return this.#codeFor(inputs)?.run(inputs) ?? resultsOf(this.#part.forward(...inputs))
  }

  /** What its results will be, as fake tensors. */
  preview(inputs: readonly unknown[]): readonly unknown[] {
    return this.#codeFor(inputs)?.preview(inputs) ?? resultsOf(onFakes(() => this.#part.forward(...inputs)))
  }
}

/** Runs a graph whose parts are compiled; with `isPreview` on fake tensors. */
class PartsRun extends Interpreter {
  readonly #codes: ReadonlyMap<string, PartCode>
  readonly #isPreview: boolean

  constructor(split: GraphModule, codes: ReadonlyMap<string, PartCode>, isPreview = false) {
    super(split)
    this.#codes = codes
    this.#isPreview = isPreview
  }

  override callModule(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const code = this.#codes.get(target)
    if (code === undefined) {
      const run = (): unknown => super.callModule(target, args, kwargs)
      return this.#isPreview ? onFakes(run) : run()
    }
    const results = this.#isPreview ? code.preview(args) : code.run(args)
    return results.length === 1 ? results[0] : results
  }
}
