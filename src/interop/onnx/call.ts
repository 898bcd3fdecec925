// What the rules of operators write with: nodes and constants for one call of an operator. Shapes and dtypes of results are known, so that every value has a type.
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { InternalError, UnsupportedError } from '../../errors/index.ts'
import type { DType } from '../../kernels/index.ts'
import { isPlainObject } from '../../protocol/index.ts'
import { broadcastShapes, Tensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { elementType } from './model.ts'
import type { Attributes, ModelBuilder, Value } from './model.ts'

/** An argument of a call: tensors are values of the model. */
export type CallArg = Value | number | boolean | string | null | readonly CallArg[]

export const isValue = (arg: CallArg | undefined): arg is Value => isPlainObject(arg)

const isList = (arg: CallArg | undefined): arg is readonly CallArg[] => Array.isArray(arg)

/** One call of an operator, and the model that it is written into. */
export class Call {
  readonly #builder: ModelBuilder
  readonly op: OpDef
  /** One per argument of the schema. */
  readonly args: readonly CallArg[]
  /** Shape and dtype of each result. */
  readonly results: readonly TensorSpec[]
  /** The name of the graph's node, after which values are named, and where it comes from. */
  readonly #name: string
  readonly #place: string

  constructor(builder: ModelBuilder, op: OpDef, args: readonly CallArg[], results: readonly TensorSpec[], name: string, place: string) {
    this.#builder = builder
    this.op = op
    this.args = args
    this.results = results
    this.#name = name
    this.#place = place
  }

  #at(name: string): CallArg {
    const i = this.op.schema.args.findIndex((arg) => arg.name === name)
    const arg = this.args[i]
    if (arg === undefined) throw new InternalError(`${this.op.qualname} has no argument '${name}'`)
    return arg
  }

  /** A tensor among the arguments. */
  tensor(name: string): Value {
    return this.optional(name) ?? this.unsupported(`argument '${name}' is not a tensor`)
  }

  optional(name: string): Value | null {
    const arg = this.#at(name)
    if (arg === null) return null
    return isValue(arg) ? arg : this.unsupported(`argument '${name}' is not a tensor`)
  }

  tensors(name: string): readonly Value[] {
    const arg = this.#at(name)
    return isList(arg)
      ? arg.map((item) => (isValue(item) ? item : this.unsupported(`argument '${name}' is not a list of tensors`)))
      : [this.tensor(name)]
  }

  number(name: string): number {
    const arg = this.#at(name)
    return typeof arg === 'number' ? arg : this.unsupported(`argument '${name}' is not a number that is known when the graph is exported`)
  }

  flag(name: string): boolean {
    return this.#at(name) === true
  }

  text(name: string): string {
    const arg = this.#at(name)
    return typeof arg === 'string' ? arg : this.unsupported(`argument '${name}' is not a text`)
  }

  /** A list of numbers; a single number stands for itself `count` times; null if the argument is null or empty. */
  numbers(name: string, count = 1): readonly number[] | null {
    const arg = this.#at(name)
    if (arg === null) return null
    if (typeof arg === 'number') return Array.from({ length: count }, () => arg)
    if (!isList(arg)) return this.unsupported(`argument '${name}' is not a list of numbers`)
    if (arg.length === 0) return null
    const list = arg.map((item) => (typeof item === 'number' ? item : this.unsupported(`argument '${name}' is not a list of numbers`)))
    const [only] = list
    return list.length === 1 && only !== undefined ? Array.from({ length: count }, () => only) : list
  }

  /** Shape and dtype of a result. */
  result(i = 0): TensorSpec {
    const spec = this.results[i]
    if (spec === undefined) throw new InternalError(`${this.op.qualname} has no result ${i}`)
    return spec
  }

  /** A node with one result. */
  node(type: string, inputs: readonly (Value | null)[], dtype: DType, shape: readonly number[], attributes: Attributes = {}): Value {
    return this.#builder.node(type, inputs, { name: this.#name, dtype, shape }, attributes, this.#place)
  }

  /** A node with several results. */
  nodes(type: string, inputs: readonly (Value | null)[], specs: readonly TensorSpec[], attributes: Attributes = {}): readonly Value[] {
    return this.#builder.nodes(
      type,
      inputs,
      specs.map(({ dtype, shape }) => ({ name: this.#name, dtype, shape })),
      attributes,
      this.#place,
    )
  }

  /** A node that computes elementwise: the shape of the result is what the operands broadcast to. */
  elementwise(type: string, inputs: readonly Value[], dtype: DType): Value {
    const shape = inputs.map((input) => input.shape).reduce((a, b) => broadcastShapes(type, a, b))
    return this.node(type, inputs, dtype, shape)
  }

  cast(value: Value, dtype: DType): Value {
    return value.dtype === dtype ? value : this.node('Cast', [value], dtype, value.shape, { to: elementType(dtype) })
  }

  /** A number as a tensor without dimensions. */
  scalar(dtype: DType, value: number | bigint): Value {
    return this.#builder.constant(dtype, [value], [])
  }

  /** Integers as a tensor: axes, sizes, positions. */
  ints(values: readonly number[], shape?: readonly number[]): Value {
    return this.#builder.constant('int64', values, shape)
  }

  constant(dtype: DType, values: readonly number[], shape: readonly number[]): Value {
    return this.#builder.constant(dtype, values, shape)
  }

  reshape(value: Value, shape: readonly number[]): Value {
    if (value.shape.length === shape.length && value.shape.every((size, i) => size === shape[i])) return value
    // 0 means "as in the input", unless allowzero is set.
    return this.node('Reshape', [value, this.ints(shape)], value.dtype, shape, shape.includes(0) ? { allowzero: 1 } : {})
  }

  /** The arguments with tensors without data in the place of values, for the operator's own functions. */
  fakes(): readonly Arg[] {
    const fake = (arg: CallArg): Arg => (isValue(arg) ? Tensor.fake(arg) : isList(arg) ? arg.map(fake) : arg)
    return this.args.map(fake)
  }

  /** Throws: the operator cannot be exported. */
  unsupported(reason: string): never {
    throw new UnsupportedError(
      `toOnnx: ${this.op.qualname} cannot be exported: ${reason}. It is the node '${this.#name}'${this.#place === '' ? '' : `, from ${this.#place}`}. ` +
        'Replace it in the graph by operators that ONNX has, or cut the graph before it.',
    )
  }
}
