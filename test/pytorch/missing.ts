// The goldens that do not pass yet. This list only shrinks: goldens.test.ts fails if a case in it passes.

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

/** Operators all of whose cases fail. */
export const missingOperators: ReadonlySet<string> = words(`
  EmbeddingBag_mean PReLU affine_grid alpha_dropout as_strided_scatter batch_norm bilinear blackman_window conv3d conv_tbc
  conv_transpose3d dropout2d embedding_bag fold frexp grid_sample hamming_window hann_window ldexp local_response_norm logspace meshgrid
  nextafter nn.AdaptiveAvgPool1d nn.AdaptiveAvgPool3d nn.AdaptiveLogSoftmaxWithLoss nn.AdaptiveMaxPool1d nn.AdaptiveMaxPool2d
  nn.AdaptiveMaxPool3d nn.AvgPool1d nn.AvgPool3d nn.BCELoss nn.BatchNorm3d nn.Bilinear nn.CELU nn.CTCLoss nn.ChannelShuffle
  nn.CircularPad1d nn.CircularPad2d nn.CircularPad3d nn.ConstantPad1d nn.ConstantPad2d nn.ConstantPad3d nn.Conv3d nn.ConvTranspose3d
  nn.CosineEmbeddingLoss nn.CosineSimilarity nn.CrossMapLRN2d nn.EmbeddingBag nn.Fold nn.GLU nn.GaussianNLLLoss nn.Hardshrink
  nn.Hardsigmoid nn.Hardswish nn.Hardtanh nn.HingeEmbeddingLoss nn.HuberLoss nn.InstanceNorm1d nn.InstanceNorm2d nn.InstanceNorm3d
  nn.KLDivLoss nn.LPPool1d nn.LPPool2d nn.LPPool3d nn.LocalResponseNorm nn.LogSigmoid nn.MarginRankingLoss nn.MaxPool1d nn.MaxPool3d
  nn.MaxUnpool1d nn.MaxUnpool2d nn.Mish nn.MultiLabelMarginLoss nn.MultiLabelSoftMarginLoss nn.MultiMarginLoss nn.PReLU
  nn.PairwiseDistance nn.PoissonNLLLoss nn.RMSNorm nn.RReLU nn.ReLU6 nn.ReflectionPad1d nn.ReflectionPad2d nn.ReflectionPad3d
  nn.ReplicationPad1d nn.ReplicationPad2d nn.ReplicationPad3d nn.SELU nn.SoftMarginLoss nn.Softmax2d nn.Softmin nn.Softplus nn.Softshrink
  nn.Softsign nn.Tanhshrink nn.Threshold nn.TripletMarginLoss nn.TripletMarginWithDistanceLoss nn.Unflatten nn.Unfold
  nn.UpsamplingBilinear2d nn.UpsamplingNearest2d nn.ZeroPad1d nn.ZeroPad2d nn.ZeroPad3d nn.init.dirac_ orthogonal parameters_to_vector
  rms_norm spectral_norm unfold upsample var_unbiased_false weight_norm
`)

/** The other cases that fail. */
export const missingCases: ReadonlySet<string> = words(`
  cat_4 cdist_5 clamp_11 clamp_8 dropout_2 embedding_4 embedding_5 i0_2 interpolate_47 interpolate_48 interpolate_49 interpolate_62
  interpolate_63 linalg.det_5 linalg.lstsq_2 linalg.matrix_power_1 linalg.matrix_power_5 linalg.qr_2 linalg.qr_3 linalg.qr_5 linalg.qr_6
  linalg.vector_norm_13 masked_fill_2 median_5 mode_4 nn.Dropout_1 nn.GRU_10 nn.LSTM_12 nn.MultiheadAttention_11 nn.MultiheadAttention_13
  nn.MultiheadAttention_9 norm_6 optim_LBFGS_1 random_3 repeat_interleave_4 round_8 scaled_dot_product_attention_8 squeeze_3 where_3
`)
