// The one place where strings become JavaScript source. Names, paths and values may come from an untrusted file: everything that is written into generated code, into
// repro scripts and into folders of code goes through these functions, so that it stays a name or a value.
import { isPlainObject } from './plainObject.ts'

/** Whether a name can be written after a dot or as a key: an ASCII identifier, possibly a reserved word. */
export const isIdentifier = (name: string): boolean => /^[A-Za-z_$][\w$]*$/.test(name)

/** A string in single quotes. */
export function quote(text: string): string {
  const body = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")
  return `'${body.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')}'`
}

/** The key of a property in an object literal or a pattern: `scale`, `'a-b'`. */
export const propertyKey = (key: string): string => (key === '__proto__' ? "['__proto__']" : isIdentifier(key) ? key : quote(key))

/** The access to a member, which follows the object: `.conv`, `[0]`, `['a-b']`. */
export const memberAccess = (name: string): string => (isIdentifier(name) ? `.${name}` : `[${/^(0|[1-9]\d*)$/.test(name) ? name : quote(name)}]`)

/** A text as the rest of a `//` comment: in one line. */
export const lineComment = (text: string): string => text.replace(/[\n\r\u2028\u2029]+/g, ' ')

/** A text within a comment in slashes and stars: in one line, and without the end of the comment. */
export const blockComment = (text: string): string => lineComment(text).replaceAll('*/', '* /')

/** The literal of a number, a string, a boolean, null, undefined, or a bigint. Null for any other value. */
export function scalarLiteral(value: unknown): string | null {
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value)
  if (typeof value === 'bigint') return `${value}n`
  return value === null || value === undefined || typeof value === 'boolean' ? String(value) : null
}

/** The literal of a scalar, or of an array or plain object of literals. Null if the value has none. */
export function literal(value: unknown): string | null {
  const scalar = scalarLiteral(value)
  if (scalar !== null) return scalar
  if (Array.isArray(value)) {
    const items = value.map(literal)
    return items.includes(null) ? null : `[${items.join(', ')}]`
  }
  if (!isPlainObject(value)) return null
  const entries: string[] = []
  for (const [key, item] of Object.entries(value)) {
    const text = literal(item)
    if (text === null) return null
    entries.push(`${propertyKey(key)}: ${text}`)
  }
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`
}
