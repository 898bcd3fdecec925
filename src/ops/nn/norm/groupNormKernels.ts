// Kernels of group normalization. Two passes over a group for mean and variance, as in normKernels.ts; weight and bias, which have a value per channel, come in with the third.
import { accumulate, at, bufferParam, compileKernel, constant, declare, forLoop, load, local, loopVar, read } from '../../../kernels/index.ts'
import { scalar, scalarParam, sizeParam, sizeProduct, store } from '../../../kernels/index.ts'
import type { BufferParam, CompiledKernel, DType, Expr, Index, Local, LoopVar, Size, Stmt } from '../../../kernels/index.ts'
import { kernelCache } from '../../eager/launch.ts'
import { add, div, inverseRoot, mul, sub } from './normKernels.ts'

/** What a group's code does with each channel: `before` and `after` its elements, and with each of these. */
interface ChannelCode {
  readonly before?: readonly Stmt[]
  readonly inside: readonly Stmt[]
  readonly after?: readonly Stmt[]
}

/** Loops over [samples, groups, channels of a group, plane]. Lanes run over the plane, or over the channels where a plane is a single element (`isFlat`). */
function groupLoops(isFlat: boolean) {
  const [images, groups, each, plane] = [sizeParam('images'), sizeParam('groups'), sizeParam('each'), sizeParam('plane')]
  const [n, g] = [loopVar('n', images), loopVar('g', groups)]
  const width = sizeProduct(each, plane)
  const first: readonly (readonly [LoopVar, Size])[] = [
    [n, sizeProduct(groups, width)],
    [g, width],
  ]
  let loops = 0
  return {
    sizes: [images, groups, each, plane] as const,
    perGroup: at([n, groups], [g, 1]),
    overGroups: (body: readonly Stmt[]): Stmt => forLoop(n, 'serial', [forLoop(g, 'serial', body)]),
    /** The elements of a group. */
    overElements: (body: (element: Index) => readonly Stmt[]): Stmt => {
      const i = loopVar(`i${loops++}`, width)
      return forLoop(i, 'simd', body(at(...first, [i, 1])))
    },
    /** The same, channel by channel. */
    overChannels: (code: (channel: Index, element: Index) => ChannelCode): Stmt => {
      const [k, l] = [loopVar(`k${loops}`, each), loopVar(`l${loops++}`, plane)]
      const { before = [], inside, after = [] } = code(at([g, each], [k, 1]), isFlat ? at(...first, [k, 1]) : at(...first, [k, plane], [l, 1]))
      return isFlat ? forLoop(k, 'simd', [...before, ...inside, ...after]) : forLoop(k, 'serial', [...before, forLoop(l, 'simd', inside), ...after])
    },
  }
}

/** Normalizes groups. Params: out, mean, rstd, input, weight?, bias?, images, groups, channels of a group, plane, count, eps. */
export const groupNormKernel = kernelCache((dtype: DType, hasWeight: boolean, hasBias: boolean, isFlat: boolean): CompiledKernel => {
  const buffer = (name: string, access: BufferParam['access'] = 'read'): BufferParam => bufferParam(name, dtype, access)
  const [out, mean, rstd] = [buffer('out', 'write'), buffer('mean', 'write'), buffer('rstd', 'write')]
  const [x, weight, bias] = [buffer('input'), buffer('weight'), buffer('bias')]
  const [count, eps] = [scalarParam('count', dtype), scalarParam('eps', dtype)]
  const v = (name: string): Local => local(name, dtype)
  const [sum, mu, squares, inverse, scale, shift] = [v('sum'), v('mu'), v('squares'), v('inverse'), v('scale'), v('shift')]
  const loops = groupLoops(isFlat)
  const centered = (element: Index): Expr => sub(load(x, element), read(mu))
  return compileKernel({
    name: 'group_norm',
    params: [out, mean, rstd, x, ...(hasWeight ? [weight] : []), ...(hasBias ? [bias] : []), ...loops.sizes, count, eps],
    body: [
      loops.overGroups([
        declare(sum, constant(dtype, 0)),
        loops.overElements((element) => [accumulate(sum, 'add', load(x, element))]),
        declare(mu, div(read(sum), scalar(count))),
        declare(squares, constant(dtype, 0)),
        loops.overElements((element) => [accumulate(squares, 'add', mul(centered(element), centered(element)))]),
        declare(inverse, inverseRoot(add(div(read(squares), scalar(count)), scalar(eps)))),
        store(mean, loops.perGroup, read(mu)),
        store(rstd, loops.perGroup, read(inverse)),
        loops.overChannels((channel, element) => {
          const normal = mul(centered(element), read(inverse))
          const scaled = hasWeight ? mul(normal, read(scale)) : normal
          return {
            before: [...(hasWeight ? [declare(scale, load(weight, channel))] : []), ...(hasBias ? [declare(shift, load(bias, channel))] : [])],
            inside: [store(out, element, hasBias ? add(scaled, read(shift)) : scaled)],
          }
        }),
      ]),
    ],
  })
})

/**
 * Gradients of group normalization: each channel is read once for all sums. Params: gradInput, gradWeight, gradBias, grad, input, mean, rstd, weight?, images, groups, channels of a group,
 * plane, count.
 */
export const groupNormBackwardKernel = kernelCache((dtype: DType, hasWeight: boolean, isFlat: boolean): CompiledKernel => {
  const buffer = (name: string, access: BufferParam['access'] = 'read'): BufferParam => bufferParam(name, dtype, access)
  const [gi, gw, gb] = [buffer('gradInput', 'write'), buffer('gradWeight', 'readwrite'), buffer('gradBias', 'readwrite')]
  const [grad, x, mean, rstd, weight] = [buffer('grad'), buffer('input'), buffer('mean'), buffer('rstd'), buffer('weight')]
  const count = scalarParam('count', dtype)
  const v = (name: string): Local => local(name, dtype)
  const [mu, inverse, sum, dot, meanGrad, slope] = [v('mu'), v('inverse'), v('sum'), v('dot'), v('meanGrad'), v('slope')]
  const [scale, sumW, sumB] = [v('scale'), v('sumW'), v('sumB')]
  const loops = groupLoops(isFlat)
  const normal = (element: Index): Expr => mul(sub(load(x, element), read(mu)), read(inverse))
  const scaleOf = (channel: Index): Stmt => declare(scale, hasWeight ? load(weight, channel) : constant(dtype, 1))
  const zero = loopVar('zero', sizeProduct(loops.sizes[1], loops.sizes[2]))
  return compileKernel({
    name: 'group_norm_backward',
    params: [gi, gw, gb, grad, x, mean, rstd, ...(hasWeight ? [weight] : []), ...loops.sizes, count],
    body: [
      forLoop(zero, 'simd', [store(gw, at([zero, 1]), constant(dtype, 0)), store(gb, at([zero, 1]), constant(dtype, 0))]),
      loops.overGroups([
        declare(mu, load(mean, loops.perGroup)),
        declare(inverse, load(rstd, loops.perGroup)),
        declare(sum, constant(dtype, 0)),
        declare(dot, constant(dtype, 0)),
        loops.overChannels((channel, element) => ({
          before: [scaleOf(channel), declare(sumW, constant(dtype, 0)), declare(sumB, constant(dtype, 0))],
          inside: [accumulate(sumB, 'add', load(grad, element)), accumulate(sumW, 'add', mul(load(grad, element), normal(element)))],
          after: [
            store(gw, channel, read(sumW), 'add'),
            store(gb, channel, read(sumB), 'add'),
            accumulate(sum, 'add', mul(read(sumB), read(scale))),
            accumulate(dot, 'add', mul(read(sumW), read(scale))),
          ],
        })),
        declare(meanGrad, div(read(sum), scalar(count))),
        declare(slope, div(read(dot), scalar(count))),
        loops.overChannels((channel, element) => ({
          before: [scaleOf(channel)],
          inside: [
            store(
              gi,
              element,
              mul(read(inverse), sub(sub(mul(load(grad, element), read(scale)), read(meanGrad)), mul(normal(element), read(slope)))),
            ),
          ],
        })),
      ]),
    ],
  })
})
