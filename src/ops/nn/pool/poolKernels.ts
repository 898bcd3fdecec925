// Kernels of pooling. The image and window sizes are built in (no masks are needed if no window leaves the image); the number of planes is a parameter.
import { InternalError } from '../../../errors/index.ts'
import {
  assign,
  at,
  bufferParam,
  call,
  cast,
  compileKernel,
  constant,
  dtypeInfo,
  declare,
  forLoop,
  iota,
  load,
  local,
  loopVar,
  read,
  sizeOf,
  serialLoops,
  sizeParam,
  store,
} from '../../../kernels/index.ts'
import type { BufferParam, CompiledKernel, DType, Expr, Index, LoopVar, Stmt } from '../../../kernels/index.ts'
import { kernelCache } from '../../eager/launch.ts'
import type { Divisor } from './divisor.ts'
import type { PoolAxis, PoolPlane } from './plane.ts'

/** The sizes of a plane and its windows as a part of a kernel's cache key. */
const planeKey = ({ rows, columns }: PoolPlane): string => `${axisKey(rows)} ${axisKey(columns)}`
const axisKey = ({ size, windows, kernel, stride, padding, dilation }: PoolAxis): string =>
  `${size} ${windows} ${kernel} ${stride} ${padding} ${dilation}`

const int = (value: number): Expr => constant('int32', value)
const both = (a: Expr | null, b: Expr | null): Expr | null => (a === null ? b : b === null ? a : call('and', a, b))

/** How far a tap lies behind the first element of the input, for the first window along a dimension. */
const shiftOf = ({ dilation, padding }: PoolAxis, tap: number): number => tap * dilation - padding
/** The position of a tap along a dimension, which may lie outside of the input. */
const placeOf = (loop: LoopVar, axis: PoolAxis, tap: number): Expr => call('add', call('mul', iota(loop), int(axis.stride)), int(shiftOf(axis, tap)))

/** Whether such a position lies inside the input; null if it does for every window. */
function inside(loop: LoopVar, axis: PoolAxis, tap: number): Expr | null {
  const [position, shift] = [placeOf(loop, axis, tap), shiftOf(axis, tap)]
  const low = shift < 0 ? call('ge', position, int(0)) : null
  const high = (axis.windows - 1) * axis.stride + shift >= axis.size ? call('lt', position, int(axis.size)) : null
  return both(low, high)
}

/** Loops over the windows of all planes. */
interface WindowLoops {
  readonly plane: LoopVar
  readonly oh: LoopVar
  readonly ow: LoopVar
  /** The tap (kh, kw): its element in the image, its flat position in the plane, and the mask (null = always inside). */
  readonly tap: (kh: number, kw: number) => { readonly index: Index; readonly position: Expr; readonly mask: Expr | null }
  readonly out: Index
}

function windowLoops({ rows, columns }: PoolPlane, plane: LoopVar): WindowLoops {
  const oh = loopVar('oh', rows.windows)
  const ow = loopVar('ow', columns.windows)
  return {
    plane,
    oh,
    ow,
    tap: (kh, kw) => ({
      index: {
        ...at([plane, rows.size * columns.size], [oh, rows.stride * columns.size], [ow, columns.stride]),
        base: shiftOf(rows, kh) * columns.size + shiftOf(columns, kw),
      },
      position: call('add', call('mul', placeOf(oh, rows, kh), int(columns.size)), placeOf(ow, columns, kw)),
      mask: both(inside(oh, rows, kh), inside(ow, columns, kw)),
    }),
    out: at([plane, rows.windows * columns.windows], [oh, columns.windows], [ow, 1]),
  }
}

const taps = ({ rows, columns }: PoolPlane): readonly (readonly [number, number])[] =>
  Array.from({ length: rows.kernel * columns.kernel }, (_, i) => [Math.floor(i / columns.kernel), i % columns.kernel])

const overPlanes = (w: WindowLoops, body: readonly Stmt[]): Stmt =>
  forLoop(w.plane, 'serial', [forLoop(w.oh, 'serial', [forLoop(w.ow, 'simd', body)])])

/** Maximum and, `withIndices`, its flat position in the plane: params out, indices (if any), input, planes. */
export const maxPoolKernel = kernelCache(
  (dtype: DType, withIndices: boolean, plane: PoolPlane): CompiledKernel => {
    const [out, indices, input] = [bufferParam('out', dtype, 'write'), bufferParam('indices', 'int64', 'write'), bufferParam('input', dtype)]
    const planes = sizeParam('planes')
    const loops = windowLoops(plane, loopVar('plane', planes))
    const [best, where] = [local('best', dtype), local('where', 'int32')]
    const [first, ...others] = taps(plane).map(([kh, kw], i) => ({ ...loops.tap(kh, kw), value: local(`value${i}`, dtype), i }))
    if (first === undefined) throw new InternalError('max_pool2d: a window has no elements')
    // A first element outside of the image loses to any other.
    const unless = (outside: Expr, value: Expr): Expr => (first.mask === null ? value : call('where', first.mask, value, outside))
    const body: Stmt[] = [
      declare(first.value, load(input, first.index, first.mask)),
      declare(best, unless(constant(dtype, dtypeInfo[dtype].lowest), read(first.value))),
      declare(where, unless(int(-1), first.position)),
    ]
    for (const { index, position, mask, value, i } of others) {
      const better = local(`better${i}`, 'bool')
      body.push(declare(value, load(input, index, mask)))
      // NaN wins, the first of equals wins, and a window that holds only -Infinity still has a position.
      const greater = call('or', call('gt', read(value), read(best)), call('ne', read(value), read(value)))
      const wins = first.mask === null ? greater : call('or', greater, call('lt', read(where), int(0)))
      body.push(declare(better, mask === null ? wins : call('and', mask, wins)))
      body.push(assign(best, call('where', read(better), read(value), read(best))))
      if (withIndices || first.mask !== null) body.push(assign(where, call('where', read(better), position, read(where))))
    }
    body.push(store(out, loops.out, read(best)))
    if (withIndices) body.push(store(indices, loops.out, cast(read(where), 'int64')))
    return compileKernel({ name: 'max_pool2d', params: [out, ...(withIndices ? [indices] : []), input, planes], body: [overPlanes(loops, body)] })
  },
  ([dtype, withIndices, plane]) => `${dtype} ${withIndices} ${planeKey(plane)}`,
)

/** Scatters gradients to the positions of the maxima: params gradInput, grad, indices, total, planes, inPlane, outPlane. */
export const maxPoolBackwardKernel = kernelCache((dtype: DType): CompiledKernel => {
  const [gi, grad, indices] = [bufferParam('gradInput', dtype, 'readwrite'), bufferParam('grad', dtype), bufferParam('indices', 'int32')]
  const [total, planes, inPlane, outPlane] = [sizeParam('total'), sizeParam('planes'), sizeParam('inPlane'), sizeParam('outPlane')]
  const [z, p, i] = [loopVar('z', total), loopVar('p', planes), loopVar('i', outPlane)]
  const from = at([p, outPlane], [i, 1])
  const [index, isInside, safe] = [local('index', 'int32'), local('inside', 'bool'), local('safe', 'int32')]
  const into: Index = { ...at([p, inPlane]), dynamic: [{ value: read(safe), stride: 1 }] }
  // An index outside of the plane adds 0 to its first element.
  const body = [
    declare(index, load(indices, from)),
    declare(isInside, call('and', call('ge', read(index), int(0)), call('lt', read(index), sizeOf(inPlane)))),
    declare(safe, call('where', read(isInside), read(index), int(0))),
    store(gi, into, call('where', read(isInside), load(grad, from), constant(dtype, 0)), 'add'),
  ]
  return compileKernel({
    name: 'max_pool2d_backward',
    params: [gi, grad, indices, total, planes, inPlane, outPlane],
    body: [forLoop(z, 'simd', [store(gi, at([z, 1]), constant(dtype, 0))]), ...serialLoops([p, i], body)],
  })
})

/** How many places of a window along a dimension its mean counts; a number if all windows have as many. */
function extent(loop: LoopVar, { size, windows, kernel, stride, padding }: PoolAxis, counted: 'inside' | 'covered'): Expr | number {
  const end = (windows - 1) * stride - padding + kernel
  if (counted === 'covered' ? end <= size + padding : padding === 0 && end <= size) return kernel
  const start = call('add', call('mul', iota(loop), int(stride)), int(-padding))
  const stop = call('min', call('add', start, int(kernel)), int(counted === 'covered' ? size + padding : size))
  return call('sub', stop, counted === 'covered' ? start : call('max', start, int(0)))
}

/** What a window's mean is divided by. */
function divisorExpr({ rows, columns }: PoolPlane, { oh, ow }: WindowLoops, divisor: Divisor, dtype: DType): Expr {
  if (typeof divisor === 'number') return constant(dtype, divisor)
  const [height, width] = [extent(oh, rows, divisor), extent(ow, columns, divisor)]
  if (typeof height === 'number' && typeof width === 'number') return constant(dtype, height * width)
  const expr = (x: Expr | number): Expr => (typeof x === 'number' ? int(x) : x)
  return cast(call('mul', expr(height), expr(width)), dtype)
}

/** Mean over windows: params out, input, planes. */
export const avgPoolKernel = kernelCache(
  (dtype: DType, divisor: Divisor, plane: PoolPlane): CompiledKernel => {
    const [out, input] = [bufferParam('out', dtype, 'write'), bufferParam('input', dtype)]
    const planes = sizeParam('planes')
    const loops = windowLoops(plane, loopVar('plane', planes))
    let total: Expr = constant(dtype, 0)
    taps(plane).forEach(([kh, kw], i) => {
      const { index, mask } = loops.tap(kh, kw)
      const value = load(input, index, mask)
      total = i === 0 ? value : call('add', total, value)
    })
    return compileKernel({
      name: 'avg_pool2d',
      params: [out, input, planes],
      body: [overPlanes(loops, [store(out, loops.out, call('div', total, divisorExpr(plane, loops, divisor, dtype)))])],
    })
  },
  ([dtype, divisor, plane]) => `${dtype} ${divisor} ${planeKey(plane)}`,
)

/** Spreads each gradient over its window: params gradInput, grad, total, planes. */
export const avgPoolBackwardKernel = kernelCache(
  (dtype: DType, divisor: Divisor, plane: PoolPlane): CompiledKernel => {
    const gi: BufferParam = bufferParam('gradInput', dtype, 'readwrite')
    const grad = bufferParam('grad', dtype)
    const [total, planes] = [sizeParam('total'), sizeParam('planes')]
    const z = loopVar('z', total)
    const loops = windowLoops(plane, loopVar('plane', planes))
    const share = local('share', dtype)
    const body: Stmt[] = [declare(share, call('div', load(grad, loops.out), divisorExpr(plane, loops, divisor, dtype)))]
    const start = at([loops.plane, plane.rows.size * plane.columns.size])
    for (const [kh, kw] of taps(plane)) {
      const { index, position, mask } = loops.tap(kh, kw)
      if (mask === null) body.push(store(gi, index, read(share), 'add'))
      else {
        // Taps outside the image add 0 to the plane's first element.
        const target: Index = { ...start, dynamic: [{ value: call('where', mask, position, int(0)), stride: 1 }] }
        body.push(store(gi, target, call('where', mask, read(share), constant(dtype, 0)), 'add'))
      }
    }
    return compileKernel({
      name: 'avg_pool2d_backward',
      params: [gi, grad, total, planes],
      body: [forLoop(z, 'simd', [store(gi, at([z, 1]), constant(dtype, 0))]), ...serialLoops([loops.plane, loops.oh, loops.ow], body)],
    })
  },
  ([dtype, divisor, plane]) => `${dtype} ${divisor} ${planeKey(plane)}`,
)
