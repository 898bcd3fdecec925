// Straight-line C code. A value is a vector of 1, 2, 4, 8 or 16 elements in a variable of its own: those of 32 bits as integers that hold their bits (masks are 0 or -1), int64 as such, and
// float64. One element is a scalar, which becomes a vector where the other operand is one. The functions that it calls are those of library.ts.
import type { LaneBinary, LaneCode, LaneShift, LaneUnary } from '../wasm/laneCode.ts'

/** How many elements a vector has, a power of two up to 16; 1 for a scalar. */
export type Width = number

/** The widths of vectors, the greatest first. */
export const WIDTHS: readonly Width[] = [16, 8, 4, 2, 1]

/** What a value's elements are: bits of 32, int64, or float64. */
export type CKind = 'i' | 'l' | 'd'

/** A value: the variable that holds it, or an expression without effects. */
export interface CVal {
  readonly text: string
  readonly kind: CKind
  readonly width: Width
}

const floatBits = new DataView(new ArrayBuffer(8))

/** The C type of a vector. */
export const typeOf = (kind: CKind, width: Width): string => `${kind}${width}`

/** The functions of instructions are named after them. */
const functionOf = (instruction: string): string => instruction.replace('.', '_')

/** The body of a C function while it is written. */
export class CCode implements LaneCode<CVal> {
  readonly #lines: string[] = []
  #count = 0
  #indent = '  '

  /** A line as it is. */
  line(text: string): void {
    this.#lines.push(this.#indent + text)
  }

  /** A block: a loop, a condition, or only a scope of names. */
  block(head: string, body: () => void): void {
    this.line(head === '' ? '{' : `${head} {`)
    this.#indent += '  '
    body()
    this.#indent = this.#indent.slice(2)
    this.line('}')
  }

  /** A name that nothing else has. */
  name(prefix: string): string {
    return `${prefix}${this.#count++}`
  }

  /** The value of an expression, computed here. */
  let(kind: CKind, width: Width, expression: string): CVal {
    const text = this.name('t')
    this.line(`const ${typeOf(kind, width)} ${text} = ${expression};`)
    return { text, kind, width }
  }

  /** A variable that code may change. */
  variable(kind: CKind, width: Width, start: CVal): CVal {
    const text = this.name('v')
    this.line(`${typeOf(kind, width)} ${text} = ${this.widened(start, width).text};`)
    return { text, kind, width }
  }

  assign(target: CVal, value: CVal): void {
    this.line(`${target.text} = ${this.widened(value, target.width).text};`)
  }

  /** A value as a vector: a scalar is repeated. */
  widened(value: CVal, width: Width): CVal {
    return value.width === width ? value : { ...value, width, text: `splat_${typeOf(value.kind, width)}(${value.text})` }
  }

  /** A call of a function of the library, for the widest of the operands. */
  call(name: string, kind: CKind, ...operands: readonly CVal[]): CVal {
    const width = Math.max(...operands.map((operand) => operand.width))
    return this.let(kind, width, `${name}_${width}(${operands.map((operand) => this.widened(operand, width).text).join(', ')})`)
  }

  /** Neighbours of a vector, or one element. */
  part(value: CVal, from: number, width: Width): CVal {
    if (width === value.width) return value
    if (width === 1) return this.let(value.kind, 1, `${value.text}[${from}]`)
    const places = Array.from({ length: width }, (_, lane) => from + lane).join(', ')
    return this.let(value.kind, width, `__builtin_shufflevector(${value.text}, ${value.text}, ${places})`)
  }

  /** A vector of scalars. */
  vector(kind: CKind, elements: readonly string[]): CVal {
    const width = elements.length
    return this.let(kind, width, width === 1 ? (elements[0] ?? '0') : `(${typeOf(kind, width)}){${elements.join(', ')}}`)
  }

  /** The text of an element of a value. */
  element({ text, width }: CVal, lane: number): string {
    return width === 1 ? text : `${text}[${lane}]`
  }

  f32(value: number): CVal {
    floatBits.setFloat32(0, value)
    return this.i32(floatBits.getInt32(0))
  }

  i32(value: number): CVal {
    return { text: `(i1)0x${(value >>> 0).toString(16)}u`, kind: 'i', width: 1 }
  }

  i64(value: bigint): CVal {
    return { text: `(l1)0x${BigInt.asUintN(64, value).toString(16)}ull`, kind: 'l', width: 1 }
  }

  f64(value: number): CVal {
    floatBits.setFloat64(0, value)
    return { text: `D1((l1)0x${floatBits.getBigUint64(0).toString(16)}ull)`, kind: 'd', width: 1 }
  }

  op1(name: LaneUnary, a: CVal): CVal {
    return this.call(functionOf(name), 'i', a)
  }

  op2(name: LaneBinary, a: CVal, b: CVal): CVal {
    return this.call(functionOf(name), 'i', a, b)
  }

  /** An instruction of any type; comparisons yield masks of 32 bits. */
  instruction(name: string, ...operands: readonly CVal[]): CVal {
    const kind = operands[0]?.kind ?? 'i'
    const base = functionOf(name)
    if (name.startsWith('v128.')) return this.call(kind === 'i' ? base : `${base}_${kind}`, kind, ...operands)
    return this.call(base, /^(eq|ne|l[te]|g[te])(_s)?$/.test(name.slice(name.indexOf('.') + 1)) ? 'i' : kind, ...operands)
  }

  mulAdd(a: CVal, b: CVal, c: CVal): CVal {
    return this.call('mulAdd', 'i', a, b, c)
  }

  subMul(a: CVal, b: CVal, c: CVal): CVal {
    return this.call('subMul', 'i', a, b, c)
  }

  select(mask: CVal, a: CVal, b: CVal): CVal {
    return this.call(`select_${a.kind}`, a.kind, mask, a, b)
  }

  shift(name: LaneShift, a: CVal, count: number): CVal {
    return this.call(functionOf(name), 'i', a, this.i32(count))
  }

  scope<T extends CVal>(body: () => T): T {
    return body()
  }

  text(): string {
    return this.#lines.join('\n')
  }
}
