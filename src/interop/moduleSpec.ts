// Descriptions of layers, from which files rebuild them (layerFromSpec.ts): the class and the arguments of its constructor. The tensors are loaded afterwards.
import { ArgumentError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { getAttribute } from '../module/index.ts'
import type { Module } from '../module/index.ts'
import * as nn from '../nn/index.ts'
import { Tensor } from '../tensor/index.ts'
import { RECIPES } from '../formats/layerRecipes.ts'

/** The description of a layer. */
export interface ModuleSpec {
  /** The name of the class in `nn`. */
  readonly class: string
  readonly args: readonly unknown[]
}

/** The description of a layer; null for any other module. */
export function moduleSpec(module: Module): ModuleSpec | null {
  const { name } = module.constructor
  const recipe = RECIPES.get(name)
  if (recipe === undefined || getAttribute(nn, name) !== module.constructor) return null
  const field = (key: string): unknown => getAttribute(module, key)
  const options: Record<string, unknown> = {}
  for (const option of recipe.options ?? []) options[option] = field(option)
  for (const [option, parameter] of Object.entries(recipe.present ?? {})) options[option] = field(parameter) !== null
  for (const [option, usual] of Object.entries(recipe.unusual ?? {})) if (field(option) !== usual) options[option] = field(option)
  // Every layer with parameters or statistics has the option dtype.
  const dtype = [...module.stateDict().values()].find((value) => value instanceof Tensor && dtypeInfo[value.dtype].floating)?.dtype ?? 'float32'
  if (dtype !== 'float32') options['dtype'] = dtype
  const required = (recipe.required ?? []).map(field)
  return { class: name, args: Object.keys(options).length === 0 ? required : [...required, options] }
}

/** The paths of a layer's parameters that are not trained. */
export const frozenParameters = (layer: Module): readonly string[] =>
  [...layer.stateDict()].flatMap(([path, tensor]) => (tensor.isParameter && !tensor.requiresGrad ? [path] : []))

/** The error for a module that cannot be described. */
export const unknownModule = (where: string, path: string, module: Module): ArgumentError =>
  new ArgumentError(
    `${where}: module '${path}' is of class ${module.constructor.name}, which cannot be rebuilt from its fields. Trace through it (only layers of nn and GraphModules can be written), or replace it first.`,
  )
