// Kernels of pooling. The image and window sizes are built in (no masks are needed if no window leaves the image); the number of planes is a parameter.
import type { Size } from '../../../protocol/index.ts'
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
import type { WindowMoves } from '../windows.ts'

/** Sizes of a pooling window over planes of height x width. */
export interface PoolGeometry<N extends Size = number> extends WindowMoves {
  readonly height: N
  readonly width: N
  readonly outHeight: N
  readonly outWidth: N
  readonly kernelH: number
  readonly kernelW: number
}

/** The sizes as a list: part of a kernel's cache key. */
export const geometryKey = (g: PoolGeometry): GeometryKey => [
  g.height,
  g.width,
  g.outHeight,
  g.outWidth,
  g.kernelH,
  g.kernelW,
  g.strideH,
  g.strideW,
  g.padH,
  g.padW,
  g.dilationH,
  g.dilationW,
]

type GeometryKey = readonly [number, number, number, number, number, number, number, number, number, number, number, number]

const geometryOf = (...key: GeometryKey): PoolGeometry => {
  const [height, width, outHeight, outWidth, kernelH, kernelW, strideH, strideW, padH, padW, dilationH, dilationW] = key
  return { height, width, outHeight, outWidth, kernelH, kernelW, strideH, strideW, padH, padW, dilationH, dilationW }
}

const int = (value: number): Expr => constant('int32', value)
const both = (a: Expr | null, b: Expr | null): Expr | null => (a === null ? b : b === null ? a : call('and', a, b))

/** Whether position loop * stride + shift lies in 0..size-1, where the loop runs to `count`; null if it always does. */
function inside(loop: LoopVar, count: number, stride: number, shift: number, size: number): Expr | null {
  const position = call('add', call('mul', iota(loop), int(stride)), int(shift))
  const low = shift < 0 ? call('ge', position, int(0)) : null
  const high = (count - 1) * stride + shift >= size ? call('lt', position, int(size)) : null
  return both(low, high)
}

interface Window {
  readonly plane: LoopVar
  readonly oh: LoopVar
  readonly ow: LoopVar
  /** The tap (kh, kw): its element in the image, its flat position in the plane, and the mask (null = always inside). */
  readonly tap: (kh: number, kw: number) => { readonly index: Index; readonly position: Expr; readonly mask: Expr | null }
  readonly out: Index
}

function windowOf(g: PoolGeometry, plane: LoopVar): Window {
  const oh = loopVar('oh', g.outHeight)
  const ow = loopVar('ow', g.outWidth)
  return {
    plane,
    oh,
    ow,
    tap: (kh, kw) => {
      const shiftH = kh * g.dilationH - g.padH
      const shiftW = kw * g.dilationW - g.padW
      const base = shiftH * g.width + shiftW
      const row = call('mul', call('add', call('mul', iota(oh), int(g.strideH)), int(shiftH)), int(g.width))
      return {
        index: {
          ...at([plane, g.height * g.width], [oh, g.strideH * g.width], [ow, g.strideW]),
          base,
        },
        position: call('add', row, call('add', call('mul', iota(ow), int(g.strideW)), int(shiftW))),
        mask: both(inside(oh, g.outHeight, g.strideH, shiftH, g.height), inside(ow, g.outWidth, g.strideW, shiftW, g.width)),
      }
    },
    out: at([plane, g.outHeight * g.outWidth], [oh, g.outWidth], [ow, 1]),
  }
}

const taps = (g: PoolGeometry): readonly (readonly [number, number])[] =>
  Array.from({ length: g.kernelH * g.kernelW }, (_, i) => [Math.floor(i / g.kernelW), i % g.kernelW])

const overPlanes = (w: Window, body: readonly Stmt[]): Stmt => forLoop(w.plane, 'serial', [forLoop(w.oh, 'serial', [forLoop(w.ow, 'simd', body)])])

/** Maximum and, `withIndices`, its flat position in the plane: params out, indices (if any), input, planes. */
export const maxPoolKernel = kernelCache((dtype: DType, withIndices: boolean, ...key: GeometryKey): CompiledKernel => {
  const g = geometryOf(...key)
  const [out, indices, input] = [bufferParam('out', dtype, 'write'), bufferParam('indices', 'int64', 'write'), bufferParam('input', dtype)]
  const planes = sizeParam('planes')
  const w = windowOf(g, loopVar('plane', planes))
  const [best, where] = [local('best', dtype), local('where', 'int32')]
  const body: Stmt[] = []
  const first = w.tap(0, 0).mask
  taps(g).forEach(([kh, kw], i) => {
    const { index, position, mask } = w.tap(kh, kw)
    const value = local(`value${i}`, dtype)
    body.push(declare(value, load(input, index, mask)))
    if (i === 0) {
      // A first element outside of the image loses to any other.
      const start = (inside: Expr, outside: Expr): Expr => (mask === null ? inside : call('where', mask, inside, outside))
      body.push(declare(best, start(read(value), constant(dtype, dtypeInfo[dtype].lowest))), declare(where, start(position, int(-1))))
      return
    }
    const better = local(`better${i}`, 'bool')
    // NaN wins, the first of equals wins, and a window that holds only -Infinity still has a position.
    const greater = call('or', call('gt', read(value), read(best)), call('ne', read(value), read(value)))
    const wins = first === null ? greater : call('or', greater, call('lt', read(where), int(0)))
    body.push(declare(better, mask === null ? wins : call('and', mask, wins)))
    body.push(assign(best, call('where', read(better), read(value), read(best))))
    if (withIndices || first !== null) body.push(assign(where, call('where', read(better), position, read(where))))
  })
  body.push(store(out, w.out, read(best)))
  if (withIndices) body.push(store(indices, w.out, cast(read(where), 'int64')))
  return compileKernel({ name: 'max_pool2d', params: [out, ...(withIndices ? [indices] : []), input, planes], body: [overPlanes(w, body)] })
})

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

/** The number of elements that a window's mean divides by. */
function divisor(g: PoolGeometry, w: Window, countIncludePad: boolean, fixed: number, dtype: DType): Expr {
  if (fixed !== 0) return constant(dtype, fixed)
  const extent = (loop: LoopVar, windows: number, stride: number, pad: number, kernel: number, size: number): Expr | number => {
    const last = (windows - 1) * stride - pad
    // If no window leaves the image (padded or not), the size is the kernel's.
    if (countIncludePad ? last + kernel <= size + pad : pad === 0 && last + kernel <= size) return kernel
    const start = call('add', call('mul', iota(loop), int(stride)), int(-pad))
    const end = call('min', call('add', start, int(kernel)), int(countIncludePad ? size + pad : size))
    return call('sub', end, countIncludePad ? start : call('max', start, int(0)))
  }
  const h = extent(w.oh, g.outHeight, g.strideH, g.padH, g.kernelH, g.height)
  const v = extent(w.ow, g.outWidth, g.strideW, g.padW, g.kernelW, g.width)
  if (typeof h === 'number' && typeof v === 'number') return constant(dtype, h * v)
  const expr = (x: Expr | number): Expr => (typeof x === 'number' ? int(x) : x)
  return cast(call('mul', expr(h), expr(v)), dtype)
}

/** Mean over windows: params out, input, planes. */
export const avgPoolKernel = kernelCache((dtype: DType, countIncludePad: boolean, fixed: number, ...key: GeometryKey): CompiledKernel => {
  const g = geometryOf(...key)
  const [out, input] = [bufferParam('out', dtype, 'write'), bufferParam('input', dtype)]
  const planes = sizeParam('planes')
  const w = windowOf(g, loopVar('plane', planes))
  let total: Expr = constant(dtype, 0)
  taps(g).forEach(([kh, kw], i) => {
    const { index, mask } = w.tap(kh, kw)
    const value = load(input, index, mask)
    total = i === 0 ? value : call('add', total, value)
  })
  return compileKernel({
    name: 'avg_pool2d',
    params: [out, input, planes],
    body: [overPlanes(w, [store(out, w.out, call('div', total, divisor(g, w, countIncludePad, fixed, dtype)))])],
  })
})

/** Spreads each gradient over its window: params gradInput, grad, total, planes. */
export const avgPoolBackwardKernel = kernelCache((dtype: DType, countIncludePad: boolean, fixed: number, ...key: GeometryKey): CompiledKernel => {
  const g = geometryOf(...key)
  const gi: BufferParam = bufferParam('gradInput', dtype, 'readwrite')
  const grad = bufferParam('grad', dtype)
  const [total, planes] = [sizeParam('total'), sizeParam('planes')]
  const z = loopVar('z', total)
  const w = windowOf(g, loopVar('plane', planes))
  const share = local('share', dtype)
  const body: Stmt[] = [declare(share, call('div', load(grad, w.out), divisor(g, w, countIncludePad, fixed, dtype)))]
  for (const [kh, kw] of taps(g)) {
    const { index, position, mask } = w.tap(kh, kw)
    if (mask === null) body.push(store(gi, index, read(share), 'add'))
    else {
      // Taps outside the image add 0 to the plane's first element.
      const target: Index = { ...at([w.plane, g.height * g.width]), dynamic: [{ value: call('where', mask, position, int(0)), stride: 1 }] }
      body.push(store(gi, target, call('where', mask, read(share), constant(dtype, 0)), 'add'))
    }
  }
  return compileKernel({
    name: 'avg_pool2d_backward',
    params: [gi, grad, total, planes],
    body: [forLoop(z, 'simd', [store(gi, at([z, 1]), constant(dtype, 0))]), ...serialLoops([w.plane, w.oh, w.ow], body)],
  })
})
