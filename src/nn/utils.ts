// torch.nn.utils.
export { clipGradNorm_, clipGradValue_ } from './clipGrad.ts'
export type { ClipGradNormOptions } from './clipGrad.ts'
export * as fusion from './fusion.ts'
export { parametersToVector, vectorToParameters } from './vectors.ts'
export { oldSpectralNorm as spectralNorm, oldWeightNorm as weightNorm } from './parametrize/weightNorm.ts'
export * as parametrizations from './parametrize/parametrizations.ts'
export * as parametrize from './parametrize/parametrizeNamespace.ts'
export * as rnn from './recurrent/packedSequence.ts'
