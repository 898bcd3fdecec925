// Evaluates expressions of the loop IR as vector code: a shared expression once per iteration, and loop invariants before the loop.
import { InternalError } from '../../errors/index.ts'
import { dtypeInfo } from '../numbers/dtype.ts'
import type { ComputeDType } from '../numbers/dtype.ts'
import type { ArrayPlace, ElementExpr, Expr, Index, Local, LoopVar, Memory, Param, Size, Variable } from '../ir/loopIr.ts'
import { at } from '../ir/loopIr.ts'
import { remembered } from '../../protocol/index.ts'
import { ExprFacts, computedPlace, operandsOf } from '../ir/analysis.ts'
import type { FunctionBuilder, PlainOp, ValueType } from '../wasm/assembler.ts'
import type { Address, Addressing, Bytes } from './addressing.ts'
import type { ScalarOp } from '../scalars/scalarOps.ts'
import type { Invariants } from './loopFacts.ts'
import { emitLoad } from './memory.ts'
import type { Place } from './memory.ts'
import type { ModuleFunctions } from '../wasm/moduleFunctions.ts'
import { roundToNarrow } from '../wasm/narrowTypes.ts'
import { constantIn } from '../numbers/constantCode.ts'
import { emitCall, emitCast, emitCombine } from './operations.ts'
import { RegisterArrays } from './registerArrays.ts'
import type { ArrayElement } from './registerArrays.ts'
import { VectorCode } from '../wasm/vectorCode.ts'
import type { Elements, Val } from '../wasm/vectorCode.ts'

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

/** Operations on integers that addresses are computed with, one instruction each. */
const WHOLE = ['add', 'sub', 'mul'] as const
const isWhole = (op: ScalarOp): op is (typeof WHOLE)[number] => WHOLE.some((name) => name === op)

/** Which of the iterations that are written out a value belongs to, and what it is if that is not the value of the expression itself. */
type CopyKey = number | string

/** The values of expressions, by the iteration that they belong to where several are written out. */
type Memo = Map<Expr, Map<CopyKey, Val>>

/** The dynamic part of an index: what is added at run time, and numbers of tables and constants, which instructions contain. */
interface IndexParts {
  /** The index without the numbers that instructions contain. */
  readonly computed: Index
  readonly known: Index['dynamic']
}

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
  /** Those that are integers which all lanes share, as i32s too: until they change. */
  readonly numbers: Map<Local, number> = new Map()
  readonly functions: ModuleFunctions
  /** The local arrays in scope. */
  readonly arrays: RegisterArrays
  private readonly facts = new ExprFacts()
  private readonly memos: Memo[] = [new Map()]
  /** The expressions with values in memos, by the variables that they read. */
  private readonly readers = new Map<Variable, Set<Expr>>()
  private readonly parts = new Map<Index, IndexParts>()
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
    else this.numbers.delete(changed)
    for (const expr of this.readers.get(changed) ?? []) for (const memo of this.memos) memo.delete(expr)
    this.readers.delete(changed)
  }

  /** Which of the iterations that are written out an expression belongs to: those that have the same number share its value. */
  private copyOf(expr: Expr): number {
    const { addressing } = this
    let copy = 0
    for (const loop of this.facts.loopsOf(expr)) {
      // Loops that are written out have a known extent.
      if (addressing.isWrittenOut(loop)) copy = copy * (Number(loop.extent) + 1) + (addressing.known(loop) ?? -1) + 1
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
    if (expr.kind === 'const') return constantIn(this.code, expr.dtype, expr.value)
    if (expr.kind === 'local') {
      const val = this.locals.get(expr.local)
      if (val === undefined) throw new InternalError(`the local ${expr.local.name} is read where it is not declared`)
      return val
    }
    if (expr.kind === 'element') return this.element(expr)
    return this.remembered(expr, this.copyOf(expr), () => this.compute(expr))
  }

  /** What `make` returned when it was called with this expression and key, while the expression's value is the same. */
  private remembered(expr: Expr, key: CopyKey, make: () => Val): Val {
    for (let i = this.memos.length - 1; i >= 0; i--) {
      const known = this.memos[i]?.get(expr)?.get(key)
      if (known !== undefined) return known
    }
    const val = make()
    const memo = this.memos.at(-1)
    const values = memo?.get(expr)
    if (values === undefined) {
      memo?.set(expr, new Map([[key, val]]))
      for (const variable of this.facts.variablesOf(expr)) remembered(this.readers, variable, () => new Set<Expr>()).add(expr)
    } else values.set(key, val)
    return val
  }

  private element(expr: ElementExpr): Val {
    const { array, place } = expr
    const number = computedPlace(place)
    if (number === null) return this.arrays.element(array, this.arrayPlace(place))
    return this.remembered(expr, this.copyOf(expr), () => {
      const numbers = this.value(number)
      const bytes = this.remembered(number, `${this.copyOf(number)} bytes`, () => this.code.bytesOf(numbers))
      return this.arrays.computed(array, this.arrayPlace(place.with(place.length - 1, at())), numbers, bytes)
    })
  }

  /** The element of a local array that code accesses now. */
  arrayPlace(place: ArrayPlace): ArrayElement {
    const lanes = this.wide ? place.findIndex(({ terms }) => terms.some(({ loop }) => loop === this.simd)) : -1
    const chosen = place.some(({ dynamic }) => dynamic.some(({ value }) => this.wide && this.varies(value)))
    const indicesOf = (lane: number): number[] =>
      place.map(({ base, terms, dynamic }) => {
        const sum = this.knownIndex(base, terms, lane)
        return dynamic.reduce((total, { value, stride }) => total + this.numberOf(value, lane) * Number(stride), sum)
      })
    return {
      indices: indicesOf(0),
      lanes: lanes < 0 ? null : lanes,
      chosen: chosen ? Array.from({ length: this.code.elements }, (_, lane) => indicesOf(lane)) : null,
    }
  }

  /** An index that is known when code is written; in lanes that of one of them. */
  private knownIndex(base: Size, terms: Index['terms'], lane: number): number {
    return terms.reduce(
      (sum, { loop, stride }) => sum + ((this.addressing.known(loop) ?? NaN) + (this.wide && loop === this.simd ? lane : 0)) * Number(stride),
      Number(base),
    )
  }

  /** A constant or a number of a table; in lanes that of one of them. */
  private numberOf(expr: Expr, lane: number): number {
    if (expr.kind === 'const') return Number(expr.value)
    return (expr.kind === 'lookup' ? expr.values[this.knownIndex(expr.place.base, expr.place.terms, lane)] : undefined) ?? NaN
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
      case 'lookup': {
        if (!this.wide || !this.varies(expr)) return code.i32(this.numberOf(expr, 0))
        const { elements } = code
        const [a = 0, b = 0, c = 0, d = 0] = [0, 1, 2, 3].map((lane) => this.numberOf(expr, elements === 2 ? lane >> 1 : lane))
        f.i32x4Lanes(a, b, c, d)
        return [code.pop()]
      }
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
    const { dtype } = buffer
    const { size } = dtypeInfo[dtype]
    const { computed, known } = this.partsOf(index)
    const address = this.start(buffer, computed)
    const laneOffsets = this.laneOffsets(computed, size)
    const { offset, laneBytes } = this.fromTables(known, size)
    const { laneStride } = address
    const lanes = laneOffsets !== null || laneBytes !== null || !('known' in laneStride) || laneStride.known !== 0
    return { dtype, address: offset === 0 ? address : { ...address, offset: address.offset + offset }, laneOffsets, laneBytes, lanes }
  }

  private partsOf(index: Index): IndexParts {
    if (index.dynamic.length === 0) return { computed: index, known: index.dynamic }
    return remembered(this.parts, index, () => {
      const isKnown = ({ value, stride }: Index['dynamic'][number]): boolean =>
        (value.kind === 'lookup' || (value.kind === 'const' && Number(value.value) >= 0)) && typeof stride === 'number' && stride >= 0
      return { computed: { ...index, dynamic: index.dynamic.filter((entry) => !isKnown(entry)) }, known: index.dynamic.filter(isKnown) }
    })
  }

  /** Evaluates where `memory[index]` begins as far as all lanes have it in common. */
  startOf(memory: Memory, index: Index): void {
    this.start(memory, this.partsOf(index).computed)
  }

  /** Where the elements are from which those of the lanes have their own distances. */
  private start(memory: Memory, computed: Index): Address {
    const { addressing } = this
    const { size } = dtypeInfo[memory.dtype]
    const address = addressing.address(memory, computed, this.wide ? this.simd : null)
    if (computed.dynamic.length === 0) return address
    const local = computed.dynamic.reduce(
      (from, { value, stride }) => (this.wide && this.varies(value) ? from : this.shifted(from, value, addressing.bytesOf(stride, size))),
      address.local,
    )
    return { ...address, local }
  }

  /** What is added to an address for each lane, in bytes; null if nothing is. */
  private laneOffsets({ dynamic }: Index, size: number): Val | null {
    const { code, addressing } = this
    let laneOffsets: Val | null = null
    for (const { value, stride } of dynamic) {
      if (!this.wide || !this.varies(value)) continue
      const bytes = addressing.bytesOf(stride, size)
      const offsets = code.op2('i32x4.mul', this.value(value), 'known' in bytes ? code.i32(bytes.known) : this.splat(bytes.local))
      laneOffsets = laneOffsets === null ? offsets : code.op2('i32x4.add', laneOffsets, offsets)
    }
    return laneOffsets
  }

  /** What numbers of tables add to an address, in bytes, and to those of the lanes where they differ. */
  private fromTables(known: Index['dynamic'], size: number): { readonly offset: number; readonly laneBytes: readonly number[] | null } {
    if (known.length === 0) return { offset: 0, laneBytes: null }
    const bytes = Array.from({ length: this.wide ? this.code.elements : 1 }, (_, lane) =>
      known.reduce((sum, { value, stride }) => sum + this.numberOf(value, lane) * Number(stride) * size, 0),
    )
    const offset = Math.min(...bytes)
    return { offset, laneBytes: bytes.every((lane) => lane === offset) ? null : bytes.map((lane) => lane - offset) }
  }

  /** The local with an address and what lies before an element there that all lanes share, which is computed once. */
  private shifted(address: number, value: Expr, bytes: Bytes): number {
    const key = `${this.copyOf(value)} from ${address}, ${'known' in bytes ? bytes.known : `local ${bytes.local}`}`
    const [local] = this.remembered(value, key, () => {
      this.f.get(address)
      this.pushNumber(value)
      this.addressing.pushBytes(bytes, 1)
      this.f.ops('i32.mul', 'i32.add')
      const sum = this.code.tempI32()
      this.f.set(sum)
      return [sum]
    })
    return local
  }

  /** Pushes the i32 of a number that all lanes share. */
  pushNumber(value: Expr): void {
    const { f, addressing } = this
    if (value.kind === 'const') return f.i32Const(Number(value.value))
    if (value.kind === 'sizeOf') return addressing.pushSize(value.size)
    const [number] = this.remembered(value, `${this.copyOf(value)} number`, () => {
      const known = value.kind === 'local' ? this.numbers.get(value.local) : undefined
      if (known !== undefined) return [known]
      if (value.kind === 'load' && value.dtype === 'int32' && value.mask === null) {
        const { address } = this.place(value.buffer, value.index)
        f.get(address.local)
        f.memory('i32.load', address.offset)
      } else if (value.kind === 'call' && value.dtype === 'int32' && isWhole(value.op)) {
        for (const arg of value.args) this.pushNumber(arg)
        f.op(`i32.${value.op}`)
      } else {
        f.get(this.value(value)[0])
        f.lane('i32x4.extract_lane', 0)
      }
      const local = this.code.tempI32()
      f.set(local)
      return [local]
    })
    f.get(number)
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
        (expr.kind === 'lookup' && expr.place.terms.some((term) => term.loop === this.simd)) ||
        (expr.kind === 'local' && this.laneLocals.has(expr.local)) ||
        (expr.kind === 'load' && expr.index.terms.some((term) => term.loop === this.simd)) ||
        (expr.kind === 'element' && expr.place.some(({ terms }) => terms.some((term) => term.loop === this.simd))) ||
        operandsOf(expr).some((operand) => this.varies(operand))
      this.varying.set(expr, result)
    }
    return result
  }

  /** Evaluates what does not change in a loop, before the loop, and addresses as far as all iterations have them in common. */
  hoist({ exprs, starts }: Invariants): void {
    for (const expr of exprs) this.value(expr)
    for (const [memory, index] of starts) this.startOf(memory, index)
  }
}
