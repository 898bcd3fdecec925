// TypeScript types in generated code: the type of a node's value, taken from the node's type, which may be in Python's notation (`Optional[List[torch.Tensor]]`), or
// from what its meta says about the value; and the head of the function, which states the types of the parameters and the result.
import { blockComment, entryOf } from '../../protocol/index.ts'
import type { TypeStyle } from '../graph/graphText.ts'
import type { Node } from '../graph/node.ts'
import { knownValue } from '../graph/nodeValue.ts'

const NAMES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries({
    number: 'int float Number',
    boolean: 'bool',
    string: 'str',
    null: 'None NoneType',
    any: 'Any',
    'any[]': 'list List tuple Tuple',
    'Record<string, any>': 'dict Dict',
  }).flatMap(([type, names]) => names.split(' ').map((name) => [name, type])),
)

/** Translates a Python type to TypeScript; any other text stays unchanged. */
export function typescriptType(text: string): string {
  const type = text.trim().replace(/^(?:typing|torch|builtins)\./, '')
  const union = splitTop(type, '|')
  if (union.length > 1) return union.map(typescriptType).join(' | ')
  const generic = /^(\w+)\[(.+)\]$/s.exec(type)
  if (generic === null) return entryOf(NAMES, type) ?? type
  const [, name = '', inner = ''] = generic
  const args = splitTop(inner, ',').map((arg) => arg.trim())
  switch (name.toLowerCase()) {
    case 'list':
      return arrayOf(typescriptType(inner))
    case 'tuple':
      if (args.length === 2 && args[1] === '...') return arrayOf(typescriptType(args[0] ?? ''))
      return inner === '()' ? '[]' : `[${args.map(typescriptType).join(', ')}]`
    case 'optional':
      return `${typescriptType(inner)} | null`
    case 'union':
      return args.map(typescriptType).join(' | ')
    case 'dict':
      return `Record<${args.map(typescriptType).join(', ')}>`
    default:
      return type
  }
}

/** An array type. */
const arrayOf = (item: string): string => (/[ |]/.test(item) ? `(${item})[]` : `${item}[]`)

/** Splits a text at separators that are not inside brackets. */
function splitTop(text: string, separator: string): string[] {
  const parts: string[] = []
  let depth = 0
  let start = 0
  for (let i = 0; i < text.length; i++) {
    const character = text.charAt(i)
    if ('[(<{'.includes(character)) depth++
    else if ('])>}'.includes(character)) depth--
    else if (character === separator && depth === 0) {
      parts.push(text.slice(start, i))
      start = i + 1
    }
  }
  return [...parts, text.slice(start)]
}

/** Whether a text stays a type where a type is written: its brackets match, and outside of them nothing ends the type. */
function confined(type: string): boolean {
  const open: string[] = []
  for (const character of type.replaceAll(/=>|'[\w -]*'|"[\w -]*"/g, '')) {
    const at = '[(<{'.indexOf(character)
    if (at >= 0) open.push('])>}'.charAt(at))
    else if ('])>}'.includes(character)) {
      if (open.pop() !== character) return false
    } else if (/["'`/\\\n\r\u2028\u2029]/.test(character) || (open.length === 0 && /[,;=]/.test(character))) return false
  }
  return open.length === 0
}

/** The type of a node's value: the node's own type, else from its meta, else from its default; null if unknown. */
export function valueType(node: Node): string | null {
  if (node.type !== null) {
    const type = typeof node.type === 'string' ? typescriptType(node.type) : node.type.typescript
    return confined(type) ? type : 'any'
  }
  return typeOfValue(knownValue(node)) ?? (node.op === 'placeholder' && node.args.length > 0 ? typeOfValue(node.args[0]) : null)
}

/** The type of a value, or of a tensor's metadata; null for other objects. */
function typeOfValue(value: unknown): string | null {
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string') return typeof value
  if (typeof value !== 'object' || value === null) return null
  if (Array.isArray(value)) {
    const items = value.map(typeOfValue)
    return items.length === 0 || items.includes(null) ? null : `[${items.join(', ')}]`
  }
  return 'shape' in value && 'dtype' in value ? 'Tensor' : null
}

/** The types that the head of a function states. */
export interface HeadTypes {
  readonly style: TypeStyle
  /** The TypeScript type of each parameter; null if unknown. */
  readonly parameters: readonly (string | null)[]
  /** The TypeScript type of the result; null if unknown. */
  readonly returns: string | null
  /** Whether the body reads attributes of the module, whose class is not known here. */
  readonly usesThis: boolean
}

/**
 * The head of a function: `function forward(x: Tensor, y: number = 2): Tensor {`. The parameters are texts such as `x`, `y = 2`, `...rest` and
 * `{ a, b = 1 } = {}`; a name may be followed by a comment.
 */
export function writeHead(name: string, parameters: readonly string[], types: HeadTypes | null): string {
  if (types === null) return `function ${name}(${parameters.join(', ')}) {`
  if (types.style === 'jsdoc') return `${docComment(parameters, types)}function ${name}(${parameters.join(', ')}) {`
  const typed = parameters.map((text, i) => typedParameter(text, types.parameters[i] ?? 'any'))
  if (types.usesThis) typed.unshift('this: any')
  return `function ${name}(${typed.join(', ')})${types.returns === null ? '' : `: ${types.returns}`} {`
}

function typedParameter(text: string, type: string): string {
  if (text.startsWith('{')) return text.replace(/\}(?: = \{\})?$/, (end) => `}: ${type}${end.slice(1)}`)
  return text.replace(/^(\.{3})?[\w$]+/, (name, rest) => `${name}: ${rest === undefined ? type : arrayOf(type)}`)
}

function docComment(parameters: readonly string[], types: HeadTypes): string {
  const lines = parameters.map((text, i) => ` * @param ${docParameter(text, types.parameters[i] ?? 'any')}`)
  if (types.returns !== null) lines.push(` * @returns {${types.returns}}`)
  return lines.length === 0 ? '' : ['/**', ...lines, ' */', ''].join('\n')
}

function docParameter(text: string, type: string): string {
  if (text.startsWith('{')) return `{${type}} [options]`
  if (text.startsWith('...')) return `{...${type}} ${text.slice(3).replace(/ .*/s, '')}`
  const [, name = '', fallback] = /^([\w$]+)(?: \/\*.*?\*\/)?(?: = (.*))?$/s.exec(text) ?? []
  return fallback === undefined ? `{${type}} ${name}` : `{${type}} [${name}=${blockComment(fallback)}]`
}
