// Descriptions of layers, from which files rebuild them: the class and the arguments of its constructor. The tensors are loaded afterwards.
import { FakeTensorMode, withMode } from '../dispatch/index.ts'
import { ArgumentError, TensorfxError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { Module, getAttribute, setAttribute, splitPath } from '../module/index.ts'
import * as nn from '../nn/index.ts'
import { list, name as nameText, number, object, record } from '../protocol/decode.ts'
import type { Decoded, Decoder } from '../protocol/decode.ts'
import { isFunction, isPlainObject } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'

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
  /** Options that tell whether the module has a parameter, with its name. */
  readonly present?: Readonly<Record<string, string>>
  /** Options that are only written if they differ from these defaults. */
  readonly unusual?: Readonly<Record<string, unknown>>
}

const INPLACE = { inplace: false }
const INDICES = { returnIndices: false }
const NONE: Recipe = {}
const ONLY_INPLACE: Recipe = { unusual: INPLACE }
const CONV: Recipe = {
  required: ['inChannels', 'outChannels', 'kernelSize'],
  options: ['stride', 'padding', 'dilation', 'groups'],
  present: { bias: 'bias' },
  unusual: { paddingMode: 'zeros' },
}
const CONV_TRANSPOSE: Recipe = { ...CONV, options: ['stride', 'padding', 'outputPadding', 'groups', 'dilation'], unusual: {} }
const NORM: Recipe = { required: ['numFeatures'], options: ['eps', 'momentum', 'affine', 'trackRunningStats'] }
const DROPOUT: Recipe = { options: ['p', 'inplace'] }
const ALONG: Recipe = { required: ['dim'] }
const ALPHA: Recipe = { options: ['alpha'], unusual: INPLACE }
const LAMBD: Recipe = { options: ['lambd'] }
const PADDING: Recipe = { required: ['padding'] }
const CONSTANT: Recipe = { required: ['padding', 'value'] }
const MAX_POOL: Recipe = { required: ['kernelSize'], options: ['stride', 'padding', 'dilation', 'ceilMode'], unusual: INDICES }
const AVG_POOL: Recipe = { required: ['kernelSize'], options: ['stride', 'padding', 'ceilMode', 'countIncludePad', 'divisorOverride'] }
const LP_POOL: Recipe = { required: ['normType', 'kernelSize'], options: ['stride', 'ceilMode'] }
const UNPOOL: Recipe = { required: ['kernelSize'], options: ['stride', 'padding'] }
const ADAPTIVE: Recipe = { required: ['outputSize'] }
const ADAPTIVE_MAX: Recipe = { ...ADAPTIVE, unusual: INDICES }
const CHANNEL_NORM: Recipe = { required: ['size'], options: ['alpha', 'beta', 'k'] }
const PATCHES = ['dilation', 'padding', 'stride']
const SIZES = ['size', 'scaleFactor']

/** The recipe for each of several classes. */
const each = (recipe: Recipe, ...names: readonly string[]): Readonly<Record<string, Recipe>> => Object.fromEntries(names.map((n) => [n, recipe]))

const RECIPES: ReadonlyMap<string, Recipe> = new Map(
  Object.entries<Recipe>({
    ...each(NONE, 'Identity', 'Sigmoid', 'Tanh', 'LogSigmoid', 'Softsign', 'Tanhshrink', 'Softmax2d'),
    ...each(ONLY_INPLACE, 'SiLU', 'Mish', 'SELU', 'Hardswish', 'Hardsigmoid', 'ReLU6'),
    ...each(CONV, 'Conv1d', 'Conv2d', 'Conv3d'),
    ...each(CONV_TRANSPOSE, 'ConvTranspose1d', 'ConvTranspose2d', 'ConvTranspose3d'),
    ...each(NORM, 'BatchNorm1d', 'BatchNorm2d', 'BatchNorm3d', 'InstanceNorm1d', 'InstanceNorm2d', 'InstanceNorm3d'),
    ...each(DROPOUT, 'Dropout', 'Dropout1d', 'Dropout2d', 'Dropout3d', 'AlphaDropout', 'FeatureAlphaDropout'),
    ...each(ALONG, 'Softmax', 'LogSoftmax', 'Softmin'),
    ...each(ALPHA, 'ELU', 'CELU'),
    ...each(LAMBD, 'Hardshrink', 'Softshrink'),
    ...each(PADDING, ...['Reflection', 'Replication', 'Circular', 'Zero'].flatMap((kind) => [1, 2, 3].map((n) => `${kind}Pad${n}d`))),
    ...each(CONSTANT, 'ConstantPad1d', 'ConstantPad2d', 'ConstantPad3d'),
    ...each(MAX_POOL, 'MaxPool1d', 'MaxPool2d', 'MaxPool3d'),
    ...each(AVG_POOL, 'AvgPool2d', 'AvgPool3d'),
    ...each(LP_POOL, 'LPPool1d', 'LPPool2d', 'LPPool3d'),
    ...each(UNPOOL, 'MaxUnpool1d', 'MaxUnpool2d', 'MaxUnpool3d'),
    ...each(ADAPTIVE, 'AdaptiveAvgPool1d', 'AdaptiveAvgPool2d', 'AdaptiveAvgPool3d'),
    ...each(ADAPTIVE_MAX, 'AdaptiveMaxPool1d', 'AdaptiveMaxPool2d', 'AdaptiveMaxPool3d'),
    ...each(CHANNEL_NORM, 'LocalResponseNorm', 'CrossMapLRN2d'),
    AvgPool1d: { required: ['kernelSize'], options: ['stride', 'padding', 'ceilMode', 'countIncludePad'] },
    Linear: { required: ['inFeatures', 'outFeatures'], present: { bias: 'bias' } },
    Bilinear: { required: ['in1Features', 'in2Features', 'outFeatures'], present: { bias: 'bias' } },
    Flatten: { options: ['startDim', 'endDim'] },
    Unflatten: { required: ['dim', 'unflattenedSize'] },
    LayerNorm: { required: ['normalizedShape'], options: ['eps', 'elementwiseAffine'], present: { bias: 'bias' } },
    RMSNorm: { required: ['normalizedShape'], options: ['eps', 'elementwiseAffine'] },
    GroupNorm: { required: ['numGroups', 'numChannels'], options: ['eps', 'affine'] },
    Embedding: { required: ['numEmbeddings', 'embeddingDim'], options: ['paddingIdx', 'maxNorm', 'normType', 'scaleGradByFreq'] },
    EmbeddingBag: {
      required: ['numEmbeddings', 'embeddingDim'],
      options: ['maxNorm', 'normType', 'scaleGradByFreq', 'mode', 'includeLastOffset', 'paddingIdx'],
    },
    ReLU: { options: ['inplace'] },
    GELU: { options: ['approximate'] },
    GLU: { options: ['dim'] },
    LeakyReLU: { options: ['negativeSlope'], unusual: INPLACE },
    Hardtanh: { options: ['minVal', 'maxVal'], unusual: INPLACE },
    RReLU: { options: ['lower', 'upper'], unusual: INPLACE },
    Threshold: { required: ['threshold', 'value'], unusual: INPLACE },
    Softplus: { options: ['beta', 'threshold'] },
    PReLU: { options: ['numParameters', 'init'] },
    Fold: { required: ['outputSize', 'kernelSize'], options: PATCHES },
    Unfold: { required: ['kernelSize'], options: PATCHES },
    Upsample: { options: [...SIZES, 'mode', 'alignCorners', 'recomputeScaleFactor'] },
    UpsamplingNearest2d: { options: SIZES },
    UpsamplingBilinear2d: { options: SIZES },
    PixelShuffle: { required: ['upscaleFactor'] },
    PixelUnshuffle: { required: ['downscaleFactor'] },
    ChannelShuffle: { required: ['groups'] },
    CosineSimilarity: { options: ['dim', 'eps'] },
    PairwiseDistance: { options: ['p', 'eps', 'keepdim'] },
    MultiheadAttention: {
      required: ['embedDim', 'numHeads'],
      options: ['dropout', 'addZeroAttn', 'kdim', 'vdim', 'batchFirst'],
      present: { bias: 'inProjBias', addBiasKv: 'biasK' },
    },
  }),
)

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
 * more than it has. The parameters at the paths in `frozen` are not trained. Throws ArgumentError for a class that `nn` does not have, for other arguments than {@link moduleSpec} writes, and for tensors of other shapes.
 */
export function moduleFromSpec(spec: LayerSpec, prefix: string, find: (name: string) => Tensor, frozen: readonly string[] = []): Module {
  const layer = makeLayer(spec, prefix)
  const still = new Set(frozen)
  for (const [name, wanted] of layer.stateDict()) {
    const tensor = find(prefix + name)
    if (tensor.shape.join() !== wanted.shape.join())
      throw new ArgumentError(
        `loadGraphModule: '${prefix}${name}' has shape [${tensor.shape.join(', ')}] in the file, but the ${spec.class} that the file describes has [${wanted.shape.join(', ')}].`,
      )
    const [ownerPath, own] = splitPath(name)
    const owner = layer.getSubmodule(ownerPath)
    if (wanted.isParameter) setAttribute(owner, own, tensor.asParameter(!still.delete(name) && wanted.requiresGrad))
    else owner.registerBuffer(own, tensor)
  }
  for (const name of still)
    throw new ArgumentError(`loadGraphModule: '${prefix}${name}' is frozen in the file, but ${spec.class} has no such parameter.`)
  return layer
}

function makeLayer(spec: LayerSpec, prefix: string): Module {
  const recipe = RECIPES.get(spec.class)
  const layer = recipe === undefined ? undefined : getAttribute(nn, spec.class)
  if (recipe === undefined || !isModuleClass(layer))
    throw new ArgumentError(`loadGraphModule: the file has a layer of class '${spec.class}', which this tensorfx does not have; update tensorfx.`)
  const wrong = (what: string, cause?: unknown): ArgumentError =>
    new ArgumentError(`loadGraphModule: the layer '${prefix.slice(0, -1)}' of class ${spec.class} ${what}.`, cause === undefined ? {} : { cause })
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
    return withMode(new FakeTensorMode(), () => new layer(...spec.args))
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw wrong(`cannot be made${cause instanceof TensorfxError ? `: ${why}` : `, because its arguments are wrong: ${why}`}`, cause)
  }
}

/** The error for a module that cannot be described. */
export const unknownModule = (where: string, path: string, module: Module): ArgumentError =>
  new ArgumentError(
    `${where}: module '${path}' is of class ${module.constructor.name}, which cannot be rebuilt from its fields. Trace through it (only layers of nn and GraphModules can be written), or replace it first.`,
  )
