// Types as text, which is how nodes have them: `Tuple[int, Tensor]`, `list[int]`, and TypeScript's `[number, Tensor]` and `Tensor[]`. What they are made of, and which of
// them accept which others. PyTorch's torch.fx.operator_schemas.
import { checkArgument, checkCount, checkString, entryOf } from '../../protocol/index.ts'
import { isTuple } from '../graph/pythonValues.ts'

/** The outermost level of a type: `List[int]` is a `list` of `int`. */
export interface TypeExpression {
  readonly kind: 'list' | 'tuple' | 'optional' | 'union' | 'other'
  /** The texts of the types in it. */
  readonly args: readonly string[]
}

const KINDS: Readonly<Record<string, TypeExpression['kind']>> = {
  tuple: 'tuple',
  optional: 'optional',
  union: 'union',
  list: 'list',
  array: 'list',
  readonlyarray: 'list',
}

/** Reads the outermost level of a type. */
export function parseType(type: string): TypeExpression {
  const text = type.trim().replace(/^readonly\s+/, '')
  if (text.endsWith('[]')) return { kind: 'list', args: [text.slice(0, -2)] }
  const match = /^(?:typing\.)?(\w*)([[<])([^]*)[\]>]$/.exec(text)
  if (match === null) return { kind: 'other', args: [] }
  const [, name = '', bracket, inside = ''] = match
  const kind = name === '' && bracket === '[' ? 'tuple' : (entryOf(KINDS, name.toLowerCase()) ?? 'other')
  return { kind, args: splitTypes(inside) }
}

/** The parts between the commas that are in no brackets. */
function splitTypes(text: string): string[] {
  const parts: string[] = []
  let [depth, from] = [0, 0]
  for (let i = 0; i < text.length; i++) {
    const c = text.charAt(i)
    if ('[<({'.includes(c)) depth++
    else if (']>)}'.includes(c)) depth--
    else if (c === ',' && depth === 0) {
      parts.push(text.slice(from, i).trim())
      from = i + 1
    }
  }
  const last = text.slice(from).trim()
  return last === '' ? parts : [...parts, last]
}

/** The types of which each type is a special case. */
const BASES: Readonly<Record<string, readonly string[]>> = {
  bool: ['int', 'number'],
  int: ['number'],
  float: ['number'],
  dtype: ['int'],
  Parameter: ['Tensor'],
}

const shortName = (type: string): string => type.trim().split('.').at(-1) ?? type

/** Whether a plain type is another one, or a special case of it. */
function isSubtype(type: string, base: string): boolean {
  const [name, wanted] = [shortName(type), shortName(base)]
  return name === wanted || (entryOf(BASES, name) ?? []).includes(wanted.toLowerCase() === 'number' ? 'number' : wanted)
}

/**
 * Whether a parameter of type `signatureType` takes an argument of type `argumentType`, both as text. A list takes lists of special cases of its element type, tuples with
 * equal elements, and a single element; `Optional` and `Union` take what one of their types takes. PyTorch's type_matches.
 *
 *     typeMatches('List[int]', 'Tuple[int, int]')  // true
 */
export function typeMatches(signatureType: string, argumentType: string): boolean {
  checkString('typeMatches', 'signatureType', signatureType)
  checkString('typeMatches', 'argumentType', argumentType)
  if (signatureType === argumentType) return true
  const wanted = parseType(signatureType)
  if (wanted.kind === 'union') return wanted.args.some((type) => typeMatches(type, argumentType))
  if (wanted.kind === 'optional')
    return argumentType === 'None' || argumentType === 'null' || wanted.args.some((type) => typeMatches(type, argumentType))
  if (wanted.kind !== 'list') return isSubtype(argumentType, signatureType)
  const [element = 'Any'] = wanted.args
  const given = parseType(argumentType)
  if (given.kind === 'list') return given.args.length > 0 && given.args.every((type) => isSubtype(type, element))
  if (given.kind === 'tuple') return given.args.length > 0 && given.args.every((type) => type === '...' || isSubtype(type, element))
  return shortName(argumentType) === shortName(element)
}

/**
 * The type of a list or tuple with elements of these types: `list[int]` for `['int', 'int']`, `tuple[int, ...]` for `fx.tuple('int', 'int')`; `Any` if no type takes all
 * elements. A type alone is returned as it is. PyTorch's create_type_hint.
 */
export function createTypeHint(types: string | readonly string[]): string {
  checkCount('createTypeHint', arguments, 1)
  checkArgument(
    typeof types === 'string' || (Array.isArray(types) && types.every((type) => typeof type === 'string')),
    'createTypeHint',
    'types',
    'a type or an array of types',
    types,
  )
  if (typeof types === 'string') return types
  let common = types[0] ?? 'Any'
  for (const type of types) {
    if (isSubtype(type, common)) continue
    common = isSubtype(common, type) ? type : 'Any'
    if (common === 'Any') break
  }
  return isTuple(types) ? `tuple[${common}, ...]` : `list[${common}]`
}
