// Gradual types of tensors: shapes in which sizes, or the whole shape, may be unknown. PyTorch's torch.fx.tensor_type.
import { ArgumentError } from '../../../errors/index.ts'
import { checkArgument, checkArray, checkCount, checkString, isFunction, isObject, valueText } from '../../../protocol/index.ts'
import type { NodeType, TypeValue } from '../../../protocol/index.ts'
import { isTuple, markTuple, tuple } from '../../graph/pythonValues.ts'
import { pyRepr } from '../../text/format.ts'
import { isVar } from '../unification/variable.ts'
import type { Var } from '../unification/variable.ts'

/** A size that is not known, or the type of a value of which nothing is known. */
export interface DynType extends TypeValue {
  readonly isDyn: true
}

class DynValue implements DynType {
  readonly isTypeValue = true
  readonly isDyn = true
  readonly typescript = 'unknown'

  toString(): string {
    return 'Dyn'
  }
}

/** The unknown size, and the unknown type. PyTorch's Dyn. */
export const Dyn: DynType = Object.freeze(new DynValue())

/** A size: a number, {@link Dyn}, a variable, an expression of variables, or a variable of a constraint. */
export type Dimension = number | object

/** The type of a tensor: one {@link Dimension} for each of its dimensions. Compare with {@link typesEqual}. */
export interface TensorType extends TypeValue {
  readonly dims: readonly Dimension[]
}

class TensorTypeValue implements TensorType {
  readonly isTypeValue = true
  readonly typescript = 'Tensor'
  readonly dims: readonly Dimension[]

  constructor(dims: readonly Dimension[]) {
    this.dims = isTuple(dims) ? markTuple([...dims]) : Object.freeze([...dims])
    Object.freeze(this)
  }

  toString(): string {
    return `TensorType[${pyRepr(this.dims)}]`
  }
}

const isDimension = (value: unknown): value is Dimension =>
  typeof value === 'number' ? Number.isInteger(value) : isObject(value) && !Array.isArray(value)

/**
 * The type of tensors of a shape. It prints like Python's: `TensorType[[1, Dyn]]` for an array, `TensorType[(1, Dyn)]` for a tuple, `fx.tuple(1, Dyn)`. PyTorch's TensorType.
 *
 *     node.type = TensorType([1, Dyn, 3])
 *
 * @throws ArgumentError for sizes that are neither integers nor {@link Dyn}, variables or expressions.
 */
export function TensorType(dims: readonly Dimension[]): TensorType {
  checkCount('TensorType', arguments, 1)
  if (!Array.isArray(dims)) throw new ArgumentError(`TensorType: dims must be an array of sizes, such as [1, Dyn, 3], got ${valueText(dims)}.`)
  const bad = dims.findIndex((dim) => !isDimension(dim))
  if (bad >= 0) throw new ArgumentError(`TensorType: dims[${bad}] must be an integer, Dyn or a variable, got ${valueText(dims[bad])}.`)
  return new TensorTypeValue(dims)
}

/** The type of tensors of a shape, printed as a tuple. */
export const tensorTypeOf = (dims: readonly Dimension[]): TensorType => TensorType(tuple(...dims))

/** Whether a value is a {@link TensorType}. */
export const isTensorType = (value: unknown): value is TensorType => value instanceof TensorTypeValue

/** The types of the elements of an array that a graph returns. */
export class TypeList implements TypeValue {
  readonly isTypeValue = true
  readonly typescript: string
  readonly types: readonly NodeType[]

  constructor(types: readonly NodeType[]) {
    checkArray('TypeList', 'types', types)
    types.forEach((type, i) => checkArgument(typeof type === 'string' || isObject(type), 'TypeList', `types[${i}]`, 'a type', type))
    this.types = types
    this.typescript = `[${types.map((type) => (typeof type === 'string' ? 'unknown' : type.typescript)).join(', ')}]`
  }

  toString(): string {
    return `[${this.types.map(String).join(', ')}]`
  }
}

/** A dimension, a type, or anything else that has a meaning of its own as a type. */
type TypeLike = Dimension | NodeType | null

/**
 * Whether two types, or two sizes, are the same. Arrays and tuples do not differ. Python's `==`.
 */
export function typesEqual(a: TypeLike, b: TypeLike): boolean {
  if (a === b) return true
  const one = isTensorType(a) ? a.dims : a instanceof TypeList ? a.types : null
  const other = isTensorType(b) ? b.dims : b instanceof TypeList ? b.types : null
  if (one !== null && other !== null)
    return isTensorType(a) === isTensorType(b) && one.length === other.length && one.every((type, i) => typesEqual(type, other[i] ?? null))
  return isObject(a) && isObject(b) && hasEquals(a) && a.equals(b)
}

/** Objects that say themselves what equals them: expressions of sizes, variables of constraints. */
const hasEquals = (value: object): value is { equals(other: unknown): boolean } => 'equals' in value && isFunction(value.equals)

/**
 * Whether a value can have both types: they are equal, or one of them is {@link Dyn} or a variable, or they are tensors of the same rank whose sizes are consistent. The
 * relation is reflexive and symmetric, but not transitive. PyTorch's is_consistent.
 *
 *     isConsistent(TensorType([1, 2]), TensorType([1, Dyn]))  // true
 */
export function isConsistent(a: TypeLike, b: TypeLike): boolean {
  if (typesEqual(a, b) || a === Dyn || b === Dyn || isVar(a) || isVar(b)) return true
  if (!isTensorType(a) || !isTensorType(b)) return false
  return a.dims.length === b.dims.length && a.dims.every((dim, i) => isConsistent(dim, b.dims[i] ?? null))
}

/**
 * Whether type `a` says at least as much as `b`: they are equal, or `b` is {@link Dyn}, or they are tensors of the same rank and every size of `a` says as much as that of
 * `b`. PyTorch's is_more_precise.
 */
export function isMorePrecise(a: TypeLike, b: TypeLike): boolean {
  if (typesEqual(a, b) || b === Dyn || isVar(b)) return true
  if (!isTensorType(a) || !isTensorType(b)) return false
  return a.dims.length === b.dims.length && a.dims.every((dim, i) => isMorePrecise(dim, b.dims[i] ?? null))
}

/**
 * The type that a text means: `Dyn`, `TensorType[(1, Dyn)]`, or the text itself. Graphs from JSON have their types as text.
 */
export function parseTensorType(text: string): NodeType {
  checkString('parseTensorType', 'text', text)
  if (text === 'Dyn') return Dyn
  const match = /^TensorType\[(?:\[([^[\]()]*)\]|\(([^[\]()]*)\))\]$/.exec(text.trim())
  if (match === null) return text
  const inside = match[1] ?? match[2] ?? ''
  const parts = inside.split(',').map((part) => part.trim())
  const dims = parts.filter((part) => part !== '').map((part) => (part === 'Dyn' ? Dyn : Number(part)))
  if (dims.some((dim) => Number.isNaN(dim))) return text
  return match[1] === undefined ? tensorTypeOf(dims) : TensorType(dims)
}

/** The type of a node: {@link Dyn} if it has none, and what a text means. */
export const gradualType = (type: NodeType | null): NodeType => (type === null ? Dyn : typeof type === 'string' ? parseTensorType(type) : type)

export type { Var }
