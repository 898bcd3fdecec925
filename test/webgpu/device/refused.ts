// The operators that tensors on the GPU refuse on the arguments of their first value case: they have no shader, or are composed of one that has none.
export const REFUSED: readonly string[] = `
  torch.Tensor.bfloat16 torch.Tensor.digamma_ torch.Tensor.double torch.Tensor.erfinv_ torch.Tensor.half torch.Tensor.igamma_ torch.Tensor.igammac_
  torch.Tensor.lgamma_ torch.Tensor.mvlgamma_ torch.Tensor.polygamma torch.Tensor.type torch.cholesky
  torch.det torch.digamma torch.erfc torch.erfc_ torch.erfinv torch.float_power torch.geqrf torch.i0 torch.i0_ torch.igamma torch.igammac torch.inverse
  torch.lgamma torch.linalg.cholesky torch.linalg.cholesky_ex torch.linalg.cond torch.linalg.det torch.linalg.eigh torch.linalg.eigvalsh
  torch.linalg.inv torch.linalg.inv_ex torch.linalg.ldl_factor torch.linalg.ldl_factor_ex torch.linalg.ldl_solve torch.linalg.lstsq torch.linalg.lu
  torch.linalg.lu_factor torch.linalg.lu_factor_ex torch.linalg.lu_solve torch.linalg.matrix_exp torch.linalg.matrix_rank torch.linalg.pinv
  torch.linalg.qr torch.linalg.slogdet torch.linalg.solve torch.linalg.solve_ex torch.linalg.svd torch.linalg.svdvals
  torch.linalg.tensorinv torch.linalg.tensorsolve torch.logdet torch.lu torch.lu_solve torch.lu_unpack torch.matrix_exp torch.mvlgamma
  torch.nn.functional.fractional_max_pool2d torch.nn.functional.fractional_max_pool3d torch.ops.tensorfx.beta_slope torch.ops.tensorfx.dirichlet_samples
  torch.ops.tensorfx.gamma_samples torch.ops.tensorfx.gamma_slope torch.ops.tensorfx.nonzero_rows torch.ops.tensorfx.poisson_quantiles
  torch.ops.tensorfx.pseudo_inverse torch.ops.tensorfx.row_order torch.ops.tensorfx.solve_matrix torch.ops.tensorfx.to_copy
  torch.pinverse torch.poisson torch.polygamma torch.qr torch.slogdet torch.special.airy_ai torch.special.bessel_j0
  torch.special.bessel_j1 torch.special.bessel_y0 torch.special.bessel_y1 torch.special.chebyshev_polynomial_t torch.special.chebyshev_polynomial_u
  torch.special.chebyshev_polynomial_v torch.special.chebyshev_polynomial_w torch.special.erfcx torch.special.hermite_polynomial_h
  torch.special.hermite_polynomial_he torch.special.i0e torch.special.i1 torch.special.i1e torch.special.laguerre_polynomial_l
  torch.special.legendre_polynomial_p torch.special.log_ndtr torch.special.modified_bessel_i0 torch.special.modified_bessel_i1
  torch.special.modified_bessel_k0 torch.special.modified_bessel_k1 torch.special.ndtr torch.special.ndtri torch.special.scaled_modified_bessel_k0
  torch.special.scaled_modified_bessel_k1 torch.special.shifted_chebyshev_polynomial_t torch.special.shifted_chebyshev_polynomial_u
  torch.special.shifted_chebyshev_polynomial_v torch.special.shifted_chebyshev_polynomial_w torch.special.zeta torch.svd torch.svd_lowrank
`
  .trim()
  .split(/\s+/)

// Those that look at data to know a shape: where the program cannot wait, they throw DeviceReadError.
export const READS_DATA: readonly string[] = [
  'torch.Tensor.masked_scatter_',
  'torch.argwhere',
  'torch.bincount',
  'torch.masked_scatter',
  'torch.masked_select',
  'torch.multinomial',
  'torch.nn.functional.one_hot',
  'torch.nonzero',
  'torch.unique',
  'torch.unique_consecutive',
]
