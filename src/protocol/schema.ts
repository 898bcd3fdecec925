// PyTorch's schema language, parsed: `softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor`.
// The operator table declares its operators in it. Argument checks, normalization and printing read the result; ops/define/schemaTypes.ts reads the same language
// at type level.
import { ArgumentError } from '../errors/index.ts'
import { camelCase } from './names.ts'

const BASES = ['Tensor', 'Scalar', 'int', 'float', 'bool', 'str', 'ScalarType', 'Generator', 'any'] as const

/** A base type with its modifiers: `Tensor[]` is a list, `int?` is optional, `Tensor(a!)` is mutated. */
export interface SchemaType {
  readonly base: (typeof BASES)[number]
  /** Whether the schema writes SymInt for int: the integer may be a size of a tensor, so a captured graph may have it as an input. */
  readonly isSize: boolean
  readonly list: boolean
  readonly optional: boolean
  readonly mutated: boolean
}

/** A default value as schemas write it. */
export type SchemaDefault = number | string | boolean | null | readonly SchemaDefault[]

/** An argument of a schema. */
export interface SchemaArgument {
  /** In camelCase, as the options object spells it. */
  readonly name: string
  readonly type: SchemaType
  /** Whether it comes after `*`: an option, which PyTorch takes by name only. */
  readonly kwargOnly: boolean
  readonly hasDefault: boolean
  /** undefined if there is none. */
  readonly default: SchemaDefault | undefined
}

/** The schema of an operator, parsed. */
export interface FunctionSchema {
  readonly name: string
  readonly overload: string
  readonly args: readonly SchemaArgument[]
  readonly returns: readonly SchemaType[]
  /** The text it was parsed from. */
  readonly text: string
}

function parseType(text: string, schema: string): SchemaType {
  const match = /^(\w+)(\([^)]*\))?(\[\d*\])?(\?)?$/.exec(text.trim())
  if (match === null) throw new ArgumentError(`parseSchema: cannot read the type '${text}' in '${schema}'.`)
  const isSize = match[1] === 'SymInt'
  const base = isSize ? 'int' : BASES.find((known) => known === match[1])
  if (base === undefined) throw new ArgumentError(`parseSchema: unknown type '${text}' in '${schema}'; known are ${BASES.join(', ')}.`)
  return { base, isSize, list: match[3] !== undefined, optional: match[4] !== undefined, mutated: (match[2] ?? '').includes('!') }
}

function parseDefault(text: string): SchemaDefault {
  if (text === 'None') return null
  if (text === 'True') return true
  if (text === 'False') return false
  if (text.startsWith('['))
    return text
      .slice(1, -1)
      .split(',')
      .filter((s) => s.trim() !== '')
      .map((s) => parseDefault(s.trim()))
  if (/^["'].*["']$/.test(text)) return text.slice(1, -1)
  if (text === 'inf') return Infinity
  if (text === '-inf') return -Infinity
  const value = Number(text)
  return Number.isNaN(value) ? text : value
}

function splitTop(text: string): string[] {
  const parts: string[] = []
  let depth = 0
  let start = 0
  for (let i = 0; i < text.length; i++) {
    const c = text[i]
    if (c === '[' || c === '(') depth++
    else if (c === ']' || c === ')') depth--
    else if (c === ',' && depth === 0) {
      parts.push(text.slice(start, i))
      start = i + 1
    }
  }
  parts.push(text.slice(start))
  return parts.map((p) => p.trim()).filter((p) => p !== '')
}

/** Parses one schema; argument names come out in camelCase. Throws ArgumentError, with the text, if it cannot be read. */
export function parseSchema(text: string): FunctionSchema {
  if (typeof text !== 'string') throw new ArgumentError(`parseSchema: expected a text such as 'relu(Tensor self) -> Tensor', got ${typeof text}.`)
  const match = /^(?:\w+::)?(\w+)(?:\.(\w+))?\((.*)\)\s*->\s*(.+)$/s.exec(text.trim())
  if (match === null) throw new ArgumentError(`parseSchema: expected 'name(arguments) -> returns', got '${text}'.`)
  let kwargOnly = false
  const args: SchemaArgument[] = []
  for (const part of splitTop(match[3] ?? '')) {
    if (part === '*') {
      kwargOnly = true
      continue
    }
    const arg = /^(.+?)\s+(\w+)(?:\s*=\s*(.+))?$/s.exec(part)
    if (arg === null) throw new ArgumentError(`parseSchema: cannot read the argument '${part}' in '${text}'.`)
    args.push({
      name: camelCase(arg[2] ?? ''),
      type: parseType(arg[1] ?? '', text),
      kwargOnly,
      hasDefault: arg[3] !== undefined,
      default: arg[3] === undefined ? undefined : parseDefault(arg[3]),
    })
  }
  const ret = (match[4] ?? '').trim()
  const returns = (ret.startsWith('(') ? splitTop(ret.slice(1, -1)) : [ret]).map((r) => parseType(r.split(' ')[0] ?? '', text))
  return { name: match[1] ?? '', overload: match[2] ?? '', args, returns, text: text.trim() }
}
