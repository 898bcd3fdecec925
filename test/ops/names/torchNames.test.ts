// torch and its tensors have the functions and methods of PyTorch: those that they lack are listed in src/cli/missingNames.ts, each with its reason.
import { expect, test } from 'vitest'
import { torch } from 'tensorfx'
import { MISSING_FUNCTIONS, MISSING_METHODS } from '../../../src/cli/missingNames.ts'

const names = (text: string): readonly string[] => text.trim().split(/\s+/)

/** As the names are spelled here. */
const camelCase = (name: string): string => name.replace(/(?<=[a-z0-9])_+([a-z0-9])/gi, (_, next: string) => next.toUpperCase())

/** The public functions of PyTorch 2.13's torch that work on tensors, or make them. */
const FUNCTIONS = `
  abs absolute absolute_ acos acosh adaptive_avg_pool1d adaptive_max_pool1d add addbmm addcdiv addcmul addmm addmv addmv_ addr adjoint
  affine_grid_generator alias_copy all allclose alpha_dropout alpha_dropout_ amax amin aminmax angle any arange arccos arccosh arcsin arcsinh arctan
  arctan2 arctanh argmax argmin argsort argwhere as_strided as_strided_copy as_tensor asarray asin asinh atan atan2 atanh atleast_1d atleast_2d
  atleast_3d avg_pool1d baddbmm bartlett_window batch_norm bernoulli bilinear binary_cross_entropy_with_logits bincount binomial bitwise_and
  bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman_window block_diag bmm broadcast_shapes broadcast_tensors
  broadcast_to bucketize can_cast cartesian_prod cat cdist ceil celu celu_ chain_matmul channel_shuffle cholesky cholesky_inverse cholesky_solve
  choose_qparams_optimized chunk clamp clamp_max clamp_min clip clone column_stack combinations compile compiled_with_cxx11_abi complex concat
  concatenate cond conj conj_physical constant_pad_nd conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution
  copysign corrcoef cos cosh cosine_embedding_loss cosine_similarity count_nonzero cov cross crow_indices_copy ctc_loss cudnn_convolution cummax cummin
  cumprod cumsum cumulative_trapezoid deg2rad dequantize det detach detach_ diag diag_embed diagflat diagonal diagonal_copy diagonal_scatter diff
  digamma dist div divide dot dropout dropout_ dsmm dsplit dstack einsum embedding embedding_bag empty empty_like empty_permuted empty_strided
  enable_grad eq equal erf erf_ erfc erfinv exp exp2 expand_copy expm1 eye fake_quantize_per_channel_affine fake_quantize_per_tensor_affine
  fbgemm_linear_int8_weight feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ fill fill_ fix flatten flip fliplr flipud
  float_power floor floor_divide fmax fmin fmod frac frexp frobenius_norm from_dlpack from_file from_numpy frombuffer full full_like
  fused_moving_avg_obs_fake_quant gather gcd ge geqrf ger ger_ get_default_device get_default_dtype get_device get_num_interop_threads get_num_threads
  get_rng_state gradient greater greater_equal grid_sampler grid_sampler_2d grid_sampler_3d group_norm gru gru_cell gt hamming_window hann_window
  hardshrink hash_tensor heaviside hinge_embedding_loss histc histogram histogramdd hsmm hsplit hspmm hstack hypot i0 igamma igammac imag index_add
  index_copy index_fill index_put index_put_ index_reduce index_select inference_mode initial_seed inner instance_norm inverse is_complex is_conj
  is_distributed is_floating_point is_grad_enabled is_inference is_inference_mode_enabled is_nonzero is_same_size is_signed is_storage is_tensor
  is_warn_always_enabled isclose isfinite isin isinf isnan isneginf isposinf isreal istft kaiser_window kl_div kron kthvalue layer_norm lcm ldexp le
  lerp less less_equal lgamma linspace load lobpcg log log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not
  logical_or logical_xor logit logspace logsumexp lstm lstm_cell lt lu lu_solve lu_unpack manual_seed margin_ranking_loss masked_fill masked_scatter
  masked_select matmul matrix_exp matrix_power matrix_rank max max_pool1d max_pool1d_with_indices max_pool2d max_pool3d maximum mean median meshgrid min
  minimum mm mode moveaxis movedim msort mul multinomial multiply mv mvlgamma nan_to_num nanmean nanmedian nanquantile nansum narrow narrow_copy
  native_batch_norm native_channel_shuffle native_dropout native_group_norm native_layer_norm native_norm ne neg negative nextafter no_grad nonzero
  nonzero_static norm norm_except_dim normal not_equal nuclear_norm numel ones ones_like orgqr ormqr outer pairwise_distance pca_lowrank pdist permute
  permute_copy pinverse pixel_shuffle pixel_unshuffle poisson poisson_nll_loss polar polygamma positive pow prelu prod promote_types put qr quantile
  quantize_per_tensor quantized_batch_norm rad2deg rand rand_like randint randint_like randn randn_like randperm range ravel real reciprocal relu relu_
  remainder renorm repeat_interleave reshape resize_as_ resolve_conj resolve_neg result_type rms_norm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell roll
  rot90 round row_stack rrelu rrelu_ rsqrt rsub saddmm save scalar_tensor scatter scatter_add scatter_reduce searchsorted seed segment_reduce select
  select_copy select_scatter selu selu_ set_default_device set_default_dtype set_flush_denormal set_grad_enabled set_num_interop_threads set_num_threads
  set_printoptions set_rng_state sgn sigmoid sign signbit sin sinc sinh slice_copy slice_inverse slice_scatter slogdet smm softmax sort
  sparse_coo_tensor split split_copy split_with_sizes spmm sqrt square squeeze squeeze_copy sspaddmm stack std std_mean stft sub subtract sum svd
  svd_lowrank swapaxes swapdims sym_float sym_int sym_ite sym_max sym_min sym_not sym_sum t t_copy take take_along_dim tan tanh tensor tensor_split
  tensordot threshold threshold_ tile topk trace transpose transpose_copy trapezoid trapz triangular_solve tril tril_indices triplet_margin_loss triu
  triu_indices true_divide trunc unbind unbind_copy unflatten unfold_copy unique unique_consecutive unravel_index unsafe_chunk unsafe_split
  unsafe_split_with_sizes unsqueeze unsqueeze_copy use_deterministic_algorithms vander var var_mean vdot view_as_complex view_as_real view_copy vmap
  vsplit vstack where xlogy xlogy_ zero_ zeros zeros_like
`

/** The public methods and properties of PyTorch 2.13's torch.Tensor. */
const METHODS = `
  H T abs abs_ absolute absolute_ acos acos_ acosh acosh_ add add_ addbmm addbmm_ addcdiv addcdiv_ addcmul addcmul_ addmm addmm_ addmv addmv_ addr addr_
  adjoint align_as align_to all allclose amax amin aminmax angle any apply_ arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan
  arctan2 arctan2_ arctan_ arctanh arctanh_ argmax argmin argsort argwhere as_strided as_strided_ as_strided_scatter as_subclass asin asin_ asinh asinh_
  atan atan2 atan2_ atan_ atanh atanh_ backward baddbmm baddbmm_ bernoulli bernoulli_ bfloat16 bincount bitwise_and bitwise_and_ bitwise_left_shift
  bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or bitwise_or_ bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ bmm bool
  broadcast_to byte cauchy_ cdouble ceil ceil_ cfloat chalf char cholesky cholesky_inverse cholesky_solve chunk clamp clamp_ clamp_max clamp_max_
  clamp_min clamp_min_ clip clip_ clone conj conj_physical conj_physical_ contiguous copy_ copysign copysign_ corrcoef cos cos_ cosh cosh_ count_nonzero
  cov cpu cross cuda cummax cummin cumprod cumprod_ cumsum cumsum_ data data_ptr deg2rad dense_dim dequantize det detach detach_ device diag diag_embed
  diagflat diagonal diagonal_scatter diff digamma digamma_ dim dim_order dist div div_ divide divide_ dot double dsplit element_size eq eq_ equal erf
  erf_ erfc erfc_ erfinv erfinv_ exp exp_ expand expand_as expm1 expm1_ exponential_ fill_ fill_diagonal_ fix fix_ flatten flip fliplr flipud float
  float_power float_power_ floor floor_ floor_divide floor_divide_ fmax fmin fmod fmod_ frac frac_ frexp gather gcd gcd_ ge ge_ geometric_ geqrf ger
  get_device grad grad_fn greater greater_ greater_equal greater_equal_ gt gt_ half hardshrink heaviside heaviside_ histc histogram hsplit hypot hypot_
  i0 i0_ igamma igamma_ igammac igammac_ imag index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_put index_put_ index_reduce
  index_reduce_ index_select indices inner int int_repr inverse is_complex is_conj is_contiguous is_cuda is_floating_point is_inference is_leaf is_meta
  is_nonzero is_pinned is_quantized is_same_size is_set_to is_shared is_signed is_sparse isclose isfinite isinf isnan isneginf isposinf isreal istft
  item itemsize kthvalue layout lcm lcm_ ldexp ldexp_ le le_ lerp lerp_ less less_ less_equal less_equal_ lgamma lgamma_ log log10 log10_ log1p log1p_
  log2 log2_ log_ log_normal_ log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_and_ logical_not logical_not_ logical_or
  logical_or_ logical_xor logical_xor_ logit logit_ logsumexp long lt lt_ lu lu_solve mH mT map_ masked_fill masked_fill_ masked_scatter masked_scatter_
  masked_select matmul matrix_exp matrix_power max maximum mean median min minimum mm mode module_load moveaxis movedim msort mul mul_ multinomial
  multiply multiply_ mv mvlgamma mvlgamma_ names nan_to_num nan_to_num_ nanmean nanmedian nanquantile nansum narrow narrow_copy nbytes ndim ndimension
  ne ne_ neg neg_ negative negative_ nelement new new_empty new_empty_strided new_full new_ones new_tensor new_zeros nextafter nextafter_ nonzero
  nonzero_static norm normal_ not_equal not_equal_ numel numpy orgqr ormqr outer permute pin_memory pinverse polygamma polygamma_ positive pow pow_
  prelu prod put put_ q_scale q_zero_point qr qscheme quantile rad2deg random_ ravel real reciprocal reciprocal_ record_stream refine_names
  register_hook register_post_accumulate_grad_hook reinforce relu relu_ remainder remainder_ rename rename_ renorm renorm_ repeat repeat_interleave
  requires_grad requires_grad_ reshape reshape_as resize_ resize_as_ resolve_conj resolve_neg retain_grad retains_grad roll rot90 round round_ rsqrt
  rsqrt_ scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ select select_scatter set_ sgn sgn_ shape share_memory_ short sigmoid
  sigmoid_ sign sign_ signbit sin sin_ sinc sinc_ sinh sinh_ size slice_scatter slogdet smm softmax sort sparse_dim sparse_mask split split_with_sizes
  sqrt sqrt_ square square_ squeeze squeeze_ sspaddmm std stft storage_offset storage_type stride sub sub_ subtract subtract_ sum sum_to_size svd
  swapaxes swapaxes_ swapdims swapdims_ t t_ take take_along_dim tan tan_ tanh tanh_ tensor_split tile to to_dense to_mkldnn to_sparse tolist topk trace
  transpose transpose_ triangular_solve tril tril_ triu triu_ true_divide true_divide_ trunc trunc_ type type_as unbind unflatten unfold uniform_ unique
  unique_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_ untyped_storage values var vdot version view view_as vsplit
  where xlogy xlogy_ xpu zero_
`

const listed = (missing: Readonly<Record<string, string>>): readonly string[] => Object.values(missing).flatMap(names).toSorted()
const lackedBy = (owner: object, text: string): readonly string[] =>
  names(text)
    .filter((name) => !(camelCase(name) in owner))
    .toSorted()

test('torch has every function of PyTorch but those that are listed', () => {
  expect(lackedBy(torch, FUNCTIONS)).toEqual(listed(MISSING_FUNCTIONS))
})

test('tensors have every method of PyTorch but those that are listed', () => {
  expect(lackedBy(torch.zeros([1]), METHODS)).toEqual(listed(MISSING_METHODS))
})

test('asTensor gives the tensor itself, another dtype, or a tensor of data', () => {
  const x = torch.tensor([1.5, 2])
  expect(torch.asTensor(x)).toBe(x)
  expect(torch.asTensor(x, { dtype: 'float32' })).toBe(x)
  expect(torch.asTensor(x, { dtype: 'int64' }).toArray()).toEqual([1, 2])
  expect(torch.asarray([[1, 2]], { dtype: 'int32' }).dtype).toBe('int32')
  expect(() => torch.asTensor(x, { device: 'cpu' } as never)).toThrow(/unknown option 'device'/)
})

test('isTensor, isFloatingPoint and broadcastShapes', () => {
  expect([torch.isTensor(torch.zeros([1])), torch.isTensor([1])]).toEqual([true, false])
  expect([torch.isFloatingPoint(torch.zeros([1])), torch.isFloatingPoint(torch.zeros([1]).int())]).toEqual([true, false])
  expect(torch.broadcastShapes([2, 1], [3], [1, 1, 1])).toEqual([1, 2, 3])
  expect(() => torch.broadcastShapes([2], [3])).toThrow(/do not broadcast/)
})
