// A grid of independent iterations as a compute shader: a thread for each iteration, which runs the statements of the body in order.
//
// All memory is one array of words, the slab, and parameters are places in it: so there is no limit of buffers, and two parameters may be the same memory. Where one slab does not hold everything, a second form
// of the shader has several, and each parameter says which of them it is in. An element takes
// one word whatever its dtype (a bool 0 or 1, small integers and halves as the int32 or float32 they are computed in), and an int64 two: no two threads share a word.
import { UnsupportedError } from '../../errors/index.ts'
import { ExprFacts, computedPlace, effectsOf, operandDType, unknownStatement } from '../ir/analysis.ts'
import { KernelError } from '../ir/errors.ts'
import type { Grid } from '../ir/grid.ts'
import type {
  AccumulateStmt,
  ArrayPlace,
  Combine,
  ConstExpr,
  Expr,
  ForStmt,
  Index,
  LoadExpr,
  Local,
  LocalArray,
  LoopVar,
  Memory,
  Param,
  Size,
  Stmt,
  StoreStmt,
  Variable,
} from '../ir/loopIr.ts'
import { dtypeInfo } from '../numbers/dtype.ts'
import type { DType } from '../numbers/dtype.ts'
import { libraryFor } from './library.ts'
import { accessors, declarations, typeOf, wordsPer } from './shader.ts'
import type { Shader, ShaderWord } from './shader.ts'
import { checkOnDevice, emitConversion, emitScalar } from './scalars.ts'
import { NEUTRAL, exchange, sharedNest } from './team.ts'
import type { SharedNest } from './team.ts'
import { WgslCode } from './wgslCode.ts'

/** Threads in a workgroup, each of which has an iteration of its own. */
export const WORKGROUP = 64

/** How the iterations of a grid are computed. */
interface Form {
  /** The number of slabs that memory is in. */
  readonly slabs?: number
  /** The threads that share an iteration, a power of two, see teamOf: a workgroup. With 1, each iteration has a thread of its own. */
  readonly team?: number
}

/** Writes the shader of a grid. Throws UnsupportedError for what shaders cannot compute, such as float64. */
export function emitGrid(grid: Grid, { slabs = 1, team = 1 }: Form = {}): Shader {
  return new GridEmitter(grid, slabs, team).emit()
}

/** A sum as text, and `0u` for that of nothing. */
const sumOf = (terms: readonly string[]): string => (terms.length === 0 ? '0u' : terms.join(' + '))

class GridEmitter {
  readonly #grid: Grid
  readonly #slabs: number
  /** The slab that each memory is in, if there are several. */
  readonly #slabOf = new Map<Memory, string>()
  readonly #code = new WgslCode()
  readonly #words: ShaderWord[] = [{ kind: 'threads' }, { kind: 'zero' }]
  readonly #bases = new Map<Memory, string>()
  readonly #numbers = new Map<Param, string>()
  readonly #loops = new Map<LoopVar, string>()
  readonly #variables = new Map<Variable, string>()
  /** Sums, each with the name of what it lacks. */
  readonly #lacking = new Map<Local, string>()
  readonly #memos: Map<Expr, string>[] = [new Map()]
  readonly #facts = new ExprFacts()
  readonly #team: number
  /** The loop whose steps the team shares, while statements inside its nest are written, and whether they are inside of it. */
  #shared: { readonly loop: LoopVar; readonly stores: boolean; isInside: boolean } | null = null
  /** The types of what threads of the team give each other. */
  readonly #exchanged = new Set<string>()

  constructor(grid: Grid, slabs: number, team: number) {
    this.#grid = grid
    this.#slabs = slabs
    this.#team = team
  }

  emit(): Shader {
    const { name, params, scratch, loops, body } = this.#grid
    for (const param of params) this.#parameter(param)
    for (const part of scratch) this.#place(part)
    this.#iteration(loops)
    for (const part of scratch)
      this.#bases.set(part, this.#code.let(`${this.#base(part)} + thread * ${this.#size(part.elements)} * ${wordsPer(part.dtype)}u`))
    for (const stmt of body) this.#statement(stmt)
    const number = '(group.z * groups.y + group.y) * groups.x + group.x'
    const begin =
      this.#team === 1
        ? [`  let thread = (${number}) * ${WORKGROUP}u + local;`, '  if (thread >= uniforms[0].x) { return; }']
        : [`  for (var thread = ${number}; thread < uniforms[0].x; thread += groups.x * groups.y * groups.z) {`]
    const main = [
      ...[...this.#exchanged].map((type) => `var<workgroup> ${exchange(type)}: array<${type}, ${this.#team}>;`),
      `@compute @workgroup_size(${this.#team === 1 ? WORKGROUP : this.#team})`,
      'fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {',
      ...begin,
      this.#code.text(),
      ...(this.#team === 1 ? [] : ['  }']),
      '}',
    ].join('\n')
    const head = [...declarations(this.#slabs, this.#words.length), ...accessors(this.#slabs)]
    return { name, code: [...head, libraryFor(main), main, ''].join('\n'), words: this.#words }
  }

  #fail(message: string): never {
    throw new KernelError(`kernel ${this.#grid.name}: ${message}`)
  }

  #parameter(param: Param): void {
    if (param.kind === 'buffer') return this.#place(param)
    if (param.kind === 'size') {
      this.#numbers.set(param, this.#word({ kind: 'number', param, half: 0 }))
      return undefined
    }
    checkOnDevice(null, param.dtype)
    const low = this.#word({ kind: 'number', param, half: 0 })
    const value = wordsPer(param.dtype) === 2 ? this.#code.let(`vec2<u32>(${low}, ${this.#word({ kind: 'number', param, half: 1 })})`) : low
    this.#numbers.set(param, param.dtype === 'bool' ? this.#code.let(`0u - ${value}`) : value)
    return undefined
  }

  #place(memory: Memory): void {
    checkOnDevice(null, memory.dtype)
    this.#bases.set(memory, this.#word({ kind: 'memory', memory }))
    if (this.#slabs > 1) this.#slabOf.set(memory, this.#word({ kind: 'slab', memory }))
  }

  #word(word: ShaderWord): string {
    const at = this.#words.push(word) - 1
    return this.#code.let(`uniforms[${Math.floor(at / 4)}].${'xyzw'[at % 4] ?? 'x'}`)
  }

  /** The loop variables of this thread. The innermost loop changes fastest. */
  #iteration(loops: readonly LoopVar[]): void {
    let rest = 'thread'
    loops.toReversed().forEach((loop, i) => {
      const steps = loop.step === 1 ? this.#size(loop.extent) : `(${this.#size(loop.extent)} + ${loop.step - 1}u) / ${loop.step}u`
      const isLast = i === loops.length - 1
      const number = isLast ? rest : this.#code.let(`${rest} % (${steps})`)
      if (!isLast) rest = this.#code.let(`${rest} / (${steps})`)
      this.#loops.set(loop, loop.step === 1 ? number : this.#code.let(`${number} * ${loop.step}u`))
    })
  }

  #size(size: Size): string {
    if (typeof size === 'number') return `${size >>> 0}u`
    if (size.kind === 'size') return this.#numbers.get(size) ?? this.#fail(`the size ${size.name} is not a parameter`)
    const [a, b] = [this.#size(size.a), this.#size(size.b)]
    if (size.op === 'roundDown') return `(${a} - ${a} % ${b})`
    return `(${a} ${size.op === 'add' ? '+' : size.op === 'sub' ? '-' : '*'} ${b})`
  }

  /** The number of an element, modulo 2^32. */
  #index(index: Index): string {
    const terms = index.base === 0 ? [] : [this.#size(index.base)]
    const times = (value: string, stride: Size): string => (stride === 1 ? value : `${value} * ${this.#size(stride)}`)
    for (const { loop, stride } of index.terms) terms.push(times(this.#loop(loop), stride))
    for (const { value, stride } of index.dynamic) terms.push(times(this.#value(value), stride))
    return sumOf(terms)
  }

  #loop(loop: LoopVar): string {
    return this.#loops.get(loop) ?? this.#fail(`the loop variable ${loop.name} is used outside its loop`)
  }

  #base(memory: Memory): string {
    return this.#bases.get(memory) ?? this.#fail(`the memory ${memory.name} is not a parameter`)
  }

  /** The first word of an element. */
  #address(memory: Memory, index: Index): string {
    const at = this.#index(index)
    return this.#code.let(`${this.#base(memory)} + ${wordsPer(memory.dtype) === 2 ? `2u * (${at})` : at}`)
  }

  #statement(stmt: Stmt): void {
    switch (stmt.kind) {
      case 'for': {
        const nest = this.#team === 1 || this.#shared !== null ? null : sharedNest(stmt)
        return nest === null ? this.#iterate(stmt) : this.#share(stmt, nest)
      }
      case 'declare':
        return this.#declare(stmt.local, this.#value(stmt.init))
      case 'assign':
        return this.#set(stmt.local, this.#value(stmt.value))
      case 'accumulate':
        return this.#accumulate(stmt)
      case 'store':
        return this.#store(stmt)
      case 'declareArray': {
        const [name, value, size] = [this.#code.name('a'), this.#value(stmt.init), stmt.array.shape.reduce((n, d) => n * d, 1)]
        this.#variables.set(stmt.array, name)
        this.#code.line(`var ${name}: array<${typeOf(stmt.array.dtype)}, ${size}>;`)
        return this.#code.block(`for (var i = 0u; i < ${size}u; i++)`, () => this.#code.line(`${name}[i] = ${value};`))
      }
      case 'setElement': {
        const value = this.#value(stmt.value)
        this.#code.line(`${this.#element(stmt.array, stmt.place)} = ${value};`)
        return this.#forget(stmt.array)
      }
      default:
        return unknownStatement(stmt, 'WGSL')
    }
  }

  #declare(variable: Local, value: string): void {
    const name = this.#code.name('v')
    this.#variables.set(variable, name)
    this.#code.line(`var ${name}: ${typeOf(variable.dtype)} = ${value};`)
    if (this.#isSum(variable)) {
      this.#lacking.set(variable, `${name}_lacking`)
      this.#code.line(`var ${name}_lacking: u32 = 0u;`)
    }
    this.#forget(variable)
  }

  /** Whether a local is a sum of float32: what its additions lose is added again (Kahan), since one thread adds all elements one after the other. */
  #isSum(variable: Local): boolean {
    const kind = effectsOf(this.#grid.body).changed.get(variable)
    return kind === 'add' && variable.dtype === 'float32'
  }

  #set(variable: Local, value: string): void {
    this.#code.line(`${this.#variable(variable)} = ${value};`)
    this.#forget(variable)
  }

  #accumulate({ local, combine, value }: AccumulateStmt): void {
    const [name, added, lacking] = [this.#variable(local), this.#value(value), this.#lacking.get(local)]
    if (lacking === undefined) return this.#set(local, this.#combined(combine, local.dtype, name, added))
    const sum = this.#code.call('sum', name, lacking, added)
    this.#code.line(`${lacking} = ${sum}.y;`)
    return this.#set(local, `${sum}.x`)
  }

  #combined(combine: Combine, dtype: DType, a: string, b: string): string {
    return emitScalar({ code: this.#code, right: null }, combine, dtype, [a, b])
  }

  /** A loop nest whose steps the threads of the team share. Each has parts of the sums, which they put together in a tree afterwards. */
  #share(stmt: ForStmt, { loop, stores, sums }: SharedNest): void {
    const whole = sums.map(({ local, combine }) => {
      const [name, lacking] = [this.#variable(local), this.#lacking.get(local)]
      const part = this.#code.name('p')
      const first = combine === 'add' || combine === 'mul' ? `select(${NEUTRAL[combine](local.dtype)}, ${name}, local == 0u)` : name
      this.#code.line(`var ${part} = ${first};`)
      this.#variables.set(local, part)
      if (lacking !== undefined) {
        this.#code.line(`var ${part}_lacking = select(0u, ${lacking}, local == 0u);`)
        this.#lacking.set(local, `${part}_lacking`)
      }
      return { local, combine, name, lacking, part }
    })
    this.#shared = { loop, stores, isInside: false }
    this.#iterate(stmt)
    this.#shared = null
    for (const { local, combine, name, lacking, part } of whole) {
      this.#variables.set(local, name)
      if (lacking === undefined) {
        this.#inTree(typeOf(local.dtype), part, (a, b) => this.#combined(combine, local.dtype, a, b))
        this.#code.line(`${name} = ${exchange(typeOf(local.dtype))}[0];`)
      } else {
        this.#lacking.set(local, lacking)
        this.#inTree('vec2<u32>', `vec2<u32>(${part}, ${part}_lacking)`, (a, b) => this.#code.call('joined', a, b))
        // What is lacking may be more than the sum, if parts of it cancel each other.
        const sum = this.#code.call('sum', 'pairs[0].x', 'pairs[0].y', '0u')
        this.#code.line(`${name} = ${sum}.x;`)
        this.#code.line(`${lacking} = ${sum}.y;`)
      }
      this.#forget(local)
      this.#wait()
    }
  }

  /** Puts the values of the team's threads together, two by two. The result is the first word, or pair, of the exchange. */
  #inTree(type: string, value: string, combined: (a: string, b: string) => string): void {
    this.#exchanged.add(type)
    const at = (place: string): string => `${exchange(type)}[${place}]`
    this.#code.line(`${at('local')} = ${value};`)
    this.#code.line('workgroupBarrier();')
    this.#code.block(`for (var half = ${this.#team / 2}u; half > 0u; half >>= 1u)`, () => {
      this.#code.block('if (local < half)', () => {
        const [a, b] = [this.#code.let(at('local')), this.#code.let(at('local + half'))]
        this.#code.line(`${at('local')} = ${combined(a, b)};`)
      })
      this.#code.line('workgroupBarrier();')
    })
  }

  /** Until all threads of the team are here, and what they have stored is there for the others. */
  #wait(): void {
    this.#code.line('storageBarrier();')
    this.#code.line('workgroupBarrier();')
  }

  #store(stmt: StoreStmt): void {
    if (this.#team === 1 || this.#shared?.isInside === true) return this.#storeHere(stmt)
    // Every thread of the team has the value, and one stores it.
    this.#value(stmt.value)
    this.#memos.push(new Map())
    this.#code.block('if (local == 0u)', () => this.#storeHere(stmt))
    this.#memos.pop()
    return this.#wait()
  }

  #storeHere({ buffer, index, value, combine }: StoreStmt): void {
    const given = this.#value(value)
    const at = this.#address(buffer, index)
    const result = combine === null ? given : this.#combined(combine, buffer.dtype, this.#loaded(buffer, at), given)
    if (wordsPer(buffer.dtype) === 2) {
      this.#code.line(this.#write(buffer, at, `${result}.x`))
      this.#code.line(this.#write(buffer, `${at} + 1u`, `${result}.y`))
    } else this.#code.line(this.#write(buffer, at, buffer.dtype === 'bool' ? `${result} & 1u` : result))
  }

  /** A word of memory. */
  #read(memory: Memory, at: string): string {
    const slab = this.#slabOf.get(memory)
    return slab === undefined ? `slab[${at}]` : `loadWord(${slab}, ${at})`
  }

  #write(memory: Memory, at: string, word: string): string {
    const slab = this.#slabOf.get(memory)
    return slab === undefined ? `slab[${at}] = ${word};` : `storeWord(${slab}, ${at}, ${word});`
  }

  #iterate({ loop, body }: ForStmt): void {
    const { changed } = effectsOf(body)
    for (const variable of changed.keys()) this.#forget(variable)
    // Not i: the variable i32 would hide the type.
    const name = this.#code.name('n')
    this.#loops.set(loop, name)
    this.#memos.push(new Map())
    const shared = this.#shared?.loop === loop ? this.#shared : null
    const [first, step] = shared === null ? ['0u', loop.step] : [loop.step === 1 ? 'local' : `local * ${loop.step}u`, loop.step * this.#team]
    this.#code.block(`for (var ${name} = ${first}; ${name} < ${this.#size(loop.extent)}; ${name} += ${step}u)`, () => {
      if (shared !== null) shared.isInside = true
      for (const inner of body) this.#statement(inner)
      if (shared !== null) shared.isInside = false
    })
    this.#memos.pop()
    if (shared?.stores === true) this.#wait()
    for (const variable of changed.keys()) this.#forget(variable)
  }

  #forget(variable: Variable): void {
    for (const memo of this.#memos) for (const expr of memo.keys()) if (this.#facts.variablesOf(expr).has(variable)) memo.delete(expr)
  }

  #variable(variable: Variable): string {
    return this.#variables.get(variable) ?? this.#fail(`the local ${variable.name} is used before it is declared`)
  }

  /** An element of a local array; if fewer indices are given, the first that has them. */
  #element(array: LocalArray, place: ArrayPlace): string {
    const strides = array.shape.map((_, d) => array.shape.slice(d + 1).reduce((n, size) => n * size, 1))
    return `${this.#variable(array)}[${sumOf(place.map((index, d) => `(${this.#index(index)}) * ${strides[d] ?? 1}u`))}]`
  }

  #value(expr: Expr): string {
    for (const memo of this.#memos) {
      const known = memo.get(expr)
      if (known !== undefined) return known
    }
    const value = this.#compute(expr)
    this.#memos.at(-1)?.set(expr, value)
    return value
  }

  #compute(expr: Expr): string {
    switch (expr.kind) {
      case 'const':
        return this.#constant(expr)
      case 'scalar':
        return this.#numbers.get(expr.param) ?? this.#fail(`the number ${expr.param.name} is not a parameter`)
      case 'iota':
        return this.#loop(expr.loop)
      case 'sizeOf':
        return this.#code.let(this.#size(expr.size))
      case 'lookup':
        return this.#code.let(`array<u32, ${expr.values.length}>(${expr.values.map((value) => `${value}u`).join(', ')})[${this.#index(expr.place)}]`)
      case 'load':
        return this.#load(expr)
      case 'local':
        return this.#code.let(this.#variable(expr.local))
      case 'element': {
        const chosen = computedPlace(expr.place)
        if (chosen !== null) this.#value(chosen)
        return this.#code.let(this.#element(expr.array, expr.place))
      }
      case 'reduceLanes':
        throw new UnsupportedError('WebGPU: kernels of vectors have no shader code.')
      case 'cast':
        return emitConversion(this.#code, this.#value(expr.value), expr.value.dtype, expr.dtype)
      default: {
        const [, right] = expr.args
        const site = { code: this.#code, right: right?.kind === 'const' && typeof right.value === 'number' ? right.value : null }
        return emitScalar(
          site,
          expr.op,
          operandDType(expr),
          expr.args.map((arg) => this.#value(arg)),
        )
      }
    }
  }

  #constant({ dtype, value }: ConstExpr): string {
    checkOnDevice(null, dtype)
    const { compute } = dtypeInfo[dtype]
    if (compute === 'int64') return this.#code.i64(BigInt(value))
    if (compute === 'float32') return this.#code.f32(Number(value))
    return this.#code.i32(compute === 'bool' ? (Number(value) === 0 ? 0 : -1) : Number(value))
  }

  #load({ buffer, index, mask }: LoadExpr): string {
    if (mask === null) return this.#loaded(buffer, this.#address(buffer, index))
    const condition = this.#value(mask)
    const at = this.#address(buffer, index)
    const name = this.#code.name('m')
    // Set explicitly: in a loop, drivers were seen that keep the value of the last iteration in a variable without an initial value.
    this.#code.line(`var ${name}: ${typeOf(buffer.dtype)} = ${typeOf(buffer.dtype)}();`)
    this.#code.block(`if (${condition} != 0u)`, () => this.#code.line(`${name} = ${this.#loaded(buffer, at)};`))
    return name
  }

  #loaded(memory: Memory, at: string): string {
    const word = this.#read(memory, at)
    if (wordsPer(memory.dtype) === 2) return this.#code.let(`vec2<u32>(${word}, ${this.#read(memory, `${at} + 1u`)})`)
    return this.#code.let(memory.dtype === 'bool' ? `0u - ${word}` : word)
  }
}
