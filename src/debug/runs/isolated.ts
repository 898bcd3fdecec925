// Runs that leave no trace: copies of a model and its inputs that share nothing with the originals, and a call after which the program's state is what it was.
// Everything that runs a model to look at it, to compare it or to minify it goes through these two.
import { anomaly } from '../../autograd/anomaly.ts'
import { hookState, noGrad } from '../../autograd/index.ts'
import { dispatchState, withoutModes } from '../../dispatch/index.ts'
import { withConfig } from '../../config.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { cloneModule, setModuleTracingHook } from '../../module/index.ts'
import { to } from '../../ops/index.ts'
import { isObject, remembered } from '../../protocol/index.ts'
import type { TensorLike } from '../../protocol/index.ts'
import { nodeTypeOf } from '../../pytree/registry.ts'
import { Generator, Storage, Tensor, asTensor, getDefaultDtype, withDefaultDtype } from '../../tensor/index.ts'
import type { GeneratorState } from '../../tensor/index.ts'

/** What {@link isolated} returns. */
export interface Isolated<M> {
  readonly model: M
  readonly inputs: unknown[]
}

/**
 * Copies of a model (a Module or a GraphModule; a function is returned as it is) and of its inputs that share no memory with the originals. Kept are: nesting in
 * arrays, objects, Maps, Sets and registered classes; what is shared among the tensors of both (one tensor in two places, views of one memory, tied parameters);
 * shapes, strides, offsets, dtypes; `requiresGrad` and `isParameter`; the states of generators. Every copy is a leaf without a gradient.
 *
 * Values are read as the memory holds them now: a write that compile has recorded and not performed yet is not performed.
 */
export function isolated<M>(model: M, inputs: readonly unknown[]): Isolated<M> {
  return copied(model, inputs, false)
}

/** Like {@link isolated}, with floating-point tensors in float64. */
export function isolatedInFloat64<M>(model: M, inputs: readonly unknown[]): Isolated<M> {
  return copied(model, inputs, true)
}

function copied<M>(model: M, inputs: readonly unknown[], widens: boolean): Isolated<M> {
  const copies = new Copies(widens)
  const [copy, own] = cloneModule<[M, unknown[]]>([model, [...inputs]], (tensor) => copies.tensor(tensor), copyOther)
  return { model: copy, inputs: own }
}

/** Copies of inputs alone, like {@link isolated}. */
export const isolatedInputs = (inputs: readonly unknown[]): unknown[] => isolated(null, inputs).inputs

class Copies {
  readonly #widens: boolean
  /** Copies of memory, by the dtype that its elements are copied as: tensors of several dtypes may share it. */
  readonly #memory = new Map<Storage, Map<DType, Storage>>()

  constructor(widens: boolean) {
    this.#widens = widens
  }

  tensor(like: TensorLike): Tensor {
    const tensor = asTensor(like, 'a tensor to copy')
    const { sizes, storage } = tensor
    const dtype = this.#widens && dtypeInfo[tensor.dtype].floating ? 'float64' : tensor.dtype
    const copy = new Tensor(sizes, dtype, storage === null ? null : this.#copyOf(storage, tensor.dtype, dtype), undefined, undefined, tensor)
    copy.requiresGrad = tensor.requiresGrad
    copy.isParameter = tensor.isParameter
    return copy
  }

  #copyOf(storage: Storage, from: DType, dtype: DType): Storage {
    // A value that was never computed has no memory to look at.
    const bytes = storage.peekBytes() ?? storage.readBytes()
    const copies = remembered(this.#memory, storage.home, () => new Map<DType, Storage>())
    return remembered(copies, from === dtype ? 'uint8' : from, () => {
      const copy = Storage.allocate(storage.nbytes)
      copy.writeBytes(bytes)
      return from === dtype ? copy : widened(copy, from)
    })
  }
}

/** The elements of a memory in float64. */
function widened(storage: Storage, from: DType): Storage {
  const flat = new Tensor([Math.floor(storage.nbytes / dtypeInfo[from].size)], from, storage)
  return withoutModes(() => noGrad(() => to(flat, 'float64'))).realize()
}

function copyOther(value: unknown, copy: (value: unknown) => unknown): unknown {
  if (value instanceof Generator) return new Generator(value.initialSeed()).setState(value.getState())
  if (ArrayBuffer.isView(value)) return structuredClone(value)
  if (!isObject(value)) return value
  const type = nodeTypeOf(value)
  if (type === null) return value
  const { children, context } = type.flatten(value)
  return type.unflatten(children.map(copy), context)
}

/** What a run has changed outside of itself so far. */
export interface Trace {
  /** The storages that were there before and were written to, with the bytes that they held. */
  written(): ReadonlyMap<Storage, Uint8Array>
  hasWritten(storage: Storage): boolean
}

/** Notes what changes before it does. Tensors that the run makes are not noted. */
class Journal implements Trace {
  readonly #since = Storage.made
  readonly #memory = new Map<Storage, { readonly bytes: Uint8Array; readonly version: number }>()
  readonly #grads = new Map<Tensor, Tensor | null>()
  readonly #generators = new Map<Generator, GeneratorState>()

  readonly noteWrite = (storage: Storage, version: number): void => {
    const bytes = storage.serial >= this.#since || this.#memory.has(storage) ? null : storage.peekBytes()
    if (bytes !== null) this.#memory.set(storage, { bytes, version })
  }

  readonly noteGrad = (leaf: Tensor): void => {
    if (!this.#grads.has(leaf)) this.#grads.set(leaf, leaf.grad)
  }

  readonly noteDraw = (generator: Generator): void => {
    if (!this.#generators.has(generator)) this.#generators.set(generator, generator.getState())
  }

  written(): ReadonlyMap<Storage, Uint8Array> {
    return new Map([...this.#memory].map(([storage, { bytes }]) => [storage, bytes]))
  }

  hasWritten(storage: Storage): boolean {
    return [...this.#memory.keys()].some(({ home }) => home === storage.home)
  }

  undo(): void {
    for (const [storage, { bytes, version }] of this.#memory) {
      storage.writeBytes(bytes)
      storage.version = version
    }
    for (const [leaf, grad] of this.#grads) leaf.grad = grad
    for (const [generator, state] of this.#generators) generator.setState(state)
  }
}

/**
 * Runs `fn`, and puts back what it has changed: memory and versions of tensors that were there before, gradients of leaves, the states of random generators, the default dtype, settings.
 * Hooks are called; failures inside are not dumped.
 */
export function undone<T>(fn: (trace: Trace) => T): T {
  const journal = new Journal()
  const { beforeAnyWrite } = Storage
  const { beforeAnyDraw } = Generator
  const { beforeAccumulation } = hookState
  Storage.beforeAnyWrite = journal.noteWrite
  Generator.beforeAnyDraw = journal.noteDraw
  hookState.beforeAccumulation = journal.noteGrad
  try {
    return withConfig({ reproAfter: null }, () => withDefaultDtype(getDefaultDtype(), () => fn(journal)))
  } finally {
    // First, since a generator that is put back would tell an outer journal of the state that the run has left.
    try {
      journal.undo()
    } finally {
      Storage.beforeAnyWrite = beforeAnyWrite
      Generator.beforeAnyDraw = beforeAnyDraw
      hookState.beforeAccumulation = beforeAccumulation
    }
  }
}

/**
 * Runs `fn` as the program would run it, outside of any mode and with gradients recorded, and puts back what it has changed: memory and versions of tensors that
 * were there before, gradients of leaves, the states of random generators, the default dtype, grad and anomaly mode, settings. So what `fn` returns must not be a
 * tensor of the program that it has written to. Hooks on the program's leaves are not called, and failures inside are not dumped.
 */
export function contained<T>(fn: (trace: Trace) => T): T {
  const dispatching = { ...dispatchState }
  const { inner, leaves } = hookState
  const { enabled } = anomaly
  const tracing = setModuleTracingHook(null)
  Object.assign(dispatchState, { mode: null, modes: [], gradEnabled: true, recording: false, changingNumbers: false, internal: false })
  // Hooks on the program's leaves must not hear of this.
  hookState.leaves = 0
  anomaly.enabled = false
  try {
    return undone(fn)
  } finally {
    Object.assign(dispatchState, dispatching)
    // compile asks whether a call has registered hooks, by comparing this number.
    hookState.inner = inner
    hookState.leaves += leaves
    anomaly.enabled = enabled
    setModuleTracingHook(tracing)
  }
}
