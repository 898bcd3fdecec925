// Operators that have an eager kernel only, as grids: a thread for each element, or for each line where elements that have one place are added up in the order of the eager kernel.
import { assign, call, cast, constant, declare, dtypeInfo, forLoop, iota, local, loopVar, read, serialLoops, store } from '../../kernels/index.ts'
import type { DType, Expr, LoopVar } from '../../kernels/index.ts'
import { contiguousStrides } from '../../tensor/index.ts'
import type { GroupGrid } from '../emit/loops.ts'
import type { Buffer, BufferView, ExternArg, ExternNode } from '../ir.ts'
import {
  GridWriter,
  addsUp,
  both,
  copied,
  digitsOf,
  indexOf,
  int,
  isInside,
  isView,
  lineOf,
  loopsOver,
  pair,
  place,
  wrapped,
  filled,
} from './gridWriter.ts'
import type { Call, Grids } from './gridWriter.ts'
import { cumsum, diagonalWritten, scatterAdd, scatterValues, selectWritten, sliceWritten, topk, windowWritten } from './lines.ts'
import { avgPool, avgPoolBackward } from './pools.ts'
import { resampled } from './resampling.ts'
import { gcd, nonzeroStatic, permutation, places } from './searches.ts'
import { triangularSolve } from './systems.ts'
import { randomIntegers, randomNormal, randomUniform } from './random.ts'

function cat({ name, args: [tensors, dim], outs: [out] }: Call): Grids {
  if (!Array.isArray(tensors) || out === undefined) return null
  const views = tensors.filter(isView).filter(({ shape }) => !shape.includes(0))
  const strides = contiguousStrides(out.shape)
  const at = wrapped(dim, out.shape.length)
  let start = 0
  return views.map((view, i) => {
    const grid = copied(`${name}_${i}`, view, out, strides, start * (strides[at] ?? 0))
    start += view.shape[at] ?? 0
    return grid
  })
}

function gather({ name, args: [self, dim, index], outs: [out] }: Call): Grids {
  if (!isView(self) || !isView(index) || out === undefined) return null
  const [from, at] = [lineOf(self), lineOf(index)]
  const along = wrapped(dim, from.shape.length)
  const writer = new GridWriter()
  const loops = loopsOver(at.shape)
  const found = indexOf(writer.load(at, loops), from.shape[along] ?? 1)
  const value = writer.load(
    from,
    loops.map((loop, i) => (i === along ? found.at : loop)),
    found.isThere,
  )
  return [writer.grid(name, loops, [store(writer.target(out), place(loops, contiguousStrides(at.shape)), value)])]
}

function embedding({ name, args: [input, weight, , maxNorm], outs: [out] }: Call): Grids {
  if (!isView(input) || !isView(weight) || out === undefined || maxNorm !== null) return null
  const writer = new GridWriter()
  const [rows = 0, width = 0] = weight.shape
  const loops = loopsOver(input.shape)
  const column = loopVar('d', width)
  const { at, isThere } = indexOf(writer.load(input, loops), rows)
  const value = writer.load(weight, [at, column], isThere)
  return [writer.grid(name, [...loops, column], [store(writer.target(out), place([...loops, column], contiguousStrides(out.shape)), value)])]
}

function embeddingBackward({ name, args: [grad, indices, , padding], outs: [out] }: Call): Grids {
  if (!isView(grad) || !isView(indices) || out === undefined || !addsUp(out.dtype)) return null
  const writer = new GridWriter()
  const [rows = 0, width = 0] = out.shape
  const loops = loopsOver(indices.shape)
  const column = loopVar('d', width)
  const index = writer.load(indices, loops)
  const { at, isThere } = indexOf(index, rows)
  const counts = both(isThere, call('ne', index, constant(index.dtype, Number(padding))))
  const added = call('where', counts, writer.load(grad, [...loops, column]), constant(out.dtype, 0))
  // A thread for each column: rows are added in the order of the indices.
  const body = serialLoops(loops, [store(writer.target(out), place([at, column], [width, 1]), added, 'add')])
  return [filled(`${name}_zeros`, out, 0), writer.grid(name, [column], body)]
}

function selectBackward({ name, args: [grad, , dim, index], outs: [out] }: Call): Grids {
  if (!isView(grad) || out === undefined) return null
  const at = wrapped(dim, out.shape.length)
  const strides = contiguousStrides(out.shape)
  const chosen = wrapped(index, out.shape[at] ?? 0)
  return [filled(`${name}_zeros`, out, 0), copied(name, grad, out, strides.toSpliced(at, 1), chosen * (strides[at] ?? 0))]
}

function sliceBackward({ name, args: [grad, , dim, start, , step], outs: [out] }: Call): Grids {
  if (!isView(grad) || out === undefined) return null
  const at = wrapped(dim, out.shape.length)
  const strides = contiguousStrides(out.shape)
  const first = start === null ? 0 : Math.max(0, wrapped(start, out.shape[at] ?? 0))
  const along = strides[at] ?? 0
  return [filled(`${name}_zeros`, out, 0), copied(name, grad, out, strides.with(at, along * Number(step)), first * along)]
}

/** The maximum of each window and its place in the plane: NaN wins, then the first of equals; a window of -Infinity has a place, too. */
function maxPool({ name, args: [self, kernel, strides, padding, dilation], outs: [out, indices] }: Call): Grids {
  if (!isView(self) || out === undefined || indices === undefined) return null
  const [[kernelH, kernelW], [stepH, stepW]] = [pair(kernel), pair(strides ?? kernel)]
  const [[padH, padW], [gapH, gapW]] = [pair(padding), pair(dilation)]
  const [height, width] = [self.shape.at(-2) ?? 0, self.shape.at(-1) ?? 0]
  const writer = new GridWriter()
  const loops = loopsOver(out.shape)
  const [oh, ow] = [loops.at(-2), loops.at(-1)]
  if (oh === undefined || ow === undefined) return null
  const [kh, kw] = [loopVar('kh', kernelH), loopVar('kw', kernelW)]
  const [best, where, value, wins] = [local('best', out.dtype), local('where', 'int32'), local('value', out.dtype), local('wins', 'bool')]
  const met = (pixel: LoopVar, tap: LoopVar, step: number, gap: number, pad: number): Expr =>
    call('sub', call('add', call('mul', iota(pixel), int(step)), call('mul', iota(tap), int(gap))), int(pad))
  const [row, column] = [met(oh, kh, stepH, gapH, padH), met(ow, kw, stepW, gapW, padW)]
  const mask = both(isInside(row, height), isInside(column, width))
  const greater = call('or', call('gt', read(value), read(best)), call('ne', read(value), read(value)))
  const body = [
    declare(best, constant(out.dtype, dtypeInfo[out.dtype].lowest)),
    declare(where, int(-1)),
    ...serialLoops(
      [kh, kw],
      [
        declare(value, writer.load(self, [...loops.slice(0, -2), row, column], mask)),
        declare(wins, both(mask, call('or', greater, call('lt', read(where), int(0))))),
        assign(best, call('where', read(wins), read(value), read(best))),
        assign(where, call('where', read(wins), call('add', call('mul', row, int(width)), column), read(where))),
      ],
    ),
    store(writer.target(out), place(loops, contiguousStrides(out.shape)), read(best)),
    store(writer.target(indices), place(loops, contiguousStrides(out.shape)), cast(read(where), 'int64')),
  ]
  return [writer.grid(name, loops, body)]
}

function maxPoolBackward({ name, args: [grad, indices], outs: [out] }: Call): Grids {
  if (!isView(grad) || !isView(indices) || out === undefined || !addsUp(out.dtype)) return null
  const writer = new GridWriter()
  const loops = loopsOver(grad.shape)
  const [planes, pixels] = [loops.slice(0, -2), loops.slice(-2)]
  const plane = (out.shape.at(-2) ?? 0) * (out.shape.at(-1) ?? 0)
  const { at, isThere } = indexOf(writer.load(indices, loops), plane)
  const added = call('where', isThere, writer.load(grad, loops), constant(out.dtype, 0))
  const target = place([...planes, at], [...contiguousStrides(out.shape).slice(0, -2), 1])
  return [filled(`${name}_zeros`, out, 0), writer.grid(name, planes, serialLoops(pixels, [store(writer.target(out), target, added, 'add')]))]
}

/** The place of the first extreme of each line; NaN counts as extreme. */
const argExtreme =
  (greatest: boolean) =>
  ({ name, args: [self, dim], outs: [out] }: Call): Grids => {
    if (!isView(self) || out === undefined) return null
    const from = lineOf(self)
    const reduced = dim === null ? from.shape.map((_, i) => i) : [wrapped(dim, from.shape.length)]
    const writer = new GridWriter()
    const loops = loopsOver(from.shape)
    const [kept, line] = [loops.filter((_, i) => !reduced.includes(i)), loops.filter((_, i) => reduced.includes(i))]
    const wide: DType = from.buffer.dtype === 'bool' ? 'int32' : from.buffer.dtype
    const [best, where, taken] = [local('best', wide), local('where', 'int32'), local('taken', 'bool')]
    const value = cast(writer.load(from, loops), wide)
    const better = call(greatest ? 'gt' : 'lt', value, read(best))
    const firstNaN = both(call('ne', value, value), call('eq', read(best), read(best)))
    const wins = dtypeInfo[wide].floating ? call('or', better, firstNaN) : better
    const flat = line.reduce<Expr>((sum, loop) => call('add', call('mul', sum, int(Number(loop.extent))), iota(loop)), int(0))
    const body = [
      declare(best, constant(wide, 0)),
      declare(where, int(-1)),
      ...serialLoops(line, [
        declare(taken, call('or', wins, call('lt', read(where), int(0)))),
        assign(where, call('where', read(taken), flat, read(where))),
        assign(best, call('where', read(taken), value, read(best))),
      ]),
      store(writer.target(out), place(kept, contiguousStrides(kept.map(({ extent }) => Number(extent)))), cast(read(where), 'int64')),
    ]
    return [writer.grid(name, kept, body)]
  }

/** What a sum or product of no numbers is. */
const ofNothing =
  (value: number) =>
  ({ name, args, outs: [out] }: Call): Grids =>
    out !== undefined && args.filter(isView).some(({ shape }) => shape.includes(0)) ? [filled(name, out, value)] : null

/** How many indices a thread looks at. */
const CHECKED = 256

/** What a check finds: for each thread the flat position of the first bad index, from 1 on, and that index; 0 if there is none. */
export function checkGrid(
  name: string,
  indices: BufferView,
  rule: { readonly count: number; readonly ignore: number | null },
  found: Buffer,
): GroupGrid {
  const writer = new GridWriter()
  const [part, k] = [loopVar('part', found.numel / 2), loopVar('k', CHECKED)]
  const at = call('add', call('mul', iota(part), int(CHECKED)), iota(k))
  const numel = indices.shape.reduce((n, size) => n * size, 1)
  const digits = digitsOf(at, indices.shape)
  const isOne = call('lt', at, int(numel))
  const index = writer.load(indices, digits, isOne)
  const [position, value] = [local('position', 'int32'), local('value', indices.buffer.dtype)]
  const bad = call('or', call('lt', index, constant(index.dtype, 0)), call('ge', index, constant(index.dtype, rule.count)))
  const counts = rule.ignore === null ? bad : both(bad, call('ne', index, constant(index.dtype, rule.ignore)))
  const isFirst = local('isFirst', 'bool')
  const target = writer.target(found)
  return writer.grid(
    name,
    [part],
    [
      declare(position, int(0)),
      declare(value, constant(index.dtype, 0)),
      forLoop(k, 'serial', [
        declare(isFirst, both(isOne, counts, call('eq', read(position), int(0)))),
        assign(position, call('where', read(isFirst), call('add', at, int(1)), read(position))),
        assign(value, call('where', read(isFirst), index, read(value))),
      ]),
      store(target, place([part], [2]), cast(read(position), 'int64')),
      store(target, place([part], [2], 1), cast(read(value), 'int64')),
    ],
  )
}

/** The words that {@link checkGrid} writes for that many indices. */
export const checksFor = (numel: number): number => Math.ceil(numel / CHECKED)

/** The indices of a call, and which of them there are: those of a dimension of another argument, or of a count. */
export interface Checked {
  readonly indices: BufferView
  readonly count: number
  readonly ignore: number | null
}

interface Operator {
  readonly grids: (call: Call) => Grids
  /** Whether it takes numbers of the call. */
  readonly takesNumbers?: boolean
  /** The indices that have to be checked. */
  readonly checks?: (args: readonly unknown[]) => Checked | null
}

const checked =
  (at: number, countOf: (args: readonly unknown[]) => number) =>
  (args: readonly unknown[]): Checked | null => {
    const indices = args[at]
    return isView(indices) ? { indices, count: countOf(args), ignore: null } : null
  }
const sizeOf = (view: unknown, dim: unknown): number => (isView(view) ? (view.shape[wrapped(dim, Math.max(1, view.shape.length))] ?? 1) : 0)

const operators: Readonly<Record<string, Operator>> = {
  'torch.cat': { grids: cat },
  'torch.gather': { grids: gather, checks: checked(2, ([self, dim]) => sizeOf(self, dim)) },
  'torch.scatter_add': { grids: scatterAdd, checks: checked(2, ([self, dim]) => sizeOf(self, dim)) },
  'torch.sum': { grids: ofNothing(0) },
  'torch.prod': { grids: ofNothing(1) },
  'torch.mm': { grids: ofNothing(0) },
  'torch.bmm': { grids: ofNothing(0) },
  'torch.ops.tensorfx.scatter_values': { grids: scatterValues, checks: checked(2, ([self, dim]) => sizeOf(self, dim)) },
  'torch.diagonal_scatter': { grids: diagonalWritten },
  'torch.select_scatter': { grids: selectWritten },
  'torch.slice_scatter': { grids: sliceWritten },
  'torch.as_strided_scatter': { grids: windowWritten },
  'torch.cumsum': { grids: cumsum },
  'torch.topk': { grids: topk },
  'torch.nn.functional.avg_pool2d': { grids: avgPool },
  'torch.ops.tensorfx.avg_pool2d_backward': { grids: avgPoolBackward },
  'torch.ops.tensorfx.triangular_solve': { grids: triangularSolve },
  'torch.gcd': { grids: gcd },
  'torch.nonzero_static': { grids: nonzeroStatic },
  'torch.ops.tensorfx.places': { grids: places },
  'torch.ops.tensorfx.resample': { grids: resampled(false) },
  'torch.ops.tensorfx.resample_backward': { grids: resampled(true) },
  'torch.ops.tensorfx.philox_permutation': { grids: permutation, takesNumbers: true },
  'torch.ops.tensorfx.philox_uniform': { grids: randomUniform, takesNumbers: true },
  'torch.ops.tensorfx.philox_normal': { grids: randomNormal, takesNumbers: true },
  'torch.ops.tensorfx.philox_integer': { grids: randomIntegers, takesNumbers: true },
  'torch.nn.functional.embedding': { grids: embedding, checks: checked(0, ([, weight]) => sizeOf(weight, 0)) },
  'torch.ops.tensorfx.embedding_backward': { grids: embeddingBackward, checks: checked(1, ([, , rows]) => Number(rows)) },
  'torch.ops.tensorfx.select_backward': { grids: selectBackward },
  'torch.ops.tensorfx.slice_backward': { grids: sliceBackward },
  'torch.ops.tensorfx.max_pool2d_with_indices': { grids: maxPool },
  'torch.ops.tensorfx.max_pool2d_backward': { grids: maxPoolBackward },
  'torch.argmax': { grids: argExtreme(true) },
  'torch.argmin': { grids: argExtreme(false) },
  'torch.ops.tensorfx.checked_indices': {
    grids: ({ name, args: [indices], outs: [out] }) =>
      isView(indices) && out !== undefined ? [copied(name, indices, out, contiguousStrides(indices.shape), 0)] : null,
    checks: ([indices, count, ignore]) =>
      isView(indices) ? { indices, count: Number(count), ignore: ignore === null ? null : Number(ignore) } : null,
  },
}

/** An argument: a view, or a value. Views in another dtype than their buffer's have no grids. */
function valueOf(arg: ExternArg): unknown {
  if (arg.kind === 'view') return arg.view
  return arg.kind === 'list' ? arg.items.map(valueOf) : arg.kind === 'value' ? arg.value : arg.input
}

/** What an operator's call needs on the GPU. */
export interface OperatorGrids {
  readonly grids: readonly GroupGrid[]
  readonly checked: Checked | null
}

/** An operator's call as grids, in order; null if there are none for it. */
export function operatorGrids(name: string, node: ExternNode): OperatorGrids | null {
  const operator = operators[node.def.qualname]
  if (operator === undefined) return null
  const args = node.args.map(valueOf)
  const views = args.flat().filter(isView)
  const isPlain = views.every(({ dtype, buffer }) => dtype === buffer.dtype && buffer.isComplex !== true)
  const hasNumbers = node.args.flatMap((arg) => (arg.kind === 'list' ? arg.items : [arg])).some(({ kind }) => kind === 'scalarInput')
  if (!isPlain || (hasNumbers && operator.takesNumbers !== true) || node.outs.some(({ numel }) => numel === 0)) return null
  const grids = operator.grids({ name, args, outs: node.outs })
  return grids === null ? null : { grids, checked: operator.checks?.(args) ?? null }
}
