// Results that come later: where the program cannot wait for the GPU, a compiled function returns tensors at once, and their data when the graph has run.
import { DeviceReadError } from '../../gpu/errors.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { Block } from '../../kernels/index.ts'
import { present } from '../../errors/index.ts'
import { Storage, Tensor } from '../../tensor/index.ts'
import type { LateData } from '../../tensor/index.ts'
import type { Buffer } from '../ir.ts'

/** What has come of a run. */
type Outcome =
  | { readonly kind: 'none' }
  | { readonly kind: 'here'; readonly tensors: ReadonlyMap<Buffer, Tensor> }
  | { readonly kind: 'failed'; readonly error: unknown }

/** A run of a graph that has begun. */
export class LateRun {
  readonly #ended: Promise<void>
  readonly #buffers = new Set<Buffer>()
  #outcome: Outcome = { kind: 'none' }

  constructor(run: Promise<ReadonlyMap<Buffer, Tensor>>) {
    this.#ended = run.then(
      (tensors) => {
        this.#outcome = { kind: 'here', tensors: new Map([...tensors].filter(([buffer]) => this.#buffers.has(buffer))) }
      },
      (error: unknown) => {
        this.#outcome = { kind: 'failed', error }
      },
    )
  }

  /** A buffer that the run computes, as a tensor. */
  tensorOf(buffer: Buffer): Tensor {
    this.#buffers.add(buffer)
    const take = (): Block => this.#take(buffer)
    const arrive = async (): Promise<void> => {
      await this.#ended
      take()
    }
    const isHere = (): boolean => this.#outcome.kind === 'here'
    const data: LateData = {
      take,
      arrive,
      get isHere() {
        return isHere()
      },
    }
    return new Tensor([buffer.numel], buffer.dtype, Storage.late(buffer.numel * dtypeInfo[buffer.dtype].size, data))
  }

  #take(buffer: Buffer): Block {
    const outcome = this.#outcome
    if (outcome.kind === 'here') return present(outcome.tensors.get(buffer), `the elements of ${buffer.name}`).realize().block
    if (outcome.kind === 'failed') throw outcome.error
    throw new DeviceReadError(
      'This value is on the GPU, which this thread cannot wait for: `await y.itemAsync()`, `await y.toArrayAsync()` or `await y.toTypedArrayAsync()`; afterwards operators and other reads of the tensor work, too. Functions compiled for the GPU take it as it is. In Node, init() without `thread: false` gives the GPU a thread of its own, for which the program waits.',
    )
  }
}

/** A tensor with the elements that `tensor` has now, or will have when they come: `extent` of them, from its first on, in the same layout. */
export function snapshotOf(tensor: Tensor, extent: number): Tensor | Promise<Tensor> {
  const storage = tensor.realize()
  const { lateData } = storage
  const late = storage.lateCopy()
  if (lateData === null || late === null) return copyOf(tensor, extent)
  // By the time it is here, the tensor may have been given other data.
  const source = new Tensor(tensor.sizes, tensor.dtype, late, tensor.steps, tensor.offset)
  return lateData.arrive().then(() => copyOf(source, extent))
}

function copyOf(tensor: Tensor, extent: number): Tensor {
  const { size } = dtypeInfo[tensor.dtype]
  const source = tensor.realize()
  const start = tensor.offset * size
  const bytes = source.readBytes(start, Math.min(source.nbytes, start + extent * size))
  const storage = Storage.allocate(bytes.length)
  storage.writeBytes(bytes)
  return new Tensor(tensor.sizes, tensor.dtype, storage, tensor.steps, 0)
}
