// Captured constants: tensors and objects that a traced program used without getting them as arguments, and that its graph therefore holds.
import { checkGraph } from '../../protocol/graphChecks.ts'
import { isTensorLike, isObject } from '../../protocol/index.ts'
import type { TensorLike } from '../../protocol/index.ts'
import type { Frame } from '../../provenance/index.ts'
import type { Graph } from '../graph/graph.ts'
import type { Node } from '../graph/node.ts'
import { originOf } from '../graph/origin.ts'

/** A value that tracing made part of the graph. */
export interface CapturedConstant {
  /** The path of the attribute that holds it. */
  readonly path: string
  readonly value: object
  /** Null if the value is not a tensor. */
  readonly shape: readonly number[] | null
  /** Null if the value is not a tensor. */
  readonly dtype: string | null
  /** Size of the tensor's elements in bytes; null if the value is not a tensor. */
  readonly bytes: number | null
  /** Where in the user's program it was first used; null if unknown. */
  readonly origin: Frame | null
}

/** Describes the value of the attribute at `path`, which `node` reads. */
export function describeConstant(path: string, value: object, node: Node): CapturedConstant {
  const origin = originOf(node)
  if (!isTensorLike(value)) return { path, value, shape: null, dtype: null, bytes: null, origin }
  return { path, value, shape: value.shape, dtype: value.dtype, bytes: byteSize(value), origin }
}

function byteSize(tensor: TensorLike): number {
  const bits = /\d+/.exec(tensor.dtype)?.[0]
  return tensor.shape.reduce((n, d) => n * d, bits === undefined ? 1 : Number(bits) / 8)
}

/** The names that tracers give to captured values. */
const CAPTURED = /^(?:_tensor_constant\d+|_\w+_constant_\d+)$/

/** The captured values that a graph reads, each once, the largest first. */
export function capturedConstants(graph: Graph): CapturedConstant[] {
  checkGraph('capturedConstants', graph)
  const found = new Map<string, CapturedConstant>()
  for (const node of graph.findNodes({ op: 'get_attr' })) {
    const path = node.target
    if (!CAPTURED.test(path) || found.has(path)) continue
    const value = graph.owningModule?.attribute(path)
    if (!isObject(value)) continue
    found.set(path, describeConstant(path, value, node))
  }
  return [...found.values()].sort((a, b) => (b.bytes ?? 0) - (a.bytes ?? 0))
}
