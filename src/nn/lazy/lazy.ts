// Layers that learn the size of their input from the first one: they have parameters without a shape until then, and are layers of the ordinary class afterwards.
import { withoutModes } from '../../dispatch/index.ts'
import { InternalError, ShapeError } from '../../errors/index.ts'
import { Module, addHook } from '../../module/index.ts'
import { isPlainObject, snakeCase } from '../../protocol/index.ts'
import type { getRngState } from '../../tensor/index.ts'
import { Tensor, formatShape, setRngState } from '../../tensor/index.ts'
import { UninitializedBuffer, UninitializedParameter, isUninitialized } from './uninitialized.ts'

/** A layer without shapes. */
export interface Lazy extends Module {
  /** The layer with inputs of that size, of the class that it becomes. */
  sized(size: number): Module
}

/** Where the layers of a family take the size of their inputs from. */
export interface LazyFamily<M extends Lazy = Lazy> {
  /** The property that holds it. */
  readonly property: string
  /** The size that follows from the tensor of that name in a state dict; null if none does. */
  sizeIn(name: string, tensor: Tensor, layer: M): number | null
}

const families = new WeakMap<Module, LazyFamily>()

/** The names of a module's parameters and buffers. */
const tensorNames = (module: Module): readonly string[] => [...module.ownParameters(), ...module.ownBuffers()].map(([name]) => name)

const isLazy = (module: Module): module is Lazy => 'sized' in module

/** Whether any parameter or buffer of the module has no shape. PyTorch's `has_uninitialized_params`. */
export const hasUninitialized = (module: Module): boolean => tensorNames(module).some((name) => isUninitialized(Reflect.get(module, name)))

/**
 * Takes the shapes from a layer: its parameters and buffers, but counts, have none, and the property with the size of its inputs is 0. The random numbers are as they were before it was made, at `state`: they are
 * drawn when the layer gets its shapes.
 */
export function uninitialize<M extends Lazy>(module: M, family: LazyFamily<M>, state: ReturnType<typeof getRngState>): void {
  setRngState(state)
  families.set(module, family)
  for (const name of tensorNames(module)) {
    const value: unknown = Reflect.get(module, name)
    if (!(value instanceof Tensor) || value.dtype === 'int64') continue
    const { dtype } = value
    Reflect.set(module, name, value.isParameter ? new UninitializedParameter({ dtype }) : new UninitializedBuffer({ dtype }))
  }
  Reflect.set(module, family.property, 0)
  addHook(module, 'loadStateDictPre', loadShapes)
}

/** A state dict with shapes gives them to the layer. */
function loadShapes(module: Module, state: ReadonlyMap<string, unknown>, prefix: string): void {
  if (!isLazy(module)) return
  for (const name of tensorNames(module)) {
    const given = [name, snakeCase(name)].map((spelling) => state.get(prefix + spelling)).find((value) => value instanceof Tensor)
    if (!isUninitialized(Reflect.get(module, name)) || !(given instanceof Tensor) || isUninitialized(given)) continue
    const size = families.get(module)?.sizeIn(name, given, module) ?? null
    if (size === null) continue
    initialize(module, size)
    return
  }
}

/** Gives a lazy layer parameters for inputs of that size. It is a layer of the ordinary class from then on. */
export function initialize(module: Lazy, size: number): void {
  // Outside of traces and captures: the parameters are those of the program.
  const layer = withoutModes(() => module.sized(size))
  for (const [name, value] of Object.entries(layer)) {
    const before: unknown = Reflect.get(module, name)
    if (name !== 'training') Reflect.set(module, name, value)
    if (value instanceof Tensor && before instanceof Tensor) value.requiresGrad = before.requiresGrad
  }
  if (hasUninitialized(module)) throw new InternalError(`${module.getName()} has not been fully initialized`)
  const prototype: unknown = Object.getPrototypeOf(layer)
  if (typeof prototype === 'object') Object.setPrototypeOf(module, prototype)
}

/** The number of groups among the options of a convolution, which come after the kernel size. */
export function groupsIn(options: readonly unknown[]): number {
  const last = options.at(-1)
  const named: unknown = isPlainObject(last) ? Reflect.get(last, 'groups') : undefined
  const groups = named ?? options[3]
  return typeof groups === 'number' ? groups : 1
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
