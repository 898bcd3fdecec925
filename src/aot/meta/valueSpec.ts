// What captured graphs record of a node's value, as specs of tensors.
import { isTensorRecord, recordedValue } from '../../fx/graph/nodeValue.ts'
import type { Node } from '../../fx/index.ts'
import { isDType } from '../../kernels/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'

/** Whether a value is the record of a tensor that can exist here: with one of the dtypes that there are. */
export const isTensorSpec = (value: unknown): value is TensorSpec => isTensorRecord(value) && isDType(value.dtype)

/** The spec of a node's tensor; null if nothing is known, or if the value is not one tensor. */
export function tensorSpec(node: Node): TensorSpec | null {
  const value = recordedValue(node)
  return isTensorSpec(value) ? value : null
}

/** The specs of the tensors that a node computes, one or several; none if nothing is known, or if other values are among them. */
export function tensorSpecs(node: Node): readonly TensorSpec[] {
  const value = recordedValue(node)
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  return values.every(isTensorSpec) ? values : []
}
