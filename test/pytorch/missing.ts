// The goldens that do not pass yet. This list only shrinks: goldens.test.ts fails if a case in it passes.

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

/** Operators all of whose cases fail. */
export const missingOperators: ReadonlySet<string> = words(`
  EmbeddingBag_mean as_strided_scatter ldexp nn.AdaptiveLogSoftmaxWithLoss nn.CTCLoss nn.Conv3d nn.ConvTranspose3d nn.CosineEmbeddingLoss
  nn.CosineSimilarity nn.CrossMapLRN2d nn.EmbeddingBag nn.Fold nn.GaussianNLLLoss nn.HingeEmbeddingLoss nn.KLDivLoss nn.LocalResponseNorm
  nn.MarginRankingLoss nn.MultiLabelMarginLoss nn.MultiLabelSoftMarginLoss nn.MultiMarginLoss nn.PairwiseDistance nn.PoissonNLLLoss
  nn.SoftMarginLoss nn.TripletMarginLoss nn.TripletMarginWithDistanceLoss nn.Unfold orthogonal parameters_to_vector spectral_norm
  weight_norm
`)

/** The other cases that fail. */
export const missingCases: ReadonlySet<string> = words(`
  embedding_5 embedding_bag_12 linalg.lstsq_2 nextafter_1 nextafter_3 nn.GRU_10 nn.LSTM_12 nn.MultiheadAttention_11 nn.MultiheadAttention_13
  nn.MultiheadAttention_9 optim_LBFGS_1 random_3 where_3
`)
