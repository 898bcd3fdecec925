// An ONNX model under construction: nodes, weights, inputs and outputs, and the file that holds them. The numbers of fields are those of onnx.proto.
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import { isComplexDType } from '../../kernels/index.ts'
import type { DType, RealDType } from '../../kernels/index.ts'
import { joinBytes } from '../../protocol/joinBytes.ts'
import { storedElements, tensorFromValues } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { VERSION } from '../../version.ts'
import { Message } from './protobuf.ts'

/** A value in the model: what a node computes, an input, or a weight. */
export interface Value {
  readonly name: string
  readonly dtype: DType
  readonly shape: readonly number[]
}

/** TensorProto.DataType. */
const ELEMENT_TYPES: Readonly<Record<RealDType, number>> = {
  float32: 1,
  uint8: 2,
  int8: 3,
  int16: 5,
  int32: 6,
  int64: 7,
  bool: 9,
  float16: 10,
  float64: 11,
  bfloat16: 16,
}

/** The TensorProto.DataType of a dtype. Throws UnsupportedError for complex ones, for which ONNX has no operators. */
export function elementType(dtype: DType): number {
  if (isComplexDType(dtype))
    throw new UnsupportedError(
      `toOnnx: the graph has ${dtype} tensors, and ONNX has no operators on complex numbers; write that part with viewAsReal on pairs of numbers.`,
    )
  return ELEMENT_TYPES[dtype]
}

/** An attribute of a node: whole numbers are ints unless they are given as `{ float }`. */
type Attribute = number | string | readonly number[] | { readonly float: number }
/** The attributes of a node, by name. */
export type Attributes = Readonly<Record<string, Attribute>>

/** AttributeProto.AttributeType. */
const FLOAT = 1
const INT = 2
const STRING = 3
const INTS = 7
/** The version of the file format that came with opset 20. */
const IR_VERSION = 9
/** A protocol buffer has at most this many bytes. */
const LARGEST = 2 ** 31 - 1
/** TensorProto.DataLocation. */
const EXTERNAL = 1

/** Where weights go: into the model, or into a file beside it, whose name the model holds. */
export type Weights = 'inside' | { readonly file: string }

/** The files of a model. */
export interface OnnxFiles {
  /** The model: the contents of a `.onnx` file. */
  readonly model: Uint8Array
  /** The contents of the file beside the model, if the weights go there; otherwise null. */
  readonly weights: Uint8Array | null
}

const isNumbers = (value: Attribute): value is readonly number[] => Array.isArray(value)

function attribute(name: string, value: Attribute): Message {
  const message = new Message().text(1, name)
  if (typeof value === 'number') return message.int(3, value).int(20, INT)
  if (typeof value === 'string') return message.text(4, value).int(20, STRING)
  return isNumbers(value) ? message.ints(8, value).int(20, INTS) : message.float(2, value.float).int(20, FLOAT)
}

/** ValueInfoProto: name, element type and sizes. */
function valueInfo({ name, dtype, shape }: Value): Message {
  const sizes = new Message()
  for (const size of shape) sizes.message(1, new Message().int(1, size))
  const tensor = new Message().int(1, elementType(dtype)).message(2, sizes)
  return new Message().text(1, name).message(2, new Message().message(1, tensor))
}

/** How many results a node must have, for those that may have more. Runtimes do not all take results that nothing reads: WebGPU has no positions of a maximum. */
const REQUIRED_RESULTS: ReadonlyMap<string, number> = new Map([['MaxPool', 1]])

/** A node of the model. */
interface NodeParts {
  readonly type: string
  /** '' where an optional input is missing. */
  readonly inputs: readonly string[]
  readonly results: readonly string[]
  readonly attributes: Attributes
  readonly doc: string
}

function nodeMessage({ type, inputs, results, attributes, doc }: NodeParts, number: number): Message {
  const message = new Message()
  for (const name of inputs) message.text(1, name)
  for (const name of results) message.text(2, name)
  message.text(3, `${type}_${number}`).text(4, type)
  for (const [name, value] of Object.entries(attributes)) message.message(5, attribute(name, value))
  if (doc !== '') message.text(6, doc)
  return message
}

/** Collects the parts of a model. Names of values are unique. */
export class ModelBuilder {
  readonly #nodes: NodeParts[] = []
  readonly #weights = new Map<string, Tensor>()
  /** Numbers that belong to the program, not to its weights. They stay in the model: runtimes read them while they load it. */
  readonly #constants = new Map<string, Tensor>()
  readonly #inputs: Value[] = []
  readonly #outputs: Value[] = []
  readonly #numbers = new Map<string, Value>()
  readonly #names = new Set<string>()
  /** How many nodes of each type were written. */
  readonly counts = new Map<string, number>()

  /** A name that no value has yet: `name` itself, or with a number. */
  unique(name: string): string {
    let free = name
    for (let i = 1; this.#names.has(free); i++) free = `${name}_${i}`
    this.#names.add(free)
    return free
  }

  input(name: string, dtype: DType, shape: readonly number[]): Value {
    const value = { name: this.unique(name), dtype, shape }
    this.#inputs.push(value)
    return value
  }

  weight(name: string, tensor: Tensor): Value {
    const value = { name: this.unique(name), dtype: tensor.dtype, shape: tensor.shape }
    this.#weights.set(value.name, tensor)
    return value
  }

  /** Numbers that a node takes as a tensor; equal ones are stored once. */
  constant(dtype: DType, values: readonly (number | bigint)[], shape: readonly number[] = [values.length]): Value {
    const key = `${dtype} [${shape.join()}] ${values.map((v) => (Object.is(v, -0) ? '-0' : String(v))).join()}`
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    const value = { name: this.unique('constant'), dtype, shape }
    this.#constants.set(value.name, tensorFromValues(values, shape, dtype))
    this.#numbers.set(key, value)
    return value
  }

  /** A node with several results. A missing optional input is null. */
  nodes(type: string, inputs: readonly (Value | null)[], results: readonly Value[], attributes: Attributes = {}, doc = ''): readonly Value[] {
    const last = inputs.findLastIndex((input) => input !== null)
    const named = results.map((result) => ({ ...result, name: this.unique(result.name) }))
    const given = inputs.slice(0, last + 1).map((input) => input?.name ?? '')
    this.#nodes.push({ type, inputs: given, results: named.map(({ name }) => name), attributes, doc })
    return named
  }

  /** The nodes that the outputs need, in order, without results that nothing reads. */
  #needed(): { readonly nodes: readonly NodeParts[]; readonly read: ReadonlySet<string> } {
    const read = new Set(this.#outputs.map(({ name }) => name))
    const nodes: NodeParts[] = []
    for (const node of this.#nodes.toReversed()) {
      const last = node.results.findLastIndex((name) => read.has(name))
      if (last === -1) continue
      for (const name of node.inputs) read.add(name)
      nodes.push({ ...node, results: node.results.slice(0, Math.max(REQUIRED_RESULTS.get(node.type) ?? Infinity, last + 1)) })
    }
    return { nodes: nodes.reverse(), read }
  }

  /** A node with one result. */
  node(type: string, inputs: readonly (Value | null)[], result: Value, attributes: Attributes = {}, doc = ''): Value {
    const [value = result] = this.nodes(type, inputs, [result], attributes, doc)
    return value
  }

  /** Makes a value a result of the model, under a name that tells its place. */
  output(value: Value): Value {
    const result = this.node('Identity', [value], { ...value, name: `output_${this.#outputs.length}` })
    this.#outputs.push(result)
    return result
  }

  get outputs(): readonly Value[] {
    return this.#outputs
  }

  get inputs(): readonly Value[] {
    return this.#inputs
  }

  /** The files. Throws ArgumentError for a model that is larger than its format allows. */
  files(title: string, opset: number, place: Weights): OnnxFiles {
    const graph = new Message()
    const { nodes, read } = this.#needed()
    for (const node of nodes) {
      const count = this.counts.get(node.type) ?? 0
      this.counts.set(node.type, count + 1)
      graph.message(1, nodeMessage(node, count))
    }
    graph.text(2, title)
    const beside: Uint8Array[] = []
    let at = 0
    for (const [name, tensor] of this.#constants) if (read.has(name)) graph.message(5, tensorProto(name, tensor).bytes(9, bytesOf(tensor)))
    for (const [name, tensor] of this.#weights) {
      const proto = tensorProto(name, tensor)
      const bytes = bytesOf(tensor)
      if (place === 'inside') proto.bytes(9, bytes)
      else {
        const entries = { location: place.file, offset: String(at), length: String(bytes.length) }
        for (const [key, text] of Object.entries(entries)) proto.message(13, new Message().text(1, key).text(2, text))
        proto.int(14, EXTERNAL)
        beside.push(bytes)
        at += bytes.length
      }
      graph.message(5, proto)
    }
    for (const value of this.#inputs) graph.message(11, valueInfo(value))
    for (const value of this.#outputs) graph.message(12, valueInfo(value))
    const model = new Message()
      .int(1, IR_VERSION)
      .text(2, 'tensorfx')
      .text(3, VERSION)
      .message(7, graph)
      .message(8, new Message().text(1, '').int(2, opset))
    if (model.length > LARGEST)
      throw new ArgumentError(
        `toOnnx: the model would have ${model.length} bytes, and a .onnx file has at most ${LARGEST}; write the weights beside it: toOnnx(gm, { weights: { file: 'model.data' } }).`,
      )
    return { model: model.encode(), weights: place === 'inside' ? null : joinBytes(beside) }
  }
}

const tensorProto = (name: string, { shape, dtype }: Tensor): Message => new Message().ints(1, shape).int(2, elementType(dtype)).text(8, name)

function bytesOf(tensor: Tensor): Uint8Array {
  const data = storedElements(tensor)
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
}
