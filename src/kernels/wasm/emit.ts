// From a kernel in the loop IR to a WebAssembly module.
//
// One vector code generator writes everything. A simd loop runs four vectors at a time, then one, then single elements; the last run the same
// vector instructions, so that an element's bits do not depend on where in a loop it falls. Code outside simd loops is that of single elements.
import { InternalError } from '../../errors/index.ts'
import { effectsOf, expressionsOf, forEachExpr, forEachStmt, strideAlong, touchesFloat64 } from '../analysis.ts'
import type { BufferParam, Combine, Expr, Index, Kernel, Local, LoopVar, Param, Stmt } from '../loopIr.ts'
import { identityOf } from '../loopIr.ts'
import { ModuleBuilder } from './assembler.ts'
import type { FunctionBuilder, ValueType } from './assembler.ts'
import { ExpressionEmitter } from './expressions.ts'
import { MathLibrary } from './mathLibrary.ts'
import { emitLoad, emitStore } from './memory.ts'
import { constantVal, emitCombine } from './operations.ts'
import type { Val } from './vectorCode.ts'

const LANES = 4
/** Vectors in flight where that pays. */
const UNROLL = 4
/** Above this many operations four vectors in flight gain nothing: one chain is long enough to keep the processor busy, and code grows. */
const UNROLL_LIMIT = 80
/** How many plain operations an elementary function is worth. */
const FUNCTION_COST = 20
const COSTLY: ReadonlySet<string> = new Set(['exp', 'expm1', 'log', 'log1p', 'sin', 'cos', 'tanh', 'erf', 'sigmoid', 'pow', 'remainder', 'floorDiv'])

type ForStmt = Extract<Stmt, { kind: 'for' }>
type Access = readonly [BufferParam, Index]

/** The WebAssembly type of a parameter. */
export const paramType = (param: Param): ValueType =>
  param.kind !== 'scalar' ? 'i32' : param.dtype === 'float32' ? 'f32' : param.dtype === 'float64' ? 'f64' : 'i32'

/** The module of a kernel: it imports `env.memory` (and Math's functions as `math.*` where it needs them) and exports `run`. */
export function emitKernel(kernel: Kernel): Uint8Array {
  const module = new ModuleBuilder()
  module.importMemory()
  const library = new MathLibrary(module, kernel.body)
  const f = module.function(kernel.params.map(paramType), [], 'run')
  new StatementEmitter(library, f, kernel.params, kernel.body).body(kernel.body)
  return module.finish()
}

/** An iteration of loops that the caller runs, for {@link StatementEmitter.epilogue}. */
export interface EpilogueSite {
  /** The caller's loops, outermost first, each with the i32 local of its counter (for `lanes`: that of the first lane). */
  readonly loops: readonly { readonly loop: LoopVar; readonly counter: number }[]
  /** The loop along which lanes run: neighbouring lanes are neighbouring iterations. */
  readonly lanes: LoopVar
  /** True: four elements a vector. False: one element, which the caller has splat into all lanes of its locals. */
  readonly wide: boolean
  /** The values that the caller provides: v128 locals, one for each vector in flight (all values as many). */
  readonly values: readonly { readonly local: Local; readonly vectors: readonly number[] }[]
}

/** Writes statements into a function whose first parameters are the kernel's. */
export class StatementEmitter {
  private readonly f: FunctionBuilder
  private readonly x: ExpressionEmitter
  private readonly narrow: boolean
  /** Vector accumulators of the present simd loop, by the local that they will be combined into. */
  private accumulators = new Map<Local, Val>()

  /** `body` is everything that will be written with this emitter: float64 anywhere in it means one element at a time. */
  constructor(library: MathLibrary, f: FunctionBuilder, params: readonly Param[], body: readonly Stmt[]) {
    this.f = f
    this.x = new ExpressionEmitter(library, f, params)
    this.narrow = touchesFloat64(body)
  }

  body(stmts: readonly Stmt[]): void {
    for (const stmt of stmts) this.statement(stmt)
  }

  /**
   * Writes the statements for elements that the caller has computed, such as a tile of a matrix product. Values computed once for this site are
   * not kept for the next. Throws when `wide` is asked for statements with float64 (see `touchesFloat64`).
   */
  epilogue(stmts: readonly Stmt[], site: EpilogueSite): void {
    if (site.wide && this.narrow) throw new InternalError('an epilogue with float64 must be emitted one element at a time')
    const vectors = site.values[0]?.vectors.length ?? 1
    for (const { loop, counter } of site.loops) this.x.addressing.scopes.push({ loop, counter, pointers: null })
    for (const { local, vectors: locals } of site.values) {
      this.x.locals.set(local, locals)
      this.x.laneLocals.add(local)
    }
    this.x.inLanes(site.lanes, site.wide, vectors, () => this.x.remembering(() => this.body(stmts)))
    for (const _ of site.loops) this.x.addressing.scopes.pop()
  }

  private statement(stmt: Stmt): void {
    const { x } = this
    switch (stmt.kind) {
      case 'for':
        return this.loop(stmt)
      case 'declare': {
        x.forget(stmt.local)
        const value = x.value(stmt.init)
        if (x.simd !== null) x.laneLocals.add(stmt.local)
        x.locals.set(stmt.local, x.code.copy(value))
        return
      }
      case 'assign':
        this.write(this.local(stmt.local), x.value(stmt.value))
        x.forget(stmt.local)
        return
      case 'accumulate': {
        const target = this.accumulators.get(stmt.local) ?? this.local(stmt.local)
        const sum = emitCombine(x.code, stmt.combine, stmt.local.dtype, target, x.value(stmt.value))
        this.write(target, sum)
        x.forget(stmt.local)
        return
      }
      default: {
        let value = x.value(stmt.value)
        const place = x.place(stmt.buffer, stmt.index)
        if (stmt.combine !== null) value = emitCombine(x.code, stmt.combine, stmt.buffer.dtype, emitLoad(x.code, place, null), value)
        emitStore(x.code, place, value, x.wide && !place.lanes)
      }
    }
  }

  private local(variable: Local): Val {
    const value = this.x.locals.get(variable)
    if (value === undefined) throw new InternalError(`the local ${variable.name} is written where it is not declared`)
    return value
  }

  private write(target: Val, value: Val): void {
    target.forEach((local, v) => {
      this.f.get(this.x.code.at(value, v))
      this.f.set(local)
    })
  }

  private loop(stmt: ForStmt): void {
    const { x, f } = this
    const { extent } = stmt.loop
    if (extent === 0) return
    const effects = effectsOf(stmt.body)
    for (const changed of effects.changed.keys()) x.forget(changed)
    const exprs: Expr[] = []
    forEachStmt(stmt.body, (inner) => exprs.push(...expressionsOf(inner)))
    const write = (): void => {
      x.remembering(() => {
        x.hoist(exprs, { ...effects, loops: new Set([...effects.loops, stmt.loop]) }, stmt.mode === 'simd')
        const counter = x.code.tempI32()
        f.i32Const(0)
        f.set(counter)
        x.addressing.enter(stmt.loop, counter, accessesOf(stmt.body))
        if (stmt.mode === 'simd' && !this.narrow && x.simd === null) this.lanes(stmt, counter, effects.changed, effects.declared)
        else this.iterations(stmt, counter, 1)
        x.addressing.leave()
      })
    }
    // A loop that does not run must not evaluate what was moved in front of it.
    if (typeof extent === 'number') write()
    else {
      x.addressing.pushSize(extent)
      f.i32Const(0)
      f.op('i32.gt_s')
      f.if(write)
    }
    for (const changed of effects.changed.keys()) x.forget(changed)
  }

  /** A simd loop: in fours of vectors, in vectors, in single elements. */
  private lanes(stmt: ForStmt, counter: number, changed: ReadonlyMap<Local, Combine | 'assign'>, declared: ReadonlySet<Local>): void {
    const { x } = this
    const { extent } = stmt.loop
    const least = typeof extent === 'number' ? extent : Infinity
    const unroll = least >= LANES * UNROLL && this.worthUnrolling(stmt) ? UNROLL : 1
    const sums = [...changed].filter(([variable]) => !declared.has(variable)) as [Local, Combine][]
    if (least >= LANES) {
      const vectors = new Map<Local, Val>()
      x.inLanes(stmt.loop, true, unroll, () => {
        for (const [variable, combine] of sums) {
          const identity = identityOf(combine, variable.dtype) as Extract<Expr, { kind: 'const' }>
          vectors.set(variable, x.code.copy(constantVal(x.code, variable.dtype, identity.value)))
        }
        this.accumulators = vectors
        if (unroll > 1) this.iterations(stmt, counter, LANES * unroll)
      })
      x.inLanes(stmt.loop, true, 1, () => {
        if (unroll > 1)
          this.accumulators = new Map(sums.map(([variable, combine]) => [variable, this.merge(variable, combine, vectors.get(variable) as Val)]))
        this.iterations(stmt, counter, LANES)
        for (const [variable, combine] of sums) this.combineLanes(variable, combine, this.accumulators.get(variable) as Val)
      })
      this.accumulators = new Map()
    }
    x.inLanes(stmt.loop, false, 1, () => this.iterations(stmt, counter, 1))
    for (const variable of declared) x.laneLocals.delete(variable)
  }

  /** Four accumulators into one. */
  private merge(variable: Local, combine: Combine, parts: Val): Val {
    const pair = (a: number, b: number): Val => emitCombine(this.x.code, combine, variable.dtype, [parts[a] as number], [parts[b] as number])
    return emitCombine(this.x.code, combine, variable.dtype, pair(0, 1), pair(2, 3))
  }

  /** The four lanes of an accumulator into the local, all of whose lanes are equal. */
  private combineLanes(variable: Local, combine: Combine, sum: Val): void {
    const { code } = this.x
    const halves = emitCombine(code, combine, variable.dtype, sum, code.shuffle32(sum, sum, [2, 3, 0, 1]))
    const whole = emitCombine(code, combine, variable.dtype, halves, code.shuffle32(halves, halves, [1, 0, 3, 2]))
    const target = this.local(variable)
    this.write(target, emitCombine(code, combine, variable.dtype, target, whole))
  }

  /** Runs the body `step` iterations at a time while that many are left. */
  private iterations(stmt: ForStmt, counter: number, step: number): void {
    const { x, f } = this
    const { extent } = stmt.loop
    if (typeof extent === 'number' && (extent < step || (step === 1 && x.simd === stmt.loop && extent % LANES === 0))) return
    const enough = (): void => {
      f.get(counter)
      if (typeof extent === 'number') f.i32Const(extent - step)
      else {
        x.addressing.pushSize(extent)
        f.i32Const(step)
        f.op('i32.sub')
      }
      f.op('i32.le_s')
    }
    enough()
    f.if(() => {
      f.loop((again) => {
        x.remembering(() => this.body(stmt.body))
        x.addressing.advance(step)
        f.get(counter)
        f.i32Const(step)
        f.op('i32.add')
        f.set(counter)
        enough()
        f.brIf(again)
      })
    })
  }

  private worthUnrolling(stmt: ForStmt): boolean {
    let cost = 0
    let simple = true
    const check = ([, index]: Access): void => {
      const stride = strideAlong(index.terms, stmt.loop)
      if (index.dynamic.length > 0 || (stride !== 0 && stride !== 1)) simple = false
    }
    accessesOf(stmt.body).forEach(check)
    forEachExpr(stmt.body, (expr) => {
      if (expr.kind === 'call') cost += COSTLY.has(expr.op) ? FUNCTION_COST : 1
      if (expr.kind === 'load' && expr.mask !== null) simple = false
    })
    return simple && cost <= UNROLL_LIMIT
  }
}

/** Every element access in the statements, those of loops inside included. */
function accessesOf(body: readonly Stmt[]): readonly Access[] {
  const accesses: Access[] = []
  forEachStmt(body, (stmt) => {
    if (stmt.kind === 'store') accesses.push([stmt.buffer, stmt.index])
  })
  forEachExpr(body, (expr) => {
    if (expr.kind === 'load') accesses.push([expr.buffer, expr.index])
  })
  return accesses
}
