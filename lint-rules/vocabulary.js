// The words by which tensors are recognised in source without types.

const words = (text) => new Set(text.split(' '))

/** Methods that only tensors have: whoever has one called is a tensor, and so is the result. */
export const DISTINCT = words(
  'addcdiv addcmul addmm amax amin argmax argmin asStrided baddbmm bernoulli bitwiseAnd bitwiseLeftShift bitwiseNot bitwiseOr bitwiseRightShift bitwiseXor bmm broadcastTo clampMax clampMin cumprod cumsum expandAs ' +
    'expm1 floorDivide gelu groupNorm indexAdd indexPut indexSelect isfinite isinf isnan layerNorm leakyRelu log1p logSoftmax logicalAnd logicalNot logicalOr logicalXor logsumexp ' +
    'maskedFill maskedSelect matmul mm moveaxis movedim nonzero permute reciprocal relu repeatInterleave requiresGrad_ rsqrt rsub scatterAdd scatterReduce sigmoid silu softmax softplus ' +
    'sumToSize swapaxes tensordot tril triu unsqueeze viewAs zeroPad',
)

/** Methods of tensors whose names others may have too: they count for what is known to be a tensor, and for parameters of code that works on tensors. */
export const SHARED = words(
  'abs acos acosh add allclose any argsort asin asinh atan atan2 atanh ceil clamp contiguous cos cosh detach diagonal div dot double eq erf erfc exp exp2 expand flatten float floor fmod ' +
    'gather ge gt le lerp log log10 log2 lt max maximum mean median min minimum mul mv narrow ne neg norm outer pow prod remainder reshape sign sin sinh sqrt square squeeze std sub sum t ' +
    'tan tanh transpose trunc unfold var view',
)

/** Those that arrays, strings, Sets and dates have as well: they say nothing of a parameter. */
export const COMMON = words('all bool clone copy dropout equal fill flip index int normalize repeat roll round select slice to type where zero')

/** Methods whose result is an array of tensors. */
export const LISTS = words('chunk split unbind topk sort meshgrid tensorSplit splitWithSizes')

/** Of those: the ones that only tensors have. */
export const DISTINCT_LISTS = words('chunk unbind topk tensorSplit splitWithSizes')

/** Functions and methods of tensors whose result is no tensor. */
export const PLAIN_FUNCTIONS = words(
  'allclose equal isTensor isGradEnabled setGradEnabled noGrad enableGrad inferenceMode manualSeed getRngState setRngState numel compile',
)

/** Names under which the functions of torch are imported. */
export const NAMESPACES = words('torch F')

/** Objects of the language whose methods are no methods of tensors. */
export const PLAIN_OBJECTS = words('Math Object Array Number JSON console Reflect Promise String BigInt Atomics')

/** Functions whose argument is run on traced values. */
export const TRACERS = words('symbolicTrace compile makeFx trace')

/** Of those: the ones for which sizes are traced values too. */
export const SYMBOLIC = words('symbolicTrace trace')

/** What a tensor tells of its size. */
export const SIZES = words('shape ndim numel dtype size dim length')
