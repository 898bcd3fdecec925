// What is known about a node's value, as a comment after its line: `// f32[2, 3]`.
import { entryOf, environmentVariable } from '../../protocol/index.ts'
import type { SpecOptions } from '../graph/graphText.ts'
import type { Node } from '../graph/node.ts'

const SHORT: Readonly<Record<string, string>> = {
  float64: 'f64',
  float32: 'f32',
  float16: 'f16',
  bfloat16: 'bf16',
  float8_e4m3fn: 'f8e4m3fn',
  float8_e5m2: 'f8e5m2',
  complex64: 'c64',
  complex128: 'c128',
  int8: 'i8',
  int16: 'i16',
  int32: 'i32',
  int64: 'i64',
  uint8: 'u8',
  uint16: 'u16',
  uint32: 'u32',
  uint64: 'u64',
  bool: 'b8',
}

const isSwitchedOn = (name: string): boolean => environmentVariable(`TENSORFX_FX_GRAPH_${name}`) === '1'

/** The options, with defaults from the environment. */
export function withEnvironment<O extends SpecOptions>(options: O): O & Required<SpecOptions> {
  return {
    ...options,
    includeStride: options.includeStride ?? isSwitchedOn('SHOW_STRIDE'),
    includeDevice: options.includeDevice ?? isSwitchedOn('SHOW_DEVICE'),
  }
}

interface Spec {
  readonly shape: readonly number[]
  readonly dtype: string
  readonly strides?: readonly number[]
  readonly device?: unknown
}

function isSpec(value: unknown): value is Spec {
  if (typeof value !== 'object' || value === null || !('shape' in value) || !('dtype' in value)) return false
  return Array.isArray(value.shape) && typeof value.dtype === 'string'
}

/** A size, a stride or a device. Meta may come from a file, where they can be anything. */
const partText = (part: unknown): string => (typeof part === 'object' ? '?' : String(part))

/** `f32[2, 3]` for a tensor or anything else with a shape and a dtype, `(f32[2], f32[3])` for an array of them, null for other values. */
export function specText(value: unknown, options: SpecOptions = {}): string | null {
  if (isSpec(value)) {
    const stride = options.includeStride === true && Array.isArray(value.strides) ? `[${value.strides.map(partText).join(', ')}]` : ''
    const device = options.includeDevice === true && value.device !== undefined ? partText(value.device) : ''
    return `${entryOf(SHORT, value.dtype) ?? value.dtype}[${value.shape.map(partText).join(', ')}]${stride}${device}`
  }
  if (Array.isArray(value)) {
    const parts = value.map((v) => specText(v, options))
    return parts.some((p) => p !== null) ? `(${parts.map((p) => p ?? '?').join(', ')})` : null
  }
  return null
}

/** What a node's meta says about its value: `val`, else `tensor_meta`, else `example_value`. */
export function nodeSpec(node: Node): unknown {
  return node.meta['val'] ?? node.meta['tensor_meta'] ?? node.meta['example_value']
}

/** The annotation of a node: `f32[2, 3]`, else its type, else null. */
export function annotation(node: Node, options: SpecOptions = {}): string | null {
  return specText(nodeSpec(node), options) ?? (node.type === null ? null : String(node.type))
}
