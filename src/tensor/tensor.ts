// Tensor: shape, strides and dtype over a storage. It has no operators of its own; the operator table (ops/) adds them as methods.
//
// A fake tensor has no storage: shape and dtype only (FakeTensorMode, meta functions). The storage of any other tensor has its data, or a writer that computes it when it is read.
import { ArgumentError, InternalError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { TENSOR, valueText } from '../protocol/index.ts'
import type { Size } from '../protocol/index.ts'
import { checkedNumel, contiguousStrides, formatShape, isContiguous, sameShape } from './shape.ts'
import { frozenList } from './sizes.ts'
import { Storage } from './storage.ts'
import type { Device } from './storage.ts'

/** What autograd attaches to a tensor: the node of the tape that produced it. The autograd room knows its real type. */
export interface GradFn {
  readonly name: string
}

/** Shape, dtype and layout without data: what meta functions return. Contiguous from offset 0 unless strides are given. */
export interface TensorSpec<S extends Size = number> {
  readonly shape: readonly S[]
  readonly dtype: DType
  readonly strides?: readonly S[]
  readonly offset?: S
  /** Where the data would be; without it on the CPU. */
  readonly device?: Device
}

/** The layout of a tensor: all of its {@link TensorSpec} but the device. */
export type LayoutSpec<S extends Size = number> = Required<Omit<TensorSpec<S>, 'device'>>

/** What the error of `structuredClone(tensor)` and `postMessage(tensor)` shows: a symbol cannot be sent, and the error names it. */
const NOT_CLONED = Symbol(
  'A tensor cannot be sent or cloned as it is: send tensor.transfer(), and make it a tensor again with torch.fromTransfer(message). This',
)

/** What autograd sets: gives a view without a history the one that its base has now. */
export const historyOfViews: { join: ((view: Tensor) => void) | null } = { join: null }

export interface Tensor {
  readonly [TENSOR]: true
}

declare module '../protocol/tensorLike.ts' {
  interface TensorClasses {
    readonly tensor: Tensor
  }
}

let adopt: (tensor: Tensor, other: Tensor) => void
let lay: (tensor: Tensor, other: Tensor) => void
let place: (fake: Tensor, device: Device) => void

/** Gives `tensor`, which nothing has seen yet, the strides and the offset of `other`, a tensor of the same shape and dtype. Not a method: users must not reach it. */
export const adoptLayout = (tensor: Tensor, other: Tensor): void => adopt(tensor, other)

/** Says where the data of a fake tensor would be that nothing has seen yet. Not a method, as above. */
export const placeFake = (fake: Tensor, device: Device): void => place(fake, device)

/** Gives `tensor` the shape, the strides, the offset and the storage of `other`, a tensor of the same dtype: for operators such as `transpose_`. Not a method, as above. */
export const layAs = (tensor: Tensor, other: Tensor): void => lay(tensor, other)

/** A multi-dimensional array; PyTorch's `torch.Tensor`. Create one with `torch.tensor`, `torch.zeros`, …, not with `new`. */
export class Tensor {
  /** Without it a clone would be an object that looks like a tensor and points into the heap of another thread. @internal */
  readonly notCloned: symbol = NOT_CLONED
  #sizes: readonly number[]
  #steps: readonly number[]
  #numel: number
  #contiguous: boolean
  #offset: number
  readonly #dtype: DType
  /** Where the data of a fake tensor would be. */
  #fakeOn: Device = 'cpu'
  /** The data; null for a fake tensor. @internal */
  storage: Storage | null
  /** Whether this tensor has a history or is a leaf that wants one; null for a view that never follows its base. See {@link requiresGrad}. @internal */
  ownHistory: boolean | null = false
  grad: Tensor | null = null
  gradFn: GradFn | null = null
  /** Which output of gradFn this tensor is. @internal */
  outputNr = 0
  /** The tensor that this one is a view of, or null. @internal */
  viewBase: Tensor | null = null
  /** Set on parameters (see nn): a leaf that modules own. */
  isParameter = false
  /** Which capture of compile knows this tensor. @internal */
  captureStamp = 0
  /** Under which number that capture knows it. @internal */
  captureSlot = -1

  /**
   * `shape` and `strides` are kept, so they must be plain lists that no other code changes: `sizes` of another tensor rather than its frozen `shape`.
   * `like` is a tensor of the same shape and strides, if there is one: what follows from them is taken from it, and so is the offset unless it is given.
   * Throws ArgumentError without a dtype: users make tensors with `torch.tensor` and its like.
   */
  constructor(shape: readonly number[], dtype: DType, storage: Storage | null, strides?: readonly number[], offset?: number, like?: Tensor) {
    if (dtype === undefined || typeof dtype === 'number')
      throw new ArgumentError('new Tensor(…) is internal: make tensors with torch.tensor(data), torch.zeros(shape), torch.randn(shape), ….')
    this.#dtype = dtype
    this.storage = storage
    if (like !== undefined) {
      this.#sizes = like.#sizes
      this.#steps = like.#steps
      this.#numel = like.#numel
      this.#contiguous = like.#contiguous
      this.#offset = offset ?? like.#offset
      this.#fakeOn = like.#fakeOn
      return
    }
    this.#sizes = shape
    this.#numel = checkedNumel(shape, storage !== null)
    if (strides === undefined) {
      this.#steps = contiguousStrides(shape)
      this.#contiguous = true
    } else {
      this.#steps = strides
      this.#contiguous = isContiguous(shape, strides)
    }
    this.#offset = offset ?? 0
  }

  /** A new contiguous tensor. Its elements are undefined. @internal */
  static empty(shape: readonly number[], dtype: DType): Tensor {
    return new Tensor(shape, dtype, Storage.allocate(checkedNumel(shape, false) * dtypeInfo[dtype].size, shape, dtype))
  }

  /** A fake tensor: no data. @internal */
  static fake(spec: TensorSpec): Tensor {
    const fake = new Tensor([...spec.shape], spec.dtype, null, spec.strides && [...spec.strides], spec.offset)
    if (spec.device !== undefined) fake.#fakeOn = spec.device
    return fake
  }

  /** The sizes of the dimensions. The list is frozen: `x.reshape(…)` and `x.view(…)` make tensors of other shapes. */
  get shape(): readonly number[] {
    return frozenList(this.#sizes)
  }

  /** The steps between the elements of each dimension, in elements; a frozen list. PyTorch's `stride()`. */
  get strides(): readonly number[] {
    return frozenList(this.#steps)
  }

  /** {@link shape} as a plain list, which operators read faster. It must not be changed, nor reach users. @internal */
  get sizes(): readonly number[] {
    return this.#sizes
  }

  /** {@link strides} as a plain list, like {@link sizes}. @internal */
  get steps(): readonly number[] {
    return this.#steps
  }

  /** The position of the first element in the storage, in elements. */
  get offset(): number {
    return this.#offset
  }

  get dtype(): DType {
    return this.#dtype
  }

  /** Where the data is, or of a fake tensor would be: 'cpu', or 'webgpu' for a tensor on the graphics card (tensorfx/webgpu). PyTorch's `device`. */
  get device(): Device {
    return this.storage?.device ?? this.#fakeOn
  }

  /** Number of elements; PyTorch's `numel()` is a property here. */
  get numel(): number {
    return this.#numel
  }

  /** Whether the elements are in row-major order without gaps. @internal */
  get contiguousLayout(): boolean {
    return this.#contiguous
  }

  /** {@link sizes} as rules of operators read them that hold for symbols too (see `SymbolicTensor`). @internal */
  get symSizes(): readonly Size[] {
    return this.#sizes
  }

  /** {@link steps}, as {@link symSizes}. @internal */
  get symSteps(): readonly Size[] {
    return this.#steps
  }

  /** {@link offset}, as {@link symSizes}. @internal */
  get symOffset(): Size {
    return this.#offset
  }

  /** {@link numel}, as {@link symSizes}. @internal */
  get symNumel(): Size {
    return this.#numel
  }

  static {
    adopt = (tensor, other) => {
      if (!sameShape(tensor.sizes, other.sizes) || tensor.dtype !== other.dtype)
        throw new InternalError(
          `a ${tensor.dtype} tensor of shape ${formatShape(tensor.sizes)} cannot become a ${other.dtype} one of shape ${formatShape(other.sizes)}`,
        )
      tensor.#steps = other.#steps
      tensor.#contiguous = other.#contiguous
      tensor.#offset = other.#offset
    }
    lay = (tensor, other) => {
      if (tensor.dtype !== other.dtype) throw new InternalError(`a ${tensor.dtype} tensor cannot become a ${other.dtype} one`)
      // Reading the sizes refuses tensors whose sizes are symbols.
      if (tensor.sizes !== other.sizes) tensor.#sizes = other.sizes
      tensor.#numel = other.#numel
      tensor.#steps = other.#steps
      tensor.#contiguous = other.#contiguous
      tensor.#offset = other.#offset
      tensor.storage = other.storage
      tensor.#fakeOn = other.#fakeOn
    }
    place = (fake, device) => {
      fake.#fakeOn = device
    }
  }

  get ndim(): number {
    return this.#sizes.length
  }

  /**
   * Whether autograd records operators on this tensor. Set it on leaves only, through `requiresGrad_()`. A view follows its base: if a value that requires grad was
   * written into the base, the view has a history as well.
   */
  get requiresGrad(): boolean {
    if (this.ownHistory === false && this.viewBase !== null && this.viewBase.gradFn !== null) historyOfViews.join?.(this)
    return this.ownHistory === true
  }

  set requiresGrad(requiresGrad: boolean) {
    this.ownHistory = requiresGrad || (this.viewBase === null ? false : null)
  }

  get isLeaf(): boolean {
    return !this.requiresGrad || this.gradFn === null
  }

  get isFake(): boolean {
    return this.storage === null
  }

  /** The storage, its data computed. Throws ArgumentError for a fake tensor. @internal */
  realize(): Storage {
    const { storage } = this
    if (storage === null)
      throw new ArgumentError('this tensor is fake (it has a shape and a dtype but no data); run the program on real tensors to read values.')
    storage.writer?.settle(storage)
    return storage
  }
}
Object.defineProperty(Tensor.prototype, TENSOR, { value: true })

// Shape, dtype and the rest are facts: what assigns to them wants another tensor.
const INSTEAD: Readonly<Record<string, string>> = {
  shape: 'make a tensor of another shape: y = x.reshape([2, 3])',
  strides: 'make a tensor with other strides: y = x.asStrided(shape, strides)',
  offset: 'make a tensor that begins elsewhere: y = x.narrow(dim, start, length)',
  dtype: "make a tensor of another dtype: y = x.to('float64')",
  numel: 'make a tensor of another shape: y = x.reshape([2, 3])',
  ndim: 'make a tensor with another number of dimensions: y = x.unsqueeze(0)',
  device: "move it: y = x.to('webgpu')",
  isLeaf: 'x.detach() is a leaf',
}
for (const [name, instead] of Object.entries(INSTEAD)) {
  Object.defineProperty(Tensor.prototype, name, {
    ...Object.getOwnPropertyDescriptor(Tensor.prototype, name),
    set(value: unknown) {
      throw new ArgumentError(`x.${name} = ${valueText(value)}: the ${name} of a tensor cannot be assigned; ${instead}.`)
    },
  })
}
