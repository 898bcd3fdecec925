// The goldens that do not pass yet. This list only shrinks: goldens.test.ts fails if a case in it passes.

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

/** Operators all of whose cases fail. */
export const missingOperators: ReadonlySet<string> = words(`
  EmbeddingBag_mean as_strided_scatter ldexp nn.AdaptiveLogSoftmaxWithLoss nn.CTCLoss nn.Conv3d nn.ConvTranspose3d nn.CosineEmbeddingLoss
  nn.CosineSimilarity nn.CrossMapLRN2d nn.EmbeddingBag nn.Fold nn.GaussianNLLLoss nn.HingeEmbeddingLoss nn.KLDivLoss nn.LocalResponseNorm
  nn.MarginRankingLoss nn.MultiLabelMarginLoss nn.MultiLabelSoftMarginLoss nn.MultiMarginLoss nn.PairwiseDistance nn.PoissonNLLLoss
  nn.SoftMarginLoss nn.TripletMarginLoss nn.TripletMarginWithDistanceLoss nn.Unfold
`)

/**
 * The other cases that fail. Reasons of those of operators, which stay:
 *
 * - as_strided_scatter_1 and _2: PyTorch's gradient of self is nonzero inside the window, where self has no influence.
 * - embedding_bag_12: PyTorch divides the gradient of a row by the occurrences of another one.
 * - ldexp_1 and _2: PyTorch's gradient takes 2^other for an integer, so that negative exponents give 0.
 * - linalg.lstsq_2: computed in float64 the gradient is ours, 0.56546; PyTorch's has the error of float32.
 */
export const missingCases: ReadonlySet<string> = words(`
  embedding_bag_12 linalg.lstsq_2
  optim_LBFGS_1
`)
