// Evaluates expressions of the loop IR as vector code: a shared expression once per iteration, and loop invariants before the loop.
import { InternalError } from '../../errors/index.ts'
import { dtypeInfo } from '../dtype.ts'
import type { ComputeDType } from '../dtype.ts'
import type { ArrayPlace, ElementExpr, Expr, Index, LoadExpr, Local, LoopVar, Memory, Param, ReduceLanesExpr, Variable } from '../loopIr.ts'
import { ExprFacts, operandsOf } from '../analysis.ts'
import type { Effects } from '../analysis.ts'
import type { FunctionBuilder, PlainOp, ValueType } from './assembler.ts'
import type { Addressing } from './addressing.ts'
import { emitLoad } from './memory.ts'
import type { Place } from './memory.ts'
import type { ModuleFunctions } from './moduleFunctions.ts'
import { roundToNarrow } from './narrowTypes.ts'
import { constantVal, emitCall, emitCast, emitCombine } from './operations.ts'
import { RegisterArrays } from './registerArrays.ts'
import type { ArrayElement } from './registerArrays.ts'
import { VectorCode } from './vectorCode.ts'
import type { Elements, Val } from './vectorCode.ts'

/** The WebAssembly type of a scalar parameter, by the dtype that it is computed in, and the instructions that bring one into all lanes. */
const SCALARS: Readonly<Record<ComputeDType, { readonly type: ValueType; readonly splat: readonly PlainOp[] }>> = {
  bool: { type: 'i32', splat: ['i32x4.splat'] },
  int32: { type: 'i32', splat: ['i32x4.splat'] },
  int64: { type: 'f64', splat: ['i64.trunc_sat_f64_s', 'i64x2.splat'] },
  float32: { type: 'f32', splat: ['f32x4.splat'] },
  float64: { type: 'f64', splat: ['f64x2.splat'] },
}

/** The WebAssembly type of a parameter. */
export const paramType = (param: Param): ValueType => (param.kind === 'scalar' ? SCALARS[dtypeInfo[param.dtype].compute].type : 'i32')

/** The values of expressions, by the iteration that they belong to where several are written out. */
type Memo = Map<Expr, Map<string, Val>>

export class ExpressionEmitter {
  readonly f: FunctionBuilder
  readonly code: VectorCode
  readonly addressing: Addressing
  /** The loop whose iterations run in lanes, if any. */
  simd: LoopVar | null = null
  /** Where each local lives. */
  readonly locals: Map<Local, Val> = new Map()
  /** Locals declared inside the current simd loop, which differ between lanes. */
  readonly laneLocals: Set<Local> = new Set()
  readonly functions: ModuleFunctions
  /** The local arrays in scope. */
  readonly arrays: RegisterArrays
  private readonly facts = new ExprFacts()
  private readonly memos: Memo[] = [new Map()]
  private varying = new Map<Expr, boolean>()

  constructor(functions: ModuleFunctions, code: VectorCode, addressing: Addressing) {
    this.functions = functions
    this.f = code.f
    this.code = code
    this.arrays = new RegisterArrays(code)
    this.addressing = addressing
  }

  /** Another one for the same loops, which shares no values with this one: its vectors have another number of elements. */
  inVectorsOf(elements: Elements): ExpressionEmitter {
    return new ExpressionEmitter(this.functions, new VectorCode(this.f, elements), this.addressing)
  }

  /** Whether lanes run along `simd`; else code runs one element at a time, and all lanes of every value are equal. */
  get wide(): boolean {
    return this.code.wide
  }

  /** Runs `body` in a scope of its own: the values computed in it are forgotten afterwards. */
  remembering(body: () => void): void {
    this.memos.push(new Map())
    this.code.scope(body)
    this.memos.pop()
    this.arrays.forget(null)
  }

  /** Runs `body`, and forgets the values computed in it afterwards; their locals stay taken. */
  apart(body: () => void): void {
    this.memos.push(new Map())
    body()
    this.memos.pop()
  }

  /** Forgets the values that depend on a local or a local array. */
  forget(changed: Variable): void {
    if ('shape' in changed) this.arrays.forget(changed)
    for (const memo of this.memos) for (const expr of memo.keys()) if (this.facts.variablesOf(expr).has(changed)) memo.delete(expr)
  }

  /** Which of the iterations that are written out an expression belongs to: those that have the same share its value. */
  private copyOf(expr: Expr): string {
    const { scopes } = this.addressing
    if (!scopes.some(({ kind }) => kind === 'known')) return ''
    const loops = this.facts.loopsOf(expr)
    let copy = ''
    for (const scope of scopes) {
      if (scope.kind === 'known' && loops.has(scope.loop)) copy += `${scope.value} `
    }
    return copy
  }

  /** Runs `body` in lanes along `simd` (or, with wide = false, one element at a time). */
  inLanes(simd: LoopVar | null, wide: boolean, vectors: number, body: () => void): void {
    const before = { simd: this.simd, wide: this.wide, vectors: this.code.vectors, varying: this.varying }
    this.simd = simd
    this.code.wide = wide
    this.code.vectors = vectors
    this.varying = new Map()
    body()
    this.simd = before.simd
    this.code.wide = before.wide
    this.code.vectors = before.vectors
    this.varying = before.varying
  }

  /** The value of an expression. */
  value(expr: Expr): Val {
    if (expr.kind === 'const') return constantVal(this.code, expr.dtype, expr.value)
    if (expr.kind === 'local') {
      const val = this.locals.get(expr.local)
      if (val === undefined) throw new InternalError(`the local ${expr.local.name} is read where it is not declared`)
      return val
    }
    if (expr.kind === 'element') return this.arrays.element(expr.array, this.arrayPlace(expr.place))
    const copy = this.copyOf(expr)
    for (let i = this.memos.length - 1; i >= 0; i--) {
      const known = this.memos[i]?.get(expr)?.get(copy)
      if (known !== undefined) return known
    }
    const val = this.compute(expr)
    const memo = this.memos.at(-1)
    const values = memo?.get(expr)
    if (values === undefined) memo?.set(expr, new Map([[copy, val]]))
    else values.set(copy, val)
    return val
  }

  /** The element of a local array that code accesses now. */
  arrayPlace(place: ArrayPlace): ArrayElement {
    let lanes: number | null = null
    const indices = place.map(({ base, terms }, d) => {
      let at = typeof base === 'number' ? base : NaN
      for (const { loop, stride } of terms) {
        if (loop === this.simd && this.wide) lanes = d
        at += (this.addressing.known(loop) ?? NaN) * Number(stride)
      }
      return at
    })
    return { indices, lanes }
  }

  private compute(expr: Exclude<Expr, { kind: 'const' | 'local' | 'element' }>): Val {
    const { code, f } = this
    switch (expr.kind) {
      case 'scalar': {
        f.get(this.addressing.param(expr.param))
        f.ops(...SCALARS[dtypeInfo[expr.dtype].compute].splat)
        const value: Val = [code.pop()]
        return expr.dtype === 'bool' ? code.op2('i32x4.ne', value, code.i32(0)) : roundToNarrow(code, expr.dtype, value)
      }
      case 'iota':
        return this.iota(expr.loop)
      case 'sizeOf':
        this.addressing.pushSize(expr.size)
        f.op('i32x4.splat')
        return [code.pop()]
      case 'load': {
        const mask = expr.mask === null ? null : this.value(expr.mask)
        return emitLoad(code, this.place(expr.buffer, expr.index), mask)
      }
      case 'cast':
        return emitCast(code, this.value(expr.value), expr.value.dtype, expr.dtype)
      case 'reduceLanes':
        return this.arrays.reduced(expr.array, this.arrayPlace(expr.place), (a, b) =>
          emitCombine(code, this.functions, expr.combine, expr.dtype, a, b),
        )
      case 'call':
        return emitCall(
          code,
          this.functions,
          expr,
          expr.args.map((arg) => this.value(arg)),
        )
    }
  }

  private iota(loop: LoopVar): Val {
    const { code, f } = this
    const scope = this.addressing.scopes.findLast((s) => s.loop === loop)
    if (scope === undefined) throw new InternalError(`the loop variable ${loop.name} is read outside its loop`)
    let first: Val
    if (scope.kind === 'known') first = code.i32(scope.value)
    else {
      scope.counterUsed = true
      f.get(scope.counter)
      f.op('i32x4.splat')
      first = [code.pop()]
    }
    if (!this.wide || loop !== this.simd) return first
    const lanes = code.op2('i32x4.add', first, code.elementNumbers())
    return code.perVector((v) => (v === 0 ? lanes[0] : code.op2('i32x4.add', lanes, code.i32(v * code.elements))[0]))
  }

  /** Where `buffer[index]` is for the current lanes. */
  place(buffer: Memory, index: Index): Place {
    const { code, f, addressing } = this
    const { size } = dtypeInfo[buffer.dtype]
    const simd = this.wide ? this.simd : null
    let address = addressing.address(buffer, index, simd)
    let laneOffsets: Val | null = null
    let uniform: number | null = null
    for (const { value, stride } of index.dynamic) {
      const elements = this.value(value)
      const bytes = addressing.bytesOf(stride, size)
      if (this.wide && this.varies(value)) {
        const factor = 'known' in bytes ? code.i32(bytes.known) : this.splat(bytes.local)
        const offsets = code.op2('i32x4.mul', elements, factor)
        laneOffsets = laneOffsets === null ? offsets : code.op2('i32x4.add', laneOffsets, offsets)
        continue
      }
      f.get(uniform ?? address.local)
      f.get(elements[0])
      f.lane('i32x4.extract_lane', 0)
      addressing.pushBytes(bytes, 1)
      f.ops('i32.mul', 'i32.add')
      uniform = code.tempI32()
      f.set(uniform)
    }
    if (uniform !== null) address = { ...address, local: uniform }
    const { laneStride } = address
    return { dtype: buffer.dtype, address, laneOffsets, lanes: laneOffsets !== null || !('known' in laneStride) || laneStride.known !== 0 }
  }

  private splat(local: number): Val {
    this.f.get(local)
    this.f.op('i32x4.splat')
    return [this.code.pop()]
  }

  /** Whether an expression's value may differ between the lanes of the current simd loop. */
  varies(expr: Expr): boolean {
    let result = this.varying.get(expr)
    if (result === undefined) {
      result =
        (expr.kind === 'iota' && expr.loop === this.simd) ||
        (expr.kind === 'local' && this.laneLocals.has(expr.local)) ||
        (expr.kind === 'load' && expr.index.terms.some((term) => term.loop === this.simd)) ||
        (expr.kind === 'element' && expr.place.some(({ terms }) => terms.some((term) => term.loop === this.simd))) ||
        operandsOf(expr).some((operand) => this.varies(operand))
      this.varying.set(expr, result)
    }
    return result
  }

  /**
   * Evaluates the parts of `exprs` that do not change in a loop with these effects, before the loop. Loads are moved only out of loops without
   * stores, or out of simd loops, whose iterations are independent, that do not store to that buffer.
   */
  hoist(exprs: readonly Expr[], effects: Effects, simdLoop: boolean): void {
    const invariant = new Map<Expr, boolean>()
    const isInvariant = (expr: Expr): boolean => {
      let result = invariant.get(expr)
      if (result === undefined) {
        result =
          !(expr.kind === 'iota' && effects.loops.has(expr.loop)) &&
          !((expr.kind === 'element' || expr.kind === 'reduceLanes') && !this.arrayStays(expr, effects)) &&
          !(expr.kind === 'local' && (effects.declared.has(expr.local) || effects.changed.has(expr.local))) &&
          !(expr.kind === 'load' && !this.loadStays(expr, effects, simdLoop)) &&
          operandsOf(expr).every(isInvariant)
        invariant.set(expr, result)
      }
      return result
    }
    const seen = new Set<Expr>()
    const visit = (expr: Expr): void => {
      if (seen.has(expr)) return
      seen.add(expr)
      if (isInvariant(expr)) this.value(expr)
      else operandsOf(expr).forEach(visit)
    }
    exprs.forEach(visit)
  }

  private arrayStays({ array, place }: ElementExpr | ReduceLanesExpr, { declared, changed, loops }: Effects): boolean {
    return !declared.has(array) && !changed.has(array) && !place.some(({ terms }) => terms.some((term) => loops.has(term.loop)))
  }

  private loadStays(expr: LoadExpr, effects: Effects, simdLoop: boolean): boolean {
    if (expr.index.terms.some((term) => effects.loops.has(term.loop))) return false
    return effects.stored.size === 0 || (simdLoop && !effects.stored.has(expr.buffer.name))
  }
}
