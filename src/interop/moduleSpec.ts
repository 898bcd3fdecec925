// Descriptions of layers, from which files rebuild them: the class and the arguments of its constructor. The tensors are loaded afterwards.
import { ArgumentError } from '../errors/index.ts'
import { Module, getAttribute } from '../module/index.ts'
import * as nn from '../nn/index.ts'
import { isTensorLike, isFunction } from '../protocol/index.ts'

/** The description of a layer. */
export interface ModuleSpec {
  /** The name of the class in `nn`. */
  readonly class: string
  readonly args: readonly unknown[]
}

/** The arguments of a constructor. Each is a field of the module. */
interface Recipe {
  readonly required?: readonly string[]
  readonly options?: readonly string[]
  /** Options that tell whether the module has a parameter. */
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
/** Layers with an option `dtype`. */
const WITH_DTYPE: ReadonlySet<string> = new Set(['Linear', 'Conv1d', 'Conv2d', 'BatchNorm1d', 'BatchNorm2d', 'LayerNorm', 'GroupNorm', 'Embedding'])

/** The description of a layer; null for any other module. */
export function moduleSpec(module: Module): ModuleSpec | null {
  const { name } = module.constructor
  const recipe = RECIPES[name]
  if (recipe === undefined || getAttribute(nn, name) !== module.constructor) return null
  const field = (key: string): unknown => getAttribute(module, key)
  const options: Record<string, unknown> = {}
  for (const option of recipe.options ?? []) options[option] = field(option)
  for (const option of recipe.present ?? []) options[option] = field(option) !== null
  const weight = field('weight')
  if (WITH_DTYPE.has(name) && isTensorLike(weight) && weight.dtype !== 'float32') options['dtype'] = weight.dtype
  const required = (recipe.required ?? []).map(field)
  return { class: name, args: Object.keys(options).length === 0 ? required : [...required, options] }
}

type ModuleClass = new (...args: readonly unknown[]) => Module

const isModuleClass = (value: unknown): value is ModuleClass => isFunction(value) && value.prototype instanceof Module

/** Makes a layer. Throws ArgumentError for a class that `nn` does not have. */
export function moduleFromSpec(spec: ModuleSpec): Module {
  const layer = RECIPES[spec.class] === undefined ? undefined : getAttribute(nn, spec.class)
  if (!isModuleClass(layer))
    throw new ArgumentError(`loadGraphModule: the file has a layer of class '${spec.class}', which this tensorfx does not have; update tensorfx.`)
  return new layer(...spec.args)
}

/** The error for a module that cannot be described. */
export const unknownModule = (where: string, path: string, module: Module): ArgumentError =>
  new ArgumentError(
    `${where}: module '${path}' is of class ${module.constructor.name}, which cannot be rebuilt from its fields. Trace through it (only layers of nn and GraphModules can be written), or replace it first.`,
  )
