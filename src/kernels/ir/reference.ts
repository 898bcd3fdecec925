// A slow interpreter of the loop IR over typed arrays. It defines what emitted code must compute: tests compare with it, and it helps to debug kernels.
import { ExprFacts, effectsOf, operandDType } from './analysis.ts'
import { dtypeInfo } from '../numbers/dtype.ts'
import type { DType, ElementValue, StorageArray } from '../numbers/dtype.ts'
import { readElement, writeElement } from '../numbers/elements.ts'
import { KernelError } from './errors.ts'
import type {
  ArrayPlace,
  Combine,
  Expr,
  ForStmt,
  Index,
  Kernel,
  Local,
  LocalArray,
  LoopVar,
  Memory,
  Scratch,
  Size,
  Stmt,
  Variable,
} from './loopIr.ts'
import { converted, rounded } from '../numbers/numbers.ts'
import { scalarOperation } from '../scalars/scalarOps.ts'
import { sizeValue } from './sizes.ts'

/** Arguments of a reference run, by parameter name: typed arrays for buffers, numbers for sizes and scalars. */
export type ReferenceArgs = Readonly<Record<string, StorageArray | number>>

/** Runs a kernel on typed arrays, one element at a time. Throws KernelError for a missing argument and for an access outside a buffer. */
export function runReference(kernel: Kernel, args: ReferenceArgs): void {
  new Interpreter(kernel, args).body(kernel.body)
}

class Interpreter {
  private readonly kernel: Kernel
  private readonly args: ReferenceArgs
  private readonly loops = new Map<LoopVar, number>()
  private readonly locals = new Map<Local, ElementValue>()
  private readonly arrays = new Map<LocalArray, ElementValue[]>()
  private readonly scratch = new Map<Scratch, StorageArray>()
  private readonly memos: Map<Expr, ElementValue>[] = [new Map()]
  private readonly facts = new ExprFacts()

  constructor(kernel: Kernel, args: ReferenceArgs) {
    this.kernel = kernel
    this.args = args
    this.spoil('call')
    this.spoil('thread')
  }

  /** Scratch memory holds anything at first; here NaN, or -1 in integers, so that it shows where a kernel reads what it has not written. */
  private spoil(per: Scratch['per']): void {
    for (const part of this.kernel.scratch ?? []) {
      if (part.per !== per) continue
      const data = new dtypeInfo[part.dtype].array(this.size(part.elements))
      new Uint8Array(data.buffer).fill(0xff)
      this.scratch.set(part, data)
    }
  }

  body(stmts: readonly Stmt[]): void {
    for (const stmt of stmts) this.statement(stmt)
  }

  private fail(message: string): never {
    throw new KernelError(`kernel ${this.kernel.name}: ${message}`)
  }

  private statement(stmt: Stmt): void {
    switch (stmt.kind) {
      case 'for':
        return this.iterate(stmt)
      case 'declareArray': {
        this.arrays.set(stmt.array, new Array<ElementValue>(sizeOf(stmt.array)).fill(this.value(stmt.init)))
        return this.forget(stmt.array)
      }
      case 'setElement': {
        const value = this.value(stmt.value)
        const { elements, at } = this.place(stmt.array, stmt.place)
        elements[at] = value
        return this.forget(stmt.array)
      }
      case 'declare':
        return this.write(stmt.local, this.value(stmt.init))
      case 'assign':
        return this.write(stmt.local, this.value(stmt.value))
      case 'accumulate':
        return this.write(stmt.local, combined(stmt.combine, stmt.local.dtype, this.local(stmt.local), this.value(stmt.value)))
      default: {
        const value = this.value(stmt.value)
        const { data, at, present } = this.element(stmt.buffer, stmt.index)
        const { dtype } = stmt.buffer
        writeElement(dtype, data, at, stmt.combine === null ? value : combined(stmt.combine, dtype, present, value))
      }
    }
  }

  private iterate({ loop, mode, body }: ForStmt): void {
    const { changed } = effectsOf(body)
    const iterations = Math.ceil(this.size(loop.extent) / loop.step)
    for (const variable of changed.keys()) this.forget(variable)
    for (let i = 0; i < iterations; i++) {
      // Parallel iterations run in any order, on threads with scratch memory of their own: here the last one first.
      const parallel = mode === 'parallel'
      if (parallel) this.spoil('thread')
      this.loops.set(loop, (parallel ? iterations - 1 - i : i) * loop.step)
      this.memos.push(new Map())
      this.body(body)
      this.memos.pop()
    }
    for (const variable of changed.keys()) this.forget(variable)
  }

  private write(variable: Local, value: ElementValue): void {
    this.locals.set(variable, value)
    this.forget(variable)
  }

  private forget(variable: Variable): void {
    for (const memo of this.memos) for (const expr of memo.keys()) if (this.facts.variablesOf(expr).has(variable)) memo.delete(expr)
  }

  private local(variable: Local): ElementValue {
    return this.locals.get(variable) ?? this.fail(`the local ${variable.name} is used before it is declared`)
  }

  private loop(loop: LoopVar): number {
    return this.loops.get(loop) ?? this.fail(`the loop variable ${loop.name} is used outside its loop`)
  }

  private number(name: string): number {
    const value = this.args[name]
    return typeof value === 'number' ? value : this.fail(`the argument ${name} must be a number, got ${value === undefined ? 'nothing' : 'an array'}`)
  }

  private size(size: Size): number {
    return sizeValue(size, ({ name }) => this.number(name))
  }

  private position(index: Index): number {
    let at = this.size(index.base)
    for (const { loop, stride } of index.terms) at += this.loop(loop) * this.size(stride)
    for (const { value, stride } of index.dynamic) at += Number(this.value(value)) * this.size(stride)
    return at
  }

  /** Where the element of an array is; if fewer indices are given, the first element that has them. */
  private place(array: LocalArray, place: ArrayPlace): { readonly elements: ElementValue[]; readonly at: number } {
    const elements = this.arrays.get(array) ?? this.fail(`the array ${array.name} is used before it is declared`)
    const at = array.shape.reduce((sum, size, d) => {
      const index = place[d] === undefined ? 0 : this.position(place[d])
      return index >= 0 && index < size ? sum * size + index : this.fail(`index ${d + 1} of ${array.name} is ${index}, outside its size ${size}`)
    }, 0)
    return { elements, at }
  }

  private element(buffer: Memory, index: Index): { readonly data: StorageArray; readonly at: number; readonly present: ElementValue } {
    const data = buffer.kind === 'buffer' ? this.args[buffer.name] : this.scratch.get(buffer)
    if (data === undefined || typeof data === 'number') this.fail(`the argument ${buffer.name} must be a typed array, got ${data ?? 'nothing'}`)
    const at = this.position(index)
    const present = readElement(buffer.dtype, data, at)
    return { data, at, present: present ?? this.fail(`element ${at} of ${buffer.name} lies outside its ${data.length} elements`) }
  }

  private value(expr: Expr): ElementValue {
    if (expr.kind === 'const') return rounded(expr.dtype, expr.value)
    if (expr.kind === 'local') return this.local(expr.local)
    if (expr.kind === 'element') {
      const { elements, at } = this.place(expr.array, expr.place)
      return elements[at] ?? this.fail(`there is no element ${at} in ${expr.array.name}`)
    }
    for (const memo of this.memos) {
      const known = memo.get(expr)
      if (known !== undefined) return known
    }
    const value = this.compute(expr)
    this.memos.at(-1)?.set(expr, value)
    return value
  }

  private compute(expr: Exclude<Expr, { kind: 'const' | 'local' | 'element' }>): ElementValue {
    switch (expr.kind) {
      case 'scalar':
        return converted(expr.dtype, this.number(expr.param.name))
      case 'iota':
        return this.loop(expr.loop)
      case 'sizeOf':
        return this.size(expr.size)
      case 'lookup':
        return expr.values[this.position(expr.place)] ?? this.fail(`the table has no number ${this.position(expr.place)}`)
      case 'load':
        return expr.mask !== null && this.value(expr.mask) === 0 ? rounded(expr.dtype, 0) : this.element(expr.buffer, expr.index).present
      case 'reduceLanes': {
        const { elements, at } = this.place(expr.array, expr.place)
        return elements.slice(at, at + (expr.array.shape.at(-1) ?? 0)).reduce((sum, value) => combined(expr.combine, expr.dtype, sum, value))
      }
      case 'cast':
        return converted(expr.dtype, this.value(expr.value))
      default:
        return scalarOperation(
          expr.op,
          operandDType(expr),
          expr.args.map((arg) => this.value(arg)),
        )
    }
  }
}

const sizeOf = (array: LocalArray): number => array.shape.reduce((product, size) => product * size, 1)

const combined = (combine: Combine, dtype: DType, a: ElementValue, b: ElementValue): ElementValue => scalarOperation(combine, dtype, [a, b])
