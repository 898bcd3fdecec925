// Types of values as TypeScript writes them: from a node's type, which may be a text of PyTorch's (`Optional[List[torch.Tensor]]`), or from what is noted of its value.
import { nodeSpec } from './annotation.ts'
import type { Node } from './node.ts'

const NAMES: Readonly<Record<string, string>> = {
  int: 'number',
  float: 'number',
  Number: 'number',
  bool: 'boolean',
  str: 'string',
  None: 'null',
  NoneType: 'null',
  Any: 'any',
  list: 'any[]',
  List: 'any[]',
  tuple: 'any[]',
  Tuple: 'any[]',
  dict: 'Record<string, any>',
  Dict: 'Record<string, any>',
}

/** A type as TypeScript writes it; what is no type of Python's stays as it is. */
export function typescriptType(text: string): string {
  const type = text.trim().replace(/^(?:typing|torch|builtins)\./, '')
  const union = splitTop(type, '|')
  if (union.length > 1) return union.map(typescriptType).join(' | ')
  const generic = /^(\w+)\[(.+)\]$/s.exec(type)
  if (generic === null) return NAMES[type] ?? type
  const [, name = '', inner = ''] = generic
  const args = splitTop(inner, ',').map((arg) => arg.trim())
  switch (name.toLowerCase()) {
    case 'list':
      return arrayOf(typescriptType(inner))
    case 'tuple':
      if (args.length === 2 && args[1] === '...') return arrayOf(typescriptType(args[0] as string))
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

const arrayOf = (item: string): string => (/[ |]/.test(item) ? `(${item})[]` : `${item}[]`)

/** Parts between separators that stand in no brackets. */
function splitTop(text: string, separator: string): string[] {
  const parts: string[] = []
  let depth = 0
  let start = 0
  for (let i = 0; i < text.length; i++) {
    if ('[(<{'.includes(text[i] as string)) depth++
    else if ('])>}'.includes(text[i] as string)) depth--
    else if (text[i] === separator && depth === 0) {
      parts.push(text.slice(start, i))
      start = i + 1
    }
  }
  return [...parts, text.slice(start)]
}

/** The type of a node's value: its own, else from its notes, else from its default; null when nothing is known. */
export function valueType(node: Node): string | null {
  if (node.type !== null) return typescriptType(node.type)
  return noteType(nodeSpec(node)) ?? (node.op === 'placeholder' && node.args.length > 0 ? noteType(node.args[0]) : null)
}

function noteType(note: unknown): string | null {
  if (typeof note === 'number' || typeof note === 'boolean' || typeof note === 'string') return typeof note
  if (typeof note !== 'object' || note === null) return null
  if (Array.isArray(note)) {
    const items = note.map(noteType)
    return items.length === 0 || items.includes(null) ? null : `[${items.join(', ')}]`
  }
  return 'shape' in note && 'dtype' in note ? 'Tensor' : null
}
