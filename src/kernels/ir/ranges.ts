// Which elements a call of a kernel accesses, from its loops and its sizes: intervals, not the accesses one by one. An index that a kernel reads from memory has
// no interval here: whoever launches such a kernel checks its indices first.
import { KernelError } from './errors.ts'
import type { Expr, Index, LoopVar, Memory, Param, Size, SizeParam, Stmt } from './loopIr.ts'
import { expressionsOf, operandsOf } from './analysis.ts'
import { sizeValue } from './sizes.ts'

type Interval = readonly [lowest: number, highest: number]

/** A place in a kernel that reads or writes an element. */
export interface AccessSite {
  readonly buffer: Memory
  readonly index: Index
  readonly stores: boolean
  /** Whether it stores what it reads there, combined with a value. */
  readonly combines: boolean
  /** The loops around it. */
  readonly loops: readonly LoopVar[]
}

/** Every access that the kernel makes in each iteration; masked ones, which it may leave out, are among them if `masked` says so. */
export function accessSites(body: readonly Stmt[], loops: readonly LoopVar[] = [], masked: boolean = false): readonly AccessSite[] {
  const sites: AccessSite[] = []
  const seen = new Set<Expr>()
  const walk = (expr: Expr): void => {
    if (seen.has(expr)) return
    seen.add(expr)
    if (expr.kind === 'load' && (masked || expr.mask === null))
      sites.push({ buffer: expr.buffer, index: expr.index, stores: false, combines: false, loops })
    for (const operand of operandsOf(expr)) walk(operand)
  }
  for (const stmt of body) {
    if (stmt.kind === 'for') sites.push(...accessSites(stmt.body, [...loops, stmt.loop], masked))
    else {
      for (const expr of expressionsOf(stmt)) walk(expr)
      if (stmt.kind === 'store') sites.push({ buffer: stmt.buffer, index: stmt.index, stores: true, combines: stmt.combine !== null, loops })
    }
  }
  return sites
}

/** The elements from the lowest to the highest that a call accesses at a site; null if it makes none, or if its indices come from memory. */
export function rangeAt(site: AccessSite, values: ReadonlyMap<Param, number>): Interval | null {
  const sizes = sizesFrom(values)
  if (site.loops.some((loop) => sizes(loop.extent) <= 0)) return null
  let [lowest, highest]: Interval = [sizes(site.index.base), sizes(site.index.base)]
  const add = ([low, high]: Interval, stride: number): void => {
    lowest += Math.min(low * stride, high * stride)
    highest += Math.max(low * stride, high * stride)
  }
  for (const { loop, stride } of site.index.terms) add(valuesOf(loop, sizes), sizes(stride))
  for (const { value, stride } of site.index.dynamic) {
    const interval = intervalOf(value, sizes)
    if (interval === null) return null
    add(interval, sizes(stride))
  }
  return [lowest, highest]
}

type Sizes = (size: Size) => number

/** The first and the last value of a variable whose loop runs. */
const valuesOf = ({ extent, step }: LoopVar, sizes: Sizes): Interval => [0, (Math.ceil(sizes(extent) / step) - 1) * step]

const sizesFrom = (values: ReadonlyMap<Param, number>): Sizes => {
  const valueOf = (param: SizeParam): number => {
    const value = values.get(param)
    if (value === undefined) throw new KernelError(`the size parameter ${param.name} has no value`)
    return value
  }
  return (size) => sizeValue(size, valueOf)
}

/** The number that a size is in a call. */
export const sizeIn = (size: Size, values: ReadonlyMap<Param, number>): number => sizesFrom(values)(size)

/** What an integer expression may be; null if that is not known. (Of the operands of `where`, the one that is not chosen may be outside the buffer.) */
function intervalOf(expr: Expr, sizes: Sizes): Interval | null {
  if (expr.kind === 'const') return [Number(expr.value), Number(expr.value)]
  if (expr.kind === 'sizeOf') return [sizes(expr.size), sizes(expr.size)]
  if (expr.kind === 'lookup') return [Math.min(...expr.values), Math.max(...expr.values)]
  if (expr.kind === 'iota') return valuesOf(expr.loop, sizes)
  if (expr.kind !== 'call') return null
  const operands = expr.args.map((arg) => intervalOf(arg, sizes))
  const [a, b] = operands
  if (a === null || a === undefined || b === null || b === undefined) return null
  switch (expr.op) {
    case 'add':
      return [a[0] + b[0], a[1] + b[1]]
    case 'sub':
      return [a[0] - b[1], a[1] - b[0]]
    case 'mul': {
      const products = [a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]]
      return [Math.min(...products), Math.max(...products)]
    }
    case 'min':
      return [Math.min(a[0], b[0]), Math.min(a[1], b[1])]
    case 'max':
      return [Math.max(a[0], b[0]), Math.max(a[1], b[1])]
    default:
      return null
  }
}
