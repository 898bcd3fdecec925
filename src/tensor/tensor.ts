// Tensor: shape, strides and dtype over a storage. It has no operators of its own: the operator table (ops/) installs them as methods.
//
// A tensor is in one of three states:
//   real     storage is set;
//   pending  storage is null and `pending` says who can compute the data (compile's capture); reading the data asks it;
//   fake     neither: shape and dtype only (FakeTensorMode, meta functions).
import { ArgumentError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { TENSOR } from '../protocol/index.ts'
import { contiguousStrides, isContiguous, numelOf } from './shape.ts'
import { Storage } from './storage.ts'

/** Computes the data of a pending tensor on demand; afterwards the tensor's storage is set. */
export interface Pending {
  materialize(tensor: Tensor): void
}

/** What autograd hangs on a tensor: the tape node that produced it. The autograd room knows its real type. */
export interface GradFn {
  readonly name: string
}

/** Shape, dtype and layout without data: what meta functions return. Contiguous from offset 0 unless strides are given. */
export interface TensorSpec {
  readonly shape: readonly number[]
  readonly dtype: DType
  readonly strides?: readonly number[]
  readonly offset?: number
}

export interface Tensor {
  readonly [TENSOR]: true
}

/** A multi-dimensional array; PyTorch's `torch.Tensor`. Create one with `torch.tensor`, `torch.zeros`, …, not with `new`. */
export class Tensor {
  readonly shape: readonly number[]
  readonly strides: readonly number[]
  /** First element, in elements from the start of the storage. */
  readonly offset: number
  readonly dtype: DType
  /** Number of elements; PyTorch's `numel()` is a property here. */
  readonly numel: number
  /** Row-major without gaps. */
  readonly contiguousLayout: boolean
  storage: Storage | null
  pending: Pending | null = null
  /** Whether autograd records operators on this tensor. Set it on leaves only, through `requiresGrad_()`. */
  requiresGrad = false
  grad: Tensor | null = null
  gradFn: GradFn | null = null
  /** Which output of gradFn this tensor is. */
  outputNr = 0
  /** The tensor that this one is a view of, or null. */
  viewBase: Tensor | null = null
  /** Set on parameters (see nn): a leaf that modules own. */
  isParameter = false
  /** Capture bookkeeping (dynamo): which capture knows this tensor, and under which slot. */
  captureStamp = 0
  captureSlot = -1

  /** `like`, when given, is a tensor of the same shape and strides: what follows from them is taken from it. */
  constructor(shape: readonly number[], dtype: DType, storage: Storage | null, strides?: readonly number[], offset?: number, like?: Tensor) {
    this.shape = shape
    this.dtype = dtype
    this.storage = storage
    if (like !== undefined) {
      this.numel = like.numel
      this.strides = like.strides
      this.contiguousLayout = like.contiguousLayout
      this.offset = like.offset
      return
    }
    this.numel = numelOf(shape)
    if (strides === undefined) {
      this.strides = contiguousStrides(shape)
      this.contiguousLayout = true
    } else {
      this.strides = strides
      this.contiguousLayout = isContiguous(shape, strides)
    }
    this.offset = offset ?? 0
  }

  /** New memory for a contiguous tensor, not cleared. */
  static empty(shape: readonly number[], dtype: DType): Tensor {
    return new Tensor(shape, dtype, Storage.allocate(numelOf(shape) * dtypeInfo[dtype].size))
  }

  /** A fake tensor: no data. */
  static fake(spec: TensorSpec): Tensor {
    return new Tensor(spec.shape, spec.dtype, null, spec.strides, spec.offset)
  }

  get ndim(): number {
    return this.shape.length
  }

  get isLeaf(): boolean {
    return this.gradFn === null
  }

  get isFake(): boolean {
    return this.storage === null && this.pending === null
  }

  /** The storage; computes a pending tensor first. Throws ArgumentError for a fake one. */
  realize(): Storage {
    if (this.storage === null) {
      if (this.pending === null)
        throw new ArgumentError('this tensor is fake (it has a shape and a dtype but no data); run the program on real tensors to read values.')
      this.pending.materialize(this)
    }
    return this.storage as unknown as Storage
  }
}
Object.defineProperty(Tensor.prototype, TENSOR, { value: true })
