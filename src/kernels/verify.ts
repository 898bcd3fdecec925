// The executable specification of the loop IR: what a kernel must satisfy before it is emitted.
import { KernelError } from './errors.ts'
import type { DType } from './dtype.ts'
import type { CallExpr, Expr, ForStmt, Index, Kernel, Local, LoopVar, Param, Size, Stmt } from './loopIr.ts'
import { effectsOf, operandsOf, strideAlong } from './analysis.ts'
import { dtypesOf, isDefinedFor, scalarOps } from './scalarOps.ts'

/** Checks a kernel against the specification of the loop IR. Throws a KernelError that names the statement and the rule that it violates. */
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
      if (names.has(name)) this.fail('two parameters have this name; rename one of them')
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
        if (this.locals.some((scope) => scope.has(stmt.local))) this.fail(`the local ${stmt.local.name} is already declared`)
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
          this.fail(`a store that combines also reads ${stmt.buffer.name}; declare its parameter as 'readwrite'`)
        this.param(stmt.buffer)
        this.index(stmt.index)
        this.expr(stmt.value, stmt.buffer.dtype)
    }
  }

  /** After a local has changed, expressions that read it are checked again. */
  private changed(): void {
    this.checked = new Set()
  }

  private inScope(variable: Local): boolean {
    return this.locals.some((scope) => scope.has(variable))
  }

  private loop(stmt: ForStmt, path: string): void {
    if (this.loops.includes(stmt.loop)) this.fail(`the loop variable ${stmt.loop.name} is already used by an enclosing loop`)
    this.size(stmt.loop.extent)
    if (typeof stmt.loop.extent === 'number' && (!Number.isInteger(stmt.loop.extent) || stmt.loop.extent < 0))
      this.fail(`the extent ${stmt.loop.extent} must be a non-negative integer`)
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

  /** Iterations of a simd loop must be independent, except for accumulations, whose results the loop must not read. */
  private simd(stmt: ForStmt): void {
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
          this.fail(
            `the simd loop over ${stmt.loop.name} assigns ${inner.local.name}, which is declared outside it; only accumulations may cross iterations`,
          )
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
    if (expr.dtype !== expected) this.fail(`a value of dtype ${expr.dtype} is used where ${expected} is expected; cast it`)
    if (this.checked.has(expr)) return
    this.checked.add(expr)
    switch (expr.kind) {
      case 'const':
        return
      case 'scalar':
        if (expr.param.dtype !== expr.dtype) this.fail(`the scalar ${expr.param.name} is ${expr.param.dtype} but is read as ${expr.dtype}`)
        return this.param(expr.param)
      case 'iota':
        if (!this.loops.includes(expr.loop)) this.fail(`the loop variable ${expr.loop.name} is read outside its loop`)
        return
      case 'sizeOf':
        return this.param(expr.size)
      case 'local':
        if (!this.inScope(expr.local)) this.fail(`the local ${expr.local.name} is not declared here`)
        if (expr.local.dtype !== expr.dtype) this.fail(`the local ${expr.local.name} is ${expr.local.dtype} but is read as ${expr.dtype}`)
        return
      case 'cast':
        return this.expr(expr.value, expr.value.dtype)
      case 'load':
        if (expr.buffer.dtype !== expr.dtype) this.fail(`the buffer ${expr.buffer.name} is ${expr.buffer.dtype} but is read as ${expr.dtype}`)
        this.param(expr.buffer)
        this.index(expr.index)
        if (expr.mask !== null) this.expr(expr.mask, 'bool')
        return
      default:
        return this.call(expr)
    }
  }

  private call(expr: CallExpr): void {
    const { arity, conditions, yieldsBool } = scalarOps[expr.op]
    if (expr.args.length !== arity) this.fail(`${expr.op} takes ${arity} operands, not ${expr.args.length}`)
    for (const condition of expr.args.slice(0, conditions)) this.expr(condition, 'bool')
    let dtype: DType | null = null
    for (const operand of expr.args.slice(conditions)) {
      dtype ??= operand.dtype
      if (!isDefinedFor(expr.op, dtype)) this.fail(`${expr.op} is not defined for ${dtype}, only for ${dtypesOf(expr.op).join(', ')}`)
      if (operand.dtype !== dtype) this.fail(`the operands of ${expr.op} have different dtypes, ${dtype} and ${operand.dtype}; cast one`)
      this.expr(operand, dtype)
    }
    const result = yieldsBool ? 'bool' : (dtype ?? expr.dtype)
    if (expr.dtype !== result) this.fail(`${expr.op} yields ${result}, not ${expr.dtype}`)
  }
}

function describe(stmt: Stmt): string {
  if (stmt.kind === 'for') return `${stmt.mode} loop over ${stmt.loop.name}`
  if (stmt.kind === 'store') return `store to ${stmt.buffer.name}`
  return `${stmt.kind} ${stmt.local.name}`
}
