// What a graph knows about the values of its nodes, in `meta.val`: shape, dtype and strides of a tensor, an array of these for an operator with several results, or the number or symbol of a size.
// It is written with its type here, and checked when it is read, since meta may come from a file.
import type { SymbolicValue, TensorLike } from '../../protocol/index.ts'
import { isObject } from '../../protocol/index.ts'
import type { Node } from './node.ts'

/** What is recorded about a tensor. Rooms that know tensors narrow `dtype`. */
export interface TensorRecord {
  /** Sizes; symbols in a symbolic trace. */
  readonly shape: readonly number[]
  readonly dtype: string
  /** In elements; symbols in a symbolic trace. */
  readonly strides?: readonly number[]
  readonly requiresGrad?: boolean
  /** Where it is; without it on the CPU. */
  readonly device?: unknown
}

/** What can be recorded about the value of a node: a tensor, the results of an operator that has several, or a number in a symbolic trace. */
export type NodeValue = TensorRecord | readonly TensorRecord[] | SymbolicValue | number | boolean

/** Whether a value looks like the record of one tensor; sizes and strides are not checked one by one. */
export const isTensorRecord = (value: unknown): value is TensorRecord =>
  isObject(value) && 'shape' in value && Array.isArray(value.shape) && 'dtype' in value && typeof value.dtype === 'string'

/** The record of a tensor, without strides if the value only looks like one and has none. */
export function recordOf(tensor: TensorLike): TensorRecord {
  const { shape, dtype } = tensor
  const strides = 'strides' in tensor && Array.isArray(tensor.strides) ? { strides: tensor.strides } : {}
  const device = 'device' in tensor && tensor.device !== undefined && tensor.device !== 'cpu' ? { device: tensor.device } : {}
  return { shape, dtype, ...strides, ...device }
}

/** Records the value of a node. */
export function recordValue(node: Node, value: NodeValue): void {
  node.meta['val'] = value
}

/** Records the value of a node that holds tensors in other structures than an array: `value` has a {@link TensorRecord} in the place of each. */
export function recordNested(node: Node, value: unknown): void {
  node.meta['val'] = value
}

/** Records that a node has the value of another one, of which it is a copy. */
export function copyValue(to: Node, from: Node): void {
  to.meta['val'] = from.meta['val']
}

/** Puts back what was recorded about the value of a node: what {@link recordedValue} gave, undefined for nothing. */
export function restoreValue(node: Node, value: unknown): void {
  if (value === undefined) delete node.meta['val']
  else node.meta['val'] = value
}

/** What is recorded about the value of a node, unchecked; undefined if nothing is. */
export const recordedValue = (node: Node): unknown => node.meta['val']

/** Whether a node has several values, which getitem nodes take out. */
export const hasSeveralValues = (node: Node): boolean => Array.isArray(recordedValue(node))

/** What any tool has recorded about the value of a node: a trace or FakeTensorProp, else ShapeProp (`tensor_meta`), else PyTorch's dynamo (`example_value`). */
export const knownValue = (node: Node): unknown => recordedValue(node) ?? node.meta['tensor_meta'] ?? node.meta['example_value']
