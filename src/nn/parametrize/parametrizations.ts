// torch.nn.utils.parametrizations.
export { orthogonal } from './orthogonal.ts'
export type { OrthogonalMap, OrthogonalOptions } from './orthogonal.ts'
export { spectralNorm, weightNorm } from './weightNorm.ts'
export type { SpectralNormOptions, WeightNormOptions } from './weightNorm.ts'
