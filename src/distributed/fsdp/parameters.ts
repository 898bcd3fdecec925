// Which parameters belong to a unit: those of its modules that no inner unit owns and that are not ignored.
import { ArgumentError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { Module } from '../../module/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { joinPath } from './flatParameter.ts'
import type { FlatEntry, SharedEntry } from './flatParameter.ts'

/** A property that holds a parameter of a unit. */
export interface Place {
  readonly module: Module
  readonly name: string
  /** Which of the unit's parameters it is. */
  readonly index: number
}

/** The parameters of a unit. */
export interface UnitParameters {
  readonly tensors: readonly Tensor[]
  readonly entries: readonly FlatEntry[]
  readonly shared: readonly SharedEntry[]
  /** Where they are: second places of shared parameters too. */
  readonly places: readonly Place[]
}

/** Parameters that have become part of a flat parameter, and which. */
const flattened = new WeakMap<Tensor, string>()

/** Notes that a unit stores these parameters from now on. */
export function markFlattened({ tensors, entries }: UnitParameters, unit: string): void {
  tensors.forEach((tensor, i) => {
    const { modulePath = '', name = '' } = entries[i] ?? {}
    flattened.set(tensor, `${joinPath(modulePath, name)} of ${unit}`)
  })
}

function* modulesOf(module: Module, path: string, isOutside: (module: Module) => boolean, seen: Set<Module>): Generator<[string, Module]> {
  if (seen.has(module) || isOutside(module)) return
  seen.add(module)
  yield [path, module]
  for (const [name, child] of module.namedChildren()) yield* modulesOf(child, joinPath(path, name), isOutside, seen)
}

/**
 * The parameters of a unit. `isOutside`: modules of inner units, and ignored ones. Throws ArgumentError for a parameter that another unit stores already.
 */
export function collectParameters(unit: Module, isOutside: (module: Module) => boolean, ignored: ReadonlySet<unknown>): UnitParameters {
  const tensors: Tensor[] = []
  const entries: FlatEntry[] = []
  const shared: SharedEntry[] = []
  const places: Place[] = []
  for (const [modulePath, module] of modulesOf(unit, '', isOutside, new Set())) {
    for (const [name, tensor] of module.ownParameters()) {
      if (!(tensor instanceof Tensor) || ignored.has(tensor)) continue
      const other = flattened.get(tensor)
      if (other !== undefined)
        throw new ArgumentError(
          `FullyShardedDataParallel: the parameter ${joinPath(modulePath, name)} of ${unit.getName()} is also ${other}, which is a unit of its own, so the two would be trained apart. Wrap a module that contains both places instead, or pass it in ignoredStates.`,
        )
      const known = tensors.indexOf(tensor)
      places.push({ module, name, index: known < 0 ? tensors.length : known })
      const primary = entries[known]
      if (primary !== undefined) shared.push({ name, modulePath, primaryName: primary.name, primaryPath: primary.modulePath })
      else {
        tensors.push(tensor)
        entries.push({ name, modulePath, shape: tensor.shape })
      }
    }
  }
  return { tensors, entries, shared, places }
}

/** Throws ArgumentError unless the parameters can be one vector. */
export function checkFlattenable({ tensors, entries }: UnitParameters, useOrigParams: boolean): void {
  const [first] = tensors
  if (first === undefined) return
  tensors.forEach((tensor, i) => {
    const { modulePath = '', name = '' } = entries[i] ?? {}
    if (!dtypeInfo[tensor.dtype].floating)
      throw new ArgumentError(
        `Cannot flatten integer dtype tensors: ${joinPath(modulePath, name)} is ${tensor.dtype}. Register it as a buffer, or pass it in ignoredStates.`,
      )
    if (tensor.dtype !== first.dtype)
      throw new ArgumentError(
        `Must flatten tensors with uniform dtype but got ${first.dtype} and ${tensor.dtype} (${joinPath(modulePath, name)}). Wrap the modules of one dtype by themselves.`,
      )
  })
  if (!useOrigParams && tensors.some(({ requiresGrad }) => requiresGrad !== first.requiresGrad))
    throw new ArgumentError(
      'Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`. Pass { useOrigParams: true }, or wrap the frozen modules by themselves.',
    )
}
