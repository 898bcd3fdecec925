// How layers and functions change gradual types: what GraphTypeChecker's rules compute. PyTorch's torch.fx.experimental.graph_gradual_typechecker.
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import type { Module } from '../../../module/index.ts'
import { getAttribute } from '../../../module/index.ts'
import { checkArgument, checkCount, isModule, valueText } from '../../../protocol/index.ts'
import type { NodeType } from '../../../protocol/index.ts'
import { SizeExpression } from './sizeExpression.ts'
import { Dyn, isConsistent, isMorePrecise, isTensorType, tensorTypeOf, typesEqual } from './tensorType.ts'
import type { Dimension, TensorType } from './tensorType.ts'
import { isVar } from '../unification/variable.ts'

/** A type, or whatever was given as one, in a message. */
const typeText = (type: unknown): string => (isTensorType(type) || typeof type === 'string' ? String(type) : valueText(type))

const checkType = (where: string, type: unknown): void => checkArgument(isTensorType(type), where, 'type', 'a TensorType', type)

function checkLayerType(where: string, type: unknown, module: unknown): void {
  checkType(where, type)
  checkArgument(isModule(module), where, 'module', 'a Module', module)
}

/** An option of a layer for one of two dimensions: a number for both, or one for each. */
function optionAt(module: Module, name: string, index: number): number {
  const value: unknown = getAttribute(module, name)
  const at: unknown = Array.isArray(value) ? value[index] : value
  if (typeof at === 'number') return at
  throw new ArgumentError(`${module.constructor.name}: ${name} must be a number or an array of two, got ${valueText(value)}.`)
}

/** A number that a layer has. */
export const numberOf = (module: Module, name: string): number => optionAt(module, name, 0)

/** Sizes in a product, or null if one of them is no number. */
const numbers = (dims: readonly Dimension[]): readonly number[] | null => {
  const found = dims.filter((dim) => typeof dim === 'number')
  return found.length === dims.length ? found : null
}

const product = (values: readonly number[]): number => values.reduce((a, b) => a * b, 1)

/**
 * A type as a tensor type of rank `rank`: `Dyn` has unknown sizes. PyTorch's expand_to_tensor_dim.
 * @throws ShapeError for a tensor type of another rank, and for other types.
 */
export function expandToTensorDim(type: NodeType, rank: number): TensorType {
  checkCount('expandToTensorDim', arguments, 2)
  if (type === Dyn || isVar(type)) return tensorTypeOf(Array.from({ length: rank }, () => Dyn))
  if (!isTensorType(type)) throw new ShapeError(`Cannot match the type ${typeText(type)}`)
  if (type.dims.length === rank) return type
  throw new ShapeError(`Cannot extend tensor. Tensor ${String(type)} has rank ${type.dims.length}. It should have rank ${rank}`)
}

/**
 * The two types after broadcasting: as long as each other, with the other's size in the place of a 1. An unknown type changes nothing. PyTorch's broadcast_types.
 * @throws ShapeError for types that are not those of tensors.
 */
export function broadcastTypes(one: NodeType, other: NodeType): readonly [NodeType, NodeType] {
  checkCount('broadcastTypes', arguments, 2)
  if (one === Dyn || other === Dyn || isVar(one) || isVar(other)) return [one, other]
  if (!isTensorType(one) || !isTensorType(other)) throw new ShapeError(`Cannot broadcast types ${typeText(one)} and ${typeText(other)}`)
  const rank = Math.max(one.dims.length, other.dims.length)
  const padded = (type: TensorType): Dimension[] => [...Array.from({ length: rank - type.dims.length }, () => 1), ...type.dims]
  const [a, b] = [padded(one), padded(other)]
  const seen = (own: Dimension, theirs: Dimension | undefined): Dimension => (own === 1 && theirs !== undefined ? theirs : own)
  return [tensorTypeOf(a.map((dim, i) => seen(dim, b[i]))), tensorTypeOf(b.map((dim, i) => seen(dim, a[i])))]
}

/**
 * The most precise type that is consistent with both. PyTorch's get_greatest_upper_bound.
 * @throws ShapeError for inconsistent types.
 */
export function getGreatestUpperBound(one: NodeType, other: NodeType): NodeType {
  checkCount('getGreatestUpperBound', arguments, 2)
  if (one === Dyn || isVar(one)) return other
  if (other === Dyn || isVar(other)) return one
  if (!isConsistent(one, other) || !isTensorType(one) || !isTensorType(other)) {
    if (typesEqual(one, other)) return one
    throw new ShapeError(`Inconsistent types ${typeText(one)}, ${typeText(other)}`)
  }
  return tensorTypeOf(one.dims.map((dim, i) => (isMorePrecise(dim, other.dims[i] ?? dim) ? dim : (other.dims[i] ?? dim))))
}

/**
 * The size that a convolution or pooling layer gives to dimension `index` (0 for the height, 1 for the width) of size `size`: a number for a number, an expression for a
 * variable or an expression, Dyn for Dyn. PyTorch's calculate_out_dimension, which takes the stride of the height for both.
 * @throws ShapeError for anything else, and for a size that is smaller than the window.
 */
export function calculateOutDimension(size: Dimension, module: Module, index: number): Dimension {
  checkCount('calculateOutDimension', arguments, 3)
  checkArgument(isModule(module), 'calculateOutDimension', 'module', 'a Module', module)
  if (size === Dyn) return Dyn
  if (typeof size !== 'number' && !isVar(size) && !(size instanceof SizeExpression))
    throw new ShapeError(`${valueText(size)} in ${String(module)} must be a number or Dyn. Received ${typeof size}`)
  const padding: unknown = getAttribute(module, 'padding')
  if (padding === 'same') return size
  const stride = optionAt(module, 'stride', index)
  const before = padding === 'valid' ? 0 : optionAt(module, 'padding', index)
  const window = optionAt(module, 'dilation', index) * (optionAt(module, 'kernelSize', index) - 1) + 1
  const room = SizeExpression.of(size).plus(2 * before - window)
  const roundsUp = getAttribute(module, 'ceilMode') === true
  if (typeof size !== 'number') return roundsUp ? Dyn : room.floorDivide(stride).plus(1).simplified()
  const free = size + 2 * before - window
  if (free < 0)
    throw new ShapeError(`${String(module)}: the window of ${window} is larger than the size ${size} with padding ${before} on both sides.`)
  const steps = (roundsUp ? Math.ceil : Math.floor)(free / stride)
  // A window that was added by rounding up must start inside the input or its left padding.
  return roundsUp && steps * stride >= size + before ? steps : steps + 1
}

const lastTwo = (type: TensorType, height: Dimension, width: Dimension): TensorType => tensorTypeOf([...type.dims.slice(0, -2), height, width])

/** The type of a max pooling layer's result. PyTorch's maxpool2d_check. @throws ShapeError for a rank other than 3 and 4. */
export function maxpool2dCheck(type: TensorType, module: Module): TensorType {
  checkCount('maxpool2dCheck', arguments, 2)
  checkLayerType('maxpool2dCheck', type, module)
  const [height, width] = type.dims.slice(-2)
  if (height === undefined || width === undefined || (type.dims.length !== 3 && type.dims.length !== 4))
    throw new ShapeError(`Wrong size ${String(type)} for ${String(module)}`)
  return lastTwo(type, calculateOutDimension(height, module, 0), calculateOutDimension(width, module, 1))
}

/** The type of an adaptive average pooling layer's result; null as output size keeps the size. PyTorch's adaptiveavgpool2d_check. @throws ShapeError for a rank other than 3 and 4. */
export function adaptiveavgpool2dCheck(type: TensorType, module: Module): TensorType {
  checkCount('adaptiveavgpool2dCheck', arguments, 2)
  checkLayerType('adaptiveavgpool2dCheck', type, module)
  const [height, width] = type.dims.slice(-2)
  if (height === undefined || width === undefined || (type.dims.length !== 3 && type.dims.length !== 4))
    throw new ShapeError(`Tensor ranks must be 3 or 4. Got ${String(type)}`)
  const sizes: unknown = getAttribute(module, 'outputSize')
  const at = (index: number, own: Dimension): Dimension => {
    const size: unknown = Array.isArray(sizes) ? sizes[index] : sizes
    return typeof size === 'number' ? size : own
  }
  return lastTwo(type, at(0, height), at(1, width))
}

/** The type of a linear layer's result. PyTorch's linear_check. @throws ShapeError for another last size, and for tensors without dimensions. */
export function linearCheck(type: TensorType, module: Module): TensorType {
  checkCount('linearCheck', arguments, 2)
  checkLayerType('linearCheck', type, module)
  const last = type.dims.at(-1)
  if (last === undefined) throw new ShapeError(`Type ${String(type)} must have rank 1 or more.`)
  const [taken, given] = [numberOf(module, 'inFeatures'), numberOf(module, 'outFeatures')]
  if (!isConsistent(taken, last)) throw new ShapeError(`Inconsistent ${taken} and ${String(last)} in ${String(module)}`)
  return tensorTypeOf([...type.dims.slice(0, -1), given])
}

/**
 * The type after the dimensions from `startDim` to `endDim`, both included, became one. Negative dimensions count from the end. PyTorch's flatten_check.
 * @throws ShapeError for dimensions that the type does not have, or in the wrong order.
 */
export function flattenCheck(type: TensorType, startDim: number, endDim: number): TensorType {
  checkCount('flattenCheck', arguments, 3)
  checkType('flattenCheck', type)
  for (const [name, dim] of Object.entries({ startDim, endDim })) checkArgument(Number.isInteger(dim), 'flattenCheck', name, 'an integer', dim)
  const rank = type.dims.length
  if (rank === 0) return tensorTypeOf([1])
  const [start, end] = [startDim < 0 ? rank + startDim : startDim, endDim < 0 ? rank + endDim : endDim]
  if (start < 0 || end >= rank || start > end) throw new ShapeError(`Incompatible dimensions ${start}, ${end} in type ${String(type)}`)
  const middle = type.dims.slice(start, end + 1)
  const known = numbers(middle)
  const [only] = middle
  const joined = known !== null ? product(known) : middle.length === 1 && only !== undefined ? only : Dyn
  return tensorTypeOf([...type.dims.slice(0, start), joined, ...type.dims.slice(end + 1)])
}

/**
 * Whether tensors of a type can take a shape; -1 stands for a size that follows from the others, and {@link Dyn} for one that is not known. Where sizes of the type are unknown, the product of the known ones and that of
 * the shape must divide one another.
 */
export function canReshape(type: TensorType, shape: readonly Dimension[]): boolean {
  const known = type.dims.filter((dim) => typeof dim === 'number')
  const wanted = shape.filter((dim) => typeof dim === 'number')
  const [have, want] = [product(known), Math.abs(product(wanted))]
  const [isStatic, isOpen] = [known.length === type.dims.length, wanted.includes(-1) || wanted.length < shape.length]
  if (have === 0 || want === 0) return have === want || !isStatic || (isOpen && want !== 0)
  if (isStatic) return isOpen ? have % want === 0 : have === want
  return have % want === 0 || want % have === 0
}
