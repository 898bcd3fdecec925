// Tensors as messages for workers: `x.transfer()` here, `fromTransfer(message)` there. The data is copied out of this heap once, since the memory of WebAssembly cannot
// be given away; the copy can then be moved, not copied again, by naming its buffer in the transfer list.
import { ArgumentError } from '../errors/index.ts'
import { dtypeInfo, isDType } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { checkCount, isObject, valueText } from '../protocol/index.ts'
import { storedElements, tensorFromBytes } from './elements.ts'
import { contiguousStrides, formatShape, numelOf } from './shape.ts'
import { Tensor } from './tensor.ts'

/** What identifies a message. */
const KIND = 'tensorfx.tensor'

/** A tensor as plain data, which `postMessage` and `structuredClone` can send. `fromTransfer` makes a tensor of it. */
export interface TensorTransfer {
  readonly kind: typeof KIND
  readonly shape: readonly number[]
  readonly strides: readonly number[]
  readonly dtype: DType
  readonly requiresGrad: boolean
  /** The elements. In the transfer list it is moved: `worker.postMessage(message, [message.buffer])`. */
  readonly buffer: ArrayBuffer
}

declare module './tensor.ts' {
  interface Tensor {
    /**
     * The tensor as a message for another thread: shape, strides, dtype, `requiresGrad` and a copy of the data. Views send their own elements only. Send it with
     * `worker.postMessage(message, [message.buffer])`, which moves the copy, and make a tensor again with `torch.fromTransfer(message)`. The message is not a tensor,
     * and later changes do not reach it. Throws ArgumentError for a fake tensor, and for one that autograd computed: send `x.detach()`, since the graph stays here.
     */
    transfer(): TensorTransfer
  }
}

/** Number of elements from the tensor's first to its last, gaps included. */
export function windowNumel(shape: readonly number[], strides: readonly number[]): number {
  if (shape.includes(0)) return 0
  return shape.reduce((last, size, i) => last + (size - 1) * (strides[i] ?? 0), 1)
}

/** The bytes from the tensor's first element to its last, gaps included, copied. */
export function windowBytes(tensor: Tensor): Uint8Array {
  const { size } = dtypeInfo[tensor.dtype]
  return tensor.realize().readBytes(tensor.offset * size, (tensor.offset + windowNumel(tensor.sizes, tensor.steps)) * size)
}

/** A copy in a buffer of its own. */
function bufferOf(bytes: ArrayBufferView): ArrayBuffer {
  const buffer = new ArrayBuffer(bytes.byteLength)
  new Uint8Array(buffer).set(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  return buffer
}

export const transferMethods: Record<string, (this: Tensor) => TensorTransfer> = {
  transfer(this: Tensor): TensorTransfer {
    if (this.gradFn !== null)
      throw new ArgumentError(
        'transfer: this tensor was computed from tensors that require gradients, which cannot be sent with it; send x.detach().transfer().',
      )
    const { sizes, steps, dtype, requiresGrad } = this
    // Gaps hold other tensors' elements, which are not sent.
    const isDense = windowNumel(sizes, steps) <= numelOf(sizes)
    const bytes = isDense ? windowBytes(this) : storedElements(this)
    return {
      kind: KIND,
      shape: [...sizes],
      strides: [...(isDense ? steps : contiguousStrides(sizes))],
      dtype,
      requiresGrad,
      buffer: bufferOf(bytes),
    }
  },
}

/**
 * The tensor that `x.transfer()` of another thread was called on: a new one, with its data in the heap of this thread. Throws ArgumentError for anything else.
 *
 *     // in the program
 *     const message = x.transfer()
 *     worker.postMessage(message, [message.buffer])
 *     // in the worker
 *     parentPort.on('message', (message) => console.log(torch.fromTransfer(message)))
 */
export function fromTransfer(message: TensorTransfer): Tensor {
  checkCount('torch.fromTransfer', arguments, 1)
  const { shape, strides, dtype, requiresGrad, buffer } = checked(message)
  const tensor = tensorFromBytes(new Uint8Array(buffer), shape, dtype, strides)
  tensor.requiresGrad = requiresGrad
  return tensor
}

/** The parts of a message, which may come from anywhere. */
function checked(message: unknown): TensorTransfer {
  if (message instanceof Tensor) throw wrong('a tensor, which is here already; pass it on as it is')
  if (!isObject(message) || Reflect.get(message, 'kind') !== KIND) throw wrong(valueText(message))
  const get = (key: keyof TensorTransfer): unknown => Reflect.get(message, key)
  const [shape, strides, dtype, requiresGrad, buffer] = [get('shape'), get('strides'), get('dtype'), get('requiresGrad'), get('buffer')]
  if (!isSizes(shape)) throw damaged('shape', shape)
  if (!isSizes(strides) || strides.length !== shape.length) throw damaged('strides', strides)
  if (typeof dtype !== 'string' || !isDType(dtype)) throw damaged('dtype', dtype)
  if (typeof requiresGrad !== 'boolean' || (requiresGrad && !dtypeInfo[dtype].differentiable)) throw damaged('requiresGrad', requiresGrad)
  if (!isBuffer(buffer)) throw damaged('buffer', buffer)
  const bytes = windowNumel(shape, strides) * dtypeInfo[dtype].size
  if (buffer.byteLength !== bytes)
    throw new ArgumentError(
      `fromTransfer: a ${dtype} tensor of shape ${formatShape(shape)} needs ${bytes} bytes, and the buffer has ${buffer.byteLength}${
        buffer.byteLength === 0 ? ': it was moved to another thread; call transfer() once for each' : ''
      }.`,
    )
  return { kind: KIND, shape, strides, dtype, requiresGrad, buffer }
}

const isSizes = (value: unknown): value is readonly number[] => Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0)

/** A buffer of another realm (a frame, node:vm) is none of our ArrayBuffer. */
const isBuffer = (value: unknown): value is ArrayBuffer => Object.prototype.toString.call(value) === '[object ArrayBuffer]'

const wrong = (got: string): ArgumentError => new ArgumentError(`fromTransfer: expected what tensor.transfer() returned, got ${got}.`)

const damaged = (key: keyof TensorTransfer, value: unknown): ArgumentError =>
  new ArgumentError(`fromTransfer: the message is damaged: ${key} is ${valueText(value)}. Send what tensor.transfer() returned as it is.`)
