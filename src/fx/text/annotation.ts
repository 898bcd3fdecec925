// What is known about a node's value, as a comment after its line: `// f32[2, 3]`.
import { environmentVariable, isSymbolic } from '../../protocol/index.ts'
import type { SpecOptions } from '../graph/graphText.ts'
import { isTensorRecord, knownValue } from '../graph/nodeValue.ts'
import type { Node } from '../graph/node.ts'

/** `float32` -> `f32`, `bfloat16` -> `bf16`, `float8_e4m3fn` -> `f8e4m3fn`, `bool` -> `b8`. PyTorch's dtype_abbrs. */
const shortDtype = (dtype: string): string => (dtype === 'bool' ? 'b8' : dtype.replace(/^(bf|[cfiu])[a-z]+(\d+)_?/, '$1$2'))

const isSwitchedOn = (name: 'SHOW_STRIDE' | 'SHOW_DEVICE'): boolean => environmentVariable(`TENSORFX_FX_GRAPH_${name}`) === '1'

/** The options, with defaults from the environment. */
export function withEnvironment<O extends SpecOptions>(options: O): O & Required<SpecOptions> {
  return {
    ...options,
    includeStride: options.includeStride ?? isSwitchedOn('SHOW_STRIDE'),
    includeDevice: options.includeDevice ?? isSwitchedOn('SHOW_DEVICE'),
  }
}

/** A size, a stride or a device. Meta may come from a file, where they can be anything. A symbol is asked for its text, since `String` would read its number. */
const partText = (part: unknown): string => (isSymbolic(part) ? part.toString() : typeof part === 'object' ? '?' : String(part))

/** `f32[s0, 3]` for a tensor or anything else with a shape and a dtype, `(f32[2], f32[3])` for an array of them, `Sym(s0)` for a symbolic number, null for other values. */
export function specText(value: unknown, options: SpecOptions = {}): string | null {
  if (isTensorRecord(value)) {
    const stride = options.includeStride === true && Array.isArray(value.strides) ? `[${value.strides.map(partText).join(', ')}]` : ''
    const device = options.includeDevice === true && value.device !== undefined ? partText(value.device) : ''
    return `${shortDtype(value.dtype)}[${value.shape.map(partText).join(', ')}]${stride}${device}`
  }
  if (Array.isArray(value)) {
    const parts = value.map((v) => specText(v, options))
    return parts.some((p) => p !== null) ? `(${parts.map((p) => p ?? '?').join(', ')})` : null
  }
  if (isSymbolic(value)) return `Sym(${value.toString()})`
  return null
}

/** The annotation of a node: `f32[2, 3]`, else its type, else null. */
export function annotation(node: Node, options: SpecOptions = {}): string | null {
  return specText(knownValue(node), options) ?? (node.type === null ? null : String(node.type))
}
