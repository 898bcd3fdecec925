// What the constructors of layers take, by which files describe layers and rebuild them.

/** The arguments of a constructor. Each is a field of the module. */
export interface Recipe {
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
const RECURRENT: Recipe = {
  required: ['inputSize', 'hiddenSize'],
  options: ['numLayers', 'bias', 'batchFirst', 'dropout', 'bidirectional'],
}
const CELL: Recipe = { required: ['inputSize', 'hiddenSize'], present: { bias: 'biasIh' } }
const TANH = { nonlinearity: 'tanh' }
const PATCHES = ['dilation', 'padding', 'stride']
const SIZES = ['size', 'scaleFactor']

/** The recipe for each of several classes. */
const each = (recipe: Recipe, ...names: readonly string[]): Readonly<Record<string, Recipe>> => Object.fromEntries(names.map((n) => [n, recipe]))

/** The recipes by the name of the class. */
export const RECIPES: ReadonlyMap<string, Recipe> = new Map(
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
    ...each(CELL, 'LSTMCell', 'GRUCell'),
    ...each(CHANNEL_NORM, 'LocalResponseNorm', 'CrossMapLRN2d'),
    AvgPool1d: { required: ['kernelSize'], options: ['stride', 'padding', 'ceilMode', 'countIncludePad'] },
    Linear: { required: ['inFeatures', 'outFeatures'], present: { bias: 'bias' } },
    Bilinear: { required: ['in1Features', 'in2Features', 'outFeatures'], present: { bias: 'bias' } },
    RNN: { ...RECURRENT, unusual: TANH },
    LSTM: { ...RECURRENT, unusual: { projSize: 0 } },
    GRU: RECURRENT,
    RNNCell: { ...CELL, unusual: TANH },
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
