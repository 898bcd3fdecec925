// torch.nn.utils.parametrizations.
export { spectralNorm, weightNorm } from './weightNorm.ts'
export type { SpectralNormOptions, WeightNormOptions } from './weightNorm.ts'
