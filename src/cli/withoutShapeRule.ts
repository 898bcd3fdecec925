// The operators that have no rule for symbolic sizes: 'tensorfx ops --symbolic' lists them. A test calls every operator with symbolic sizes and compares.

const NAMES = `
  torch.Tensor.cumprod_ torch.Tensor.fill_diagonal_ torch.Tensor.put_ torch.Tensor.random_ torch.Tensor.resize_ torch.Tensor.set_
  torch.Tensor.squeeze_ torch.Tensor.swapaxes_ torch.Tensor.swapdims_ torch.Tensor.t_ torch.Tensor.transpose_ torch.Tensor.unfold
  torch.Tensor.unsqueeze_ torch._batch_norm_with_update torch._chunk_cat torch._native_batch_norm_legit torch._unsafe_masked_index
  torch._unsafe_masked_index_put_accumulate torch._upsample_bilinear2d_aa torch.adaptive_avg_pool1d torch.adaptive_max_pool1d torch.alpha_dropout
  torch.as_strided_ torch.bilinear torch.block_diag torch.broadcast_tensors torch.bucketize torch.chain_matmul torch.channel_shuffle torch.cholesky
  torch.cholesky_inverse torch.cholesky_solve torch.combinations torch.conv3d torch.conv_transpose1d torch.conv_transpose2d torch.conv_transpose3d
  torch.corrcoef torch.cov torch.cross torch.cummax torch.cummin torch.cumprod torch.cumulative_trapezoid torch.det torch.diag torch.diag_embed
  torch.diagflat torch.diff torch.dsplit torch.einsum torch.flip torch.fliplr torch.flipud torch.geqrf torch.gradient torch.grid_sampler
  torch.grid_sampler_2d torch.grid_sampler_3d torch.histc torch.histogram torch.hsplit torch.index torch.index_put torch.index_put_ torch.inner
  torch.instance_norm torch.inverse torch.isin torch.kron torch.kthvalue torch.linalg.cholesky torch.linalg.cholesky_ex torch.linalg.cond
  torch.linalg.cross torch.linalg.det torch.linalg.eigh torch.linalg.eigvalsh torch.linalg.householder_product torch.linalg.inv torch.linalg.inv_ex
  torch.linalg.ldl_solve torch.linalg.lstsq torch.linalg.lu torch.linalg.lu_factor torch.linalg.lu_factor_ex torch.linalg.lu_solve
  torch.linalg.matrix_exp torch.linalg.matrix_norm torch.linalg.matrix_power torch.linalg.matrix_rank torch.linalg.multi_dot torch.linalg.norm
  torch.linalg.pinv torch.linalg.qr torch.linalg.slogdet torch.linalg.solve torch.linalg.solve_ex torch.linalg.solve_triangular torch.linalg.svd
  torch.linalg.svdvals torch.linalg.tensorinv torch.linalg.tensorsolve torch.logcumsumexp torch.logdet torch.lu torch.lu_solve torch.lu_unpack
  torch.matrix_exp torch.max_pool3d torch.median torch.mode torch.multinomial torch.nanmedian torch.nanquantile torch.native_batch_norm
  torch.native_group_norm torch.nn.functional.adaptive_avg_pool1d torch.nn.functional.adaptive_avg_pool2d torch.nn.functional.adaptive_avg_pool3d
  torch.nn.functional.adaptive_max_pool1d torch.nn.functional.adaptive_max_pool2d torch.nn.functional.adaptive_max_pool3d
  torch.nn.functional.alpha_dropout torch.nn.functional.avg_pool3d torch.nn.functional.batch_norm torch.nn.functional.bilinear
  torch.nn.functional.channel_shuffle torch.nn.functional.conv3d torch.nn.functional.conv_transpose1d torch.nn.functional.conv_transpose2d
  torch.nn.functional.conv_transpose3d torch.nn.functional.cross_entropy torch.nn.functional.ctc_loss torch.nn.functional.embedding_bag
  torch.nn.functional.fold torch.nn.functional.glu torch.nn.functional.grid_sample torch.nn.functional.instance_norm torch.nn.functional.interpolate
  torch.nn.functional.kl_div torch.nn.functional.local_response_norm torch.nn.functional.lp_pool3d torch.nn.functional.max_pool3d
  torch.nn.functional.max_unpool1d torch.nn.functional.multi_margin_loss torch.nn.functional.multilabel_margin_loss torch.nn.functional.nll_loss
  torch.nn.functional.pad torch.nn.functional.pdist torch.nn.functional.pixel_shuffle torch.nn.functional.pixel_unshuffle
  torch.nn.functional.scaled_dot_product_attention torch.nn.functional.unfold torch.nn.functional.upsample torch.nn.functional.upsample_bilinear
  torch.nn.functional.upsample_nearest torch.norm torch.ops.tensorfx.beta_slope torch.ops.tensorfx.block_attention
  torch.ops.tensorfx.block_attention_backward torch.ops.tensorfx.dirichlet_samples torch.ops.tensorfx.exponential_ torch.ops.tensorfx.gamma_samples
  torch.ops.tensorfx.gamma_slope torch.ops.tensorfx.nll_loss_forward torch.ops.tensorfx.places torch.ops.tensorfx.pseudo_inverse
  torch.ops.tensorfx.resample torch.ops.tensorfx.resample_backward torch.ops.tensorfx.solve_matrix torch.ops.tensorfx.triangular_solve torch.orgqr
  torch.ormqr torch.pca_lowrank torch.pdist torch.pinverse torch.pixel_shuffle torch.pixel_unshuffle torch.put torch.qr torch.quantile
  torch.randint_like torch.repeat_interleave torch.resize_as_ torch.roll torch.rot90 torch.searchsorted torch.slogdet torch.std torch.std_mean
  torch.svd torch.svd_lowrank torch.take torch.take_along_dim torch.tensor_split torch.tensordot torch.trapezoid torch.trapz torch.triangular_solve
  torch.unfold_copy torch.vander torch.var torch.var_mean torch.vsplit
`

/** Their qualified names, sorted. */
export const withoutShapeRule: readonly string[] = NAMES.trim().split(/\s+/)
