// The executable specification of the loop IR: what a kernel must satisfy before it is emitted.
import { KernelError } from './errors.ts'
import type { DType } from '../numbers/dtype.ts'
import type {
  ArrayPlace,
  CallExpr,
  Expr,
  ForStmt,
  Index,
  Kernel,
  LocalArray,
  LookupExpr,
  LoopMode,
  LoopVar,
  Memory,
  Param,
  Size,
  Stmt,
  Variable,
} from './loopIr.ts'
import { MOST_CHOSEN, computedPlace, effectsOf, expressionsOf, forEachExpr, operandsOf, strideAlong } from './analysis.ts'
import { dtypesOf, isDefinedFor, scalarOp } from '../scalars/scalarOps.ts'
import { paramsIn } from './sizes.ts'

/** The modes of the loops that a loop may be inside of. */
const INSIDE: Readonly<Record<LoopMode, readonly LoopMode[]>> = {
  serial: ['serial', 'simd', 'parallel', 'unroll', 'lanes'],
  simd: ['serial', 'parallel', 'unroll'],
  parallel: ['serial'],
  unroll: ['serial', 'simd', 'parallel', 'unroll', 'lanes'],
  lanes: ['serial', 'parallel', 'unroll'],
}

/** Checks a kernel against the specification of the loop IR. Throws a KernelError that names the statement and the rule that it violates. */
export function verifyKernel(kernel: Kernel): void {
  new Verifier(kernel).run()
}

class Verifier {
  private readonly kernel: Kernel
  private readonly params: ReadonlySet<Param>
  private readonly loops: { readonly loop: LoopVar; readonly mode: LoopMode }[] = []
  private readonly variables: Set<Variable>[] = [new Set()]
  private checked = new Set<Expr>()
  private where = ''

  constructor(kernel: Kernel) {
    this.kernel = kernel
    this.params = new Set(kernel.params)
  }

  run(): void {
    const names = new Set<string>()
    this.where = 'its name'
    this.named(this.kernel.name)
    for (const { name } of this.kernel.params) {
      this.where = `parameter ${name}`
      this.named(name)
      if (names.has(name)) this.fail('two parameters have this name; rename one of them')
      names.add(name)
    }
    for (const { name, elements, per } of this.kernel.scratch ?? []) {
      this.where = `scratch ${name}`
      this.named(name)
      if (per !== 'call' && per !== 'thread') this.fail(`scratch memory is that of a call or of a thread, not '${String(per)}'`)
      if (names.has(name)) this.fail('a parameter or another scratch memory has this name; rename one of them')
      names.add(name)
      this.size(elements)
    }
    this.body(this.kernel.body, '')
  }

  private fail(message: string): never {
    throw new KernelError(`kernel ${this.kernel.name}, ${this.where}: ${message}`)
  }

  /** Printed kernels, by whose text they are cached, tell variables apart by their names. */
  private named(name: string): void {
    if (name === '') this.fail('a name must not be empty')
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
        this.expr(stmt.init, stmt.local.dtype)
        return this.declareLocal(stmt.local)
      case 'declareArray': {
        const { array } = stmt
        if (array.shape.length === 0 || !array.shape.every((size) => Number.isInteger(size) && size > 0))
          this.fail(`the shape [${array.shape.join(', ')}] must have positive integers, at least one`)
        this.notPerLane(array, 'declared')
        this.expr(stmt.init, array.dtype)
        return this.declareLocal(array)
      }
      case 'setElement': {
        this.place(stmt.array, stmt.place, stmt.array.shape.length)
        if (stmt.place.some(({ dynamic }) => dynamic.length > 0))
          this.fail(`an element of ${stmt.array.name} is set at a place from a table, or at one that is computed`)
        const lanes = this.loops.findLast(({ mode }) => mode === 'lanes')?.loop
        if (lanes !== undefined && stmt.place.at(-1)?.terms[0]?.loop !== lanes)
          this.fail(`in the lanes loop over ${lanes.name}, the last index of ${stmt.array.name} must be its variable`)
        this.expr(stmt.value, stmt.array.dtype)
        return this.changed()
      }
      case 'assign':
      case 'accumulate':
        if (!this.inScope(stmt.local)) this.fail(`the local ${stmt.local.name} is not declared here`)
        this.expr(stmt.value, stmt.local.dtype)
        this.changed()
        return
      default:
        if (stmt.buffer.kind === 'buffer') {
          if (stmt.buffer.access === 'read') this.fail(`the buffer ${stmt.buffer.name} is read-only; declare its parameter as 'write' or 'readwrite'`)
          if (stmt.combine !== null && stmt.buffer.access === 'write')
            this.fail(`a store that combines also reads ${stmt.buffer.name}; declare its parameter as 'readwrite'`)
        }
        this.memory(stmt.buffer)
        this.index(stmt.index)
        this.expr(stmt.value, stmt.buffer.dtype)
    }
  }

  /** After a local has changed, expressions that read it are checked again. */
  private changed(): void {
    this.checked = new Set()
  }

  private inScope(variable: Variable): boolean {
    return this.variables.some((scope) => scope.has(variable))
  }

  private declareLocal(variable: Variable): void {
    this.named(variable.name)
    if (this.inScope(variable)) this.fail(`the local ${variable.name} is already declared`)
    this.variables.at(-1)?.add(variable)
  }

  /** The mode of the loop over a variable; undefined outside of it. */
  private modeOf(loop: LoopVar): LoopMode | undefined {
    return this.loops.find((entry) => entry.loop === loop)?.mode
  }

  private loop(stmt: ForStmt, path: string): void {
    const { mode } = stmt
    const { name, extent, step } = stmt.loop
    this.named(name)
    if (!Object.hasOwn(INSIDE, mode)) this.fail(`a loop cannot be '${String(mode)}', only ${Object.keys(INSIDE).join(', ')}`)
    if (this.modeOf(stmt.loop) !== undefined) this.fail(`the loop variable ${name} is already used by an enclosing loop`)
    this.size(extent)
    if (typeof extent === 'number' && (!Number.isInteger(extent) || extent < 0)) this.fail(`the extent ${extent} must be a non-negative integer`)
    if (!Number.isInteger(step) || step < 1) this.fail(`the step ${step} must be a positive integer`)
    if (!Number.isInteger(stmt.grain) || stmt.grain < 1) this.fail(`the grain ${stmt.grain} must be a positive integer`)
    if (step !== 1 && (mode === 'simd' || mode === 'lanes')) this.fail(`the step ${step} of a ${mode} loop must be 1`)
    if (typeof extent !== 'number' && (mode === 'unroll' || mode === 'lanes')) this.fail(`the extent of a loop that is written out must be a number`)
    const outside = this.loops.find((outer) => !INSIDE[mode].includes(outer.mode))
    if (outside !== undefined)
      this.fail(
        `it is inside the ${outside.mode} loop over ${outside.loop.name}; a ${mode} loop may only be inside loops that are ${INSIDE[mode].join(', ')}`,
      )
    if (mode === 'simd') this.simd(stmt)
    if (mode === 'parallel' || mode === 'lanes') this.independent(stmt)
    this.loops.push(stmt)
    this.variables.push(new Set())
    const outer = this.checked
    this.checked = new Set()
    this.body(stmt.body, path)
    this.checked = outer
    this.variables.pop()
    this.loops.pop()
  }

  /** Iterations of a parallel loop, and those in lanes, change no variable that another iteration sees; lanes set elements of their own, and read no others of that array. */
  private independent({ loop, mode, body }: ForStmt): void {
    const { changed, declared } = effectsOf(body)
    for (const variable of changed.keys()) {
      const isOwn = declared.has(variable) || ('shape' in variable && mode === 'lanes')
      if (!isOwn) this.fail(`the ${mode} loop over ${loop.name} changes ${variable.name}, which is declared outside it`)
    }
    if (mode !== 'lanes') return
    forEachExpr(body, (expr) => {
      if ((expr.kind !== 'element' && expr.kind !== 'reduceLanes') || !changed.has(expr.array)) return
      const { array, place } = expr
      if (place[array.shape.length - 1]?.terms[0]?.loop !== loop)
        this.fail(`the lanes loop over ${loop.name} sets elements of ${array.name}, so it must read those only whose last index is its variable`)
    })
  }

  /** Arrays are in registers, whose lanes are their neighbours: there is none for each lane. */
  private notPerLane(array: LocalArray, what: string): void {
    const lanes = this.loops.find(({ mode }) => mode === 'simd' || (mode === 'lanes' && what === 'declared'))
    if (lanes !== undefined) this.fail(`the array ${array.name} is ${what} inside the ${lanes.mode} loop over ${lanes.loop.name}`)
  }

  /** The indices of the first `dimensions` dimensions of an array: known when code is written, and inside. */
  private place(array: LocalArray, place: ArrayPlace, dimensions: number): void {
    const { name, shape } = array
    if (!this.inScope(array)) this.fail(`the array ${name} is not declared here`)
    this.notPerLane(array, 'used')
    if (place.length !== dimensions)
      this.fail(`the array ${name} of shape [${shape.join(', ')}] takes ${dimensions} indices here, not ${place.length}`)
    const computed = dimensions === shape.length ? computedPlace(place) : null
    if (computed !== null) this.computed(array, place.at(-1), computed)
    place.forEach(({ base, terms, dynamic }, d) => {
      if (computed !== null && d === shape.length - 1) return
      const size = shape[d] ?? 0
      for (const { loop, stride } of terms)
        if (this.modeOf(loop) === 'lanes' && (base !== 0 || terms.length + dynamic.length > 1 || stride !== 1))
          this.fail(`the lanes variable ${loop.name} must be the whole index ${d + 1} of ${name}`)
      const known = this.known({ base, terms }, name, `index ${d + 1} of ${name}`)
      let [lowest, highest] = [known.lowest, known.highest]
      for (const { value, stride } of dynamic) {
        if (value.kind !== 'lookup' || typeof stride !== 'number')
          this.fail(`index ${d + 1} of ${name} must be known when code is written: of numbers, loops that are written out, and lookups`)
        this.expr(value, 'int32')
        const ends = [Math.min(...value.values) * stride, Math.max(...value.values) * stride]
        lowest += Math.min(...ends)
        highest += Math.max(...ends)
      }
      if (lowest < 0 || highest >= size) this.fail(`index ${d + 1} of ${name} goes from ${lowest} to ${highest}, outside its size ${size}`)
    })
    const lanes = place.flatMap(({ terms }) => terms.filter(({ loop }) => this.modeOf(loop) === 'lanes'))
    if (lanes.length > 1) this.fail(`two indices of ${name} are the lanes variable ${lanes[0]?.loop.name}`)
  }

  /** A number that chooses an element of a row is its whole index. */
  private computed({ name, shape }: LocalArray, index: Index | undefined, number: Expr): void {
    const isWhole = index?.base === 0 && index.terms.length === 0 && index.dynamic.length === 1 && index.dynamic[0]?.stride === 1
    if (!isWhole) this.fail(`the number that chooses an element of ${name} while the kernel runs must be the whole last index`)
    const size = shape.at(-1) ?? 0
    if (size > MOST_CHOSEN) this.fail(`a number chooses one of ${size} elements of ${name} while the kernel runs; there may be ${MOST_CHOSEN}`)
    this.expr(number, 'int32')
  }

  /** The lowest and the highest value of an index that is known when code is written. */
  private known({ base, terms }: Pick<Index, 'base' | 'terms'>, name: string, what: string): { readonly lowest: number; readonly highest: number } {
    if (typeof base !== 'number') this.fail(`${what} must be known when code is written`)
    let [lowest, highest] = [base, base]
    for (const { loop, stride } of terms) {
      const mode = this.modeOf(loop)
      const { extent, step } = loop
      if ((mode !== 'unroll' && mode !== 'lanes') || typeof extent !== 'number')
        this.fail(`the variable ${loop.name} indexes ${name}, so its loop must be unroll or lanes`)
      if (typeof stride !== 'number') this.fail(`the stride of ${loop.name} in ${name} must be a number`)
      const last = Math.max(0, Math.ceil(extent / step) - 1) * step * stride
      lowest += Math.min(0, last)
      highest += Math.max(0, last)
    }
    return { lowest, highest }
  }

  private lookup({ values, place }: LookupExpr): void {
    if (values.length === 0 || !values.every((value) => Number.isInteger(value) && value >= 0 && value < 2 ** 31))
      this.fail(`the numbers of a table must be integers from 0 to 2147483647, at least one, got ${values.join(', ')}`)
    if (place.dynamic.length > 0) this.fail('the place in a table must be known when code is written')
    const { lowest, highest } = this.known(place, 'a table', 'the place in a table')
    if (lowest < 0 || highest >= values.length)
      this.fail(`the place in a table goes from ${lowest} to ${highest}, outside its ${values.length} numbers`)
  }

  /** Iterations of a simd loop must be independent, except for accumulations, whose results the loop must not read. */
  private simd(stmt: ForStmt): void {
    const combines = new Map<Variable, string>()
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
        else expressionsOf(inner).forEach(reads)
      }
    }
    collect(stmt.body)
    readAll(stmt.body)
  }

  private param(param: Param): void {
    if (!this.params.has(param)) this.fail(`the ${param.kind} ${param.name} is not among the kernel's parameters`)
  }

  private memory(memory: Memory): void {
    if (memory.kind === 'buffer') return this.param(memory)
    if (this.kernel.scratch?.includes(memory) !== true) this.fail(`the scratch memory ${memory.name} is not among the kernel's`)
  }

  private size(size: Size): void {
    for (const param of paramsIn(size)) this.param(param)
  }

  private index(index: Index): void {
    this.size(index.base)
    for (const { loop, stride } of index.terms) {
      if (this.modeOf(loop) === undefined) this.fail(`the index uses the loop variable ${loop.name} outside its loop`)
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
        if (this.modeOf(expr.loop) === undefined) this.fail(`the loop variable ${expr.loop.name} is read outside its loop`)
        return
      case 'sizeOf':
        return this.size(expr.size)
      case 'lookup':
        return this.lookup(expr)
      case 'element':
      case 'reduceLanes':
        if (expr.array.dtype !== expr.dtype) this.fail(`the array ${expr.array.name} is ${expr.array.dtype} but is read as ${expr.dtype}`)
        return this.place(expr.array, expr.place, expr.array.shape.length - (expr.kind === 'element' ? 0 : 1))
      case 'local':
        if (!this.inScope(expr.local)) this.fail(`the local ${expr.local.name} is not declared here`)
        if (expr.local.dtype !== expr.dtype) this.fail(`the local ${expr.local.name} is ${expr.local.dtype} but is read as ${expr.dtype}`)
        return
      case 'cast':
        return this.expr(expr.value, expr.value.dtype)
      case 'load':
        if (expr.buffer.dtype !== expr.dtype) this.fail(`the buffer ${expr.buffer.name} is ${expr.buffer.dtype} but is read as ${expr.dtype}`)
        this.memory(expr.buffer)
        this.index(expr.index)
        if (expr.mask !== null) this.expr(expr.mask, 'bool')
        return
      default:
        return this.call(expr)
    }
  }

  private call(expr: CallExpr): void {
    const { arity, conditions, yieldsBool } = scalarOp(expr.op)
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
  if (stmt.kind === 'declareArray' || stmt.kind === 'setElement') return `${stmt.kind} ${stmt.array.name}`
  return `${stmt.kind} ${stmt.local.name}`
}
