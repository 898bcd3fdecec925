// The goldens that do not pass yet. This list only shrinks: goldens.test.ts fails if a case in it passes.

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

/** Operators all of whose cases fail. */
export const missingOperators: ReadonlySet<string> = words(`
  EmbeddingBag_mean alpha_dropout as_strided_scatter batch_norm blackman_window dropout2d frexp hamming_window hann_window ldexp logspace
  meshgrid nextafter nn.AdaptiveLogSoftmaxWithLoss nn.CTCLoss nn.Conv3d nn.ConvTranspose3d nn.CosineEmbeddingLoss nn.CosineSimilarity
  nn.CrossMapLRN2d nn.EmbeddingBag nn.Fold nn.GaussianNLLLoss nn.HingeEmbeddingLoss nn.KLDivLoss nn.LocalResponseNorm nn.MarginRankingLoss
  nn.MultiLabelMarginLoss nn.MultiLabelSoftMarginLoss nn.MultiMarginLoss nn.PairwiseDistance nn.PoissonNLLLoss nn.SoftMarginLoss
  nn.TripletMarginLoss nn.TripletMarginWithDistanceLoss nn.Unfold orthogonal parameters_to_vector spectral_norm upsample var_unbiased_false
  weight_norm
`)

/** The other cases that fail. */
export const missingCases: ReadonlySet<string> = words(`
  cdist_5 clamp_11 clamp_8 embedding_5 embedding_bag_12 i0_2 interpolate_47 interpolate_48 interpolate_49 interpolate_62 interpolate_63
  linalg.det_5 linalg.lstsq_2 linalg.matrix_power_1 linalg.matrix_power_5 linalg.qr_2 linalg.qr_3 linalg.qr_5 linalg.qr_6
  linalg.vector_norm_13 masked_fill_2 median_5 mode_4 nn.GRU_10 nn.LSTM_12 nn.MultiheadAttention_11 nn.MultiheadAttention_13
  nn.MultiheadAttention_9 norm_6 optim_LBFGS_1 random_3 repeat_interleave_4 round_8 scaled_dot_product_attention_8 squeeze_3 where_3
`)
