// A slow interpreter of the loop IR over typed arrays. It defines what emitted code must compute: tests compare with it, and it helps to debug kernels.
import { ExprFacts, effectsOf, operandDType } from './analysis.ts'
import type { DType, ElementValue, StorageArray } from './dtype.ts'
import { readElement, writeElement } from './elements.ts'
import { KernelError } from './errors.ts'
import type { BufferParam, Combine, Expr, Index, Kernel, Local, LoopVar, Size, Stmt } from './loopIr.ts'
import { converted, rounded } from './numbers.ts'
import { scalarOperation } from './scalarOps.ts'

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
  private readonly memos: Map<Expr, ElementValue>[] = [new Map()]
  private readonly facts = new ExprFacts()

  constructor(kernel: Kernel, args: ReferenceArgs) {
    this.kernel = kernel
    this.args = args
  }

  body(stmts: readonly Stmt[]): void {
    for (const stmt of stmts) this.statement(stmt)
  }

  private fail(message: string): never {
    throw new KernelError(`kernel ${this.kernel.name}: ${message}`)
  }

  private statement(stmt: Stmt): void {
    switch (stmt.kind) {
      case 'for': {
        const { changed } = effectsOf(stmt.body)
        const n = this.size(stmt.loop.extent)
        for (const variable of changed.keys()) this.forget(variable)
        for (let i = 0; i < n; i++) {
          this.loops.set(stmt.loop, i)
          this.memos.push(new Map())
          this.body(stmt.body)
          this.memos.pop()
        }
        for (const variable of changed.keys()) this.forget(variable)
        return
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

  private write(variable: Local, value: ElementValue): void {
    this.locals.set(variable, value)
    this.forget(variable)
  }

  private forget(variable: Local): void {
    for (const memo of this.memos) for (const expr of memo.keys()) if (this.facts.localsOf(expr).has(variable)) memo.delete(expr)
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
    return typeof size === 'number' ? size : this.number(size.name)
  }

  private element(buffer: BufferParam, index: Index): { readonly data: StorageArray; readonly at: number; readonly present: ElementValue } {
    const data = this.args[buffer.name]
    if (data === undefined || typeof data === 'number') this.fail(`the argument ${buffer.name} must be a typed array, got ${data ?? 'nothing'}`)
    let at = this.size(index.base)
    for (const { loop, stride } of index.terms) at += this.loop(loop) * this.size(stride)
    for (const { value, stride } of index.dynamic) at += Number(this.value(value)) * this.size(stride)
    const present = readElement(buffer.dtype, data, at)
    return { data, at, present: present ?? this.fail(`element ${at} of ${buffer.name} lies outside its ${data.length} elements`) }
  }

  private value(expr: Expr): ElementValue {
    if (expr.kind === 'const') return rounded(expr.dtype, expr.value)
    if (expr.kind === 'local') return this.local(expr.local)
    for (const memo of this.memos) {
      const known = memo.get(expr)
      if (known !== undefined) return known
    }
    const value = this.compute(expr)
    this.memos.at(-1)?.set(expr, value)
    return value
  }

  private compute(expr: Exclude<Expr, { kind: 'const' | 'local' }>): ElementValue {
    switch (expr.kind) {
      case 'scalar':
        return converted(expr.dtype, this.number(expr.param.name))
      case 'iota':
        return this.loop(expr.loop)
      case 'sizeOf':
        return this.size(expr.size)
      case 'load':
        return expr.mask !== null && this.value(expr.mask) === 0 ? rounded(expr.dtype, 0) : this.element(expr.buffer, expr.index).present
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

const combined = (combine: Combine, dtype: DType, a: ElementValue, b: ElementValue): ElementValue => scalarOperation(combine, dtype, [a, b])
