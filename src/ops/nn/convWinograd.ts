// float32 convolutions by Winograd's algorithm, where it applies, and the gradient of their input, which is such a convolution of the result's gradient: the weight is turned by 180 degrees,
// and its channels and features change places. Sizes are part of the kernel.
import {
  OutOfMemoryError,
  PerEngine,
  at,
  bufferParam,
  call,
  compileScheduled,
  isStrict,
  kernelBytes,
  kernelsByCall,
  knownScratchBytes,
  load,
  loopVar,
  store,
  takesWinograd,
  winograd,
} from '../../kernels/index.ts'
import type { CompiledKernel, ConvolutionSizes } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { cacheKey, launch, scratchMemory } from '../eager/launch.ts'
import { quadrupleOf } from '../shapes.ts'
import type { ConvGeometry, ConvOperands } from './convShapes.ts'

/** A convolution of images with a contiguous weight, or with a turned one. */
interface Convolved {
  readonly sizes: ConvolutionSizes
  readonly image: Tensor
  readonly weight: Tensor
  readonly bias: Tensor | null
  readonly isTurned: boolean
}

function convolvedBy(g: ConvGeometry, operands: Exclude<ConvOperands, { readonly direction: 'weight' }>): Convolved {
  if (operands.direction === 'forward') return { sizes: g, image: operands.input, weight: operands.weight, bias: operands.bias, isTurned: false }
  const turned: ConvolutionSizes = {
    ...g,
    ...{ channels: g.features, height: g.outHeight, width: g.outWidth, padH: g.kernelHeight - 1 - g.padH },
    ...{ features: g.channels, outHeight: g.height, outWidth: g.width, padW: g.kernelWidth - 1 - g.padW },
  }
  return { sizes: turned, image: operands.gradOut, weight: operands.weight, bias: null, isTurned: true }
}

const owner = new PerEngine(cacheKey)

function kernelOf({ sizes, image, bias, isTurned }: Convolved): CompiledKernel {
  const key = [owner.current, isTurned, bias !== null, ...Object.values(sizes), ...image.steps].join(' ')
  let kernel = kernelsByCall.get(key)
  if (kernel === undefined) {
    kernel = build(sizes, quadrupleOf(image.steps), isTurned, bias !== null)
    kernelsByCall.set(key, kernel, kernelBytes(kernel))
  }
  return kernel
}

function build(sizes: ConvolutionSizes, steps: readonly [number, number, number, number], isTurned: boolean, hasBias: boolean): CompiledKernel {
  const { channels, kernelHeight, kernelWidth } = sizes
  const [out, image, weight, bias] = [
    bufferParam('out', 'float32', 'write'),
    bufferParam('image', 'float32'),
    bufferParam('weight', 'float32'),
    bufferParam('bias', 'float32'),
  ]
  const plane = sizes.outHeight * sizes.outWidth
  const [images, features, pixels] = [loopVar('image', sizes.batch), loopVar('feature', sizes.features), loopVar('pixel', plane)]
  const area = kernelHeight * kernelWidth
  const [outer, channel, row, col] = steps
  const plain = { buffer: weight, start: 0, outer: area * channels, channel: area, row: kernelWidth, col: 1 }
  const turned = { buffer: weight, start: area - 1, outer: area, channel: area * sizes.features, row: -kernelWidth, col: -1 }
  return compileScheduled(winograd, {
    ...{ name: 'conv_winograd', sizes, images, features, pixels },
    image: { buffer: image, start: 0, outer, channel, row, col },
    weight: isTurned ? turned : plain,
    epilogue: (sum) => [
      store(
        out,
        at([images, sizes.features * plane], [features, plane], [pixels, 1]),
        hasBias ? call('add', sum, load(bias, at([features, 1]))) : sum,
      ),
    ],
    params: [out, image, weight, ...(hasBias ? [bias] : [])],
  })
}

/** Runs one direction by Winograd's algorithm; returns false, and does nothing, where that does not apply, in strict code, and where there is no room for it. */
export function runWinograd(g: ConvGeometry, operands: ConvOperands): boolean {
  if (operands.direction === 'weight' || g.groups !== 1 || g.kernelHeight !== 3 || isStrict()) return false
  const convolved = convolvedBy(g, operands)
  const { sizes, image, weight, bias } = convolved
  if (!takesWinograd(sizes) || sizes.padH < 0 || sizes.padW < 0) return false
  const kernel = kernelOf(convolved)
  let scratch: number
  try {
    scratch = scratchMemory(knownScratchBytes(kernel))
  } catch (error) {
    if (error instanceof OutOfMemoryError) return false
    throw error
  }
  launch(kernel, [operands.out, image, weight, ...(bias === null ? [] : [bias])], [scratch])
  return true
}
