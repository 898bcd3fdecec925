// torch.*: the public operators that live in PyTorch's top namespace.
export { arange, empty, emptyLike, eye, full, fullLike, linspace, ones, onesLike, scalarTensor, tensor, zeros, zerosLike } from './creation.ts'
export type { CreationOptions, TensorData } from './creation.ts'
export { bernoulli, rand, randLike, randint, randn, randnLike, randperm } from './random.ts'
export type { RandomOptions } from './random.ts'
export {
  abs,
  add,
  addcdiv,
  addcmul,
  div,
  floorDivide,
  fmod,
  lerp,
  maximum,
  minimum,
  mul,
  neg,
  pow,
  remainder,
  sign,
  sub,
} from './pointwise/arithmetic.ts'
export { relu } from './pointwise/activation.ts'
export { eq, ge, gt, isnan, le, logicalAnd, logicalNot, logicalOr, lt, ne } from './pointwise/comparison.ts'
export { bitwiseAnd, bitwiseLeftShift, bitwiseNot, bitwiseOr, bitwiseRightShift, bitwiseXor } from './pointwise/bitwise.ts'
export { clamp, maskedFill, where } from './pointwise/select.ts'
export type { ClampOptions } from './pointwise/select.ts'
export {
  ceil,
  cos,
  erf,
  exp,
  expm1,
  floor,
  log,
  log1p,
  reciprocal,
  round,
  rsqrt,
  sigmoid,
  sin,
  sqrt,
  square,
  tanh,
  trunc,
} from './pointwise/unary.ts'
export { relu_ } from './pointwise/inplace.ts'
export { all, amax, amin, any, argmax, argmin, max, min } from './reduction/extremes.ts'
export { cumsum } from './reduction/cumsum.ts'
export { mean, norm, std, stdMean, varMean } from './reduction/mean.ts'
export { logSoftmax, logsumexp, softmax } from './reduction/softmax.ts'
export { prod, sum } from './reduction/sum.ts'
export type { ReductionOptions } from './reduction/sum.ts'
export { cat, chunk, constantPadNd, split, stack, unbind } from './join.ts'
export { argsort, sort, topk } from './sort.ts'
export type { SortOptions, TopkOptions } from './sort.ts'
export { tril, triu } from './triangular.ts'
export { flip, roll } from './view/repeat.ts'
export {
  asStrided,
  clone,
  detach,
  flatten,
  gather,
  indexSelect,
  narrow,
  permute,
  reshape,
  scatterAdd,
  select,
  squeeze,
  t,
  transpose,
  unsqueeze,
} from './view/index.ts'
export { allclose, equal } from './compare.ts'
export type { AllcloseOptions } from './compare.ts'
export { addmm, baddbmm, bmm, dot, einsum, matmul, mm, mv, outer } from './linalg/index.ts'
