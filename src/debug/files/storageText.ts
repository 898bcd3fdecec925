// The bytes of a storage as source text: numbers that can be read if there are few, base64 otherwise. Both give the same bits back.
import { ArgumentError } from '../../errors/index.ts'
import { dtypeInfo, isComplexDType, readElement } from '../../kernels/index.ts'
import type { DType, ElementValue } from '../../kernels/index.ts'
import { scalarLiteral } from '../../protocol/index.ts'
import { tensorFromValues } from '../../tensor/index.ts'

/** A storage with more elements is written in base64. */
const MOST_LITERALS = 16

/** Characters of base64 in a line. */
const LINE = 100

/** What a script can hold as an element: booleans for bool, bigints for large int64. */
export type ElementLiteral = number | bigint | boolean

/** The bytes as a list of literals of that dtype; null if there are too many, for complex numbers, or if a literal would not give the same bits (a NaN with a payload). */
export function literalsOf(bytes: Uint8Array, dtype: DType): string | null {
  const { size, array } = dtypeInfo[dtype]
  const count = bytes.length / size
  if (isComplexDType(dtype) || !Number.isInteger(count) || count > MOST_LITERALS) return null
  const data = new array(bytes.slice().buffer)
  const texts: string[] = []
  for (let i = 0; i < count; i++) {
    const value = readElement(dtype, data, i)
    const text = value === undefined ? null : literalOf(value, dtype, bytes.subarray(i * size, (i + 1) * size))
    if (text === null) return null
    texts.push(text)
  }
  return `[${texts.join(', ')}]`
}

/** The element that all of the bytes repeat, and how often, as literals; null if they are not one element, or one that has no literal. */
export function repeatedLiteral(bytes: Uint8Array, dtype: DType): { readonly count: number; readonly literal: string } | null {
  const { size, array } = dtypeInfo[dtype]
  const count = bytes.length / size
  if (isComplexDType(dtype) || !Number.isInteger(count) || count <= MOST_LITERALS) return null
  for (let i = size; i < bytes.length; i++) if (bytes[i] !== bytes[i - size]) return null
  const first = bytes.slice(0, size)
  const value = readElement(dtype, new array(first.buffer), 0)
  const literal = value === undefined ? null : literalOf(value, dtype, first)
  return literal === null ? null : { count, literal }
}

/** The shortest literal that gives these bytes; null if none does. */
function literalOf(value: ElementValue, dtype: DType, bytes: Uint8Array): string | null {
  const isExact = (literal: ElementLiteral): boolean => isSame(bytesOf([literal], dtype), bytes)
  if (dtype === 'bool') return isExact(value !== 0) ? String(value !== 0) : null
  if (typeof value === 'bigint') {
    const number = Number(value)
    return Number.isSafeInteger(number) ? String(number) : `${value}n`
  }
  if (dtypeInfo[dtype].floating && Number.isFinite(value))
    for (let digits = 1; digits < 17; digits++) {
      const short = Number(value.toPrecision(digits))
      if (isExact(short)) return scalarLiteral(short)
    }
  // A NaN that was read keeps its payload, which the literal has not.
  const plain = Number.isNaN(value) ? NaN : value
  return isExact(plain) ? scalarLiteral(plain) : null
}

const isSame = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, i) => byte === b[i])

/** The bytes of elements of a dtype. */
export function bytesOf(values: readonly ElementLiteral[], dtype: DType): Uint8Array {
  const numbers = values.map((value) => (typeof value === 'boolean' ? Number(value) : value))
  return tensorFromValues(numbers, [numbers.length], dtype).realize().readBytes()
}

/** The bytes as a string literal in base64, in several lines if it is long. */
export function base64Literal(bytes: Uint8Array): string {
  let binary = ''
  for (let at = 0; at < bytes.length; at += 8192) binary += String.fromCharCode(...bytes.subarray(at, at + 8192))
  const text = btoa(binary)
  if (text.length <= LINE) return `'${text}'`
  const lines: string[] = []
  for (let at = 0; at < text.length; at += LINE) lines.push(`'${text.slice(at, at + LINE)}'`)
  return lines.join(' +\n  ')
}

/** The bytes that a text in base64 stands for. Throws ArgumentError for any other text. */
export function bytesOfBase64(text: string): Uint8Array {
  let binary: string
  try {
    binary = atob(text)
  } catch (error) {
    throw new ArgumentError('reader.bytes: the text is not base64; the script is damaged.', { cause: error })
  }
  return Uint8Array.from(binary, (char) => char.charCodeAt(0))
}
