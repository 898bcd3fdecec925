// tensorfx/autograd: gradients, custom functions, and tools around them. PyTorch's torch.autograd and torch.utils.checkpoint.
import { installTensors } from '../install/tensors.ts'

export {
  AutogradError,
  Function,
  FunctionContext,
  backward,
  detectAnomaly,
  enableGrad,
  grad,
  inferenceMode,
  isGradEnabled,
  noGrad,
  queueBackwardCallback,
  setDetectAnomaly,
  setGradEnabled,
} from '../autograd/index.ts'
export type { BackwardOptions, GradHook } from '../autograd/index.ts'
export { checkpoint } from '../func/checkpoint.ts'
export { gradcheck, gradgradcheck } from '../func/gradcheck.ts'
export type { GradcheckOptions } from '../func/gradcheck.ts'
export * as functional from '../func/functional.ts'

installTensors()
