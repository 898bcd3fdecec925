// Buffer: a tensor that becomes a buffer of the module that it is assigned to. PyTorch's torch.nn.Buffer.
import { BUFFER, checkOptions, isObject } from '../protocol/index.ts'
import { checkTensor } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'

/** Options of {@link Buffer}. */
export interface BufferOptions {
  /** Whether the state dict has it; default true. */
  readonly persistent?: boolean
}

/** A tensor that becomes a buffer of the module that it is assigned to. */
export interface Buffer extends Tensor {}

/** Makes buffers: `this.mean = new nn.Buffer(torch.zeros([3]))` is `this.registerBuffer('mean', torch.zeros([3]))`. PyTorch's `torch.nn.Buffer`. */
export class Buffer {
  /** A buffer on the memory of `data` (not a copy), cut from its history. */
  constructor(data: Tensor, options: BufferOptions = {}) {
    checkOptions('nn.Buffer', options, { persistent: 'boolean' })
    checkTensor('nn.Buffer', 'data', data)
    return Object.assign(data.detach(), { [BUFFER]: options.persistent ?? true })
  }

  static [Symbol.hasInstance](value: unknown): boolean {
    return isObject(value) && typeof Reflect.get(value, BUFFER) === 'boolean'
  }
}
