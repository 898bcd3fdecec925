// Core ATen: the operators to which PyTorch decomposes every model that it exports (those with torch.Tag.core in PyTorch 2.13), and where each of them is here.
import { allOps, zeros } from '../ops/index.ts'
import { camelCase } from '../protocol/index.ts'

/** The operators, by their names in ATen. */
const NAMES = `
_adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d _cdist_forward _embedding_bag _fft_c2r _fft_r2c _local_scalar_dense
_log_softmax _native_batch_norm_legit _native_batch_norm_legit_no_training _pdist_forward _softmax _to_copy abs acos acosh adaptive_avg_pool1d add
addmm alias amax amin any arange argmax argmin as_strided asin asinh atan atan2 atanh avg_pool1d avg_pool2d avg_pool2d_backward avg_pool3d
bitwise_and bitwise_not bitwise_or bitwise_xor bmm cat ceil clamp clone col2im constant_pad_nd convolution convolution_backward copy cos cosh
cumsum diagonal div elu embedding embedding_dense_backward empty empty_strided eq erf exp expand expm1 fill flip floor fmod full full_like gather
ge gelu grid_sampler_2d gt hardtanh index index_put index_select isinf isnan le leaky_relu log log10 log1p log2 logical_and logical_not logical_or
logical_xor lt masked_scatter max max_pool2d_with_indices max_pool2d_with_indices_backward max_pool3d_with_indices maximum mean min minimum mm mul
native_dropout native_group_norm native_group_norm_backward native_layer_norm native_layer_norm_backward ne neg nonzero permute pow prod rand
randn randperm reciprocal reflection_pad1d reflection_pad2d reflection_pad3d relu remainder repeat replication_pad2d replication_pad3d resize_
round rsqrt scalar_tensor scatter scatter_add scatter_reduce select select_scatter sigmoid sign sin sinh slice slice_scatter sort split_with_sizes
sqrt squeeze sub sum sym_is_contiguous sym_numel sym_size sym_storage_offset sym_stride tan tanh topk trunc unsqueeze upsample_bilinear2d
upsample_nearest2d var view where`

/** Where operators are looked for, in this order. */
const NAMESPACES = ['torch', 'torch.nn.functional', 'torch.ops.tensorfx', 'torch.special', 'torch.linalg', 'torch.fft', 'torch.Tensor']

/** What does the same under another name: an operator, or a member of tensors. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  _adaptive_avg_pool2d: 'torch.nn.functional.adaptive_avg_pool2d',
  _adaptive_avg_pool3d: 'torch.nn.functional.adaptive_avg_pool3d',
  _cdist_forward: 'torch.cdist',
  _embedding_bag: 'torch.nn.functional.embedding_bag',
  _local_scalar_dense: 'torch.Tensor.item',
  _log_softmax: 'torch.log_softmax',
  _native_batch_norm_legit: 'torch.ops.tensorfx.native_batch_norm',
  _native_batch_norm_legit_no_training: 'torch.ops.tensorfx.native_batch_norm',
  _pdist_forward: 'torch.nn.functional.pdist',
  _softmax: 'torch.softmax',
  _to_copy: 'torch.Tensor.to',
  alias: 'torch.Tensor.view_as',
  col2im: 'torch.nn.functional.fold',
  embedding_dense_backward: 'torch.ops.tensorfx.embedding_backward',
  grid_sampler_2d: 'torch.nn.functional.grid_sample',
  max_pool2d_with_indices_backward: 'torch.ops.tensorfx.max_pool2d_backward',
  max_pool3d_with_indices: 'torch.nn.functional.max_pool3d',
  native_dropout: 'torch.nn.functional.dropout',
  native_group_norm: 'torch.nn.functional.group_norm',
  reflection_pad1d: 'torch.nn.functional.pad',
  reflection_pad2d: 'torch.nn.functional.pad',
  reflection_pad3d: 'torch.nn.functional.pad',
  replication_pad2d: 'torch.nn.functional.pad',
  replication_pad3d: 'torch.nn.functional.pad',
  split_with_sizes: 'torch.split',
  sym_is_contiguous: 'torch.Tensor.is_contiguous',
  sym_numel: 'torch.Tensor.numel',
  sym_size: 'torch.Tensor.size',
  sym_stride: 'torch.Tensor.stride',
  upsample_bilinear2d: 'torch.nn.functional.interpolate',
  upsample_nearest2d: 'torch.nn.functional.interpolate',
}

const OF_FFT = 'torch.fft computes it, from kernels of its own'
const BY_PARTS = 'the derivative is written with other operators, so that it needs none of its own'

/** Why an operator is left out. */
const REASONS: Readonly<Record<string, string>> = {
  _adaptive_avg_pool2d_backward: BY_PARTS,
  _fft_c2r: OF_FFT,
  _fft_r2c: OF_FFT,
  empty_strided: 'new tensors are contiguous; as_strided makes views with other strides',
  native_group_norm_backward: BY_PARTS,
  sym_storage_offset: 'the storage offset is not shown',
}

/** An operator of core ATen. */
export interface CoreOperator {
  /** Its name in ATen. */
  readonly aten: string
  /** The operator or member that does the same here, by PyTorch's name; null if nothing does. */
  readonly here: string | null
  /** Why nothing does, if that is on purpose. */
  readonly reason: string | null
}

/** Core ATen, in the order of names. */
export function coreOperators(): readonly CoreOperator[] {
  const names = new Set(allOps().map((op) => op.qualname))
  const tensor = zeros([1])
  const exists = (name: string): boolean =>
    names.has(name) || (name.startsWith('torch.Tensor.') && camelCase(name.slice('torch.Tensor.'.length)) in tensor)
  return NAMES.trim()
    .split(/\s+/)
    .map((aten) => {
      const elsewhere = ELSEWHERE[aten]
      const candidates = elsewhere === undefined ? NAMESPACES.map((namespace) => `${namespace}.${aten}`) : [elsewhere]
      const here = candidates.find(exists) ?? null
      return { aten, here, reason: here === null ? (REASONS[aten] ?? null) : null }
    })
}
