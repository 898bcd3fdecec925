// The state of tensors on which recorded calls depend, of arguments and of tensors from outside.
import { isDetached, isViewOfDetached } from '../dispatch/index.ts'
import type { DType } from '../kernels/index.ts'
import { sameShape } from '../tensor/index.ts'
import type { Device, Tensor } from '../tensor/index.ts'
import { hadHas, identityOf, listText } from './stateKind.ts'
import type { StateKind } from './stateKind.ts'

export const dtype: StateKind<Tensor, DType> = {
  name: 'the dtype',
  compile: 'met',
  read: (tensor) => tensor.dtype,
  key: (tensor) => tensor.dtype,
  show: String,
  change: (was, is) => `had dtype ${was}, now has ${is}`,
}

export const requiresGrad: StateKind<Tensor, boolean> = {
  name: 'whether it requires grad',
  compile: 'met',
  read: (tensor) => tensor.requiresGrad,
  key: (tensor) => (tensor.requiresGrad ? 'requiresGrad' : ''),
  show: (value) => (value ? 'requires grad' : 'does not require grad'),
  change: (_, is) => (is ? 'now requires grad' : 'no longer requires grad'),
}

export const shape: StateKind<Tensor, readonly number[]> = {
  name: 'the shape',
  compile: 'met',
  read: (tensor) => tensor.sizes,
  agrees: (tensor, value) => sameShape(tensor.sizes, value),
  key: (tensor) => `[${tensor.sizes.join()}]`,
  ...hadHas('shape', listText),
}

export const strides: StateKind<Tensor, readonly number[]> = {
  name: 'the strides',
  compile: 'met',
  read: (tensor) => tensor.steps,
  agrees: (tensor, value) => sameShape(tensor.steps, value),
  key: (tensor) => (tensor.contiguousLayout ? '' : tensor.steps.join()),
  ...hadHas('strides', listText),
}

export const device: StateKind<Tensor, Device> = {
  name: 'the device',
  compile: 'met',
  read: (tensor) => tensor.device,
  key: (tensor) => (tensor.device === 'cpu' ? '' : tensor.device),
  show: String,
  change: (was, is) => `was on ${was}, is now on ${is}`,
}

export const isLeaf: StateKind<Tensor, boolean> = {
  name: 'whether it is a leaf',
  compile: 'program',
  read: (tensor) => tensor.isLeaf,
  key: (tensor) => (tensor.isLeaf ? 'leaf' : ''),
  show: (value) => (value ? 'a leaf' : 'no leaf'),
  change: (_, is) => (is ? 'is a leaf now' : 'is no leaf any more'),
}

/** What gets a history by a recorded write to a tensor. */
type HistoryOwner = 'itself' | 'base' | 'detached' | 'none'

const HISTORY_OWNERS: Readonly<Record<HistoryOwner, string>> = {
  itself: 'itself',
  base: 'the tensor that it is a view of',
  detached: 'itself only, since it is detached',
  none: 'nothing, since it was made inside noGrad',
}

export function historyOwnerOf(tensor: Tensor): HistoryOwner {
  if (tensor.viewBase === null) return 'itself'
  if (isDetached(tensor)) return 'detached'
  return tensor.ownHistory === null || isViewOfDetached(tensor) ? 'none' : 'base'
}

export const historyOwner: StateKind<Tensor, HistoryOwner> = {
  name: 'what a write to it gives a history',
  compile: 'program',
  read: historyOwnerOf,
  key: historyOwnerOf,
  show: (owner) => HISTORY_OWNERS[owner],
  change: (was, is) => `gave a history to ${HISTORY_OWNERS[was]}, now to ${HISTORY_OWNERS[is]}`,
}

/** The memory of a tensor from outside. */
export const memory: StateKind<Tensor, object | null> = {
  name: 'the memory of a tensor from outside',
  compile: 'operator',
  read: (tensor) => tensor.storage,
  key: (tensor) => (tensor.storage === null ? '' : `#${identityOf(tensor.storage)}`),
  show: () => 'its memory',
  change: () => 'has other memory now',
}

export const tensorState: readonly StateKind<Tensor>[] = [dtype, requiresGrad, shape, strides, device, isLeaf, historyOwner]
/** Of a tensor from outside. */
export const outerState: readonly StateKind<Tensor>[] = [...tensorState, memory]
const isMet = (kind: StateKind<Tensor>): boolean => kind.compile === 'met'
/** Those that compile compares by itself when it meets a tensor, and the others, of arguments and of tensors from outside. */
export const metTensorState: readonly StateKind<Tensor>[] = tensorState.filter(isMet)
export const otherTensorState: readonly StateKind<Tensor>[] = tensorState.filter((kind) => !isMet(kind))
export const otherOuterState: readonly StateKind<Tensor>[] = outerState.filter((kind) => !isMet(kind))
