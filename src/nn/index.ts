// nn: layers, losses, their functions (F) and initial values. PyTorch's torch.nn.
export { Module, LoadStateError, functionalCall } from '../module/index.ts'
export type { LoadStateResult, ForwardHook, ForwardPreHook, FunctionalCallOptions } from '../module/index.ts'
export { Parameter } from './parameter.ts'
export type { ParameterOptions } from './parameter.ts'
export { ELU, GELU, LeakyReLU, LogSoftmax, ReLU, Sigmoid, SiLU, Softmax, Tanh } from './activation.ts'
export {
  CELU,
  GLU,
  Hardshrink,
  Hardsigmoid,
  Hardswish,
  Hardtanh,
  LogSigmoid,
  Mish,
  PReLU,
  RReLU,
  ReLU6,
  SELU,
  Softmax2d,
  Softmin,
  Softplus,
  Softshrink,
  Softsign,
  Tanhshrink,
  Threshold,
} from './moreActivations.ts'
export type { PReLUOptions } from './moreActivations.ts'
export {
  CircularPad1d,
  CircularPad2d,
  CircularPad3d,
  ConstantPad1d,
  ConstantPad2d,
  ConstantPad3d,
  ReflectionPad1d,
  ReflectionPad2d,
  ReflectionPad3d,
  ReplicationPad1d,
  ReplicationPad2d,
  ReplicationPad3d,
  ZeroPad1d,
  ZeroPad2d,
  ZeroPad3d,
} from './padding.ts'
export type { PaddingSides } from './padding.ts'
export { ChannelShuffle, Unflatten, UpsamplingBilinear2d, UpsamplingNearest2d } from './rearrange.ts'
export type { UpsamplingOptions } from './rearrange.ts'
export { MultiheadAttention } from './attention.ts'
export type { AttentionCallOptions, MultiheadAttentionOptions } from './attention.ts'
export { BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d } from './batchNorm.ts'
export type { BatchNormLayerOptions } from './batchNorm.ts'
export { ModuleDict, ModuleList, Sequential } from './containers.ts'
export { ParameterDict, ParameterList } from './parameterContainers.ts'
export { Conv1d, Conv2d } from './conv.ts'
export type { ConvLayerOptions, PaddingMode } from './conv.ts'
export { ConvTranspose1d, ConvTranspose2d } from './convTranspose.ts'
export type { ConvTransposeLayerOptions } from './convTranspose.ts'
export { PixelShuffle, PixelUnshuffle, Upsample } from './upsample.ts'
export type { UpsampleOptions } from './upsample.ts'
export { Dropout } from './dropout.ts'
export { Embedding } from './embedding.ts'
export type { EmbeddingLayerOptions, PretrainedOptions } from './embedding.ts'
export { Bilinear, Flatten, Identity, Linear } from './linear.ts'
export type { FlattenOptions, LinearOptions } from './linear.ts'
export { BCEWithLogitsLoss, CrossEntropyLoss, L1Loss, MSELoss, NLLLoss, SmoothL1Loss } from './loss.ts'
export type { BCEWithLogitsLossOptions, CrossEntropyLossOptions, LossLayerOptions, NLLLossOptions } from './loss.ts'
export { BCELoss, HuberLoss } from './moreLosses.ts'
export { GroupNorm, LayerNorm, RMSNorm } from './norm.ts'
export type { GroupNormLayerOptions, LayerNormLayerOptions, RMSNormLayerOptions } from './norm.ts'
export { AdaptiveAvgPool2d, AvgPool2d, MaxPool2d } from './pool.ts'
export type { AvgPool2dOptions, MaxPool2dOptions } from './pool.ts'
export {
  AdaptiveAvgPool1d,
  AdaptiveAvgPool3d,
  AdaptiveMaxPool1d,
  AdaptiveMaxPool2d,
  AdaptiveMaxPool3d,
  AvgPool1d,
  AvgPool3d,
  LPPool1d,
  LPPool2d,
  LPPool3d,
  MaxPool1d,
  MaxPool3d,
  MaxUnpool1d,
  MaxUnpool2d,
  MaxUnpool3d,
} from './morePools.ts'
export type {
  AdaptiveSizes,
  AvgPool3dOptions,
  AvgPoolLayerOptions,
  LPPoolOptions,
  MaxPoolOptions,
  MaxUnpoolOptions,
  WindowSizes,
} from './morePools.ts'
export { GRU, LSTM, RNN } from './recurrent.ts'
export type { LSTMOptions, RNNOptions, RecurrentOptions } from './recurrent.ts'
export { GRUCell, LSTMCell, RNNCell } from './recurrentCells.ts'
export type { CellOptions } from './recurrentCells.ts'
export { Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer } from './transformer.ts'
export type { DecoderLayerMasks, EncoderLayerMasks, TransformerMasks, TransformerOptions } from './transformer.ts'
export { functional, functional as F } from './namespace.ts'
export * as init from './init.ts'
export * as utils from './utils.ts'
