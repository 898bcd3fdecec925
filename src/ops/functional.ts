// torch.nn.functional: every operator of that namespace, under PyTorch's name. Not part of index.ts, where some of these names mean torch.*.
export { logSoftmax, relu, sigmoid, softmax, tanh } from './functional/activation.ts'
export type { SoftmaxOptions } from './functional/activation.ts'
export { pad } from './functional/pad.ts'
export type { PadOptions } from './functional/pad.ts'
export { elu, gelu, leakyRelu, silu } from './pointwise/activation.ts'
export { linear } from './linalg/index.ts'
export * from './nn/functions.ts'
