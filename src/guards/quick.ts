// The comparisons of state that happen at every call and operator, written out for the kinds that there are today: a loop over functions takes several times as long. What is added
// to a list is compared after these, in a loop.
import { anomaly, isGradEnabled } from '../autograd/index.ts'
import { devices, dispatchState } from '../dispatch/index.ts'
import { InternalError } from '../errors/index.ts'
import { currentComputing } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { changesOf } from '../module/index.ts'
import type { Module } from '../module/index.ts'
import { getDefaultDtype, sameShape } from '../tensor/index.ts'
import type { Device, Tensor } from '../tensor/index.ts'
import { attributes, code, hooks, mode, moduleState } from './moduleState.ts'
import {
  anomalyMode,
  callState,
  defaultDtype,
  gradMode,
  operatorState,
  processState,
  place,
  recording,
  segmentState,
  computingMode,
} from './processState.ts'
import { agreesWith, changeOf, keyOf, readState } from './stateKind.ts'
import type { Change, StateKind } from './stateKind.ts'
import {
  device,
  dtype,
  historyOwner,
  historyOwnerOf,
  isLeaf,
  memory,
  metTensorState,
  otherOuterState,
  otherTensorState,
  requiresGrad,
  shape,
  strides,
} from './tensorState.ts'

/** The kinds of a list that are not written out below. The list begins with those that are, in this order, or this throws InternalError. */
function furtherThan<S>(writtenOut: readonly StateKind<S>[], list: readonly StateKind<S>[]): readonly StateKind<S>[] {
  if (writtenOut.some((kind, i) => kind !== list[i]))
    throw new InternalError(
      `guards/quick.ts compares ${writtenOut.map(({ name }) => name).join(', ')}, but the list is ${list.map(({ name }) => name).join(', ')}`,
    )
  return list.slice(writtenOut.length)
}

const furtherAtOperator = furtherThan([recording], operatorState)
const furtherOfSegments = furtherThan<null>([defaultDtype, computingMode, place], segmentState)
const furtherOfMet = furtherThan<Tensor>([dtype, requiresGrad, shape, strides, device], metTensorState)
const furtherOfCalls = furtherThan([gradMode], callState)
const furtherOfProcess = furtherThan<null>([gradMode, defaultDtype, computingMode, anomalyMode], processState)
const furtherOfArguments = furtherThan<Tensor>([isLeaf, historyOwner], otherTensorState)
const furtherOfOuter = furtherThan<Tensor>([isLeaf, historyOwner, memory], otherOuterState)
const furtherOfModules = furtherThan<Module>([mode, attributes, hooks, code], moduleState)

/** Whether the `operatorState` has these values. */
export const agreesAtOperator = (values: readonly unknown[]): boolean =>
  values[0] === dispatchState.recording && (furtherAtOperator.length === 0 || agreesWith(furtherAtOperator, null, values.slice(1)))

/** Whether the `segmentState` has these values. */
export const agreesInSegment = (values: readonly unknown[]): boolean =>
  values[0] === getDefaultDtype() &&
  values[1] === currentComputing() &&
  values[2] === devices.here &&
  (furtherOfSegments.length === 0 || agreesWith(furtherOfSegments, null, values.slice(3)))

/** Whether the `processState` has these values. */
export const agreesInProcess = (values: readonly unknown[]): boolean =>
  values[0] === isGradEnabled() &&
  values[1] === getDefaultDtype() &&
  values[2] === currentComputing() &&
  values[3] === anomaly.enabled &&
  (furtherOfProcess.length === 0 || agreesWith(furtherOfProcess, null, values.slice(4)))

/** The values of the `metTensorState` of a tensor. */
export interface MetState {
  readonly dtype: DType
  readonly requiresGrad: boolean
  readonly sizes: readonly number[]
  readonly steps: readonly number[]
  readonly device: Device
  readonly further: readonly unknown[]
}

export const metStateOf = (tensor: Tensor): MetState => ({
  dtype: tensor.dtype,
  requiresGrad: tensor.requiresGrad,
  sizes: tensor.sizes,
  steps: tensor.steps,
  device: tensor.device,
  further: readState(furtherOfMet, tensor),
})

/** Whether the `metTensorState` of a tensor has these values. */
export const agreesAsMet = (tensor: Tensor, state: MetState): boolean =>
  tensor.dtype === state.dtype &&
  tensor.requiresGrad === state.requiresGrad &&
  sameShape(tensor.sizes, state.sizes) &&
  sameShape(tensor.steps, state.steps) &&
  isOn(tensor, state.device) &&
  (furtherOfMet.length === 0 || agreesWith(furtherOfMet, tensor, state.further))

/** Whether a tensor is on a device: without one, all are in the program's memory. */
const isOn = (tensor: Tensor, device: Device): boolean => devices.operators === null || tensor.device === device

/** Whether it has them, but for the shape and the strides. */
export const agreesButForSizes = (tensor: Tensor, state: MetState): boolean =>
  tensor.dtype === state.dtype &&
  tensor.requiresGrad === state.requiresGrad &&
  isOn(tensor, state.device) &&
  (furtherOfMet.length === 0 || agreesWith(furtherOfMet, tensor, state.further))

/** These values in the order of the list. */
export const metValues = ({ dtype, requiresGrad, sizes, steps, device, further }: MetState): readonly unknown[] => [
  dtype,
  requiresGrad,
  sizes,
  steps,
  device,
  ...further,
]

/** A key of the `callState`. */
export const callKey = (): string => (furtherOfCalls.length === 0 ? (isGradEnabled() ? 'grad' : '') : keyOf(callState, null))

/** A key of the `metTensorState` of a tensor. */
export function metKey(tensor: Tensor): string {
  let key = `${tensor.dtype}[${tensor.sizes.join()}]`
  if (!tensor.contiguousLayout) key += tensor.steps.join()
  if (tensor.requiresGrad) key += 'g'
  if (devices.operators !== null) key += tensor.device
  return furtherOfMet.length === 0 ? key : key + keyOf(furtherOfMet, tensor)
}

/** A key of the `metTensorState` of a tensor, with its rank in the place of its shape and strides. */
export function rankKey(tensor: Tensor): string {
  const key = `${tensor.dtype}[${tensor.ndim}]${tensor.requiresGrad ? 'g' : ''}${devices.operators === null ? '' : tensor.device}`
  return furtherOfMet.length === 0 ? key : key + keyOf(furtherOfMet, tensor)
}

/** A tensor as it was, an argument or one from outside. An argument is not kept alive. */
export class TensorThen {
  readonly #met: MetState
  readonly #values: readonly unknown[]
  readonly #kinds: readonly StateKind<Tensor>[]
  readonly #isLeaf: boolean
  readonly #historyOwner: string
  /** An argument may have any memory. */
  readonly #isOuter: boolean
  readonly #memory: object | null
  readonly #further: readonly StateKind<Tensor>[]
  readonly #furtherValues: readonly unknown[]

  constructor(tensor: Tensor, isOuter: boolean) {
    this.#met = metStateOf(tensor)
    this.#kinds = isOuter ? otherOuterState : otherTensorState
    this.#values = readState(this.#kinds, tensor)
    this.#isLeaf = tensor.isLeaf
    this.#historyOwner = historyOwnerOf(tensor)
    this.#isOuter = isOuter
    this.#memory = isOuter ? tensor.storage : null
    this.#further = isOuter ? furtherOfOuter : furtherOfArguments
    this.#furtherValues = readState(this.#further, tensor)
  }

  agrees(now: Tensor): boolean {
    return (
      agreesAsMet(now, this.#met) &&
      now.isLeaf === this.#isLeaf &&
      historyOwnerOf(now) === this.#historyOwner &&
      (!this.#isOuter || now.storage === this.#memory) &&
      (this.#further.length === 0 || agreesWith(this.#further, now, this.#furtherValues))
    )
  }

  change(now: Tensor): Change | null {
    return changeOf(metTensorState, now, metValues(this.#met)) ?? changeOf(this.#kinds, now, this.#values)
  }
}

/** The `moduleState` of a module. */
export class ModuleThen {
  readonly module: Module
  readonly values: readonly unknown[]
  readonly #training: boolean
  readonly #names: readonly string[]
  readonly #properties: readonly unknown[]
  #changes: number
  readonly #further: readonly unknown[]

  constructor(module: Module) {
    this.module = module
    this.values = readState(moduleState, module)
    this.#training = module.training
    this.#names = Object.keys(module)
    this.#properties = this.#names.map((name) => propertiesOf(module)[name])
    this.#changes = changesOf(module)
    this.#further = readState(furtherOfModules, module)
  }

  /** Whether the module still has it. */
  get isCurrent(): boolean {
    const { module } = this
    if (module.training !== this.#training) return false
    const properties = propertiesOf(module)
    const names = this.#names
    for (let i = 0; i < names.length; i++) if (properties[names[i] ?? ''] !== this.#properties[i]) return false
    if (Object.keys(module).length !== names.length) return false
    const changes = changesOf(module)
    if (changes !== this.#changes) {
      // A hook that was added and removed has changed nothing.
      if (!agreesWith(moduleState, module, this.values)) return false
      this.#changes = changes
    }
    return furtherOfModules.length === 0 || agreesWith(furtherOfModules, module, this.#further)
  }
}

const propertiesOf = (module: Module): Readonly<Record<string, unknown>> => Object(module)
