// The specification of the loop IR, executable: what every kernel must satisfy before an emitter may see it.
import { KernelError } from './errors.ts'
import type { DType } from './dtype.ts'
import type { Expr, Index, Kernel, Local, LoopVar, Param, ScalarOp, Size, Stmt } from './loopIr.ts'
import { effectsOf, operandsOf, strideAlong } from './analysis.ts'

const ALL: readonly DType[] = ['bool', 'int32', 'float32', 'float64']
const NUMBERS: readonly DType[] = ['int32', 'float32', 'float64']
const FLOATS: readonly DType[] = ['float32', 'float64']
const BOOL: readonly DType[] = ['bool']
const INT: readonly DType[] = ['int32']
const BITS: readonly DType[] = ['bool', 'int32']

/** For each operation: how many operands, and the dtypes that it takes. */
const RULES: Readonly<Record<ScalarOp, readonly [number, readonly DType[]]>> = {
  add: [2, ALL],
  sub: [2, NUMBERS],
  mul: [2, ALL],
  div: [2, NUMBERS],
  floorDiv: [2, NUMBERS],
  remainder: [2, NUMBERS],
  min: [2, ALL],
  max: [2, ALL],
  pow: [2, NUMBERS],
  neg: [1, NUMBERS],
  abs: [1, NUMBERS],
  sign: [1, NUMBERS],
  floor: [1, NUMBERS],
  ceil: [1, NUMBERS],
  round: [1, NUMBERS],
  trunc: [1, NUMBERS],
  sqrt: [1, FLOATS],
  rsqrt: [1, FLOATS],
  reciprocal: [1, FLOATS],
  exp: [1, FLOATS],
  expm1: [1, FLOATS],
  log: [1, FLOATS],
  log1p: [1, FLOATS],
  sin: [1, FLOATS],
  cos: [1, FLOATS],
  tanh: [1, FLOATS],
  erf: [1, FLOATS],
  sigmoid: [1, FLOATS],
  eq: [2, ALL],
  ne: [2, ALL],
  lt: [2, ALL],
  le: [2, ALL],
  gt: [2, ALL],
  ge: [2, ALL],
  and: [2, BOOL],
  or: [2, BOOL],
  not: [1, BOOL],
  isnan: [1, NUMBERS],
  where: [3, ALL],
  bitAnd: [2, BITS],
  bitOr: [2, BITS],
  bitXor: [2, BITS],
  shl: [2, INT],
  shrU: [2, INT],
  mulHiU: [2, INT],
}

const YIELDS_BOOL: ReadonlySet<ScalarOp> = new Set<ScalarOp>(['eq', 'ne', 'lt', 'le', 'gt', 'ge', 'and', 'or', 'not', 'isnan'])

/** Checks a kernel against the specification of the loop IR. Throws KernelError that names the statement and the rule it breaks. */
export function verifyKernel(kernel: Kernel): void {
  new Verifier(kernel).run()
}

class Verifier {
  private readonly kernel: Kernel
  private readonly params: ReadonlySet<Param>
  private readonly loops: LoopVar[] = []
  private readonly locals: Set<Local>[] = [new Set()]
  private checked = new Set<Expr>()
  private where = ''

  constructor(kernel: Kernel) {
    this.kernel = kernel
    this.params = new Set(kernel.params)
  }

  run(): void {
    const names = new Set<string>()
    for (const { name } of this.kernel.params) {
      this.where = `parameter ${name}`
      if (names.has(name)) this.fail('two parameters have this name; give each its own')
      names.add(name)
    }
    this.body(this.kernel.body, '')
  }

  private fail(message: string): never {
    throw new KernelError(`kernel ${this.kernel.name}, ${this.where}: ${message}`)
  }

  private body(stmts: readonly Stmt[], path: string): void {
    stmts.forEach((stmt, i) => {
      this.where = `statement ${path}${i + 1} (${describe(stmt)})`
      this.statement(stmt, `${path}${i + 1}.`)
    })
  }

  private statement(stmt: Stmt, path: string): void {
    switch (stmt.kind) {
      case 'for':
        return this.loop(stmt, path)
      case 'declare':
        if (this.locals.some((scope) => scope.has(stmt.local))) this.fail(`the local ${stmt.local.name} is declared already`)
        this.expr(stmt.init, stmt.local.dtype)
        this.locals.at(-1)?.add(stmt.local)
        return
      case 'assign':
      case 'accumulate':
        if (!this.inScope(stmt.local)) this.fail(`the local ${stmt.local.name} is not declared here`)
        this.expr(stmt.value, stmt.local.dtype)
        this.changed()
        return
      default:
        if (stmt.buffer.access === 'read') this.fail(`the buffer ${stmt.buffer.name} is read-only; declare its parameter as 'write' or 'readwrite'`)
        if (stmt.combine !== null && stmt.buffer.access === 'write')
          this.fail(`a combining store reads ${stmt.buffer.name}; declare its parameter as 'readwrite'`)
        this.param(stmt.buffer)
        this.index(stmt.index)
        this.expr(stmt.value, stmt.buffer.dtype)
    }
  }

  /** After a local changed, expressions that read it are judged afresh. */
  private changed(): void {
    this.checked = new Set()
  }

  private inScope(variable: Local): boolean {
    return this.locals.some((scope) => scope.has(variable))
  }

  private loop(stmt: Extract<Stmt, { kind: 'for' }>, path: string): void {
    if (this.loops.includes(stmt.loop)) this.fail(`the loop variable ${stmt.loop.name} runs already in a loop around this one`)
    this.size(stmt.loop.extent)
    if (typeof stmt.loop.extent === 'number' && (!Number.isInteger(stmt.loop.extent) || stmt.loop.extent < 0))
      this.fail(`the extent ${stmt.loop.extent} must be an integer of 0 or more`)
    if (stmt.mode === 'simd') this.simd(stmt)
    this.loops.push(stmt.loop)
    this.locals.push(new Set())
    const outer = this.checked
    this.checked = new Set()
    this.body(stmt.body, path)
    this.checked = outer
    this.locals.pop()
    this.loops.pop()
  }

  /** Iterations of a simd loop are independent but for accumulations, which nothing in the loop may observe. */
  private simd(stmt: Extract<Stmt, { kind: 'for' }>): void {
    const combines = new Map<Local, string>()
    const { declared } = effectsOf(stmt.body)
    const seen = new Set<Expr>()
    const reads = (expr: Expr): void => {
      if (seen.has(expr)) return
      seen.add(expr)
      if (expr.kind === 'local' && combines.has(expr.local))
        this.fail(`the simd loop over ${stmt.loop.name} reads ${expr.local.name}, which it accumulates into`)
      operandsOf(expr).forEach(reads)
    }
    const collect = (stmts: readonly Stmt[]): void => {
      for (const inner of stmts) {
        if (inner.kind === 'for') {
          if (inner.mode === 'simd') this.fail(`the loop over ${inner.loop.name} inside the simd loop over ${stmt.loop.name} must be serial`)
          collect(inner.body)
        } else if (inner.kind === 'assign' && !declared.has(inner.local)) {
          this.fail(`the simd loop over ${stmt.loop.name} assigns ${inner.local.name}, declared outside; only accumulate may cross iterations`)
        } else if (inner.kind === 'accumulate' && !declared.has(inner.local)) {
          const before = combines.get(inner.local)
          if (before !== undefined && before !== inner.combine)
            this.fail(`the simd loop over ${stmt.loop.name} accumulates into ${inner.local.name} with both ${before} and ${inner.combine}`)
          combines.set(inner.local, inner.combine)
        } else if (
          inner.kind === 'store' &&
          inner.combine !== null &&
          inner.index.dynamic.length === 0 &&
          strideAlong(inner.index.terms, stmt.loop) === 0
        ) {
          this.fail(
            `all iterations of the simd loop over ${stmt.loop.name} combine into one element of ${inner.buffer.name}; make the loop serial or accumulate into a local`,
          )
        }
      }
    }
    const readAll = (stmts: readonly Stmt[]): void => {
      for (const inner of stmts) {
        if (inner.kind === 'for') readAll(inner.body)
        else {
          reads(inner.kind === 'declare' ? inner.init : inner.value)
          if (inner.kind === 'store') inner.index.dynamic.forEach((d) => reads(d.value))
        }
      }
    }
    collect(stmt.body)
    readAll(stmt.body)
  }

  private param(param: Param): void {
    if (!this.params.has(param)) this.fail(`the ${param.kind} ${param.name} is not among the kernel's parameters`)
  }

  private size(size: Size): void {
    if (typeof size !== 'number') this.param(size)
  }

  private index(index: Index): void {
    this.size(index.base)
    for (const { loop, stride } of index.terms) {
      if (!this.loops.includes(loop)) this.fail(`the index uses the loop variable ${loop.name} outside its loop`)
      this.size(stride)
    }
    for (const { value, stride } of index.dynamic) {
      this.size(stride)
      this.expr(value, 'int32')
    }
  }

  private expr(expr: Expr, expected: DType): void {
    if (expr.dtype !== expected) this.fail(`a value of dtype ${expr.dtype} stands where ${expected} is needed; cast it`)
    if (this.checked.has(expr)) return
    this.checked.add(expr)
    switch (expr.kind) {
      case 'const':
        return
      case 'scalar':
        if (expr.param.dtype !== expr.dtype) this.fail(`the scalar ${expr.param.name} is ${expr.param.dtype} and is read as ${expr.dtype}`)
        return this.param(expr.param)
      case 'iota':
        if (!this.loops.includes(expr.loop)) this.fail(`the loop variable ${expr.loop.name} is read outside its loop`)
        return
      case 'sizeOf':
        return this.param(expr.size)
      case 'local':
        if (!this.inScope(expr.local)) this.fail(`the local ${expr.local.name} is not declared here`)
        if (expr.local.dtype !== expr.dtype) this.fail(`the local ${expr.local.name} is ${expr.local.dtype} and is read as ${expr.dtype}`)
        return
      case 'cast':
        return this.expr(expr.value, expr.value.dtype)
      case 'load':
        if (expr.buffer.dtype !== expr.dtype) this.fail(`the buffer ${expr.buffer.name} is ${expr.buffer.dtype} and is read as ${expr.dtype}`)
        this.param(expr.buffer)
        this.index(expr.index)
        if (expr.mask !== null) this.expr(expr.mask, 'bool')
        return
      default:
        return this.call(expr)
    }
  }

  private call(expr: Extract<Expr, { kind: 'call' }>): void {
    const [count, dtypes] = RULES[expr.op]
    if (expr.args.length !== count) this.fail(`${expr.op} takes ${count} operands, not ${expr.args.length}`)
    const operands = expr.op === 'where' ? expr.args.slice(1) : expr.args
    const [first] = operands as [Expr]
    if (expr.op === 'where') this.expr(expr.args[0] as Expr, 'bool')
    if (!dtypes.includes(first.dtype)) this.fail(`${expr.op} is not defined for ${first.dtype}, only for ${dtypes.join(', ')}`)
    for (const operand of operands) {
      if (operand.dtype !== first.dtype) this.fail(`the operands of ${expr.op} have different dtypes, ${first.dtype} and ${operand.dtype}; cast one`)
      this.expr(operand, operand.dtype)
    }
    const result = YIELDS_BOOL.has(expr.op) ? 'bool' : first.dtype
    if (expr.dtype !== result) this.fail(`${expr.op} yields ${result}, not ${expr.dtype}`)
  }
}

function describe(stmt: Stmt): string {
  if (stmt.kind === 'for') return `${stmt.mode} loop over ${stmt.loop.name}`
  if (stmt.kind === 'store') return `store to ${stmt.buffer.name}`
  return `${stmt.kind} ${stmt.local.name}`
}
