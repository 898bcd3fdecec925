// Kernels of batch, layer and root mean square normalization. Two passes over the data for mean and variance: the one-pass formula cancels.
import {
  accumulate,
  at,
  bufferParam,
  call,
  compileKernel,
  constant,
  declare,
  forLoop,
  load,
  local,
  loopVar,
  read,
  scalar,
  scalarParam,
  sizeParam,
  store,
} from '../../../kernels/index.ts'
import type { BufferParam, CompiledKernel, DType, Expr, Local, Stmt } from '../../../kernels/index.ts'
import { kernelCache } from '../../eager/launch.ts'

export const add = (a: Expr, b: Expr): Expr => call('add', a, b)
export const sub = (a: Expr, b: Expr): Expr => call('sub', a, b)
export const mul = (a: Expr, b: Expr): Expr => call('mul', a, b)
export const div = (a: Expr, b: Expr): Expr => call('div', a, b)
/** 1 / sqrt(x), with both steps rounded correctly. */
export const inverseRoot = (x: Expr): Expr => div(constant(x.dtype, 1), call('sqrt', x))

/** Loops over [batch, channel, plane] data: lanes run over the plane, or over the channels where a plane is a single element. */
function channelLoops(lanesOverChannels: boolean) {
  const [images, channels, plane, imageStride] = [sizeParam('images'), sizeParam('channels'), sizeParam('plane'), sizeParam('imageStride')]
  const c = loopVar('c', channels)
  let count = 0
  return {
    sizes: [images, channels, plane, imageStride] as const,
    c,
    perChannel: at([c, 1]),
    overChannels: (body: readonly Stmt[]): Stmt => forLoop(c, lanesOverChannels ? 'simd' : 'serial', body),
    /** The elements of one channel; `body` gets the element's index. */
    overElements: (body: (index: ReturnType<typeof at>) => readonly Stmt[]): Stmt => {
      const [n, l] = [loopVar(`n${count}`, images), loopVar(`l${count++}`, plane)]
      return forLoop(n, 'serial', [forLoop(l, lanesOverChannels ? 'serial' : 'simd', body(at([n, imageStride], [c, plane], [l, 1])))])
    },
  }
}

/** Batch statistics and the normalized result. Params: out, mean, invstd, variance, input, weight?, bias?, images, channels, plane, imageStride, count, eps. */
export const batchNormKernel = kernelCache((dtype: DType, lanesOverChannels: boolean, hasWeight: boolean, hasBias: boolean): CompiledKernel => {
  const buffer = (name: string, access: BufferParam['access'] = 'read'): BufferParam => bufferParam(name, dtype, access)
  const [out, mean, invstd, variance, x, weight, bias] = [
    buffer('out', 'write'),
    buffer('mean', 'write'),
    buffer('invstd', 'write'),
    buffer('variance', 'write'),
    buffer('input'),
    buffer('weight'),
    buffer('bias'),
  ]
  const [count, eps] = [scalarParam('count', dtype), scalarParam('eps', dtype)]
  const loops = channelLoops(lanesOverChannels)
  const v = (name: string): Local => local(name, dtype)
  const [sum, mu, squares, variation, inverse, scale, shift] = [v('sum'), v('mu'), v('squares'), v('variation'), v('inverse'), v('scale'), v('shift')]
  const body = loops.overChannels([
    declare(sum, constant(dtype, 0)),
    loops.overElements((i) => [accumulate(sum, 'add', load(x, i))]),
    declare(mu, div(read(sum), scalar(count))),
    declare(squares, constant(dtype, 0)),
    loops.overElements((i) => {
      const d = sub(load(x, i), read(mu))
      return [accumulate(squares, 'add', mul(d, d))]
    }),
    declare(variation, div(read(squares), scalar(count))),
    declare(inverse, inverseRoot(add(read(variation), scalar(eps)))),
    store(mean, loops.perChannel, read(mu)),
    store(invstd, loops.perChannel, read(inverse)),
    store(variance, loops.perChannel, read(variation)),
    declare(scale, hasWeight ? mul(read(inverse), load(weight, loops.perChannel)) : read(inverse)),
    declare(shift, hasBias ? load(bias, loops.perChannel) : constant(dtype, 0)),
    loops.overElements((i) => {
      const scaled = mul(sub(load(x, i), read(mu)), read(scale))
      return [store(out, i, hasBias ? add(scaled, read(shift)) : scaled)]
    }),
  ])
  return compileKernel({
    name: 'batch_norm',
    params: [out, mean, invstd, variance, x, ...(hasWeight ? [weight] : []), ...(hasBias ? [bias] : []), ...loops.sizes, count, eps],
    body: [body],
  })
})

/** Gradients of batch normalization in training. Params: gradInput, gradWeight, gradBias, grad, input, mean, invstd, weight?, images, channels, plane, imageStride, count. */
export const batchNormBackwardKernel = kernelCache((dtype: DType, lanesOverChannels: boolean, hasWeight: boolean): CompiledKernel => {
  const buffer = (name: string, access: BufferParam['access'] = 'read'): BufferParam => bufferParam(name, dtype, access)
  const [gi, gw, gb] = [buffer('gradInput', 'write'), buffer('gradWeight', 'write'), buffer('gradBias', 'write')]
  const [g, x, mean, invstd, weight] = [buffer('grad'), buffer('input'), buffer('mean'), buffer('invstd'), buffer('weight')]
  const count = scalarParam('count', dtype)
  const loops = channelLoops(lanesOverChannels)
  const v = (name: string): Local => local(name, dtype)
  const [mu, inverse, sum, dot, scale, meanGrad, slope] = [v('mu'), v('inverse'), v('sum'), v('dot'), v('scale'), v('meanGrad'), v('slope')]
  const body = loops.overChannels([
    declare(mu, load(mean, loops.perChannel)),
    declare(inverse, load(invstd, loops.perChannel)),
    declare(sum, constant(dtype, 0)),
    declare(dot, constant(dtype, 0)),
    loops.overElements((i) => [accumulate(sum, 'add', load(g, i)), accumulate(dot, 'add', mul(load(g, i), sub(load(x, i), read(mu))))]),
    store(gw, loops.perChannel, mul(read(dot), read(inverse))),
    store(gb, loops.perChannel, read(sum)),
    declare(scale, hasWeight ? mul(read(inverse), load(weight, loops.perChannel)) : read(inverse)),
    declare(meanGrad, div(read(sum), scalar(count))),
    declare(slope, div(mul(mul(read(dot), read(inverse)), read(inverse)), scalar(count))),
    loops.overElements((i) => [store(gi, i, mul(read(scale), sub(sub(load(g, i), read(meanGrad)), mul(sub(load(x, i), read(mu)), read(slope)))))]),
  ])
  return compileKernel({
    name: 'batch_norm_backward',
    params: [gi, gw, gb, g, x, mean, invstd, ...(hasWeight ? [weight] : []), ...loops.sizes, count],
    body: [body],
  })
})

/** Normalizes rows. Params: out, mean, rstd, input, weight?, bias?, rows, width, count, eps. */
export const layerNormKernel = kernelCache((dtype: DType, hasWeight: boolean, hasBias: boolean): CompiledKernel => {
  const buffer = (name: string, access: BufferParam['access'] = 'read'): BufferParam => bufferParam(name, dtype, access)
  const [out, mean, rstd, x, weight, bias] = [
    buffer('out', 'write'),
    buffer('mean', 'write'),
    buffer('rstd', 'write'),
    buffer('input'),
    buffer('weight'),
    buffer('bias'),
  ]
  const [rows, width] = [sizeParam('rows'), sizeParam('width')]
  const [count, eps] = [scalarParam('count', dtype), scalarParam('eps', dtype)]
  const r = loopVar('r', rows)
  const [d0, d1, d2] = [loopVar('d0', width), loopVar('d1', width), loopVar('d2', width)]
  const v = (name: string): Local => local(name, dtype)
  const [sum, mu, squares, inverse] = [v('sum'), v('mu'), v('squares'), v('inverse')]
  const centered = sub(load(x, at([r, width], [d1, 1])), read(mu))
  let result = mul(sub(load(x, at([r, width], [d2, 1])), read(mu)), read(inverse))
  if (hasWeight) result = mul(result, load(weight, at([d2, 1])))
  if (hasBias) result = add(result, load(bias, at([d2, 1])))
  return compileKernel({
    name: 'layer_norm',
    params: [out, mean, rstd, x, ...(hasWeight ? [weight] : []), ...(hasBias ? [bias] : []), rows, width, count, eps],
    body: [
      forLoop(r, 'serial', [
        declare(sum, constant(dtype, 0)),
        forLoop(d0, 'simd', [accumulate(sum, 'add', load(x, at([r, width], [d0, 1])))]),
        declare(mu, div(read(sum), scalar(count))),
        declare(squares, constant(dtype, 0)),
        forLoop(d1, 'simd', [accumulate(squares, 'add', mul(centered, centered))]),
        declare(inverse, inverseRoot(add(div(read(squares), scalar(count)), scalar(eps)))),
        store(mean, at([r, 1]), read(mu)),
        store(rstd, at([r, 1]), read(inverse)),
        forLoop(d2, 'simd', [store(out, at([r, width], [d2, 1]), result)]),
      ]),
    ],
  })
})

/** Gradients of layer normalization. Params: gradInput, gradWeight, gradBias, grad, input, mean, rstd, weight?, rows, width, count. */
export const layerNormBackwardKernel = kernelCache((dtype: DType, hasWeight: boolean): CompiledKernel => {
  const buffer = (name: string, access: BufferParam['access'] = 'read'): BufferParam => bufferParam(name, dtype, access)
  const [gi, gw, gb] = [buffer('gradInput', 'write'), buffer('gradWeight', 'write'), buffer('gradBias', 'write')]
  const [g, x, mean, rstd, weight] = [buffer('grad'), buffer('input'), buffer('mean'), buffer('rstd'), buffer('weight')]
  const [rows, width] = [sizeParam('rows'), sizeParam('width')]
  const count = scalarParam('count', dtype)
  const [r, r2] = [loopVar('r', rows), loopVar('r2', rows)]
  const [d0, d1, d2] = [loopVar('d0', width), loopVar('d1', width), loopVar('d2', width)]
  const v = (name: string): Local => local(name, dtype)
  const [mu, inverse, sum, dot, meanGrad, slope, sumW, sumB] = [
    v('mu'),
    v('inverse'),
    v('sum'),
    v('dot'),
    v('meanGrad'),
    v('slope'),
    v('sumW'),
    v('sumB'),
  ]
  const weighted = (d: ReturnType<typeof loopVar>): Expr => {
    const grad = load(g, at([r, width], [d, 1]))
    return hasWeight ? mul(grad, load(weight, at([d, 1]))) : grad
  }
  const normal = (d: ReturnType<typeof loopVar>): Expr => mul(sub(load(x, at([r, width], [d, 1])), read(mu)), read(inverse))
  const grad2 = load(g, at([r2, width], [d2, 1]))
  const normal2 = mul(sub(load(x, at([r2, width], [d2, 1])), load(mean, at([r2, 1]))), load(rstd, at([r2, 1])))
  return compileKernel({
    name: 'layer_norm_backward',
    params: [gi, gw, gb, g, x, mean, rstd, ...(hasWeight ? [weight] : []), rows, width, count],
    body: [
      forLoop(r, 'serial', [
        declare(mu, load(mean, at([r, 1]))),
        declare(inverse, load(rstd, at([r, 1]))),
        declare(sum, constant(dtype, 0)),
        declare(dot, constant(dtype, 0)),
        forLoop(d0, 'simd', [accumulate(sum, 'add', weighted(d0)), accumulate(dot, 'add', mul(weighted(d0), normal(d0)))]),
        declare(meanGrad, div(read(sum), scalar(count))),
        declare(slope, div(read(dot), scalar(count))),
        forLoop(d1, 'simd', [
          store(gi, at([r, width], [d1, 1]), mul(read(inverse), sub(sub(weighted(d1), read(meanGrad)), mul(normal(d1), read(slope))))),
        ]),
      ]),
      forLoop(d2, 'simd', [
        declare(sumW, constant(dtype, 0)),
        declare(sumB, constant(dtype, 0)),
        forLoop(r2, 'serial', [accumulate(sumW, 'add', mul(grad2, normal2)), accumulate(sumB, 'add', grad2)]),
        store(gw, at([d2, 1]), read(sumW)),
        store(gb, at([d2, 1]), read(sumB)),
      ]),
    ],
  })
})

/** Divides rows by their root mean square. Params: out, rstd, input, weight?, rows, width, count, eps. */
export const rmsNormKernel = kernelCache((dtype: DType, hasWeight: boolean): CompiledKernel => {
  const [out, rstd] = [bufferParam('out', dtype, 'write'), bufferParam('rstd', dtype, 'write')]
  const [x, weight] = [bufferParam('input', dtype), bufferParam('weight', dtype)]
  const [rows, width] = [sizeParam('rows'), sizeParam('width')]
  const [count, eps] = [scalarParam('count', dtype), scalarParam('eps', dtype)]
  const [r, d0, d1] = [loopVar('r', rows), loopVar('d0', width), loopVar('d1', width)]
  const [squares, inverse] = [local('squares', dtype), local('inverse', dtype)]
  const element = load(x, at([r, width], [d0, 1]))
  const normal = mul(load(x, at([r, width], [d1, 1])), read(inverse))
  return compileKernel({
    name: 'rms_norm',
    params: [out, rstd, x, ...(hasWeight ? [weight] : []), rows, width, count, eps],
    body: [
      forLoop(r, 'serial', [
        declare(squares, constant(dtype, 0)),
        forLoop(d0, 'simd', [accumulate(squares, 'add', mul(element, element))]),
        declare(inverse, inverseRoot(add(div(read(squares), scalar(count)), scalar(eps)))),
        store(rstd, at([r, 1]), read(inverse)),
        forLoop(d1, 'simd', [store(out, at([r, width], [d1, 1]), hasWeight ? mul(normal, load(weight, at([d1, 1]))) : normal)]),
      ]),
    ],
  })
})

/** Gradients of root mean square normalization; each row is added to that of the weight while it is in the cache. Params: gradInput, gradWeight, grad, input, rstd, weight?, rows, width, count. */
export const rmsNormBackwardKernel = kernelCache((dtype: DType, hasWeight: boolean): CompiledKernel => {
  const [gi, gw] = [bufferParam('gradInput', dtype, 'write'), bufferParam('gradWeight', dtype, 'readwrite')]
  const [g, x, rstd, weight] = [bufferParam('grad', dtype), bufferParam('input', dtype), bufferParam('rstd', dtype), bufferParam('weight', dtype)]
  const [rows, width] = [sizeParam('rows'), sizeParam('width')]
  const count = scalarParam('count', dtype)
  const [z, r, d0, d1] = [loopVar('z', width), loopVar('r', rows), loopVar('d0', width), loopVar('d1', width)]
  const [inverse, dot, slope] = [local('inverse', dtype), local('dot', dtype), local('slope', dtype)]
  const weighted = (d: typeof d0): Expr => {
    const grad = load(g, at([r, width], [d, 1]))
    return hasWeight ? mul(grad, load(weight, at([d, 1]))) : grad
  }
  const normal = (d: typeof d0): Expr => mul(load(x, at([r, width], [d, 1])), read(inverse))
  return compileKernel({
    name: 'rms_norm_backward',
    params: [gi, gw, g, x, rstd, ...(hasWeight ? [weight] : []), rows, width, count],
    body: [
      forLoop(z, 'simd', [store(gw, at([z, 1]), constant(dtype, 0))]),
      forLoop(r, 'serial', [
        declare(inverse, load(rstd, at([r, 1]))),
        declare(dot, constant(dtype, 0)),
        forLoop(d0, 'simd', [accumulate(dot, 'add', mul(weighted(d0), normal(d0)))]),
        declare(slope, div(read(dot), scalar(count))),
        forLoop(d1, 'simd', [
          store(gi, at([r, width], [d1, 1]), mul(read(inverse), sub(weighted(d1), mul(normal(d1), read(slope))))),
          store(gw, at([d1, 1]), mul(load(g, at([r, width], [d1, 1])), normal(d1)), 'add'),
        ]),
      ]),
    ],
  })
})
