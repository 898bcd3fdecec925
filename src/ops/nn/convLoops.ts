// Convolutions as plain loops, for dtypes that the matrix template does not support. One kernel per dtype and direction.
import {
  accumulate,
  at,
  bufferParam,
  call,
  compileKernel,
  constant,
  declare,
  forLoop,
  iota,
  load,
  local,
  loopVar,
  read,
  sizeOf,
  sizeParam,
  store,
} from '../../kernels/index.ts'
import type { CompiledKernel, DType, Expr, Index, SizeParam } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { sizeParams } from '../eager/sizes.ts'
import { kernelCache, launch } from '../eager/launch.ts'
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

/** 'forward': out += x * w; 'input': x += g * w; 'weight': w += g * x. The first buffer is written. All but the input are contiguous. */
const kernelOf = kernelCache((dtype: DType, direction: ConvOperands['direction'], hasBias: boolean): CompiledKernel => {
  const s = sizeParams(SIZES)
  const [x0, x1, x2, x3] = [sizeParam('x0'), sizeParam('x1'), sizeParam('x2'), sizeParam('x3')]
  const x = bufferParam('input', dtype, direction === 'input' ? 'write' : 'read')
  const w = bufferParam('weight', dtype, direction === 'weight' ? 'write' : 'read')
  const y = bufferParam('output', dtype, direction === 'forward' ? 'write' : 'read')
  const bias = bufferParam('bias', dtype)
  const n = loopVar('n', s.batch)
  const g = loopVar('g', s.groups)
  const c = loopVar('c', s.channels)
  const f = loopVar('f', s.features)
  const kh = loopVar('kh', s.kernelHeight)
  const kw = loopVar('kw', s.kernelWidth)
  const sum = local('sum', dtype)
  const size = (p: SizeParam): Expr => sizeOf(p)
  const outPlane = mul(size(s.outHeight), size(s.outWidth))
  const kernelPlane = mul(size(s.kernelHeight), size(s.kernelWidth))
  const feature = add(mul(iota(g), size(s.features)), iota(f))
  const channel = add(mul(iota(g), size(s.channels)), iota(c))
  const flat = (value: Expr): Index => ({ base: 0, terms: [], dynamic: [{ value, stride: 1 }] })
  const weightIndex = flat(add(mul(add(mul(feature, size(s.channels)), iota(c)), kernelPlane), add(mul(iota(kh), size(s.kernelWidth)), iota(kw))))
  const outIndex = (row: Expr, col: Expr): Expr =>
    add(mul(add(mul(iota(n), mul(size(s.groups), size(s.features))), feature), outPlane), add(mul(row, size(s.outWidth)), col))
  const inIndex = (row: Expr, col: Expr): Index => ({
    ...at([n, x0]),
    dynamic: [
      { value: channel, stride: x1 },
      { value: row, stride: x2 },
      { value: col, stride: x3 },
    ],
  })
  const inputRow = (oh: Expr): Expr => call('sub', add(mul(oh, size(s.strideH)), mul(iota(kh), size(s.dilationH))), size(s.padH))
  const inputCol = (ow: Expr): Expr => call('sub', add(mul(ow, size(s.strideW)), mul(iota(kw), size(s.dilationW))), size(s.padW))
  const params = [...Object.values(s), x0, x1, x2, x3]
  const inside = (row: Expr, col: Expr): Expr => call('and', within(row, size(s.height)), within(col, size(s.width)))
  if (direction === 'input') {
    const ih = loopVar('ih', s.height)
    const iw = loopVar('iw', s.width)
    // oh * stride = ih + pad - kh * dilation, where divisible.
    const row = call('sub', add(iota(ih), size(s.padH)), mul(iota(kh), size(s.dilationH)))
    const col = call('sub', add(iota(iw), size(s.padW)), mul(iota(kw), size(s.dilationW)))
    const oh = call('floorDiv', row, size(s.strideH))
    const ow = call('floorDiv', col, size(s.strideW))
    const zero = constant('int32', 0)
    const divisible = call(
      'and',
      call('eq', call('remainder', row, size(s.strideH)), zero),
      call('eq', call('remainder', col, size(s.strideW)), zero),
    )
    const valid = call('and', divisible, call('and', within(oh, size(s.outHeight)), within(ow, size(s.outWidth))))
    const term = mul(load(y, flat(outIndex(oh, ow)), valid), load(w, weightIndex))
    return compileKernel({
      name: 'conv_input_gradient_loops',
      params: [x, y, w, ...params],
      body: [
        forLoop(n, 'serial', [
          forLoop(g, 'serial', [
            forLoop(c, 'serial', [
              forLoop(ih, 'serial', [
                forLoop(iw, 'serial', [
                  declare(sum, constant(dtype, 0)),
                  forLoop(f, 'serial', [forLoop(kh, 'serial', [forLoop(kw, 'serial', [accumulate(sum, 'add', term)])])]),
                  store(x, inIndex(iota(ih), iota(iw)), read(sum)),
                ]),
              ]),
            ]),
          ]),
        ]),
      ],
    })
  }
  const oh = loopVar('oh', s.outHeight)
  const ow = loopVar('ow', s.outWidth)
  const [row, col] = [inputRow(iota(oh)), inputCol(iota(ow))]
  const pixel = load(x, inIndex(row, col), inside(row, col))
  if (direction === 'weight') {
    const term = mul(pixel, load(y, flat(outIndex(iota(oh), iota(ow)))))
    return compileKernel({
      name: 'conv_weight_gradient_loops',
      params: [w, y, x, ...params],
      body: [
        forLoop(g, 'serial', [
          forLoop(f, 'serial', [
            forLoop(c, 'serial', [
              forLoop(kh, 'serial', [
                forLoop(kw, 'serial', [
                  declare(sum, constant(dtype, 0)),
                  forLoop(n, 'serial', [forLoop(oh, 'serial', [forLoop(ow, 'serial', [accumulate(sum, 'add', term)])])]),
                  store(w, weightIndex, read(sum)),
                ]),
              ]),
            ]),
          ]),
        ]),
      ],
    })
  }
  return compileKernel({
    name: 'conv_loops',
    params: [y, x, w, ...(hasBias ? [bias] : []), ...params],
    body: [
      forLoop(n, 'serial', [
        forLoop(g, 'serial', [
          forLoop(f, 'serial', [
            forLoop(oh, 'serial', [
              forLoop(ow, 'serial', [
                declare(
                  sum,
                  hasBias ? load(bias, { ...at([f, 1]), dynamic: [{ value: mul(iota(g), size(s.features)), stride: 1 }] }) : constant(dtype, 0),
                ),
                forLoop(c, 'serial', [forLoop(kh, 'serial', [forLoop(kw, 'serial', [accumulate(sum, 'add', mul(pixel, load(w, weightIndex)))])])]),
                store(y, flat(outIndex(iota(oh), iota(ow))), read(sum)),
              ]),
            ]),
          ]),
        ]),
      ]),
    ],
  })
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
