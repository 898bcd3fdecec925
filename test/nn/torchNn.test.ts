// nn has the classes of torch.nn: those that it lacks are listed here, each with its reason. docs/guide/porting-from-pytorch.md names them too.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import * as nn from 'tensorfx/nn'

/** `AvgPool1-3d` stands for AvgPool1d, AvgPool2d and AvgPool3d. */
const names = (text: string): readonly string[] =>
  text
    .trim()
    .split(/\s+/)
    .flatMap((name) => {
      const range = /^(\w+)([12])-3d$/.exec(name)
      if (range === null) return [name]
      const [, base = '', first = ''] = range
      return ['1', '2', '3'].filter((n) => n >= first).map((n) => `${base}${n}d`)
    })

/** torch.nn.modules.__all__ of PyTorch 2.13, and the classes of torch.nn.parameter. */
const pytorch = names(`
  AdaptiveAvgPool1-3d AdaptiveLogSoftmaxWithLoss AdaptiveMaxPool1-3d AlphaDropout AvgPool1-3d BCELoss BCEWithLogitsLoss BatchNorm1-3d Bilinear Buffer CELU CTCLoss
  ChannelShuffle CircularPad1-3d ConstantPad1-3d Container Conv1-3d ConvTranspose1-3d CosineEmbeddingLoss CosineSimilarity CrossEntropyLoss CrossMapLRN2d
  DataParallel Dropout Dropout1-3d ELU Embedding EmbeddingBag FeatureAlphaDropout Flatten Fold FractionalMaxPool2-3d GELU GLU GRU GRUCell GaussianNLLLoss GroupNorm
  Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss HuberLoss Identity InstanceNorm1-3d KLDivLoss L1Loss LPPool1-3d LSTM LSTMCell LayerNorm
  LazyBatchNorm1-3d LazyConv1-3d LazyConvTranspose1-3d LazyInstanceNorm1-3d LazyLinear LeakyReLU Linear LocalResponseNorm LogSigmoid LogSoftmax MSELoss
  MarginRankingLoss MaxPool1-3d MaxUnpool1-3d Mish Module ModuleDict ModuleList MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss MultiheadAttention NLLLoss
  NLLLoss2d PReLU PairwiseDistance Parameter ParameterDict ParameterList PixelShuffle PixelUnshuffle PoissonNLLLoss RMSNorm RNN RNNBase RNNCell RNNCellBase RReLU ReLU
  ReLU6 ReflectionPad1-3d ReplicationPad1-3d SELU Sequential SiLU Sigmoid SmoothL1Loss SoftMarginLoss Softmax Softmax2d Softmin Softplus Softshrink Softsign SyncBatchNorm
  Tanh Tanhshrink Threshold Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer TripletMarginLoss
  TripletMarginWithDistanceLoss Unflatten Unfold UninitializedBuffer UninitializedParameter Upsample UpsamplingBilinear2d UpsamplingNearest2d ZeroPad1-3d
`)

/** What nn lacks: what is for several devices (tensorfx/distributed has data parallelism), deprecated names, and base classes that are not for users. */
const absent = new Set(
  names(`
    DataParallel SyncBatchNorm
    Container NLLLoss2d RNNBase RNNCellBase
  `),
)

test('nn has every class of torch.nn but those that are listed', () => {
  expect(pytorch.filter((name) => !(name in nn)).sort()).toEqual([...absent].sort())
})

test('the guide names what is missing', () => {
  const guide = readFileSync(new URL('../../docs/guide/porting-from-pytorch.md', import.meta.url), 'utf8')
  const ofUsers = [...absent].filter((name) => !/^(?:Container|NLLLoss2d|RNNBase|RNNCellBase)$/.test(name))
  expect(ofUsers.filter((name) => !guide.includes(`nn.${name}`))).toEqual([])
})
