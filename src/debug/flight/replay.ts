// The file that replays a step: a script with the recorded graph and its inputs, which finds the bad element again in a fresh process.
import { Graph, GraphModule, Interpreter } from '../../fx/index.ts'
import type { Node } from '../../fx/index.ts'
import { noGrad } from '../../autograd/index.ts'
import type { Module } from '../../module/index.ts'
import {
  checkArgument,
  checkCallable,
  checkCount,
  checkOptions,
  isClass,
  isFunction,
  lineComment,
  literal,
  quote,
  scalarLiteral,
  targetInfo,
} from '../../protocol/index.ts'
import { treeLeaves } from '../../pytree/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { VERSION } from '../../version.ts'
import { InputReader } from '../files/inputReader.ts'
import { InputWriter } from '../files/inputWriter.ts'
import { fileStore } from '../files/fileStore.ts'
import type { FileStore } from '../files/fileStore.ts'
import { pathOf } from '../common/node.ts'
import { packageSpecifier } from '../script/reproScript.ts'
import type { LoadArgs } from '../repro/runRepro.ts'
import { tracedScript } from '../script/tracedScript.ts'
import { isolatedInputs } from '../runs/isolated.ts'
import { badnessOf, elementAt, indexOf } from './badness.ts'
import { operatorOf } from './compiledCode.ts'
import { Origins, earliest } from './origins.ts'
import type { Argument, Origin } from './origins.ts'
import { TrainingError } from './report.ts'
import type { Outside, StepWatch } from './watch.ts'

/** A recorded step, or the part of it that leads to its output. */
export interface Recording {
  readonly gm: GraphModule
  readonly inputs: readonly Outside[]
}

/** The part of a watched step that leads to `result`; nothing after the node `last` is kept. */
export function recordingOf(watch: StepWatch, result: Node, last: Node): Recording {
  const graph = new Graph()
  const copies = new Map<Node, Node>()
  const copyOf = (node: Node): Node => copies.get(node) ?? node
  for (const node of watch.graph.nodes) if (node.op === 'placeholder') copies.set(node, graph.nodeCopy(node, copyOf))
  for (const node of watch.graph.nodes) {
    if (node.op === 'placeholder') continue
    copies.set(node, graph.nodeCopy(node, copyOf))
    if (node === last) break
  }
  graph.output(copyOf(result))
  graph.eliminateDeadCode()
  const inputs = watch.outside.filter(({ node }) => {
    const copy = copyOf(node)
    if (copy.users.size > 0) return true
    graph.eraseNode(copy)
    return false
  })
  return { gm: new GraphModule({}, graph, 'RecordedStep'), inputs }
}

/** What a run of a recorded graph found. */
export interface Replayed {
  /** The node that made the first bad element, and what it calls; for an input its name twice. */
  readonly node: string
  readonly operator: string
  readonly isInput: boolean
  /** The element of the result: of the operator, or of the derivative that it is a part of. */
  readonly index: readonly number[]
  readonly element: number
  /** What the graph returned. */
  readonly output: unknown
}

/** Runs a graph node by node, and says where the bad elements of its output come from; null if it has none. `intended` names inputs whose infinities are no fault. */
export function originIn(
  gm: GraphModule,
  inputs: readonly unknown[],
  intended: ReadonlySet<string>,
): { readonly origin: Origin<Node> | null; readonly output: unknown } {
  const origins = new Origins<Node>()
  const run = new Interpreter(gm)
  let before: readonly Argument[] = []
  let numbers: readonly number[] = []
  run.addHook({
    before: (_, args, kwargs) => {
      before = argumentsIn([args, kwargs])
      numbers = treeLeaves([args, kwargs]).filter((leaf) => typeof leaf === 'number')
    },
    after: (node, value) => {
      if (node.op === 'output') return
      const results = argumentsIn(value)
      if (node.op !== 'placeholder') return origins.computed(before, numbers, results, () => node)
      for (const { tensor, badness } of results)
        origins.enters(
          tensor,
          badness,
          (bad) => bad === 'infinite' && intended.has(node.name),
          () => node,
        )
    },
  })
  const output = noGrad(() => run.run(...isolatedInputs(inputs)))
  const found = argumentsIn(output).flatMap(({ tensor, badness }) =>
    (['nan', 'infinite'] as const).flatMap((bad) => {
      const origin = badness[bad] === null ? null : origins.of(tensor, bad)
      return origin === null ? [] : [origin]
    }),
  )
  return { origin: earliest(found.filter((one) => !one.isIntended)) ?? earliest(found), output }
}

const argumentsIn = (value: unknown): readonly Argument[] =>
  treeLeaves(value).flatMap((leaf) => (leaf instanceof Tensor ? [{ tensor: leaf, badness: badnessOf(leaf) }] : []))

/** Runs a recording, and says what it found; null if no element of its output is bad. `isDerivative`: the output is what a derivative gives, which counts as one operator. */
export function replayed(gm: GraphModule, inputs: readonly unknown[], intended: ReadonlySet<string>, isDerivative: boolean): Replayed | null {
  const { origin, output } = originIn(gm, inputs, intended)
  if (origin === null) return null
  const { where: node } = origin
  const isInput = node.op === 'placeholder'
  const { index, element } = isDerivative && !isInput && output instanceof Tensor ? firstBadOf(output) : origin
  return { node: node.name, operator: operatorOf(node), isInput, index, element, output }
}

function firstBadOf(tensor: Tensor): { readonly index: readonly number[]; readonly element: number } {
  const { nan, infinite } = badnessOf(tensor)
  const index = indexOf(tensor.shape, nan ?? infinite ?? 0)
  return { index, element: elementAt(tensor, index) }
}

/** What a script knows of the step. */
export interface ReplayOptions {
  /** The folder with the inputs' storages; null if there is none. */
  readonly saveDir: URL | string | null
  /** The inputs whose infinities are no fault. */
  readonly intended: readonly string[]
  /** PyTorch's name of the derivative that gives the output of the graph; null if it is an operator's. */
  readonly gradFn: string | null
  /** The loss that the step had, if it jumped; null if an element of the output is bad. */
  readonly loss: number | null
}

/**
 * What the script of a {@link FlightRecorder} calls: runs the recorded step operator by operator. Throws TrainingError, which names the operator and the first bad element, if the output
 * of the graph has one. For a loss that jumped, prints it.
 */
export function replayStep(Step: new () => Module, loadArgs: LoadArgs, options: ReplayOptions): Replayed | null {
  checkCount('replayStep', arguments, 3)
  checkArgument(isFunction(Step) && isClass(Step), 'replayStep', 'Step', 'a class of modules', Step)
  checkCallable('replayStep', 'loadArgs', loadArgs)
  checkOptions('replayStep', options, { saveDir: true, intended: true, gradFn: true, loss: true })
  const { saveDir, intended, gradFn, loss } = options
  checkArgument(Array.isArray(intended), 'replayStep', 'options.intended', 'an array of names', intended)
  const dir = pathOf('replayStep', 'options.saveDir', saveDir)
  const gm = tracedScript(new Step())
  const reader = new InputReader(dir === null ? null : fileStore(), dir)
  loadArgs(reader)
  const found = replayed(gm, reader.args, new Set(intended), gradFn !== null)
  if (found !== null) {
    const { node, operator, isInput, index, element } = found
    const place = index.length === 0 ? '' : ` at [${index.join(', ')}]`
    throw new TrainingError(
      isInput
        ? `The recorded step still goes wrong: its input ${node} is ${element}${place}. No operator is at fault.`
        : `The recorded step still goes wrong: the result of ${gradFn === null ? operator : `${gradFn} (in its ${operator})`} is ${element}${place}, and its arguments are good (node ${node}).`,
    )
  }
  if (loss === null) console.log('The recorded step ran, and its result has no NaN and no infinity.')
  else {
    const { output } = originIn(gm, reader.args, new Set(intended))
    console.log(
      `The loss of the recorded step is ${output instanceof Tensor ? Number(output.item()) : String(output)}; it was ${loss} when it was recorded.`,
    )
  }
  return null
}

/** Writes the script and the storages of its inputs. Returns the script's text. */
export function writeReplay(
  store: FileStore,
  path: string,
  saveDir: string,
  recording: Recording,
  comment: string,
  known: Pick<ReplayOptions, 'gradFn' | 'loss'>,
): string {
  const { gm, inputs } = recording
  const writer = new InputWriter(store, saveDir)
  try {
    for (const { node, value } of inputs) writer.add(node.name, value)
    const forward = gm.code
      .trim()
      .replace(/^function\s+/, '')
      .split('\n')
      .map((line) => `  ${line}`)
    const usesOperator = [...gm.graph.nodes].some(
      (node) => node.op === 'call_function' && targetInfo(node.target)?.name.startsWith('operator.') === true,
    )
    const intended = inputs.flatMap(({ node, isIntended }) => (isIntended ? [node.name] : []))
    const text = [
      `// A step of a training, recorded by tensorfx ${VERSION}. Running this file replays it on eager kernels.`,
      ...comment.split('\n').map((line) => `// ${lineComment(line)}`),
      `import { nn, torch${usesOperator ? ', operator' : ''} } from ${quote(packageSpecifier('', path))}`,
      `import { replayStep } from ${quote(packageSpecifier('debug', path))}`,
      '',
      'class RecordedStep extends nn.Module {',
      ...forward,
      '}',
      '',
      'function loadArgs(reader) {',
      ...writer.lines().map((line) => `  ${line}`),
      '}',
      'loadArgs.version = 0',
      '',
      'replayStep(RecordedStep, loadArgs, {',
      `  intended: ${literal(intended)},`,
      `  gradFn: ${scalarLiteral(known.gradFn)},`,
      `  loss: ${scalarLiteral(known.loss)},`,
      "  saveDir: new URL('./', import.meta.url),",
      '})',
      '',
    ].join('\n')
    store.write(path, text)
    return text
  } catch (error) {
    writer.takeBack()
    throw error
  }
}
