// Rules of operators that create, move, add up and cast complex numbers.
import { dispatch, isArgList, tensorAt } from '../../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../../dispatch/index.ts'
import { DTypeError } from '../../errors/index.ts'
import { complexDType, isComplexDType, isDType, realDType } from '../../kernels/index.ts'
import { getDefaultDtype, numelOf, sizeEq, Tensor, wrapDim } from '../../tensor/index.ts'
import { asLeaf, fullOf, onesLike } from '../create/creation.ts'
import { complexCopy_ } from '../generated/inPlace.ts'
import { cat } from '../join/join.ts'
import { matmul } from '../linalg/matmul.ts'
import { matrixNorm, vectorNorm } from '../linalg/norms.ts'
import { sigmoid } from '../pointwise/unary.ts'
import { add, mul, sub } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { ne } from '../pointwise/comparison.ts'
import { copy_ } from '../pointwise/fill.ts'
import { where } from '../pointwise/select.ts'
import { rand, randn } from '../random/random.ts'
import { sum } from '../reduction/sum.ts'
import { sizeAt } from '../shared/shapes.ts'
import { permute, transpose } from '../view/permute.ts'
import { clone, reshape } from '../view/reshape.ts'
import { narrow } from '../view/slicing.ts'
import { expand } from '../view/windows.ts'
import { conj } from './construct.ts'
import { magnitude } from './arithmetic.ts'
import { fromParts, im, isComplex, onPairs, re, toComplex } from './parts.ts'
import { argument, byParts, commonDType, forAll, onMagnitudes } from './rule.ts'
import type { ComplexRule, ComplexRules } from './rule.ts'
import { fromPairs, viewAsReal } from './views.ts'

/** Copies in another dtype. Of complex numbers a real dtype keeps the real parts, as in PyTorch, and bool whether they are 0. */
const cast: ComplexRule = (args, op) => {
  const self = tensorAt(args, 0)
  const dtype = argument(op, args, 'dtype')
  if (!isDType(dtype)) throw new DTypeError(`${op.qualname}: expected a dtype.`)
  if (isComplexDType(dtype)) return isComplex(self) ? onPairs(self, (pairs) => one(dispatch(op, [pairs, realDType(dtype)]))) : toComplex(self, dtype)
  return dtype === 'bool' ? ne(self, 0) : one(dispatch(op, [re(self), dtype]))
}

/** The result of an operator that has one. */
const one = (result: Result): Tensor => tensorAt([result], 0)

/** Random numbers for both parts, each times what gives the whole the variance of real ones. */
const drawn =
  (draw: OpDef, factor: number): ComplexRule =>
  (args, op) => {
    const like = args[0] instanceof Tensor ? args[0] : null
    const named = argument(op, args, 'dtype') ?? like?.dtype ?? null
    const size = like?.symSizes ?? argument(op, args, 'size')
    if (!isDType(named)) throw new DTypeError(`${op.qualname}: expected a dtype, got ${String(named)}.`)
    if (!isComplexDType(named)) return dispatch(draw, [size, argument(op, args, 'generator'), named, argument(op, args, 'requires_grad') === true])
    const pairs = one(dispatch(draw, [[...(isArgList(size) ? size : []), 2], argument(op, args, 'generator'), realDType(named), false]))
    return asLeaf(op.qualname, fromPairs(factor === 1 ? pairs : mul(pairs, factor)), argument(op, args, 'requires_grad') === true)
  }

/** The product over some dimensions, by halves: each time the first half is multiplied by the second. */
const product: ComplexRule = (args, op) => {
  const given = tensorAt(args, 0)
  const named = argument(op, args, 'dtype')
  const self = isDType(named) ? to(given, named) : given
  const dim = argument(op, args, 'dim')
  const chosen = isArgList(dim) && dim.length > 0 ? dim.map((d) => wrapDim(op.qualname, Number(d), self.ndim)) : [...self.symSizes.keys()]
  const kept = [...self.symSizes.keys()].filter((d) => !chosen.includes(d))
  const last = reshape(permute(self, [...kept, ...chosen]), [
    ...kept.map((d) => sizeAt(self.symSizes, d)),
    numelOf(chosen.map((d) => sizeAt(self.sizes, d))),
  ])
  let left = last
  if (sizeEq(sizeAt(left.symSizes, -1), 0)) left = onesLike(sum(left, -1, true))
  while (sizeAt(left.sizes, -1) > 1) {
    const half = Math.floor(sizeAt(left.sizes, -1) / 2)
    const paired = mul(narrow(left, -1, 0, half), narrow(left, -1, half, half))
    left = sizeAt(left.sizes, -1) % 2 === 0 ? paired : cat([paired, narrow(left, -1, 2 * half, 1)], -1)
  }
  const sizes =
    argument(op, args, 'keepdim') === true ? self.symSizes.map((n, d) => (chosen.includes(d) ? 1 : n)) : kept.map((d) => sizeAt(self.symSizes, d))
  return reshape(left, sizes)
}

/** Products of what is before an element and itself, by steps of 1, 2, 4, … */
const runningProduct: ComplexRule = (args, op) => {
  const named = argument(op, args, 'dtype')
  const self = isDType(named) ? to(tensorAt(args, 0), named) : tensorAt(args, 0)
  if (self.ndim === 0) return clone(self)
  const dim = wrapDim(op.qualname, Number(argument(op, args, 'dim')), self.ndim)
  const count = sizeAt(self.sizes, dim)
  let products = self
  for (let step = 1; step < count; step *= 2)
    products = cat([narrow(products, dim, 0, step), mul(narrow(products, dim, step, count - step), narrow(products, dim, 0, count - step))], dim)
  return products === self ? clone(self) : products
}

/** The variance: the sum of those of the parts. */
const variance: ComplexRule = (args, op) => {
  const self = tensorAt(args, 0)
  const of = (part: Tensor): Tensor => one(dispatch(op, [part, ...args.slice(1)]))
  return add(of(re(self)), of(im(self)))
}

/** The same, with the mean. */
const varianceAndMean: ComplexRule = (args, op) => {
  const self = tensorAt(args, 0)
  const of = (part: Tensor): readonly [Tensor, Tensor] => {
    const results = dispatch(op, [part, ...args.slice(1)])
    return [tensorAt([results].flat(), 0), tensorAt([results].flat(), 1)]
  }
  const [[spread, middle], [otherSpread, otherMiddle]] = [of(re(self)), of(im(self))]
  return [add(spread, otherSpread), fromParts(middle, otherMiddle)]
}

/** A product of matrices, or another operator that is linear in both of its first arguments; what is added to it comes third. */
const bilinear =
  (...rest: readonly number[]): ComplexRule =>
  (args, op) => {
    const dtype = commonDType(args.slice(0, 2))
    const [a, b] = [toComplex(tensorAt(args, 0), dtype), toComplex(tensorAt(args, 1), dtype)]
    const plain = args.slice(2).map((arg, i) => (rest.includes(i + 2) ? null : arg))
    const by = (x: Tensor, y: Tensor): Tensor => one(dispatch(op, [x, y, ...plain]))
    const [a0, a1, b0, b1] = [re(a), im(a), re(b), im(b)]
    return fromParts(sub(by(a0, b0), by(a1, b1)), add(by(a0, b1), by(a1, b0)))
  }

/** One value everywhere: a complex one if the value or the dtype is. */
const filled: ComplexRule = (args, op) => {
  const value = argument(op, args, 'fillValue')
  if (!isComplex(value) && op.decompose !== null) return op.decompose(...args)
  const self = args[0] instanceof Tensor ? args[0] : null
  const dtype = argument(op, args, 'dtype') ?? self?.dtype ?? complexDType(getDefaultDtype())
  if (!isDType(dtype) || !isComplexDType(dtype))
    throw new DTypeError(`${op.qualname}: a complex number does not fit ${String(dtype)}; name the dtype 'complex64' or 'complex128'.`)
  const size = argument(op, args, 'size')
  const whole = expand(toComplex(tensorAt([value], 0), dtype), isArgList(size) ? size.map(Number) : (self?.symSizes ?? []))
  return asLeaf(op.qualname, clone(whole), argument(op, args, 'requiresGrad') === true)
}

/** Padding by parts; with a complex number by where there is padding. */
const padded: ComplexRule = (args, op) => {
  const [self, value] = [tensorAt(args, 0), argument(op, args, 'value')]
  if (!(value instanceof Tensor)) return byParts('self', 'value')(args, op)
  const pad = (x: Tensor, by: number): Tensor => one(dispatch(op, [x, args[1] ?? [], by]))
  const dtype = commonDType([self])
  return where(ne(pad(fullOf(self.symSizes, 0, 'float32'), 1), 0), toComplex(value, dtype), pad(toComplex(self, dtype), 0))
}

/** The names of operators that only move elements, or are sums and products of operators that have rules. */
const DECOMPOSED =
  'zeros ones empty zeros_like ones_like empty_like scalar_tensor concat concatenate stack split chunk unbind _chunk_cat diag_embed diag diagflat trace ' +
  'einsum matmul mv dot outer addmm baddbmm addmv addr addbmm tensordot kron chain_matmul diff trapezoid cumulative_trapezoid gradient ' +
  'atleast_1d atleast_2d atleast_3d hstack vstack dstack column_stack tensor_split hsplit vsplit dsplit meshgrid cartesian_prod combinations block_diag broadcast_tensors ' +
  'tril triu index index_put _unsafe_masked_index _unsafe_masked_index_put_accumulate movedim moveaxis swapaxes swapdims unflatten ravel broadcast_to fliplr flipud rot90 tile ' +
  'repeat_interleave index_select t index_add index_copy index_fill take put take_along_dim masked_select masked_scatter flip roll reshape flatten narrow narrow_copy ' +
  'empty_strided empty_permuted positive scatter polar complex real imag conj conj_physical cross vander inner resolve_conj resolve_neg angle as_strided_ resize_as_'
const DECOMPOSED_METHODS =
  'to half bfloat16 float double int char byte short long bool type new_zeros new_ones new_empty type_as new_empty_strided view_as reshape_as expand_as unfold repeat ' +
  'contiguous zero_ sum_to_size fill_diagonal_ transpose_ swapaxes_ swapdims_ t_ squeeze_ unsqueeze_ resize_ set_ cfloat cdouble'

export const structureRules: ComplexRules = {
  ...forAll('view_as_real view_as_complex diagonal permute transpose unsqueeze squeeze select as_strided detach', 'as is'),
  ...forAll('view slice expand', 'as is', 'torch.Tensor'),
  ...forAll('complex_copy complex_copy_ complex_of', 'as is', 'torch.ops.tensorfx'),
  ...forAll(DECOMPOSED, 'decomposed'),
  ...forAll(DECOMPOSED_METHODS, 'decomposed', 'torch.Tensor'),
  ...forAll(
    'conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d pad rms_norm pixel_shuffle pixel_unshuffle channel_shuffle l1_loss softsign tanhshrink sigmoid tanh',
    'decomposed',
    'torch.nn.functional',
  ),
  ...forAll('stft istft', 'decomposed'),
  ...forAll('fft ifft irfft hfft fft2 ifft2 irfft2 hfft2 fftn ifftn irfftn hfftn fftshift ifftshift', 'decomposed', 'torch.fft'),
  'torch.clone': ([self]) => onPairs(tensorAt([self ?? null], 0), (pairs) => clone(pairs)),
  'torch.ops.tensorfx.to_copy': cast,
  'torch.ops.tensorfx.full': (args, op) => {
    const [size, value] = args
    const dtype = argument(op, args, 'dtype')
    const real = isDType(dtype) ? realDType(dtype) : 'float32'
    const sizes = isArgList(size) ? size.map(Number) : []
    if (Number(value) === 0) return fromPairs(fullOf([...sizes, 2], 0, real))
    return fromParts(fullOf(sizes, Number(value), real), fullOf(sizes, 0, real))
  },
  'torch.ops.tensorfx.fill': (args, op) => {
    const self = tensorAt(args, 0)
    const by = (part: Tensor, value: Arg): Tensor => one(dispatch(op, [part, value]))
    return fromParts(by(re(self), args[1] ?? 0), by(im(self), 0))
  },
  'torch.ops.tensorfx.copy': (args) => {
    const [self, src] = [tensorAt(args, 0), tensorAt(args, 1)]
    const source = isComplex(self) ? toComplex(src, complexDType(self.dtype)) : to(re(src), self.dtype)
    return clone(expand(source, self.symSizes))
  },
  'torch.Tensor.copy_': (args) => {
    const [self, src] = [tensorAt(args, 0), tensorAt(args, 1)]
    return isComplex(self) ? complexCopy_(self, clone(expand(toComplex(src, complexDType(self.dtype)), self.symSizes))) : copy_(self, re(src))
  },
  'torch.eye': (args, op) => {
    const dtype = argument(op, args, 'dtype')
    const ofOnes = one(
      dispatch(
        op,
        args.map((arg) => (isComplexDType(arg) ? realDType(arg) : arg === true ? false : arg)),
      ),
    )
    return asLeaf(op.qualname, to(ofOnes, isDType(dtype) ? dtype : 'complex64'), argument(op, args, 'requires_grad') === true)
  },
  'torch.rand': drawn(rand.op, 1),
  'torch.rand_like': drawn(rand.op, 1),
  'torch.randn': drawn(randn.op, Math.SQRT1_2),
  'torch.randn_like': drawn(randn.op, Math.SQRT1_2),
  // Random numbers for both parts; those of a normal distribution have half of the variance each, and only the real ones the mean.
  'torch.ops.tensorfx.uniform_': (args, op) => {
    dispatch(op, [viewAsReal(tensorAt(args, 0)), ...args.slice(1)])
    return tensorAt(args, 0)
  },
  'torch.ops.tensorfx.normal_': (args, op) => {
    const [self, mean, std] = [tensorAt(args, 0), Number(args[1]), Number(args[2])]
    for (const [part, middle] of [
      [re(self), mean],
      [im(self), 0],
    ] as const)
      dispatch(op, [part, middle, std * Math.SQRT1_2, ...args.slice(3)])
    return self
  },
  'torch.cat': byParts('tensors'),
  'torch.gather': byParts('self'),
  'torch.constant_pad_nd': padded,
  ...forAll('full full_like', filled),
  'torch.Tensor.new_full': filled,
  'torch.cumsum': byParts('self'),
  'torch.sum': byParts('self'),
  'torch.mean': byParts('self'),
  'torch.scatter_add': byParts('self', 'src'),
  'torch.select_scatter': byParts('self', 'src'),
  'torch.slice_scatter': byParts('self', 'src'),
  'torch.diagonal_scatter': byParts('self', 'src'),
  'torch.as_strided_scatter': byParts('self', 'src'),
  'torch.ops.tensorfx.select_backward': byParts('grad'),
  'torch.ops.tensorfx.slice_backward': byParts('grad'),
  'torch.ops.tensorfx.scatter_values': (args, op) => {
    const kind = argument(op, args, 'kind')
    if (kind !== 'set' && kind !== 'add')
      throw new DTypeError(`torch.scatter: reduce: '${String(kind)}' takes real numbers; complex ones can be set or added.`)
    return byParts('self', 'src')(args, op)
  },
  'torch.prod': product,
  'torch.cumprod': runningProduct,
  'torch.var': variance,
  'torch.std': 'decomposed',
  'torch.std_mean': 'decomposed',
  'torch.var_mean': varianceAndMean,
  'torch.mm': bilinear(),
  'torch.bmm': bilinear(),
  'torch.ops.tensorfx.convolution': (args, op) => {
    const bias = args[2] ?? null
    const result = one(bilinear(2)(args, op))
    return bias instanceof Tensor ? add(result, reshape(bias, [-1, ...result.symSizes.slice(2).map(() => 1)])) : result
  },
  'torch.nn.functional.linear': (args) => {
    const [input, weight, bias] = [tensorAt(args, 0), tensorAt(args, 1), args[2]]
    const result = matmul(input, transpose(weight, -2, -1))
    return bias instanceof Tensor ? add(result, bias) : result
  },
  'torch.linalg.vector_norm': onMagnitudes(magnitude),
  'torch.norm': (args, op) => {
    if (argument(op, args, 'p') === 'nuc') return matrixNorm(tensorAt(args, 0), 'nuc')
    return onMagnitudes(magnitude)(args, op)
  },
  'torch.dist': (args, op) => {
    const distance = magnitude(sub(tensorAt(args, 0), tensorAt(args, 1)))
    return dispatch(op, [distance, fullOf([], 0, distance.dtype), ...args.slice(2)])
  },
  'torch.nn.functional.pairwise_distance': (args, op) => {
    const distance = sub(tensorAt(args, 0), tensorAt(args, 1))
    const shifted = magnitude(add(distance, Number(argument(op, args, 'eps'))))
    return vectorNorm(shifted, Number(argument(op, args, 'p')), -1, argument(op, args, 'keepdim') === true)
  },
  'torch.nn.functional.silu': (args) => mul(tensorAt(args, 0), sigmoid(tensorAt(args, 0))),
  'torch.linalg.vecdot': (args, op) => sum(mul(conj(tensorAt(args, 0)), tensorAt(args, 1)), Number(argument(op, args, 'dim'))),
  'torch.adjoint': (args) => conj(transpose(tensorAt(args, 0), -2, -1)),
}
