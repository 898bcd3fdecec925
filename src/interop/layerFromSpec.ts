// Rebuilds layers from their descriptions in a file (moduleSpec.ts writes them).
import { FakeTensorMode, withMode } from '../dispatch/index.ts'
import { ArgumentError, TensorfxError, messageOf } from '../errors/index.ts'
import { withoutDraws } from '../nn/leftOutDraws.ts'
import { Module, ownAttribute, setAttribute, splitPath } from '../module/index.ts'
import { list, name as nameText, number, object, record } from '../protocol/decode.ts'
import type { Decoded, Decoder } from '../protocol/decode.ts'
import { isFunction, isPlainObject } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { RECIPES } from '../formats/layerRecipes.ts'

/** Who reads a file, and the classes of layers by name that the file may ask for. */
export interface LayerSource {
  /** The name of the function, for messages. */
  readonly where: string
  readonly layers: object
}

type ModuleClass = new (...args: readonly unknown[]) => Module

const isModuleClass = (value: unknown): value is ModuleClass => isFunction(value) && value.prototype instanceof Module

const scalar: Decoder<unknown> = (value, place) =>
  value === null || typeof value === 'boolean' ? value : typeof value === 'string' ? nameText(value, place) : number(value, place)

const one: Decoder<unknown> = (value, place) => (Array.isArray(value) ? list(scalar, 64)(value, place) : scalar(value, place))

/** The description of a layer in a file: scalars, lists of them, and last the options. */
export const LAYER = object({
  class: nameText,
  args: list((value: unknown, place) => (isPlainObject(value) ? record(one)(value, place) : one(value, place)), 16),
})

/** What {@link LAYER} reads. */
export type LayerSpec = Decoded<typeof LAYER>

/**
 * Makes a layer with the tensors that `find` returns for the names of its state after `prefix`. The layer is made without memory, so that a file cannot ask for
 * more than it has. The parameters at the paths in `frozen` are not trained. Throws ArgumentError for a class that is not among the layers, for other arguments than `moduleSpec` writes, and for tensors of other shapes.
 */
export function layerFromSpec(
  { where, layers }: LayerSource,
  spec: LayerSpec,
  prefix: string,
  find: (name: string) => Tensor,
  frozen: readonly string[] = [],
): Module {
  const layer = makeLayer({ where, layers }, spec, prefix)
  const still = new Set(frozen)
  for (const [name, wanted] of layer.stateDict()) {
    const tensor = find(prefix + name)
    if (tensor.shape.join() !== wanted.shape.join())
      throw new ArgumentError(
        `${where}: '${prefix}${name}' has shape [${tensor.shape.join(', ')}] in the file, but the ${spec.class} that the file describes has [${wanted.shape.join(', ')}].`,
      )
    const [ownerPath, own] = splitPath(name)
    const owner = layer.getSubmodule(ownerPath)
    if (wanted.isParameter) setAttribute(owner, own, tensor.asParameter(!still.delete(name) && wanted.requiresGrad))
    else owner.registerBuffer(own, tensor)
  }
  for (const name of still) throw new ArgumentError(`${where}: '${prefix}${name}' is frozen in the file, but ${spec.class} has no such parameter.`)
  return layer
}

function makeLayer({ where, layers }: LayerSource, spec: LayerSpec, prefix: string): Module {
  const recipe = RECIPES.get(spec.class)
  const layer = recipe === undefined ? undefined : ownAttribute(layers, spec.class)
  if (recipe !== undefined && layer === undefined)
    throw new ArgumentError(
      `${where}: the file has a layer of class '${spec.class}', which is not among the layers here; write import { ${spec.class} } from 'tensorfx/nn' and pass { layers: { ${spec.class} } }.`,
    )
  if (recipe === undefined || !isModuleClass(layer))
    throw new ArgumentError(`${where}: the file has a layer of class '${spec.class}', which this tensorfx does not have; update tensorfx.`)
  const wrong = (what: string, cause?: unknown): ArgumentError =>
    new ArgumentError(`${where}: the layer '${prefix.slice(0, -1)}' of class ${spec.class} ${what}.`, cause === undefined ? {} : { cause })
  const required = recipe.required ?? []
  const options = spec.args[required.length]
  if (spec.args.length < required.length || spec.args.length > required.length + 1 || spec.args.slice(0, required.length).some(isPlainObject))
    throw wrong(
      `needs ${required.join(', ') || 'no arguments'}${required.length === spec.args.length ? '' : `, but has ${spec.args.length} arguments`}`,
    )
  if (options !== undefined) {
    const known = [...(recipe.options ?? []), ...Object.keys({ ...recipe.present, ...recipe.unusual }), 'dtype']
    const other = isPlainObject(options) ? Object.keys(options).find((key) => !known.includes(key)) : 'that is not an object'
    if (other !== undefined) throw wrong(`has an unknown option: ${other}`)
  }
  try {
    return withMode(new FakeTensorMode(), () => withoutDraws(() => new layer(...spec.args)))
  } catch (cause) {
    const why = messageOf(cause)
    throw wrong(`cannot be made${cause instanceof TensorfxError ? `: ${why}` : `, because its arguments are wrong: ${why}`}`, cause)
  }
}
