// Layers that learn the size of their input from the first one: they have parameters without a shape until then, and are layers of the ordinary class afterwards.
import { withoutModes } from '../../dispatch/index.ts'
import { InternalError, ShapeError, present } from '../../errors/index.ts'
import { Module, addHook, removeHook } from '../../module/index.ts'
import { snakeCase } from '../../protocol/index.ts'
import type { getRngState } from '../../tensor/index.ts'
import { Tensor, formatShape, setRngState } from '../../tensor/index.ts'
import type { SpatialFacts } from '../layerFacts.ts'
import { UninitializedBuffer, UninitializedParameter, isUninitialized } from './uninitialized.ts'

/** How the layers of a family get their sizes. */
export interface LazyFamily<M extends Module> {
  /** The property that holds the size of the inputs. */
  readonly property: string
  /** That size, from the first input. */
  sizeOf(layer: M, input: Tensor): number
  /** That size, from the tensor of that name in a state dict; null if it does not follow. */
  sizeIn(layer: M, name: string, tensor: Tensor): number | null
  /** The ordinary layer for inputs of that size. */
  make(layer: M, size: number): Module
}

/** By class, so that copies of a layer have it as well. The class of a layer that has its size is another one. */
const families = new WeakMap<object, LazyFamily<Module>>()

const familyOf = (module: Module): LazyFamily<Module> => present(families.get(module.constructor), `the family of ${module.getName()}`)

/** The names of a module's parameters and buffers. */
const tensorNames = (module: Module): readonly string[] => [...module.ownParameters(), ...module.ownBuffers()].map(([name]) => name)

/** Whether any parameter or buffer of the module has no shape. PyTorch's `has_uninitialized_params`. */
export const hasUninitialized = (module: Module): boolean => tensorNames(module).some((name) => isUninitialized(Reflect.get(module, name)))

/**
 * Makes a new layer lazy: its parameters and buffers, except counts, lose their shapes, and the property with the size of its inputs is 0. It gets them back from its first input, or from a
 * state dict. `state`: that of the random numbers before the layer was made, if it has drawn initial values, which are drawn again when it has its size.
 */
export function makeLazy<M extends Module>(module: M, family: LazyFamily<M>, state: ReturnType<typeof getRngState> | null = null): void {
  if (state !== null) setRngState(state)
  families.set(module.constructor, family)
  for (const name of tensorNames(module)) {
    const value: unknown = Reflect.get(module, name)
    if (!(value instanceof Tensor) || value.dtype === 'int64') continue
    const { dtype } = value
    Reflect.set(module, name, value.isParameter ? new UninitializedParameter({ dtype }) : new UninitializedBuffer({ dtype }))
  }
  Reflect.set(module, family.property, 0)
  addHook(module, 'forwardPre', sizeFromInput)
  addHook(module, 'loadStateDictPre', sizeFromStateDict)
}

/** Anything but a tensor is left to the layer, which refuses it. */
function sizeFromInput(module: Module, [input]: readonly unknown[]): void {
  if (input instanceof Tensor) initialize(module, familyOf(module).sizeOf(module, input))
}

function sizeFromStateDict(module: Module, state: ReadonlyMap<string, unknown>, prefix: string): void {
  for (const name of tensorNames(module)) {
    const given = [name, snakeCase(name)].map((spelling) => state.get(prefix + spelling)).find((value) => value instanceof Tensor)
    if (!isUninitialized(Reflect.get(module, name)) || !(given instanceof Tensor) || isUninitialized(given)) continue
    const size = familyOf(module).sizeIn(module, name, given)
    if (size !== null) return initialize(module, size)
  }
}

/** Gives a lazy layer parameters for inputs of this size. It is a layer of the ordinary class from then on. */
function initialize(module: Module, size: number): void {
  // Outside of traces and captures: the parameters are those of the program.
  const layer = withoutModes(() => familyOf(module).make(module, size))
  for (const [name, value] of Object.entries(layer)) {
    const before: unknown = Reflect.get(module, name)
    if (name !== 'training') Reflect.set(module, name, value)
    if (value instanceof Tensor && before instanceof Tensor) value.requiresGrad = before.requiresGrad
  }
  if (hasUninitialized(module)) throw new InternalError(`${module.getName()} has not been fully initialized`)
  removeHook(module, 'forwardPre', sizeFromInput)
  removeHook(module, 'loadStateDictPre', sizeFromStateDict)
  Object.setPrototypeOf(module, Reflect.getPrototypeOf(layer))
}

/** Of the classes over one, two and three spatial dimensions that of the layer with these facts. */
export const ordinary = <C>(classes: readonly [C, C, C], { spatial }: SpatialFacts): C =>
  present(classes[spatial - 1], `a layer over ${spatial} dimensions`)

/** A layer of a family that differs by the number of spatial dimensions. */
interface SpatialLayer {
  readonly constructor: { readonly layer: SpatialFacts }
}

/** The channels of an input [N, C, ..] or [C, ..] of such a layer. */
export function spatialChannels(layer: SpatialLayer, input: Tensor): number {
  const { name, spatial } = layer.constructor.layer
  return channelsOf(name, input, [spatial + 2], spatial + 1)
}

/** The channels of an input [N, C, ..], or [C, ..] where that is possible: `batched` are the ranks of the first form. */
export function channelsOf(where: string, input: Tensor, batched: readonly number[], unbatched: number | null): number {
  const channels = batched.includes(input.ndim) ? input.shape[1] : input.ndim === unbatched ? input.shape[0] : undefined
  if (channels !== undefined) return channels
  const forms = [
    ...(unbatched === null ? [] : [`${unbatched}D (unbatched)`]),
    ...batched.map((n) => `${n}D${unbatched === null ? '' : ' (batched)'}`),
  ]
  throw new ShapeError(`${where}: expected ${forms.join(' or ')} input, got shape ${formatShape(input.shape)}.`)
}
