// Emits kernels of the loop IR as C, whose vectors have up to 16 elements: a second emitter beside that of WebAssembly, with the same results. Sums have the order that WebAssembly gives them:
// a simd loop adds into the elements of four of its vectors, which are combined in pairs and then with each other.
import { InternalError } from '../../errors/index.ts'
import { ExprFacts, computedPlace, forEachExpr, strideAlong, touches64Bits, unknownStatement } from '../ir/analysis.ts'
import type { Effects } from '../ir/analysis.ts'
import type { Combine, Expr, ForStmt, Index, Kernel, Local, LoopVar, Memory, Param, Size, Stmt, Variable } from '../ir/loopIr.ts'
import { identityOf } from '../ir/loopIr.ts'
import { scratchLayout } from '../ir/scratchLayout.ts'
import { dtypeInfo } from '../numbers/dtype.ts'
import type { DType } from '../numbers/dtype.ts'
import { factsOf, flightOf, isWrittenOut, standsAlone } from '../emit/loopFacts.ts'
import { roundToNarrow } from '../wasm/narrowTypes.ts'
import { CCode } from './cCode.ts'
import type { CKind, CVal, Width } from './cCode.ts'
import { Accumulator } from './accumulator.ts'
import { Iterations } from './iterations.ts'
import { libraryFor } from './library.ts'
import { LocalArrays, vectorsFor } from './localArrays.ts'
import { emitLoadIn, emitStoreIn } from './memory.ts'
import type { CPlace } from './memory.ts'
import { constantIn } from '../numbers/constantCode.ts'
import { emitCallIn, emitCastIn, emitCombineIn, kindOf, whyNotInC } from './scalars.ts'

/** The type of a parameter: a 32-bit integer, or a floating-point number as WebAssembly gets it. */
export function cParamType(param: Param): 'int32_t' | 'float' | 'double' {
  if (param.kind !== 'scalar') return 'int32_t'
  const { compute } = dtypeInfo[param.dtype]
  return compute === 'float32' ? 'float' : compute === 'float64' || compute === 'int64' ? 'double' : 'int32_t'
}

/** Why a kernel cannot be written in C; null if it can. */
export function whyKernelIsNotInC(kernel: Kernel): string | null {
  let why: string | null = null
  forEachExpr(kernel.body, (expr) => (why ??= whyNotInC(expr)))
  return why
}

/** The types of a function's parameters: those of the kernel, then the address of its scratch memory. */
export const cSignature = ({ params, scratch = [] }: Pick<Kernel, 'params' | 'scratch'>): readonly string[] => [
  ...params.map(cParamType),
  ...(scratch.length > 0 ? ['int32_t'] : []),
]

/** A function of a translation unit. */
export interface CFunction {
  readonly name: string
  readonly kernel: Pick<Kernel, 'name' | 'params' | 'scratch' | 'body'>
  /** The kernel that it is a part of, which decides how many elements WebAssembly's vectors have. */
  readonly whole?: Kernel
}

/**
 * A translation unit with a function for each kernel, which takes what the kernel's WebAssembly function takes; addresses are those from `tfx_heap`, which `tfx_setHeap` sets. `fuses`:
 * whether a multiplication and an addition may be rounded once.
 */
export function emitSource(kernels: readonly CFunction[], fuses: boolean): string {
  const functions = kernels.map((one) => new KernelEmitter(one).emit(one.name))
  return [
    libraryFor(fuses),
    'static char *tfx_heap;',
    'void tfx_setHeap(void *heap) { tfx_heap = heap; }',
    'int32_t tfx_isHeap(void *heap) { return tfx_heap == heap; }',
    ...functions,
    '',
  ].join('\n')
}

class KernelEmitter {
  readonly #kernel: CFunction['kernel']
  readonly #code = new CCode()
  readonly #arrays: LocalArrays
  /** The widest vector. */
  readonly #most: Width
  /** How many elements WebAssembly's vectors have here: the order of sums depends on it. */
  #elements: 2 | 4
  readonly #pointers = new Map<Memory, string>()
  readonly #numbers = new Map<Param, string>()
  readonly #now = new Iterations()
  readonly #locals = new Map<Local, CVal>()
  #accumulators = new Map<Local, Accumulator>()
  readonly #memos: Map<Expr, CVal>[] = [new Map()]
  readonly #facts = new ExprFacts()

  constructor({ kernel, whole }: CFunction) {
    this.#kernel = kernel
    const is64 = touches64Bits((whole ?? kernel).body)
    this.#most = is64 ? 8 : 16
    this.#elements = is64 ? 2 : 4
    this.#arrays = new LocalArrays(this.#code, this.#most)
  }

  emit(name: string): string {
    const { params, scratch = [], body } = this.#kernel
    const types = cSignature(this.#kernel)
    const names = types.map((_, i) => `a${i}`)
    params.forEach((param, i) => this.#parameter(param, names[i] ?? ''))
    const layout = scratchLayout(scratch)
    for (const part of scratch) {
      const start = `(((uint32_t)${names.at(-1) ?? ''} + 63) & ~63u)`
      this.#pointers.set(part, this.#pointer(`${start} + (uint32_t)${this.#size(layout.offsets.get(part) ?? 0)}`))
    }
    this.#body(body)
    return `void ${name}(${types.map((type, i) => `${type} ${names[i] ?? ''}`).join(', ')}) {\n${this.#code.text()}\n}`
  }

  #pointer(offset: string): string {
    const name = this.#code.name('p')
    this.#code.line(`char *const ${name} = tfx_heap + ${offset};`)
    return name
  }

  #parameter(param: Param, name: string): void {
    if (param.kind === 'buffer') this.#pointers.set(param, this.#pointer(`(uint32_t)${name}`))
    else this.#numbers.set(param, name)
  }

  #size(size: Size): string {
    if (typeof size === 'number') return String(size)
    if (size.kind === 'size') return this.#numbers.get(size) ?? this.#missing(size.name)
    const [a, b] = [this.#size(size.a), this.#size(size.b)]
    if (size.op === 'roundDown') return `(${a} - ${a} % ${b})`
    return `(${a} ${size.op === 'add' ? '+' : size.op === 'sub' ? '-' : '*'} ${b})`
  }

  #missing(name: string): never {
    throw new InternalError(`kernel ${this.#kernel.name}: ${name} is used where it is not declared`)
  }

  #body(stmts: readonly Stmt[]): void {
    for (const stmt of stmts) this.#statement(stmt)
  }

  #statement(stmt: Stmt): void {
    switch (stmt.kind) {
      case 'for':
        return this.#loop(stmt)
      case 'declare': {
        const start = this.#value(stmt.init)
        this.#locals.set(stmt.local, this.#code.variable(kindOf(stmt.local.dtype), this.#now.width, start))
        return this.#forget(stmt.local)
      }
      case 'assign':
        this.#code.assign(this.#local(stmt.local), this.#value(stmt.value))
        return this.#forget(stmt.local)
      case 'accumulate': {
        const accumulator = this.#accumulators.get(stmt.local)
        const target = this.#local(stmt.local)
        const value = this.#value(stmt.value)
        if (accumulator !== undefined) accumulator.add(value, this.#now.width)
        else this.#code.assign(target, this.#combine(stmt.combine, stmt.local.dtype, target, value))
        return this.#forget(stmt.local)
      }
      case 'declareArray':
        this.#arrays.declare(stmt.array, this.#value(stmt.init))
        return this.#forget(stmt.array)
      case 'setElement': {
        const value = this.#value(stmt.value)
        this.#arrays.set(stmt.array, this.#now.indices(stmt.place), value)
        return this.#forget(stmt.array)
      }
      case 'store': {
        const value = this.#value(stmt.value)
        const place = this.#place(stmt.buffer, stmt.index)
        const { dtype } = stmt.buffer
        return emitStoreIn(
          this.#code,
          place,
          stmt.combine === null ? value : this.#combine(stmt.combine, dtype, emitLoadIn(this.#code, place, null), value),
        )
      }
      default:
        return unknownStatement(stmt, 'C')
    }
  }

  #combine(combine: Combine, dtype: DType, a: CVal, b: CVal): CVal {
    return emitCombineIn(this.#code, combine, dtype, a, b)
  }

  #local(local: Local): CVal {
    return this.#locals.get(local) ?? this.#missing(local.name)
  }

  #forget(variable: Variable): void {
    for (const memo of this.#memos) for (const expr of memo.keys()) if (this.#facts.variablesOf(expr).has(variable)) memo.delete(expr)
  }

  /** A block of C, whose values are forgotten afterwards. */
  #block(head: string, body: () => void): void {
    this.#memos.push(new Map())
    this.#code.block(head, body)
    this.#memos.pop()
  }

  #loop(stmt: ForStmt): void {
    const { extent } = stmt.loop
    if (typeof extent === 'number' && extent <= 0) return
    if (this.#elements === 2 && this.#now.lanes === null && standsAlone(stmt)) {
      this.#elements = 4
      this.#running(stmt)
      this.#elements = 2
    } else this.#running(stmt)
  }

  #running(stmt: ForStmt): void {
    const { effects, invariants } = factsOf(stmt, false)
    for (const changed of effects.changed.keys()) this.#forget(changed)
    // What is moved in front of a loop must not be computed where the loop does not run.
    this.#block(typeof stmt.loop.extent === 'number' ? '' : `if (${this.#size(stmt.loop.extent)} > 0)`, () => {
      for (const expr of invariants.exprs) this.#value(expr)
      if (isWrittenOut(stmt.mode)) this.#writtenOut(stmt)
      else if (stmt.mode === 'simd') this.#simd(stmt, effects)
      else this.#oneByOne(stmt)
    })
    for (const changed of effects.changed.keys()) this.#forget(changed)
  }

  #oneByOne({ loop, body }: ForStmt): void {
    const counter = this.#counter(loop)
    const head = `for (i1 ${counter} = 0; ${counter} < ${this.#size(loop.extent)}; ${counter} += ${loop.step})`
    this.#block(head, () => this.#body(body))
    this.#now.counters.delete(loop)
  }

  #counter(loop: LoopVar): string {
    const counter = this.#code.name('n')
    this.#now.counters.set(loop, counter)
    return counter
  }

  #writtenOut({ loop, mode, body }: ForStmt): void {
    const extent = Number(loop.extent)
    const iteration = (value: number): void => {
      this.#now.known.set(loop, value)
      this.#memos.push(new Map())
      this.#body(body)
      this.#memos.pop()
    }
    if (mode === 'unroll') for (let value = 0; value < extent; value += loop.step) iteration(value)
    else for (const { from, width } of vectorsFor(extent, this.#most)) this.#now.inLanes(loop, width, () => iteration(from))
    this.#now.known.delete(loop)
  }

  /** A simd loop: first with the widest vectors, then with those of WebAssembly, then single elements. */
  #simd(stmt: ForStmt, { changed, declared }: Effects): void {
    const { loop } = stmt
    const elements = this.#elements
    const { extent } = loop
    const { vectors, isOne } = flightOf(stmt, elements)
    const sums: (readonly [Local, Combine])[] = []
    for (const [variable, how] of changed) if (how !== 'assign' && !declared.has(variable) && !('shape' in variable)) sums.push([variable, how])
    const counter = this.#counter(loop)
    this.#code.line(`i1 ${counter} = 0;`)
    const wide = sums.length > 0 ? elements * vectors : this.#most
    const least = typeof extent === 'number' ? extent : Infinity
    const times = (width: Width): void => {
      if (typeof extent === 'number' && (extent < width || (width === 1 && extent % elements === 0))) return
      this.#now.inLanes(loop, width, () =>
        this.#block(`for (; ${counter} <= ${this.#size(extent)} - ${width}; ${counter} += ${width})`, () => this.#body(stmt.body)),
      )
    }
    if (least >= elements) {
      const before = this.#accumulators
      this.#accumulators = new Map(sums.map(([variable, how]) => [variable, this.#accumulator(variable, how, isOne ? elements : wide)]))
      if (wide > elements) times(wide)
      this.#accumulators = new Map([...this.#accumulators].map(([variable, parts]) => [variable, parts.merged(elements)]))
      times(elements)
      for (const [variable, how] of sums) this.#combineLanes(variable, how)
      this.#accumulators = before
    }
    times(1)
    this.#now.counters.delete(loop)
  }

  #accumulator(variable: Local, combine: Combine, width: Width): Accumulator {
    const { dtype } = variable
    const start = constantIn(this.#code, dtype, identityOf(combine, dtype).value)
    return new Accumulator(this.#code, this.#code.variable(kindOf(dtype), width, start), (a, b) => this.#combine(combine, dtype, a, b))
  }

  #combineLanes(variable: Local, combine: Combine): void {
    const accumulator = this.#accumulators.get(variable)
    if (accumulator === undefined) throw new InternalError(`the local ${variable.name} has no accumulator in this loop`)
    const target = this.#local(variable)
    this.#code.assign(target, this.#combine(combine, variable.dtype, target, accumulator.whole()))
  }

  #value(expr: Expr): CVal {
    if (expr.kind === 'const') return constantIn(this.#code, expr.dtype, expr.value)
    if (expr.kind === 'local') return this.#local(expr.local)
    if (expr.kind === 'element' && computedPlace(expr.place) === null) return this.#arrays.elements(expr.array, this.#now.indices(expr.place))
    for (let i = this.#memos.length - 1; i >= 0; i--) {
      const known = this.#memos[i]?.get(expr)
      if (known !== undefined) return known
    }
    const value = this.#compute(expr)
    this.#memos.at(-1)?.set(expr, value)
    return value
  }

  #compute(expr: Exclude<Expr, { kind: 'const' | 'local' }>): CVal {
    const code = this.#code
    switch (expr.kind) {
      case 'scalar':
        return this.#scalar(expr.param.dtype, this.#numbers.get(expr.param) ?? this.#missing(expr.param.name))
      case 'iota':
        return this.#iota(expr.loop)
      case 'sizeOf':
        return code.let('i', 1, this.#size(expr.size))
      case 'lookup': {
        const numbers = this.#now.numbersOf(expr)
        return numbers === null ? code.i32(this.#now.numberOf(expr, 0)) : code.vector('i', numbers.map(String))
      }
      case 'load': {
        const mask = expr.mask === null ? null : this.#value(expr.mask)
        return emitLoadIn(code, this.#place(expr.buffer, expr.index), mask)
      }
      case 'cast':
        return emitCastIn(code, this.#value(expr.value), expr.value.dtype, expr.dtype)
      case 'element':
        return this.#computedElement(expr)
      case 'reduceLanes':
        return this.#reduced(expr)
      default:
        return emitCallIn(
          code,
          expr,
          expr.args.map((arg) => this.#value(arg)),
        )
    }
  }

  #scalar(dtype: DType, name: string): CVal {
    const code = this.#code
    const { compute } = dtypeInfo[dtype]
    if (compute === 'float64') return code.let('d', 1, name)
    if (compute === 'int64') return code.let('l', 1, `i64OfF64_1(${name})`)
    if (compute === 'float32') return roundToNarrow(code, dtype, code.let('i', 1, `I1(${name})`))
    return roundToNarrow(code, dtype, code.let('i', 1, compute === 'bool' ? `-(${name} != 0)` : name))
  }

  #iota(loop: LoopVar): CVal {
    const code = this.#code
    const first = String(this.#now.first(loop))
    if (loop !== this.#now.lanes || this.#now.width === 1) return code.let('i', 1, first)
    return code.vector(
      'i',
      Array.from({ length: this.#now.width }, (_, lane) => `${first} + ${lane}`),
    )
  }

  /** The element of a row that a number chooses while the kernel runs. */
  #computedElement({ array, place }: Extract<Expr, { kind: 'element' }>): CVal {
    const code = this.#code
    const number = this.#value(computedPlace(place) ?? identityOf('add', 'int32'))
    const kind: CKind = kindOf(array.dtype)
    const rows = this.#now.indices(place.slice(0, -1)).map((indices) => {
      const row = code.name('r')
      const elements = this.#arrays.rowOf(array, [...indices, 0]).map(({ text }) => text)
      code.line(`const ${kind}1 ${row}[] = {${elements.join(', ')}};`)
      return row
    })
    const width = Math.max(number.width, rows.length)
    const at = (lane: number): string => `${rows[rows.length === 1 ? 0 : lane] ?? ''}[${code.element(number, lane)}]`
    return code.vector(
      kind,
      Array.from({ length: width }, (_, lane) => at(lane)),
    )
  }

  /** The elements of a row, combined in WebAssembly's order: its vectors in pairs, then the lanes of the last one, then single elements. */
  #reduced({ array, place, combine, dtype }: Extract<Expr, { kind: 'reduceLanes' }>): CVal {
    const elements = this.#elements
    const [indices = []] = this.#now.indices(place)
    const columns = array.shape.at(-1) ?? 1
    const vectors = Math.floor(columns / elements)
    const both = (a: CVal, b: CVal): CVal => this.#combine(combine, dtype, a, b)
    const inPairs = (from: number, to: number): CVal => {
      if (to - from === 1) return this.#arrays.neighbours(array, indices, from * elements, elements)
      const middle = (from + to) >> 1
      return both(inPairs(from, middle), inPairs(middle, to))
    }
    let sum = vectors === 0 ? null : inPairs(0, vectors)
    for (let width = elements / 2; sum !== null && width >= 1; width /= 2)
      sum = both(this.#code.part(sum, 0, width), this.#code.part(sum, width, width))
    for (let column = vectors * elements; column < columns; column++) {
      const single = this.#arrays.neighbours(array, indices, column, 1)
      sum = sum === null ? single : both(sum, single)
    }
    return sum ?? this.#missing(array.name)
  }

  /** Where `memory[index]` is, for each lane. */
  #place(memory: Memory, index: Index): CPlace {
    const { dtype } = memory
    const pointer = this.#pointers.get(memory) ?? this.#missing(memory.name)
    const texts: string[] = []
    let known = 0
    const add = (value: number | string, stride: Size): void => {
      if (typeof value === 'number' && typeof stride === 'number') known += value * stride
      else texts.push(stride === 1 ? `(l1)${value}` : `(l1)${value} * ${this.#size(stride)}`)
    }
    add(1, index.base)
    for (const { loop, stride } of index.terms) add(this.#now.first(loop), stride)
    const lanes: (number | string)[] = Array.from({ length: this.#now.width }, () => 0)
    const plus = (lane: number, value: number | string): void => {
      const sum = lanes[lane] ?? 0
      lanes[lane] = typeof sum === 'number' && typeof value === 'number' ? sum + value : `${sum} + ${value}`
    }
    for (const { value, stride } of index.dynamic) this.#addDynamic(value, stride, add, plus)
    if (this.#now.lanes !== null && this.#now.width > 1) {
      const along = strideAlong(index.terms, this.#now.lanes)
      if (typeof along !== 'number') {
        const step = `(l1)(${along.map((size) => this.#size(size)).join(' + ')})`
        lanes.forEach((_, lane) => plus(lane, lane === 0 ? 0 : `${lane} * ${step}`))
      } else lanes.forEach((_, lane) => plus(lane, lane * along))
    }
    const { size } = dtypeInfo[dtype]
    const offset = [...texts, ...(known === 0 && texts.length > 0 ? [] : [String(known)])].join(' + ')
    const isShared = lanes.every((lane) => lane === 0) && (this.#now.width > 1 || this.#now.lanes === null)
    return { dtype, address: `${pointer} + ${size} * (${offset})`, lanes: isShared || this.#now.width === 1 ? null : lanes }
  }

  /** A computed part of an index: added for all lanes, or for each. */
  #addDynamic(
    value: Expr,
    stride: Size,
    add: (value: number | string, stride: Size) => void,
    plus: (lane: number, value: number | string) => void,
  ): void {
    if (value.kind === 'const') return add(Number(value.value), stride)
    if (value.kind === 'lookup') {
      const numbers = this.#now.numbersOf(value)
      if (numbers === null) return add(this.#now.numberOf(value, 0), stride)
      return numbers.forEach((number, lane) => plus(lane, typeof stride === 'number' ? number * stride : `(l1)${number} * ${this.#size(stride)}`))
    }
    const number = this.#value(value)
    if (number.width === 1) return add(`(${number.text})`, stride)
    for (let lane = 0; lane < number.width; lane++)
      plus(lane, stride === 1 ? `(l1)${this.#code.element(number, lane)}` : `(l1)${this.#code.element(number, lane)} * ${this.#size(stride)}`)
    return undefined
  }
}
