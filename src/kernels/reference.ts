// A slow interpreter of the loop IR over typed arrays: the meaning that emitters must reproduce. Tests compare against it; it also serves to debug a kernel.
import { KernelError } from './errors.ts'
import type { DType } from './dtype.ts'
import type { BufferParam, Combine, Expr, Index, Kernel, Local, LoopVar, Size, Stmt } from './loopIr.ts'
import { ExprFacts, effectsOf } from './analysis.ts'
import { float64Functions } from './wasm/mathLibrary.ts'

/** The elements of a buffer; bool is one byte, 0 or 1. */
export type BufferData = Float32Array | Float64Array | Int32Array | Uint8Array

/** Arguments of a reference run, by parameter name: typed arrays for buffers, numbers for sizes and scalars. */
export type ReferenceArgs = Readonly<Record<string, BufferData | number>>

/** Runs a kernel on typed arrays, one element at a time. Throws KernelError for an access outside a buffer. */
export function runReference(kernel: Kernel, args: ReferenceArgs): void {
  new Interpreter(kernel, args).body(kernel.body)
}

class Interpreter {
  private readonly kernel: Kernel
  private readonly args: ReferenceArgs
  private readonly loops = new Map<LoopVar, number>()
  private readonly locals = new Map<Local, number>()
  private readonly memos: Map<Expr, number>[] = [new Map()]
  private readonly facts = new ExprFacts()

  constructor(kernel: Kernel, args: ReferenceArgs) {
    this.kernel = kernel
    this.args = args
  }

  body(stmts: readonly Stmt[]): void {
    for (const stmt of stmts) this.statement(stmt)
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
        return this.write(stmt.local, combined(stmt.combine, stmt.local.dtype, this.locals.get(stmt.local) as number, this.value(stmt.value)))
      default: {
        const value = this.value(stmt.value)
        const [data, at] = this.element(stmt.buffer, stmt.index)
        data[at] = stmt.combine === null ? value : combined(stmt.combine, stmt.buffer.dtype, data[at] as number, value)
      }
    }
  }

  private write(variable: Local, value: number): void {
    this.locals.set(variable, value)
    this.forget(variable)
  }

  private forget(variable: Local): void {
    for (const memo of this.memos) for (const expr of memo.keys()) if (this.facts.localsOf(expr).has(variable)) memo.delete(expr)
  }

  private size(size: Size): number {
    return typeof size === 'number' ? size : (this.args[size.name] as number)
  }

  private element(buffer: BufferParam, index: Index): [BufferData, number] {
    const data = this.args[buffer.name] as BufferData
    let at = this.size(index.base)
    for (const { loop, stride } of index.terms) at += (this.loops.get(loop) as number) * this.size(stride)
    for (const { value, stride } of index.dynamic) at += this.value(value) * this.size(stride)
    if (!(at >= 0 && at < data.length))
      throw new KernelError(`kernel ${this.kernel.name}: element ${at} of ${buffer.name} lies outside its ${data.length} elements`)
    return [data, at]
  }

  private value(expr: Expr): number {
    if (expr.kind === 'const') return expr.dtype === 'bool' ? Number(expr.value !== 0) : rounded(expr.dtype, expr.value)
    if (expr.kind === 'local') return this.locals.get(expr.local) as number
    for (const memo of this.memos) {
      const known = memo.get(expr)
      if (known !== undefined) return known
    }
    const value = this.compute(expr)
    this.memos.at(-1)?.set(expr, value)
    return value
  }

  private compute(expr: Exclude<Expr, { kind: 'const' | 'local' }>): number {
    switch (expr.kind) {
      case 'scalar':
        return convert(this.args[expr.param.name] as number, expr.dtype)
      case 'iota':
        return this.loops.get(expr.loop) as number
      case 'sizeOf':
        return this.size(expr.size)
      case 'load': {
        if (expr.mask !== null && this.value(expr.mask) === 0) return 0
        const [data, at] = this.element(expr.buffer, expr.index)
        return data[at] as number
      }
      case 'cast':
        return convert(this.value(expr.value), expr.dtype)
      default: {
        const dtype = (expr.args[expr.op === 'where' ? 1 : 0] as Expr).dtype
        return scalarOperation(
          expr.op,
          dtype,
          expr.args.map((arg) => this.value(arg)),
        )
      }
    }
  }
}

const rounded = (dtype: DType, value: number): number => (dtype === 'float32' ? Math.fround(value) : dtype === 'int32' ? value | 0 : value)

const saturated = (value: number): number => (Number.isNaN(value) ? 0 : Math.min(Math.max(value, -2147483648), 2147483647))

function convert(value: number, to: DType): number {
  if (to === 'bool') return Number(value !== 0)
  if (to === 'int32') return saturated(Math.trunc(value)) + 0
  return rounded(to, value)
}

function combined(combine: Combine, dtype: DType, a: number, b: number): number {
  return scalarOperation(combine, dtype, [a, b])
}

/** Half to even. */
function nearest(x: number): number {
  const floor = Math.floor(x)
  const rest = x - floor
  if (rest !== 0.5) return rest < 0.5 ? floor : Math.ceil(x)
  return floor % 2 === 0 ? floor : floor + 1
}

/** One operation on numbers of a dtype: what each ScalarOp means. bools are 0 and 1. */
export function scalarOperation(op: Extract<Expr, { kind: 'call' }>['op'], dtype: DType, args: readonly number[]): number {
  const [a, b, c] = args as [number, number, number]
  const value = compute()
  return typeof value === 'boolean' ? Number(value) : rounded(dtype, value)

  function compute(): number | boolean {
    switch (op) {
      case 'where':
        return a !== 0 ? b : c
      case 'eq':
        return a === b
      case 'ne':
        return a !== b
      case 'lt':
        return a < b
      case 'le':
        return a <= b
      case 'gt':
        return a > b
      case 'ge':
        return a >= b
      case 'and':
        return a !== 0 && b !== 0
      case 'or':
        return a !== 0 || b !== 0
      case 'not':
        return a === 0
      case 'isnan':
        return Number.isNaN(a)
      case 'bitAnd':
        return a & b
      case 'bitOr':
        return a | b
      case 'bitXor':
        return a ^ b
      case 'shl':
        return a << b
      case 'shrU':
        return a >>> b
      case 'mulHiU':
        return Number((BigInt(a >>> 0) * BigInt(b >>> 0)) >> 32n)
      case 'add':
        return dtype === 'bool' ? a | b : a + b
      case 'sub':
        return a - b
      case 'mul':
        return dtype === 'int32' ? Math.imul(a, b) : a * b
      case 'min':
        return Math.min(a, b)
      case 'max':
        return Math.max(a, b)
      case 'neg':
        return -a
      case 'abs':
        return Math.abs(a)
      case 'sign':
        return Number(a > 0) - Number(a < 0)
      case 'floor':
        return Math.floor(a)
      case 'ceil':
        return Math.ceil(a)
      case 'round':
        return nearest(a)
      case 'trunc':
        return Math.trunc(a)
      case 'sqrt':
        return Math.sqrt(a)
      // In float32 both steps round.
      case 'rsqrt':
        return 1 / rounded(dtype, Math.sqrt(a))
      case 'reciprocal':
        return 1 / a
      case 'div':
        return dtype === 'int32' ? saturated(Math.trunc(a / b)) : a / b
      case 'floorDiv':
        return dtype === 'int32' ? saturated(Math.floor(a / b)) : (float64Functions['floorDiv'] as typeof Math.pow)(a, b)
      case 'remainder':
        return dtype === 'int32' ? a - Math.imul(saturated(Math.floor(a / b)), b) : (float64Functions['remainder'] as typeof Math.pow)(a, b)
      case 'pow':
        return dtype === 'int32' ? integerPower(a, b) : (float64Functions['pow'] as typeof Math.pow)(a, b)
      default:
        return (float64Functions[op] as typeof Math.pow)(a, b)
    }
  }
}

function integerPower(base: number, exponent: number): number {
  if (exponent < 0) return base === 1 ? 1 : base === -1 ? (exponent % 2 === 0 ? 1 : -1) : 0
  let result = 1
  let power = base
  for (let e = exponent; e > 0; e = Math.floor(e / 2)) {
    if (e % 2 === 1) result = Math.imul(result, power)
    power = Math.imul(power, power)
  }
  return result
}
