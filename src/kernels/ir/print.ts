// The canonical text of a kernel, for people and as the key of the kernel cache: two kernels with the same text compute the same.
//
// An expression that is used more than once in an iteration is printed once, as `let`, at its first use, which is when it is evaluated.
// Loops, locals and parameters with the same name are distinguished by a number.
import { ExprFacts, effectsOf, forEachStmt, expressionsOf, operandsOf } from './analysis.ts'
import { dtypeInfo } from '../numbers/dtype.ts'
import type { DType } from '../numbers/dtype.ts'
import type { ArrayPlace, Expr, Index, Kernel, LocalArray, LoopVar, Param, Scratch, Size, Stmt, Variable } from './loopIr.ts'
import { scalarOp } from '../scalars/scalarOps.ts'
import { sizeText } from './sizes.ts'

/** What follows a constant of a dtype; where nothing is listed, the dtype's abbreviation. */
const SUFFIX: Readonly<Partial<Record<DType, string>>> = { float32: 'f', float64: 'd', int32: '', bool: 'b' }
const ACCESS = { read: 'in', write: 'out', readwrite: 'inout' } as const

type Named = Param | Scratch | LoopVar | Variable

/** The kernel as readable text, one statement a line. */
export function printKernel(kernel: Kernel): string {
  return new Printer(kernel).print()
}

class Printer {
  private readonly kernel: Kernel
  private readonly names = new Map<Named, string>()
  private readonly taken = new Set<string>()
  private readonly shared: ReadonlySet<Expr>
  private readonly lets: Map<Expr, string>[] = [new Map()]
  private readonly facts = new ExprFacts()
  private readonly lines: string[] = []
  private indent = '  '
  private letCount = 0

  constructor(kernel: Kernel) {
    this.kernel = kernel
    this.shared = sharedIn(kernel.body)
  }

  print(): string {
    const params = this.kernel.params.map((p) => {
      const name = this.name(p)
      if (p.kind === 'buffer') return `${ACCESS[p.access]} ${p.dtype} ${name}[]`
      return p.kind === 'size' ? `size ${name}` : `${p.dtype} ${name}`
    })
    for (const part of this.kernel.scratch ?? []) this.line(`scratch ${part.dtype} ${this.name(part)}[${this.size(part.elements)}] per ${part.per}`)
    for (const stmt of this.kernel.body) this.stmt(stmt)
    return [`kernel ${this.kernel.name}(${params.join(', ')}) {`, ...this.lines, '}'].join('\n')
  }

  private name(of: Named): string {
    let name = this.names.get(of)
    if (name === undefined) {
      name = of.name
      for (let i = 2; this.taken.has(name); i++) name = `${of.name}_${i}`
      this.taken.add(name)
      this.names.set(of, name)
    }
    return name
  }

  private size(size: Size): string {
    return sizeText(size, (param) => this.name(param))
  }

  private index({ base, terms, dynamic }: Index): string {
    const times = (text: string, stride: Size): string => (stride === 1 ? text : `${text} * ${this.size(stride)}`)
    const parts = [
      ...(base === 0 ? [] : [this.size(base)]),
      ...terms.map((t) => times(this.name(t.loop), t.stride)),
      ...dynamic.map((d) => times(`int32(${this.expr(d.value)})`, d.stride)),
    ]
    return parts.length === 0 ? '0' : parts.join(' + ')
  }

  private place(array: LocalArray, place: ArrayPlace): string {
    return `${this.name(array)}[${place.map((index) => this.index(index)).join(', ')}]`
  }

  private expr(expr: Expr): string {
    if (!this.shared.has(expr)) return this.formula(expr)
    for (const scope of this.lets) {
      const known = scope.get(expr)
      if (known !== undefined) return known
    }
    const text = this.formula(expr)
    const name = `$${this.letCount++}`
    this.lines.push(`${this.indent}let ${name} = ${text}`)
    this.lets.at(-1)?.set(expr, name)
    return name
  }

  private formula(expr: Expr): string {
    switch (expr.kind) {
      case 'const':
        return `${Object.is(expr.value, -0) ? '-0' : expr.value}${SUFFIX[expr.dtype] ?? dtypeInfo[expr.dtype].short}`
      case 'scalar':
        return this.name(expr.param)
      case 'iota':
        return this.name(expr.loop)
      case 'sizeOf':
        return this.size(expr.size)
      case 'lookup':
        return `{${expr.values.join(', ')}}[${this.index(expr.place)}]`
      case 'local':
        return this.name(expr.local)
      case 'element':
        return this.place(expr.array, expr.place)
      case 'reduceLanes':
        return `reduceLanes(${expr.combine}, ${this.place(expr.array, expr.place)})`
      case 'cast':
        return `${expr.dtype}(${this.expr(expr.value)})`
      case 'load': {
        const mask = expr.mask === null ? null : this.expr(expr.mask)
        const element = `${this.name(expr.buffer)}[${this.index(expr.index)}]`
        return mask === null ? element : `(${mask} ? ${element} : 0)`
      }
      default: {
        const { symbol } = scalarOp(expr.op)
        const args = expr.args.map((arg) => this.expr(arg))
        return symbol === null ? `${expr.op}(${args.join(', ')})` : `(${args.join(` ${symbol} `)})`
      }
    }
  }

  private line(text: string): void {
    this.lines.push(`${this.indent}${text}`)
  }

  private stmt(stmt: Stmt): void {
    switch (stmt.kind) {
      case 'for': {
        const { changed } = effectsOf(stmt.body)
        for (const variable of changed.keys()) this.forget(variable)
        const { loop, mode, grain } = stmt
        const step = loop.step === 1 ? '' : ` step ${loop.step}`
        const how = mode === 'serial' ? '' : mode === 'parallel' ? ` parallel ${grain}` : ` ${mode}`
        this.line(`for ${this.name(loop)} < ${this.size(loop.extent)}${step}${how} {`)
        const { indent } = this
        this.indent = `${indent}  `
        this.lets.push(new Map())
        for (const inner of stmt.body) this.stmt(inner)
        this.lets.pop()
        this.indent = indent
        this.line('}')
        for (const variable of changed.keys()) this.forget(variable)
        return
      }
      case 'declare': {
        const value = this.expr(stmt.init)
        this.line(`${stmt.local.dtype} ${this.name(stmt.local)} = ${value}`)
        return this.forget(stmt.local)
      }
      case 'declareArray': {
        const value = this.expr(stmt.init)
        this.line(`${stmt.array.dtype} ${this.name(stmt.array)}[${stmt.array.shape.join(', ')}] = ${value}`)
        return this.forget(stmt.array)
      }
      case 'setElement': {
        const value = this.expr(stmt.value)
        this.line(`${this.place(stmt.array, stmt.place)} = ${value}`)
        return this.forget(stmt.array)
      }
      case 'assign': {
        const value = this.expr(stmt.value)
        this.line(`${this.name(stmt.local)} = ${value}`)
        return this.forget(stmt.local)
      }
      case 'accumulate': {
        const value = this.expr(stmt.value)
        this.line(`${this.name(stmt.local)} ${stmt.combine}= ${value}`)
        return this.forget(stmt.local)
      }
      default: {
        const value = this.expr(stmt.value)
        this.line(`${this.name(stmt.buffer)}[${this.index(stmt.index)}] ${stmt.combine ?? ''}= ${value}`)
      }
    }
  }

  /** Expressions that read a local are evaluated again once it has changed. */
  private forget(variable: Variable): void {
    for (const scope of this.lets) for (const expr of scope.keys()) if (this.facts.variablesOf(expr).has(variable)) scope.delete(expr)
  }
}

/** The loads, calls and casts that are used more than once. */
function sharedIn(body: readonly Stmt[]): ReadonlySet<Expr> {
  const seen = new Set<Expr>()
  const shared = new Set<Expr>()
  const visit = (expr: Expr): void => {
    if (expr.kind !== 'load' && expr.kind !== 'call' && expr.kind !== 'cast') return
    if (seen.has(expr)) {
      shared.add(expr)
      return
    }
    seen.add(expr)
    operandsOf(expr).forEach(visit)
  }
  forEachStmt(body, (stmt) => expressionsOf(stmt).forEach(visit))
  return shared
}
