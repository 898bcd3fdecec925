// Where the windows of two-dimensional pooling lie: read once from the arguments of a call, and handed on as a whole.
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import { channelsLastHint, valueText } from '../../../protocol/index.ts'
import type { Size } from '../../../protocol/index.ts'
import { areNumbers, formatShape, numelOf, sizeLess } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import { pairOf } from '../../shared/shapes.ts'
import { isKernelSize, isPair, windowCount, windowPair } from '../windows.ts'
import type { Pair } from '../windows.ts'

/** One dimension of a plane, and the windows along it. */
export interface PoolAxis<N extends Size = number> {
  /** How many elements the input has along it, and how many windows there are. */
  readonly size: N
  readonly windows: N
  readonly kernel: number
  readonly stride: number
  readonly padding: number
  readonly dilation: number
}

/** Planes of height x width, and the windows that pooling looks at. */
export interface PoolPlane<N extends Size = number> {
  readonly rows: PoolAxis<N>
  readonly columns: PoolAxis<N>
}

/** The arguments that say where windows lie, as the schema leaves them. */
export interface WindowArguments {
  readonly kernelSize: unknown
  readonly stride: unknown
  readonly padding: unknown
  /** Default 1. */
  readonly dilation?: unknown
  readonly ceilMode: boolean
}

/** The kernels have code for each position of a window. */
const LARGEST_WINDOW = 2 ** 16

/** The windows on the planes of an input, the last two dimensions. Throws ShapeError and ArgumentError, which name `op`. */
export const planeOf = (op: string, input: Tensor, windows: WindowArguments): PoolPlane => readPlane(op, input, input.sizes, windows)

/** The same of an input whose sizes may be symbols. */
export const symbolicPlaneOf = (op: string, input: Tensor, windows: WindowArguments): PoolPlane<Size> => readPlane(op, input, input.symSizes, windows)

function readPlane(op: string, input: Tensor, sizes: readonly number[], windows: WindowArguments): PoolPlane
function readPlane(op: string, input: Tensor, sizes: readonly Size[], windows: WindowArguments): PoolPlane<Size>
function readPlane(op: string, input: Tensor, sizes: readonly Size[], windows: WindowArguments): PoolPlane<Size> {
  if (input.ndim !== 4 && input.ndim !== 3) {
    throw new ShapeError(
      `${op}: input must have 4 dimensions [batch, channels, height, width] (or 3 without batch), got shape ${formatShape(input.symSizes)}.`,
    )
  }
  const kernel = windowPair(op, 'kernel_size', windows.kernelSize, 1)
  const stride = isKernelSize(windows.stride) ? kernel : windowPair(op, 'stride', windows.stride, 1)
  const padding = windowPair(op, 'padding', windows.padding, 0)
  const dilation = windowPair(op, 'dilation', windows.dilation ?? 1, 1)
  if (padding[0] > kernel[0] / 2 || padding[1] > kernel[1] / 2)
    throw new ArgumentError(
      `${op}: padding must be at most half the kernel size, got padding ${formatShape(padding)} and kernel ${formatShape(kernel)}.`,
    )
  if (kernel[0] * kernel[1] > LARGEST_WINDOW)
    throw new ArgumentError(`${op}: windows have at most ${LARGEST_WINDOW} elements, got kernel_size ${formatShape(kernel)}.`)
  const [height, width] = pairOf(sizes.slice(-2))
  const axis = (size: Size, d: 0 | 1): PoolAxis<Size> => {
    const own = { kernel: kernel[d], stride: stride[d], padding: padding[d], dilation: dilation[d] }
    return { size, windows: windowCount(size, own.kernel, own.stride, own.padding, own.dilation, windows.ceilMode), ...own }
  }
  const [rows, columns] = [axis(height, 0), axis(width, 1)]
  if (sizeLess(rows.windows, 1) || sizeLess(columns.windows, 1)) {
    throw new ShapeError(
      `${op}: the window ${formatShape(kernel)} does not fit into input of shape ${formatShape(input.symSizes)} with padding ${formatShape(padding)}.` +
        // An image with fewer columns than an image has colours is not an image.
        (typeof width === 'number' && areNumbers(sizes) && width <= 4 && sizeLess(width, height)
          ? channelsLastHint('input', sizes, width, input.ndim - 3)
          : ''),
    )
  }
  return { rows, columns }
}

/** The shape of the result for an input of these sizes. */
export function pooledShape(sizes: readonly number[], plane: PoolPlane): readonly number[]
export function pooledShape(sizes: readonly Size[], plane: PoolPlane<Size>): readonly Size[]
export function pooledShape(sizes: readonly Size[], { rows, columns }: PoolPlane<Size>): readonly Size[] {
  return [...sizes.slice(0, -2), rows.windows, columns.windows]
}

/** How many planes a tensor has. */
export const planeCount = ({ sizes }: Tensor): number => numelOf(sizes.slice(0, -2))

/** A window argument as the schema leaves it. Throws ArgumentError unless it is a number or a list of numbers. */
export function checkedPair(op: string, name: string, value: unknown): Pair {
  if (isPair(value)) return value
  throw new ArgumentError(`${op}: ${name} must be an integer, or two of them [height, width], got ${valueText(value)}.`)
}

/** The same for a stride, whose default is the kernel size. */
export const checkedStride = (op: string, stride: unknown): Pair | null => (stride === null ? null : checkedPair(op, 'stride', stride))
