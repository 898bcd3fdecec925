// What is known of a node's value, as a comment behind its line: `// f32[2, 3]`.
import type { Node } from './node.ts'

const SHORT: Readonly<Record<string, string>> = {
  float32: 'f32',
  float64: 'f64',
  float16: 'f16',
  bfloat16: 'bf16',
  int8: 'i8',
  int16: 'i16',
  int32: 'i32',
  int64: 'i64',
  uint8: 'u8',
  bool: 'b8',
}

interface Spec {
  readonly shape: readonly number[]
  readonly dtype: string
}

function isSpec(value: unknown): value is Spec {
  return (
    typeof value === 'object' && value !== null && Array.isArray((value as Partial<Spec>).shape) && typeof (value as Partial<Spec>).dtype === 'string'
  )
}

/** `f32[2, 3]` for anything with a shape and a dtype; a list for several; null otherwise. */
export function specText(value: unknown): string | null {
  if (isSpec(value)) return `${SHORT[value.dtype] ?? value.dtype}[${value.shape.join(', ')}]`
  if (Array.isArray(value)) return `(${value.map((v) => specText(v) ?? '?').join(', ')})`
  return null
}

/** What a node's meta says of its value: `val`, else `tensor_meta`, else `example_value`. */
export function nodeSpec(node: Node): unknown {
  return node.meta['val'] ?? node.meta['tensor_meta'] ?? node.meta['example_value']
}

/** `  // f32[2, 3]`, or '' when nothing is known. */
export function annotation(node: Node): string {
  const text = specText(nodeSpec(node))
  return text === null ? '' : `  // ${text}`
}
