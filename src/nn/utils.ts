// torch.nn.utils.
export { clipGradNorm_, clipGradValue_ } from './clipGrad.ts'
export type { ClipGradNormOptions } from './clipGrad.ts'
export { parametersToVector, vectorToParameters } from './vectors.ts'
export { oldSpectralNorm as spectralNorm, oldWeightNorm as weightNorm } from './weightNorm.ts'
export * as parametrizations from './parametrizations.ts'
export * as parametrize from './parametrizeNamespace.ts'
export * as rnn from './packedSequence.ts'
