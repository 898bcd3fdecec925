// toOnnx: a GraphModule as an ONNX model, which other runtimes can run.
import { ArgumentError, InternalError, UnsupportedError } from '../../errors/index.ts'
import { isTensorSpec, tensorSpec, tensorSpecs } from '../../aot/meta/valueSpec.ts'
import { knownValue } from '../../fx/graph/nodeValue.ts'
import { Node, operator } from '../../fx/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { opOf } from '../../ops/index.ts'
import { checkArgument, checkCallable, checkOptions, targetInfo, valueText } from '../../protocol/index.ts'
import type { OnProgress } from '../../protocol/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { treeLeaves } from '../../pytree/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { Call, isValue } from './call.ts'
import type { CallArg } from './call.ts'
import { attributeOf, lower } from './lower.ts'
import type { Lowered } from './lower.ts'
import { ModelBuilder } from './model.ts'
import type { OnnxFiles, Value, Weights } from './model.ts'
import { ruleOf } from './rules.ts'

/** The opset that models are written for. */
const OPSET = 20

/** Options of {@link toOnnx}. */
export interface ToOnnxOptions {
  /** Example inputs, as the graph is called with; only shapes and dtypes count. Default: what the placeholders know, as after `makeFx`, `ShapeProp` or `FakeTensorProp`. */
  readonly inputs?: readonly unknown[]
  /** The version of ONNX's operators: 20. */
  readonly opset?: number
  /** `'inside'` (default), or `{ file: 'model.data' }` for a file beside the model, which models of 2 GB and more need. */
  readonly weights?: Weights
  /** Is told of each node before it is written. */
  readonly onProgress?: OnProgress
}

/** What {@link toOnnx} returns. */
export interface OnnxModel extends OnnxFiles {
  /** The inputs in order: name, shape and dtype. */
  readonly inputs: readonly Value[]
  /** The tensors that the graph returns, in the order of `treeLeaves`. */
  readonly outputs: readonly Value[]
  /** How many nodes of each ONNX operator there are. */
  readonly operators: ReadonlyMap<string, number>
}

/**
 * Exports a graph as an ONNX model for opset 20. Weights keep their names (`layer1.0.conv1.weight`), nodes say in their doc_string which node of the graph
 * they come from. Shapes are those of the example inputs. Operators that ONNX does not have are decomposed into those that it has; writes to values become new
 * values. PyTorch's torch.onnx.export.
 *
 *     const { model } = toOnnx(symbolicTrace(net), { inputs: [torch.ones([1, 3, 224, 224])], opset: 20 })
 *     writeFileSync('net.onnx', model)
 *
 * @throws UnsupportedError for an operator that cannot be exported (it names the operator and the node), and for a graph that writes to its inputs or buffers.
 * @throws ArgumentError for a bad option, for missing inputs, and for a model of 2 GB or more with its weights inside.
 */
export function toOnnx(gm: GraphModule, options: ToOnnxOptions = {}): OnnxModel {
  checkGraphModule('toOnnx', gm)
  checkOptions('toOnnx', options, { inputs: true, opset: 'number', weights: true, onProgress: true })
  const { opset = OPSET, weights = 'inside', onProgress } = options
  if (onProgress !== undefined) checkCallable('toOnnx', 'options.onProgress', onProgress)
  checkArgument(opset === OPSET, 'toOnnx', 'options.opset', `${OPSET}, the only opset that models are written for`, opset)
  const isPlace = weights === 'inside' || (typeof weights === 'object' && typeof weights.file === 'string' && weights.file !== '')
  checkArgument(isPlace, 'toOnnx', 'options.weights', "'inside' or { file: 'model.data' }", weights)
  const lowered = lower(gm, inputsOf(gm, options.inputs))
  const builder = new ModelBuilder()
  new Writer(gm, lowered, builder).write(onProgress)
  const files = builder.files(gm.className, opset, weights)
  return { ...files, inputs: builder.inputs, outputs: builder.outputs, operators: builder.counts }
}

/** The given inputs, or tensors without data from what the placeholders know. */
function inputsOf(gm: GraphModule, given: readonly unknown[] | undefined): readonly unknown[] {
  const placeholders = gm.graph.findNodes({ op: 'placeholder' })
  if (given !== undefined) {
    if (!Array.isArray(given)) throw new ArgumentError(`toOnnx: options.inputs must be the list of arguments of a call, got ${valueText(given)}.`)
    return gm.graph.processInputs(...given)
  }
  return placeholders.map((node) => {
    const spec = knownValue(node)
    if (isTensorSpec(spec)) return Tensor.fake({ shape: spec.shape, dtype: spec.dtype })
    throw new ArgumentError(
      `toOnnx: the shape of the input '${node.name}' is not known; pass example inputs: toOnnx(gm, { inputs: [torch.ones([1, 3, 224, 224])] }).`,
    )
  })
}

/** Writes the nodes of a lowered graph. */
class Writer {
  readonly #gm: GraphModule
  readonly #lowered: Lowered
  readonly #builder: ModelBuilder
  /** What each node computes: one value, or several. */
  readonly #values = new Map<Node, readonly Value[]>()

  constructor(gm: GraphModule, lowered: Lowered, builder: ModelBuilder) {
    this.#gm = gm
    this.#lowered = lowered
    this.#builder = builder
  }

  write(onProgress?: OnProgress): void {
    const total = this.#lowered.graph.nodes.length
    let done = 0
    for (const node of this.#lowered.graph.nodes) {
      onProgress?.({ task: 'export', done: done++, total, text: node.name })
      if (node.op === 'output') this.#output(node)
      else this.#values.set(node, this.#valuesOf(node))
    }
  }

  #valuesOf(node: Node): readonly Value[] {
    switch (node.op) {
      case 'placeholder': {
        const spec = tensorSpec(node)
        // A number among the inputs is a constant of the trace.
        return spec !== null ? [this.#builder.input(node.target, spec.dtype, spec.shape)] : []
      }
      case 'get_attr': {
        const tensor = attributeOf(this.#gm, this.#lowered, node.target)
        if (!(tensor instanceof Tensor)) throw new InternalError(`the attribute ${node.target} is not a tensor`)
        return [this.#builder.weight(node.target, tensor)]
      }
      case 'call_function':
        return this.#call(node)
      default:
        throw new InternalError(`a lowered graph has a node of kind ${node.op}`)
    }
  }

  #call(node: Node): readonly Value[] {
    const [first, index] = node.args
    if (node.target === operator.getitem && first instanceof Node && typeof index === 'number') {
      const item = this.#values.get(first)?.[index]
      return item === undefined ? [] : [item]
    }
    const op = opOf(node.target)
    const place = this.#place(node)
    if (op === undefined)
      throw new UnsupportedError(
        `toOnnx: ${targetInfo(node.target)?.name ?? 'a function'} is not an operator. It is the node '${node.name}', from ${place}. Replace it in the graph by operators.`,
      )
    if (op.tags.has('mutates'))
      throw new UnsupportedError(
        `toOnnx: the graph writes to an input or a buffer (${place}), which an ONNX model cannot do; call eval() on the model, or return the new value.`,
      )
    const args = op.schema.args.map((arg, i): CallArg =>
      this.#arg(node, i < node.args.length ? node.args[i] : (node.kwargs[arg.name] ?? arg.default)),
    )
    const call = new Call(this.#builder, op, args, tensorSpecs(node), node.name, place)
    const rule = ruleOf(op)
    if ('none' in rule) return call.unsupported(rule.none)
    const written = rule(call)
    return isValue(written) ? [written] : written
  }

  #arg(node: Node, arg: unknown): CallArg {
    if (arg instanceof Node) {
      const value = this.#values.get(arg)?.[0]
      if (value !== undefined) return value
      throw new UnsupportedError(
        `toOnnx: the node '${node.name}' (${this.#place(node)}) takes '${arg.name}', a number that is an input of the graph; pass it as a tensor.`,
      )
    }
    if (Array.isArray(arg)) return arg.map((item) => this.#arg(node, item))
    if (arg === undefined || arg === null) return null
    if (typeof arg === 'number' || typeof arg === 'boolean' || typeof arg === 'string') return arg
    throw new InternalError(`an argument ${valueText(arg)} in a lowered graph`)
  }

  /** Which node of the exported graph a node comes from, and which line of the program if the graph knows. */
  #place(node: Node): string {
    const origin = this.#lowered.origins.get(node)
    if (origin === undefined) return ''
    const line = /\S+:\d+(?=\D*$)/m.exec(String(origin.meta['stack_trace'] ?? ''))?.[0]
    return `%${origin.name} (${origin.op} ${targetInfo(origin.target)?.name ?? String(origin.target)})${line === undefined ? '' : ` at ${line}`}`
  }

  #output(node: Node): void {
    for (const leaf of treeLeaves(node.args[0])) {
      const value = leaf instanceof Node ? this.#values.get(leaf)?.[0] : undefined
      if (value !== undefined) this.#builder.output(value)
    }
  }
}
