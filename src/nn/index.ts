// nn: layers, losses, their functions (F) and initial values. PyTorch's torch.nn.
export { Module, LoadStateError, functionalCall } from '../module/index.ts'
export type { LoadStateResult, ForwardHook, ForwardPreHook, FunctionalCallOptions } from '../module/index.ts'
export type { FullBackwardHook, StateHook } from './moduleMethods.ts'
export { Buffer } from './buffer.ts'
export type { BufferOptions } from './buffer.ts'
export { Parameter } from './parameter.ts'
export type { ParameterOptions } from './parameter.ts'
export { CELU, ELU, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU, Mish, RReLU, ReLU, ReLU6, SELU, SiLU, Threshold } from './activation/activation.ts'
export { GELU, Hardshrink, LogSigmoid, Sigmoid, Softplus, Softshrink, Softsign, Tanh, Tanhshrink } from './activation/plain.ts'
export { PReLU } from './activation/prelu.ts'
export type { PReLUOptions } from './activation/prelu.ts'
export type { HardtanhOptions, InplaceOptions, RReLUOptions } from './activation/activation.ts'
export { GLU, LogSoftmax, Softmax, Softmax2d, Softmin } from './activation/softmax.ts'
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
export { AdaptiveLogSoftmaxWithLoss } from './activation/adaptiveSoftmax.ts'
export type { AdaptiveLogSoftmaxOptions } from './activation/adaptiveSoftmax.ts'
export { Conv1d, Conv2d, Conv3d } from './conv/conv.ts'
export type { ConvLayerOptions, PaddingMode } from './conv/conv.ts'
export { ConvTranspose1d, ConvTranspose2d, ConvTranspose3d } from './conv/convTranspose.ts'
export type { ConvTransposeLayerOptions } from './conv/convTranspose.ts'
export { PixelShuffle, PixelUnshuffle, Upsample } from './upsample.ts'
export type { UpsampleOptions } from './upsample.ts'
export { CosineSimilarity, PairwiseDistance } from './distance.ts'
export type { PairwiseDistanceOptions } from './distance.ts'
export { AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout } from './dropout.ts'
export type { DropoutLayerOptions } from './dropout.ts'
export { Embedding, EmbeddingBag } from './embedding.ts'
export type { EmbeddingBagCallOptions, EmbeddingBagLayerOptions, PretrainedBagOptions, PretrainedOptions } from './embedding.ts'
export type { EmbeddingLayerOptions } from './embeddingTable.ts'
export { Bilinear, Flatten, Identity, Linear } from './linear.ts'
export type { FlattenOptions, LinearOptions } from './linear.ts'
export { CrossMapLRN2d, LocalResponseNorm } from './localResponse.ts'
export type { LocalResponseNormOptions } from './localResponse.ts'
export { CTCLoss, GaussianNLLLoss, KLDivLoss, PoissonNLLLoss } from './loss/likelihoodLosses.ts'
export {
  BCELoss,
  BCEWithLogitsLoss,
  CrossEntropyLoss,
  HuberLoss,
  L1Loss,
  MSELoss,
  MultiLabelSoftMarginLoss,
  NLLLoss,
  SmoothL1Loss,
  SoftMarginLoss,
} from './loss/loss.ts'
export { LazyConv1d, LazyConv2d, LazyConv3d, LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d, LazyLinear } from './lazy/layers.ts'
export { LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d, LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d } from './lazy/norms.ts'
export { UninitializedBuffer, UninitializedParameter } from './lazy/uninitialized.ts'
export type { UninitializedOptions } from './lazy/uninitialized.ts'
export { LinearCrossEntropyLoss } from './loss/linearCrossEntropy.ts'
export type { LinearCrossEntropyLossOptions } from './loss/linearCrossEntropy.ts'
export type { BCEWithLogitsLossOptions, CrossEntropyLossOptions, NLLLossOptions, WeightedLossOptions } from './loss/loss.ts'
export {
  CosineEmbeddingLoss,
  HingeEmbeddingLoss,
  MarginRankingLoss,
  MultiLabelMarginLoss,
  MultiMarginLoss,
  TripletMarginLoss,
  TripletMarginWithDistanceLoss,
} from './loss/marginLosses.ts'
export type { LossLayerOptions } from './optionLayer.ts'
export { Fold, Unfold } from './conv/patches.ts'
export type { PatchLayerOptions } from './conv/patches.ts'
export { GroupNorm, LayerNorm, RMSNorm } from './norm.ts'
export type { GroupNormLayerOptions, LayerNormLayerOptions, RMSNormLayerOptions } from './norm.ts'
export {
  AdaptiveAvgPool1d,
  AdaptiveAvgPool2d,
  AdaptiveAvgPool3d,
  AdaptiveMaxPool1d,
  AdaptiveMaxPool2d,
  AdaptiveMaxPool3d,
  AvgPool1d,
  AvgPool2d,
  AvgPool3d,
  MaxPool1d,
  MaxPool2d,
  MaxPool3d,
} from './pool/pool.ts'
export type { AdaptiveSizes, AvgPoolDivisorOptions, AvgPoolLayerOptions, MaxPoolOptions, Pooled, WindowSizes } from './pool/pool.ts'
export { LPPool1d, LPPool2d, LPPool3d } from './pool/lpPool.ts'
export { MaxUnpool1d, MaxUnpool2d, MaxUnpool3d } from './pool/maxUnpool.ts'
export { FractionalMaxPool2d, FractionalMaxPool3d } from './pool/fractionalPool.ts'
export type { LPPoolOptions } from './pool/lpPool.ts'
export type { MaxUnpoolOptions } from './pool/maxUnpool.ts'
export type { FractionalPoolLayerOptions } from './pool/fractionalPool.ts'
export { GRU, LSTM, RNN } from './recurrent/recurrent.ts'
export type { LSTMOptions, RNNOptions, RecurrentOptions } from './recurrent/recurrent.ts'
export { GRUCell, LSTMCell, RNNCell } from './recurrent/recurrentCells.ts'
export type { CellOptions } from './recurrent/recurrentCells.ts'
export { Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer } from './transformer.ts'
export type { DecoderLayerMasks, EncoderLayerMasks, TransformerMasks, TransformerOptions } from './transformer.ts'
export { functional, functional as F, init, utils } from './namespace.ts'
export type { KaimingOptions, Nonlinearity, TruncNormalOptions, XavierOptions } from './init.ts'
export type { ClipGradNormOptions } from './clipGrad.ts'
export type { RemoveOptions } from './parametrize/parametrize.ts'
export type { OrthogonalMap, OrthogonalOptions } from './parametrize/orthogonal.ts'
export type { SpectralNormOptions, WeightNormOptions } from './parametrize/weightNorm.ts'
export type { PackOptions, PackedSequence, PadOptions, PadPackedOptions } from './recurrent/packedSequence.ts'
export type { GlobalOptions, ParameterPlace, PruneOptions, PruningType, ScoreOptions } from './prune/prune.ts'
