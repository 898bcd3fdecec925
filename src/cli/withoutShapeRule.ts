// The operators that have no rule for symbolic sizes: 'tensorfx ops --symbolic' lists them. A test calls every operator with symbolic sizes and compares.

const NAMES = `
  torch.Tensor.random_ torch.Tensor.resize_ torch.Tensor.set_ torch.Tensor.squeeze_ torch.Tensor.swapaxes_ torch.Tensor.swapdims_ torch.Tensor.t_
  torch.Tensor.transpose_ torch.Tensor.unsqueeze_ torch.as_strided_ torch.histogram torch.isin torch.multinomial torch.nn.functional.ctc_loss
  torch.ops.tensorfx.exponential_ torch.randint_like torch.resize_as_
`

/** Their qualified names, sorted. */
export const withoutShapeRule: readonly string[] = NAMES.trim().split(/\s+/)
