// torch.nn.functional: every operator of that namespace, under PyTorch's name. Not part of ops/index.ts, where some of these names mean torch.*.
export { logSoftmax, relu, sigmoid, softmax, tanh } from './activation.ts'
export type { SoftmaxOptions } from './activation.ts'
export { pad } from './pad.ts'
export type { PadOptions } from './pad.ts'
export { elu, gelu, leakyRelu, silu } from '../pointwise/activation.ts'
export { linear } from '../linalg/index.ts'
export * from '../nn/functions.ts'
