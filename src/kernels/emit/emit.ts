// Emits a kernel of the loop IR as a WebAssembly module.
//
// One generator of vector code writes everything. A simd loop runs four vectors at a time, then one, then single elements. Single elements use the
// same vector instructions, so that an element's bits do not depend on its position in the loop. So does code outside simd loops.
import { InternalError } from '../../errors/index.ts'
import { remembered } from '../../protocol/index.ts'
import { touches64Bits, unknownStatement } from '../ir/analysis.ts'
import type { Effects } from '../ir/analysis.ts'
import type { DType } from '../numbers/dtype.ts'
import type { Combine, Expr, ForStmt, Kernel, Local, Param, Scratch, Stmt } from '../ir/loopIr.ts'
import { Addressing } from './addressing.ts'
import type { RunningLoop } from './addressing.ts'
import { accumulatorOf } from './accumulators.ts'
import type { Accumulator } from './accumulators.ts'
import { ModuleBuilder } from '../wasm/assembler.ts'
import type { FunctionBuilder } from '../wasm/assembler.ts'
import { ExpressionEmitter, paramType } from './expressions.ts'
import { arePairs, computesPlaces, factsOf, flightOf, isWrittenOut, standsAlone, writtenOutLoops } from './loopFacts.ts'
import type { LoopFacts } from './loopFacts.ts'
import { emitLoad, emitPairs, emitStore, isEverySecond } from './memory.ts'
import type { ModuleFunctions } from '../wasm/moduleFunctions.ts'
import { emitCombine, functionsFor } from './operations.ts'
import { LANES, VectorCode } from '../wasm/vectorCode.ts'
import type { Elements, Val } from '../wasm/vectorCode.ts'

/**
 * The module of a kernel: it imports `env.memory` (and Math's functions as `math.*` where it needs them) and exports `run`. With `sharedMaximum`, the most pages that the memory may
 * have, the memory is shared.
 */
export function emitKernel(kernel: Kernel, sharedMaximum?: number): Uint8Array<ArrayBuffer> {
  const module = new ModuleBuilder()
  module.importMemory(sharedMaximum)
  const functions = functionsFor(module, kernel.body)
  const { scratch = [] } = kernel
  const f = module.function([...kernel.params.map(paramType), ...(scratch.length > 0 ? ['i32' as const] : [])], [], 'run')
  new StatementEmitter(functions, f, kernel.params, kernel.body, scratch).body(kernel.body)
  return module.finish()
}

/** The parts of a kernel as one module over shared memory, which exports a function for each, named by its position. Their code computes the same bits as that of the whole. */
export function emitParts(
  whole: Kernel,
  parts: readonly (readonly Stmt[])[],
  params: readonly Param[],
  sharedMaximum: number,
): Uint8Array<ArrayBuffer> {
  const module = new ModuleBuilder()
  module.importMemory(sharedMaximum)
  const functions = functionsFor(module, whole.body)
  parts.forEach((body, i) => {
    const f = module.function(params.map(paramType), [], String(i))
    // How many elements a vector has is decided by the whole kernel.
    new StatementEmitter(functions, f, params, whole.body).body(body)
  })
  return module.finish()
}

/** Writes statements into a function whose first parameters are the kernel's. */
class StatementEmitter {
  private readonly f: FunctionBuilder
  private x: ExpressionEmitter
  /** Elements per vector: 64-bit dtypes leave room for two. */
  private elements: Elements
  /** The vector accumulators of the current simd loop, by the local that they will be combined into. */
  private accumulators = new Map<Local, Accumulator>()
  /** What is known of loops, which may be written many times inside those that are written out. */
  private readonly facts = new Map<ForStmt, LoopFacts>()
  private readonly computesPlaces: boolean

  /** `body` is everything that this emitter will write. If it uses float64 or int64 anywhere, a vector has two elements, but for loops that have nothing to do with those. */
  constructor(functions: ModuleFunctions, f: FunctionBuilder, params: readonly Param[], body: readonly Stmt[], scratch: readonly Scratch[] = []) {
    this.f = f
    this.computesPlaces = computesPlaces(body)
    this.elements = touches64Bits(body) ? 2 : LANES
    const code = new VectorCode(f, this.elements)
    this.x = new ExpressionEmitter(functions, code, new Addressing(code, params, scratch, writtenOutLoops(body)))
  }

  body(stmts: readonly Stmt[]): void {
    for (let i = 0; i < stmts.length; i++) {
      const [stmt, next] = [stmts[i], stmts[i + 1]]
      if (stmt === undefined) continue
      if (next !== undefined && this.pair(stmt, next)) i++
      else this.statement(stmt)
    }
  }

  /** Writes both sides of pairs together, if the statements store them. */
  private pair(first: Stmt, second: Stmt): boolean {
    const { x } = this
    if (!x.wide || first.kind !== 'store' || second.kind !== 'store' || !arePairs(first, second)) return false
    const place = x.place(first.buffer, first.index)
    if (!isEverySecond(x.code, place)) return false
    const values = [x.value(first.value), x.value(second.value)] as const
    emitPairs(x.code, place, ...values)
    return true
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
        if (x.simd === null && stmt.local.dtype === 'int32') this.keepNumber(stmt.local, stmt.init)
        return
      }
      case 'assign':
        this.write(this.local(stmt.local), x.value(stmt.value))
        x.forget(stmt.local)
        return
      case 'accumulate': {
        const accumulator = this.accumulators.get(stmt.local)
        if (accumulator === undefined) {
          const target = this.local(stmt.local)
          this.write(target, this.combine(stmt.combine, stmt.local.dtype, target, x.value(stmt.value)))
        } else accumulator.add(x.value(stmt.value))
        x.forget(stmt.local)
        return
      }
      case 'declareArray': {
        const { array, init } = stmt
        const value = x.value(init)
        x.forget(array)
        // A constant is written where it is used: in a local it would take a register from the loops that follow.
        const isFloat = init.kind === 'const' && init.dtype === 'float32'
        x.arrays.declare(array, () => (isFloat ? x.f.f32x4Const(Number(init.value)) : x.f.get(value[0])))
        return
      }
      case 'setElement': {
        const value = x.value(stmt.value)
        x.arrays.set(stmt.array, x.arrayPlace(stmt.place), value)
        x.forget(stmt.array)
        return
      }
      case 'store': {
        let value = x.value(stmt.value)
        const place = x.place(stmt.buffer, stmt.index)
        if (stmt.combine !== null) value = this.combine(stmt.combine, stmt.buffer.dtype, emitLoad(x.code, place, null), value)
        emitStore(x.code, place, value, x.wide && !place.lanes)
        return
      }
      default:
        return unknownStatement(stmt, 'WebAssembly')
    }
  }

  /** Keeps a number that addresses may be computed with as an i32. */
  private keepNumber(variable: Local, value: Expr): void {
    const { x, f } = this
    const number = f.local('i32')
    x.pushNumber(value)
    f.set(number)
    x.numbers.set(variable, number)
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
    const { loop, mode } = stmt
    const { extent } = loop
    if (extent === 0) return
    if (this.elements !== LANES && x.simd === null && standsAlone(stmt)) return this.inFours(() => this.loop(stmt))
    const facts = remembered(this.facts, stmt, () => factsOf(stmt, this.computesPlaces))
    const { effects, invariants } = facts
    for (const changed of effects.changed.keys()) x.forget(changed)
    const hoist = (): void => x.hoist(invariants)
    const write = (): void =>
      x.remembering(() => {
        hoist()
        this.running(stmt, effects)
      })
    if (isWrittenOut(mode)) {
      if (effects.stored.size > 0) hoist()
      this.writtenOut(stmt, Number(extent), effects)
    } else if (typeof extent === 'number') write()
    else {
      // A loop that does not run must not evaluate what was moved in front of it.
      x.addressing.pushSize(extent)
      f.i32Const(0)
      f.op('i32.gt_s')
      f.if(write)
    }
    for (const changed of effects.changed.keys()) x.forget(changed)
  }

  /** Writes code whose vectors have four elements, in code where they have two. */
  private inFours(write: () => void): void {
    const { x, elements } = this
    this.elements = LANES
    this.x = x.inVectorsOf(LANES)
    write()
    this.elements = elements
    this.x = x
  }

  /** Iterations one after the other, in which loop variables are known: what does not depend on them is computed once, unless a store may come between. */
  private writtenOut(stmt: ForStmt, extent: number, { declared, stored }: Effects): void {
    const { x } = this
    const { loop, mode } = stmt
    const iteration = (value: number): void =>
      x.addressing.knowing(loop, value, () => {
        if (stored.size === 0) this.body(stmt.body)
        else x.apart(() => this.body(stmt.body))
      })
    if (mode === 'unroll') {
      for (let value = 0; value < extent; value += loop.step) iteration(value)
      return
    }
    const vectors = extent - (extent % this.elements)
    x.inLanes(loop, true, 1, () => {
      for (let value = 0; value < vectors; value += this.elements) iteration(value)
    })
    x.inLanes(loop, false, 1, () => {
      for (let value = vectors; value < extent; value++) iteration(value)
    })
    for (const variable of declared) x.laneLocals.delete(variable)
  }

  /** A loop that runs, at least once. Its code is put behind that of its pointers, which are known only when it is written. */
  private running(stmt: ForStmt, effects: Effects): void {
    const { x, f } = this
    const counter = x.code.tempI32()
    const scope = x.addressing.enter(stmt.loop, counter)
    const simd = stmt.mode === 'simd'
    const code = f.fragment(() => {
      if (simd) this.lanes(stmt, scope, effects)
      else this.once(stmt)
    })
    x.addressing.leave()
    if (simd) {
      f.i32Const(0)
      f.set(counter)
      f.append(code)
      return x.addressing.release(scope)
    }
    const end = scope.counterUsed ? null : x.addressing.endOf(scope)
    if (end === null) {
      f.i32Const(0)
      f.set(counter)
    }
    f.loop((again) => {
      f.append(code)
      x.addressing.advance(scope, stmt.loop.step)
      if (end !== null) {
        f.get(end.pointer)
        f.get(end.local)
        f.op('i32.ne')
      } else {
        f.get(counter)
        f.i32Const(stmt.loop.step)
        f.op('i32.add')
        f.tee(counter)
        x.addressing.pushSize(stmt.loop.extent)
        f.op('i32.lt_s')
      }
      f.brIf(again)
    })
    x.addressing.release(scope, ...(end === null ? [] : [end.local]))
  }

  /** The code of one iteration. */
  private once(stmt: ForStmt): void {
    this.x.remembering(() => this.body(stmt.body))
  }

  private combine(combine: Combine, dtype: DType, a: Val, b: Val): Val {
    return emitCombine(this.x.code, this.x.functions, combine, dtype, a, b)
  }

  /** A simd loop: first four vectors at a time, then one, then single elements. */
  private lanes(stmt: ForStmt, scope: RunningLoop, { changed, declared }: Effects): void {
    const { x, elements } = this
    const { extent } = stmt.loop
    const least = typeof extent === 'number' ? extent : Infinity
    const { vectors: unroll, isOne } = flightOf(stmt, elements)
    // Locals declared outside a simd loop are only accumulated into; see the specification.
    const sums: (readonly [Local, Combine])[] = []
    for (const [variable, how] of changed) if (how !== 'assign' && !declared.has(variable)) sums.push([variable, how])
    if (least >= elements) {
      x.inLanes(stmt.loop, true, unroll, () => {
        this.accumulators = new Map(sums.map(([variable, how]) => [variable, accumulatorOf(x.code, x.functions, how, variable.dtype, isOne)]))
        if (unroll > 1) this.iterations(stmt, scope, elements * unroll)
      })
      x.inLanes(stmt.loop, true, 1, () => {
        if (unroll > 1) this.accumulators = new Map([...this.accumulators].map(([variable, parts]) => [variable, parts.merged()]))
        this.iterations(stmt, scope, elements)
        for (const [variable, how] of sums) this.combineLanes(variable, how)
      })
      this.accumulators = new Map()
    }
    x.inLanes(stmt.loop, false, 1, () => this.iterations(stmt, scope, 1))
    for (const variable of declared) x.laneLocals.delete(variable)
  }

  private accumulator(variable: Local): Accumulator {
    const value = this.accumulators.get(variable)
    if (value === undefined) throw new InternalError(`the local ${variable.name} has no accumulator in this loop`)
    return value
  }

  /** Combines the elements of an accumulator into the local, all of whose lanes are equal. */
  private combineLanes(variable: Local, combine: Combine): void {
    const { code } = this.x
    const { dtype } = variable
    const sum = this.accumulator(variable).result()
    const halves = this.combine(combine, dtype, sum, code.shuffle32(sum, sum, [2, 3, 0, 1]))
    const whole = this.elements === 2 ? halves : this.combine(combine, dtype, halves, code.shuffle32(halves, halves, [1, 0, 3, 2]))
    const target = this.local(variable)
    this.write(target, this.combine(combine, dtype, target, whole))
  }

  /** Of a simd loop: runs the body `times` iterations at a time while that many are left. */
  private iterations(stmt: ForStmt, scope: RunningLoop, times: number): void {
    const { x, f } = this
    const { counter } = scope
    const { extent } = stmt.loop
    if (typeof extent === 'number' && (extent < times || (times === 1 && extent % this.elements === 0))) return
    const enough = (): void => {
      f.get(counter)
      if (typeof extent === 'number') f.i32Const(extent - times)
      else {
        x.addressing.pushSize(extent)
        f.i32Const(times)
        f.op('i32.sub')
      }
      f.op('i32.le_s')
    }
    enough()
    f.if(() => {
      f.loop((again) => {
        this.once(stmt)
        f.later(() => x.addressing.advance(scope, times))
        f.get(counter)
        f.i32Const(times)
        f.op('i32.add')
        f.set(counter)
        enough()
        f.brIf(again)
      })
    })
  }
}
