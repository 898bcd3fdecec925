// Which elements a call of a kernel accesses, from its loops and its sizes: intervals, not the accesses one by one. An index that a kernel reads from memory has
// no interval here: whoever launches such a kernel checks its indices first.
import { KernelError } from './errors.ts'
import type { BufferParam, Expr, Index, LoopVar, Param, Size, Stmt } from './loopIr.ts'
import { expressionsOf, operandsOf } from './analysis.ts'

type Interval = readonly [lowest: number, highest: number]

/** A place in a kernel that reads or writes an element. */
interface AccessSite {
  readonly buffer: BufferParam
  readonly index: Index
  /** The loops around it. */
  readonly loops: readonly LoopVar[]
}

/** Every access that the kernel makes in each iteration; masked ones, which it may leave out, are not among them. */
export function accessSites(body: readonly Stmt[], loops: readonly LoopVar[] = []): readonly AccessSite[] {
  const sites: AccessSite[] = []
  const seen = new Set<Expr>()
  const walk = (expr: Expr): void => {
    if (seen.has(expr)) return
    seen.add(expr)
    if (expr.kind === 'load' && expr.mask === null) sites.push({ buffer: expr.buffer, index: expr.index, loops })
    for (const operand of operandsOf(expr)) walk(operand)
  }
  for (const stmt of body) {
    if (stmt.kind === 'for') sites.push(...accessSites(stmt.body, [...loops, stmt.loop]))
    else {
      for (const expr of expressionsOf(stmt)) walk(expr)
      if (stmt.kind === 'store') sites.push({ buffer: stmt.buffer, index: stmt.index, loops })
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
  for (const { loop, stride } of site.index.terms) add([0, sizes(loop.extent) - 1], sizes(stride))
  for (const { value, stride } of site.index.dynamic) {
    const interval = intervalOf(value, sizes)
    if (interval === null) return null
    add(interval, sizes(stride))
  }
  return [lowest, highest]
}

type Sizes = (size: Size) => number

const sizesFrom =
  (values: ReadonlyMap<Param, number>): Sizes =>
  (size) => {
    const value = typeof size === 'number' ? size : values.get(size)
    if (value === undefined) throw new KernelError('a size parameter has no value')
    return value
  }

/** What an integer expression may be; null if that is not known. (Of the operands of `where`, the one that is not chosen may be outside the buffer.) */
function intervalOf(expr: Expr, sizes: Sizes): Interval | null {
  if (expr.kind === 'const') return [Number(expr.value), Number(expr.value)]
  if (expr.kind === 'sizeOf') return [sizes(expr.size), sizes(expr.size)]
  if (expr.kind === 'iota') return [0, sizes(expr.loop.extent) - 1]
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
