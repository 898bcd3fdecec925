// Convolutions as plain loops, for dtypes that the matrix template does not support. One kernel per dtype and direction.
import {
  accumulate,
  at,
  bufferParam,
  call,
  compileKernel,
  constant,
  declare,
  iota,
  load,
  local,
  loopVar,
  read,
  serialLoops,
  sizeOf,
  sizeParam,
  store,
} from '../../../kernels/index.ts'
import type { CompiledKernel, DType, Expr, Index, SizeParam } from '../../../kernels/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import { sizeParams } from '../../eager/sizes.ts'
import { kernelCache, launch } from '../../eager/launch.ts'
import type { ConvGeometry, ConvOperands } from './convShapes.ts'

const mul = (a: Expr, b: Expr): Expr => call('mul', a, b)
const add = (a: Expr, b: Expr): Expr => call('add', a, b)
const within = (value: Expr, end: Expr): Expr => call('and', call('ge', value, constant('int32', 0)), call('lt', value, end))

/** The numbers of a geometry, in the order in which the kernels take them. */
const SIZES = [
  'batch',
  'groups',
  'channels',
  'features',
  'height',
  'width',
  'kernelHeight',
  'kernelWidth',
  'outHeight',
  'outWidth',
  'strideH',
  'strideW',
  'padH',
  'padW',
  'dilationH',
  'dilationW',
] as const

/** What the kernels of one dtype and direction share: buffers, loops, and the elements that a step of the loops takes. All tensors but the input are contiguous. */
function loopsOf(dtype: DType, direction: ConvOperands['direction']) {
  const s = sizeParams(SIZES)
  const [x0, x1, x2, x3] = [sizeParam('x0'), sizeParam('x1'), sizeParam('x2'), sizeParam('x3')]
  const x = bufferParam('input', dtype, direction === 'input' ? 'write' : 'read')
  const w = bufferParam('weight', dtype, direction === 'weight' ? 'write' : 'read')
  const y = bufferParam('output', dtype, direction === 'forward' ? 'write' : 'read')
  const n = loopVar('n', s.batch)
  const g = loopVar('g', s.groups)
  const c = loopVar('c', s.channels)
  const f = loopVar('f', s.features)
  const kh = loopVar('kh', s.kernelHeight)
  const kw = loopVar('kw', s.kernelWidth)
  const oh = loopVar('oh', s.outHeight)
  const ow = loopVar('ow', s.outWidth)
  const size = (p: SizeParam): Expr => sizeOf(p)
  const feature = add(mul(iota(g), size(s.features)), iota(f))
  const channel = add(mul(iota(g), size(s.channels)), iota(c))
  const flat = (value: Expr): Index => ({ base: 0, terms: [], dynamic: [{ value, stride: 1 }] })
  const inImage = (row: Expr, col: Expr): Index => ({
    ...at([n, x0]),
    dynamic: [
      { value: channel, stride: x1 },
      { value: row, stride: x2 },
      { value: col, stride: x3 },
    ],
  })
  const kernelPlane = mul(size(s.kernelHeight), size(s.kernelWidth))
  const weightIndex = flat(add(mul(add(mul(feature, size(s.channels)), iota(c)), kernelPlane), add(mul(iota(kh), size(s.kernelWidth)), iota(kw))))
  const outIndex = (row: Expr, col: Expr): Index => {
    const plane = mul(add(mul(iota(n), mul(size(s.groups), size(s.features))), feature), mul(size(s.outHeight), size(s.outWidth)))
    return flat(add(plane, add(mul(row, size(s.outWidth)), col)))
  }
  /** The element of the input under an element of the kernel, 0 in the padding. */
  const pixel = (): Expr => {
    const row = call('sub', add(mul(iota(oh), size(s.strideH)), mul(iota(kh), size(s.dilationH))), size(s.padH))
    const col = call('sub', add(mul(iota(ow), size(s.strideW)), mul(iota(kw), size(s.dilationW))), size(s.padW))
    return load(x, inImage(row, col), call('and', within(row, size(s.height)), within(col, size(s.width))))
  }
  const params = [...Object.values(s), x0, x1, x2, x3]
  return { s, x, w, y, n, g, c, f, kh, kw, oh, ow, size, inImage, weightIndex, outIndex, pixel, params, sum: local('sum', dtype) }
}

/** out += x * w */
function forwardKernel(dtype: DType, hasBias: boolean): CompiledKernel {
  const { s, x, w, y, n, g, c, f, kh, kw, oh, ow, size, weightIndex, outIndex, pixel, params, sum } = loopsOf(dtype, 'forward')
  const bias = bufferParam('bias', dtype)
  const ofFeature = { ...at([f, 1]), dynamic: [{ value: mul(iota(g), size(s.features)), stride: 1 }] }
  return compileKernel({
    name: 'conv_loops',
    params: [y, x, w, ...(hasBias ? [bias] : []), ...params],
    body: serialLoops(
      [n, g, f, oh, ow],
      [
        declare(sum, hasBias ? load(bias, ofFeature) : constant(dtype, 0)),
        ...serialLoops([c, kh, kw], [accumulate(sum, 'add', mul(pixel(), load(w, weightIndex)))]),
        store(y, outIndex(iota(oh), iota(ow)), read(sum)),
      ],
    ),
  })
}

/** x += g * w: an element of the output lies over one of the input where oh * stride = ih + pad - kh * dilation. */
function inputKernel(dtype: DType): CompiledKernel {
  const { s, x, w, y, n, g, c, f, kh, kw, size, inImage, weightIndex, outIndex, params, sum } = loopsOf(dtype, 'input')
  const ih = loopVar('ih', s.height)
  const iw = loopVar('iw', s.width)
  const row = call('sub', add(iota(ih), size(s.padH)), mul(iota(kh), size(s.dilationH)))
  const col = call('sub', add(iota(iw), size(s.padW)), mul(iota(kw), size(s.dilationW)))
  const oh = call('floorDiv', row, size(s.strideH))
  const ow = call('floorDiv', col, size(s.strideW))
  const isMultiple = (value: Expr, of: SizeParam): Expr => call('eq', call('remainder', value, size(of)), constant('int32', 0))
  const divisible = call('and', isMultiple(row, s.strideH), isMultiple(col, s.strideW))
  const valid = call('and', divisible, call('and', within(oh, size(s.outHeight)), within(ow, size(s.outWidth))))
  return compileKernel({
    name: 'conv_input_gradient_loops',
    params: [x, y, w, ...params],
    body: serialLoops(
      [n, g, c, ih, iw],
      [
        declare(sum, constant(dtype, 0)),
        ...serialLoops([f, kh, kw], [accumulate(sum, 'add', mul(load(y, outIndex(oh, ow), valid), load(w, weightIndex)))]),
        store(x, inImage(iota(ih), iota(iw)), read(sum)),
      ],
    ),
  })
}

/** w += g * x */
function weightKernel(dtype: DType): CompiledKernel {
  const { x, w, y, n, g, c, f, kh, kw, oh, ow, weightIndex, outIndex, pixel, params, sum } = loopsOf(dtype, 'weight')
  return compileKernel({
    name: 'conv_weight_gradient_loops',
    params: [w, y, x, ...params],
    body: serialLoops(
      [g, f, c, kh, kw],
      [
        declare(sum, constant(dtype, 0)),
        ...serialLoops([n, oh, ow], [accumulate(sum, 'add', mul(pixel(), load(y, outIndex(iota(oh), iota(ow)))))]),
        store(w, weightIndex, read(sum)),
      ],
    ),
  })
}

/** The first buffer of a kernel is the one that it writes. */
const kernelOf = kernelCache((dtype: DType, direction: ConvOperands['direction'], hasBias: boolean): CompiledKernel => {
  if (direction === 'forward') return forwardKernel(dtype, hasBias)
  return direction === 'input' ? inputKernel(dtype) : weightKernel(dtype)
})

/** Runs one direction. */
export function runConvLoops(geometry: ConvGeometry, operands: ConvOperands): void {
  const { direction, out } = operands
  const { steps } = direction === 'input' ? out : operands.input
  const kernel = kernelOf(out.dtype, direction, direction === 'forward' && operands.bias !== null)
  launch(kernel, buffersOf(operands), [...SIZES.map((name) => geometry[name]), ...steps])
}

/** The tensors in the order of a kernel's parameters. */
function buffersOf(operands: ConvOperands): readonly Tensor[] {
  if (operands.direction === 'input') return [operands.out, operands.gradOut, operands.weight]
  if (operands.direction === 'weight') return [operands.out, operands.gradOut, operands.input]
  const { out, input, weight, bias } = operands
  return bias === null ? [out, input, weight] : [out, input, weight, bias]
}
