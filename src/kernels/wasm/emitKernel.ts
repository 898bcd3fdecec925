// The WebAssembly emitter of the loop IR.
//
// Every value is a v128: four lanes of float32, int32 or bool (an all-ones or all-zeros mask; one byte in memory). Outside simd loops, and in the
// rest of a simd loop whose length is no multiple of four, only lane 0 counts: the same vector code runs at width 1, so that a value has the
// same bits wherever it is computed. Kernels that touch float64 run at width 1 throughout.
import type { DType } from '../dtype.ts'
import { dtypeInfo } from '../dtype.ts'
import type { BufferParam, Combine, Expr, Index, Kernel, Local, LoopVar, Size, Stmt } from '../loopIr.ts'
import { ModuleBuilder } from './assembler.ts'
import type { FunctionBuilder, ValueType } from './assembler.ts'
import { emitCall, emitCast } from './emitOps.ts'
import type { MathImports, OpContext } from './emitOps.ts'

/** The functions that float64 (and rare float32) mathematics imports from the host. */
export const MATH_IMPORTS = ['exp', 'expm1', 'log', 'log1p', 'sin', 'cos', 'tanh', 'pow', 'erf'] as const

/** Emits a kernel as a module that imports env.memory and math.*, and exports `run`. */
export function emitKernel(kernel: Kernel): Uint8Array {
  const module = new ModuleBuilder()
  module.importMemory()
  const imports = importMath(module)
  const types = kernel.params.map((p): ValueType =>
    p.kind !== 'scalar' ? 'i32' : p.dtype === 'float32' ? 'f32' : p.dtype === 'float64' ? 'f64' : 'i32',
  )
  const f = module.function(types, [], 'run')
  const emitter = new KernelEmitter(f, imports, usesFloat64(kernel))
  emitter.kernel(kernel)
  return module.finish()
}

export function importMath(module: ModuleBuilder): MathImports {
  return Object.fromEntries(
    MATH_IMPORTS.map((name) => [name, module.importFunction('math', name, name === 'pow' ? ['f64', 'f64'] : ['f64'], ['f64'])]),
  ) as MathImports
}

function usesFloat64(kernel: Kernel): boolean {
  if (kernel.params.some((p) => p.kind !== 'size' && p.dtype === 'float64')) return true
  const inExpr = (e: Expr): boolean =>
    e.dtype === 'float64' ||
    (e.kind === 'call' && e.args.some(inExpr)) ||
    (e.kind === 'cast' && inExpr(e.value)) ||
    (e.kind === 'load' && ((e.mask !== null && inExpr(e.mask)) || e.index.dynamic.some((d) => inExpr(d.value))))
  const inStmt = (s: Stmt): boolean => (s.kind === 'for' ? s.body.some(inStmt) : s.kind === 'declare' ? inExpr(s.init) : inExpr(s.value))
  return kernel.body.some(inStmt)
}

/** Where code is being emitted: how many lanes count, and what is known there. */
interface Scope {
  readonly lanes: 1 | 4
  /** The simd loop around, with its element counter, and which of several vectors in flight this is. */
  readonly vector: { readonly loop: LoopVar; readonly counter: number; readonly unroll: number } | null
  /** Byte address of each access, as far as the loops around (but the simd one) determine it. */
  readonly addresses: Map<string, number>
  /** Values of expressions in this iteration. */
  readonly memo: Map<Expr, number>
  /** Outer locals spread to all lanes. */
  readonly spread: Map<Local, number>
  /** Loop-invariant loads, spread to all lanes. */
  readonly invariant: Map<string, number>
}

const UNROLL = 4

export class KernelEmitter implements OpContext {
  readonly f: FunctionBuilder
  readonly imports: MathImports
  readonly #narrow: boolean
  readonly #params = new Map<unknown, number>()
  readonly #loops = new Map<LoopVar, number>()
  readonly #locals = new Map<Local, { readonly local: number; readonly lanes: 1 | 4 }>()
  /** A simd loop of a template that runs over a part of its extent. */
  #range: { readonly loop: LoopVar; readonly first: number | null; readonly last: number | null } | null = null

  constructor(f: FunctionBuilder, imports: MathImports, narrow: boolean) {
    this.f = f
    this.imports = imports
    this.#narrow = narrow
  }

  v128(): number {
    return this.f.local('v128')
  }

  kernel(kernel: Kernel): void {
    this.bindParams(kernel.params)
    this.body(kernel.body, this.rootScope(kernel.body))
  }

  /** Parameters are the function's first locals; scalars are spread into vectors once. */
  bindParams(params: Kernel['params'], first = 0): void {
    const { f } = this
    params.forEach((p, i) => {
      if (p.kind !== 'scalar') return void this.#params.set(p, first + i)
      const v = this.v128()
      f.get(first + i)
      if (p.dtype === 'bool') {
        f.i32Const(0)
        f.op('i32.ne')
        f.i32Const(-1)
        f.op('i32.mul')
      }
      f.op(p.dtype === 'float32' ? 'f32x4.splat' : p.dtype === 'float64' ? 'f64x2.splat' : 'i32x4.splat')
      f.set(v)
      this.#params.set(p, v)
    })
  }

  /** Tells where a loop variable or local of an enclosing template lives. */
  bindLoop(loop: LoopVar, local: number): void {
    this.#loops.set(loop, local)
  }

  bindLocal(variable: Local, local: number, lanes: 1 | 4): void {
    this.#locals.set(variable, { local, lanes })
  }

  /** Tells where a buffer of an enclosing template starts. */
  bindBuffer(buffer: BufferParam, local: number): void {
    this.#params.set(buffer, local)
  }

  /** Runs statements for the columns first (null: 0) to last (null: the loop's extent) as a simd loop. */
  columns(loop: LoopVar, first: number | null, last: number | null, stmts: readonly Stmt[]): void {
    this.#range = { loop, first, last }
    this.#loops.delete(loop)
    this.#simdLoop(loop, stmts, this.rootScope(stmts))
    this.#range = null
  }

  rootScope(stmts: readonly Stmt[]): Scope {
    const scope: Scope = { lanes: 1, vector: null, addresses: new Map(), memo: new Map(), spread: new Map(), invariant: new Map() }
    for (const [key, access] of collectAccesses(stmts)) {
      const local = this.f.local('i32')
      this.f.get(this.#param(access.buffer))
      this.#addScaled(access.index.base, null, dtypeInfo[access.buffer.dtype].size)
      // Loops of an enclosing template are already running.
      for (const term of access.index.terms) {
        const counter = this.#loops.get(term.loop)
        if (counter !== undefined) this.#addScaled(term.stride, counter, dtypeInfo[access.buffer.dtype].size)
      }
      this.f.set(local)
      scope.addresses.set(key, local)
    }
    return scope
  }

  #param(key: unknown): number {
    const local = this.#params.get(key)
    if (local === undefined) throw new Error(`kernel parameter ${(key as { name?: string }).name ?? '?'} is not declared`)
    return local
  }

  /** Adds size * counter * bytes to the i32 on the stack (counter null: 1). */
  #addScaled(size: Size, counter: number | null, bytes: number): void {
    const { f } = this
    if (typeof size === 'number') {
      if (size === 0) return
      if (counter === null) f.i32Const(size * bytes)
      else {
        f.get(counter)
        this.#timesConstant(size * bytes)
      }
    } else {
      f.get(this.#param(size))
      if (counter !== null) {
        f.get(counter)
        f.op('i32.mul')
      }
      this.#timesConstant(bytes)
    }
    f.op('i32.add')
  }

  #timesConstant(k: number): void {
    const { f } = this
    if (k === 1) return
    if (k > 0 && (k & (k - 1)) === 0) {
      f.i32Const(31 - Math.clz32(k))
      f.op('i32.shl')
    } else {
      f.i32Const(k)
      f.op('i32.mul')
    }
  }

  #pushSize(size: Size): void {
    if (typeof size === 'number') this.f.i32Const(size)
    else this.f.get(this.#param(size))
  }

  body(stmts: readonly Stmt[], scope: Scope): void {
    for (const s of stmts) this.#stmt(s, scope)
  }

  #stmt(s: Stmt, scope: Scope): void {
    switch (s.kind) {
      case 'for':
        if (s.mode === 'simd' && scope.vector === null) this.#simdLoop(s.loop, s.body, scope)
        else this.#serialLoop(s.loop, s.body, scope)
        return
      case 'declare': {
        const local = this.v128()
        this.#value(s.init, scope)
        this.f.set(local)
        this.#locals.set(s.local, { local, lanes: scope.lanes })
        scope.memo.clear()
        return
      }
      case 'assign': {
        this.#value(s.value, scope)
        this.f.set(this.#localOf(s.local))
        scope.memo.clear()
        return
      }
      case 'accumulate': {
        const local = this.#localOf(s.local)
        this.f.get(local)
        this.#value(s.value, scope)
        this.combine(s.combine, s.local.dtype)
        this.f.set(local)
        return
      }
      default:
        this.#store(s.buffer, s.index, s.value, s.combine, scope)
    }
  }

  #localOf(variable: Local): number {
    const entry = this.#locals.get(variable)
    if (entry === undefined) throw new Error(`kernel local ${variable.name} is not declared`)
    return entry.local
  }

  combine(how: Combine, dtype: DType): void {
    const suffix = { add: 'add', mul: 'mul', min: 'min', max: 'max' }[how]
    if (dtype === 'float32') this.f.op(`f32x4.${suffix}` as 'f32x4.add')
    else if (dtype === 'float64') this.f.op(`f64x2.${suffix}` as 'f64x2.add')
    else if (dtype === 'bool') this.f.op(how === 'add' || how === 'max' ? 'v128.or' : 'v128.and')
    else this.f.op(how === 'min' ? 'i32x4.min_s' : how === 'max' ? 'i32x4.max_s' : (`i32x4.${suffix}` as 'i32x4.add'))
  }

  #serialLoop(loop: LoopVar, body: readonly Stmt[], scope: Scope): void {
    const { f } = this
    const counter = f.local('i32')
    this.#loops.set(loop, counter)
    f.i32Const(0)
    f.set(counter)
    f.block((end) => {
      this.#pushSize(loop.extent)
      f.i32Const(0)
      f.op('i32.le_s')
      f.brIf(end)
      f.loop((start) => {
        this.body(body, { ...scope, addresses: this.#addressesIn(body, loop, counter, scope), memo: new Map() })
        f.get(counter)
        f.i32Const(1)
        f.op('i32.add')
        f.tee(counter)
        this.#pushSize(loop.extent)
        f.op('i32.lt_s')
        f.brIf(start)
      })
    })
    scope.memo.clear()
  }

  /** Addresses for one iteration of a serial loop: those of the scope, advanced by the loop's own term. */
  #addressesIn(body: readonly Stmt[], loop: LoopVar, counter: number, scope: Scope): Map<string, number> {
    const { f } = this
    const addresses = new Map(scope.addresses)
    for (const [key, access] of collectAccesses(body)) {
      const own = access.index.terms.filter((t) => t.loop === loop)
      if (own.length === 0) continue
      const local = f.local('i32')
      f.get(scope.addresses.get(key) as number)
      for (const term of own) this.#addScaled(term.stride, counter, dtypeInfo[access.buffer.dtype].size)
      f.set(local)
      addresses.set(key, local)
    }
    return addresses
  }

  #simdLoop(loop: LoopVar, body: readonly Stmt[], scope: Scope): void {
    const { f } = this
    const counter = f.local('i32')
    this.#loops.set(loop, counter)
    const start = this.#range?.loop === loop ? this.#range.first : null
    if (start === null) f.i32Const(0)
    else f.get(start)
    f.set(counter)
    if (!this.#narrow) {
      const straight = body.every((s) => s.kind !== 'for')
      const unroll = straight && weight(body) <= 60 ? UNROLL : 1
      const prepared = this.#prepareVector(loop, body, scope)
      // Accumulators of their own for the lanes, one set per vector in flight.
      const accumulators = accumulated(body).filter((a) => this.#locals.has(a.local))
      const sets = Array.from({ length: unroll }, () => accumulators.map((a) => this.#identity(a.combine, a.local.dtype)))
      const outer = new Map(accumulators.map((a) => [a.local, this.#locals.get(a.local) as { local: number; lanes: 1 | 4 }]))
      const use = (u: number): void =>
        accumulators.forEach((a, i) => this.#locals.set(a.local, { local: (sets[u] as number[])[i] as number, lanes: 4 }))
      const run = (vectors: number): void =>
        this.#vectorLoop(loop, counter, vectors, () => {
          for (let u = 0; u < vectors; u++) {
            use(u)
            this.body(body, { ...prepared, lanes: 4, vector: { loop, counter, unroll: u }, memo: new Map() })
          }
        })
      if (unroll > 1) run(unroll)
      run(1)
      accumulators.forEach((a, i) => {
        const target = outer.get(a.local) as { local: number; lanes: 1 | 4 }
        this.#locals.set(a.local, target)
        this.#reduceLanes(
          sets.map((set) => set[i] as number),
          a.combine,
          a.local.dtype,
          target.local,
        )
      })
    }
    // What is left, one element at a time.
    this.#vectorLoop(loop, counter, 0, () => {
      this.body(body, { ...scope, lanes: 1, vector: { loop, counter, unroll: 0 }, memo: new Map() })
    })
    scope.memo.clear()
  }

  /** while (counter + step <= extent) { body; counter += step }, step = 4 * vectors (0 vectors: 1). */
  #vectorLoop(loop: LoopVar, counter: number, vectors: number, body: () => void): void {
    const { f } = this
    const step = vectors === 0 ? 1 : 4 * vectors
    const last = this.#range?.loop === loop ? this.#range.last : null
    if (last === null && typeof loop.extent === 'number' && vectors > 0 && loop.extent < step) return
    if (last === null && typeof loop.extent === 'number' && vectors === 0 && !this.#narrow && loop.extent % 4 === 0) return
    const atEnd = (): void => {
      f.get(counter)
      f.i32Const(step)
      f.op('i32.add')
      if (last === null) this.#pushSize(loop.extent)
      else f.get(last)
      f.op('i32.gt_s')
    }
    f.block((end) => {
      atEnd()
      f.brIf(end)
      f.loop((start) => {
        body()
        f.get(counter)
        f.i32Const(step)
        f.op('i32.add')
        f.set(counter)
        atEnd()
        f.op('i32.eqz')
        f.brIf(start)
      })
    })
  }

  /** Before a simd loop: outer locals and loop-invariant loads, spread to all lanes. */
  #prepareVector(loop: LoopVar, body: readonly Stmt[], scope: Scope): Scope {
    const { f } = this
    const spread = new Map(scope.spread)
    const invariant = new Map(scope.invariant)
    const written = storedBuffers(body)
    const changed = assignedLocals(body)
    visitExprs(body, (e) => {
      if (e.kind === 'local') {
        const entry = this.#locals.get(e.local)
        if (entry === undefined || entry.lanes === 4 || spread.has(e.local) || changed.has(e.local)) return
        const v = this.v128()
        f.get(entry.local)
        this.#splat(e.dtype)
        f.set(v)
        spread.set(e.local, v)
      } else if (e.kind === 'load' && e.mask === null && e.index.dynamic.length === 0) {
        const key = accessKey(e.buffer, e.index)
        const address = scope.addresses.get(key)
        const varies = e.index.terms.some((t) => t.loop === loop || !this.#loops.has(t.loop) || declaredIn(body, t.loop))
        if (address === undefined || varies || invariant.has(key) || written.has(e.buffer)) return
        const v = this.v128()
        this.#loadSplat(e.buffer.dtype, () => f.get(address))
        f.set(v)
        invariant.set(key, v)
      }
    })
    return { ...scope, spread, invariant }
  }

  /** Lane 0 of the vector on the stack, to all lanes. */
  #splat(dtype: DType): void {
    const { f } = this
    if (dtype === 'float64') {
      f.lane('f64x2.extract_lane', 0)
      f.op('f64x2.splat')
    } else {
      f.lane('i32x4.extract_lane', 0)
      f.op('i32x4.splat')
    }
  }

  #identity(how: Combine, dtype: DType): number {
    const { f } = this
    const v = this.v128()
    if (dtype === 'float32') f.f32x4Const(how === 'add' ? 0 : how === 'mul' ? 1 : how === 'min' ? Infinity : -Infinity)
    else if (dtype === 'bool') f.i32x4Const(how === 'add' || how === 'max' ? 0 : -1)
    else f.i32x4Const(how === 'add' ? 0 : how === 'mul' ? 1 : how === 'min' ? 2147483647 : -2147483648)
    f.set(v)
    return v
  }

  /** target = target combined with all lanes of all vectors. */
  #reduceLanes(vectors: readonly number[], how: Combine, dtype: DType, target: number): void {
    const { f } = this
    const [first, ...rest] = vectors
    f.get(first as number)
    for (const v of rest) {
      f.get(v)
      this.combine(how, dtype)
    }
    const sum = this.v128()
    f.set(sum)
    for (const order of [
      [2, 3, 0, 1],
      [1, 0, 3, 2],
    ] as const) {
      f.get(sum)
      f.get(sum)
      f.get(sum)
      f.shuffle32(order[0], order[1], order[2], order[3])
      this.combine(how, dtype)
      f.set(sum)
    }
    f.get(target)
    f.get(sum)
    this.combine(how, dtype)
    f.set(target)
  }

  // ---- values ----

  /** Leaves the value on the stack. */
  #value(e: Expr, scope: Scope): void {
    const { f } = this
    const known = scope.memo.get(e)
    if (known !== undefined) return f.get(known)
    switch (e.kind) {
      case 'const':
        return this.#constant(e.dtype, e.value)
      case 'scalar':
        return f.get(this.#param(e.param))
      case 'sizeOf':
        f.get(this.#param(e.size))
        return f.op('i32x4.splat')
      case 'iota':
        return this.#iota(e.loop, scope)
      case 'local':
        return this.#readLocal(e.local, scope)
      case 'load':
        this.#load(e.buffer, e.index, e.mask, scope)
        break
      case 'cast':
        this.#value(e.value, scope)
        emitCast(this, e.value.dtype, e.dtype)
        break
      default:
        for (const arg of e.args) this.#value(arg, scope)
        emitCall(this, e.op, e.args[e.op === 'where' ? 1 : 0]?.dtype ?? e.dtype, scope.lanes)
    }
    const v = this.v128()
    f.tee(v)
    scope.memo.set(e, v)
  }

  #constant(dtype: DType, value: number): void {
    if (dtype === 'float32') this.f.f32x4Const(value)
    else if (dtype === 'float64') this.f.f64x2Const(value)
    else this.f.i32x4Const(dtype === 'bool' ? (value === 0 ? 0 : -1) : value)
  }

  #iota(loop: LoopVar, scope: Scope): void {
    const { f } = this
    const counter = this.#loops.get(loop) as number
    f.get(counter)
    f.op('i32x4.splat')
    if (scope.vector?.loop !== loop || scope.lanes === 1) return
    const u = scope.vector.unroll * 4
    f.i32x4Lanes(u, u + 1, u + 2, u + 3)
    f.op('i32x4.add')
  }

  #readLocal(variable: Local, scope: Scope): void {
    const entry = this.#locals.get(variable)
    if (entry === undefined) throw new Error(`kernel local ${variable.name} is not declared`)
    const spread = scope.lanes === 4 && entry.lanes === 1 ? scope.spread.get(variable) : undefined
    this.f.get(spread ?? entry.local)
    if (scope.lanes === 4 && entry.lanes === 1 && spread === undefined) this.#splat(variable.dtype)
  }

  /** How far the access moves per element of the simd loop. */
  #vectorStride(index: Index, scope: Scope): Size {
    return scope.vector === null ? 0 : (index.terms.find((t) => t.loop === scope.vector?.loop)?.stride ?? 0)
  }

  /** Pushes the byte address of lane 0 of this vector, without dynamic parts. Returns the immediate offset to use with it. */
  #address(buffer: BufferParam, index: Index, scope: Scope): number {
    const { f } = this
    const bytes = dtypeInfo[buffer.dtype].size
    f.get(scope.addresses.get(accessKey(buffer, index)) as number)
    const stride = this.#vectorStride(index, scope)
    if (scope.vector === null || stride === 0) return 0
    this.#addScaled(stride, scope.vector.counter, bytes)
    if (scope.vector.unroll === 0) return 0
    if (typeof stride === 'number' && stride > 0) return scope.vector.unroll * 4 * stride * bytes
    if (typeof stride === 'number') {
      f.i32Const(scope.vector.unroll * 4 * stride * bytes)
      f.op('i32.add')
      return 0
    }
    f.get(this.#param(stride))
    this.#timesConstant(scope.vector.unroll * 4 * bytes)
    f.op('i32.add')
    return 0
  }

  #loadSplat(dtype: DType, address: () => void, offset = 0): void {
    const { f } = this
    address()
    if (dtype === 'bool') {
      f.memory('i32.load8_u', offset)
      f.i32Const(0)
      f.op('i32.ne')
      f.i32Const(-1)
      f.op('i32.mul')
      f.op('i32x4.splat')
    } else f.memory(dtype === 'float64' ? 'v128.load64_splat' : 'v128.load32_splat', offset)
  }

  #load(buffer: BufferParam, index: Index, mask: Expr | null, scope: Scope): void {
    const { f } = this
    const { dtype } = buffer
    if (mask !== null || index.dynamic.length > 0) return this.#loadLanes(buffer, index, mask, scope)
    const invariant = scope.lanes === 4 ? scope.invariant.get(accessKey(buffer, index)) : undefined
    if (invariant !== undefined) return f.get(invariant)
    const stride = this.#vectorStride(index, scope)
    if (scope.lanes === 1 || stride === 0) {
      const offset = this.#address(buffer, index, scope)
      const at = f.local('i32')
      f.set(at)
      return this.#loadSplat(dtype, () => f.get(at), offset)
    }
    if (stride === 1) {
      const offset = this.#address(buffer, index, scope)
      if (dtype !== 'bool') return f.memory('v128.load', offset)
      f.memory('v128.load32_zero', offset)
      f.op('i16x8.extend_low_i8x16_u')
      f.op('i32x4.extend_low_i16x8_u')
      f.i32x4Const(0)
      return f.op('i32x4.ne')
    }
    // A strided row: one load per lane.
    const offset = this.#address(buffer, index, scope)
    const at = f.local('i32')
    f.set(at)
    this.#gatherLanes(
      dtype,
      (lane) => {
        if (lane > 0) {
          f.get(at)
          this.#addScaled(stride, null, dtypeInfo[dtype].size)
          f.set(at)
        }
        f.get(at)
      },
      offset,
    )
  }

  /** Loads four lanes; `address` pushes each lane's address, in order. */
  #gatherLanes(dtype: DType, address: (lane: number) => void, offset = 0): void {
    const { f } = this
    const v = this.v128()
    if (dtype === 'bool') {
      f.i32x4Const(0)
      f.set(v)
      for (let lane = 0; lane < 4; lane++) {
        // Address first: the vector must lie below the value.
        address(lane)
        const byte = f.local('i32')
        f.memory('i32.load8_u', offset)
        f.set(byte)
        f.get(v)
        f.get(byte)
        f.lane('i32x4.replace_lane', lane)
        f.set(v)
      }
      f.get(v)
      f.i32x4Const(0)
      return f.op('i32x4.ne')
    }
    for (let lane = 0; lane < 4; lane++) {
      address(lane)
      if (lane === 0) f.memory('v128.load32_zero', offset)
      else {
        f.get(v)
        f.laneMemory('v128.load32_lane', lane, offset)
      }
      f.set(v)
    }
    f.get(v)
  }

  /** Dynamic indices and masks: lane by lane; a masked-off lane reads nothing and is 0. */
  #loadLanes(buffer: BufferParam, index: Index, mask: Expr | null, scope: Scope): void {
    const { f } = this
    const bytes = dtypeInfo[buffer.dtype].size
    const masked = mask === null ? null : this.#toLocal(mask, scope)
    const dynamic = index.dynamic.map((d) => ({ value: this.#toLocal(d.value, scope), stride: d.stride }))
    const result = this.v128()
    const lanes = scope.lanes
    f.i32x4Const(0)
    f.set(result)
    const stride = this.#vectorStride(index, scope)
    for (let lane = 0; lane < lanes; lane++) {
      const read = (): void => {
        const at = f.local('i32')
        const offset = this.#address(buffer, index, scope)
        if (lane > 0 && stride !== 0) {
          if (typeof stride === 'number') f.i32Const(lane * stride * bytes)
          else {
            f.get(this.#param(stride))
            this.#timesConstant(lane * bytes)
          }
          f.op('i32.add')
        }
        for (const d of dynamic) {
          f.get(d.value)
          f.lane('i32x4.extract_lane', lane)
          if (typeof d.stride === 'number') this.#timesConstant(d.stride * bytes)
          else {
            f.get(this.#param(d.stride))
            f.op('i32.mul')
            this.#timesConstant(bytes)
          }
          f.op('i32.add')
        }
        f.set(at)
        if (buffer.dtype === 'bool') {
          f.get(result)
          f.get(at)
          f.memory('i32.load8_u', offset)
          f.i32Const(0)
          f.op('i32.ne')
          f.i32Const(-1)
          f.op('i32.mul')
          f.lane('i32x4.replace_lane', lane)
        } else {
          f.get(at)
          f.get(result)
          f.laneMemory(buffer.dtype === 'float64' ? 'v128.load64_lane' : 'v128.load32_lane', lane, offset)
        }
        f.set(result)
      }
      if (masked === null) read()
      else {
        f.get(masked)
        f.lane('i32x4.extract_lane', lane)
        f.if(read)
      }
    }
    f.get(result)
  }

  #toLocal(e: Expr, scope: Scope): number {
    const v = this.v128()
    this.#value(e, scope)
    this.f.set(v)
    return v
  }

  #store(buffer: BufferParam, index: Index, value: Expr, combine: Combine | null, scope: Scope): void {
    const { f } = this
    const bytes = dtypeInfo[buffer.dtype].size
    const v = this.#toLocal(value, scope)
    const stride = this.#vectorStride(index, scope)
    if (scope.lanes === 4 && index.dynamic.length === 0 && stride === 1 && combine === null) {
      const offset = this.#address(buffer, index, scope)
      if (buffer.dtype !== 'bool') {
        f.get(v)
        return f.memory('v128.store', offset)
      }
      // Masks to bytes 0 or 1.
      f.get(v)
      f.i32x4Const(1)
      f.op('v128.and')
      f.get(v)
      f.op('i16x8.narrow_i32x4_u')
      const narrow = this.v128()
      f.tee(narrow)
      f.get(narrow)
      f.op('i8x16.narrow_i16x8_u')
      f.i32x4Const(0x01010101)
      f.op('v128.and')
      return f.laneMemory('v128.store32_lane', 0, offset)
    }
    const dynamic = index.dynamic.map((d) => ({ value: this.#toLocal(d.value, scope), stride: d.stride }))
    for (let lane = 0; lane < scope.lanes; lane++) {
      const at = f.local('i32')
      const offset = this.#address(buffer, index, scope)
      if (lane > 0 && stride !== 0) {
        if (typeof stride === 'number') f.i32Const(lane * stride * bytes)
        else {
          f.get(this.#param(stride))
          this.#timesConstant(lane * bytes)
        }
        f.op('i32.add')
      }
      for (const d of dynamic) {
        f.get(d.value)
        f.lane('i32x4.extract_lane', lane)
        if (typeof d.stride === 'number') this.#timesConstant(d.stride * bytes)
        else {
          f.get(this.#param(d.stride))
          f.op('i32.mul')
          this.#timesConstant(bytes)
        }
        f.op('i32.add')
      }
      f.set(at)
      let source = v
      if (combine !== null) {
        source = this.v128()
        this.#loadSplat(buffer.dtype, () => f.get(at), offset)
        f.get(v)
        this.combine(combine, buffer.dtype)
        f.set(source)
      }
      f.get(at)
      if (buffer.dtype === 'bool') {
        f.get(source)
        f.lane('i32x4.extract_lane', lane)
        f.i32Const(1)
        f.op('i32.and')
        f.memory('i32.store8', offset)
      } else {
        f.get(source)
        f.laneMemory(buffer.dtype === 'float64' ? 'v128.store64_lane' : 'v128.store32_lane', lane, offset)
      }
    }
  }
}

interface Access {
  readonly buffer: BufferParam
  readonly index: Index
}

const sizeKey = (s: Size): string => (typeof s === 'number' ? String(s) : s.name)

/** Two accesses with one key have the same address in every iteration, dynamic parts aside. */
function accessKey(buffer: BufferParam, index: Index): string {
  let key = `${buffer.name}|${sizeKey(index.base)}`
  for (const t of index.terms) key += `|${t.loop.name}*${sizeKey(t.stride)}`
  return key
}

function collectAccesses(stmts: readonly Stmt[]): Map<string, Access> {
  const found = new Map<string, Access>()
  const add = (buffer: BufferParam, index: Index): void => {
    const key = accessKey(buffer, index)
    if (!found.has(key)) found.set(key, { buffer, index })
  }
  visitExprs(stmts, (e) => {
    if (e.kind === 'load') add(e.buffer, e.index)
  })
  visitStmts(stmts, (s) => {
    if (s.kind === 'store') add(s.buffer, s.index)
  })
  return found
}

function visitStmts(stmts: readonly Stmt[], see: (s: Stmt) => void): void {
  for (const s of stmts) {
    see(s)
    if (s.kind === 'for') visitStmts(s.body, see)
  }
}

function visitExprs(stmts: readonly Stmt[], see: (e: Expr) => void): void {
  const seen = new Set<Expr>()
  const visit = (e: Expr): void => {
    if (seen.has(e)) return
    seen.add(e)
    see(e)
    if (e.kind === 'call') e.args.forEach(visit)
    else if (e.kind === 'cast') visit(e.value)
    else if (e.kind === 'load') {
      if (e.mask !== null) visit(e.mask)
      for (const d of e.index.dynamic) visit(d.value)
    }
  }
  visitStmts(stmts, (s) => {
    if (s.kind === 'declare') visit(s.init)
    else if (s.kind === 'store') {
      visit(s.value)
      for (const d of s.index.dynamic) visit(d.value)
    } else if (s.kind !== 'for') visit(s.value)
  })
}

function weight(stmts: readonly Stmt[]): number {
  let n = 0
  visitExprs(stmts, (e) => {
    n += e.kind === 'call' ? (['exp', 'log', 'tanh', 'erf', 'sigmoid', 'sin', 'cos', 'pow', 'expm1', 'log1p'].includes(e.op) ? 20 : 1) : 0
  })
  return n
}

function accumulated(stmts: readonly Stmt[]): { local: Local; combine: Combine }[] {
  const found = new Map<Local, Combine>()
  visitStmts(stmts, (s) => {
    if (s.kind === 'accumulate') found.set(s.local, s.combine)
  })
  return [...found].map(([local, combine]) => ({ local, combine }))
}

function assignedLocals(stmts: readonly Stmt[]): Set<Local> {
  const found = new Set<Local>()
  visitStmts(stmts, (s) => {
    if (s.kind === 'assign' || s.kind === 'accumulate' || s.kind === 'declare') found.add(s.local)
  })
  return found
}

function storedBuffers(stmts: readonly Stmt[]): Set<BufferParam> {
  const found = new Set<BufferParam>()
  visitStmts(stmts, (s) => {
    if (s.kind === 'store') found.add(s.buffer)
  })
  return found
}

function declaredIn(stmts: readonly Stmt[], loop: LoopVar): boolean {
  let found = false
  visitStmts(stmts, (s) => {
    if (s.kind === 'for' && s.loop === loop) found = true
  })
  return found
}

export { accessKey }
export type { Scope }
