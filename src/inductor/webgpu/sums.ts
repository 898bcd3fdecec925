// What templates add up, as loop IR: each element of a product or convolution on its own, in the order of its terms.
import { InternalError, present } from '../../errors/index.ts'
import { assign, call, constant, declare, forLoop, iota, load, local, loopVar, read } from '../../kernels/index.ts'
import type { BufferParam, Expr, Grid, Index, LoopVar, Size, Stmt } from '../../kernels/index.ts'
import type { TemplateNode, TemplateSum } from '../ir.ts'
import type { PreparedTemplate } from '../emit/template.ts'

type Windows = Exclude<TemplateSum, { readonly kind: 'matrices' }>

/** A number in an index: a loop, or an int32 value. */
type Position = LoopVar | Expr

const int = (value: number): Expr => constant('int32', value)
const asValue = (position: Position): Expr => (position.kind === 'loop' ? iota(position) : position)

/** The index at the sum of positions times strides. */
function indexOf(base: number, ...parts: readonly (readonly [Position, number])[]): Index {
  const terms: { loop: LoopVar; stride: Size }[] = []
  const dynamic: { value: Expr; stride: Size }[] = []
  for (const [position, stride] of parts) {
    if (position.kind === 'loop') terms.push({ loop: position, stride })
    else dynamic.push({ value: position, stride })
  }
  return { base, terms, dynamic }
}

/** The sum of `left * right` over loops, as a grid of the template's elements. */
function summed(name: string, prepared: PreparedTemplate, over: readonly LoopVar[], left: Expr, right: Expr): Grid {
  const sum = local('sum', 'float32')
  const step: readonly Stmt[] = [assign(sum, call('mulAdd', left, right, read(sum)))]
  const body = [
    declare(sum, constant('float32', 0)),
    ...over.reduceRight<readonly Stmt[]>((inner, loop) => [forLoop(loop, 'serial', inner)], step),
    ...prepared.epilogue(read(sum)),
  ]
  return { name, params: prepared.params, scratch: [], loops: prepared.loops, body }
}

/** A template's elements as a grid; null if it does not say what it adds up. */
export function templateGrid(name: string, node: TemplateNode, prepared: PreparedTemplate): Grid | null {
  const { sum } = node
  if (sum === null) return null
  const [first, second] = prepared.buffers
  if (first === undefined || second === undefined) throw new InternalError(`inductor: the template ${node.template} has no operands`)
  if (sum.kind === 'matrices') return matrices(name, node, prepared, first, second)
  return sum.kind === 'windows' ? windows(name, sum, prepared, first, second) : weights(name, sum, prepared, first, second)
}

function matrices(name: string, { reads, depth }: TemplateNode, prepared: PreparedTemplate, first: BufferParam, second: BufferParam): Grid {
  const [left, right] = [present(reads[0], 'the left matrix').strides, present(reads[1], 'the right matrix').strides]
  const [cols, rows, ...batch] = prepared.loops.toReversed()
  const k = loopVar('k', depth)
  const stride = (strides: readonly number[], fromEnd: number): number => strides.at(-1 - fromEnd) ?? 0
  const outer = (strides: readonly number[]): (readonly [Position, number])[] => batch.map((loop, i) => [loop, stride(strides, 2 + i)])
  const [row, col] = [present(rows, 'rows'), present(cols, 'columns')]
  const a = load(first, indexOf(0, ...outer(left), [row, stride(left, 1)], [k, stride(left, 0)]))
  const b = load(second, indexOf(0, ...outer(right), [k, stride(right, 1)], [col, stride(right, 0)]))
  return summed(name, prepared, [k], a, b)
}

const isWithin = (position: Expr, size: number): Expr => call('and', call('ge', position, int(0)), call('lt', position, int(size)))

/** Where pixel `out` of a result meets the image with an element of the window, and whether that is in it. */
function met(out: Position, tap: Position, stride: number, pad: number, dilation: number): Expr {
  return call('sub', call('add', call('mul', asValue(out), int(stride)), call('mul', asValue(tap), int(dilation))), int(pad))
}

/** The same of a transposed convolution, whose pixels lie apart. */
function metApart(out: Position, tap: Position, stride: number, pad: number, dilation: number): { readonly at: Expr; readonly isThere: Expr } {
  const place = call('sub', call('add', asValue(out), int(pad)), call('mul', asValue(tap), int(dilation)))
  return { at: call('floorDiv', place, int(stride)), isThere: call('eq', call('remainder', place, int(stride)), int(0)) }
}

function windows(
  name: string,
  { sizes: s, groups, transposed, first: w, second: x }: Windows,
  prepared: PreparedTemplate,
  weight: BufferParam,
  image: BufferParam,
): Grid {
  const [b, f, p] = [present(prepared.loops[0], 'images'), present(prepared.loops[1], 'features'), present(prepared.loops[2], 'pixels')]
  const [c, ky, kx] = [loopVar('c', s.channels), loopVar('ky', s.kernelHeight), loopVar('kx', s.kernelWidth)]
  const [y, xx] = [call('floorDiv', iota(p), int(s.outWidth)), call('remainder', iota(p), int(s.outWidth))]
  const rows = transposed ? metApart(y, ky, s.strideH, s.padH, s.dilationH) : { at: met(y, ky, s.strideH, s.padH, s.dilationH), isThere: null }
  const cols = transposed ? metApart(xx, kx, s.strideW, s.padW, s.dilationW) : { at: met(xx, kx, s.strideW, s.padW, s.dilationW), isThere: null }
  const group = groups === 1 ? int(0) : call('floorDiv', iota(f), int(s.features))
  const own = groups === 1 ? f : call('remainder', iota(f), int(s.features))
  const inGroup = s.features * s.channels * s.kernelHeight * s.kernelWidth
  const a = load(weight, indexOf(w.start, [group, groups === 1 ? 0 : inGroup], [own, w.outer], [c, w.channel], [ky, w.row], [kx, w.col]))
  const inside = call('and', isWithin(rows.at, s.height), isWithin(cols.at, s.width))
  const mask = [rows.isThere, cols.isThere].reduce<Expr>((all, one) => (one === null ? all : call('and', all, one)), inside)
  const at = indexOf(x.start, [b, x.outer], [group, s.channels * x.channel], [c, x.channel], [rows.at, x.row], [cols.at, x.col])
  return summed(name, prepared, [c, ky, kx], a, load(image, at, mask))
}

function weights(
  name: string,
  { sizes: s, groups, first: g, second: x }: Windows,
  prepared: PreparedTemplate,
  gradient: BufferParam,
  image: BufferParam,
): Grid {
  const [f, e] = [present(prepared.loops[0], 'features'), present(prepared.loops[1], 'elements')]
  const [b, y, xx] = [loopVar('b', s.batch), loopVar('y', s.outHeight), loopVar('x', s.outWidth)]
  const window = s.kernelHeight * s.kernelWidth
  const c = call('floorDiv', iota(e), int(window))
  const tap = call('remainder', iota(e), int(window))
  const [ky, kx] = [call('floorDiv', tap, int(s.kernelWidth)), call('remainder', tap, int(s.kernelWidth))]
  const [row, col] = [met(y, ky, s.strideH, s.padH, s.dilationH), met(xx, kx, s.strideW, s.padW, s.dilationW)]
  const group = groups === 1 ? int(0) : call('floorDiv', iota(f), int(s.features))
  const at = indexOf(x.start, [b, x.outer], [group, s.channels * x.channel], [c, x.channel], [row, x.row], [col, x.col])
  const mask = call('and', isWithin(row, s.height), isWithin(col, s.width))
  return summed(
    name,
    prepared,
    [b, y, xx],
    load(gradient, indexOf(g.start, [b, g.outer], [f, g.channel], [y, g.row], [xx, g.col])),
    load(image, at, mask),
  )
}
