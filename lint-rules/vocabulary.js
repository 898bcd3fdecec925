// The words by which tensors are recognised in source without types. The lists of methods hold judgments: whether a name tells that its object is a tensor.
// A method of the operator table that has no such judgment here counts as one that other objects may have too.
import { LIST_METHODS, METHODS } from './vocabulary.generated.js'

const words = (text) => new Set(text.split(' '))

/** Methods that only tensors have: an object on which one is called is a tensor, and so is the result. */
export const DISTINCT = words(
  'addcdiv addcmul addmm amax amin argmax argmin asStrided baddbmm bernoulli bitwiseAnd bitwiseLeftShift bitwiseNot bitwiseOr bitwiseRightShift bitwiseXor bmm broadcastTo clampMax clampMin cumprod cumsum expandAs ' +
    'expm1 floorDivide gelu groupNorm indexAdd indexPut indexSelect isfinite isinf isnan layerNorm leakyRelu log1p logSoftmax logicalAnd logicalNot logicalOr logicalXor logsumexp ' +
    'maskedFill maskedSelect matmul mm moveaxis movedim nonzero permute reciprocal relu repeatInterleave registerPostAccumulateGradHook requiresGrad_ rsqrt rsub scatterAdd scatterReduce sigmoid silu softmax softplus transfer ' +
    'sumToSize swapaxes tensordot tril triu unsqueeze viewAs zeroPad',
)

/** Methods that arrays, strings, Sets and dates have as well: they tell nothing about a parameter. */
export const COMMON = words('all bool clone copy dropout equal fill flip index int normalize repeat roll round select slice to type where zero')

/** Methods whose result is an array of tensors. */
export const LISTS = new Set([...words('chunk split unbind topk sort meshgrid tensorSplit splitWithSizes'), ...words(LIST_METHODS)])

/** Those of LISTS that only tensors have. */
export const DISTINCT_LISTS = words('chunk unbind topk tensorSplit splitWithSizes')

/** Methods of tensors whose names other objects may have too: they count on a known tensor, and on parameters of code that works on tensors. */
export const SHARED = new Set([
  ...words('acos acosh allclose asin asinh atan atan2 atanh cosh diagonal erfc exp2 log10 log2 median newTensor sinh tan unfold'),
  ...[...words(METHODS)].filter((name) => !DISTINCT.has(name) && !COMMON.has(name) && !LISTS.has(name) && !name.endsWith('_')),
])

/** Functions and methods whose result is not a tensor. */
export const PLAIN_FUNCTIONS = words(
  'allclose equal isTensor isGradEnabled setGradEnabled noGrad enableGrad inferenceMode manualSeed getRngState setRngState numel compile',
)

/** Names under which the functions of torch are imported. */
export const NAMESPACES = words('torch F')

/** Objects of the language: their methods are not those of tensors. */
export const PLAIN_OBJECTS = words('Math Object Array Number JSON console Reflect Promise String BigInt Atomics')

/** Functions that run their argument on traced values. */
export const TRACERS = words('symbolicTrace compile makeFx trace')

/** Those of TRACERS for which sizes are traced values too. */
export const SYMBOLIC = words('symbolicTrace trace')

/** Properties and methods that give the sizes of a tensor. */
export const SIZES = words('shape ndim numel dtype size dim length')
