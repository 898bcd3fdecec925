// How a layer of the library is made again: its class and the arguments of its constructor. Its tensors are loaded afterwards.
import { ArgumentError } from '../errors/index.ts'
import { Module } from '../module/index.ts'
import * as nn from '../nn/index.ts'
import { isTensorLike } from '../protocol/index.ts'

/** A layer of the library. */
export interface ModuleSpec {
  /** The class, as `nn` exports it. */
  readonly class: string
  readonly args: readonly unknown[]
}

type Fields = Readonly<Record<string, unknown>>

/** Required arguments, and options, each a field of the module. */
interface Recipe {
  readonly required?: readonly string[]
  readonly options?: readonly string[]
  /** Options that say whether a parameter is there. */
  readonly present?: readonly string[]
}

const CONV: Recipe = {
  required: ['inChannels', 'outChannels', 'kernelSize'],
  options: ['stride', 'padding', 'dilation', 'groups'],
  present: ['bias'],
}
const NORM: Recipe = { required: ['numFeatures'], options: ['eps', 'momentum', 'affine', 'trackRunningStats'] }
const RECIPES: Readonly<Record<string, Recipe>> = {
  Linear: { required: ['inFeatures', 'outFeatures'], present: ['bias'] },
  Identity: {},
  Flatten: { options: ['startDim', 'endDim'] },
  Conv1d: CONV,
  Conv2d: CONV,
  BatchNorm1d: NORM,
  BatchNorm2d: NORM,
  LayerNorm: { required: ['normalizedShape'], options: ['eps', 'elementwiseAffine'], present: ['bias'] },
  GroupNorm: { required: ['numGroups', 'numChannels'], options: ['eps', 'affine'] },
  Embedding: { required: ['numEmbeddings', 'embeddingDim'], options: ['paddingIdx'] },
  Dropout: { options: ['p', 'inplace'] },
  ReLU: { options: ['inplace'] },
  GELU: { options: ['approximate'] },
  SiLU: {},
  Sigmoid: {},
  Tanh: {},
  LeakyReLU: { options: ['negativeSlope'] },
  ELU: { options: ['alpha'] },
  Softmax: { required: ['dim'] },
  LogSoftmax: { required: ['dim'] },
  MaxPool2d: { required: ['kernelSize'], options: ['stride', 'padding', 'dilation', 'ceilMode'] },
  AvgPool2d: { required: ['kernelSize'], options: ['stride', 'padding', 'ceilMode', 'countIncludePad', 'divisorOverride'] },
  AdaptiveAvgPool2d: { required: ['outputSize'] },
  MultiheadAttention: { required: ['embedDim', 'numHeads'], options: ['dropout', 'batchFirst'] },
}
/** Layers whose tensors may have another dtype than float32. */
const WITH_DTYPE: ReadonlySet<string> = new Set(['Linear', 'Conv1d', 'Conv2d', 'BatchNorm1d', 'BatchNorm2d', 'LayerNorm', 'GroupNorm', 'Embedding'])

/** The spec of a layer; null for a module of another class. */
export function moduleSpec(module: Module): ModuleSpec | null {
  const { name } = module.constructor
  const recipe = RECIPES[name]
  if (recipe === undefined || (nn as unknown as Record<string, unknown>)[name] !== module.constructor) return null
  const fields = module as unknown as Fields
  const options: Record<string, unknown> = {}
  for (const option of recipe.options ?? []) options[option] = fields[option]
  for (const option of recipe.present ?? []) options[option] = fields[option] !== null
  const weight = fields['weight']
  if (WITH_DTYPE.has(name) && isTensorLike(weight) && weight.dtype !== 'float32') options['dtype'] = weight.dtype
  const required = (recipe.required ?? []).map((field) => fields[field])
  return { class: name, args: Object.keys(options).length === 0 ? required : [...required, options] }
}

/** Makes the layer. Throws ArgumentError for a class that `nn` does not have. */
export function moduleFromSpec(spec: ModuleSpec): Module {
  const make = RECIPES[spec.class] === undefined ? undefined : (nn as unknown as Record<string, new (...args: never[]) => Module>)[spec.class]
  if (make === undefined)
    throw new ArgumentError(`a layer of class '${spec.class}' is asked for, which this tensorfx does not have; update tensorfx.`)
  return new make(...(spec.args as never[]))
}

/** The error for a module that has no spec. */
export const unknownModule = (where: string, path: string, module: Module): ArgumentError =>
  new ArgumentError(
    `${where}: module '${path}' is of class ${module.constructor.name}, which cannot be made again from its fields. Trace through it (only layers of nn and GraphModules are written), or replace it before.`,
  )
