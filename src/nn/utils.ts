// torch.nn.utils.
export { clipGradNorm_, clipGradValue_ } from './clipGrad.ts'
export type { ClipGradNormOptions } from './clipGrad.ts'
