// A value in an error message.
import { classText, isClass, isModule } from './kinds.ts'
import { isTensorLike } from './tensorLike.ts'

const LONGEST = 40

const shortened = (text: string): string => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text)

const article = (name: string): string => (/^[AEIOUaeiou](?![A-Z])/.test(name) ? 'an' : 'a')

/** What a value is, in a few words: `'abc'`, `3`, `[1, 2]`, `a Tensor of shape [2, 3]`, `the class Linear`, `an object`. */
export function valueText(value: unknown): string {
  if (isModule(value)) return objectText(value)
  switch (typeof value) {
    case 'string':
      return `'${shortened(value)}'`
    case 'bigint':
      return `${shortened(String(value))}n`
    case 'function':
      return isClass(value) ? `the class ${value.name}` : 'a function'
    case 'object':
      return value === null ? 'null' : objectText(value)
    default:
      return String(value)
  }
}

function objectText(value: object): string {
  if (Array.isArray(value)) {
    const summary = `an array of length ${value.length}`
    // Each element takes a character at least, so a longer array need not be read.
    if (value.length >= LONGEST) return summary
    const items = value.map((item: unknown) => (Array.isArray(item) ? 'an array' : valueText(item)))
    const text = `[${items.join(', ')}]`
    return text.length > LONGEST ? summary : text
  }
  if (isTensorLike(value)) return `a ${classText(value)} of shape [${value.shape.join(', ')}]`
  if (value instanceof Promise) return 'a Promise (write await before it)'
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) return 'an object'
  const name = classText(value)
  return `${article(name)} ${name}`
}
