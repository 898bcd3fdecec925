// The goldens that do not pass yet. This list only shrinks: goldens.test.ts fails if a case in it passes.

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

/** Operators all of whose cases fail. */
export const missingOperators: ReadonlySet<string> = words(`
  EmbeddingBag_mean adjoint affine_grid alpha_dropout as_strided_scatter batch_norm bilinear blackman_window cholesky_inverse cholesky_solve conv3d
  conv_tbc conv_transpose3d dropout2d embedding_bag float_power fold frexp gcd grid_sample hamming_window hann_window i0 lcm ldexp linalg.cholesky
  linalg.cond linalg.cross linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh linalg.householder_product linalg.inv linalg.lstsq linalg.lu
  linalg.matrix_exp linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.multi_dot linalg.norm linalg.pinv linalg.qr linalg.slogdet
  linalg.solve linalg.solve_triangular linalg.svd linalg.svdvals linalg.tensorinv linalg.tensorsolve linalg.vander linalg.vecdot linalg.vector_norm
  local_response_norm logdet logspace meshgrid mvlgamma nextafter nn.AdaptiveLogSoftmaxWithLoss nn.BCELoss nn.CTCLoss nn.Conv3d nn.ConvTranspose3d
  nn.CosineEmbeddingLoss nn.CosineSimilarity nn.CrossMapLRN2d nn.EmbeddingBag nn.Fold nn.GaussianNLLLoss nn.HingeEmbeddingLoss nn.HuberLoss
  nn.KLDivLoss nn.LocalResponseNorm nn.MarginRankingLoss nn.MultiLabelMarginLoss nn.MultiLabelSoftMarginLoss nn.MultiMarginLoss nn.PairwiseDistance
  nn.PoissonNLLLoss nn.SoftMarginLoss nn.TripletMarginLoss nn.TripletMarginWithDistanceLoss nn.Unfold orthogonal parameters_to_vector rms_norm
  special.airy_ai special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1 special.entr special.erfcx special.expit special.gammainc
  special.gammaincc special.gammaln special.i0e special.i1 special.i1e special.log_ndtr special.modified_bessel_i0 special.modified_bessel_k0
  special.ndtr special.ndtri special.psi special.softmax special.spherical_bessel_j0 special.xlog1py special.zeta spectral_norm unfold upsample vander
  var_unbiased_false weight_norm
`)

/** The other cases that fail. */
export const missingCases: ReadonlySet<string> = words(`
  bmm_1 cat_4 cdist_5 clamp_11 clamp_8 embedding_4 embedding_5 func.jacrev_4 func.vmap_9 interpolate_47 interpolate_48 interpolate_49 interpolate_62
  interpolate_63 logit_3 masked_fill_2 median_5 mode_4 nn.GRU_10 nn.LSTM_12 nn.MultiheadAttention_11 nn.MultiheadAttention_13 nn.MultiheadAttention_9
  norm_6 optim_LBFGS_1 random_3 repeat_interleave_4 round_8 scaled_dot_product_attention_8 squeeze_3 where_3
`)
